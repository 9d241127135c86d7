"""Tasks: one video file and the sets of frames wanted from it, as they travel to a worker process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchcheck.video.grid import Window

__all__ = ["Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """One video file and the sets of frames wanted from it."""

    key: str
    """The video key."""
    paths: tuple[str, ...]
    """Where the file may lie, best first."""
    windows: Mapping[str, Window]
    """By frames key."""
    folder: str
    """The videos folder: frames.json names the file below it, never a path of this machine."""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Task":
        """Read a task back from its JSON form."""
        windows = {key: (start, end) for key, (start, end) in table["windows"].items()}
        return cls(table["key"], tuple(table["paths"]), windows, table["folder"])

    def table(self) -> dict[str, Any]:
        """Return this task as JSON values."""
        return {"key": self.key, "paths": self.paths, "windows": self.windows, "folder": self.folder}
