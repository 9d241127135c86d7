"""What runs on the nodes of a Ray cluster: an actor with an engine, and the ear that hears of progress.

Plain classes; ray.py makes actors of them. An actor is asked for items by their places in the pool.
"""

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchcheck import __version__
from benchcheck.errors import BenchcheckError, StudyError, UsageError
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import Pool, Unit, load_pool, step_index
from benchcheck.study import Study

__all__ = ["EngineActor", "Heard", "Order", "digest_of"]


@dataclass(frozen=True, slots=True)
class Order:
    """A unit by what the study's folder can turn into one: no items, no config."""

    step: int
    bench: str
    part: int
    parts: int
    places: bytes
    """Places of the items in the pool, as int32."""
    digest: str
    """`digest_of` their ids, as the driver sees them."""
    version: str = __version__
    """The driver's version of this package."""


class _StopError(Exception):
    """The driver wants no more, or believes this actor lost."""


class Heard:
    """Counts what all actors wrote, and tells those to stop that are to."""

    def __init__(self) -> None:
        self._items = self._errors = 0
        self._stopped: set[int] = set()
        self._all = False

    def add(self, number: int, items: int, errors: int) -> bool:
        """Hear of an actor's write; returns whether it should stop."""
        self._items += items
        self._errors += errors
        return self._all or number in self._stopped

    def take(self) -> tuple[int, int]:
        """Return items and errors since the last call."""
        taken, self._items, self._errors = (self._items, self._errors), 0, 0
        return taken

    def stop(self, number: int) -> None:
        """Stop one actor at its next write."""
        self._stopped.add(number)

    def stop_all(self) -> None:
        """Stop all actors at their next write."""
        self._all = True


class EngineActor:
    """Does units with an engine that stays open between them."""

    def __init__(self, number: int, root: str, asked: Asked, environment: Mapping[str, str], heard: Any) -> None:
        os.environ.update(environment)
        self._number, self._root, self._asked, self._heard = number, root, asked, heard
        self._local: Local | None = None
        self._pool: Pool | None = None

    def ready(self) -> str:
        """Return nothing where this node sees the study, else what is wrong here, in one line."""
        try:
            self._open()
        except UsageError as reason:
            cure = "Cure: put it on a file system that all nodes of the cluster share, under the same path"
            return f"node {platform.node()} does not see the study as the driver does: {reason}. {cure}"
        return ""

    def do(self, order: Order) -> tuple[str, str] | None:
        """Do a unit; returns what ended it early: the kind of failure and its line, or None.

        A bug is raised, and keeps its traceback.
        """
        try:
            local = self._open()
            step = local.study.config.steps[step_index(local.study, order.step)]
            unit = self._unit(local.study, order)
            local.run(step, [[unit]], frozenset(unit.item_ids), self._tell)
        except _StopError:
            return None
        except BenchcheckError as reason:
            kind = next((base for base in (UsageError, StudyError) if isinstance(reason, base)), BenchcheckError)
            return kind.__name__, f"node {platform.node()}: {reason}"
        return None

    def close(self) -> None:
        """Close the engine."""
        if self._local is not None:
            self._local.close()

    def _open(self) -> Local:
        """Open the study, once."""
        if self._local is None:
            self._local = Local(Study.open(self._root), self._asked, 1)
        return self._local

    def _unit(self, study: Study, order: Order) -> Unit:
        """Find the items of an order in this node's view of the pool.

        Raises:
            StudyError: this node sees another pool than the driver, or runs another version.
        """
        if order.version != __version__:
            raise StudyError(f"benchcheck {__version__} runs here, {order.version} drives. Cure: install the same")
        for again in (False, True):  # a pool that was built anew between two runs of one driver
            if self._pool is None or again:
                self._pool = load_pool(study)
            places = np.frombuffer(order.places, dtype=np.int32)
            if not len(places) or places.max() < len(self._pool):
                ids = tuple(str(item) for item in self._pool.item_id.take(places).to_pylist())
                if digest_of(ids) == order.digest:
                    return Unit(order.bench, order.part, order.parts, ids)
        raise StudyError(f"{study.pool_file} is another pool here than the driver's. Cure: share one folder")

    def _tell(self, items: int, errors: int) -> None:
        """Tell of a write, and stop where that is wanted."""
        import ray

        if ray.get(self._heard.add.remote(self._number, items, errors)):
            raise _StopError


def digest_of(item_ids: Sequence[str]) -> str:
    """Return a short digest of ids in their order."""
    return hashlib.sha256("\n".join(item_ids).encode()).hexdigest()[:16]
