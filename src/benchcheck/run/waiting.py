"""Why items wait: what became of the videos of those that are alive and have no frames."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchcheck.run.plan import Survey
from benchcheck.screen.verdicts import State
from benchcheck.study import Study
from benchcheck.video.faults import CURES
from benchcheck.video.store import Outcome, last_outcomes

__all__ = ["ELSEWHERE", "NOT_TRIED", "Reason", "reasons"]

NOT_TRIED = "not_tried"
ELSEWHERE = "elsewhere"
_OURS = {
    NOT_TRIED: "no frames were made yet: benchcheck frames extract",
    ELSEWHERE: "frames were made once and are not here: unpack them, set POOL_FRAMES_DIR, or extract again",
}
_PACKED = "no frames were unpacked yet: benchcheck frames unpack --from the package's frames/shards, or where they are"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, and who waits for it."""

    status: str
    """A status of the video manifest, `not_tried`, or `elsewhere`: frames were made, and are not here."""
    items: int
    sets: int
    """Distinct videos or windows."""
    benches: tuple[str, ...]
    example: str
    """The first of their video keys where one is known, else of their frames keys."""
    packaged: bool = False
    """Whether the study came as a package: its frames are unpacked, and no video is there to make them from."""

    @property
    def cure(self) -> str:
        """What helps; nothing where another version gave the status."""
        if self.packaged and self.status == NOT_TRIED:
            return _PACKED
        return _OURS.get(self.status) or CURES.get(self.status, "")


def reasons(study: Study, state: Survey) -> list[Reason]:
    """Return why items wait, the most items first; their items add up to `WAITING_TOTAL` (protocol 8).

    Raises:
        StudyError: the video manifest cannot be read.
    """
    waiting = np.zeros(len(state.pool), dtype=np.bool_)
    for here in state.fold.steps:
        waiting |= here.waiting
    waiting &= (state.fold.state == State.WAITING) | (state.fold.state == State.PENDING)
    if not waiting.any():
        return []
    last = last_outcomes(study)
    groups: dict[str, list[int]] = {}
    for place in np.flatnonzero(waiting).tolist():
        groups.setdefault(_status(last.get(state.pool.frames_key[place])), []).append(place)
    packaged = study.package_file.exists()
    found = [replace(_reason(*group, state, last.get), packaged=packaged) for group in groups.items()]
    return sorted(found, key=lambda reason: (-reason.items, reason.status))


def _status(outcome: Outcome | None) -> str:
    """The reason that an outcome is."""
    if outcome is None:
        return NOT_TRIED
    return ELSEWHERE if outcome.ready else outcome.status


def _reason(status: str, places: list[int], state: Survey, outcome: Callable[[str], Outcome | None]) -> Reason:
    """The items of one reason, counted."""
    keys = {state.pool.frames_key[place] for place in places}
    known = [found.key for found in map(outcome, keys) if found is not None]
    benches = dict.fromkeys(state.pool.bench[place] for place in places)
    return Reason(status, len(places), len(keys), tuple(benches), min(known or keys))
