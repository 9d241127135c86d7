"""CSV and TSV, row by row: strictly, since a row that slipped by a cell would become another item."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from benchcheck.errors import DamagedFileError, InputError
from benchcheck.pool.reading.sources import MAX_LINE, Origin, decoded, lines

__all__ = ["check_names", "table_rows"]


def table_rows(origin: Origin, header: Sequence[str], delimiter: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a table's rows, each with its place: quoted cells, cells over several lines, all as wide as the header.

    The first row is the header, where none is given.

    Raises:
        InputError: the header has one column or a name twice, is there though one is given, or the file is JSON.
        DamagedFileError: as `lines` and `decoded`; a row with more or fewer cells, a quote that is not closed.
    """
    csv.field_size_limit(MAX_LINE)
    texts_ = (decoded(origin, line, number) for number, line in lines(origin))
    table = csv.reader(texts_, delimiter=delimiter, strict=True)
    line = 1
    try:
        names = list(header) or [name.strip() for name in next(filter(None, table), [""])]
        _check_header(origin, names, delimiter)
        line = table.line_num + 1
        for cells in table:
            if cells:
                if len(cells) != len(names) or cells == list(header):
                    _refuse_row(origin, f"line {line}", cells, names, delimiter)
                yield f"line {line}", dict(zip(names, cells, strict=True))
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
    check_names(origin, header)


def check_names(origin: Origin, names: Sequence[str]) -> None:
    """Refuse two columns of one name: one of them would be lost."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{origin.name}: the header names {name!r} twice. Cure: give every column its own name")
