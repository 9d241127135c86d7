"""Tar files: written so that the same members give the same bytes, read without trusting a name in them.

Both stream: a shard of 2 GB is written with its hash in one pass, and nothing is held but one member.
"""

import contextlib
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from benchcheck.errors import DamagedFileError
from benchcheck.files import publish

__all__ = ["Member", "Written", "hash_of", "members_of", "write_tar"]

_BLOCK = 1 << 20
_DAMAGED = (tarfile.TarError, EOFError, zlib.error, OSError)


@dataclass(frozen=True, slots=True)
class Member:
    """A file on its way into a tar: its name there, and a file on disk or bytes."""

    name: str
    source: Path | bytes


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
        members: what goes into it; a file may not change while it is read.
        packed: whether it is compressed by gzip (level 6).

    Raises:
        StudyError: the disk is full or the folder is not writable; `path` is as it was.
        FileNotFoundError: a member's file is gone.
    """
    count = 0
    with publish(path) as temporary, temporary.open("wb") as file:
        hashed = _Hashed(file)
        with contextlib.ExitStack() as stack:
            sink: Any = stack.enter_context(_gzip(hashed)) if packed else hashed
            tar = stack.enter_context(tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT))
            for member in members:
                _add(tar, member)
                count += 1
    return Written(hashed.digest.hexdigest(), hashed.size, count)


def _gzip(sink: Any) -> Any:
    """A gzip stream without a name and a time."""
    import gzip

    return gzip.GzipFile(filename="", fileobj=sink, mode="wb", compresslevel=6, mtime=0)


def _add(tar: tarfile.TarFile, member: Member) -> None:
    """Write one member."""
    info = tarfile.TarInfo(member.name)
    info.mode = 0o644
    if isinstance(member.source, bytes):
        info.size = len(member.source)
        tar.addfile(info, io.BytesIO(member.source))
        return
    with member.source.open("rb") as file:
        info.size = file.seek(0, io.SEEK_END)
        file.seek(0)
        tar.addfile(info, file)


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


def members_of(path: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Yield name, size and content of every member in order; each content is read before the next one, or skipped.

    Raises:
        DamagedFileError: no tar file, cut off or damaged; a member that is a link, a device or a folder's stranger, is
            there twice, or whose name is absolute or leads out of the folder by `..`.
    """
    seen: set[str] = set()
    try:
        with tarfile.open(path, "r|*") as tar:
            for info in tar:
                if info.isdir():
                    continue
                _check(path, info, seen)
                yield info.name, info.size, cast(IO[bytes], tar.extractfile(info))
    except _DAMAGED as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            what = f"not readable: {reason.strerror}"
        else:
            what = f"no tar file, cut off or damaged: {reason}"
        raise DamagedFileError(f"{path}: {what}. Cure: get the file again") from None


def _check(path: Path, info: tarfile.TarInfo, seen: set[str]) -> None:
    """Refuse what is no plain file inside the folder it is unpacked to."""
    name = info.name
    if not info.isreg():
        raise DamagedFileError(f"{path}: the member {name[:200]!r} is no plain file (a link or device): not unpacked")
    if name.startswith("/") or "\\" in name or "\0" in name or {"", ".", ".."} & set(name.split("/")):
        raise DamagedFileError(f"{path}: the member {name[:200]!r} leads out of the folder: not unpacked")
    if name in seen:
        raise DamagedFileError(f"{path}: the member {name[:200]!r} is there twice: not unpacked")
    seen.add(name)
