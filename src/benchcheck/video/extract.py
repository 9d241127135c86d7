"""Frames for a whole study: what is missing is made on all cores, what fails is a row, what is there stays."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.errors import UsageError
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.crew import settled
from benchcheck.video.faults import CURES, VideoError
from benchcheck.video.frames import clean_leftovers, read_folder, refuse_other_spec
from benchcheck.video.store import Outcome, parse_video_key, record
from benchcheck.video.task import Task
from benchcheck.video.wanted import WantedSet, failed, tasks_of, wanted_sets

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
    wanted = wanted_sets(study, items)
    todo = _todo(study, wanted)
    tasks, hopeless = tasks_of(study, todo)
    workers = max(1, min(workers, len(tasks)))
    settings = _settings(study, threads=max(1, cores // workers), limit_s=limit_s)
    summary, begun = FramesSummary(total=len(wanted), before=len(wanted) - len(todo)), time.monotonic()
    try:
        made = (_outcomes(*one) for one in settled(tasks, settings, workers))
        for outcomes in itertools.chain(hopeless, made):
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


def _todo(study: Study, wanted: Sequence[WantedSet]) -> list[WantedSet]:
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


def _settings(study: Study, *, threads: int, limit_s: float) -> dict[str, Any]:
    """The first message of every worker."""
    frames = study.config.frames
    spec = {"count": frames.count, "long_side": frames.long_side, "quality": frames.quality, "threads": threads}
    return {"job": "draw", "spec": spec, "folder": os.path.abspath(study.frames), "limit_s": limit_s}


def _outcomes(task: Task, answer: Mapping[str, Any] | VideoError) -> list[Outcome]:
    """What became of each set of a video: as its worker says, or what the worker died of."""
    if isinstance(answer, VideoError):
        return failed(task.key, task.windows, answer)
    return [Outcome(**outcome) for outcome in answer["outcomes"]]
