"""Files on this machine that are to be sent: which, and what they hold."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchcheck.errors import RunError, UsageError
from benchcheck.tars import hash_of
from benchcheck.transfer.far.abreast import abreast
from benchcheck.transfer.far.ledger import LEDGER, Ledger
from benchcheck.transfer.far.side import TEMPORARY, Piece, few
from benchcheck.transfer.far.sums import MANIFEST

__all__ = ["Outgoing", "gathered", "pieces_of", "still_as"]

_LIBRARY_CACHE = (".cache", "huggingface")
"""What the hub's library leaves in a folder that it downloaded to."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Files below a folder: path and size, sorted."""

    root: Path
    files: dict[str, int]

    @property
    def bytes(self) -> int:
        """Their sizes together."""
        return sum(self.files.values())


def gathered(what: Path) -> Outgoing:
    """Find what is to be sent: a file, or all files below a folder but those that are being written.

    Raises:
        UsageError: nothing there, no file below it, or links or devices below it; a link to the folder is followed.
        RunError: a folder cannot be read.
    """
    if what.is_file():
        return Outgoing(what.absolute().parent, {what.name: what.stat().st_size})
    if not what.is_dir():
        raise UsageError(f"{what}: no such file or folder. Allowed: what lies on this machine")
    files: dict[str, int] = {}
    strange: list[str] = []
    for entry, name in _below(what, ""):
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(info.st_mode):
            files[name] = info.st_size
        else:
            strange.append(name)
    if strange:
        raise UsageError(
            f"{what}: {few(sorted(strange))}: links and devices are not sent. Cure: put files in their place "
            f"(cp -rL copies what links lead to)"
        )
    if not files:
        raise UsageError(f"{what}: no file in it. Cure: name the folder that holds what is to be sent")
    return Outgoing(what.absolute(), dict(sorted(files.items())))


def _below(folder: Path, above: str) -> Iterator[tuple["os.DirEntry[str]", str]]:
    """Yield what lies below a folder and is no folder, with its path there."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as reason:
        raise RunError(f"{folder}: not readable ({reason.strerror}). Cure: chmod it, or move it away") from None
    for entry in entries:
        name = above + entry.name
        if TEMPORARY.fullmatch(entry.name) or name in (MANIFEST, LEDGER, "/".join(_LIBRARY_CACHE)):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), f"{name}/")
        else:
            yield entry, name


def pieces_of(source: Outgoing, ledger: Ledger, workers: int, read: Callable[[int], None]) -> Iterator[Piece]:
    """Hash files, several at a time; those that the ledger knows are not read. `read` hears how many bytes are done.

    Raises:
        RunError: a file cannot be read, or is gone.
    """

    def piece(name: str) -> Piece:
        path = source.root / name
        try:
            info = path.stat()
            digest = ledger.hash_of(name, info.st_size, info.st_mtime_ns)
            if not digest:
                digest = hash_of(path)
                ledger.hashed(name, info.st_size, info.st_mtime_ns, digest)
        except OSError as reason:
            raise RunError(f"{path}: not readable ({reason.strerror}). Cure: run the command again") from None
        read(info.st_size)
        return Piece(name, path, info.st_size, digest, info.st_mtime_ns)

    return abreast(piece, source.files, workers)


def still_as(piece: Piece) -> None:
    """Check that a file is as it was when it was hashed.

    Raises:
        RunError: it was written to, or is gone.
    """
    with contextlib.suppress(OSError):
        info = piece.path.stat()
        if (info.st_size, info.st_mtime_ns) == (piece.bytes, piece.mtime_ns):
            return
    raise RunError(f"{piece.path}: written to or removed while it was sent. Cure: run the same command again")
