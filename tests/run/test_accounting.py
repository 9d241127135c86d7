"""Accounting: increments per unit and run, whatever was torn or killed in between."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.run import accounting
from benchcheck.run.accounting import (
    COLUMNS,
    RUN,
    Cost,
    Meter,
    costs,
    increments,
    named_run,
    note_cost,
    run_name,
    summed,
)
from benchcheck.run.plan import Unit
from benchcheck.run.work import do_unit
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from studies import FakeBackend, framed_study, make_items, reading, rows_on_disk

ENGINE = {"name": "fake", "version": "1", "dtype": "bf16", "device": "H200"}
COST = Cost(2, "a", 0, 10, 40, 900, 2.5, 1, "m", "r", ENGINE, "now", 600, {"timeout": 1}, "run1", "node1", 7)
OLD = {
    "item_id": "", "step": 1, "bench": "a", "part": 0, "items": 4, "prompts": 16, "tokens": 99, "wall_s": 2.0,
    "items_per_s": 2.0, "errors": 1, "model": "m", "revision": "", "engine": "x", "version": "1", "dtype": "f",
    "device": "cpu", "at": "then",
}  # fmt: skip


def write(study: Study, *lines: dict[str, Any]) -> None:
    """Append lines as they stand."""
    study.accounting_file.parent.mkdir(exist_ok=True)
    with study.accounting_file.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def test_no_run_cost_nothing(study: Study) -> None:
    assert costs(study) == []


def test_a_damaged_line_is_left_out(study: Study) -> None:
    note_cost(study, COST)
    write(study, {"item_id": "", "step": 1, "items": "x", "wall_s": None}, {**OLD, "kinds": [1]})
    assert [(cost["step"], cost["error_kinds"]) for cost in costs(study)] == [(2, "timeout 1"), (1, "")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("wall_s", -5), ("wall_s", 1e308), ("items", -3), ("tokens", 2**62), ("errors", -1), ("cached_tokens", 2**62)],
)
def test_a_line_of_what_nothing_can_cost_is_left_out(study: Study, key: str, value: object) -> None:
    write(study, {**OLD, key: value}, OLD)
    assert len(costs(study)) == 1


@pytest.mark.parametrize("count", ['"x"', "null", "1e400", "-1", "2.5", "true"])
def test_what_is_no_count_of_errors_is_left_out(study: Study, count: str) -> None:
    study.logs.mkdir(parents=True, exist_ok=True)
    study.accounting_file.write_text(json.dumps(OLD)[:-1] + f', "kinds": {{"a": {count}, "b": 2}}}}\n')
    assert [cost["error_kinds"] for cost in costs(study)] == ["b 2"]


def test_lines_come_back_oldest_first(study: Study) -> None:
    note_cost(study, COST)
    with study.accounting_file.open("ab") as file:
        file.write(b'{"torn')
    note_cost(study, Cost(3, "b", 1, 0, 0, 0, 0.0, 0, "m", "r", ENGINE, "later"))
    first, second = costs(study)
    assert list(first) == list(COLUMNS)
    assert first == {
        "run": "run1",
        "step": 2,
        "bench": "a",
        "part": 0,
        "items": 10,
        "prompts": 40,
        "tokens": 900,
        "cached_tokens": 600,
        "wall_s": 2.5,
        "items_per_s": 4.0,
        "prompts_per_s": 16.0,
        "errors": 1,
        "error_kinds": "timeout 1",
        "model": "m",
        "revision": "r",
        "engine": "fake",
        "version": "1",
        "dtype": "bf16",
        "device": "H200",
        "host": "node1",
        "at": "now",
    }
    assert (second["step"], second["items_per_s"], second["prompts_per_s"], second["at"]) == (3, 0.0, 0.0, "later")


def test_lines_of_older_studies_are_read_and_never_added_up(study: Study) -> None:
    write(study, OLD, OLD)
    found = costs(study)
    assert [(cost["run"], cost["items"], cost["cached_tokens"], cost["host"]) for cost in found] == [("", 4, 0, "")] * 2


def test_increments_of_a_unit_become_one_row_and_runs_stay_apart(study: Study) -> None:
    for cost in (COST, replace(COST, kinds={"timeout": 2, "not_finite": 1}, errors=3, at="later")):
        note_cost(study, cost)
    note_cost(study, replace(COST, run="run2"))
    first, second = costs(study)
    assert (first["items"], first["errors"], first["error_kinds"]) == (20, 4, "not_finite 1, timeout 3")
    assert (first["wall_s"], first["items_per_s"], first["at"]) == (5.0, 4.0, "later")
    assert (second["run"], second["items"]) == ("run2", 10)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 99), st.integers(0, 9)), max_size=9))
def test_no_sum_loses_or_doubles_anything(parts: list[tuple[str, int, int, int]]) -> None:
    lines = [
        {**replace(COST, run=run, part=part, items=items, errors=errors, kinds={"timeout": errors}).row()}
        for run, part, items, errors in parts
    ]
    found = summed(lines)
    assert sum(row["items"] for row in found) == sum(line["items"] for line in lines)
    assert sum(row["errors"] for row in found) == sum(line["kinds"]["timeout"] for line in lines)
    assert len({(row["run"], row["part"]) for row in found}) == len(found)


# A unit while it goes on.


def counting(prompt: Prompt) -> Reading | Failure:
    """Half of each prompt was cached; one item times out."""
    if prompt.item_id == "a_3":
        return Failure("timeout", "late")
    return replace(reading([-0.1] + [-3.0] * (len(prompt.order) - 1)), cached_tokens=3)


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_a_unit_s_lines_add_up_to_its_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float) -> None:
    monkeypatch.setattr(accounting, "NOTE_SECONDS", every)
    study = framed_study(tmp_path, make_items(a=150))
    ids = tuple(item.item_id for item in make_items(a=150))
    cost = do_unit(study, LADDER[1], Unit("a", 0, 1, ids), FakeBackend(counting), lambda *_: None)
    lines = increments(study)
    assert len(lines) == (1 if every else 3)  # after 64, 128 and 150 rows
    (row,) = costs(study)
    assert (row["items"], row["prompts"], row["errors"], row["error_kinds"]) == (150, 600, 1, "timeout 1")
    assert (row["tokens"], row["cached_tokens"]) == (149 * 4 * 7, 149 * 4 * 3)
    assert (cost.items, cost.cached_tokens, cost.kinds, cost.errors) == (150, 149 * 12, {"timeout": 1}, 1)
    assert row["wall_s"] == pytest.approx(cost.wall_s, abs=2e-3)
    assert (row["host"], lines[0]["pid"]) == (os.uname().nodename, os.getpid())


def test_what_is_accounted_for_is_on_disk_when_a_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "NOTE_SECONDS", 0.0)
    study = framed_study(tmp_path, make_items(a=100))
    ids = tuple(item.item_id for item in make_items(a=100))

    def killed(*_: int) -> None:
        accounted = sum(line["items"] for line in increments(study))
        os._exit(0 if accounted == len(rows_on_disk(study, 1)) == 64 else 1)

    child = os.fork()
    if not child:
        do_unit(study, LADDER[1], Unit("a", 0, 1, ids), FakeBackend(), killed)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    do_unit(study, LADDER[1], Unit("a", 0, 1, ids[64:]), FakeBackend(), lambda *_: None)
    assert sum(row["items"] for row in costs(study)) == len(rows_on_disk(study, 1)) == 100


def test_a_meter_that_counted_nothing_writes_nothing(study: Study) -> None:
    meter = Meter(study, COST)
    meter.note("x", last=True)
    assert not study.accounting_file.exists()


# Names of runs.


def test_a_run_is_named_once_for_all_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(RUN, raising=False)
    assert run_name() == f"{os.uname().nodename}-{os.getpid()}"
    with named_run():
        name = run_name()
        with named_run():
            assert run_name() == name == os.environ[RUN]
    with named_run():
        assert run_name() != name
    assert RUN not in os.environ
    monkeypatch.setenv(RUN, "slurm-12")
    with named_run():
        assert run_name() == "slurm-12"
    assert os.environ[RUN] == "slurm-12"
