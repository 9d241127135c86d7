"""Figures of a pool: by hand, and on random pools beside the definitions written out as loops."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchcheck.pool.checking.arrays import ABOVE, UNKNOWN, PoolArrays, read_arrays
from benchcheck.pool.checking.balance import Shortcut
from benchcheck.pool.checking.figures import bench_figures, overlaps, repeats
from benchcheck.pool.fields import fold
from benchcheck.pool.items import Item
from benchcheck.study import Study

from .pools import item, pool_of, random_items

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def arrays_of(folder: Path, items: list[Item]) -> PoolArrays:
    return read_arrays(pool_of(folder, items))


def credit(scores: list[float], gold: int) -> tuple[float, int]:
    best = [place for place, score in enumerate(scores) if score == max(scores)]
    return (gold in best) / len(best), len(best)


def shortcut_of(items: list[Item], scores: Callable[[Item], list[float]]) -> Shortcut:
    found = [(credit(scores(one), one.gold or 0), len(one.options)) for one in items]
    return Shortcut(
        math.fsum(hit for (hit, _), _ in found),
        len(found),
        math.fsum(1 / n for _, n in found),
        math.fsum(1 / (tied * n) - 1 / n**2 for (_, tied), n in found),
    )


def prior_of(items: list[Item]) -> Callable[[Item], list[float]]:
    """Share of the other occurrences of a text, as an option, in which it was right: a loop over all others."""
    places = [(one, place) for one in items for place in range(len(one.options))]

    def scores(asked: Item) -> list[float]:
        found = []
        for mine, text in enumerate(asked.options):
            others = [
                one.gold == place
                for one, place in places
                if (one.item_id, place) != (asked.item_id, mine) and fold(one.options[place]) == fold(text)
            ]
            found.append(sum(others) / len(others) if others else 0.0)
        return found

    return scores


def close(one: Shortcut, other: Shortcut) -> bool:
    return one.n == other.n and all(
        math.isclose(getattr(one, name), getattr(other, name), abs_tol=1e-9)
        for name in ("hits", "expected", "variance")
    )


@MANY
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_figures_are_those_of_the_definitions(tmp_path: Path, seed: int, count: int) -> None:
    items = random_items(seed, count)
    pool = arrays_of(tmp_path, items)
    assert pool.benches == tuple(dict.fromkeys(one.bench for one in items))
    for number, bench in enumerate(pool.benches):
        found = bench_figures(pool, number)
        mine = [one for one in items if one.bench == bench]
        mcq = [one for one in mine if one.format == "mcq"]
        assert (found.mcq, found.sizes) == (len(mcq), Counter(len(one.options) for one in mcq))
        places = Counter(one.gold if one.file_gold is None else one.file_gold for one in mcq)
        assert {place: n for place, n in enumerate(found.letters) if n} == places
        assert close(found.longest, shortcut_of(mcq, lambda one: [len(text) for text in one.options]))
        assert close(found.shortest, shortcut_of(mcq, lambda one: [-len(text) for text in one.options]))
        assert close(found.option_prior, shortcut_of(mcq, prior_of(mcq)))
        assert found.questions == len({fold(one.question) for one in mine})
        assert found.videos == len({one.video_key for one in mine} - {""})
        if mcq:
            chances = {name: [1 / len(one.options) for one in mcq if one.category == name] for name in ("", "a", "b")}
            means = [sum(part) / len(part) for part in chances.values() if part]
            assert found.chance == pytest.approx(sum(map(sum, chances.values())) / len(mcq))
            assert found.chance_macro == pytest.approx(sum(means) / len(means))
            assert found.categories == len(means)
        for kind, text in (
            ((found.above, found.above_right), "all of the above"),
            ((found.unknown, found.unknown_right), "not sure"),
        ):
            assert kind[0] == sum(text in one.options for one in mcq)
            assert kind[1] == sum(text == one.options[one.gold or 0] for one in mcq)
        assert pool.issues[number] == Counter(code for one in mine for code in one.issues)


def text_key(one: Item) -> tuple[str, tuple[str, ...]] | None:
    return (fold(one.question), tuple(sorted(map(fold, one.options)))) if len(one.options) > 1 else None


@MANY
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_repeats_and_overlaps_are_those_of_the_definitions(tmp_path: Path, seed: int, count: int) -> None:
    items = random_items(seed, count, benches=3)
    pool = arrays_of(tmp_path, items)
    found, pairs = repeats(pool), overlaps(pool)
    by_bench = [[one for one in items if one.bench == bench and text_key(one)] for bench in pool.benches]
    for number, mine in enumerate(by_bench):
        first: dict[object, str | None] = {}
        seen, again, other = Counter[object](), 0, 0
        for one in mine:
            seen[text_key(one)] += 1
            gold = None if one.gold is None else fold(one.options[one.gold])
            key = (text_key(one), one.video_key, one.start, one.end)
            if one.video_key and key in first:
                again += 1
                other += gold is not None and first[key] is not None and gold != first[key]
            elif one.video_key:
                first[key] = gold
        assert found.repeats[number] == again
        assert found.other_gold[number] == other
        assert found.any_video[number] == sum(n - 1 for n in seen.values())
        rest = {text_key(one) for there in by_bench if there is not mine for one in there}
        assert found.elsewhere[number] == sum(text_key(one) in rest for one in mine)
    wanted = {}
    for (one, mine), (other, theirs) in itertools.combinations(enumerate(by_bench), 2):
        left, right = ({text_key(entry) for entry in side} for side in (mine, theirs))
        keyed = [{text_key(entry) for entry in side if entry.gold is not None} for side in (mine, theirs)]
        if left & right:
            wanted[one, other] = (
                len(left & right),
                sum(text_key(entry) in right for entry in mine),
                sum(text_key(entry) in left for entry in theirs),
                sum(entry.gold is None and text_key(entry) in keyed[1] for entry in mine),
                sum(entry.gold is None and text_key(entry) in keyed[0] for entry in theirs),
            )
    assert {
        (pair.one, pair.other): (
            pair.questions, pair.one_items, pair.other_items, pair.gold_in_other, pair.gold_in_one,
        )
        for pair in pairs
    } == wanted  # fmt: skip
    assert [pair.questions for pair in pairs] == sorted((pair.questions for pair in pairs), reverse=True)


def test_more_shared_questions_than_a_block(tmp_path: Path) -> None:
    items = [item(bench, row, ("yes", "no"), question=f"Is it {row}?") for bench in ("a", "b") for row in range(10_000)]
    (pair,) = overlaps(arrays_of(tmp_path, items))
    assert (pair.questions, pair.one_items, pair.other_items) == (10_000, 10_000, 10_000)


def test_lengths_are_characters_of_what_is_shown(tmp_path: Path) -> None:
    """`straße` has six characters in seven bytes; white space counts."""
    items = [item("a", 0, ("straße", "street", "road"), 0), item("a", 1, ("a  b", "abc"), 0)]
    found = bench_figures(arrays_of(tmp_path, items), 0)
    assert found.longest.hits == 0.5 + 1


def test_letters_are_those_of_the_file(tmp_path: Path) -> None:
    """How2QA always has the right option last: put in another order for screening, the file's place is counted."""
    items = [item("how2qa", row, ("a", "b", "c", "d"), row % 4, file_gold=3) for row in range(40)]
    found = bench_figures(arrays_of(tmp_path, items), 0)
    assert found.letters == (0, 0, 0, 40)
    assert found.letter_test.p < 1e-20


def test_texts_that_are_always_right_give_themselves_away(tmp_path: Path) -> None:
    items = [item("a", row, ("blue", f"only here {row}"), 0) for row in range(60)]
    found = bench_figures(arrays_of(tmp_path, items), 0)
    assert found.option_prior.share == 1.0
    assert found.option_prior_p < 1e-6


def test_options_that_all_items_share_are_by_chance(tmp_path: Path) -> None:
    """Golds drawn at random among the same four texts: leaving one out, the credits of all items hang together."""
    below = 0
    for seed in range(200):
        rng = random.Random(seed)
        items = [item("a", row, ("w", "x", "y", "z"), rng.randrange(4)) for row in range(60)]
        below += bench_figures(arrays_of(tmp_path, items), 0).option_prior_p < 0.05
    assert below <= 10 + 4 * math.sqrt(200 * 0.05 * 0.95)


def test_a_benchmark_without_a_multiple_choice_item(tmp_path: Path) -> None:
    found = bench_figures(arrays_of(tmp_path, [item("a", 0, ("x", "y"), None), item("a", 1, (), None)]), 0)
    assert (found.mcq, found.chance, found.chance_macro, found.letters, found.categories) == (0, None, None, (), 0)
    assert (found.longest.share, found.option_prior_p, found.letter_test.df) == (None, 1.0, 0)


def test_one_item_of_twenty_six_options(tmp_path: Path) -> None:
    found = bench_figures(arrays_of(tmp_path, [item("a", 0, tuple("abcdefghijklmnopqrstuvwxyz"), 25)]), 0)
    assert (found.chance, found.sizes, len(found.letters), found.letters[25]) == (1 / 26, {26: 1}, 26, 1)
    assert (found.longest.share, found.longest.p_other) == (1 / 26, 1.0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("All of the above.", ABOVE),
        ("none of the above", ABOVE),
        ("neither", ABOVE),
        ("None of these options are right, all above", ABOVE),
        ("both hands", 0),
        ("lord", 0),
        ("both A and C", ABOVE),
        ("(A) & (B)", ABOVE),
        ("all the way down", 0),
        ("Not sure", UNKNOWN),
        ("I don\u2019t know", UNKNOWN),
        ("It cannot be determined", UNKNOWN),
        ("not enough information in the scene to answer", UNKNOWN),
        ("He is not sure why he is sitting there", 0),
        ("do not know what is going on", UNKNOWN),
    ],
)
def test_kinds_of_options(tmp_path: Path, text: str, kind: int) -> None:
    pool = arrays_of(tmp_path, [item("a", 0, (text, "red"), 0)])
    assert pool.kind.tolist() == [kind, 0]


def test_an_empty_pool(tmp_path: Path) -> None:
    study: Study = pool_of(tmp_path, [])
    pool = read_arrays(study)
    assert pool.benches == ()
    assert overlaps(pool) == []
    assert repeats(pool).repeats.tolist() == []
