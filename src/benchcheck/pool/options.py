"""Options as a record holds them, fillers and all, and as an item keeps them (protocol 1). Pure.

The order of the rules avoids most faults of real loaders: the gold is mapped on the raw list, fillers and all; then the
fillers go and the gold moves; then letter prefixes are stripped, once.
"""

import ast
import io
import itertools
import json
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.fields import has_field, lookup, shown, text_of
from benchcheck.pool.items import letter_prefixes, strip_letter_prefix
from benchcheck.screen.prompts import LETTERS

__all__ = [
    "COLUMN_FAMILIES",
    "OPTION_KINDS",
    "Options",
    "RawOptions",
    "column_family",
    "labelled",
    "raw_options",
    "settled",
]

OPTION_KINDS = ("auto", "list", "dict", "columns", "embedded", "const", "pair", "none")
COLUMN_FAMILIES: tuple[tuple[str, ...], ...] = (
    tuple(f"option_{index}" for index in range(len(LETTERS))),
    tuple(f"option{index}" for index in range(len(LETTERS))),
    tuple(f"a{index}" for index in range(len(LETTERS))),
    tuple(LETTERS),
)
"""Columns that `kind = "auto"` knows. All count from 0 or are letters: with `option_1` first, nobody could say whether
an answer of 1 is the first or the second, so such a file needs a spec."""

_NUMBERED = re.compile(r"\D*(\d{1,9})")
_LONGEST_CELL = 1_000_000
"""Characters of a cell that may hold a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where a record keeps its options.

    `list` and `dict` are read from `field`, also when it is a text that holds one (a CSV cell, as JSON or as Python
    prints it); `columns` from `fields`; `auto` takes `field` when the record has it, else a family of columns.
    `embedded` cuts them out of the text of `field` (of the question, when empty); `const` are `values`, the same for
    every record; `pair` is the right one (`gold_field`), then the wrong ones (`others`, texts or lists of texts);
    `none` says that a benchmark has none: all its items are open.
    """

    kind: str
    field: str = ""
    fields: tuple[str, ...] = ()
    member: str = ""
    """Where each option of a list is a record: the field with its text."""
    values: tuple[str, ...] = ()
    gold_field: str = ""
    others: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ("", "N/A")
    """Texts that stand for no option. Null always does."""
    rejoin: bool = False
    """A list whose texts were split at line breaks: what has no letter belongs to the option before it."""
    shuffle: bool = False
    """The file always has the right one in one place: put the options of an item in an order drawn for it."""

    def __post_init__(self) -> None:
        """Refuse an unknown kind and a kind without its fields."""
        if self.kind not in OPTION_KINDS:
            raise ValueError(f"kind = {self.kind!r} is not allowed. Allowed: {', '.join(OPTION_KINDS)}")
        if self.kind == "columns" and len(self.fields) < 2:
            raise ValueError("kind = 'columns' needs fields with two names or more")
        if self.kind in ("auto", "list", "dict") and not self.field:
            raise ValueError(f"kind = {self.kind!r} needs field")
        if self.kind == "const" and len(self.values) < 2:
            raise ValueError("kind = 'const' needs values with two texts or more")
        if self.kind == "pair" and not (self.gold_field and self.others):
            raise ValueError("kind = 'pair' needs gold_field and others")


@dataclass(frozen=True, slots=True)
class RawOptions:
    """Options before anything was dropped. `labels` are dict keys or column names, empty for a list."""

    values: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ("",)

    def is_filler(self, index: int) -> bool:
        """Whether the value at this place stands for no option."""
        value = self.values[index]
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        return missing or text_of(value).strip() in self.fillers

    @property
    def texts(self) -> list[str]:
        """The values as texts, prefixes and all."""
        return [text_of(value) for value in self.values]

    @property
    def kept(self) -> list[int]:
        """Places of the values that are options."""
        return [index for index in range(len(self.values)) if not self.is_filler(index)]


def column_family(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first family of option columns of which a record has the first two, up to the first it lacks."""
    for family in COLUMN_FAMILIES:
        present = tuple(itertools.takewhile(lambda name: has_field(values, name), family))
        if len(present) >= 2:
            return present
    return ()


def raw_options(options: Options, values: Mapping[str, Any]) -> RawOptions:
    """Read a record's options with their fillers; none when the field is missing, null or empty.

    Raises:
        ValueError: the value is not of the declared kind.
    """
    if options.kind == "columns" or (options.kind == "auto" and not has_field(values, options.field)):
        names = options.fields or column_family(values)
        found = tuple(lookup(values, name) for name in names)
        return RawOptions(found, names, options.fillers)
    value = lookup(values, options.field)
    if isinstance(value, str) and value.strip():
        value = _parsed(value)
    if value is None or value == "" or isinstance(value, str):
        return RawOptions(fillers=options.fillers)
    if isinstance(value, list | tuple) and options.kind != "dict":
        return RawOptions(tuple(value), (), options.fillers)
    if isinstance(value, Mapping) and options.kind != "list":
        named = {str(key): part for key, part in value.items()}
        labels = _ordered(list(named))
        return RawOptions(tuple(named[label] for label in labels), tuple(labels), options.fillers)
    raise ValueError(f"{options.field} = {shown(value)} is not the {options.kind} that the spec declares")


def _are_letters(labels: Sequence[str]) -> bool:
    return all(len(label) == 1 and label.isascii() and label.isalpha() for label in labels)


def _ordered(labels: list[str]) -> list[str]:
    """Put dict keys in order: letters by letter, `option 0` to `option 10` by number, others as they stand."""
    if _are_letters(labels):
        return sorted(labels, key=str.upper)
    numbers = [_NUMBERED.fullmatch(label) for label in labels]
    if all(numbers):
        return [label for _, label in sorted((int(match.group(1)), match.string) for match in numbers if match)]
    return labels


def _parsed(cell: str) -> Any:
    """Read a list or dict from a text, written as JSON or as Python prints it.

    Raises:
        ValueError: it holds neither.
    """
    text = cell.strip()
    if text[0] in "[{" and len(text) <= _LONGEST_CELL:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
        try:
            if not _glued(text):
                return ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            pass
    raise ValueError(f'{shown(cell)} holds no list such as ["yes", "no"]')


def _glued(text: str) -> bool:
    """Whether two strings stand side by side without a comma, as numpy prints them: Python would join them."""
    blank = (tokenize.NL, tokenize.NEWLINE)
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in blank]
    return any(left == right == tokenize.STRING for left, right in itertools.pairwise(kinds))


@dataclass(frozen=True, slots=True)
class Settled:
    """Options as an item keeps them, where the gold went, and codes of what was found."""

    texts: tuple[str, ...]
    gold: int | None
    codes: tuple[str, ...]


def settled(raw: RawOptions, gold: int | None) -> Settled:
    """Drop fillers, move the gold (an index into the raw options, not itself a filler), strip prefixes once."""
    kept, codes = raw.kept, list[str]()
    last = kept[-1] if raw.labels and kept else len(raw.values) - 1
    texts, stripped = strip_letter_prefix([text_of(raw.values[index]) for index in kept])
    if kept and (len(kept) < last + 1 or not all(map(str.strip, texts))):
        codes.append("empty_option")
    if not all(_plain(raw.values[index]) for index in kept):
        codes.append("non_string_option")
    if not stripped and len(texts) > 1:
        codes += _prefix_codes(letter_prefixes(texts))
    return Settled(tuple(texts), None if gold is None else kept.index(gold), tuple(codes))


def _prefix_codes(prefixes: Sequence[str | None]) -> list[str]:
    """What is odd about letter prefixes that were kept as text: not the positions' letters, or forgotten on some."""
    if None not in prefixes:
        return ["prefix_out_of_order"]
    placed = [prefix == letter for prefix, letter in zip(prefixes, LETTERS, strict=False)]
    return ["prefix_on_some"] if 2 * sum(placed) > len(prefixes) else []


def _plain(value: object) -> bool:
    """Whether a value is a text or a number, which print as anybody would write them."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def labelled(raw: RawOptions) -> Sequence[str]:
    """Letters of the raw options: the keys when all are single letters, else by position."""
    if raw.labels and _are_letters(raw.labels):
        return [label.upper() for label in raw.labels]
    return list(LETTERS)[: len(raw.values)]
