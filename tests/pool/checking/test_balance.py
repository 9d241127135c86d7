"""Chi-square tails, letter balance, shortcuts against chance, and Holm's correction, beside known values."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.checking.balance import Shortcut, chi_square_tail, expected_letters, holm, letter_test

# Critical values of NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.4: upper tail of 0.05, 0.01 and 0.001.
CRITICAL = {
    1: (3.841, 6.635, 10.828),
    2: (5.991, 9.210, 13.816),
    3: (7.815, 11.345, 16.266),
    4: (9.488, 13.277, 18.467),
    5: (11.070, 15.086, 20.515),
    9: (16.919, 21.666, 27.877),
    10: (18.307, 23.209, 29.588),
    24: (36.415, 42.980, 51.179),
    25: (37.652, 44.314, 52.620),
}


@pytest.mark.parametrize("df", CRITICAL)
def test_tails_are_those_of_the_tables(df: int) -> None:
    for critical, tail in zip(CRITICAL[df], (0.05, 0.01, 0.001), strict=True):
        assert chi_square_tail(critical, df) == pytest.approx(tail, rel=2e-3)


def test_tails_in_closed_form() -> None:
    assert chi_square_tail(4.0, 1) == pytest.approx(math.erfc(math.sqrt(2)), rel=1e-14)
    assert chi_square_tail(7.0, 2) == pytest.approx(math.exp(-3.5), rel=1e-14)
    assert chi_square_tail(6.0, 4) == pytest.approx(4 * math.exp(-3), rel=1e-14)


@given(st.integers(1, 25), st.floats(0, 1e308), st.floats(0, 1e308))
def test_a_tail_is_a_probability_that_falls_with_the_statistic(df: int, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 1 >= chi_square_tail(low, df) >= chi_square_tail(high, df) - 1e-12 >= -1e-12


@given(st.integers(1, 24), st.floats(0.001, 300))
def test_a_tail_grows_with_the_degrees_of_freedom(df: int, statistic: float) -> None:
    assert chi_square_tail(statistic, df) <= chi_square_tail(statistic, df + 1) + 1e-12


def test_the_ends_of_a_tail() -> None:
    assert [chi_square_tail(statistic, 3) for statistic in (0.0, math.inf, 1e300)] == [1.0, 0.0, 0.0]
    assert chi_square_tail(5000.0, 3) == 0.0


def test_letters_are_expected_as_the_numbers_of_options_imply() -> None:
    """Two items of two options, three of three."""
    assert expected_letters({2: 2, 3: 3}) == [2.0, 2.0, 1.0]
    assert expected_letters({2: 2}, 4) == [1.0, 1.0, 0.0, 0.0]
    assert expected_letters({}) == []


@given(st.dictionaries(st.integers(2, 26), st.integers(1, 1000), min_size=1))
def test_every_item_has_one_right_letter(sizes: dict[int, int]) -> None:
    expected = expected_letters(sizes)
    assert math.fsum(expected) == pytest.approx(sum(sizes.values()))
    assert expected == sorted(expected, reverse=True)


def test_the_letters_of_hlv_1k() -> None:
    """The field guide's example of an unbalanced file: A 5380, B 3374, C 1343, D 436."""
    found = letter_test([5380, 3374, 1343, 436], {4: 10533})
    mean = 10533 / 4
    assert found.statistic == pytest.approx(sum((n - mean) ** 2 / mean for n in (5380, 3374, 1343, 436)))
    assert (found.df, found.p) == (3, 0.0)


def test_balanced_letters_are_by_chance() -> None:
    assert letter_test([625] * 4, {4: 2500}).p == 1.0
    assert letter_test([25, 24, 26, 25], {4: 100}).p > 0.9


def test_rare_letters_are_put_together() -> None:
    """In OVO-Bench 13 of 1,468 items have a fifth option: 2.6 golds are expected there, too few to test alone."""
    found = letter_test([456, 388, 323, 298, 3], {2: 42, 3: 42, 4: 1371, 5: 13})
    assert found.df == 3
    assert found.p == pytest.approx(1.39e-5, rel=1e-2)
    assert letter_test([6, 5, 4, 4], {6: 3, 5: 3, 4: 13}).df == 1


@pytest.mark.parametrize(
    ("observed", "sizes"), [([], {}), ([1], {2: 1}), ([0, 0], {}), ([3, 1], {2: 4}), ([9], {3: 9})]
)
def test_too_few_golds_for_a_test(observed: list[int], sizes: dict[int, int]) -> None:
    found = letter_test(observed, sizes)
    assert (found.statistic, found.df, found.p) == (0.0, 0, 1.0)


def test_a_letter_that_no_item_has() -> None:
    """Another package's pool may say that the right option stood at a place which the item lacks."""
    found = letter_test([50, 49, 1], {2: 100})
    assert (found.statistic, found.df, found.p) == (math.inf, 2, 0.0)


def test_p_values_are_uniform_by_chance() -> None:
    """400 files of 200 random golds: of their p-values a tenth is below 0.1, half below 0.5."""
    rng = random.Random(7)
    found = []
    for _ in range(400):
        golds = [rng.randrange(4) for _ in range(200)]
        found.append(letter_test([golds.count(place) for place in range(4)], {4: 200}).p)
    for bound in (0.1, 0.5, 0.9):
        share = sum(p < bound for p in found) / len(found)
        assert abs(share - bound) < 4 * math.sqrt(bound * (1 - bound) / len(found))


def test_p_values_of_mixed_numbers_of_options_are_not_too_small() -> None:
    rng = random.Random(8)
    sizes, found = {2: 100, 4: 60, 6: 60}, []
    for _ in range(400):
        golds = [rng.randrange(size) for size, count in sizes.items() for _ in range(count)]
        found.append(letter_test([golds.count(place) for place in range(6)], sizes).p)
    assert sum(p < 0.1 for p in found) / len(found) < 0.12


def test_a_shortcut_by_hand() -> None:
    """Ten items of four options, one of them longest, nine times the right one; then with ties: half the variance."""
    found = Shortcut(9.0, 10, 2.5, 1.875)
    bound = math.exp(-(9 * math.log(9 / 2.5) + 1 * math.log(1 / 7.5)))
    assert found.p_above == pytest.approx(bound)
    assert found.p_other == pytest.approx(2 * bound)
    tied, ratio = Shortcut(4.5, 10, 2.5, 0.2), 2 / 0.2
    assert tied.p_above == pytest.approx(math.exp(-0.2 * ((1 + ratio) * math.log(1 + ratio) - ratio)))
    none = Shortcut(0.0, 10, 2.5, 1.875)
    assert (none.p_above, none.p_other) == (1.0, pytest.approx(2 * 0.75**10))
    assert (found.share, Shortcut(0.0, 0, 0.0, 0.0).share) == (0.9, None)


def test_a_rule_that_prefers_nothing_shows_nothing() -> None:
    """All options alike: credit is 1/n whatever is right."""
    assert Shortcut(2.5, 10, 2.5, 0.0).p_above == 1.0
    assert Shortcut(0.0, 0, 0.0, 0.0).p_other == 1.0


@given(st.integers(1, 60), st.integers(2, 26), st.data())
def test_p_is_never_below_the_binomial_tail(n: int, options: int, data: st.DataObject) -> None:
    """One option of each item is chosen: credit is binomial, whose tail can be summed."""
    hits = data.draw(st.integers(0, n))
    share = 1 / options
    exact = math.fsum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(hits, n + 1))
    found = Shortcut(float(hits), n, n * share, n * share * (1 - share))
    assert found.p_above >= exact * (1 - 1e-9)


def test_p_is_near_the_normal_tail_where_that_is_good() -> None:
    """1,150 of 4,000 items of four options: 5.5 standard deviations."""
    found = Shortcut(1150.0, 4000, 1000.0, 750.0)
    assert math.erfc(150 / math.sqrt(750) / math.sqrt(2)) / 2 < found.p_above < 1e-6


def test_holm_by_hand() -> None:
    """Holm (1979): four times 0.01, three times 0.02, twice 0.03, 0.04; none below the one before."""
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_refuses_exactly_those_of_its_steps(values: list[float]) -> None:
    """Stepping down, smallest first, each against alpha / (tests left), refuses the same."""
    adjusted = holm(values)
    for alpha in (0.001, 0.05, 0.3):
        order = sorted(range(len(values)), key=values.__getitem__)
        passes = [values[index] * (len(values) - rank) <= alpha for rank, index in enumerate(order)]
        refused = {index for index, _ in zip(order, itertools.takewhile(bool, passes), strict=False)}
        assert refused == {index for index, p in enumerate(adjusted) if p <= alpha}
    assert all(one <= other for one, other in zip(values, adjusted, strict=True))
