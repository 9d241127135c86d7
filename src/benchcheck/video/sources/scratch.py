"""Scratch files: a packed video lies unpacked while it is read, and no longer; what a killed run left is cleared.

Its owner holds each file locked. So what is abandoned is told from what is in use without process ids, which mean
nothing on another node that shares the folder.
"""

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from benchcheck.files import write_whole, writing

__all__ = ["clear_scratch", "laid_out", "scratch_folder"]

_PREFIX = ".benchcheck-video-"
_OURS = re.compile(rf"{re.escape(_PREFIX)}\w+\.tmp(?:\.\w+)?")


def scratch_folder(named: str) -> str:
    """Return the folder of scratch files: the one named, else the system's for temporary files."""
    return os.path.abspath(named or tempfile.gettempdir())


@contextlib.contextmanager
def laid_out(blocks: Iterable[bytes], folder: str, name: str) -> Iterator[str]:
    """Lay bytes in a scratch file and give its path; it is gone when the block ends.

    `name` is what the bytes are called elsewhere: the file gets its extension, by which some formats are told.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    path, file = _own(folder, name)
    try:
        with file:
            for block in blocks:
                with writing(path):
                    write_whole(file, block)
            yield str(path)
    finally:
        path.unlink(missing_ok=True)


def _own(folder: str, name: str) -> tuple[Path, IO[bytes]]:
    """A new file, locked before anyone could take it for an abandoned one."""
    extension = os.path.splitext(name)[1]
    ending = extension if re.fullmatch(r"\.\w{1,8}", extension, re.ASCII) else ""
    while True:
        with writing(Path(folder)):
            os.makedirs(folder, exist_ok=True)
            number, path = tempfile.mkstemp(prefix=_PREFIX, suffix=f".tmp{ending}", dir=folder)
        file = open(number, "wb", buffering=0)  # noqa: SIM115 - closed by whoever gets it
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(number), os.stat(path)):
                return Path(path), file
        file.close()


def clear_scratch(folder: str) -> int:
    """Remove the scratch files of runs that were killed, and return how many; those in use are locked and stay."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                removed += _removed(entry.path)
    return removed


def _removed(path: str) -> bool:
    """Remove a scratch file unless somebody holds it, or it is another user's."""
    try:
        number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    except OSError:
        return False
    finally:
        os.close(number)
    return True
