"""Processes that end by SIGKILL at their n-th change on the disk: anywhere, and at the same place on any machine."""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MORTAL = """
import os, signal, sys, threading
_below, _left, _later = os.environ["MORTAL_BELOW"], int(os.environ["MORTAL_STEP"]), float(os.environ["MORTAL_LATER"])
_CHANGES = {"os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.remove", "os.truncate"}
def _die():
    os.kill(os.getpid(), signal.SIGKILL)
def _heard(event, arguments):
    global _left
    if event not in _CHANGES and not (event == "open" and isinstance(arguments[2], int) and arguments[2] & 3):
        return
    if _left > 0 and str(arguments[0]).startswith(_below):
        _left -= 1
        if not _left and _later:
            threading.Timer(_later, _die).start()
        elif not _left:
            _die()
sys.addaudithook(_heard)
"""


def dies(code: str, below: Path, step: int, *arguments: object, later_s: float = 0.0) -> bool:
    """Run code whose process is killed at its n-th change below a folder, or so long after; returns whether it was.

    A change is a file opened for writing, renamed, linked, removed, cut, or a folder made or removed. Whoever outlives
    it has ended well.
    """
    environment = os.environ | {
        "MORTAL_BELOW": str(below), "MORTAL_STEP": str(step), "MORTAL_LATER": str(later_s),
    }  # fmt: skip
    line = [sys.executable, "-c", MORTAL + code, *map(str, arguments)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


def steps() -> Iterator[tuple[int, float]]:
    """Where to kill one after the other: at 1, 2, 3, 5, 8, … changes, and by turns 5 ms later, within a write."""
    now, then = 1, 2
    for later in itertools.cycle((0.0, 0.0, 0.005)):
        yield now, later
        now, then = then, now + then
