"""Frames into tar shards: streaming, the same bytes on every machine, and the same command goes on after any stop.

What is in a shard that was written stays there while the study still wants it: frames that come later go into new
shards. Beside the shards lies a record of what each was made of, so that a shard of unchanged frames is not read again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck import __version__
from benchcheck.errors import StudyError, UsageError
from benchcheck.files import publish, writing
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.tars import Member, tar_bytes, write_tar
from benchcheck.video.amounts import counted, shown_size
from benchcheck.video.frames import frame_name, read_folder, refuse_other_spec, usable_key, well_formed
from benchcheck.video.shards.layout import (
    MANIFEST_NAME,
    SHARD_BYTES,
    Manifest,
    Shard,
    is_shard,
    other_field,
    spec_of,
    video_of,
)
from benchcheck.video.shards.record import (
    RECORD_NAME,
    PlannedShard,
    WholeSet,
    add_record,
    plan_shards,
    read_record,
    refuse_strange,
    write_record,
)
from benchcheck.video.shards.sets import other_pictures
from benchcheck.video.wanted import wanted_sets

__all__ = ["PackSummary", "ShardsProgress", "pack_frames", "shards_folder"]


@dataclass(frozen=True, slots=True)
class ShardsProgress:
    """Where packing or unpacking stands, in bytes of shards."""

    done: int
    total: int
    seconds: float


@dataclass(slots=True)
class PackSummary:
    """What packing did."""

    folder: Path
    sets: int = 0
    videos: int = 0
    shards: int = 0
    bytes: int = 0
    written: int = 0
    """Shards that were written now; the others are as they were."""
    written_bytes: int = 0
    missing: int = 0
    """Sets that items need and that are not there."""
    damaged: dict[str, str] = field(default_factory=dict)
    """Sets that are there and not whole, and why; they are left out."""
    kept: dict[str, str] = field(default_factory=dict)
    """Those of them that a shard holds, from when they were whole."""
    seconds: float = 0.0

    def lines(self) -> list[str]:
        """Return the summary as lines to print."""
        rate = f", {shown_size(self.written_bytes / self.seconds)}/s" if self.written and self.seconds else ""
        whole = f"{counted(self.shards, 'shard')}, {shown_size(self.bytes)} ({self.written} written now{rate})"
        lines = [f"{counted(self.sets, 'set')} of frames of {counted(self.videos, 'video')}: {whole}: {self.folder}"]
        if self.missing:
            lines.append(
                f"not made yet: {counted(self.missing, 'set')}. Cure: benchcheck frames extract, then pack again"
            )
        if self.damaged:
            what = f"damaged and left out: {counted(len(self.damaged), 'set')}"
            first = next(iter(self.damaged.values()))
            lines.append(f"{what}, such as {first}. Cure: remove their folders, then benchcheck frames extract")
        if self.kept:
            what = f"damaged here and whole in the shards: {counted(len(self.kept), 'set')}"
            first = next(iter(self.kept.values()))
            lines.append(f"{what}, such as {first}. Cure: remove their folders, then unpack these shards")
        return lines

    def leave_out(self, found: "_DamagedSetError", sets: dict[str, WholeSet], missing: set[str]) -> None:
        """Go on without a set."""
        del sets[found.key]
        missing.add(found.key)
        self.damaged[found.key] = str(found)


class _DamagedSetError(Exception):
    """A set whose pictures are not those that were made; it shows when they are read."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key


def shards_folder(study: Study) -> Path:
    """Where shards lie unless another folder is given."""
    return study.root / "frames" / "shards"


def pack_frames(
    study: Study,
    folder: str | Path | None = None,
    *,
    shard_bytes: int = SHARD_BYTES,
    everything: bool = False,
    progress: Callable[[ShardsProgress], None] | None = None,
) -> PackSummary:
    """Pack the sets of frames that the pool's items need into tar shards with a manifest (protocol 3).

    Sets in shards that are there already stay in them; those that came since go into new shards.

    Args:
        study: the study; its frames may lie anywhere.
        folder: where the shards go; `frames/shards` of the study by default.
        shard_bytes: about how large a shard gets; one video is never split.
        everything: pack every set that is there, whether an item needs it or not; then no pool is needed.
        progress: hears of it.

    Raises:
        StudyError: there are no frames, some were made with another `[frames]` config, the disk is full, the shards
            would not fit, or a set changed while it was packed. What was written stays, and the same call goes on.
        UsageError: the folder holds frames, or shards of others, or another call packs into it.
    """
    begun = time.monotonic()
    target = Path(folder) if folder is not None else shards_folder(study)
    summary = PackSummary(target)
    if study.frames.resolve() in (target.resolve(), *target.resolve().parents):
        raise UsageError(f"--to {target}: this is where the frames themselves lie. Cure: --to another folder")
    sets, missing = _whole_sets(study, everything, summary)
    with _alone(target):
        refuse_strange(study, target, {*sets, *missing})
        for found in _damaged_since(study, target, sets):
            summary.leave_out(found, sets, missing)
        while True:
            plan = plan_shards(target, sets, shard_bytes)
            if not plan:
                summary.missing = len(missing - set(summary.damaged))
                none = "none is there. Cure: benchcheck frames extract" if everything else "no item needs any"
                what = summary.lines()[1:] or [none]
                raise StudyError(f"{study.frames}: no frames to pack: {'; '.join(what)}")
            _make_ready(target, plan)
            try:
                shards = _write(study, plan, sets, summary, progress)
                break
            except _DamagedSetError as found:  # what was written before it stays, and packing goes on without it
                summary.leave_out(found, sets, missing)
        _finish(study, shards, {key for shard in plan for key in shard.keys}, missing, summary)
    summary.seconds = time.monotonic() - begun
    return summary


def _whole_sets(study: Study, everything: bool, summary: PackSummary) -> tuple[dict[str, WholeSet], set[str]]:
    """Look at every set that is wanted; returns those that are whole, and the keys of the others.

    Raises:
        StudyError: some were made with another `[frames]` config.
    """
    there = study.frames_ready()
    wanted = sorted(there) if everything else [each.frames_key for each in wanted_sets(study)]
    found: dict[str, WholeSet] = {}
    others: list[tuple[str, Mapping[str, Any]]] = []
    for key in wanted:
        if key not in there:
            continue
        table = read_folder(study.frames / key)
        one = table if isinstance(table, str) else _looked_at(study.frames / key, len(table["frames"]))
        if isinstance(one, str):
            summary.damaged[key] = one
            continue
        found[key] = one
        if not isinstance(table, str) and other_field(study.config, table):
            others.append((key, table))
    refuse_other_spec(study, others)
    return found, set(wanted) - set(found)


def _damaged_since(study: Study, target: Path, sets: Mapping[str, WholeSet]) -> list[_DamagedSetError]:
    """Return the sets that a shard holds and whose pictures were damaged since: the shard must not lose them.

    Raises:
        StudyError: a set changed meanwhile.
    """
    found = []
    for row in read_record(target):
        for key, stamp in row.stamps.items():
            if key in sets and sets[key].stamp != stamp:
                try:
                    deque(_members(study.frames, [key], lambda _: None), maxlen=0)
                except _DamagedSetError as fault:
                    found.append(fault)
    return found


def _looked_at(folder: Path, count: int) -> WholeSet | str:
    """Return a set's size in a tar and the stamp of its files; what is wrong when they go away meanwhile.

    The time of a file's last change of any kind is in it: a file that was replaced by one of the same size and date
    shows.
    """
    key = folder.name
    if not usable_key(key) or "\\" in key:
        return f"{key!r}, which is no folder name elsewhere"
    digest, size = hashlib.sha256(), 0
    try:
        for name in (FRAMES_FILE, *map(frame_name, range(count))):
            found = os.stat(f"{folder}/{name}")
            size += tar_bytes(f"{key}/{name}", found.st_size)
            digest.update(f"{name} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}\n".encode())
    except OSError as reason:
        return f"{folder}: {reason.strerror}"
    return WholeSet(size, digest.hexdigest()[:32])


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the folder locked: two that pack into it would take each other's shards away.

    Raises:
        UsageError: another process packs into it.
        StudyError: it cannot be made.
    """
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        number = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{target}: another `frames pack` is at work here. Cure: wait for it") from None
        except OSError:
            pass  # a file system without locks; each shard appears whole all the same
        yield
    finally:
        os.close(number)


def _make_ready(target: Path, plan: Sequence[PlannedShard]) -> None:
    """Clear what killed writers left, and refuse what would not fit. The record is cut to what stays as it is.

    The manifest means that all is there as it says: it goes before a shard that it may list is changed.

    Raises:
        StudyError: how much is needed, and how much is there.
    """
    with writing(target):
        for name in os.listdir(target):
            if name.startswith((".frames_", f".{RECORD_NAME}.")) and name.endswith(".tmp"):
                (target / name).unlink(missing_ok=True)
    todo = [shard for shard in plan if shard.done is None]
    old = sum((target / shard.file).stat().st_size for shard in todo if (target / shard.file).is_file())
    need, free = sum(shard.size for shard in todo) - old, shutil.disk_usage(target).free
    if need > free:
        what = f"the shards need {shown_size(need)}, and {shown_size(free)} are free"
        raise StudyError(f"{target}: {what}. Cure: --to a folder of another disk")
    rows, done = read_record(target), {shard.file for shard in plan if shard.done is not None}
    kept = [row for row in rows if row.shard.file in done]
    if len(kept) < len(rows):
        with writing(target):
            (target / MANIFEST_NAME).unlink(missing_ok=True)
    write_record(target, kept)


def _write(
    study: Study,
    plan: Sequence[PlannedShard],
    sets: Mapping[str, WholeSet],
    summary: PackSummary,
    progress: Callable[[ShardsProgress], None] | None,
) -> list[Shard]:
    """Write the shards that are not there, each whole; returns all.

    Raises:
        _DamagedSetError: pictures are not those that were made.
        StudyError: a set changed meanwhile, or the disk is full.
    """
    written, begun = 0, time.monotonic()
    total, spec = sum(shard.size for shard in plan), spec_of(study.config)

    def told(key: str) -> None:
        nonlocal written
        written += sets[key].size
        if progress is not None:
            progress(ShardsProgress(written, total, time.monotonic() - begun))

    shards = []
    for each in plan:
        if each.done is not None:
            shards.append(each.done)
            continue
        made = write_tar(summary.folder / each.file, _members(study.frames, each.keys, told))
        videos = len({video_of(key) for key in each.keys})
        shards.append(Shard(each.file, made.sha256, made.bytes, videos, len(each.keys)))
        add_record(summary.folder, shards[-1], {key: sets[key].stamp for key in each.keys}, spec)
        summary.written += 1
        summary.written_bytes += made.bytes
    return shards


def _members(parent: Path, keys: Sequence[str], told: Callable[[str], None]) -> Iterator[Member]:
    """Yield the files of sets: frames.json first, so that a reader knows what comes, then the frames in grid order.

    Raises:
        _DamagedSetError: pictures are not those that were made.
        StudyError: a set changed since it was looked at.
    """
    for key in keys:
        folder, digest = f"{parent}/{key}", hashlib.sha256()
        text = _content(f"{folder}/{FRAMES_FILE}")
        try:
            table = json.loads(text)
        except (ValueError, RecursionError):
            table = None
        if not well_formed(table):
            raise _changed(f"{folder}/{FRAMES_FILE}", "damaged")
        yield Member(f"{key}/{FRAMES_FILE}", text)
        for name, size in ((frame_name(index), frame["bytes"]) for index, frame in enumerate(table["frames"])):
            data = _content(f"{folder}/{name}")
            if len(data) != size:
                raise _changed(f"{folder}/{name}", f"{len(data)} bytes instead of {size}")
            digest.update(data)
            yield Member(f"{key}/{name}", data)
        fault = other_pictures(table, digest.hexdigest())
        if fault:
            raise _DamagedSetError(key, f"{folder}: {fault}")
        told(key)


def _content(path: str) -> bytes:
    """Read a file.

    Raises:
        StudyError: it is gone or not readable.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError as reason:
        raise _changed(path, f"not readable ({reason.strerror})") from None


def _changed(path: str, what: str) -> StudyError:
    """What a set that was whole a moment ago raises."""
    return StudyError(f"{path}: {what}, since packing began. Cure: run the same command again")


def _finish(study: Study, shards: Sequence[Shard], packed: Set[str], missing: Set[str], summary: PackSummary) -> None:
    """Publish the manifest, which means done, then remove shards that it does not list."""
    summary.sets, summary.videos = len(packed), len({video_of(key) for key in packed})
    summary.shards, summary.bytes = len(shards), sum(shard.bytes for shard in shards)
    summary.kept = {key: why for key, why in summary.damaged.items() if key in packed}
    summary.damaged = {key: why for key, why in summary.damaged.items() if key not in packed}
    summary.missing = len(missing - packed - set(summary.damaged))
    table = {"benchcheck": __version__, **Manifest(tuple(shards), summary.videos, spec_of(study.config)).table()}
    with publish(summary.folder / MANIFEST_NAME) as temporary:
        temporary.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    listed = {shard.file for shard in shards}
    with writing(summary.folder):
        for name in os.listdir(summary.folder):
            if is_shard(name) and name not in listed:
                (summary.folder / name).unlink(missing_ok=True)
