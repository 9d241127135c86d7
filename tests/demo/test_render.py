"""Pictures: the object is where and what the scene says; numpy and torch paint alike."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.demo import render, scenes

STILL = scenes.Motion("still", 0, 0.0)


def _scene(**changes: object) -> scenes.Scene:
    plain = scenes.Scene((0,) * scenes.CELLS, 1, 0, STILL, 10.0, 1.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_frames_are_pictures_of_the_size() -> None:
    pictures = render.frames(_scene(), [0.1, 0.9], 48)
    assert pictures.shape == (2, 48, 48, 3)
    assert pictures.dtype == np.uint8


@pytest.mark.parametrize("colour", range(len(scenes.COLOURS)))
def test_the_centre_has_the_colour_of_the_cell(colour: int) -> None:
    scene = _scene(colours=(colour,) * 16 + (0,) * 16)
    early, late = render.frames(scene, [0.25, 0.75], 64)
    assert tuple(early[32, 32]) == render.RGB[colour]
    assert tuple(late[32, 32]) == render.RGB[0]


@pytest.mark.parametrize("shape", range(len(scenes.SHAPES)))
def test_every_shape_covers_its_own_share(shape: int) -> None:
    picture = render.frames(_scene(shape=shape, background=1), [0.5], 128)[0]
    share = float((picture[..., 0] > 100).mean()) * 64 * 64 / 100
    expected = [3.14, 3.24, 1.62, 2.31, 2.56, 2.36][shape]
    assert share == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("number", range(len(scenes.BACKGROUNDS)))
def test_backgrounds_differ(number: int) -> None:
    shown = [render.background(index, 64) for index in range(len(scenes.BACKGROUNDS))]
    assert shown[number].shape == (64, 64, 3)
    assert all(np.abs(shown[number] - other).mean() > 5 for index, other in enumerate(shown) if index != number)


def test_pale_objects_keep_some_colour() -> None:
    red = np.asarray(render.RGB[0], float)
    assert render.blend(red, 1.0).tolist() == red.tolist()
    pale = render.blend(red, 0.0)
    assert np.ptp(pale) == pytest.approx(render.LEAST_COLOUR * np.ptp(red))


@pytest.mark.parametrize(("direction", "axis", "sign"), [(0, 0, -1), (1, 0, 1), (2, 1, -1), (3, 1, 1)])
def test_a_straight_path_goes_where_it_says(direction: int, axis: int, sign: int) -> None:
    motion = scenes.Motion("straight", direction, 16.0)
    ends = render.positions(motion.numbers, np.asarray([0.0, 1.0]))
    assert np.sign(ends[axis][1] - ends[axis][0]) == sign
    assert ends[1 - axis][1] == ends[1 - axis][0]


@given(st.integers(), st.integers(0, 3))
def test_a_wandering_path_moves_its_way_except_where_it_comes_in_again(seed: int, direction: int) -> None:
    motion = replace(scenes.draw_scene(random.Random(seed)).motion, direction=direction)
    track = render.positions(motion.numbers, (np.arange(32) + 0.5) / 32)[0 if direction < 2 else 1]
    steps = np.diff(track) * (1 if direction % 2 else -1)
    assert ((steps > 0) | (steps < -20)).all()
    assert (steps > 0).sum() >= 28


def test_backwards_a_wandering_path_is_one_of_the_opposite_direction() -> None:
    """The set of positions is that of an opposite motion, so without the order it says nothing."""
    motion = scenes.draw_scene(random.Random(3)).motion
    back = replace(motion, direction=motion.direction ^ 1)
    sweep = motion.sweeps if motion.direction % 2 else -motion.sweeps
    back = replace(back, phase=(motion.phase + sweep) % 1, bounce_phase=(motion.bounce_phase + motion.bounces) % 1)
    back = replace(back, bounces=-motion.bounces)
    times = (np.arange(32) + 0.5) / 32
    there, again = render.positions(motion.numbers, times), render.positions(back.numbers, times)
    assert np.allclose(there[0], again[0][::-1])
    assert np.allclose(there[1], again[1][::-1])


@pytest.mark.model
def test_torch_paints_the_same() -> None:
    torch = pytest.importorskip("torch")
    motion = scenes.draw_scene(random.Random(5)).motion.numbers
    times = np.linspace(0, 1, 9, dtype=np.float32)
    ours = render.positions(motion, times)
    theirs = render.positions(motion, torch.from_numpy(times), torch)
    assert all(np.allclose(left, right.numpy(), atol=1e-4) for left, right in zip(ours, theirs, strict=True))
    grid = render.pixel_grid(32)[None, :]
    for measure in render.DISTANCES:
        exact = measure(np, grid, grid.T, 9.0)
        same = measure(torch, torch.from_numpy(grid), torch.from_numpy(grid.T.copy()), 9.0)
        assert np.allclose(exact, same.numpy(), atol=1e-4)
