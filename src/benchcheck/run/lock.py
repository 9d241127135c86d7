"""One run at a time on a study: `logs/run.lock`, which the kernel frees when its holder ends, kill -9 included.

A run (`screen`) holds it alone. Tasks of an array (`screen --shard`) hold it together, and not beside a run. Workers
that a run starts take none. Without the lock nothing would be damaged, since rows are whole and the last one of an
item counts, but both runs would ask the same items.
"""

import contextlib
import errno
import fcntl
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from benchcheck.errors import UsageError
from benchcheck.files import publish, writing
from benchcheck.run.work import now
from benchcheck.study import Study

__all__ = ["LOCK_NAME", "Holder", "check_writable", "run_lock"]

LOCK_NAME = "run.lock"
_PROBE_NAME = ".write-test"
_PROBE = b"0" * 4096
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a study's lock."""

    host: str
    pid: int
    since: str
    command: str

    def __str__(self) -> str:
        """For people."""
        return f"process {self.pid} on {self.host}, since {self.since}: {self.command}"


def check_writable(study: Study) -> None:
    """Write a little where results and logs go, and remove it, so that a run does not find out after hours.

    Raises:
        StudyError: a folder is read-only, or the disk is full.
    """
    for folder in (study.results, study.logs):
        probe = folder / f"{_PROBE_NAME}.{platform.node()}.{os.getpid()}"
        with publish(probe) as temporary:
            temporary.write_bytes(_PROBE)
        with writing(probe):
            probe.unlink(missing_ok=True)


@contextmanager
def run_lock(study: Study, shared: bool = False, warn: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Hold a study's lock while the block runs; `shared` with other tasks of an array.

    Args:
        study: the study.
        shared: whether tasks of an array may hold it too.
        warn: hears that this file system cannot lock; the block then runs without.

    Raises:
        UsageError: another run holds it; with its host and process.
        StudyError: the study cannot be written.
    """
    check_writable(study)
    path = study.logs / LOCK_NAME
    with writing(path):
        file = path.open("a+", encoding="utf-8")
    with file:
        # A child made by fork would share the lock and keep it when this process is killed.
        os.register_at_fork(after_in_child=file.close)
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as reason:
            if reason.errno in _BUSY:
                raise UsageError(_refusal(study, path)) from None
            warn(f"{path}: this file system cannot lock ({reason.strerror}): start no second run on this study")
        else:
            with writing(path):
                _sign(file)
        try:
            yield
        finally:
            # Closing frees it only once a child that was forked a moment ago has closed its copy, too.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _sign(file: IO[str]) -> None:
    """Write who holds the lock; of tasks that share it, the last to start."""
    holder = Holder(platform.node(), os.getpid(), now(), shlex.join(["benchcheck", *sys.argv[1:]]))
    file.seek(0)
    file.truncate()
    file.write(json.dumps(asdict(holder)) + "\n")
    file.flush()


def _refusal(study: Study, path: Path) -> str:
    """Say who runs."""
    try:
        who = str(Holder(**json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):
        who = "a process that has not signed yet"
    return (
        f"{study.root}: another run is at work on this study ({who}). Cure: wait for it or end it, then run this again"
    )
