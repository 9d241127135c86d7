"""What is known of a folder's files without reading them again: hashes, and what was sent where.

Rows of `.benchcheck-transfer.jsonl` in the folder, which never travels. A hash counts while the file's size and time
are those it was made at; what was sent counts while the far file's mark is the one it had then. Without the file all
is read again, and the result is the same.
"""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchcheck.errors import StudyError
from benchcheck.files import append_rows

__all__ = ["LEDGER", "Ledger"]

LEDGER = ".benchcheck-transfer.jsonl"


class Ledger:
    """A folder's hashes, and its transfers to or from one address."""

    def __init__(self, folder: Path, address: str) -> None:
        self._path, self._address = folder / LEDGER, address
        self._hashes: dict[str, tuple[int, int, str]] = {}
        self._sent: dict[str, tuple[str, str]] = {}
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            for line in file:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._take(json.loads(line))

    def _take(self, row: Mapping[str, Any]) -> None:
        """Take one row up; a later one of the same file wins."""
        if "to" not in row:
            self._hashes[row["name"]] = (row["bytes"], row["mtime_ns"], row["sha256"])
        elif row["to"] == self._address:
            self._sent[row["name"]] = (row["sha256"], row["mark"])

    def hash_of(self, name: str, size: int, mtime_ns: int) -> str:
        """Return a file's sha256; nothing where it is not known or the file was written since."""
        known = self._hashes.get(name)
        return known[2] if known is not None and known[:2] == (size, mtime_ns) else ""

    def was_sent(self, name: str, sha256: str, mark: str) -> bool:
        """Whether this content was sent, and the far file is the one that it made."""
        return bool(mark) and self._sent.get(name) == (sha256, mark)

    def hashed(self, name: str, size: int, mtime_ns: int, sha256: str) -> None:
        """Note a hash."""
        self._note([{"name": name, "bytes": size, "mtime_ns": mtime_ns, "sha256": sha256}])

    def sent(self, name: str, sha256: str, mark: str) -> None:
        """Note that a file is far away, whole."""
        if mark:
            self._note([{"to": self._address, "name": name, "sha256": sha256, "mark": mark}])

    def _note(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows; a folder that cannot be written to goes without."""
        with contextlib.suppress(StudyError, OSError):
            append_rows(self._path, rows)
