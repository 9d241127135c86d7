"""Readers: annotation files as records, one at a time. A file that is not what it claims is one line, not a traceback.

Everything is streamed, JSON documents too, as long as `unnest` begins with what takes their root apart (`jsontext`).
Where it does not, the document is held whole, at 4 to 5 times its size.
"""

import contextlib
import csv
import datetime as dt
import decimal
import io
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from benchcheck.errors import DamagedFileError, InputError
from benchcheck.pool.fields import shown
from benchcheck.pool.reading.jsontext import Fault, Window, is_lines, parse, stream
from benchcheck.pool.reading.nesting import unnest
from benchcheck.pool.reading.paths import below
from benchcheck.pool.reading.sources import (
    MAX_LINE,
    PARQUET,
    READABLE,
    Origin,
    blocks,
    decoded,
    lines,
    members,
    named,
    texts,
)

__all__ = ["READERS", "Layout", "Record", "read_records", "rows", "stem"]

_BATCH = 1_000
"""Parquet rows in memory at a time."""
_BATCH_OF_BYTES = 20
"""The same where a column holds bytes: images, clips."""
_MAX_PARQUET = 1 << 30
"""Bytes of a Parquet file in an archive, which has to be unpacked whole."""

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
    steps = layout.unnest
    for number, line, value in _parsed_lines(origin):
        if not steps:
            yield line, value
            continue
        try:
            for record in unnest([value], steps):
                yield line, record
        except ValueError as reason:
            raise InputError(f"{origin.name}: line {number}: {reason}. Cure: mend unnest in the spec") from None


def _parsed_lines(origin: Origin) -> Iterator[tuple[int, str, Any]]:
    """The values of JSON lines, each with its number and its place."""
    for number, line in lines(origin):
        text = line.strip(b" \t\r\n")
        if not text:
            continue
        try:
            yield number, f"line {number}", parse(decoded(origin, text, number))
        except Fault as fault:
            column = f" at column {fault.column}" if fault.column else ""
            raise DamagedFileError(
                f"{origin.name}: line {number}: {fault}{column}. Cure: one JSON object a line; a "
                "document over many lines is named .json"
            ) from None


def _read_jsonl_rows(origin: Origin, layout: Layout) -> _Rows:
    """JSON lines of arrays, the first of which names the fields (SUTD-TrafficQA)."""
    header = list(layout.header)
    for number, line, value in _parsed_lines(origin):
        if not isinstance(value, list):
            raise InputError(f"{origin.name}: {line} is {shown(value)}. Allowed: an array. Cure: set reader = 'jsonl'")
        if not header:
            header = [str(name) for name in value]
            _check_names(origin, header)
            continue
        if len(value) != len(header):
            raise DamagedFileError(
                f"{origin.name}: line {number}: {len(value)} values where the header has {len(header)}. Cure: one "
                "value a field, null where there is none"
            )
        yield from _unnested(origin, line, dict(zip(header, value, strict=True)), layout)


def _unnested(origin: Origin, place: str, row: dict[str, Any], layout: Layout) -> _Rows:
    """A row of a table, or what `unnest` makes of it."""
    if not layout.unnest:
        yield place, row
        return
    try:
        yield from ((place, record) for record in unnest([row], layout.unnest))
    except ValueError as reason:
        raise InputError(f"{origin.name}: {place}: {reason}. Cure: mend unnest in the spec") from None


def _read_table(origin: Origin, layout: Layout, delimiter: str) -> _Rows:
    """CSV or TSV: a header, quoted cells, cells over several lines; every row as wide as the header."""
    csv.field_size_limit(MAX_LINE)
    texts_ = (decoded(origin, line, number) for number, line in lines(origin))
    table = csv.reader(texts_, delimiter=delimiter, strict=True)
    line = 1
    try:
        header = list(layout.header) or [name.strip() for name in next(filter(None, table), [""])]
        _check_header(origin, header, delimiter)
        line = table.line_num + 1
        for cells in table:
            if cells:
                if len(cells) != len(header) or cells == list(layout.header):
                    _refuse_row(origin, f"line {line}", cells, header, delimiter)
                yield from _unnested(origin, f"line {line}", dict(zip(header, cells, strict=True)), layout)
            line = table.line_num + 1
    except csv.Error as reason:
        cure = "Cure: a quote inside a quoted cell is written twice, and every quoted cell is closed"
        raise DamagedFileError(f"{origin.name}: the row at line {line}: {reason}. {cure}") from None


def _refuse_row(origin: Origin, place: str, cells: list[str], header: list[str], delimiter: str) -> NoReturn:
    """Raise what a row with too many or too few cells, or one that repeats a declared header, is for a user."""
    if cells == header:
        raise InputError(
            f"{origin.name}: {place} is the header that the spec declares. Cure: take header out of the spec"
        )
    found = f"{len(cells)} cells where the header has {len(header)}"
    cure = f"quote cells that hold {delimiter!r} or a line break"
    raise DamagedFileError(f"{origin.name}: {place}: {found}. Cure: {cure}")


def _check_header(origin: Origin, header: Sequence[str], delimiter: str) -> None:
    """Refuse a header with one column or with a name twice, and JSON under another name."""
    if header[0][:1] in ("[", "{"):
        raise InputError(
            f"{origin.name}: JSON, not a table. Cure: name it .json or .jsonl, or set reader = 'json' in the spec"
        )
    if len(header) < 2:
        other = next((mark for mark in ("\t", ";", ",", "|") if mark != delimiter and mark in header[0]), None)
        cures = {"\t": "set reader = 'tsv'", ",": "set reader = 'csv'"}
        cure = cures.get(other or "", "use commas, or reader = 'tsv' and tabs")
        found = f"one column, {header[0][:60]!r}, split at {delimiter!r}"
        raise InputError(f"{origin.name}: {found}. Allowed: a header with two columns or more. Cure: {cure}")
    _check_names(origin, header)


def _check_names(origin: Origin, names: Sequence[str]) -> None:
    """Refuse two columns of one name: one of them would be lost."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{origin.name}: the header names {name!r} twice. Cure: give every column its own name")


def _read_csv(origin: Origin, layout: Layout) -> _Rows:
    return _read_table(origin, layout, ",")


def _read_tsv(origin: Origin, layout: Layout) -> _Rows:
    return _read_table(origin, layout, "\t")


def _read_parquet(origin: Origin, layout: Layout) -> _Rows:
    """Parquet, a batch of rows at a time; nested columns come as lists and dicts, the rest as JSON would have it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(_parquet(origin)) as file:
            _check_names(origin, file.schema_arrow.names)
            heavy = any("binary" in str(column.type) for column in file.schema_arrow)
            for batch in file.iter_batches(batch_size=_BATCH_OF_BYTES if heavy else _BATCH):
                for values in batch.to_pylist():
                    number += 1
                    row = {name: _plain(value) for name, value in values.items()}
                    yield from _unnested(origin, f"row {number}", row, layout)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as reason:
        what = " ".join(str(reason).split())[:200]
        raise DamagedFileError(
            f"{origin.name}: after row {number}: not readable as Parquet: {what}. Cure: get the file again"
        ) from None


def _parquet(origin: Origin) -> Path | io.BytesIO:
    """A Parquet file's path, or its bytes where it lies in an archive."""
    stream_ = blocks(origin, parquet=True)
    head = next(stream_)
    if not head.startswith(PARQUET):
        raise DamagedFileError(
            f"{origin.name}: no Parquet file: it starts with {head[:4]!r}. Cure: get the whole file again"
        )
    if origin.opener is None:
        return origin.path
    whole = io.BytesIO(head)
    whole.seek(len(head))
    for block in stream_:
        whole.write(block)
        if whole.tell() > _MAX_PARQUET:
            raise DamagedFileError(f"{origin.name}: over {_MAX_PARQUET >> 30} GB unpacked. Cure: unpack it first")
    return whole


def _plain(value: Any) -> Any:
    """A Parquet value as JSON would have it, bytes aside."""
    if isinstance(value, str | int | float | bytes | None):
        return value
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        parts = [_plain(part) for part in value]
        return _map(parts) if parts and all(isinstance(part, tuple) for part in parts) else parts
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return _scalar(value)


def _map(entries: list[tuple[Any, Any]]) -> dict[str, Any]:
    """A map's entries, the only values that Arrow gives as tuples, as a dict."""
    found = {str(key): part for key, part in entries}
    if len(found) < len(entries):
        raise ValueError("a map holds a key twice")
    return found


def _scalar(value: Any) -> int | float | str:
    """A time as ISO text, a span in seconds, a decimal as an integer or as its digits."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, decimal.Decimal):
        return int(value) if value.as_tuple().exponent == 0 else str(value)
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


READERS: dict[str, Callable[[Origin, Layout], _Rows]] = {
    "json": _read_json,
    "jsonl": _read_jsonl,
    "jsonl_rows": _read_jsonl_rows,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
}
"""Readers by name; `auto` chooses by the file's suffix."""
