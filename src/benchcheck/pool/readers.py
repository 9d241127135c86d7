"""Readers: annotation files as records, one at a time. A file that is not what it claims is one line, not a traceback.

CSV, TSV, JSON lines and Parquet are streamed (48 MB of JSON lines: no memory to speak of). A JSON document is read
whole, as its format demands: 4 to 5 times its size in memory (48 MB: 242 MB), so over 1 GB it has to be JSON lines.
"""

import csv
import glob
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from benchcheck.errors import InputError
from benchcheck.pool.fields import shown
from benchcheck.pool.nesting import root_records, unnest

__all__ = ["READERS", "Layout", "Record", "find_files", "read_records"]

MAX_DOCUMENT = 1 << 30
"""Bytes of a JSON document."""
MAX_LINE = 64 << 20
"""Bytes of a line. The longest seen in a real file is under 1 MB."""
_HEAD = 1 << 16
"""Bytes that are looked at before a file is read as text."""
_BATCH = 1_000
"""Parquet rows in memory at a time."""

_MAGIC = {
    b"PAR1": "a Parquet file. Cure: name it .parquet, or set reader = 'parquet'",
    b"PK\x03\x04": "a zip archive. Cure: unpack it",
    b"\x1f\x8b": "a gzip archive. Cure: gunzip it",
    b"7z\xbc\xaf": "a 7z archive. Cure: unpack it",
    b"%PDF": "a PDF document. Cure: give the annotation file itself",
    b"\xff\xfe": "UTF-16 text. Cure: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text. Cure: save it as UTF-8",
    b"version https://git-lfs": "a Git LFS pointer, not the file. Cure: git lfs pull",
}
_PARQUET = b"PAR1"


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


def find_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the files that paths and glob patterns name, relative to `folder`: in the order given, a pattern sorted.

    Raises:
        InputError: one names nothing, or a folder.
    """
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = folder / Path(pattern).expanduser()
        try:
            if path.is_dir():
                cure = f"name its files, such as {pattern.rstrip('/')}/*.jsonl"
                raise InputError(f"{path}: this is a folder. Cure: {cure}")
            matches = [path] if path.is_file() else _matches(folder, str(Path(pattern).expanduser()))
        except OSError as reason:
            raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check the path") from None
        if not matches:
            raise InputError(f"{path}: no such file. {_contents(path.parent)}")
        found |= dict.fromkeys(matches)
    return list(found)


def _matches(folder: Path, pattern: str) -> list[Path]:
    """Files that a pattern matches; the folder's own name is never read as a pattern."""
    whole = pattern if Path(pattern).is_absolute() else str(Path(glob.escape(str(folder))) / pattern)
    return sorted(path for path in map(Path, glob.glob(whole, recursive=True)) if path.is_file())


def _contents(folder: Path) -> str:
    """What lies in a folder, for a message."""
    if not folder.is_dir():
        return (
            f"There is no folder {folder} either" if not glob.has_magic(str(folder)) else "The pattern matches nothing"
        )
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{folder} holds: {', '.join(names[:10]) + more}" if names else f"{folder} is empty"


def read_records(path: Path, layout: Layout = Layout()) -> Iterator[Record]:
    """Read a file's records.

    Raises:
        InputError: one line with the file, the place, what was found, what is allowed and the cure.
    """
    count = 0
    try:
        reader = READERS[layout.reader if layout.reader != "auto" else _by_name(path)]
        for place, values in reader(path, layout):
            if not isinstance(values, dict):
                raise InputError(f"{path}: {place} is {shown(values)}. Allowed: a record with named fields")
            yield Record({str(key): value for key, value in values.items()}, path, place, count)
            count += 1
    except OSError as reason:
        raise InputError(
            f"{path}: not readable: {reason.strerror or reason}. Cure: check the path and its permissions"
        ) from None
    if not count:
        raise InputError(f"{path}: no record in it. Cure: give a file with at least one record")


def _by_name(path: Path) -> str:
    """Reader for a file's suffix."""
    readers = {
        ".json": "json",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".csv": "csv",
        ".tsv": "tsv",
        ".parquet": "parquet",
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: nothing reads {path.suffix or 'a name without suffix'!r}. Allowed: {', '.join(readers)}"
        )
    return reader


def _check_head(path: Path) -> None:
    """Refuse what is no text at all: empty, an archive, a web page, a pointer, binary.

    Raises:
        InputError: with what it is and the cure.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{path}: the file is empty. Cure: give a file with at least one record")
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{path}: this is {what}")
    if re.match(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|\?xml)", head, re.IGNORECASE):
        raise InputError(f"{path}: this is a web page, not annotations. Cure: download the raw file")
    if b"\0" in head:
        raise InputError(f"{path}: this is a binary file (a NUL byte at {head.index(0)}). {_ALLOWED}")


_ALLOWED = "Allowed: UTF-8 text as JSON, JSON lines, CSV or TSV, and Parquet"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """A text file's lines with their numbers from 1, line ends kept, the byte order mark dropped."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            if len(line) > MAX_LINE:
                raise InputError(f"{path}: line {number} is longer than {MAX_LINE >> 20} MB. Cure: one record a line")
            if b"\0" in line:
                raise InputError(f"{path}: line {number} holds a NUL byte: damaged or binary. {_ALLOWED}")
            yield number, _decoded(path, line, number)


def _decoded(path: Path, data: bytes, first_line: int = 1) -> str:
    """UTF-8 bytes as text, a byte order mark at the start of the file dropped."""
    try:
        return data.decode("utf-8-sig" if first_line == 1 else "utf-8")
    except UnicodeDecodeError as reason:
        line = first_line + data.count(b"\n", 0, reason.start)
        what = f"byte {data[reason.start]:#04x} is not UTF-8 ({reason.reason})"
        raise InputError(f"{path}: line {line}: {what}. Cure: save the file as UTF-8") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key that is there twice would lose a value in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object")
    return found


def _parse(text: str) -> Any:
    """Parse JSON. NaN, which pandas writes for a missing value, is null."""
    numbers = {"NaN": None, "Infinity": float("inf"), "-Infinity": float("-inf")}
    return json.loads(text, object_pairs_hook=_object, parse_constant=numbers.__getitem__)


def _read_json(path: Path, layout: Layout) -> _Rows:
    """A JSON document; JSON lines in a file named .json are read as such (Social-IQ 2.0)."""
    _check_head(path)
    if path.stat().st_size > MAX_DOCUMENT:
        raise InputError(
            f"{path}: over {MAX_DOCUMENT >> 30} GB as one document. Cure: convert it to JSON lines (.jsonl)"
        )
    data = path.read_bytes()
    if b"\0" in data:
        raise InputError(f"{path}: a NUL byte at {data.index(0)}: damaged or binary. {_ALLOWED}")
    try:
        document = _parse(_decoded(path, data))
        records = list(unnest([document], layout.unnest)) if layout.unnest else root_records(document)
    except json.JSONDecodeError as reason:
        if reason.msg == "Extra data":
            yield from _read_jsonl(path, layout)
            return
        where = f"line {reason.lineno}, column {reason.colno}"
        cut = " The file seems to be cut off" if reason.pos >= len(reason.doc.rstrip()) - 1 else ""
        raise InputError(
            f"{path}: {where}: not valid JSON: {reason.msg}.{cut} Cure: get the whole file again"
        ) from None
    except (ValueError, RecursionError) as reason:
        raise InputError(
            f"{path}: {reason}. Cure: declare unnest in the spec, or convert to one list of records"
        ) from None
    yield from ((f"record {number}", record) for number, record in enumerate(records, 1))


def _read_jsonl(path: Path, layout: Layout) -> _Rows:
    """JSON lines: one object a line, blank lines aside."""
    _check_head(path)
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            records = list(unnest([_parse(line)], layout.unnest))
        except (ValueError, RecursionError) as reason:
            raise InputError(f"{path}: line {number}: {_json_fault(reason)}. Cure: one JSON object a line") from None
        for record in records:
            yield f"line {number}", record


def _json_fault(reason: Exception) -> str:
    """What a JSON parser complained about, on one line."""
    if isinstance(reason, json.JSONDecodeError):
        return f"not valid JSON: {reason.msg} at column {reason.colno}"
    return "nested too deep" if isinstance(reason, RecursionError) else str(reason)


def _read_table(path: Path, layout: Layout, delimiter: str) -> _Rows:
    """CSV or TSV: a header, quoted cells, cells over several lines; every row as wide as the header."""
    _check_head(path)
    lines = _lines(path)
    table = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
    line = 1
    header = list(layout.header)
    try:
        header = header or [name.strip() for name in next(filter(None, table), [""])]
        _check_header(path, header, delimiter)
        line = table.line_num + 1
        for cells in table:
            if cells and len(cells) != len(header):
                found = f"{len(cells)} cells where the header has {len(header)}"
                cure = f"quote cells that hold {delimiter!r} or a line break"
                raise InputError(f"{path}: line {line}: {found}. Cure: {cure}")
            rows = [dict(zip(header, cells, strict=True))] if cells else []
            for record in unnest(rows, layout.unnest):
                yield f"line {line}", record
            line = table.line_num + 1
    except csv.Error as reason:
        cure = "Cure: a quote inside a quoted cell is written twice, and every quoted cell is closed"
        raise InputError(f"{path}: the row at line {line}: {reason}. {cure}") from None
    except ValueError as reason:
        raise InputError(f"{path}: line {line}: {reason}. Cure: mend unnest in the spec") from None


def _check_header(path: Path, header: Sequence[str], delimiter: str) -> None:
    """Refuse a header with one column or with a name twice."""
    if len(header) < 2:
        other = next((mark for mark in ("\t", ";", ",", "|") if mark != delimiter and mark in header[0]), None)
        cure = "set reader = 'tsv'" if other == "\t" else "use commas, or reader = 'tsv' and tabs"
        found = f"one column, {header[0][:60]!r}, split at {delimiter!r}"
        raise InputError(f"{path}: {found}. Allowed: a header with two columns or more. Cure: {cure}")
    for name in header:
        if header.count(name) > 1:
            raise InputError(f"{path}: the header names {name!r} twice. Cure: give every column its own name")


def _read_csv(path: Path, layout: Layout) -> _Rows:
    return _read_table(path, layout, ",")


def _read_tsv(path: Path, layout: Layout) -> _Rows:
    return _read_table(path, layout, "\t")


def _read_parquet(path: Path, layout: Layout) -> _Rows:
    """Parquet, a batch of rows at a time; nested columns come as lists and dicts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        head = file.read(len(_PARQUET))
    if head != _PARQUET:
        _check_head(path)
        raise InputError(f"{path}: no Parquet file: it starts with {head!r}. Cure: get the whole file again")
    number = 0
    try:
        with pq.ParquetFile(path) as file_:
            for batch in file_.iter_batches(batch_size=_BATCH):
                for values in batch.to_pylist():
                    number += 1
                    yield from ((f"row {number}", record) for record in unnest([values], layout.unnest))
    except (pa.ArrowException, OSError, ValueError) as reason:
        what = " ".join(str(reason).split())[:200]
        raise InputError(
            f"{path}: after row {number}: not readable as Parquet: {what}. Cure: get the file again"
        ) from None


READERS: dict[str, Callable[[Path, Layout], _Rows]] = {
    "json": _read_json,
    "jsonl": _read_jsonl,
    "csv": _read_csv,
    "tsv": _read_tsv,
    "parquet": _read_parquet,
}
"""Readers by name; `auto` chooses by the file's suffix."""
