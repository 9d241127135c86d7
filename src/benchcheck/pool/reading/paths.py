"""Annotation files on disk: those that a config names by path, by pattern, or by the folder that holds them."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchcheck.errors import InputError
from benchcheck.pool.reading.sources import READABLE, listed, wanted

__all__ = ["below", "find_files", "located", "names_below"]


def located(folder: Path, name: str) -> Path:
    """Return a path that a config names, relative to `folder`; `~` is the home of the user.

    Raises:
        InputError: it begins with `~` and a name that no user has.
    """
    try:
        return folder / Path(name).expanduser()
    except RuntimeError:
        raise InputError(f"{name}: there is no such user. Cure: write the whole path") from None


def find_files(folder: Path, patterns: Sequence[str], members: Sequence[str] = ()) -> list[Path]:
    """Return the files that paths and glob patterns name, relative to `folder`: in the order given, a pattern sorted.

    A folder stands for the files in it, at any depth, that match `members`; for every annotation file without those.

    Raises:
        InputError: one names nothing.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = located(folder, pattern)
        try:
            if path.is_dir():
                matches = below(path, members)
            else:
                matches = [path] if path.is_file() else _matches(folder, str(located(Path(), pattern)))
        except OSError as reason:
            raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check the path") from None
        if not matches:
            raise InputError(f"{path}: no such file. {_contents(path.parent)}")
        found |= dict.fromkeys(matches)
    return list(found)


def below(folder: Path, members: Sequence[str]) -> list[Path]:
    """Return a folder's files that match the patterns, every annotation file without those, sorted by path.

    Links to folders are followed, each folder once. Hidden files and `__MACOSX` are left out.

    Raises:
        InputError: nothing matches.
    """
    names = names_below(folder)
    found = [name for name in names if wanted(name, members)]
    if not found:
        asked = ", ".join(members) or ", ".join(READABLE)
        holds = f"It holds: {listed(names)}" if names else "It is empty"
        raise InputError(f"{folder}: no file in this folder matches {asked}. {holds}. Cure: name its files")
    return [folder / name for name in found]


def names_below(folder: Path) -> list[str]:
    """Return the paths of all files below a folder, relative to it, with slashes, sorted; none where it is not there.

    Links to folders are followed, each folder once.
    """
    return sorted(_names(folder))


def _names(folder: Path) -> Iterator[str]:
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        for name in files:
            path = Path(place, name)
            if path.is_file():
                yield path.relative_to(folder).as_posix()


def _matches(folder: Path, pattern: str) -> list[Path]:
    """Files that a pattern matches; the folder's own name is never read as a pattern.

    A file that is met again through a link to a folder is one file.
    """
    whole = pattern if Path(pattern).is_absolute() else str(Path(glob.escape(str(folder))) / pattern)
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(map(Path, glob.glob(whole, recursive=True))):
        if path.is_file():
            found.setdefault((os.path.realpath(path.parent), path.name), path)
    return list(found.values())


def _contents(folder: Path) -> str:
    """What lies in a folder, for a message."""
    if not folder.is_dir():
        return (
            f"There is no folder {folder} either" if not glob.has_magic(str(folder)) else "The pattern matches nothing"
        )
    names = (path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    shown = "This folder" if folder == Path() else folder
    return f"{shown} holds: {listed(names)}" if any(folder.iterdir()) else f"{shown} is empty"
