"""Tar shards into frames: each shard is verified in full before anything of it is unpacked, each set appears whole.

A shard that is damaged, missing or hostile is named and nothing of it is unpacked; the others are. The same command
goes on where it stopped: sets that are there and whole stay as they are.
"""

import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchcheck.errors import DamagedFileError, StudyError
from benchcheck.files import write_whole, writing
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.video.amounts import counted, shown_size
from benchcheck.video.folders import in_progress, moved
from benchcheck.video.frames import clean_leftovers, read_folder
from benchcheck.video.shards.layout import MANIFEST_NAME, Manifest, Shard, is_shard, parse_manifest
from benchcheck.video.shards.packing import ShardsProgress
from benchcheck.video.shards.sets import inspected, refuse_other_config, sets_of
from benchcheck.video.store import Outcome, last_outcomes, record
from benchcheck.video.wanted import wanted_sets

__all__ = ["UnpackSummary", "read_manifest", "unpack_frames"]

_BLOCK = 1 << 20
_MOST_MANIFEST = 256 << 20
_SHOWN = 5


@dataclass(slots=True)
class UnpackSummary:
    """What unpacking did, or verifying alone."""

    source: Path
    verified_only: bool
    shards: int = 0
    skipped: int = 0
    """Shards of which every set was there and whole; they were not read."""
    sets: int = 0
    """Sets in the shards that were read."""
    made: int = 0
    """Sets that were unpacked now."""
    bytes: int = 0
    """Bytes of the shards that were read."""
    seconds: float = 0.0
    missing: int = 0
    """Sets that the study's items need and that are not there now; 0 where there is no pool."""

    def lines(self) -> list[str]:
        """Return the summary as lines to print."""
        rate = f", {shown_size(self.bytes / self.seconds)}/s" if self.seconds and self.bytes else ""
        if self.verified_only:
            what = f"{counted(self.shards, 'shard')} with {counted(self.sets, 'set')} of frames"
            return [f"{what}: all as {MANIFEST_NAME} says ({shown_size(self.bytes)}{rate})"]
        read = f"{counted(self.shards - self.skipped, 'shard')}, {shown_size(self.bytes)}{rate}"
        lines = [f"{counted(self.made, 'set')} of frames unpacked now ({read})"]
        if self.skipped:
            lines.append(f"unpacked before: {counted(self.skipped, 'shard')}, of which every set is there and whole")
        if self.missing:
            lines.append(f"needed and in none of these: {counted(self.missing, 'set')}; benchcheck status says why")
        return lines


@dataclass(slots=True)
class _Walk:
    """One call of `unpack_frames`."""

    study: Study
    source: Path
    summary: UnpackSummary
    progress: Callable[[ShardsProgress], None] | None
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    total: int = 0
    video_keys: Mapping[str, str] = field(default_factory=dict)
    """By frames key, of what the items need and the video manifest does not call ready."""

    def told(self, size: int) -> None:
        """Move the bar by so many bytes, of a shard's verification or of what was unpacked."""
        self.done += size
        if self.progress is not None:
            self.progress(ShardsProgress(self.done, self.total, time.monotonic() - self.begun))


def unpack_frames(
    study: Study,
    source: str | Path,
    *,
    verify_only: bool = False,
    progress: Callable[[ShardsProgress], None] | None = None,
) -> UnpackSummary:
    """Unpack shards of frames into a study, each verified before anything of it is unpacked (protocol 3).

    Args:
        study: the study; of its pool nothing is needed.
        source: the folder of shards and frames_manifest.json.
        verify_only: check every shard in full, and unpack none.
        progress: hears of it.

    Raises:
        DamagedFileError: the manifest or shards are damaged, missing, hostile or not in the manifest; each is named.
            Of such a shard nothing is unpacked, of the others everything is.
        StudyError: the frames were made with another `[frames]` config, or would not fit on the disk.
    """
    folder = Path(source)
    manifest = read_manifest(folder)
    if manifest.frames is not None:
        refuse_other_config(study, folder / MANIFEST_NAME, manifest.frames)
    walk = _Walk(study, folder, UnpackSummary(folder, verify_only, len(manifest.shards)), progress)
    faults, todo = _sizes(folder, manifest), list(manifest.shards)
    good = [shard for shard in todo if shard.file not in faults]
    if not verify_only:
        clean_leftovers(study.frames)
        good = _remaining(walk, good)
        walk.video_keys = _video_keys(study)
    walk.total = sum(shard.bytes for shard in good) * (1 if verify_only else 2)
    for shard in good:
        try:
            _one_shard(walk, shard)
        except DamagedFileError as fault:
            faults[shard.file] = str(fault)
    _refuse(faults, len(manifest.shards), "verified" if verify_only else "unpacked")
    walk.summary.missing = 0 if verify_only else len(set(_wanted(study)) - study.frames_ready())
    walk.summary.seconds = time.monotonic() - walk.begun
    return walk.summary


def read_manifest(folder: Path) -> Manifest:
    """Read a folder's frames_manifest.json.

    Raises:
        DamagedFileError: there is none, it cannot be read, or it is cut, of another version or hostile.
    """
    path = folder / MANIFEST_NAME
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DamagedFileError(f"{path}: no plain file. Cure: get the file again")
        with path.open("rb") as file:
            text = file.read(_MOST_MANIFEST + 1)
    except FileNotFoundError:
        cure = "Cure: name the folder that `frames pack` wrote; without a manifest it is not done"
        raise DamagedFileError(f"{path}: no such file. {cure}") from None
    except OSError as reason:
        raise DamagedFileError(f"{path}: not readable: {reason.strerror}. Cure: get the file again") from None
    if len(text) > _MOST_MANIFEST:
        raise DamagedFileError(f"{path}: over {shown_size(_MOST_MANIFEST)}, so no manifest. Cure: get the file again")
    return parse_manifest(text, str(path))


def _sizes(folder: Path, manifest: Manifest) -> dict[str, str]:
    """Return what is wrong with the folder before a shard is read, by file."""
    faults: dict[str, str] = {}
    for shard in manifest.shards:
        try:
            found = (folder / shard.file).stat()
        except OSError as reason:
            faults[shard.file] = f"{folder / shard.file}: {reason.strerror or 'missing'}"
            continue
        if not stat.S_ISREG(found.st_mode):
            faults[shard.file] = f"{folder / shard.file}: no plain file"
        elif found.st_size != shard.bytes:
            faults[shard.file] = f"{folder / shard.file}: {found.st_size:,} bytes instead of {shard.bytes:,}"
    listed = {shard.file for shard in manifest.shards}
    for name in sorted(os.listdir(folder)):
        if is_shard(name) and name not in listed:
            faults[name] = f"{folder / name}: not in {MANIFEST_NAME}"
    return faults


def _refuse(faults: Mapping[str, str], count: int, done: str) -> None:
    """End with the shards that are damaged, where there are any.

    Raises:
        DamagedFileError: in one line, up to five of them with what is wrong.
    """
    if not faults:
        return
    told = [fault.partition(". Cure: ")[0] for _, fault in sorted(faults.items())]
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    raise DamagedFileError(
        f"{'; '.join(told[:_SHOWN])}{more}. Nothing of {'them is' if len(told) > 1 else 'it is'} {done}, the rest of "
        f"{count} shards is. Cure: get {'these files' if len(told) > 1 else 'this file'} again, and "
        f"{MANIFEST_NAME} of the same pack, then run the same command again"
    )


def _wanted(study: Study) -> list[str]:
    """Frames keys that the items need; none where there is no pool yet."""
    return [each.frames_key for each in wanted_sets(study)] if study.pool_file.is_file() else []


def _video_keys(study: Study) -> dict[str, str]:
    """Return the video keys of sets that the items need and that the video manifest does not call ready."""
    if not study.pool_file.is_file():
        return {}
    last = last_outcomes(study)
    return {
        each.frames_key: each.video_key
        for each in wanted_sets(study)
        if each.frames_key not in last or not last[each.frames_key].ready
    }


def _remaining(walk: _Walk, shards: Sequence[Shard]) -> list[Shard]:
    """Return the shards of which something is missing, and refuse what would not fit.

    Raises:
        StudyError: the frames would not fit on the disk.
    """
    there = walk.study.frames_ready()
    todo, need = [], 0
    for shard in shards:
        missing = _missing_bytes(walk, shard, there)
        if missing:
            todo.append(shard)
            need += missing
        else:
            walk.summary.skipped += 1
    place = walk.study.frames
    while not place.is_dir():
        place = place.parent
    free = shutil.disk_usage(place).free
    if need > free:
        what = f"the frames need {shown_size(need)}, and {shown_size(free)} are free"
        raise StudyError(f"{walk.study.frames}: {what}. Cure: free space, or set POOL_FRAMES_DIR to another disk")
    return todo


def _missing_bytes(walk: _Walk, shard: Shard, there: frozenset[str]) -> int:
    """Return how much of a shard has to be unpacked: all, or what follows the sets that are there; 0 if they all are.

    Reads the shard's headers alone, up to the first set that is not there. A shard whose headers do not end where they
    should, or name another number of sets than the manifest, counts as missing as a whole, and is then verified.
    """
    if not there:
        return shard.bytes
    path, whole, sets = walk.source / shard.file, 0, 0
    try:
        for key, pieces in sets_of(path, None):
            if key not in there or isinstance(read_folder(walk.study.frames / key), str):
                return shard.bytes - whole
            whole += sum(size for _, size, _ in pieces)
            sets += 1
    except DamagedFileError:
        return shard.bytes
    return 0 if sets == shard.n_sets else shard.bytes


def _one_shard(walk: _Walk, shard: Shard) -> None:
    """Verify one shard, then unpack it.

    Raises:
        DamagedFileError: it is not what the manifest says, or holds what no shard of ours does; nothing was unpacked.
        StudyError: its frames were made with another `[frames]` config, or the disk is full.
    """
    path, summary = walk.source / shard.file, walk.summary
    try:
        file = path.open("rb", buffering=1 << 16)
    except OSError as reason:
        raise DamagedFileError(f"{path}: not readable: {reason.strerror}") from None
    with file:
        _verify(walk, shard, path, file)
        keys = inspected(walk.study, path, file, every_byte=summary.verified_only)
        if shard.n_sets is not None and len(keys) != shard.n_sets:
            raise DamagedFileError(f"{path}: {len(keys)} sets instead of {shard.n_sets}")
        summary.sets += len(keys)
        summary.bytes += shard.bytes
        if not summary.verified_only:
            _unpack(walk, path, file)


def _verify(walk: _Walk, shard: Shard, path: Path, file: IO[bytes]) -> None:
    """Read a shard to its end.

    Raises:
        DamagedFileError: its size or hash is another than the manifest says.
    """
    digest, size = hashlib.sha256(), 0
    try:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
            walk.told(len(block))
    except OSError as reason:
        raise DamagedFileError(f"{path}: not readable: {reason.strerror}") from None
    if size != shard.bytes:
        raise DamagedFileError(f"{path}: {size:,} bytes instead of {shard.bytes:,}")
    if digest.hexdigest() != shard.sha256:
        what = f"sha256 is {digest.hexdigest()[:16]}… instead of {shard.sha256[:16]}…"
        raise DamagedFileError(f"{path}: {what}: damaged on the way")


def _unpack(walk: _Walk, path: Path, file: IO[bytes]) -> None:
    """Unpack the sets of an inspected shard that are not there, each in one move; note them in the video manifest.

    Raises:
        StudyError: the disk is full or the folder is not writable; nothing half-written stays.
    """
    made, parent, before = list[Outcome](), walk.study.frames, walk.done
    try:
        for key, pieces in sets_of(path, file):
            final, size = parent / key, 0
            if not _whole(final):
                with writing(final), in_progress(parent, key, FRAMES_FILE) as folder:
                    size = sum(_written(f"{folder}/{name}", content) for name, _, content in pieces)
                    walk.summary.made += moved(folder, final, _whole)
                made += _outcomes(walk.video_keys, key, final)
            walk.told(size)
        walk.told(before + os.fstat(file.fileno()).st_size - walk.done)  # headers, and sets that were there
    finally:
        record(walk.study, made)


def _written(path: str, content: IO[bytes]) -> int:
    """Write one file; returns its bytes."""
    with open(path, "wb", buffering=0) as file:
        size = 0
        while block := content.read(_BLOCK):
            write_whole(file, block)
            size += len(block)
    return size


def _whole(folder: Path) -> bool:
    """Whether a set is there and whole."""
    return not isinstance(read_folder(folder), str)


def _outcomes(video_keys: Mapping[str, str], key: str, folder: Path) -> list[Outcome]:
    """The row of the video manifest for a set that came in a shard."""
    if key not in video_keys:
        return []
    table = read_folder(folder)
    source = {} if isinstance(table, str) else table.get("source")
    digest = source.get("sha256") if isinstance(source, dict) else None
    return [Outcome(video_keys[key], key, "ready", digest if isinstance(digest, str) else "")]
