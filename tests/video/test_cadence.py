from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.video.grid import Timeline
from benchcheck.video.preparing.cadence import disagreements, is_variable, longest_gap


def timeline(pts: list[int], base: Fraction) -> Timeline:
    return Timeline(tuple(pts), pts[-1] + 1, base)


@given(
    st.integers(1, 500),
    st.fractions(1, 120, max_denominator=1001),
    st.sampled_from([1000, 12800, 90000, 1_000_000]),
    st.integers(-1000, 1000),
)
def test_an_even_rate_is_constant_however_times_are_rounded(count: int, rate: Fraction, ticks: int, first: int) -> None:
    pts = [first + round(number / rate * ticks) for number in range(count)]
    assert not is_variable(timeline(pts, Fraction(1, ticks)))
    milliseconds = [round(round(number / rate * 1000) * ticks / 1000) for number in range(count)]
    assert not is_variable(timeline(milliseconds, Fraction(1, ticks)))


@given(st.integers(4, 200), st.data())
def test_a_frame_left_out_is_seen(count: int, data: st.DataObject) -> None:
    gone = data.draw(st.integers(1, count - 2))
    pts = [number * 40 for number in range(count) if number != gone]
    assert is_variable(timeline(pts, Fraction(1, 1000)))


def test_two_frames_have_one_gap_only() -> None:
    assert not is_variable(timeline([0], Fraction(1, 25)))
    assert not is_variable(timeline([0, 7], Fraction(1, 25)))


@pytest.mark.parametrize(
    ("seconds", "end", "gap"), [([], 3.0, None), ([0.0], 3.0, 3.0), ([2.0, 0.0, 0.5], 3.0, 1.5), ([0.0, 4.0], 3.0, 4.0)]
)
def test_the_longest_way_from_a_key_frame(seconds: list[float], end: float, gap: float | None) -> None:
    assert longest_gap(seconds, end) == gap


def test_only_what_a_header_says_otherwise_is_told() -> None:
    found = {"frames": 100.0, "duration": 4.0, "fps": 25.0}
    assert disagreements({"frames": 100.0, "duration": 4.03, "fps": 25.2}, found) == {}
    assert disagreements({"frames": None, "duration": None, "fps": None}, found) == {}
    wrong = {"frames": 99.0, "duration": 4.1, "fps": 30.0}
    assert disagreements(wrong, found) == wrong
