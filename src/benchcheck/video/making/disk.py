"""The disk that frames take: what is to come, measured on the study's own sets, against what is free."""

import itertools
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchcheck.errors import StudyError
from benchcheck.study import Study
from benchcheck.video.amounts import counted, shown_size

__all__ = ["FRAME_BYTES", "MARGIN", "SPARE_BYTES", "Need", "bytes_of_set", "free_at", "need_of"]

FRAME_BYTES = 43_000
"""A JPEG of 448x252 at quality 85."""
MARGIN = 0.10
"""(D) Share of what is to come that has to be free beside it: half a block a file is 5 % of a 43 kB frame."""
SPARE_BYTES = 100_000_000
"""(D) And this much in any case: rows, results and other programs write, too."""
_SAMPLE = 20
"""Frame folders that a size is measured on."""
_BESIDE = 2
"""Files of a set beside its frames: frames.json and the folder."""


@dataclass(frozen=True, slots=True)
class Need:
    """What sets of frames that are to be made will take, and what is free where they go."""

    sets: int
    files: int
    """Files and folders of those sets."""
    bytes: int
    measured: bool
    """Whether a set's size is this study's own."""
    folder: Path
    free_bytes: int | None
    """None where the file system does not say."""
    free_files: int | None

    def line(self) -> str:
        """Return the estimate as one line."""
        basis = "as those on disk" if self.measured else f"{FRAME_BYTES / 1000:.0f} kB a frame of 448 px"
        free = "unknown" if self.free_bytes is None else shown_size(self.free_bytes)
        size = f"about {shown_size(self.bytes)} ({basis}); free in {self.folder}: {free}"
        return f"{counted(self.sets, 'set')} of frames to make: {size}"

    def refuse(self) -> None:
        """Refuse to begin, or to go on, where it would not fit.

        Raises:
            StudyError: one line with what is needed, what is free and the cure.
        """
        if not self.sets:
            return
        wanted = self.bytes + round(self.bytes * MARGIN) + SPARE_BYTES
        if self.free_bytes is not None and self.free_bytes < wanted:
            raise self._too_little(shown_size(wanted), shown_size(self.free_bytes))
        if self.free_files is not None and self.free_files < self.files:
            raise self._too_little(f"{self.files:,} files", f"room for {self.free_files:,}")

    def _too_little(self, wanted: str, free: str) -> StudyError:
        return StudyError(
            f"{self.folder}: {counted(self.sets, 'set')} of frames to make: about {wanted} with a margin, and there is "
            f"{free} free. Cure: free space, set POOL_FRAMES_DIR to a larger disk, or go on with --ignore-free-space"
        )


def need_of(study: Study, sets: int, made: Iterable[str] = ()) -> Need:
    """Estimate what so many sets will take; `made` are frames keys to measure first, such as those just made."""
    of_set, measured = bytes_of_set(study, made)
    count = study.config.frames.count
    free_bytes, free_files = free_at(study.frames)
    return Need(
        sets, sets * (count + _BESIDE), math.ceil(sets * of_set), measured, study.frames, free_bytes, free_files
    )


def bytes_of_set(study: Study, made: Iterable[str] = ()) -> tuple[float, bool]:
    """Return the mean bytes of a set of frames, and whether they were measured on those that are there."""
    keys = itertools.islice(itertools.chain(made, sorted(study.frames_ready())), _SAMPLE)
    sizes = [size for key in keys if (size := _size(study.frames / key))]
    if sizes:
        return sum(sizes) / len(sizes), True
    grid = study.config.frames
    return FRAME_BYTES * grid.count * (grid.long_side / 448) ** 2, False


def _size(folder: Path) -> int:
    """Bytes of a folder's pictures; 0 where it went away meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries if entry.name.endswith(".jpg"))
    except OSError:
        return 0


def free_at(folder: Path) -> tuple[int | None, int | None]:
    """Return the free bytes and files where a folder is, or will be; None for what its file system does not say."""
    there = next(above for above in (folder, *folder.absolute().parents) if above.exists())
    try:
        found = os.statvfs(there)
    except OSError:
        return None, None
    space = found.f_bavail * found.f_frsize if found.f_blocks else None
    return space, found.f_favail if found.f_files else None
