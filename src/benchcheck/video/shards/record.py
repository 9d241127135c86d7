"""The record beside shards of frames, what each was made of, and by it the plan: which are written, and with what.

Nobody who unpacks needs it. It is a record of work, not of completion: a shard counts when it is the file that was
written, and when the files it was made of were not touched since.
"""

import contextlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.errors import StudyError, UsageError
from benchcheck.files import append_rows, publish
from benchcheck.study import Study
from benchcheck.video.amounts import counted
from benchcheck.video.shards.layout import MANIFEST_NAME, Shard, is_shard, other_field, planned, shard_name

__all__ = [
    "RECORD_NAME",
    "PackedShard",
    "PlannedShard",
    "WholeSet",
    "add_record",
    "plan_shards",
    "read_record",
    "refuse_strange",
    "write_record",
]

RECORD_NAME = ".frames_packed.jsonl"
"""Beside the shards: one row a shard that was written whole."""


@dataclass(frozen=True, slots=True)
class WholeSet:
    """A whole set of frames: its bytes in a tar, and what tells whether a file of it was touched since."""

    size: int
    stamp: str


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """A shard as it should be."""

    file: str
    keys: tuple[str, ...]
    size: int
    done: Shard | None = None
    """It is there as it should be."""


@dataclass(frozen=True, slots=True)
class PackedShard:
    """A shard that was written, and what of."""

    shard: Shard
    stamps: Mapping[str, str]
    """By frames key, in order: over sizes and times of every file of the set."""
    spec: Mapping[str, Any]
    """How the frames were made (`shards.spec_of`)."""
    mtime_ns: int
    """When the shard was written."""

    def untouched(self, folder: Path) -> bool:
        """Whether the shard is there and the file that was written."""
        try:
            found = (folder / self.shard.file).stat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (self.shard.bytes, self.mtime_ns)

    def row(self) -> dict[str, Any]:
        """Return it as JSON values."""
        head = {name: getattr(self.shard, name) for name in Shard.__dataclass_fields__}
        return head | {"stamps": self.stamps, "spec": self.spec, "mtime_ns": self.mtime_ns}


def read_record(folder: Path) -> list[PackedShard]:
    """Return the last row of each shard, by name; torn and strange lines do not count.

    Raises:
        StudyError: the record is there and cannot be read.
    """
    try:
        lines = (folder / RECORD_NAME).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as reason:
        raise StudyError(f"{folder / RECORD_NAME}: not readable: {reason.strerror}") from None
    last: dict[str, PackedShard] = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            row = json.loads(line)
            shard = Shard(*(row[name] for name in Shard.__dataclass_fields__))
            if is_shard(shard.file):
                last[shard.file] = PackedShard(shard, dict(row["stamps"]), dict(row["spec"]), row["mtime_ns"])
    return [last[name] for name in sorted(last, key=lambda name: (len(name), name))]


def write_record(folder: Path, rows: Iterable[PackedShard]) -> None:
    """Write the record anew.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    with publish(folder / RECORD_NAME) as path:
        path.write_text("".join(json.dumps(row.row()) + "\n" for row in rows), encoding="utf-8")


def add_record(folder: Path, shard: Shard, stamps: Mapping[str, str], spec: Mapping[str, Any]) -> None:
    """Note a shard that was just written.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    written = PackedShard(shard, stamps, spec, (folder / shard.file).stat().st_mtime_ns)
    append_rows(folder / RECORD_NAME, [written.row()])


def refuse_strange(study: Study, target: Path, wanted: Set[str]) -> None:
    """Refuse a folder whose shards are not this study's: they would be taken away.

    Raises:
        UsageError: what the folder holds.
    """
    rows = read_record(target)
    cure = f"Cure: --to another folder, or remove the shards and {RECORD_NAME}"
    there = sorted(name for name in os.listdir(target) if is_shard(name) or name == MANIFEST_NAME)
    if there and not (target / RECORD_NAME).exists():
        raise UsageError(f"{target}: holds {there[0]}, which was not packed here. {cure}")
    for row in rows:
        other = other_field(study.config, row.spec)
        if other is not None:
            name, theirs, ours = other
            what = f"holds shards made with {name} = {theirs}, but the config says {ours}"
            raise UsageError(f"{target}: {what}. {cure}")
    if rows and not any(key in wanted for row in rows for key in row.stamps):
        raise UsageError(f"{target}: holds shards of other frames. {cure}")


def plan_shards(target: Path, sets: Mapping[str, WholeSet], shard_bytes: int) -> list[PlannedShard]:
    """Return all shards as they should be: those that were written with what they hold, then new ones for the rest.

    A shard stays as it is when nobody touched it, and none of its sets that are here. It may hold more: sets that no
    item needs now, or whose folders are gone.

    Raises:
        StudyError: sets of a shard changed, so that it has to be written again, but others of it are not here.
    """
    plan: list[PlannedShard] = []
    for row in read_record(target):
        changed = [key for key, stamp in row.stamps.items() if key in sets and sets[key].stamp != stamp]
        here = tuple(key for key in row.stamps if key in sets)
        untouched = row.untouched(target)
        if untouched and not changed:
            plan.append(PlannedShard(row.shard.file, tuple(row.stamps), 0, row.shard))
        elif untouched and len(here) < len(row.stamps):
            gone = len(row.stamps) - len(here)
            what = f"its set {changed[0]!r} was made again since, and {counted(gone, 'set')} of it are gone from here"
            cure = "Cure: unpack the shards into this study first, or pack --to another folder"
            raise StudyError(f"{target / row.shard.file}: {what}. {cure}")
        elif here:
            plan.append(PlannedShard(row.shard.file, here, sum(sets[key].size for key in here)))
    held = {key for shard in plan for key in shard.keys}
    taken = {shard.file for shard in plan}
    names = (name for name in map(shard_name, itertools.count()) if name not in taken)
    sizes = {key: one.size for key, one in sets.items() if key not in held}
    for keys, name in zip(planned(sizes, shard_bytes), names, strict=False):
        plan.append(PlannedShard(name, tuple(keys), sum(sizes[key] for key in keys)))
    return sorted(plan, key=lambda shard: (len(shard.file), shard.file))
