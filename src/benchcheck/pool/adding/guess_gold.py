"""Which field of unknown records holds the gold, and how it is to be read. Pure.

A reading is tried with the same function that builds a pool (`map_gold`), on every record of the sample. What fits
equally well in two ways that name different options is a doubt, never a guess.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.adding.guess_names import ID, Doubt, Sample, named, plain
from benchcheck.pool.adding.guess_options import OptionsFound, raw_of
from benchcheck.pool.fields import fold, shown, text_of
from benchcheck.pool.gold import HIDDEN, Gold, map_gold, other_option
from benchcheck.pool.raw import RawOptions

__all__ = ["GoldFound", "find_gold", "gold_given", "gold_named", "is_gold_name"]

NEAR = 0.02
"""Shares of the sample that differ by less are the same: a few wrong rows must not decide between two readings."""
SURE = 0.8
"""Share in which the gold has to be found before a spec is written unasked (real files with many paraphrases: 0.87)."""
_AGREE = 0.5
"""Share of texts that have to equal the gold's option for a field to be the gold's text (OVO-Bench: 0.73)."""
_KINDS = ("index0", "index1", "letter", "text", "auto")
_RIGHT = frozenset({"correct", "right", "true", "yes", "1"})
_WRONG = frozenset({"wrong", "incorrect", "false", "no", "0", ""})
"""What options that are records say of themselves."""
_NAMES = (
    *("answer", "gt", "gold", "correct_answer", "answer_id", "answer_idx", "answer_index", "correct_idx"),
    *("correct_index", "correct_choice", "correct_option", "right_answer", "gt_answer", "ground_truth", "ans"),
    *("answer_letter", "answer_number", "answer_key", "answer_key_position", "answer_choice", "correct"),
)
_WEAK = frozenset({"a", "label", "labels", "target", "key", "option", "choice", "solution"})
"""Names that golds have, and other things too."""
_LIKE = re.compile(
    r"(?:.*_)?(?:answer|answers|anser|ans|gt|gold|correct|right|label|truth|groundtruth|solution|target|key)(?:_.*)?"
    r"|option|choice|correct\w*|a"
)
_NOT = re.compile(
    r"pred|response|model|raw|type|categor|time|interval|count|start|end|expl|reason|difficult|subtitle|video|_path"
)


@dataclass(frozen=True, slots=True)
class GoldFound:
    """One way to read the gold: `value` is how `--map gold=` says it; `places` are the raw options that it names."""

    gold: Gold
    value: str
    share: float
    reason: str
    places: tuple[int | None, ...]
    doubt: Doubt | None = None
    """Why the field is right and the reading is not sure."""

    @property
    def count(self) -> int:
        """Records of which it names an option."""
        return sum(place is not None for place in self.places)


def is_gold_name(name: str) -> bool:
    """Whether a field is called as golds are."""
    whole = plain(name.rpartition(".")[2])
    return _LIKE.fullmatch(whole) is not None and _NOT.search(whole) is None


def find_gold(sample: Sample, options: OptionsFound) -> GoldFound | Doubt:
    """Find the gold among the fields that are called so; its text beside it, where a second field agrees.

    A field that only looks like a gold is named in the doubt, and never taken: predictions look the same.
    """
    if options.options.kind == "pair":
        return GoldFound(Gold(kind="first"), "first", 1.0, "the right one comes first in a pair", ())
    raws = [raw_of(options.options, record) for record in sample.records]
    if options.options.member:
        return _per_choice(sample, options)
    free = _free(sample, options)
    read = [_best(sample, name, raws) for name in free if is_gold_name(name)]
    found = [_by_text(sample, one, raws, free) for one in read if one is not None]
    if not found:
        return _nothing(sample, free, raws)
    return _settle(sample, sorted(found, key=_order), raws, free)


def _free(sample: Sample, options: OptionsFound) -> list[str]:
    """Fields that no option is read from: `answer_choice_1` is called like a gold's text, and is an option."""
    heads = tuple(f"{name}." for name in options.fields)
    return [name for name in sample.names if name not in options.fields and not name.startswith(("_", *heads))]


def _order(found: GoldFound) -> tuple[bool, bool, int]:
    """What fits best comes first, then numbers and letters (a text cannot tell two equal options apart), then names."""
    name = plain(found.gold.field.rpartition(".")[2])
    return -found.share + NEAR > 0, found.gold.kind == "text", _NAMES.index(name) if name in _NAMES else len(_NAMES)


def _settle(
    sample: Sample, found: Sequence[GoldFound], raws: Sequence[RawOptions], free: Sequence[str]
) -> GoldFound | Doubt:
    """Decide between the fields that fit; what disagrees with another of the same kind is asked for."""
    top = max(one.share for one in found)
    near = sorted((one for one in found if one.share >= top - NEAR), key=_order)
    best = near[0]
    for other in near[1:]:
        differ, both = _differ(best, other)
        marks = (best.gold.kind == "text") == (other.gold.kind == "text")
        if differ and (marks or differ > both * (1 - SURE) / 2):
            why = f"{best.gold.field!r} and {other.gold.field!r} fit, and differ in {differ:,} of {both:,} records"
            why += _example((best, other), raws)
            return Doubt("gold", why, (best.value, other.value))
    if best.doubt:
        return best.doubt
    if plain(best.gold.field) in _WEAK:
        unsure = next((one.doubt for one in near if one.doubt), None) or _rivals(sample, best, raws, free)
        if unsure:
            return unsure
    if best.share < SURE:
        why = f"{best.gold.field!r} names an option in only {best.share:.0%} of the records that have options"
        return Doubt("gold", why, tuple(one.value for one in found[:4]))
    return _with_text(sample, best, raws, free)


def _rivals(sample: Sample, best: GoldFound, raws: Sequence[RawOptions], free: Sequence[str]) -> Doubt | None:
    """A `label` can be a class of something else: ask when a field of another name fits as well and differs."""
    ids = {name for _, name in named(free, ID)}
    names = [name for name in free if not (is_gold_name(name) or name in ids or _NOT.search(plain(name)))]
    read = [_best(sample, name, raws) for name in names]
    rivals = [one for one in read if one and one.share >= best.share - NEAR and _differ(best, one)[0]]
    if not rivals:
        return None
    why = f"{best.gold.field!r} may be a label of something else: {rivals[0].gold.field!r} fits as well and differs"
    return Doubt("gold", why, (best.value, *(one.value for one in rivals[:3])))


def _differ(one: GoldFound, other: GoldFound) -> tuple[int, int]:
    """In how many records two readings name different options, of how many where both name one."""
    both = [(a, b) for a, b in zip(one.places, other.places, strict=True) if a is not None and b is not None]
    return sum(a != b for a, b in both), len(both)


def _places(sample: Sample, gold: Gold, raws: Sequence[RawOptions]) -> tuple[int | None, ...]:
    values = sample.column(gold.field)
    return tuple(map_gold(gold, value, raw).index for value, raw in zip(values, raws, strict=True))


def _asked(values: Sequence[Any], raws: Sequence[RawOptions]) -> int:
    """Records with options whose gold is not hidden."""
    given = [fold(text_of(value)) not in HIDDEN for value in values]
    return sum(seen and len(raw.kept) > 1 for seen, raw in zip(given, raws, strict=True))


def _reading(sample: Sample, name: str, kind: str, raws: Sequence[RawOptions]) -> GoldFound:
    """Try one kind on one field."""
    gold = Gold(kind=kind.rstrip("01"), field=name, base=int(kind == "index1"))
    places = _places(sample, gold, raws)
    asked = _asked(sample.column(name), raws)
    share = sum(place is not None for place in places) / asked if asked else 0.0
    return GoldFound(gold, f"{name}:{kind}", share, "", places)


def _best(sample: Sample, name: str, raws: Sequence[RawOptions]) -> GoldFound | None:
    """The way to read a field that fits best; with a doubt when two fit and name different options."""
    if any(isinstance(value, list | dict) for value in sample.filled(name)):
        return None
    readings = [*_indices(sample, name, raws), *(_reading(sample, name, kind, raws) for kind in ("letter", "text"))]
    best = max(readings, key=lambda one: one.share)
    if not best.share:
        return None
    mixed = _reading(sample, name, "auto", raws)
    if mixed.share > best.share + NEAR and not any(one.share for one in readings if one.gold.kind == "index"):
        parts = ", ".join(f"{one.count:,} as {one.gold.kind}" for one in readings if one.count)
        return dataclasses.replace(mixed, reason=f"read in two ways: {parts}")
    rivals = [one for one in readings if one.share >= best.share - NEAR and _differ(best, one)[0]]
    if rivals or best.doubt:
        best = dataclasses.replace(best, doubt=_rivalry(name, (best, *rivals), raws))
    return dataclasses.replace(best, reason=_why(sample, best, raws))


def _rivalry(name: str, readings: Sequence[GoldFound], raws: Sequence[RawOptions]) -> Doubt | None:
    """Why a field can be read in more than one way; between two bases the reason is already known."""
    if readings[0].doubt and all(one.gold.kind == "index" for one in readings):
        return readings[0].doubt
    values = tuple(dict.fromkeys(one.value for one in readings))
    return Doubt("gold", f"{name!r} can be read in more than one way{_example(readings, raws)}", values)


def _example(readings: Sequence[GoldFound], raws: Sequence[RawOptions]) -> str:
    """The first record in which readings name different options, and which each names."""
    for number, (raw, *places) in enumerate(zip(raws, *(one.places for one in readings), strict=True), 1):
        named_there = [place for place in places if place is not None]
        if len(set(named_there)) > 1:
            said = {
                one.value: raw.texts[place] for one, place in zip(readings, places, strict=True) if place is not None
            }
            return f" (record {number}: {', '.join(f'{value} is {shown(text)}' for value, text in said.items())})"
    return ""


def _indices(sample: Sample, name: str, raws: Sequence[RawOptions]) -> list[GoldFound]:
    """A field as a number: from 0 when 0 is seen, from 1 when the last one is; when neither or both, with a doubt."""
    zero, one = (_reading(sample, name, kind, raws) for kind in ("index0", "index1"))
    first, past = _ends(sample, name, raws)
    if first and not past:
        return [zero]
    if past and not first:
        return [one]
    if not zero.count and not one.count:
        return []
    seen = "both 0 and the number of the options occur" if first else "neither 0 nor the number of the options occurs"
    why = f"{name!r} is a number and {seen}: it may count from 0 or from 1{_example((zero, one), raws)}"
    doubt = Doubt("gold", why, (zero.value, one.value))
    return [dataclasses.replace(reading, doubt=doubt) for reading in (zero, one)]


def _ends(sample: Sample, name: str, raws: Sequence[RawOptions]) -> tuple[int, int]:
    """How many golds are 0, and how many are one past the last option when counted from 0.

    Where a filler stands last, the number of the options can be its place just as well, and says nothing.
    """
    numbers = [
        (map_gold(Gold(kind="index", field=name), value, raw).number, raw)
        for value, raw in zip(sample.column(name), raws, strict=True)
        if len(raw.kept) > 1
    ]
    past = [number for number, raw in numbers if number == len(raw.values) == raw.kept[-1] + 1]
    return sum(number == 0 for number, _ in numbers), len(past)


def _why(sample: Sample, found: GoldFound, raws: Sequence[RawOptions]) -> str:
    """What the values are, and how often they name an option."""
    values = {text_of(value).strip() for value in sample.filled(found.gold.field)}
    few = sorted(value for value in values if fold(value) not in HIDDEN) if len(values) <= 30 else []
    span = f" {few[0]} to {few[-1]}" if found.gold.kind != "text" and len(few) > 1 else ""
    what = {
        "letter": f"letters{span}",
        "text": "texts equal to an option",
        "index": f"numbers{span}, counted from {found.gold.base}",
    }[found.gold.kind]
    return f"{what}; name an option in {found.count:,} of {_asked(sample.column(found.gold.field), raws):,}"


def _texts(
    sample: Sample, found: GoldFound, raws: Sequence[RawOptions], free: Sequence[str]
) -> Iterator[tuple[str, int, int]]:
    """Fields with texts, how many equal the option that the gold names, and how many equal another one."""
    for name in free:
        if name == found.gold.field or not is_gold_name(name):
            continue
        same = other = 0
        for value, place, raw in zip(sample.column(name), found.places, raws, strict=True):
            if isinstance(value, str) and place is not None:
                text = map_gold(Gold(kind="text", field=name), value, raw)
                differs = other_option(value, place, raw) is not None
                same += (text.index is not None or text.code == "gold_matches_two_options") and not differs
                other += differs
        yield name, same, other


def _by_text(sample: Sample, found: GoldFound, raws: Sequence[RawOptions], free: Sequence[str]) -> GoldFound:
    """Settle from where a number counts by a field with the gold's text, where there is one."""
    if found.doubt is None or found.gold.kind != "index":
        return found
    settled = []
    for base in (0, 1):
        one = _reading(sample, found.gold.field, f"index{base}", raws)
        best = max(_texts(sample, one, raws, free), key=lambda text: text[1], default=("", 0, 0))
        settled.append((best[1], best[0], one))
    (few, _, _), (many, name, one) = sorted(settled, key=lambda entry: entry[0])
    if many < _AGREE * one.count or few > NEAR * many:
        return found
    why = f"{_why(sample, one, raws)}; {name!r} says so in {many:,}"
    return dataclasses.replace(one, reason=why)


def _with_text(sample: Sample, found: GoldFound, raws: Sequence[RawOptions], free: Sequence[str]) -> GoldFound:
    """Add the field that holds the gold's text beside its index or letter."""
    if found.gold.kind == "text":
        return found
    for name, same, other in sorted(_texts(sample, found, raws, free), key=lambda text: -text[1]):
        if same >= _AGREE * found.count and same > other:
            contradict = f", another one in {other:,}" if other else ""
            reason = f"{found.reason}; {name!r} is the same option's text in {same:,}{contradict}"
            return dataclasses.replace(found, gold=dataclasses.replace(found.gold, text=name), reason=reason)
    return found


def _per_choice(sample: Sample, options: OptionsFound) -> GoldFound | Doubt:
    """Options that are records: the field of theirs that says which is right."""
    name, member = options.options.field, options.options.member
    parts = [part for choices in sample.filled(name) for part in choices if isinstance(part, dict)]
    keys = {key: None for part in parts for key in part if key != member}
    flags = [key for key in keys if {fold(text_of(part.get(key))) for part in parts} <= _RIGHT | _WRONG]
    flags = [key for key in flags if is_gold_name(key)] or flags
    if len(flags) != 1:
        why = f"{' and '.join(map(repr, flags)) or 'nothing'} in the options of {name!r} says which is right"
        return Doubt("gold", why, tuple(f"{key}:per_choice" for key in flags))
    said = [text_of(part[flags[0]]) for part in parts if fold(text_of(part.get(flags[0]))) in _RIGHT]
    gold = Gold(kind="per_choice", field=flags[0], right=said[0]) if said else Gold(kind="per_choice", field=flags[0])
    return GoldFound(gold, f"{flags[0]}:per_choice", 1.0, f"{flags[0]!r} of an option is {gold.right!r}", ())


def _nothing(sample: Sample, names: Sequence[str], raws: Sequence[RawOptions]) -> Doubt:
    """No field is called as golds are: name those that could be one by their values, and hidden golds."""
    hidden = [name for name in names if is_gold_name(name) and not _asked(sample.column(name), raws)]
    if hidden:
        why = f"{hidden[0]!r} is empty or -1 in every record: a hidden test set, which is never screened"
        return Doubt("gold", why, ("none",))
    read = [_best(sample, name, raws) for name in names if not is_gold_name(name)]
    could = [one for one in read if one is not None and one.share >= 1 - NEAR]
    marks = [one.value for one in could if one.gold.kind != "index" or len(set(one.places)) > 1]
    why = "no field that is called like a gold names an option"
    return Doubt("gold", f"{why}; by its values it could be one of these" if marks else why, tuple(marks[:4]))


def gold_named(value: str) -> Gold | None:
    """Return the gold that a value of `--map` names with its kind, None where the kind is to be found in the data."""
    if value in ("first", "last", "none"):
        return Gold(kind=value)
    name, _, kind = value.rpartition(":")
    if name and kind in (*_KINDS, "per_choice"):
        return Gold(kind=kind.rstrip("01"), field=name, base=int(kind == "index1"))
    return None


def gold_given(sample: Sample, value: str, options: OptionsFound) -> GoldFound | Doubt:
    """Return the gold that a user names: `answer`, `answer:index1`, `:letter`, `:text`, or `first`, `last`, `none`."""
    said = gold_named(value)
    if said is not None and said.kind in ("first", "last", "none", "per_choice"):
        return GoldFound(said, value, 1.0, "as you say", ())
    name, _, kind = value.rpartition(":")
    raws, free = [raw_of(options.options, record) for record in sample.records], _free(sample, options)
    if name and kind == "index":
        readings = _indices(sample, name, raws)
        best = _by_text(sample, readings[0], raws, free) if readings else _reading(sample, name, "index0", raws)
        return best.doubt or dataclasses.replace(best, reason="a number, as you say")
    if said is not None:
        found = _reading(sample, name, kind, raws)
        reason = f"as you say; names an option in {found.count:,} of {_asked(sample.column(name), raws):,}"
        return _with_text(sample, dataclasses.replace(found, reason=reason), raws, free)
    best_read = _best(sample, value, raws)
    if best_read is None:
        return Doubt("gold", f"{value!r} names an option in no record", tuple(f"{value}:{one}" for one in _KINDS[:4]))
    settled = _by_text(sample, best_read, raws, free)
    return settled.doubt or _with_text(sample, settled, raws, free)
