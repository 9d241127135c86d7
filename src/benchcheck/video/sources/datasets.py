"""A hub dataset as a place of videos: single files and archives at a commit, downloaded only where one is needed."""

import fnmatch
from collections.abc import Sequence
from functools import cached_property

from benchcheck.errors import InputError
from benchcheck.pool.reading.hub import cached_names, check_pinned, fetch_file, names_in
from benchcheck.pool.reading.sources import listed
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.names import Names
from benchcheck.video.sources.parts import grouped, is_archive
from benchcheck.video.sources.shelves import Shelf
from benchcheck.video.task import HubFile

__all__ = ["Dataset"]


class Dataset:
    """The files of a hub dataset that may hold videos."""

    def __init__(self, hub: str, revision: str, patterns: Sequence[str], cache: str = "") -> None:
        """Take the dataset, its commit, the patterns of what may be looked into, and the hub cache.

        Raises:
            UsageError: there is no commit; the newest is named.
        """
        check_pinned(hub, revision)
        self.hub, self.revision, self._cache = hub, revision, cache
        self._patterns = [pattern + "*" * pattern.endswith("/") for pattern in patterns]
        self._shelves: dict[str, Shelf] = {}

    @cached_property
    def _known(self) -> tuple[list[str], VideoError | None]:
        """Every file of the dataset; where it cannot be asked, those of the cache, and why there may be more."""
        try:
            return names_in(self.hub, self.revision), None
        except InputError as reason:
            return cached_names(self.hub, self.revision, self._cache), VideoError("not_downloaded", str(reason))

    @property
    def known(self) -> bool:
        """Whether all of its files are known: not where it cannot be asked."""
        return self._known[1] is None

    @property
    def _names(self) -> list[str]:
        return self._known[0]

    def _chosen(self, name: str) -> bool:
        """Whether the config's patterns name a file; all do where there are none."""
        return not self._patterns or any(name == one or fnmatch.fnmatchcase(name, one) for one in self._patterns)

    @cached_property
    def _files(self) -> Names[str]:
        found = Names[str]()
        for name in self._names:
            if not is_archive(name) and self._chosen(name):
                found.add(name, name)
        return found

    @cached_property
    def _archives(self) -> dict[str, tuple[str, ...] | VideoError]:
        """Every archive of the dataset with its files."""
        return grouped(name for name in self._names if is_archive(name))

    def file(self, wanted: Sequence[str]) -> HubFile | None:
        """Return the single file that fits what is wanted, None where there is none.

        Raises:
            VideoError: `ambiguous` where more than one file fits.
        """
        found = self._files.fitting(wanted)
        if len(found) > 1:
            raise VideoError("ambiguous", f"{wanted[0]!r} may be any of these in {self.hub}: {listed(found)}")
        return HubFile(self.hub, self.revision, found[0], self._cache) if found else None

    def archives(self, zip_path: str) -> list[str]:
        """Return the archives that may hold a video: the one that its item names, else those of the patterns."""
        if zip_path:
            named = zip_path.removeprefix("./")
            if same := [name for name in self._archives if f"/{name}".endswith("/" + named)]:
                return [named] if named in same else same
        if not self._patterns:
            return []
        parts_named = grouped(name for name in self._names if is_archive(name) and self._chosen(name))
        return [name for name in self._archives if name in parts_named or self._chosen(name)]

    def shelf(self, name: str) -> Shelf:
        """Return an archive of the dataset; it is downloaded now unless it is in the cache."""
        if name not in self._shelves:
            parts = self._archives[name]
            if not isinstance(parts, VideoError):
                parts = self._downloaded(parts)
            self._shelves[name] = Shelf(f"{self.hub}@{self.revision}/{name}", name, parts)
        return self._shelves[name]

    def _downloaded(self, parts: Sequence[str]) -> tuple[str, ...] | VideoError:
        """Local paths of an archive's files.

        Raises:
            RunError: the hub's cache cannot be written.
        """
        try:
            return tuple(str(fetch_file(self.hub, self.revision, part, self._cache)) for part in parts)
        except InputError as reason:
            return VideoError("not_downloaded", str(reason))

    def absence(self, wanted: Sequence[str]) -> tuple[str, str]:
        """Return status and reason for a video of which the dataset has no file, and no archive that may hold it."""
        _, fault = self._known
        if fault is not None:
            return fault.status, f"no file {wanted[0]!r}, and the dataset cannot be asked: {fault.reason}"
        reason = f"no file {wanted[0]!r}, and none called so in {self.hub}"
        if self._archives and not self._patterns:
            reason += f"; it has archives, which videos.files may name: {listed(self._archives)}"
        elif alike := self._files.alike(wanted):
            reason += f"; there is {listed(alike)}: set template to '{{name}}' or '{{stem}}' if that is it"
        return "missing", reason
