"""A benchmark's files cut into tasks: runs of records that can be mapped one beside the other, in order.

A long JSON-lines file is cut at line ends, and whoever takes a task parses its lines; all other files are read here,
and a task carries the records. Where the cuts fall depends on the files alone, never on how many processes there are.
"""

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchcheck.errors import InputError
from benchcheck.pool.joins import Partners
from benchcheck.pool.reading.readers import Layout, Record, read_records, rows
from benchcheck.pool.reading.sources import MAX_LINE, Origin
from benchcheck.pool.specs import Spec

__all__ = ["BLOCK", "Task", "records_of", "tasks_of"]

BLOCK = 2 << 20
"""Bytes of JSON lines a task: 7,000 records of 300 bytes, about half a second of mapping and 30 MB of memory."""
RECORDS = 4_000
"""Records a task, where they are read here."""


@dataclass(frozen=True, slots=True)
class Task:
    """Records that follow one another in one file: a stretch of its lines, or what was read from it already."""

    path: Path
    offset: int = 0
    size: int = 0
    """Bytes of the stretch; 0: the records are here."""
    first_line: int = 1
    here: list[Record] = field(default_factory=list)
    fault: InputError | None = None
    """What ended the reading behind the records here."""

    def read(self, layout: Layout) -> tuple[list[Record], InputError | None]:
        """Return the records, and what ended them where something did.

        Records of a stretch have rows from 0 up: only who knows how many came before can say more.
        """
        if not self.size:
            return self.here, self.fault
        found: list[Record] = []
        try:
            found.extend(self._stretch(layout))  # keeps those before an error
        except InputError as fault:
            return found, fault
        except OSError as reason:
            return found, InputError(f"{self.path}: not readable: {reason.strerror}. Cure: check the disk")
        return found, None

    @property
    def whole(self) -> bool:
        """Whether rows are counted from the beginning of the file already."""
        return not self.size

    def _stretch(self, layout: Layout) -> Iterator[Record]:
        """The records of a stretch of lines."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = file.read(self.size)
        origin = Origin(self.path, opener=lambda: io.BytesIO(data), packed=self.size, first_line=self.first_line)
        for row, (place, values) in enumerate(rows(origin, layout)):
            yield Record(values, self.path, place, row)


def records_of(path: Path, spec: Spec, partners: Partners | None) -> Iterator[Record]:
    """Read the records of one file, each with its partner's fields where the spec joins a second file."""
    records = read_records(path, spec.layout)
    return records if partners is None else partners.lay(records)


def tasks_of(files: Iterable[Path], spec: Spec, partners: Partners | None) -> Iterator[Task]:
    """Cut files into tasks. What is wrong with a file comes as the fault of a task, behind the records before it."""
    for path in files:
        if partners is None and _is_long(path, spec.layout):
            yield from _stretches(path)
        else:
            yield from _read_here(path, records_of(path, spec, partners))


def _is_long(path: Path, layout: Layout) -> bool:
    """Whether a file is so long that it is cut, and JSON lines of objects, as its name and first line say."""
    named = layout.reader == "jsonl" or (layout.reader == "auto" and path.suffix.lower() in (".jsonl", ".ndjson"))
    if not named or path.suffix.lower() in (".zip", ".gz"):
        return False
    try:
        if not path.is_file() or path.stat().st_size <= 2 * BLOCK:
            return False
        with path.open("rb") as file:
            first = file.readline(BLOCK)
    except OSError:  # which the reader words
        return False
    # A lone carriage return ends a line too, and a stretch is cut at newlines.
    line = first.removesuffix(b"\n").removesuffix(b"\r")
    return first.endswith(b"\n") and line.startswith(b"{") and line.rstrip().endswith(b"}") and b"\r" not in line


def _read_here(path: Path, records: Iterator[Record]) -> Iterator[Task]:
    """Tasks with the records of a file."""
    fault: InputError | None = None
    more = True
    while more:
        here: list[Record] = []
        try:
            here.extend(islice(records, RECORDS))
        except InputError as reason:
            fault = reason
        more = fault is None and len(here) == RECORDS
        if here or fault:
            yield Task(path, here=here, fault=fault)


def _stretches(path: Path) -> Iterator[Task]:
    """Tasks of whole lines: a stretch ends at the first newline behind a block."""
    offset, line = 0, 1
    try:
        with path.open("rb") as file:
            while data := file.read(BLOCK):
                data += file.readline(MAX_LINE + 1)
                yield Task(path, offset, len(data), line)
                offset += len(data)
                line += len(data.splitlines())
    except OSError as reason:
        yield Task(path, fault=InputError(f"{path}: not readable: {reason.strerror}. Cure: check its permissions"))
