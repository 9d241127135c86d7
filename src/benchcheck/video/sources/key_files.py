"""The file that says where single videos lie: `key,file` as CSV or TSV, or JSON lines with `key` and `file`.

A key is a full video key or the name that the annotation gives. It is read strictly: a row that is not understood would
be a video that is missing for no visible reason.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchcheck.errors import InputError
from benchcheck.pool.reading.readers import Layout, Record, read_records

__all__ = ["read_key_files"]

_READERS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_COLUMNS = ("key", "file")


def read_key_files(path: Path) -> Mapping[str, str]:
    """Return files by key.

    A row that is there twice counts once. Byte order marks and Windows line ends are read over.

    Raises:
        InputError: it is not there, another kind of file, or a row lacks a column, has others, is empty, or gives a
            key another file than a row before; one line with the place and the cure.
        DamagedFileError: nothing can be read from it: binary, cut off, not UTF-8.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{path}: not a manifest by its name. Allowed: {', '.join(_READERS)}")
    found: dict[str, str] = {}
    places: dict[str, str] = {}
    for record in read_records(path, Layout(reader)):
        key, file = _row(record)
        if found.setdefault(key, file) != file:
            raise InputError(
                f"{record.where}: {key!r} is {file!r} here and {found[key]!r} in {places[key]}. Cure: take one out"
            )
        places.setdefault(key, record.place)
    return found


def _row(record: Record) -> tuple[str, str]:
    """One row's key and file."""
    values: Mapping[str, Any] = record.values
    for name in values:
        if name not in _COLUMNS:
            raise InputError(f"{record.where}: unknown column {str(name)[:80]!r}. Allowed: key and file")
    for name in _COLUMNS:
        value = values.get(name)
        if not isinstance(value, str) or not value.strip():
            what = "no" if value is None or value == "" or isinstance(value, str) else "another kind of value than a"
            raise InputError(f"{record.where}: {what} {name}. Allowed: columns key and file, both filled with text")
    return values["key"], values["file"]
