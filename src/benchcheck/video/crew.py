"""Worker processes that may die: tasks go out one by one, and what dies with a task in hand fails that task only."""

import contextlib
import selectors
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from benchcheck import pipes
from benchcheck.errors import RunError, StudyError
from benchcheck.pipes import Death
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.supply import Supply
from benchcheck.video.task import Task

__all__ = ["WORKER", "Worker", "how_it_died", "settled", "work_through"]

WORKER = (sys.executable, "-P", "-m", "benchcheck.video.worker")
"""`-P`: a file of the user's called `av.py` in the current folder is not imported."""


class Worker(pipes.Worker):
    """One worker process and the task it holds."""

    task: Any = None

    def give(self, task: Any, message: Mapping[str, Any]) -> None:
        """Hand out a task."""
        self.task = task
        self.send(message)


def how_it_died(death: Death) -> str:
    """Return a death in words."""
    if death.signal:
        return f"the decoder was ended by {death.signal}"
    return f"the worker ended with code {death.code}: {death.last_words}"


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


def settled(
    tasks: Sequence[Task], settings: Mapping[str, Any], workers: int
) -> Generator[tuple[Task, Mapping[str, Any] | VideoError]]:
    """Yield every video's task with its worker's answer, or with what its worker died of, as they come.

    Raises:
        StudyError: a worker could not write.
        RunError: no worker can start.
    """
    if not tasks:
        return
    with (
        Supply(tasks) as supply,
        contextlib.closing(work_through(supply.pairs(), settings, workers)) as answers,
    ):
        for task, answer in answers:
            supply.done(task)
            if isinstance(answer, Death):
                yield task, _fault_of(answer, settings["limit_s"])
            elif "stop" in answer:
                raise StudyError(answer["stop"])
            else:
                yield task, answer


def _fault_of(death: Death, limit_s: float) -> VideoError:
    """What a worker's death says about the video it held."""
    if death.timed_out:
        return VideoError("too_slow", f"not done after {limit_s:g} s")
    return VideoError("crashed", how_it_died(death))


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
                raise RunError(f"a frame worker cannot start: {how_it_died(answer)}")
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
