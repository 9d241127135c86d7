"""Ids by content take their place: frames move to their new folders, the manifest says so, then the pool.

Any step may be the last before a kill. Frames that moved are found under the new key, those that did not under the old
one, which follows from the video's key alone; so the same command completes what is left, whatever the pool says.
"""

import contextlib
import json
import shutil
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.files import writing
from benchcheck.pool.contents import with_ids
from benchcheck.study import FRAMES_FILE, Study
from benchcheck.video.folders import in_progress, moved, set_aside
from benchcheck.video.frames import frame_name, read_folder
from benchcheck.video.store import Outcome, last_outcomes, parse_video_key, record

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Rekeyed", "rekey"]

_SPEC = ("count", "long_side", "quality", "normalized", "window")


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What became of a study's ids."""

    videos: int
    """Videos of the pool whose id changed now."""
    moved: int
    """Sets of frames that were given their new key."""
    left: tuple[str, ...]
    """Frame folders that stay under their old key: made from other bytes than the video has, or damaged."""


def rekey(study: Study, ids: Mapping[str, str]) -> Rekeyed:
    """Give a study's videos their ids by content: frames, rows about frames, and the pool, in this order.

    Args:
        study: the study; its pool is its own.
        ids: the content hash by video key.

    Raises:
        StudyError: something cannot be read or written.
    """
    old = {parse_video_key(key).video_id: (key, content) for key, content in ids.items()}
    count, left = _move_frames(study, old)
    _carry_rows(study, old)
    return Rekeyed(_rewrite_pool(study, ids), count, tuple(left))


def _split(frames_key: str) -> tuple[str, str]:
    """A frames key as the video's id and the window behind it."""
    video_id, at, window = frames_key.partition("@")
    return video_id, at + window


def _move_frames(study: Study, old: Mapping[str, tuple[str, str]]) -> tuple[int, list[str]]:
    """Move the frames of renamed videos; those made from other bytes stay."""
    count, left = 0, []
    for name in sorted(study.frames_ready()):
        video_id, window = _split(name)
        if video_id in old:
            content = old[video_id][1]
            if _move(study.frames / name, study.frames / (content + window), content):
                count += 1
            else:
                left.append(name)
    return count, left


def _move(folder: Path, final: Path, content: str) -> bool:
    """Give one set its new key; where that has the same set, as two keys of one content may have, the old one goes.

    The new folder is filled beside, with links to the same files, since `frames.json` names its key: both are whole at
    any time.
    """
    table = read_folder(folder)
    if isinstance(table, str) or content not in _sources(table):
        return False
    renamed = json.dumps({**table, "key": final.name}, indent=1) + "\n"
    with writing(final), in_progress(final.parent, final.name, FRAMES_FILE) as fresh:
        for index in range(len(table["frames"])):
            _link(folder / frame_name(index), fresh / frame_name(index))
        (fresh / FRAMES_FILE).write_text(renamed, encoding="utf-8")
        if not moved(fresh, final, lambda there: not isinstance(read_folder(there), str)):
            there = read_folder(final)
            if isinstance(there, str) or any(there.get(name) != table.get(name) for name in _SPEC):
                return False
        set_aside(folder)
    return True


def _link(source: Path, target: Path) -> None:
    """Link a file under a second name, or copy it where the file system has no such links."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _sources(table: Mapping[str, Any]) -> set[Any]:
    """The hashes of what a set was made from: of the file, and of the original of a normalised one."""
    source = table.get("source")
    return {source.get("sha256"), source.get("original")} if isinstance(source, dict) else set()


def _carry_rows(study: Study, old: Mapping[str, tuple[str, str]]) -> None:
    """Say in the manifest under the new keys what it says under the old ones: which frames are ready, which are not."""
    last, there, carried = last_outcomes(study), study.frames_ready(), dict[str, Outcome]()
    for frames_key, outcome in last.items():
        video_id, window = _split(frames_key)
        if video_id not in old:
            continue
        key, content = old[video_id]
        new = content + window
        if new not in last and outcome.content_hash == content and (new in there or not outcome.ready):
            carried[new] = Outcome(key, new, outcome.status, content, outcome.error)
    record(study, carried.values())


def _rewrite_pool(study: Study, ids: Mapping[str, str]) -> int:
    """Write the pool anew with the ids, batch by batch; returns how many videos got another one.

    A pool in which nothing changes is left as it is.
    """
    known = study.item_table(["video_key", "video_id"])
    pairs = zip(known.column("video_key").to_pylist(), known.column("video_id").to_pylist(), strict=True)
    changed = {key for key, video_id in pairs if ids.get(key, video_id) != video_id}
    if changed:
        with contextlib.closing(_batches(study.pool_file)) as tables:
            study.write_tables(with_ids(table, ids) for table in tables)
    return len(changed)


def _batches(path: Path) -> "Generator[pa.Table]":
    """The pool in parts of a row group at most."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(10_000):
            yield pa.Table.from_batches([batch])
