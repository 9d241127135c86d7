"""What frames.json has to say of a set before it can be proved: frames of other programs, or without it, say less.

Whoever wrote a frames.json, nothing in it is taken for true here but that it is of the right kind and in bounds.
"""

from collections.abc import Callable, Mapping
from typing import Any

from benchcheck.pool.contents import content_of

__all__ = ["unrecorded"]

_LARGEST = 4096
"""Pixels of a side: the most that `frames.long_side` allows."""
_BEST = 95
"""The most that `frames.quality` allows."""


def unrecorded(table: Mapping[str, Any]) -> str:
    """Return why a well-formed frames.json does not say how its frames were made; empty where it does."""
    if table.get("source") is None and table.get("imported"):
        return "came without a frames.json, so nobody knows which frames of which file they are"
    for name, sound in _SOUND.items():
        if not sound(table.get(name)):
            return f"frames.json has no {name} that can be used: {str(table.get(name))[:60]!r}"
    if table.get("normalized") and not content_of(str(table["source"].get("original"))):
        return f"frames.json has no source.original that can be used: {str(table['source'].get('original'))[:60]!r}"
    return ""


def _number(value: object) -> bool:
    """Whether it is a moment or a length in seconds."""
    return type(value) in (int, float) and 0 <= value < 1e9  # type: ignore[operator]  # NaN is not


def _whole(value: object, most: int) -> bool:
    """Whether it is a whole number from 1 on."""
    return type(value) is int and 1 <= value <= most


def _source(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("sha256"), str)


def _pair(value: object, sound: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(sound, value))


def _decoder(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(version, str) for version in value.values())


_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "source": _source,
    "span": lambda value: _pair(value, _number) and value[0] <= value[1],
    "duration": _number,
    "size": lambda value: _pair(value, lambda side: _whole(side, _LARGEST)),
    "quality": lambda value: _whole(value, _BEST),
    "decoder": _decoder,
    "normalized": lambda value: value is None or isinstance(value, dict),
}
