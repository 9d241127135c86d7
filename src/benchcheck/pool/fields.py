"""Values out of a record: fields by name, templates, seconds, texts. Pure.

An expression of a spec is a field (`question`, `meta.subject`, `candidates.0`) or a template (`{video}_{qid}`); a name
that ends in `?` may be missing from every record.
"""

import json
import math
import re
import reprlib
from collections.abc import Mapping
from typing import Any

__all__ = [
    "clean",
    "fold",
    "has_field",
    "lookup",
    "needed",
    "seconds",
    "shown",
    "text_of",
    "value_of",
    "window_of",
    "words",
]

_FIELD = re.compile(r"\{([^{}]+)\}")
_ABSENT = object()
_SHOWN = reprlib.Repr()
_SHOWN.maxstring, _SHOWN.maxother, _SHOWN.maxlevel = 60, 60, 3
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SECONDS = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*s?")
_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)")
_WORD = re.compile(r"[^\W_]+")
_WINDOW = re.compile(r"\[?\s*([^\s\-\]]+)\s*-\s*([^\s\-\]]+)\s*\]?")


def _find(values: Mapping[str, Any], name: str) -> Any:
    """Return the value of a field, or `_ABSENT`. A key that holds dots itself comes before a path."""
    if name in values:
        return values[name]
    found: Any = values
    for part in name.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return _ABSENT
    return found


def has_field(values: Mapping[str, Any], name: str) -> bool:
    """Whether a record has the field, be it null."""
    return _find(values, name.removesuffix("?")) is not _ABSENT


def lookup(values: Mapping[str, Any], name: str) -> Any:
    """Return a field's value; None when it is missing, null or NaN (how pandas writes a missing value)."""
    found = _find(values, name.removesuffix("?"))
    return None if found is _ABSENT or (isinstance(found, float) and math.isnan(found)) else found


def needed(expression: str) -> list[str]:
    """Return the fields that an expression cannot do without."""
    names = _FIELD.findall(expression) or ([expression] if expression else [])
    return [name for name in names if not name.endswith("?")]


def value_of(values: Mapping[str, Any], expression: str) -> Any:
    """Return a field's value, or a template's text; None when a field is missing or the expression is empty."""
    if not expression:
        return None
    names = _FIELD.findall(expression)
    if not names:
        return lookup(values, expression)
    parts = {name: lookup(values, name) for name in names}
    if any(part is None or part == "" for part in parts.values()):
        return None
    return _FIELD.sub(lambda match: text_of(parts[match.group(1)]), expression)


def text_of(value: object) -> str:
    """Return a value as text: a string as it is, null as nothing, a number as it prints, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")  # what is no UTF-8 becomes U+FFFD, and is noted
    if not isinstance(value, bool | list | tuple | Mapping):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "[…]"


def shown(value: object) -> str:
    """Return a value as a message shows it: one line, a few dozen characters, however large or deep it is."""
    return _SHOWN.repr(value)


def clean(text: str) -> tuple[str, bool]:
    """Make a text writable; returns it and whether something was wrong with it.

    Lone surrogates cannot be written as UTF-8 and become U+FFFD. Control characters other than tab and newlines stay
    (real files have them, as the form feed of a LaTeX command that JSON destroyed), and are reported.
    """
    if text.isascii() and text.isprintable():
        return text, False
    fixed, replaced = _SURROGATE.subn("\ufffd", text)
    return fixed, replaced > 0 or _CONTROL.search(fixed) is not None


def fold(text: str) -> str:
    """Return a text for comparison only: case folded, white space (also no-break spaces) collapsed."""
    return " ".join(text.split()).casefold()


def words(text: str) -> str:
    """Return a text's words with a space around each, so that `in` finds whole phrases only."""
    return " ".join(["", *_WORD.findall(text.casefold()), ""])


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
    """Read a window from `[start, end]` or a text like `0.00-60.02` or `[0:01:00 - 0:02:00]`, in seconds.

    Raises:
        ValueError: it is none of these.
    """
    if value is None or value == "":
        return None, None
    if isinstance(value, list | tuple) and len(value) == 2:
        return seconds(value[0]), seconds(value[1])
    match = _WINDOW.fullmatch(str(value).strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not a window like '12.5-30'")
    return seconds(match.group(1)), seconds(match.group(2))
