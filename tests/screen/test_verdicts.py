"""Verdicts: the fold over arrays against a slow reading of the protocol, item by item."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.screen.steps import LADDER
from benchcheck.screen.verdicts import MAX_ERRORS, Fold, Mark, Rule, State, StepRows, fold, marks_of

FRAME_STEPS = {2, 3, 5, 6}


@dataclass(frozen=True)
class Row:
    """One row: an answer with its number of right orders out of 4 and its margin, or an error."""

    item: int
    good: bool
    n_right: int = 0
    margin: float = 0.0
    permanent: bool = False
    retry: bool = False


@dataclass(frozen=True)
class World:
    """A pool of a few items with rows in some steps."""

    steps: tuple[int, ...]
    rows: Mapping[int, Sequence[Row]]
    screenable: tuple[bool, ...]
    framed: tuple[bool, ...]
    asked: tuple[bool, ...] | None

    @property
    def n(self) -> int:
        return len(self.screenable)

    def marks(self) -> dict[int, np.ndarray]:
        return {step: marks_of(columns(self.rows[step]), self.n, Rule()) for step in self.steps}

    def fold(self) -> Fold:
        asked = None if self.asked is None else flags(self.asked)
        steps = [LADDER[step] for step in self.steps]
        return fold(steps, self.marks(), flags(self.screenable), flags(self.framed), asked)


def flags(values: Sequence[bool]) -> np.ndarray:
    return np.array(values, dtype=np.bool_)


def columns(rows: Sequence[Row]) -> StepRows:
    return StepRows(
        item=np.array([row.item for row in rows], dtype=np.int64),
        good=np.array([row.good for row in rows], dtype=np.bool_),
        permanent=np.array([row.permanent for row in rows], dtype=np.bool_),
        n_right=np.array([row.n_right for row in rows], dtype=np.int64),
        n_perm=np.full(len(rows), 4, dtype=np.int64),
        margin=np.array([row.margin for row in rows], dtype=np.float64),
        retry=np.array([row.retry for row in rows], dtype=np.bool_),
        forgives=np.array([forgives(rows, number) for number in range(len(rows))], dtype=np.int64),
    )


def forgives(rows: Sequence[Row], number: int) -> int:
    """What a row of another try forgives: the errors of its item before it."""
    if not rows[number].retry:
        return 0
    before = [row for row in rows[:number] if row.item == rows[number].item and not row.good and not row.retry]
    return sum(3 if row.permanent else 1 for row in before)


def rows_of(item: st.SearchStrategy[int]) -> st.SearchStrategy[Row]:
    answers = st.builds(Row, item, st.just(True), st.integers(0, 4), st.sampled_from([-1.0, 0.69, 0.7, 3.0]))
    errors = st.builds(Row, item, st.just(False), st.just(0), st.just(0.0), st.booleans())
    retries = st.builds(Row, item, st.just(False), retry=st.just(True))
    return answers | errors | retries


@st.composite
def worlds(draw: st.DrawFn) -> World:
    n = draw(st.integers(1, 5))
    steps = tuple(sorted(draw(st.sets(st.integers(1, 6), min_size=1))))
    coins = st.tuples(*[st.booleans()] * n)
    rows = st.lists(rows_of(st.integers(0, n - 1)), max_size=4 * n)
    return World(
        steps=steps,
        rows={step: draw(rows) for step in steps},
        screenable=draw(st.tuples(*[st.sampled_from([True, True, True, False])] * n)),
        framed=draw(coins),
        asked=draw(st.none() | coins),
    )


def said(rows: Sequence[Row], item: int) -> str:
    """What protocol 4 and 5 make of an item's rows in one step."""
    mine = [row for row in rows if row.item == item]
    answers = [row for row in mine if row.good]
    if answers:
        removed = answers[-1].n_right >= 3 and answers[-1].margin > math.log(2)
        return "removed" if removed else "passed"
    tries = [number for number, row in enumerate(mine) if row.retry]
    errors = mine[tries[-1] + 1 if tries else 0 :]
    if any(row.permanent for row in errors) or len(errors) >= 3:
        return "failed"
    return "open"


def stands(world: World, item: int) -> tuple[State, int]:
    """Where one item stands, read step by step."""
    if not world.screenable[item]:
        return State.OUTSIDE, 0
    left_out = world.asked is not None and not world.asked[item]
    pending = waiting = outside = False
    for step in world.steps:
        word = said(world.rows[step], item)
        if word == "removed":
            return State.REMOVED, step
        if word == "failed":
            return State.FAILED, step
        if word == "open":
            needs = step in FRAME_STEPS and not world.framed[item]
            outside, waiting, pending = (
                outside or left_out,
                waiting or (not left_out and needs),
                pending or (not left_out and not needs),
            )
    if pending:
        return State.PENDING, 0
    return (State.OUTSIDE if outside else State.WAITING if waiting else State.KEPT), 0


def test_another_try_clears_errors_but_no_answer() -> None:
    fatal, again = Row(0, good=False, permanent=True), Row(0, good=False, retry=True)
    assert marks_of(columns([fatal]), 1, Rule()).tolist() == [Mark.FAILED]
    assert marks_of(columns([fatal, again]), 1, Rule()).tolist() == [Mark.NONE]
    assert marks_of(columns([fatal, again, Row(0, good=False)]), 1, Rule()).tolist() == [Mark.ERRORS]
    assert marks_of(columns([again, fatal]), 1, Rule()).tolist() == [Mark.FAILED]
    assert marks_of(columns([Row(0, good=True, n_right=4, margin=3.0), again]), 1, Rule()).tolist() == [Mark.REMOVED]


@given(st.data(), st.lists(rows_of(st.integers(0, 3)).filter(lambda row: not row.good), max_size=16))
def test_errors_and_other_tries_count_alike_in_any_order(data: st.DataObject, rows: list[Row]) -> None:
    """An item's rows may lie in several files: what one worker wrote, and what two wrote later."""
    told = columns(rows)
    order = np.array(data.draw(st.permutations(range(len(rows)))), dtype=np.int64)
    mixed = StepRows(*(getattr(told, name)[order] for name in StepRows.__dataclass_fields__))
    assert marks_of(mixed, 4, Rule()).tolist() == marks_of(told, 4, Rule()).tolist()


@given(worlds())
def test_state_and_step_are_those_of_the_slow_reading(world: World) -> None:
    folded = world.fold()
    found = list(zip(folded.state.tolist(), folded.left_at.tolist(), strict=True))
    assert found == [(int(state), step) for state, step in (stands(world, item) for item in range(world.n))]


@given(worlds())
def test_who_is_asked_and_who_waits_is_that_of_the_slow_reading(world: World) -> None:
    folded = world.fold()
    for item in range(world.n):
        alive, earlier = world.screenable[item], False
        for here in folded.steps:
            step = here.step.number
            word = said(world.rows[step], item)
            if world.asked is None:
                asks = alive and word == "open"
            else:
                asks = world.asked[item] and world.screenable[item] and word == "open"
            needs = step in FRAME_STEPS and not world.framed[item]
            assert bool(here.alive[item]) is alive
            assert bool(here.waiting[item]) is (asks and needs)
            assert bool(here.todo[item]) is (asks and not needs)
            assert bool(here.ready[item]) is (asks and not needs and (world.asked is not None or not earlier))
            earlier = earlier or (asks and not needs)
            alive = alive and word in ("open", "passed")


@given(worlds())
def test_every_item_is_in_one_state_and_only_those_that_left_have_a_step(world: World) -> None:
    folded = world.fold()
    assert set(folded.state.tolist()) <= {int(state) for state in State}
    left = np.isin(folded.state, [State.REMOVED, State.FAILED])
    assert np.array_equal(left, folded.left_at > 0)
    assert sum(int(np.count_nonzero(folded.state == state)) for state in State) == world.n
    counted = sum(here.count(Mark.REMOVED) + here.count(Mark.FAILED) for here in folded.steps)
    assert counted == int(np.count_nonzero(left))


@given(worlds(), st.data())
def test_an_error_row_never_changes_an_answered_item(world: World, data: st.DataObject) -> None:
    before = world.marks()
    for step in world.steps:
        item = data.draw(st.integers(0, world.n - 1))
        place = data.draw(st.integers(0, len(world.rows[step])))
        error = Row(item, good=False, permanent=data.draw(st.booleans()))
        rows = [*world.rows[step][:place], error, *world.rows[step][place:]]
        after = marks_of(columns(rows), world.n, Rule())
        changed = np.flatnonzero(after != before[step])
        assert set(changed.tolist()) <= {item}
        if before[step][item] in (Mark.PASSED, Mark.REMOVED):
            assert not changed.size


def test_the_last_good_row_wins() -> None:
    passed, removed = Row(0, good=True, n_right=2, margin=5.0), Row(0, good=True, n_right=3, margin=5.0)
    error = Row(0, good=False)
    for rows, mark in (
        ([passed, removed], Mark.REMOVED),
        ([removed, passed], Mark.PASSED),
        ([removed, error, error, error], Mark.REMOVED),
        ([error, error, error, removed], Mark.REMOVED),
        ([error, error], Mark.ERRORS),
        ([error] * MAX_ERRORS, Mark.FAILED),
        ([Row(0, good=False, permanent=True)], Mark.FAILED),
        ([], Mark.NONE),
    ):
        assert marks_of(columns(rows), 1, Rule()).tolist() == [mark]


def test_the_last_good_row_wins_among_many_items() -> None:
    generator = np.random.default_rng(7)
    items, right = generator.integers(0, 500, 20_000), generator.integers(0, 5, 20_000)
    rows = [Row(int(item), good=True, n_right=int(n), margin=1.0) for item, n in zip(items, right, strict=True)]
    last = {row.item: Mark.REMOVED if row.n_right >= 3 else Mark.PASSED for row in rows}
    assert marks_of(columns(rows), 500, Rule()).tolist() == [last.get(item, Mark.NONE) for item in range(500)]


@given(st.integers(1, 24), st.data(), st.floats(-5, 5), st.integers(1, 100))
def test_one_and_many_answers_follow_the_same_rule(n: int, data: st.DataObject, margin: float, cents: int) -> None:
    n_right = data.draw(st.integers(0, n))
    rule = Rule(cents / 100, 0.5)
    wanted = 100 * n_right >= cents * n and margin > 0.5
    assert rule.removes(n_right, n, margin) is wanted
    assert rule.removes_all(np.array([n_right]), np.array([n]), np.array([margin])).tolist() == [wanted]


@pytest.mark.parametrize(
    ("n_right", "n_perm", "margin", "removed"),
    [
        (4, 4, math.log(2), False),
        (3, 4, math.nextafter(math.log(2), 1), True),
        (2, 4, 9.0, False),
        (1, 1, 1.0, True),
        (0, 1, 1.0, False),
    ],
)
def test_the_margin_itself_does_not_remove(n_right: int, n_perm: int, margin: float, removed: bool) -> None:
    assert Rule().removes(n_right, n_perm, margin) is removed
    assert Rule().removes_all(np.array([n_right]), np.array([n_perm]), np.array([margin])).tolist() == [removed]


@pytest.mark.parametrize("cascade", [True, False])
def test_an_item_without_frames_still_takes_part_in_text_steps(cascade: bool) -> None:
    asked = None if cascade else (True,)
    passed = [Row(0, good=True)]
    world = World((1, 2, 4), {1: passed, 2: [], 4: []}, (True,), (False,), asked)
    _, second, fourth = world.fold().steps
    assert (second.waiting.tolist(), second.todo.tolist(), fourth.ready.tolist()) == ([True], [False], [True])
    world = World((1, 2, 4), {1: passed, 2: [], 4: passed}, (True,), (False,), asked)
    assert world.fold().state.tolist() == [State.WAITING]


def test_an_empty_pool_folds_to_nothing() -> None:
    world = World((1, 2), {1: [], 2: []}, (), (), None)
    assert world.fold().state.tolist() == []
