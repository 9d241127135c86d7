"""What the fields of unknown records are called, and what stands in them: question, video, id, window, leaks. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.pool.fields import has_field, text_of, value_of
from benchcheck.pool.fields import named as fields_in
from benchcheck.pool.times import seconds, window_of

__all__ = [
    "Doubt",
    "Found",
    "Sample",
    "find_named",
    "find_question",
    "leak_fields",
    "named",
    "placed",
    "plain",
    "prompt_tail",
    "unused_times",
]

ENOUGH = 0.9
"""Share of the sample in which a guess has to work."""
_CAMEL = re.compile(r"([a-z])([A-Z])")
_FILE = re.compile(r"\S.*\.(?:mp4|webm|avi|mkv|mov|m4v|gif|flv)", re.IGNORECASE)
_AUTOMATIC = ("_key", "_dim", "_member")

QUESTION = (
    *("question", "query", "q", "question_text", "prompt", "q_body", "question_content", "mc_question"),
    *("question_str", "instruction", "problem"),
)
_QUESTION_LIKE = re.compile(r"(?:.*_)?question(?:_(?:en|text|body|str|v\d+).*)?")
VIDEO = (
    *("video", "video_path", "video_file", "video_filename", "video_name", "video_id", "videoid", "video_uid"),
    *("video_idx", "vid", "vid_name", "vid_path", "vid_id", "vid_filename", "clip", "clip_path", "clip_id"),
    *("clip_name", "gif_name", "youtube_id", "yt_id", "video_url", "youtube_url", "yt_clip_link", "movie", "path"),
)
ID = (
    *("id", "qid", "question_id", "questionid", "question_idx", "uid", "qa_id", "item_id", "sample_id", "record_id"),
    *("example_id", "q_uid", "qa_idx", "index", "idx", "key"),
)
CATEGORY = (
    *("question_type", "task_type", "question_category", "task_name", "task", "type", "category", "q_type", "qtype"),
    *("sub_category", "subcategory", "kind", "dimension", "ability", "aspect", "topic_category", "subject"),
)
DURATION = (
    *("duration", "video_duration", "video_length", "length", "duration_s", "duration_sec", "duration_seconds"),
    *("video_duration_s", "video_len", "vid_len"),
)
SUBTITLES = ("subtitle_path", "subtitles_path", "subtitle", "subtitles", "subtitle_file", "srt_path", "srt")
GROUP = ("group", "group_id", "pair_id")
WINDOW = ("window", "ts", "time_window", "time_span", "span", "segment", "clip_time", "time", "bound", "timestamps")
START = (
    *("start", "start_time", "start_s", "start_sec", "start_seconds", "time_start", "begin", "begin_time", "start_ms"),
    *("question_start_time", "clip_start", "segment_start", "start_timestamp", "from"),
)
END = ("realtime", "real_time")
"""When a question is asked while the video runs: what comes later is not seen (OVO-Bench)."""
_ORDER = re.compile(
    r"(?:\n|(?<=[.?!:] ))\s*(?:Answer|Please|Only|Select|Choose|Respond|Reply|Give|Provide|Output)\b[^\n]{8,}$"
)
"""How a prompt ends that was glued to a question (VCR-Bench, TemporalBench)."""
_ASKED_AT = ("time_stamp", "timestamp", "query_time", "question_time", "asked_at", "realtime")
_LEAK = re.compile(
    r"reason|rational|expla[i]?n|clue|evidence|relevant|time_reference|gt_time|target_time|answer_time|accurate_"
    r"|transcript|subtitle|caption|hint|keyword|scoring_point|thought|(?:^|_)cot(?:_|$)|grounding|(?:^|_)asr(?:_|$)"
    r"|correct_interval|temporal_cert|step_by_step"
)


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was found in a file: what it is, as `--map` gives it, and why."""

    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """What nobody can tell from the file: the key of `--map`, why, and what would settle it."""

    key: str
    why: str
    choices: tuple[str, ...]


@dataclass(slots=True)
class Sample:
    """The first records of a file; `names` are their fields, those of a dict below a field as `meta.subject`.

    `unspeakable` are fields whose names mean something else in a spec (`a|b`, `{a}`, `a?`), or nothing.
    """

    records: Sequence[Mapping[str, Any]]
    names: tuple[str, ...] = ()
    unspeakable: tuple[str, ...] = ()
    _columns: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """List the fields in the order in which they come."""
        found: dict[str, None] = {}
        for record in self.records:
            for name, value in record.items():
                if not name.startswith("_") or name in _AUTOMATIC:
                    found[name] = None
                    found |= dict.fromkeys(_below(name, value))
        self.names = tuple(filter(_is_plain, found))
        self.unspeakable = tuple(name for name in found if not _is_plain(name))

    def column(self, expression: str) -> list[Any]:
        """Return what a field or template gives, record by record, None where it is missing."""
        if expression not in self._columns:
            self._columns[expression] = [value_of(record, expression) for record in self.records]
        return self._columns[expression]

    def filled(self, expression: str) -> list[Any]:
        """Return the values of a field that are neither missing nor empty."""
        return [value for value in self.column(expression) if value is not None and value not in ("", [], {})]

    def has(self, name: str) -> bool:
        """Whether any record has a field."""
        return any(has_field(record, name) for record in self.records)

    def share(self, count: int, expression: str = "") -> str:
        """Return a count as a message shows it: of the sample, or of the records that have a field."""
        return f"{count:,} of {len(self.filled(expression)) if expression else len(self.records):,}"

    def optional(self, name: str) -> str:
        """Return a field's name, with a `?` when some record of the sample is without it: it may be in none at all."""
        whole = all(has_field(record, name) for record in self.records)
        return name if whole else f"{name}?"


def _is_plain(name: str) -> bool:
    """Whether a field's name, as an expression, is that field."""
    try:
        return fields_in(name) == [name]
    except ValueError:
        return False


def _below(name: str, value: Any) -> Iterator[str]:
    """Fields of a dict that is a part of a record, not a dict of letters to options."""
    if isinstance(value, Mapping) and len(value) <= 40:
        for key, part in value.items():
            if len(str(key)) > 1:
                yield f"{name}.{key}"
                if isinstance(part, Mapping) and len(part) <= 40:
                    yield from (f"{name}.{key}.{below}" for below in part if len(str(below)) > 1)


def plain(name: str) -> str:
    """Return a name as names are compared: `Video ID`, `videoID` and `video-id` are `video_id`."""
    return re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub(r"\1_\2", name).lower()).strip("_")


def named(names: Sequence[str], known: Sequence[str], loose: re.Pattern[str] | None = None) -> list[tuple[int, str]]:
    """Return the names that are known ones, each with its rank: by place in `known`, then nested ones, then `loose`."""
    found = []
    for name in names:
        whole, last = plain(name), plain(name.rpartition(".")[2])
        if whole in known:
            found.append((known.index(whole), name))
        elif last in known:
            found.append((len(known) + known.index(last), name))
        elif loose and (loose.fullmatch(last) or loose.fullmatch(whole)):
            found.append((2 * len(known), name))
    return sorted(found, key=lambda pair: pair[0])


def placed(count: int, total: int) -> bool:
    """Whether something works in enough of what there is."""
    return total > 0 and count >= ENOUGH * total


def find_question(sample: Sample) -> Found | Doubt | None:
    """Find the question: by its name, else the only field that asks; a doubt when two have the same right."""
    texts = [(rank, name) for rank, name in named(sample.names, QUESTION, _QUESTION_LIKE) if _is_text(sample, name)]
    best = [name for rank, name in texts if rank == texts[0][0]]
    if not best:
        free = [name for name in sample.names if not _LEAK.search(plain(name))]
        best = [name for name in free if placed(_asks(sample, name), len(sample.filled(name)))]
    if len(best) > 1:
        return Doubt("question", f"{' and '.join(map(repr, best))} look alike", tuple(best))
    if not best:
        return None
    return Found(best[0], f"a text in {sample.share(len(sample.filled(best[0])))}, {_distinct(sample, best[0])}")


def _is_text(sample: Sample, name: str) -> bool:
    """Whether a field holds sentences in at least half of the records (OVO-Bench: 124 of 1,640 have no question)."""
    texts = [value for value in sample.filled(name) if isinstance(value, str) and len(value.split()) > 1]
    return 2 * len(texts) >= len(sample.records)


def _asks(sample: Sample, name: str) -> int:
    return sum(isinstance(value, str) and value.rstrip().endswith(("?", "\uff1f")) for value in sample.filled(name))


def _distinct(sample: Sample, name: str) -> str:
    return f"{len(set(map(text_of, sample.filled(name)))):,} different"


def find_named(sample: Sample, taken: Sequence[str] = ()) -> dict[str, Found]:
    """Find everything beside question, options and gold, by name and by what stands there. `taken` are fields of those.

    The keys are those of `--map`: video, id, category, start, end, window, duration, subtitles, group.
    """
    free = [name for name in sample.names if name not in taken and not _LEAK.search(plain(name))]
    found: dict[str, Found | None] = {
        "video": _video(sample, free),
        "duration": _timed(sample, [name for _, name in named(free, DURATION)], seconds, "a length"),
        "group": _first(sample, free, GROUP, "items of one family share it"),
        "subtitles": _subtitles(sample),
    }
    found |= _times(sample, free)
    video = found["video"]
    free = [name for name in free if name not in {one.value for one in found.values() if one}]
    found["id"] = _id(sample, free, "" if video is None else video.value)
    free = [name for name in free if found["id"] is None or name not in found["id"].value]
    found["category"] = _category(sample, free)
    return {key: one for key, one in found.items() if one is not None}


def _video(sample: Sample, names: Sequence[str]) -> Found | None:
    """The video: a known name; else what holds file names; else the key that several records share."""
    for _, name in named(names, VIDEO):
        values = sample.filled(name)
        if values and all(isinstance(value, str | int) for value in values):
            return Found(_with_prefix(sample, name), f"by its name; filled in {sample.share(len(values))}")
    for name in names:
        values = sample.filled(name)
        if placed(sum(isinstance(value, str) and bool(_FILE.fullmatch(value)) for value in values), len(values)):
            return Found(name, f"file names of videos in {sample.share(len(values))}")
    keys = sample.filled("_key")
    if keys and len(set(map(text_of, keys))) < len(keys):
        return Found("_key", "the key above the records, which several of them share")
    return None


def _with_prefix(sample: Sample, name: str) -> str:
    """VLMEvalKit keeps the folder in `prefix`, and sometimes the file's suffix in `suffix`."""
    whole = [part for part in ("prefix", "suffix") if len(sample.filled(part)) == len(sample.records)]
    if "prefix" in whole:
        slash = "" if all(text_of(value).endswith("/") for value in sample.column("prefix")) else "/"
        return f"{{prefix}}{slash}{{{name}}}" + ("{suffix}" if "suffix" in whole else "")
    return name


def _timed(sample: Sample, names: Sequence[str], read: Callable[[Any], Any], what: str) -> Found | None:
    """The first field whose values are times."""
    for name in names:
        values = sample.filled(name)
        if placed(sum(_reads(read, value) for value in values), len(values)):
            return Found(sample.optional(name), f"{what} in {sample.share(len(values))}")
    return None


def _reads(read: Callable[[Any], Any], value: Any) -> bool:
    """Whether a value can be read as a time."""
    try:
        return read(value) not in (None, (None, None))
    except ValueError:
        return False


def _times(sample: Sample, names: Sequence[str]) -> dict[str, Found | None]:
    """The window: two fields, or one, or only the second at which a question is asked."""
    for _, start in named(names, START):
        other = next((name for name in names if plain(name) in _ends(plain(start))), None)
        first = _timed(sample, [start], seconds, "seconds")
        last = _timed(sample, [other] if other else [], seconds, "seconds")
        if first and last:
            return {key: _in_ms(one) for key, one in (("start", first), ("end", last))}
    if window := _timed(sample, [name for _, name in named(names, WINDOW)], window_of, "start and end"):
        return {"window": window}
    return {"end": _timed(sample, [name for _, name in named(names, END)], seconds, "when it is asked, seconds")}


def _ends(start: str) -> tuple[str, ...]:
    """Names that the end has when the start has this one."""
    stems = [
        (old, new) for old in ("start", "begin", "from") for new in ("end", "stop", "finish", "to") if old in start
    ]
    return tuple(start.replace(old, new) for old, new in stems)


def _in_ms(found: Found) -> Found:
    """Milliseconds are named so."""
    if not plain(found.value).endswith("_ms"):
        return found
    return Found(found.value.removesuffix("?") + "|ms", found.reason.replace("seconds", "milliseconds"))


def _first(sample: Sample, names: Sequence[str], known: Sequence[str], what: str) -> Found | None:
    for _, name in named(names, known):
        if values := sample.filled(name):
            return Found(sample.optional(name), f"{what}, in {sample.share(len(values))}")
    return None


def _subtitles(sample: Sample) -> Found | None:
    """A field with paths of subtitle files; their text itself would be a leak."""
    for _, name in named(sample.names, SUBTITLES):
        values = sample.filled(name)
        if values and all(isinstance(value, str) and re.fullmatch(r"\S+\.\w{2,5}", value) for value in values):
            return Found(sample.optional(name), f"paths of subtitle files in {sample.share(len(values))}")
    return None


def _id(sample: Sample, names: Sequence[str], video: str) -> Found | None:
    """The benchmark's own id; where it repeats, with the video before it when the two together do not."""
    known = [name for _, name in named([name for name in names if name != "_key"], ID)]
    for name in [*known, *(["_key"] if "_key" in names else [])]:
        values = [text_of(value) for value in sample.filled(name)]
        if len(values) < len(sample.records):
            continue
        if len(set(values)) == len(values):
            return Found(name, "different in every record")
        both = f"{video}_{{{name}}}" if "{" in video else f"{{{video}}}_{{{name}}}"
        if video and len(set(map(text_of, sample.column(both)))) == len(values):
            return Found(both, f"{name} repeats from video to video; with the video it does not")
        if placed(len(set(values)), len(values)):
            return Found(name, f"{len(set(values)):,} different in {sample.share(len(values))}: some repeat")
    return None


def _category(sample: Sample, names: Sequence[str]) -> Found | None:
    """A kind of question: few values, more than one."""
    known = [name for _, name in named(names, CATEGORY)]
    for name in [*known, *(["_dim"] if "_dim" in names else [])]:
        values = sample.filled(name)
        kinds = len(set(map(text_of, values)))
        if values and 2 <= kinds <= max(10, len(values) // 2):
            return Found(sample.optional(name), f"{kinds} kinds in {sample.share(len(values))}")
    return None


def leak_fields(sample: Sample, used: Sequence[str]) -> list[str]:
    """Return the fields whose names say that they give the answer away, those in use aside."""
    heads = {name.partition(".")[0] for name in used}
    return [
        name
        for name in sample.names
        if "." not in name and name not in heads and not name.startswith("_") and _LEAK.search(plain(name))
    ]


def unused_times(sample: Sample, used: Sequence[str]) -> list[str]:
    """Return fields that look like the second at which a question is asked, and are not in use (StreamingBench)."""
    names = [name for _, name in named([name for name in sample.names if name not in used], _ASKED_AT)]
    return [name for name in names if _timed(sample, [name], seconds, "seconds")]


def prompt_tail(sample: Sample, question: str) -> str:
    """Return the order to a model with which nearly every question ends, empty where there is none."""
    texts = [value.rstrip() for value in sample.filled(question) if isinstance(value, str)]
    ends = Counter(match.group().strip() for match in map(_ORDER.search, texts) if match)
    tail, count = ends.most_common(1)[0] if ends else ("", 0)
    return tail if len(texts) > 1 and placed(count, len(texts)) else ""
