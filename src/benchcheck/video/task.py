"""Tasks: one video file and the sets of frames wanted from it, as they travel to a worker process."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchcheck.video.grid import Window

__all__ = ["HubFile", "Member", "Task"]


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: where its bytes stand, and how they are packed."""

    archive: str
    """What messages and frames.json call the archive: its path below the videos folder, or in its hub dataset."""
    parts: tuple[str, ...]
    """The archive's local files, in order: one, or the parts of a split archive."""
    path: str
    """Its name in the archive, with slashes."""
    at: int
    """Where it begins: of a zip archive its local header, of a tar its data (in the unpacked stream if `solid`)."""
    size: int
    """Bytes of the file."""
    packed: int
    """Bytes that it takes in the archive; `size` where it is stored as it is."""
    method: int = 0
    """The zip compression method; 0 is stored."""
    crc: int | None = None
    """CRC-32 of the file, where the archive has one: then it is a zip archive."""
    solid: bool = False
    """Whether the archive is one packed stream (tar.gz): a member is reached by unpacking all before it."""
    bad: str = ""
    """Why it cannot be read, whatever its bytes are; empty where it can."""

    @property
    def name(self) -> str:
        """How messages and frames.json call it: `videos.zip!/clips/a.mp4`."""
        return f"{self.archive}!/{self.path}"


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a hub dataset at a commit; it is downloaded when it is needed."""

    hub: str
    revision: str
    path: str
    cache: str = ""
    """The hub cache where the config names one; the library's own when empty."""

    @property
    def name(self) -> str:
        """How messages and frames.json call it."""
        return f"{self.hub}@{self.revision}/{self.path}"


@dataclass(frozen=True, slots=True)
class Task:
    """One video file and the sets of frames wanted from it.

    The file is the first of `paths` that is there, else `member`, else `hub`; else that of the `others`.
    """

    key: str
    """The video key."""
    paths: tuple[str, ...]
    """Where the file may lie, best first."""
    windows: Mapping[str, Window]
    """By frames key."""
    folder: str
    """The videos folder: frames.json names the file below it, never a path of this machine."""
    bench: str = ""
    member: Member | None = None
    hub: HubFile | None = None
    otherwise: tuple[str, str] | None = None
    """Status and reason where the file is none of these; none: what stands at `paths` tells."""
    scratch: str = ""
    """Folder in which a packed member is laid while it is read; the system's own when empty."""
    unpacked: str = ""
    """The scratch file in which the run has laid `member` already."""
    others: tuple["Task", ...] = ()
    """Other places of the same video, by its other keys; without windows of their own."""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Task":
        """Read a task back from its JSON form."""
        values: dict[str, Any] = {**table, "paths": tuple(table["paths"])}
        values["windows"] = {key: (start, end) for key, (start, end) in table["windows"].items()}
        if member := table.get("member"):
            values["member"] = Member(**{**member, "parts": tuple(member["parts"])})
        if hub := table.get("hub"):
            values["hub"] = HubFile(**hub)
        if otherwise := table.get("otherwise"):
            values["otherwise"] = tuple(otherwise)
        values["others"] = tuple(map(cls.of, table.get("others", ())))
        return cls(**values)

    def table(self) -> dict[str, Any]:
        """Return this task as JSON values."""
        return asdict(self)

    def laid(self, path: str) -> "Task":
        """Return this task with its member in a scratch file."""
        return replace(self, unpacked=path)

    def failing(self, status: str, reason: str) -> "Task":
        """Return this task for a worker that is to say why there is no file."""
        return replace(self, paths=(), member=None, hub=None, otherwise=(status, reason))
