"""The loop: every step until nothing is left, errors three times, and never the same question twice."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends import ModelSpec
from benchcheck.backends.scripted import ScriptedBackend
from benchcheck.config import step_key
from benchcheck.errors import BackendError, StudyError, UsageError
from benchcheck.run import driver, local
from benchcheck.run.accounting import Cost, costs, note_cost
from benchcheck.run.driver import BenchLoss, FailureKind, StepSummary, retry_failed, screen, step_warnings, summarize
from benchcheck.run.local import Asked, Assignment, Local, do_share
from benchcheck.run.plan import Survey, plan_units, survey, totals
from benchcheck.run.work import do_unit
from benchcheck.screen.prompts import INTROS, Prompt
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import LADDER, Sight
from benchcheck.screen.verdicts import MAX_ERRORS, State
from benchcheck.study import Study
from studies import (
    FakeBackend,
    Heard,
    error_of,
    failing,
    framed_study,
    give_frames,
    make_item,
    make_items,
    make_study,
    reading,
    row_of,
    rows_on_disk,
)

Answer = Callable[[Prompt], Reading | Failure]


def run(study: Study, heard: Heard | None = None, **settings: Any) -> Survey:
    """Screen with the scripted backend in this process."""
    executor = Local(study, Asked("scripted"))
    try:
        return screen(study, executor, heard or Heard(), **settings)
    finally:
        executor.close()


def verdicts(state: Survey) -> dict[str, tuple[str, int]]:
    """Where every item stands."""
    ids = state.pool.item_id.to_pylist()
    found = zip(state.fold.state.tolist(), state.fold.left_at.tolist(), strict=True)
    return {item: (State(value).name, step) for item, (value, step) in zip(ids, found, strict=True)}


def names(state: Survey) -> Counter[str]:
    return Counter(name for name, _ in verdicts(state).values())


@pytest.fixture
def faked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[FakeBackend]]:
    """Makes every backend that is opened answer from a function; returns those opened so far."""

    def fake(answer: Answer) -> list[FakeBackend]:
        opened: list[FakeBackend] = []

        def open_fake(name: str, spec: ModelSpec) -> FakeBackend:
            opened.append(FakeBackend(answer))
            return opened[-1]

        monkeypatch.setattr(local, "open_backend", open_fake)
        return opened

    return fake


def right(prompt: Prompt) -> Reading:
    """Prefers the item's gold, which test items have at their number modulo 2."""
    gold = int(prompt.item_id.rpartition("_")[2]) % 2
    return reading([-0.1 if index == gold else -5.0 for index in prompt.order])


def wrong(prompt: Prompt) -> Reading:
    return reading([-5.0 if index == int(prompt.item_id[-1]) % 2 else -0.1 for index in prompt.order])


# A whole run.


def test_a_run_ends_with_every_item_kept_or_removed_and_a_second_asks_nothing(tmp_path: Path, heard: Heard) -> None:
    study = framed_study(tmp_path, make_items(a=40, b=15))
    state = run(study, heard)
    assert set(names(state)) == {"KEPT", "REMOVED"}
    assert totals(state).remaining == totals(state).waiting == totals(state).failed == 0
    for (number, todo, waiting), summary in zip(heard.begun, heard.ended, strict=True):
        assert (summary.step.number, summary.asked_now, summary.answered) == (number, todo, todo)
        assert len(rows_on_disk(study, number)) == todo
        assert (summary.remaining, summary.failed, waiting, summary.waiting) == (0, 0, 0, 0)
    alive = [summary.alive for summary in heard.ended]
    assert alive[0] == 55
    assert alive[1:] == [summary.alive - summary.removed for summary in heard.ended[:-1]]
    assert heard.items == sum(summary.asked_now for summary in heard.ended)
    again = Heard()
    assert verdicts(run(study, again)) == verdicts(state)
    assert (again.items, [todo for _, todo, _ in again.begun]) == (0, [0] * 6)
    assert all(summary.items_per_s == 0 for summary in again.ended)


def test_a_removed_item_is_asked_no_further(tmp_path: Path, faked: Callable[[Answer], list[FakeBackend]]) -> None:
    study = framed_study(tmp_path, make_items(a=6))
    opened = faked(lambda prompt: right(prompt) if (prompt.step, prompt.item_id) in fall else wrong(prompt))
    fall = {(1, "a_0"), (2, "a_1"), (3, "a_2"), (4, "a_3"), (5, "a_4"), (6, "a_5")}
    state = run(study)
    assert verdicts(state) == {f"a_{index}": ("REMOVED", index + 1) for index in range(6)}
    asked = Counter(prompt.step for backend in opened for prompt in backend.asked)
    assert asked == {1: 6 * 4, 2: 5, 3: 4, 4: 3 * 4, 5: 2, 6: 1}
    # 8B, 2B, 8B, 2B, 8B: steps 1 and 2 share one open model, and no two are open at once.
    assert [sorted({prompt.step for prompt in backend.asked}) for backend in opened] == [[1, 2], [3], [4], [5], [6]]
    assert all(backend.closed for backend in opened)


def test_answered_items_are_never_asked_again(tmp_path: Path, faked: Callable[[Answer], list[FakeBackend]]) -> None:
    items = make_items(a=5)
    study = framed_study(tmp_path, items)
    study.append(1, "a", 7, [row_of(study, items[1]), row_of(study, items[2], n_right=4, mean_margin=3.0)])
    opened = faked(wrong)
    state = run(study)
    first = {prompt.item_id for backend in opened for prompt in backend.asked if prompt.step == 1}
    assert first == {"a_0", "a_3", "a_4"}
    assert verdicts(state)["a_2"] == ("REMOVED", 1)


# Errors.


def test_an_error_is_asked_three_times_in_all_and_then_fails(tmp_path: Path, heard: Heard) -> None:
    study = framed_study(tmp_path, make_items(a=8), large="scripted?fail=1&kind=timeout", protocol={"steps": [1, 4]})
    state = run(study, heard)
    assert set(verdicts(state).values()) == {("FAILED", 1)}
    assert Counter(row["item_id"] for row in rows_on_disk(study, 1)) == {f"a_{index}": MAX_ERRORS for index in range(8)}
    assert rows_on_disk(study, 4) == []
    (first, second) = heard.ended
    assert first.kinds == (FailureKind("timeout", 8, ("a_0", "a_1", "a_2", "a_3", "a_4")),)
    assert (first.failed, first.answered, first.asked_now, heard.errors) == (8, 0, 24, 24)
    assert (second.alive, second.failed, second.kinds) == (0, 0, ())
    assert run(study, Heard()).fold.state.tolist() == state.fold.state.tolist()
    assert len(rows_on_disk(study, 1)) == 24


@pytest.mark.parametrize("kind", ["context_too_long", "low_label_mass", "undecodable_frames"])
def test_an_error_that_repeats_by_nature_is_asked_once(tmp_path: Path, kind: str) -> None:
    study = framed_study(tmp_path, make_items(a=4), large=f"scripted?fail=1&kind={kind}", protocol={"steps": [1]})
    assert set(verdicts(run(study)).values()) == {("FAILED", 1)}
    assert len(rows_on_disk(study, 1)) == 4


def test_an_error_that_passes_is_mended_in_the_same_run(tmp_path: Path, heard: Heard) -> None:
    study = framed_study(tmp_path, make_items(a=12), large="scripted?fail=0.3&attempts=1", protocol={"steps": [1]})
    state = run(study, heard)
    assert heard.errors > 0
    assert totals(state).failed == totals(state).remaining == 0
    clean = framed_study(tmp_path / "clean", make_items(a=12), protocol={"steps": [1]})
    assert verdicts(run(clean)) == verdicts(state)


def test_errors_of_an_earlier_run_count(tmp_path: Path, faked: Callable[[Answer], list[FakeBackend]]) -> None:
    study = framed_study(tmp_path, make_items(a=1), protocol={"steps": [1]})
    faked(failing("timeout"))
    do_share(study, Asked("scripted"), Assignment(1, 0, 1), lambda *_: None)
    assert len(rows_on_disk(study, 1)) == 1
    run(study)
    assert len(rows_on_disk(study, 1)) == 3


@pytest.mark.parametrize("kind", ["timeout", "low_label_mass"])
def test_failed_items_get_another_try_wherever_their_rows_lie(tmp_path: Path, kind: str) -> None:
    study = framed_study(tmp_path, make_items(a=12), large=f"scripted?fail=1&kind={kind}", protocol={"steps": [1]})
    unit = plan_units([("a", [item.item_id for item in study.items()])], max_unit=6)[1]
    step, backend = LADDER[1], ScriptedBackend(ModelSpec(study.config.models["8b"].model, seed=42))
    for _ in range(MAX_ERRORS):
        do_unit(study, step, unit, backend, lambda items, errors: None)
    assert [path.name for path in study.step_files(1)] == ["a.p1.jsonl"]
    for _ in range(2):
        assert totals(survey(study)).failed == 6
        assert retry_failed(study) == 6
        state = survey(study)
        assert (totals(state).failed, totals(state).remaining) == (0, 12)
        for _ in range(MAX_ERRORS):
            do_unit(study, step, replace(unit, parts=1), backend, lambda items, errors: None)
    state = run(study)
    assert (totals(state).failed, totals(state).remaining) == (12, 0)


def test_a_reading_under_the_floor_fails_in_exact_and_counts_in_the_original_preset(tmp_path: Path) -> None:
    items, low = make_items(a=5), {"large": "scripted?mass=0.05", "small": "scripted?mass=0.05"}
    exact = framed_study(tmp_path / "exact", items, **low)
    assert set(verdicts(run(exact)).values()) == {("FAILED", 1)}
    original = framed_study(tmp_path / "original", items, **low, protocol={"preset": "benchcheck-2026"})
    assert totals(run(original)).failed == 0


def test_an_engine_that_dies_keeps_its_rows_and_the_same_call_continues(
    tmp_path: Path, faked: Callable[[Answer], list[FakeBackend]]
) -> None:
    study = framed_study(tmp_path, make_items(a=9), protocol={"steps": [1, 2]})
    answered = []

    def dies(prompt: Prompt) -> Reading:
        answered.append(prompt)
        if len(answered) == 4 * 6:
            raise BackendError("the engine died")
        return wrong(prompt)

    faked(dies)
    with pytest.raises(BackendError, match="the engine died"):
        run(study)
    assert len(rows_on_disk(study, 1)) == 5
    state = run(study)
    assert names(state) == {"KEPT": 9}
    assert sorted(Counter(row["item_id"] for row in rows_on_disk(study, 1)).values()) == [1] * 9


def test_a_backend_that_leaves_items_out_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = framed_study(tmp_path, make_items(a=3))
    monkeypatch.setattr(local, "open_backend", lambda *_: FakeBackend(leave_out=1))
    with pytest.raises(BackendError, match="without all of their outcomes"):
        run(study)


def test_no_pool_and_no_such_backend_are_one_line(study: Study) -> None:
    with pytest.raises(StudyError, match="no pool yet"):
        run(study)
    with pytest.raises(UsageError, match="backend 'x'"):
        Local(study, Asked("x"))


# Waiting, sampling, piloting.


def test_items_without_frames_wait_take_part_in_text_steps_and_continue_later(tmp_path: Path, heard: Heard) -> None:
    items = make_items(a=30)
    study = make_study(tmp_path)
    study.write_pool(items)
    give_frames(study, items[:10])
    state = run(study, heard)
    assert set(names(state)) == {"KEPT", "REMOVED", "WAITING"}
    assert {summary.step.number for summary in heard.ended if summary.waiting} == {2, 3, 5, 6}
    assert len(rows_on_disk(study, 4)) > len(rows_on_disk(study, 3))
    assert all(left in (0, 1, 4) for item, (_, left) in verdicts(state).items() if int(item[2:]) >= 12)
    assert totals(state).remaining == 0
    assert totals(state).waiting > 0
    give_frames(study, items)
    later = run(study)
    assert "WAITING" not in names(later)
    whole = framed_study(tmp_path / "whole", items)
    kept = {item for item, (name, _) in verdicts(run(whole)).items() if name == "KEPT"}
    assert {item for item, (name, _) in verdicts(later).items() if name == "KEPT"} == kept


def test_without_a_cascade_every_step_asks_every_item_and_the_verdicts_are_the_same(tmp_path: Path) -> None:
    items = make_items(a=25)
    cascade = framed_study(tmp_path / "cascade", items)
    every = framed_study(tmp_path / "every", items, protocol={"cascade": False})
    assert verdicts(run(every)) == verdicts(run(cascade))
    assert {step: len(rows_on_disk(every, step)) for step in LADDER} == dict.fromkeys(LADDER, 25)
    # The rows are the same rows: turning the cascade off keeps what was answered.
    make_study(cascade.root, protocol={"cascade": False})
    heard = Heard()
    run(Study.open(cascade.root), heard)
    assert heard.begun[0] == (1, 0, 0)
    assert {step: len(rows_on_disk(cascade, step)) for step in LADDER} == dict.fromkeys(LADDER, 25)


def test_a_sample_asks_so_many_of_each_benchmark(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=12, b=3), protocol={"cascade": False, "sample": 5})
    state = run(study)
    for step in LADDER:
        assert Counter(row["bench"] for row in rows_on_disk(study, step)) == {"a": 5, "b": 3}
    assert names(state)["OUTSIDE"] == 7


def test_a_pilot_runs_a_sample_through_all_steps_and_the_whole_run_keeps_it(tmp_path: Path) -> None:
    items = make_items(a=40, b=10)
    study = framed_study(tmp_path, items)
    state = run(study, pilot=8)
    first = {row["item_id"] for row in rows_on_disk(study, 1)}
    assert Counter(item[0] for item in first) == {"a": 8, "b": 8}
    assert names(state)["PENDING"] == 50 - 16
    pilot = {item: verdicts(state)[item] for item in first}
    assert {name for name, _ in pilot.values()} <= {"KEPT", "REMOVED"}
    whole = run(study)
    assert {item: verdicts(whole)[item] for item in first} == pilot
    assert len(rows_on_disk(study, 1)) == 50
    assert verdicts(whole) == verdicts(run(framed_study(tmp_path / "at once", items)))


def test_a_pilot_of_a_sample_lies_in_it(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=60), protocol={"cascade": False, "sample": 20, "steps": [1]})
    run(study, pilot=10)
    assert len(rows_on_disk(study, 1)) == 10


def test_one_step_alone_asks_only_what_is_ready(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=8))
    heard = Heard()
    run(study, heard, only=2)
    assert (heard.begun, rows_on_disk(study, 2)) == ([(2, 0, 0)], [])
    run(study, only=1)
    assert (len(rows_on_disk(study, 1)), rows_on_disk(study, 2)) == (8, [])


# What changes between two runs.


def test_an_edited_question_is_asked_again_and_its_old_rows_are_counted(tmp_path: Path) -> None:
    items = make_items(a=6)
    study = framed_study(tmp_path, items, protocol={"steps": [1, 4]})
    run(study)
    before = len(rows_on_disk(study, 1))
    study.write_pool([replace(items[0], question="Another?"), *items[1:]])
    assert (survey(study).reports[1].other_item, survey(study).reports[1].other_key) == (1, 0)
    heard = Heard()
    state = run(study, heard)
    assert heard.begun[0] == (1, 1, 0)
    assert [row["item_id"] for row in rows_on_disk(study, 1)][before:] == ["a_0"]
    assert heard.ended[0].ignored == 1
    assert totals(state).remaining == 0


def test_a_changed_intro_asks_only_its_own_step_again(tmp_path: Path) -> None:
    items = make_items(a=10)
    study = framed_study(tmp_path, items, protocol={"cascade": False})
    run(study)
    changed = make_study(study.root, protocol={"cascade": False}, prompts={"options_only": "Guess."})
    heard = Heard()
    run(changed, heard)
    assert [todo for _, todo, _ in heard.begun] == [0, 0, 0, 10, 0, 0]
    assert [summary.ignored for summary in heard.ended] == [0, 0, 0, 10, 0, 0]
    assert len({row["step_key"] for row in rows_on_disk(study, 4)}) == 2
    # The old wording's rows are still there: going back asks nothing.
    back = Heard()
    run(make_study(study.root, protocol={"cascade": False}, prompts={"options_only": INTROS[Sight.OPTIONS_ONLY]}), back)
    assert back.items == 0


def test_an_added_benchmark_asks_only_its_own_items(tmp_path: Path) -> None:
    first, second = make_items(a=10), make_items(b=7)
    study = framed_study(tmp_path, first)
    before = verdicts(run(study))
    study.write_pool([*first, *second])
    give_frames(study, second)
    heard = Heard()
    after = verdicts(run(study, heard))
    assert {item: after[item] for item in before} == before
    assert heard.begun[0] == (1, 7, 0)
    assert {row["bench"] for row in rows_on_disk(study, 1)[-7:]} == {"b"}
    assert heard.items == sum(row["bench"] == "b" for step in LADDER for row in rows_on_disk(study, step))


def test_a_torn_line_costs_nothing_but_a_warning(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=6), protocol={"steps": [1]})
    before = verdicts(run(study))
    with study.step_file(1, "a").open("ab") as file:
        file.write(b'{"item_id": "a_5", "status"')
    heard = Heard()
    assert verdicts(run(study, heard)) == before
    assert (heard.items, heard.ended[0].unreadable) == (0, 1)


# Summaries and warnings.


def test_a_summary_counts_by_benchmark_and_kind(tmp_path: Path) -> None:
    items = make_items(a=7, b=2)
    study = framed_study(tmp_path, items)
    rows = [row_of(study, item) for item in items[:2]] + [row_of(study, items[2], n_right=4, mean_margin=2.0)]
    key = step_key(study.config, LADDER[1])
    for item, kind in zip(items[3:5], ("low_label_mass", "context_too_long"), strict=True):
        head = {"item_id": item.item_id, "step_key": key, "item_digest": item.digest, "status": "error"}
        rows += [head | {"error": "timeout"}, head | {"error": kind}]
    study.append(1, "a", None, rows)
    summary = summarize(study, survey(study), 0)
    assert (summary.alive, summary.answered, summary.removed, summary.failed, summary.remaining) == (9, 3, 1, 2, 4)
    assert summary.losses == (BenchLoss("a", 5, 1, 2), BenchLoss("b", 0, 0, 0))
    assert summary.kinds == (FailureKind("context_too_long", 1, ("a_4",)), FailureKind("low_label_mass", 1, ("a_3",)))
    assert (summary.items_per_s, summary.ignored, summary.unreadable) == (0.0, 0, 0)


def summary_of(**changes: Any) -> StepSummary:
    counts = {"alive": 0, "answered": 0, "removed": 0, "waiting": 0, "failed": 0, "remaining": 0, "asked_now": 0}
    rest = {"wall_s": 0.0, "losses": (), "kinds": (), "ignored": 0, "unreadable": 0}
    return StepSummary(step=LADDER[2], **counts | rest | changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"losses": (BenchLoss("a", 20, 20, 0),)}, ["step 2 (single_frame): a lost 20 of 20 items (100%)"]),
        ({"losses": (BenchLoss("a", 1000, 990, 0),)}, ["step 2 (single_frame): a lost 990 of 1000 items (99%)"]),
        ({"losses": (BenchLoss("a", 1000, 989, 0),)}, []),
        ({"losses": (BenchLoss("a", 20, 0, 0),)}, ["step 2 (single_frame): a lost 0 of 20 items (0%)"]),
        ({"losses": (BenchLoss("a", 100, 1, 0),)}, ["step 2 (single_frame): a lost 1 of 100 items (1%)"]),
        ({"losses": (BenchLoss("a", 100, 2, 0),)}, []),
        ({"losses": (BenchLoss("a", 19, 0, 0), BenchLoss("b", 0, 0, 0))}, []),
        ({"answered": 999, "failed": 1}, []),
        ({"answered": 998, "failed": 2}, ["step 2 (single_frame): 2 of 1000 items failed (0.2%)"]),
        (
            {"ignored": 3},
            ["step 2 (single_frame): 3 rows of another protocol or of changed items were left out"],
        ),
        ({"unreadable": 1}, ["step 2 (single_frame): 1 lines were not readable as rows and were left out"]),
    ],
)
def test_warnings(changes: dict[str, Any], says: list[str]) -> None:
    assert list(step_warnings(summary_of(**changes))) == says


def test_items_a_second() -> None:
    assert summary_of(asked_now=10, wall_s=4.0).items_per_s == 2.5
    assert summary_of(asked_now=10).items_per_s == 0.0


def test_a_step_says_what_one_worker_wrote_a_second(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=6, b=4))
    engine = dict.fromkeys(("name", "version", "dtype", "device"), "x")
    note_cost(study, Cost(1, "a", 0, 1000, 4000, 9, 1.0, 0, "m", "", engine, "earlier", run="an earlier one"))
    heard = Heard()
    executor = Local(study, Asked("scripted"), 2)
    try:
        driver.screen(study, executor, heard, only=1)
    finally:
        executor.close()
    mine = [cost for cost in costs(study) if cost["run"] != "an earlier one"]
    assert len({cost["part"] for cost in mine}) == 2
    assert heard.ended[0].worker_items_per_s == pytest.approx(10 / sum(cost["wall_s"] for cost in mine), rel=0.01)


def test_the_python_twin_sums_up_every_step(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=6))
    summaries = driver.run_study(study, "scripted")
    assert [summary.step.number for summary in summaries] == [1, 2, 3, 4, 5, 6]
    assert summaries[0].answered == 6


def test_a_control_item_is_only_an_item(tmp_path: Path) -> None:
    open_item = make_item(50, "a", format="open", gold=None)
    study = framed_study(tmp_path, [open_item])
    assert verdicts(run(study)) == {"a_50": ("OUTSIDE", 0)}
    assert all(not study.step_files(step) for step in LADDER)


def test_a_step_alone_says_who_waits_for_an_earlier_one(tiny_pool: Any, heard: Heard) -> None:
    study = tiny_pool(3)
    screen(study, Local(study, Asked("scripted")), heard, only=4)
    assert (heard.begun, heard.blocked) == ([(4, 0, 0)], [3])


def test_tries_that_failed_and_mixed_revisions_are_told(tiny_pool: Any) -> None:
    study = tiny_pool(3)
    pool = study.items()
    study.append(1, "a", None, [error_of(study, pool[0])])
    rows = [row_of(study, item, revision=f"sha256:{'aab'[number] * 64}") for number, item in enumerate(pool)]
    study.append(1, "a", None, rows)
    assert list(step_warnings(summarize(study, survey(study), 0))) == [
        "step 1 (blind): 1 tries failed before their items were answered",
        "step 1 (blind): the answers come from 2 revisions of the model: sha256:aaaaaaaaaaaa and sha256:bbbbbbbbbbbb",
    ]
