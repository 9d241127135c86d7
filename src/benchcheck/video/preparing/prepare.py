"""A study's videos prepared: each found, hashed, probed and seen once, its id then its content's; some normalised.

Every inspection is a row of the video manifest. Completion is derived from those rows: a video is done when its last
row is good and its file has the size and the time of change that the row has.
"""

import datetime as dt
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchcheck.errors import UsageError
from benchcheck.files import append_rows
from benchcheck.pipes import cores
from benchcheck.pool.contents import PREPARED, content_ids
from benchcheck.study import Study
from benchcheck.video.crew import settled
from benchcheck.video.failures import Failures
from benchcheck.video.faults import VideoError
from benchcheck.video.folders import clear_abandoned
from benchcheck.video.frames import clean_leftovers
from benchcheck.video.preparing.normalized import META_FILE, form_of, read_meta
from benchcheck.video.preparing.prepared import PreparedVideo, ShownVideos, list_videos, seen_videos
from benchcheck.video.preparing.rekeying import Rekeyed, rekey
from benchcheck.video.sources.media import plain_file
from benchcheck.video.store import parse_video_key
from benchcheck.video.task import Task
from benchcheck.video.wanted import WantedSet, is_several, tasks_of

__all__ = ["PREPARE_LIMIT_S", "PrepareProgress", "PrepareSummary", "prepare_videos", "stamp_of"]

PREPARE_LIMIT_S = 900.0
"""Seconds that looking at a video may take, as for its frames (`extract.LIMIT_S`)."""
NORMALISE_LIMIT_S = 7200.0
"""Seconds where it is normalised, too: two hours of 1080p take x264 about an hour of one core."""


@dataclass(frozen=True, slots=True)
class PrepareProgress:
    """Where a preparation stands, counted in videos."""

    done: int
    failed: int
    total: int
    """Videos that this run has to look at."""
    seconds: float

    @property
    def videos_per_s(self) -> float:
        """Videos a second so far."""
        return (self.done + self.failed) / self.seconds if self.seconds > 0 else 0.0


@dataclass(slots=True)
class PrepareSummary(Failures):
    """What a preparation did, counted in videos."""

    total: int
    """Distinct videos that the items need."""
    before: int
    """Videos that were prepared before, and whose file is unchanged."""
    made: int = 0
    normalised: bool = False
    rekeyed: Rekeyed = field(default_factory=lambda: Rekeyed(0, 0, ()))
    shown: ShownVideos = field(default_factory=lambda: ShownVideos(()))
    """Every video, as `list_videos` has it."""

    def add(self, task: Task, row: Mapping[str, Any]) -> None:
        """Count one video."""
        fault = row.get("not_normalised") or row
        if fault["status"] == PREPARED:
            self.made += 1
        else:
            self.fail(fault["status"], parse_video_key(task.key).member, fault["error"])

    def lines(self) -> list[str]:
        """Return the summary as lines to print."""
        what = "prepared and normalised" if self.normalised else "prepared"
        first = f"{self.before + self.made} of {self.total} videos are {what} ({self.made} looked at now)"
        lines = [first, *self.told()]
        if self.rekeyed.videos or self.rekeyed.moved:
            moved = f"; {self.rekeyed.moved} sets of frames moved to it" if self.rekeyed.moved else ""
            lines.append(f"{self.rekeyed.videos} videos got their id by content{moved}")
        if self.rekeyed.left:
            lines.append(
                f"{len(self.rekeyed.left)} sets of frames keep their old key, such as {self.rekeyed.left[0]}: damaged, "
                "or made from other bytes. Cure: benchcheck frames extract makes them anew; then remove the old ones"
            )
        return lines + self._shared()

    def _shared(self) -> list[str]:
        """What the videos have in common."""
        groups = self.shown.duplicates()
        if not groups:
            return []
        keys = sum(map(len, groups))
        across = sum(len({bench for video in group for bench in video.benches}) > 1 for group in groups)
        between = f", {across} of them across benchmarks" if across else ""
        files = f"{len(groups)} file{'s' if len(groups) > 1 else ''}"
        return [f"{keys} videos are {files} by content{between}"]


def prepare_videos(
    study: Study,
    *,
    normalize: bool = False,
    workers: int | None = None,
    progress: Callable[[PrepareProgress], None] | None = None,
    limit_s: float | None = None,
) -> PrepareSummary:
    """Look at every video of the pool that is new or changed, and give each its id by content.

    A video is found, hashed, probed and fingerprinted in a worker process; a file that crashes or hangs the decoder
    fails alone. Videos are normalised too when `normalize` says so, or the config makes frames from normalised ones.
    In the end frames that are there move to the new keys, and the pool gets the ids. No run may go on meanwhile.

    Args:
        study: the study.
        normalize: whether to write `normalized/`, whatever frames are made from.
        workers: processes; all cores when None.
        progress: hears after each video.
        limit_s: seconds a video may take; 900, or 7200 where it is normalised.

    Raises:
        UsageError: the pool is given by `POOL_BASE`, or `workers` or `limit_s` is not positive.
        StudyError: the study cannot be written (what was found stays), or there is no pool yet.
    """
    if study.pool_is_given:
        raise UsageError(f"{study.pool_file}: this pool is given by POOL_BASE and never written. Cure: unset POOL_BASE")
    normalize = normalize or study.config.normalize.frames == "normalized"
    limit_s = limit_s if limit_s is not None else NORMALISE_LIMIT_S if normalize else PREPARE_LIMIT_S
    available = cores()
    if (workers is not None and workers < 1) or limit_s <= 0:
        raise UsageError(f"workers = {workers} and limit_s = {limit_s:g} must be above 0")
    _clean(study)
    tasks, hopeless = _tasks(study)
    todo = _todo(study, tasks, normalize)
    count = max(1, min(workers or available, len(todo)))
    total = len(todo) + len(hopeless)
    summary = PrepareSummary(total=len(tasks) + len(hopeless), before=len(tasks) - len(todo), normalised=normalize)
    settings = _settings(study, normalize, threads=max(1, available // count), limit_s=limit_s)
    begun = time.monotonic()
    try:
        for task, row in _rows(hopeless, todo, settings, count):
            append_rows(study.video_manifest, [row])
            summary.add(task, row)
            if progress is not None:
                progress(PrepareProgress(summary.made, summary.failed, total, time.monotonic() - begun))
    finally:
        _clean(study)
    summary.rekeyed = rekey(study, content_ids(study))
    summary.shown = list_videos(study)
    return summary


def _clean(study: Study) -> None:
    """Remove what killed runs left."""
    clear_abandoned(study.normalized, META_FILE)
    clean_leftovers(study.frames)


def _tasks(study: Study) -> tuple[list[Task], list[tuple[Task, VideoError]]]:
    """One task a video and benchmark, whatever ids the pool has; and videos that cannot be files.

    Two keys of one content have one frames key, so here each is known by its own name.
    """
    table = study.item_table(["video_key", "bench", "format", "issues"])
    columns = [table.column(name).to_pylist() for name in table.column_names]
    pairs = {
        (key, bench): is_several(issues) for key, bench, form, issues in zip(*columns, strict=True) if form == "mcq"
    }
    wanted = [
        WantedSet(parse_video_key(key).video_id, key, bench, (None, None), several=several)
        for (key, bench), several in pairs.items()
    ]
    tasks, hopeless = tasks_of(study, wanted)
    faults = [(Task(one.key, (), {}, ""), VideoError(one.status, one.error)) for group in hopeless for one in group]
    return tasks, faults


def _todo(study: Study, tasks: Sequence[Task], normalize: bool) -> list[Task]:
    """The videos that were never prepared, or whose file changed, or that lack the wanted form."""
    seen, form = seen_videos(study), form_of(study.config.normalize)

    def is_done(task: Task) -> bool:
        video = seen.get(task.key)
        if video is None or video.status != PREPARED or not _same(video, task):
            return False
        return not normalize or (read_meta(study.normalized / video.content_hash) or {}).get("form") == form

    return [task for task in tasks if not is_done(task)]


def _same(video: PreparedVideo, task: Task) -> bool:
    """Whether the file is the one that was looked at, as far as its size and time of change tell."""
    stamp = stamp_of(task)
    return stamp is not None and stamp == video.stamp


def stamp_of(task: Task) -> list[Any] | None:
    """Return what tells whether a video's bytes are the same, without reading them; None where nothing does.

    Of a file its size and time of change, of a member of an archive those of the archive's files and its place in it,
    of a file of a hub dataset its commit.
    """
    try:
        path = plain_file(task)
        if path is not None:
            return [_stat(path)]
        if task.member is not None:
            path = task.member.path.encode("utf-8", "backslashreplace").decode()  # as the row can keep it
            return [*map(_stat, task.member.parts), [path, task.member.at, task.member.size]]
    except (OSError, VideoError):
        return None
    return [task.hub.hub, task.hub.revision, task.hub.path] if task.hub is not None else None


def _stat(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]


def _settings(study: Study, normalize: bool, *, threads: int, limit_s: float) -> dict[str, Any]:
    """The first message of every worker."""
    form = asdict(study.config.normalize) if normalize else None
    folder = os.path.abspath(study.normalized)
    return {"job": "prepare", "form": form, "normalized": folder, "threads": threads, "limit_s": limit_s}


def _rows(
    hopeless: Sequence[tuple[Task, VideoError]], todo: Sequence[Task], settings: Mapping[str, Any], workers: int
) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Every video with its row of the manifest, as they come."""
    for task, fault in hopeless:
        yield task, _row(task, _failure(fault), None)
    # Before a file is read: what is written meanwhile is then seen the next time.
    stamps = {id(task): stamp_of(task) for task in todo}
    for task, answer in settled(todo, settings, workers):
        found = _failure(answer) if isinstance(answer, VideoError) else answer
        yield task, _row(task, found, stamps[id(task)])


def _failure(fault: VideoError) -> dict[str, Any]:
    return {"status": fault.status, "content_hash": "", "error": fault.reason}


def _row(task: Task, found: Mapping[str, Any], stamp: Any) -> dict[str, Any]:
    """A row of the manifest."""
    at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    row = {"key": task.key, **found, "at": at}
    return row | {"stamp": stamp} if found["status"] == PREPARED else row
