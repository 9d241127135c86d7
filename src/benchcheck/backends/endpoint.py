"""One server at work: so many prompts at once, a failure looked into before a prompt is blamed, back after a fall.

A server that is down is no property of an item: its prompts go back to the board for the other servers, while it is
probed again and again. A prompt is blamed only by a server that answers the specimen right after.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benchcheck.backends.affinity import Board
from benchcheck.backends.letters import SPECIMEN
from benchcheck.backends.probe import Ability, Wanted, probe
from benchcheck.backends.replies import (
    Listed,
    Refusal,
    content_of,
    letters_of,
    named,
    opening_of,
    parse_refusal,
    parse_reply,
    split_ids,
)
from benchcheck.backends.wire import DroppedError, HungError, UnreachableError, Wire, WireError
from benchcheck.errors import RunError, UsageError
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import Failure, Reading

__all__ = ["Desk", "Endpoint", "Job"]

FIRST_LOOK_S = 0.5
"""A server that fell is probed after this, then after twice as long each time."""
LONGEST_LOOK_S = 30.0
SPECIMEN_S = 120.0
"""A server that does not answer the specimen within this is down."""
DEATHS = 2
"""A prompt that was being read when so many servers died is not tried on another."""
_OWN = frozenset({"context_too_long", "undecodable_frames"})
"""What a server says of a prompt that needs no second look."""

log = logging.getLogger("benchcheck")


@dataclass(slots=True)
class Job:
    """A prompt on its way."""

    index: int
    group: int
    options: int
    content: tuple[bytes, ...]
    """The user's content as pieces of JSON."""
    deaths: int = 0


class Desk(Protocol):
    """Where an endpoint takes jobs from and brings results to."""

    board: Board[Any, Job]

    def deliver(self, job: Job, result: Reading | Failure) -> None:
        """A job is done."""
        ...

    def fell(self) -> None:
        """An endpoint stopped; its jobs are on the board again."""
        ...

    def rose(self) -> None:
        """An endpoint takes jobs again."""
        ...

    def ended(self, task: asyncio.Task[None]) -> None:
        """A task has ended; if by an exception, that is a bug."""
        ...


class Endpoint:
    """One server. Everything here runs in the loop's thread."""

    def __init__(self, wire: Wire, wanted: Wanted, limit: int, desk: Desk) -> None:
        """Begin as one that is down: `find_out` asks the server.

        Args:
            wire: the server.
            wanted: what the study needs of it.
            limit: prompts asked at once.
            desk: where jobs come from.
        """
        self.wire = wire
        self.limit = limit
        self.ability: Ability | None = None
        self.reason = ""
        """Why it is down."""
        self.lost = False
        """It came back as another server and is not asked again."""
        self._wanted = wanted
        self._desk = desk
        self._promised: Ability | None = None
        self._openings: dict[int, tuple[bytes, ...]] = {}
        variants = wanted.vocabulary.variants if wanted.vocabulary else {}
        self._counts = {letter: len(ids) for letter, ids in variants.items()}
        self._active: dict[asyncio.Task[None], Job] = {}
        self._vouched = 0.0
        self._doubt = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether it takes another job now."""
        return self.ability is not None and len(self._active) < self.limit

    @property
    def load(self) -> float:
        """Share of its places that are taken."""
        return len(self._active) / self.limit

    async def find_out(self) -> None:
        """Probe the server; one that is not there is left as down.

        Raises:
            BenchcheckError: it is there and cannot be used.
        """
        try:
            self.ability = await probe(self.wire, self._wanted)
        except WireError as error:
            self.reason = str(error)

    def promise(self, ability: Ability) -> None:
        """Hold the server to what the run began with, and wait for it if it is down."""
        self._promised = ability
        if self.ability is None:
            self._look_out()

    def start_one(self) -> bool:
        """Begin the next job that waits for this server, if there is one."""
        job = self._desk.board.take(self) if self.has_room else None
        if job is None:
            return False
        task = asyncio.get_running_loop().create_task(self._work(job))
        self._active[task] = job
        task.add_done_callback(self._desk.ended)
        return True

    async def stop(self) -> None:
        """Give up all that is under way."""
        tasks = [*self._active]
        self._active.clear()
        await _end(tasks)

    async def close(self) -> None:
        """Stop, and look out for the server no more."""
        await self.stop()
        await _end([self._looking] if self._looking else [])

    async def _work(self, job: Job) -> None:
        """Read a job and deliver it, or fall."""
        died = False
        try:
            result = await self._read(job)
        except UnreachableError as error:
            # It was up, so it died; this job had not reached it.
            job.deaths -= 1
            self._fall(str(error), died=True)
            return
        except DroppedError as error:
            result, died = Failure("bad_reply", str(error)), True
        except HungError as error:
            result = Failure("timeout", str(error))
        if isinstance(result, Failure) and result.kind not in _OWN:
            trouble = await self._trouble()
            if trouble:
                self._fall(f"{result.detail}; {trouble}", died=died)
                return
        task = asyncio.current_task()
        assert task is not None
        del self._active[task]
        self._desk.deliver(job, result)
        # The next job begins before the loop looks at its sockets again.
        while self.start_one():
            pass

    async def _read(self, job: Job) -> Reading | Failure:
        """Return a job's reading.

        Raises:
            WireError: the server did not reply.
        """
        began = asyncio.get_running_loop().time()
        tokens: list[tuple[str | None, float]] = []
        first: Listed | None = None
        for opening in self._openings.get(job.options) or self._opening(job.options):
            answer = await self.wire.complete(opening, job.content)
            listed = parse_reply(answer.body) if answer.status == 200 else _failure(answer.status, answer.body)
            if isinstance(listed, Failure):
                return listed
            first = first or listed
            # The token that the server chose is in every part's reply.
            seen = {token for token, _ in tokens}
            tokens += [one for one in listed.tokens if one[0] not in seen]
        assert first is not None
        vocabulary = self._wanted.vocabulary
        if vocabulary is not None and (tokens[0][0] or "").startswith("token_id:"):
            tokens = named(tokens, vocabulary.texts)
        exact = self.ability is not None and self.ability.exact
        letters = letters_of(tokens, job.options, self._counts if exact else None)
        if isinstance(letters, Failure):
            return letters
        seconds = asyncio.get_running_loop().time() - began
        return Reading(letters, first.prompt_tokens, seconds, first.cached_tokens)

    def _opening(self, options: int) -> tuple[bytes, ...]:
        """Return the requests that a prompt of so many options takes, without its content."""
        ability, vocabulary = self.ability, self._wanted.vocabulary
        assert ability is not None
        asked: list[dict[str, Any]] = [{"top_logprobs": ability.top}]
        if ability.exact:
            assert vocabulary is not None
            ids = [number for letter in LETTERS[:options] for number in vocabulary.variants[letter]]
            asked = [{"logprob_token_ids": part} for part in split_ids(ids)]
        self._openings[options] = tuple(opening_of(ability.served, one) for one in asked)
        return self._openings[options]

    async def _trouble(self) -> str:
        """Say what is wrong with the server, as seen by a specimen sent after now; empty if it answers."""
        failed = asyncio.get_running_loop().time()
        async with self._doubt:
            assert self.ability is not None, "a fall cancels all that wait here"
            if self._vouched >= failed:  # by the specimen of another prompt that failed at the same time
                return ""
            began = asyncio.get_running_loop().time()
            opening = opening_of(self.ability.served, {"top_logprobs": 1})
            limit = min(SPECIMEN_S, self.wire.timeout_s)
            try:
                answer = await self.wire.complete(opening, content_of(SPECIMEN), limit)
            except WireError as error:
                return str(error)
            said = parse_reply(answer.body) if answer.status == 200 else parse_refusal(answer.status, answer.body)
            if isinstance(said, Failure | Refusal):
                return f"the specimen fails too ({said.detail})"
            self._vouched = began
            return ""

    def _fall(self, reason: str, *, died: bool) -> None:
        """Stop taking jobs; all that were under way go back, unless servers died under them before."""
        assert self.ability is not None, "a fall cancels all that could be the next"
        self.ability, self.reason = None, reason
        self._openings.clear()
        log.warning("%s is down (%s)", self.wire.url, reason)
        active, self._active = self._active, {}
        for task, job in reversed(active.items()):
            if task is not asyncio.current_task():
                task.cancel()
            job.deaths += died
            if job.deaths < DEATHS:
                self._desk.board.give_back(job.group, job)
            else:
                self._desk.deliver(job, Failure("server_died", f"{DEATHS} servers died while they read it: {reason}"))
        self._desk.board.release(self)
        self._look_out()
        self._desk.fell()

    def _look_out(self) -> None:
        self._looking = asyncio.get_running_loop().create_task(self._come_back())
        self._looking.add_done_callback(self._desk.ended)

    async def _come_back(self) -> None:
        """Probe until the server answers as it did at first; one that came back as another is lost."""
        pause = FIRST_LOOK_S
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_S)
            try:
                ability = await probe(self.wire, self._wanted)
                self._hold(ability)
            except (WireError, RunError) as error:
                self.reason = str(error)
            except UsageError as error:
                self.reason, self.lost = str(error), True
                log.warning("%s", error)
                self._desk.fell()
                return
            else:
                self.ability = ability
                log.warning("%s is back", self.wire.url)
                self._desk.rose()
                return

    def _hold(self, ability: Ability) -> None:
        promised = self._promised
        if promised is not None and (ability.exact, ability.top) != (promised.exact, promised.top):
            raise UsageError(
                f"{self.wire.url} reads {ability.reads}, the run began with {promised.reads}. Cure: start it as it was"
            )


def _failure(status: int, body: bytes) -> Failure:
    """Return what a refused prompt fails with."""
    refusal = parse_refusal(status, body)
    kind = {"key": "bad_request", "absent": "bad_request", "logprobs": "no_logprobs"}.get(refusal.kind, refusal.kind)
    return Failure(kind, refusal.detail)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
