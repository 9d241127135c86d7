"""Findings, limits, the closing line, shareable tokens and the hours of a study."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.doctor import checks, speed
from benchcheck.doctor.findings import Diagnosis, Finding, Limits, Verdict, closing_line, not_applicable
from benchcheck.doctor.stack import Sitting
from benchcheck.doctor.tail import shareable


def finding(verdict: Verdict) -> Finding:
    return Finding(name="x", verdict=verdict, measured="m", wanted="w", cure="c", figures={"n": 1})


def test_limits() -> None:
    limits = Limits(good=0.1, fair=0.5)
    assert [limits.judge(value) for value in (0.1, 0.5, 0.6)] == [Verdict.PASS, Verdict.WARN, Verdict.FAIL]
    assert limits.judge(math.nan) is Verdict.FAIL
    shares = Limits(good=0.9, fair=0.5)
    assert [shares.judge_share(value) for value in (0.9, 0.5, 0.4)] == [Verdict.PASS, Verdict.WARN, Verdict.FAIL]
    assert shares.judge_share(math.nan) is Verdict.FAIL


def test_the_closing_line_counts_all_models() -> None:
    first = Diagnosis({}, (finding(Verdict.PASS), finding(Verdict.WARN)))
    second = Diagnosis({}, (finding(Verdict.PASS), finding(Verdict.FAIL), not_applicable("y", "why")))
    assert closing_line([first]) == "doctor: 1 checks passed, 1 warned, 0 failed"
    assert closing_line([first, second]) == "doctor: 2 checks passed, 1 warned, 1 failed, 1 not applicable"
    assert first.sound
    assert not second.sound


def test_a_finding_as_json() -> None:
    row = Diagnosis({"model": "m"}, (finding(Verdict.FAIL), not_applicable("y", "why"))).row()
    assert row["about"] == {"model": "m"}
    assert row["checks"][0] == {
        "check": "x", "verdict": "fail", "measured": "m", "wanted": "w", "cure": "c", "figures": {"n": 1},
    }  # fmt: skip
    assert row["checks"][1] == {
        "check": "y", "verdict": "not applicable", "measured": "why", "wanted": "-", "figures": {},
    }  # fmt: skip


def test_letters_that_no_token_says() -> None:
    variants = {letter: [f" {letter}", letter] for letter in "ABCDEFG"}
    assert checks.letters_readable(variants, {}).verdict is Verdict.PASS
    assert "' A' 'A'" in checks.letters_readable(variants, {}).measured
    later = checks.letters_readable(variants, {"G": "2 tokens"})
    assert later.verdict is Verdict.WARN
    core = checks.letters_readable(variants, {"B": "merged", "G": "2 tokens"})
    assert core.verdict is Verdict.FAIL
    assert "(merged)" in core.measured


def test_token_counts_say_why_they_do_not_apply() -> None:
    nothing = Sitting((), ())
    assert checks.token_counts("x", nothing, "no tokenizer", "c").measured == "no tokenizer"
    assert checks.token_counts("x", nothing, [], "c").verdict is Verdict.SKIPPED


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=6))
def test_shareable_is_what_an_earlier_prompt_has_in_front(rows: list[list[int]]) -> None:
    def shared(one: list[int], other: list[int]) -> int:
        return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

    expected = [
        min(max((shared(before, row) for before in rows[:number]), default=0), max(0, len(row) - 1))
        for number, row in enumerate(rows)
    ]
    assert shareable(rows) == expected
    assert shareable(rows, 2) == [count // 2 * 2 for count in expected]


def test_hours_of_a_study() -> None:
    asked = {"text": speed.Demand(7200, 720_000), "frames": speed.Demand(3600, 0)}
    rates = {"text": 1.0, "frames": 2.0}
    assert speed.hours(asked, rates, {}) == pytest.approx(2.5)
    # Prompts of 100 tokens where the exam had 50: twice as slow.
    assert speed.hours(asked, rates, {"text": 50.0}) == pytest.approx(4.5)
    assert speed.hours(asked, {}, {}) == 0
    found = speed.throughput({"text": Sitting((), (), 0.0)}, {"text": speed.Demand(4, 5) + speed.Demand(6, 5)})
    assert found.verdict is Verdict.PASS
    assert "the study's 10 prompts" in found.measured


def test_prefixes_that_are_not_shared_warn_and_never_fail() -> None:
    def judged(shared: list[int] | str, expected: bool = True) -> Finding:
        return speed.prefixes_shared("x", Sitting((), ()), shared, expected)

    assert judged([0, 200]).verdict is Verdict.WARN
    assert judged([0, 200], expected=False).verdict is Verdict.SKIPPED
    assert judged("none at hand").measured == "none at hand"
    assert "prefixes of 96 tokens" in judged([0, 96]).measured
    assert judged([]).verdict is Verdict.SKIPPED
