"""How far annotations lie from chance: letter balance, shortcuts without a model, many tests at once. Pure."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["LEAST_EXPECTED", "LetterTest", "Shortcut", "chi_square_tail", "expected_letters", "holm", "letter_test"]

LEAST_EXPECTED = 5.0
"""Expected golds below which a letter is tested together with the one before it: the chi-square distribution is only
the limit of many (Cochran, 1954, Biometrics 10)."""


@dataclass(frozen=True, slots=True)
class LetterTest:
    """Pearson's test of how often each letter is right. `p` is 1 where fewer than two letters can be told apart."""

    statistic: float
    df: int
    p: float


def chi_square_tail(statistic: float, df: int) -> float:
    """Return P(X ≥ statistic) for X chi-square distributed with `df` degrees of freedom, 1 or more.

    The closed form for whole `df` (Abramowitz and Stegun, 1964, 26.4.4 and 26.4.5): a sum of df // 2 terms, exact to
    rounding, so that no table and no numeric library is needed. 0.0 where it is below the smallest float.
    """
    half = statistic / 2
    if half <= 0:
        return 1.0
    if math.isinf(half):
        return 0.0
    start = (df % 2) / 2
    tail = math.erfc(math.sqrt(half)) if df % 2 else 0.0
    powers = (start + step for step in range(df // 2))
    # e^-h h^s / Γ(s + 1), in logarithms: h^s alone is past the largest float for h = 1e30 and 26 letters.
    parts = (math.exp(-half + power * math.log(half) - math.lgamma(power + 1)) for power in powers)
    return min(1.0, tail + sum(parts))


def expected_letters(sizes: Mapping[int, int], letters: int = 0) -> list[float]:
    """Return how often each letter is right by chance: every item of n options gives 1/n to its first n letters.

    `sizes` is the number of items per number of options; the list has as many places as the largest, or `letters`.
    """
    width = max([letters, *sizes])
    return [sum(count / size for size, count in sizes.items() if size > place) for place in range(width)]


def letter_test(observed: Sequence[int], sizes: Mapping[int, int]) -> LetterTest:
    """Test whether golds are spread over the letters as the items' numbers of options imply.

    `observed[j]` is how often letter j is right. A letter that is expected less than `LEAST_EXPECTED` times is put
    together with the one before (A with B). Degrees of freedom are the letters that are left, less one. Where items
    differ in their number of options the p-value is too large if anything: counts then vary less than a multinomial's.
    """
    expected = expected_letters(sizes, len(observed))
    found = [*map(float, observed), *[0.0] * (len(expected) - len(observed))]
    if any(count and not chance for count, chance in zip(found, expected, strict=True)):
        return LetterTest(math.inf, len(expected) - 1, 0.0)  # a letter that no item has
    for place in [*range(len(expected) - 1, 0, -1), 0]:
        if expected and expected[place] < LEAST_EXPECTED and len(expected) > 1:
            into = place - 1 if place else 1
            expected[into] += expected[place]
            found[into] += found[place]
            del expected[place], found[place]
    if len(expected) < 2:
        return LetterTest(0.0, 0, 1.0)
    statistic = sum((count - chance) ** 2 / chance for count, chance in zip(found, expected, strict=True))
    return LetterTest(statistic, len(expected) - 1, chi_square_tail(statistic, len(expected) - 1))


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What a rule that sees no video gets right, against chance.

    Where the rule chooses t options of an item's n alike, each has 1/t of the credit. If each of the n is the right
    one as likely as any other, credit has the mean 1/n and the variance 1/(t n) - 1/n².
    """

    hits: float
    """Sum of the credits."""
    n: int
    expected: float
    """Sum of 1/n over the items."""
    variance: float
    """Sum of the credits' variances under chance."""

    @property
    def share(self) -> float | None:
        """Accuracy; None without items."""
        return self.hits / self.n if self.n else None

    @property
    def p_above(self) -> float:
        """Upper bound of the chance of this much credit or more."""
        return self._bound if self.hits > self.expected else 1.0

    @property
    def p_other(self) -> float:
        """Upper bound of the chance of this much distance from chance or more, to either side."""
        return min(1.0, 2 * self._bound)

    @property
    def _bound(self) -> float:
        """Bound the chance that independent credits in [0, 1] lie so far on this side of their expected sum.

        The smaller of two bounds, which both hold for any number of items, as a normal tail does not: Hoeffding (1963),
        Journal of the American Statistical Association 58, theorem 1, is sharp where no options tie; Bennett (1962),
        in volume 57, knows the variance, so that items whose options all tie cost nothing. Both are about ten times
        the normal tail where that is good, which costs little where p-values are tiny.
        """
        away = abs(self.hits - self.expected)
        if away <= 1e-9 * (1 + self.expected) or self.variance <= 1e-9:
            return 1.0
        ratio = away / self.variance
        bennett = self.variance * ((1 + ratio) * math.log1p(ratio) - ratio)
        hoeffding = _divergence(self.hits, self.expected) + _divergence(self.n - self.hits, self.n - self.expected)
        return min(1.0, math.exp(-max(bennett, hoeffding)))


def _divergence(found: float, expected: float) -> float:
    """One term of n times the Kullback-Leibler divergence."""
    return found * math.log(found / expected) if found > 0 else 0.0


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being tested together, in the order given.

    Source: Holm (1979), Scandinavian Journal of Statistics 6: the k-th smallest of m is multiplied by m - k + 1, and
    none is smaller than one before it. It needs no independence, which tests of one benchmark do not have.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    scaled = (min(1.0, values[index] * (len(values) - rank)) for rank, index in enumerate(order))
    adjusted = dict(zip(order, itertools.accumulate(scaled, max), strict=True))
    return [adjusted[index] for index in range(len(values))]
