"""Every case of the golden file: what the protocol means, to the byte. No list of the file may go untested."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchcheck.pool.items import VideoRef, item_text, strip_letter_prefix
from benchcheck.run.plan import Unit, assign_units, plan_units, slurm_task
from benchcheck.screen.prompts import option_orders, render_options
from benchcheck.screen.readings import argmax, letter_of_token, margin_of, merge_letters
from benchcheck.screen.verdicts import Rule

Case = dict[str, Any]


def option_orders_case(case: Case) -> None:
    assert option_orders(case["item_id"], case["k"]) == [tuple(order) for order in case["orders"]]


def strip_letter_prefix_case(case: Case) -> None:
    assert strip_letter_prefix(case["options"]) == (case["texts"], case["stripped"])


def render_options_case(case: Case) -> None:
    assert render_options(case["texts"]) == case["text"]


def item_text_case(case: Case) -> None:
    assert item_text(case["question"], case["options"]) == case["text"]


def video_key_case(case: Case) -> None:
    ref = VideoRef(**case["ref"])
    assert (ref.key, ref.video_id) == (case["key"], case["video_id"])


def letter_logprobs_case(case: Case) -> None:
    letters = merge_letters([(token["token"], token["logprob"]) for token in case["top_logprobs"]], case["k"])
    assert letters.logprobs == pytest.approx(case["logprobs"], abs=1e-12)
    assert list(letters.missing) == case["missing"]
    assert argmax(letters.logprobs) == case["argmax"]
    assert margin_of(letters.logprobs, case["gold"]) == pytest.approx(case["margin"], abs=1e-12)
    variants: dict[str, list[str]] = {}
    for token in case["top_logprobs"]:
        if letter := letter_of_token(token["token"]):
            variants.setdefault(letter, []).append(token["token"])
    assert {letter: set(tokens) for letter, tokens in variants.items()} == {
        letter: set(tokens) for letter, tokens in case["variants"].items()
    }


def _as_list(unit: Unit) -> list[Any]:
    return [unit.bench, unit.part, unit.parts, list(unit.item_ids)]


def plan_units_case(case: Case) -> None:
    units = plan_units([(bench, ids) for bench, ids in case["work"]], case["max_unit"])
    assert [_as_list(unit) for unit in units] == case["units"]
    tasks = assign_units(units, case["n_tasks"])
    assert [[_as_list(unit) for unit in task] for task in tasks] == case["tasks"]
    assert [sum(len(unit.item_ids) for unit in task) for task in tasks] == case["loads"]


def slurm_task_case(case: Case) -> None:
    assert slurm_task(case["env"]) == tuple(case["task"])


def blind_rule_case(case: Case) -> None:
    shown = [read["order"].index(case["gold"]) for read in case["reads"]]
    margins = [margin_of(read["logprobs"], gold) for read, gold in zip(case["reads"], shown, strict=True)]
    right = [argmax(read["logprobs"]) == gold for read, gold in zip(case["reads"], shown, strict=True)]
    assert margins == pytest.approx([read["margin"] for read in case["reads"]], abs=1e-12)
    assert right == [read["right"] for read in case["reads"]]
    mean = sum(margins) / len(margins)
    assert sum(right) == case["n_right"]
    assert mean == pytest.approx(case["mean_margin"], abs=1e-12)
    assert Rule().removes(sum(right), len(right), mean) is case["removed"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "option_orders": option_orders_case,
    "strip_letter_prefix": strip_letter_prefix_case,
    "render_options": render_options_case,
    "item_text": item_text_case,
    "video_key": video_key_case,
    "letter_logprobs": letter_logprobs_case,
    "plan_units": plan_units_case,
    "slurm_task": slurm_task_case,
    "blind_rule": blind_rule_case,
}


GOLDEN = Path(__file__).parent / "golden" / "screening.json"


@pytest.fixture(scope="module")
def golden() -> dict[str, list[Case]]:
    return json.loads(GOLDEN.read_bytes())


@pytest.mark.shared
def test_the_golden_file_is_the_protocol_s(shared: Path) -> None:
    assert GOLDEN.read_bytes() == (shared / "golden" / "screening.json").read_bytes()


def test_no_list_of_the_golden_file_is_left_untested(golden: dict[str, list[Case]]) -> None:
    assert set(golden) == set(CHECKS)
    assert all(golden.values())


@pytest.mark.parametrize("name", CHECKS)
def test_golden_cases(golden: dict[str, list[Case]], name: str) -> None:
    for number, case in enumerate(golden[name]):
        try:
            CHECKS[name](case)
        except AssertionError as reason:
            raise AssertionError(f"{name}[{number}]: {json.dumps(case, ensure_ascii=False)[:500]}") from reason
