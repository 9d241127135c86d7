"""Videos in one form: H.264 in MP4, upright, square pixels, at most so large, with true or constant timestamps.

With true timestamps a frame of the normalised video comes on screen when that of the original does, and stays as long,
so that the same grid picks the same frames. There are no B-frames in it: MP4 keeps how long a frame lasts in the order
of decoding only, which must then be the order of showing.
"""

import contextlib
import errno
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import av

from benchcheck.config import Normalize
from benchcheck.files import writing
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.opened import Opened
from benchcheck.video.decoding.picture import Spec, decoder_versions
from benchcheck.video.faults import VideoError
from benchcheck.video.folders import in_progress, moved
from benchcheck.video.grid import Timeline, display_size, quarter_turns
from benchcheck.video.preparing.normalized import META_FILE, META_VERSION, VIDEO_FILE, form_of, read_meta
from benchcheck.video.preparing.sound import Sound
from benchcheck.video.sources.media import Media
from benchcheck.video.store import check_file

__all__ = ["even_size", "normalise", "showings"]

_PRESET = "veryfast"
_GOP = "50"
"""Frames between key frames, at most: every frame is then near one (x264's own 250 are 10 s)."""
_SAME = "mbtree=0"
"""For the same bytes each time: with its macroblock tree x264 gave others in 4 of 150 encodings of the same frames,
without it in none of 400."""
_MAX_TICKS = (1 << 31) - 1
"""MP4 counts a second's ticks in 32 bits."""
_LIMITED = 1
"""FFmpeg's number of the colour range of television, 16 to 235."""
_NO_MATRIX = {0, 2}
"""FFmpeg's numbers of RGB, and of a matrix that is not given: readers then take BT.601."""
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
_SPEC = Spec(count=1, long_side=64, quality=75)
"""What a `Video` would draw; here it only counts frames."""


def normalise(media: Media, config: Normalize, parent: Path, threads: int = 1) -> None:
    """Write a video's folder below `parent`, named by its content, unless it is there in this form.

    Raises:
        VideoError: it cannot be decoded, or a part of it is damaged, which a copy would hide.
        StudyError: the disk is full or the folder is not writable; nothing half-written stays.
    """
    final, form = parent / media.sha256, form_of(config)

    def is_whole(folder: Path) -> bool:
        return (read_meta(folder) or {}).get("form") == form

    if is_whole(final):
        return
    with writing(final), in_progress(parent, media.sha256, META_FILE) as folder:
        target = folder / VIDEO_FILE
        try:
            about = _written(media, config, target, threads, thorough=False)
        except VideoError:  # the packets were not true: its own frames are asked
            about = _written(media, config, target, threads, thorough=True)
        digest, size = check_file(str(target))
        table = {"version": META_VERSION, "content_hash": media.sha256, "sha256": digest, "bytes": size, "form": form}
        (folder / META_FILE).write_text(json.dumps({**table, **about}, indent=1) + "\n", encoding="utf-8")
        moved(folder, final, is_whole)


def _written(media: Media, config: Normalize, target: Path, threads: int, *, thorough: bool) -> dict[str, Any]:
    """Write the video; return what meta.json says of it.

    Raises:
        VideoError: the frames cannot all be decoded, or not in this way.
        OSError: it cannot be written.
    """
    video = Video(media.path, Spec(_SPEC.count, _SPEC.long_side, _SPEC.quality, threads), span=media.span)
    if thorough:
        video = Video(media.path, _SPEC, thorough=True, span=media.span)
    timeline = video.timeline()
    if timeline.holes or timeline.damaged:
        count = len(timeline.holes | timeline.damaged)
        raise VideoError("damaged", f"{count} of {len(timeline.pts)} frames are damaged, which a copy would hide")
    encoder = _Encoder(video, config, threads)
    with contextlib.ExitStack() as opened:
        container = opened.enter_context(_output(target))
        if config.audio:
            encoder.sound = _sound_of(media, container, timeline, opened)
        encoder.write(container)
    return {
        "frames": encoder.count,
        "duration": round(float(timeline.length), 6),
        "size": list(encoder.form.size if encoder.form else (0, 0)),
        "sound": encoder.sound is not None,
        "encoder": {**decoder_versions(video.codec), "name": "libx264"},
    }


def _sound_of(media: Media, out: Any, timeline: Timeline, opened: contextlib.ExitStack) -> Sound | None:
    """The sound, by an opening of the file of its own."""
    container, _ = opened.enter_context(Opened(media.path, 1, media.span))
    return Sound.of(container, out, timeline.pts[0] * timeline.time_base)


@contextlib.contextmanager
def _output(target: Path) -> Iterator[Any]:
    """Open the video to write; what FFmpeg says of the disk is an OSError, as Python's own would be.

    Raises:
        VideoError: the encoder does not take these pictures.
    """
    try:
        with av.open(f"file:{target}", "w", format="mp4") as container:
            yield container
    except av.FFmpegError as reason:
        if reason.errno in _OF_THE_DISK:
            raise OSError(reason.errno, reason.strerror, str(target)) from reason
        raise VideoError("unsupported", f"it cannot be encoded: {reason.strerror}") from reason


@dataclass(frozen=True, slots=True)
class _Form:
    """How pictures are brought into form: size of the upright picture, quarter turns to it, its colours."""

    size: tuple[int, int]
    turns: int
    matrix: int

    @classmethod
    def of(cls, frame: Any, pixel_shape: Fraction | None, short_side: int) -> "_Form":
        """Decide by the first frame; later ones of another size are drawn in this one's."""
        turns = quarter_turns(frame.rotation)
        width, height = display_size(frame.width, frame.height, pixel_shape)
        size = even_size(*((height, width) if turns % 2 else (width, height)), short_side)
        return cls(size, turns, frame.colorspace)

    def draw(self, frame: Any) -> Any:
        """Scale and turn one frame; its colours keep their matrix, in the range of television."""
        import numpy as np

        width, height = self.size[::-1] if self.turns % 2 else self.size
        small = frame.reformat(
            width=width, height=height, format="yuv420p", interpolation="BICUBIC", dst_color_range=_LIMITED, threads=1
        )
        if not self.turns:
            return small
        data = small.to_ndarray()
        chroma = data[height:].reshape(2, height // 2, width // 2)
        turned = [np.rot90(plane, self.turns).reshape(-1) for plane in (data[:height], *chroma)]
        return av.VideoFrame.from_ndarray(np.concatenate(turned).reshape(-1, self.size[0]), format="yuv420p")


def even_size(width: int, height: int, short_side: int) -> tuple[int, int]:
    """Return the even size, at least 2, with the short side at most `short_side`: aspect kept, never enlarged."""
    scale = min(Fraction(1), Fraction(short_side, min(width, height)))
    wide, high = (int(side * scale) for side in (width, height))
    return max(2, wide - wide % 2), max(2, high - high % 2)


def showings(timeline: Timeline, fps: Fraction | None) -> tuple[Fraction, Callable[[int], list[tuple[int, int]]]]:
    """Return the time base, and a function from a frame's index to when it is shown: pairs of tick and duration.

    Args:
        timeline: the original's.
        fps: frames a second; None keeps each frame's own time.
    """
    if fps is None:
        ticks = [tick - timeline.pts[0] for tick in (*timeline.pts, max(timeline.end, timeline.pts[-1] + 1))]
        lasting = [(tick, later - tick) for tick, later in pairwise(ticks)]
        # Of two frames of one time the later one is on screen.
        return timeline.time_base, lambda index: [lasting[index]] if lasting[index][1] else []
    # Frame n is shown from n / fps on: what is on the original's screen then.
    step, total = 1 / fps, max(1, ceil(timeline.length * fps))
    starts = [ceil((tick - timeline.pts[0]) * timeline.time_base * fps) for tick in timeline.pts] + [total]
    return step, lambda index: [(place, 1) for place in range(starts[index], max(starts[index], starts[index + 1]))]


class _Encoder:
    """Frames in, packets out: x264's, each with the time its frame stays on screen."""

    sound: Sound | None = None
    form: _Form | None = None
    count = 0

    def __init__(self, video: Video, config: Normalize, threads: int) -> None:
        self._video, self._config, self._threads = video, config, threads
        fps = Fraction(config.fps).limit_denominator(1001) if config.timestamps == "constant" else None
        self._base, self._times = showings(video.timeline(), fps)
        if self._base.denominator > _MAX_TICKS:
            raise VideoError("unsupported", f"a time base of {self._base} s, which MP4 cannot count in")
        self._lasting: dict[int, int] = {}
        """Durations of the frames that are in the encoder, by tick."""

    def write(self, container: Any) -> None:
        """Write every frame.

        Raises:
            VideoError: the decoder did not give what the timeline says.
        """
        expected, stream = 0, None
        for index, frame in self._video.shown():
            if index != expected:
                raise VideoError("damaged", f"frame {index} comes in the place of frame {expected}")
            expected += 1
            if stream is None:
                self.form = _Form.of(frame, self._video.pixel_shape, self._config.short_side)
                stream = self._stream(container, self.form)
            if self.form is not None and (times := self._times(index)):
                self._put(container, stream, self.form.draw(frame), times)
        if stream is None or expected < len(self._video.timeline().pts):
            raise VideoError("damaged", f"{expected} of {len(self._video.timeline().pts)} frames can be decoded")
        self._mux(container, stream.encode(None))
        if self.sound is not None:
            container.mux(list(self.sound.until(None)))

    def _stream(self, container: Any, form: _Form) -> Any:
        timeline = self._video.timeline()
        rate = Fraction(len(timeline.pts) / float(timeline.length)).limit_denominator(1001)
        options = {"crf": str(self._config.crf), "preset": _PRESET, "bf": "0", "g": _GOP, "x264-params": _SAME}
        stream = container.add_stream("libx264", rate=rate or Fraction(1, 1001), options=options)
        context = stream.codec_context
        stream.width, stream.height = form.size
        stream.pix_fmt, context.time_base, context.thread_count = "yuv420p", self._base, self._threads
        context.color_range = _LIMITED
        if form.matrix not in _NO_MATRIX:
            context.colorspace = form.matrix
        return stream

    def _put(self, container: Any, stream: Any, picture: Any, times: list[tuple[int, int]]) -> None:
        for tick, lasting in times:
            picture.pts, picture.time_base = tick, self._base
            picture.pict_type = 0  # a key frame of the original need not be one here
            self._lasting[tick] = lasting
            self.count += 1
            self._mux(container, stream.encode(picture))

    def _mux(self, container: Any, packets: Any) -> None:
        for packet in packets:
            packet.duration = self._lasting.pop(packet.pts)
            if self.sound is not None:
                container.mux(list(self.sound.until(packet.pts * self._base)))
            container.mux(packet)
