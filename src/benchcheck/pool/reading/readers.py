"""Readers: annotation files as records, one at a time. A file that is not what it claims is one line, not a traceback.

Everything is streamed, JSON documents too, as long as `unnest` begins with what takes their root apart (`jsontext`).
Where it does not, the document is held whole, at 4 to 5 times its size.
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from benchcheck.errors import DamagedFileError, InputError
from benchcheck.pool.fields import shown
from benchcheck.pool.reading.jsontext import Fault, Window, is_lines, parse, stream
from benchcheck.pool.reading.nesting import unnest
from benchcheck.pool.reading.parquet import parquet_rows
from benchcheck.pool.reading.paths import below
from benchcheck.pool.reading.sources import (
    READABLE,
    Origin,
    decoded,
    lines,
    members,
    named,
    texts,
)
from benchcheck.pool.reading.tables import check_names, table_rows

__all__ = ["READERS", "Layout", "Record", "read_records", "rows", "stem"]

_CURES = {
    ".xlsx": "save the sheet as CSV (UTF-8)",
    ".xls": "save the sheet as CSV (UTF-8)",
    ".ods": "save the sheet as CSV (UTF-8)",
    ".pkl": "save it as JSON lines; to read a pickle is to run the code in it",
    ".pickle": "save it as JSON lines; to read a pickle is to run the code in it",
    ".tar": "unpack it, or pack it as .zip",
    ".tgz": "unpack it, or pack it as .zip",
    ".7z": "unpack it, or pack it as .zip",
    ".rar": "unpack it, or pack it as .zip",
    ".arrow": "save it as Parquet",
}
"""What to do with files that nothing reads, by suffix."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file, and where it stands: `line 7`, `row 7` or `record 7`, counted from 1."""

    values: dict[str, Any]
    file: Path
    place: str
    row: int
    """0-based row in its file; in an archive it runs on from member to member."""
    inside: str = ""
    """The archive's member that holds it, empty for a plain file."""

    @property
    def where(self) -> str:
        """File and place, as messages begin: `set.json: record 7` or `set.zip!/a/b.json: record 7`."""
        return f"{self.file}{'!/' * bool(self.inside)}{self.inside}: {self.place}"

    @property
    def member(self) -> str:
        """Stem of the archive's member, or of the file where there is no archive: what `_member` names."""
        return stem(self.inside or self.file.name)


@dataclass(frozen=True, slots=True)
class Layout:
    """How files are laid out: the reader, a header for CSV files without one, the steps to unnest.

    `members` are patterns of the members to read, for an archive or a folder; every annotation file when empty.
    """

    reader: str = "auto"
    header: tuple[str, ...] = ()
    unnest: tuple[str, ...] = ()
    members: tuple[str, ...] = ()


def stem(name: str) -> str:
    """Return a file's name without its suffix, and without the one before `.gz`."""
    return PurePosixPath(name.removesuffix(".gz")).stem


_Rows = Iterator[tuple[str, Any]]
"""Places and what stands there."""


def read_records(path: Path, layout: Layout = Layout()) -> Iterator[Record]:
    """Read the records of a file, of the members of a zip archive, or of the files of a folder.

    Raises:
        InputError: it is not there, nothing reads it, or it is not what the layout says; one line with the file, the
            place, what was found, what is allowed and the cure.
        DamagedFileError: nothing could be read from it, whatever the layout says; one line, too.
    """
    files = below(path, layout.members) if path.is_dir() else [path]
    for file in files:
        yield from _of_file(file, layout)


def _of_file(path: Path, layout: Layout) -> Iterator[Record]:
    """The records of one file on disk."""
    count = 0
    try:
        with contextlib.closing(_origins(path, layout)) as origins:
            for origin in origins:
                for place, values in rows(origin, layout):
                    yield Record(values, path, place, count, origin.inside)
                    count += 1
    except (FileNotFoundError, PermissionError, IsADirectoryError) as reason:
        raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check the path and its permissions") from None
    except OSError as reason:
        raise DamagedFileError(
            f"{path}: not readable after record {count}: {reason.strerror or reason}. Cure: check the disk, or copy "
            "the file again"
        ) from None
    if not count:
        raise InputError(f"{path}: no record in it. Cure: give a file with at least one record")


def _origins(path: Path, layout: Layout) -> Generator[Origin]:
    """A file, or the members of a zip archive."""
    if path.suffix.lower() == ".zip":
        yield from members(path, layout.members)
    else:
        yield named(path)


def rows(origin: Origin, layout: Layout) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the values of one origin's records, each with its place; it is closed at the end, or where a fault ends it.

    Raises:
        InputError: as `read_records`.
    """
    with origin.opened:
        for place, values in _reader(origin, layout)(origin, layout):
            if not isinstance(values, dict):
                raise InputError(f"{origin.name}: {place} is {shown(values)}. Allowed: a record with named fields")
            yield place, values


def _reader(origin: Origin, layout: Layout) -> Callable[[Origin, Layout], _Rows]:
    """The layout's reader, else that of the suffix."""
    name = READABLE.get(origin.suffix) if layout.reader == "auto" else layout.reader
    if name is None or origin.suffix in _CURES:
        what = repr(origin.suffix) if origin.suffix else "a name without suffix"
        cure = f". Cure: {_CURES[origin.suffix]}" if origin.suffix in _CURES else ""
        raise InputError(
            f"{origin.name}: nothing reads {what}. Allowed: {', '.join(READABLE)}, each also as .gz, in a .zip or a "
            f"folder{cure}"
        )
    return READERS[name]


def _read_json(origin: Origin, layout: Layout) -> _Rows:
    """A JSON document; JSON lines in a file named .json are read as such (Social-IQ 2.0)."""
    window = Window(texts(origin))
    if is_lines(window):
        yield from _read_jsonl(origin, layout)
        return
    number = 0
    try:
        for record in stream(window, layout.unnest):
            number += 1
            yield f"record {number}", record
    except Fault as fault:
        place = f"line {fault.line}, column {fault.column}" if fault.line else f"after record {number}"
        _refuse_json(origin, place, fault)
    except ValueError as reason:
        place = f"record {number + 1}: " if number else ""
        raise InputError(
            f"{origin.name}: {place}{reason}. Cure: declare unnest in the spec, or convert to one list of records"
        ) from None


def _refuse_json(origin: Origin, place: str, fault: Fault) -> NoReturn:
    """Raise what a fault is for a user."""
    cut = "cut off" in str(fault)
    cure = "get the whole file again" if cut else "mend the file there, or get it again"
    raise DamagedFileError(f"{origin.name}: {place}: {fault}. Cure: {cure}") from None


def _read_jsonl(origin: Origin, layout: Layout) -> _Rows:
    """JSON lines: one object a line, blank lines aside."""
    return _read_rows(origin, _parsed_lines(origin), layout)


def _parsed_lines(origin: Origin) -> _Rows:
    """The values of JSON lines, each with its place."""
    for number, line in lines(origin):
        text = line.strip(b" \t\r\n")
        if not text:
            continue
        try:
            yield f"line {number}", parse(decoded(origin, text, number))
        except Fault as fault:
            column = f" at column {fault.column}" if fault.column else ""
            raise DamagedFileError(
                f"{origin.name}: line {number}: {fault}{column}. Cure: one JSON object a line; a "
                "document over many lines is named .json"
            ) from None


def _read_jsonl_rows(origin: Origin, layout: Layout) -> _Rows:
    """JSON lines of arrays, the first of which names the fields (SUTD-TrafficQA)."""
    return _read_rows(origin, _headed_lines(origin, layout.header), layout)


def _headed_lines(origin: Origin, given: Sequence[str]) -> _Rows:
    """Lines of arrays as records: by the header that is given, else by the first line."""
    header = list(given)
    for line, value in _parsed_lines(origin):
        if not isinstance(value, list):
            raise InputError(f"{origin.name}: {line} is {shown(value)}. Allowed: an array. Cure: set reader = 'jsonl'")
        if not header:
            header = [str(name) for name in value]
            check_names(origin, header)
            continue
        if len(value) != len(header):
            raise DamagedFileError(
                f"{origin.name}: {line}: {len(value)} values where the header has {len(header)}. Cure: one "
                "value a field, null where there is none"
            )
        yield line, dict(zip(header, value, strict=True))


def _read_csv(origin: Origin, layout: Layout) -> _Rows:
    return _read_rows(origin, table_rows(origin, layout.header, ","), layout)


def _read_tsv(origin: Origin, layout: Layout) -> _Rows:
    return _read_rows(origin, table_rows(origin, layout.header, "\t"), layout)


def _read_parquet(origin: Origin, layout: Layout) -> _Rows:
    return _read_rows(origin, parquet_rows(origin), layout)


def _read_rows(origin: Origin, table: _Rows, layout: Layout) -> _Rows:
    """The rows of a table, or the values of lines, as they are or as `unnest` has them."""
    if not layout.unnest:
        yield from table
        return
    for place, row in table:
        try:
            yield from ((place, record) for record in unnest([row], layout.unnest))
        except ValueError as reason:
            raise InputError(f"{origin.name}: {place}: {reason}. Cure: mend unnest in the spec") from None


READERS: dict[str, Callable[[Origin, Layout], _Rows]] = {
    "json": _read_json,
    "jsonl": _read_jsonl,
    "jsonl_rows": _read_jsonl_rows,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
}
"""Readers by name; `auto` chooses by the file's suffix."""
