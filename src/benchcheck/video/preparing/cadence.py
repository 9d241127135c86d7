"""How a video's frames follow one another: evenly or not, how far apart key frames are, what headers claim. Pure."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from benchcheck.video.grid import Timeline

__all__ = ["disagreements", "is_variable", "longest_gap"]

_JITTER_S = Fraction(1, 1000)
"""(D) How far a frame may lie from its even place: containers round timestamps to milliseconds."""
_RATE = 0.01
"""Share by which an announced frame rate may differ."""


def is_variable(timeline: Timeline) -> bool:
    """Whether frames come unevenly: some lies further from its place in an even row than timestamps are rounded."""
    pts, count = timeline.pts, len(timeline.pts) - 1
    if count < 2:
        return False
    allowed = max(Fraction(1), _JITTER_S / timeline.time_base) * count
    whole = pts[-1] - pts[0]
    return any(abs((tick - pts[0]) * count - index * whole) > allowed for index, tick in enumerate(pts))


def longest_gap(seconds: Sequence[float], end: float) -> float | None:
    """Return the longest time from one key frame to the next, or from the last one to the end; None without any."""
    if not seconds:
        return None
    return round(max(later - earlier for earlier, later in pairwise([*sorted(seconds), max(end, *seconds)])), 6)


def disagreements(claims: Mapping[str, float | None], found: Mapping[str, float]) -> dict[str, float]:
    """Return what a header announces otherwise than its packets: `frames`, `duration` in seconds, `fps`.

    A length may differ by a frame's, a rate by one part in a hundred; what is not announced agrees.
    """
    allowed = {"frames": 0.0, "duration": found["duration"] / max(1.0, found["frames"]), "fps": _RATE * found["fps"]}
    return {
        name: claim
        for name, claim in claims.items()
        if claim is not None and abs(claim - found[name]) > allowed[name] + 1e-6
    }
