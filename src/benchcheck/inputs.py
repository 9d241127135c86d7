"""What a study is about and where it lies: `[[pool]]`, `[videos]` and `[places]` of benchcheck.toml. Pure."""

import re
from dataclasses import dataclass

from benchcheck.settings import check

__all__ = ["BENCH_NAME", "COMMIT", "DATASET", "Normalize", "Places", "PoolSource", "Videos"]

BENCH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""A benchmark's name is a file name and the head of its item ids; a dot is kept for `<bench>.p<j>.jsonl`."""
COMMIT = re.compile(r"[0-9a-f]{40}")
"""A revision of a hub dataset that does not move: a branch or a tag does."""
DATASET = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
"""A dataset of the hub, by owner and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the parts of a study lie; a relative path is relative to the study. `places` says how they are moved."""

    data: str = "."
    """What the relative paths of `[videos]` and of each `[[pool]]` entry are relative to, its spec apart."""
    normalized: str = "normalized"
    frames: str = "frames/pool_frames"
    results: str = "results"
    logs: str = "logs"
    models: str = "models"
    """Checkpoints: `[models]` names them by their path below it, or by their hub id."""
    hub: str = ""
    """The cache of the hub's library; its own place when empty."""
    scratch: str = ""
    """What is unpacked for a while; the system's folder for temporary files when empty."""

    def __post_init__(self) -> None:
        """Refuse a path that there cannot be."""
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            check("\0" not in value, name, value, "a path without NUL")
            check(bool(value.strip()) or name in ("hub", "scratch"), name, value, "a folder, such as '.'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Videos:
    """Where local video files lie. A relative folder is relative to the study's data."""

    folder: str = "videos"
    template: str = "{member}"
    """How a video's file is named below the folder: `{member}` as the spec gives it, `{name}` its last part,
    `{stem}` that without the extension, `{bench}` the benchmark."""
    archives: tuple[str, ...] = ()
    """Zip and tar archives that hold videos: paths, patterns or folders, relative to `folder`. Split ones by any of
    their parts, or by the name of the whole."""
    manifest: str = ""
    """A CSV, TSV or JSON-lines file with `key` and `file`: where single videos lie."""
    hub: str = ""
    """A hub dataset, `owner/name`, whose files are downloaded when they are needed."""
    revision: str = ""
    """Its commit, 40 hex digits."""
    files: tuple[str, ...] = ()
    """Its files and archives to look into: paths or patterns. None: single files, and the archives that items name."""

    def __post_init__(self) -> None:
        """Refuse a template that names something else, an empty path, a dataset without a name, a commit that moves."""
        fields = set(re.findall(r"\{([^}]*)\}", self.template))
        fields |= set(re.findall(r"[{}]", re.sub(r"\{[^{}]*\}", "", self.template)))  # a brace without its other half
        allowed = {"member", "name", "stem", "bench"}
        check(fields <= allowed, "template", self.template, ", ".join(f"{{{name}}}" for name in sorted(allowed)))
        check("" not in self.archives, "archives", list(self.archives), "paths and patterns")
        check("" not in self.files, "files", list(self.files), "paths and patterns")
        named = not self.hub or DATASET.fullmatch(self.hub) is not None
        check(named, "hub", self.hub, "a dataset of the hub, owner/name")
        pinned = not self.revision or COMMIT.fullmatch(self.revision) is not None
        check(pinned, "revision", self.revision, "a commit, 40 hex digits")
        check(bool(self.hub or not self.revision), "revision", self.revision, "with hub: it is a hub dataset's")
        check(bool(self.hub or not self.files), "files", list(self.files), "with hub: they are a hub dataset's")


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalize:
    """The one form that `videos prepare` can bring videos into (H.264 in MP4), and whether frames are made from it."""

    frames: str = "original"
    """What frames are made from: `original`, or `normalized`; that is part of the key of the steps that show them."""
    short_side: int = 480
    """Pixels; never enlarged."""
    timestamps: str = "true"
    """`true` keeps when each frame is shown, a variable frame rate too; `constant` makes it `fps` frames a second."""
    fps: float = 25.0
    crf: int = 18
    """x264's quality: 0 loses nothing, 51 is the worst."""
    audio: bool = False
    """Whether sound is kept, as AAC."""

    def __post_init__(self) -> None:
        """Refuse a form that cannot be made."""
        check(self.frames in ("original", "normalized"), "frames", self.frames, "'original' or 'normalized'")
        check(16 <= self.short_side <= 4320, "short_side", self.short_side, "16 to 4320 pixels")
        check(self.timestamps in ("true", "constant"), "timestamps", self.timestamps, "'true' or 'constant'")
        check(0 < self.fps <= 240, "fps", self.fps, "above 0, up to 240 frames a second")
        check(0 <= self.crf <= 51, "crf", self.crf, "0 to 51")

    @property
    def pictures(self) -> dict[str, str | int | float]:
        """What decides the pictures of a normalised video and when they are shown."""
        rate = {"fps": self.fps} if self.timestamps == "constant" else {}
        return {"short_side": self.short_side, "timestamps": self.timestamps, "crf": self.crf, **rate}

    @property
    def shown(self) -> dict[str, str | int | float] | None:
        """`pictures` where frames are made from normalised videos; None where they are made from the originals."""
        return self.pictures if self.frames == "normalized" else None


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
