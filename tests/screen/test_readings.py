"""Readings: from a distribution over tokens to the letters, and from letters to a margin."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import (
    MISSING_LOGPROB,
    argmax,
    letter_of_token,
    log_sum_exp,
    margin_of,
    merge_letters,
)

AROUND = [(before, behind) for before in ("", " ", "(", "[") for behind in ("", ")", ".")]
TOKENS = [f"{before}{letter}{behind}" for letter in "ABCDEF" for before, behind in AROUND]
TOKENS += ["the", "a", "AB", "1", "", "\n", "Answer", "((A", "A))"]


@st.composite
def distributions(draw: st.DrawFn) -> list[tuple[str, float]]:
    """A whole distribution over distinct tokens."""
    tokens = draw(st.lists(st.sampled_from(TOKENS), min_size=1, unique=True))
    weights = draw(st.lists(st.floats(1e-9, 1), min_size=len(tokens), max_size=len(tokens)))
    return [(token, math.log(weight / math.fsum(weights))) for token, weight in zip(tokens, weights, strict=True)]


def test_tokens_that_stand_for_a() -> None:
    for token in ("A", " A", "A ", "\nA", "(A", "[A", "A)", "A]", "A.", "A:", " (A) ", "[A:"):
        assert letter_of_token(token) == "A", token


def test_tokens_that_stand_for_no_letter() -> None:
    greek = "\u0391"
    for token in ("a", "AA", "((A", "A))", "A).", "{A", "A,", "1", "", " ", "Ä", "A\u0300", greek, "( A", "▁A", None):
        assert letter_of_token(token) is None, token


@given(distributions(), st.integers(2, 6))
def test_letters_hold_no_more_than_the_whole_probability(tokens: list[tuple[str, float]], k: int) -> None:
    letters = merge_letters(tokens, k)
    assert 0 <= letters.label_mass <= 1 + 1e-12
    plain = sum(math.exp(logprob) for token, logprob in tokens if letter_of_token(token) in set(LETTERS[:k]))
    assert letters.label_mass == pytest.approx(plain, abs=1e-12)


@given(distributions(), st.integers(2, 6), st.randoms(use_true_random=False))
def test_the_order_of_tokens_does_not_matter(tokens: list[tuple[str, float]], k: int, random: Random) -> None:
    shuffled = list(tokens)
    random.shuffle(shuffled)
    first, second = merge_letters(tokens, k), merge_letters(shuffled, k)
    assert first.logprobs == pytest.approx(second.logprobs, abs=1e-12)
    assert first.missing == second.missing


@given(distributions(), st.integers(2, 6))
def test_the_top_20_agree_with_the_whole_on_letters_that_both_see(tokens: list[tuple[str, float]], k: int) -> None:
    ordered = sorted(tokens, key=lambda pair: -pair[1])
    tail = {letter_of_token(token) for token, _ in ordered[20:]}
    top, whole = merge_letters(ordered[:20], k), merge_letters(ordered, k)
    assert set(whole.missing) <= set(top.missing)
    for letter, near, exact in zip(LETTERS, top.logprobs, whole.logprobs, strict=False):
        if letter in top.missing:
            assert near == MISSING_LOGPROB
        elif letter in tail:  # a variant outside the top 20 may only add
            assert near <= exact
        else:
            assert near == pytest.approx(exact, abs=1e-12)


def test_a_letter_that_is_not_listed_is_missing_and_holds_no_mass() -> None:
    letters = merge_letters([("A", math.log(0.5)), (" A", math.log(0.25)), (None, -1.0), ("D", -0.1)], 3)
    assert letters.logprobs == pytest.approx((math.log(0.75), math.log(1e-6), math.log(1e-6)))
    assert letters.missing == ("B", "C")
    assert letters.label_mass == pytest.approx(0.75)


@given(st.lists(st.floats(-700, 700), min_size=1, max_size=30))
def test_log_sum_exp_lies_between_the_largest_and_that_plus_log_n(values: list[float]) -> None:
    total = log_sum_exp(values)
    assert max(values) - 1e-9 <= total <= max(values) + math.log(len(values)) + 1e-9


def test_log_sum_exp_of_nothing_and_of_nothing_probable() -> None:
    assert log_sum_exp([]) == -math.inf
    assert log_sum_exp([-math.inf, -math.inf]) == -math.inf
    assert log_sum_exp([-math.inf, 2.0]) == 2.0
    assert log_sum_exp([1e6, 1e6]) == pytest.approx(1e6 + math.log(2))


@given(st.lists(st.floats(-50, 0), min_size=2, max_size=26), st.data(), st.floats(-100, 100))
def test_a_margin_does_not_see_a_shift_of_all_letters(values: list[float], data: st.DataObject, shift: float) -> None:
    gold = data.draw(st.integers(0, len(values) - 1))
    others = values[:gold] + values[gold + 1 :]
    assert margin_of(values, gold) == pytest.approx(values[gold] - sum(others) / len(others), abs=1e-9)
    assert margin_of([value + shift for value in values], gold) == pytest.approx(margin_of(values, gold), abs=1e-9)


@given(st.lists(st.sampled_from([-3.0, -2.0, -1.0]), min_size=1, max_size=8))
def test_ties_go_to_the_first_position(values: list[float]) -> None:
    assert argmax(values) == values.index(max(values))


@pytest.mark.parametrize("place", range(3))
def test_a_distribution_with_a_value_that_is_no_number_has_no_letters(place: int) -> None:
    tokens = [("the", -1.0), (" A", -2.0), ("x", -3.0)]
    tokens[place] = (tokens[place][0], math.nan)
    letters = merge_letters(tokens, 3)
    assert len(letters.logprobs) == 3
    assert all(map(math.isnan, (*letters.logprobs, letters.label_mass)))
    assert letters.missing == ()
