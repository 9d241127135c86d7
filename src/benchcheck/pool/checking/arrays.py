"""The pool's columns as arrays: every text is folded once and is a number from then on.

300,000 items with 1.2 million options: folding each distinct text takes under a microsecond (fields.fold, in Python,
so that texts are equal here exactly when they are to a build), and what is compared afterwards are whole numbers.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from benchcheck.errors import StudyError
from benchcheck.pool.fields import fold
from benchcheck.pool.wording import option_issues
from benchcheck.screen.prompts import MAX_OPTIONS
from benchcheck.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ABOVE", "UNKNOWN", "Numbers", "PoolArrays", "combined", "read_arrays"]

Numbers: TypeAlias = npt.NDArray[np.int64]

ABOVE = 1
"""Kind of an option that speaks of the others (`all of the above`, `neither`); a bit."""
UNKNOWN = 2
"""Kind of an option that says nothing (`not sure`); a bit."""

_LETTERED = 5
"""`A and E` speaks of two options, `P and Q` of two names: letters from F on are not taken for options."""
_NEEDED = (
    *("item_id", "bench", "question", "options", "gold", "format", "video_key"),
    *("start", "end", "category", "issues"),
)
"""Columns that pools of every layout have."""


@dataclass(frozen=True, slots=True)
class PoolArrays:
    """n items with m options in all. Equal numbers stand for equal values; -1 for none."""

    benches: tuple[str, ...]
    """Names, in the pool's order."""
    bench: Numbers
    """(n) index into `benches`."""
    formats: tuple[str, ...]
    format: Numbers
    offsets: Numbers
    """(n + 1) where the options of each item begin."""
    option: Numbers
    """(m) folded text of each option."""
    length: Numbers
    """(m) characters of each option as it is stored: without the letter prefix, white space as it is."""
    kind: Numbers
    """`ABOVE` and `UNKNOWN` as bits, per folded option text."""
    gold: Numbers
    """(n) index of the right option."""
    place: Numbers
    """(n) index of the right option in the annotation file."""
    asked: Numbers
    """(n) folded question with its options in any order; -1 with fewer than two options: nothing to compare."""
    question: Numbers
    video: Numbers
    window: Numbers
    category: Numbers
    issues: tuple[Counter[str], ...]
    """Per benchmark, items with each code."""

    @property
    def sizes(self) -> Numbers:
        """(n) number of options."""
        return np.diff(self.offsets)

    @property
    def mcq(self) -> npt.NDArray[np.bool_]:
        """(n) whether an item is screened."""
        return np.equal(self.format, self.formats.index("mcq") if "mcq" in self.formats else -1)

    @property
    def gold_text(self) -> Numbers:
        """(n) folded text of the right option."""
        known = (self.gold >= 0) & (self.gold < self.sizes)
        found = np.full(len(self.gold), -1)
        found[known] = self.option[self.offsets[:-1][known] + self.gold[known]]
        return found


def read_arrays(study: Study) -> PoolArrays:
    """Read the pool of a study, one column at a time.

    Raises:
        StudyError: there is no pool yet, it is damaged, lacks a column, or calls an item multiple-choice that is not.
    """
    present = _columns(study)
    question, option = dict[str, int](), dict[str, int]()
    offsets, options, lengths = _options(study, option)
    questions = _text_ids(_chunks(study, "question", "string"), question)
    bench, benches = _names(study, "bench")
    formats, format_names = _names(study, "format")
    gold = _whole(study, "gold")
    place = _whole(study, "file_gold") if "file_gold" in present else np.full(len(gold), -1)
    video, keys = _names(study, "video_key")
    category, _ = _names(study, "category")
    found = PoolArrays(
        benches=tuple(benches),
        bench=bench,
        formats=tuple(format_names),
        format=formats,
        offsets=offsets,
        option=options,
        length=lengths,
        kind=np.array([_kind(text) for text in option], dtype=np.int64),
        gold=gold,
        place=np.where(place >= 0, place, gold),
        asked=_asked(questions, offsets, options),
        question=questions,
        video=np.where(video == keys.index(""), -1, video) if "" in keys else video,
        window=combined(_seconds(study, "start"), _seconds(study, "end")),
        category=category,
        issues=_issues(study, bench, len(benches)),
    )
    _check_askable(study, found)
    return found


def combined(one: Numbers, other: Numbers) -> Numbers:
    """Number the pairs of two columns: equal numbers stand for equal pairs."""
    if not len(one):
        return one
    width = int(other.max()) + 2
    return _numbered((one + 1) * width + other + 1)


def _numbered(values: npt.NDArray[np.generic]) -> Numbers:
    """Number values from 0, in their order."""
    ids: Numbers = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ids


def _columns(study: Study) -> set[str]:
    """Names of the pool's columns; none where it cannot be read, which the first column that is read will say."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        present = set(pq.read_schema(study.pool_file).names)
    except (pa.ArrowException, OSError):
        return set()
    if lacking := [name for name in _NEEDED if name not in present]:
        cure = f"Cure: benchcheck pool build {study.root}, or name another pool in POOL_BASE"
        raise StudyError(f"{study.pool_file}: no column {', '.join(lacking)}, so not a pool of items. {cure}")
    return present


def _chunks(study: Study, column: str, kind: str) -> "list[pa.Array]":
    """A column as Arrow arrays of a few thousand values: `kind` is `string`, `int64`, `double`, or `list` for texts."""
    import pyarrow as pa

    values = study.item_table([column]).column(column)
    wanted = pa.list_(pa.string()) if kind == "list" else pa.type_for_alias(kind)
    try:
        return list(values.cast(wanted).chunks)
    except pa.ArrowException as reason:
        raise StudyError(
            f"{study.pool_file}: column {column!r} is {values.type}, not {wanted} ({reason}). "
            f"Cure: benchcheck pool build {study.root}"
        ) from None


def _text_ids(chunks: "Iterable[pa.Array]", known: dict[str, int], form: Callable[[str], str] = fold) -> Numbers:
    """Number texts by their form, folded if no other; `known` grows by the new ones, in the order in which they come.

    Each text of a chunk is brought into its form once.
    """
    parts = [np.zeros(0, np.int64)]
    for chunk in chunks:
        encoded = chunk.fill_null("").dictionary_encode()
        texts = map(form, encoded.dictionary.to_pylist())
        ids = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
        parts.append(ids[encoded.indices.to_numpy()])
    return np.concatenate(parts)


def _options(study: Study, known: dict[str, int]) -> tuple[Numbers, Numbers, Numbers]:
    """Where each item's options begin, their folded texts as numbers, and their lengths in characters."""
    import pyarrow.compute as pc

    sizes, ids, lengths = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for chunk in _chunks(study, "options", "list"):
        sizes.append(pc.list_value_length(chunk).fill_null(0).to_numpy().astype(np.int64))
        texts = pc.list_flatten(chunk).fill_null("")
        ids.append(_text_ids([texts], known))
        lengths.append(pc.utf8_length(texts).to_numpy().astype(np.int64))
    return np.cumsum(np.concatenate(sizes)), np.concatenate(ids), np.concatenate(lengths)


def _names(study: Study, column: str) -> tuple[Numbers, list[str]]:
    """Number exact texts in the order in which they come."""
    known = dict[str, int]()
    return _text_ids(_chunks(study, column, "string"), known, str), list(known)


def _whole(study: Study, column: str) -> Numbers:
    """Whole numbers; -1 for null."""
    parts = [chunk.fill_null(-1).to_numpy() for chunk in _chunks(study, column, "int64")]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _seconds(study: Study, column: str) -> Numbers:
    """Number the seconds of a column; null is a value of its own."""
    parts = [chunk.fill_null(-1.0).to_numpy() for chunk in _chunks(study, column, "double")]
    return _numbered(np.concatenate([np.zeros(0), *parts]))


def _kind(text: str) -> int:
    """Bits of a folded option's kind."""
    codes = {issue.code for issue in option_issues(text, _LETTERED)}
    return ABOVE * ("option_about_options" in codes) + UNKNOWN * ("abstention_option" in codes)


def _asked(question: Numbers, offsets: Numbers, option: Numbers) -> Numbers:
    """Number questions with their options in any order: sorted within the item, so that equal sets are equal bytes."""
    owner = np.repeat(np.arange(len(question)), np.diff(offsets))
    ordered = option[np.lexsort((option, owner))].tobytes()
    known = dict[bytes, int]()
    width = option.itemsize
    bounds = (offsets * width).tolist()
    pairs = itertools.pairwise(bounds)
    found = [known.setdefault(ordered[start:end], len(known)) if end - start > width else -1 for start, end in pairs]
    sets = np.array(found, np.int64)
    return np.where(sets >= 0, combined(question, sets), -1)


def _issues(study: Study, bench: Numbers, benches: int) -> tuple[Counter[str], ...]:
    """Count the items with each code, per benchmark."""
    import pyarrow.compute as pc

    found, start = [Counter[str]() for _ in range(benches)], 0
    for chunk in _chunks(study, "issues", "list"):
        owners = np.repeat(
            bench[start : start + len(chunk)], pc.list_value_length(chunk).fill_null(0).to_numpy().astype(np.int64)
        )
        start += len(chunk)
        encoded = pc.list_flatten(chunk).fill_null("").dictionary_encode()
        codes = encoded.dictionary.to_pylist()
        pairs = owners * max(1, len(codes)) + encoded.indices.to_numpy()
        for pair, count in zip(*(part.tolist() for part in np.unique(pairs, return_counts=True)), strict=True):
            found[pair // len(codes)][codes[pair % len(codes)]] += count
    return tuple(found)


def _check_askable(study: Study, pool: PoolArrays) -> None:
    """Refuse an item that the pool calls multiple-choice and that cannot be asked."""
    sizes = pool.sizes
    askable = (sizes >= 2) & (sizes <= MAX_OPTIONS) & (pool.gold >= 0) & (pool.gold < sizes)
    wrong: Sequence[int] = np.flatnonzero(pool.mcq & ~askable).tolist()
    if wrong:
        item_id = study.item_table(["item_id"]).column("item_id")[wrong[0]].as_py()
        raise StudyError(
            f"{study.pool_file}: item {item_id} has format mcq, {sizes[wrong[0]]} options, gold {pool.gold[wrong[0]]}. "
            "Allowed: 2 to 26 options and the index of one. Cure: build the pool again, or set its format to open"
        )
