"""Videos decoded ahead of the model, in worker processes that may die: frame files in, patches in shared memory out.

The memory has no name: file descriptors that only this process and its workers hold. So nothing is left behind however
a run ends (`kill -9` included), and the 64 MB of /dev/shm in a container are no limit. Each worker has a thread that
hands it one video at a time and waits; a worker that dies or hangs takes nothing with it but that video's first try.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import queue
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchcheck.backends.patches import Bytes, Recipe
from benchcheck.errors import BackendError
from benchcheck.pipes import Death, Worker

__all__ = ["WORKER", "Decoded", "Decoders", "FramePatches", "Lost", "usual_workers"]

WORKER = (sys.executable, "-P", "-m", "benchcheck.backends.decode_worker")
"""`-P`: a file of the user's called `PIL.py` in the current folder is not imported."""

_ATTEMPTS = 2
_GRAIN = 1 << 20
"""Slots grow by whole MiB."""


def usual_workers() -> int:
    """Return how many workers a machine's cores carry: half of them, 1 to 6.

    Measured on one H200: a worker decodes 12 to 18 videos of 32 frames a second, the 2B model reads 20.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(6, cores // 2))


@dataclass(frozen=True, slots=True)
class FramePatches:
    """One frame: its size in patches and the digest of its file."""

    height: int
    width: int
    digest: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """A video's frames in shared memory, until `release`."""

    key: int
    frames: tuple[FramePatches, ...]
    patches: Bytes
    """uint8 [patches of all frames, bytes of a patch]; a view that `release` gives back."""
    slot: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A video that gave no patches, and why: a kind for programs, a detail for people."""

    key: int
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class _Task:
    key: int
    paths: tuple[str, ...]


class _Slot:
    """Memory that is shared with the workers and grows to the largest video it held."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.size = 0
        self._map: mmap.mmap | None = None
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("benchcheck-frames")
        else:  # pragma: no cover (not Linux: a file without a name)
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())

    def grow(self, size: int) -> None:
        """Make room for `size` bytes.

        Raises:
            BackendError: memory is short. Without asking first, writing would end the worker by SIGBUS.
        """
        size = -(-size // _GRAIN) * _GRAIN
        try:
            os.ftruncate(self.descriptor, size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.descriptor, 0, size)
            self._map = mmap.mmap(self.descriptor, size)
        except (OSError, ValueError) as error:
            raise BackendError(
                f"no memory for decoded frames ({size >> 20} MiB: {error}). Cure: lower engine.decode_workers, "
                "or give the job more memory"
            ) from error
        self.size = size

    def view(self, rows: int, width: int) -> Bytes:
        """Return the patches that a worker wrote."""
        assert self._map is not None
        return np.frombuffer(self._map, dtype=np.uint8, count=rows * width).reshape(rows, width)

    def close(self) -> None:
        """Give the memory back; a view that somebody still holds keeps its own mapping alive."""
        os.close(self.descriptor)
        if self._map is not None:
            with contextlib.suppress(BufferError):
                self._map.close()


def _how_it_died(death: Death) -> str:
    if death.timed_out:
        return "it took longer than allowed"
    return (
        f"ended by {death.signal}" if death.signal else f"ended with code {death.code}: {death.last_words or 'no word'}"
    )


class Decoders:
    """Decodes videos side by side; `done` is called in a worker's thread with each `Decoded`, `Lost` or BackendError.

    A worker that was killed or took longer than `limit_s` is replaced and its video tried once more. The caller bounds
    how many videos it submits; `slots` of them lie decoded at a time.
    """

    def __init__(
        self,
        recipe: Recipe,
        done: Callable[[Decoded | Lost | BackendError], None],
        *,
        workers: int,
        limit_s: float = 60.0,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._recipe, self._done, self._limit, self._command = recipe, done, limit_s, command
        # Two videos a worker lie ready while it fills a third.
        self._slots = [_Slot(number) for number in range(3 * workers)]
        self._settings = {"recipe": recipe.table(), "slots": [slot.descriptor for slot in self._slots]}
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._free: queue.SimpleQueue[_Slot | None] = queue.SimpleQueue()
        for slot in self._slots:
            self._free.put(slot)
        self._closed = False
        self._processes: set[Worker] = set()
        self._threads = [threading.Thread(target=self._work, daemon=True, name="decode") for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return [worker.pid for worker in list(self._processes)]

    def submit(self, key: int, paths: tuple[str, ...]) -> None:
        """Ask for a video's frames; returns at once."""
        self._tasks.put(_Task(key, paths))

    def release(self, decoded: Decoded) -> None:
        """Give a video's memory back; its `patches` are overwritten from now on."""
        self._free.put(self._slots[decoded.slot])

    def close(self) -> None:
        """End the workers and give the memory back."""
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
            self._free.put(None)
        for worker in list(self._processes):
            worker.kill()  # its thread then reads the end of its pipe
        for thread in self._threads:
            thread.join(timeout=10)
        for slot in self._slots:
            slot.close()

    def _work(self) -> None:
        """Serve one worker process after the other until `close`; runs on a thread."""
        worker: Worker | None = None
        try:
            worker = self._hire()
            while (task := self._tasks.get()) is not None and not self._closed:
                slot = self._free.get()
                if slot is None:
                    break
                worker, result = self._attempt(worker, task, slot)
                if not isinstance(result, Decoded):
                    self._free.put(slot)
                self._done(result)
        except BackendError as error:
            if not self._closed:
                self._done(error)
        finally:
            if worker is not None:
                self._dismiss(worker)

    def _hire(self) -> Worker:
        """Start a worker and wait until it is there, a second or two.

        Raises:
            BackendError: it is not.
        """
        # One thread each: they are the parallelism.
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        worker = Worker(self._command, self._settings, threads, [slot.descriptor for slot in self._slots])
        self._processes.add(worker)
        if self._closed:
            worker.kill()
        hello = worker.answer()
        if not isinstance(hello, Death):
            return worker
        self._dismiss(worker)
        raise BackendError(
            f"a decode worker cannot start: {_how_it_died(hello)}. Cure: check that numpy, pillow and torch import in "
            "this Python"
        )

    def _dismiss(self, worker: Worker) -> None:
        self._processes.discard(worker)
        worker.end()

    def _attempt(self, worker: Worker, task: _Task, slot: _Slot) -> tuple[Worker, Decoded | Lost]:
        """Decode one video; return the worker for the next one, which is another where this one died."""
        how = ""
        for _ in range(_ATTEMPTS):
            answer = self._ask(worker, task, slot)
            if isinstance(answer, Death):
                how = _how_it_died(answer)
            elif "frames" in answer:
                frames = tuple(FramePatches(*frame) for frame in answer["frames"])
                rows = sum(frame.height * frame.width for frame in frames)
                return worker, Decoded(task.key, frames, slot.view(rows, self._recipe.width), slot.number)
            elif "broken" in answer:
                return worker, Lost(task.key, "undecodable_frames", answer["broken"])
            else:
                how = "the files changed while they were read"
            self._dismiss(worker)
            if self._closed:
                raise BackendError("closed")
            worker = self._hire()
        # Not `undecodable_frames`, which is never asked again: a worker that was killed may have met with a full
        # memory, and the same file may well be readable tomorrow.
        return worker, Lost(task.key, "decoder_died", f"{task.paths[0]}: two workers died of it: {how}")

    def _ask(self, worker: Worker, task: _Task, slot: _Slot) -> Mapping[str, Any] | Death:
        """Return the worker's answer, the slot having been made large enough."""
        message = {"paths": task.paths, "slot": slot.number, "limit_s": self._limit}
        worker.send({**message, "bytes": slot.size})
        answer = worker.answer()
        if not isinstance(answer, Death) and "need" in answer:
            slot.grow(answer["need"])
            worker.send({**message, "bytes": slot.size})
            answer = worker.answer()
        return answer
