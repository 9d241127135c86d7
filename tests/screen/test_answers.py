"""Answers: prompts of an item, and the one row that its readings make."""

import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.config import Config, Model, Protocol, step_key
from benchcheck.screen.answers import Asking, answer_row, error_row, prompts_of
from benchcheck.screen.prompts import option_orders
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import LADDER
from studies import make_item, reading

MODELS = {"8b": Model(model="large", revision="c0"), "2b": Model(model="small")}


def config_of(**protocol: object) -> Config:
    return Config(study_version=1, models=MODELS, protocol=Protocol(**protocol))  # type: ignore[arg-type]


def asking_of(step: int = 1, **protocol: object) -> Asking:
    config = config_of(**protocol)
    return Asking(config, LADDER[step], step_key(config, LADDER[step]), "r1", {"name": "fake"})


ITEM = make_item(6, options=("red", "green", "blue", "none"), gold=2)


def test_a_text_step_shows_every_order_of_the_item() -> None:
    prompts = prompts_of(ITEM, LADDER[1], config_of())
    assert [prompt.order for prompt in prompts] == option_orders("a_6", 4)
    for prompt in prompts:
        shown = [ITEM.options[index] for index in prompt.order]
        assert prompt.text.split("\n")[-5:-1] == [f"{a}. {b}" for a, b in zip("ABCD", shown, strict=True)]
        assert "Question: What happens in scene 6?" in prompt.text
        assert (prompt.item_id, prompt.step, prompt.frames, prompt.prefix) == ("a_6", 1, (), "a_6")


def test_options_only_hides_the_question() -> None:
    assert all("scene 6" not in prompt.text for prompt in prompts_of(ITEM, LADDER[4], config_of()))


def test_a_frame_step_shows_the_stored_order_once_with_its_frames() -> None:
    (prompt,) = prompts_of(ITEM, LADDER[3], config_of(), ["x.jpg", "y.jpg"])
    assert (prompt.order, prompt.frames, prompt.prefix) == ((0, 1, 2, 3), ("x.jpg", "y.jpg"), ITEM.frames_key)


def test_orders_and_seed_are_those_of_the_config() -> None:
    prompts = prompts_of(ITEM, LADDER[4], config_of(orders=7, seed=5))
    assert [prompt.order for prompt in prompts] == option_orders("a_6", 4, n=7, seed=5)


def test_the_whole_answer_row() -> None:
    asking = asking_of(2)
    prompts = prompts_of(ITEM, LADDER[2], asking.config, ["x.jpg"])
    row = answer_row(asking, ITEM, prompts, [reading([-4.0, -3.0, -0.5, -2.0], 0.8, 11)], "now")
    assert row == {
        "item_id": "a_6",
        "bench": "a",
        "step": 2,
        "step_key": asking.key,
        "item_digest": ITEM.digest,
        "status": "ok",
        "model": "large",
        "revision": "r1",
        "n_perm": 1,
        "orders": [[0, 1, 2, 3]],
        "logprobs": [[-4.0, -3.0, -0.5, -2.0]],
        "missing": [[]],
        "label_mass": [0.8],
        "margins": [2.5],
        "right": [True],
        "n_right": 1,
        "mean_margin": 2.5,
        "removed": True,
        "prompt_tokens": [11],
        "latency_s": 0.5,
        "engine": {"name": "fake"},
        "at": "now",
    }
    assert json.loads(json.dumps(row, allow_nan=False)) == row


@given(st.lists(st.floats(-20, -0.01), min_size=16, max_size=16))
def test_margins_follow_the_gold_wherever_an_order_shows_it(values: list[float]) -> None:
    asking = asking_of()
    prompts = prompts_of(ITEM, LADDER[1], asking.config)
    results = [reading(values[4 * index :][:4]) for index in range(4)]
    row = answer_row(asking, ITEM, prompts, results, "now")
    for prompt, result, margin, right in zip(prompts, results, row["margins"], row["right"], strict=True):
        by_option = dict(zip(prompt.order, result.letters.logprobs, strict=True))
        others = [by_option[index] for index in (0, 1, 3)]
        assert margin == pytest.approx(by_option[2] - sum(others) / 3, abs=1e-9)
        if len(set(by_option.values())) == 4:
            assert right is (max(by_option, key=lambda index: by_option[index]) == 2)
    assert row["n_right"] == sum(row["right"])
    assert row["mean_margin"] == pytest.approx(sum(row["margins"]) / 4)
    assert row["removed"] is (row["n_right"] >= 3 and row["mean_margin"] > math.log(2))


@pytest.mark.parametrize(
    ("results", "kind"),
    [
        ([Failure("timeout", "late"), reading([-1, -2, -3, -4])], "timeout"),
        ([Failure("timeout", "late"), Failure("context_too_long", "9,000 tokens")], "context_too_long"),
        ([reading([-1, -2, -3, -4], 0.0999), reading([-1, -2, -3, -4])], "low_label_mass"),
        ([Failure("timeout", "late"), reading([-1, -2, -3, -4], 0.05)], "low_label_mass"),
        ([reading([-1, -2, -3, math.nan]), reading([-1, -2, -3, -4])], "not_finite"),
        ([reading([-1, -2, -3, -math.inf]), reading([-1, -2, -3, -4])], "not_finite"),
        ([reading([-1, -2, -3, -4], math.nan), reading([-1, -2, -3, -4])], "not_finite"),
    ],
)
def test_one_unreadable_order_makes_an_error_row(results: list[Reading | Failure], kind: str) -> None:
    asking = asking_of(1, orders=2)
    row = answer_row(asking, ITEM, prompts_of(ITEM, LADDER[1], asking.config), results, "now")
    assert (row["status"], row["error"]) == ("error", kind)
    assert set(row) == {"item_id", "bench", "step", "step_key", "item_digest", "status", "error", "detail", "at"}


def test_label_mass_at_the_floor_is_read_and_the_original_preset_has_no_floor() -> None:
    low = reading([-1, -2, -0.1, -4], 0.01)
    for asking, result in (
        (asking_of(2), reading([-1, -2, -0.1, -4], 0.10)),
        (asking_of(2, preset="benchcheck-2026"), low),
        (asking_of(2, mass_floor=0.0), low),
    ):
        prompts = prompts_of(ITEM, LADDER[2], asking.config, ["x.jpg"])
        assert answer_row(asking, ITEM, prompts, [result], "now")["status"] == "ok"
    detail = answer_row(asking_of(2), ITEM, prompts_of(ITEM, LADDER[2], config_of()), [low], "now")["detail"]
    assert detail == "label mass 0.01 is under the floor of 0.1"


def test_thresholds_of_the_config_decide_removal() -> None:
    for protocol, removed in (({}, True), ({"margin": 3.0}, False), ({"margin": 1.9}, True)):
        asking = asking_of(2, **protocol)
        row = answer_row(asking, ITEM, prompts_of(ITEM, LADDER[2], asking.config), [reading([-3, -3, -1, -3])], "now")
        assert row["removed"] is removed


def test_an_item_without_gold_is_never_read() -> None:
    item = dataclasses.replace(ITEM, gold=None)
    asking = asking_of(2)
    with pytest.raises(AssertionError, match="a_6 has no gold"):
        answer_row(asking, item, prompts_of(item, LADDER[2], asking.config), [reading([-1, -2, -3, -4])], "now")


def test_an_error_row_has_a_kind_and_no_answer() -> None:
    row = error_row(asking_of(), ITEM, Failure("refused", "port 8000"), "now")
    assert (row["error"], row["detail"], row["at"]) == ("refused", "port 8000", "now")
    assert not {"right", "removed", "logprobs"} & set(row)


def test_a_relative_frame_is_passed_as_it_is(tmp_path: Path) -> None:
    (prompt,) = prompts_of(ITEM, LADDER[2], config_of(), [str(tmp_path / "f.jpg")])
    assert prompt.frames == (str(tmp_path / "f.jpg"),)
