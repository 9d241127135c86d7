"""Reading tar files without trusting a byte of them.

Python's own reader takes a damaged header, and an end that is cut off between two members, for the end of the archive.
Here an archive ends where its two empty blocks are, and nowhere else.
"""

import contextlib
import gzip
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from benchcheck.errors import DamagedFileError
from benchcheck.tars.writing import UNIT, leads_out

__all__ = ["members_of"]

_BLOCK = 1 << 20
_LONGEST = 1 << 16
"""Bytes of an extended header. A path has up to 4,096; a hostile one of gigabytes would be read into memory."""
_MAX_RATIO = 200
_FREE = 32 << 20
"""A packed tar may unpack to 200 times its bytes, and 32 MB at any rate: rows pack 10 to 50 times, a bomb 1,000."""
_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


def members_of(
    path: Path, file: IO[bytes] | None = None, *, plain: bool = False
) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and content of every member in order; each content is read before the next one, or skipped.

    What is skipped is not read where the tar is not packed: its headers alone are looked at.

    Args:
        path: the file: a tar, or one packed by gzip. Another content says so when it is read.
        file: the same, open, from its beginning; it stays open.
        plain: refuse a packed one, which takes as long to look through as it says.

    Raises:
        DamagedFileError: no tar file, cut off or damaged, not readable, or one that unpacks to 200 times its size; a
            member that is a link or a device, is there twice, or whose name is absolute or leads out of the folder by
            `..`. Folders are passed over.
    """
    seen: set[str] = set()
    with contextlib.ExitStack() as stack:
        with _told(path):
            raw = stack.enter_context(_regular(path)) if file is None else file
            raw.seek(0)
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
        if packed and plain:
            raise _damaged(path, "it is packed")
        stream: Any = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb")) if packed else raw
        size = os.fstat(raw.fileno()).st_size
        reader = _Reader(path, stream, size, packed)
        while (head := _next(reader)) is not None:
            content = _Content(reader, head.size)
            if head.kind != tarfile.DIRTYPE:
                _check(path, head, seen)
                yield head.name, head.size, cast(IO[bytes], content)
            reader.skip(content.left + -head.size % UNIT)
        reader.end()


def _regular(path: Path) -> IO[bytes]:
    """Open a file; a pipe is never waited for.

    Raises:
        OSError: it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("no plain file")
    return path.open("rb", buffering=1 << 16)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what reading a damaged file raises into one line."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            raise DamagedFileError(f"{path}: not readable: {reason.strerror}. Cure: get the file again") from None
        raise _damaged(path, str(reason)) from None


def _damaged(path: Path, why: str) -> DamagedFileError:
    """What a file that is no whole tar raises."""
    return DamagedFileError(f"{path}: no tar file, cut off or damaged: {why}. Cure: get the file again")


class _Reader:
    """Reads a tar's bytes and says where there are none; `size` are the bytes of the file."""

    def __init__(self, path: Path, stream: Any, size: int, packed: bool) -> None:
        self.path, self.stream, self.packed, self.at = path, stream, packed, 0
        self.most = max(_FREE, _MAX_RATIO * size) if packed else size

    def read(self, count: int) -> bytes:
        """Read so many bytes, and not one less."""
        self._go(count)
        with _told(self.path):
            data = self.stream.read(count)
        if len(data) != count:
            raise _damaged(self.path, f"{self.at - count + len(data):,} bytes and no end")
        return cast(bytes, data)

    def skip(self, count: int) -> None:
        """Pass over so many bytes."""
        if self.packed:
            while count:
                count -= len(self.read(min(count, _BLOCK)))
            return
        self._go(count)
        self.stream.seek(count, os.SEEK_CUR)

    def _go(self, count: int) -> None:
        """Move on; what would lie behind the file's end is not there."""
        self.at += count
        if self.at > self.most and self.packed:
            what = f"{self.path}: unpacks to over {_MAX_RATIO} times its size, as a bomb does: not unpacked"
            raise DamagedFileError(what)
        if self.at > self.most:
            raise _damaged(self.path, f"it ends after {self.most:,} bytes, before its own end")

    def end(self) -> None:
        """Read on from the first empty block: another, then zeros up to the file's end."""
        rest = self.read(UNIT)
        while rest:
            if rest.strip(b"\0"):
                raise _damaged(self.path, "something lies behind its end")
            with _told(self.path):
                rest = self.stream.read(_BLOCK)
            self.at += len(rest)
            if self.packed:
                self._go(0)


class _Content(io.RawIOBase):
    """One member's bytes."""

    def __init__(self, reader: _Reader, size: int) -> None:
        super().__init__()
        self.reader, self.left = reader, size

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or all that are left.

        Raises:
            DamagedFileError: the file ends before.
        """
        count = self.left if size is None or size < 0 else min(size, self.left)
        data = self.reader.read(count) if count else b""
        self.left -= count
        return data

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


@dataclass(slots=True)
class _Head:
    """What a member's header says."""

    name: str
    size: int
    kind: bytes


def _next(reader: _Reader) -> _Head | None:
    """Return the next member's header with what extended headers say of it; None at the end."""
    said: dict[str, bytes] = {}
    while True:
        block = reader.read(UNIT)
        if not block.strip(b"\0"):
            if said:
                raise _damaged(reader.path, "a header without its member")
            return None
        head = _plain(block) or _parsed(reader.path, block)
        if head.kind not in _EXTENDED + _LONG:
            return _applied(reader.path, head, said)
        if not 0 <= head.size <= _LONGEST:
            raise _damaged(reader.path, f"an extended header of {head.size:,} bytes")
        text = reader.read(head.size + -head.size % UNIT)[: head.size]
        if head.kind == tarfile.GNUTYPE_LONGNAME:
            said["path"] = text.rstrip(b"\0")
        elif head.kind in _EXTENDED:
            found = _records(reader.path, text)
            # What a global header says of all members (git writes a comment) is no name and no size of one.
            said |= {} if head.kind == tarfile.XGLTYPE else found


def _plain(block: bytes) -> _Head | None:
    """Read a header of the kind that we write, in 5 µs where tarfile needs 19; None for any other."""
    name, size, total = block[:100].rstrip(b"\0"), block[124:135], block[148:154]
    if block[156:157] != tarfile.REGTYPE or block[345] or block[135] or block[154:156] != b"\0 " or b"\0" in name:
        return None
    if not (size.isdigit() and total.isdigit()):
        return None
    try:
        if int(total, 8) != sum(block) - sum(block[148:156]) + 8 * ord(" "):
            return None
        return _Head(name.decode("ascii"), int(size, 8), tarfile.REGTYPE)
    except ValueError:
        return None


def _parsed(path: Path, block: bytes) -> _Head:
    """Read any other header, or say what is wrong with it."""
    with _told(path):
        info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    return _Head(info.name, info.size, info.type)


def _records(path: Path, text: bytes) -> dict[str, bytes]:
    """Read an extended header: `length key=value` and a newline, again and again."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(text):
        digits = text[at : at + 6].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record = text[at + len(digits) + 1 : at + length]
        key, sign, value = record[:-1].partition(b"=")
        if at + length > len(text) or not record.endswith(b"\n") or not sign:
            raise _damaged(path, "an extended header that is none")
        found[key.decode("utf-8", "replace")] = value
        at += length
    return found


def _applied(path: Path, head: _Head, said: dict[str, bytes]) -> _Head:
    """Return a member's header with the name and size that an extended one gives."""
    if any(key.startswith("GNU.sparse") for key in said):
        head.kind = tarfile.GNUTYPE_SPARSE  # refused, as one of GNU's own kind is
    if "path" in said:
        head.name = said["path"].decode("utf-8", "surrogateescape")
    if "size" in said:
        head.size = int(said["size"]) if said["size"].isdigit() and len(said["size"]) <= 18 else -1
    if head.size < 0:
        raise _damaged(path, f"the member {head.name[:200]!r} has no size")
    return head


def _check(path: Path, head: _Head, seen: set[str]) -> None:
    """Refuse what is no plain file inside the folder it is unpacked to."""
    name = head.name
    if head.kind not in _PLAIN:
        raise DamagedFileError(f"{path}: the member {name[:200]!r} is no plain file (a link or device): not unpacked")
    if leads_out(name):
        raise DamagedFileError(f"{path}: the member {name[:200]!r} leads out of the folder: not unpacked")
    if name in seen:
        raise DamagedFileError(f"{path}: the member {name[:200]!r} is there twice: not unpacked")
    seen.add(name)
