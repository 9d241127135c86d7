"""The grid: which moments of a video are shown, which frame is on screen then, how large it is (protocol 3). Pure.

Times are exact fractions of seconds, timestamps whole ticks of the stream's time base, so that no rounding of a
float ever decides between two neighbouring frames.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from benchcheck.video.faults import VideoError

__all__ = [
    "WINDOW_SLACK_S",
    "Timeline",
    "Window",
    "display_size",
    "duplicates_of",
    "fit_size",
    "grid_times",
    "quarter_turns",
    "span_of",
]

WINDOW_SLACK_S = 1
"""(D) A window may end this many seconds after the video and is then closed at its end: annotations round up."""

_ODD_PIXELS = 4
"""A pixel shape of more than 4:1 either way is a broken header, not an anamorphic film."""

Window = tuple[int | None, int | None]
"""Start and end in ms, as a frames key has them; None is the start or the end of the video."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """When each frame of a video comes on screen.

    `pts` are ticks of `time_base` seconds, none less than the one before it; `end` is the tick at which the last frame
    leaves the screen.
    """

    pts: tuple[int, ...]
    end: int
    time_base: Fraction
    holes: frozenset[int] = field(default=frozenset())
    """Indices of frames that should be there and could not be decoded."""
    damaged: frozenset[int] = field(default=frozenset())
    """Indices of frames that were decoded from damaged data, or build on such a frame."""

    @property
    def length(self) -> Fraction:
        """Seconds from the first frame's appearance to the last frame's end; what the container announces may lie."""
        return (self.end - self.pts[0]) * self.time_base

    def shown_at(self, time: Fraction) -> int:
        """Index of the frame on screen `time` seconds after the first: the last one whose pts is not later."""
        tick = self.pts[0] + time / self.time_base
        return max(0, bisect_right(self.pts, tick) - 1)

    def seconds(self, index: int) -> float:
        """When a frame comes on screen, in seconds after the first."""
        return float((self.pts[index] - self.pts[0]) * self.time_base)


def end_tick(pts: Sequence[int], last_duration: int, usual: int) -> int:
    """Return the tick at which the last of ascending `pts` leaves the screen.

    Its own duration where the file gives one, else the gap before it, else `usual` (ticks a frame by the frame rate).
    """
    gap = max((later - earlier for earlier, later in pairwise(pts[-2:])), default=0)
    return pts[-1] + (last_duration if last_duration > 0 else gap or max(usual, 1))


def span_of(window: Window, length: Fraction) -> tuple[Fraction, Fraction]:
    """Return the part of a video that a window names, in exact seconds.

    Raises:
        VideoError: `bad_window` when it has no length or starts before 0, `window_outside` when the video is too short.
    """
    start, end = Fraction(window[0] or 0, 1000), length if window[1] is None else Fraction(window[1], 1000)
    shown = f"{float(start):g}-{'' if window[1] is None else f'{float(end):g}'} s"
    if start < 0 or (window[1] is not None and end <= start):
        raise VideoError("bad_window", f"window {shown} has no length or starts before 0")
    if start >= length or end > length + WINDOW_SLACK_S:
        raise VideoError("window_outside", f"window {shown}, but the video is {float(length):.3f} s long")
    return start, min(end, length)


def grid_times(start: Fraction, end: Fraction, count: int) -> list[Fraction]:
    """Return the `count` moments of the grid: start + (k + 0.5) / count of the length (protocol 3, D)."""
    return [start + (end - start) * Fraction(2 * k + 1, 2 * count) for k in range(count)]


def duplicates_of(indices: Sequence[int]) -> list[bool]:
    """Tell for each grid position whether it shows the same frame as the one before (a short video's repeats)."""
    return [position > 0 and indices[position - 1] == index for position, index in enumerate(indices)]


def display_size(width: int, height: int, pixel_shape: Fraction | None) -> tuple[int, int]:
    """Return a picture's size with square pixels, by shrinking the side that is too long; never enlarged.

    `pixel_shape` is the width of a stored pixel over its height; None, 0 and absurd values count as 1.
    """
    if not pixel_shape or not Fraction(1, _ODD_PIXELS) <= pixel_shape <= _ODD_PIXELS:
        return width, height
    if pixel_shape > 1:
        return width, max(1, round(height / pixel_shape))
    return max(1, round(width * pixel_shape)), height


def fit_size(width: int, height: int, long_side: int) -> tuple[int, int]:
    """Return the size with the long side at most `long_side`: aspect kept, at least one pixel, never enlarged (D)."""
    longest = max(width, height)
    if longest <= long_side:
        return width, height
    return max(1, round(Fraction(width * long_side, longest))), max(1, round(Fraction(height * long_side, longest)))


def quarter_turns(degrees: float) -> int:
    """Return how many quarter turns counter-clockwise a display rotation is, 0 to 3; other angles go to the nearest."""
    return round(degrees / 90) % 4
