"""What uploads and downloads ask of the far side, whatever it is: a folder, a bucket, a dataset on the hub."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchcheck.errors import DamagedFileError
from benchcheck.transfer.far.moving import Moving

__all__ = ["LONGEST_MANIFEST", "TEMPORARY", "Far", "Piece", "There", "few", "too_long", "without_secrets"]

TEMPORARY = re.compile(r"\..*\.tmp(\.wal)?", re.DOTALL)
"""Names of files and folders that are being written or were left by a killed writer: they do not travel."""

LONGEST_MANIFEST = 1 << 29
"""Bytes; five million files have about 500 MB."""

_SECRETS = re.compile(
    r"\b(hf|api_org)_[A-Za-z0-9]+|\b(AKIA|ASIA)[A-Z0-9]{8,}|(?<=://)[^\s/@]+@|\b(bearer|basic)\s+\S+"
    r"|\b[\w-]*(token|secret|password|signature|credential|key)[\w-]*['\"]?\s*[=:]\s*\S+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class There:
    """A file that is far away.

    Attributes:
        bytes: its size.
        sha256: as the far side itself knows it (the hub, of large files); empty where it does not.
        blob: git's hash of it (the hub, of small files); empty elsewhere.
        mark: what changes when the file is written again (ETag, time); empty where there is nothing of the kind.
    """

    bytes: int
    sha256: str = ""
    blob: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file that travels: its path below the folder, where it lies here, and what it held at a time."""

    name: str
    path: Path
    bytes: int
    sha256: str
    mtime_ns: int


class Far(Protocol):
    """A folder far away. Every failure is a BenchcheckError of one line, without a word that could be a secret."""

    @property
    def address(self) -> str:
        """As it is shown."""
        ...

    def quiet(self) -> AbstractContextManager[None]:
        """While files travel: no lines and bars of the store's library."""
        ...

    def prepare(self, private: bool) -> None:
        """Before files are sent: make what can be made (a private dataset of the hub)."""
        ...

    def above(self) -> "tuple[Far, str]":
        """The folder that this one lies in, and its name there; the name is empty at the top."""
        ...

    def listing(self) -> dict[str, There]:
        """All files below, by path; nothing where there is no such folder."""
        ...

    def look(self, name: str) -> There | None:
        """One file."""
        ...

    def read(self, name: str) -> bytes | None:
        """A small file's content; None where it is not there."""
        ...

    def digest(self, name: str) -> str:
        """A file's sha256, by reading it."""
        ...

    def send(self, pieces: Sequence[Piece], workers: int, moved: Moving) -> Iterator[tuple[Piece, str]]:
        """Send files; each is yielded with its mark when it is there, whole and under its name. `moved` hears bytes."""
        ...

    def put(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Write a small file anew from what it holds (nothing where it is not there)."""
        ...

    def fetch(self, name: str, folder: Path, moved: Moving) -> Path:
        """Bring a file into a working folder, under any name.

        Raises:
            DamagedFileError: what came is not of the size that was announced; the message is a few words.
        """
        ...


def few(names: Sequence[str]) -> str:
    """Name up to three of many."""
    shown = ", ".join(repr(name[:100]) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def too_long(where: str, size: int) -> None:
    """Refuse a manifest that would fill the memory.

    Raises:
        DamagedFileError: it is longer than LONGEST_MANIFEST.
    """
    if size > LONGEST_MANIFEST:
        raise DamagedFileError(
            f"{where}: {size:,} bytes are no manifest. Allowed: {LONGEST_MANIFEST:,}. Cure: look at what lies there"
        )


def without_secrets(text: str) -> str:
    """Return the first 200 characters of a text's first line, with all that looks like a token or key struck out."""
    return _SECRETS.sub("***", text.strip().partition("\n")[0])[:200]
