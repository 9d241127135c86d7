"""What the rows of an original package say, step by step, before any is taken: which of them count, models, orders."""

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchcheck.errors import UsageError
from benchcheck.pool.items import Item
from benchcheck.transfer.original.files import Original, lines_of
from benchcheck.transfer.original.layout import ROW_NAMES, named

__all__ = ["StepSeen", "fields_of", "is_error", "look_through"]

_TELLING = ("item_id", "orders", "logprobs", "n_right", "mean_margin")


@dataclass(slots=True)
class StepSeen:
    """The rows of one step. Per item one counts: the last good one, else the last error."""

    step: int
    rows: int = 0
    counting: dict[str, tuple[int, int, bool]] = field(default_factory=dict)
    """By item: place of its row's file among the step's, line, whether it is an answer."""
    models: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Model and revision of the answers; those that name none are not in it."""
    n_perms: Counter[int] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows that cannot be taken, by what is wrong with them."""
    contradictory: list[str] = field(default_factory=list)
    """Items with answers that say different things."""


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row by our names for its fields; what has none is left out."""
    return {ours: row[theirs] for ours, theirs in _named(tuple(row))}


@functools.lru_cache(maxsize=64)
def _named(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Our names and the row's for keys that most rows share."""
    return tuple(named(ROW_NAMES, keys).items())


def is_error(row: Mapping[str, Any]) -> bool:
    """Whether a row by our names is an error row."""
    return row.get("status") == "error" or bool(row.get("error"))


def look_through(original: Original, step: int, items: Mapping[str, Item]) -> StepSeen:
    """Read the rows of one step and choose the one of each item that counts.

    300,000 rows of 900 bytes take 5 s on one core, and what is kept of each is 200 bytes.

    Raises:
        UsageError: they carry a step key, so they are of this program's own layout, or none has an item_id.
        DamagedFileError: a file cannot be read.
    """
    seen, says = StepSeen(step), dict[str, tuple[Any, ...]]()
    nameless: Any = None
    for place, path in enumerate(original.steps[step]):
        for line, row in lines_of(path):
            seen.rows += 1
            if row is None:
                seen.left_out["line that is no row (torn, or damaged)"] += 1
                continue
            if "step_key" in row:
                cure = "Cure: benchcheck merge takes packages of this program"
                raise UsageError(f"{original.shown(path)}: row {line} has a step_key: not the original layout. {cure}")
            mine = fields_of(row)
            if fault := _fault(mine, step, items):
                seen.left_out[fault] += 1
                nameless = nameless or ("item_id" not in mine and (path, row))
            else:
                _count(seen, says, mine, (place, line))
    if nameless and not seen.counting:
        wanted = "; ".join(f"{name} ({' or '.join(names)})" for name, names in ROW_NAMES.items() if name in _TELLING)
        found = ", ".join(map(repr, list(nameless[1])[:12]))
        raise UsageError(f"{original.shown(nameless[0])}: rows without an item_id. Wanted: {wanted}. Found: {found}")
    return seen


def _fault(row: Mapping[str, Any], step: int, items: Mapping[str, Item]) -> str:
    """Why a row is nobody's; nothing where it is an item's."""
    if "item_id" not in row:
        return "row without an item_id"
    item = items.get(row["item_id"]) if isinstance(row["item_id"], str) else None
    if item is None:
        return "row of an item that is not in the pool"
    if row.get("step") not in (None, step, str(step), f"step{step}"):
        return "row of another step than its folder"
    if row.get("bench") not in (None, item.bench):
        return "row of another benchmark than its item"
    return ""


def _count(seen: StepSeen, says: dict[str, tuple[Any, ...]], row: Mapping[str, Any], where: tuple[int, int]) -> None:
    """Let a row count for its item."""
    item_id, good = row["item_id"], not is_error(row)
    before = seen.counting.get(item_id)
    if good or before is None or not before[2]:
        seen.counting[item_id] = (*where, good)
    if not good:
        return
    if isinstance(row.get("model"), str):
        seen.models[row["model"], str(row.get("revision") or "")] += 1
    if isinstance(row.get("n_perm"), int):
        seen.n_perms[row["n_perm"]] += 1
    said = tuple(repr(row.get(name)) for name in ("removed", "n_right", "mean_margin"))
    if says.setdefault(item_id, said) != said:
        seen.contradictory.append(item_id)
        says[item_id] = said
