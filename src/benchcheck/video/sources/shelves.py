"""Archives on disk as shelves of videos: opened when first asked, and asked together, so that no guess is made."""

import glob
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from benchcheck.errors import InputError
from benchcheck.pool.reading.paths import find_files, located, names_below
from benchcheck.pool.reading.sources import listed
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.archives import Contents, contents_of
from benchcheck.video.sources.names import Names
from benchcheck.video.sources.parts import grouped, is_archive, is_part_of
from benchcheck.video.task import Member

__all__ = ["Shelf", "Shelves", "one_of", "told"]


class Shelf:
    """An archive: its members by name, read when first asked."""

    def __init__(self, name: str, path: str, parts: Sequence[str] | VideoError) -> None:
        """Take what messages call it, its whole path, and its files, or why they are not all there."""
        self.name, self.path, self._parts = name, path, parts

    @cached_property
    def _contents(self) -> Contents:
        if isinstance(self._parts, VideoError):
            return Contents(self.name, fault=self._parts)
        return contents_of(self.name, tuple(self._parts))

    @property
    def fault(self) -> VideoError | None:
        """Why there may be more in it than can be read; None where all was read."""
        return self._contents.fault

    @cached_property
    def names(self) -> Names[Member]:
        """Its members."""
        found = Names[Member](os.path.basename(self.path).partition(".")[0])
        for member in self._contents.members:
            found.add(member.path, member)
        return found

    @cached_property
    def archives_inside(self) -> list[str]:
        """Members that are archives themselves: what is in those is not looked into."""
        return [member.path for member in self._contents.members if is_archive(member.path)]


def one_of(shelves: Iterable[Shelf], wanted: Sequence[str]) -> Member | None:
    """Return the one member that fits what is wanted, None where there is none.

    Raises:
        VideoError: `ambiguous` where more than one fits.
    """
    found = [member for shelf in shelves for member in shelf.names.fitting(wanted)]
    if len(found) > 1:
        raise VideoError("ambiguous", f"{wanted[0]!r} may be any of: {listed(member.name for member in found)}")
    return found[0] if found else None


def told(shelves: Sequence[Shelf], wanted: Sequence[str]) -> tuple[str, str]:
    """Return status and reason for a video that is in none of these archives."""
    faults = [shelf.fault for shelf in shelves if shelf.fault is not None]
    if faults:
        fault = min(faults, key=lambda fault: fault.status == "missing")  # damage tells more than absence
        return fault.status, f"{wanted[0]!r} is not in what can be read: {fault.reason}"
    reason = f"no file {wanted[0]!r}, and no member called so in {listed(shelf.name for shelf in shelves)}"
    alike = [f"{shelf.name}!/{path}" for shelf in shelves for path in shelf.names.alike(wanted)]
    nested = [f"{shelf.name}!/{path}" for shelf in shelves for path in shelf.archives_inside]
    if alike:
        reason += f"; there is {listed(alike)}: set template to '{{name}}' or '{{stem}}' if that is it"
    elif nested:
        reason += f"; archives in archives are not looked into: {listed(nested)}"
    return "missing", reason


class Shelves:
    """The archives below one videos folder, each opened once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, Shelf | None] = {}

    def place(self, name: str, what: str, *, absolute: bool = True) -> str:
        """Return the path that a manifest or an item names, relative to the folder.

        Raises:
            VideoError: `outside` where it leads out of the folder; an absolute one may, where `absolute` allows it.
        """
        if "\0" in name:
            raise VideoError("missing", f"no file can be called {name!r}")
        path = os.path.normpath(os.path.join(self._folder, name))
        inside = path.startswith(self._folder.rstrip("/") + "/")
        if not inside and not (absolute and os.path.isabs(name)):
            raise VideoError("outside", f"{what} {name!r} leads out of the videos folder {self._folder}")
        return path

    def at(self, path: str) -> Shelf | None:
        """Return the archive at a path, whole or in parts; None where nothing is there."""
        if path not in self._open:
            files = [path] if os.path.isfile(path) else _parts_of(path)
            self._open[path] = self._shelf(path, grouped(files)[path]) if files else None
        return self._open[path]

    def matching(self, patterns: Sequence[str]) -> list[Shelf]:
        """Return the archives that the config names, in order; one that is not there as a shelf with that fault."""
        found: dict[str, Shelf] = {}
        for pattern in patterns:
            try:
                files = _files(Path(self._folder), pattern)
            except InputError as reason:
                found[pattern] = Shelf(pattern, pattern, VideoError("missing", f"videos.archives: {reason}"))
                continue
            for path, parts in grouped(files).items():
                if path not in found:
                    found[path] = self._open[path] = self._open.get(path) or self._shelf(path, parts)
        return list(found.values())

    def _shelf(self, path: str, parts: Sequence[str] | VideoError) -> Shelf:
        below = self._folder.rstrip("/") + "/"
        name = path[len(below) :] if path.startswith(below) else os.path.basename(path)
        return Shelf(name, path, parts)


def _files(folder: Path, pattern: str) -> list[str]:
    """The archives' files that a path, a pattern or a folder names.

    Raises:
        InputError: it names nothing.
    """
    path = located(folder, pattern)
    if os.path.isdir(path):
        found = [str(path / name) for name in names_below(path) if is_archive(name)]
        if not found:
            raise InputError(f"{path}: no zip or tar archive in this folder")
        return found
    if not os.path.isfile(path) and (parts := _parts_of(os.path.normpath(path))):
        return parts
    files = [os.path.normpath(file) for file in find_files(folder, [pattern])]
    return [file for file in files if is_archive(file) or not glob.has_magic(pattern)]


def _parts_of(path: str) -> list[str]:
    """The files of an archive that is there in parts only."""
    try:
        beside = sorted(os.listdir(os.path.dirname(path)))
    except (OSError, ValueError):
        return []
    files = (os.path.join(os.path.dirname(path), name) for name in beside)
    return [file for file in files if is_part_of(file, path)]
