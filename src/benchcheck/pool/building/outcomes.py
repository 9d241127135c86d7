"""What a run of records becomes: rows of the pool, counts, and the little that all records together are judged by."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchcheck.errors import InputError
from benchcheck.pool.building.summary import Tally
from benchcheck.pool.building.tasks import Task
from benchcheck.pool.items import Item
from benchcheck.pool.mapping import Mapped, map_record
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec
from benchcheck.pool.together import Together
from benchcheck.study import items_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Mapper", "Outcome", "Trace", "outcome_of", "settle"]

_SOME_ITEM = Item("", "", "", "", (), None, "mcq", "", "")
"""Stands for an item that another process made: `Together` asks only whether there is one."""


@dataclass(slots=True)
class Trace:
    """What `Together` needs of a task's records, a list a field: a tenth of the bytes of as many `Mapped`."""

    file: Path
    places: list[str]
    """Where each record stands, as messages begin."""
    kept: list[bool]
    """Whether it became an item."""
    numbers: list[str]
    identities: list[int | None]
    golds: list[int]
    present: int
    """Needed fields that any of the records has, a bit each."""
    has_options: bool
    fields: tuple[str, ...]


@dataclass(slots=True)
class Outcome:
    """What the records of one task became."""

    table: "pa.Table"
    tally: Tally
    trace: Trace


class Mapper:
    """Does one task after the other: reads its records, then maps them."""

    def __init__(self) -> None:
        self._spec: Spec | None = None
        self._records: list[Record] = []
        self._fault: InputError | None = None
        self._whole = True

    def begin(self, spec: Spec, task: Task) -> None:
        """Read a task's records; what is wrong with them waits for `finish`, behind those before it."""
        if spec != self._spec:  # an equal one stays: what was worked out for it is found again
            self._spec = spec
        self._whole = task.whole
        self._records, self._fault = task.read(spec.layout)

    @property
    def count(self) -> int:
        """Records of the task."""
        return len(self._records)

    def finish(self, row: int, file_row: int) -> Outcome:
        """Map the task's records; the first of them has these rows in its benchmark and, unless read before, its file.

        Raises:
            InputError: that of the first record that has one.
        """
        assert self._spec is not None
        records, self._records = self._records, []
        if not self._whole:
            records = [Record(one.values, one.file, one.place, one.row + file_row) for one in records]
        mapped = [map_record(self._spec, record, row + number) for number, record in enumerate(records)]
        if self._fault:
            raise self._fault
        return outcome_of(mapped)


def outcome_of(mapped: Sequence[Mapped]) -> Outcome:
    """Return the rows, counts and traces of records in their order."""
    items = [one.item for one in mapped if one.item is not None]
    trace = Trace(
        file=mapped[-1].record.file if mapped else Path(),
        places=[one.record.where for one in mapped],
        kept=[one.item is not None for one in mapped],
        numbers=[one.number for one in mapped],
        identities=[one.identity for one in mapped],
        golds=[one.gold_place for one in mapped],
        present=0,
        has_options=any(one.has_options for one in mapped),
        fields=next((one.fields for one in reversed(mapped) if one.fields), ()),
    )
    for one in mapped:
        trace.present |= one.present
    return Outcome(items_table(items), _tally(mapped, items), trace)


def _tally(mapped: Sequence[Mapped], items: Sequence[Item]) -> Tally:
    """What the records add to their benchmark's counts."""
    tally = Tally(rows=len(items), left_out=len(mapped) - len(items))
    for item in items:
        if item.format == "mcq":
            tally.mcq += 1
            tally.options[len(item.options)] += 1
        if item.issues:
            tally.with_issues += 1
            tally.issue_counts.update(item.issues)
            if "erratum" in item.issues:
                tally.errata.add(item.source_id)
    for one in mapped:
        for issue in one.issues:
            if issue.code not in tally.examples:
                tally.examples[issue.code] = f"{one.record.where}: {issue.detail}"
    return tally


def settle(outcome: Outcome, together: Together) -> Outcome:
    """Let `together` see a task's records, and add what they show beside those before them."""
    trace, tally, found = outcome.trace, outcome.tally, dict[int, str]()
    one = Mapped(Record({}, trace.file, "", 0), None, (), trace.present, trace.fields, trace.has_options)
    row = 0
    for place, kept, number, identity, gold in zip(
        trace.places, trace.kept, trace.numbers, trace.identities, trace.golds, strict=True
    ):
        one.item = _SOME_ITEM if kept else None
        one.number, one.identity, one.gold_place = number, identity, gold
        checked = together.add(one)
        if checked is not None and checked.issues:
            issue = checked.issues[-1]
            found[row] = issue.code
            tally.examples.setdefault(issue.code, f"{place}: {issue.detail}")
        row += kept
    if not found:
        return outcome
    return replace(outcome, table=_with_issues(outcome.table, found, tally))


def _with_issues(table: "pa.Table", found: dict[int, str], tally: Tally) -> "pa.Table":
    """A table whose rows of these places have one more issue each."""
    import pyarrow as pa

    index = table.schema.get_field_index("issues")
    issues = table.column(index).to_pylist()
    for row, code in found.items():
        tally.with_issues += not issues[row]
        tally.issue_counts[code] += 1
        issues[row].append(code)
    return table.set_column(index, table.schema.field(index), pa.array(issues, table.schema.field(index).type))
