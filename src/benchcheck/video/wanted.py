"""What a study's items need of videos: distinct sets of frames, and one task per video file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.config import Videos
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.faults import VideoError
from benchcheck.video.frames import usable_key
from benchcheck.video.grid import Window
from benchcheck.video.sources.finding import Finder
from benchcheck.video.store import Outcome, parse_video_key, videos_of
from benchcheck.video.task import Task

__all__ = ["WantedSet", "failed", "tasks_of", "wanted_sets"]


@dataclass(frozen=True, slots=True)
class WantedSet:
    """One set of frames that some item needs."""

    frames_key: str
    video_key: str
    bench: str
    window: Window


def wanted_sets(study: Study, items: Iterable[Item] | None = None) -> list[WantedSet]:
    """Return the distinct sets of frames of multiple-choice items, of all or of the given ones, in the pool's order.

    Raises:
        StudyError: there is no pool yet, or its file is damaged.
    """
    columns = ["frames_key", "video_key", "bench", "start", "end", "format"]
    rows: Iterable[Mapping[str, Any]]
    if items is None:
        rows = study.item_table(columns).to_pylist()
    else:
        rows = ({name: getattr(item, name) for name in columns} for item in items)
    wanted: dict[str, WantedSet] = {}
    for row in rows:
        if row["format"] == "mcq" and row["frames_key"] not in wanted:
            window = (_ms(row["start"]), _ms(row["end"]))
            wanted[row["frames_key"]] = WantedSet(row["frames_key"], row["video_key"], row["bench"], window)
    return list(wanted.values())


def _ms(seconds: float | None) -> int | None:
    """Whole milliseconds, rounded as the frames key is."""
    return None if seconds is None else round(seconds * 1000)


def tasks_of(study: Study, wanted: Sequence[WantedSet]) -> tuple[list[Task], list[list[Outcome]]]:
    """Group sets by video, so that a file is read and decoded once; names that can be no file fail at once.

    Archives that the config or an item names are looked into, once each. Of a hub dataset only archives are downloaded
    here, and only those that may hold a video that is nowhere else.

    Raises:
        SpecError: the spec of an entry with videos of its own is not there.
        InputError: a manifest cannot be read.
        UsageError: a hub dataset has no commit.
        RunError: the hub's cache cannot be written.
    """
    groups: dict[tuple[str, str], list[WantedSet]] = {}
    for each in wanted:
        groups.setdefault((each.video_key, each.bench), []).append(each)
    finders = _finders(study, {bench for _, bench in groups})
    tasks, hopeless = list[Task](), list[list[Outcome]]()
    for (video_key, bench), group in groups.items():
        try:
            tasks.append(_task(study, finders[bench], video_key, group))
        except VideoError as fault:
            hopeless.append(failed(video_key, [each.frames_key for each in group], fault))
    return tasks, hopeless


def _finders(study: Study, benches: Iterable[str]) -> dict[str, Finder]:
    """What finds the videos of each benchmark; those whose videos lie in the same place share it."""
    found: dict[Videos, Finder] = {}
    finders: dict[str, Finder] = {}
    for bench in sorted(benches):
        videos = videos_of(study.config, bench, study.root)
        if videos not in found:
            found[videos] = Finder(study, videos)
        finders[bench] = found[videos]
    return finders


def _task(study: Study, finder: Finder, video_key: str, group: Sequence[WantedSet]) -> Task:
    """One video's message for a worker.

    Raises:
        VideoError: the item names no file below the videos folder.
    """
    for each in group:
        if not usable_key(each.frames_key):
            raise VideoError("outside", f"frames key {each.frames_key!r} is no folder name")
    bench = group[0].bench
    found = finder.find(bench, parse_video_key(video_key))
    return Task(
        video_key,
        found.paths,
        {each.frames_key: each.window for each in group},
        finder.folder,
        bench,
        found.member,
        found.hub,
        found.otherwise,
        os.path.abspath(study.places.scratch),
    )


def failed(video_key: str, frames_keys: Iterable[str], fault: VideoError) -> list[Outcome]:
    """Return the outcomes of a video of which no set can be made."""
    return [Outcome(video_key, key, fault.status, "", fault.reason) for key in frames_keys]
