"""Frames for a whole study: what is missing is made on all cores, what fails is a row, what is there stays."""

import contextlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.errors import StudyError, UsageError
from benchcheck.pipes import Death
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.crew import how_it_died, work_through
from benchcheck.video.faults import CURES, VideoError
from benchcheck.video.frames import clean_leftovers, read_folder, refuse_other_spec, usable_key
from benchcheck.video.grid import Window
from benchcheck.video.store import Outcome, candidates, parse_video_key, record, videos_of
from benchcheck.video.task import Task

__all__ = ["LIMIT_S", "FramesProgress", "FramesSummary", "extract_frames"]

LIMIT_S = 900.0
"""Seconds a video may take. Two hours of 1080p decoded from end to end on one slow core are about 600."""
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FramesProgress:
    """Where an extraction stands; counted in sets of frames (a video or a window of one)."""

    done: int
    """Sets made in this run."""
    failed: int
    total: int
    """Sets that this run has to make."""
    videos: int
    """Video files gone through in this run."""
    seconds: float

    @property
    def videos_per_s(self) -> float:
        """Video files a second so far."""
        return self.videos / self.seconds if self.seconds > 0 else 0.0


@dataclass(slots=True)
class FramesSummary:
    """What an extraction did, counted in sets of frames."""

    total: int
    """Distinct sets that the items need."""
    before: int
    """Sets that were ready before."""
    made: int = 0
    videos: int = 0
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    """Failed sets by status; docs and `faults.CURES` say what helps."""
    examples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Up to five failed sets a status: the video's name and the reason."""

    @property
    def failed(self) -> int:
        """Sets that could not be made; their items wait."""
        return sum(self.statuses.values())

    @property
    def videos_per_s(self) -> float:
        """Video files a second."""
        return self.videos / self.seconds if self.seconds > 0 else 0.0

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count what one video gave."""
        self.videos += 1
        for outcome in outcomes:
            if outcome.ready:
                self.made += 1
                continue
            self.statuses[outcome.status] += 1
            shown = self.examples.setdefault(outcome.status, [])
            if len(shown) < _EXAMPLES:
                shown.append((parse_video_key(outcome.key).member, outcome.error))

    def lines(self) -> list[str]:
        """Return the summary as lines to print: counts, then each status with its cure and examples."""
        rate = f", {self.videos_per_s:.1f} videos/s" if self.made else ""
        ready = self.before + self.made
        lines = [f"{ready} of {self.total} sets of frames are ready ({self.made} made now{rate})"]
        for status, count in self.statuses.most_common():
            lines.append(f"{status}: {count}. Cure: {CURES[status]}")
            lines += [f"  {video}: {reason}" for video, reason in self.examples[status]]
            if count > len(self.examples[status]):
                lines.append(f"  and {count - len(self.examples[status])} more; all are in logs/manifest.jsonl")
        return lines


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One set of frames that some item needs."""

    frames_key: str
    video_key: str
    bench: str
    window: Window


def extract_frames(
    study: Study,
    *,
    workers: int | None = None,
    items: Iterable[Item] | None = None,
    progress: Callable[[FramesProgress], None] | None = None,
    limit_s: float = LIMIT_S,
) -> FramesSummary:
    """Make the frames of the pool's multiple-choice items, or of the given ones, that are not there yet.

    Sets that are ready are left alone, those that failed before are tried again. A file that crashes or hangs the
    decoder fails alone. Every attempt is a row of the video manifest. `workers` defaults to all cores.

    Raises:
        StudyError: the study cannot be written (what was made stays), or holds frames of another `[frames]` config.
        UsageError: `workers` or `limit_s` is not positive.
    """
    cores = _cores()
    workers = cores if workers is None else workers
    if workers < 1 or limit_s <= 0:
        raise UsageError(f"workers = {workers} and limit_s = {limit_s:g} must be above 0")
    clean_leftovers(study.frames)
    wanted = _wanted(study, items)
    todo = _todo(study, wanted)
    tasks, hopeless = _tasks(study, todo)
    workers = max(1, min(workers, len(tasks)))
    settings = _settings(study, threads=max(1, cores // workers), limit_s=limit_s)
    summary, begun = FramesSummary(total=len(wanted), before=len(wanted) - len(todo)), time.monotonic()
    try:
        for outcomes in itertools.chain(hopeless, _settled(tasks, settings, workers)):
            record(study, outcomes)
            summary.add(outcomes)
            summary.seconds = time.monotonic() - begun
            if progress is not None:
                state = FramesProgress(summary.made, summary.failed, len(todo), summary.videos, summary.seconds)
                progress(state)
    finally:
        clean_leftovers(study.frames)
    return summary


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _wanted(study: Study, items: Iterable[Item] | None) -> list[_Wanted]:
    """The distinct sets of frames of multiple-choice items, in the pool's order."""
    columns = ["frames_key", "video_key", "bench", "start", "end", "format"]
    rows: Iterable[Mapping[str, Any]]
    if items is None:
        rows = study.item_table(columns).to_pylist()
    else:
        rows = ({name: getattr(item, name) for name in columns} for item in items)
    wanted: dict[str, _Wanted] = {}
    for row in rows:
        if row["format"] == "mcq" and row["frames_key"] not in wanted:
            window = (_ms(row["start"]), _ms(row["end"]))
            wanted[row["frames_key"]] = _Wanted(row["frames_key"], row["video_key"], row["bench"], window)
    return list(wanted.values())


def _ms(seconds: float | None) -> int | None:
    """Whole milliseconds, rounded as the frames key is."""
    return None if seconds is None else round(seconds * 1000)


def _todo(study: Study, wanted: Sequence[_Wanted]) -> list[_Wanted]:
    """What is not ready: no folder, or one whose files are not whole.

    Raises:
        StudyError: a ready folder was made with another `[frames]` config.
    """
    there = study.frames_ready()
    tables = {
        each.frames_key: read_folder(study.frames / each.frames_key) for each in wanted if each.frames_key in there
    }
    whole = {key: table for key, table in tables.items() if not isinstance(table, str)}
    refuse_other_spec(study, list(whole.items()))
    return [each for each in wanted if each.frames_key not in whole]


def _tasks(study: Study, todo: Sequence[_Wanted]) -> tuple[list[Task], list[list[Outcome]]]:
    """Group sets by video, so that a file is read and decoded once; names that can be no file fail at once."""
    groups: dict[tuple[str, str], list[_Wanted]] = {}
    for each in todo:
        groups.setdefault((each.video_key, each.bench), []).append(each)
    tasks, hopeless = list[Task](), list[list[Outcome]]()
    for (video_key, bench), group in groups.items():
        try:
            tasks.append(_task(study, video_key, bench, group))
        except VideoError as fault:
            hopeless.append(_failed(video_key, [each.frames_key for each in group], fault))
    return tasks, hopeless


def _task(study: Study, video_key: str, bench: str, group: Sequence[_Wanted]) -> Task:
    """One video's message for a worker.

    Raises:
        VideoError: the item names no file below the videos folder.
    """
    for each in group:
        if not usable_key(each.frames_key):
            raise VideoError("outside", f"frames key {each.frames_key!r} is no folder name")
    videos = videos_of(study.config, bench, study.root)
    return Task(
        video_key,
        tuple(candidates(study.root, videos, bench, parse_video_key(video_key).member)),
        {each.frames_key: each.window for each in group},
        os.path.abspath(study.root / videos.folder),
    )


def _failed(video_key: str, frames_keys: Iterable[str], fault: VideoError) -> list[Outcome]:
    return [Outcome(video_key, key, fault.status, "", fault.reason) for key in frames_keys]


def _settings(study: Study, *, threads: int, limit_s: float) -> dict[str, Any]:
    """The first message of every worker."""
    frames = study.config.frames
    spec = {"count": frames.count, "long_side": frames.long_side, "quality": frames.quality, "threads": threads}
    return {"spec": spec, "folder": os.path.abspath(study.frames), "limit_s": limit_s}


def _settled(tasks: Sequence[Task], settings: Mapping[str, Any], workers: int) -> Iterator[list[Outcome]]:
    """Each video's outcomes as its worker gives them, or what its worker died of.

    Raises:
        StudyError: a worker could not write.
        RunError: no worker can start.
    """
    if not tasks:
        return
    pairs = ((task, task.table()) for task in tasks)
    with contextlib.closing(work_through(pairs, settings, workers)) as answers:
        for task, answer in answers:
            if isinstance(answer, Death):
                yield _failed(task.key, task.windows, _fault_of(answer, settings["limit_s"]))
            elif "stop" in answer:
                raise StudyError(answer["stop"])
            else:
                yield [Outcome(**outcome) for outcome in answer["outcomes"]]


def _fault_of(death: Death, limit_s: float) -> VideoError:
    """What a worker's death says about the video it held."""
    if death.timed_out:
        return VideoError("too_slow", f"not done after {limit_s:g} s")
    return VideoError("crashed", how_it_died(death))
