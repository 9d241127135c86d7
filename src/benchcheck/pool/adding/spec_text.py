"""A spec as a TOML file for a person to read and keep: each line with the reason why it is there. Pure."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchcheck.config import pool_entry as entry_of
from benchcheck.config import toml_key, toml_value

__all__ = ["in_order", "pool_entry", "spec_text"]

_WIDE = 100
"""Columns up to which a comment stands behind its line."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


_ORDER = (
    *(
        "bench",
        "reader",
        "header",
        "unnest",
        "id",
        "question",
        "question_text",
        "question_tail",
        "category",
        "duration",
        "subtitles",
    ),
    *("group", "mcq_where", "leaks", "options", "gold", "video", "source"),
)


def in_order(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec's keys in the order in which people read them."""
    return {key: table[key] for key in (*_ORDER, *table) if key in table}


def _writable(text: str) -> str:
    """A text without lone surrogates, which TOML has not at all."""
    return _SURROGATE.sub("\ufffd", text)


def spec_text(table: Mapping[str, Any], reasons: Mapping[str, str], head: Sequence[str]) -> str:
    """Return a spec's TOML, comments and all. `reasons` are by key, such as `gold.kind`; `head` begins the file."""
    lines = [f"# {part}" for text in head for part in textwrap.wrap(_one_line(text), 110)]
    inline = {key: value for key, value in table.items() if not isinstance(value, Mapping) or key.endswith("where")}
    lines += [line for key, value in inline.items() for line in _lines(key, value, reasons.get(key, ""))]
    for name, part in table.items():
        if name not in inline:
            lines += ["", f"[{name}]"]
            lines += [
                line for key, value in part.items() for line in _lines(key, value, reasons.get(f"{name}.{key}", ""))
            ]
    return _writable("\n".join(lines) + "\n")


def _lines(key: str, value: Any, reason: str) -> Iterator[str]:
    """A key with its comment, behind it where there is room, else above."""
    line = f"{toml_key(key)} = {toml_value(value)}"
    comment = _one_line(reason)
    if not comment:
        yield line
    elif len(line) + len(comment) + 4 <= _WIDE:
        yield f"{line}  # {comment}"
    else:
        yield from (f"# {part}" for part in textwrap.wrap(comment, 110))
        yield line


def _one_line(text: str) -> str:
    """A text without what no comment of TOML may hold."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", " ", text).split())


def pool_entry(spec: str, files: Sequence[str], bench: str) -> str:
    """Return the entry of a study's config that reads a benchmark; without files it is the spec's hub dataset."""
    named = {"files": list(files)} if files else {}
    entry = entry_of({"spec": spec, **named, "bench": bench})
    return _writable(f"\n{entry}\n")
