"""Which option is right: an index into the raw options, fillers and all, or the reason why not (protocol 1). Pure.

Nothing is guessed. Where a value can be read in more than one way (an index, a letter, a column's name, a text), `auto`
takes every reading that fits and needs them all to name one option.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.fields import fold, text_of
from benchcheck.pool.items import letter_prefixes, strip_letter_prefix
from benchcheck.pool.options import RawOptions, labelled
from benchcheck.screen.prompts import LETTERS

__all__ = ["GOLD_KINDS", "HIDDEN", "Gold", "MappedGold", "map_gold", "other_option"]

GOLD_KINDS = ("auto", "index", "letter", "text", "first", "last", "per_choice", "order", "none")
HIDDEN = frozenset({"", "na", "n/a", "null", "none", "-1", "?"})
"""What hidden test sets write for the gold, folded. An option with the same text comes first: `None` can be one."""

_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.0+)?")
_LETTER = re.compile(r"\s*[(\[]?\s*([A-Za-z])\s*[)\].:]?\s*")
_LETTERED_TEXT = re.compile(r"[(\[]?([A-Za-z])[)\].:]\s*(\S.*)", re.DOTALL)


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
    if gold.kind == "none":
        return MappedGold(code="hidden_gold")
    number = _number(value, gold.base) if gold.kind in ("index", "auto") else None
    folded = fold(text_of(value))
    hidden = not folded or (folded in HIDDEN and folded not in [fold(raw.texts[place]) for place in raw.kept])
    if hidden or (gold.kind == "index" and number == -1 - gold.base):
        return MappedGold(code="hidden_gold")
    readings: dict[str, Callable[[], list[int]]] = {
        "index": lambda: [number] if number is not None and 0 <= number < len(raw.values) else [],
        "letter": lambda: _by_letter(text_of(value), raw),
        "text": lambda: _by_text(text_of(value), raw, range(len(raw.values))),
        "auto": lambda: _by_any(value, number, raw),
    }
    found = readings[gold.kind]()
    if len(found) > 1:
        code = "gold_matches_two_options" if gold.kind == "text" or _one_text(found, raw) else "gold_ambiguous"
        return MappedGold(code=code, number=number)
    if not found:
        outside = number is not None or (gold.kind != "text" and _LETTER.fullmatch(text_of(value)) is not None)
        return MappedGold(code="gold_out_of_range" if outside else "gold_not_among_options", number=number)
    if raw.is_filler(found[0]):
        return MappedGold(code="gold_is_filler", number=number)
    return MappedGold(found[0], number=number)


def other_option(text: Any, index: int, raw: RawOptions) -> int | None:
    """Return the option that the gold's text equals when it is another than the gold's index says (OVO-Bench 609).

    A text that equals no option is a paraphrase, which real files hold by the hundreds, and says nothing.
    """
    if text is None:
        return None
    found = _by_text(text_of(text), raw, raw.kept)
    same = [other for other in found if other == index or fold(raw.texts[other]) == fold(raw.texts[index])]
    return found[0] if found and not same else None


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


def _by_letter(text: str, raw: RawOptions) -> list[int]:
    """Places that a letter (`C`, `c`, `(C)`, `C.`), a column's name or `C. text` names.

    Where all options carry letter prefixes out of order, a letter names a place and a prefix: both are returned.
    """
    if text in raw.labels:
        return [index for index, label in enumerate(raw.labels) if label == text]
    match = _LETTER.fullmatch(text)
    if match is None:
        return _by_lettered_text(text, raw)
    letter = match.group(1).upper()
    found = [index for index, label in enumerate(labelled(raw)) if label == letter]
    prefixes = letter_prefixes([raw.texts[index] for index in raw.kept])
    if prefixes and None not in prefixes:
        found += [index for index, prefix in zip(raw.kept, prefixes, strict=True) if prefix == letter]
    return sorted(set(found))


def _by_lettered_text(text: str, raw: RawOptions) -> list[int]:
    """Place that `C. dunking` names, when the option C is `dunking` or `C. dunking`."""
    match = _LETTERED_TEXT.fullmatch(text.strip())
    if match is None:
        return []
    letters, bare = labelled(raw), _bare(raw)
    wanted = {fold(text), fold(match.group(2))}
    return [
        index
        for index, letter in enumerate(letters)
        if letter == match.group(1).upper() and {fold(raw.texts[index]), fold(bare[index])} & wanted
    ]


def _by_text(text: str, raw: RawOptions, places: Sequence[int]) -> list[int]:
    """Places of the options that equal a text, by the strictest comparison that finds any.

    Exactly; then without letter prefixes; then case and white space aside; then as `C. text` beside bare options.
    """
    texts, bare = raw.texts, _bare(raw)
    for wanted, options in (
        (text, texts),
        (text, bare),
        (fold(text), [fold(option) for option in texts]),
        (fold(text), [fold(option) for option in bare]),
    ):
        if found := [index for index in places if options[index] == wanted]:
            return found
    return [index for index in _by_lettered_text(text, raw) if index in places]


def _by_any(value: Any, number: int | None, raw: RawOptions) -> list[int]:
    """Places that any reading of a value names.

    A number is compared with options that are numbers too, never with texts: `"answer": 1` beside `["2", "1"]` is an
    index. As a text (every cell of a CSV is one) it can be both, and then both must name the same option.
    """
    is_text = isinstance(value, str)
    places = [index for index, option in enumerate(raw.values) if isinstance(option, str) == is_text]
    found = set(_by_text(text_of(value), raw, places))
    if number is not None and 0 <= number < len(raw.values):
        found.add(number)
    if is_text:
        found.update(_by_letter(value, raw))
    return sorted(found)


def _one_text(found: Sequence[int], raw: RawOptions) -> bool:
    """Whether the options at these places have one text."""
    return len({fold(raw.texts[index]) for index in found}) == 1


def _bare(raw: RawOptions) -> list[str]:
    """Texts of the raw options without letter prefixes, fillers in place."""
    kept, texts = raw.kept, raw.texts
    if len(kept) <= len(LETTERS):
        for index, text in zip(kept, strip_letter_prefix([texts[index] for index in kept])[0], strict=True):
            texts[index] = text
    return texts
