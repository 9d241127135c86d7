"""Folders that appear whole: filled under another name, moved in place in one step, cleared after a killed writer.

Each has one file that says what is in it (`frames.json`, `meta.json`). Its writer holds that file locked meanwhile, so
that what a killed one left is told from what is just being made: on another node too, where process ids mean nothing.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["clear_abandoned", "in_progress", "moved", "set_aside"]

_LONELY_S = 60
"""A temporary folder without its file is this young while its owner is just making it."""


@contextlib.contextmanager
def in_progress(parent: Path, name: str, file_name: str) -> Iterator[Path]:
    """Give a temporary folder, its owner's by the lock on `file_name` in it; removed unless it was moved away."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{name}.{os.getpid()}.", suffix=".tmp", dir=parent))
    try:
        with (folder / file_name).open("wb") as lock:
            with contextlib.suppress(OSError):  # a network disk without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            folder.chmod(0o777 & ~_umask())
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def moved(folder: Path, final: Path, is_whole: Callable[[Path], bool]) -> bool:
    """Move a finished folder in place; when a whole one is there already, that one stays. Says whether it moved."""
    for _ in range(2):
        try:
            folder.rename(final)
        except OSError as reason:
            if reason.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        else:
            return True
        if is_whole(final):
            return False
        set_aside(final)
    return False


def set_aside(final: Path) -> None:
    """Take a folder, or a file in its place, out of the way in one step, then remove it."""
    aside = final.with_name(f".{final.name}.{os.getpid()}.{time.monotonic_ns()}.old.tmp")
    with contextlib.suppress(FileNotFoundError):
        final.rename(aside)
    if aside.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)


def _umask() -> int:
    """This process's umask; mkdtemp makes private folders, these are shared like other files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def clear_abandoned(parent: Path, file_name: str) -> int:
    """Remove temporary folders of runs that were killed, and return how many; those in use are locked and stay."""
    removed = 0
    if not parent.is_dir():
        return 0
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(".tmp")]
    for name in names:
        if _abandoned(parent / name, file_name):
            shutil.rmtree(parent / name, ignore_errors=True)
            removed += 1
    return removed


def _abandoned(folder: Path, file_name: str) -> bool:
    """Whether nobody holds a temporary folder."""
    try:
        with (folder / file_name).open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime > _LONELY_S
        return False
    except OSError:
        return False
