"""A video whose bytes can be read: a file of its own, a stretch of an archive, or a copy of a packed member."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchcheck.errors import InputError, RunError, StudyError
from benchcheck.pool.reading.hub import fetch_file
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.joined import Joined, content, data_span, reading, solid_content, solid_stream
from benchcheck.video.sources.scratch import laid_out, scratch_folder
from benchcheck.video.store import check_file, find_file
from benchcheck.video.task import HubFile, Member, Task

__all__ = ["Media", "plain_file", "reachable"]


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
def reachable(task: Task, content: str = "") -> Iterator[Media]:
    """Find a task's video, look at it, hash it, and keep its bytes readable while the block runs.

    A file of the videos folder comes first, then a member of an archive, then a file of a hub dataset. A stored member
    is read in place; a packed one lies in a scratch file for as long as the block runs. Where the place of one key does
    not give the video, those of its other keys are asked.

    Args:
        task: the video.
        content: the SHA-256 that its bytes must have; empty where that is not known.

    Raises:
        VideoError: it is not there, no video, or cut off; `changed` where its bytes are others.
        StudyError: the scratch folder, or the hub's cache, cannot be written.
    """
    faults = []
    for place in (task, *task.others):
        with contextlib.ExitStack() as stack:
            try:
                media = stack.enter_context(_reached(place))
                if content not in ("", media.sha256):
                    raise VideoError("changed", f"its bytes have the hash {media.sha256}")
            except VideoError as fault:
                faults.append(fault)
                continue
            yield media
            return
    raise min(faults, key=lambda fault: fault.status == "missing")


@contextlib.contextmanager
def _reached(task: Task) -> Iterator[Media]:
    """The video at one place."""
    if task.unpacked and task.member is not None:
        yield _media(task.unpacked, task.member.name)
        return
    path = plain_file(task)
    if path is not None:
        yield _media(path, _relative(path, task.folder))
    elif task.member is not None:
        with _member(task.member, task.scratch) as media:
            yield media
    elif task.hub is not None:
        yield _media(_downloaded(task.hub), task.hub.name)
    else:
        raise VideoError(*(task.otherwise or ("no_video", "the item names no video")))


def plain_file(task: Task) -> str | None:
    """Return the file at one of a task's paths; None where there is none and the video may be elsewhere.

    Raises:
        VideoError: there is none, or something else stands there, and the video is nowhere else.
    """
    if not task.paths:
        return None
    try:
        return find_file(task.paths)
    except VideoError as fault:
        if task.member or task.hub:
            elsewhere = fault.status != "unreadable"
        else:
            elsewhere = task.otherwise is not None and fault.status == "missing" and "link" not in fault.reason
        if elsewhere:
            return None
        raise


def _media(path: str, name: str) -> Media:
    """A file on disk, looked at."""
    digest, size = check_file(path)
    return Media(path, name, digest, size)


def _relative(path: str, folder: str) -> str:
    """A file's name below the videos folder; its last part for one that a manifest names elsewhere."""
    below = folder.rstrip("/") + "/"
    return path[len(below) :].lstrip("/") if folder and path.startswith(below) else Path(path).name


@contextlib.contextmanager
def _member(member: Member, scratch: str) -> Iterator[Media]:
    """A member of an archive: in place where it is stored in one file, else in a scratch file."""
    if member.bad:
        raise VideoError("bad_member", f"{member.name!r}: {member.bad}")
    with contextlib.ExitStack() as stack:
        with reading(member) as source:
            stretch = None if member.solid or member.method else source.within(*data_span(source, member))
            if stretch is None:
                path = _lay_out(source, member, scratch, stack)
        if stretch is None:
            yield _media(path, member.name)
        else:
            path, span = stretch
            digest, size = check_file(path, span, member.crc)
            yield Media(path, member.name, digest, size, span)


def _lay_out(source: Joined, member: Member, scratch: str, keep: contextlib.ExitStack) -> str:
    """Lay a packed member in a scratch file that stays as long as `keep`, and return its path."""
    with contextlib.ExitStack() as unpacking:
        if member.solid:
            blocks = solid_content(unpacking.enter_context(solid_stream(source)), member)
        else:
            blocks = content(source, member)
        return keep.enter_context(laid_out(blocks, scratch_folder(scratch), os.path.basename(member.path)))


def _downloaded(file: HubFile) -> str:
    """A file of a hub dataset, in the hub's cache."""
    try:
        return str(fetch_file(file.hub, file.revision, file.path, file.cache))
    except InputError as reason:
        raise VideoError("not_downloaded", f"{file.path!r}: {reason}") from reason
    except RunError as reason:
        raise StudyError(str(reason)) from reason
