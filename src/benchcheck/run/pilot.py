"""What a pilot says of the whole: the share each step removes, with intervals, and what the whole would cost. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchcheck.run.driver import StepSummary
from benchcheck.screen.statistics import Interval, wilson

__all__ = ["StepForecast", "forecast"]


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step of a whole study, as a pilot foresees it."""

    step: int
    name: str
    asked: int
    """Items that the pilot asked in this step."""
    removed: Interval
    """Share of the asked items that left, over all benchmarks."""
    items: int
    """Items that the whole would ask here, each benchmark with its own share."""
    seconds: float
    """Engine seconds for them on the machine of the pilot; not a number where nothing was timed."""


def forecast(
    summaries: Sequence[StepSummary],
    totals: Mapping[str, int],
    seconds_per_item: Mapping[int, float],
    cascade: bool = True,
) -> list[StepForecast]:
    """Foresee a whole study from its pilot.

    Args:
        summaries: the pilot's steps, in order.
        totals: items per benchmark that the whole would ask in its first step.
        seconds_per_item: measured engine seconds per item, by step number.
        cascade: whether a step asks only what the steps before left.
    """
    left = {bench: float(total) for bench, total in totals.items()}
    foreseen = []
    for summary in summaries:
        # A benchmark whose pilot items have all gone, or wait for frames, is asked nothing more in this step.
        here = {loss.bench: loss for loss in summary.losses if loss.asked}
        items = math.fsum(left[bench] for bench in (here if cascade else left))
        removed = sum(loss.removed for loss in here.values())
        asked = sum(loss.asked for loss in here.values())
        seconds = items * seconds_per_item.get(summary.step.number, math.nan)
        share = wilson(removed, asked)
        foreseen.append(StepForecast(summary.step.number, summary.step.name, asked, share, round(items), seconds))
        for bench, loss in here.items() if cascade else ():
            left[bench] *= 1 - (loss.removed + loss.failed) / loss.asked
    return foreseen
