"""Many processes map one benchmark's records, and the outcome is that of one: the tasks come back in their order.

A task goes through two steps. `begin` reads its records, and says how many there are; then the rows of all records
before it are known, and `finish` maps them. Whoever does it, here or in a worker process, does the same.
"""

import pickle
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from benchcheck import pipes
from benchcheck.errors import RunError
from benchcheck.pipes import Death, cores
from benchcheck.pool.building.outcomes import Mapper, Outcome
from benchcheck.pool.building.tasks import Task
from benchcheck.pool.specs import Spec

__all__ = ["WORKER", "Crew"]

WORKER = (sys.executable, "-P", "-m", "benchcheck.pool.building.worker")
"""`-P`: a file of the user's called `json.py` in the current folder is not imported."""
MOST = 16
"""Workers where nobody says how many: the one process that writes keeps up with about as many."""
WORTH = 4 << 20
"""Bytes of annotation files from which on workers are started: their start takes as long as mapping 2 MB."""


class _Hand(Protocol):
    """Whoever does tasks, one at a time."""

    def begin(self, spec: Spec, task: Task) -> None: ...

    def count(self) -> int: ...

    def finish(self, row: int, file_row: int) -> None: ...

    def outcome(self) -> Outcome: ...


class Crew:
    """Whoever maps: worker processes, started when the first long benchmark comes, or this process."""

    def __init__(self, workers: int = 0) -> None:
        """Take `workers` processes, 0 for one a core."""
        self.size = workers or min(cores(), MOST)
        self._hands: list[_Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """However it ends, by an error or Ctrl-C too, no process is left."""
        for hand in self._hands:
            hand.end()

    def outcomes(self, spec: Spec, files: Sequence[Path], tasks: Iterable[Task]) -> Iterator[Outcome]:
        """Yield the outcome of every task, in their order.

        Raises:
            InputError: that of the first record, in the files' order, that has one.
            RunError: a worker was killed.
        """
        return _in_order(self._hired(files), spec, tasks)

    def _hired(self, files: Sequence[Path]) -> Sequence[_Hand]:
        """The workers, where the files are long enough for them."""
        if self.size == 1 or sum(map(_unpacked, files)) < WORTH:
            return [_Here()]
        while len(self._hands) < self.size:
            self._hands.append(_Process(WORKER, {}))
        return self._hands


def _unpacked(path: Path) -> int:
    """About how many bytes of JSON lines a file holds: packed, annotations take a tenth or less."""
    size = path.stat().st_size if path.is_file() else 0
    return size * 10 if path.suffix.lower() in (".gz", ".parquet", ".zip") else size


def _in_order(hands: Sequence[_Hand], spec: Spec, tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Deal tasks out in turn and take their outcomes in turn."""
    free, busy = deque(hands), deque[_Hand]()
    row = file_row = 0
    path: Path | None = None
    for task in tasks:
        if not free:
            free.append(busy.popleft())
            done = free[0].outcome()
        else:
            done = None
        hand = free.popleft()
        hand.begin(spec, task)
        count = hand.count()
        file_row = file_row if task.path == path else 0
        hand.finish(row, file_row)
        row, file_row, path = row + count, file_row + count, task.path
        busy.append(hand)
        if done is not None:
            yield done
    for hand in busy:
        yield hand.outcome()


class _Here:
    """This process."""

    def __init__(self) -> None:
        self._mapper = Mapper()
        self._rows = (0, 0)

    def begin(self, spec: Spec, task: Task) -> None:
        self._mapper.begin(spec, task)

    def count(self) -> int:
        return self._mapper.count

    def finish(self, row: int, file_row: int) -> None:
        self._rows = (row, file_row)

    def outcome(self) -> Outcome:
        return self._mapper.finish(*self._rows)


class _Process(pipes.Worker):
    """One worker process. Messages are pickles behind a line that says how long they are: both ends are this code."""

    def begin(self, spec: Spec, task: Task) -> None:
        self._put((spec, task))

    def count(self) -> int:
        return int(self._get())

    def finish(self, row: int, file_row: int) -> None:
        self._put((row, file_row))

    def outcome(self) -> Outcome:
        found = self._get()
        if isinstance(found, Outcome):
            return found
        raise found

    def _put(self, what: Any) -> None:
        data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
        self.send({"bytes": len(data)}, data)

    def _get(self) -> Any:
        """What the worker says next.

        Raises:
            RunError: it was killed.
        """
        answer = self.answer()
        if isinstance(answer, Death):
            how = f"was ended by {answer.signal}" if answer.signal else f"ended with code {answer.code}"
            words = f": {answer.last_words}" if answer.last_words else ""
            raise RunError(
                f"a worker of the pool build {how}{words}. Nothing was written. Cure: benchcheck pool build --workers 1"
            )
        return pickle.loads(self.answers.read(answer["bytes"]))
