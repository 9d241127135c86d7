"""No two items of a pool have one id (protocol 1)."""

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from benchcheck.errors import InputError
from benchcheck.pool.building.declared import Declared
from benchcheck.pool.building.tasks import records_of
from benchcheck.pool.joins import Partners
from benchcheck.pool.mapping import map_record

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["refuse_clash"]


def refuse_clash(benches: Sequence[Declared], ids: "Sequence[pa.Array]") -> None:
    """Refuse an id that two rows have.

    Ids that are `{bench}_{row}` cannot clash: the row has digits only, so the last underscore parts the two, and equal
    ids have equal benchmarks, which `declared` holds to be told apart, and equal rows, which are counted. So only a
    spec that declares item ids is a reason to look. Counting a million takes 0.3 s and 30 MB; where two rows stand is
    found by reading the files once more.

    Raises:
        InputError: names both rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not any(one.spec.item_id for one in benches):
        return
    column = pa.chunked_array(ids, pa.string())
    if pc.count_distinct(column).as_py() == len(column):
        return
    counts = column.value_counts()
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    seen: set[str] = set()
    for found in column.filter(pc.is_in(column, value_set=twice)).to_pylist():
        if found in seen:
            _refuse(benches, found)
        seen.add(found)


def _refuse(benches: Sequence[Declared], item_id: str) -> None:
    """Read again up to the second row of this id, and name both."""
    first = ""
    for one in benches:
        partners = Partners(one.spec.join) if one.spec.join else None
        records = chain.from_iterable(records_of(path, one.spec, partners) for path in one.files)
        for row, record in enumerate(records):
            item = map_record(one.spec, record, row).item
            if item is None or item.item_id != item_id:
                continue
            if first:
                cure = "leave item_id out of the spec, or give the benchmark another name"
                raise InputError(f"{record.where}: item id {item_id!r} is taken by {first}. Cure: {cure}")
            first = record.where
    raise InputError(f"{first}: item id {item_id!r} was there twice. Cure: let the file be while it is read")
