"""One video, all its windows: checked, decoded once, written as sets of frames. What a worker process does per task."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchcheck.pool.contents import content_of
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec, decoder_versions
from benchcheck.video.faults import READY, VideoError
from benchcheck.video.frames import Drawn, publish_frames
from benchcheck.video.grid import Timeline, Window, duplicates_of, grid_times, span_of
from benchcheck.video.preparing.normalized import normalized_media
from benchcheck.video.sources.media import Media, reachable
from benchcheck.video.store import Outcome
from benchcheck.video.task import Task

__all__ = ["DAMAGED_SHARE", "begin", "draw"]

DAMAGED_SHARE = Fraction(1, 8)
"""(D) A set with more damaged frames than this fails; up to here they are kept and flagged."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One window placed on the video's timeline: what is asked, what of it exists, which frames show it."""

    frames_key: str
    window: Window
    span: tuple[Fraction, Fraction]
    indices: tuple[int, ...]


def draw(
    task: Task,
    spec: Spec,
    frames_folder: Path,
    *,
    thorough: bool = False,
    normalized: Mapping[str, Any] | None = None,
) -> list[Outcome]:
    """Make the sets of frames of one video; what fails is an outcome with its reason, per window.

    `normalized` has the `folder` of normalised videos and what decides their `pictures`, where frames are made from
    these.

    Raises:
        StudyError: the frames folder cannot be written.
    """
    content = content_of(next(iter(task.windows), ""))
    digest = content
    try:
        with _media_of(task, content, normalized) as media:
            digest = media.sha256 if normalized is None else content
            video = Video(media.path, spec, thorough=thorough, span=media.span)
            parts, faults, pictures = _decoded(video, task.windows, spec)
    except VideoError as fault:
        return [Outcome(task.key, key, fault.status, digest, fault.reason) for key in task.windows]
    except MemoryError:
        return [
            Outcome(task.key, key, "unsupported", digest, "its pictures do not fit in memory") for key in task.windows
        ]
    source = {"name": media.name, "sha256": media.sha256, "bytes": media.bytes}
    if normalized is not None:
        source |= {"original": content, "form": normalized["pictures"]}
    outcomes = [Outcome(task.key, key, fault.status, digest, fault.reason) for key, fault in faults.items()]
    for part in parts:
        harm = _damage(part, video.timeline(), pictures)
        if harm is None:
            publish_frames(
                frames_folder, part.frames_key, _drawn(part, video, pictures), _about(part, video, spec, source)
            )
        outcomes.append(
            Outcome(task.key, part.frames_key, harm.status if harm else READY, digest, harm.reason if harm else "")
        )
    return outcomes


@contextlib.contextmanager
def _media_of(task: Task, content: str, normalized: Mapping[str, Any] | None) -> Iterator[Media]:
    """The file that frames are made from; `content` is what the frames key says of the original.

    Raises:
        VideoError: it is not there; `changed` when its bytes are others than the key says.
    """
    if normalized is not None:
        yield normalized_media(Path(normalized["folder"]), content, normalized["pictures"])
        return
    with reachable(task, content) as media:
        yield media


def _decoded(
    video: Video, windows: Mapping[str, Window], spec: Spec
) -> tuple[list[_Part], dict[str, VideoError], Mapping[int, bytes]]:
    """Place the windows and decode their frames; anew when the packets' timeline proved wrong."""
    pictures = None
    while pictures is None:
        parts, faults = _placed(video.timeline(), windows, spec.count)
        if not parts:
            return [], faults, {}
        pictures = video.pictures(sorted({index for part in parts for index in part.indices}))
    return parts, faults, pictures


def _placed(timeline: Timeline, windows: Mapping[str, Window], count: int) -> tuple[list[_Part], dict[str, VideoError]]:
    """Choose the frames of every window; windows that the video does not have are faults."""
    parts, faults = [], {}
    for key, window in windows.items():
        try:
            span = span_of(window, timeline.length)
        except VideoError as fault:
            faults[key] = fault
        else:
            indices = tuple(timeline.shown_at(time) for time in grid_times(*span, count))
            parts.append(_Part(key, window, span, indices))
    return parts, faults


def _damage(part: _Part, timeline: Timeline, pictures: Mapping[int, bytes]) -> VideoError | None:
    """Why a set may not be shown: a frame that could not be decoded, or too many that were decoded from damage."""
    lost = [position for position, index in enumerate(part.indices) if index not in pictures]
    hurt = [position for position, index in enumerate(part.indices) if index in timeline.damaged]
    if lost:
        return VideoError("damaged", f"grid frames {_listed(lost)} cannot be decoded")
    if len(hurt) > DAMAGED_SHARE * len(part.indices):
        return VideoError("damaged", f"grid frames {_listed(hurt)} are decoded from damaged data")
    return None


def _listed(positions: Sequence[int]) -> str:
    shown = ", ".join(map(str, positions[:5]))
    return shown + (f" and {len(positions) - 5} more" if len(positions) > 5 else "")


def _drawn(part: _Part, video: Video, pictures: Mapping[int, bytes]) -> list[Drawn]:
    """The frames of one set in grid order."""
    timeline = video.timeline()
    return [
        Drawn(round(timeline.seconds(index), 6), duplicate, index in timeline.damaged, pictures[index])
        for index, duplicate in zip(part.indices, duplicates_of(part.indices), strict=True)
    ]


def _about(part: _Part, video: Video, spec: Spec, source: Mapping[str, Any]) -> dict[str, Any]:
    """What frames.json says beside the frames (docs/frames.md)."""
    form, source = source.get("form"), {name: value for name, value in source.items() if name != "form"}
    start, end = (None if edge is None else edge / 1000 for edge in part.window)
    timeline, picture = video.timeline(), video.picture
    stored = {"codec": video.codec, "container": video.container, "width": picture.stored[0]}
    return {
        "count": spec.count,
        "long_side": spec.long_side,
        "quality": spec.quality,
        "normalized": form,
        "size": list(picture.size),
        "distinct": len(set(part.indices)),
        "duration": round(float(timeline.length), 6),
        "window": None if part.window == (None, None) else {"start": start, "end": end},
        "span": [round(float(edge), 6) for edge in part.span],
        "source": {**source, **stored, "height": picture.stored[1], "rotation": 90 * picture.turns},
        "decoder": decoder_versions(video.decoder),
    }


def begin(settings: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what a worker does with each task (`worker.JOBS`): its frames, answered as outcomes in JSON values."""
    spec, folder = Spec(**settings["spec"]), Path(settings["folder"])
    given = {"normalized": settings["normalized"]} if settings.get("normalized") else {}
    return lambda task: {"outcomes": [asdict(outcome) for outcome in draw(Task.of(task), spec, folder, **given)]}
