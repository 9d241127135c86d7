"""One `read` of the vllm backend: prompts in, requests to the engine, outcomes out, all in the thread that iterates.

Prompts are taken while there is room: a few thousand short ones so that the engine always finds a full batch, or some
dozens of videos, which worker processes decode meanwhile. What belongs together is sent back to back, which is what
vLLM's prefix cache needs to compute it once.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from benchcheck.backends import Outcome
from benchcheck.backends.decoding import Decoded, Decoders, Lost
from benchcheck.backends.queries import Queries, Query
from benchcheck.backends.rendering import Rendered, Renderer, refusal
from benchcheck.backends.sharing import Asked, Sharing
from benchcheck.backends.vllm_engine import Answered, Core, Event
from benchcheck.backends.vllm_inputs import Frames, Ordinary, ReadyMade
from benchcheck.errors import BackendError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Desk", "Limits", "Session"]

_CHUNK = 64
"""Prompts that are tokenised together."""
_LOOK_S = 1.0
"""How often a run that waits looks whether the engine lives."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far ahead of the answers a session reads."""

    prompts: int
    """Prompts taken and not answered; before answers are handed out, so many again are taken to feed the engine."""
    videos: int
    """Sets of frames among them."""
    timeout_s: float
    """The engine has hung when nothing at all came for so long."""


class Desk(Protocol):
    """What a session needs of the backend."""

    core: Core
    decoders: Decoders | None
    events: queue.SimpleQueue[Event]
    limits: Limits
    queries: Queries
    renderer: Renderer
    route: ReadyMade | Ordinary | None
    sharing: Sharing
    unreadable: Mapping[str, str]

    def number(self) -> int:
        """Return a number that was not used before."""
        ...


@dataclass(slots=True)
class _Flight:
    """A prompt at the engine."""

    index: int
    query: Query
    tokens: int
    expected: int
    sent: float
    answers: list[Answered] = field(default_factory=list)


@dataclass(slots=True)
class _Video:
    """A set of frames, and the prompts that wait for it."""

    paths: tuple[str, ...]
    waiting: list[tuple[int, Prompt]] = field(default_factory=list)
    open: int = 0
    """Prompts without an outcome."""
    frames: Frames | None = None
    lost: Failure | None = None


class Session:
    """Reads the prompts of one call."""

    def __init__(self, desk: Desk, prompts: Iterable[Prompt]) -> None:
        self._desk = desk
        self._prompts = enumerate(prompts)
        self._ended = False
        self._held: tuple[int, Prompt] | None = None
        self._flights: dict[str, _Flight] = {}
        self._videos: dict[int, _Video] = {}
        self._latest: _Video | None = None
        self._video_of: dict[int, _Video] = {}
        self._open = 0
        self._ready: deque[Outcome] = deque()
        self._heard = time.monotonic()

    def outcomes(self) -> Iterator[Outcome]:
        """Yield one outcome per prompt.

        Raises:
            BackendError: the engine died, hung, or the frames' memory ran out.
        """
        try:
            while True:
                self._take()
                while self._ready:
                    yield self._ready.popleft()
                if not self._open and self._ended:
                    return
                if self._open:
                    self._listen()
        finally:
            # A run that stops half-way leaves requests behind; without them the engine is free for the next.
            if self._flights:
                self._desk.core.abort(list(self._flights))

    def _take(self) -> None:
        """Take prompts while there is room, and send those that need not wait for frames."""
        plain: list[tuple[int, Prompt]] = []
        room = self._desk.limits.prompts - self._open
        # A chunk at a time, unless nothing else is under way: a call of the tokenizer for a single prompt costs as
        # much as one for eight.
        if self._ended or room < min(_CHUNK, self._desk.limits.prompts) <= self._open:
            return
        for index, prompt in self._next(room):
            self._open += 1
            failure = self._unfit(prompt)
            if failure is not None:
                self._finish(index, failure)
            elif not prompt.frames:
                plain.append((index, prompt))
            else:
                self._send(plain, None)
                plain = []
                self._join(index, prompt)
            if len(plain) == _CHUNK:
                self._send(plain, None)
                plain = []
        self._send(plain, None)

    def _next(self, room: int) -> Iterator[tuple[int, Prompt]]:
        """Yield up to `room` prompts, but none that needs more videos than are allowed."""
        for _ in range(room):
            pair = self._held or next(self._prompts, None)
            self._held = None
            if pair is None:
                self._ended = True
                return
            if pair[1].frames and not self._joins(pair[1]) and self._full():
                self._held = pair
                return
            yield pair

    def _full(self) -> bool:
        return sum(video.open > 0 for video in self._videos.values()) >= self._desk.limits.videos

    def _joins(self, prompt: Prompt) -> bool:
        return self._latest is not None and self._latest.paths == _paths(prompt)

    def _unfit(self, prompt: Prompt) -> Failure | None:
        """Say why a prompt cannot be asked at all."""
        desk = self._desk
        if len(prompt.frames) > desk.core.plan.images:
            raise BackendError(
                f"a prompt shows {len(prompt.frames)} frames and the engine was opened for {desk.core.plan.images}"
            )
        return refusal(prompt, desk.renderer, desk.unreadable)

    def _join(self, index: int, prompt: Prompt) -> None:
        """Put a prompt to its video, which is decoded once for neighbours."""
        video = self._latest
        if video is None or not self._joins(prompt):
            before, video = video, _Video(_paths(prompt))
            self._latest = video
            if before is not None:
                self._let_go(before)
                self._drop_finished()
            key = self._desk.number()
            self._videos[key] = video
            assert self._desk.decoders is not None
            self._desk.decoders.submit(key, video.paths)
        video.open += 1
        self._video_of[index] = video
        if video.lost is not None:
            self._finish(index, video.lost)
        elif video.frames is not None:
            self._send([(index, prompt)], video)
        else:
            video.waiting.append((index, prompt))

    def _drop_finished(self) -> None:
        """Forget videos whose prompts are all answered; no further prompt can join them."""
        self._videos = {key: video for key, video in self._videos.items() if video.open or video is self._latest}

    def _send(self, prompts: Sequence[tuple[int, Prompt]], video: _Video | None) -> None:
        """Render prompts and hand them to the engine, back to back."""
        if not prompts:
            return
        frames = video.frames if video is not None else None
        sizes = [[frames.sizes[path] for path in prompt.frames] if frames else [] for _, prompt in prompts]
        rendered = self._desk.renderer.render_all([prompt for _, prompt in prompts], sizes)
        for (index, prompt), one in zip(prompts, rendered, strict=True):
            self._ask(index, prompt, one, frames)

    def _ask(self, index: int, prompt: Prompt, rendered: Rendered, frames: Frames | None) -> None:
        """Hand one prompt to the engine, in as many requests as its letters need."""
        desk = self._desk
        length, limit = len(rendered.ids), desk.core.max_tokens
        if length > limit:
            self._finish(index, Failure("context_too_long", f"{length} tokens; the model takes {limit}"))
            return
        query = desk.queries.of(len(prompt.order))
        digests = [frames.digests[path] for path in prompt.frames] if frames else []
        images = tuple((first, digest) for (first, _, _), digest in zip(rendered.images, digests, strict=True))
        expected = desk.sharing.expect(Asked(rendered.ids, images))
        flight = _Flight(index, query, length, expected, time.perf_counter())
        number = desk.number()
        for part, ids in enumerate(query.chunks):
            refused = desk.core.add(f"{number}.{part}", self._input(prompt, rendered, frames), ids)
            if refused is not None:
                self._finish(index, Failure("refused_by_engine", refused))
                return
            self._flights[f"{number}.{part}"] = flight

    def _input(self, prompt: Prompt, rendered: Rendered, frames: Frames | None) -> object:
        if frames is None:
            return self._desk.core.text(rendered.ids.tolist())
        assert self._desk.route is not None
        return self._desk.route.prompt(rendered, prompt.frames, frames)

    def _listen(self) -> None:
        """Wait for the next event, and take all that came with it."""
        try:
            event = self._desk.events.get(timeout=_LOOK_S)
        except queue.Empty:
            self._desk.core.check()
            self._look_at_the_clock()
            return
        self._heard = time.monotonic()
        while True:
            self._handle(event)
            try:
                event = self._desk.events.get_nowait()
            except queue.Empty:
                return

    def _look_at_the_clock(self) -> None:
        limit = self._desk.limits.timeout_s
        if time.monotonic() - self._heard > limit:
            raise BackendError(
                f"vLLM's engine gave no answer for {limit:.0f} s. Cure: run the same command again; if it is only "
                "slow, raise engine.timeout_s"
            )

    def _handle(self, event: Event) -> None:
        match event:
            case BackendError():
                raise event
            case Decoded():
                self._decoded(event)
            case Lost():
                self._lost(event)
            case _:
                for answered in event:
                    self._answered(answered)

    def _decoded(self, decoded: Decoded) -> None:
        """Make a video's frames ready and send the prompts that waited for it."""
        desk = self._desk
        assert desk.decoders is not None
        video = self._videos.get(decoded.key)
        if video is None:  # of a read that was given up
            desk.decoders.release(decoded)
            return
        import torch

        # A copy of 11 MB takes 3 ms and gives the slot back at once; sent from the slot, it would have to stay until
        # the engine has read it, whatever happens to this read.
        patches = torch.from_numpy(decoded.patches.copy())
        desk.decoders.release(decoded)
        assert desk.route is not None
        video.frames = desk.route.frames(video.paths, decoded.frames, patches)
        waiting, video.waiting = video.waiting, []
        self._send(waiting, video)
        self._let_go(video)

    def _lost(self, lost: Lost) -> None:
        """Fail the prompts of a video that could not be read, and no others."""
        video = self._videos.get(lost.key)
        if video is None:
            return
        video.lost = Failure(lost.kind, lost.detail)
        waiting, video.waiting = video.waiting, []
        for index, _ in waiting:
            self._finish(index, video.lost)
        self._drop_finished()

    def _let_go(self, video: _Video) -> None:
        """Give up a video's pixels when no further prompt can need them."""
        if video is not self._latest and not video.waiting:
            video.frames = None

    def _answered(self, answered: Answered) -> None:
        """Add an answer to its prompt; the last one makes the outcome."""
        flight = self._flights.pop(answered.name, None)
        if flight is None:  # of a read that was given up, or of a prompt whose other request was refused
            return
        flight.answers.append(answered)
        if len(flight.answers) == len(flight.query.chunks):
            self._finish(flight.index, self._reading(flight))

    def _reading(self, flight: _Flight) -> Reading | Failure:
        errors = [answer.error for answer in flight.answers if answer.error]
        if errors:
            return Failure("engine_error", errors[0])
        cached = flight.answers[0].cached
        self._desk.sharing.count(flight.tokens, flight.expected, cached)
        letters = self._desk.queries.read(flight.query, [answer.logprobs for answer in flight.answers])
        if isinstance(letters, Failure):
            return letters
        return Reading(letters, flight.tokens, time.perf_counter() - flight.sent, cached)

    def _finish(self, index: int, result: Reading | Failure) -> None:
        self._open -= 1
        video = self._video_of.pop(index, None)
        if video is not None:
            video.open -= 1
            if not video.open and video is not self._latest:
                self._drop_finished()
        self._ready.append(Outcome(index, result))


def _paths(prompt: Prompt) -> tuple[str, ...]:
    """Return a prompt's frames as a set: a shuffled video is the same files."""
    return tuple(sorted(set(prompt.frames)))
