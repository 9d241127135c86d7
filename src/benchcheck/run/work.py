"""One unit of work: items of one benchmark in one step, asked and written. Executors only say where this runs."""

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from benchcheck.backends import Backend
from benchcheck.config import Config, step_key
from benchcheck.errors import BackendError
from benchcheck.files import unbroken
from benchcheck.pool.items import Item
from benchcheck.run.accounting import Cost, Meter, run_name
from benchcheck.run.plan import Unit
from benchcheck.screen.answers import Asking, answer_row, error_row, prompts_of
from benchcheck.screen.prompts import Prompt, frame_order
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import Sight, Step
from benchcheck.study import Study
from benchcheck.video.frames import load_frames

__all__ = ["FLUSH_ITEMS", "FLUSH_SECONDS", "Progress", "do_unit", "now", "shown_frames"]

FLUSH_ITEMS = 64
FLUSH_SECONDS = 1.0
"""Rows are written when this many are ready or this old: a killed worker asks at most that much again."""

Progress = Callable[[int, int], None]
"""Called with how many more items were written, and how many of them are error rows."""


def now() -> str:
    """Return the time in UTC, to the second, as rows carry it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def shown_frames(item_id: str, paths: Sequence[str], step: Step, config: Config) -> tuple[str, ...]:
    """Return the frame files that a step shows of an item, in the order shown (protocol 3 and 4)."""
    if step.sight is Sight.SINGLE_FRAME:
        return (paths[config.frames.single],)
    if step.sight is Sight.SHUFFLED:
        return tuple(paths[index] for index in frame_order(item_id, len(paths), seed=config.protocol.seed))
    return tuple(paths) if step.sight.needs_frames else ()


@dataclass(slots=True)
class _Writer:
    """Rows on their way to a unit's file: written in whole batches, the last when the unit ends, however it ends."""

    study: Study
    step: int
    unit: Unit
    progress: Progress
    meter: Meter
    rows: list[dict[str, Any]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def add(self, row: dict[str, Any], results: Sequence[Reading | Failure] = ()) -> None:
        """Take a row, and what its prompts gave."""
        readings = [result for result in results if isinstance(result, Reading)]
        tokens, cached = sum(read.prompt_tokens for read in readings), sum(read.cached_tokens for read in readings)
        self.meter.count(row.get("error", ""), len(results), tokens, cached)
        self.rows.append(row)
        if len(self.rows) >= FLUSH_ITEMS or time.monotonic() - self.since > FLUSH_SECONDS:
            self.flush()

    def flush(self, last: bool = False) -> None:
        """Write the rows, and behind them what they cost: what is accounted for is on disk."""
        done, errors = len(self.rows), sum(row["status"] == "error" for row in self.rows)
        # Stopped between writing and forgetting, the last flush would write the same rows again.
        with unbroken():
            self.study.append(self.step, self.unit.bench, self.unit.file_part, self.rows)
            self.rows, self.since = [], time.monotonic()
            self.meter.note(now(), last=last)
        if done:
            self.progress(done, errors)


def do_unit(study: Study, step: Step, unit: Unit, backend: Backend, progress: Progress) -> Cost:
    """Ask a unit's items and write one row each; returns what it cost, which is also kept in the study.

    Whatever was read is on disk when this returns or raises, Ctrl-C included.

    Raises:
        StudyError: rows cannot be written.
        BackendError: the engine stopped answering.
    """
    engine = backend.engine
    facts = {"name": engine.name, "version": engine.version, "dtype": engine.dtype, "device": engine.device}
    asking = Asking(study.config, step, step_key(study.config, step), engine.revision, facts)
    model, counts = study.config.models[step.role].model, (0, 0, 0, 0.0, 0)
    nothing = Cost(step.number, unit.bench, unit.part, *counts, model, engine.revision, facts, now())
    meter = Meter(study, replace(nothing, run=run_name(), host=platform.node(), pid=os.getpid()))
    writer = _Writer(study, step.number, unit, progress, meter)
    try:
        for item, asked, results in _answered(study, asking, unit, backend, writer):
            writer.add(answer_row(asking, item, asked, results, now()), results)
    finally:
        writer.flush(last=True)
    return meter.whole


def _answered(
    study: Study, asking: Asking, unit: Unit, backend: Backend, writer: _Writer
) -> Iterator[tuple[Item, list[Prompt], list[Reading | Failure]]]:
    """Yield every item with its prompts and their results as soon as the last of them is there.

    Items are taken up as the backend asks for prompts, so that a unit of 20,000 begins at once.
    """
    asked: dict[str, tuple[Item, list[Prompt]]] = {}
    places: dict[int, tuple[str, int]] = {}
    results: dict[str, dict[int, Reading | Failure]] = {}

    def prompts() -> Iterator[Prompt]:
        number = 0
        for item, frames in _with_frames(study, asking, unit, writer):
            asked[item.item_id] = (item, prompts_of(item, asking.step, study.config, frames))
            for position, prompt in enumerate(asked[item.item_id][1]):
                places[number] = (item.item_id, position)
                number += 1
                yield prompt

    for outcome in backend.read(prompts()):
        item_id, position = places.pop(outcome.index)
        so_far = results.setdefault(item_id, {})
        so_far[position] = outcome.result
        if len(so_far) == len(asked[item_id][1]):
            item, of_item = asked.pop(item_id)
            del results[item_id]
            yield item, of_item, [so_far[index] for index in range(len(of_item))]
    if asked:
        raise BackendError(f"{asking.engine['name']}: {len(asked)} items came back without all of their outcomes")


def _with_frames(study: Study, asking: Asking, unit: Unit, writer: _Writer) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """Yield the unit's items with the frames shown; one video's questions are neighbours, so that they share a prefix.

    An item whose frames cannot be read gets its error row here.
    """
    items = study.items(unit.item_ids)
    if not asking.step.sight.needs_frames:
        yield from ((item, ()) for item in items)
        return
    for item in sorted(items, key=lambda item: (item.frames_key, item.item_id)):
        frames = load_frames(study, item.frames_key)
        if isinstance(frames, Failure):
            writer.add(error_row(asking, item, frames, now()))
        else:
            yield item, shown_frames(item.item_id, frames.paths, asking.step, study.config)
