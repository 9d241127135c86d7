"""How far a transfer is, and what it has done in the end."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Halted", "Moved", "Moving", "Told", "readable"]

Told = Callable[["Moving"], None]


class Halted(Exception):  # noqa: N818 - no error: it ends a thread, and nobody sees it
    """A transfer was stopped while this file was on its way."""


@dataclass(slots=True)
class Moving:
    """One part of a transfer on its way: what is done, and how many bytes of how many."""

    doing: str
    of_bytes: int
    told: Told
    bytes: int = 0
    halted: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, count: int) -> None:
        """Hear that some more bytes are done; threads call this.

        Raises:
            Halted: the transfer was stopped or has failed elsewhere, so that this thread can clean up.
        """
        if self.halted:
            raise Halted
        with self._lock:
            self.bytes += count
            self.told(self)

    def halt(self) -> None:
        """End the files that are on their way, each at its next block."""
        self.halted = True


@dataclass(slots=True)
class Moved:
    """A transfer that ended well.

    Attributes:
        doing: `sent` or `fetched`.
        files: how many travelled.
        same: how many were there already.
        bytes: those that travelled.
        unverified: files that nothing but their size vouches for.
        ends: where it went.
    """

    doing: str
    files: int = 0
    same: int = 0
    bytes: int = 0
    unverified: int = 0
    ends: str = ""
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def over(self) -> "Moved":
        """Stop the clock."""
        self.seconds = time.monotonic() - self.began
        return self

    def line(self) -> str:
        """The whole in one line."""
        there = f", {self.same:,} there already" if self.same else ""
        rate = f"{self.bytes / 1e6 / self.seconds:,.1f} MB/s" if self.seconds and self.bytes else "nothing to do"
        files = f"{self.files:,} file{'' if self.files == 1 else 's'} {self.doing}{there}"
        return f"{files}: {readable(self.bytes)} in {self.seconds:,.1f} s ({rate}) -> {self.ends}"


def readable(count: int) -> str:
    """Bytes in a unit that a person reads (1 kB is 1,000)."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} bytes" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
