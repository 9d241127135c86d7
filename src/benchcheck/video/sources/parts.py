"""Which files are archives by their names, and which are the parts of one that was split. Pure."""

import re
from collections.abc import Iterable, Mapping

from benchcheck.video.faults import VideoError

__all__ = ["grouped", "is_archive", "is_part_of"]

_ARCHIVE = re.compile(r".*\.(?:zip|tar|tgz|tbz2?|txz|tar\.(?:gz|bz2|xz))", re.IGNORECASE | re.DOTALL)
_PART = re.compile(
    r"(?P<whole>.+\.(?:zip|tar|tgz|tar\.(?:gz|bz2|xz)))"
    r"(?P<mark>[._-]?part[._-]?(?=[a-z]{2,3}$|[0-9]+$)|[._-](?=[a-z]{2}$|[0-9]+$))"
    r"(?P<number>[a-z]+|[0-9]{1,5})",
    re.IGNORECASE | re.DOTALL,
)
"""What `split`, 7-Zip and hub datasets make of `videos.tar`: `.part-aa`, `.part.00`, `.partaa`, `.aa`, `.001`."""
_LETTERS = 26

_Kind = tuple[str, int]
"""What stands before a part's number, and how many letters it has; 0 for digits."""


def is_archive(name: str) -> bool:
    """Whether a name is that of a zip or tar archive, or of a part of one."""
    return _ARCHIVE.fullmatch(name) is not None or _PART.fullmatch(name) is not None


def is_part_of(name: str, whole: str) -> bool:
    """Whether a file is named as a part of an archive."""
    found = None if _ARCHIVE.fullmatch(name) else _PART.fullmatch(name)
    return found is not None and found["whole"] == whole


def grouped(names: Iterable[str]) -> dict[str, tuple[str, ...] | VideoError]:
    """Return archives by name, each with its files in order; one of which a part is missing with that fault.

    Where an archive is there both whole and in parts, the whole one counts. A last part that is missing does not show
    in the names, but in the archive.
    """
    whole: dict[str, tuple[str, ...] | VideoError] = {}
    parts: dict[str, dict[_Kind, dict[int, str]]] = {}
    for name in sorted(set(names)):
        found = None if _ARCHIVE.fullmatch(name) else _PART.fullmatch(name)
        if found is None:
            whole[name] = (name,)
        else:
            number = found["number"].lower()
            kind, place = (found["mark"], 0 if number.isdigit() else len(number)), _place(number)
            same = parts.setdefault(found["whole"], {})
            if place in same.setdefault(kind, {}):
                kind = (name, 0)  # `.1` beside `.01`
            same.setdefault(kind, {})[place] = name
    for name, kinds in parts.items():
        whole.setdefault(name, _in_order(name, kinds))
    return whole


def _place(number: str) -> int:
    """The place of a part: its number, or that of its letters, `aa` first."""
    if number.isdigit():
        return int(number)
    place = 0
    for letter in number:
        place = place * _LETTERS + ord(letter) - ord("a")
    return place


def _in_order(name: str, kinds: Mapping[_Kind, Mapping[int, str]]) -> tuple[str, ...] | VideoError:
    """The parts of one archive in order, or what is wrong with them."""
    if len(kinds) > 1:
        shown = ", ".join(next(iter(parts.values())) for parts in kinds.values())
        return VideoError("ambiguous", f"{name!r} is there in parts of two kinds: {shown}")
    [((_, letters), parts)] = kinds.items()
    first, last = min(parts), max(parts)
    if first > (0 if letters else 1):
        return VideoError(
            "archive_damaged", f"the parts of {name!r} begin with {parts[first]!r}: earlier ones are gone"
        )
    if len(parts) < last - first + 1:
        gap = next(place for place in range(first, last) if place + 1 not in parts)
        return VideoError("archive_damaged", f"the part after {parts[gap]!r} is not there")
    return tuple(parts[place] for place in sorted(parts))
