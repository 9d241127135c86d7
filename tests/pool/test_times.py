"""Seconds and windows, as annotation files write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.times import seconds, window_of


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, None),
        ("", None),
        (math.nan, None),
        (215, 215.0),
        (0, 0.0),
        ("0.00", 0.0),
        ("30s", 30.0),
        (" 12.5 s", 12.5),
        (".5", 0.5),
        ("03:28", 208.0),
        ("1:02:03.5", 3723.5),
        ("75:30", 4530.0),
    ],
)
def test_seconds(value: object, number: float | None) -> None:
    assert seconds(value) == number


@pytest.mark.parametrize(
    "value",
    [-1, "-1", "short", True, math.inf, 10**400, "1e5", "9" * 50, [1], "1:2:3:4", "1:75", "0:60", "1:60:00"],
)
def test_seconds_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number of seconds"):
        seconds(value)


@pytest.mark.parametrize(
    ("value", "window"),
    [
        (None, (None, None)),
        ("", (None, None)),
        ("0.00-60.019000", (0.0, 60.019)),
        ("[0:01:00 - 0:02:00]", (60.0, 120.0)),
        ("0:01:00.5 - 62", (60.5, 62.0)),
        ("[7.2:18.0]", (7.2, 18.0)),
        ("[ 180 : 200.31 ]", (180.0, 200.31)),
        ("[3, 4.5]", (3.0, 4.5)),
        ("(1:00, 2:00)", (60.0, 120.0)),
        ("[, 9]", (None, 9.0)),
        ([3, "4.5"], (3.0, 4.5)),
        ((None, 9), (None, 9.0)),
    ],
)
def test_window_of(value: object, window: tuple[float | None, float | None]) -> None:
    assert window_of(value) == window


@pytest.mark.parametrize(
    "value", ["12", "a-b", 5, [1, 2, 3], "1-2-3", {"start": 1}, "7.2:18.0", "[1:2:3]", "[1, 2, 3]", "-" * 200]
)
def test_window_of_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="is not a"):
        window_of(value)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers())))
def test_seconds_are_never_negative_nor_infinite(value: object) -> None:
    try:
        number = seconds(value)
    except ValueError:
        return
    assert number is None or 0 <= number < 1e12


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.sampled_from(["{}-{}", "[{}:{}]", "[{}, {}]", "[{} - {}]", "{}s-{} s"]))
def test_every_form_of_a_window_gives_its_two_numbers(start: float, end: float, form: str) -> None:
    start, end = round(start, 3), round(end, 3)
    written = form.format(f"{start:.3f}", f"{end:.3f}")
    if "s-" in form:
        written = written.replace(" s", "s")
    assert window_of(written) == (start, end)
    assert window_of([start, end]) == (start, end)
