"""The desk between the thread that reads prompts and the endpoints that answer them, and the loop that they run in."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from benchcheck.backends import Engine, Outcome
from benchcheck.backends.affinity import Board
from benchcheck.backends.endpoint import Endpoint, Job
from benchcheck.backends.probe import OtherModelError, Wanted
from benchcheck.backends.wire import KEEP_ALIVE_S, Wire
from benchcheck.errors import BackendError, UsageError
from benchcheck.screen.readings import Failure, Reading

if TYPE_CHECKING:
    import aiohttp

__all__ = ["FrontDesk", "Loop"]

GRACE_S = 10.0
"""How long a run waits for a server while none is up."""

Value = TypeVar("Value")
log = logging.getLogger("benchcheck")


class FrontDesk:
    """Where jobs are handed to endpoints and results come back; lives in the loop's thread."""

    def __init__(self) -> None:
        self.board: Board[Endpoint, Job] = Board()
        self.exact = False
        self.size = 0
        self._endpoints: list[Endpoint] = []
        self._session: aiohttp.ClientSession | None = None
        self._results: SimpleQueue[Outcome | BaseException] | None = None
        self._patience: asyncio.TimerHandle | None = None

    async def open(self, urls: Sequence[str], wanted: Wanted, limit: int, access: tuple[str, float]) -> None:
        """Make one session for all servers and probe them side by side."""
        import aiohttp

        key, timeout_s = access
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(connector=connector, headers=headers)
        unique = list(dict.fromkeys(url.rstrip("/") for url in urls))
        self._endpoints = [Endpoint(Wire(self._session, url, timeout_s), wanted, limit, self) for url in unique]
        found = await asyncio.gather(*(one.find_out() for one in self._endpoints), return_exceptions=True)
        self._leave_out(found)
        self._agree()

    def _leave_out(self, found: Sequence[BaseException | None]) -> None:
        """Keep the endpoints that serve the model: a study has two, and both may be named.

        Raises:
            BenchcheckError: of the first endpoint that cannot be used, or of the first where none serves the model.
        """
        errors = [error for error in found if error is not None]
        others = [error for error in errors if isinstance(error, OtherModelError)]
        if len(others) < len(errors) or len(others) == len(found):
            raise next(error for error in errors if error not in others or len(others) == len(found))
        for error in others:
            log.warning("left out: %s", error)
        self._endpoints = [one for one, error in zip(self._endpoints, found, strict=True) if error is None]
        self.size = len(self._endpoints)

    def _agree(self) -> None:
        """Hold all endpoints to one ability.

        Raises:
            BackendError: none is up.
            UsageError: they differ in how letters are read, so that a row would depend on who answered it.
        """
        up = [one for one in self._endpoints if one.ability is not None]
        if not up:
            raise BackendError(f"no endpoint answers: {self._reasons()}. Cure: start the servers, or correct the URLs")
        first = up[0].ability
        assert first is not None
        for other in up[1:]:
            ability = other.ability
            assert ability is not None
            if (ability.exact, ability.top) != (first.exact, first.top):
                raise UsageError(
                    f"{up[0].wire.url} reads {first.reads}, {other.wire.url} {ability.reads}. Allowed: endpoints that "
                    "read letters alike. Cure: the same server version and --max-logprobs on all, or name only some"
                )
        self.exact = first.exact
        for one in self._endpoints:
            if one.ability is None:
                log.warning("%s is down (%s); the others begin without it", one.wire.url, one.reason)
            one.promise(first)

    def engine(self, revision: str) -> Engine:
        """Return what answers, as rows record it."""
        versions = sorted({one.ability.version for one in self._endpoints if one.ability})
        hosts = sorted({one.wire.host for one in self._endpoints})
        shown = ", ".join(hosts[:4]) + (f" and {len(hosts) - 4} more" if len(hosts) > 4 else "")
        return Engine("server", " + ".join(versions), "unknown", shown, revision)

    async def close(self) -> None:
        """Close all connections."""
        await self.end()
        await asyncio.gather(*(one.close() for one in self._endpoints))
        if self._session is not None:
            await self._session.close()

    async def begin(self, results: SimpleQueue[Outcome | BaseException]) -> None:
        """Bring results there from now on."""
        await self.end()
        self._results = results
        self._wait_or_give_up()

    async def end(self, results: object = None) -> None:
        """Give up all jobs; with `results`, only those of the reader that began with them."""
        if results is not None and results is not self._results:
            return
        self._results = None
        self.board.clear()
        self._stop_waiting()
        await asyncio.gather(*(one.stop() for one in self._endpoints))

    def accept(self, jobs: Sequence[Job]) -> None:
        """Take jobs and begin as many as the servers have room for, the least busy first."""
        for job in jobs:
            self.board.put(job.group, job)
        self._pump()

    def _pump(self) -> None:
        begun = True
        while begun:
            free = sorted((one for one in self._endpoints if one.has_room), key=lambda one: one.load)
            begun = any(one.start_one() for one in free)

    def deliver(self, job: Job, result: Reading | Failure) -> None:
        """Bring a result to the reading thread."""
        if self._results is not None:
            self._results.put(Outcome(job.index, result))

    def fell(self) -> None:
        """Let the others go on, or wait a little if there are none."""
        self._wait_or_give_up()
        self._pump()

    def rose(self) -> None:
        """Go on with it."""
        self._stop_waiting()
        self._pump()

    def ended(self, task: asyncio.Task[None]) -> None:
        """Bring a bug to the reading thread, where it is raised."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._results is not None:
            self._results.put(error)

    def _wait_or_give_up(self) -> None:
        """Where no server is up, wait for one; not at all when none can come back."""
        if self._results is None or any(one.ability is not None for one in self._endpoints):
            return
        patience = 0.0 if all(one.lost for one in self._endpoints) else GRACE_S
        if self._patience is None or not patience:
            self._stop_waiting()
            self._patience = asyncio.get_running_loop().call_later(patience, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None

    def _give_up(self) -> None:
        if self._results is not None:
            cure = "Cure: see the servers' logs and start them again; the same command goes on where it stopped"
            self._results.put(BackendError(f"no endpoint is left: {self._reasons()}. {cure}"))

    def _reasons(self) -> str:
        # Most reasons of the probe name the server themselves.
        reasons = [f"{one.wire.url}: {one.reason.removeprefix(f'{one.wire.url}: ')}" for one in self._endpoints]
        return "; ".join(reasons[:4]) + (f"; and {len(reasons) - 4} more" if len(reasons) > 4 else "")


class Loop:
    """An asyncio loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="endpoints", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it has not been closed."""
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine there and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def post(self, function: Any, *arguments: Any) -> None:
        """Call a function there and do not wait."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
