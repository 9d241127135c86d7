"""Forecasts: what a pilot says of the whole, by hand."""

import math

import pytest

from benchcheck.run.driver import BenchLoss, StepSummary
from benchcheck.run.pilot import forecast
from benchcheck.screen.statistics import wilson
from benchcheck.screen.steps import LADDER


def summary(step: int, *losses: BenchLoss) -> StepSummary:
    counts = {"alive": 0, "answered": 0, "removed": 0, "waiting": 0, "failed": 0, "remaining": 0, "asked_now": 0}
    return StepSummary(step=LADDER[step], **counts, wall_s=0, losses=losses, kinds=(), ignored=0, unreadable=0)


def test_each_benchmark_shrinks_by_its_own_share() -> None:
    foreseen = forecast(
        [
            summary(1, BenchLoss("a", 10, 5, 0), BenchLoss("b", 10, 0, 1)),
            summary(2, BenchLoss("a", 5, 1, 0), BenchLoss("b", 9, 0, 0)),
            summary(4, BenchLoss("a", 4, 4, 0), BenchLoss("b", 9, 9, 0)),
            summary(6, BenchLoss("a", 0, 0, 0), BenchLoss("b", 0, 0, 0)),
        ],
        {"a": 1000, "b": 100},
        {1: 0.5, 2: 2.0},
    )
    assert [(item.step, item.name, item.asked) for item in foreseen] == [
        (1, "blind", 20),
        (2, "single_frame", 14),
        (4, "opt_only", 13),
        (6, "v32_8b", 0),
    ]
    assert [item.items for item in foreseen] == [1100, 500 + 90, 400 + 90, 0]
    assert [item.removed for item in foreseen] == [wilson(5, 20), wilson(1, 14), wilson(13, 13), wilson(0, 0)]
    assert [item.seconds for item in foreseen[:2]] == pytest.approx([550.0, 1180.0])
    assert all(math.isnan(item.seconds) for item in foreseen[2:])


def test_a_benchmark_that_waits_in_a_step_is_not_asked_there_but_later() -> None:
    waits = BenchLoss("a", 0, 0, 0)
    second, fourth = forecast([summary(2, waits), summary(4, BenchLoss("a", 10, 1, 0))], {"a": 50}, {4: 1.0})
    assert (second.items, fourth.items, fourth.seconds) == (0, 50, 50.0)


def test_without_a_cascade_every_step_asks_every_item() -> None:
    losses = (BenchLoss("a", 10, 10, 0), BenchLoss("b", 10, 5, 0))
    later = (BenchLoss("a", 0, 0, 0), BenchLoss("b", 5, 1, 0))
    foreseen = forecast([summary(1, *losses), summary(4, *later)], {"a": 50, "b": 30}, {1: 1.0, 4: 2.0}, cascade=False)
    assert [(item.items, item.seconds) for item in foreseen] == [(80, 80.0), (80, 160.0)]
    assert [item.removed for item in foreseen] == [wilson(15, 20), wilson(1, 5)]


def test_nothing_asked_foresees_nothing() -> None:
    assert forecast([], {"a": 1}, {}) == []
