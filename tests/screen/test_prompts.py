"""Prompts: seeded orders, and the exact text that a model sees."""

import random
import string

from hypothesis import given
from hypothesis import strategies as st

from benchcheck.screen.prompts import (
    INTROS,
    LETTERS,
    MAX_OPTIONS,
    PREFILL,
    frame_order,
    option_orders,
    render_options,
    render_text,
)
from benchcheck.screen.steps import LADDER, STEP_NUMBERS, Sight

ids = st.text(min_size=1, max_size=20)


@given(ids, st.integers(2, 26), st.integers(1, 24), st.integers(0, 2**40))
def test_every_order_shows_every_option_once(item_id: str, k: int, n: int, seed: int) -> None:
    orders = option_orders(item_id, k, n=n, seed=seed)
    assert len(orders) == n
    assert all(sorted(order) == list(range(k)) for order in orders)


@given(ids, st.integers(2, 26), st.integers(1, 23))
def test_orders_are_stable_and_more_of_them_begin_with_the_same(item_id: str, k: int, n: int) -> None:
    random.seed(0)  # the global generator must not matter
    first = option_orders(item_id, k, n=n + 1)
    random.seed(1)
    assert option_orders(item_id, k, n=n) == first[:n]


def test_orders_depend_on_the_item_and_on_the_seed() -> None:
    assert option_orders("a_1", 6) != option_orders("a_2", 6)
    assert option_orders("a_1", 6, seed=42) != option_orders("a_1", 6, seed=43)


def test_orders_are_those_of_the_protocol() -> None:
    rng = random.Random("42|a_7")
    assert option_orders("a_7", 5) == [tuple(rng.sample(range(5), 5)) for _ in range(4)]


@given(ids, st.integers(2, 40), st.integers(0, 2**40))
def test_shuffled_frames_are_all_there_and_never_in_time_order(item_id: str, n: int, seed: int) -> None:
    order = frame_order(item_id, n, seed=seed)
    assert sorted(order) == list(range(n))
    assert order != tuple(range(n))
    assert order == frame_order(item_id, n, seed=seed)


def test_two_frames_have_one_shuffle_and_one_or_no_frame_none() -> None:
    assert {frame_order(f"a_{index}", 2) for index in range(50)} == {(1, 0)}
    assert frame_order("a_1", 1) == (0,)
    assert frame_order("a_1", 0) == ()


def test_a_shuffle_begins_with_the_seeded_draw_of_the_protocol() -> None:
    assert frame_order("a_1", 32) == tuple(random.Random("42|frames|a_1").sample(list(range(32)), 32))


def test_options_are_rendered_one_a_line_up_to_z() -> None:
    assert render_options(["x", "B. y"]) == "A. x\nB. B. y"
    assert render_options([str(n) for n in range(MAX_OPTIONS)]).splitlines()[-1] == "Z. 25"
    assert string.ascii_uppercase == LETTERS


def test_the_user_turn_is_that_of_the_protocol() -> None:
    assert render_text("Intro.", "Why?", ["x", "y"]) == (
        "Intro.\n\nQuestion: Why?\nOptions:\nA. x\nB. y\nAnswer with the option letter only."
    )
    assert render_text("Intro.", None, ["x", "y"]) == (
        "Intro.\n\nOptions:\nA. x\nB. y\nAnswer with the option letter only."
    )
    assert render_text("I", "", ["x", "y"]).startswith("I\n\nQuestion: \nOptions:")
    assert PREFILL == "Answer:"


def test_every_sight_has_an_intro_of_its_own_that_says_what_is_shown() -> None:
    assert set(INTROS) == set(Sight)
    assert len(set(INTROS.values())) == len(Sight)
    assert "not shown" in INTROS[Sight.BLIND]
    assert "One frame" in INTROS[Sight.SINGLE_FRAME]
    assert "time order" in INTROS[Sight.FRAMES]
    assert "random order" in INTROS[Sight.SHUFFLED]
    assert "Neither" in INTROS[Sight.OPTIONS_ONLY]


def test_the_ladder_is_that_of_the_protocol() -> None:
    assert STEP_NUMBERS == (1, 2, 3, 4, 5, 6)
    assert [(step.name, step.role, step.permuted, step.sight.needs_frames) for step in LADDER.values()] == [
        ("blind", "8b", True, False),
        ("single_frame", "8b", False, True),
        ("v32_2b", "2b", False, True),
        ("opt_only", "8b", True, False),
        ("v32_2b_shuffle", "2b", False, True),
        ("v32_8b", "8b", False, True),
    ]
    assert all(number == step.number for number, step in LADDER.items())
    assert [number for number, step in LADDER.items() if step.measures.startswith("saturation")] == [3, 6]
