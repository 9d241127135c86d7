"""Specs: what a benchmark's annotation files look like, declared in TOML and loaded strictly.

A spec that ships lies in `benchmarks/`; a user's own is named by its path. `docs/pool.md` shows one line by line.
"""

import difflib
from dataclasses import dataclass
from pathlib import Path

from benchcheck.config import BENCH_NAME, from_table, read_toml
from benchcheck.errors import SpecError
from benchcheck.pool.fields import needed
from benchcheck.pool.gold import Gold
from benchcheck.pool.nesting import check_step
from benchcheck.pool.options import Options
from benchcheck.pool.readers import READERS

__all__ = ["Expect", "Source", "Spec", "VideoFields", "load_spec", "spec_names"]

_SHIPPED = Path(__file__).parent / "benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoFields:
    """Which video an item is about, and which seconds of it.

    `member` is a field or template; a hub URL in it becomes its repository and path. `repo` is the namespace, the
    benchmark's name when empty, and `zip_path` an archive in it. The window is `start` and `end`, or one field that
    holds both (`0.00-60.02`).
    """

    member: str = ""
    repo: str = ""
    zip_path: str = ""
    start: str = ""
    end: str = ""
    window: str = ""

    def __post_init__(self) -> None:
        """Refuse a window that is declared twice."""
        if self.window and (self.start or self.end):
            raise ValueError("window stands for start and end: declare one or the other")

    @property
    def window_fields(self) -> tuple[str, ...]:
        """The expressions of the window that are declared."""
        return tuple(expression for expression in (self.start, self.end, self.window) if expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """Counts of the version that was checked, 0 when not known. Others are reported; a file may be a part of it."""

    items: int = 0
    mcq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the annotation files come from, and on which terms."""

    repository: str = ""
    commit: str = ""
    files: tuple[str, ...] = ()
    licence: str = ""
    redistributable: bool = False
    citation: str = ""
    verified: bool = False
    """Whether the counts of `expect` were taken from the real files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A benchmark's annotation files, declared.

    `id` becomes the items' `source_id`; `item_id` replaces `{bench}_{row}` where a benchmark published ids of its own.
    `identity` names fields that make two records different questions, beside video, window, question and options.
    """

    bench: str = ""
    reader: str = "auto"
    header: tuple[str, ...] = ()
    unnest: tuple[str, ...] = ()
    id: str = ""
    item_id: str = ""
    question: str
    options: Options
    gold: Gold
    video: VideoFields = VideoFields()
    category: str = ""
    duration: str = ""
    identity: tuple[str, ...] = ()
    expect: Expect = Expect()
    source: Source = Source()

    def __post_init__(self) -> None:
        """Refuse a name that is no file name, an unknown reader and an unknown way to unnest."""
        if self.bench and BENCH_NAME.fullmatch(self.bench) is None:
            raise ValueError(f"bench = {self.bench!r} is not allowed. Allowed: letters, digits, _ and -, 64 at most")
        if self.reader not in ("auto", *READERS):
            raise ValueError(f"reader = {self.reader!r} is not allowed. Allowed: auto, {', '.join(READERS)}")
        if not self.question:
            raise ValueError("question is empty. Allowed: a field or a template")
        for step in self.unnest:
            check_step(step)

    def needed_fields(self) -> dict[str, str]:
        """Return the fields that some record must have, each with what it is for. Options are counted apart."""
        uses = {
            "the question": self.question,
            "the gold": self.gold.field,
            "the gold's text": self.gold.text,
            "the video": self.video.member,
            "the video's archive": self.video.zip_path if "{" in self.video.zip_path else "",
            "the id": self.id,
            "the item id": self.item_id,
            "the category": self.category,
            "the duration": self.duration,
        }
        uses |= {f"the window ({number})": part for number, part in enumerate(self.video.window_fields, 1)}
        uses |= {f"the identity ({number})": part for number, part in enumerate(self.identity, 1)}
        return {name: use for use, expression in uses.items() for name in needed(expression)}


def spec_names() -> list[str]:
    """Return the names of the specs that ship."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def load_spec(name: str, folder: Path = Path()) -> Spec:
    """Load a spec that ships by its name, or a spec file by its path, relative to `folder`.

    Raises:
        SpecError: no such spec, an unknown key, a wrong type or value; one line with the file.
    """
    if name.endswith(".toml") or "/" in name:
        path = folder / Path(name).expanduser()
    else:
        path = _SHIPPED / f"{name}.toml"
        if name not in spec_names():
            close = difflib.get_close_matches(name, spec_names(), 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise SpecError(
                f"no spec is called {name!r}.{hint} Allowed: {', '.join(spec_names())}, or the path of a .toml file"
            )
    return from_table(Spec, read_toml(path, SpecError), str(path), SpecError)
