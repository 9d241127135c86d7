"""One video's sets of frames against the second decoder: times, pictures, neighbours. What a worker does per task."""

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchcheck.video.faults import VideoError
from benchcheck.video.frames import digest_of, frame_name, read_folder
from benchcheck.video.grid import grid_times
from benchcheck.video.preparing.normalized import normalized_media
from benchcheck.video.proving.recorded import unrecorded
from benchcheck.video.proving.second import Luma, Second, stored_luma
from benchcheck.video.sources.media import Media, reachable
from benchcheck.video.sources.scratch import laid_out, scratch_folder
from benchcheck.video.task import Task

__all__ = ["LIMITS", "Compared", "begin", "compare"]

LIMITS: Mapping[str, float] = {"pts_s": 0.001, "psnr_db": 28.0, "mean_difference": 7.0, "neighbour_rms": 1.5}
"""(D) What still agrees, measured on real and made clips (docs/frames.md, "Proving them").

`pts_s`: seconds between the two decoders' times of a frame. `psnr_db`: of a picture's brightness, at least.
`mean_difference`: mean absolute difference of brightness, of 255, at most. `neighbour_rms`: a neighbour that differs
from the frame by less than this (root mean square) is the same picture, and is not asked whether it is nearer.
"""
_BLOCK = 1 << 20
_HDR = (16, 18)
"""Transfer curves of high dynamic range in H.273: PQ and HLG."""


@dataclass(slots=True)
class Compared:
    """What became of one set."""

    frames_key: str
    status: str
    """`agrees`, `differs`, `not_decoded` (by the second decoder), `not_recorded` (how it was made), `source_missing` or
    `source_changed`."""
    reason: str = ""
    digest: str = ""
    """SHA-256 over the set's JPEG files as they are now."""
    pts: list[float] = field(default_factory=list)
    """Per frame: seconds between frames.json and the second decoder."""
    psnr: list[float] = field(default_factory=list)
    """Per frame that was compared: dB, of brightness; 99 where nothing differs."""
    mean: list[float] = field(default_factory=list)
    """Per frame that was compared: mean absolute difference of brightness."""
    flagged: int = 0
    """Frames that frames.json says are damaged: their pictures are not compared."""
    decoder: dict[str, str] = field(default_factory=dict)
    """What made the set, by frames.json."""


@dataclass(slots=True)
class _Set:
    """A set whose source is there: what frames.json says, and what is found."""

    table: Mapping[str, Any]
    folder: Path
    found: Compared
    indices: list[int] = field(default_factory=list)
    """Per grid position: the second decoder's frame."""
    pictures_differ: bool = False
    """Whether what is wrong first is a picture."""

    def differs(self, reason: str) -> None:
        """Note the first thing that is wrong."""
        if self.found.status == "agrees":
            self.found.status, self.found.reason = "differs", reason


def compare(task: Task, folder: Path, normalized: Path) -> list[Compared]:
    """Compare the sets of one video that are on disk with what the second decoder makes of its file.

    Raises:
        StudyError: a scratch file cannot be written.
    """
    done, sets = list[Compared](), list[_Set]()
    for key in task.windows:
        table = read_folder(folder / key)
        if isinstance(table, str):
            done.append(Compared(key, "differs", table))
        elif why := unrecorded(table):
            done.append(Compared(key, "not_recorded", why))
        elif (digest := _digest(folder / key, table)) is None:
            done.append(Compared(key, "differs", f"{folder / key}: its files went away, or cannot be read"))
        else:
            found = Compared(key, "agrees", digest=digest, decoder=table["decoder"])
            sets.append(_Set(table, folder / key, found))
    forms = {json.dumps(each.table.get("normalized"), sort_keys=True) for each in sets}
    for form in sorted(forms):
        of_form = [each for each in sets if json.dumps(each.table.get("normalized"), sort_keys=True) == form]
        _against_source(task, of_form, normalized)
    return done + [each.found for each in sets]


def _digest(folder: Path, table: Mapping[str, Any]) -> str | None:
    """SHA-256 over a set's JPEG files; None where one cannot be read."""
    try:
        return digest_of((folder / frame_name(index)).read_bytes() for index in range(len(table["frames"])))
    except OSError:
        return None


def _against_source(task: Task, sets: list[_Set], normalized: Path) -> None:
    """Find the file that the sets, all of one form, were made from, and compare."""
    for each in sets:
        if each.table.get("sha256", each.found.digest) != each.found.digest:
            each.differs("the JPEG files are not those that were written: their SHA-256 is another")
    with ExitStack() as stack:
        try:
            media = _media(task, sets[0].table, normalized, stack)
        except VideoError as fault:
            _all(sets, "source_missing", f"{fault.status}: {fault.reason}")
            return
        same = [each for each in sets if each.table["source"]["sha256"] == media.sha256]
        _all([each for each in sets if each not in same], "source_changed", f"its SHA-256 is now {media.sha256}")
        try:
            path = media.path if media.span is None else stack.enter_context(_cut_out(media, media.span, task.scratch))
            second = Second(path)
            _compare_times(second, same)
            _compare_pictures(second, same)
        except VideoError as fault:
            _all(same, "not_decoded", fault.reason)
        except MemoryError:
            _all(same, "not_decoded", "its pictures do not fit in memory")
        else:
            _excuse([each for each in same if each.pictures_differ], media)


def _excuse(sets: list[_Set], media: Media) -> None:
    """Take sets back whose pictures differ for a reason that lies with OpenCV."""
    if sets and (why := _beyond(media)):
        for each in sets:
            each.found.status, each.found.reason = "not_decoded", why


def _all(sets: Iterable[_Set], status: str, reason: str) -> None:
    """What is true of all sets of a video, but for those that were found wrong already."""
    for each in sets:
        if each.found.status == "agrees":
            each.found.status, each.found.reason = status, reason


def _media(task: Task, table: Mapping[str, Any], normalized: Path, stack: ExitStack) -> Media:
    """The file that frames were made from: the video, or its normalised form."""
    if form := table.get("normalized"):
        return normalized_media(normalized, table["source"]["original"], form)
    # Of one place its file is compared, whatever it is; of several the one that has these bytes.
    return stack.enter_context(reachable(task, table["source"]["sha256"] if task.others else ""))


def _cut_out(media: Media, span: tuple[int, int], scratch: str) -> AbstractContextManager[str]:
    """A stretch of an archive as a file of its own: OpenCV opens nothing else."""

    def blocks() -> Iterable[bytes]:
        with open(media.path, "rb") as file:
            file.seek(span[0])
            left = span[1] - span[0]
            while left and (block := file.read(min(left, _BLOCK))):
                left -= len(block)
                yield block

    return laid_out(blocks(), scratch_folder(scratch), media.name)


def _compare_times(second: Second, sets: Iterable[_Set]) -> None:
    """Ask the second decoder what is on screen at each moment of the grid, and when it came."""
    for each in sets:
        table, limit = each.table, LIMITS["pts_s"]
        start, end = (Fraction(str(edge)) for edge in table["span"])
        moments = grid_times(start, end, table["count"])
        for moment, frame in zip(moments, table["frames"], strict=True):
            index = second.shown_at(moment, frame["pts"])
            each.indices.append(index)
            off = abs(second.times[index] - frame["pts"])
            each.found.pts.append(round(off, 6))
            if not off <= limit:
                each.differs(
                    f"grid frame {frame['index']}: frames.json says {frame['pts']:.6f} s, OpenCV shows at "
                    f"{float(moment):.6f} s its frame of {second.times[index]:.6f} s"
                )
        if second.times[-1] > table["duration"] + limit:
            each.differs(f"OpenCV has frames up to {second.times[-1]:.6f} s, frames.json ends at {table['duration']} s")


def _compare_pictures(second: Second, sets: Iterable[_Set]) -> None:
    """Go once through the video; each frame of a grid is compared when the one after it has come."""
    due: dict[int, list[tuple[_Set, int]]] = {}
    last = len(second.times) - 1
    sizes = {(*each.table["size"], each.table["quality"]) for each in sets}
    for *size, quality in sizes:
        due.clear()
        for each in sets:
            if (*each.table["size"], each.table["quality"]) == (*size, quality):
                for position, index in enumerate(each.indices):
                    due.setdefault(index, []).append((each, position))
        needed = {near for index in due for near in (index - 1, index, index + 1) if 0 <= near <= last}
        held: deque[tuple[int, Luma]] = deque(maxlen=3)
        for index, luma in second.lumas(needed, (size[0], size[1]), quality):
            held.append((index, luma))
            # The frame before is complete now; so is the last one itself.
            for ready in (index - 1, *([index] if index == last else [])):
                around = {near: picture for near, picture in held if abs(near - ready) <= 1}
                for each, position in due.get(ready, ()):
                    _compare_picture(each, position, ready, around)


def _compare_picture(each: _Set, position: int, index: int, around: Mapping[int, Luma]) -> None:
    """One stored picture against the second decoder's, and against its neighbours."""
    if each.table["frames"][position]["damaged"]:
        each.found.flagged += 1
        return
    name, own = frame_name(position), around[index]
    stored = stored_luma((each.folder / name).read_bytes())
    if stored is None or stored.shape != own.shape:
        each.differs(
            f"{name} " + ("cannot be decoded" if stored is None else f"is {stored.shape[1]}x{stored.shape[0]}")
        )
        return
    error = _squared(stored, own)
    psnr = 99.0 if not error else min(99.0, 10 * math.log10(255**2 / error))
    mean = float(np.abs(np.subtract(stored, own, dtype=np.int16)).mean())
    each.found.psnr.append(round(psnr, 2))
    each.found.mean.append(round(mean, 3))
    if psnr < LIMITS["psnr_db"] or mean > LIMITS["mean_difference"]:
        each.pictures_differ = each.pictures_differ or each.found.status == "agrees"
        each.differs(f"{name}: {psnr:.1f} dB, {mean:.1f} of 255 on average from OpenCV's picture")
    for near, picture in around.items():
        apart = _squared(picture, own)
        if near != index and apart > LIMITS["neighbour_rms"] ** 2 and _squared(stored, picture) < error:
            each.differs(f"{name} is nearer to the frame {'after' if near > index else 'before'} than to its own")


def _beyond(media: Media) -> str:
    """Why OpenCV's pictures of a file say nothing about ours; empty where they should be alike.

    OpenCV 5 gives black or stale pictures of interlaced frames, and brings pictures of high dynamic range to other
    colours.
    """
    import av

    from benchcheck.video.decoding.opened import Opened

    with suppress(VideoError, av.FFmpegError, StopIteration), Opened(media.path, 1, media.span) as (container, stream):
        frame = next(container.decode(stream))
        if frame.interlaced_frame:
            return "OpenCV does not convert interlaced frames"
        if int(frame.color_trc) in _HDR:
            return "OpenCV shows high dynamic range in other colours"
    return ""


def _squared(one: Luma, other: Luma) -> float:
    """Mean squared difference."""
    apart = np.subtract(one, other, dtype=np.float32)
    return float(np.mean(apart * apart))


def begin(settings: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what a worker does with each task (`worker.JOBS`): its sets compared, in JSON values."""
    folder, normalized = Path(settings["folder"]), Path(settings["normalized"])
    return lambda table: {"sets": [asdict(one) for one in compare(Task.of(table), folder, normalized)]}
