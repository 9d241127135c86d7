"""Rows of the original layout: what they may be called, what is derived, what is refused."""

import math
from collections import Counter
from typing import Any

import pytest

from benchcheck.config import QWEN3_VL, Frames, parse
from benchcheck.errors import UsageError
from benchcheck.screen.prompts import option_orders
from benchcheck.screen.readings import MISSING_LOGPROB
from benchcheck.screen.verdicts import Rule
from benchcheck.transfer.original.fitting import config_text, models_of, refuse_misfits, same_model
from benchcheck.transfer.original.layout import ITEM_NAMES, Asked, UnfitError, answer_of, item_of, named
from benchcheck.transfer.original.seen_rows import StepSeen
from studies import make_item

ITEM: dict[str, Any] = {
    "item_id": "a_1",
    "bench": "a",
    "question": "What?",
    "options": ["x", "y", "z"],
    "gold": 1,
    "video_key": "owner/name::v.zip::c.mp4",
}
ONE = make_item(1, options=("x", "y", "z"), gold=1)
BLIND = Asked(1, 4, permuted=True, seed=42, rule=Rule())
FRAME = Asked(2, 1, permuted=False, seed=42, rule=Rule())


def item(**changes: Any) -> Any:
    row = ITEM | changes
    return item_of(row, named(ITEM_NAMES, row))


def test_an_item_by_the_protocol_s_names() -> None:
    found = item(start=1, end=2.5, category="c", issues=None)
    assert (found.item_id, found.bench, found.source_id, found.format) == ("a_1", "a", "1", "mcq")
    assert (found.video_key, found.start, found.end, found.category) == (ITEM["video_key"], 1.0, 2.5, "c")
    assert item(video_id="abc", source_id=7).frames_key == "abc"


def test_an_item_by_other_names() -> None:
    row = {"id": "q", "benchmark": "b", "query": "?", "choices": '["x", "y"]', "answer": "B", "video": "v.mp4"}
    found = item_of(row, named(ITEM_NAMES, row))
    assert (found.item_id, found.options, found.gold, found.video_key) == ("q", ("x", "y"), 1, "b::::v.mp4")


@pytest.mark.parametrize(
    ("gold", "index"),
    [
        (2, 2),
        (2.0, 2),
        ("C", 2),
        ("c", 2),
        ("2", 2),
        (True, None),
        (-1, None),
        (None, None),
        ("xyz", None),
        (0.5, None),
    ],
)
def test_gold_is_an_index_or_a_letter(gold: Any, index: int | None) -> None:
    found = item(gold=gold)
    assert (found.gold, found.format) == (index, "mcq" if index is not None else "open")
    assert found.issues == (() if index is not None else ("hidden_gold",))


def test_an_item_that_cannot_be_asked_is_kept_as_open() -> None:
    assert item(gold=3).issues == ("gold_out_of_range",)
    assert item(options=["x"], gold=1).issues == ("single_option",)
    assert item(format="open", gold=None).format == "open"
    assert item(question=None, start=math.nan, end=True).start is None


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"item_id": None}, "without an item_id"),
        ({"bench": " "}, "without a bench"),
        ({"bench": "../../a"}, "benchmark's name is not of letters"),
        ({"bench": "a.p1"}, "benchmark's name is not of letters"),
        ({"options": None}, "options are no list"),
        ({"options": "[" * 5}, "options are no list"),
    ],
)
def test_what_is_no_item(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(UnfitError, match=fault):
        item(**changes)


# Answers.


def test_all_is_derived_from_orders_log_probs_and_gold() -> None:
    orders = option_orders(ONE.item_id, 3)
    logprobs = [[-0.1 if index == 1 else -4.0 for index in order] for order in orders]
    found = answer_of({"logprobs": logprobs}, ONE, BLIND)
    assert found.fields["orders"] == [list(order) for order in orders]
    assert found.fields["right"] == [True] * 4
    assert found.fields["mean_margin"] == pytest.approx(3.9)
    assert (found.fields["n_right"], found.fields["removed"]) == (4, True)
    assert found.fields["missing"] == [[]] * 4
    assert found.fields["label_mass"] == pytest.approx([math.exp(-0.1) + 2 * math.exp(-4)] * 4)
    assert found.differences() == []
    assert found.our_orders == found.fields["orders"]
    assert found.their_removed is None


def test_the_package_s_own_numbers_are_compared() -> None:
    row = {"logprobs": [-3.0, -0.1, -3.0], "n_right": 0, "mean_margin": 2.9004, "removed": 0, "n_perm": 1}
    found = answer_of(row, ONE, FRAME)
    assert found.differences() == [("removed", False, True), ("n_right", 0, 1)]
    assert answer_of(row | {"mean_margin": 2.5}, ONE, FRAME).differences()[2][0] == "mean_margin"
    assert answer_of(row | {"removed": "yes"}, ONE, FRAME).their_removed is None


def test_log_probs_by_letter_and_missing_letters() -> None:
    found = answer_of({"logprobs": {"B": -0.1, "A": -2.0}, "orders": [0, 1, 2]}, ONE, FRAME)
    assert found.fields["logprobs"] == [[-2.0, -0.1, MISSING_LOGPROB]]
    assert found.fields["missing"] == [["C"]]
    assert found.fields["label_mass"] == pytest.approx([math.exp(-0.1) + math.exp(-2)])
    own = answer_of({"logprobs": [[-2.0, -0.1, -9.0]], "missing": [["C"]], "label_mass": 0.5}, ONE, FRAME)
    assert (own.fields["missing"], own.fields["label_mass"]) == ([["C"]], [0.5])


def test_without_log_probs_hits_and_margins_are_enough() -> None:
    found = answer_of({"right": 1, "margins": [1.5], "latency_s": 2, "prompt_tokens": 9}, ONE, FRAME)
    assert (found.fields["n_right"], found.fields["mean_margin"], found.fields["removed"]) == (1, 1.5, True)
    assert (found.fields["right"], found.fields["logprobs"], found.fields["missing"]) == ([True], None, None)
    assert (found.fields["latency_s"], found.fields["prompt_tokens"]) == (2.0, [9])
    least = answer_of({"n_right": 3, "mean_margin": 0.5, "n_perm": 4}, ONE, BLIND)
    assert (least.fields["n_right"], least.fields["removed"], least.fields["margins"]) == (3, False, None)


def test_other_orders_are_kept_and_said() -> None:
    orders = [[2, 1, 0]] * 4
    logprobs = [[-4.0, -0.1, -4.0]] * 4
    found = answer_of({"orders": orders, "logprobs": logprobs}, ONE, BLIND)
    assert [what for what, _, _ in found.differences()] == ["orders"]
    assert found.fields["n_right"] == 4


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, "too little to judge"),
        ({"n_right": 5, "mean_margin": 1.0}, "too little to judge"),
        ({"n_right": True, "mean_margin": 1.0}, "too little to judge"),
        ({"n_right": 1, "mean_margin": math.inf}, "too little to judge"),
        ({"logprobs": "x"}, "log-probs are no list"),
        ({"logprobs": []}, "log-probs are no list"),
        ({"logprobs": [[-1.0, -2.0]]}, "not one number per option"),
        ({"logprobs": [[-1.0, math.nan, -2.0]]}, "not one number per option"),
        ({"logprobs": [[-1.0, -1.0, -2.0]] * 2}, "are not as many"),
        ({"logprobs": [[-1.0, -1.0, -2.0]], "orders": [[0, 1, 1]]}, "none of its options"),
        ({"logprobs": [[-1.0, -1.0, -2.0]], "orders": 3}, "none of its options"),
        ({"logprobs": [[-1.0, -1.0, -2.0]], "orders": []}, "none of its options"),
        ({"logprobs": [[-1.0, -1.0, -2.0]], "n_perm": 4}, "another number of orders"),
        ({"right": ["x"], "margins": [1.0]}, "no number"),
        ({"logprobs": [[-1.0, -1.0, -2.0]], "label_mass": "x"}, "no number"),
    ],
)
def test_what_is_no_answer(row: dict[str, Any], fault: str) -> None:
    with pytest.raises(UnfitError, match=fault):
        answer_of(row, ONE, FRAME)


def test_an_item_without_gold_has_no_answer() -> None:
    with pytest.raises(UnfitError, match="not multiple-choice"):
        answer_of({"n_right": 1, "mean_margin": 1.0}, make_item(1, gold=None, format="open"), FRAME)


# What fits a study.


def seen(step: int, *models: tuple[str, str], n_perm: int = 1) -> StepSeen:
    return StepSeen(step, models=Counter(models), n_perms=Counter([n_perm] * len(models)))


def test_models_are_those_of_the_rows() -> None:
    ours = ("ours/m", "c0ffee")
    assert models_of([seen(1, ours), seen(3)]) == {"8b": ours, "2b": QWEN3_VL["2b"]}
    folder = ("/data/Qwen3-VL-8B-Instruct/", "")
    assert models_of([seen(1, folder), seen(2, QWEN3_VL["8b"])])["8b"] == QWEN3_VL["8b"]
    assert same_model("a/b", "/x/b")
    with pytest.raises(UsageError, match=r"steps 1, 4 come from 2 models: ours/m at c0ffee; theirs\. One study"):
        models_of([seen(1, ours), seen(4, ("theirs", ""))])


def test_a_study_that_does_not_fit_is_refused() -> None:
    import tomllib

    def config(**changes: Any) -> Any:
        table = tomllib.loads(config_text("s", {"8b": ("m", "r"), "2b": ("n", "")}, 4, Frames()))
        table["protocol"] |= changes
        return parse(table, "here")

    fits = [seen(1, ("x/m", "r"), n_perm=4), seen(3, ("n", ""))]
    refuse_misfits(config(), fits)
    for changes, step, said in (
        ({"preset": "exact"}, fits[0], r"protocol\.preset = 'exact', and the original"),
        ({"steps": [1, 2]}, fits[1], "step 3 is no step of this study"),
        ({}, seen(2, ("other", "r")), r"step 2: 1 rows come from other at r, and models\.8b is m at r"),
        ({}, seen(2, ("m", "s")), "rows come from m at s"),
        ({}, seen(4, ("m", "r"), n_perm=1), "step 4: 1 of 1 rows have n_perm = 1, and this study asks 4 orders there"),
    ):
        with pytest.raises(UsageError, match=said):
            refuse_misfits(config(**changes), [step])


def test_the_config_of_a_study_that_is_made() -> None:
    import tomllib

    table = tomllib.loads(config_text('a "b"', {"8b": ("m", "r"), "2b": ("n", "")}, 2, Frames(count=8, single=4)))
    assert (table["name"], table["protocol"]["preset"], table["protocol"]["orders"]) == ('a "b"', "benchcheck-2026", 2)
    assert (table["frames"]["count"], table["frames"]["single"]) == (8, 4)
