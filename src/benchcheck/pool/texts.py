"""Values of a record as texts that can be written and shown, with what was wrong with them. Pure."""

from collections.abc import Mapping
from typing import Any

from benchcheck.pool.fields import clean, shown, text_of, value_of
from benchcheck.pool.issues import Issue

__all__ = ["read_text", "shown_value", "writable"]


def read_text(values: Mapping[str, Any], expression: str, name: str, found: list[Issue]) -> str:
    """An expression's value as a text that can be written, a list of names joined; empty where none is declared."""
    if not expression:
        return ""
    value = value_of(values, expression)
    return writable(", ".join(map(text_of, value)) if isinstance(value, list) else value, name, found)


def writable(value: Any, name: str, found: list[Issue]) -> str:
    """A value as a text that can be written."""
    text, bad = clean(text_of(value))
    if bad:
        found.append(Issue("bad_text", f"{name} {shown(text)}"))
    return text


def shown_value(values: Mapping[str, Any], expression: str) -> str:
    """An expression's value as a message shows it."""
    return shown(value_of(values, expression))
