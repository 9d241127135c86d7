"""Files that are whole or not there: publishing, appending rows under a lock, and reading rows by the column.

A file appears in one move (`publish`), a row is appended whole or not at all (`append_rows`), and reading tells good
rows from torn ones without hiding any (`read_rows`).
"""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from benchcheck.errors import StudyError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "LONGEST_ROW",
    "NO_LOCKS",
    "Rows",
    "append_rows",
    "file_list",
    "make_folder",
    "name_in_duckdb",
    "publish",
    "read_rows",
    "rows_source",
    "sql_text",
    "unbroken",
    "write_whole",
    "writing",
]


LONGEST_ROW = 1 << 24
"""Bytes of a row; DuckDB sets aside twice as much a thread. A row of 26 options in 24 orders has about 30,000."""

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What locking gives on a network disk that is mounted without locks."""

_OLD_S = 600
"""Seconds after which a dead writer's file is cleared: in a container of the same name it may yet be alive."""
_numbers = itertools.count()
"""Tells two writers of one file in one process apart."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder and the like into one line with the path; a bug stays a bug."""
    cures = {
        errno.ENOSPC: "the disk is full. Cure: free space and run the same command again; what was written is kept",
        errno.EDQUOT: "the disk quota is used up. Cure: free space and run the same command again",
        errno.EFBIG: "the file would grow over the size limit of this process (ulimit -f)",
        errno.EACCES: "no write permission. Cure: chmod the folder or choose another",
        errno.EPERM: "no write permission. Cure: chmod the folder or choose another",
        errno.EROFS: "the file system is read-only. Cure: choose another folder",
        errno.ENOTDIR: "a part of this path is a file, not a folder",
        errno.EISDIR: "this is a folder where a file is wanted",
        errno.EEXIST: "a file stands where a folder is wanted",
    }
    try:
        yield
    except OSError as reason:
        if reason.errno not in cures:
            raise
        raise StudyError(f"{path}: {cures[reason.errno]}") from reason


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is done: between writing and noting that it was written.

    Elsewhere than in the main thread no signal breaks anything.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: handler for number, handler in before.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda which, _: came.append(which))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; why that is not possible is one line, whatever the reason."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise StudyError(f"{folder}: cannot make this folder ({reason.strerror}). Cure: choose another") from reason


def _clear_leftovers(path: Path) -> None:
    """Remove temporary files of `path` (DuckDB adds a .wal) whose writer, a process of this machine, was killed."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.{re.escape(platform.node())}\.(\d+)\.\d+\.tmp(\..+)?")
    for left in path.parent.iterdir():
        found = ours.fullmatch(left.name)
        if found and not _alive(int(found[1])) and time.time() - left.stat().st_mtime > _OLD_S:
            left.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def publish(path: Path, *, sweep: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; when the block ends well, it becomes `path` in one move.

    Args:
        path: the file.
        sweep: whether what killed writers of it left is looked for, which reads the folder: not for the many files of a
            folder that is known to hold none.

    Raises:
        StudyError: the disk is full or the folder is not writable; `path` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.{next(_numbers)}.tmp")
    with writing(path):
        make_folder(path.parent)
        if sweep:
            _clear_leftovers(path)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
            temporary.with_name(temporary.name + ".wal").unlink(missing_ok=True)  # DuckDB's, where it could not end


def append_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a JSON-lines file: one write under an exclusive lock, whole rows only (protocol 6).

    A torn last line, left by a killed writer, is closed with a newline first, so that no row is glued to it. When the
    disk fills up in the middle, the file is cut back to where it was.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    if not rows:
        return
    # A lone surrogate, from a file name that is no UTF-8, is no JSON to DuckDB: it becomes a question mark.
    text = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    data = text.encode("utf-8", "replace")
    with writing(path):
        make_folder(path.parent)
        with path.open("a+b", buffering=0) as file:
            _lock(file)
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                data = b"\n" + data
            try:
                write_whole(file, data)
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(size)
                raise


def write_whole(file: IO[bytes], data: bytes) -> None:
    """Write all bytes to an unbuffered file: on a disk that fills up, a single write takes a part and says nothing."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def _lock(file: IO[bytes]) -> None:
    """Lock a file alone; a file system that has no locks is none the worse for one writer, and runs say so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as reason:
        if reason.errno not in NO_LOCKS:
            raise


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a step, and how many lines were no rows at all (torn by a killed writer, or damaged)."""

    table: "pa.Table"
    unreadable: int


def file_list(files: Sequence[Path]) -> str:
    """Return files as DuckDB's readers take them, a list in SQL; nothing where none of them holds a byte.

    Raises:
        StudyError: a file cannot be looked at.
    """
    # A name is a pattern to DuckDB, and a folder `a=b` a column, unless they are told apart.
    names = [re.sub(r"([*?\[])", r"[\1]", name_in_duckdb(file)) for file in files if _size(file)]
    return f"[{', '.join(map(sql_text, names))}]" if names else ""


def name_in_duckdb(file: Path) -> str:
    """Return what DuckDB's `filename` says of a file: of a name with `*`, `?` or `[` in it, all `..` are gone there."""
    return str(file.parent.resolve() / file.name)


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def rows_source(files: Sequence[Path], columns: Mapping[str, str]) -> str:
    """Return what stands behind `from` to read columns of JSON-lines files in DuckDB, in file order.

    `columns` maps names to DuckDB types. A line that is no JSON object gives a row of nulls.
    """
    found = file_list(files)
    if not found:
        nothing = ", ".join(f'null::{kind} as "{name}"' for name, kind in columns.items())
        return f"(select {nothing} limit 0)"
    declared = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    return (
        f"read_json({found}, format='newline_delimited', columns={{{declared}}}, ignore_errors=true, "
        f"hive_partitioning=false, maximum_object_size={LONGEST_ROW})"
    )


def _size(file: Path) -> int:
    """A file's size; one that cannot be looked at, such as a dangling link, is never taken for an empty one."""
    try:
        return file.stat().st_size
    except OSError as reason:
        cure = "Cure: put the file back, or remove what stands in its place"
        raise StudyError(f"{file}: rows are not readable: {reason.strerror}. {cure}") from reason


def read_rows(files: Sequence[Path], columns: Mapping[str, str], where: str = "") -> Rows:
    """Read some columns of many JSON-lines files with DuckDB, torn lines left out and counted.

    300,000 rows of 900 bytes take 1.2 s on two cores; a json.loads loop needs about four times that.

    Raises:
        StudyError: a file cannot be read.
    """
    import duckdb

    query = f"select * from {rows_source(files, columns)}" + (f" where item_id is null or ({where})" if where else "")
    with duckdb.connect() as connection:
        try:
            table = connection.sql(query).to_arrow_table()
        except duckdb.Error as reason:
            raise StudyError(f"{files[0].parent}: rows are not readable: {reason}") from reason
    torn = table.column("item_id").null_count
    if torn:
        table = table.filter(table.column("item_id").is_valid())
    return Rows(table, torn)
