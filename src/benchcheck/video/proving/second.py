"""The second decoder: OpenCV, with FFmpeg libraries of its own. What it says is on screen when, and its pictures.

Nothing of how frames are made is shared with it: it reads a file from beginning to end and never jumps, turns pictures
by itself, scales finished pictures by another filter, and its times come from its own frames.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchcheck.errors import MissingExtraError
from benchcheck.video.faults import VideoError

__all__ = ["Luma", "Second", "second_versions", "stored_luma"]

Luma = NDArray[np.uint8]
"""The brightness of a picture: height x width."""
_SAME_S = Fraction(1, 10_000)
"""Two moments nearer than this are one: `span` in frames.json has microseconds, OpenCV's times are floats."""


def _opencv() -> Any:
    """Import it, quiet, and reading nothing but local files.

    Raises:
        MissingExtraError: it is not installed.
    """
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "protocol_whitelist;file"
    try:
        import cv2
    except ImportError:
        raise MissingExtraError("frames check", "check") from None
    cv2.setNumThreads(1)
    return cv2


def second_versions() -> dict[str, str]:
    """Return the second decoder with its version and that of its FFmpeg.

    Raises:
        MissingExtraError: it is not installed, or was built without FFmpeg.
    """
    cv2 = _opencv()
    built = {
        name: line.partition("(")[2].rstrip(")")
        for line in cv2.getBuildInformation().splitlines()
        for name in [line.partition(":")[0].strip()]
        if name.startswith("av")
    }
    if "avcodec" not in built:
        raise MissingExtraError("frames check (this OpenCV has no FFmpeg)", "check")
    return {"name": "opencv", "opencv": cv2.__version__, "libavcodec": built["avcodec"]}


def stored_luma(data: bytes) -> Luma | None:
    """Return the brightness of a JPEG file; None where it is none."""
    cv2 = _opencv()
    found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE) if data else None
    return None if found is None else np.asarray(found, np.uint8)


class Second:
    """A video as the second decoder sees it."""

    def __init__(self, path: str) -> None:
        """Read its times.

        Raises:
            VideoError: it does not open it, or gives no frame.
        """
        self.path = path
        marks = []
        with self._opened() as capture:
            while capture.grab():
                marks.append(capture.get(_opencv().CAP_PROP_POS_MSEC) / 1000)
            rate = float(capture.get(_opencv().CAP_PROP_FPS))
        if not marks:
            raise VideoError("no_frames", "OpenCV gives no frame of it")
        timed = len(set(marks)) > 1 or len(marks) == 1
        self.counted = not (timed and all(later >= earlier for earlier, later in pairwise(marks)))
        """Whether its times are frames counted at the frame rate: a raw stream, or AVI with B-frames."""
        if self.counted and not rate > 0:
            raise VideoError("no_frames", "OpenCV has neither times nor a frame rate of it")
        # From the first frame, as the protocol counts; OpenCV counts from what the container says is the start.
        self.times = [number / rate if self.counted else mark - marks[0] for number, mark in enumerate(marks)]

    def shown_at(self, moment: Fraction, pts: float) -> int:
        """Index of the frame on screen at a moment: of two that come then the later; near an edge, by `pts`."""
        first, last = (max(0, bisect_right(self.times, float(at)) - 1) for at in (moment - _SAME_S, moment + _SAME_S))
        return min(range(first, last + 1), key=lambda index: (abs(self.times[index] - pts), -index))

    def lumas(self, indices: Iterable[int], size: tuple[int, int], quality: int) -> Iterator[tuple[int, Luma]]:
        """Yield chosen frames in order: brought to a size (width, height), through JPEG of a quality, brightness only.

        Raises:
            VideoError: a frame that was there before cannot be decoded any more.
        """
        cv2, at = _opencv(), -1
        with self._opened() as capture:
            for index in sorted(set(indices)):
                while at < index:
                    if not capture.grab():
                        raise VideoError("damaged", f"OpenCV stopped at frame {at + 1} of {len(self.times)}")
                    at += 1
                done, picture = capture.retrieve()
                if not done:
                    raise VideoError("damaged", f"OpenCV cannot convert frame {index}")
                yield index, _through_jpeg(cv2, picture, size, quality)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """The file, opened by its own FFmpeg."""
        cv2 = _opencv()
        with open(self.path, "rb") as file:
            path = self.path
            try:
                path.encode()
            except UnicodeEncodeError:  # no UTF-8, so no name that OpenCV takes
                path = f"/proc/self/fd/{file.fileno()}"
            try:
                capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
            except cv2.error as reason:
                raise VideoError("not_a_video", f"OpenCV: {reason}") from reason
            try:
                if not capture.isOpened():
                    raise VideoError("not_a_video", "OpenCV does not open it")
                yield capture
            finally:
                capture.release()


def _through_jpeg(cv2: Any, picture: Any, size: tuple[int, int], quality: int) -> Luma:
    """A frame as it would have been stored.

    Pillow's bicubic filter widens as it shrinks, as that of FFmpeg does; OpenCV's own filters are 8 dB further from it
    on pictures that are all detail.
    """
    from PIL import Image

    if picture.shape[1::-1] != size:
        picture = np.asarray(Image.fromarray(np.ascontiguousarray(picture)).resize(size, Image.Resampling.BICUBIC))
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, quality])
    luma = stored_luma(data.tobytes()) if done else None
    if luma is None:
        raise VideoError("damaged", "OpenCV cannot compress a frame")
    return luma
