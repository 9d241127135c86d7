"""The loop: step by step down the ladder, each until nothing is left to ask. It is synchronous and fits on a screen.

Concurrency lives in backends and executors only. The same call again continues where it stopped, after any crash.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from benchcheck.config import step_key
from benchcheck.run.accounting import increments, named_run, run_name
from benchcheck.run.local import Asked, Local
from benchcheck.run.lock import run_lock
from benchcheck.run.plan import Pool, Survey, Unit, load_pool, pilot_flags, read_step, survey
from benchcheck.run.shard import WHOLE, shard_flags, shard_units
from benchcheck.run.work import Progress, now
from benchcheck.screen.answers import Asking, retry_row
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import MAX_ERRORS, Flags, Mark
from benchcheck.settings import EngineSettings
from benchcheck.study import Study

__all__ = [
    "BenchLoss",
    "Executor",
    "FailureKind",
    "Reporter",
    "StepSummary",
    "retry_failed",
    "run_study",
    "screen",
    "step_warnings",
    "summarize",
    "summarize_all",
]


@dataclass(frozen=True, slots=True)
class FailureKind:
    """One kind of error among a step's failed items, with up to five of them."""

    kind: str
    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchLoss:
    """How many of a benchmark's items a step asked, and how many of those left."""

    bench: str
    asked: int
    removed: int
    failed: int


@dataclass(frozen=True, slots=True)
class StepSummary:
    """A step after a run (protocol 8). Counts are of items that were alive when they came to it."""

    step: Step
    alive: int
    answered: int
    removed: int
    waiting: int
    failed: int
    remaining: int
    asked_now: int
    wall_s: float
    losses: tuple[BenchLoss, ...]
    kinds: tuple[FailureKind, ...]
    ignored: int
    """Rows of another protocol or of changed items, left out."""
    unreadable: int
    """Lines that were no rows."""
    error_rows: int = 0
    """Tries that gave an error row, those of answered items included."""
    revisions: tuple[str, ...] = ()
    """The checkpoints that gave the answers."""
    worker_items_per_s: float = 0.0
    """Items per second of one worker, which is one GPU, in this run; opening the model does not count."""

    @property
    def items_per_s(self) -> float:
        """Items written per second in this run; opening the model counts."""
        return self.asked_now / self.wall_s if self.wall_s and self.asked_now else 0.0


class Reporter(Protocol):
    """Hears what a run does; the command line draws it."""

    def step_begins(self, step: Step, todo: int, waiting: int, blocked: int) -> None:
        """A step is about to ask `todo` items; `waiting` want frames, `blocked` an answer of an earlier step."""
        ...

    def advance(self, items: int, errors: int) -> None:
        """More items were written, some of them as error rows."""
        ...

    def step_ends(self, summary: StepSummary) -> None:
        """A step has nothing left to ask."""
        ...


class Executor(Protocol):
    """Says where a step's units run: on this machine, or on a cluster."""

    @property
    def workers(self) -> int:
        """Tasks among which units are dealt out."""
        ...

    def run(self, step: Step, tasks: Sequence[Sequence[Unit]], todo: frozenset[str], progress: Progress) -> None:
        """Do the units of every task, as far as their items are in `todo`.

        Raises:
            BackendError: a worker or an engine died; rows that were written stay.
        """
        ...

    def close(self) -> None:
        """End what runs."""
        ...


@named_run()
def screen(
    study: Study,
    executor: Executor,
    reporter: Reporter,
    pilot: int = 0,
    only: int = 0,
    shard: tuple[int, int] = WHOLE,
) -> Survey:
    """Run every step of a study until nothing is left to ask.

    Args:
        study: the study.
        executor: where units run.
        reporter: hears what happens.
        pilot: limits the run to a seeded sample of so many items of each benchmark; 0 is all.
        only: runs this step alone, on the items that are ready for it; 0 is all steps.
        shard: this run's share and how many there are; what becomes of an item depends on no other, so that a share
            goes down all steps by itself.

    Raises:
        StudyError: there is no pool, or the disk is full.
        UsageError: the backend or a checkpoint was refused.
        BackendError: an engine stopped answering; the same call continues.
    """
    pool = load_pool(study)
    wanted = shard_flags(pool, shard)
    if pilot:
        wanted = wanted & pilot_flags(pool, pilot, study.config.protocol.seed)
    tasks = shard_units(pool, shard, executor.workers)
    state = survey(study, pool)
    for index, step in enumerate(study.config.steps):
        if only not in (0, step.number):
            continue
        here, asked, start = state.fold.steps[index], 0, time.monotonic()
        blocked = np.count_nonzero(here.todo & ~here.ready & wanted)
        todo = frozenset(pool.ids(here.ready & wanted))
        reporter.step_begins(step, len(todo), int(np.count_nonzero(here.waiting)), int(blocked))
        # An item leaves the list with an answer, a lasting error or its third error row, so this ends by itself.
        for _ in range(MAX_ERRORS):
            if not todo:
                break
            executor.run(step, tasks, todo, reporter.advance)
            asked += len(todo)
            reports = {**state.reports, step.number: read_step(study, pool, step)}
            state = survey(study, pool, reports)
            todo = frozenset(pool.ids(state.fold.steps[index].ready & wanted))
        summary = summarize(study, state, index, asked, time.monotonic() - start)
        reporter.step_ends(replace(summary, worker_items_per_s=_worker_rate(study, step) if asked else 0.0))
    return state


def _worker_rate(study: Study, step: Step) -> float:
    """Return the items that a worker of this run wrote a second in a step."""
    mine = [line for line in increments(study) if line["run"] == run_name() and line["step"] == step.number]
    wall = sum(line["wall_s"] for line in mine)
    return float(sum(line["items"] for line in mine) / wall) if wall else 0.0


def retry_failed(study: Study, only: int = 0) -> int:
    """Give every item that failed another try, in one step or all (`only` = 0); returns how many items that are.

    Error rows stay where they are; a row is added that says they count no more. For failures whose cause is mended:
    frames that were damaged, an endpoint that was down.

    Raises:
        StudyError: the rows cannot be written.
    """
    state, given = survey(study), 0
    for here in state.fold.steps:
        if only not in (0, here.step.number):
            continue
        asking = Asking(study.config, here.step, step_key(study.config, here.step), "", {})
        rows: dict[str, list[dict[str, object]]] = {}
        failed = here.alive & (here.marks == Mark.FAILED)
        errors = state.reports[here.step.number].errors[failed].tolist()
        for item, count in zip(study.items(state.pool.ids(failed)), errors, strict=True):
            rows.setdefault(item.bench, []).append(retry_row(asking, item, count, now()))
        for bench, of_bench in rows.items():
            study.append(here.step.number, bench, None, of_bench)
            given += len(of_bench)
    return given


class _Silent:
    """A Reporter that hears and says nothing."""

    def step_begins(self, step: Step, todo: int, waiting: int, blocked: int) -> None: ...

    def advance(self, items: int, errors: int) -> None: ...

    def step_ends(self, summary: StepSummary) -> None: ...


def run_study(
    study: Study,
    backend: str = "transformers",
    workers: int = 0,
    pilot: int = 0,
    reporter: Reporter | None = None,
    settings: EngineSettings | None = None,
) -> tuple[StepSummary, ...]:
    """Run every step of a study on this machine, as `benchcheck screen` does, and return each step summed up.

    Raises:
        StudyError: there is no pool, or the disk is full.
        UsageError: the backend or a checkpoint was refused, or another run is at work on the study.
        BackendError: an engine stopped answering; the same call continues.
    """
    executor = Local(study, Asked(backend, settings or study.config.engine), workers, pilot)
    try:
        with run_lock(study):
            state = screen(study, executor, reporter or _Silent(), pilot)
    finally:
        executor.close()
    return summarize_all(study, state)


def summarize_all(study: Study, state: Survey) -> tuple[StepSummary, ...]:
    """Sum up every step of a survey."""
    return tuple(summarize(study, state, index) for index in range(len(study.config.steps)))


def summarize(study: Study, state: Survey, index: int, asked_now: int = 0, wall_s: float = 0.0) -> StepSummary:
    """Sum up one step of a survey; the last two arguments are what a run just did."""
    here = state.fold.steps[index]
    report = state.reports[here.step.number]
    passed, removed, failed = (here.count(mark) for mark in (Mark.PASSED, Mark.REMOVED, Mark.FAILED))
    return StepSummary(
        step=here.step,
        alive=int(np.count_nonzero(here.alive)),
        answered=passed + removed,
        removed=removed,
        waiting=int(np.count_nonzero(here.waiting)),
        failed=failed,
        remaining=int(np.count_nonzero(here.todo)),
        asked_now=asked_now,
        wall_s=wall_s,
        losses=_losses(state.pool, here.alive, here.marks),
        kinds=_kinds(study, state.pool, here.step, here.alive & (here.marks == Mark.FAILED)) if failed else (),
        ignored=report.other_key + report.other_item,
        unreadable=report.unreadable,
        error_rows=int(report.errors.sum()),
        revisions=report.revisions,
    )


def _losses(pool: Pool, alive: Flags, marks: "np.ndarray[tuple[int], np.dtype[np.int8]]") -> tuple[BenchLoss, ...]:
    """Count per benchmark what a step asked and removed."""
    losses = []
    for bench in pool.benches():
        here = marks[alive & (pool.bench == bench)]
        counts = [int(np.count_nonzero(here == mark)) for mark in (Mark.PASSED, Mark.REMOVED, Mark.FAILED)]
        losses.append(BenchLoss(bench, sum(counts), counts[1], counts[2]))
    return tuple(losses)


def _kinds(study: Study, pool: Pool, step: Step, failed: Flags) -> tuple[FailureKind, ...]:
    """Count the kinds of error among a step's failed items."""
    ids = set(pool.ids(failed))
    errors = study.answers(step.number, f"status = 'error' and step_key = '{step_key(study.config, step)}'").table
    last: Mapping[str, str] = {
        row["item_id"]: row["error"] for row in errors.select(["item_id", "error"]).to_pylist() if row["item_id"] in ids
    }
    kinds: dict[str, list[str]] = {}
    for item_id, kind in sorted(last.items()):
        kinds.setdefault(kind, []).append(item_id)
    return tuple(FailureKind(kind, len(of), tuple(of[:5])) for kind, of in sorted(kinds.items()))


def step_warnings(summary: StepSummary) -> Sequence[str]:
    """Return what a reader should distrust in a step (protocol 8).

    A benchmark of at least 20 asked items that lost at least 99 % or at most 1 %; more than 0.1 % failed; rows that
    were left out.
    """
    name = f"step {summary.step.number} ({summary.step.name})"
    warnings = [
        f"{name}: {loss.bench} lost {loss.removed} of {loss.asked} items ({loss.removed / loss.asked:.0%})"
        for loss in summary.losses
        if loss.asked >= 20 and not 0.01 < loss.removed / loss.asked < 0.99
    ]
    tried = summary.answered + summary.failed
    if tried and summary.failed / tried > 0.001:
        warnings.append(f"{name}: {summary.failed} of {tried} items failed ({summary.failed / tried:.1%})")
    elif summary.error_rows > 0.001 * (tried + summary.error_rows):
        warnings.append(f"{name}: {summary.error_rows} tries failed before their items were answered")
    if len(summary.revisions) > 1:
        loaded = " and ".join(revision[:19] for revision in summary.revisions)
        warnings.append(f"{name}: the answers come from {len(summary.revisions)} revisions of the model: {loaded}")
    if summary.ignored:
        warnings.append(f"{name}: {summary.ignored} rows of another protocol or of changed items were left out")
    if summary.unreadable:
        warnings.append(f"{name}: {summary.unreadable} lines were not readable as rows and were left out")
    return warnings
