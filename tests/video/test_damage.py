"""Damage (damage.py) in every codec and container: the right frames, a flag, or a stated status."""

from pathlib import Path

import pytest

from benchcheck.video.faults import CURES, READY

from .clips import Clip
from .damage import Damage, flipped, hurt_packets, outcome, stretches, tenths, without
from .matrix import CODECS, CONTAINERS, Cell

PAIRS = [
    (codec, container) for codec in CODECS for container in CODECS[codec].containers if "25" in CODECS[codec].timings
]
SOME = [
    ("h264", "mp4"), ("h264 short GOP", "fragmented"), ("h264 no B", "ts"), ("hevc", "mkv"), ("vp9", "webm"),
    ("av1", "mp4"), ("mpeg4", "avi"), ("mpeg2", "mpg"), ("gif", "gif"), ("png", "mov"),
]  # fmt: skip
STRICT = [
    *[("h264", container) for container in ("mp4", "faststart", "fragmented", "mov", "mkv")],
    ("h264 no B", "mp4"), ("h264 short GOP", "mp4"), ("h264 short GOP", "mkv"), ("h264 open GOP", "mp4"),
    ("h264 all intra", "mov"), ("h264 4:4:4 odd", "mp4"), ("hevc", "mp4"), ("hevc open GOP", "mp4"),
    ("hevc 10 bit", "mov"), ("av1", "mp4"), ("av1", "webm"), ("prores", "mov"), ("png", "mov"),
]  # fmt: skip
"""Codecs that notice when their data were changed or left out, in containers that say when each frame is due."""
KINDS: dict[str, Damage] = {"cut": tenths, "stretch": stretches, "flip": flipped}


def made(codec: str, container: str, folder: Path) -> Path:
    return Cell(codec, container, "25", 0, 200).write(folder)


def check_ends(codec: str, container: str, kind: str, folder: Path) -> None:
    """Whatever is done to the file, it ends in a status that has a cure, or in frames; never in an exception."""
    path = made(codec, container, folder)
    target = folder / f"hurt.{CONTAINERS[container].suffix}"
    for name, data in KINDS[kind](path.read_bytes()):
        target.write_bytes(data)
        status, wrong, _ = outcome(target, folder / "frames")
        assert status in {READY, *CURES}, name
        # A cut leaves the frames before it as they were; in a container that knows its length it is always told.
        if kind == "cut" and container not in ("ts", "mpg", "raw.h264", "raw.hevc"):
            assert status != READY or container == "fragmented", name
            assert not wrong, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("codec", "container"), SOME)
def test_damaged_files_end_in_a_status(codec: str, container: str, kind: str, tmp_path: Path) -> None:
    check_ends(codec, container, kind, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("codec", "container"), [pair for pair in PAIRS if pair not in SOME])
def test_every_damaged_file_ends_in_a_status(codec: str, container: str, kind: str, tmp_path: Path) -> None:
    check_ends(codec, container, kind, tmp_path)


@pytest.mark.parametrize(("codec", "container"), STRICT)
def test_no_unflagged_frame_shows_another(codec: str, container: str, tmp_path: Path) -> None:
    path = made(codec, container, tmp_path)
    target = tmp_path / f"hurt.{CONTAINERS[container].suffix}"
    told = 0
    for numbers in (range(50, 51), range(100, 104), range(3, 4), range(199, 200), range(140, 180)):
        for zeros in (True, False):
            status, wrong, flagged = outcome(hurt_packets(path, target, numbers, zeros=zeros), tmp_path / "frames")
            assert not wrong, (numbers, zeros, status, wrong)
            told += status != READY or flagged > 0
    assert told > 2


@pytest.mark.parametrize(("codec", "container"), [pair for pair in STRICT if pair[0].startswith(("h264", "hevc"))])
def test_lost_packets_are_noticed(codec: str, container: str, tmp_path: Path) -> None:
    """The decoder gives pictures built on ones that never came; they are flagged, and so is the frame before."""
    path = made(codec, container, tmp_path)
    target = tmp_path / f"hurt.{CONTAINERS[container].suffix}"
    for numbers in (range(50, 51), range(100, 104), range(3, 4), range(1)):
        status, wrong, _ = outcome(without(path, target, numbers), tmp_path / "frames")
        assert not wrong, (numbers, status, wrong)


def test_frames_that_an_avi_lost_move_no_others(tmp_path: Path) -> None:
    """AVI counts its frames instead of timing them: where some are gone, no time can be trusted."""
    data = made("mjpeg", "avi", tmp_path).read_bytes()
    at, some = len(data) * 3 // 10, len(data) // 20
    (tmp_path / "a.avi").write_bytes(data[:at] + bytes(some) + data[at + some :])
    assert outcome(tmp_path / "a.avi", tmp_path / "frames")[0] == "damaged"


def test_a_matroska_that_breaks_off_is_not_taken_for_a_short_one(tmp_path: Path) -> None:
    data = made("h264 all intra", "mkv", tmp_path).read_bytes()
    at = len(data) * 4 // 10
    (tmp_path / "a.mkv").write_bytes(data[:at] + bytes(len(data) - at))
    assert outcome(tmp_path / "a.mkv", tmp_path / "frames")[0] == "cut"
    (tmp_path / "b.mkv").write_bytes(data + bytes(5000))
    assert outcome(tmp_path / "b.mkv", tmp_path / "frames") == (READY, [], 0), "zeros behind the end are no damage"


@pytest.mark.parametrize("suffix", ["mp4", "mov"])
def test_of_two_mp4_files_in_one_the_first_is_shown(tmp_path: Path, suffix: str) -> None:
    one = Clip().write(tmp_path / f"one.{suffix}").read_bytes()
    two = Clip(first=500).write(tmp_path / f"two.{suffix}").read_bytes()
    (tmp_path / f"both.{suffix}").write_bytes(one + two)
    assert outcome(tmp_path / f"both.{suffix}", tmp_path / "frames") == (READY, [], 0)


@pytest.mark.parametrize(("codec", "container"), [("vp8", "webm"), ("vp9", "webm")])
def test_bits_that_a_codec_cannot_notice(codec: str, container: str, tmp_path: Path) -> None:
    """The exception of docs/frames.md: a changed bit in the pictures of these is not always told."""
    path, silent = made(codec, container, tmp_path), 0
    target = tmp_path / f"hurt.{CONTAINERS[container].suffix}"
    data = path.read_bytes()
    for place in range(len(data) // 4, len(data) * 3 // 4, max(1, len(data) // 60)):
        target.write_bytes(data[:place] + bytes([data[place] ^ 16]) + data[place + 1 :])
        silent += bool(outcome(target, tmp_path / "frames")[1])
    assert silent > 0


@pytest.mark.parametrize("codec", ["vp9", "mpeg2", "mpeg4"])
def test_lost_packets_that_a_codec_cannot_notice(codec: str, tmp_path: Path) -> None:
    """The exception of docs/frames.md: their frames bear no numbers, so that one that is gone is not missed."""
    path = made(codec, "mp4", tmp_path)
    status, wrong, _ = outcome(without(path, tmp_path / "hurt.mp4", range(100, 103)), tmp_path / "frames")
    assert (status, bool(wrong)) == (READY, True)


def test_the_page_names_what_cannot_be_noticed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "frames.md").read_text(encoding="utf-8")
    assert [codec for codec in ("VP8", "VP9", "MPEG-2", "MPEG-4", "GIF") if codec not in page] == []
