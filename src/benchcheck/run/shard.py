"""Shares of a study: which items a task of an array asks, and how its own workers divide them. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from benchcheck.errors import UsageError
from benchcheck.run.plan import Pool, Unit, slurm_task, units_of
from benchcheck.screen.verdicts import Flags

__all__ = ["WHOLE", "parse_shard", "shard_flags", "shard_units"]

WHOLE = (0, 1)
"""The share that is everything."""


def parse_shard(text: str, environment: Mapping[str, str]) -> tuple[int, int]:
    """Return a share's number, counted from 0, and how many there are: `auto` reads the Slurm array variables.

    Raises:
        UsageError: the text is neither `auto` nor I/N with I below N, or the array has holes.
    """
    if text == "auto":
        return slurm_task(environment)
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if found is None or int(found[1]) >= int(found[2]):
        raise UsageError(
            f"--shard {text}: Allowed: auto (a Slurm array's task), or I/N with I from 0 to N-1, such as 0/4"
        )
    return int(found[1]), int(found[2])


def shard_units(pool: Pool, shard: tuple[int, int], workers: int) -> list[list[Unit]]:
    """Return the units of each of a share's workers; the same on every machine, whatever is answered.

    The shares of a study do not overlap and leave nothing out, whatever the number of workers in each. A whole study's
    units are dealt out to the workers; a smaller share's units are cut, each in as many pieces.
    """
    if shard == WHOLE:
        return units_of(pool, workers)
    own = units_of(pool, shard[1])[shard[0]]
    return [[piece for unit in own if (piece := _piece(unit, worker, workers)).item_ids] for worker in range(workers)]


def _piece(unit: Unit, worker: int, workers: int) -> Unit:
    """One of a unit's pieces: neighbours stay together, and rows go to the unit's one file."""
    size = -(-len(unit.item_ids) // workers)
    return replace(unit, item_ids=unit.item_ids[worker * size :][:size])


def shard_flags(pool: Pool, shard: tuple[int, int]) -> Flags:
    """Flag the items of a share."""
    if shard == WHOLE:
        return np.ones(len(pool), dtype=np.bool_)
    own: Sequence[Unit] = units_of(pool, shard[1])[shard[0]]
    ids = {item_id for unit in own for item_id in unit.item_ids}
    return np.fromiter((item_id in ids for item_id in pool.item_id.to_pylist()), dtype=np.bool_, count=len(pool))
