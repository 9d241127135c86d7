"""Statistics of shares: intervals that are honest for small samples. Pure."""

import math
from dataclasses import dataclass

__all__ = ["Interval", "wilson"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float


def wilson(hits: float, n: int, z: float = 1.959963984540054) -> Interval:
    """Return the Wilson score interval of `hits` out of `n`; without any trial it is the whole range.

    Where ties share the credit, hits are no whole number; the interval is then a little wide.

    Source: Wilson (1927), Journal of the American Statistical Association 22; z is the 97.5 % normal quantile.
    """
    if n == 0:
        return Interval(0.0, 0.0, 1.0)
    share = hits / n
    scale = 1 + z * z / n
    middle = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))
