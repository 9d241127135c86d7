"""Frames for a whole study: what is missing is made on all cores, what fails is a row, what is there stays.

Several extractions may run on one study, on one machine or over a shared disk: each video is decoded by one of them.
A run leaves a video that another holds for the end, and waits for it only when nothing else is left.
"""

import contextlib
import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.errors import UsageError
from benchcheck.pipes import cores
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.crew import settled
from benchcheck.video.failures import Failures
from benchcheck.video.faults import VideoError
from benchcheck.video.frames import clean_leftovers, read_folder, refuse_other_spec, spec_in
from benchcheck.video.making.claims import clear_claims, no_locks
from benchcheck.video.making.disk import Need, need_of
from benchcheck.video.store import Outcome, parse_video_key, record
from benchcheck.video.task import Task
from benchcheck.video.wanted import WantedSet, failed, tasks_of, wanted_sets

__all__ = [
    "LIMIT_S",
    "WHOLE",
    "Extraction",
    "FramesProgress",
    "FramesSummary",
    "extract_frames",
    "plan_extraction",
]

LIMIT_S = 900.0
"""Seconds a video may take. Two hours of 1080p decoded from end to end on one slow core are about 600."""
WHOLE = (0, 1)
"""The share that is all videos: its number, counted from 0, and how many there are."""
_LOOK_S = 30.0
"""Seconds between two looks at the free space."""


@dataclass(frozen=True, slots=True)
class FramesProgress:
    """Where an extraction stands; counted in sets of frames (a video or a window of one)."""

    done: int
    """Sets that are ready now and were not when the run began."""
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
class FramesSummary(Failures):
    """What an extraction did, counted in sets of frames; items of those that failed wait."""

    total: int
    """Distinct sets that the items need."""
    before: int
    """Sets that were ready before."""
    made: int = 0
    met: int = 0
    """Sets that another run made while this one ran."""
    videos: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    """What a reader should know of this run."""

    @property
    def videos_per_s(self) -> float:
        """Video files a second."""
        return self.videos / self.seconds if self.seconds > 0 else 0.0

    def add(self, outcomes: Sequence[Outcome], met: int = 0) -> None:
        """Count what one video gave, and how many of its sets another run had made."""
        self.videos += 1
        self.met += met
        for outcome in outcomes:
            if outcome.ready:
                self.made += 1
                continue
            video = parse_video_key(outcome.key)
            self.fail(outcome.status, f"{video.repo}/{video.member}", outcome.error)

    def lines(self) -> list[str]:
        """Return the summary as lines to print: counts, then each status with its cure and examples."""
        rate = f", {self.videos_per_s:.1f} videos/s" if self.made else ""
        ready = self.before + self.made + self.met
        others = f", {self.met} by another run meanwhile" if self.met else ""
        first = f"{ready} of {self.total} sets of frames are ready ({self.made} made now{rate}{others})"
        return [first, *self.notes, *self.told()]


@dataclass(frozen=True, slots=True)
class Extraction:
    """What is to be made, and the disk that it needs; `run` makes it."""

    study: Study
    wanted: int
    """Distinct sets that the items of this share need."""
    missing: int
    """Sets of them that are not ready."""
    tasks: tuple[Task, ...]
    hopeless: tuple[list[Outcome], ...]
    """Outcomes of videos whose names can be no file."""
    need: Need

    def run(
        self,
        *,
        workers: int | None = None,
        progress: Callable[[FramesProgress], None] | None = None,
        limit_s: float = LIMIT_S,
        ignore_free_space: bool = False,
    ) -> FramesSummary:
        """Make the frames.

        Raises:
            StudyError: the frames would not fit on the disk, or the study cannot be written; what was made stays.
            UsageError: `workers` or `limit_s` is not positive.
        """
        available = cores()
        workers = available if workers is None else workers
        if workers < 1 or limit_s <= 0:
            raise UsageError(f"workers = {workers} and limit_s = {limit_s:g} must be above 0")
        if not ignore_free_space:
            self.need.refuse()
        summary, begun = FramesSummary(total=self.wanted, before=self.wanted - self.missing), time.monotonic()
        watch = _Watch(self, summary, ignore_free_space)
        workers = max(1, min(workers, len(self.tasks)))
        settings = _settings(self.study, threads=max(1, available // workers), limit_s=limit_s)
        try:
            with contextlib.closing(self._settled(summary, settings, workers)) as results:
                for outcomes, met in results:
                    record(self.study, outcomes)
                    summary.add(outcomes, met)
                    summary.seconds = time.monotonic() - begun
                    if progress is not None:
                        progress(self._progress(summary))
                    watch.look(outcomes)
        finally:
            _clear(self.study)
        return summary

    def _progress(self, summary: FramesSummary) -> FramesProgress:
        done = summary.made + summary.met
        return FramesProgress(done, summary.failed, self.missing, summary.videos, summary.seconds)

    def _settled(
        self, summary: FramesSummary, settings: dict[str, Any], workers: int
    ) -> Generator[tuple[list[Outcome], int]]:
        """Yield what became of each video, and how many of its sets were met; videos that others hold come last."""
        for outcomes in self.hopeless:
            yield outcomes, 0
        if not self.tasks:
            return
        if reason := no_locks(self.study.frames):
            settings["claims"] = False
            summary.notes.append(f"{self.study.frames}: this file system cannot lock ({reason}): run one extraction")
        tasks: Sequence[Task] = self.tasks
        for wait in (False, True):
            held = list[Task]()
            workers = max(1, min(workers, len(tasks)))
            with contextlib.closing(settled(tasks, settings | {"wait": wait}, workers)) as answers:
                for task, answer in answers:
                    if isinstance(answer, VideoError):
                        yield failed(task.key, task.windows, answer), 0
                    elif answer.get("busy"):
                        held.append(task)
                    else:
                        yield [Outcome(**outcome) for outcome in answer["outcomes"]], len(answer["met"])
            tasks = held


def plan_extraction(study: Study, items: Iterable[Item] | None = None, share: tuple[int, int] = WHOLE) -> Extraction:
    """Say what is to be made for the pool's multiple-choice items, or the given ones; `share` is a part of the videos.

    The shares of a study do not overlap and leave nothing out; they depend on the video keys alone.

    Raises:
        StudyError: there is no pool, or the study holds frames of another `[frames]` config.
    """
    _clear(study)
    number, shares = share
    wanted = [each for each in wanted_sets(study, items) if _share_of(each.video_key, shares) == number]
    todo = _todo(study, wanted)
    tasks, hopeless = tasks_of(study, todo)
    sizes = [_size(task) for task in tasks]
    coming = sum(
        len(task.windows)
        for task, size in zip(tasks, sizes, strict=True)
        if size or task.hub or study.config.normalize.shown
    )
    ordered = tuple(_longest_first(tasks, sizes))
    return Extraction(study, len(wanted), len(todo), ordered, tuple(hopeless), need_of(study, coming))


def extract_frames(
    study: Study,
    *,
    workers: int | None = None,
    items: Iterable[Item] | None = None,
    progress: Callable[[FramesProgress], None] | None = None,
    limit_s: float = LIMIT_S,
    share: tuple[int, int] = WHOLE,
) -> FramesSummary:
    """Make the frames of the pool's multiple-choice items, or of the given ones, that are not there yet.

    Sets that are ready are left alone, those that failed before are tried again. A file that crashes or hangs the
    decoder fails alone. Every attempt is a row of the video manifest. `workers` defaults to all cores.

    Raises:
        StudyError: the frames would not fit on the disk, the study cannot be written (what was made stays), or it
            holds frames of another `[frames]` config.
        UsageError: `workers` or `limit_s` is not positive.
    """
    return plan_extraction(study, items, share).run(workers=workers, progress=progress, limit_s=limit_s)


class _Watch:
    """Looks at the free space while frames are made: what others write, and frames larger than was foreseen."""

    def __init__(self, extraction: Extraction, summary: FramesSummary, off: bool) -> None:
        self._extraction, self._summary, self._off = extraction, summary, off
        self._next = time.monotonic() + _LOOK_S
        self._made: deque[str] = deque(maxlen=20)

    def look(self, outcomes: Sequence[Outcome]) -> None:
        """Remember what was just made; now and then look whether the rest still fits.

        Raises:
            StudyError: it does not.
        """
        self._made.extend(outcome.frames_key for outcome in outcomes if outcome.ready)
        if self._off or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LOOK_S
        summary, extraction = self._summary, self._extraction
        left = extraction.missing - summary.made - summary.met - summary.failed
        need_of(extraction.study, left, reversed(self._made)).refuse()


def _clear(study: Study) -> None:
    """Remove what runs that were killed left."""
    clean_leftovers(study.frames)
    clear_claims(study.frames)


def _share_of(video_key: str, shares: int) -> int:
    """The share that a video belongs to: the same on every machine, whatever is ready and whatever else is there."""
    digest = hashlib.sha256(video_key.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % shares


def _longest_first(tasks: Sequence[Task], sizes: Sequence[int]) -> list[Task]:
    """Order videos by their files' sizes, so that no long one is left for the end, when the other workers are idle."""
    return [tasks[place] for place in sorted(range(len(tasks)), key=lambda place: -sizes[place])]


def _size(task: Task) -> int:
    """Bytes of a video; 0 where there is none, or where that is not known without looking far."""
    for path in task.paths:
        try:
            return os.stat(path).st_size
        except (OSError, ValueError):
            continue
    return 0 if task.member is None else task.member.packed


def _todo(study: Study, wanted: Sequence[WantedSet]) -> list[WantedSet]:
    """What is not ready: no folder, or one whose files are not whole.

    Raises:
        StudyError: a ready folder was made with another `[frames]` config.
    """
    there = study.frames_ready()
    whole: dict[str, dict[str, Any]] = {}
    for each in wanted:
        if each.frames_key in there and not isinstance(table := read_folder(study.frames / each.frames_key), str):
            whole[each.frames_key] = spec_in(table)
    refuse_other_spec(study, list(whole.items()))
    return [each for each in wanted if each.frames_key not in whole]


def _settings(study: Study, *, threads: int, limit_s: float) -> dict[str, Any]:
    """The first message of every worker."""
    frames = study.config.frames
    spec = {"count": frames.count, "long_side": frames.long_side, "quality": frames.quality, "threads": threads}
    pictures = study.config.normalize.shown
    normalized = {"folder": os.path.abspath(study.normalized), "pictures": pictures} if pictures else None
    folder = os.path.abspath(study.frames)
    return {"job": "draw", "spec": spec, "folder": folder, "limit_s": limit_s, "normalized": normalized}
