"""Frames of an original package come into a study: linked or copied, each set whole, and what is not known is said."""

import contextlib
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.config import Frames
from benchcheck.files import writing
from benchcheck.pool.items import Item
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.transfer.original.files import Original, inside
from benchcheck.video.folders import in_progress, moved
from benchcheck.video.frames import FRAMES_VERSION, clean_leftovers, frame_name, read_folder, usable_key, well_formed
from benchcheck.video.grid import grid_times

__all__ = ["BroughtFrames", "bring_frames", "bring_set", "grid_of", "needed_sets"]

_LARGEST = 1 << 26
"""Bytes of a frame; one of 4096 px at quality 95 has about 8 MB."""


@dataclass(slots=True)
class BroughtFrames:
    """What became of a package's sets of frames."""

    brought: int = 0
    there: int = 0
    """Sets that the study had."""
    without_times: int = 0
    """Sets whose times are not known, since neither video nor window has a length."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Sets that cannot be taken, by what is wrong with them."""


def grid_of(folder: Path | None) -> Frames | None:
    """Return the grid of a folder of frame folders, as its first set has it; None where there is none."""
    if folder is None:
        return None
    with os.scandir(folder) as entries:
        first = min((entry.name for entry in entries if usable_key(entry.name)), default="")
    if not first:
        return None
    table = _table(folder / first)
    if table is not None:
        found: list[Any] = [table.get(name) for name in ("count", "long_side", "quality")]
        count, side, quality = found
        with contextlib.suppress(ValueError, TypeError):  # numbers that no study may have
            return Frames(count=count, single=_single(count), long_side=side, quality=quality)
    count = _frames_in(folder / first)
    return Frames(count=count, single=_single(count)) if 0 < count <= 1024 else None


def _single(count: int) -> int:
    """The grid position that is shown alone: the protocol's of 32, else the middle one."""
    return Frames().single if count == Frames().count else count // 2


def _frames_in(folder: Path) -> int:
    """How many frames lie in a folder, counted from 0 without a hole."""
    count = 0
    while (folder / frame_name(count)).is_file():
        count += 1
    return count


def _table(folder: Path) -> dict[str, Any] | None:
    """A set's own frames.json, where it has one that is sound."""
    try:
        with (folder / FRAMES_FILE).open("rb") as file:
            table = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return table if well_formed(table) else None


def needed_sets(study: Study, items: Sequence[Item], found: BroughtFrames) -> dict[str, Item]:
    """Return an item of every set of frames that is needed and not there; counts those that are."""
    clean_leftovers(study.frames)
    ready, needed = study.frames_ready(), dict[str, Item]()
    for key, item in {item.frames_key: item for item in items if item.format == "mcq"}.items():
        if key in ready and not isinstance(read_folder(study.frames / key), str):
            found.there += 1
        elif usable_key(key):
            needed[key] = item
    return needed


def bring_frames(study: Study, original: Original, needed: Mapping[str, Item], how: str, found: BroughtFrames) -> None:
    """Bring the sets of frames that are needed and that the package has as folders. `how` is `link` or `copy`.

    A hard link takes no space; on another disk it is a symbolic one, and the package must stay. A set without a
    frames.json gets one that says what is not known: the decoder, and the times, which are computed from the grid where
    the length is known.

    Raises:
        StudyError: the disk is full or the folder is not writable; what was brought stays.
    """
    if original.frames is None:
        return
    for key, item in needed.items():
        if os.path.isdir(original.frames / key):
            bring_set(study, (original.root, original.frames / key), item, how, found)


def bring_set(study: Study, where: tuple[Path, Path], item: Item, how: str, found: BroughtFrames) -> None:
    """Bring one set of frames, or count why that cannot be.

    Args:
        study: the study.
        where: the package, which nothing may lead out of, and the set's folder in it.
        item: an item of that set.
        how: `link`, `copy`, or `take` from a folder that is no longer wanted.
        found: counts it.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    fault = _bring(study, where, item, how, found)
    if fault:
        found.left_out[fault] += 1


def _bring(study: Study, where: tuple[Path, Path], item: Item, how: str, found: BroughtFrames) -> str:
    """Bring one set; returns why that cannot be."""
    (root, source), key = where, item.frames_key
    files = [source / frame_name(index) for index in range(study.config.frames.count)]
    fault = _fault(root, source, files)
    if fault:
        return fault
    table = _table(source) or _made(study, item, files)
    if [frame["bytes"] for frame in table["frames"]] != [path.stat().st_size for path in files]:
        return "set whose files are not those of its frames.json"
    for name in ("count", "long_side", "quality"):
        if table.get(name) != getattr(study.config.frames, name):
            return f"set made with another frames.{name} than the study's"
    with writing(study.frames / key), in_progress(study.frames, key, FRAMES_FILE) as folder:
        for path in files:
            _place(path, folder / path.name, how)
        (folder / FRAMES_FILE).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        moved(folder, study.frames / key, lambda final: not isinstance(read_folder(final), str))
    found.brought += 1
    found.without_times += table.get("times") == "unknown"
    return ""


def _fault(root: Path, source: Path, files: Sequence[Path]) -> str:
    """Why a folder is no set of frames."""
    if not inside(root, source):
        return "set that is a link out of the package"
    if not all(path.is_file() for path in files):
        return "set without all of its frames"
    if (source / frame_name(len(files))).exists():
        return "set with more frames than the study's grid"
    for path in files:
        if path.is_symlink() and not inside(root, path):
            return "set with a link out of the package"
        with path.open("rb") as file:
            if file.read(3) != b"\xff\xd8\xff" or not 128 <= os.fstat(file.fileno()).st_size <= _LARGEST:
                return "set with a file that is no JPEG"
    return ""


def _place(source: Path, target: Path, how: str) -> None:
    """Link or copy one file."""
    if how == "take":
        source.replace(target)
        return
    whole = os.path.realpath(source)
    if how == "copy":
        shutil.copyfile(whole, target)
        return
    try:
        os.link(whole, target)
    except OSError:  # another disk, or one without hard links
        target.symlink_to(whole)


def _made(study: Study, item: Item, files: Sequence[Path]) -> dict[str, Any]:
    """A frames.json for a set that came without: what is in its files, and what nobody wrote down."""
    frames = study.config.frames
    times = list(_times(item, len(files)))
    hashes = [_sha256(path) for path in files]
    return {
        "version": FRAMES_VERSION,
        "key": item.frames_key,
        "count": frames.count,
        "long_side": frames.long_side,
        "quality": frames.quality,
        "times": "grid" if times else "unknown",
        "window": None if item.start is None and item.end is None else {"start": item.start, "end": item.end},
        "source": None,
        "decoder": None,
        "imported": "no frames.json in the package: size and quality as the config says, times as `times` says",
        "frames": [
            {
                "index": index,
                "pts": times[index] if times else -1.0,
                "duplicate": index > 0 and hashes[index - 1] == hashes[index],
                "damaged": False,
                "bytes": path.stat().st_size,
            }
            for index, path in enumerate(files)
        ],
    }


def _times(item: Item, count: int) -> Iterator[float]:
    """The grid's times where the length is known: not when each frame came on screen, but what was asked for."""
    from fractions import Fraction

    end = item.end if item.end is not None else item.duration
    start = item.start or 0.0
    if end is not None and end > start:
        yield from (round(float(time), 6) for time in grid_times(Fraction(start), Fraction(end), count))


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
