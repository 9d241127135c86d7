"""Annotation files on disk: those that a config names by path, by pattern, or by the folder that holds them."""

import fnmatch
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

    Raises:
        InputError: a folder may not be looked into: what it holds would be missing in silence.
    """
    return sorted(_names(folder))


def _names(folder: Path) -> Iterator[str]:
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
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


def _refuse(reason: OSError) -> None:
    """Refuse a folder that is there and cannot be looked into."""
    if not isinstance(reason, FileNotFoundError | NotADirectoryError):
        raise InputError(f"{reason.filename}: not readable: {reason.strerror}. Cure: check its permissions") from None


def _matches(folder: Path, pattern: str) -> list[Path]:
    """Files that a pattern matches; the folder's own name is never read as a pattern.

    A file that is met again through a link to a folder is one file.
    """
    whole = Path(pattern) if Path(pattern).is_absolute() else Path(glob.escape(str(folder))) / pattern
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(_deep(whole.parts) if "**" in whole.parts else map(Path, glob.glob(str(whole)))):
        if path.is_file():
            found.setdefault((os.path.realpath(path.parent), path.name), path)
    return list(found.values())


def _deep(parts: tuple[str, ...]) -> Iterator[Path]:
    """Files that a pattern with `**` matches. `glob` would follow two links to a folder above 2^40 ways."""
    at = parts.index("**")
    for top in map(Path, glob.glob(str(Path(*parts[:at])))):
        yield from (top / name for name in names_below(top) if _fits(name.split("/"), parts[at:]))


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a path, part by part, is one of a pattern: `**` stands for any folders, hidden ones aside."""
    if not parts or not names:
        return not names and not any(part != "**" for part in parts)
    if parts[0] == "**":
        return _fits(names, parts[1:]) or (not names[0].startswith(".") and _fits(names[1:], parts))
    hidden = names[0].startswith(".") and not parts[0].startswith(".")
    return not hidden and fnmatch.fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])


def _contents(folder: Path) -> str:
    """What lies in a folder, for a message."""
    if not folder.is_dir():
        return (
            f"There is no folder {folder} either" if not glob.has_magic(str(folder)) else "The pattern matches nothing"
        )
    names = (path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    shown = "This folder" if folder == Path() else folder
    return f"{shown} holds: {listed(names)}" if any(folder.iterdir()) else f"{shown} is empty"
