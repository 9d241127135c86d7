"""Where unknown records keep their options: every way that fits, the most telling first. Pure."""

import fnmatch
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.adding.guess_names import Sample, named, plain
from benchcheck.pool.fields import fold, lookup, text_of
from benchcheck.pool.options import Options, raw_options
from benchcheck.pool.raw import RawOptions

__all__ = ["UNNAMED", "OptionsFound", "columns_of", "option_candidates", "options_given", "raw_of"]

NAMES = (
    *("options", "choices", "candidates", "option", "choice", "candidate", "answer_choices", "answer_options"),
    *("mc_options", "mcq_options", "multiple_choices", "multiple_choice", "answers", "mcq_test", "events"),
)
PREFIXES = frozenset(
    {
        *("", "a", "ans", "answer", "answers", "option", "options", "opt", "choice", "choices", "candidate", "c", "o"),
        *("answer_choice", "answer_choices", "answer_option", "mc_option", "candidates"),
    }
)
"""What option columns are called before their number or letter."""
WRONG = re.compile(r"(?:w|wrong|incorrect|distractor|foil|negative|counterfactual|false)s?(?:_\w+)?")
"""Columns of wrong answers alone: the right one stands in a column of its own."""
_RIGHT = ("correct_answer", "right_answer", "correct", "answer", "caption", "positive", "gold", "gt", "true_caption")
_OTHER = frozenset(
    {
        *("video", "vid", "frame", "frames", "image", "img", "time", "start", "end", "q", "question", "id", "clip"),
        *("timestamp", "level", "step", "l", "t", "s", "e", "x", "y", "i", "v", "turn"),
    }
)
_PLACED = re.compile(r"(.*?)([ _.-]?)(\d{1,2}|[A-Za-z])")
UNNAMED = 3
_YES_NO = (("yes", "no"), ("true", "false"))


@dataclass(frozen=True, slots=True)
class OptionsFound:
    """One way to read the options. `value` is how `--map options=` says it; `tier` 0 is the surest."""

    options: Options
    value: str
    tier: int
    count: int
    """Records with two options or more."""
    reason: str
    fields: tuple[str, ...]
    """Fields of the records that it reads."""


def raw_of(options: Options, record: Mapping[str, Any]) -> RawOptions:
    """Read a record's options; none where they cannot be read."""
    try:
        return raw_options(options, record)
    except ValueError:
        return RawOptions()


def option_candidates(sample: Sample, question: str) -> list[OptionsFound]:
    """Return every way to read options that works in half of the records that have any, the surest first.

    Tier 0 is a list, dict or family of columns that is named so; 1 wrong answers beside a right one; 2 options in the
    question's own text; `UNNAMED` the same as 0 under another name (LVBench has a list of kinds beside options in the
    question); 4 yes and no. Only the best tier is returned.
    """
    found = [*_lists(sample, question), *_columns(sample), *_pairs(sample), *_embedded(sample, question)]
    found += [] if found else _constant(sample)
    found = [one for one in found if one.count and 2 * one.count >= _most(found)]
    best = min((one.tier for one in found), default=0)
    return _one_of_equals(sample, [one for one in found if one.tier == best])


def _most(found: Sequence[OptionsFound]) -> int:
    return max(one.count for one in found)


def _one_of_equals(sample: Sample, found: Sequence[OptionsFound]) -> list[OptionsFound]:
    """Keep the first of those that give the same options."""
    kept: dict[str, OptionsFound] = {}
    for one in found:
        raws = [raw_of(one.options, record) for record in sample.records]
        kept.setdefault(repr([[raw.texts[place] for place in raw.kept] for raw in raws]), one)
    return list(kept.values())


def _counted(sample: Sample, options: Options, value: str, tier: int, what: str) -> OptionsFound:
    """A candidate with its count and the numbers of options."""
    sizes = Counter(len(raw_of(options, record).kept) for record in sample.records)
    count = sum(times for size, times in sizes.items() if size > 1)
    several = sorted(size for size in sizes if size > 1)
    span = f"{several[0]} to {several[-1]}" if len(several) > 1 else str(several[0]) if several else "no"
    fields = (options.field, *options.fields, options.gold_field, *options.others)
    reason = f"{what}: {span} options in {sample.share(count)}"
    return OptionsFound(options, value, tier, count, reason, tuple(name for name in fields if name))


def _lists(sample: Sample, question: str) -> Iterator[OptionsFound]:
    """Fields that hold a list, a dict, or a text of one."""
    known = {name for _, name in named(sample.names, NAMES)}
    for name in sample.names:
        tier = 0 if name in known else UNNAMED
        if name == question or not (value := _typical(sample, name)):
            continue
        if isinstance(value, Mapping) and _are_places([str(key) for key in value]):
            yield _counted(sample, Options(kind="dict", field=name), name, tier, "a dict")
        elif isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
            yield from _members(sample, name, value, tier)
        elif isinstance(value, list) and _are_options(value, tier):
            what = "a list" if isinstance(sample.filled(name)[0], list) else "a text that holds a list"
            yield _counted(sample, Options(kind="list", field=name), name, tier, what)
        elif isinstance(value, str) and tier == 0:
            embedded = _counted(sample, Options(kind="embedded", field=name), f"embedded:{name}", 0, "lettered lines")
            yield from [embedded] if embedded.count else []


def _typical(sample: Sample, name: str) -> Any:
    """The first value of a field that says what it holds; a text that holds a list is that list."""
    values = sample.filled(name)[:50]
    for value in values:
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            raw = raw_of(Options(kind="auto", field=name), {name: value})
            held = dict(zip(raw.labels, raw.values, strict=True)) if raw.labels else list(raw.values)
            if held:
                return held
    return values[0] if values and isinstance(values[0], list | Mapping | str) else None


def _are_places(labels: Sequence[str]) -> bool:
    """Whether a dict's keys are letters or numbers of options: `A`, `option 0`, `1`."""
    if len(labels) < 2:
        return False
    letters = all(len(label) == 1 and label.isalpha() for label in labels)
    parts = [re.fullmatch(r"(\D*)\d{1,2}", label) for label in labels]
    prefixes = {match.group(1) for match in parts if match}
    return letters or (all(parts) and len(prefixes) == 1 and plain(prefixes.pop()) in PREFIXES)


def _are_options(value: Sequence[Any], tier: int) -> bool:
    """Whether a list can be options: texts; numbers only where the field is named so (`position` is no option)."""
    return all(isinstance(part, str) or (tier == 0 and not isinstance(part, dict)) for part in value)


def _members(sample: Sample, name: str, value: Sequence[Mapping[str, Any]], tier: int) -> Iterator[OptionsFound]:
    """A list of records (CLEVRER's `{"choice": …, "answer": "correct"}`): the field that is the text."""
    texts = [key for key in value[0] if all(isinstance(part.get(key), str) for part in value)]
    for key in sorted(texts, key=lambda key: -len({part[key] for part in value}))[:1]:
        options = Options(kind="list", field=name, member=key)
        yield _counted(sample, options, f"{name}:{key}", tier, f"a list of records with {key!r}")


def families(names: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Return families of columns, each with what stands before the number or letter: from 0, from 1 or from A on."""
    groups: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        if placed_name := _place(name):
            head, kind, place = placed_name
            groups.setdefault((head, kind), {})[place] = name
    found = []
    for (head, kind), members in groups.items():
        first = 1 if kind == "number" and 0 not in members else 0
        run = [members[place] for place in itertools.takewhile(members.__contains__, itertools.count(first))]
        if len(run) > 1:
            found.append((plain(head), tuple(run)))
    return found


def _place(name: str) -> tuple[str, str, int] | None:
    """What stands before a column's number or letter, whether it is `number`, `upper` or `lower`, and its place."""
    match = _PLACED.fullmatch(name)
    if match is None:
        return None
    head, gap, tail = match.groups()
    if tail.isdecimal():
        return head + gap, "number", int(tail)
    if head and not gap and not (tail.isupper() and head[-1].islower()):  # `optionA` is one, `video` and `ID` are none
        return None
    return head + gap, "upper" if tail.isupper() else "lower", ord(tail.upper()) - ord("A")


def _columns(sample: Sample) -> Iterator[OptionsFound]:
    """Families of columns with a text or number each."""
    for head, names in families(sample.names):
        values = [value for name in names for value in sample.filled(name)[:50]]
        if head in _OTHER or WRONG.fullmatch(head) or any(isinstance(value, list | Mapping) for value in values):
            continue
        tier = 0 if head.rpartition("_")[2] in PREFIXES or head in PREFIXES else UNNAMED
        options = Options(kind="columns", fields=names)
        yield _counted(sample, options, ",".join(names), tier, f"columns {names[0]} to {names[-1]}")


def _pairs(sample: Sample) -> Iterator[OptionsFound]:
    """A right text beside wrong ones, which are columns, one text, or a list of texts."""
    runs = [names for head, names in families(sample.names) if WRONG.fullmatch(head)]
    others = [*runs, *((name,) for name in sample.names if WRONG.fullmatch(plain(name)) and name not in sum(runs, ()))]
    rights = [name for _, name in named(sample.names, _RIGHT) if name not in sum(others, ())]
    for wrong in others:
        for right in rights[:1]:
            options = Options(kind="pair", gold_field=right, others=wrong)
            value = f"pair:{right},{','.join(wrong)}"
            yield _counted(sample, options, value, 1, f"{right!r} is the right one, {', '.join(wrong)} wrong ones")


def _embedded(sample: Sample, question: str) -> Iterator[OptionsFound]:
    """Lettered options inside the question."""
    if question:
        found = _counted(sample, Options(kind="embedded", field=question), "embedded", 2, f"inside {question!r}")
        yield from [found] if 2 * found.count >= len(sample.records) else []


def _constant(sample: Sample) -> Iterator[OptionsFound]:
    """Yes and no, where some field holds nothing else."""
    for _, name in named(sample.names, _RIGHT):
        said = {fold(text_of(value)).rstrip(".") for value in sample.filled(name)}
        for values in _YES_NO:
            if said and said <= set(values):
                options = Options(kind="const", values=values)
                what = f"{name!r} says nothing but {' and '.join(sorted(said, reverse=True))}"
                yield _counted(sample, options, f"const:{','.join(values)}", 4, what)
                return


def columns_of(sample: Sample, value: str) -> tuple[str, ...]:
    """Return the columns that `a,b,c` or `opt_*` names; a pattern's in the order of their numbers or letters."""
    if "*" in value or "," not in value:
        matches = [name for name in sample.names if fnmatch.fnmatchcase(name, value)]
        return tuple(sorted(matches, key=_by_number))
    return tuple(part.strip() for part in value.split(","))


def _by_number(name: str) -> tuple[tuple[int, int, str], ...]:
    """Order of names in which `opt_2` comes before `opt_10`."""
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.split(r"(\d+)", name))


def options_given(sample: Sample, value: str) -> OptionsFound:
    """Return the options that a user names: a field, columns, or `embedded:f`, `const:yes,no`, `pair:right,wrong`.

    Raises:
        ValueError: a kind without what it needs.
    """
    kind, colon, rest = value.partition(":")
    parts = tuple(part.strip() for part in rest.split(",") if part.strip())
    if kind in ("none", "embedded"):
        options = Options(kind=kind, field=rest)
    elif colon and kind == "const":
        options = Options(kind="const", values=parts)
    elif colon and kind == "pair":
        options = Options(kind="pair", gold_field=parts[0] if parts else "", others=parts[1:])
    elif "," in value or "*" in value:
        options = Options(kind="columns", fields=columns_of(sample, value))
    else:
        options = _of_field(sample, kind, rest)
    return _counted(sample, options, value, 0, "as you say")


def _of_field(sample: Sample, name: str, member: str) -> Options:
    """Options of one field that a user names: what kind it is shows in its values."""
    typical = _typical(sample, name)
    values = [lookup(record, name) for record in sample.records]
    if isinstance(typical, str) and not member and any(isinstance(value, str) for value in values):
        return Options(kind="embedded", field=name)
    return Options(kind="dict" if isinstance(typical, Mapping) else "list", field=name, member=member)
