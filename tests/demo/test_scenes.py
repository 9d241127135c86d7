"""Scenes: what the cells show, and that the middle says nothing about the order."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.demo import scenes


@given(st.integers(), st.integers(1, 5), st.sampled_from(scenes.PATHS), st.floats(0, 1))
def test_a_scene_has_its_colours_in_one_stretch_each(seed: int, n: int, path: str, clarity: float) -> None:
    scene = scenes.draw_scene(random.Random(seed), n_colours=n, path=path, clarity=clarity)
    assert len(scene.colours) == scenes.CELLS
    assert len(scene.palette) == n
    changes = sum(left != right for left, right in zip(scene.colours, scene.colours[1:], strict=False))
    assert changes == n - 1
    assert min(Counter(scene.colours).values()) >= 3


def test_the_dominant_colour_has_any_rank_equally_often() -> None:
    rng = random.Random(0)
    drawn = [scenes.draw_scene(rng, n_colours=4) for _ in range(2000)]
    ranks = Counter(scene.palette.index(scene.dominant) for scene in drawn)
    assert all(count == pytest.approx(500, abs=80) for count in ranks.values())
    assert len(ranks) == 4


def test_clearer_objects_are_larger() -> None:
    pale, clear = (scenes.draw_scene(random.Random(1), clarity=clarity) for clarity in (0.0, 1.0))
    assert clear.radius - pale.radius == pytest.approx(3)


def test_the_grid_of_32_is_every_cell_once_and_16_every_second() -> None:
    assert scenes.grid(32) == tuple(range(32))
    assert scenes.grid(16) == tuple(range(1, 32, 2))


def test_times_fall_in_cells() -> None:
    assert [scenes.cell_of(time) for time in (0.0, 0.04, 0.999, 1.0)] == [0, 1, 31, 31]
