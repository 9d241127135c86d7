"""Pictures of a scene, as arithmetic on arrays: the same code paints with numpy and, for training, with torch.

Lengths are in 64ths of the picture's side. `xp` is the array module.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchcheck.demo.scenes import Scene, cell_of

__all__ = ["BACKGROUND_LEVELS", "DISTANCES", "RGB", "blend", "frames", "pixel_grid", "positions"]

UNITS = 64
RGB = (
    *((220, 30, 30), (30, 160, 50), (35, 70, 225), (245, 225, 40)),
    *((250, 135, 15), (125, 40, 170), (250, 140, 200), (30, 205, 215)),
)
"""The object's colours, in the order of `scenes.COLOURS`."""
PALE = 150.0
"""The grey that a colour fades to as the scene's clarity falls."""
LEAST_COLOUR = 0.4
"""The share of the colour that is left at clarity 0."""
BACKGROUND_LEVELS = ((240, 240, 240), (15, 15, 15), (128, 128, 128), (95, 60, 35))
"""The plain backgrounds; the two others are stripes and squares of two greys, 8 units wide."""
PATTERN_DARK, PATTERN_LIGHT, PATTERN_WIDTH = 70.0, 160.0, 8


def _circle(xp: Any, x: Any, y: Any, r: Any) -> Any:
    return xp.sqrt(x * x + y * y) - r


def _square(xp: Any, x: Any, y: Any, r: Any) -> Any:
    return xp.maximum(abs(x), abs(y)) - 0.9 * r


def _triangle(xp: Any, x: Any, y: Any, r: Any) -> Any:
    return xp.maximum(abs(x) * 0.8944 - (y + r) * 0.4472, y - 0.8 * r)


def _cross(xp: Any, x: Any, y: Any, r: Any) -> Any:
    x, y = abs(x), abs(y)
    return xp.maximum(xp.maximum(x, y) - r, xp.minimum(x, y) - 0.35 * r)


def _diamond(_xp: Any, x: Any, y: Any, r: Any) -> Any:
    return (abs(x) + abs(y)) * 0.7071 - 0.8 * r


def _ring(xp: Any, x: Any, y: Any, r: Any) -> Any:
    return abs(xp.sqrt(x * x + y * y) - 0.75 * r) - 0.25 * r


DISTANCES: tuple[Callable[[Any, Any, Any, Any], Any], ...] = (_circle, _square, _triangle, _cross, _diamond, _ring)
"""Signed distance from a shape's edge, negative inside, in the order of `scenes.SHAPES`; arguments xp, x, y, radius."""


def positions(motion: Sequence[Any], time: Any, xp: Any = np) -> tuple[Any, Any]:
    """Return x and y of the object's centre at times between 0 and 1.

    `motion` is `Motion.numbers`, each a number or an array that broadcasts with `time`.
    """
    path, direction, phase, sweeps, bounce_phase, bounces, reach, centre_x, centre_y = motion
    forward = 2.0 * (direction % 2) - 1.0
    drift = (phase + forward * sweeps * time) % 1.0
    bounce = 1.0 - 4.0 * abs((bounce_phase + bounces * time) % 1.0 - 0.5)
    straight, wander = 1.0 * (path == 1), 1.0 * (path == 2)
    along = reach * (straight * forward * (2.0 * time - 1.0) + wander * (2.0 * drift - 1.0))
    across = reach * wander * bounce
    level = 1.0 * (direction < 2)
    x = level * along + (1.0 - level) * across + centre_x
    y = level * across + (1.0 - level) * along + centre_y
    return xp.asarray(x), xp.asarray(y)


def pixel_grid(size: int) -> Any:
    """Return the coordinates of pixel centres along one side, in units from the picture's centre."""
    return ((np.arange(size, dtype=np.float32) + 0.5) * (UNITS / size) - UNITS / 2).astype(np.float32)


def background(number: int, size: int) -> Any:
    """Return a background of a size as float32, height by width by 3."""
    if number < len(BACKGROUND_LEVELS):
        return np.broadcast_to(np.asarray(BACKGROUND_LEVELS[number], np.float32), (size, size, 3))
    band = ((pixel_grid(size) + UNITS / 2) // PATTERN_WIDTH).astype(int)
    across = band[None, :] if number > len(BACKGROUND_LEVELS) else 0 * band[None, :]
    light = ((band[:, None] + across) % 2).astype(np.float32)[..., None]
    return np.repeat(PATTERN_DARK + (PATTERN_LIGHT - PATTERN_DARK) * light, 3, axis=2)


def blend(colour: Any, clarity: Any) -> Any:
    """Return a colour as pale as a clarity makes it."""
    share = LEAST_COLOUR + (1.0 - LEAST_COLOUR) * clarity
    return PALE + (colour - PALE) * share


def frames(scene: Scene, times: Sequence[float], size: int) -> Any:
    """Return the scene's pictures at times between 0 and 1: uint8, number by height by width by 3."""
    time = np.asarray(times, np.float32)
    x, y = positions(scene.motion.numbers, time)
    side = pixel_grid(size)
    across, down = side[None, None, :] - x[:, None, None], side[None, :, None] - y[:, None, None]
    distance = DISTANCES[scene.shape](np, across.astype(np.float32), down.astype(np.float32), scene.radius)
    mask = np.clip(0.5 - distance * (size / UNITS), 0.0, 1.0)[..., None]
    cells = [scene.colours[cell_of(moment)] for moment in times]
    colour = blend(np.asarray(RGB, np.float32)[cells], scene.clarity)[:, None, None, :]
    back = background(scene.background, size)
    return np.rint(back + (colour - back) * mask).clip(0, 255).astype(np.uint8)
