"""Sets of frames: a folder of JPEG files with its frames.json, written whole, loaded cheaply (protocol 3)."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.config import Frames
from benchcheck.errors import StudyError
from benchcheck.files import writing
from benchcheck.screen.readings import Failure
from benchcheck.study import FRAMES_FILE, Study

__all__ = [
    "FRAMES_VERSION",
    "Drawn",
    "FrameSet",
    "clean_leftovers",
    "frame_name",
    "load_frames",
    "publish_frames",
    "read_folder",
    "usable_key",
]

FRAMES_VERSION = 1
_LONELY_S = 60
"""A temporary folder without its frames.json is this young while its owner is just making it."""


@dataclass(frozen=True, slots=True)
class FrameSet:
    """The frames of one video or window, in grid order."""

    paths: tuple[str, ...]
    pts: tuple[float, ...]
    """Seconds after the video's first frame at which each came on screen."""
    duplicates: tuple[bool, ...]
    """Whether a frame is the same as the one before: a short video's repeats."""
    damaged: tuple[bool, ...]
    """Whether a frame was decoded from damaged data."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One frame of the grid, ready to be written."""

    pts: float
    duplicate: bool
    damaged: bool
    jpeg: bytes


def frame_name(index: int) -> str:
    """File name of a grid position, without zero padding (protocol 3)."""
    return f"frame_{index}.jpg"


def usable_key(frames_key: str) -> bool:
    """Whether a frames key can be a folder's name: `frames_ready` takes a leading dot for unfinished work."""
    return bool(frames_key) and "/" not in frames_key and "\0" not in frames_key and not frames_key.startswith(".")


def load_frames(study: Study, frames_key: str) -> FrameSet | Failure:
    """Return a set of frames, or why it cannot be shown. Reads frames.json and lists the folder: 0.3 ms.

    Raises:
        StudyError: the frames were made with another `[frames]` config than the study's.
    """
    found = read_folder(study.frames / frames_key)
    if isinstance(found, str):
        return Failure("undecodable_frames", found)
    refuse_other_spec(study, [(frames_key, found)])
    folder, frames = f"{study.frames}/{frames_key}", found["frames"]
    return FrameSet(
        paths=tuple(f"{folder}/{frame_name(index)}" for index in range(len(frames))),
        pts=tuple(frame["pts"] for frame in frames),
        duplicates=tuple(frame["duplicate"] for frame in frames),
        damaged=tuple(frame["damaged"] for frame in frames),
    )


def read_folder(folder: Path) -> dict[str, Any] | str:
    """Return a folder's frames.json when it and every file it lists are whole, else what is wrong in one line."""
    try:
        table = json.loads((folder / FRAMES_FILE).read_bytes())
        with os.scandir(folder) as entries:
            sizes = {entry.name: entry.stat().st_size for entry in entries}
    except FileNotFoundError:
        return f"{folder}: no {FRAMES_FILE}"
    except (OSError, ValueError) as reason:
        return f"{folder / FRAMES_FILE}: not readable: {reason}"
    if not _well_formed(table):
        return f"{folder / FRAMES_FILE}: not what benchcheck writes (version {FRAMES_VERSION})"
    for index, frame in enumerate(table["frames"]):
        if sizes.get(frame_name(index)) != frame["bytes"]:
            return f"{folder / frame_name(index)}: " + (
                f"{sizes[frame_name(index)]} bytes instead of {frame['bytes']}"
                if frame_name(index) in sizes
                else "missing"
            )
    whole: dict[str, Any] = table
    return whole


def _well_formed(table: Any) -> bool:
    """Whether frames.json has the fields that are read again, with their types."""
    if not isinstance(table, dict) or table.get("version") != FRAMES_VERSION:
        return False
    frames = table.get("frames")
    if not isinstance(frames, list) or not frames or table.get("count") != len(frames):
        return False
    kinds = {"pts": (float, int), "duplicate": (bool,), "damaged": (bool,), "bytes": (int,)}
    return all(
        isinstance(frame, dict) and all(type(frame.get(name)) in kind for name, kind in kinds.items())
        for frame in frames
    )


def refuse_other_spec(study: Study, sets: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Refuse frames that were made with another grid, size or quality: never mixed in silence.

    Raises:
        StudyError: one line with the field, both values, how many folders, and the cure.
    """
    config: Frames = study.config.frames
    for name in ("count", "long_side", "quality"):
        wanted = getattr(config, name)
        others = [(key, table.get(name)) for key, table in sets if table.get(name) != wanted]
        if others:
            key, value = others[0]
            raise StudyError(
                f"{study.frames / key}: made with frames.{name} = {value}, but the config says {wanted} "
                f"({len(others)} such folders). Cure: set frames.{name} = {value} again, or move {study.frames} away "
                "and extract anew"
            )


@contextlib.contextmanager
def _in_progress(parent: Path, frames_key: str) -> Iterator[Path]:
    """Give a temporary folder that its owner holds locked by its frames.json; removed unless it was moved away."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{frames_key}.{os.getpid()}.", suffix=".tmp", dir=parent))
    try:
        with (folder / FRAMES_FILE).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish_frames(parent: Path, frames_key: str, drawn: Sequence[Drawn], about: Mapping[str, Any]) -> bool:
    """Write a set of frames whole: into a temporary folder, moved in place in one step.

    A folder that is there and whole stays; one that is damaged is replaced. Returns whether this process's set won.

    Raises:
        StudyError: the disk is full or the folder is not writable; nothing half-written stays.
    """
    final = parent / frames_key
    frames = [
        {
            "index": index,
            "pts": frame.pts,
            "duplicate": frame.duplicate,
            "damaged": frame.damaged,
            "bytes": len(frame.jpeg),
        }
        for index, frame in enumerate(drawn)
    ]
    table = {"version": FRAMES_VERSION, "key": frames_key, **about, "frames": frames}
    with writing(final), _in_progress(parent, frames_key) as folder:
        folder.chmod(0o777 & ~_umask())
        for index, frame in enumerate(drawn):
            (folder / frame_name(index)).write_bytes(frame.jpeg)
        (folder / FRAMES_FILE).write_text(json.dumps(table, indent=1) + "\n")
        return _moved(folder, final)


def _moved(folder: Path, final: Path) -> bool:
    """Move a finished folder in place; when a whole one is there already, that one stays."""
    for _ in range(2):
        try:
            folder.rename(final)
        except OSError as reason:
            if reason.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return True
        if not isinstance(read_folder(final), str):
            return False
        _set_aside(final)
    return False


def _set_aside(final: Path) -> None:
    """Take a damaged folder, or a file in its place, out of the way."""
    aside = final.with_name(f".{final.name}.{os.getpid()}.{time.monotonic_ns()}.old.tmp")
    with contextlib.suppress(FileNotFoundError):
        final.rename(aside)
    if aside.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)


def _umask() -> int:
    """This process's umask; mkdtemp makes private folders, frames are shared like other files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def clean_leftovers(parent: Path) -> int:
    """Remove temporary folders of runs that were killed, and return how many; those in use are locked and stay."""
    removed = 0
    if not parent.is_dir():
        return 0
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(".tmp")]
    for name in names:
        if _abandoned(parent / name):
            shutil.rmtree(parent / name, ignore_errors=True)
            removed += 1
    return removed


def _abandoned(folder: Path) -> bool:
    """Whether nobody holds a temporary folder: not by process ids, which mean nothing on another node."""
    try:
        with (folder / FRAMES_FILE).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime > _LONELY_S
        return False
    except OSError:
        return False
