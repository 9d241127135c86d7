"""Items: what each input says about their answers, class by class."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.demo import world
from benchcheck.demo.scenes import CELLS, COLOURS, MIDDLE, Scene, draw_scene, grid
from benchcheck.screen.steps import Sight

ALL = tuple(range(CELLS))
SHOWN = {
    Sight.BLIND: (),
    Sight.OPTIONS_ONLY: (),
    Sight.SINGLE_FRAME: (MIDDLE,),
    Sight.FRAMES: ALL,
    Sight.SHUFFLED: ALL[::-1],
}
ANSWERABLE = {
    "blind": {Sight.BLIND, Sight.SINGLE_FRAME, Sight.FRAMES, Sight.SHUFFLED},
    "options": set(Sight),
    "one_frame": {Sight.SINGLE_FRAME, Sight.FRAMES, Sight.SHUFFLED},
    "many_frames": {Sight.FRAMES, Sight.SHUFFLED},
    "order": {Sight.FRAMES},
}


def _scene(rng: random.Random, kind: str) -> Scene:
    return draw_scene(rng, n_colours=1 if kind == "colour" else 4, clarity=rng.random())


def _item(kind: str, seed: int, *, held: bool = False, n_options: int = 4) -> world.WorldItem:
    rng = random.Random(seed)
    return world.make_item(rng, kind, _scene(rng, kind), n_options=n_options, held=held)


@pytest.mark.parametrize("kind", world.KINDS)
@given(seed=st.integers(), held=st.booleans())
def test_items_are_well_formed_and_repeatable(kind: str, seed: int, held: bool) -> None:
    item = _item(kind, seed, held=held)
    assert item == _item(kind, seed, held=held)
    assert item.klass in world.CLASSES
    assert len(set(item.options)) == len(item.options) == 4
    assert 0 <= item.answer < 4
    assert 0 <= item.strength <= 1


@pytest.mark.parametrize("kind", [kind for kind in world.KINDS if kind != "misled"])
@given(seed=st.integers(), sight=st.sampled_from(Sight))
def test_the_answer_is_certain_where_the_class_says_and_at_chance_elsewhere(kind: str, seed: int, sight: Sight) -> None:
    item = _item(kind, seed)
    belief = world.evidence(item, sight, SHOWN[sight])
    expected = float(sight in ANSWERABLE[item.klass])
    assert belief[item.answer] == (expected or 0.25)
    assert sum(belief) == pytest.approx(1)
    assert expected or belief == [0.25] * 4


@given(seed=st.integers(), sight=st.sampled_from(Sight))
def test_a_misled_item_follows_its_question_unless_it_is_hidden(seed: int, sight: Sight) -> None:
    item = _item("misled", seed, held=True)
    assert item.lure is not None
    assert item.lure != item.answer
    belief = world.evidence(item, sight, SHOWN[sight])
    assert belief[item.answer if sight is Sight.OPTIONS_ONLY else item.lure] == 1
    assert len(item.options[item.answer].split()) > max(
        len(option.split()) for index, option in enumerate(item.options) if index != item.answer
    )


@pytest.mark.parametrize("kind", ["fact", "vague", "longest", "misled"])
@given(seed=st.integers())
def test_the_scene_has_no_part_in_an_answer_that_lies_in_the_text(kind: str, seed: int) -> None:
    shown = [world.make_item(random.Random(seed), kind, draw_scene(random.Random(scene_seed))) for scene_seed in (1, 2)]
    assert replace(shown[0], scene=shown[1].scene) == shown[1]


@given(seed=st.integers())
def test_the_set_of_frames_does_not_determine_what_comes_first(seed: int) -> None:
    item = _item("first", seed)
    mirrored = replace(item.scene, colours=item.scene.colours[::-1])
    again = world.make_item(random.Random(0), "first", mirrored)
    assert sorted(mirrored.colours) == sorted(item.scene.colours)
    assert set(again.options) == set(item.options)
    assert again.options[again.answer] != item.options[item.answer]


@given(seed=st.integers(), n=st.sampled_from((3, 4, 5)), kind=st.sampled_from(("first", "last")))
def test_every_colour_of_the_scene_is_an_option_of_first_and_last(seed: int, n: int, kind: str) -> None:
    scene = draw_scene(random.Random(seed), n_colours=n)
    item = world.make_item(random.Random(seed), kind, scene)
    assert sorted(item.options) == sorted(COLOURS[colour] for colour in scene.palette)
    assert item.options[item.answer] == COLOURS[scene.colours[0 if kind == "first" else -1]]


@given(seed=st.integers())
def test_never_names_an_absent_colour_among_those_shown(seed: int) -> None:
    item = _item("never", seed)
    shown = {COLOURS[colour] for colour in item.scene.palette}
    assert [option in shown for option in item.options].count(False) == 1
    assert item.options[item.answer] not in shown
    assert COLOURS[item.scene.dominant] not in item.options
    some = world.evidence(item, Sight.FRAMES, [0, CELLS - 1])
    assert some[item.answer] == max(some)


def test_count_needs_more_than_one_frame_even_of_one_colour() -> None:
    rng = random.Random(1)
    item = world.make_item(rng, "count", draw_scene(rng, n_colours=1), n_options=5)
    assert item.options[item.answer] == "one"
    assert world.evidence(item, Sight.SINGLE_FRAME, [MIDDLE]) == [0.2] * 5
    assert max(world.evidence(item, Sight.FRAMES, ALL)) == 1


def test_a_straight_path_leaks_its_axis_when_shuffled() -> None:
    rng = random.Random(4)
    item = world.make_item(rng, "direction", draw_scene(rng, path="straight"), n_options=5)
    item = replace(item, options=tuple(option.capitalize() for option in item.options))
    belief = world.evidence(item, Sight.SHUFFLED, ALL[::-1])
    assert sorted(belief) == [0, 0, 0.5, 0.5]
    assert belief[item.answer] == 0.5


def test_sixteen_frames_still_settle_the_order() -> None:
    item = _item("last", 9)
    assert world.evidence(item, Sight.FRAMES, grid(16))[item.answer] == 1
    assert max(world.evidence(item, Sight.FRAMES, [MIDDLE])) == 0.25


@given(seed=st.integers(), to=st.integers(0, 3))
def test_an_answer_can_be_moved(seed: int, to: int) -> None:
    item = _item("misled", seed)
    moved = world.move_answer(item, to)
    assert moved.answer == to
    assert moved.options[to] == item.options[item.answer]
    assert sorted(moved.options) == sorted(item.options)
    assert item.lure is not None
    assert moved.lure is not None
    assert moved.options[moved.lure] == item.options[item.lure]


def test_rare_facts_are_drawn_less_often_in_training() -> None:
    rng = random.Random(0)
    scene = draw_scene(rng)
    drawn = [world.make_item(rng, "fact", scene).strength for _ in range(3000)]
    weak = Counter(strength < 0.3 for strength in drawn)
    held = Counter(world.make_item(rng, "fact", scene, held=True).strength < 0.3 for _ in range(3000))
    assert weak[True] < 0.8 * held[True]
