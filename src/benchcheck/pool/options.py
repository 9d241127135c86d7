"""Options as a record holds them, fillers and all, and as an item keeps them (protocol 1). Pure.

The order of the rules avoids most faults of real loaders: the gold is mapped on the raw list, fillers and all; then the
fillers go and the gold moves; then letter prefixes are stripped, once.
"""

import ast
import io
import itertools
import json
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.embedded import cut
from benchcheck.pool.fields import has_field, lookup, shown, text_of
from benchcheck.pool.raw import RawOptions, are_letters, number_of, rejoined
from benchcheck.screen.prompts import LETTERS

__all__ = ["COLUMN_FAMILIES", "OPTION_KINDS", "Options", "column_family", "raw_options"]

OPTION_KINDS = ("auto", "list", "dict", "columns", "embedded", "const", "pair", "none")
_STEMS = ("option_", "option", "option ", "a", "answer_choice_", "answer_", "answer", "choice_", "choice", "candidate_")
COLUMN_FAMILIES: tuple[tuple[str, ...], ...] = (
    *(tuple(f"{stem}{number}" for number in range(len(LETTERS))) for stem in _STEMS),
    tuple(LETTERS),
    *(tuple(f"{stem}{letter}" for letter in LETTERS) for stem in ("option_", "choice_", "option", "choice")),
    *(tuple(f"{stem}{letter}" for letter in LETTERS.lower()) for stem in ("", "option_", "choice_", "answer_")),
    *(tuple(f"{stem}{number}" for number in range(1, len(LETTERS) + 1)) for stem in _STEMS),
)
"""Columns that `kind = "auto"` knows, those that count from 1 last. With `option_1` first nobody can say whether an
answer of 1 is the first or the second: such a number needs a spec, a letter or a text does not."""

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


def column_family(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first family of option columns of which a record has the first two, up to the first it lacks."""
    for family in COLUMN_FAMILIES:
        if family[0] in values and family[1] in values:
            return tuple(itertools.takewhile(values.__contains__, family))
    return ()


def raw_options(options: Options, values: Mapping[str, Any], text: str = "") -> RawOptions:
    """Read a record's options with their fillers; none when the field is missing, null or empty.

    `text` is the question, out of which embedded options are cut when the spec names no other field.

    Raises:
        ValueError: the value is not of the declared kind.
    """
    return _READERS[options.kind](options, values, text)


def _from_field(options: Options, values: Mapping[str, Any], _text: str) -> RawOptions:
    """A list, a dict, or a text that holds one."""
    value = lookup(values, options.field)
    if isinstance(value, str):
        value = _parsed(value) if value.strip() else None
    if value is None:
        return RawOptions(fillers=options.fillers)
    if isinstance(value, list | tuple) and options.kind != "dict":
        return _listed(options, value)
    if isinstance(value, Mapping) and options.kind != "list":
        named = {str(key): part for key, part in value.items()}
        labels = _ordered(list(named))
        return _listed(options, [named[label] for label in labels], tuple(labels))
    raise ValueError(f"{options.field} = {shown(value)} is not the {options.kind} that the spec declares")


def _listed(options: Options, found: Sequence[Any], labels: tuple[str, ...] = ()) -> RawOptions:
    """Options out of a list, whose members may be records."""
    if options.member:
        if not all(isinstance(member, Mapping) for member in found):
            raise ValueError(f"{options.field} = {shown(found)} has members without {options.member!r}")
        texts = tuple(lookup(member, options.member) for member in found)
        return RawOptions(texts, labels, options.fillers, records=tuple(found))
    joined = rejoined(found) if options.rejoin else None
    if joined is not None:
        return RawOptions(tuple(joined), labels, options.fillers, ("options_rejoined",))
    return RawOptions(tuple(found), labels, options.fillers)


def _from_columns(options: Options, values: Mapping[str, Any], _text: str) -> RawOptions:
    """A column each."""
    names = options.fields or column_family(values)
    return RawOptions(tuple([lookup(values, name) for name in names]), names, options.fillers)


def _from_any(options: Options, values: Mapping[str, Any], text: str) -> RawOptions:
    """The field when the record has it, else a family of columns."""
    read = _from_field if has_field(values, options.field) else _from_columns
    return read(options, values, text)


def _from_text(options: Options, values: Mapping[str, Any], text: str) -> RawOptions:
    """Options that stand in a text."""
    found = cut(text_of(lookup(values, options.field)) if options.field else text)
    return RawOptions(found.texts, found.labels, options.fillers, question=found.question)


def _from_pair(options: Options, values: Mapping[str, Any], _text: str) -> RawOptions:
    """The right one, then the wrong ones."""
    others = (lookup(values, name) for name in options.others)
    flat = itertools.chain.from_iterable(other if isinstance(other, list | tuple) else [other] for other in others)
    return RawOptions((lookup(values, options.gold_field), *flat), (), options.fillers)


_READERS: dict[str, Callable[[Options, Mapping[str, Any], str], RawOptions]] = {
    "auto": _from_any,
    "list": _from_field,
    "dict": _from_field,
    "columns": _from_columns,
    "embedded": _from_text,
    "const": lambda options, _values, _text: RawOptions(options.values, (), options.fillers),
    "pair": _from_pair,
    "none": lambda _options, _values, _text: RawOptions(codes=("open_ended",)),
}


def _ordered(labels: list[str]) -> list[str]:
    """Put dict keys in order: letters by letter, `option 0` to `option 10` by number, others as they stand."""
    if are_letters(labels):
        return sorted(labels, key=str.upper)
    numbers = [number_of(label) for label in labels]
    if min(numbers, default=-1) >= 0:
        return [label for _, label in sorted(zip(numbers, labels, strict=True))]
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
