"""Noise: how far two readings of the same prompts lie apart, and which verdicts lie within that. Pure.

A verdict hangs on two numbers of an answer: its mean margin, against the threshold, and in each order the lead of the
right letter over the best other one, against zero. Reading a sample again measures how far both move on their own; the
items that lie within so much of a boundary are those whose verdict could be the other one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchcheck.screen.readings import argmax, margin_of
from benchcheck.screen.statistics import Interval, wilson
from benchcheck.screen.verdicts import Flags, Rule

__all__ = [
    "QUANTILE",
    "Difference",
    "Noise",
    "Spread",
    "Twice",
    "compare",
    "lead_of",
    "leads",
    "noise_of",
    "quantile",
    "spread",
    "unsure",
    "within",
]

QUANTILE = 0.99
"""Decision (D): the band is what 99 % of the differences stay within. Of fewer than 100 the largest is taken; `Noise.
beyond` says how large a share of all items may yet move further."""

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Absolute differences in nats: how many, their mean, what 95 % and 99 % of them stay within, and the largest."""

    n: int
    mean: float
    p95: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Two lists of readings of the same prompts, compared letter by letter."""

    prompts: int
    letters: Spread
    same_top: float
    """Share of prompts whose first letter is the same; 1 without any prompt."""
    lost_lead: float
    """The largest lead, in the first list, of a top letter that is no top letter in the second; 0 without any."""


@dataclass(frozen=True, slots=True)
class Twice:
    """An item that was read twice: per order where the right letter stands, and both readings by shown position."""

    golds: tuple[int, ...]
    first: tuple[tuple[float, ...], ...]
    second: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Noise:
    """What reading a sample again shows of one step."""

    items: int
    letters: Spread
    margins: Spread
    """Of mean margins."""
    leads: Spread
    """Of single orders."""
    flips: int
    """Items of the sample whose verdict is another one the second time."""
    beyond: Interval
    """Share of items whose mean margin moves further than the band, with its 95 % interval."""

    @property
    def band(self) -> float:
        """Nats around the margin's threshold within which a verdict may be noise."""
        return self.margins.p99

    @property
    def lead_band(self) -> float:
        """Nats of lead within which the first letter of an order may be noise."""
        return self.leads.p99


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed; 0 without any.

    It is one of the values, so that of few the largest is taken and nothing is made up between two.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def spread(differences: Sequence[float]) -> Spread:
    """Sum up differences, whatever their sign; one that is no number is infinite."""
    sizes = [math.inf if math.isnan(value) else abs(value) for value in differences]
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return Spread(len(sizes), mean, quantile(sizes, 0.95), quantile(sizes, QUANTILE), max(sizes, default=0.0))


def lead_of(logprobs: Sequence[float], position: int) -> float:
    """Return by how many nats a position leads the best other one; negative where it does not lead."""
    return logprobs[position] - max(value for other, value in enumerate(logprobs) if other != position)


def compare(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> Difference:
    """Compare two readings of each prompt, letter by letter."""
    deltas: list[float] = []
    lost: list[float] = []
    for one, other in zip(first, second, strict=True):
        deltas += [b - a for a, b in zip(one, other, strict=True)]
        if argmax(one) != argmax(other):
            lost.append(lead_of(one, argmax(one)))
    same = 1 - len(lost) / len(first) if first else 1.0
    return Difference(len(first), spread(deltas), same, max(lost, default=0.0))


def noise_of(pairs: Sequence[Twice], rule: Rule) -> Noise:
    """Measure a step's noise on items that were read twice."""
    letters: list[float] = []
    lead: list[float] = []
    margins: list[float] = []
    flips = 0
    for pair in pairs:
        verdicts = []
        means = []
        for readings in (pair.first, pair.second):
            right = sum(argmax(row) == gold for row, gold in zip(readings, pair.golds, strict=True))
            mean = math.fsum(margin_of(row, gold) for row, gold in zip(readings, pair.golds, strict=True))
            means.append(mean / len(pair.golds))
            verdicts.append(rule.removes(right, len(pair.golds), means[-1]))
        flips += verdicts[0] != verdicts[1]
        margins.append(means[1] - means[0])
        for one, other, gold in zip(pair.first, pair.second, pair.golds, strict=True):
            letters += [b - a for a, b in zip(one, other, strict=True)]
            lead.append(lead_of(other, gold) - lead_of(one, gold))
    moved = spread(margins)
    beyond = wilson(sum(abs(delta) > moved.p99 for delta in margins), len(margins))
    return Noise(len(pairs), spread(letters), moved, spread(lead), flips, beyond)


def leads(values: Floats, originals: Numbers, golds: Numbers, starts: Numbers) -> Floats:
    """Return the right letter's lead in many orders at once.

    Args:
        values: float64 [letters], the log-probabilities of all orders, end to end.
        originals: int64 [letters], the option that each letter stood for.
        golds: int64 [letters], the right option of the item that a letter belongs to.
        starts: int64 [orders], where each order begins; an order has at least two letters.
    """
    if not len(starts):
        return np.zeros(0)
    right = originals == golds
    gold = np.maximum.reduceat(np.where(right, values, -np.inf), starts)
    other = np.maximum.reduceat(np.where(right, -np.inf, values), starts)
    return np.asarray(gold - other, dtype=np.float64)


def within(margins: Floats, threshold: float, band: float) -> int:
    """Count the mean margins that lie within the band of the threshold."""
    return int(np.count_nonzero(np.abs(margins - threshold) <= band))


def unsure(margins: Floats, lead: Floats, item: Numbers, rule: Rule, noise: Noise) -> Flags:
    """Flag the items whose verdict could be the other one within the noise.

    Args:
        margins: float64 [items], mean margins.
        lead: float64 [orders], the right letter's lead in every order.
        item: int64 [orders], the place of each order's item in `margins`.
        rule: when an item leaves.
        noise: what was measured.
    """
    n_perm = np.bincount(item, minlength=len(margins))
    needed = np.ceil(rule.right_share * n_perm)
    surely = np.bincount(item, lead > noise.lead_band, minlength=len(margins))
    perhaps = np.bincount(item, lead >= -noise.lead_band, minlength=len(margins))
    could = (perhaps >= needed) & (margins > rule.margin - noise.band)
    must = (surely >= needed) & (margins > rule.margin + noise.band)
    return np.asarray(could & ~must, dtype=np.bool_)
