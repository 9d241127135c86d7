"""What a study is about, annotation files and videos: the `[[pool]]` and `[videos]` tables of benchcheck.toml. Pure."""

import re
from dataclasses import dataclass

from benchcheck.settings import check

__all__ = ["BENCH_NAME", "COMMIT", "PoolSource", "Videos"]

BENCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A benchmark's name is a file name and the head of its item ids; a dot is kept for `<bench>.p<j>.jsonl`."""
COMMIT = re.compile(r"[0-9a-f]{40}")
"""A revision of a hub dataset that does not move: a branch or a tag does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Videos:
    """Where local video files lie. A relative folder is relative to the study."""

    folder: str = "videos"
    template: str = "{member}"
    """How a video's file is named below the folder: `{member}` as the spec gives it, `{name}` its last part,
    `{stem}` that without the extension, `{bench}` the benchmark."""

    def __post_init__(self) -> None:
        """Refuse a template that names something else."""
        fields = set(re.findall(r"\{([^}]*)\}", self.template))
        fields |= set(re.findall(r"[{}]", re.sub(r"\{[^{}]*\}", "", self.template)))  # a brace without its other half
        allowed = {"member", "name", "stem", "bench"}
        check(fields <= allowed, "template", self.template, ", ".join(f"{{{name}}}" for name in sorted(allowed)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSource:
    """One benchmark of the pool: a spec by name or path, and the files it reads."""

    spec: str
    files: tuple[str, ...] = ()
    """Paths or patterns, relative to the study. None: the files of the spec's hub dataset."""
    bench: str = ""
    """Overrides the spec's own name."""
    revision: str = ""
    """Commit of the hub dataset; the spec's when empty."""
    errata: str = ""
    """A CSV file with the columns id and reason: items that are known to be wrong. They are kept as `open`."""
    join: str = ""
    """The second file of a spec that joins two, where it does not lie beside the first."""
    accept_drift: bool = False
    """Whether other counts than the spec expects are a warning instead of an error."""
    videos: Videos | None = None
    """Where this benchmark's videos lie, when not in the study's own folder."""
    truth: str = ""
    """A control benchmark's truth file (`id`, `class`): the report then shows what was found beside what is so."""

    def __post_init__(self) -> None:
        """Refuse a path that is empty, a name that is no file name and a revision that moves."""
        check("" not in self.files, "files", list(self.files), "paths and patterns")
        named = not self.bench or BENCH_NAME.fullmatch(self.bench) is not None
        check(named, "bench", self.bench, "letters, digits, _ and -, 64 at most")
        pinned = not self.revision or COMMIT.fullmatch(self.revision) is not None
        check(pinned, "revision", self.revision, "a commit, 40 hex digits")
        check(not (self.revision and self.files), "revision", self.revision, "with no files: it is a hub dataset's")
