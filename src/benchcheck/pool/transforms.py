"""Transforms: what an expression does to a field's text behind a `|`, such as `{url|youtube}`. Pure.

A transform that does not fit a text gives the text back: an id without a URL around it is already the id. `span` alone
then gives nothing.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["TRANSFORMS", "transform"]

TRANSFORMS = {
    "stem": "drops the last suffix: `a/b.mp4` is `a/b`",
    "basename": "the part behind the last slash or backslash",
    "youtube": "the 11 characters of a YouTube id, out of a URL",
    "clip": "`ID_start_end` is `ID`, where the last two parts are numbers",
    "span": "`ID_start_end` is the window `[start, end]`",
    "minutes": "a number of minutes, as seconds",
    "ms": "a number of milliseconds, as seconds",
    "lower": "in lower case",
    "before:X": "what stands before the last X",
    "after:X": "what stands behind the last X",
}
"""Every transform and what it does; X is any text without `|`, `{` and `}`."""

_SUFFIX = re.compile(r"\.(?=[^.]*[A-Za-z])[A-Za-z0-9]{1,5}$")
"""A suffix has a letter in it: the `.6` of the clip `6H78U_11.1_19.6` is none."""
_YOUTUBE = re.compile(r"(?:[?&/]v[=/]|youtu\.be/|/embed/|/shorts/|/live/)([\w-]{11})(?![\w-])")
_CLIP = re.compile(r"(.+)_(\d+(?:\.\d+)?)_(\d+(?:\.\d+)?)", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")


def _youtube(text: str) -> str:
    match = _YOUTUBE.search(text)
    return match.group(1) if match else text


def _clip(text: str) -> str:
    match = _CLIP.fullmatch(text)
    return match.group(1) if match else text


def _span(text: str) -> list[float] | None:
    match = _CLIP.fullmatch(text)
    return [float(match.group(2)), float(match.group(3))] if match else None


def _times(text: str, factor: float) -> float | str:
    """A number times a factor, rounded to a microsecond: 0.1 minutes are 6 seconds; what is none stays."""
    text = text.strip()
    return round(float(text) * factor, 6) if len(text) < 40 and _NUMBER.fullmatch(text) else text


_PLAIN: dict[str, Callable[[str], Any]] = {
    "stem": lambda text: _SUFFIX.sub("", text),
    "basename": lambda text: re.split(r"[/\\]", text)[-1],
    "youtube": _youtube,
    "clip": _clip,
    "span": _span,
    "minutes": partial(_times, factor=60),
    "ms": partial(_times, factor=0.001),
    "lower": str.lower,
}


def transform(name: str) -> Callable[[str], Any]:
    """Return the function of a transform.

    Raises:
        ValueError: there is none of that name.
    """
    kind, _, mark = name.partition(":")
    if kind == "before" and mark:
        return lambda text: text.rpartition(mark)[0] if mark in text else text
    if kind == "after" and mark:
        return lambda text: text.rpartition(mark)[2]
    if name not in _PLAIN:
        raise ValueError(f"the transform {name!r} is not allowed. Allowed: {', '.join(TRANSFORMS)}")
    return _PLAIN[name]
