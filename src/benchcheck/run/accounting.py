"""What a run cost: one line per step, unit and run, kept beside the results and summed up in run_accounting.csv."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchcheck.files import append_rows, read_rows
from benchcheck.study import Study

__all__ = ["COLUMNS", "Cost", "costs", "note_cost"]

_TYPES = {
    "step": "INTEGER",
    "bench": "VARCHAR",
    "part": "INTEGER",
    "items": "BIGINT",
    "prompts": "BIGINT",
    "tokens": "BIGINT",
    "wall_s": "DOUBLE",
    "items_per_s": "DOUBLE",
    "errors": "BIGINT",
    "model": "VARCHAR",
    "revision": "VARCHAR",
    "engine": "VARCHAR",
    "version": "VARCHAR",
    "dtype": "VARCHAR",
    "device": "VARCHAR",
    "at": "VARCHAR",
}
COLUMNS = tuple(_TYPES)


@dataclass(frozen=True, slots=True)
class Cost:
    """One unit in one run. `wall_s` is seconds from first prompt to last row, without opening the model."""

    step: int
    bench: str
    part: int
    items: int
    prompts: int
    tokens: int
    wall_s: float
    errors: int
    model: str
    revision: str
    engine: Mapping[str, str]
    at: str

    def row(self) -> dict[str, Any]:
        """This line as it is kept and published."""
        row = asdict(self)
        engine = row.pop("engine")
        rate = round(self.items / self.wall_s, 3) if self.wall_s else 0.0
        row |= {"item_id": "", "items_per_s": rate, "engine": engine["name"]}
        return row | {name: engine[name] for name in ("version", "dtype", "device")}


def note_cost(study: Study, cost: Cost) -> None:
    """Append a unit's line."""
    append_rows(study.accounting_file, [cost.row()])


def costs(study: Study) -> Sequence[Mapping[str, Any]]:
    """Return every line so far, oldest first; a damaged one is left out."""
    if not study.accounting_file.exists():
        return []
    rows = read_rows([study.accounting_file], {"item_id": "VARCHAR", **_TYPES}).table
    return [dict(row) for row in rows.select(list(COLUMNS)).to_pylist() if None not in row.values()]
