"""The sets of frames in a shard, looked at before any is unpacked: whoever made it, whatever its hash says."""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from benchcheck.errors import DamagedFileError, StudyError
from benchcheck.study import CONFIG_NAME, FRAMES_FILE, Study
from benchcheck.tars import members_of
from benchcheck.video.frames import frame_name, usable_key, well_formed
from benchcheck.video.shards.layout import other_field

__all__ = ["Piece", "inspected", "other_pictures", "refuse_other_config", "sets_of"]

_BLOCK = 1 << 20
_MOST_TABLE = 16 << 20
"""Bytes of a frames.json; one of 1,024 frames has 150,000."""
_LONGEST_KEY = 200
"""Bytes of a frames key: with what a temporary folder's name adds, file systems allow 255."""
Piece = tuple[str, int, IO[bytes]]
"""A file of a set: its name in the set's folder, its size, its content."""


def sets_of(path: Path, file: IO[bytes] | None) -> Iterator[tuple[str, Iterator[Piece]]]:
    """Yield each set of a shard: its frames key, and its files with the names they have in its folder.

    Raises:
        DamagedFileError: a member that belongs to no set, or a set that comes in two pieces.
    """
    seen: set[str] = set()
    for key, members in itertools.groupby(
        members_of(path, file, plain=True), key=lambda member: member[0].rpartition("/")[0]
    ):
        if not usable_key(key) or len(os.fsencode(key)) > _LONGEST_KEY:
            raise DamagedFileError(f"{path}: {key[:_LONGEST_KEY]!r} is no folder of a set of frames: not unpacked")
        if key in seen:
            raise DamagedFileError(f"{path}: the set {key!r} comes in two pieces: not unpacked")
        seen.add(key)
        yield key, ((name.rpartition("/")[2], size, content) for name, size, content in members)


def inspected(study: Study, path: Path, file: IO[bytes], *, every_byte: bool) -> list[str]:
    """Look at every member of a verified shard, whoever made it; returns its frames keys.

    `every_byte` also reads the pictures, and compares them with the hash that frames.json got when they were made; who
    packs does that, too. It takes frames in grid order, as they are packed; those in another order pass without.

    Raises:
        DamagedFileError: a member that is no file of a set, or a set that is not whole.
        StudyError: a set was made with another `[frames]` config.
    """
    keys = []
    for key, pieces in sets_of(path, file):
        text, sizes, digest = b"", dict[str, int](), hashlib.sha256()
        for name, size, content in pieces:
            sizes[name] = size
            if name == FRAMES_FILE:
                text = content.read(_MOST_TABLE)
            while every_byte and (block := content.read(_BLOCK)):
                digest.update(block)
        table = _table(text)
        fault = _fault(key, table, sizes)
        names = [name for name in sizes if name != FRAMES_FILE]
        if every_byte and not fault and names == [frame_name(index) for index in range(len(names))]:
            fault = other_pictures(table, digest.hexdigest())
        if fault:
            raise DamagedFileError(f"{path}: the set {key!r}: {fault}: not unpacked")
        refuse_other_config(study, f"{path}: the set {key!r}", table)
        keys.append(key)
    return keys


def other_pictures(table: Mapping[str, Any], digest: str) -> str:
    """What is wrong with pictures of this hash; empty if nothing is, or frames.json says none."""
    said = table.get("sha256", digest)
    return "" if said == digest else f"its pictures were changed: sha256 {digest[:16]}… instead of {str(said)[:16]}…"


def _table(text: bytes) -> Any:
    """Read a frames.json; None where it is none."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return table if well_formed(table) else None


def _fault(key: str, table: Any, sizes: Mapping[str, int]) -> str:
    """What is wrong with a set in a shard; empty if nothing is."""
    if FRAMES_FILE not in sizes:
        return f"no {FRAMES_FILE}"
    if table is None:
        return f"{FRAMES_FILE} is not what benchcheck writes"
    if table.get("key", key) != key:
        return f"{FRAMES_FILE} is of {str(table['key'])[:_LONGEST_KEY]!r}"
    said = {frame_name(index): frame["bytes"] for index, frame in enumerate(table["frames"])}
    for name in sizes:
        if name not in said and name != FRAMES_FILE:
            return f"a member {name[:_LONGEST_KEY]!r}, which no set has"
    for name, size in said.items():
        if sizes.get(name) != size:
            return f"{name} has {sizes[name]} bytes instead of {size}" if name in sizes else f"{name} is missing"
    return ""


def refuse_other_config(study: Study, where: Path | str, made: Mapping[str, Any]) -> None:
    """Refuse frames of another grid, size, quality or form of their videos: never mixed in silence.

    Raises:
        StudyError: the field and both values.
    """
    other = other_field(study.config, made)
    if other is None:
        return
    name, theirs, ours = other
    if name == "normalized":
        theirs, ours, put = f"[normalize] {theirs or 'unused'}", f"{ours or 'it is unused'}", "[normalize] so"
    else:
        put = theirs = f"frames.{name} = {theirs}"
    raise StudyError(
        f"{where}: made with {theirs}, but the config says {ours}. Cure: set {put} in {study.root}/{CONFIG_NAME}, or "
        "unpack into another study"
    )
