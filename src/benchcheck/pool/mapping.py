"""One record to one item, as a spec says (protocol 1). Pure, and without a look at other records.

What is wrong with a record stands in its item's issues; an item with a blocking issue is `open`. What only all records
together show is left in `Mapped` for `together.Together`.
"""

import functools
import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from benchcheck.errors import InputError
from benchcheck.pool.fields import fold, has_field, shown, text_of, value_of
from benchcheck.pool.footage import seconds_of, video_of
from benchcheck.pool.gold import MappedGold, map_gold, other_option
from benchcheck.pool.issues import Issue, blocking
from benchcheck.pool.items import Item
from benchcheck.pool.options import Options, column_family, raw_options
from benchcheck.pool.raw import RawOptions, Settled, settled
from benchcheck.pool.reading.readers import Record, stem
from benchcheck.pool.specs import JOINED, Spec
from benchcheck.pool.texts import read_text, shown_value, writable
from benchcheck.pool.wording import text_issues
from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["Mapped", "map_record", "sorted_texts"]

SHUFFLE = "42|options|{}"
"""Seed of the order that options are put in, with the item's id."""

_PLACEHOLDER = re.compile(r"<[^<>]+>")


@dataclass(slots=True)
class Mapped:
    """What one record became. Small: the record is there without its values."""

    record: Record
    item: Item | None = None
    """None when `where` leaves the record out."""
    issues: tuple[Issue, ...] = ()
    present: int = 0
    """Which of the spec's needed fields the record has, a bit each."""
    fields: tuple[str, ...] = ()
    """The record's fields, where it lacks a needed one or its options."""
    has_options: bool = False
    number: str = ""
    """`first`, `last`, `before` or `past`: where among the options a gold lies that was read as a number."""
    identity: int | None = None
    """64 bits of a hash over video, window, question, options and the spec's identity; None without a video."""
    gold_place: int = -1
    """Place of the gold's text among the option texts in their order, folded; -1 without a gold."""


@functools.lru_cache(maxsize=16)
def _needs(spec: Spec) -> tuple[tuple[str, ...], frozenset[str]]:
    """The fields that a spec needs; and those a record has as keys of its own when it has them all."""
    names = tuple(spec.needed_fields())
    return names, frozenset(name for name in names if "." not in name)


@functools.lru_cache(maxsize=64)
def _stems(file: Path, inside: str) -> dict[str, str]:
    """The automatic fields of a file: its stem, that of the archive's member in it, and the folder around that."""
    folder = PurePosixPath(inside).parent.name if inside else file.parent.name
    return {"_file": stem(file.name), "_member": stem(inside or file.name), "_folder": folder}


def map_record(spec: Spec, record: Record, row: int) -> Mapped:
    """Turn one record into an item; `row` counts a benchmark's records from 0, those left out too.

    Raises:
        InputError: the spec declares item ids, and this record has none.
    """
    values = {**_stems(record.file, record.inside), "_row": record.row, "_bench": spec.bench, **record.values}
    mapped = Mapped(Record({}, record.file, record.place, record.row, record.inside))
    if not _count_fields(spec, values, mapped):
        mapped.fields = tuple(record.values)[:30]
    if _fits(spec.where, values):
        _make(spec, values, row, mapped)
    return mapped


def _count_fields(spec: Spec, values: Mapping[str, Any], mapped: Mapped) -> bool:
    """Note which of the needed fields are there, and whether options are; return whether all of this is."""
    names, plain = _needs(spec)
    every = (1 << len(names)) - 1
    if plain <= values.keys() and (len(plain) == len(names) or all(has_field(values, name) for name in names)):
        mapped.present = every
    else:
        mapped.present = sum(has_field(values, name) << bit for bit, name in enumerate(names))
    mapped.has_options = _has_options(spec.options, values)
    return mapped.has_options and mapped.present == every


def _has_options(options: Options, values: Mapping[str, Any]) -> bool:
    """Whether a record has the fields that options are made of."""
    if options.kind == "pair":
        names: tuple[str, ...] = (options.gold_field, *options.others[:1])
    else:
        names = options.fields[:2] or ((options.field,) if options.field else ())
    return all(has_field(values, name) for name in names) or (options.kind == "auto" and bool(column_family(values)))


def _fits(wanted: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether each field has its value, or one of its values; compared as texts, case and white space aside."""
    for expression, allowed in wanted.items() if wanted else ():
        found = fold(text_of(value_of(values, expression)))
        if all(found != fold(text_of(one)) for one in (allowed if isinstance(allowed, list) else [allowed])):
            return False
    return True


def _make(spec: Spec, values: Mapping[str, Any], row: int, mapped: Mapped) -> None:
    """Make the item: question, options, gold, video, window, then what they say together."""
    record, found = mapped.record, list[Issue]()
    item_id = _item_id(spec, values, record, row, found)
    raw, text = _raw(spec, values, found)
    question = writable(text, "question", found)
    if not question.strip():
        found.append(Issue("empty_question", f"{spec.question} is empty"))
    texts = _Texts() if raw is None else _texts(spec, values, raw, item_id, found)
    key, video_id = video_of(spec, values, found)
    start, end, duration = seconds_of(spec, values, found)
    source_id = read_text(values, spec.id, "id", found) or f"{record.file.name}#{record.row}"
    category = read_text(values, spec.category, "category", found)
    subtitles = read_text(values, spec.subtitles, "subtitles", found)
    group = read_text(values, spec.group, "group", found)
    _check_records(spec, values, source_id, found)
    asked, folded = fold(question), [fold(option) for option in texts.options]
    found += text_issues(asked, folded, texts.gold)
    if key and folded:
        _identify((key, start, end, asked, *_extra(spec, values)), folded, texts.gold, mapped)
    codes = tuple(dict.fromkeys([issue.code for issue in found]))
    mapped.issues, mapped.number = tuple(found), texts.number
    mapped.item = Item(
        item_id=item_id,
        bench=spec.bench,
        source_id=source_id,
        question=question,
        options=texts.options,
        gold=texts.gold,
        format="open" if any(map(blocking, codes)) else "mcq",
        video_key=key,
        video_id=video_id,
        start=start,
        end=end,
        category=category,
        duration=duration,
        issues=codes,
        subtitles=subtitles,
        group=group,
        file_gold=texts.file_gold,
    )


def _item_id(spec: Spec, values: Mapping[str, Any], record: Record, row: int, found: list[Issue]) -> str:
    """`{bench}_{row}`, or what the spec declares; that can never be missing."""
    if not spec.item_id:
        return f"{spec.bench}_{row}"
    own = writable(value_of(values, spec.item_id), "item_id", found)
    if not own.strip():
        raise InputError(
            f"{record.where}: no item id: {spec.item_id!r} is empty here. Cure: leave item_id out of the spec"
        )
    return own


def _raw(spec: Spec, values: Mapping[str, Any], found: list[Issue]) -> tuple[RawOptions | None, str]:
    """The raw options, None when there are none to read, and the question that is left when they are cut out of it."""
    text = _question(spec, values, found)
    if spec.options.kind == "none" or not _fits(spec.mcq_where, values):
        reasons = [f"{part} = {shown_value(values, part)}" for part in spec.mcq_where]
        found.append(Issue("open_ended", ", ".join(reasons) or "options.kind = 'none'"))
        return None, text
    if spec.options.kind == "embedded" and spec.options.field == spec.question:
        values = {**values, spec.question: text}  # the question as it is now, filled and without its tail
    try:
        raw = raw_options(spec.options, values, text)
    except ValueError as reason:
        found.append(Issue("unreadable_options", str(reason)))
        return None, text
    asks = spec.options.field in ("", spec.question)
    return raw, raw.question if asks and raw.question is not None else text


def _question(spec: Spec, values: Mapping[str, Any], found: list[Issue]) -> str:
    """The question with its placeholders filled and its tail cut off."""
    text = spec.question_text or text_of(value_of(values, spec.question))
    if spec.question_fill:
        text = _filled(text, value_of(values, spec.question_fill), found)
    if spec.question_tail and (tail := re.search(spec.question_tail, text)):
        text = text[: tail.start()].rstrip()
    return text


def _filled(text: str, value: Any, found: list[Issue]) -> str:
    """A question with its placeholders replaced in order; as it is when there are more or fewer values than those."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [value]
    values = iter(value if isinstance(value, list) else [])
    places, count = len(_PLACEHOLDER.findall(text)), len(value) if isinstance(value, list) else 0
    if places != count:
        found.append(Issue("media_placeholder", f"{places} places and {count} values: {shown(text)}"))
        return text
    return _PLACEHOLDER.sub(lambda _: text_of(next(values)), text)


@dataclass(slots=True)
class _Texts:
    """Options as they are kept and the gold among them; its place in the file, and what `Mapped.number` has."""

    options: tuple[str, ...] = ()
    gold: int | None = None
    file_gold: int | None = None
    number: str = ""


def _texts(spec: Spec, values: Mapping[str, Any], raw: RawOptions, item_id: str, found: list[Issue]) -> _Texts:
    """Options as they are kept, and the gold among them."""
    value = value_of(values, spec.gold.field)
    mapped = map_gold(spec.gold, value, raw)
    kept = settled(raw, mapped.index)
    # Where there are no options, that no option is right says nothing: two wrong golds would drown in MLVU's 418 open
    # questions.
    if mapped.code and (kept.texts or mapped.code == "hidden_gold"):
        found.append(Issue(mapped.code, _gold_detail(value, raw)))
    if codes := (*_size(kept), *kept.codes):
        detail = shown(list(kept.texts)) if kept.texts else _gold_detail(value, raw)
        found += [Issue(code, detail) for code in codes]
    if spec.gold.text and mapped.index is not None:
        text = value_of(values, spec.gold.text)
        other = other_option(text, mapped.index, raw)
        if other is not None:
            detail = f"{spec.gold.field} = {value!r}, but {spec.gold.text} = {shown(text)} is option {other}"
            found.append(Issue("index_text_contradict", detail))
    texts = _Texts(
        tuple([writable(text, "option", found) for text in kept.texts]), kept.gold, None, _number(mapped, raw)
    )
    if spec.options.shuffle and len(texts.options) > 1:
        _shuffle(texts, item_id, found)
    return texts


def _shuffle(texts: _Texts, item_id: str, found: list[Issue]) -> None:
    """Put the options in an order drawn for the item; the gold goes with its text."""
    count = len(texts.options)
    order = random.Random(SHUFFLE.format(item_id)).sample(range(count), count)
    texts.options, texts.file_gold = tuple(texts.options[place] for place in order), texts.gold
    texts.gold = None if texts.gold is None else order.index(texts.gold)
    found.append(Issue("shuffled_options", f"places in the file {order}"))


def _size(kept: Settled) -> tuple[str, ...]:
    """Codes for a number of options that cannot be screened."""
    count = len(kept.texts)
    if 2 <= count <= MAX_OPTIONS:
        return ()
    return ("no_options" if not count else "single_option" if count == 1 else "too_many_options",)


def _number(mapped: MappedGold, raw: RawOptions) -> str:
    """Where a gold that was read as a number lies: at either end of the options, or one step beyond."""
    count = len(raw.values)
    if mapped.number is None or not count:
        return ""
    places = {0: "first", count - 1: "last"} if mapped.code != "gold_out_of_range" else {-1: "before", count: "past"}
    return places.get(mapped.number, "")


def _gold_detail(value: Any, raw: RawOptions) -> str:
    """The gold beside the options, for a message."""
    count = len(raw.values)
    if not count:
        return f"gold {shown(value)}, no options"
    last = f"A to {LETTERS[count - 1]}" if count <= MAX_OPTIONS else str(count)
    return f"gold {shown(value)}, options {last}: {shown(raw.texts)}"


def _check_records(spec: Spec, values: Mapping[str, Any], source_id: str, found: list[Issue]) -> None:
    """Note a record without a partner in the second file, and one that a list of errors names."""
    if spec.join is not None and not values.get(JOINED):
        found.append(Issue("no_join_row", f"{spec.join.on} = {shown_value(values, spec.join.on)}"))
    if source_id in spec.errata:
        found.append(Issue("erratum", f"{source_id}: {spec.errata[source_id]}"))


def _extra(spec: Spec, values: Mapping[str, Any]) -> list[str]:
    """Further fields of the identity."""
    return [text_of(value_of(values, part)) for part in spec.identity] if spec.identity else []


def _identify(asked: tuple[object, ...], folded: list[str], gold: int | None, mapped: Mapped) -> None:
    """Hash what makes the item the same question as another; the order of its options does not matter."""
    texts = sorted(folded)
    data = repr((asked, texts)).encode(errors="backslashreplace")
    mapped.identity = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
    if gold is not None:
        mapped.gold_place = texts.index(folded[gold])


def sorted_texts(options: Sequence[str]) -> list[str]:
    """The option texts, folded, in their order as texts."""
    return sorted(map(fold, options))
