"""A spec for records that nobody described: what each field is, why, and what cannot be told. Pure.

Names propose and contents decide: a mapping is taken when it works on the records, with the code that builds pools.
Where two fit equally well, both are named and the user is asked; the gold is never picked by luck.
"""

import dataclasses
import difflib
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.config import toml_value
from benchcheck.errors import SpecError
from benchcheck.pool.adding.guess_gold import SURE, GoldFound, find_gold, gold_given
from benchcheck.pool.adding.guess_names import (
    Doubt,
    Found,
    Sample,
    find_named,
    find_question,
    leak_fields,
    prompt_tail,
    unused_times,
)
from benchcheck.pool.adding.guess_options import (
    UNNAMED,
    OptionsFound,
    columns_of,
    option_candidates,
    options_given,
    raw_of,
)
from benchcheck.pool.fields import named, shown, text_of
from benchcheck.pool.gold import Gold
from benchcheck.pool.leaks import LEAKS
from benchcheck.pool.options import Options
from benchcheck.pool.reading.nesting import check_step

__all__ = ["KEYS", "Guess", "given_mapping", "guess", "put_fields", "put_gold"]

KEYS = {
    "question": "the question, a field or template",
    "question_text": "the question of every record, where none has one",
    "options": "a field, columns a,b,c or opt_*, embedded, const:yes,no, pair:right,wrong",
    "gold": "a field, with :index0, :index1, :letter or :text to force its kind; first, last or none",
    "gold_text": "a second field, with the gold's text",
    "video": "the video, a field or template",
    "id": "the benchmark's own id",
    "category": "a kind of question",
    "start": "seconds from which the video is meant",
    "end": "seconds to which it is meant",
    "window": "both in one field",
    "duration": "seconds of the whole video",
    "subtitles": "path of a subtitle file",
    "group": "what items of one family share",
    "unnest": "steps to the records, such as flatten,each:questions",
}
"""What `--map` can name."""
PAIR_QUESTION = "Which of these descriptions fits the video?"
_FIELDS = (
    "question",
    "video",
    "id",
    "category",
    "start",
    "end",
    "window",
    "duration",
    "subtitles",
    "group",
    "gold_text",
)
_OPTIONAL = ("category", "start", "end", "window", "duration", "subtitles", "group")
_VLMEVALKIT = frozenset({"index", "video", "question", "answer"})
_TIMES = frozenset({"start", "end", "window"})
_PLACES = {"video": "video.member", **{key: f"video.{key}" for key in sorted(_TIMES)}}
_SPLIT_NAMES = ("split", "subset", "partition", "fold")
_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})
_OPEN = ("open", "free", "mc", "choice")
"""Parts of the words that formats are called by: `multiple-choice`, `mcqa`, `open-ended`."""


@dataclass(slots=True)
class Guess:
    """A spec as its TOML table, with a reason for each of its keys (`gold.field`), and what is still open."""

    table: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, key: str, value: Any, reason: str = "") -> None:
        """Set a key of the table (`gold.field`) and say why."""
        head, _, last = key.rpartition(".")
        (self.table.setdefault(head, {}) if head else self.table)[last] = value
        if reason:
            self.reasons[key] = reason


def given_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """Read what `--map` gives: `key=value`, each key once.

    Raises:
        SpecError: one line with the keys there are.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in KEYS:
            close = difflib.get_close_matches(key, KEYS, 1)
            hint = f" Did you mean {close[0]!r}?" if close and equals else ""
            allowed = ", ".join(KEYS)
            raise SpecError(f"--map {pair}: not KEY=VALUE with a known key.{hint} Allowed keys: {allowed}")
        if key in found:
            raise SpecError(f"--map {key} is given twice: {found[key]!r} and {value!r}. Cure: leave one of them out")
        _check_value(key, value)
        found[key] = value
    if "question" in found and "question_text" in found:
        raise SpecError("--map question and question_text: one of the two. Cure: leave one of them out")
    return found


def _check_value(key: str, value: str) -> None:
    """Refuse a value that nothing can be read by.

    Raises:
        SpecError: it is empty, or no step or expression of a spec.
    """
    if not value and key in ("question", "question_text", "options", "gold"):
        raise SpecError(f"--map {key}=: no value. Allowed: {KEYS[key]}")
    try:
        if key == "unnest":
            for step in filter(None, map(str.strip, value.split(","))):
                check_step(step)
        elif key == "gold" or key in _FIELDS:
            named(value)
    except ValueError as reason:
        raise SpecError(f"--map {key}={value}: {reason}") from None


def guess(sample: Sample, given: Mapping[str, str], bench: str, unnest: Sequence[Found] = ()) -> Guess:
    """Guess a spec from a sample; what is given is taken as it stands.

    Raises:
        SpecError: what is given names a field that no record has; one line with close ones and those there are.
    """
    check_given(sample, given)
    made = Guess()
    made.put("bench", bench)
    if unnest:
        made.put("unnest", [step.value for step in unnest], "; ".join(dict.fromkeys(step.reason for step in unnest)))
    if {*sample.names} >= _VLMEVALKIT and {"candidates", "A"} & {*sample.names}:
        made.notes.append("these are the columns of a VLMEvalKit table: prefix and suffix belong to the video's path")
    if sample.unspeakable:
        names = ", ".join(map(shown, sample.unspeakable[:5]))
        made.notes.append(f"no spec can name {names}: not with `|`, a brace or a last `?`. Cure: rename what you need")
    question = _question(made, sample, given)
    options = _options(made, sample, given, question)
    gold = _gold(made, sample, given, options) if options else None
    used = [question, *(options.fields if options else ()), *([gold.gold.field, gold.gold.text] if gold else ())]
    _rest(made, sample, given, [name for name in used if name])
    if options:
        _formats(made, sample, options, [name for name in used if name])
    return made


def check_given(sample: Sample, given: Mapping[str, str]) -> None:
    """Refuse a field that no record has.

    Raises:
        SpecError: one line with close ones and those there are.
    """
    for key, value in given.items():
        for name in _named_by(sample, key, value):
            if not sample.has(name):
                close = difflib.get_close_matches(name, sample.names, 3)
                hint = f" Close: {', '.join(close)}." if close else ""
                fields = ", ".join(sample.names[:40])
                raise SpecError(f"--map {key}={value}: no record has {name!r}.{hint} Its fields: {fields}")


def _named_by(sample: Sample, key: str, value: str) -> list[str]:
    """Fields that a `--map` needs."""
    if key == "gold":
        head, _, kind = value.rpartition(":")
        alone = value in ("first", "last", "none") or kind == "per_choice"
        return [] if alone else named(head if head and not sample.has(value) else value)
    if key == "options":
        head, colon, rest = value.partition(":")
        if head in ("const", "none", "embedded", "pair"):
            return [] if head in ("const", "none") else [part.strip() for part in rest.split(",") if part]
        if "*" in value:
            return list(columns_of(sample, value)) or [value]
        return value.split(",") if "," in value else [head if colon else value]
    return [name.rstrip("?") for name in named(value)] if key in _FIELDS else []


def _question(made: Guess, sample: Sample, given: Mapping[str, str]) -> str:
    """Put the question in; returns its field."""
    if "question_text" in given:
        made.put("question_text", given["question_text"], "as you say")
        return ""
    if "question" in given:
        filled = len(sample.filled(given["question"]))
        made.put("question", given["question"], f"as you say; filled in {sample.share(filled)}")
        return given["question"]
    found = find_question(sample)
    if isinstance(found, Found):
        made.put("question", found.value, found.reason)
        if tail := prompt_tail(sample, found.value):
            made.put("question_tail", re.escape(tail), "every question ends so: an order to a model, not the question")
        return found.value
    if found is not None:
        made.doubts.append(found)
    return ""


def _options(made: Guess, sample: Sample, given: Mapping[str, str], question: str) -> OptionsFound | None:
    """Put the options in, when there is one way to read them."""
    if "options" in given:
        try:
            chosen = options_given(sample, given["options"])
        except ValueError as reason:
            raise SpecError(f"--map options={given['options']}: {reason}") from None
    else:
        found = option_candidates(sample, question)
        if len(found) > 1 and "gold" not in given:
            found = [one for one in found if _fits(find_gold(sample, one))] or found
        if len(found) != 1:
            names = " and ".join(repr(one.value) for one in found)
            why = f"{names} could be the options" if found else _no_options(sample)
            made.doubts.append(Doubt("options", why, tuple(one.value for one in found)))
            return None
        chosen = found[0]
        if chosen.tier == UNNAMED and not _by_text(sample, chosen, given):
            why = f"{chosen.value!r} is not called like options and holds texts: only you know"
            made.doubts.append(Doubt("options", why, (chosen.value,)))
            return None
    put_fields(made, "options", chosen.options, chosen.reason)
    if "question" not in made.table and "question_text" not in made.table and not made.doubts:
        _asked_of_all(made, chosen)
    return chosen


def _no_options(sample: Sample) -> str:
    """What is said of a file without options (ReXTime keeps them in another file)."""
    fields = ", ".join(sample.names[:40])
    return f"no field holds options, and no question has lettered ones in it. Its fields: {fields}"


def _by_text(sample: Sample, chosen: OptionsFound, given: Mapping[str, str]) -> bool:
    """Whether the gold's own words stand among options that no name tells; a letter fits any list that is as long."""
    found = gold_given(sample, given["gold"], chosen) if "gold" in given else find_gold(sample, chosen)
    return isinstance(found, GoldFound) and (found.gold.kind in ("text", "per_choice") or bool(found.gold.text))


def _fits(found: GoldFound | Doubt) -> bool:
    return isinstance(found, GoldFound) and found.share >= SURE


def _asked_of_all(made: Guess, chosen: OptionsFound) -> None:
    """No record has a question: captions ask which of them fits; anything else is asked for."""
    if chosen.options.kind == "pair":
        reason = "no record has a question: a right and wrong texts ask which of them fits. The words are benchcheck's"
        made.put("question_text", PAIR_QUESTION, reason)
    else:
        made.doubts.append(Doubt("question_text", "no field looks like a question", ("Which option fits the video?",)))


def put_fields(made: Guess, table: str, declared: Options | Gold, reason: str) -> None:
    """Put in a part of a spec: what differs from its defaults, as TOML has it, the reason at its kind."""
    for item in dataclasses.fields(declared):
        value = getattr(declared, item.name)
        if item.default is dataclasses.MISSING or value != item.default:
            shown_value = list(value) if isinstance(value, tuple) else value
            made.put(f"{table}.{item.name}", shown_value, reason if item.name == "kind" else "")


def _gold(made: Guess, sample: Sample, given: Mapping[str, str], options: OptionsFound) -> GoldFound | None:
    """Put the gold in, when there is one way to read it."""
    found = gold_given(sample, given["gold"], options) if "gold" in given else find_gold(sample, options)
    if isinstance(found, Doubt):
        made.doubts.append(found)
        return None
    if "gold_text" in given:
        found = dataclasses.replace(found, gold=dataclasses.replace(found.gold, text=given["gold_text"]))
    put_gold(made, found.gold, found.reason)
    return found


def put_gold(made: Guess, gold: Gold, reason: str) -> None:
    """Put the gold in, and what it asks of the options."""
    put_fields(made, "gold", gold, reason)
    if gold.kind in ("first", "last"):
        made.put("options.shuffle", True, "the file always has the right one in one place: drawn anew for each item")


def _rest(made: Guess, sample: Sample, given: Mapping[str, str], used: Sequence[str]) -> None:
    """Put in the video and everything that may be missing; an empty value of `--map` leaves a key out."""
    found = find_named(sample, used)
    if _TIMES & set(given):
        found = {key: one for key, one in found.items() if key not in _TIMES}
    found |= {key: Found(given[key], "as you say") for key in ("video", "id", *_OPTIONAL) if given.get(key)}
    for key, one in found.items():
        if given.get(key) != "":
            made.put(_PLACES.get(key, key), one.value, one.reason)
    if "video" not in made.table:
        made.notes.append("no field looks like a video: text steps run, frame steps wait. Cure: --map video=…")
    taken = [*used, *(name for one in found.values() for name in named(one.value))]
    if times := unused_times(sample, taken):
        cure = f"if a question is asked at that second: --map end={times[0]}"
        made.notes.append(f"{', '.join(times)}: a time that is not used; {cure}")
    made.notes += _addresses(sample, found["video"].value if "video" in found else "")
    made.notes += [_split_note(sample, name) for name in sample.names if _is_split(sample, name)]
    if leaks := _leaks(sample, taken):
        made.put("leaks", leaks, "by their names they give the answer away: never shown to a model")


def _addresses(sample: Sample, video: str) -> list[str]:
    """What helps where a field holds addresses of YouTube: video files are looked for by name."""
    values = map(text_of, sample.filled(video) if video in sample.names else ())
    if not any("youtu.be/" in value or "youtube.com/" in value for value in values):
        return []
    cure = shlex.quote(f"video={{{video}|youtube}}.mp4")
    return [f"{video}: addresses, and video files are looked for by name. Where files are named by id: --map {cure}"]


def _is_split(sample: Sample, name: str) -> bool:
    """Whether a field says which split a record belongs to, and there are several."""
    kinds = {text_of(value).lower() for value in sample.filled(name)} if name.lower() in _SPLIT_NAMES else set()
    return 1 < len(kinds) < 6 and bool(kinds & _SPLITS)


def _split_note(sample: Sample, name: str) -> str:
    """What to do about records of several splits."""
    counts = Counter(text_of(value) for value in sample.filled(name))
    told = ", ".join(f"{kind} {count:,}" for kind, count in counts.most_common())
    return f"{name}: {told}. All are taken; [where] in the spec keeps one: {name} = {toml_value(min(counts))}"


def _leaks(sample: Sample, used: Sequence[str]) -> list[str]:
    """Fields that give the answer away, by their names."""
    by_name = [name for name in sample.names if name.lower() in LEAKS and name not in used]
    return list(dict.fromkeys([*leak_fields(sample, used), *by_name]))


def _formats(made: Guess, sample: Sample, options: OptionsFound, used: Sequence[str]) -> None:
    """Where some records have no options, look for the field that says which are multiple-choice."""
    have = [len(raw_of(options.options, record).kept) > 1 for record in sample.records]
    if all(have) or not any(have):
        return
    number = have.count(False)
    without = f"{number:,} of {len(have):,} records {'has' if number == 1 else 'have'} no two options"
    for name in [name for name in sample.names if name not in used]:
        values = [text_of(value) for value in sample.column(name)]
        inside = {value for value, has in zip(values, have, strict=True) if has}
        outside = {value for value, has in zip(values, have, strict=True) if not has}
        words = all(any(part in value.lower() for part in _OPEN) for value in inside)
        if words and inside.isdisjoint(outside) and len(inside) <= 3:
            kinds: Any = sorted(inside)
            made.put("mcq_where", {name: kinds[0] if len(kinds) == 1 else kinds}, f"{without}: the others are open")
            return
    made.notes.append(f"{without}: they are kept as open items, and never screened")
