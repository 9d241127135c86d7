"""What a study will cost: counted by hand, in the limits, and beside what was measured."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.run.estimate import (
    ENOUGH,
    MOST_PROMPTS_S,
    Coming,
    Geometry,
    Spent,
    Texts,
    achieved,
    coming,
    estimate_step,
    load_of,
    row_bytes,
    seconds_left,
    survival,
    tokens_of_frame,
)
from benchcheck.screen.steps import LADDER
from benchcheck.screen.verdicts import Fold, Mark, fold

TEXTS = Texts(question=80.0, options=120.0, n_options=4.0)
FRAMES = Geometry(32, 448, 100)


def folded(marks: dict[int, list[int]], framed: bool = True, sampled: bool = False) -> Fold:
    """A fold of items with these marks in the steps that are named."""
    n = len(next(iter(marks.values())))
    every = np.ones(n, dtype=np.bool_)
    arrays = {number: np.array(of, dtype=np.int8) for number, of in marks.items()}
    steps = [LADDER[number] for number in marks]
    return fold(steps, arrays, every, every if framed else ~every, every if sampled else None)


def test_nothing_answered_yet() -> None:
    found = coming(folded({1: [0] * 100, 2: [0] * 100, 4: [0] * 100}))
    assert [(one.step.number, one.at_most, one.survive, one.measured) for one in found] == [
        *((1, 100, 0.8, False), (2, 100, 0.8, False), (4, 100, 0.8, False))
    ]
    assert [one.items for one in found] == pytest.approx([100, 80, 64])


def test_shares_are_this_study_s_own_from_thirty_answers_on() -> None:
    passed, removed, failed = [int(Mark.PASSED)], [int(Mark.REMOVED)], [int(Mark.FAILED)]
    few = folded({1: passed * 20 + removed * 9 + [0] * 71, 4: [0] * 100})
    assert survival(few) == {1: (0.8, False), 4: (0.8, False)}
    enough = folded({1: passed * 18 + removed * 9 + failed * 3 + [0] * 70, 4: [0] * 100})
    assert survival(enough) == {1: (0.6, True), 4: (0.8, False)}
    first, second = coming(enough)
    assert (first.items, first.at_most) == (70, 70)
    # 18 that passed, and 70 of which 60 % will.
    assert (second.items, second.at_most) == (pytest.approx(18 + 42), 88)


def test_items_that_wait_for_frames_will_be_asked() -> None:
    found = coming(folded({1: [int(Mark.PASSED)] * 4, 2: [0] * 4}, framed=False))
    assert [(one.items, one.at_most) for one in found] == [(0, 0), (4, 4)]


def test_without_a_cascade_every_step_asks_everything() -> None:
    found = coming(folded({1: [0] * 10, 2: [0] * 10}, sampled=True), cascade=False)
    assert [one.items for one in found] == [10, 10]


def test_a_pilot_asks_its_own_items() -> None:
    wanted = np.array([True] * 3 + [False] * 7)
    assert [one.items for one in coming(folded({1: [0] * 10, 4: [0] * 10}), True, 0.5, wanted)] == [3, 1.5]


@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=6, max_size=6), st.floats(0.01, 1))
def test_what_is_expected_is_never_more_than_what_may_come(marks: list[list[int]], assumed: float) -> None:
    for one in coming(folded(dict(zip(LADDER, marks, strict=True))), True, assumed):
        assert 0 <= one.items <= one.at_most + 1e-9


# The work.


@pytest.mark.parametrize(("long_side", "tokens"), [(448, 14 * 8 + 2), (896, 28 * 16 + 2), (16, 3), (32, 3)])
def test_a_frame_s_tokens(long_side: int, tokens: int) -> None:
    assert tokens_of_frame(long_side) == tokens


def test_text_by_hand() -> None:
    load = load_of(LADDER[1], 10, TEXTS, FRAMES, 4, ("Qwen/Qwen3-VL-8B-Instruct", 300))
    head, options = 16 + 25 + 20, 30 + 12
    assert load.prompts == 40
    assert load.tokens == 40 * (head + options)
    assert load.computed == 10 * (head + 4 * options)
    assert load.flops == load.computed * 13.9e9
    blind = load_of(LADDER[4], 10, TEXTS, FRAMES, 4, ("Qwen/Qwen3-VL-8B-Instruct", 300))
    assert load.tokens - blind.tokens == 40 * 20


def test_frames_by_hand() -> None:
    of = ("Qwen/Qwen3-VL-2B-Instruct", 300.0)
    load = load_of(LADDER[3], 300, TEXTS, FRAMES, 1, of)
    head, options, seen = 16 + 25 + 20, 30 + 12, 32 * 114
    assert load.tokens == 300 * (head + options + seen)
    assert load.computed == 300 * (head + options) + 100 * seen
    assert load.flops == pytest.approx(load.computed * 2.8e9 + 100 * 32 * 448 * 0.82e9)
    shuffled = load_of(LADDER[5], 300, TEXTS, FRAMES, 1, of)
    assert shuffled.computed == shuffled.tokens == load.tokens
    single = load_of(LADDER[2], 300, TEXTS, FRAMES, 1, of)
    assert single.tokens == 300 * (head + options + 114)


@given(st.floats(0, 300), st.sampled_from([2, 3, 5, 6]))
def test_no_more_is_computed_than_sent_and_no_video_without_a_question(items: float, step: int) -> None:
    load = load_of(LADDER[step], items, TEXTS, FRAMES, 1, ("x", 300))
    alone = load_of(LADDER[step], items, TEXTS, Geometry(32, 448, 0), 1, ("x", 0))
    assert load.computed <= load.tokens * (1 + 1e-9)
    assert load.flops <= alone.flops * (1 + 1e-9)


@pytest.mark.parametrize(
    ("model", "per_token"),
    [
        ("Qwen/Qwen3-VL-8B-Instruct", 13.9e9),
        ("embedded:large", 13.9e9),
        ("org/InternVL3-14B", 28e9),
        ("org/x-1.5b-chat", 3e9),
        ("org/8Bit-thing", 13.9e9),
        ("70B/model", 13.9e9),
    ],
)
def test_a_model_s_size(model: str, per_token: float) -> None:
    load = load_of(LADDER[1], 1, TEXTS, FRAMES, 4, (model, 1))
    assert load.flops / load.computed == pytest.approx(per_token)


def test_an_h200_is_estimated_at_what_it_was_measured_at() -> None:
    rates = achieved(LADDER)
    texts = Texts(76.0, 232.0, 4.0)
    for step, orders, kind, measured in ((1, 4, "text", 479), (3, 1, "frames", 51), (6, 1, "frames", 22)):
        asked = Coming(LADDER[step], 3000, 3000, 0.8, False)
        load = load_of(LADDER[step], 3000, texts, Geometry(32, 448, 1000), orders, ("", 3000))
        found = estimate_step(asked, load, None, rates[kind, LADDER[step].role], "one H200")
        assert found.basis == f"assumed: {measured} prompts/s on one H200"
        assert found.gpu_hours == pytest.approx(3000 * orders / measured / 3600)
    found_rates = {key: round(rate / 1e12) for key, rate in rates.items()}
    assert found_rates == {("text", "8b"): 566, ("frames", "2b"): 392, ("frames", "8b"): 498, ("text", "2b"): 392}


def estimated(items: float = 100, spent: Spent | None = None, speed: float = 1e15) -> Any:
    load = load_of(LADDER[1], items, TEXTS, FRAMES, 4, ("", 300))
    return estimate_step(Coming(LADDER[1], items, 100, 0.8, False), load, spent, speed, "x")


def test_what_was_measured_replaces_what_is_assumed() -> None:
    found = estimated(spent=Spent(10, 40, 20.0, "NVIDIA A100"))
    assert found.basis == "measured here: 2.0 prompts/s a worker on NVIDIA A100"
    assert found.gpu_hours == pytest.approx(400 / 2 / 3600)
    assert estimated(spent=Spent(10, 40, 20.0)).basis.endswith("an unnamed device")
    for little in (Spent(1, ENOUGH - 1, 1.0), Spent(10, 40, 0.0), None):
        assert estimated(spent=little).basis.startswith("assumed")


def test_short_prompts_are_no_faster_than_any_that_were_measured() -> None:
    assert estimated(speed=1e18).gpu_hours == pytest.approx(400 / MOST_PROMPTS_S / 3600)
    assert (estimated(items=0).gpu_hours, estimated(items=0).basis) == (0.0, "nothing to ask")


def test_the_bytes_of_a_row() -> None:
    assert (row_bytes(4), row_bytes(1)) == (1180, 718)


# What is left.


def test_seconds_left_by_what_was_measured() -> None:
    steps = [Coming(LADDER[k], items, 50, 0.8, False) for k, items in ((1, 50.0), (4, 40.0), (6, 0.0))]
    spent = {1: Spent(10, 40, 20.0), 6: Spent(0, 0, 0.0)}
    assert seconds_left(steps, spent, 1) == (100.0, (4, 6))
    assert seconds_left(steps, spent, 4) == (25.0, (4, 6))
    assert seconds_left(steps, spent, 0) == (100.0, (4, 6))
    assert seconds_left([Coming(LADDER[4], 0.0, 0, 0.8, False)], {}, 1) == (0.0, ())
    assert not math.isnan(seconds_left(steps, {}, 1)[0])
