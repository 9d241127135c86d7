"""The local executor: units run in this process, or in several worker processes of the same command.

Nothing is pickled: a worker is `benchcheck work STUDY --step K --task I --tasks N`, the same everywhere, and finds its
share in the study's own files. It prints one line of progress per write; a worker whose parent is gone stops at that.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchcheck.backends import SHAPED, Backend, ModelSpec, check_backend, open_backend
from benchcheck.backends.gpus import visible_gpus
from benchcheck.config import Config
from benchcheck.errors import UsageError
from benchcheck.places import Located
from benchcheck.run.plan import Unit, pilot_flags, step_index, survey
from benchcheck.run.processes import Worker, run_workers
from benchcheck.run.shard import WHOLE, shard_flags, shard_units
from benchcheck.run.work import Progress, do_unit
from benchcheck.screen.steps import Sight, Step
from benchcheck.settings import EngineSettings
from benchcheck.study import Study

__all__ = [
    "Asked",
    "Assignment",
    "Local",
    "assignments",
    "auto_workers",
    "do_share",
    "flags_of",
    "gpu_count",
    "model_spec",
    "share",
    "subset",
    "threads_of",
    "worker_command",
]

ENDPOINTS_A_WORKER = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """Which backend reads the prompts of a study, and how it runs: what flags and the `[engine]` table say."""

    backend: str
    settings: EngineSettings = EngineSettings()


def model_spec(config: Config, step: Step, places: Located, asked: Asked) -> ModelSpec:
    """Return the checkpoint that a step uses; its folder may lie in the study, or where its models lie."""
    model = config.models[step.role]
    images = 1 if step.sight is Sight.SINGLE_FRAME else config.frames.count if step.sight.needs_frames else 0
    return ModelSpec(
        model=places.model(model.model),
        revision=model.revision,
        preset=config.protocol.preset,
        seed=config.protocol.seed,
        images=images if asked.backend in SHAPED else 0,
        image_side=config.frames.long_side,
        settings=asked.settings,
        cache=places.hub,
    )


def flags_of(settings: EngineSettings, in_file: EngineSettings | None = None) -> list[str]:
    """Return the flags that give a worker process these settings: those that are neither the default nor in the file.

    A setting that the study's `[engine]` table has and this run has not (`in_file`) is a flag too.
    """
    plain, flags = EngineSettings(), list[str]()
    for key in EngineSettings.__dataclass_fields__:
        value = getattr(settings, key)
        if value != getattr(plain, key) or (in_file is not None and value != getattr(in_file, key)):
            flags += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return flags


def share(units: Sequence[Unit], todo: frozenset[str]) -> list[Unit]:
    """Return the units with the items that are still to be asked, without empty ones."""
    left = [replace(unit, item_ids=tuple(item for item in unit.item_ids if item in todo)) for unit in units]
    return [unit for unit in left if unit.item_ids]


def gpu_count(settings: EngineSettings, environment: Mapping[str, str]) -> int:
    """Return how many engines this machine holds: one a GPU that is to be used, or one on the CPU.

    Raises:
        UsageError: more GPUs are asked for than are visible.
    """
    gpus = max(1, len(visible_gpus(environment)))
    if settings.gpus > gpus:
        raise UsageError(
            f"gpus = {settings.gpus} (engine.gpus, --gpus, NGPU) is not allowed. Allowed: 0 (all) to {gpus} here"
        )
    return settings.gpus or gpus


def auto_workers(asked: Asked, environment: Mapping[str, str]) -> int:
    """Return how many workers a run on this machine has when nobody says: one a GPU, one for every 8 endpoints.

    A process asks 5,000 text prompts a second and core, more than 8 endpoints of an 8B model answer on an H200; and
    only a process that knows several can give the prompts of one that falls to the others, or leave out those of the
    study's other model.
    """
    if asked.backend == "server":
        return max(1, -(-len(asked.settings.endpoints) // ENDPOINTS_A_WORKER))
    return 1 if asked.backend == "scripted" else gpu_count(asked.settings, environment)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which part of a step one worker does."""

    step: int
    task: int = 0
    """This worker's number, counted from 0."""
    tasks: int = 1
    pilot: int = 0
    """Items of each benchmark; 0 is all."""
    shard: tuple[int, int] = WHOLE
    """The share of the study that the tasks divide, as in `screen --shard`."""


def assignments(
    step: Step, tasks: Sequence[Sequence[Unit]], todo: frozenset[str], pilot: int, shard: tuple[int, int]
) -> list[Assignment]:
    """Return the parts of a step's workers that have something to ask."""
    busy = [task for task, units in enumerate(tasks) if share(units, todo)]
    return [Assignment(step.number, task, len(tasks), pilot, shard) for task in busy]


def worker_command(study: Study, asked: Asked, part: Assignment) -> list[str]:
    """Return the command that does one worker's part; the same everywhere."""
    command = [sys.executable, "-m", "benchcheck", "work", str(study.root), "--step", str(part.step)]
    command += ["--backend", asked.backend, *flags_of(asked.settings, study.config.engine)]
    command += ["--pilot", str(part.pilot)] if part.pilot else []
    command += ["--shard", f"{part.shard[0]}/{part.shard[1]}"] if part.shard != WHOLE else []
    return [*command, "--tasks", str(part.tasks), "--task", str(part.task)]


@dataclass(slots=True)
class Local:
    """Runs a step's units on this machine. One model is open at a time; the next step of the same role reuses it."""

    study: Study
    asked: Asked
    workers: int = 1
    """Processes; 1 is this one, 0 is one a GPU or endpoint."""
    pilot: int = 0
    shard: tuple[int, int] = WHOLE
    _opened: Backend | None = None
    _spec: ModelSpec | None = None

    def __post_init__(self) -> None:
        """Refuse a backend that there is not, before anything is asked."""
        check_backend(self.asked.backend)
        self.workers = self.workers or auto_workers(self.asked, os.environ)

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
            parts = assignments(step, tasks, todo, self.pilot, self.shard)
            run_workers(step.number, self._processes(parts), progress)

    def open(self, step: Step) -> Backend:
        """Return the step's model, opened now or still open from an earlier step."""
        spec = model_spec(self.study.config, step, self.study.places, self.asked)
        if self._opened is None or spec != self._spec:
            self.close()
            self._opened, self._spec = open_backend(self.asked.backend, spec), spec
        return self._opened

    def close(self) -> None:
        """Close the model that is open, if any."""
        if self._opened is not None:
            self._opened.close()
        self._opened = self._spec = None

    def _processes(self, parts: Sequence[Assignment]) -> list[Worker]:
        """One process for every part, each with a GPU and endpoints of its own where there are as many."""
        settings, gpus = self.asked.settings, visible_gpus(os.environ)
        gpus = gpus[: settings.gpus] if settings.gpus else gpus
        workers = []
        for number, part in enumerate(parts):
            own = {"CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]} if gpus else {}
            # A worker sees one GPU, so that how many there are is none of its business.
            its = replace(settings, endpoints=subset(settings.endpoints, number, len(parts)), gpus=0)
            command = worker_command(self.study, replace(self.asked, settings=its), part)
            workers.append(Worker(command, threads_of(len(parts)) | own))
        return workers


def subset(endpoints: Sequence[str], number: int, workers: int) -> tuple[str, ...]:
    """Return the endpoints of one of so many workers: none is left out, and none shared while there are enough."""
    if len(endpoints) <= 1:
        return tuple(endpoints)
    return tuple(endpoints[number::workers]) or (endpoints[number % len(endpoints)],)


def threads_of(workers: int) -> dict[str, str]:
    """Return the variable that divides this machine's cores among so many workers, unless it is set already."""
    return {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // workers))}


def do_share(study: Study, asked: Asked, part: Assignment, progress: Progress) -> None:
    """Do one worker's part of a step: what a worker process does, wherever it runs.

    Raises:
        UsageError: the study has no such step.
    """
    index = step_index(study, part.step)
    state = survey(study)
    todo = state.fold.steps[index].ready & shard_flags(state.pool, part.shard)
    if part.pilot:
        todo = todo & pilot_flags(state.pool, part.pilot, study.config.protocol.seed)
    executor, step = Local(study, asked), study.config.steps[index]
    try:
        units = shard_units(state.pool, part.shard, part.tasks)[part.task]
        executor.run(step, [units], frozenset(state.pool.ids(todo)), progress)
    finally:
        executor.close()
