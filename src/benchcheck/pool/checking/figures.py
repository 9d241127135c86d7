"""What the items of a pool show without a model: letters, lengths, option texts, repeats, overlaps. Pure.

Definitions are those of `docs/pool-check.md`. All take the pool's arrays; none reads a file.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchcheck.pool.checking.arrays import ABOVE, UNKNOWN, Numbers, PoolArrays, combined
from benchcheck.pool.checking.balance import LetterTest, Shortcut, letter_test

__all__ = ["BenchFigures", "Overlap", "Repeats", "bench_figures", "overlaps", "repeats"]

Scores: TypeAlias = npt.NDArray[np.float64] | Numbers

_BLOCK = 8192
"""Shared questions that are counted at a time, as a matrix with a row per benchmark."""


@dataclass(frozen=True, slots=True)
class BenchFigures:
    """One benchmark's multiple-choice items. Means are None where it has none."""

    mcq: int
    sizes: dict[int, int]
    """Items per number of options."""
    chance: float | None
    """Mean of 1/n."""
    chance_macro: float | None
    """Mean of 1/n in each category, then over categories."""
    letters: tuple[int, ...]
    """How often each letter is right in the annotation file."""
    letter_test: LetterTest
    longest: Shortcut
    shortest: Shortcut
    option_prior: Shortcut
    option_prior_p: float
    """Bound of the chance that texts say this much about which option is right; see `_prior_p`."""
    categories: int
    above: int
    """Items with an option such as `all of the above`."""
    above_right: int
    """Of these, items where such an option is the right one."""
    unknown: int
    """Items with an option such as `not sure`."""
    unknown_right: int
    questions: int
    """Distinct questions of all its items, folded."""
    videos: int


@dataclass(frozen=True, slots=True)
class _Choice:
    """The items of one benchmark that are screened, k of them with l options in all."""

    starts: Numbers
    """(k) where each item's options begin among the l."""
    owner: Numbers
    """(l) item of each option, 0 to k - 1."""
    size: Numbers
    """(k)"""
    flat: Numbers
    """(l) place among the pool's options."""
    gold: Numbers
    """(k) place of the right option among the l."""


def bench_figures(pool: PoolArrays, bench: int) -> BenchFigures:
    """Return the figures of one benchmark, by its index in `pool.benches`."""
    mine = pool.bench == bench
    rows = np.flatnonzero(mine & pool.mcq)
    choice = _choice(pool, rows)
    chances = 1 / choice.size
    sizes = {int(n): int(count) for n, count in zip(*np.unique(choice.size, return_counts=True), strict=True)}
    letters = tuple(np.bincount(pool.place[rows], minlength=max(sizes, default=0)).tolist())
    length, kind = pool.length[choice.flat], pool.kind[pool.option[choice.flat]]
    above, unknown = _held(choice, kind, ABOVE), _held(choice, kind, UNKNOWN)
    kinds, category = np.unique(pool.category[rows], return_inverse=True)
    videos = pool.video[mine]
    return BenchFigures(
        mcq=len(rows),
        sizes=sizes,
        chance=float(chances.mean()) if len(rows) else None,
        chance_macro=float((np.bincount(category, chances) / np.bincount(category)).mean()) if len(rows) else None,
        letters=letters,
        letter_test=letter_test(letters, sizes),
        longest=_shortcut(choice, length),
        shortest=_shortcut(choice, -length),
        option_prior=_shortcut(choice, _prior(pool.option[choice.flat], choice.gold)),
        option_prior_p=_prior_p(choice, pool.option[choice.flat]),
        categories=len(kinds),
        above=above[0],
        above_right=above[1],
        unknown=unknown[0],
        unknown_right=unknown[1],
        questions=len(np.unique(pool.question[mine])),
        videos=len(np.unique(videos[videos >= 0])),
    )


def _choice(pool: PoolArrays, rows: Numbers) -> _Choice:
    """Cut the options of some items out of the pool's."""
    size = pool.sizes[rows]
    ends = np.cumsum(size)
    starts = ends - size
    owner = np.repeat(np.arange(len(rows)), size)
    flat = np.arange(len(owner)) + np.repeat(pool.offsets[:-1][rows] - starts, size)
    return _Choice(starts, owner, size, flat, starts + pool.gold[rows])


def _shortcut(choice: _Choice, score: Scores, among: npt.NDArray[np.bool_] | None = None) -> Shortcut:
    """What choosing the option with the largest score gets right; options that tie share the credit.

    `among` (k) flags the items that are counted, all when left out.
    """
    if not len(choice.size):
        return Shortcut(0.0, 0, 0.0, 0.0)
    best = score == np.maximum.reduceat(score, choice.starts)[choice.owner]
    tied = np.add.reduceat(best.astype(np.int64), choice.starts)
    counted = np.ones(len(tied), bool) if among is None else among
    variance = 1 / (tied * choice.size) - 1 / choice.size**2
    sums = (float(part[counted].sum()) for part in (best[choice.gold] / tied, 1 / choice.size, variance))
    hits, expected, spread = sums
    return Shortcut(hits, int(counted.sum()), expected, spread)


def _prior(option: Numbers, gold: Numbers) -> Scores:
    """Share of the other occurrences of each option's text, as an option, in which it was the right one; 0 without."""
    _, text = np.unique(option, return_inverse=True)
    right = _flags(gold, len(option))
    others = np.bincount(text)[text] - 1
    hits = np.bincount(text, right)[text] - right
    return hits / np.maximum(others, 1)


def _prior_p(choice: _Choice, option: Numbers) -> float:
    """Bound the chance of what texts say about the right option, learnt on every second item and tried on the others.

    Leaving one item out is the better estimate but no test: items with the same options are then all judged by nearly
    the same golds, so that their credits rise and fall together. Learnt on one half, the credits of the other are
    independent. The smaller p-value of the two halves counts twice (Bonferroni).
    """
    _, text = np.unique(option, return_inverse=True)
    right, half = _flags(choice.gold, len(option)), choice.owner % 2
    values = list[float]()
    for tried in (0, 1):
        learnt = half != tried
        seen = np.bincount(text[learnt], minlength=len(text))
        hits = np.bincount(text[learnt], right[learnt], minlength=len(text))
        score = (hits / np.maximum(seen, 1))[text]
        values.append(2 * _shortcut(choice, score, np.arange(len(choice.size)) % 2 == tried).p_above)
    return min(1.0, *values)


def _flags(places: Numbers, count: int) -> Numbers:
    """1 at some places, 0 elsewhere."""
    found = np.zeros(count, np.int64)
    found[places] = 1
    return found


def _held(choice: _Choice, kind: Numbers, bit: int) -> tuple[int, int]:
    """How many items have an option of a kind, and in how many of them the right option is of it."""
    of_kind = (kind & bit) > 0
    return len(np.unique(choice.owner[of_kind])), int(of_kind[choice.gold].sum())


@dataclass(frozen=True, slots=True)
class Repeats:
    """Per benchmark, items whose question and options an earlier item has: the first of each group is not counted.

    Only items with a known video count where the video matters.
    """

    repeats: Numbers
    """Same video and window too."""
    other_gold: Numbers
    """Of these, with another right option than the first: one of the two is wrong."""
    any_video: Numbers
    """Whatever the video."""
    elsewhere: Numbers
    """Items whose question and options another benchmark has: all of these, not only the later ones."""


def repeats(pool: PoolArrays) -> Repeats:
    """Count repeats within each benchmark of the pool."""
    count = len(pool.benches)
    asked = np.where(pool.asked >= 0, combined(pool.bench, pool.asked), -1)
    seen = np.where(pool.video >= 0, combined(combined(asked, pool.video), pool.window), -1)
    seen = np.where(asked >= 0, seen, -1)
    again, first = _again(seen)
    gold = pool.gold_text
    differs = again & (gold >= 0) & (gold[first] >= 0) & (gold != gold[first])
    return Repeats(
        np.bincount(pool.bench[again], minlength=count),
        np.bincount(pool.bench[differs], minlength=count),
        np.bincount(pool.bench[_again(asked)[0]], minlength=count),
        np.bincount(pool.bench[_shared(pool)[0]], minlength=count),
    )


def _again(group: Numbers) -> tuple[npt.NDArray[np.bool_], Numbers]:
    """Flag members of a group but its first (-1 is no group), and return the place of each one's first."""
    _, firsts, member = np.unique(group, return_index=True, return_inverse=True)
    first = firsts[member]
    return (group >= 0) & (first != np.arange(len(group))), first


def _shared(pool: PoolArrays) -> tuple[Numbers, Numbers, int]:
    """Items whose question and options another benchmark has: their rows, each one's question, how many questions."""
    rows = np.flatnonzero(pool.asked >= 0)
    asked = pool.asked[rows]
    ids, place = np.unique(asked, return_inverse=True)
    pairs = np.unique(combined(place, pool.bench[rows]), return_index=True)[1]
    spread = np.bincount(place[pairs], minlength=len(ids)) > 1
    number = np.cumsum(spread) - 1
    there = spread[place]
    return rows[there], number[place[there]], int(spread.sum())


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two benchmarks with questions in common: same question and options, whatever the video."""

    one: int
    other: int
    questions: int
    """Distinct questions, with their options, in common."""
    one_items: int
    """Items of the first whose question and options the second has."""
    other_items: int
    gold_in_other: int
    """Of the first's items without a gold, those which have one in the second."""
    gold_in_one: int


def overlaps(pool: PoolArrays) -> list[Overlap]:
    """Return every pair of benchmarks with questions in common, the largest first."""
    count = len(pool.benches)
    rows, place, shared = _shared(pool)
    bench, unkeyed_rows = pool.bench[rows], pool.gold_text[rows] < 0
    same, items, without = (np.zeros((count, count)) for _ in range(3))
    for start in range(0, shared, _BLOCK):
        here = (place >= start) & (place < start + _BLOCK)
        at = bench[here] * _BLOCK + place[here] - start
        shape, cells = (count, _BLOCK), count * _BLOCK
        all_, unkeyed = np.bincount(at, minlength=cells), np.bincount(at[unkeyed_rows[here]], minlength=cells)
        has, keyed = (all_ > 0).reshape(shape).astype(float), (all_ > unkeyed).reshape(shape).astype(float)
        same += has @ has.T
        items += all_.reshape(shape).astype(float) @ has.T
        without += unkeyed.reshape(shape).astype(float) @ keyed.T
    found = [
        Overlap(
            one,
            other,
            int(same[one, other]),
            *(int(table[at]) for table in (items, without) for at in ((one, other), (other, one))),
        )
        for one, other in zip(*(part.tolist() for part in np.triu_indices(count, 1)), strict=True)
        if items[one, other]
    ]
    return sorted(found, key=lambda pair: (-pair.questions, pair.one, pair.other))
