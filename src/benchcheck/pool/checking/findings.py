"""What a check of a pool comes to, in sentences, the ones that matter most first. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.checking.balance import Shortcut
from benchcheck.pool.checking.check import ALPHA, DECLARED, BenchCheck, PoolCheck
from benchcheck.screen.statistics import wilson

__all__ = ["CODES", "Finding", "findings"]

CODES = (
    *("files", "drift", "blocked", "letters", "longest", "shortest", "option_prior"),
    *("gold_elsewhere", "wrong_gold", "repeats", "shared"),
)
"""Kinds of findings."""
_WRONG = ("other_gold", "index_text_contradict", "duplicate_gold")
"""Issue codes under which the keyed option is wrong, or not the only right one."""
_RULES = {
    "longest": "the longest option",
    "shortest": "the shortest option",
    "option_prior": "the option whose text is right most often in other items",
}
_FIRST = ("files", "drift", "blocked")
"""Before all others: what the figures are of, and whether they are of the whole benchmark."""
_FEW = 0.01
"""Share of the items below which those that block stand among the others, by that share."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one benchmark. `size` orders findings: a share of its items, or the distance from chance."""

    bench: str
    code: str
    size: float
    text: str

    def row(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {"bench": self.bench, "code": self.code, "size": self.size, "text": self.text}


def findings(check: PoolCheck) -> list[Finding]:
    """Return all findings: changed files, drift and items that block, then the others, the largest first."""
    found = [finding for bench in check.benches for finding in _of_bench(bench)]
    found += _of_pairs(check)
    return sorted(found, key=lambda finding: (_rank(finding), -finding.size, finding.bench, finding.code))


def _rank(finding: Finding) -> int:
    """Place of a finding's kind; all that are not first are ordered by their size alone."""
    few = finding.code == "blocked" and finding.size < _FEW
    return len(_FIRST) if few or finding.code not in _FIRST else _FIRST.index(finding.code)


def _of_bench(bench: BenchCheck) -> Iterator[Finding]:
    """Findings about one benchmark alone."""
    if moved := [f"{path} ({state})" for path, state in bench.moved.items()]:
        text = f"changed since the build: {', '.join(moved)}. Figures are those of the files before"
        yield Finding(bench.bench, "files", 1.0, text)
    if bench.drift:
        yield Finding(bench.bench, "drift", 1.0, bench.drift)
    blocked = [f"{code} {count:,}" for code, count in bench.blocked.items() if code not in DECLARED]
    if blocked:
        lost = bench.items - bench.figures.mcq
        text = f"{lost:,} of {bench.items:,} items not screened: {', '.join(blocked)} (docs/issue-codes.md)"
        yield Finding(bench.bench, "blocked", lost / bench.items, text)
    yield from _beyond_chance(bench)
    wrong = {code: bench.issues[code] for code in _WRONG if bench.issues[code]}
    if wrong:
        listed = ", ".join(f"{code} {count:,}" for code, count in wrong.items())
        text = f"golds that are wrong or not the only right one: {listed} (docs/issue-codes.md)"
        yield Finding(bench.bench, "wrong_gold", sum(wrong.values()) / bench.items, text)
    if bench.repeats:
        other = f", {bench.other_gold:,} of them with another gold" if bench.other_gold else ""
        said = _many(bench.repeats, "item repeats", "items repeat")
        text = f"{said} an earlier one: question, options, video and window{other}"
        yield Finding(bench.bench, "repeats", bench.repeats / bench.items, text)


def _beyond_chance(bench: BenchCheck) -> Iterator[Finding]:
    """What the letters, the lengths and the texts of options show about the right one."""
    found = bench.figures
    chance, top = found.chance or 0.0, bench.majority_acc or 0.0
    if bench.marked("letters"):
        test = found.letter_test
        text = (
            f"{_percent(top)} of the right answers are {bench.majority_letter}, chance {_percent(chance)}; "
            f"chi-square {test.statistic:,.0f} with {test.df} degrees of freedom, p < {ALPHA}"
        )
        yield Finding(bench.bench, "letters", top - chance, text)
    for code, name in _RULES.items():
        if bench.marked(code):
            rule: Shortcut = getattr(found, code)
            band = wilson(rule.hits, rule.n)
            advice = ": leaving it out helps" if band.share < chance else ""
            text = (
                f"{name} is right in {_percent(band.share)} ({_percent(band.low)} to {_percent(band.high)}), "
                f"chance {_percent(chance)}, p < {ALPHA}{advice}"
            )
            yield Finding(bench.bench, code, abs(band.share - chance), text)


def _of_pairs(check: PoolCheck) -> Iterator[Finding]:
    """What two benchmarks have in common; said of the one of which the larger share is in the other."""
    items = {bench.bench: bench.items for bench in check.benches}
    for pair in check.overlaps:
        sides = [("one", "other"), ("other", "one")]
        for mine, its in sides:
            count = pair[f"{mine}_gold_in_{its}"]
            if count and pair[mine] in items:
                said = _many(count, "item without a gold has", "items without a gold have")
                text = f"{said} one in {pair[its]}: same question, same options"
                yield Finding(pair[mine], "gold_elsewhere", count / items[pair[mine]], text)
        shares = {side: pair[f"{side}_items"] / items.get(pair[side], 10**9) for side, _ in sides}
        mine, its = max(sides, key=lambda side: shares[side[0]])
        said = _many(pair[f"{mine}_items"], "item has its", "items have their")
        text = f"{said} question and options in {pair[its]} too"
        yield Finding(pair[mine], "shared", shares[mine], text)


def _many(number: int, one: str, more: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {one if number == 1 else more}"


def _percent(share: float) -> str:
    """A share with one decimal."""
    return f"{100 * share:.1f} %"
