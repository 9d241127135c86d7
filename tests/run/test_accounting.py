"""Accounting: one line per unit and run, whatever was torn in between."""

from benchcheck.run.accounting import COLUMNS, Cost, costs, note_cost
from benchcheck.study import Study

ENGINE = {"name": "fake", "version": "1", "dtype": "bf16", "device": "H200"}
COST = Cost(2, "a", 0, 10, 40, 900, 2.5, 1, "m", "r", ENGINE, "now")


def test_no_run_cost_nothing(study: Study) -> None:
    assert costs(study) == []


def test_a_damaged_line_is_left_out(study: Study) -> None:
    note_cost(study, COST)
    with study.accounting_file.open("a") as file:
        file.write('{"item_id": "", "step": 1, "items": "x", "wall_s": null}\n')
    assert [cost["step"] for cost in costs(study)] == [2]


def test_lines_come_back_oldest_first(study: Study) -> None:
    note_cost(study, COST)
    with study.accounting_file.open("ab") as file:
        file.write(b'{"torn')
    note_cost(study, Cost(3, "b", 1, 0, 0, 0, 0.0, 0, "m", "r", ENGINE, "later"))
    first, second = costs(study)
    assert list(first) == list(COLUMNS)
    assert first == {
        "step": 2,
        "bench": "a",
        "part": 0,
        "items": 10,
        "prompts": 40,
        "tokens": 900,
        "wall_s": 2.5,
        "items_per_s": 4.0,
        "errors": 1,
        "model": "m",
        "revision": "r",
        "engine": "fake",
        "version": "1",
        "dtype": "bf16",
        "device": "H200",
        "at": "now",
    }
    assert (second["step"], second["items_per_s"], second["at"]) == (3, 0.0, "later")
