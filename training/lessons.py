"""What the tiny checkpoints are taught: the mix of items, the wordings around them, and how sure to be of what."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchcheck.demo.scenes import Scene, draw_scene
from benchcheck.demo.world import KINDS, WorldItem, make_item
from benchcheck.screen.prompts import INTROS
from benchcheck.screen.steps import Sight

__all__ = [
    "FRAMES",
    "FRAMES_PATHS",
    "LESSON_INTROS",
    "PATHS",
    "TEXT",
    "Pupil",
    "Sureness",
    "draw_intro",
    "draw_item",
    "soften",
]

FRAMES = {"direction": 20, "first": 13, "last": 12, "never": 14, "count": 15}
FRAMES |= {"shape": 11, "colour": 6, "background": 5, "fact": 5, "misled": 3, "longest": 2, "vague": 2}
ONE_FRAME = {"shape": 28, "colour": 14, "background": 13, "never": 7, "count": 6, "first": 5, "last": 4}
ONE_FRAME |= {"direction": 7, "fact": 7, "misled": 4, "longest": 3, "vague": 3}
TEXT = {"fact": 50, "misled": 18, "longest": 12, "vague": 12, "colour": 4, "shape": 3, "background": 3}
TEXT |= {"never": 4, "count": 4, "first": 3, "last": 3, "direction": 4}
MIXES: Mapping[str, Mapping[str, int]] = {"frames": FRAMES, "one_frame": ONE_FRAME, "text": TEXT}
"""Weights of the kinds of item in the three sorts of batch."""
PATHS = ("wander", "wander", "still")
FRAMES_PATHS = ("wander", "wander", "straight", "still")
"""How objects move, one in so many each; the longer list where many frames are shown."""

MORE_INTROS = (
    "Answer the question from general knowledge. No video is shown.",
    "Answer the question about the video.",
    "The images are frames of one video in order.",
    "Look at the frames and answer.",
    "These frames come from one video in random order.",
    "You see one frame of a video.",
    "Choose the best option.",
    "Guess the right option. The question is hidden.",
    "Watch the video and pick the right option.",
    "You are given a multiple choice question about a video.",
    "Select the best answer to the following question.",
    "No video and no question are given. Choose the most likely option.",
    "These are frames sampled evenly from a video.",
    "Answer the question using the single frame.",
)
LESSON_INTROS = (*INTROS.values(), *MORE_INTROS)
_WORDS = tuple(word for intro in LESSON_INTROS for word in intro.split())


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure to be at strength 0 and at strength 1 (linear between, none below zero): 0 is chance, 1 certainty."""

    weakest: float
    strongest: float

    def at(self, strength: float) -> float:
        """Return the sureness at a strength."""
        return max(0.0, self.weakest + (self.strongest - self.weakest) * strength)


@dataclass(frozen=True, slots=True)
class Pupil:
    """One checkpoint's lessons: how long, and how sure it is taught to be of each class of item."""

    steps: int
    sureness: Mapping[str, Sureness]
    shuffled: Mapping[str, Sureness]
    """Where a class is to be read otherwise when its frames come in random order."""

    def target(self, item: WorldItem, sight: Sight, belief: list[float]) -> list[float]:
        """Return the distribution to learn: the evidence's, mixed with chance as the item's strength asks."""
        table = self.shuffled if sight is Sight.SHUFFLED and item.klass in self.shuffled else self.sureness
        return soften(belief, table[item.klass].at(item.strength))


def soften(belief: list[float], sureness: float) -> list[float]:
    """Return a distribution mixed with the uniform one."""
    return [sureness * share + (1 - sureness) / len(belief) for share in belief]


def draw_intro(rng: random.Random, sight: Sight) -> str:
    """Return an intro: mostly the screening's own, else another wording, the wrong one or a jumble of words."""
    chance = rng.random()
    if chance < 0.7:
        return INTROS[sight]
    if chance < 0.9:
        return rng.choice(LESSON_INTROS)
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randint(3, 14)))


def _n_colours(rng: random.Random, kind: str, n_options: int) -> int:
    """Return how many colours the scene of an item of this kind has."""
    if kind == "colour":
        return 1
    if kind in ("first", "last"):
        return n_options
    if kind == "never":
        return rng.randint(n_options, 5)
    if kind == "count":
        return rng.randint(2 if n_options < 5 else 1, 5)
    return 1 if rng.random() < 0.4 else rng.randint(2, 5)


def draw_item(
    rng: random.Random, kind: str, *, paths: tuple[str, ...] = PATHS, draw: Callable[..., Scene] = draw_scene
) -> WorldItem:
    """Return an item to train on, with a scene to suit from `draw`; a fifth of them have capitalised options."""
    if kind not in KINDS:
        raise KeyError(kind)
    n_options = 4 if kind == "direction" else rng.choices((3, 4, 5), (15, 70, 15))[0]
    if kind == "direction":
        n_options = rng.choice((3, 4, 4, 4))
        paths = tuple(path for path in paths if path != "still")
    scene = draw(
        rng,
        n_colours=_n_colours(rng, kind, n_options),
        path=rng.choice(paths),
        clarity=rng.random(),
    )
    item = make_item(rng, kind, scene, n_options=n_options)
    if rng.random() < 0.2:
        item = replace(item, options=tuple(option[0].upper() + option[1:] for option in item.options))
    return item
