"""The plan: alive minus answered is what is left to ask, derived from rows on disk and the step key.

Needs no GPU and no model. A plan over 300,000 items with a full step on disk takes about 2 s on two cores.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchcheck.config import step_key
from benchcheck.errors import UsageError
from benchcheck.screen.readings import PERMANENT_FAILURES
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import Flags, Fold, Marks, Rule, State, StepRows, errors_of, fold, marks_of
from benchcheck.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MAX_UNIT",
    "Pool",
    "StepReport",
    "Survey",
    "Totals",
    "Unit",
    "assign_units",
    "load_pool",
    "pilot_flags",
    "plan_units",
    "read_step",
    "slurm_task",
    "step_index",
    "survey",
    "totals",
    "units_of",
]

MAX_UNIT = 20_000
"""Items a unit has at most (protocol 7)."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of one benchmark's items in one step: what a worker does. `part` counts from 0."""

    bench: str
    part: int
    parts: int
    item_ids: tuple[str, ...]

    @property
    def file_part(self) -> int | None:
        """The `<j>` of `<bench>.p<j>.jsonl`, None where the benchmark is one unit."""
        return self.part if self.parts > 1 else None


def plan_units(work: Sequence[tuple[str, Sequence[str]]], max_unit: int = MAX_UNIT) -> list[Unit]:
    """Split each benchmark's items, sorted by id, in equal parts of at most `max_unit` (golden `plan_units`)."""
    units = []
    for bench, ids in work:
        ordered = sorted(ids)
        parts = max(1, -(-len(ordered) // max_unit))
        size = -(-len(ordered) // parts)
        units += [Unit(bench, part, parts, tuple(ordered[part * size :][:size])) for part in range(parts)]
    return units


def assign_units(units: Sequence[Unit], n_tasks: int) -> list[list[Unit]]:
    """Give units to tasks, largest first to the least loaded, ties to the lowest task (golden `plan_units`)."""
    tasks: list[list[Unit]] = [[] for _ in range(n_tasks)]
    loads = [0] * n_tasks
    for unit in sorted(units, key=lambda unit: (-len(unit.item_ids), unit.bench, unit.part)):
        task = loads.index(min(loads))
        tasks[task].append(unit)
        loads[task] += len(unit.item_ids)
    return tasks


def slurm_task(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return this task's number and the number of tasks; outside Slurm 0 of 1 (golden `slurm_task`).

    Raises:
        UsageError: the array has holes, or the number lies outside it.
    """
    names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_COUNT")
    values = {}
    for name in names:
        text = environment.get(name)
        if text is not None and not re.fullmatch(r"\d{1,9}", text):
            raise UsageError(f"{name} = {text!r} is not a number of an array task")
        values[name] = None if text is None else int(text)
    number, low, high, count = (values[name] for name in names)
    if number is None:
        return 0, 1
    low = low or 0
    span = None if high is None else high - low + 1
    total = count if count is not None else span
    if total is None or (span is not None and span != total):
        raise UsageError(
            f"the Slurm array has holes or no size (min {low}, max {high}, count {count}). "
            "Cure: submit it as --array=0-N without a step"
        )
    if not 0 <= number - low < total:
        raise UsageError(f"SLURM_ARRAY_TASK_ID = {number} lies outside the array {low} to {low + total - 1}")
    return number - low, total


@dataclass(frozen=True, slots=True)
class Pool:
    """What planning needs of every item, one entry per item in the pool's order."""

    item_id: "pa.Array"
    digest: "pa.Array"
    bench: NDArray[np.object_]
    frames_key: NDArray[np.object_]
    screenable: Flags

    def __len__(self) -> int:
        """Number of items."""
        return len(self.item_id)

    def benches(self) -> list[str]:
        """The benchmarks, in the pool's order."""
        return list(dict.fromkeys(self.bench.tolist()))

    def ids(self, flags: Flags) -> list[str]:
        """Return the ids of the flagged items."""
        import pyarrow as pa

        return [str(item_id) for item_id in self.item_id.filter(pa.array(flags)).to_pylist()]


def load_pool(study: Study) -> Pool:
    """Read what planning needs of the pool.

    Raises:
        StudyError: there is no pool yet, or its file is damaged.
    """
    import pyarrow.compute as pc

    table = study.item_table(["item_id", "bench", "format", "item_digest", "frames_key"]).combine_chunks()
    column = {name: table.column(name).combine_chunks() for name in table.column_names}
    return Pool(
        item_id=column["item_id"],
        digest=column["item_digest"],
        bench=column["bench"].to_numpy(zero_copy_only=False),
        frames_key=column["frames_key"].to_numpy(zero_copy_only=False),
        screenable=pc.equal(column["format"], "mcq").to_numpy(zero_copy_only=False),
    )


@dataclass(frozen=True, slots=True)
class StepReport:
    """A step's marks, and the rows that were left out of them."""

    marks: Marks
    errors: NDArray[np.int64]
    """Errors of every item (`verdicts.errors_of`), those that count no more included."""
    other_key: int
    """Rows of another protocol (model, revision, prompt, orders, frames)."""
    other_item: int
    """Rows of an item that is not in the pool, or whose text has changed since."""
    unreadable: int
    """Lines torn by a killed writer, or damaged."""
    revisions: tuple[str, ...] = ()
    """The checkpoints that gave the answers; more than one means that a folder's weights changed under its name."""


def read_step(study: Study, pool: Pool, step: Step) -> StepReport:
    """Read a step's rows and fold them into one mark per item of the pool.

    Raises:
        StudyError: a file of rows cannot be read.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = study.rows(step.number)
    table = rows.table
    if not len(table):
        nothing = np.zeros(len(pool), dtype=np.int64)
        return StepReport(nothing.astype(np.int8), nothing, 0, 0, rows.unreadable)
    position = pc.index_in(table.column("item_id"), value_set=pool.item_id)
    known = pc.equal(table.column("item_digest"), pool.digest.take(position.combine_chunks()))
    same_key = pc.fill_null(pc.equal(table.column("step_key"), step_key(study.config, step)), fill_value=False)
    same_item = pc.fill_null(known, fill_value=False)
    use = pc.and_(same_key, same_item)
    table, position = table.filter(use), position.filter(use)
    permanent = pc.is_in(table.column("error"), value_set=pa.array(sorted(PERMANENT_FAILURES)))
    n_same_key, n_usable = pc.sum(same_key).as_py() or 0, len(table)
    whole = _whole(table)
    table, position, permanent = table.filter(whole), position.filter(whole), permanent.filter(whole)
    columns = StepRows(
        item=position.to_numpy().astype(np.int64),
        good=pc.equal(table.column("status"), "ok").to_numpy(),
        permanent=permanent.to_numpy(),
        n_right=pc.fill_null(table.column("n_right"), 0).to_numpy().astype(np.int64),
        n_perm=pc.fill_null(table.column("n_perm"), 1).to_numpy().astype(np.int64),
        margin=pc.fill_null(table.column("mean_margin"), 0.0).to_numpy(),
        retry=pc.fill_null(pc.equal(table.column("status"), "retry"), fill_value=False).to_numpy(),
        forgives=pc.fill_null(table.column("forgives"), 0).to_numpy().astype(np.int64),
    )
    protocol = study.config.protocol
    marks = marks_of(columns, len(pool), Rule(protocol.right_share, protocol.margin))
    errors = errors_of(columns, len(pool))
    unreadable = rows.unreadable + n_usable - len(table)
    answers = table.filter(pc.equal(table.column("status"), "ok"))
    revisions = tuple(sorted(pc.unique(answers.column("revision").drop_null()).to_pylist()))
    return StepReport(marks, errors, len(rows.table) - n_same_key, n_same_key - n_usable, unreadable, revisions)


def _whole(table: "pa.Table") -> "pa.ChunkedArray":
    """Flag rows that are what they say: errors, tries and answers with all their numbers.

    A damaged answer is neither an answer nor an error: it is counted as unreadable and its item is asked again.
    """
    import pyarrow.compute as pc

    status, right, orders = (table.column(name) for name in ("status", "n_right", "n_perm"))
    sound = pc.and_(pc.and_(pc.greater_equal(right, 0), pc.less_equal(right, orders)), pc.greater(orders, 0))
    sound = pc.and_(sound, pc.is_finite(table.column("mean_margin")))
    answer = pc.and_(pc.equal(status, "ok"), pc.fill_null(sound, fill_value=False))
    other = pc.or_(pc.equal(status, "error"), pc.equal(status, "retry"))
    return pc.fill_null(pc.or_(answer, other), fill_value=False)


def framed_flags(study: Study, pool: Pool) -> Flags:
    """Flag the items whose frames are on disk."""
    ready = study.frames_ready()
    return np.fromiter((key in ready for key in pool.frames_key), dtype=np.bool_, count=len(pool))


def pilot_flags(pool: Pool, n: int, seed: int) -> Flags:
    """Flag a seeded sample of at most `n` screenable items of every benchmark; the same on every machine.

    A larger sample holds every smaller one, so that a pilot's answers count in a larger pilot and in a sample.
    """
    chosen: set[str] = set()
    for bench in pool.benches():
        ids = sorted(pool.ids(pool.screenable & (pool.bench == bench)))
        chosen.update(random.Random(f"{seed}|pilot|{bench}").sample(ids, len(ids))[:n])
    return np.fromiter((item_id in chosen for item_id in pool.item_id.to_pylist()), dtype=np.bool_, count=len(pool))


def step_index(study: Study, number: int) -> int:
    """Return the place of a step in the study's ladder.

    Raises:
        UsageError: the study has no such step.
    """
    steps = study.config.protocol.steps
    if number not in steps:
        raise UsageError(f"--step {number} is not a step of this study. Allowed: {', '.join(map(str, steps))}")
    return steps.index(number)


def units_of(pool: Pool, n_tasks: int) -> list[list[Unit]]:
    """Return the units of every task over all screenable items; the same on every machine, whatever is answered.

    A unit is small enough that every task gets one, and never larger than `MAX_UNIT`.
    """
    work = [(bench, pool.ids(pool.screenable & (pool.bench == bench))) for bench in pool.benches()]
    share = -(-sum(len(ids) for _, ids in work) // n_tasks)
    return assign_units(plan_units(work, min(MAX_UNIT, max(1, share))), n_tasks)


@dataclass(frozen=True, slots=True)
class Totals:
    """What the last lines of `plan` say (protocol 8)."""

    waiting: int
    """Items that are alive and that a frame step cannot ask yet."""
    failed: int
    remaining: int
    """The most that may still be asked, in items over all steps: 0 is complete."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Where a study stands: every item's state, and the rows of each step that were left out."""

    pool: Pool
    fold: Fold
    framed: Flags
    reports: Mapping[int, StepReport]


def survey(study: Study, pool: Pool | None = None, cached: Mapping[int, StepReport] | None = None) -> Survey:
    """Look at a study's pool, frames and rows; `cached` steps are not read again.

    Raises:
        StudyError: there is no pool yet, or a file cannot be read.
    """
    pool = pool or load_pool(study)
    config = study.config
    reports = {step.number: (cached or {}).get(step.number) or read_step(study, pool, step) for step in config.steps}
    asked: Flags | None = None
    if not config.protocol.cascade:
        asked = pool.screenable
        if config.protocol.sample:
            asked = pilot_flags(pool, config.protocol.sample, config.protocol.seed)
    framed = framed_flags(study, pool)
    marks = {number: report.marks for number, report in reports.items()}
    return Survey(pool, fold(config.steps, marks, pool.screenable, framed, asked), framed, reports)


def totals(state: Survey, step: int = 0, wanted: Flags | None = None) -> Totals:
    """Sum up a survey; `step` limits it to one step (0 is all), `wanted` to the flagged items, such as a pilot's."""
    folds = [here for here in state.fold.steps if step in (0, here.step.number)]
    wanted = np.ones(len(state.pool), dtype=np.bool_) if wanted is None else wanted
    failed = state.fold.state == State.FAILED
    alive = (state.fold.state == State.WAITING) | (state.fold.state == State.PENDING)
    if step:
        failed &= state.fold.left_at == step
        alive = folds[0].alive
    waiting = np.zeros(len(state.pool), dtype=np.bool_)
    for here in folds:
        waiting |= here.waiting & alive
    remaining = sum(int(np.count_nonzero(here.todo & wanted)) for here in folds)
    return Totals(int(np.count_nonzero(waiting & wanted)), int(np.count_nonzero(failed & wanted)), remaining)
