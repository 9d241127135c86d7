"""Specs: what a benchmark's annotation files look like, declared in TOML and loaded strictly.

A spec that ships lies in `benchmarks/`; a user's own is named by its path. `docs/pool.md` shows one line by line.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.config import BENCH_NAME, COMMIT, from_table, read_toml
from benchcheck.errors import SpecError
from benchcheck.pool.fields import named, needed
from benchcheck.pool.gold import Gold
from benchcheck.pool.leaks import check_leaks
from benchcheck.pool.options import Options
from benchcheck.pool.reading.nesting import check_step
from benchcheck.pool.reading.paths import located
from benchcheck.pool.reading.readers import READERS, Layout

__all__ = ["CHECKED", "JOINED", "Expect", "Join", "Source", "Spec", "VideoFields", "load_spec", "spec_names"]

CHECKED = {
    "real files": "this code was run on the published files, and a test holds what came of it",
    "survey": "the mapping was run on the published files by another program, whose counts are expected here",
    "fields only": "written from the names of the fields alone: no published file was seen",
}
"""How far a spec was checked, the surest first."""

JOINED = "_joined"
"""Field that a record gets where a spec joins two files: whether the second has a row for it."""

_SHIPPED = Path(__file__).parent / "benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFields:
    """Which video an item is about, and which seconds of it.

    `member` is a field or template; a hub URL in it becomes its repository and path. `members` names several, each
    the video of one place, for questions over several videos. `repo` is the namespace, the benchmark's name when
    empty, and `zip_path` an archive in it. The window is `start` and `end`, or one field that holds both
    (`0.00-60.02`). `frames` is a field that is filled where frames were published in place of the video.
    """

    member: str = ""
    members: tuple[str, ...] = ()
    repo: str = ""
    zip_path: str = ""
    start: str = ""
    end: str = ""
    window: str = ""
    frames: str = ""

    def __post_init__(self) -> None:
        """Refuse a window, or videos, that are declared twice."""
        if self.window and (self.start or self.end):
            raise ValueError("window stands for start and end: declare one or the other")
        if self.member and self.members:
            raise ValueError("members stands for member: declare one or the other")

    @property
    def window_fields(self) -> tuple[str, ...]:
        """The expressions of the window that are declared."""
        return tuple(expression for expression in (self.start, self.end, self.window) if expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A second annotation file whose records are laid beside those of the first, such as one with the answers.

    `file` lies beside each file of the first kind (relative to that file's folder). A record of the first is met by
    the one record of the second whose `key` is equal to its own `on`; its fields come in where the first has none of
    that name, or null. A plain value (EgoSchema's `{"id": 3}`) comes as `_value`.
    """

    file: str
    on: str
    key: str = ""
    """Field of the second file, `on` when empty; `_key` after `unnest = ["values"]`."""
    reader: str = "auto"
    header: tuple[str, ...] = ()
    unnest: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what a spec's own keys of these names refuse."""
        if not self.file or not self.on:
            raise ValueError("file and on are empty. Allowed: a file beside the first, and the field they share")
        _check_layout(self.reader, self.unnest)
        named(self.key)

    def beside(self, first: Path) -> Path:
        """Return the second file of one of the first kind; where `file` is absolute, it is that of all."""
        return first.parent / self.file

    @property
    def layout(self) -> Layout:
        """How the second file is read."""
        return Layout(self.reader, self.header, self.unnest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """Counts of the version that was checked, 0 or empty when not known. Others are version drift."""

    items: int = 0
    mcq: int = 0
    options: tuple[int, ...] = ()
    """Every number of options that a multiple-choice item of it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the annotation files come from, and on which terms."""

    repository: str = ""
    commit: str = ""
    files: tuple[str, ...] = ()
    """Paths or patterns in the repository, or in the hub dataset."""
    hub: str = ""
    """Hub dataset that holds `files`, `owner/name`."""
    revision: str = ""
    """The hub dataset's commit, 40 hex digits."""
    licence: str = ""
    redistributable: bool = False
    citation: str = ""
    checked: str = "fields only"
    """One of `CHECKED`."""
    note: str = ""
    """What a user should know before trusting the items, in a sentence."""

    def __post_init__(self) -> None:
        """Refuse an unknown level and a revision that moves."""
        if self.checked not in CHECKED:
            raise ValueError(f"checked = {self.checked!r} is not allowed. Allowed: {', '.join(CHECKED)}")
        if self.revision and COMMIT.fullmatch(self.revision) is None:
            raise ValueError(f"revision = {self.revision!r} is not allowed. Allowed: a commit, 40 hex digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A benchmark's annotation files, declared. `docs/pool.md` explains every key.

    `id` becomes the items' `source_id`; `item_id` replaces `{bench}_{row}` where a benchmark published ids of its own.
    `identity` names fields that make two records different questions, beside video, window, question and options.
    """

    bench: str = ""
    title: str = ""
    """The benchmark's name as its authors write it."""
    reader: str = "auto"
    header: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """Patterns of the members to read, for a zip archive or a folder."""
    unnest: tuple[str, ...] = ()
    join: Join | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    """Field to value, or list of values: other records belong to another split or set. They are counted, not read."""
    mcq_where: Mapping[str, Any] = field(default_factory=dict)
    """Field to value or values: other records are open-ended questions, and are kept as such."""
    id: str = ""
    item_id: str = ""
    question: str = ""
    question_text: str = ""
    """The question of every item, where the records have none: which of these captions fits the video?"""
    question_tail: str = ""
    """Regular expression; from where it first matches, the question is a prompt's ending and is cut off."""
    question_fill: str = ""
    """Field with a list of values for the `<placeholders>` of the question, in their order (MUSIC-AVQA)."""
    options: Options
    gold: Gold
    video: VideoFields = VideoFields()
    category: str = ""
    duration: str = ""
    subtitles: str = ""
    """A reference to the subtitle file. Never shown to a model."""
    group: str = ""
    """What items of one pair or family share; an interval is drawn over groups."""
    identity: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    """Fields of the records that give the answer away. Neither question, options nor window may be made of them."""
    errata: Mapping[str, str] = field(default_factory=dict)
    """Source id to reason: items that are known to be wrong, kept as `open`."""
    expect: Expect = Expect()
    source: Source = Source()

    def __post_init__(self) -> None:
        """Refuse what would fail at the first record, and what would show a model the answer."""
        if self.bench and BENCH_NAME.fullmatch(self.bench) is None:
            raise ValueError(f"bench = {self.bench!r} is not allowed. Allowed: letters, digits, _ and -, 64 at most")
        _check_layout(self.reader, self.unnest)
        if bool(self.question) == bool(self.question_text):
            raise ValueError("question or question_text: one of the two. Allowed: a field or template, or a fixed text")
        try:
            re.compile(self.question_tail)
        except re.error as reason:
            raise ValueError(f"question_tail = {self.question_tail!r} is no regular expression: {reason}") from None
        for use, expression in self._expressions():
            try:
                named(expression)
            except ValueError as reason:
                raise ValueError(f"{use}: {reason}") from None
        golds = (self.gold.text, "" if self.gold.kind == "per_choice" else self.gold.field)
        check_leaks(self._seen(), self.leaks, golds)

    def __hash__(self) -> int:
        """A hash, so that what is worked out from a spec is kept for it; `where` and `errata` have none."""
        return hash((self.bench, self.question, self.id))

    @property
    def layout(self) -> Layout:
        """How the files are read."""
        return Layout(self.reader, self.header, self.unnest, self.members)

    def needed_fields(self) -> dict[str, str]:
        """Return the fields that some record must have, each with what it is for. Options are counted apart."""
        return {name: use for use, expression in self._expressions() for name in needed(expression)}

    def _seen(self) -> dict[str, tuple[str, ...]]:
        """What a model sees something of: key to expressions."""
        options = self.options
        return {
            "question": (self.question,),
            "question_fill": (self.question_fill,),
            "options": (options.field, *options.fields, options.member, *options.others),
            "video": self.video.window_fields,
        }

    def _expressions(self) -> list[tuple[str, str]]:
        """Every expression outside `options`, with what it is for."""
        gold, video = self.gold, self.video
        uses = [
            ("the join", self.join.on if self.join else ""),  # without which nothing else of the second file is there
            ("the question", self.question),
            ("the values in the question", self.question_fill),
            ("the gold", "" if gold.kind == "per_choice" else gold.field),
            ("the gold's text", gold.text),
            ("the video", video.member),
            ("the video's archive", video.zip_path if "{" in video.zip_path else ""),
            ("the frames", video.frames),
            ("the id", self.id),
            ("the item id", self.item_id),
            ("the category", self.category),
            ("the duration", self.duration),
            ("the subtitles", self.subtitles),
            ("the group", self.group),
        ]
        uses += [("the videos", part) for part in video.members]
        uses += [("where", part) for part in self.where] + [("mcq_where", part) for part in self.mcq_where]
        uses += [(f"the window ({number})", part) for number, part in enumerate(video.window_fields, 1)]
        uses += [(f"the identity ({number})", part) for number, part in enumerate(self.identity, 1)]
        return uses


def _check_layout(reader: str, unnest: Iterable[str]) -> None:
    """Refuse an unknown reader and an unknown way to unnest."""
    if reader not in ("auto", *READERS):
        raise ValueError(f"reader = {reader!r} is not allowed. Allowed: auto, {', '.join(READERS)}")
    for step in unnest:
        check_step(step)


def spec_names() -> list[str]:
    """Return the names of the specs that ship."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_spec(name: str, folder: Path = Path()) -> Spec:
    """Load a spec that ships by its name, or a spec file by its path, relative to `folder`.

    Raises:
        SpecError: no such spec, an unknown key, a wrong type or value; one line with the file.
    """
    if name.endswith(".toml") or "/" in name:
        path = located(folder, name)
    else:
        path = _SHIPPED / f"{name}.toml"
        if not path.is_file():
            close = " or ".join(map(repr, difflib.get_close_matches(name, spec_names(), 3)))
            hint = f" Did you mean {close}?" if close else ""
            raise SpecError(
                f"no spec is called {name!r}.{hint} Allowed: one of the {len(spec_names()) - 1} that "
                "benchcheck benchmarks lists, or the path of a .toml file"
            )
    return from_table(Spec, read_toml(path, SpecError), str(path), SpecError)
