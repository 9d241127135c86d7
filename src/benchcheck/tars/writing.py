"""Writing tar files: the same members give the same bytes, and their hash comes in the same pass."""

import contextlib
import functools
import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from benchcheck.errors import StudyError
from benchcheck.files import publish

__all__ = ["UNIT", "Member", "Written", "hash_of", "leads_out", "tar_bytes", "write_tar"]

UNIT = 512
"""A tar is made of blocks of so many bytes."""
_RECORD = 20 * UNIT
"""A tar's length is a multiple of it, as tar itself writes."""
_BLOCK = 1 << 20
_SHORT_NAME = 100
_LARGE = 8 << 30
"""From this size on the plain header has no room for it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file on its way into a tar: its name there, and a file on disk or bytes."""

    name: str
    source: Path | bytes
    size: int | None = None
    """How much of the file from its beginning; None is as much as there is when it is opened."""


@dataclass(frozen=True, slots=True)
class Written:
    """A tar file that was written."""

    sha256: str
    bytes: int
    members: int


def write_tar(path: Path, members: Iterable[Member], *, packed: bool = False) -> Written:
    """Write a tar file whole or not at all: members in the order given, without owners, modes or times of this machine.

    Args:
        path: the file.
        members: what goes into it; a file that grows while it is read is taken as long as it was.
        packed: whether it is compressed by gzip (level 6).

    Raises:
        StudyError: the disk is full or the folder is not writable, or a member's file is gone, no plain file or not
            readable; `path` is as it was.
    """
    seen: set[str] = set()
    with publish(path) as temporary, temporary.open("wb", buffering=_BLOCK) as file:
        hashed = _Hashed(file)
        with contextlib.ExitStack() as stack:
            sink: Any = stack.enter_context(_gzip(hashed)) if packed else hashed
            written = 0
            for member in members:
                if leads_out(member.name) or member.name in seen:
                    raise ValueError(f"{member.name!r} could not be unpacked again, or is there twice")
                seen.add(member.name)
                written += _add(sink, member)
            sink.write(bytes(_ending(written)))
    return Written(hashed.digest.hexdigest(), hashed.size, len(seen))


def _gzip(sink: Any) -> Any:
    """A gzip stream without a name and a time."""
    return gzip.GzipFile(filename="", fileobj=sink, mode="wb", compresslevel=6, mtime=0)


def _add(sink: Any, member: Member) -> int:
    """Write one member; returns the bytes it takes."""
    if isinstance(member.source, bytes):
        size = len(member.source)
        head = _header(member.name, size)
        sink.write(head)
        sink.write(member.source)
    else:
        with _opened(member.source) as file:
            size = os.fstat(file.fileno()).st_size if member.size is None else member.size
            head = _header(member.name, size)
            sink.write(head)
            for block in _blocks(member.source, file, size):
                sink.write(block)
    sink.write(bytes(-size % UNIT))
    return len(head) + size + -size % UNIT


def _opened(path: Path) -> IO[bytes]:
    """Open a member's file; a pipe is not waited for.

    Raises:
        StudyError: it is gone, no plain file or not readable.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as reason:
        raise StudyError(f"{path}: not readable: {reason.strerror}. Cure: run the same command again") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise StudyError(f"{path}: no plain file, so it cannot be packed. Cure: take it out of this folder")
    return cast(IO[bytes], os.fdopen(number, "rb", buffering=0))  # most members are read in one call


def _blocks(path: Path, file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield a file's bytes up to the size that its header says.

    Raises:
        StudyError: they are not readable, or fewer now.
    """
    while size:
        try:
            block = file.read(min(size, _BLOCK))
        except OSError as reason:
            raise StudyError(f"{path}: not readable: {reason.strerror}. Cure: check the disk") from None
        if not block:
            raise StudyError(f"{path}: was cut while it was packed. Cure: run the same command again")
        size -= len(block)
        yield block


@functools.cache
def _template() -> bytes:
    """The plain header of a file without name and size."""
    info = tarfile.TarInfo("")
    info.mode = 0o644
    return info.tobuf(tarfile.PAX_FORMAT)


def _header(name: str, size: int) -> bytes:
    """Return a member's header: POSIX's plain one where the name and size fit, else with an extended one before it.

    tarfile makes a plain one in 24 µs, this in 6; a shard has 80,000.
    """
    if not name.isascii() or len(name) > _SHORT_NAME or size >= _LARGE:
        info = tarfile.TarInfo(name)
        info.mode, info.size = 0o644, size
        return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    empty = _template()
    head = name.encode().ljust(_SHORT_NAME, b"\0") + empty[100:124] + b"%011o\0" % size + empty[136:148]
    tail = empty[156:]
    return head + b"%06o\0 " % (sum(head) + sum(tail) + 8 * ord(" ")) + tail


def _ending(written: int) -> int:
    """How many zeros end an archive of so many bytes: two units, and up to a whole record."""
    return 2 * UNIT + -(written + 2 * UNIT) % _RECORD


def tar_bytes(name: str, size: int) -> int:
    """Return how many bytes a member takes in a tar, by which shards are planned."""
    return len(_header(name, size)) + size + -size % UNIT


class _Hashed:
    """A file that knows the hash of what was written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.digest, self.size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        """Write and hash."""
        self.digest.update(data)
        self.size += len(data)
        return self.file.write(data)

    def flush(self) -> None:
        """Flush, as gzip wants it."""
        self.file.flush()


def hash_of(path: Path) -> str:
    """Return a file's sha256.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def leads_out(name: str) -> bool:
    """Whether a name is none of a file inside a folder."""
    return name.startswith("/") or "\\" in name or "\0" in name or bool({"", ".", ".."} & set(name.split("/")))
