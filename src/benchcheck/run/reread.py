"""Reading a sample again: rows of their own, never mixed with answers, and the noise that they show.

The sample is drawn by the study's seed, per benchmark and step, from the items that are answered. The same command
continues where it stopped: what was read again under the same step key is not asked again.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from benchcheck.config import step_key
from benchcheck.errors import StudyError, UsageError
from benchcheck.files import read_rows
from benchcheck.pool.items import Item
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import Pool, Unit, load_pool, read_step, step_index
from benchcheck.screen.noise import Noise, Twice, leads, noise_of, unsure, within
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import Mark, Rule
from benchcheck.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LEAST", "Again", "StepNoise", "Watch", "reread", "sample", "step_noise"]

LEAST = 20
"""Items of a benchmark and step that are read again, where there are as many, however small the share."""


_MOST_NATS = 1e6
"""No log-probability lies further from 0; sums of those that are within are finite."""


class Watch(Protocol):
    """Hears what is being read again; the bars of a run do."""

    def step_begins(self, step: Step, todo: int, waiting: int, blocked: int) -> None:
        """A step's sample is about to be asked."""
        ...

    def advance(self, items: int, errors: int) -> None:
        """More items were written, some of them as error rows."""
        ...

    def close(self) -> None:
        """The step's sample is done."""
        ...


class Again(Study):
    """A study as a second reading sees it: the same config, pool and frames, its rows and their cost elsewhere."""

    def step_folder(self, step: int) -> Path:
        """Folder of a step's second readings."""
        return self.reread_folder(step)

    @property
    def accounting_file(self) -> Path:
        """What second readings cost; the study's own accounting and estimates stay as they are."""
        return self.logs / "reread_accounting.jsonl"

    def items(self, item_ids: Iterable[str] | None = None) -> list[Item]:
        """Return items in a mixed order, so that they meet other neighbours than the first time."""
        items = super().items(item_ids)
        random.Random(f"{self.config.protocol.seed}|reread|{len(items)}").shuffle(items)
        return items


def sample(ids: Sequence[str], share: float, key: str) -> list[str]:
    """Return a share of ids, at least `LEAST` where there are as many; drawn by a hash, so that it only ever grows."""
    count = max(LEAST, -(-len(ids) * share // 1))
    ordered = sorted(ids, key=lambda item_id: (hashlib.sha256(f"{key}|{item_id}".encode()).digest(), item_id))
    return sorted(ordered[: int(count)])


def reread(
    study: Study, asked: Asked, *, share: float = 0.02, only: int = 0, again: bool = False, watch: Watch | None = None
) -> dict[int, int]:
    """Read a sample of the answered items again; returns how many items that were, by step.

    Args:
        study: the study.
        asked: what reads, which need not be what read first.
        share: of the answered items of each benchmark and step.
        only: this step alone; 0 is all.
        again: asks what was read again before once more; every reading counts.
        watch: hears what happens.

    Raises:
        StudyError: there is no pool, or rows cannot be written.
        UsageError: the share is none, the step is not one of the study's, or the backend was refused.
        BackendError: the engine stopped answering; the same call continues.
    """
    if not 0 < share <= 1:
        raise UsageError(f"--share {share} is no share. Allowed: above 0, up to 1")
    if only:
        step_index(study, only)
    second, pool, counts = Again(study.root, study.config), load_pool(study), dict[int, int]()
    executor = Local(second, asked, workers=1)
    try:
        for step in study.config.steps:
            if only not in (0, step.number):
                continue
            units = _units((study, second), pool, step, share, again=again)
            todo = frozenset(item for unit in units for item in unit.item_ids)
            counts[step.number] = len(todo)
            if todo:
                _run(executor, step, units, todo, watch)
    finally:
        executor.close()
    return counts


def _run(executor: Local, step: Step, units: Sequence[Unit], todo: frozenset[str], watch: Watch | None) -> None:
    """Ask a step's sample."""
    if watch is None:
        executor.run(step, [units], todo, lambda _items, _errors: None)
        return
    watch.step_begins(step, len(todo), 0, 0)
    try:
        executor.run(step, [units], todo, watch.advance)
    finally:
        watch.close()


def _units(studies: tuple[Study, Study], pool: Pool, step: Step, share: float, *, again: bool) -> list[Unit]:
    """Return what is to be read again, a unit a benchmark."""
    study, second = studies
    marks = read_step(study, pool, step).marks
    answered = (marks == Mark.PASSED) | (marks == Mark.REMOVED)
    before = set() if again else set(pool.ids(read_step(second, pool, step).marks >= Mark.PASSED))
    units = []
    for bench in pool.benches():
        key = f"{study.config.protocol.seed}|reread|{step.number}|{bench}"
        chosen = sample(pool.ids(answered & (pool.bench == bench)), share, key)
        left = tuple(item for item in chosen if item not in before)
        units += [Unit(bench, 0, 1, left)] if left else []
    return units


@dataclass(frozen=True, slots=True)
class StepNoise:
    """The noise of a step, and how many of its verdicts lie within."""

    step: Step
    noise: Noise
    answered: int
    near: int
    """Answered items whose mean margin lies within the band of the threshold."""
    unsure: int
    """Answered items whose verdict could be the other one within the noise."""
    engines: tuple[str, ...]
    """What read the sample, first and again: more than one means that their difference is in the noise."""


_COLUMNS: Mapping[str, str] = {
    "item_id": "VARCHAR",
    "item_digest": "VARCHAR",
    "status": "VARCHAR",
    "step_key": "VARCHAR",
    "mean_margin": "DOUBLE",
    "orders": "INTEGER[][]",
    "logprobs": "DOUBLE[][]",
    "engine": "JSON",
}


def step_noise(study: Study, pool: Pool, step: Step) -> StepNoise | None:
    """Return the noise of a step; None where nothing of it was read again.

    Raises:
        StudyError: a file of rows cannot be read.
    """
    second = Again(study.root, study.config)
    if not second.step_files(step.number):
        return None
    again = _answers(second, pool, step)
    first = _answers(study, pool, step)
    if not len(again) or not len(first):
        return None
    # The last good row of an item wins, as in a verdict; every second reading counts.
    last = np.full(len(pool), -1, dtype=np.int64)
    last[first.column("place").to_numpy()] = np.arange(len(first))
    whole = first.take(last[last >= 0])
    both = again.filter(last[again.column("place").to_numpy()] >= 0)
    if not len(both):
        return None
    once = first.take(last[both.column("place").to_numpy()])
    rule = Rule(study.config.protocol.right_share, study.config.protocol.margin)
    noise = noise_of([*map(_twice, once.to_pylist(), both.to_pylist())], rule)
    margins = whole.column("mean_margin").to_numpy()
    lead, item = _leads(whole)
    flags = unsure(margins, lead, item, rule, noise)
    engines = {_engine(row) for table in (once, both) for row in table.column("engine").unique().to_pylist()}
    near = within(margins, rule.margin, noise.band)
    return StepNoise(step, noise, len(whole), near, int(np.count_nonzero(flags)), tuple(sorted(engines)))


def _answers(study: Study, pool: Pool, step: Step) -> "pa.Table":
    """Return a step's good rows of today's items and protocol, with `place` in the pool and `gold`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    key = step_key(study.config, step)
    table = read_rows(study.step_files(step.number), _COLUMNS, f"status = 'ok' and step_key = '{key}'").table
    place = pc.index_in(table.column("item_id"), value_set=pool.item_id).combine_chunks()
    table = table.append_column("place", place)
    known = pc.equal(table.column("item_digest"), pool.digest.take(place))
    sound = pc.and_(pc.fill_null(known, fill_value=False), pc.is_finite(table.column("mean_margin")))
    lists = [pc.list_value_length(table.column(name)) for name in ("orders", "logprobs")]
    same = pc.and_(pc.equal(lists[0], lists[1]), pc.greater(lists[0], 0))
    table = table.filter(pc.fill_null(pc.and_(sound, same), fill_value=False))
    golds = study.item_table(["gold"]).column("gold").combine_chunks()
    table = table.append_column("gold", golds.take(table.column("place").combine_chunks())).combine_chunks()
    return table.filter(pa.array(_readable(table)))


def _readable(table: "pa.Table") -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Flag the rows whose every order has the right option once, and a number for every option."""
    import pyarrow.compute as pc

    orders, logprobs = (table.column(name).combine_chunks() for name in ("orders", "logprobs"))
    row, golds = pc.list_parent_indices(orders).to_numpy(), table.column("gold").to_numpy()
    each, read, sound = orders.flatten(), logprobs.flatten(), np.ones(len(table), dtype=np.bool_)
    lengths = pc.equal(pc.list_value_length(each), pc.list_value_length(read))
    sound[row[~pc.fill_null(lengths, fill_value=False).to_numpy(zero_copy_only=False)]] = False
    numbers = pc.fill_null(pc.less(pc.abs(read.flatten()), _MOST_NATS), fill_value=False)  # NaN is less than nothing
    sound[row[pc.list_parent_indices(read).to_numpy()[~numbers.to_numpy(zero_copy_only=False)]]] = False
    of, options = pc.list_parent_indices(each).to_numpy(), pc.fill_null(each.flatten(), -1).to_numpy()
    right = np.bincount(of[options == golds[row[of]]], minlength=len(each))
    sound[row[right != 1]] = False
    return sound


def _twice(first: Mapping[str, Any], second: Mapping[str, Any]) -> Twice:
    """Pair two rows of an item, order by order; the orders are seeded and so the same."""
    golds = tuple(order.index(first["gold"]) for order in first["orders"])
    return Twice(golds, tuple(map(tuple, first["logprobs"])), tuple(map(tuple, second["logprobs"])))


def _leads(table: "pa.Table") -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
    """Return the right letter's lead in every order, and each order's row."""
    import pyarrow.compute as pc

    orders, logprobs = (table.column(name).combine_chunks() for name in ("orders", "logprobs"))
    item = np.repeat(np.arange(len(table)), pc.list_value_length(orders).to_numpy())
    counts = pc.list_value_length(logprobs.flatten()).to_numpy()
    values, originals = (column.flatten().flatten().to_numpy(zero_copy_only=False) for column in (logprobs, orders))
    if len(values) != len(originals):
        raise StudyError("rows whose orders and log-probabilities do not fit each other cannot be counted")
    golds = np.repeat(table.column("gold").to_numpy()[item], counts)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])) if len(counts) else np.zeros(0, dtype=np.int64)
    return leads(values.astype(np.float64), originals, golds, starts.astype(np.int64)), item


def _engine(text: str | Mapping[str, Any] | None) -> str:
    """Name an engine, as a row has it."""
    import json

    facts = json.loads(text) if isinstance(text, str) else text
    facts = facts if isinstance(facts, Mapping) else {}
    return " ".join(str(facts[key]) for key in ("name", "dtype", "device") if facts.get(key))
