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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.pool.embedded import find
from benchcheck.pool.fields import fold, has_field, lookup, shown, text_of
from benchcheck.pool.items import split_prefix
from benchcheck.screen.prompts import LETTERS

__all__ = [
    "COLUMN_FAMILIES",
    "OPTION_KINDS",
    "Options",
    "RawOptions",
    "Settled",
    "column_family",
    "labelled",
    "raw_options",
    "rejoined",
    "settled",
]

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


@dataclass(slots=True)
class RawOptions:
    """Options before anything was dropped; `texts` are the values as texts, `kept` the places of no filler.

    `labels` are dict keys, column names or what stood before embedded options, empty for a list. `records` are the
    options themselves where they are records. `codes` is what reading them showed, `question` the text before embedded
    ones, which are `cut` already: bare, with nothing left to strip.
    """

    values: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ("",)
    codes: tuple[str, ...] = ()
    records: tuple[Any, ...] = ()
    question: str | None = None
    texts: list[str] = field(init=False, repr=False, compare=False)
    kept: list[int] = field(init=False, repr=False, compare=False)
    _parts: list[tuple[str, str]] | None = field(init=False, repr=False, compare=False, default=None)
    _run: bool | None = field(init=False, repr=False, compare=False, default=None)
    _folded: list[list[str]] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        """Write the values as texts, once."""
        fillers = self.fillers
        self.texts = texts = [value if type(value) is str else text_of(value) for value in self.values]
        self.kept = [
            place
            for place, text in enumerate(texts)
            if text.strip() not in fillers and not _is_missing(self.values[place])
        ]

    def is_filler(self, index: int) -> bool:
        """Whether the value at this place stands for no option."""
        return index not in self.kept

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Letter prefix and the text behind it, of every value; no letter where there is none."""
        if self._parts is None:
            self._parts = [("", text) if self.question is not None else split_prefix(text) for text in self.texts]
        return self._parts

    @property
    def run(self) -> bool:
        """Whether the options that are kept carry the letters A, B, C … in order: these prefixes are stripped."""
        if self._run is None:
            parts, kept = self.parts, self.kept
            letters = "".join([parts[place][0] for place in kept])
            self._run = 0 < len(letters) == len(kept) and LETTERS.startswith(letters)
        return self._run

    @property
    def bare(self) -> list[str]:
        """The texts without the prefixes that are stripped."""
        return [bare for _, bare in self.parts] if self.run else self.texts

    @property
    def readings(self) -> list[list[str]]:
        """Texts to compare a gold with, the strictest first: as they are, bare, and both folded."""
        if self._folded is None:
            forms = [self.texts, self.bare] if self.run else [self.texts]
            self._folded = [*forms, *([fold(text) for text in texts] for texts in forms)]
        return self._folded

    @property
    def counts_from_one(self) -> bool:
        """Whether the labels are numbered from 1: `option_1`, `Option 1`."""
        return bool(self.labels) and [_number_of(label) for label in self.labels] == [*range(1, len(self.labels) + 1)]


def _is_missing(value: object) -> bool:
    return value is None or (type(value) is float and math.isnan(value))


def _number_of(label: str) -> int:
    """The number that a label ends with, -1 without one."""
    match = _NUMBERED.fullmatch(label)
    return int(match[1]) if match else -1


def column_family(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the first family of option columns of which a record has the first two, up to the first it lacks."""
    for family in COLUMN_FAMILIES:
        present = tuple(itertools.takewhile(lambda name: has_field(values, name), family))
        if len(present) >= 2:
            return present
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
    found = find(text_of(lookup(values, options.field)) if options.field else text)
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


def rejoined(texts: Sequence[Any]) -> list[str] | None:
    """Put the pieces of split options together: what has no letter belongs to the option before it.

    Only when the options with letters run A, B, C … in order; None otherwise, and when there is nothing to join.
    """
    if not all(isinstance(text, str) for text in texts):
        return None
    letters = [split_prefix(text)[0] for text in texts]
    whole = [letter for letter in letters if letter]
    if len(whole) < 2 or len(whole) == len(texts) or not letters[0] or not _in_order(whole):
        return None
    groups: list[list[str]] = []
    for letter, text in zip(letters, texts, strict=True):
        if letter:
            groups.append([])
        groups[-1].append(text)
    return ["\n".join(group).rstrip() for group in groups]


def _in_order(letters: Sequence[str]) -> bool:
    """Whether they are A, B, C and so on."""
    return list(letters) == list(LETTERS[: len(letters)])


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
    kept, bare = raw.kept, raw.bare
    texts = tuple(bare) if len(kept) == len(bare) else tuple([bare[index] for index in kept])
    codes = list(raw.codes)
    last = kept[-1] if raw.labels and kept else len(bare) - 1
    if kept and (len(kept) <= last or "" in [text.strip(_BLANK) for text in texts]):
        codes.append("empty_option")
    if not _PLAIN.issuperset(map(type, raw.values)) and any(type(raw.values[index]) not in _PLAIN for index in kept):
        codes.append("non_string_option")
    if not raw.run and len(texts) > 1:
        codes += _letter_codes(raw)
    elif len(texts) == 1 and _holds_several(raw.texts[kept[0]]):
        codes.append("options_glued")
    return Settled(texts, None if gold is None else kept.index(gold), tuple(codes))


def _letter_codes(raw: RawOptions) -> list[str]:
    """What is odd about letter prefixes that were kept as text: forgotten, out of order, or options split or glued."""
    letters = [raw.parts[place][0] for place in raw.kept]
    whole = [letter for letter in letters if letter]
    if not whole:
        return []
    if len(whole) == len(letters):
        return ["options_glued"] if _swallowed(raw, letters) else ["prefix_out_of_order"]
    if not raw.labels and len(whole) > 1 and letters[0] and _in_order(whole):
        return ["options_split"]
    placed = [prefix == letter for prefix, letter in zip(letters, LETTERS, strict=False)]
    return ["prefix_on_some"] if 2 * sum(placed) > len(letters) else []


def _swallowed(raw: RawOptions, letters: Sequence[str]) -> bool:
    """Whether the letters that are missing in a rising run stand inside the option before the hole."""
    numbers = [LETTERS.index(letter) for letter in letters]
    if numbers[0] or any(left >= right for left, right in itertools.pairwise(numbers)):
        return False
    holes = [place for place, (left, right) in enumerate(itertools.pairwise(numbers)) if right - left > 1]
    return all(
        re.search(rf"[\s,;.][(\[]?{LETTERS[numbers[place] + 1]}[)\].:]", raw.texts[raw.kept[place]]) for place in holes
    )


def _holds_several(text: str) -> bool:
    """Whether a text is a run of lettered options itself: `A. x, B. y`."""
    try:
        return len(find(text).texts) > 1 and split_prefix(text)[0] == "A"
    except ValueError:
        return False


_BLANK = " \t\r\n\xa0."
"""An option of nothing else is no text: a full stop is what a split at line breaks leaves (StreamingBench)."""
_PLAIN = frozenset({str, int, float})
"""Types of options that print as anybody would write them."""


def labelled(raw: RawOptions) -> Sequence[str]:
    """Letters of the raw options: the keys when all are single letters, else by position."""
    if raw.labels and _are_letters(raw.labels):
        return [label.upper() for label in raw.labels]
    return list(LETTERS)[: len(raw.values)]
