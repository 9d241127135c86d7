"""Ray: an actor per GPU holds its engine, units are given to actors, and what a lost node had left is given out again.

Nothing of a study is pickled: an actor gets the study's path, a step and the places of items in the pool, and finds the
rest in the study's folder, which every node must see. Progress comes from the driver. Tested with Ray 2.60.
"""

import importlib
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchcheck.backends import check_backend
from benchcheck.errors import BackendError, MissingExtraError, StudyError, UsageError
from benchcheck.places import environment_of
from benchcheck.run.accounting import run_name
from benchcheck.run.actors import EngineActor, Heard, Order, digest_of
from benchcheck.run.local import Asked, share
from benchcheck.run.plan import Pool, Unit, load_pool, read_step
from benchcheck.run.work import Progress
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import Mark
from benchcheck.settings import RaySettings
from benchcheck.study import Study

__all__ = ["UNITS_PER_ACTOR", "RayExecutor"]

UNITS_PER_ACTOR = 4
"""Units are this much finer than one per actor: an actor that ends early takes another instead of idling (the last of
four units in a row is a quarter of the work, so a step waits for at most that), and one that is lost loses little."""

_PLACE_S = 600.0
"""With no actor at work, one must start within this time."""
_STOP_S = 30.0
"""An actor stops at its next write and closes its engine; one that takes longer is killed."""
_STORE_BYTES = 80 * 1024 * 1024
"""Ray's smallest object store: orders are a few kilobytes."""


@dataclass(slots=True)
class _Actor:
    """An actor as the driver sees it."""

    number: int
    handle: Any


@dataclass(slots=True)
class RayExecutor:
    """Runs a step's units on a Ray cluster: an existing one, or one made for the run on this machine.

    Raises:
        UsageError: there is no such backend, no such cluster, or no node that an actor fits on.
        MissingExtraError: Ray is not installed.
    """

    study: Study
    asked: Asked
    settings: RaySettings
    _ray: Any = None
    _own: bool = False
    _heard: Any = None
    _pool: Pool | None = None
    _actors: dict[int, _Actor] = field(default_factory=dict)
    _idle: list[int] = field(default_factory=list)
    _starting: dict[Any, int] = field(default_factory=dict)
    _jobs: dict[Any, tuple[int, Unit]] = field(default_factory=dict)
    _made: int = 0
    _failed_starts: int = 0
    _size: int = 0

    def __post_init__(self) -> None:
        """Connect, and see how many actors there is room for."""
        check_backend(self.asked.backend)
        self._ray = _import_ray()
        self._own = not self._ray.is_initialized()
        if self._own:
            self._connect()
        room = self._room()
        if not room:
            self.close()
            raise UsageError(self._no_room("has no node with"))
        self._size = self.settings.actors or room

    @property
    def workers(self) -> int:
        """Tasks among which units are dealt out: several per actor."""
        return self._size * UNITS_PER_ACTOR

    def run(self, step: Step, tasks: Sequence[Sequence[Unit]], todo: frozenset[str], progress: Progress) -> None:
        """Do all units of a step, on whatever nodes are there.

        Raises:
            BackendError: an engine stopped answering, or a unit's actors were lost more than `retries` times.
            StudyError: a node does not see the study, or rows cannot be written.
            UsageError: a checkpoint was refused.
        """
        units = share([unit for task in tasks for unit in task], todo)
        if not units:
            return
        waiting = deque(sorted(units, key=lambda unit: -len(unit.item_ids)))
        tries: Counter[tuple[str, int]] = Counter()
        since = time.monotonic()
        self._pool = load_pool(self.study)
        self._start(min(self._size, len(waiting)) - len(self._actors))
        while waiting or self._jobs:
            while waiting and self._idle:
                self._give(step, waiting.popleft())
            done, _ = self._ray.wait([*self._jobs, *self._starting], num_returns=1, timeout=0.5)
            for ref in done:
                waiting.extend(self._ended(step, ref, tries))
            self._tell(progress)
            since = self._check_hope(since)

    def close(self) -> None:
        """Stop what runs, after its last flush, and take the actors down; a cluster made for the run, too."""
        ray = self._ray
        if ray is None or not ray.is_initialized():
            return
        if self._heard is not None:
            with suppress(ray.exceptions.RayError):
                ray.get(self._heard.stop_all.remote(), timeout=_STOP_S)
            ends = [actor.handle.close.remote() for actor in self._actors.values()]
            if ends:
                ray.wait(ends, num_returns=len(ends), timeout=_STOP_S)
            for handle in (*(actor.handle for actor in self._actors.values()), self._heard):
                ray.kill(handle)
        self._actors, self._idle, self._starting, self._jobs, self._heard = {}, [], {}, {}, None
        if self._own:
            ray.shutdown()

    def _connect(self) -> None:
        """Join the cluster of the settings, or make one on this machine."""
        address = self.settings.address
        options: dict[str, Any] = {"address": address or "local", "log_to_driver": False, "logging_level": "ERROR"}
        if not address:
            options |= {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
        try:
            with _own_signals():
                self._ray.init(**options)
        except KeyboardInterrupt:
            self._ray.shutdown()  # what was started by then
            raise
        except (ConnectionError, RuntimeError, ValueError) as reason:
            why = " ".join(str(reason).split())[:300].rstrip(".")
            cure = "Cure: start one with `ray start --head`, or leave [ray] address empty for one of this machine"
            raise UsageError(f"no Ray cluster answers at {address or 'this machine'}: {why}. {cure}") from None

    def _room(self) -> int:
        """How many actors fit on the nodes that are alive."""
        cpus, gpus = self.settings.cpus_per_actor, self.settings.gpus_per_actor
        fits = 0
        for node in self._ray.nodes():
            if node["Alive"]:
                has = node["Resources"]
                room = has.get("CPU", 0.0) / cpus
                fits += int(min(room, has.get("GPU", 0.0) / gpus) if gpus else room)
        return fits

    def _no_room(self, verb: str) -> str:
        """Say what an actor needs and the cluster has not."""
        wants = f"{self.settings.cpus_per_actor:g} CPUs and {self.settings.gpus_per_actor:g} GPUs"
        cure = "Cure: set [ray] gpus_per_actor (0 runs without GPUs) and cpus_per_actor"
        return f"the Ray cluster {verb} {wants} for an actor. {cure}"

    def _start(self, count: int) -> None:
        """Ask for so many more actors; they take units when they are there."""
        ray = self._ray
        if self._heard is None:
            # On the driver's own node, so that it is lost only with the driver.
            here = ray.get_runtime_context().get_node_id()
            strategies = importlib.import_module("ray.util.scheduling_strategies")
            stay = strategies.NodeAffinitySchedulingStrategy(here, soft=False)
            self._heard = ray.remote(num_cpus=0, scheduling_strategy=stay)(Heard).remote()
        kind = ray.remote(num_cpus=self.settings.cpus_per_actor, num_gpus=self.settings.gpus_per_actor, max_restarts=0)(
            EngineActor
        )
        environment = environment_of(os.environ) | {"BENCHCHECK_RUN": run_name()}
        if not self.settings.gpus_per_actor:
            environment |= {"CUDA_VISIBLE_DEVICES": ""}  # else every actor would take the node's first GPU
        for _ in range(count):
            root, number = str(self.study.root.absolute()), self._made
            handle = kind.remote(number, root, self.asked, environment, self._heard)
            self._actors[number] = _Actor(number, handle)
            self._starting[handle.ready.remote()] = number
            self._made += 1

    def _ended(self, step: Step, ref: Any, tries: Counter[tuple[str, int]]) -> Iterable[Unit]:
        """Take note of what ended, the start of an actor or a unit; returns what is to be given out again."""
        if ref in self._starting:
            self._welcome(ref)
            return ()
        unit = self._result(ref)
        return () if unit is None else self._again(step, unit, tries)

    def _tell(self, progress: Progress) -> None:
        """Pass on what actors wrote since the last time."""
        items, errors = self._ray.get(self._heard.take.remote())
        if items:
            progress(items, errors)

    def _welcome(self, ref: Any) -> None:
        """Take an actor in that has started, or count it as one that could not."""
        number = self._starting.pop(ref)
        try:
            complaint = self._ray.get(ref)
        except self._ray.exceptions.RayError as reason:
            self._lose(number)
            self._failed_starts += 1
            if self._failed_starts > self.settings.retries:
                why = " ".join(str(reason).split())[:300]
                raise BackendError(f"{self._failed_starts} Ray actors died before they could begin: {why}") from None
            self._start(1)
            return
        if complaint:
            raise StudyError(complaint)
        self._idle.append(number)

    def _give(self, step: Step, unit: Unit) -> None:
        """Give a unit to an actor that has nothing to do.

        Raises:
            StudyError: the pool lacks items that it had when the run began.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self._pool is not None
        places = pc.index_in(pa.array(unit.item_ids, pa.string()), value_set=self._pool.item_id)
        if places.null_count:
            raise StudyError(f"{self.study.pool_file} was built anew during the run. Cure: run the same command again")
        number, packed = self._idle.pop(), places.to_numpy().astype(np.int32).tobytes()
        order = Order(step.number, unit.bench, unit.part, unit.parts, packed, digest_of(unit.item_ids))
        self._jobs[self._actors[number].handle.do.remote(order)] = (number, unit)

    def _result(self, ref: Any) -> Unit | None:
        """See how a unit ended: None where it is done, the unit where its actor was lost.

        Raises what the unit raised; a bug keeps its traceback.
        """
        number, unit = self._jobs.pop(ref)
        errors = self._ray.exceptions
        try:
            fault = self._ray.get(ref)
        except errors.RayTaskError:
            raise
        except errors.RayError:
            self._lose(number)
            return unit
        self._idle.append(number)
        if fault is not None:
            kind, text = fault
            raise {"UsageError": UsageError, "StudyError": StudyError}.get(kind, BackendError)(text)
        return None

    def _lose(self, number: int) -> None:
        """Forget an actor. Should it yet live, cut off from us, it stops at its next write."""
        actor = self._actors.pop(number)
        self._heard.stop.remote(number)
        self._ray.kill(actor.handle)

    def _again(self, step: Step, unit: Unit, tries: Counter[tuple[str, int]]) -> Iterator[Unit]:
        """Give a lost unit out again, without the items that have rows by now.

        Raises:
            BackendError: it was lost too often.
        """
        key = (unit.bench, unit.part)
        tries[key] += 1
        if tries[key] > self.settings.retries:
            raise BackendError(
                f"step {step.number}, part {unit.part} of {unit.bench}: its Ray actors were lost {tries[key]} times "
                f"([ray] retries = {self.settings.retries}). Cure: see Ray's logs for why (memory, a preempted node)"
            )
        assert self._pool is not None
        marks = read_step(self.study, self._pool, step).marks
        answered = frozenset(self._pool.ids(marks > Mark.ERRORS))
        left = tuple(item for item in unit.item_ids if item not in answered)
        if left:
            yield replace(unit, item_ids=left)
        self._start(1)

    def _check_hope(self, since: float) -> float:
        """Return when an actor was last at work: now, or `since`; give up where none is and none can start.

        Raises:
            BackendError: no node is left, or none has had room for too long.
        """
        if self._jobs or self._idle:
            return time.monotonic()
        if not self._room():
            raise BackendError(self._no_room("has no node left with") + "; the same command continues")
        if time.monotonic() - since > _PLACE_S:
            raise BackendError(f"the Ray cluster had no room for an actor for {_PLACE_S:g} s: others use it")
        return since


def _import_ray() -> Any:
    """Import Ray, which then tells nobody that it is used.

    Raises:
        MissingExtraError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray warns that it will leave CUDA_VISIBLE_DEVICES alone for actors without GPUs one day; ours say it themselves.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingExtraError("the ray executor", "ray") from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our way to end on SIGTERM, which Ray replaces; only the main thread can have one.

    Raises:
        KeyboardInterrupt: SIGTERM came while Ray's way was in force, which is `sys.exit`.
    """
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise KeyboardInterrupt from None
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, before)
