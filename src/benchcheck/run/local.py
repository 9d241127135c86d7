"""The local executor: units run in this process, or in several worker processes of the same command.

Nothing is pickled: a worker is `benchcheck work STUDY --step K --task I --tasks N`, the same everywhere, and finds its
share in the study's own files. It prints one line of progress per write; a worker whose parent is gone stops at that.
"""

import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE
from typing import IO

from benchcheck.backends import SHAPED, Backend, ModelSpec, check_backend, open_backend
from benchcheck.config import Config
from benchcheck.errors import BackendError, UsageError
from benchcheck.run.plan import Unit, pilot_flags, step_index, survey, units_of
from benchcheck.run.work import Progress, do_unit
from benchcheck.screen.steps import Sight, Step
from benchcheck.settings import EngineSettings
from benchcheck.study import Study

__all__ = ["Asked", "Local", "do_share", "flags_of", "model_spec", "share", "visible_gpus"]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which backend reads the prompts of a study, and how it runs: what flags and the `[engine]` table say."""

    backend: str
    settings: EngineSettings = EngineSettings()


def model_spec(config: Config, step: Step, root: str, asked: Asked) -> ModelSpec:
    """Return the checkpoint that a step uses; a relative folder is relative to the study."""
    model = config.models[step.role]
    inside = os.path.join(root, model.model)
    images = 1 if step.sight is Sight.SINGLE_FRAME else config.frames.count if step.sight.needs_frames else 0
    return ModelSpec(
        model=inside if os.path.isdir(inside) else model.model,
        revision=model.revision,
        preset=config.protocol.preset,
        seed=config.protocol.seed,
        images=images if asked.backend in SHAPED else 0,
        image_side=config.frames.long_side,
        settings=asked.settings,
    )


def flags_of(settings: EngineSettings) -> list[str]:
    """Return the flags that give a worker process these settings, those that differ from the defaults."""
    plain, flags = EngineSettings(), list[str]()
    for key in EngineSettings.__dataclass_fields__:
        value = getattr(settings, key)
        if value != getattr(plain, key):
            flags += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return flags


def share(units: Sequence[Unit], todo: frozenset[str]) -> list[Unit]:
    """Return the units with the items that are still to be asked, without empty ones."""
    left = [replace(unit, item_ids=tuple(item for item in unit.item_ids if item in todo)) for unit in units]
    return [unit for unit in left if unit.item_ids]


@dataclass(slots=True)
class Local:
    """Runs a step's units on this machine. One model is open at a time; the next step of the same role reuses it."""

    study: Study
    asked: Asked
    workers: int = 1
    pilot: int = 0
    _opened: Backend | None = None
    _spec: ModelSpec | None = None

    def __post_init__(self) -> None:
        """Refuse a backend that there is not, before anything is asked."""
        check_backend(self.asked.backend)

    def run(self, step: Step, tasks: Sequence[Sequence[Unit]], todo: frozenset[str], progress: Progress) -> None:
        """Do all units of a step; `tasks` holds one list of units per worker.

        Raises:
            BackendError: a worker or the engine died; rows that were written stay.
        """
        if self.workers == 1:
            backend = self.open(step)
            for unit in share([unit for units in tasks for unit in units], todo):
                do_unit(self.study, step, unit, backend, progress)
        else:
            busy = [task for task, units in enumerate(tasks) if share(units, todo)]
            self._spawn(step, busy, len(tasks), progress)

    def open(self, step: Step) -> Backend:
        """Return the step's model, opened now or still open from an earlier step."""
        spec = model_spec(self.study.config, step, str(self.study.root), self.asked)
        if self._opened is None or spec != self._spec:
            self.close()
            self._opened, self._spec = open_backend(self.asked.backend, spec), spec
        return self._opened

    def close(self) -> None:
        """Close the model that is open, if any."""
        if self._opened is not None:
            self._opened.close()
        self._opened = self._spec = None

    def _spawn(self, step: Step, busy: Sequence[int], n_tasks: int, progress: Progress) -> None:
        """Run one process per busy task and pass their progress on; all end before this returns or raises."""
        command = [sys.executable, "-m", "benchcheck", "work", str(self.study.root), "--step", str(step.number)]
        command += ["--backend", self.asked.backend, "--tasks", str(n_tasks), *flags_of(self.asked.settings)]
        command += ["--pilot", str(self.pilot)] if self.pilot else []
        threads = str(max(1, (os.cpu_count() or 1) // len(busy)))
        gpus = visible_gpus(os.environ)
        workers = []
        for number, task in enumerate(busy):
            own = {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if gpus else {}
            environment = {"OMP_NUM_THREADS": threads} | dict(os.environ) | own
            arguments = [*command, "--task", str(task)]
            workers.append(subprocess.Popen(arguments, stdout=PIPE, stderr=PIPE, text=True, env=environment))
        done: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
        errors: list[list[str]] = [[] for _ in workers]
        readers = []
        for worker, error in zip(workers, errors, strict=True):
            readers.append(threading.Thread(target=_forward, args=(worker.stdout, done), daemon=True))
            readers.append(threading.Thread(target=_keep, args=(worker.stderr, error), daemon=True))
        for reader in readers:
            reader.start()
        try:
            for _ in workers:
                while (counts := done.get()) is not None:
                    progress(*counts)
            codes = [worker.wait() for worker in workers]
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()
            for reader in readers:
                reader.join(timeout=5)
        self._judge(step, codes, errors)

    def _judge(self, step: Step, codes: Sequence[int], errors: Sequence[Sequence[str]]) -> None:
        """Raise what a worker ended with; wrong use stays wrong use."""
        failures = [(code, error[-1:]) for code, error in zip(codes, errors, strict=True) if code]
        if not failures:
            return
        code, lines = failures[0]
        last = lines[0].strip().removeprefix("benchcheck: ") if lines else "without a word"
        kind = UsageError if code == UsageError.exit_code else BackendError
        raise kind(f"{len(failures)} of {len(codes)} workers of step {step.number} ended early: {last}")


def visible_gpus(environment: Mapping[str, str], devices: Path = Path("/dev")) -> list[str]:
    """Return the NVIDIA GPUs that a process may use, as `CUDA_VISIBLE_DEVICES` names them, without loading a driver.

    Workers take them in turn, so that each has one of its own where there are as many.
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    numbers = [path.name.removeprefix("nvidia") for path in devices.glob("nvidia[0-9]*")]
    return sorted((number for number in numbers if number.isdecimal()), key=int)


def do_share(study: Study, number: int, asked: Asked, task: tuple[int, int], pilot: int, progress: Progress) -> None:
    """Do one task's share of a step: what a worker process does, wherever it runs.

    Args:
        study: the study.
        number: the step.
        asked: what reads the prompts, and how.
        task: this task's number, counted from 0, and the number of tasks.
        pilot: items of each benchmark, 0 is all.
        progress: called after each write.

    Raises:
        UsageError: the study has no such step.
    """
    index = step_index(study, number)
    state = survey(study)
    todo = state.fold.steps[index].ready
    if pilot:
        todo = todo & pilot_flags(state.pool, pilot, study.config.protocol.seed)
    executor, step = Local(study, asked), study.config.steps[index]
    try:
        executor.run(step, [units_of(state.pool, task[1])[task[0]]], frozenset(state.pool.ids(todo)), progress)
    finally:
        executor.close()


def _forward(pipe: IO[str] | None, done: "queue.SimpleQueue[tuple[int, int] | None]") -> None:
    """Pass a worker's progress on, leaving out what a library prints; None says that it has ended."""
    if pipe is not None:
        with pipe:
            for line in pipe:
                if counts := re.fullmatch(r"(\d+) (\d+)\n", line):
                    done.put((int(counts[1]), int(counts[2])))
    done.put(None)


def _keep(pipe: IO[str] | None, error: list[str]) -> None:
    """Keep the last lines that a worker wrote to its standard error."""
    if pipe is not None:
        with pipe:
            for line in pipe:
                error.append(line)
                del error[:-50]
