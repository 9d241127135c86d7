"""The local executor with servers of its own: one `vllm serve` a GPU, and one worker process for each.

Servers stay from step to step while model and number of frames stay the same. When one dies in the middle of a step the
workers write what they have and stop, the server is started again, and new workers ask what is left: an idle GPU would
cost more than the minute that the others lose. After `RESTARTS` times in a run, the run ends with the reason, and the
same command continues.
"""

import importlib.util
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchcheck.backends import ModelSpec
from benchcheck.backends.launch import Servers, plan_servers
from benchcheck.backends.serving import HOST, Server
from benchcheck.errors import BackendError, MissingExtraError, UsageError
from benchcheck.run.local import (
    Asked,
    Assignment,
    assignments,
    gpu_count,
    model_spec,
    share,
    threads_of,
    worker_command,
)
from benchcheck.run.plan import Survey, Unit
from benchcheck.run.processes import Worker, run_workers
from benchcheck.run.shard import WHOLE
from benchcheck.run.work import Progress
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import Flags
from benchcheck.study import Study

__all__ = ["RESTARTS", "Launched", "client_log", "plan_lines", "served", "server_log"]

RESTARTS = 2
_DYING_S = 5.0
"""A server whose worker lost it is seen to be dead within this time."""
_LOOK_S = 0.2


def server_log(study: Study, step: int, number: int) -> Path:
    """Return the log of a step's server."""
    return study.logs / f"vllm_s{step}_gpu{number}.log"


def client_log(study: Study, step: int, number: int) -> Path:
    """Return the log of the worker that asks it."""
    return study.logs / f"client_s{step}_gpu{number}.log"


def _quiet(_: str) -> None:
    """Say nothing."""


@dataclass(slots=True)
class Launched:
    """An executor whose workers ask servers that it starts itself, and ends."""

    study: Study
    asked: Asked
    pilot: int = 0
    shard: tuple[int, int] = WHOLE
    say: Callable[[str], None] = _quiet
    """Hears what is waited for, several times a second; an empty text when the waiting is over."""
    warn: Callable[[str], None] = _quiet
    """Hears of servers that died and were started again."""
    workers: int = field(init=False)
    _servers: Servers | None = None
    _spec: ModelSpec | None = None
    _restarts: int = 0

    def __post_init__(self) -> None:
        """Count the servers; tasks of an array that meet on one machine have ports of their own.

        Raises:
            UsageError: the engine is no server, or this machine has too few GPUs or ports.
            MissingExtraError: its workers could not ask a server.
        """
        if self.asked.backend != "server":
            raise UsageError(f"--launch starts servers, but --engine is {self.asked.backend}. Cure: --engine server")
        if importlib.util.find_spec("aiohttp") is None:  # else it would be told after minutes of starting servers
            raise MissingExtraError("the server backend", "server")
        settings = self.asked.settings
        self.workers = gpu_count(settings, os.environ)
        port = settings.first_port + self.shard[0] * self.workers
        if port > 65_535:
            raise UsageError(f"--shard {self.shard[0]}/{self.shard[1]} would need port {port}. Cure: a lower --port")
        self.asked = replace(self.asked, settings=replace(settings, first_port=port))

    def plan(self, step: Step) -> list[Server]:
        """Return the servers that a step needs; starts none.

        Raises:
            UsageError: no such model, no vLLM, or settings that this machine cannot follow.
        """
        return plan_servers(self._spec_of(step))

    def run(self, step: Step, tasks: Sequence[Sequence[Unit]], todo: frozenset[str], progress: Progress) -> None:
        """Start what servers the step needs and let a worker for each do its part.

        Raises:
            UsageError: a port is in use, there is no vLLM, or a worker was told something wrong.
            BackendError: a server or worker died; rows that were written stay.
        """
        parts = assignments(step, tasks, todo, self.pilot, self.shard)
        servers = self._serve(step)
        while True:
            try:
                run_workers(step.number, self._processes(servers, parts), progress, servers.watch)
            except (BackendError, UsageError) as reason:
                self._revive(servers, reason)
            else:
                return

    def close(self) -> None:
        """End the servers."""
        if self._servers is not None:
            self._servers.close()
        self._servers = self._spec = None

    def _spec_of(self, step: Step) -> ModelSpec:
        return model_spec(self.study.config, step, self.study.places, self.asked)

    def _serve(self, step: Step) -> Servers:
        """Return servers of the step's model, those that run where they fit."""
        spec = self._spec_of(step)
        if self._servers is None or spec != self._spec:
            self.close()
            self._servers, self._spec = _servers(self.study, step, spec, self.say), spec
            self._servers.start()
            self.say("")
        return self._servers

    def _processes(self, servers: Servers, parts: Sequence[Assignment]) -> list[Worker]:
        """One worker for every part, each with the server of its own number."""
        workers = []
        for part in parts:
            server = servers.servers[part.task % len(servers.servers)]
            settings = replace(self.asked.settings, endpoints=(server.endpoint,))
            command = worker_command(self.study, replace(self.asked, settings=settings), part)
            log = client_log(self.study, part.step, server.number)
            workers.append(Worker(command, threads_of(len(parts)), log))
        return workers

    def _revive(self, servers: Servers, reason: BackendError | UsageError) -> None:
        """Start the servers again that a worker lost; raise what else stopped it, or that they died too often."""
        end, sick = time.monotonic() + _DYING_S, list[str]()
        while not (sick := servers.take_down_the_sick()) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        if not sick:
            raise reason
        if self._restarts == RESTARTS:
            raise BackendError(
                f"{'; '.join(sick)}. Servers were started again {RESTARTS} times in this run. What was written stays; "
                "the same command continues"
            ) from reason
        self._restarts += 1
        self.warn(f"{'; '.join(sick)}. Starting again ({self._restarts} of {RESTARTS})")
        servers.start()
        self.say("")


def _servers(study: Study, step: Step, spec: ModelSpec, say: Callable[[str], None], host: str = HOST) -> Servers:
    """The servers of a step's model on this machine, with their logs; none is started."""
    planned = plan_servers(spec, host)
    logs = [server_log(study, step.number, server.number) for server in planned]
    return Servers(planned, logs, spec.settings.timeout_s, say)


@contextmanager
def served(
    study: Study, step: Step, asked: Asked, host: str = HOST, say: Callable[[str], None] = _quiet
) -> Iterator[Servers]:
    """Serve a step's model on this machine while the block runs.

    Raises:
        UsageError: a port is in use, there is no vLLM, no such model.
        BackendError: a server died.
    """
    with _servers(study, step, model_spec(study.config, step, study.places, asked), say, host) as servers:
        say("")
        yield servers


def plan_lines(
    state: Survey, wanted: Flags, steps: Sequence[Step], workers: Sequence[Sequence[Unit]], launched: Launched | None
) -> Iterator[str]:
    """Say what a run would do now: for every step its servers with their commands, and each worker's units.

    Args:
        state: where the study stands.
        wanted: the items that the run may ask.
        steps: the steps that it would take.
        workers: each worker's units, whatever is answered.
        launched: the executor that starts servers, if any.
    """
    for here in state.fold.steps:
        todo = frozenset(state.pool.ids(here.todo & wanted))
        left = [share(units, todo) for units in workers]
        if here.step not in steps or not any(left):
            continue
        yield f"step {here.step.number} {here.step.name}:"
        for server in launched.plan(here.step) if launched else ():
            yield f"  server {server.number}: {server.place}, {server.endpoint}: {shlex.join(server.command)}"
        for number, units in enumerate(left):
            names = ", ".join(f"{unit.bench} {unit.part + 1} of {unit.parts} ({len(unit.item_ids)})" for unit in units)
            yield f"  worker {number}: {names or 'nothing'}"
