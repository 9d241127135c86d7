"""Files of archives and datasets by their names: the one that fits, all that fit, or those that only look alike. Pure.

A name fits when its path is the one wanted, or ends with it: archives hold folders of their own (`videos/a.mp4`). It is
never the last part alone where a folder is wanted too: `val/1.mp4` and `train/1.mp4` are two videos.
"""

import posixpath
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

__all__ = ["Names", "composed"]

T = TypeVar("T")


class Names(Generic[T]):
    """Things with a path each, found by what an item says. `stem` stands for the folder around all of them.

    `clips.zip` may hold `a.mp4` for what an annotation calls `clips/a.mp4`.
    """

    def __init__(self, stem: str = "") -> None:
        self._stem = composed(stem)
        self._by_last: dict[str, list[tuple[str, T]]] = {}
        self._stems: dict[str, list[str]] = {}

    def add(self, path: str, thing: T) -> None:
        """Take one in."""
        plain = composed(path)
        last = plain.rpartition("/")[2]
        self._by_last.setdefault(last, []).append((plain, thing))
        self._stems.setdefault(posixpath.splitext(last)[0], []).append(path)

    def fitting(self, wanted: Sequence[str]) -> list[T]:
        """Return what has one of the wanted paths, the first that there is; else all whose path ends with one.

        `wanted` is best first. More than one thing: nobody can say which is meant.
        """
        named = list(map(composed, wanted))
        for path in named:
            if found := [thing for whole, thing in self._called(path) if path == whole or self._around(whole) == path]:
                return found
        return [thing for path in named for whole, thing in self._called(path) if whole.endswith("/" + path)]

    def _around(self, path: str) -> str | None:
        """A path with the folder around all of them; None where there is none."""
        return f"{self._stem}/{path}" if self._stem else None

    @property
    def last_parts(self) -> Iterable[str]:
        """The last part of each path, in one Unicode form."""
        return self._by_last

    def _called(self, path: str) -> Iterator[tuple[str, T]]:
        """What has the same last part."""
        yield from self._by_last.get(path.rpartition("/")[2], ())

    def alike(self, wanted: Sequence[str]) -> list[str]:
        """Return paths with the same last part in another folder, or with another extension: for a message only."""
        last = composed(wanted[0]).rpartition("/")[2]
        return self._stems.get(last, []) or self._stems.get(posixpath.splitext(last)[0], [])


def composed(path: str) -> str:
    """Return a name in one Unicode form: macOS writes `é` as two characters, most annotations as one."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)
