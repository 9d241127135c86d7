"""What a file is by its first bytes, and whether its end is missing, before any decoder sees it. Pure."""

import re
from collections.abc import Callable, Iterator

from benchcheck.video.faults import VideoError

__all__ = ["HEAD_BYTES", "Read", "check_head", "check_whole"]

HEAD_BYTES = 1024

Read = Callable[[int, int], bytes]
"""`read(offset, n)` gives up to n bytes of the file."""

_MAGIC = (
    (b"version https://git-lfs.github.com/spec/", "lfs_pointer", "a Git LFS pointer, not the file itself"),
    (b"PK\x03\x04", "archive", "a zip archive"),
    (b"PK\x05\x06", "archive", "an empty zip archive"),
    (b"\x1f\x8b", "archive", "a gzip file"),
    (b"7z\xbc\xaf\x27\x1c", "archive", "a 7z archive"),
    (b"Rar!", "archive", "a rar archive"),
    (b"\x28\xb5\x2f\xfd", "archive", "a zstandard file"),
    (b"\xff\xd8\xff", "still_image", "a JPEG image"),
    (b"\x89PNG\r\n", "still_image", "a PNG image"),
    (b"BM", "still_image", "a BMP image"),
    (b"%PDF", "not_a_video", "a PDF document"),
)
_HTML = re.compile(rb"<!doctype html|<html|<head|<body|<script|<meta|<title", re.IGNORECASE)
_TEXT_BYTES = frozenset(range(32, 127)) | {9, 10, 13}
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)
_ISO_TOP = {b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"moof", b"styp", b"sidx", b"pnot"}
_ISO_NEEDED = {b"moov", b"mdat", b"moof"}


def check_head(head: bytes) -> None:
    """Refuse what is plainly no video by its first `HEAD_BYTES` bytes.

    Raises:
        VideoError: `empty`, `lfs_pointer`, `html`, `archive`, `still_image` or `not_a_video`.
    """
    if not head:
        raise VideoError("empty", "the file has 0 bytes")
    for magic, status, what in _MAGIC:
        if head.startswith(magic):
            raise VideoError(status, f"the file is {what}")
    if head[257:262] == b"ustar":
        raise VideoError("archive", "the file is a tar archive")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<") and _HTML.search(text):
        raise VideoError("html", "the file is a web page, not a video")
    if not head.strip(b"\0"):
        raise VideoError("not_a_video", "the file begins with zeros only: a download that never arrived")
    if all(byte in _TEXT_BYTES for byte in head):
        raise VideoError("not_a_video", f"the file is text: {text[:40].decode('ascii', 'replace')!r}")


def check_whole(read: Read, size: int) -> None:
    """Refuse a file whose own structure says that it goes on after the file's end.

    MP4 and MOV by their boxes, Matroska and WebM by the segment's size, AVI by the RIFF size, GIF by its last byte.
    Other kinds do not know their own size; what is missing there shows in decoding.

    Raises:
        VideoError: `cut`.
    """
    head = read(0, 64)
    if head[4:8] in _ISO_TOP:
        _check_iso(read, size)
    elif head.startswith(b"\x1a\x45\xdf\xa3") and size > 4:
        _check_matroska(head, size)
    elif head.startswith(b"RIFF"):
        announced = int.from_bytes(head[4:8], "little")
        if announced not in _UNKNOWN_SIZES:
            _check_size(8 + announced, size, "RIFF")
    elif head.startswith(b"GIF8") and not read(max(0, size - 1024), 1024).rstrip(b"\0\r\n ").endswith(b";"):
        raise VideoError("cut", "the GIF has no end mark")


def _check_size(needed: int, size: int, what: str) -> None:
    if needed > size:
        raise VideoError("cut", f"the file has {size:,} bytes, its {what} header announces {needed:,}")


def _boxes(read: Read, size: int) -> Iterator[tuple[bytes, int]]:
    """Top-level boxes of an ISO media file: kind and the offset of their end; stops at what is no box."""
    offset = 0
    while offset + 8 <= size:
        head = read(offset, 16)
        length, kind = int.from_bytes(head[:4], "big"), head[4:8]
        if length == 1:
            length = int.from_bytes(head[8:16], "big")
        elif length == 0:
            length = size - offset
        if length < 8 or not all(byte in _TEXT_BYTES for byte in kind):
            return
        yield kind, offset + length
        offset += length


def _check_iso(read: Read, size: int) -> None:
    """Every box that holds pictures or their index ends inside the file, and the index is there."""
    seen = set()
    for kind, end in _boxes(read, size):
        seen.add(kind)
        if kind in _ISO_NEEDED:
            _check_size(end, size, f"{kind.decode()} box")
    if b"moov" not in seen and b"meta" in seen:
        raise VideoError("still_image", "the file is an AVIF or HEIC image")
    if b"moov" not in seen:
        raise VideoError("cut", "the mp4 has no index (moov box), which stands at its end or start")


def _check_matroska(head: bytes, size: int) -> None:
    """The segment, which holds everything, ends inside the file; a stream that was never closed has no size."""
    body = 4 + _vint_length(head[4])
    start = body + _vint(head[4:body])
    if head[start : start + 4] != b"\x18\x53\x80\x67" or start + 5 > len(head):
        return
    width = _vint_length(head[start + 4])
    field = head[start + 4 : start + 4 + width]
    if len(field) == width and _vint(field) != (1 << 7 * width) - 1:
        _check_size(start + 4 + width + _vint(field), size, "segment")


def _vint_length(first: int) -> int:
    """How many bytes an EBML number takes, by its first byte."""
    return 9 - first.bit_length()


def _vint(field: bytes) -> int:
    """An EBML number without its length mark."""
    return int.from_bytes(field, "big") & ((1 << 7 * len(field)) - 1)
