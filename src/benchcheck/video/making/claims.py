"""A video is decoded by one process at a time: a claim is a lock on a small file, freed when its holder ends or dies.

Two extractions on one study, on one machine or over a shared disk, divide its videos by it. The files lie in a folder
of their own beside the frames; a holder removes its file, and what a killed one left is cleared by the next run.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from benchcheck.files import writing

__all__ = ["CLAIMS", "claimed", "clear_claims", "no_locks"]

CLAIMS = ".claims"
"""Below the frames folder; a name with a dot is no set of frames."""
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


@contextlib.contextmanager
def claimed(frames: Path, video_key: str, *, wait: bool = False) -> Iterator[bool]:
    """Hold a video while the block runs; gives False at once where another process holds it, unless it is to `wait`.

    Raises:
        StudyError: the frames folder cannot be written.
    """
    path = frames / CLAIMS / f"{hashlib.sha1(video_key.encode('utf-8', 'replace')).hexdigest()}.lock"
    with writing(path):
        file = _held(path, wait)
    if file is None:
        yield False
        return
    with file:
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)


def _held(path: Path, wait: bool) -> IO[bytes] | None:
    """The locked file, or None where another process holds it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as unless_held:
            try:
                file = unless_held.enter_context(path.open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except FileNotFoundError:  # another run just cleared the folder
                continue
            except OSError as reason:
                if reason.errno in _BUSY and not wait:
                    return None
                raise
            # The holder before removed it: whoever comes next locks another file of this name.
            if _is_still(path, file):
                unless_held.pop_all()
                return file


def _is_still(path: Path, file: IO[bytes]) -> bool:
    """Whether an open file is the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False


def no_locks(frames: Path) -> str:
    """Return why this file system locks nothing (a network disk mounted without); empty where it does.

    Raises:
        StudyError: the frames folder cannot be written.
    """
    probe = frames / CLAIMS / f"probe.{os.getpid()}.lock"
    with writing(probe):
        probe.parent.mkdir(parents=True, exist_ok=True)
        with probe.open("ab") as file:
            probe.unlink()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as reason:
                return os.strerror(reason.errno or 0)
    return ""


def clear_claims(frames: Path) -> None:
    """Remove the files that killed holders left, and the folder when nobody holds a video."""
    folder = frames / CLAIMS
    with contextlib.suppress(OSError):
        for left in list(folder.iterdir()):
            with contextlib.suppress(OSError), left.open("ab") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(left, file):
                    left.unlink()
        folder.rmdir()
