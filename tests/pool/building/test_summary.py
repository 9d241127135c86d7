"""What a build says: counts that add up, the manifest's columns, and warnings that can still be read."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchcheck.errors import UsageError
from benchcheck.pool.building.drift import drift_of, refuse_drift
from benchcheck.pool.building.summary import MANIFEST_COLUMNS, BenchSummary, PoolSummary, Tally
from benchcheck.pool.issues import ISSUES, blocking
from benchcheck.pool.specs import Expect

BLOCKING = sorted(code for code in ISSUES if blocking(code))


def bench(name: str, drift: str = "", **counts: int) -> BenchSummary:
    return BenchSummary(
        bench=name, rows=100, mcq=90, issue_counts=Counter(counts), drift=drift,
        examples=dict.fromkeys(counts, f"{name}.json: record 1: x"),
    )  # fmt: skip


def test_the_manifest_s_columns_stand_on_the_page() -> None:
    text = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
    table = text.partition("## The pool's manifest")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)) == MANIFEST_COLUMNS
    assert list(BenchSummary().row()) == list(MANIFEST_COLUMNS)


def test_tallies_add_up_and_the_first_example_stays() -> None:
    first = Tally(3, 2, 1, Counter(a=1), Counter({4: 2}), {"a": "1"}, {"x"}, 1)
    first.add(Tally(5, 5, 2, Counter(a=1, b=2), Counter({4: 4, 5: 1}), {"a": "2", "b": "3"}, {"y"}, 2))
    assert first == Tally(8, 7, 3, Counter(a=2, b=2), Counter({4: 6, 5: 1}), {"a": "1", "b": "3"}, {"x", "y"}, 3)


def test_a_few_warnings_are_told_one_by_one() -> None:
    summary = PoolSummary((bench("one", no_options=3, bad_text=5), bench("two", drift="drift")))
    assert summary.warnings == (
        f"one: 3 not screened: no_options ({ISSUES['no_options'].meaning}) First: one.json: record 1: x",
        "two: drift",
    )


def test_warnings_of_many_benchmarks_are_put_together_by_code() -> None:
    summary = PoolSummary(
        tuple(
            bench(f"b{number:03}", "drift" * (number == 7), no_options=number + 1, bad_window=2)
            for number in range(100)
        )
    )
    lines = summary.warnings
    meaning = ISSUES["no_options"].meaning
    assert lines[0] == "b007: drift"
    assert lines[1] == (
        f"5,050 not screened: no_options ({meaning}) b099 100, b098 99, b097 98 and 97 more benchmarks. "
        "First: b000.json: record 1: x"
    )
    assert lines[2].startswith("200 not screened: bad_window")
    assert len(lines) == 3


@pytest.mark.parametrize("drifted", [5, 100])
def test_never_more_than_twenty_lines(drifted: int) -> None:
    codes = dict.fromkeys(BLOCKING, 1)
    assert len(codes) > 12
    benches = [bench(f"b{number:03}", "drift" * (number < drifted), **codes) for number in range(100)]
    lines = PoolSummary(tuple(benches), changed=3).warnings
    assert len(lines) <= 20
    told = [line for line in lines if "not screened" in line]
    assert len(told) == min(len(codes), max(9, 18 - drifted))
    rest = drifted + len(codes) - 18
    assert lines[-2].startswith(f"and {rest} more warnings: the manifest (issue_counts, drift) has them all")
    assert lines[-1].startswith("3 items of the pool before have another text")


def test_drift_is_what_differs_and_what_is_not_known_cannot_differ() -> None:
    found = BenchSummary(bench="b", rows=1000, mcq=900, options=Counter({4: 800, 5: 100}))
    assert drift_of(Expect(), found) == ""
    assert drift_of(Expect(items=1000, mcq=900, options=(5, 4)), found) == ""
    assert drift_of(Expect(items=1000, mcq=901), found).startswith("900 mcq where 901 were expected: another version")
    assert drift_of(Expect(options=(4,)), found).startswith("4, 5 options where 4 were expected")
    none = BenchSummary(bench="b", rows=10)
    assert drift_of(Expect(options=(4,)), none).startswith("no options where 4 were expected")


def test_a_hundred_drifted_benchmarks_are_one_line_that_ends() -> None:
    refuse_drift([])
    with pytest.raises(UsageError) as caught:
        refuse_drift([bench(f"b{number:03}", "other counts") for number in range(100)])
    message = str(caught.value)
    assert "and 98 more benchmarks: b002, b003, b004, b005, b006, b007, b008, b009, b010, b011, …. Nothing" in message
    assert len(message) < 600
