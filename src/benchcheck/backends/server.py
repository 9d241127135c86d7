"""The `server` backend: OpenAI-compatible endpoints, several at once, asked over HTTP.

An asyncio loop in a thread of its own talks to the servers; prompts are taken, and frames read, in the thread that asks
for outcomes. Prompts that share a prefix go to one server, so that its prefix cache works.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from benchcheck.backends import ModelSpec, Outcome
from benchcheck.backends.checkpoint import resolve
from benchcheck.backends.desk import FrontDesk, Loop
from benchcheck.backends.endpoint import Job
from benchcheck.backends.letters import unreadable_failure
from benchcheck.backends.pixels import Memory, UndecodableFrameError
from benchcheck.backends.probe import Wanted
from benchcheck.backends.readout import check_preset
from benchcheck.backends.replies import content_of, image_part
from benchcheck.backends.serving import default_in_flight
from benchcheck.backends.vocabulary import Vocabulary, load_vocabulary
from benchcheck.errors import MissingExtraError, UsageError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure

__all__ = ["ServerBackend", "read_jpeg"]

_MEMORY_BYTES = 256 << 20
"""Frames in base64 that are kept: about 150 videos of 32 frames of 448x252 pixels."""
_BATCH = 16
"""Text prompts are handed to the loop in batches: waking it costs more than a prompt."""

Value = TypeVar("Value")
log = logging.getLogger("benchcheck")


class ServerBackend:
    """Reads letters from servers; `engine.device` names their hosts, since a server does not say what it runs on.

    A server cannot prove which revision it serves: `engine.revision` is the config's.
    """

    def __init__(self, spec: ModelSpec) -> None:
        """Probe the servers.

        Raises:
            UsageError: no endpoint is named, the key is not there, or a server does not serve what the study needs.
            ModelRefusedError: letters cannot be read from a server.
            MissingExtraError: aiohttp is not installed.
            BackendError: no server is there, or one is no OpenAI-compatible server.
        """
        check_preset(spec.preset)
        settings = spec.settings
        if not settings.endpoints:
            raise UsageError(
                "the server backend needs an endpoint. Allowed: base URLs such as http://host:8001/v1. Cure: give "
                "--endpoint URL, set `endpoints` under [engine], or use --launch, which starts servers here"
            )
        if importlib.util.find_spec("aiohttp") is None:
            raise MissingExtraError("the server backend", "server")
        key = _key(settings.api_key)
        found = load_vocabulary(spec.model, spec.revision, spec.cache)
        self._vocabulary = found if isinstance(found, Vocabulary) else None
        wanted = Wanted(
            model=spec.model, folder=_folder(spec.model), served_name=settings.served_name,
            exact=spec.preset == "exact", images=spec.images, image_side=spec.image_side, vocabulary=self._vocabulary,
        )  # fmt: skip
        self._limit = settings.in_flight or default_in_flight(spec.images)
        self._frames: Memory[bytes] = Memory(_MEMORY_BYTES, len)
        self._desk = FrontDesk()
        self._loop = Loop()
        try:
            self._loop.call(self._desk.open(settings.endpoints, wanted, self._limit, (key, settings.timeout_s)))
            self.engine = self._desk.engine(spec.revision)
        except BaseException:
            self.close()
            raise
        if wanted.exact and not self._desk.exact:
            reason = found if isinstance(found, str) else "they cannot list tokens by id (vLLM can from mid-2026 on)"
            log.warning("letters are read from the servers' top tokens, absent ones are marked missing: %s", reason)

    def close(self) -> None:
        """End the connections and the thread."""
        if self._loop.running:
            self._loop.call(self._desk.close())
            self._loop.close()
        self._frames.clear()

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt, as the servers answer.

        Twice as many prompts as the servers read at once are taken ahead.

        Raises:
            BackendError: no server is left.
        """
        results: SimpleQueue[Outcome | BaseException] = SimpleQueue()
        ahead, under_way = 2 * self._limit * self._desk.size, 0
        jobs = self._jobs(prompts)
        self._loop.call(self._desk.begin(results))
        try:
            while True:
                batch, done = _next_batch(jobs, ahead - under_way)
                if batch:
                    self._loop.post(self._desk.accept, batch)
                    under_way += len(batch)
                yield from done
                more = bool(batch or done)
                if not (more or under_way):
                    return
                for result in _ready(results, wait=not more or under_way >= ahead):
                    if isinstance(result, BaseException):
                        raise result
                    under_way -= 1
                    yield result
        finally:
            if self._loop.running:
                self._loop.call(self._desk.end(results))
            self._frames.clear()

    def _jobs(self, prompts: Iterable[Prompt]) -> Iterator[Job | Outcome]:
        """Yield prompts as jobs, numbered by group, or at once what became of them."""
        group, members, before = -1, 0, None
        for index, prompt in enumerate(prompts):
            shared = prompt.prefix or prompt.item_id
            # One server does not get more of a group than it reads at once, or the others would wait for work.
            if shared != before or members >= self._limit:
                group, members, before = group + 1, 0, shared
            members += 1
            failure = self._unfit(prompt)
            if failure is not None:
                yield Outcome(index, failure)
                continue
            try:
                frames = [self._frame(path) for path in prompt.frames]
            except UndecodableFrameError as error:
                yield Outcome(index, Failure("undecodable_frames", str(error)))
            else:
                yield Job(index, group, len(prompt.order), content_of(prompt.text, frames))

    def _unfit(self, prompt: Prompt) -> Failure | None:
        """Say why a prompt cannot be asked, as far as the tokenizer tells."""
        if self._vocabulary is None:
            return None
        held = self._vocabulary.control and self._vocabulary.control.search(prompt.text)
        if held:
            return Failure("control_token_in_text", f"the text holds {held.group()}, a control token of this model")
        return unreadable_failure(self._vocabulary.unreadable, len(prompt.order))

    def _frame(self, path: str) -> bytes:
        """Return a frame as a piece of a request; its file is read and encoded once while it is remembered.

        Raises:
            UndecodableFrameError: the file is missing or no whole JPEG.
        """
        part = self._frames.get(path)
        if part is None:
            part = image_part(b64encode(read_jpeg(path)))
            self._frames.put(path, part)
        return part


def read_jpeg(path: str) -> bytes:
    """Return a JPEG file's bytes.

    Raises:
        UndecodableFrameError: the file is missing, empty, cut or something else.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UndecodableFrameError(f"{path}: {error.strerror or error}") from error
    if not data:
        raise UndecodableFrameError(f"{path}: an empty file")
    if not data.startswith(b"\xff\xd8\xff"):
        raise UndecodableFrameError(f"{path}: no JPEG, it begins with {data[:12]!r}")
    if data.rfind(b"\xff\xd9") < 0:
        raise UndecodableFrameError(f"{path}: a JPEG that ends too early ({len(data):,} bytes)")
    return data


def _next_batch(jobs: Iterator[Job | Outcome], most: int) -> tuple[list[Job], list[Outcome]]:
    """Return the next jobs, and outcomes that came before they were asked; a prompt with frames goes out alone."""
    batch: list[Job] = []
    done: list[Outcome] = []
    while len(batch) < min(most, _BATCH) and len(done) < _BATCH:
        job = next(jobs, None)
        if job is None:
            break
        if isinstance(job, Outcome):
            done.append(job)
            continue
        batch.append(job)
        if len(job.content) > 1:
            break
    return batch, done


def _ready(results: SimpleQueue[Value], *, wait: bool) -> list[Value]:
    """Return all results that are there; with `wait`, at least one."""
    found = [results.get()] if wait else []
    try:
        while True:
            found.append(results.get_nowait())
    except Empty:
        return found


def _key(variable: str) -> str:
    """Return the endpoints' key, from the environment variable that holds it.

    Raises:
        UsageError: there is no such variable, or no header can carry what it holds.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(
            f"`api_key` under [engine] names the environment variable {variable}, which is not set. Cure: export it, "
            "or remove `api_key`"
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the environment variable {variable} holds no key: a key is one line of printable ASCII")
    return key


def _folder(model: str) -> str:
    """Return where the config's model lies on this machine, or nothing."""
    try:
        place = resolve(model)
    except UsageError:
        return ""
    return str(place) if isinstance(place, Path) else ""
