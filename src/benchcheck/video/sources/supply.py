"""Tasks on their way to the workers: members of a packed tar are unpacked in one pass, in its order, one at a time.

Such an archive (tar.gz) can only be read from its beginning. So the run reads it once and lays each wanted member in a
scratch file when a worker is free for it: no more lie there than there are workers, and one.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from benchcheck.video.faults import VideoError
from benchcheck.video.sources.joined import Solid, reading, solid_content, solid_stream
from benchcheck.video.sources.media import plain_file
from benchcheck.video.sources.scratch import clear_scratch, laid_out, scratch_folder
from benchcheck.video.task import Member, Task

__all__ = ["Supply"]


@dataclass(slots=True)
class _Laid:
    """A member in a scratch file, and the keys of the tasks that are to read it."""

    keep: contextlib.ExitStack
    waiting: set[int] = field(default_factory=set)


class Supply:
    """The tasks of a run, each with its message for a worker. What is laid out for a task is gone when it is `done`."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._laid: dict[int, _Laid] = {}
        places = [place for task in tasks for place in (task, *task.others)]
        self._folders = sorted({scratch_folder(place.scratch) for place in places if place.member is not None})

    def __enter__(self) -> Self:
        for folder in self._folders:
            clear_scratch(folder)
        return self

    def __exit__(self, *_: object) -> None:
        for laid in list(self._laid.values()):
            laid.keep.close()
        self._laid.clear()
        for folder in self._folders:  # of workers that were killed
            clear_scratch(folder)

    def done(self, task: Task) -> None:
        """Note that a task was answered, or its worker died."""
        laid = self._laid.pop(id(task), None)
        if laid is not None:
            laid.waiting.discard(id(task))
            if not laid.waiting:
                laid.keep.close()

    def pairs(self) -> Iterator[tuple[Task, Mapping[str, Any]]]:
        """Yield each task with its message, those of packed tars last and in the order of their archives.

        Raises:
            StudyError: the scratch folder is full or not writable.
        """
        solid: dict[tuple[str, ...], list[Task]] = {}
        for task in self._tasks:
            if task.member is not None and task.member.solid and not task.member.bad and _only_there(task):
                solid.setdefault(task.member.parts, []).append(task)
            else:
                yield task, task.table()
        for tasks in solid.values():
            yield from self._from_stream(tasks)

    def _from_stream(self, tasks: Sequence[Task]) -> Iterator[tuple[Task, Mapping[str, Any]]]:
        """The tasks of one archive in its order; once it cannot be read on, with that as their fault."""
        by_place: dict[int, list[Task]] = {}
        for task in tasks:
            by_place.setdefault(_member(task).at, []).append(task)
        waiting = [by_place[at] for at in sorted(by_place)]
        try:
            with reading(_member(tasks[0]), _member(tasks[0]).archive) as source, solid_stream(source) as stream:
                while waiting:
                    path = self._lay(stream, waiting[0])
                    for task in waiting.pop(0):
                        yield task, task.laid(path).table()
        except VideoError as fault:
            for task in (task for same in waiting for task in same):
                yield task, task.failing(fault.status, fault.reason).table()

    def _lay(self, stream: Solid, tasks: Sequence[Task]) -> str:
        """Lay the next wanted member in a scratch file."""
        member, keep = _member(tasks[0]), contextlib.ExitStack()
        blocks = solid_content(stream, member)
        path = keep.enter_context(laid_out(blocks, scratch_folder(tasks[0].scratch), os.path.basename(member.path)))
        laid = _Laid(keep, set(map(id, tasks)))
        self._laid |= dict.fromkeys(laid.waiting, laid)
        return path


def _member(task: Task) -> Member:
    """A task's member of an archive; only tasks that have one come here."""
    assert task.member is not None
    return task.member


def _only_there(task: Task) -> bool:
    """Whether no plain file is there, so that the archive's member is what a worker would read."""
    try:
        return plain_file(task) is None
    except VideoError:
        return False
