"""Reads from a study's folder what an estimate rests on: lengths of texts, videos, frames and what runs measured."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from benchcheck.config import Config
from benchcheck.run.accounting import increments
from benchcheck.run.estimate import (
    ENOUGH,
    H200_TFLOPS,
    SURVIVE,
    Coming,
    Geometry,
    Spent,
    StepEstimate,
    Texts,
    achieved,
    coming,
    estimate_step,
    load_of,
    row_bytes,
    seconds_left,
)
from benchcheck.run.plan import Survey
from benchcheck.screen.steps import LADDER, Step
from benchcheck.screen.verdicts import Flags
from benchcheck.study import Study
from benchcheck.video.making.disk import bytes_of_set

__all__ = ["AT_WORK_S", "Assumed", "Going", "Outlook", "going", "outlook"]

AT_WORK_S = 60
"""A worker whose last line of accounting is no older than this is at work: lines come every 10 s, with its rows."""
_SAMPLE = 20
"""Rows that a size is measured from."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What an estimate takes for granted where nothing was measured."""

    gpu_tflops: float = H200_TFLOPS
    """A GPU's dense bf16 figure; what an H200 was measured to achieve is scaled by it."""
    survive: float = SURVIVE
    """Share of a step's items that stays."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a study will cost from here on."""

    steps: tuple[StepEstimate, ...]
    row_bytes: float
    """Of the rows that are still to be written."""
    videos_missing: int
    """Sets of frames that are not on disk."""
    frame_bytes: float
    """Of those frames."""
    frames_measured: bool
    """Whether a frame's size is this study's own."""


@dataclass(frozen=True, slots=True)
class Going:
    """How far a study is while a run goes on, and how long the rest takes."""

    workers: int
    """Workers that wrote within the last minute; 0 is that no run goes on."""
    seconds: float
    """For what is left, with those workers (one, where there is none)."""
    without: tuple[int, ...]
    """Steps of which nothing was measured yet, left out of `seconds`."""
    steps: tuple[Coming, ...]


def outlook(study: Study, state: Survey, assumed: Assumed, wanted: Flags | None = None) -> Outlook:
    """Estimate what is left of a study: prompts, tokens, GPU-hours, disk.

    Raises:
        StudyError: the pool or the accounting cannot be read.
    """
    config, spent = study.config, _spent(study)
    texts, frames, items = _shape(study, state)
    rates = achieved(LADDER)
    gpu = "one H200" if assumed.gpu_tflops == H200_TFLOPS else f"a GPU of {assumed.gpu_tflops:g} TFLOP/s"
    steps, size = [], 0.0
    for asked in coming(state.fold, config.protocol.cascade, assumed.survive, wanted):
        step = asked.step
        orders = config.orders_of(step)
        load = load_of(step, asked.items, texts, frames, orders, (config.models[step.role].model, items))
        kind = "frames" if step.sight.needs_frames else "text"
        speed = rates[kind, step.role] * assumed.gpu_tflops / H200_TFLOPS
        steps.append(estimate_step(asked, load, spent.get(step.number), speed, gpu))
        size += asked.items * (_row_size(study, step) or row_bytes(orders))
    missing = len(set(state.pool.frames_key[state.pool.screenable & ~state.framed].tolist()))
    if not any(step.sight.needs_frames for step in config.steps):
        missing = 0
    of_set, measured = bytes_of_set(study)
    return Outlook(tuple(steps), size, missing, missing * of_set, measured)


def going(study: Study, state: Survey, now: datetime | None = None) -> Going:
    """Say who is at work on a study, and how long what is left takes them by what was measured in each step.

    Raises:
        StudyError: the accounting cannot be read.
    """
    since = ((now or datetime.now(UTC)) - timedelta(seconds=AT_WORK_S)).isoformat(timespec="seconds")
    lines = increments(study)
    # A run starts new processes for a step: those of the step before are gone, though they wrote within the minute.
    now_at = {line["run"]: line["step"] for line in lines}
    busy = [line for line in lines if line["run"] and line["at"] >= since and line["step"] == now_at[line["run"]]]
    workers = {(line["host"], line["pid"]) for line in busy}
    steps = coming(state.fold, study.config.protocol.cascade)
    seconds, without = seconds_left(steps, _spent_of(study.config, lines), len(workers))
    return Going(len(workers), seconds, without, tuple(steps))


def _spent(study: Study) -> dict[int, Spent]:
    """What was measured so far."""
    return _spent_of(study.config, increments(study))


def _spent_of(config: Config, lines: list[dict[str, Any]]) -> dict[int, Spent]:
    """Sum up the lines of each step by what answered last: another model, engine or GPU says nothing of this one."""
    models = {step.number: config.models[step.role].model for step in config.steps}
    lines = [line for line in lines if line["model"] == models.get(line["step"])]
    last = {line["step"]: _pace(line) for line in lines}
    found: dict[int, Spent] = {}
    for line in lines:
        if _pace(line) == last[line["step"]]:
            old = found.get(line["step"], Spent(0, 0, 0.0))
            items, prompts = old.items + line["items"], old.prompts + line["prompts"]
            found[line["step"]] = Spent(items, prompts, old.wall_s + line["wall_s"], line["device"])
    return found


def _pace(line: Mapping[str, Any]) -> tuple[str, ...]:
    """What answered; a server's device is its address, which says nothing of its speed."""
    device = "" if line["engine"] == "server" else line["device"]
    return (line["engine"], line["version"], line["dtype"], device)


def _shape(study: Study, state: Survey) -> tuple[Texts, Geometry, int]:
    """How long the screened items' texts are, on how many videos they lie, and how many they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = study.item_table(["question", "options"]).filter(pa.array(state.pool.screenable))
    count = max(1, len(table))
    options = pc.list_flatten(table.column("options"))
    asked = pc.sum(pc.utf8_length(table.column("question"))).as_py() or 0
    shown = pc.sum(pc.utf8_length(options)).as_py() or 0
    videos = len(set(state.pool.frames_key[state.pool.screenable].tolist()))
    grid = study.config.frames
    texts = Texts(asked / count, shown / count, len(options) / count)
    return texts, Geometry(grid.count, grid.long_side, videos), len(table)


def _row_size(study: Study, step: Step) -> float:
    """Mean bytes of a step's first rows; 0 where there are not enough."""
    for path in study.step_files(step.number):
        with path.open("rb") as file:
            sizes = [len(line) for line in itertools.islice(file, 10 * _SAMPLE)]
        if len(sizes) >= min(_SAMPLE, ENOUGH):
            return float(np.mean(sizes))
    return 0.0
