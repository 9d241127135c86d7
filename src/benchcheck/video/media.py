"""A video whose bytes can be read: a file of its own, a stretch of an archive, or a copy of a packed member."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchcheck.video.store import check_file, find_file
from benchcheck.video.task import Task

__all__ = ["Media", "reachable"]


@dataclass(frozen=True, slots=True)
class Media:
    """A video that was found, looked at and hashed; its bytes stay while `reachable` is open."""

    path: str
    """A local file."""
    name: str
    """What frames.json calls it: the file below the videos folder, never a path of this machine."""
    sha256: str
    bytes: int
    span: tuple[int, int] | None = None
    """First byte and the one after the last, where the video is a stretch of `path`; None for the whole file."""


@contextlib.contextmanager
def reachable(task: Task) -> Iterator[Media]:
    """Find a task's video, look at it, hash it, and keep its bytes readable while the block runs.

    Raises:
        VideoError: it is not there, no video, or cut off.
    """
    path = find_file(task.paths)
    digest, size = check_file(path)
    yield Media(path, _relative(path, task.folder), digest, size)


def _relative(path: str, folder: str) -> str:
    """A file's name below the videos folder."""
    return path.removeprefix(folder).lstrip("/") if folder else Path(path).name
