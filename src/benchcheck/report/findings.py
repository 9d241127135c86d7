"""What the page says in numbers, read from the assembled tables: counts, shares and tables of bounded length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchcheck.screen.steps import Step
from benchcheck.video.faults import CURES

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "MEANINGS",
    "REMOVED",
    "Fate",
    "Findings",
    "Part",
    "Row",
    "Score",
    "Table",
    "capped",
    "find",
    "rows_of",
    "verdict_name",
]

Row = dict[str, Any]

MAX_ROWS = 40
"""Rows of a table on the page; pool.duckdb has all of them."""

REMOVED = ("shortcut", "saturation")
"""The two ways to be removed, which are never added up to one rate."""

MEANINGS: Mapping[str, str] = {
    "kept": "passed every step",
    "shortcut": "answered from less than the video in order: its text, its options, one frame, or frames in any order",
    "saturation": "answered by a model that watched the frames in order: not flawed, but no longer hard",
    "failed": "could not be read: neither removed nor kept",
    "waiting": "no frames of its video yet",
    "pending": "a step has still to ask it",
    "not_screened": "an open question, no usable answer, or left out by the sample",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for the page, and how many were left out."""

    rows: Sequence[Any]
    cut: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a whole: its name, count, and where it lies in a bar of 100."""

    name: str
    items: int
    share: float
    start: float


@dataclass(frozen=True, slots=True)
class Fate:
    """Where the items of a group went: a part per step, then kept, failed, waiting, pending, not screened."""

    group: str
    bench: str
    items: int
    parts: tuple[Part, ...]

    def share(self, name: str) -> Part:
        """Return a part by its name."""
        return next(part for part in self.parts if part.name == name)


@dataclass(frozen=True, slots=True)
class Score:
    """A class's accuracy in every step, beside what guessing gives; None where a step has no answer of it."""

    group: str
    cells: tuple[Row | None, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All numbers of the page."""

    total: int
    screened: int
    verdicts: tuple[Part, ...]
    """Items per name of `MEANINGS`."""
    overall: Fate
    """The fate of the whole pool."""
    funnel: Sequence[Row]
    benchmarks: Table
    """`bench`, its fate, and per step what was answered and removed."""
    classes: Table
    scores: Table
    categories: Table
    waits: Table
    """Why items wait: per status of their videos `items`, `cure` and an `example`; status '' was not tried."""
    errors: Table
    warnings: Table
    costs: Table
    engines: Table
    steps: Sequence[Row]
    settings: Mapping[str, str]

    def count(self, verdict: str) -> int:
        """How many items got a verdict; the removed ones by `shortcut` or `saturation`."""
        return next(part.items for part in self.verdicts if part.name == verdict)


def rows_of(db: "duckdb.DuckDBPyConnection", query: str, values: Sequence[Any] = ()) -> list[Row]:
    """Return a query's rows by column."""
    cursor = db.execute(query, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def verdict_name(name: str, steps: Sequence[Step]) -> str:
    """Name a verdict for a person, the removed ones with the study's steps that remove so."""
    if name not in REMOVED:
        return name.replace("_", " ")
    numbers = [str(step.number) for step in steps if step.kind == name]
    where = f"step{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}" if numbers else "no step of this study"
    way = "a shortcut" if name == "shortcut" else name
    return f"removed by {way} ({where})"


def capped(rows: Sequence[Any], limit: int = MAX_ROWS) -> Table:
    """Keep a table's first rows."""
    return Table(rows[:limit], max(0, len(rows) - limit))


def find(db: "duckdb.DuckDBPyConnection") -> Findings:
    """Read everything that the page counts."""
    steps = rows_of(db, "select * from steps order by step")
    counts = _counts(db, _VERDICTS)
    total = sum(counts.values())
    numbers = [row["step"] for row in steps]
    return Findings(
        total=total,
        screened=total - counts.get("not_screened", 0),
        verdicts=_parts([(name, counts.get(name, 0)) for name in MEANINGS], total),
        overall=_overall(db, numbers, total),
        funnel=rows_of(db, "select * from funnel"),
        benchmarks=_benchmarks(db, numbers),
        classes=_fates(rows_of(db, _CLASSES), numbers),
        scores=_scores(db, numbers),
        categories=_categories(db, numbers),
        waits=_waits(db),
        errors=capped(rows_of(db, "select * from error_kinds order by step, items desc, error")),
        warnings=capped([row["warning"] for row in rows_of(db, "select warning from warnings")]),
        costs=capped(rows_of(db, _COSTS)),
        engines=capped(rows_of(db, "select * from engines")),
        steps=steps,
        settings={row["name"]: row["value"] for row in rows_of(db, "select * from settings")},
    )


_VERDICTS = """
select if(v.verdict = 'removed', split_part(s.measures, ':', 1), v.verdict) as name, count(*) as items
from verdicts v left join steps s on s.step = v.left_at group by all
"""
_CLASSES = "select class as name, '' as bench, verdict, left_at, items from class_verdicts"
_WAITS = """
select coalesce(w.status, '') as status, count(*) as items, min(v.item_id) as example
from verdicts v join items i using (item_id)
left join videos w on w.frames_key = i.frames_key and w.status <> 'ready'
where v.verdict = 'waiting' group by all order by items desc, status
"""
_COSTS = """
select step, model, revision, engine, version, dtype, device, count(*) as units, sum(items)::bigint as items,
  sum(prompts)::bigint as prompts, sum(tokens)::bigint as tokens, sum(cached_tokens)::bigint as cached,
  sum(errors)::bigint as errors, sum(wall_s) as wall_s,
  sum(items) / nullif(sum(wall_s), 0) as items_per_s
from runs group by all order by all
"""


def _counts(db: "duckdb.DuckDBPyConnection", query: str) -> dict[str, int]:
    """Return a query's `items` by `name`."""
    return {row["name"]: row["items"] for row in rows_of(db, query)}


def _parts(counts: Sequence[tuple[str, int]], total: int) -> tuple[Part, ...]:
    """Lay counts end to end along a bar of 100."""
    parts, done = [], 0
    for name, items in counts:
        parts.append(Part(name, items, items / total if total else 0.0, round(100 * done / max(total, 1), 3)))
        done += items
    return tuple(parts)


def _overall(db: "duckdb.DuckDBPyConnection", steps: Sequence[int], total: int) -> Fate:
    """Return the fate of the whole pool."""
    query = "select '' as name, '' as bench, verdict, left_at, count(*) as items from verdicts group by all"
    fates = _fates(rows_of(db, query), steps).rows
    return fates[0] if fates else Fate("", "", total, ())


def _fates(rows: Sequence[Row], steps: Sequence[int], limit: int = MAX_ROWS) -> Table:
    """Fold rows of name, bench, verdict, left_at and items into one fate per group, the largest groups first."""
    names = [f"step{number}" for number in steps] + [name for name in MEANINGS if name not in REMOVED]
    groups: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        name = f"step{row['left_at']}" if row["verdict"] == "removed" else row["verdict"]
        counts = groups.setdefault((row["bench"], row["name"]), dict.fromkeys(names, 0))
        counts[name] += row["items"]
    fates = [
        Fate(name, bench, total, _parts(list(counts.items()), total))
        for (bench, name), counts in groups.items()
        for total in [sum(counts.values())]
    ]
    ordered = sorted(fates, key=lambda fate: (-fate.items, fate.bench, fate.group))
    kept = sorted(ordered[:limit], key=lambda fate: (fate.bench, fate.group))
    return Table(kept, max(0, len(fates) - limit))


def _benchmarks(db: "duckdb.DuckDBPyConnection", steps: Sequence[int]) -> Table:
    """Return every benchmark's fate with what each step answered of it and removed."""
    query = "select bench as name, bench, verdict, left_at, items from by_benchmark"
    fates = _fates(rows_of(db, query), steps)
    cells: dict[tuple[str, int], Row] = {
        (row["bench"], row["step"]): row for row in rows_of(db, "select * from benchmark_steps")
    }
    rows = [(fate, tuple(cells.get((fate.bench, number)) for number in steps)) for fate in fates.rows]
    return Table(rows, fates.cut)


def _categories(db: "duckdb.DuckDBPyConnection", steps: Sequence[int]) -> Table:
    """Return the fates of categories, where any item has one; those without are `(none)`, so that rows add up."""
    query = (
        "select coalesce(nullif(category, ''), '(none)') as name, bench, verdict, left_at, items from by_category "
        "where exists (from items where category <> '')"
    )
    return _fates(rows_of(db, query), steps)


def _waits(db: "duckdb.DuckDBPyConnection") -> Table:
    """Return why items wait for frames, the most items first."""
    cures = {**CURES, "": "run benchcheck frames extract"}
    return capped([row | {"cure": cures.get(row["status"], "")} for row in rows_of(db, _WAITS)])


def _scores(db: "duckdb.DuckDBPyConnection", steps: Sequence[int]) -> Table:
    """Return the accuracy of every class in every step."""
    groups: dict[str, dict[int, Row]] = {}
    for row in rows_of(db, "select * from by_class order by class"):
        groups.setdefault(row["class"], {})[row["step"]] = row
    return capped([Score(name, tuple(cells.get(step) for step in steps)) for name, cells in groups.items()])
