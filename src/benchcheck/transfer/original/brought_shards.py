"""Frames of an original package that came as tar shards: verified, unpacked shard by shard, each set brought whole."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from benchcheck.config import Frames
from benchcheck.errors import DamagedFileError
from benchcheck.files import writing
from benchcheck.pool.items import Item
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.tars import hash_of, members_of
from benchcheck.transfer.original.brought_frames import BroughtFrames, bring_set, grid_of
from benchcheck.transfer.original.files import Original, inside
from benchcheck.video.folders import in_progress
from benchcheck.video.shards.unpacking import read_manifest

__all__ = ["bring_shards", "grid_in"]

_NAME = re.compile(r"(?:.*/)?([^/]+)/(frame_\d{1,4}\.jpg|frames\.json)", re.DOTALL)
_LARGEST = 1 << 26
_BLOCK = 1 << 20


def grid_in(original: Original) -> Frames:
    """Return the grid of a package's frames: as its manifest, or its first set has it; the protocol's without any.

    Raises:
        DamagedFileError: the manifest of its shards cannot be read.
    """
    found = grid_of(original.frames)
    if found is not None or original.shards is None:
        return found or Frames()
    manifest = read_manifest(original.shards)
    said = manifest.frames or {}
    count = said.get("count") or (_first_count(original.shards / manifest.shards[0].file) if manifest.shards else 0)
    plain = Frames()
    if type(count) is not int or not 0 < count <= 1024:
        return plain
    single = plain.single if count == plain.count else count // 2
    sizes = {name: said[name] for name in ("long_side", "quality") if type(said.get(name)) is int}
    try:
        return Frames(count=count, single=single, **sizes)
    except ValueError:
        return plain


def _first_count(shard: Path) -> int:
    """How many frames the first set of a shard has; 0 where that cannot be seen."""
    keys: dict[str, int] = {}
    try:
        for name, _, _ in members_of(shard):
            parts = _NAME.fullmatch(name)
            if parts is None:
                continue
            keys[parts[1]] = keys.get(parts[1], 0) + (parts[2] != FRAMES_FILE)
            if len(keys) > 1:
                break
    except DamagedFileError:
        return 0
    return next(iter(keys.values()), 0)


def bring_shards(study: Study, original: Original, needed: Mapping[str, Item], found: BroughtFrames) -> list[str]:
    """Bring the sets of frames that are needed from the package's shards; returns what is wrong with some of these.

    A shard is verified by its SHA-256 before anything of it is unpacked (protocol 3), into a folder beside the study's
    frames that goes away again.

    Raises:
        DamagedFileError: the manifest cannot be read.
        StudyError: the disk is full or the folder is not writable; what was brought stays.
    """
    faults: list[str] = []
    if original.shards is None or not needed:
        return faults
    for shard in read_manifest(original.shards).shards:
        path = original.shards / shard.file
        fault = _fault(original, path, shard.sha256)
        if fault:
            faults.append(f"{original.shown(path)}: {fault}: nothing of it was brought")
            continue
        with writing(study.frames), in_progress(study.frames, "import", FRAMES_FILE) as folder:
            try:
                keys = _unpack(path, folder / "sets", needed)
            except DamagedFileError as reason:
                faults.append(str(reason))
                continue
            for key in keys:
                bring_set(study, (folder, folder / "sets" / key), needed[key], "take", found)
    return faults


def _fault(original: Original, path: Path, sha256: str) -> str:
    """Why a shard is not what its manifest says."""
    if not os.path.isfile(path):
        return "not there"
    if not inside(original.root, path):
        return "a link that leads out of the package"
    try:
        found = hash_of(path)
    except OSError as reason:
        return f"not readable ({reason.strerror})"
    return "" if found == sha256 else f"its sha256 is {found[:16]}, the manifest says {sha256[:16]}"


def _unpack(path: Path, folder: Path, needed: Mapping[str, Item]) -> list[str]:
    """Unpack the frames of the sets that are needed; returns their keys.

    Raises:
        DamagedFileError: the shard is no tar, or holds what leads out of its folder.
    """
    keys: dict[str, None] = {}
    for name, size, content in members_of(path):
        parts = _NAME.fullmatch(name)
        if parts is None or parts[1] not in needed or size > _LARGEST:
            continue
        keys[parts[1]] = None
        (folder / parts[1]).mkdir(parents=True, exist_ok=True)
        _write(folder / parts[1] / parts[2], content)
    return list(keys)


def _write(path: Path, content: IO[bytes]) -> None:
    """Write one member."""
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, _BLOCK)
