"""The plan: units, tasks, what is left, and which rows count."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.errors import StudyError, UsageError
from benchcheck.run.plan import (
    MAX_UNIT,
    Unit,
    assign_units,
    load_pool,
    pilot_flags,
    plan_units,
    read_step,
    slurm_task,
    survey,
    totals,
    units_of,
)
from benchcheck.screen.steps import LADDER
from benchcheck.screen.verdicts import Mark, State
from benchcheck.study import Study
from studies import error_of, framed_study, give_frames, make_item, make_items, make_study, row_of

# Units and tasks.


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60)), st.integers(1, 25), st.integers(1, 9))
def test_every_item_is_in_one_unit_and_every_unit_in_one_task(sizes: dict[str, int], max_unit: int, n: int) -> None:
    work = [(bench, [f"{bench}_{index}" for index in range(size)]) for bench, size in sizes.items()]
    units = plan_units(work, max_unit)
    assert sorted(i for unit in units for i in unit.item_ids) == sorted(i for _, ids in work for i in ids)
    assert all(len(unit.item_ids) <= max_unit for unit in units)
    for bench, _ in work:
        mine = [unit for unit in units if unit.bench == bench]
        assert [unit.part for unit in mine] == list(range(mine[0].parts)) == list(range(len(mine)))
        assert [i for unit in mine for i in unit.item_ids] == sorted(i for unit in mine for i in unit.item_ids)
    tasks = assign_units(units, n)
    assert len(tasks) == n
    assert sorted(map(repr, (unit for task in tasks for unit in task))) == sorted(map(repr, units))
    loads = [sum(len(unit.item_ids) for unit in task) for task in tasks]
    assert max(loads) - min(loads) <= max((len(unit.item_ids) for unit in units), default=0)


def test_only_a_split_benchmark_has_numbered_files() -> None:
    assert Unit("a", 0, 1, ()).file_part is None
    assert [unit.file_part for unit in plan_units([("a", ["1", "2", "3"])], 2)] == [0, 1]


def test_units_hold_at_most_20_000_items_and_every_task_gets_one() -> None:
    ids = [f"a_{index}" for index in range(45_000)]
    assert MAX_UNIT == 20_000
    assert [len(unit.item_ids) for unit in plan_units([("a", ids)])] == [15_000] * 3


def test_units_do_not_depend_on_what_is_answered_and_split_by_the_number_of_tasks(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.write_pool([*make_items(a=10, b=3), make_item(90, "a", format="open", gold=None)])
    pool = load_pool(study)
    (one,) = units_of(pool, 1)
    assert [(unit.bench, len(unit.item_ids), unit.file_part) for unit in one] == [("a", 10, None), ("b", 3, None)]
    assert "a_90" not in {item for unit in one for item in unit.item_ids}
    three = units_of(pool, 3)
    assert [[(unit.bench, len(unit.item_ids)) for unit in task] for task in three] == [
        [("a", 5)],
        [("a", 5)],
        [("b", 3)],
    ]
    assert len(units_of(pool, 40)) == 40
    study.append(1, "a", None, [row_of(study, make_item(0))])
    assert units_of(load_pool(study), 3) == three


def test_an_empty_pool_has_nothing_to_do(study: Study) -> None:
    study.write_pool([])
    state = survey(study)
    assert (len(state.pool), totals(state).remaining, state.fold.state.tolist()) == (0, 0, [])
    assert units_of(state.pool, 2) == [[], []]


# Slurm.


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"ID": "0"}, "has holes or no size (min 0, max None, count None)"),
        ({"ID": "2", "MIN": "0", "MAX": "4", "COUNT": "3"}, "has holes or no size (min 0, max 4, count 3)"),
        ({"ID": "5", "MIN": "0", "MAX": "3"}, "SLURM_ARRAY_TASK_ID = 5 lies outside the array 0 to 3"),
        ({"ID": "1", "MIN": "2", "MAX": "3"}, "SLURM_ARRAY_TASK_ID = 1 lies outside the array 2 to 3"),
        ({"ID": "4", "COUNT": "4"}, "lies outside the array 0 to 3"),
        ({"ID": "0", "COUNT": "0"}, "lies outside the array"),
        ({"ID": "3", "MIN": "4", "MAX": "2"}, "lies outside the array"),
        ({"ID": "x", "COUNT": "4"}, "SLURM_ARRAY_TASK_ID = 'x' is not a number"),
        ({"ID": "", "COUNT": "4"}, "SLURM_ARRAY_TASK_ID = '' is not a number"),
        ({"ID": "-1", "COUNT": "4"}, "SLURM_ARRAY_TASK_ID = '-1' is not a number"),
        ({"ID": "1", "COUNT": "1e3"}, "SLURM_ARRAY_TASK_COUNT = '1e3' is not a number"),
        ({"COUNT": "many"}, "SLURM_ARRAY_TASK_COUNT = 'many' is not a number"),
    ],
)
def test_an_array_that_would_skip_items_is_refused(environment: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)):
        slurm_task({f"SLURM_ARRAY_TASK_{name}": value for name, value in environment.items()})


def test_outside_an_array_there_is_one_task() -> None:
    assert slurm_task({}) == slurm_task({"SLURM_JOB_ID": "7", "SLURM_ARRAY_TASK_COUNT": "4"}) == (0, 1)


def test_the_array_s_holes_have_a_cure() -> None:
    with pytest.raises(UsageError, match=r"Cure: submit it as --array=0-N without a step"):
        slurm_task({"SLURM_ARRAY_TASK_ID": "1"})


@given(st.integers(0, 500), st.integers(1, 64), st.data())
def test_every_task_of_an_array_finds_its_own_number(low: int, count: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(low, low + count - 1))
    environment = {"ID": number, "MIN": low, "MAX": low + count - 1, "COUNT": count}
    left_out = data.draw(st.sampled_from([None, "MAX", "COUNT"]))
    given_ = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in environment.items() if name != left_out}
    assert slurm_task(given_) == (number - low, count)


# Rows.


def marks(study: Study, step: int = 1) -> list[int]:
    return read_step(study, load_pool(study), LADDER[step]).marks.tolist()


def test_the_last_good_row_of_an_item_wins_over_parts_and_errors(study: Study) -> None:
    pool = make_items(a=4)
    study.write_pool(pool)
    removed = {"n_right": 4, "mean_margin": 2.0}
    study.append(1, "a", None, [row_of(study, pool[0], **removed), row_of(study, pool[1]), error_of(study, pool[2])])
    study.append(1, "a", 0, [row_of(study, pool[0]), row_of(study, pool[1], **removed)])
    study.append(1, "a", 1, [error_of(study, pool[0], kind="context_too_long"), error_of(study, pool[2])])
    assert marks(study) == [Mark.PASSED, Mark.REMOVED, Mark.ERRORS, Mark.NONE]
    study.append(1, "a", 1, [error_of(study, pool[2])])
    assert marks(study) == [Mark.PASSED, Mark.REMOVED, Mark.FAILED, Mark.NONE]


@pytest.mark.parametrize("kind", ["context_too_long", "low_label_mass", "undecodable_frames"])
def test_an_error_that_repeats_by_nature_fails_at_once(study: Study, kind: str) -> None:
    study.write_pool(make_items(a=1))
    study.append(1, "a", None, [error_of(study, make_item(0), kind=kind)])
    assert marks(study) == [Mark.FAILED]


def test_rows_of_another_protocol_or_item_are_counted_and_never_mixed(study: Study) -> None:
    pool = make_items(a=3)
    study.write_pool(pool)
    rows = [
        row_of(study, pool[0], step_key="0" * 16),
        row_of(study, pool[0], step_key=None),
        row_of(study, pool[1], item_digest="0" * 16),
        row_of(study, pool[1], item_digest=None),
        row_of(study, make_item(77)),
        row_of(study, pool[2]),
    ]
    study.append(1, "a", None, rows)
    with study.step_file(1, "a").open("ab") as file:
        file.write(b'{"item_id": "a_0", "torn\n[1]\n')
    report = read_step(study, load_pool(study), LADDER[1])
    assert report.marks.tolist() == [Mark.NONE, Mark.NONE, Mark.PASSED]
    assert (report.other_key, report.other_item, report.unreadable) == (2, 3, 2)


@pytest.mark.parametrize("name", ["n_right", "n_perm", "mean_margin"])
def test_a_damaged_answer_is_asked_again_and_never_guessed(study: Study, name: str) -> None:
    pool = make_items(a=2)
    study.write_pool(pool)
    study.append(1, "a", None, [row_of(study, pool[0], **{name: None}), row_of(study, pool[1], **{name: "x"})])
    assert marks(study) == [Mark.NONE, Mark.NONE]
    assert read_step(study, load_pool(study), LADDER[1]).unreadable == 2
    assert totals(survey(study), 1).remaining == 2
    study.append(1, "a", None, [row_of(study, pool[0])])
    assert marks(study) == [Mark.PASSED, Mark.NONE]


@pytest.mark.parametrize("change", [{"n_right": 5}, {"n_right": -1}, {"n_perm": 0, "n_right": 0}])
def test_an_answer_of_impossible_numbers_is_no_answer_and_no_error(study: Study, change: dict[str, int]) -> None:
    study.write_pool(make_items(a=1))
    study.append(1, "a", None, [row_of(study, make_item(0), **change)] * 3)
    assert marks(study) == [Mark.NONE]
    assert read_step(study, load_pool(study), LADDER[1]).unreadable == 3


def test_a_status_that_is_neither_ok_nor_error_is_no_answer(study: Study) -> None:
    study.write_pool(make_items(a=2))
    rows = [row_of(study, make_item(0), status=None), row_of(study, make_item(1), status="OK")]
    study.append(1, "a", None, rows)
    assert marks(study) == [Mark.NONE, Mark.NONE]


def test_thresholds_move_without_asking_again(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    pool = make_items(a=1)
    study.write_pool(pool)
    study.append(1, "a", None, [row_of(study, pool[0], n_right=2, mean_margin=0.5)])
    assert marks(study) == [Mark.PASSED]
    moved = make_study(study.root, protocol={"right_share": 0.5, "margin": 0.4})
    assert marks(moved) == [Mark.REMOVED]


# Surveys.


def test_who_is_asked_who_waits_and_who_failed(study: Study) -> None:
    pool = [*make_items(a=4), make_item(9, "a", format="open", gold=None)]
    study.write_pool(pool)
    give_frames(study, [pool[2]])
    study.append(1, "a", None, [row_of(study, item) for item in pool[:3]])
    study.append(1, "a", None, [error_of(study, pool[3], kind="context_too_long")])
    state = survey(study)
    names = [State(value).name for value in state.fold.state]
    # Items 0 and 1 share a video without frames: step 4 can ask them, so they are pending, not yet waiting.
    assert names == ["PENDING", "PENDING", "PENDING", "FAILED", "OUTSIDE"]
    assert state.framed.tolist() == [False, False, True, False, False]
    assert (totals(state).waiting, totals(state).failed, totals(state).remaining) == (2, 1, 3 + 4)
    assert (totals(state, 1).waiting, totals(state, 1).failed, totals(state, 1).remaining) == (0, 1, 0)
    assert (totals(state, 2).waiting, totals(state, 2).failed, totals(state, 2).remaining) == (2, 0, 1)
    study.append(4, "a", None, [row_of(study, item, 4) for item in pool[:2]])
    assert [State(value).name for value in survey(study).fold.state][:2] == ["WAITING", "WAITING"]


def test_an_earlier_step_comes_first(study: Study) -> None:
    study.write_pool(make_items(a=2))
    study.append(1, "a", None, [row_of(study, make_item(0))])
    fourth = survey(study).fold.steps[3]
    assert (fourth.todo.tolist(), fourth.ready.tolist()) == ([True, True], [True, False])


def test_without_a_cascade_removed_items_are_asked_and_the_verdict_stays(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=2), protocol={"cascade": False})
    study.append(1, "a", None, [row_of(study, make_item(0), n_right=4, mean_margin=2.0)])
    state = survey(study)
    assert state.fold.steps[5].ready.tolist() == [True, True]
    assert (state.fold.state[0], state.fold.left_at[0]) == (State.REMOVED, 1)
    assert totals(state).remaining == 1 + 5 * 2


def test_a_sample_asks_some_and_leaves_the_others_outside(tmp_path: Path) -> None:
    protocol = {"cascade": False, "sample": 3}
    study = framed_study(tmp_path, make_items(a=8, b=2), protocol=protocol)
    state = survey(study)
    assert totals(state).remaining == 6 * (3 + 2)
    assert int(np.count_nonzero(state.fold.state == State.OUTSIDE)) == 5
    assert np.array_equal(state.fold.state == State.PENDING, pilot_flags(state.pool, 3, 42))


def test_steps_that_were_read_before_are_not_read_again(study: Study) -> None:
    study.write_pool(make_items(a=2))
    first = survey(study)
    study.append(1, "a", None, [row_of(study, make_item(0))])
    assert survey(study, first.pool, first.reports).reports[1] is first.reports[1]
    assert survey(study, first.pool).reports[1].marks.tolist() == [Mark.PASSED, Mark.NONE]


def test_a_study_without_a_pool_is_one_line(study: Study) -> None:
    with pytest.raises(StudyError, match="no pool yet"):
        survey(study)


# Pilots.


def test_a_pilot_is_a_seeded_sample_of_every_benchmark_and_a_larger_one_holds_it(study: Study) -> None:
    study.write_pool([*make_items(a=30, b=2), make_item(99, "a", format="open")])
    pool = load_pool(study)
    few, more = pilot_flags(pool, 5, 42), pilot_flags(pool, 12, 42)
    assert [int(np.count_nonzero(few & (pool.bench == bench))) for bench in "ab"] == [5, 2]
    assert int(np.count_nonzero(more)) == 14
    assert not np.any(few & ~more)
    assert np.array_equal(few, pilot_flags(pool, 5, 42))
    assert not np.array_equal(few, pilot_flags(pool, 5, 43))
    assert not pilot_flags(pool, 99, 42)[-1]
