"""Records to items, as a spec says (protocol 1). Pure: data in, data out.

Every record becomes an item. What is wrong with it stands in its issues; an item with a blocking issue is `open`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from benchcheck.errors import InputError
from benchcheck.pool.fields import clean, fold, has_field, lookup, shown, text_of, value_of, words
from benchcheck.pool.gold import MappedGold, map_gold, other_option
from benchcheck.pool.issues import Issue, blocking
from benchcheck.pool.items import Item, VideoRef
from benchcheck.pool.options import COLUMN_FAMILIES, RawOptions, Settled, column_family, raw_options, settled
from benchcheck.pool.readers import Record
from benchcheck.pool.specs import Spec
from benchcheck.pool.times import seconds, window_of
from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["CheckedItem", "checked_items", "hub_video", "items_of"]

WINDOW_SLACK = 1.0
"""Seconds that a window may reach beyond the stated duration: durations are rounded, and clips cut at key frames."""

_HUB_URL = re.compile(
    r"https?://huggingface\.co/(?:datasets/)?([^/?#]+/[^/?#]+)/(?:resolve|blob|raw)/[^/?#]+/([^?#]+).*"
)


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """An item, the record it came from, and its issues with the values that show them."""

    item: Item
    record: Record
    issues: tuple[Issue, ...]


@dataclass(slots=True)
class _Census:
    """What only all records of a benchmark together show."""

    missing: dict[str, str]
    """Fields that no record had so far, each with what it is for."""
    options_seen: bool = False
    numbers: Counter[str] = field(default_factory=Counter)
    """How many golds read as numbers were the first or last option, or one step before or past them."""
    first: dict[bytes, str | None] = field(default_factory=dict)
    """Gold text of the first item with an identity."""
    last: Record | None = None


def items_of(spec: Spec, records: Iterable[Record]) -> Iterator[Item]:
    """Turn records into items, one each, in order.

    Raises:
        InputError: a field that the spec needs is in no record, or the golds count from 1 where the spec says 0.
    """
    return (checked.item for checked in checked_items(spec, records))


def checked_items(spec: Spec, records: Iterable[Record]) -> Iterator[CheckedItem]:
    """Turn records into items, each with its record and its issues in full.

    Raises:
        InputError: as `items_of`, when the records have ended: only all of them show it.
    """
    census = _Census(spec.needed_fields())
    for row, record in enumerate(records):
        values = record.values | {"_file": record.file.stem, "_row": record.row, "_bench": spec.bench}
        _count_fields(census, spec, values)
        census.last = record
        yield _checked(spec, Record(values, record.file, record.place, record.row), row, census)
    if census.last is not None:
        _check_fields(spec, census, census.last)
        _check_base(spec, census, census.last)


def _count_fields(census: _Census, spec: Spec, values: Mapping[str, Any]) -> None:
    """Note which of the needed fields are there."""
    for name in [name for name in census.missing if has_field(values, name)]:
        del census.missing[name]
    if not census.options_seen:
        options = spec.options
        names = options.fields[:2] or (options.field,)
        found = all(has_field(values, name) for name in names)
        census.options_seen = found or (options.kind == "auto" and bool(column_family(values)))


def _check_fields(spec: Spec, census: _Census, last: Record) -> None:
    """Refuse a file of which no record has a field that the spec needs."""
    has = f"Its fields: {', '.join(map(repr, list(last.values)[:30]))}"
    for name, use in census.missing.items():
        cure = f"rename a column to {name!r}, or write a spec that names yours (docs/pool.md)"
        raise InputError(f"{last.file}: no record has {name!r}, which is needed for {use}. {has}. Cure: {cure}")
    if not census.options_seen:
        families = ", ".join(f"{family[0]} {family[1]} …" for family in COLUMN_FAMILIES)
        known = f"{spec.options.field!r}, or columns {families}" if spec.options.kind == "auto" else ""
        names = known or ", ".join(map(repr, spec.options.fields or (spec.options.field,)))
        cure = "give the options, or write a spec that names yours (docs/pool.md)"
        raise InputError(f"{last.file}: no record has options. Allowed: {names}. {has}. Cure: {cure}")


def _check_base(spec: Spec, census: _Census, last: Record) -> None:
    """Refuse golds that count from another number than declared: nearly all of them would be shifted in silence."""
    base, numbers = spec.gold.base, census.numbers
    outside, never = ("past", "first") if base == 0 else ("before", "last")
    if numbers[outside] and not numbers[never]:
        found = f"{spec.gold.field!r} names an option just {outside} the options {numbers[outside]} times"
        raise InputError(
            f"{last.file}: read as counting from {base}, {found}, and never the {never} one: it seems to count from "
            f"{1 - base}. Cure: gold.base = {1 - base} in a spec, or mend those rows"
        )


def _checked(spec: Spec, record: Record, row: int, census: _Census) -> CheckedItem:
    """Turn one record into an item: options, gold, text, video, window, then what they say together."""
    values, found = record.values, list[Issue]()
    question = _text(value_of(values, spec.question), "question", found)
    if not question.strip():
        found.append(Issue("empty_question", f"{spec.question} is empty"))
    options, gold = _options(spec, values, found, census)
    reference = _video(spec, values, found)
    start, end = _window(spec, values, found)
    duration = _duration(spec, values)
    _check_window(start, end, duration, found)
    source_id = _text(value_of(values, spec.id), "id", found) or f"{record.file.name}#{record.row}"
    item_id = _item_id(spec, record, row, found)
    category = _text(_joined(value_of(values, spec.category)), "category", found)
    _check_together(question, options, gold, found)
    if reference is not None and options:
        asked = (reference, start, end, fold(question), sorted(map(fold, options)), _extra(spec, values))
        _check_repeat(asked, None if gold is None else fold(options[gold]), found, census)
    codes = tuple(dict.fromkeys(issue.code for issue in found))
    item = Item(
        item_id=item_id,
        bench=spec.bench,
        source_id=source_id,
        question=question,
        options=options,
        gold=gold,
        format="open" if any(map(blocking, codes)) else "mcq",
        video_key="" if reference is None else reference.key,
        video_id="" if reference is None else reference.video_id,
        start=start,
        end=end,
        category=category,
        duration=duration,
        issues=codes,
    )
    return CheckedItem(item, record, tuple(found))


def _text(value: Any, name: str, found: list[Issue]) -> str:
    """A value as a text that can be written."""
    text, bad = clean(text_of(value))
    if bad:
        found.append(Issue("bad_text", f"{name} {shown(text)}"))
    return text


def _joined(value: Any) -> Any:
    """A list of names as one text."""
    return ", ".join(map(text_of, value)) if isinstance(value, list) else value


def _item_id(spec: Spec, record: Record, row: int, found: list[Issue]) -> str:
    """`{bench}_{row}`, or what the spec declares; that can never be missing."""
    if not spec.item_id:
        return f"{spec.bench}_{row}"
    own = _text(value_of(record.values, spec.item_id), "item_id", found)
    if not own.strip():
        raise InputError(
            f"{record.where}: no item id: {spec.item_id!r} is empty here. Cure: leave item_id out of the spec"
        )
    return own


def _options(
    spec: Spec, values: Mapping[str, Any], found: list[Issue], census: _Census
) -> tuple[tuple[str, ...], int | None]:
    """Options as they are kept, and the gold among them."""
    try:
        raw = raw_options(spec.options, values)
    except ValueError as reason:
        found.append(Issue("unreadable_options", str(reason)))
        return (), None
    value = lookup(values, spec.gold.field) if spec.gold.field else None
    mapped = map_gold(spec.gold, value, raw)
    _count_number(census, mapped, raw)
    kept = settled(raw, mapped.index)
    if mapped.code:
        found.append(Issue(mapped.code, _gold_detail(value, raw)))
    found += [Issue(code, shown(list(kept.texts))) for code in (*_size(kept), *kept.codes)]
    if spec.gold.text and mapped.index is not None:
        text = lookup(values, spec.gold.text)
        other = other_option(text, mapped.index, raw)
        if other is not None:
            detail = f"{spec.gold.field} = {value!r}, but {spec.gold.text} = {shown(text)} is option {other}"
            found.append(Issue("index_text_contradict", detail))
    return tuple(_text(text, "option", found) for text in kept.texts), kept.gold


def _size(kept: Settled) -> tuple[str, ...]:
    """Codes for a number of options that cannot be screened."""
    count = len(kept.texts)
    if 2 <= count <= MAX_OPTIONS:
        return ()
    return ("no_options" if not count else "single_option" if count == 1 else "too_many_options",)


def _count_number(census: _Census, mapped: MappedGold, raw: RawOptions) -> None:
    """Note where a gold that was read as a number lies: at either end of the options, or one step beyond."""
    count = len(raw.values)
    if mapped.number is not None and count:
        outside = mapped.code == "gold_out_of_range"
        places = {"first": 0, "last": count - 1} if not outside else {"before": -1, "past": count}
        census.numbers.update(name for name, number in places.items() if number == mapped.number)


def _gold_detail(value: Any, raw: RawOptions) -> str:
    """The gold beside the options, for a message."""
    count = len(raw.values)
    if not count:
        return f"gold {shown(value)}, no options"
    last = f"A to {LETTERS[count - 1]}" if count <= MAX_OPTIONS else str(count)
    return f"gold {shown(value)}, options {last}: {shown(raw.texts)}"


def hub_video(member: str) -> tuple[str, str] | None:
    """Repository and path of a hub URL (VLM4D), None for everything else."""
    match = _HUB_URL.fullmatch(member)
    return (match.group(1), unquote(match.group(2), errors="replace")) if match else None


def _video(spec: Spec, values: Mapping[str, Any], found: list[Issue]) -> VideoRef | None:
    """The video's reference; None when the record names none."""
    member = _text(value_of(values, spec.video.member), "video", found)
    if not member.strip():
        found.append(Issue("no_video", f"{spec.video.member or 'no field'} is empty"))
        return None
    if hub := hub_video(member):
        return VideoRef(*hub)
    archive = spec.video.zip_path
    zip_path = _text(value_of(values, archive), "zip_path", found) if "{" in archive else archive
    return VideoRef(spec.video.repo or spec.bench, member, zip_path)


def _window(spec: Spec, values: Mapping[str, Any], found: list[Issue]) -> tuple[float | None, float | None]:
    """Start and end in seconds."""
    declared = spec.video.window_fields
    try:
        if spec.video.window:
            start, end = window_of(value_of(values, spec.video.window))
        else:
            start, end = (seconds(value_of(values, part)) for part in (spec.video.start, spec.video.end))
        if end is not None and end <= (start or 0):
            raise ValueError(f"it ends at {end:g} s and starts at {start or 0:g} s")
    except ValueError as reason:
        found.append(Issue("bad_window", str(reason)))
        return None, None
    if declared and start is None and end is None and not all(part.endswith("?") for part in declared):
        found.append(Issue("no_window", f"{', '.join(declared)} is empty"))
    return start, end


def _check_window(start: float | None, end: float | None, duration: float | None, found: list[Issue]) -> None:
    """Note a window beyond the stated duration."""
    if duration is not None and max(start or 0, end or 0) > duration + WINDOW_SLACK:
        found.append(Issue("window_out_of_range", f"{start} to {end} of {duration} s"))


def _duration(spec: Spec, values: Mapping[str, Any]) -> float | None:
    """Seconds of the whole video; None when it is a word such as `short`, as some benchmarks write."""
    try:
        return seconds(value_of(values, spec.duration))
    except ValueError:
        return None


def _check_together(question: str, options: tuple[str, ...], gold: int | None, found: list[Issue]) -> None:
    """Note equal options, and a question that holds the words of the gold alone."""
    folded = [fold(option) for option in options]
    twice = [text for text, count in Counter(folded).items() if count > 1]
    if twice:
        found.append(Issue("duplicate_options", shown(twice[0])))
    if gold is None:
        return
    if folded[gold] in twice:
        found.append(Issue("duplicate_gold", shown(options[gold])))
    if fold(options[gold]) not in fold(question):
        return
    asked = words(question)
    named = [text for text in set(folded) if (phrase := words(text)).strip() and phrase in asked]
    if named == [folded[gold]]:
        found.append(Issue("answer_in_question", shown(options[gold])))


def _extra(spec: Spec, values: Mapping[str, Any]) -> list[str]:
    """Further fields of the identity."""
    return [text_of(value_of(values, part)) for part in spec.identity]


def _check_repeat(identity: tuple[Any, ...], gold: str | None, found: list[Issue], census: _Census) -> None:
    """Note an item that an earlier row asked already, with the same gold or with another."""
    key = hashlib.sha1(repr(identity).encode(errors="backslashreplace"), usedforsecurity=False).digest()
    if key not in census.first:
        census.first[key] = gold
    elif census.first[key] == gold:
        found.append(Issue("repeated_item", f"gold {shown(gold)}"))
    elif gold is not None and census.first[key] is not None:
        found.append(Issue("other_gold", f"gold {shown(gold)}, before {shown(census.first[key])}"))
