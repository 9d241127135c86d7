"""The exam of the embedded models: facts, scenes and clips of the made-up world, the only one that they know.

It tries the doctor itself from end to end, without a download; of a real model it says nothing.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from benchcheck.demo.scenes import COLOURS, SHAPES, Scene, draw_scene
from benchcheck.demo.world import WorldItem, make_item
from benchcheck.doctor.exam import Exam, Question, Wanted, make_question

__all__ = ["made_up_world"]

_WANTED = Wanted(facts=0.85, pictures=0.85, sequences=0.85)
"""Decision (D): their card states 0.96, 0.97 and 1.00 on 200 items of each kind; a few fall short by chance."""
_SIDE = 128
_FACTS, _PICTURES, _SEQUENCES = 40, 24, 16


def made_up_world(folder: Path, count: int, seed: int = 11) -> Exam:
    """Draw the exam.

    Args:
        folder: where the pictures go.
        count: frames of a video.
        seed: which facts and scenes.
    """
    rng = random.Random(f"doctor|{seed}")
    facts = [_asked(n, make_item(rng, "fact", draw_scene(rng), held=True), "fact") for n in range(_FACTS)]
    pictures = [_picture(n, rng, folder) for n in range(_PICTURES)]
    sequences = [_sequence(n, rng, folder, count) for n in range(_SEQUENCES)]
    places = {}
    steady = draw_scene(rng)
    for number, (name, at) in enumerate({"first": 0, "middle": count // 2, "last": count - 1}.items()):
        # The scene is red but for one frame, which is blue or yellow: the other one of these never appears.
        shown = []
        for which, colour in (("right", "yellow"), ("other", "blue")):
            frames = _frames(replace(steady, colours=(0,) * 32), folder / f"place-{name}-{which}", count)
            lone = _frames(
                replace(steady, colours=(COLOURS.index(colour),) * 32), folder / f"lone-{name}-{which}", count
            )
            shown.append((*frames[:at], lone[at], *frames[at + 1 :]))
        texts = ("Which of these colors never appears?", ("blue", "yellow", "red", "purple"))
        places[name] = make_question(number, texts, shown[0], shown[1], "place")
    wanted = (_WANTED, tuple(facts), tuple(pictures), tuple(sequences))
    return Exam("made-up world", *wanted, MappingProxyType(places))


def _asked(
    number: int, item: WorldItem, kind: str, frames: tuple[str, ...] = (), other: tuple[str, ...] = (), second: str = ""
) -> Question:
    """Return an item of the world as a question; `second` is the option that `other` makes right."""
    wrong = [option for index, option in enumerate(item.options) if index != item.answer]
    if second:
        wrong = [second, *[option for option in wrong if option != second][: len(wrong) - 1]]
    return make_question(number, (item.question, (item.options[item.answer], *wrong)), frames, other, kind)


def _picture(number: int, rng: random.Random, folder: Path) -> Question:
    """Return a question about a colour or a shape, with the same scene in another one."""
    scene = draw_scene(rng)
    kind, names = ("colour", COLOURS) if number % 2 else ("shape", SHAPES)
    item = make_item(rng, kind, scene)
    second = rng.choice([name for name in names if name != item.options[item.answer]])
    index = names.index(second)
    changed = replace(scene, colours=(index,) * 32) if kind == "colour" else replace(scene, shape=index)
    # One moment of 32, as a single-frame step would show it.
    shown, other = (
        (_frames(one, folder / f"picture{number}-{which}", 1)[0],)
        for one, which in ((scene, "right"), (changed, "other"))
    )
    return _asked(number, item, "picture", shown, other, second)


def _sequence(number: int, rng: random.Random, folder: Path, count: int) -> Question:
    """Return a question about the first or last of four colours, with the same frames backwards in time."""
    kind = "last" if number % 2 else "first"
    scene = draw_scene(rng, n_colours=4)
    item = make_item(rng, kind, scene)
    back = replace(scene, colours=scene.colours[::-1])
    second = COLOURS[back.palette[-1] if kind == "last" else back.palette[0]]
    shown, other = (
        _frames(one, folder / f"sequence{number}-{which}", count) for one, which in ((scene, "right"), (back, "other"))
    )
    return _asked(number, item, "sequence", shown, other, second)


def _frames(scene: Scene, folder: Path, count: int) -> tuple[str, ...]:
    """Write a scene's frames and return their paths, in order."""
    from PIL import Image

    from benchcheck.demo.render import frames

    folder.mkdir(parents=True)
    times: Sequence[float] = [(number + 0.5) / count for number in range(count)]
    paths = [folder / f"{number:03d}.jpg" for number in range(count)]
    for path, picture in zip(paths, frames(scene, times, _SIDE), strict=True):
        Image.fromarray(picture).save(path, quality=85)
    return tuple(str(path) for path in paths)
