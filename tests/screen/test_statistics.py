"""Intervals of shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.screen.statistics import Interval, wilson


def test_known_values() -> None:
    # Wilson (1927) intervals, as R's prop.test(correct = FALSE) prints them.
    assert wilson(0, 10) == Interval(0.0, pytest.approx(0.0, abs=1e-12), pytest.approx(0.2775328, abs=1e-6))
    assert wilson(5, 10) == Interval(0.5, pytest.approx(0.2365931, abs=1e-6), pytest.approx(0.7634069, abs=1e-6))
    assert wilson(10, 10) == Interval(1.0, pytest.approx(0.7224672, abs=1e-6), pytest.approx(1.0))


def test_no_trial_says_nothing() -> None:
    assert wilson(0, 0) == Interval(0.0, 0.0, 1.0)


@given(st.integers(1, 10_000), st.data())
def test_the_share_lies_in_its_interval_and_the_other_side_is_its_mirror(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    found, mirror = wilson(hits, n), wilson(n - hits, n)
    assert 0 <= found.low <= found.share + 1e-12
    assert found.share - 1e-12 <= found.high <= 1
    assert found.low == pytest.approx(1 - mirror.high, abs=1e-9)


@given(st.integers(1, 1000))
def test_more_trials_make_a_narrower_interval(n: int) -> None:
    few, many = wilson(n, 2 * n), wilson(4 * n, 8 * n)
    assert many.high - many.low < few.high - few.low
