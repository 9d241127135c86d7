"""Worker processes of a run: started together, heard one by one, all gone before the call returns or raises."""

import ctypes
import logging
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import IO

from benchcheck.errors import BackendError, UsageError
from benchcheck.files import writing
from benchcheck.run.work import Progress
from benchcheck.settings import ENVIRONMENT

__all__ = ["DRIVER", "Worker", "end_with_driver", "run_workers"]

DRIVER = "BENCHCHECK_DRIVER"
"""Environment variable that tells a worker the process that started it."""
_LOOK_S = 0.5
_GRACE_S = 60.0
"""A worker writes what it has within a second or two and closes its engine, for which vLLM may take 20 s; one that
takes longer hangs and is killed."""
_NOTE = "benchcheck: note: "
"""How the command line begins what an engine wants to be known."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One process to start."""

    command: Sequence[str]
    environment: Mapping[str, str]
    """Variables that it gets beside those of this process."""
    log: Path | None = None
    """A file that gets what it writes to its standard error."""


def end_with_driver(environment: Mapping[str, str]) -> None:
    """Let Linux end this worker as SIGTERM does when the process that started it is killed; what was read is written.

    Elsewhere a worker ends at its next line of progress, which nobody takes.
    """
    driver = environment.get(DRIVER, "")
    if driver.isdecimal() and sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
        if os.getppid() != int(driver):  # it was killed before this line
            raise KeyboardInterrupt


def run_workers(
    step: int, workers: Sequence[Worker], progress: Progress, watch: Callable[[], None] = lambda: None
) -> None:
    """Run workers of a step to their end and pass their progress on.

    Args:
        step: the step's number.
        workers: what to start.
        progress: called after each write of each worker.
        watch: called twice a second; what it raises ends the workers, which write what they have read.

    Raises:
        UsageError: a worker was told something wrong.
        BackendError: a worker died; rows that were written stay.
        StudyError: a log cannot be written.
    """
    done: queue.SimpleQueue[tuple[int, int] | None] = queue.SimpleQueue()
    errors: list[list[str]] = [[] for _ in workers]
    told: set[str] = set()
    with ExitStack() as started:
        # Left in reverse order: processes end, then what they still wrote is read, then their logs are closed.
        logs = [started.enter_context(_opened(worker.log)) for worker in workers]
        readers = started.enter_context(_joined())
        processes: list[subprocess.Popen[str]] = started.enter_context(_ended())
        for worker, error, log in zip(workers, errors, logs, strict=True):
            # A session of its own: a terminal's Ctrl-C reaches this process alone, which ends its workers once.
            process = subprocess.Popen(
                worker.command, stdout=PIPE, stderr=PIPE, text=True, env=_environment(worker), start_new_session=True
            )
            processes.append(process)
            for reads, what in ((_forward, (process.stdout, done)), (_keep, (process.stderr, error, log, told))):
                readers.append(threading.Thread(target=reads, args=what, daemon=True))
                readers[-1].start()
        running = len(workers)
        while running:
            watch()
            try:
                counts = done.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if counts is None:
                running -= 1
            else:
                progress(*counts)
        codes = [process.wait() for process in processes]
    _judge(step, codes, errors)


@contextmanager
def _ended() -> Iterator[list["subprocess.Popen[str]"]]:
    """A list of processes that are ended together when the block is left; those that do not listen are killed."""
    processes: list[subprocess.Popen[str]] = []
    try:
        yield processes
    finally:
        end = time.monotonic() + _GRACE_S
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _joined() -> Iterator[list[threading.Thread]]:
    """A list of threads that are waited for when the block is left: they end with the processes that they read."""
    threads: list[threading.Thread] = []
    try:
        yield threads
    finally:
        for thread in threads:
            thread.join(timeout=5)


def _environment(worker: Worker) -> dict[str, str]:
    """A worker's variables. Those that set `[engine]` keys are left out: the worker gets these keys as flags."""
    here = {key: value for key, value in os.environ.items() if key not in ENVIRONMENT}
    return {**here, **worker.environment, DRIVER: str(os.getpid())}


def _opened(log: Path | None) -> IO[str]:
    """Open a log to append to; none is nowhere."""
    log = log or Path(os.devnull)
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("a", encoding="utf-8", buffering=1)


def _judge(step: int, codes: Sequence[int], errors: Sequence[Sequence[str]]) -> None:
    """Raise what a worker ended with; wrong use stays wrong use."""
    failures = [(code, error[-1:]) for code, error in zip(codes, errors, strict=True) if code]
    if not failures:
        return
    code, lines = failures[0]
    last = lines[0].strip().removeprefix("benchcheck: ") if lines else "without a word"
    kind = UsageError if code == UsageError.exit_code else BackendError
    raise kind(f"{len(failures)} of {len(codes)} workers of step {step} ended early: {last}")


def _forward(pipe: IO[str] | None, done: "queue.SimpleQueue[tuple[int, int] | None]") -> None:
    """Pass a worker's progress on, leaving out what a library prints; None says that it has ended."""
    if pipe is not None:
        with pipe:
            for line in pipe:
                if counts := re.fullmatch(r"(\d+) (\d+)\n", line):
                    done.put((int(counts[1]), int(counts[2])))
    done.put(None)


def _keep(pipe: IO[str] | None, error: list[str], log: IO[str], told: set[str]) -> None:
    """Keep the last lines that a worker wrote to its standard error, and all of them in its log.

    A note of its engine is passed on instead, once for all workers.
    """
    if pipe is not None:
        with pipe:
            for line in pipe:
                note = line.rstrip().removeprefix(_NOTE)
                if line.startswith(_NOTE) and note not in told:
                    told.add(note)
                    logging.getLogger("benchcheck").warning("%s", note)
                elif not line.startswith(_NOTE):
                    error.append(line)
                    del error[:-50]
                with suppress(OSError, ValueError):  # a full disk, or closed already: the log is not what matters
                    log.write(line)
