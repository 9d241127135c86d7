"""What a run cost: lines kept beside the results while it goes on, summed up per step, unit and run.

A unit writes increments, not one line at its end, so that sums hold after `kill -9`: what is missing is what the
killed process did since its last line, and nothing is ever counted twice.
"""

import contextlib
import json
import os
import platform
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from benchcheck.files import append_rows, read_rows
from benchcheck.study import Study

__all__ = [
    "COLUMNS",
    "NOTE_SECONDS",
    "RUN",
    "Cost",
    "Meter",
    "costs",
    "increments",
    "named_run",
    "note_cost",
    "run_name",
    "summed",
]

NOTE_SECONDS = 10.0
"""Seconds between a unit's lines: a day on 8 GPUs is 69,000 lines of 500 bytes, and `status` is as fresh as this."""

RUN = "BENCHCHECK_RUN"
"""Environment variable that gives the workers of a run its name."""

_NEEDED = {
    "step": "INTEGER",
    "bench": "VARCHAR",
    "part": "INTEGER",
    "items": "BIGINT",
    "prompts": "BIGINT",
    "tokens": "BIGINT",
    "wall_s": "DOUBLE",
    "errors": "BIGINT",
    "model": "VARCHAR",
    "revision": "VARCHAR",
    "engine": "VARCHAR",
    "version": "VARCHAR",
    "dtype": "VARCHAR",
    "device": "VARCHAR",
    "at": "VARCHAR",
}
"""What every line has; one without is damaged."""
_LATER = {"run": "VARCHAR", "cached_tokens": "BIGINT", "kinds": "JSON", "host": "VARCHAR", "pid": "BIGINT"}
"""What lines of older studies lack."""
_SUMS = ("items", "prompts", "tokens", "cached_tokens", "wall_s", "errors")
_MOST = 10**14
"""More items, tokens or seconds than any line can stand for; 10,000 such lines still fit in 64 bits."""
_SAME = ("run", "step", "bench", "part", "model", "revision", "engine", "version", "dtype", "device", "host")
COLUMNS = (
    *("run", "step", "bench", "part", "items", "prompts", "tokens", "cached_tokens", "wall_s", "items_per_s"),
    *("prompts_per_s", "errors", "error_kinds", "model", "revision", "engine", "version", "dtype", "device", "host"),
    "at",
)
"""Columns of run_accounting.csv."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one unit cost in one run, or a part of it.

    `tokens` are those of the prompts, `cached_tokens` how many of them the engine had computed for another prompt
    before. `wall_s` is seconds from first prompt to last row, without opening the model.
    """

    step: int
    bench: str
    part: int
    items: int
    prompts: int
    tokens: int
    wall_s: float
    errors: int
    model: str
    revision: str
    engine: Mapping[str, str]
    at: str
    cached_tokens: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Errors by their kind."""
    run: str = ""
    host: str = ""
    pid: int = 0

    def row(self) -> dict[str, Any]:
        """This line as it is kept."""
        row = asdict(self)
        engine = row.pop("engine")
        row |= {"item_id": "", "engine": engine["name"]}
        return row | {name: engine[name] for name in ("version", "dtype", "device")}


def run_name() -> str:
    """Return the name of the run that this process belongs to; a worker that was given none is a run of its own."""
    return os.environ.get(RUN) or f"{platform.node()}-{os.getpid()}"


@contextlib.contextmanager
def named_run() -> Iterator[None]:
    """Name what happens inside, here and in worker processes, as one run: its start in UTC and four random digits.

    A name that was given from outside, such as a Slurm array's, stays.
    """
    if os.environ.get(RUN):
        yield
        return
    os.environ[RUN] = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    try:
        yield
    finally:
        del os.environ[RUN]


@dataclass(slots=True)
class Meter:
    """Counts what a unit costs and notes it in increments."""

    study: Study
    whole: Cost
    """Whose cost it is, with what was noted so far."""
    items: int = 0
    prompts: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def count(self, kind: str, prompts: int, tokens: int, cached_tokens: int) -> None:
        """Count an item whose row is about to be written; `kind` is that of its error, empty for an answer."""
        self.items += 1
        self.prompts += prompts
        self.tokens += tokens
        self.cached_tokens += cached_tokens
        if kind:
            self.kinds[kind] += 1

    def note(self, at: str, last: bool = False) -> None:
        """Write what was counted since the last line, when that is `NOTE_SECONDS` ago or the unit ends.

        Raises:
            StudyError: the line cannot be written.
        """
        wall = round(time.monotonic() - self.since, 3)
        if not self.items or not (last or wall >= NOTE_SECONDS):
            return
        part = replace(
            self.whole,
            items=self.items,
            prompts=self.prompts,
            tokens=self.tokens,
            cached_tokens=self.cached_tokens,
            wall_s=wall,
            errors=self.kinds.total(),
            kinds=dict(sorted(self.kinds.items())),
            at=at,
        )
        note_cost(self.study, part)
        self.whole = replace(
            part,
            items=self.whole.items + part.items,
            prompts=self.whole.prompts + part.prompts,
            tokens=self.whole.tokens + part.tokens,
            cached_tokens=self.whole.cached_tokens + part.cached_tokens,
            wall_s=round(self.whole.wall_s + wall, 3),
            errors=self.whole.errors + part.errors,
            kinds=dict(Counter(self.whole.kinds) + self.kinds),
        )
        self.items = self.prompts = self.tokens = self.cached_tokens = 0
        self.kinds, self.since = Counter(), time.monotonic()


def note_cost(study: Study, cost: Cost) -> None:
    """Append a line.

    Raises:
        StudyError: it cannot be written.
    """
    append_rows(study.accounting_file, [cost.row()])


def increments(study: Study) -> list[dict[str, Any]]:
    """Return every line so far, oldest first; a damaged one is left out, an older study's gets what it lacks.

    Raises:
        StudyError: the file cannot be read.
    """
    if not study.accounting_file.exists():
        return []
    table = read_rows([study.accounting_file], {"item_id": "VARCHAR", **_NEEDED, **_LATER}).table
    lines = []
    for row in table.select([*_NEEDED, *_LATER]).to_pylist():
        row |= {name: row[name] or "" for name in ("run", "host")}
        row |= {name: row[name] or 0 for name in ("cached_tokens", "pid")}
        # A cost that nothing can have would spoil every sum and estimate.
        if all(row[name] is not None for name in _NEEDED) and all(0 <= row[name] <= _MOST for name in _SUMS):
            lines.append(row | {"kinds": _counts(json.loads(row["kinds"] or "{}"))})
    return lines


def _counts(kinds: object) -> dict[str, int]:
    """Errors by their kind, as far as they are counts."""
    pairs = kinds.items() if isinstance(kinds, dict) else ()
    return {kind: count for kind, count in pairs if type(count) is int and 0 <= count <= _MOST}


def costs(study: Study) -> Sequence[Mapping[str, Any]]:
    """Return what every unit of every run cost so far, with the columns of run_accounting.csv, oldest first.

    Raises:
        StudyError: the file cannot be read.
    """
    return summed(increments(study))


def summed(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add up the lines of each unit and run; an older study's line, which names no run, stands for itself."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for number, line in enumerate(lines):
        own = () if line["run"] else (number,)
        groups.setdefault((*(line[name] for name in _SAME), *own), []).append(line)
    return [_one(group) for group in groups.values()]


def _one(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One unit's lines as one."""
    row: dict[str, Any] = dict(group[-1]) | {name: sum(line[name] for line in group) for name in _SUMS}
    kinds: Counter[str] = Counter()
    for line in group:
        kinds.update(line["kinds"])
    row["wall_s"] = round(row["wall_s"], 3)
    for name, number in (("items_per_s", row["items"]), ("prompts_per_s", row["prompts"])):
        row[name] = round(number / row["wall_s"], 3) if row["wall_s"] else 0.0
    row["error_kinds"] = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return {name: row[name] for name in COLUMNS}
