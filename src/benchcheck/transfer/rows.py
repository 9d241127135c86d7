"""Rows on their way to another machine: whole lines only, and only those that count here.

A file may grow while it is read: its length is taken once, under the lock of its writers, and what comes behind is
left for the next time.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import step_key
from benchcheck.errors import StudyError
from benchcheck.files import LONGEST_ROW, file_list, name_in_duckdb, sql_text, writing
from benchcheck.screen.steps import Step
from benchcheck.study import Study

if TYPE_CHECKING:
    import duckdb

__all__ = ["Snapshot", "current_rows", "lines_source", "snapshot", "tables"]

_BLOCK = 1 << 20
_MEMORY = "1GB"
"""What DuckDB holds before it writes to the disk."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole lines of a file as they were at one moment."""

    name: str
    """Where it stands in a package."""
    path: Path
    bytes: int
    """How much of `path`, from its beginning."""
    sha256: str
    lines: int
    left_out: int = 0
    """Lines of the study's file that are not in it: torn ones, and rows of another protocol or item."""

    @property
    def entry(self) -> dict[str, Any]:
        """What the list of a package's files says."""
        return {"sha256": self.sha256, "bytes": self.bytes, "lines": self.lines}


def snapshot(path: Path, name: str) -> Snapshot:
    """Take a file's whole lines: all up to its last newline.

    Raises:
        StudyError: it cannot be read, or grew shorter meanwhile.
    """
    try:
        with path.open("rb") as file:
            # A file system may have no locks; a writer's half line is left out anyway.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH)
            size = _whole(file.fileno(), os.fstat(file.fileno()).st_size)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            digest, lines, left = hashlib.sha256(), 0, size
            while left:
                block = file.read(min(_BLOCK, left))
                if not block:
                    raise StudyError(f"{path}: grew shorter while it was read. Cure: run the same command again")
                digest.update(block)
                lines += block.count(b"\n")
                left -= len(block)
    except OSError as reason:
        raise StudyError(f"{path}: not readable: {reason.strerror}. Cure: put the file back") from reason
    return Snapshot(name, path, size, digest.hexdigest(), lines)


def _whole(file: int, size: int) -> int:
    """Return where the last whole line ends."""
    while size:
        start = max(0, size - _BLOCK)
        at = os.pread(file, size - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        size = start
    return 0


@contextmanager
def tables(study: Study, scratch: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Give DuckDB with the pool as `pool` (item_id, item_digest, bench), within bounded memory.

    Raises:
        StudyError: there is no pool yet, its file is damaged, or DuckDB cannot read or write a file.
    """
    import duckdb

    with duckdb.connect() as db:
        try:
            db.sql(f"set memory_limit = '{_MEMORY}'")
            db.sql(f"set temp_directory = {sql_text(str(scratch.absolute()))}")
            db.sql("set threads = 2")
            items = study.item_table(["item_id", "item_digest", "bench"])
            db.register("given", items)
            db.sql("create temp table pool as select * from given")
            db.unregister("given")
            yield db
        except duckdb.Error as reason:
            raise StudyError(f"{study.root}: rows cannot be read or compared: {reason}") from reason


def lines_source(files: Sequence[Path]) -> str:
    """Return what stands behind `from` to read lines in DuckDB in file order: `json` (null: no JSON), `filename`.

    The latter is `files.name_in_duckdb`.
    """
    found = file_list(files)
    if not found:
        return "(select null::json as json, null::varchar as filename limit 0)"
    return (
        f"read_ndjson_objects({found}, ignore_errors=true, filename=true, hive_partitioning=false, "
        f"maximum_object_size={LONGEST_ROW})"
    )


def current_rows(
    study: Study, db: "duckdb.DuckDBPyConnection", step: Step, files: Sequence[tuple[Path, str]], scratch: Path
) -> list[Snapshot]:
    """Return the rows of a step that count under the study's protocol and pool, file by file.

    A file of such rows alone is taken as it is. Where there are others (torn, of an earlier protocol, of an item that
    was edited or left), the rest is copied to `scratch`: elsewhere nobody could tell what they were.

    Args:
        study: the study.
        db: DuckDB with its pool (`tables`).
        step: the step.
        files: each file, and its name in the package.
        scratch: a folder for copies.

    Raises:
        StudyError: a file cannot be read, or a copy not written.
    """
    key = step_key(study.config, step)
    query = (
        "select l.filename, count(*) from "
        f"(select filename, json->>'item_id' as item, json->>'item_digest' as digest, json->>'step_key' as key from "
        f"{lines_source([path for path, _ in files])}) l "
        "left join pool p on p.item_id = l.item and p.item_digest = l.digest "
        f"where p.item_id is null or l.key is distinct from '{key}' group by all"
    )
    odd = dict(db.sql(query).fetchall())
    found = []
    for number, (path, name) in enumerate(files):
        whole = snapshot(path, name)
        if name_in_duckdb(path) in odd:
            copy = scratch / f"{step.number}-{number}-{len(name)}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            whole = _filtered(study, whole, key, copy)
        found.append(whole)
    return found


def _filtered(study: Study, whole: Snapshot, key: str, copy: Path) -> Snapshot:
    """Copy the rows of a file that count."""
    pool = study.item_table(["item_id", "item_digest"])
    known = dict(zip(pool.column("item_id").to_pylist(), pool.column("item_digest").to_pylist(), strict=True))
    with writing(copy), whole.path.open("rb") as source, copy.open("wb") as target:
        left = whole.bytes
        while left:
            line = source.readline(left)
            left -= len(line) or left
            if _counts(line, key, known):
                target.write(line)
    kept = snapshot(copy, whole.name)
    return Snapshot(kept.name, kept.path, kept.bytes, kept.sha256, kept.lines, whole.lines - kept.lines)


def _counts(line: bytes, key: str, known: dict[str, str]) -> bool:
    """Whether a line is a row of this protocol and pool."""
    try:
        row = json.loads(line)
        return isinstance(row, dict) and row["step_key"] == key and known[row["item_id"]] == row["item_digest"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
