from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.video.faults import VideoError
from benchcheck.video.grid import (
    Timeline,
    display_size,
    duplicates_of,
    end_tick,
    fit_size,
    grid_times,
    quarter_turns,
    span_of,
)

ticks = st.lists(st.integers(-(10**6), 10**9), min_size=1, max_size=60, unique=True).map(sorted)
bases = st.sampled_from([Fraction(1, 12800), Fraction(1, 1000), Fraction(1001, 30000), Fraction(1, 90000)])


def test_grid_times_of_32_seconds_are_the_half_seconds() -> None:
    assert grid_times(Fraction(0), Fraction(32), 32) == [Fraction(2 * k + 1, 2) for k in range(32)]


def test_grid_times_of_a_window_are_counted_from_the_video_start() -> None:
    assert grid_times(Fraction(10), Fraction(20), 2) == [Fraction(25, 2), Fraction(35, 2)]


@given(st.fractions(0, 1000), st.fractions(1, 1000), st.integers(1, 64))
def test_grid_times_lie_inside_evenly_spaced_and_symmetric(start: Fraction, length: Fraction, count: int) -> None:
    times = grid_times(start, start + length, count)
    assert len(times) == count
    assert start < times[0] <= times[-1] < start + length
    assert {later - earlier for earlier, later in pairwise(times)} <= {length / count}
    assert times[0] - start == start + length - times[-1]


@given(ticks, bases, st.data())
def test_shown_at_is_the_last_frame_not_later(pts: list[int], base: Fraction, data: st.DataObject) -> None:
    timeline = Timeline(tuple(pts), pts[-1] + 7, base)
    time = data.draw(st.fractions(0, timeline.length))
    naive = max(index for index, tick in enumerate(pts) if (tick - pts[0]) * base <= time)
    assert timeline.shown_at(time) == naive


@given(ticks, bases)
def test_a_frame_is_shown_from_its_own_tick_on(pts: list[int], base: Fraction) -> None:
    timeline = Timeline(tuple(pts), pts[-1] + 1, base)
    for index, tick in enumerate(pts):
        assert timeline.shown_at((tick - pts[0]) * base) == index
        assert timeline.shown_at((tick - pts[0]) * base + base / 2) == index


def test_times_before_the_first_frame_show_the_first() -> None:
    assert Timeline((5, 9), 12, Fraction(1)).shown_at(Fraction(-1)) == 0


def test_length_and_seconds_count_from_the_first_frame() -> None:
    timeline = Timeline((100, 140, 200), 260, Fraction(1, 100))
    assert timeline.length == Fraction(8, 5)
    assert [timeline.seconds(index) for index in range(3)] == [0.0, 0.4, 1.0]


@pytest.mark.parametrize(
    ("pts", "duration", "end"),
    [([0, 10, 20], 4, 24), ([0, 10, 25], 0, 40), ([7], 0, 12), ([7], 3, 10), ([0, 10], -1, 20)],
)
def test_end_tick_takes_the_duration_then_the_gap_then_the_rate(pts: list[int], duration: int, end: int) -> None:
    assert end_tick(pts, duration, 5) == end


def test_span_of_the_whole_video_and_of_windows() -> None:
    length = Fraction(100)
    assert span_of((None, None), length) == (0, 100)
    assert span_of((2500, None), length) == (Fraction(5, 2), 100)
    assert span_of((None, 4000), length) == (0, 4)
    assert span_of((99000, 101000), length) == (99, 100), "an end up to 1 s late is closed at the video's end"


@pytest.mark.parametrize(
    ("window", "status"),
    [
        ((-1, 5000), "bad_window"),
        ((3000, 3000), "bad_window"),
        ((3000, 2000), "bad_window"),
        ((100000, None), "window_outside"),
        ((100000, 100500), "window_outside"),
        ((0, 101001), "window_outside"),
    ],
)
def test_windows_that_a_video_does_not_have(window: tuple[int, int | None], status: str) -> None:
    with pytest.raises(VideoError) as raised:
        span_of(window, Fraction(100))
    assert raised.value.status == status


def test_duplicates_are_repeats_of_the_frame_before() -> None:
    assert duplicates_of([0, 0, 1, 2, 2, 2]) == [False, True, False, False, True, True]
    assert duplicates_of([]) == []


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1920, 1080), (448, 252)),
        ((1080, 1920), (252, 448)),
        ((448, 448), (448, 448)),
        ((200, 100), (200, 100)),
        ((10000, 3), (448, 1)),
    ],
)
def test_fit_size(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert fit_size(*size, 448) == expected


@given(st.integers(1, 20000), st.integers(1, 20000), st.integers(16, 4096))
def test_fit_size_never_enlarges_and_keeps_the_aspect(width: int, height: int, long_side: int) -> None:
    w, h = fit_size(width, height, long_side)
    assert 1 <= w <= width
    assert 1 <= h <= height
    assert max(w, h) == min(long_side, max(width, height))
    if min(w, h) > 1:
        assert abs(w * height - h * width) <= max(width, height)  # half a pixel of the short side


def test_display_size_squares_pixels_by_shrinking() -> None:
    assert display_size(720, 576, Fraction(16, 15)) == (720, 540)
    assert display_size(720, 480, Fraction(8, 9)) == (640, 480)
    assert display_size(64, 48, None) == display_size(64, 48, Fraction(0)) == (64, 48)
    assert display_size(64, 48, Fraction(100)) == display_size(64, 48, Fraction(1, 100)) == (64, 48)


@pytest.mark.parametrize(
    ("degrees", "turns"), [(0, 0), (90, 1), (-90, 3), (180, 2), (-180, 2), (270, 3), (89, 1), (1, 0)]
)
def test_quarter_turns(degrees: int, turns: int) -> None:
    assert quarter_turns(degrees) == turns
