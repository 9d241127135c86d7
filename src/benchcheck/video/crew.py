"""Worker processes that may die: tasks go out one by one, and what dies with a task in hand fails that task only.

Plain processes on pipes instead of a pool: a pool breaks as a whole when one process is killed by a bad file, and
needs an importable `__main__`, which a notebook or `python -` has not.
"""

import contextlib
import json
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Self

from benchcheck.errors import RunError

__all__ = ["WORKER", "Death", "Worker", "work_through"]

WORKER = (sys.executable, "-P", "-m", "benchcheck.video.worker")
"""`-P`: a file of the user's called `av.py` in the current folder is not imported."""


class Death:
    """How a worker process ended while it held a task."""

    def __init__(self, code: int, last_words: str) -> None:
        self.code, self.last_words = code, last_words

    @property
    def timed_out(self) -> bool:
        """Whether its own alarm ended it."""
        return self.code == -signal.SIGALRM

    def __str__(self) -> str:
        if self.code >= 0:
            return f"the worker ended with code {self.code}: {self.last_words}"
        name = signal.Signals(-self.code).name
        hint = " (often: out of memory)" if self.code == -signal.SIGKILL else ""
        return f"the decoder was ended by {name}{hint}"


class Worker:
    """One worker process and the task it holds."""

    def __init__(self, command: Sequence[str], settings: Mapping[str, Any]) -> None:
        self.task: Any = None
        # A file, not a pipe: nobody reads it while the worker lives, and a full pipe would stop it.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        # A session of its own: Ctrl-C reaches the run only, which then ends its workers.
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        self._send(settings)

    @property
    def answers(self) -> IO[bytes]:
        """The pipe to wait on."""
        assert self._process.stdout is not None
        return self._process.stdout

    def give(self, task: Any, message: Mapping[str, Any]) -> None:
        """Hand out a task; a worker that is dead already is noticed when its answer is awaited."""
        self.task = task
        self._send(message)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def answer(self) -> Mapping[str, Any] | Death:
        """The next answer, or how the process ended."""
        line = self.answers.readline()
        if line.endswith(b"\n"):
            answer: Mapping[str, Any] = json.loads(line)
            return answer
        code = self._process.wait()
        size = self._errors.seek(0, 2)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return Death(code, lines[-1] if lines else "")

    def end(self) -> None:
        """End the process now and close its pipes."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def work_through(
    tasks: Iterable[tuple[Any, Mapping[str, Any]]],
    settings: Mapping[str, Any],
    workers: int,
    command: Sequence[str] = WORKER,
) -> Generator[tuple[Any, Mapping[str, Any] | Death]]:
    """Yield every task with its answer, or with the death of the worker that held it, as they come.

    A task is a pair of what is yielded back and the message for the worker. Workers that died are replaced. However
    this generator ends, by an exception or Ctrl-C too, no process is left.

    Raises:
        RunError: a worker cannot start at all.
    """
    with _Crew(iter(tasks), settings, command) as crew:
        for _ in range(workers):
            crew.hire()
        while crew.busy:
            for worker in crew.answering():
                task, answer = worker.task, worker.answer()
                crew.go_on(worker, answer)
                if task is not None:
                    yield task, answer


class _Crew:
    """The workers of one run, and the tasks that are not handed out yet."""

    def __init__(
        self, tasks: Iterator[tuple[Any, Mapping[str, Any]]], settings: Mapping[str, Any], command: Sequence[str]
    ) -> None:
        self._tasks, self._settings, self._command = tasks, settings, command
        self._workers: set[Worker] = set()
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._dismiss(worker)
        self._selector.close()

    @property
    def busy(self) -> bool:
        """Whether any worker is left."""
        return bool(self._workers)

    def answering(self) -> list[Worker]:
        """Workers that have said something, or died; waits for the first."""
        return [key.data for key, _ in self._selector.select()]

    def hire(self) -> None:
        """Start a worker; its first answer is that it is there."""
        worker = Worker(self._command, self._settings)
        self._workers.add(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)

    def go_on(self, worker: Worker, answer: Mapping[str, Any] | Death) -> None:
        """Give a worker its next task, or replace it when it died."""
        if isinstance(answer, Death):
            self._dismiss(worker)
            if worker.task is None:
                raise RunError(f"a frame worker cannot start: {answer}")
            self.hire()
            return
        task = next(self._tasks, None)
        if task is None:
            self._dismiss(worker)
        else:
            worker.give(*task)

    def _dismiss(self, worker: Worker) -> None:
        self._selector.unregister(worker.answers)
        self._workers.discard(worker)
        worker.end()
