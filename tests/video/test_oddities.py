"""Whole clips that are odd in one way each (oddities.py): what is on screen is chosen all the same."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from benchcheck.video.decoding.decode import Video
from benchcheck.video.making.draw import draw
from benchcheck.video.task import Task

from .clips import Clip, number_of
from .oddities import TICKS_A_FRAME, changing_size, in_company, turning_clock, with_cover, with_edits
from .test_decode import SPEC, grid, numbers

EVEN = [(2 * place + 1) * 64 // 64 for place in range(32)]


def seen(path: Path) -> list[int]:
    """The 32 numbers, by both ways."""
    quick, thorough = Video(str(path), SPEC), Video(str(path), SPEC, thorough=True)
    shown = grid(quick)
    assert shown == grid(thorough)
    assert quick.timeline() == thorough.timeline()
    return numbers(shown[1])


def between(first: int, frames: int) -> list[int]:
    return [first + (2 * place + 1) * frames // 64 for place in range(32)]


@pytest.mark.parametrize("name", ["cfr.mp4", "nob.mp4"])
def test_an_edit_list_leaves_out_the_start_and_the_end(clip: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    delay = 2 * TICKS_A_FRAME if name == "cfr.mp4" else 0
    path = with_edits(clip(name), tmp_path / "a.mp4", [(30 * 40, delay + 10 * TICKS_A_FRAME)])
    assert seen(path) == between(10, 30)


def test_a_picture_that_starts_late_counts_from_its_first_frame(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path = with_edits(clip("cfr.mp4"), tmp_path / "a.mp4", [(5000, -1), (64 * 40, 2 * TICKS_A_FRAME)])
    assert Video(str(path), SPEC).timeline().length == Fraction(64, 25)
    assert seen(path) == EVEN


def test_two_edits_play_one_after_the_other(clip: Callable[[str], Path], tmp_path: Path) -> None:
    edits = [(8 * 40, 40 * TICKS_A_FRAME), (8 * 40, 8 * TICKS_A_FRAME)]
    path = with_edits(clip("nob.mp4"), tmp_path / "a.mp4", edits)
    assert seen(path) == [(40 if place < 16 else 0) + (2 * place + 1) * 16 // 64 for place in range(32)]


@pytest.mark.parametrize(
    "flags", ["negative_cts_offsets", "frag_keyframe+empty_moov+negative_cts_offsets+default_base_moof"]
)
def test_decoding_times_below_zero(tmp_path: Path, flags: str) -> None:
    assert seen(Clip(container=(("movflags", flags),)).write(tmp_path / "a.mp4")) == EVEN


def test_a_size_that_changes_is_drawn_in_the_first(tmp_path: Path) -> None:
    path = changing_size(tmp_path / "a.mkv")
    video = Video(str(path), SPEC)
    grid(video)
    assert video.picture.size == (176, 96)
    assert seen(path) == between(0, 40)


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts"])
@pytest.mark.parametrize("other", [{}, {"later": 1.2}, {"longer": 30.0}, {"second": True}], ids=str)
def test_other_streams_change_nothing(tmp_path: Path, suffix: str, other: dict[str, float]) -> None:
    path = in_company(tmp_path / f"a.{suffix}", **other)
    assert Video(str(path), SPEC).timeline().length == Fraction(64, 25)
    assert seen(path) == EVEN


def test_a_cover_is_not_the_video(clip: Callable[[str], Path], tmp_path: Path) -> None:
    assert seen(with_cover(clip("cfr.mp4"), tmp_path / "a.mp4")) == EVEN


def test_a_clock_that_turns_over(tmp_path: Path) -> None:
    assert seen(turning_clock(tmp_path / "a.ts")) == EVEN


def test_two_frames_of_one_time_show_the_later(tmp_path: Path) -> None:
    """A Matroska file counts whole milliseconds; one pair of frames that share theirs does not make it untimed."""
    pts = [number * 40_000 + (0 if number != 20 else -39_900) for number in range(64)]
    path = Clip(pts=pts, time_base=Fraction(1, 1_000_000)).write(tmp_path / "a.mkv")
    timeline = Video(str(path), SPEC).timeline()
    assert (timeline.pts[19], timeline.pts[20], timeline.pts[21]) == (760, 760, 840)
    assert 19 not in seen(path)
    assert seen(path) == [20 if number == 19 else number for number in EVEN]


def test_frozen_stretches_repeat_a_frame_and_say_so(tmp_path: Path) -> None:
    """One source frame shown at neighbouring places is a duplicate, in a long freeze as in a short video.

    Two source frames are none, though they may look alike: a film of a wall is not short of frames.
    """
    (tmp_path / "v").mkdir()
    pts = [number * 40 for number in range(10)] + [100_000 + number * 40 for number in range(10)]
    freeze = Clip(frames=20, pts=pts, time_base=Fraction(1, 1000)).write(tmp_path / "v" / "freeze.mp4")
    tasks = [Task("r::::m", (str(freeze),), {"freeze": (None, None), "end": (100_000, None)}, str(freeze.parent))]
    assert all(outcome.ready for task in tasks for outcome in draw(task, SPEC, tmp_path / "f"))
    for key, expected in (("freeze", [9] * 32), ("end", between(10, 10))):
        table = json.loads((tmp_path / "f" / key / "frames.json").read_text())
        shown = [number_of(tmp_path / "f" / key / f"frame_{place}.jpg") for place in range(32)]
        assert shown == expected
        flags = [frame["duplicate"] for frame in table["frames"]]
        assert flags == [place > 0 and shown[place] == shown[place - 1] for place in range(32)]
        assert table["distinct"] == len(set(shown))
