"""What is in a zip or tar archive, by its directory or its headers: no member is unpacked, and no name is trusted.

Nothing is ever written under a name of an archive. A member that is no plain file of the right kind stays in the list
with the reason: an item that wants it is told why it cannot have it.
"""

import contextlib
import gzip
import posixpath
import re
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from benchcheck.pool.reading.sources import FREE, MAX_RATIO
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.joined import DAMAGED, Joined, Solid, solid_stream
from benchcheck.video.sources.sniff import HEAD_BYTES, check_head
from benchcheck.video.task import Member

__all__ = ["Contents", "contents_of"]

_JUNK = re.compile(r"(?:^|/)(?:__MACOSX/|\._)")
_ENCRYPTED, _UTF8 = 1, 0x800
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
"""How a zip archive begins, unless it unpacks itself: that begins as a program."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
_BAD_DIRECTORY = (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, struct.error)
_BLOCK = 512
"""Bytes of a tar header."""
_REST = 1 << 20


@dataclass(slots=True)
class Contents:
    """The files of an archive, and why there may be more than these."""

    name: str
    members: list[Member] = field(default_factory=list)
    fault: VideoError | None = None


def contents_of(name: str, parts: tuple[str, ...]) -> Contents:
    """Return what is in an archive; one that is damaged or cut off gives what stands before the damage, and the fault.

    A zip archive's directory and a plain tar's headers are read, whatever their length. A packed tar has to be unpacked
    from end to end, in memory. One that is damaged, and not only cut off, gives nothing: its checksum is over all of
    it, and a changed byte of a video shows nowhere else.

    Args:
        name: how messages call it.
        parts: its files.
    """
    found = Contents(name)
    try:
        with Joined(parts) as source:
            _read(found, source)
    except FileNotFoundError as reason:
        found.fault = VideoError("missing", f"no archive {reason.filename!r}")
    except VideoError as fault:
        found.fault = VideoError(fault.status, f"{name!r}: {fault.reason}")
    except (OSError, *DAMAGED, *_BAD_DIRECTORY) as reason:
        if isinstance(reason, OSError) and reason.errno is not None:
            found.fault = VideoError("unreadable", f"{name!r}: {reason.strerror}")
        else:
            found.fault = _damaged(name, reason)
    return found


def _read(found: Contents, source: Joined) -> None:
    """Read an archive's directory, by what its first bytes say that it is.

    Raises:
        VideoError: it is a web page, a pointer, or an archive of another kind.
    """
    head = source.exactly(0, HEAD_BYTES)
    if head.startswith(_ZIP) or (found.name.lower().endswith(".zip") and zipfile.is_zipfile(cast(Any, source))):
        found.members += _zip_members(found.name, source)
    elif head.startswith(_PACKED):
        _read_packed(found, source)
    else:
        if head[257:262] != b"ustar":
            check_head(head)
        _add_tar(found, source.paths, source, solid=False)


def _read_packed(found: Contents, source: Joined) -> None:
    """Read a packed tar's headers, and on to the end, where the checksum of all its bytes is compared.

    Raises:
        EOFError: it is cut off.
        OSError, zlib.error, lzma.LZMAError: it is damaged.
    """
    try:
        with solid_stream(source) as stream:
            _add_tar(found, source.paths, stream, solid=True)
            _read_to_end(stream)
    except EOFError:
        raise
    except (OSError, *DAMAGED) as reason:
        if getattr(reason, "errno", None) is None:
            found.members.clear()
        raise


def _read_to_end(stream: Solid) -> None:
    """Read what is left; other bytes behind a whole gzip stream, such as a signature, are none of the archive's."""
    try:
        while stream.read(_REST):
            pass
    except gzip.BadGzipFile as reason:
        if not str(reason).startswith("Not a gzipped file"):
            raise


def _damaged(name: str, reason: Exception) -> VideoError:
    """What to say of an archive that cannot be read to its end."""
    if "multiple disks" in str(reason):
        what = "is split by zip itself (.z01): make one file of it by `zip -s 0 in.zip --out out.zip`"
        return VideoError("archive_damaged", f"{name!r} {what}")
    return VideoError("archive_damaged", f"{name!r} is damaged or cut off: {reason or 'it ends too early'}")


def _zip_members(name: str, source: Joined) -> Iterator[Member]:
    """The files that a zip archive's directory names."""
    with zipfile.ZipFile(cast(Any, source)) as archive:
        for info in archive.infolist():
            path, bad = _plain_name(_decoded(info))
            if info.is_dir() or _JUNK.search(path):
                continue
            yield Member(
                name,
                source.paths,
                path,
                info.header_offset,
                info.file_size,
                info.compress_size,
                info.compress_type,
                info.CRC,
                bad=bad or _zip_fault(info),
            )


def _decoded(info: zipfile.ZipInfo) -> str:
    """A member's name. macOS and others write UTF-8 without saying so; Python then takes it for code page 437."""
    name = info.orig_filename
    if not info.flag_bits & _UTF8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name


def _zip_fault(info: zipfile.ZipInfo) -> str:
    """Why a member of a zip archive gives no file; empty for one that does."""
    mode = info.external_attr >> 16
    if info.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "it is a symbolic link or a device"
    if info.file_size > max(FREE, MAX_RATIO * info.compress_size):
        return f"it unpacks to over {MAX_RATIO} times its {info.compress_size:,} bytes, as a bomb does"
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        return "its two sizes differ"
    return ""


def _add_tar(found: Contents, parts: tuple[str, ...], stream: Any, *, solid: bool) -> None:
    """Read a tar's headers one by one; what is wrong further on leaves the members before it."""
    try:
        with tarfile.open(fileobj=stream, mode="r:", errorlevel=0) as tar:
            while (info := tar.next()) is not None:
                if (member := _tar_member(found.name, parts, info, solid=solid)) is not None:
                    found.members.append(member)
            stream.seek(tar.offset)
            rest = stream.read(_BLOCK)
    except tarfile.TarError as reason:
        found.fault = _damaged(found.name, reason)
        return
    if rest.strip(b"\0") or not rest:
        where = f"after {len(found.members):,} files"
        what = "something else than a header stands" if rest else "its end mark is missing"
        found.fault = VideoError("archive_damaged", f"{found.name!r} is damaged or cut off: {what} {where}")


def _tar_member(name: str, parts: tuple[str, ...], info: tarfile.TarInfo, *, solid: bool) -> Member | None:
    """One file of a tar archive."""
    path, bad = _plain_name(info.name)
    if info.isdir() or _JUNK.search(path):
        return None
    if not info.isreg():
        bad = bad or "it is a link or a device"
    elif info.issparse():
        bad = bad or "it is stored with holes (sparse)"
    return Member(name, parts, path, info.offset_data, info.size, info.size, solid=solid, bad=bad)


def _plain_name(name: str) -> tuple[str, str]:
    """A member's name with plain slashes and without `./`, and what is wrong with it."""
    path = name.replace("\\", "/")
    outside = path.startswith("/") or ".." in path.split("/") or re.match(r"[A-Za-z]:/", path) is not None
    bad = "its name leads out of the archive" if outside else "its name holds a NUL byte" if "\0" in path else ""
    folder = path.endswith("/")
    return posixpath.normpath(path) + "/" * folder, bad
