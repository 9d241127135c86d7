"""Seconds and windows, as annotation files write them. Pure."""

import math
import re

from benchcheck.pool.fields import shown

__all__ = ["seconds", "window_of"]

_SECONDS = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*s?")
_CLOCK = re.compile(r"(?:(\d+):(?=[0-5]?\d:))?(\d{1,2}):([0-5]?\d(?:\.\d+)?)")
"""`1:75` is no time: whoever wrote it may have meant 1.75 minutes, 75 s or a frame."""
_DASHED = re.compile(r"\[?\s*([^\s\-\]\[]+)\s*-\s*([^\s\-\]]+)\s*\]?")
_LISTED = re.compile(r"[\[(]\s*([^\s,\])]*)\s*,\s*([^\s,\])]*)\s*[\])]")
_COLON = re.compile(r"\[\s*(\d+(?:\.\d*)?)\s*:\s*(\d+(?:\.\d*)?)\s*\]")


def seconds(value: object) -> float | None:
    """Read seconds from a number, `12.5`, `30s`, `mm:ss` or `h:mm:ss.mmm`; None from a missing or empty value.

    Raises:
        ValueError: it is none of these, negative or not finite.
    """
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and math.isnan(value):
            return None
        number = float(value) if abs(value) < 1e12 else math.inf
    else:
        number = _seconds_of(str(value).strip())
    if not 0 <= number < 1e12:
        raise ValueError(f"{shown(value)} is not a number of seconds")
    return number


def _seconds_of(text: str) -> float:
    """Read seconds from a text; below 0 when there are none in it."""
    if len(text) > 40:
        return -1.0
    if plain := _SECONDS.fullmatch(text):
        return float(plain.group(1))
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, rest = clock.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(rest)
    return -1.0


def window_of(value: object) -> tuple[float | None, float | None]:
    """Read a window, in seconds.

    From `[start, end]`, also as a text; from a text like `0.00-60.02` or `[0:01:00 - 0:02:00]`; and from `[7.2:18.0]`
    (How2QA): in square brackets, one colon stands between two numbers of seconds.

    Raises:
        ValueError: it is none of these.
    """
    if value is None or value == "":
        return None, None
    if isinstance(value, list | tuple) and len(value) == 2:
        return seconds(value[0]), seconds(value[1])
    text = str(value).strip() if isinstance(value, str) and len(value) < 100 else ""
    for form in (_COLON, _DASHED, _LISTED):
        if match := form.fullmatch(text):
            return seconds(match.group(1)), seconds(match.group(2))
    raise ValueError(f"{shown(value)} is not a window like '12.5-30'")
