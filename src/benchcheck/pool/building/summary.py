"""What a build found: counts per benchmark, the manifest's rows and the warnings that a user should read. Pure."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchcheck.pool.issues import ISSUES, blocking
from benchcheck.pool.specs import CHECKED

__all__ = ["MANIFEST_COLUMNS", "BenchSummary", "PoolSummary", "Tally"]

MANIFEST_COLUMNS = {
    "bench": "the benchmark",
    "rows": "items",
    "mcq": "items that are screened",
    "open": "items that are kept and never screened",
    "issues": "items with any issue",
    "source": "where the annotation files come from, `repository@commit`; the files, where the spec does not say",
    "spec": "the spec's name or path",
    "issue_counts": "items per issue code, as JSON",
    "drift": "what differs from the counts that the spec expects; empty: nothing",
    "files": "SHA-256 of every annotation file and of the errata, as JSON",
    "licence": "licence of the annotation files",
    "redistributable": "whether it lets them be passed on",
    "checked": f"how far the spec was checked: {', '.join(f'`{level}`' for level in CHECKED)}",
    "options": "multiple-choice items per number of options, as JSON",
    "left_out": "records of another split or set (`where` of the spec): no items",
    "join_left": "records of the joined file that no record of the first asked for",
}
"""Columns of pool_schema_manifest.csv, each with what it holds; docs/results.md says the same, a test compares them."""

MAX_WARNINGS = 20
"""Lines that a user still reads."""


@dataclass(slots=True)
class Tally:
    """What some items of one benchmark, one after another in its files, add to its summary."""

    rows: int = 0
    mcq: int = 0
    with_issues: int = 0
    issue_counts: Counter[str] = field(default_factory=Counter)
    options: Counter[int] = field(default_factory=Counter)
    """Multiple-choice items per number of options."""
    examples: dict[str, str] = field(default_factory=dict)
    """Per code the first case: file, place and value."""
    errata: set[str] = field(default_factory=set)
    """Source ids that an erratum was found for."""
    left_out: int = 0

    def add(self, later: "Tally") -> None:
        """Add the items that come next in the files."""
        self.rows += later.rows
        self.mcq += later.mcq
        self.with_issues += later.with_issues
        self.issue_counts.update(later.issue_counts)
        self.options.update(later.options)
        self.examples = later.examples | self.examples
        self.errata |= later.errata
        self.left_out += later.left_out


@dataclass(slots=True)
class BenchSummary(Tally):
    """What a build found in one benchmark."""

    bench: str = ""
    spec: str = ""
    source: str = ""
    licence: str = ""
    redistributable: bool = False
    checked: str = ""
    files: dict[str, str] = field(default_factory=dict)
    drift: str = ""
    join_left: int = 0
    missing_errata: tuple[str, ...] = ()
    """Ids of the errata that no item has."""

    @property
    def open(self) -> int:
        """Items that are kept and never screened."""
        return self.rows - self.mcq

    @property
    def blocked(self) -> dict[str, int]:
        """Items per code that keeps them from being screened."""
        return {code: count for code, count in sorted(self.issue_counts.items()) if blocking(code)}

    @property
    def notes(self) -> list[str]:
        """What is odd about the benchmark as a whole, one line each."""
        lines = [f"{self.bench}: {self.drift}"] if self.drift else []
        if self.missing_errata:
            shown = ", ".join(map(repr, self.missing_errata[:5]))
            more = f" and {len(self.missing_errata) - 5} more" if len(self.missing_errata) > 5 else ""
            lines.append(f"{self.bench}: errata for ids that no item has: {shown}{more}")
        if self.join_left:
            lines.append(f"{self.bench}: {self.join_left:,} of the joined file's records belong to none of the first")
        return lines

    @property
    def warnings(self) -> list[str]:
        """Its notes, and one line per code that keeps items from being screened."""
        return self.notes + [
            f"{self.bench}: {count} not screened: {code} ({ISSUES[code].meaning}) First: {self.examples[code]}"
            for code, count in self.blocked.items()
        ]

    def row(self) -> dict[str, str]:
        """The manifest's row."""
        return {
            "bench": self.bench,
            "rows": str(self.rows),
            "mcq": str(self.mcq),
            "open": str(self.open),
            "issues": str(self.with_issues),
            "source": self.source,
            "spec": self.spec,
            "issue_counts": json.dumps(dict(sorted(self.issue_counts.items()))),
            "drift": self.drift,
            "files": json.dumps(self.files, ensure_ascii=False),
            "licence": self.licence,
            "redistributable": str(self.redistributable).lower(),
            "checked": self.checked,
            "options": json.dumps(dict(sorted(self.options.items()))),
            "left_out": str(self.left_out),
            "join_left": str(self.join_left),
        }


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """What a build found, benchmark by benchmark, in the config's order."""

    benches: tuple[BenchSummary, ...]
    changed: int = 0
    """Ids of the pool before that now stand for another text, gold or video."""

    @property
    def rows(self) -> int:
        """All items."""
        return sum(bench.rows for bench in self.benches)

    @property
    def mcq(self) -> int:
        """Items that are screened."""
        return sum(bench.mcq for bench in self.benches)

    @property
    def open(self) -> int:
        """Items that are kept and never screened."""
        return self.rows - self.mcq

    @property
    def issue_counts(self) -> Counter[str]:
        """Items per issue code."""
        return sum((bench.issue_counts for bench in self.benches), Counter())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should read after a build: at most 20 lines, those of many benchmarks put together by code."""
        lines = [line for bench in self.benches for line in bench.warnings]
        if len(lines) > MAX_WARNINGS:
            lines = _shortened([line for bench in self.benches for line in bench.notes], _by_code(self.benches))
        if self.changed:
            lines.append(
                f"{self.changed} items of the pool before have another text, gold or video now, under the same id: "
                "answers to the old ones are left out, and these items are asked again"
            )
        return tuple(lines)


def _by_code(benches: Iterable[BenchSummary]) -> list[str]:
    """One line per code that keeps items from being screened, the code with the most items first."""
    found: dict[str, list[BenchSummary]] = {}
    for bench in benches:
        for code in bench.blocked:
            found.setdefault(code, []).append(bench)
    total = {code: sum(bench.blocked[code] for bench in those) for code, those in found.items()}
    lines = []
    for code in sorted(found, key=lambda code: (-total[code], code)):
        those = sorted(found[code], key=lambda bench: (-bench.blocked[code], bench.bench))
        named = ", ".join(f"{bench.bench} {bench.blocked[code]:,}" for bench in those[:3])
        more = f" and {len(those) - 3} more benchmarks" if len(those) > 3 else ""
        lines.append(
            f"{total[code]:,} not screened: {code} ({ISSUES[code].meaning}) {named}{more}. "
            f"First: {found[code][0].examples[code]}"
        )
    return lines


def _shortened(notes: Sequence[str], codes: Sequence[str]) -> list[str]:
    """As many lines as a user reads, half of them for the codes where there are too many of both, and what is not said.

    One line of the 20 is kept for the change of a pool, and one for the rest.
    """
    room = MAX_WARNINGS - 2
    for_codes = min(len(codes), max(room // 2, room - len(notes)))
    shown = [*notes[: room - for_codes], *codes[:for_codes]]
    rest = len(notes) + len(codes) - len(shown)
    where = "the manifest (issue_counts, drift) has them all, and benchcheck pool check counts them"
    return [*shown, f"and {rest} more warnings: {where}"] if rest else shown
