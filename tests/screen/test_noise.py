"""Noise: differences, bands, and the verdicts that lie within."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.screen.noise import Twice, compare, lead_of, leads, noise_of, quantile, spread, unsure, within
from benchcheck.screen.readings import argmax, margin_of
from benchcheck.screen.verdicts import Rule

FINITE = st.floats(-30, 0)
ROW = st.lists(FINITE, min_size=2, max_size=6)


def test_quantile_of_few_is_the_largest() -> None:
    assert quantile([], 0.99) == 0
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3
    assert quantile(range(1, 201), 0.99) == 198
    assert quantile(range(1, 101), 0.95) == 95


@given(st.lists(FINITE, min_size=1), st.floats(0.01, 1))
def test_quantile_covers_its_share(values: list[float], share: float) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
    assert sum(value < found for value in values) < share * len(values) + 1e-9


@given(st.lists(st.floats(-10, 10)))
def test_spread_is_ordered_and_knows_no_sign(values: list[float]) -> None:
    found = spread(values)
    assert found == spread([-value for value in values])
    assert found.n == len(values)
    assert found.p95 <= found.p99 <= found.most
    assert found.mean <= found.most + 1e-12


def test_what_is_no_number_is_infinitely_far() -> None:
    assert spread([math.nan, 0.0]).most == math.inf
    assert compare([[0.0, -1.0]], [[math.nan, -1.0]]).letters.most == math.inf


@given(st.lists(ROW, max_size=5))
def test_a_reading_equals_itself(rows: list[list[float]]) -> None:
    found = compare(rows, rows)
    assert found.letters.most == 0
    assert found.same_top == 1
    assert found.lost_lead == 0


def test_compare_counts_letters_and_first_letters() -> None:
    found = compare([[-0.1, -3.0], [-0.5, -0.9]], [[-0.2, -2.5], [-0.9, -0.5]])
    assert found.prompts == 2
    assert found.letters.n == 4
    assert found.letters.most == pytest.approx(0.5)
    assert found.same_top == 0.5
    assert found.lost_lead == pytest.approx(0.4)


@given(ROW, st.data())
def test_the_lead_is_positive_for_the_first_letter_alone(row: list[float], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(row) - 1))
    assert (lead_of(row, at) > 0) <= (argmax(row) == at)
    assert lead_of(row, argmax(row)) >= 0


@given(st.lists(st.tuples(ROW, st.integers(0, 100)), min_size=1, max_size=8))
def test_leads_of_many_are_the_leads_of_each(orders: list[tuple[list[float], int]]) -> None:
    golds = [number % len(row) for row, number in orders]
    counts = [len(row) for row, _ in orders]
    found = leads(
        np.array([value for row, _ in orders for value in row]),
        np.array([index for row, _ in orders for index in range(len(row))]),
        np.repeat(golds, counts),
        np.cumsum([0, *counts[:-1]]),
    )
    assert found.tolist() == pytest.approx([lead_of(row, gold) for (row, _), gold in zip(orders, golds, strict=True)])


def test_leads_of_nothing() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert len(leads(np.zeros(0), nothing, nothing, nothing)) == 0


RULE = Rule()


def pair(first: tuple[float, ...], second: tuple[float, ...], gold: int = 0) -> Twice:
    return Twice((gold,), (first,), (second,))


def test_noise_counts_flips_and_measures_margins() -> None:
    found = noise_of(
        [pair((-0.3, -1.1), (-0.4, -1.0)), pair((-0.1, -3.0), (-0.1, -3.0)), pair((-0.2, -1.8), (-1.8, -0.2))], RULE
    )
    assert found.items == 3
    assert found.flips == 2
    assert found.margins.most == found.band == pytest.approx(3.2)
    assert found.lead_band == pytest.approx(3.2)
    assert found.beyond.low == pytest.approx(0)
    assert found.beyond.high == pytest.approx(0.56, abs=0.01)


def test_no_pair_no_noise() -> None:
    found = noise_of([], RULE)
    assert (found.items, found.flips, found.band) == (0, 0, 0)
    assert found.beyond.high == 1


def test_within_counts_both_sides() -> None:
    assert within(np.array([0.5, 0.6, 0.7, 0.9]), 0.7, 0.11) == 2


@given(st.lists(st.tuples(ROW, ROW).filter(lambda rows: len(rows[0]) == len(rows[1])), min_size=1, max_size=6))
def test_a_verdict_that_flipped_was_unsure(rows: list[tuple[list[float], list[float]]]) -> None:
    """Whatever two readings of few items say, an item whose verdict differed is flagged by the band of that sample."""
    pairs = [pair(tuple(first), tuple(second)) for first, second in rows]
    noise = noise_of(pairs, RULE)
    margins = np.array([margin_of(first, 0) for first, _ in rows])
    lead = np.array([lead_of(first, 0) for first, _ in rows])
    flags = unsure(margins, lead, np.arange(len(rows)), RULE, noise)
    for (first, second), flag in zip(rows, flags, strict=True):
        verdicts = {RULE.removes(argmax(row) == 0, 1, margin_of(row, 0)) for row in (first, second)}
        # Ties and rounding at the very edge aside, which `>` and `>=` may see differently.
        if len(verdicts) == 2 and noise.margins.n < 100:
            assert flag or abs(abs(margin_of(first, 0) - RULE.margin) - noise.band) < 1e-9


def test_without_noise_nothing_is_unsure() -> None:
    noise = noise_of([pair((-0.3, -1.1), (-0.3, -1.1))], RULE)
    margins, lead = np.array([0.5, 0.9, 3.0]), np.array([0.5, 0.9, -1.0])
    assert unsure(margins, lead, np.arange(3), RULE, noise).tolist() == [False] * 3


def test_a_lead_near_zero_is_unsure_where_it_decides() -> None:
    noise = noise_of([pair((-0.6, -0.8), (-0.7, -0.7))], RULE)
    # Four orders each: three are surely right; two are, and one perhaps; two are right at all.
    lead = np.array([2.0, 2.0, 2.0, -2.0, 2.0, 2.0, 0.1, -2.0, 2.0, 2.0, -2.0, -2.0])
    flags = unsure(np.array([5.0, 5.0, 5.0]), lead, np.repeat(np.arange(3), 4), RULE, noise)
    assert flags.tolist() == [False, True, False]
