"""Which option is right: an index into the raw options, fillers and all, or the reason why not (protocol 1). Pure.

Nothing is guessed. Where a value can be read in more than one way (an index, a letter, a column's name, a text), `auto`
takes every reading that fits and needs them all to name one option.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.embedded import NARROW, NOUNS
from benchcheck.pool.fields import fold, lookup, text_of
from benchcheck.pool.raw import RawOptions, are_letters, labelled
from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["GOLD_KINDS", "HIDDEN", "Gold", "MappedGold", "map_gold", "other_option"]

GOLD_KINDS = ("auto", "index", "letter", "text", "first", "last", "per_choice", "order", "none")
HIDDEN = frozenset({"", "na", "n/a", "nan", "null", "none", "-1", "?"})
"""What hidden test sets write for the gold, folded. An option with the same text comes first: `None` can be one."""

_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.0+)?")
_WORD = rf"(?:(?:{NOUNS})\s+)"
# Letters are written out where case does not matter elsewhere: `[a-z]` without case has both i of Turkish in it.
_LETTER = re.compile(rf"(?i:{_WORD})?[(\[]?\s*([A-Za-z])\s*[)\].:]*")
_NUMBERED = re.compile(rf"{_WORD}?[(\[]?(\d{{1,2}})[)\].:]*", re.IGNORECASE)
_LONGEST = 100
"""Characters of a gold that may be a letter or a list of letters."""
_LETTERED_TEXT = re.compile(r"[(\[]?([A-Za-z])[)\].:、]\s*(\S.*)", re.DOTALL)
_NAMED_TEXT = re.compile(rf"(?i:{_WORD})[(\[]?([A-Za-z]|\d{{1,2}})[)\].:]+\s*(\S.*)", re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:[,;/&+>\u3001\uff0c]|->|→|\band\b|\s)\s*")
_LETTERS = re.compile(r"[A-Z]{2,26}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """Where a record keeps its gold.

    `index` counts from `base`; `letter` is by the options' letters; `text` equals an option; `auto` is any of them.
    `first` and `last` say that the file has the right option always there. `per_choice` reads `field` in each option
    that is a record itself: right where it is true, or `right`; `order` declares a task of putting options in order,
    which is no multiple choice; `none` declares a hidden test set. `text` names a second field that holds the gold's
    text beside its index.
    """

    kind: str
    field: str = ""
    base: int = 0
    text: str = ""
    right: str = "correct"

    def __post_init__(self) -> None:
        """Refuse an unknown kind, a kind without its field and a base other than 0 and 1."""
        if self.kind not in GOLD_KINDS:
            raise ValueError(f"kind = {self.kind!r} is not allowed. Allowed: {', '.join(GOLD_KINDS)}")
        if self.kind not in ("none", "first", "last") and not self.field:
            raise ValueError(f"kind = {self.kind!r} needs field")
        if self.base not in (0, 1):
            raise ValueError(f"base = {self.base} is not allowed. Allowed: 0 or 1")


@dataclass(frozen=True, slots=True)
class MappedGold:
    """Where the gold is among the raw options, or the code of why it is nowhere.

    `number` is the gold as a 0-based number when it was read as one, in range or not: whether a whole file counts from
    1 shows only over its rows.
    """

    index: int | None = None
    code: str = ""
    number: int | None = None


def map_gold(gold: Gold, value: Any, raw: RawOptions) -> MappedGold:
    """Map a record's gold value to an index into its raw options."""
    if gold.kind in _DECLARED:
        return _DECLARED[gold.kind](gold, value, raw)
    if type(value) is str and (place := _at_once(gold.kind, value, raw)) is not None:
        return _PLACES[place]
    number = _number(value, gold.base) if gold.kind in ("index", "auto") else None
    text = text_of(value)
    if _is_hidden(text, raw) or (gold.kind == "index" and number == -1 - gold.base):
        return MappedGold(code="hidden_gold")
    found = _FINDERS[gold.kind](gold, value, number, raw)
    if len(found) == 1 and found[0] in raw.kept:
        return MappedGold(found[0], number=number)
    several = None if found else _several(gold, value, raw)
    return several or MappedGold(code=_unmapped(gold, text, number, found, raw), number=number)


def _unmapped(gold: Gold, text: str, number: int | None, found: Sequence[int], raw: RawOptions) -> str:
    """The code of a gold that names no option, a filler, or two options."""
    if len(found) == 1:
        return "gold_is_filler"
    if found:
        return "gold_matches_two_options" if _one_text(found, raw) else "gold_ambiguous"
    named = _matched(_LETTER, text) or (raw.counts_from_one and _matched(_NUMBERED, text))
    outside = number is not None or (gold.kind != "text" and named)
    return "gold_out_of_range" if outside else "gold_not_among_options"


_PLACES = tuple(MappedGold(place) for place in range(MAX_OPTIONS))


def _at_once(kind: str, value: str, raw: RawOptions) -> int | None:
    """The place of a gold as nearly all are: a key, a letter of a plain list, or exactly one option's text."""
    if kind == "text" and raw.texts.count(value) == 1:
        place = raw.texts.index(value)
        return place if place < MAX_OPTIONS and place in raw.kept else None
    if kind == "letter" and value in raw.labels:
        place = raw.labels.index(value)
        return place if place < MAX_OPTIONS and place in raw.kept and raw.labels.count(value) == 1 else None
    if len(value) != 1 or kind not in ("letter", "auto") or raw.labels:
        return None
    place = LETTERS.find(value)
    plain = 0 <= place < len(raw.kept) == len(raw.values) and (raw.run or not any(letter for letter, _ in raw.parts))
    return place if plain and (kind == "letter" or all(len(text.strip()) > 1 for text in raw.bare)) else None


def _is_hidden(text: str, raw: RawOptions) -> bool:
    """Whether a text stands for no gold: it does not when an option has it too."""
    folded = fold(text)
    if folded and folded not in HIDDEN:
        return False
    return not folded or all(fold(raw.texts[place]) != folded for place in raw.kept)


def _first(_gold: Gold, _value: Any, raw: RawOptions) -> MappedGold:
    return _fixed(0, raw)


def _last(_gold: Gold, _value: Any, raw: RawOptions) -> MappedGold:
    return _fixed(len(raw.values) - 1, raw)


def _fixed(place: int, raw: RawOptions) -> MappedGold:
    """The option that the file has always in one place."""
    if not raw.values:
        return MappedGold(code="gold_out_of_range")
    return MappedGold(place) if place in raw.kept else MappedGold(code="gold_is_filler")


def _per_choice(gold: Gold, _value: Any, raw: RawOptions) -> MappedGold:
    """The one choice that is marked right (CLEVRER marks several)."""
    marks = [lookup(record, gold.field) if isinstance(record, Mapping) else None for record in raw.records]
    if all(mark is None for mark in marks):
        return MappedGold(code="hidden_gold")
    wanted = fold(gold.right)
    right = [place for place, mark in enumerate(marks) if mark is True or fold(text_of(mark)) == wanted]
    if len(right) != 1:
        return MappedGold(code="several_gold" if right else "gold_not_among_options")
    return _fixed(right[0], raw)


_DECLARED: dict[str, Callable[[Gold, Any, RawOptions], MappedGold]] = {
    "none": lambda _gold, _value, _raw: MappedGold(code="hidden_gold"),
    "order": lambda _gold, _value, _raw: MappedGold(code="gold_is_order"),
    "first": _first,
    "last": _last,
    "per_choice": _per_choice,
}
"""Kinds that need no value of the record."""


def _number(value: Any, base: int) -> int | None:
    """Read an integer, also from `"2"` and from the 2.0 that pandas makes of one, as a 0-based number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) - base if math.isfinite(value) and value.is_integer() else None
    if isinstance(value, int):
        return value - base
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(float(value)) - base
    return None


def other_option(text: Any, index: int, raw: RawOptions) -> int | None:
    """Return the option that the gold's text equals when it is another than the gold's index says (OVO-Bench 609).

    A text that equals no option is a paraphrase, which real files hold by the hundreds, and says nothing.
    """
    if text is None or text == raw.texts[index]:
        return None
    found = _by_text(text_of(text), raw, raw.kept)
    same = [other for other in found if other == index or fold(raw.texts[other]) == fold(raw.texts[index])]
    return found[0] if found and not same else None


def _narrow(text: str) -> str:
    """A text with plain letters and signs in place of full-width ones."""
    return text if text.isascii() else text.translate(NARROW)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The match of a whole short text."""
    stripped = _narrow(text).strip()
    return pattern.fullmatch(stripped) if len(stripped) <= _LONGEST else None


def _by_index(_gold: Gold, _value: Any, number: int | None, raw: RawOptions) -> list[int]:
    return [number] if number is not None and 0 <= number < len(raw.values) else []


def _by_letter(text: str, raw: RawOptions) -> list[int]:
    """Places that a letter (`C`, `c`, `(C)`, `C.`), a column's name or `C. text` names.

    A dict's keys say which option a letter is. In a list where most options carry letters that do not run, a letter
    names a place and a prefix: both are returned, and a place whose option carries another letter is none.
    """
    if (by_label := _by_label(text, raw)) is not None:
        return by_label
    match = _matched(_LETTER, text)
    if match is None:
        return _by_lettered_text(text, raw)
    letter = match[1].upper()
    by_key = bool(raw.labels) and are_letters(raw.labels)
    if raw.run and not by_key:
        place = LETTERS.index(letter)
        return [raw.kept[place]] if place < len(raw.kept) else []
    by_place = [index for index, label in enumerate(labelled(raw)) if label == letter]
    if by_key or not raw.own_letters:
        return by_place
    letters = {place: raw.parts[place][0] for place in raw.kept}
    by_prefix = [place for place, prefix in letters.items() if prefix == letter]
    if not by_prefix:
        return [place for place in by_place if not letters.get(place)]
    return sorted({*by_place, *by_prefix})


def _by_label(text: str, raw: RawOptions) -> list[int] | None:
    """Places that a column's name or the number of an embedded option (`Option 2`) names; None when it is neither."""
    if text in raw.labels:
        return [index for index, label in enumerate(raw.labels) if label == text]
    if raw.counts_from_one and (match := _matched(_NUMBERED, text)):
        return [int(match[1]) - 1] if 0 < int(match[1]) <= len(raw.values) else []
    return None


def _by_lettered_text(text: str, raw: RawOptions) -> list[int]:
    """Place that `C. dunking` or `Sentence C: dunking` names, when the option C is `dunking` or `C. dunking`."""
    plain = _narrow(text.strip())
    if match := _NAMED_TEXT.fullmatch(plain):
        return _by_named_text(match[1], text.strip()[match.start(2) :], raw)
    match = _LETTERED_TEXT.fullmatch(plain)
    if match is None:
        return []
    letters, bare = labelled(raw), raw.bare
    wanted = {fold(text), fold(text.strip()[match.start(2) :])}
    return [
        index
        for index, letter in enumerate(letters)
        if letter == match[1].upper() and {fold(raw.texts[index]), fold(bare[index])} & wanted
    ]


def _by_named_text(name: str, text: str, raw: RawOptions) -> list[int]:
    """Place of the option with the text behind `Sentence A:`, and the place A where that is another one."""
    place = int(name) - 1 if name.isdecimal() else LETTERS.index(name.upper())
    for reading in raw.readings:
        wanted = text if reading is raw.texts else fold(text)
        if found := [index for index in raw.kept if reading[index] in (text, wanted)]:
            return sorted({*found, place} & set(range(len(raw.values))))
    return []


def _by_text(text: str, raw: RawOptions, places: Sequence[int]) -> list[int]:
    """Places of the options that equal a text, by the strictest comparison that finds any.

    Exactly; then without letter prefixes; then case and white space aside; then as `C. text` beside bare options.
    """
    readings, folded = raw.readings, fold(text)
    exact = len(readings) // 2
    for number, options in enumerate(readings):
        wanted = text if number < exact else folded
        if found := [index for index in places if options[index] == wanted]:
            return found
    return [index for index in _by_lettered_text(text, raw) if index in places]


def _by_any(gold: Gold, value: Any, number: int | None, raw: RawOptions) -> list[int]:
    """Places that any reading of a value names.

    A number is compared with options that are numbers too, never with texts: `"answer": 1` beside `["2", "1"]` is an
    index. As a text (every cell of a CSV is one) it can be both, and then both must name the same option. Where the
    options are numbered from 1 and the spec does not say that the gold is, a number may count from 0 or from 1.
    """
    is_text = isinstance(value, str)
    places = [index for index, option in enumerate(raw.values) if isinstance(option, str) == is_text]
    found = set(_by_text(text_of(value), raw, places))
    if number is not None:
        counted = {number, number - 1} if raw.counts_from_one and not gold.base else {number}
        found |= counted & set(range(len(raw.values)))
    if is_text:
        found.update(_by_letter(value, raw))
    return sorted(found)


_FINDERS: dict[str, Callable[[Gold, Any, int | None, RawOptions], list[int]]] = {
    "index": _by_index,
    "letter": lambda _gold, value, _number, raw: _by_letter(text_of(value), raw),
    "text": lambda _gold, value, _number, raw: _by_text(text_of(value), raw, range(len(raw.values))),
    "auto": _by_any,
}


def _several(gold: Gold, value: Any, raw: RawOptions) -> MappedGold | None:
    """A gold that holds several (`["A", "C"]`, `A, C`, `AB`): the code, or its one member's place."""
    members = (
        value
        if isinstance(value, list | tuple)
        else _members(text_of(value)[: _LONGEST + 1])
        if gold.kind != "text"
        else ()
    )
    if not members or len(members) > MAX_OPTIONS:
        return None
    found = [map_gold(gold, member, raw) for member in members if not isinstance(member, list | tuple)]
    places = [one.index for one in found if one.index is not None]
    if len(places) < len(members):
        return None
    if len(places) == 1:
        return found[0]
    if len(set(places)) == len(raw.kept) == len(places) and places != sorted(places):
        return MappedGold(code="gold_is_order")
    return MappedGold(code="several_gold") if len(set(places)) > 1 else None


def _members(text: str) -> list[str]:
    """What a text lists: `A, C`, `A and C`, `['A', 'C']`, `AC`; nothing when it is one word."""
    plain = re.sub(r"[\[\](){}'\"]", "", _narrow(text)).strip()
    if len(plain) > _LONGEST:
        return []
    if _LETTERS.fullmatch(plain):
        return list(plain)
    members = [part for part in _BETWEEN.split(plain) if part]
    return members if len(members) > 1 and all(len(part) <= 2 for part in members) else []


def _one_text(found: Sequence[int], raw: RawOptions) -> bool:
    """Whether the options at these places have one text."""
    return len({raw.readings[-1][index] for index in found}) == 1
