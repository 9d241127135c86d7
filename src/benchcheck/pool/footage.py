"""Which video an item is about, and which seconds of it (protocol 1): from names alone, no video is looked at."""

import functools
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from benchcheck.pool.fields import needed, shown, text_of, value_of
from benchcheck.pool.issues import Issue
from benchcheck.pool.items import VideoRef
from benchcheck.pool.specs import Spec, VideoFields
from benchcheck.pool.texts import read_text, shown_value, writable
from benchcheck.pool.times import seconds, window_of

__all__ = ["hub_video", "seconds_of", "video_of"]

WINDOW_SLACK = 1.0
"""Seconds that a window may reach beyond the stated duration: durations are rounded, and clips cut at key frames."""

_HUB_URL = re.compile(
    r"https?://huggingface\.co/(?:datasets/)?([^/?#]+/[^/?#]+)/(?:resolve|blob|raw)/[^/?#]+/([^?#]+).*"
)


@functools.lru_cache(maxsize=4096)
def _reference(repo: str, member: str, zip_path: str = "") -> tuple[str, str]:
    """A video's key and id; items of one video stand side by side in most files."""
    reference = VideoRef(repo, member, zip_path)
    return reference.key, reference.video_id


def hub_video(member: str) -> tuple[str, str] | None:
    """Repository and path of a hub URL (VLM4D), None for everything else."""
    match = _HUB_URL.fullmatch(member) if member.startswith("http") else None
    return (match.group(1), unquote(match.group(2), errors="replace")) if match else None


def video_of(spec: Spec, values: Mapping[str, Any], found: list[Issue]) -> tuple[str, str]:
    """The video's key and id; empty when the record names none."""
    video = spec.video
    members = _members(video, values, found)
    if video.frames and text_of(value_of(values, video.frames)):
        found.append(Issue("frames_not_video", f"{video.frames} = {shown_value(values, video.frames)}"))
    if not members:
        names = ", ".join(video.members) or video.member
        found.append(Issue("no_video", f"{names} is empty" if names else "the spec declares no video"))
        return "", ""
    if len(members) > 1:
        found.append(Issue("several_videos", shown(members)))
    elif hub := hub_video(members[0]):
        return _reference(*hub)
    archive = video.zip_path
    zip_path = read_text(values, archive, "zip_path", found) if "{" in archive else archive
    return _reference(video.repo or spec.bench, "|".join(members), zip_path)


def _members(video: VideoFields, values: Mapping[str, Any], found: list[Issue]) -> list[str]:
    """The videos that a record names: one a place, or a list in one field."""
    named: list[Any] = []
    for value in [value_of(values, part) for part in video.members or (video.member,)]:
        named += value if isinstance(value, list) else [value]
    members = [writable(value, "video", found) for value in named]
    return [member for member in members if member and not member.isspace()]


def seconds_of(
    spec: Spec, values: Mapping[str, Any], found: list[Issue]
) -> tuple[float | None, float | None, float | None]:
    """Start and end of the window, and the length of the whole video, in seconds; None where not known."""
    start, end = _window(spec.video, values, found) if spec.video.window_fields else (None, None)
    try:
        duration = seconds(value_of(values, spec.duration))
    except ValueError:
        duration = None  # a word such as `short`, as some benchmarks write
    if duration is not None and max(start or 0, end or 0) > duration + WINDOW_SLACK:
        found.append(Issue("window_out_of_range", f"{start} to {end} of {duration} s"))
    return start, end, duration


def _window(video: VideoFields, values: Mapping[str, Any], found: list[Issue]) -> tuple[float | None, float | None]:
    """Start and end, where the spec declares them."""
    declared = video.window_fields
    try:
        if video.window:
            start, end = window_of(value_of(values, video.window))
        else:
            start, end = seconds(value_of(values, video.start)), seconds(value_of(values, video.end))
        if end is not None and end <= (start or 0):
            raise ValueError(f"it ends at {end:g} s and starts at {start or 0:g} s")
    except ValueError as reason:
        found.append(Issue("bad_window", str(reason)))
        return None, None
    if start is None and end is None and any(map(needed, declared)):
        found.append(Issue("no_window", f"{', '.join(declared)} is empty"))
    return start, end
