"""Options as they stand in a record, and what is kept of them (protocol 1). Pure."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.pool.embedded import cut
from benchcheck.pool.fields import fold, text_of
from benchcheck.pool.items import split_prefix
from benchcheck.screen.prompts import LETTERS

__all__ = ["RawOptions", "Settled", "are_letters", "labelled", "number_of", "rejoined", "settled"]

_NUMBERED = re.compile(r"\D*(\d{1,9})")


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

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Letter prefix and the text behind it, of every value; no letter where there is none."""
        if self._parts is None:
            self._parts = [("", text) if self.question is not None else split_prefix(text) for text in self.texts]
        return self._parts

    @property
    def run(self) -> bool:
        """Whether the options that are kept carry the letters A, B, C … in order: these prefixes are stripped.

        Options that are nothing but those letters (`A.` to `D.`, OmniVideoBench 176) are their texts, and stay.
        """
        if self._run is None:
            parts, kept = self.parts, self.kept
            letters = "".join([parts[place][0] for place in kept])
            in_order = 0 < len(letters) == len(kept) and LETTERS.startswith(letters)
            self._run = in_order and any(parts[place][1] for place in kept)
        return self._run

    @property
    def own_letters(self) -> bool:
        """Whether most options carry a letter that one of them could have: initials seldom are all so near to A."""
        near = LETTERS[: len(self.values)]
        return 2 * sum(bool(self.parts[place][0]) and self.parts[place][0] in near for place in self.kept) > len(
            self.kept
        )

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
        return bool(self.labels) and [number_of(label) for label in self.labels] == [*range(1, len(self.labels) + 1)]


def _is_missing(value: object) -> bool:
    return value is None or (type(value) is float and math.isnan(value))


def number_of(label: str) -> int:
    """The number that a label ends with, -1 without one."""
    match = _NUMBERED.fullmatch(label)
    return int(match[1]) if match else -1


def are_letters(labels: Sequence[str]) -> bool:
    """Whether each label is one letter."""
    return all(len(label) == 1 and label.isascii() and label.isalpha() for label in labels)


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
    if not whole or _in_order(letters):
        return []  # no letters, or nothing but letters
    if len(whole) == len(letters):
        return ["options_glued"] if _swallowed(raw, letters) else ["prefix_out_of_order"]
    if not raw.labels and len(whole) > 1 and letters[0] and _in_order(whole):
        return ["options_split"]
    placed = [prefix == letter for prefix, letter in zip(letters, LETTERS, strict=False)]
    if 2 * sum(placed) > len(letters):
        return ["prefix_on_some"]
    return ["prefix_out_of_order"] if raw.own_letters else []


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
        return len(cut(text).texts) > 1 and split_prefix(text)[0] == "A"
    except ValueError:
        return False


_BLANK = " \t\r\n\xa0."
"""An option of nothing else is no text: a full stop is what a split at line breaks leaves (StreamingBench)."""
_PLAIN = frozenset({str, int, float})
"""Types of options that print as anybody would write them."""


def labelled(raw: RawOptions) -> Sequence[str]:
    """Letters of the raw options: the keys when all are single letters, else by position."""
    if raw.labels and are_letters(raw.labels):
        return [label.upper() for label in raw.labels]
    return list(LETTERS)[: len(raw.values)]
