"""A package of the original layout on disk: where its parts lie, and its rows, read without trusting a byte of them."""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.errors import DamagedFileError, InputError
from benchcheck.files import LONGEST_ROW

__all__ = ["Original", "find_original", "inside", "lines_of"]

_MOST_BRACKETS = 100_000
"""More than any row has: 26 options in 24 orders have about 1,300."""
_STEP_FILE = re.compile(r"([A-Za-z0-9][\w-]{0,63})(\.p\d+)?\.jsonl", re.ASCII)
_ITEMS = ("pool_items_base.parquet", "pool_items.parquet")


@dataclass(frozen=True, slots=True)
class Original:
    """The parts of a package."""

    root: Path
    items: Path
    steps: Mapping[int, tuple[Path, ...]]
    """By number, sorted by name."""
    frames: Path | None
    """The folder of frame folders."""
    shards: Path | None
    """The folder of frame shards and their manifest."""
    videos: Path | None
    """The video manifest."""
    odd: tuple[str, ...]
    """Files beside the rows that are none, by name."""

    def shown(self, path: Path) -> str:
        """A file's name as rows and messages carry it: below the package, never a path of this machine."""
        return f"{self.root.name}/{path.relative_to(self.root).as_posix()}"


def find_original(package: Path) -> Original:
    """Find the parts of a package; its `results` may also be the package itself.

    Raises:
        InputError: there is no such folder, or it holds no items or no rows of a step.
        DamagedFileError: a part is a link that leads out of the package.
    """
    root = Path(os.path.abspath(package))
    if not root.is_dir():
        raise InputError(f"{package}: no such folder. Cure: name the folder of an unpacked package")
    results = root / "results" if (root / "results").is_dir() else root
    places = [folder / name for folder in dict.fromkeys((results, root)) for name in _ITEMS]
    items = next((path for path in places if path.is_file()), None)
    if items is None:
        raise InputError(f"{package}: no items. Wanted: results/{_ITEMS[0]} or results/{_ITEMS[1]}. {_holds(root)}")
    steps, odd = _steps(results)
    if not steps:
        raise InputError(f"{package}: no rows of a step. Wanted: results/step<k>/<bench>.jsonl, k from 1 to 6. "
                         f"{_holds(results)}")  # fmt: skip
    shards = next((at for at in (root / "frames", root) if (at / "frames_manifest.json").is_file()), None)
    frames = next((at for at in (root / "frames/pool_frames", root / "pool_frames") if at.is_dir()), None)
    videos = next((at for at in (root / "logs/manifest.jsonl", root / "manifest.jsonl") if at.is_file()), None)
    found = Original(root, items, steps, frames, shards, videos, tuple(odd))
    for path in (items, *(path for paths in steps.values() for path in paths), frames, shards, videos):
        if path is not None and not inside(root, path):
            raise DamagedFileError(f"{found.shown(path)}: a link that leads out of the package: not imported")
    return found


def _holds(folder: Path) -> str:
    """What a folder holds, for a message."""
    names = sorted(entry.name for entry in os.scandir(folder))
    shown = ", ".join(repr(name)[1:-1] for name in names[:8])
    return f"Found: {shown}{f' and {len(names) - 8} more' if len(names) > 8 else ''}" if names else "It is empty"


def _steps(results: Path) -> tuple[dict[int, tuple[Path, ...]], list[str]]:
    """The files of every step's rows, and the names of what else lies there."""
    steps, odd = {}, list[str]()
    for number in range(1, 7):
        folder = results / f"step{number}"
        if not folder.is_dir():
            continue
        found = []
        for path in sorted(folder.iterdir()):
            if _STEP_FILE.fullmatch(path.name) and path.is_file():
                found.append(path)
            elif not path.name.startswith("."):
                odd.append(f"step{number}/{path.name}")
        if found:
            steps[number] = tuple(found)
    return steps, odd


def inside(root: Path, path: Path) -> bool:
    """Whether a path leads to something inside the package.

    In a snapshot of the hub's cache every file is a link into the same repository's `blobs`: these count.
    """
    whole = os.path.realpath(root)
    above = Path(whole).parent
    allowed = os.path.dirname(above) if above.name == "snapshots" else whole
    return os.path.realpath(path).startswith(allowed.rstrip("/") + "/")


def lines_of(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield number and content of every line of a file of rows; None for one that is no row: torn, or hostile.

    Raises:
        DamagedFileError: it is no plain file, or not readable.
    """
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise DamagedFileError(f"{path}: no plain file: not imported")
            number = 0
            while line := file.readline(LONGEST_ROW):
                number += 1
                whole = line.endswith(b"\n") or len(line) < LONGEST_ROW
                while not whole:  # the rest of a line that is longer than any row
                    rest = file.readline(LONGEST_ROW)
                    whole, line = rest.endswith(b"\n") or not rest, b"x"
                if line.strip():
                    yield number, _row(line)
    except OSError as reason:
        raise DamagedFileError(f"{path}: not readable: {reason.strerror}. Cure: get the file again") from None


def _row(line: bytes) -> dict[str, Any] | None:
    """One line as a row; None when it is none."""
    if line.count(b"[") + line.count(b"{") > _MOST_BRACKETS:
        return None
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
