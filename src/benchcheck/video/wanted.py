"""What a study's items need of videos: distinct sets of frames, and one task per video file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchcheck.config import Videos
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.faults import VideoError
from benchcheck.video.frames import usable_key
from benchcheck.video.grid import Window
from benchcheck.video.sources.finding import Finder, Found
from benchcheck.video.store import Outcome, parse_video_key, videos_of
from benchcheck.video.task import Task

__all__ = ["WantedSet", "failed", "is_several", "tasks_of", "wanted_sets"]


@dataclass(frozen=True, slots=True)
class WantedSet:
    """One set of frames that some item needs."""

    frames_key: str
    video_key: str
    bench: str
    window: Window
    others: tuple[tuple[str, str], ...] = ()
    """Other video keys and benchmarks of the same video, each of which may name another place for it."""
    several: bool = False
    """Whether its items are about several videos."""


def wanted_sets(study: Study, items: Iterable[Item] | None = None) -> list[WantedSet]:
    """Return the distinct sets of frames of multiple-choice items, of all or of the given ones, in the pool's order.

    Raises:
        StudyError: there is no pool yet, or its file is damaged.
    """
    columns = ["frames_key", "video_key", "bench", "start", "end", "format", "issues"]
    rows: Iterable[Mapping[str, Any]]
    if items is None:
        rows = study.item_table(columns).to_pylist()
    else:
        rows = ({name: getattr(item, name) for name in columns} for item in items)
    wanted: dict[str, tuple[Window, bool]] = {}
    named: dict[str, dict[tuple[str, str], None]] = {}
    for row in rows:
        if row["format"] != "mcq":
            continue
        named.setdefault(_video_of(row["frames_key"]), {})[row["video_key"], row["bench"]] = None
        if row["frames_key"] not in wanted:
            wanted[row["frames_key"]] = (_ms(row["start"]), _ms(row["end"])), is_several(row["issues"])
    found = []
    for frames_key, (window, several) in wanted.items():
        (video_key, bench), *others = named[_video_of(frames_key)]
        found.append(WantedSet(frames_key, video_key, bench, window, tuple(others), several))
    return found


def is_several(issues: Sequence[str]) -> bool:
    """Whether an item is about several videos, by its issues."""
    return "several_videos" in issues


def _video_of(frames_key: str) -> str:
    """The id of the video that a set is of: all of its windows are decoded in one go, whatever keys name it."""
    return frames_key.partition("@")[0]


def _ms(seconds: float | None) -> int | None:
    """Whole milliseconds, rounded as the frames key is."""
    return None if seconds is None else round(seconds * 1000)


def tasks_of(study: Study, wanted: Sequence[WantedSet]) -> tuple[list[Task], list[list[Outcome]]]:
    """Group sets by video, so that a file is read and decoded once; names that can be no file fail at once.

    A video that several keys or benchmarks name is looked for in all of their places (`Task.others`).

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
    finders = _finders(study, {each.bench for each in wanted} | {bench for each in wanted for _, bench in each.others})
    tasks, hopeless = list[Task](), list[list[Outcome]]()
    for (video_key, _), group in groups.items():
        try:
            tasks.append(_task(study, finders, group))
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


def _task(study: Study, finders: Mapping[str, Finder], group: Sequence[WantedSet]) -> Task:
    """One video's message for a worker, with every place that its keys name; one where something is comes first.

    Raises:
        VideoError: the items name no file below the videos folder.
    """
    first = group[0]
    if not first.video_key:
        raise VideoError("no_video", "the item names no video")
    for each in group:
        if not usable_key(each.frames_key):
            raise VideoError("outside", f"frames key {each.frames_key!r} is no folder name")
    places: dict[Found, tuple[str, str]] = {}
    faults = []
    for video_key, bench in ((first.video_key, first.bench), *first.others):
        try:
            found = finders[bench].find(bench, parse_video_key(video_key), several=first.several)
        except VideoError as fault:
            faults.append(fault)
        else:
            places.setdefault(found, (video_key, bench))
    if not places:
        raise faults[0]
    windows, scratch = {each.frames_key: each.window for each in group}, os.path.abspath(study.places.scratch)
    tasks = [
        Task(key, found.paths, windows, finders[bench].folder, bench, found.member, found.hub, found.otherwise, scratch)
        for found, (key, bench) in sorted(places.items(), key=lambda place: not place[0].is_there)
    ]
    return replace(tasks[0], others=tuple(replace(other, windows={}) for other in tasks[1:]))


def failed(video_key: str, frames_keys: Iterable[str], fault: VideoError) -> list[Outcome]:
    """Return the outcomes of a video of which no set can be made."""
    return [Outcome(video_key, key, fault.status, "", fault.reason) for key in frames_keys]
