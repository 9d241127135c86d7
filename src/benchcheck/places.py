"""Where the parts of a study lie: the config's `[places]`, moved by environment variables, and who decided each.

Nothing here is measured: no place is part of a step key, and the same study with all of them moved has the same rows.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchcheck.errors import UsageError
from benchcheck.inputs import Places, Videos

__all__ = [
    "HUB_VARIABLES",
    "POOL_FILE",
    "VARIABLES",
    "Located",
    "Looked",
    "Place",
    "environment_of",
    "expanded",
    "look",
]

POOL_FILE = "pool_items_base.parquet"

VARIABLES: Mapping[str, str] = {
    "data": "BENCHCHECK_DATA",
    "videos": "BENCHCHECK_VIDEOS",
    "normalized": "BENCHCHECK_NORMALIZED",
    "frames": "POOL_FRAMES_DIR",
    "results": "POOL_RESULTS_ROOT",
    "pool": "POOL_BASE",
    "logs": "BENCHCHECK_LOGS",
    "models": "BENCHCHECK_MODELS",
    "scratch": "BENCHCHECK_SCRATCH",
}
"""Place to the environment variable that moves it; three names are the original package's (protocol 8)."""
HUB_VARIABLES: Mapping[str, str] = {"HF_HUB_CACHE": "", "HF_HOME": "hub"}
"""The hub library's own variables, with the cache's folder below each; where one is set, `places.hub` says nothing."""
_CONFIG = "benchcheck.toml"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a study (the pool may be a file), and who decided that it lies there."""

    name: str
    path: Path
    by: str = "default"
    """`default`, `benchcheck.toml`, or the name of an environment variable."""


def expanded(text: str) -> Path:
    """Return a path in which `~` is the home of the user.

    Raises:
        UsageError: it begins with `~` and a name that no user has.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UsageError(f"{text}: there is no such user. Cure: write the whole path") from None


class Located:
    """The places of one study, as the environment has them at the time of each question."""

    def __init__(self, root: Path, places: Places, videos: str = Videos().folder) -> None:
        """Take the study's folder, its `[places]`, and the folder of its `[videos]`."""
        self.root, self._said, self._videos = root, places, videos

    def of(self, name: str) -> Place:
        """Return a place: as the environment says, else the config, else by default.

        What the config says is relative to the study's folder, what the environment says to the current one. An empty
        variable counts as unset.

        Raises:
            UsageError: a path begins with `~` and a name that no user has.
        """
        if name == "hub":
            return self._hub()
        if given := os.environ.get(VARIABLES[name]):
            return Place(name, expanded(given), VARIABLES[name])
        if name == "pool":
            return Place(name, self.of("results").path / POOL_FILE, self.of("results").by)
        if name == "videos":
            by = "default" if self._videos == Videos().folder else _CONFIG
            return Place(name, self.data / expanded(self._videos), by)
        text = getattr(self._said, name)
        by = "default" if text == getattr(Places(), name) else _CONFIG
        if name == "scratch" and not text:
            return Place(name, Path(tempfile.gettempdir()), "TMPDIR" if os.environ.get("TMPDIR") else by)
        return Place(name, self.root / expanded(text), by)

    def _hub(self) -> Place:
        """Where the hub's library keeps what it downloads: its own variables win over the config."""
        for variable, below in HUB_VARIABLES.items():
            if given := os.environ.get(variable):
                return Place("hub", expanded(os.path.expandvars(given)) / below, variable)
        if self._said.hub:
            return Place("hub", self.root / expanded(self._said.hub), _CONFIG)
        return Place("hub", expanded(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface" / "hub")

    def all(self) -> list[Place]:
        """Return every place."""
        return [self.of(name) for name in (*VARIABLES, "hub")]

    @property
    def data(self) -> Path:
        """What relative paths of `[videos]` and `[[pool]]` are relative to."""
        return self.of("data").path

    @property
    def scratch(self) -> Path:
        """Where something is unpacked for a while; it need not be there yet."""
        return self.of("scratch").path

    @property
    def hub(self) -> str:
        """The hub cache where the config decides it; empty where the library does, by its variables or its default."""
        place = self._hub()
        return str(place.path) if place.by == _CONFIG else ""

    def videos(self, folder: str) -> Path:
        """Return the folder that `[videos]` or a `[pool.videos]` names.

        `BENCHCHECK_VIDEOS` stands in place of the study's, wherever that folder is named.
        """
        return self.of("videos").path if folder == self._videos else self.data / expanded(folder)

    def model(self, name: str) -> str:
        """Return the folder of a checkpoint, below the study or else below `models`; its name where neither has one.

        A hub id may be such a folder. The name, not the folder, is part of the step key.
        """
        for above in (self.root, self.of("models").path):
            if os.path.isdir(inside := os.path.join(above, name)):
                return inside
        return name

    def refuse_files(self) -> None:
        """Refuse a place that somebody chose and where something else than a folder stands.

        Raises:
            UsageError: with who chose it, and the cure.
        """
        for place in self.all():
            chosen = place.by != "default" and place.name != "pool"
            if chosen and os.path.exists(place.path) and not os.path.isdir(place.path):
                raise UsageError(
                    f"{place.path}: a file stands here, and {place.by} wants a folder for {place.name}. "
                    "Cure: name another path"
                )


def environment_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that move places, as whole paths: a process in another folder sees the same places.

    Raises:
        UsageError: a path begins with `~` and a name that no user has.
    """
    names = (*VARIABLES.values(), *HUB_VARIABLES)
    return {name: os.path.abspath(expanded(environment[name])) for name in names if environment.get(name)}


@dataclass(frozen=True, slots=True)
class Looked:
    """What a place looks like."""

    state: str
    """`writable`, `read only`, `not there yet` (it can be made), `cannot be made`, or `a file`."""
    free: int
    """Bytes free on its disk."""


def look(place: Place) -> Looked:
    """Look at a place, or where there is none yet at the folder in which it would be made."""
    path = Path(os.path.abspath(place.path))
    is_file = place.name == "pool" and os.path.isfile(path)
    if os.path.isdir(path) or is_file:
        state = "writable" if os.access(path, os.W_OK | (0 if is_file else os.X_OK)) else "read only"
        return Looked(state, shutil.disk_usage(path).free)
    above = next(folder for folder in (path, *path.parents) if os.path.lexists(folder))
    if above == path:
        return Looked("a file", shutil.disk_usage(path.parent).free)
    can = os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)
    return Looked("not there yet" if can else "cannot be made", shutil.disk_usage(above).free)
