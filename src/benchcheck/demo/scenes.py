"""What a video of the world shows: one object that changes colour and moves over a background. Pure.

Time is cut in 32 cells, one per frame of the screening grid; a cell has one colour.
"""

import random
from dataclasses import dataclass

__all__ = [
    "BACKGROUNDS",
    "CELLS",
    "COLOURS",
    "DIRECTIONS",
    "MIDDLE",
    "SHAPES",
    "Motion",
    "Scene",
    "cell_of",
    "draw_scene",
    "grid",
]

CELLS = 32
MIDDLE = 16
"""The cell of the one frame that a single-frame step shows."""

COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "pink", "cyan")
SHAPES = ("circle", "square", "triangle", "cross", "diamond", "ring")
BACKGROUNDS = ("white", "black", "gray", "brown", "striped", "checkered")
DIRECTIONS = ("left", "right", "up", "down")
PATHS = ("still", "straight", "wander")


@dataclass(frozen=True, slots=True)
class Motion:
    """How the object moves; lengths are in 64ths of the picture's side, from its centre, y downwards.

    `straight` sweeps once through the centre. `wander` drifts in the direction and comes in again at the other side,
    bouncing across it meanwhile, so that the set of positions says nothing about the direction.
    """

    path: str
    direction: int
    reach: float
    phase: float = 0.0
    sweeps: float = 0.0
    bounce_phase: float = 0.0
    bounces: float = 0.0
    centre: tuple[float, float] = (0.0, 0.0)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The same as numbers, in the order that `render.positions` takes."""
        path = float(PATHS.index(self.path))
        motion = (self.phase, self.sweeps, self.bounce_phase, self.bounces, self.reach)
        return (path, float(self.direction), *motion, *self.centre)


@dataclass(frozen=True, slots=True)
class Scene:
    """One video: the colour of every cell, the other attributes, and how clearly the object is seen.

    `clarity` goes from 0 (pale and small) to 1; it is the strength of what the picture says.
    """

    colours: tuple[int, ...]
    shape: int
    background: int
    motion: Motion
    radius: float
    clarity: float

    @property
    def palette(self) -> tuple[int, ...]:
        """The colours in the order of their appearance."""
        return tuple(dict.fromkeys(self.colours))

    @property
    def dominant(self) -> int:
        """The colour of the middle frame."""
        return self.colours[MIDDLE]


def grid(n: int) -> tuple[int, ...]:
    """Return the cells that `n` uniform frames fall in; 32 frames are every cell once."""
    return tuple(int((k + 0.5) * CELLS / n) for k in range(n))


def _schedule(rng: random.Random, n_colours: int) -> tuple[int, ...]:
    """Return the colour of every cell, in contiguous stretches.

    One stretch, of any rank, is longer than half the video: it covers the middle whatever its rank, so that the single
    frame says nothing about the order.
    """
    colours = rng.sample(range(len(COLOURS)), n_colours)
    if n_colours == 1:
        return tuple(colours * CELLS)
    longest = CELLS // 2 + 1
    share, over = divmod(CELLS - longest, n_colours - 1)
    lengths = [share + (index < over) for index in range(n_colours - 1)]
    rng.shuffle(lengths)
    lengths.insert(rng.randrange(n_colours), longest)
    return tuple(colour for colour, length in zip(colours, lengths, strict=True) for _ in range(length))


def _motion(rng: random.Random, path: str) -> Motion:
    """Return a motion along a path, in any direction."""
    off = 12.0 if path == "still" else 2.5
    return Motion(
        path=path,
        direction=rng.randrange(len(DIRECTIONS)),
        reach=rng.uniform(15, 18),
        phase=rng.random(),
        sweeps=rng.uniform(1.6, 2.6),
        bounce_phase=rng.random(),
        bounces=rng.uniform(1.5, 3.0),
        centre=(rng.uniform(-off, off), rng.uniform(-off, off)),
    )


def draw_scene(rng: random.Random, *, n_colours: int = 1, path: str = "wander", clarity: float = 1.0) -> Scene:
    """Return a scene with so many colours, a path, a clarity, and everything else by chance."""
    return Scene(
        colours=_schedule(rng, n_colours),
        shape=rng.randrange(len(SHAPES)),
        background=rng.randrange(len(BACKGROUNDS)),
        motion=_motion(rng, path),
        radius=8.5 + 3.0 * clarity + rng.uniform(-0.5, 0.5),
        clarity=clarity,
    )


def cell_of(time: float) -> int:
    """Return the cell of a time between 0 and 1."""
    return min(CELLS - 1, int(time * CELLS))
