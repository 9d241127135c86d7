"""The files of an archive read as one, whole or in parts, and the packed bytes of a member as they come out."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, Self, cast

from benchcheck.pool.reading.sources import FREE, MAX_RATIO
from benchcheck.video.faults import VideoError
from benchcheck.video.task import Member

__all__ = [
    "DAMAGED",
    "Joined",
    "Solid",
    "content",
    "data_span",
    "reading",
    "solid_content",
    "solid_stream",
]

DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""What unpacking raises on damaged data; a bz2 stream raises OSError without a number."""
_BLOCK = 1 << 20
_STORED, _DEFLATED, _BZIP2 = 0, 8, 12
_HEADER = 30
"""Bytes of a zip archive's local header before the name."""


class Joined(io.RawIOBase):
    """Files one behind the other as one file that can be read anywhere."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths, self._files, self._at = tuple(paths), list[IO[bytes]](), 0
        self.starts = [0]
        try:
            for path in paths:
                self._files.append(open(path, "rb", buffering=0))  # noqa: SIM115 - closed by `close`
                self.starts.append(self.starts[-1] + os.fstat(self._files[-1].fileno()).st_size)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return self.starts[-1]

    def pread(self, at: int, count: int) -> bytes:
        """Return up to `count` bytes from a place on; fewer at the end, and at the end of a part."""
        part = self._part_at(at)
        if part is None or count <= 0:
            return b""
        inside = min(count, self.starts[part + 1] - at)
        return os.pread(self._files[part].fileno(), inside, at - self.starts[part])

    def exactly(self, at: int, count: int) -> bytes:
        """Return `count` bytes from a place on, fewer only at the end."""
        found = bytearray()
        while len(found) < count and (block := self.pread(at + len(found), count - len(found))):
            found += block
        return bytes(found)

    def within(self, start: int, end: int) -> tuple[str, tuple[int, int]] | None:
        """Return the file that holds a whole stretch, and the stretch in it; None where it goes over several."""
        part = self._part_at(start)
        if part is None or end > self.starts[part + 1]:
            return None
        return self.paths[part], (start - self.starts[part], end - self.starts[part])

    def _part_at(self, at: int) -> int | None:
        """Which file holds a byte; None beyond all of them."""
        return next((n for n in range(len(self.paths)) if self.starts[n] <= at < self.starts[n + 1]), None)

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(0, origin + offset)
        return self._at

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, over the ends of parts too: who reads a header takes fewer bytes for the end."""
        data = self.exactly(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        super().close()


class Solid:
    """A packed stream that is read forwards only: what came out is counted against what went in."""

    def __init__(self, source: Joined, stream: IO[bytes]) -> None:
        self.source, self.stream, self.at = source, stream, 0
        self._last, self._again = b"", b""

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes, a megabyte at most, fewer at the end.

        Raises:
            VideoError: `bad_member` for more bytes than a stream of videos gives.
            EOFError, OSError, zlib.error, lzma.LZMAError: it is damaged or cut off.
        """
        if self._again:
            data, self._again = self._again[:count], self._again[count:]
        else:
            data = self.stream.read(min(count, _BLOCK))
        self.at, self._last = self.at + len(data), data
        if self.at > FREE and self.at > MAX_RATIO * self.source.tell():
            raise VideoError("bad_member", f"the archive unpacks to over {MAX_RATIO} times its size, as a bomb does")
        return data

    def skip_to(self, at: int) -> None:
        """Read on to a place; at the end of the stream before it."""
        while self.at < at and self.read(at - self.at):
            pass

    # What tarfile needs of a file that it reads forwards.

    def tell(self) -> int:
        """Where the next byte comes from."""
        return self.at

    def seek(self, at: int) -> int:
        """Read on to a place ahead, or go back into what was read last."""
        back = self.at - at
        if back > len(self._last):
            raise OSError("a packed stream cannot be read backwards")
        if back > 0:
            self._again, self._last, self.at = self._last[-back:] + self._again, b"", at
        self.skip_to(at)
        return self.at


@contextlib.contextmanager
def solid_stream(source: Joined) -> Iterator[Solid]:
    """Open a packed stream from its beginning."""
    source.seek(0)
    buffered = io.BufferedReader(source, _BLOCK)
    head = source.exactly(0, 6)
    stream: Any
    if head.startswith(b"BZh"):
        stream = bz2.BZ2File(buffered)
    elif head.startswith(b"\xfd7zXZ"):
        stream = lzma.LZMAFile(buffered)  # noqa: SIM115 - closed below, as the others are
    else:
        stream = gzip.GzipFile(fileobj=buffered)
    try:
        yield Solid(source, stream)
    finally:
        stream.close()
        buffered.detach()


@contextlib.contextmanager
def reading(member: Member, what: str = "") -> Iterator[Joined]:
    """Open the files of a member's archive; what is wrong while they are read is the archive's fault.

    Messages call it by the member's name, or by `what` where more than this member is read.

    Raises:
        VideoError: `unreadable` or `missing` where a file cannot be opened, `archive_damaged` where it is damaged.
    """
    try:
        with Joined(member.parts) as source:
            yield source
    except FileNotFoundError as reason:
        raise VideoError("missing", f"the archive's file {reason.filename!r} is gone") from reason
    except OSError as reason:
        if reason.errno is None:
            raise _damaged(what or member.name, str(reason)) from reason
        raise VideoError("unreadable", f"{what or member.name!r}: {reason.strerror}") from reason
    except DAMAGED as reason:
        raise _damaged(what or member.name, str(reason)) from reason


def _damaged(name: str, why: str) -> VideoError:
    """What to raise for a member that does not come out of its archive."""
    return VideoError("archive_damaged", f"{name!r}: the archive is damaged or cut off here: {why}")


def data_span(source: Joined, member: Member) -> tuple[int, int]:
    """Return the stretch of the archive that holds a member's bytes, packed as they are.

    Raises:
        VideoError: `archive_damaged` where the archive ends before, or where another header stands there.
    """
    start = member.at
    if member.crc is not None:
        header = source.exactly(start, _HEADER)
        if len(header) < _HEADER or not header.startswith(b"PK\x03\x04"):
            raise _damaged(member.name, "no header stands where its directory says")
        start += _HEADER + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    end = start + member.packed
    if end > source.size:
        raise _damaged(member.name, f"it ends at byte {end:,} of {source.size:,}")
    return start, end


def content(source: Joined, member: Member) -> Iterator[bytes]:
    """Yield the bytes of a member of a zip or plain tar archive, unpacked.

    Raises:
        VideoError: `archive_damaged`, also for other bytes than its checksum says; `bad_member` for a way of packing
            that is not read here.
    """
    start, end = data_span(source, member)
    count, crc = 0, 0
    for block in _unpacked(source, member, start, end):
        count += len(block)
        crc = zlib.crc32(block, crc)
        if count > member.size:
            break
        yield block
    if count != member.size:
        raise _damaged(member.name, f"it has not the {member.size:,} bytes that its directory says")
    if member.crc is not None and crc != member.crc:
        raise _damaged(member.name, "its checksum (CRC-32) is another")


def solid_content(stream: Solid, member: Member) -> Iterator[bytes]:
    """Yield the bytes of a member of a packed tar, from a stream that stands before it.

    Raises:
        VideoError: `archive_damaged`: the stream ends before.
    """
    stream.skip_to(member.at)
    end = member.at + member.size
    while stream.at < end and (block := stream.read(end - stream.at)):
        yield block
    if stream.at != end:
        raise _damaged(member.name, "it ends too early")


def _unpacked(source: Joined, member: Member, start: int, end: int) -> Iterator[bytes]:
    """A stretch as it comes out, in blocks of a megabyte at most."""
    blocks = _stretch(source, start, end)
    if member.method == _STORED:
        yield from blocks
        return
    if member.method not in (_DEFLATED, _BZIP2):
        raise VideoError("bad_member", f"{member.name!r} is packed by method {member.method}, which is not read here")
    engine: Any = zlib.decompressobj(-15) if member.method == _DEFLATED else bz2.BZ2Decompressor()
    for block in blocks:
        yield engine.decompress(block, _BLOCK)
        while not engine.eof and (rest := _more(engine)):
            yield rest
    if member.method == _DEFLATED:
        yield engine.flush()


def _more(engine: Any) -> bytes:
    """What is left of a block that gave a megabyte already."""
    if isinstance(engine, bz2.BZ2Decompressor):
        return b"" if engine.needs_input else engine.decompress(b"", _BLOCK)
    return cast(bytes, engine.decompress(engine.unconsumed_tail, _BLOCK)) if engine.unconsumed_tail else b""


def _stretch(source: Joined, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a stretch."""
    while start < end and (block := source.pread(start, min(_BLOCK, end - start))):
        yield block
        start += len(block)
