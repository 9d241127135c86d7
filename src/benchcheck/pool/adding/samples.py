"""The first records of files that nobody described: which reader, which header, which steps, then a sample."""

import csv
import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchcheck.errors import InputError
from benchcheck.pool.adding.guess_names import Found
from benchcheck.pool.adding.guess_nesting import header_doubt, steps_to_records
from benchcheck.pool.reading.nesting import root_records
from benchcheck.pool.reading.readers import Layout, Record, read_records

__all__ = ["SAMPLE", "found_layout", "read_sample"]

SAMPLE = 1_000
"""Records that a guess is tried on."""
MAX_WHOLE = 64 << 20
"""Bytes of a JSON document that is looked at whole, to see how it is nested."""
_HEAD = 1 << 16


def found_layout(path: Path, header: Sequence[str], given: Mapping[str, str]) -> tuple[Layout, tuple[Found, ...]]:
    """Return how a file is laid out, its reader, header and steps, and the steps with the reasons for them.

    Raises:
        InputError: it cannot be read, its first row looks like data, or nothing in it asks anything.
    """
    reader = "auto"
    if path.suffix.lower() in (".csv", ".tsv") and path.is_file():
        reader = _check_table(path, header)
    if path.suffix.lower() in (".jsonl", ".ndjson") and path.is_file() and _starts_with_list(path):
        reader = "jsonl_rows"
    if "unnest" in given:
        steps = tuple(Found(step.strip(), "as you say") for step in given["unnest"].split(",") if step.strip())
    else:
        steps = _nesting(path, Layout(reader, tuple(header)))
    return Layout(reader, tuple(header), tuple(step.value for step in steps)), steps


def _starts_with_list(path: Path) -> bool:
    """Whether the lines of a file are lists, the first of which names the fields (SUTD-TrafficQA)."""
    with path.open("rb") as file:
        return file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _check_table(path: Path, header: Sequence[str]) -> str:
    """Say which reader fits a table, and refuse one whose first row looks like data."""
    try:
        with path.open("rb") as file:
            text = file.read(_HEAD).decode("utf-8-sig", "replace")
    except OSError as reason:
        raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check the path") from None
    first = text.partition("\n")[0]
    tabs = path.suffix.lower() == ".tsv" or ("\t" in first and "," not in first)
    rows = list(islice(filter(None, _rows(text, "\t" if tabs else ",")), 2))
    proposed = header_doubt(rows[0], rows[1] if len(rows) > 1 else []) if rows and not header else ""
    if proposed:
        raise InputError(
            f"{path}: its first row looks like data, not like a header: {', '.join(rows[0])[:120]}. "
            f"Cure: name its {len(rows[0])} columns, such as --header {proposed}"
        )
    return "tsv" if tabs and path.suffix.lower() != ".tsv" else "auto"


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    """Rows of the head of a table; what is wrong with it, its reader will say."""
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    except csv.Error:
        return


def _nesting(path: Path, layout: Layout) -> tuple[Found, ...]:
    """The steps to the records of a file."""
    if path.suffix.lower() == ".json" and path.is_file() and path.stat().st_size <= MAX_WHOLE:
        try:
            document = json.loads(path.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            document = None  # JSON lines, or damaged: the reader tells
        if isinstance(document, list | dict):
            return _of_document(path, document)
    steps = steps_to_records([record.values for record in islice(read_records(path, layout), 200)], lines=True)
    return _rooted(path, layout, steps) if steps else ()


def _rooted(path: Path, layout: Layout, steps: tuple[Found, ...]) -> tuple[Found, ...]:
    """Put the step before that an archive's or a large document needs to come to the nodes that were looked at."""
    roots = ((Found("flatten", "the members of a list"),), (Found("values", "a dict of key to record"),), ())
    # As one node a large document would be parsed whole: 8 s for 92 MB.
    lines = path.suffix.lower() in (".jsonl", ".ndjson", ".parquet")
    for root in sorted(roots, key=len) if lines else roots:
        names = tuple(step.value for step in (*root, *steps))
        try:
            next(read_records(path, dataclasses.replace(layout, unnest=names)))
        except InputError:
            continue
        return (*root, *steps)
    return steps


def _of_document(path: Path, document: Any) -> tuple[Found, ...]:
    """The steps into a document; one without any question is refused with what it is."""
    steps = steps_to_records(document)
    if not steps:
        try:
            root_records(document)
        except ValueError as reason:
            cure = "Cure: --map unnest=get:KEY or another step (docs/pool.md), or give the file with the questions"
            raise InputError(f"{path}: no records with questions: {reason}. {cure}") from None
    return steps


def read_sample(files: Sequence[Path], layout: Layout) -> tuple[list[Record], bool]:
    """Return the first records, of every file the same number, and whether these are all.

    Raises:
        InputError: a file cannot be read as what the first one is.
    """
    found, whole = list[Record](), True
    for number, path in enumerate(files):
        wanted = max(1, (SAMPLE - len(found)) // (len(files) - number))
        part = list(islice(read_records(path, layout), wanted + 1))
        whole &= len(part) <= wanted
        found += part[:wanted]
    return found, whole
