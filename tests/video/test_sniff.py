import contextlib
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.video.faults import CURES, VideoError
from benchcheck.video.sources.sniff import check_head, check_whole

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
HEADS = {
    "empty": [b""],
    "lfs_pointer": [LFS],
    "html": [b"<!DOCTYPE html><html>", b"\xef\xbb\xbf\n <HTML lang=en>", b"<?xml version='1.0'?>\n<html>"],
    "archive": [b"PK\x03\x04rest", b"PK\x05\x06", b"\x1f\x8b\x08", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a", b"(\xb5/\xfd",
                b"name".ljust(257, b"\0") + b"ustar\x0000"],
    "still_image": [b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"BM6\0"],
    "not_a_video": [b"%PDF-1.7", b'{"error": "quota exceeded"}', b"\0" * 1024, b"#EXTM3U\nhttp://example.org/a.ts\n",
                    b"<rss></rss>"],
}  # fmt: skip


@pytest.mark.parametrize(("status", "head"), [(status, head) for status, heads in HEADS.items() for head in heads])
def test_what_is_plainly_no_video(status: str, head: bytes) -> None:
    with pytest.raises(VideoError) as raised:
        check_head(head)
    assert raised.value.status == status
    assert status in CURES
    assert "\n" not in raised.value.reason


@pytest.mark.parametrize(
    "head", [b"\0\0\0\x20ftypisom", b"\x1a\x45\xdf\xa3", b"RIFF\0\0\0\0AVI ", b"GIF89a\x40\0", b"G@\0"]
)
def test_heads_of_videos_pass(head: bytes) -> None:
    check_head(head)


def whole(data: bytes) -> None:
    check_whole(lambda offset, count: data[offset : offset + count], len(data))


def cut(data: bytes) -> str:
    with pytest.raises(VideoError) as raised:
        whole(data)
    return raised.value.status


def box(kind: bytes, body: bytes = b"", size: int | None = None) -> bytes:
    return struct.pack(">I", 8 + len(body) if size is None else size) + kind + body


FTYP, MOOV, MDAT = box(b"ftyp", b"isom0000"), box(b"moov", b"x" * 30), box(b"mdat", b"y" * 50)


@pytest.mark.parametrize(
    "data",
    [
        FTYP + MOOV + MDAT,
        FTYP + MDAT + MOOV,
        FTYP + MOOV + box(b"mdat", b"to the end", size=0),
        FTYP + MOOV + box(b"mdat", struct.pack(">Q", 26) + b"0123456789", size=1),
        FTYP + MOOV + MDAT + b"\0\0\0\0\0\0\0\0trailing zeros",
        FTYP + MOOV + MDAT + b"\0\0\0\x08\xff\xfe\xfd\xfc",
        FTYP + MOOV + MDAT + box(b"free", b"", size=5000),
        box(b"moov", b"only") + box(b"moof", b"f") + box(b"mdat", b"m"),
        FTYP + MOOV + MDAT + b"abc",
        b"no box at all, some other kind",
    ],
)
def test_whole_mp4(data: bytes) -> None:
    whole(data)


@pytest.mark.parametrize(
    "data", [FTYP + MDAT, FTYP + MOOV + MDAT[:-1], FTYP + MDAT + MOOV[:-1], FTYP, (FTYP + MOOV + MDAT)[:20]]
)
def test_cut_mp4(data: bytes) -> None:
    assert cut(data) == "cut"


def test_heif_images_are_no_videos() -> None:
    assert cut(FTYP + box(b"meta", b"m") + MDAT) == "still_image"


EBML = b"\x1a\x45\xdf\xa3\x84abcd"


def test_matroska_knows_its_size() -> None:
    whole(EBML + b"\x18\x53\x80\x67\x83xyz")
    whole(EBML + b"\x18\x53\x80\x67\x10\x00\x00\x03xyz")
    assert cut(EBML + b"\x18\x53\x80\x67\x83xy") == "cut"
    assert cut(EBML + b"\x18\x53\x80\x67\x10\x00\x00\x04xyz") == "cut"


@pytest.mark.parametrize("rest", [b"\x18\x53\x80\x67\xffxyz", b"\x18\x53\x80\x67\x01" + b"\xff" * 7, b"\xec\x81", b""])
def test_matroska_of_unknown_size_or_shape_passes(rest: bytes) -> None:
    whole(EBML + rest)


def test_avi_and_gif() -> None:
    whole(b"RIFF" + struct.pack("<I", 8) + b"AVI LIST")
    whole(b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + b"AVI LIST")
    assert cut(b"RIFF" + struct.pack("<I", 9) + b"AVI LIST") == "cut"
    whole(b"GIF89a....;")
    whole(b"GIF89a....;\0\0\n")
    assert cut(b"GIF89a....") == "cut"


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\0\0\0\x08ftyp", EBML, b"RIFF", b"GIF89a", b"\x1a\x45\xdf\xa3"])
)
def test_no_bytes_crash_the_checks(data: bytes, start: bytes) -> None:
    for check in (check_head, whole):
        with contextlib.suppress(VideoError):
            check(start + data)


@pytest.mark.parametrize(
    "name", ["cfr.mp4", "faststart.mp4", "fragmented.mp4", "odd.mkv", "vp9.webm", "mpeg4.avi", "anim.gif"]
)
def test_real_files_are_whole_and_cut_ones_are_told(clip: Callable[[str], Path], name: str) -> None:
    data = clip(name).read_bytes()
    whole(data)
    for share in (0.4, 0.8):
        assert cut(data[: int(len(data) * share)]) == "cut"
    if name != "fragmented.mp4":  # ends with an index of its fragments, which nothing here needs
        assert cut(data[:-1]) == "cut"
