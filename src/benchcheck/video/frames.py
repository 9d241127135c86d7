"""Sets of frames: a folder of JPEG files with its frames.json, written whole, loaded cheaply (protocol 3)."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.config import Frames
from benchcheck.errors import StudyError
from benchcheck.files import writing
from benchcheck.screen.readings import Failure
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.video.folders import clear_abandoned, in_progress, moved

__all__ = [
    "FRAMES_VERSION",
    "Drawn",
    "FrameSet",
    "clean_leftovers",
    "digest_of",
    "frame_name",
    "load_frames",
    "publish_frames",
    "read_folder",
    "refuse_other_spec",
    "spec_in",
    "usable_key",
    "well_formed",
]

FRAMES_VERSION = 1
_LONGEST_S = 1e9
"""Seconds: no video has 30 years."""


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
    except (OSError, ValueError, RecursionError) as reason:
        return f"{folder / FRAMES_FILE}: not readable: {reason}"
    if not well_formed(table):
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


def well_formed(table: Any) -> bool:
    """Whether frames.json has the fields that are read again, with their types."""
    if not isinstance(table, dict) or table.get("version") != FRAMES_VERSION:
        return False
    frames = table.get("frames")
    if not isinstance(frames, list) or not frames or table.get("count") != len(frames):
        return False
    kinds = {"pts": (float, int), "duplicate": (bool,), "damaged": (bool,), "bytes": (int,)}
    return all(
        isinstance(frame, dict)
        and all(type(frame.get(name)) in kind for name, kind in kinds.items())
        and abs(frame["pts"]) < _LONGEST_S  # NaN is not, and would be found near to anything
        for frame in frames
    )


def spec_in(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `refuse_other_spec` asks of a frames.json: 200 bytes that can be kept for every set of a study."""
    return {name: table.get(name) for name in ("count", "long_side", "quality", "normalized")}


def refuse_other_spec(study: Study, sets: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Refuse frames that were made with another grid, size or quality: never mixed in silence.

    Raises:
        StudyError: one line with the field, both values, how many folders, and the cure.
    """
    config: Frames = study.config.frames
    wanted: dict[str, Any] = {name: getattr(config, name) for name in ("count", "long_side", "quality")}
    for name, value in (wanted | {"normalized": study.config.normalize.shown}).items():
        others = [(key, table.get(name)) for key, table in sets if table.get(name) != value]
        if others:
            key, found = others[0]
            form = name == "normalized"
            made, now = (
                f"[normalize] {one or 'unused'}" if form else f"frames.{name} = {one}" for one in (found, value)
            )
            raise StudyError(
                f"{study.frames / key}: made with {made}, but the config says {now if form else value} "
                f"({len(others)} such folders). Cure: set {'[normalize]' if form else made} again, or move "
                f"{study.frames} away and extract anew"
            )


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
    table = {
        "version": FRAMES_VERSION,
        "key": frames_key,
        **about,
        "sha256": digest_of(frame.jpeg for frame in drawn),
        "frames": frames,
    }
    with writing(final), in_progress(parent, frames_key, FRAMES_FILE) as folder:
        for index, frame in enumerate(drawn):
            (folder / frame_name(index)).write_bytes(frame.jpeg)
        (folder / FRAMES_FILE).write_text(json.dumps(table, indent=1) + "\n")
        return moved(folder, final, lambda there: not isinstance(read_folder(there), str))


def digest_of(pictures: Iterable[bytes]) -> str:
    """Return the sha256 over a set's JPEG files, one behind the other in grid order: 3 ms for 32 of 43 kB."""
    digest = hashlib.sha256()
    for picture in pictures:
        digest.update(picture)
    return digest.hexdigest()


def clean_leftovers(parent: Path) -> int:
    """Remove temporary folders of runs that were killed, and return how many; those in use are locked and stay."""
    return clear_abandoned(parent, FRAMES_FILE)
