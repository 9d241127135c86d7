"""What the page says of the annotation itself: codes found in the items, and where the right answers stand."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchcheck.pool.issues import ISSUES
from benchcheck.report.findings import Row, Table, capped, rows_of
from benchcheck.screen.prompts import LETTERS

if TYPE_CHECKING:
    import duckdb

__all__ = ["Annotation", "GoldPositions", "annotation_of"]

MAX_LETTERS = 8
"""Letters with a column of their own; the others share one."""
_MIN_ITEMS = 20
_MIN_SHARE = 0.5
_MIN_RATIO = 1.5
"""Gold is called lopsided where one letter has more than half of 20 or more items and 1.5 times its chance."""


@dataclass(frozen=True, slots=True)
class GoldPositions:
    """How often the right answer of a benchmark's screened items stands at each letter."""

    bench: str
    items: int
    counts: tuple[int | None, ...]
    """Per letter, None where no item has that many options."""
    letter: str
    """The most frequent letter."""
    share: float
    chance: float
    """The share it would have if gold stood at every option alike."""

    @property
    def lopsided(self) -> bool:
        """Whether a model that prefers the letter would look as if it knew."""
        return self.items >= _MIN_ITEMS and self.share > _MIN_SHARE and self.share > _MIN_RATIO * self.chance

    def cells(self, shown: int) -> tuple[int | None, ...]:
        """The counts of the first letters; a last one adds up the others where there are more."""
        padded = (*self.counts, *[None] * (shown - len(self.counts)))
        rest = [count for count in padded[MAX_LETTERS:] if count is not None]
        return padded[:MAX_LETTERS] + ((sum(rest) if rest else None,) if shown > MAX_LETTERS else ())


@dataclass(frozen=True, slots=True)
class Annotation:
    """What was found wrong or odd in the items, whatever a model says of them."""

    coded: int
    """Items with at least one code."""
    blocked: int
    """Items with a code that keeps them from being screened."""
    issues: Table
    """Per benchmark and code: `bench`, `issue`, `meaning`, `blocks`, `items`, and the first ones' ids."""
    golds: Table
    lopsided: Table
    letters: int
    """The most options that a benchmark of `golds` has."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The letters' columns."""
        rest = (f"{LETTERS[MAX_LETTERS]} and later",) if self.letters > MAX_LETTERS else ()
        return (*LETTERS[: min(self.letters, MAX_LETTERS)], *rest)


def annotation_of(db: "duckdb.DuckDBPyConnection") -> Annotation:
    """Read what the assembled tables say of the annotation."""
    blocks = [code for code, known in ISSUES.items() if known.blocks]
    (counts,) = rows_of(
        db,
        "select count(*) filter (len(issues) > 0) as coded, "
        "count(*) filter (list_has_any(issues, ?)) as blocked from items",
        [blocks],
    )
    issues = [_issue(row) for row in rows_of(db, "select * from issue_kinds")]
    issues.sort(key=lambda row: (not row["blocks"], -row["items"], row["bench"], row["issue"]))
    golds = _golds(db)
    shown = capped(sorted(golds, key=lambda gold: (-gold.items, gold.bench)))
    return Annotation(
        coded=counts["coded"],
        blocked=counts["blocked"],
        issues=capped(issues),
        golds=Table(sorted(shown.rows, key=lambda gold: gold.bench), shown.cut),
        lopsided=capped([gold for gold in golds if gold.lopsided]),
        letters=max((len(gold.counts) for gold in shown.rows), default=0),
    )


def _issue(row: Row) -> Row:
    """Say what a code means; a pool that another tool made may hold others."""
    known = ISSUES.get(row["issue"])
    pairs = zip(row["examples"], row["source_ids"], strict=True)
    return row | {
        "meaning": known.meaning if known else "Not a code of benchcheck.",
        "blocks": known.blocks if known else False,
        "examples": ", ".join(name if name == source else f"{name} ({source})" for name, source in pairs),
    }


def _golds(db: "duckdb.DuckDBPyConnection") -> list[GoldPositions]:
    """Fold the positions of right answers into one row per benchmark."""
    groups: dict[str, list[Row]] = {}
    for row in rows_of(db, "select * from gold_positions order by bench, letter"):
        groups.setdefault(row["bench"], []).append(row)
    return [_positions(bench, rows) for bench, rows in groups.items()]


def _positions(bench: str, rows: list[Row]) -> GoldPositions:
    """Return where the right answers of one benchmark stand."""
    total = sum(row["items"] for row in rows)
    most = max(rows, key=lambda row: row["items"])
    return GoldPositions(
        bench=bench,
        items=total,
        counts=tuple(row["items"] for row in rows),
        letter=most["letter"],
        share=most["items"] / total,
        chance=most["expected"] / total,
    )
