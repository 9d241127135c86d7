"""Plain pictures, drawn with Pillow when they are needed: `3x circle red left + square blue right on black`.

A drawing is things joined by ` + `, each of words in any order: how many (`3x`), what (a shape, or `text:7`), a
colour, a place, a size; `on COLOUR` at the end is the background, white unless said. `left>right` is a place between
two, as far along as the moment asks. A drawing without things is `blank`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import ImageDraw

__all__ = ["COLOURS", "PLACES", "SHAPES", "Thing", "draw", "parse", "save_frames"]

COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (220, 30, 30),
    "green": (30, 150, 50),
    "blue": (30, 70, 220),
    "yellow": (245, 220, 40),
    "orange": (245, 140, 20),
    "purple": (125, 40, 170),
    "black": (10, 10, 10),
    "white": (250, 250, 250),
    "gray": (128, 128, 128),
}
PLACES: Mapping[str, tuple[float, float]] = {
    "centre": (0.5, 0.5),
    "left": (0.24, 0.5),
    "right": (0.76, 0.5),
    "top": (0.5, 0.22),
    "bottom": (0.5, 0.78),
}
"""Where a thing's middle lies, in shares of width and height."""
SIZES: Mapping[str, float] = {"small": 0.09, "medium": 0.17, "large": 0.36}
"""Half a thing's side, in shares of the height."""
SHAPES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "circle": (),
    "ring": (),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0, -1), (1, 0.85), (-1, 0.85)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "cross": (
        *((-0.33, -1), (0.33, -1), (0.33, -0.33), (1, -0.33), (1, 0.33), (0.33, 0.33)),
        *((0.33, 1), (-0.33, 1), (-0.33, 0.33), (-1, 0.33), (-1, -0.33), (-0.33, -0.33)),
    ),
}
"""Corners in half sides from the middle; a circle and a ring have none."""
QUALITY = 95
"""Of the JPEG files: what is asked is plain, and compression is not what is tested."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing of a drawing, `count` of them side by side."""

    what: str
    colour: str
    count: int
    start: str
    end: str
    """The place at the last moment; another one than `start` moves."""
    size: str


def parse(drawing: str) -> tuple[list[Thing], str]:
    """Return a drawing's things and its background.

    Raises:
        ValueError: a word that is none of a drawing.
    """
    body, _, ground = drawing.partition(" on ")
    ground = ground.strip() or "white"
    if ground not in COLOURS:
        raise ValueError(f"drawing {drawing!r}: no background {ground!r}. Allowed: {', '.join(COLOURS)}")
    things = [] if body.strip() == "blank" else [_thing(part.split(), drawing) for part in body.split(" + ")]
    return things, ground


def _thing(words: Sequence[str], drawing: str) -> Thing:
    found = {"what": "", "colour": "black", "count": "1", "place": "centre", "size": "medium"}
    for word in words:
        ends = word.split(">")
        if word in SHAPES or word.startswith("text:"):
            found["what"] = word
        elif word in COLOURS:
            found["colour"] = word
        elif re.fullmatch(r"\dx", word):
            found["count"] = word[0]
        elif len(ends) <= 2 and set(ends) <= set(PLACES):
            found["place"] = word
        elif word in SIZES:
            found["size"] = word
        else:
            raise ValueError(f"drawing {drawing!r}: {word!r} is no shape, colour, place, size or number")
    if not found["what"]:
        raise ValueError(f"drawing {drawing!r}: nothing to draw")
    start, _, end = found["place"].partition(">")
    return Thing(found["what"], found["colour"], int(found["count"]), start, end or start, found["size"])


def draw(drawing: str, path: Path, size: tuple[int, int], moment: float = 0.0) -> None:
    """Write a drawing to a JPEG file.

    Args:
        drawing: what to draw.
        path: where.
        size: width and height in pixels.
        moment: 0 to 1, how far things that move have come.

    Raises:
        ValueError: the drawing cannot be read.
    """
    from PIL import Image, ImageDraw

    things, ground = parse(drawing)
    image = Image.new("RGB", size, COLOURS[ground])
    pen = ImageDraw.Draw(image)
    for thing in things:
        (x0, y0), (x1, y1) = PLACES[thing.start], PLACES[thing.end]
        x, y = size[0] * (x0 + (x1 - x0) * moment), size[1] * (y0 + (y1 - y0) * moment)
        half = size[1] * SIZES[thing.size] / max(1.0, 0.55 * thing.count)
        for number in range(thing.count):
            _one(pen, thing, (x + 2.6 * half * (number - (thing.count - 1) / 2), y), half, COLOURS[ground])
    image.save(path, quality=QUALITY)


def _one(
    pen: "ImageDraw.ImageDraw", thing: Thing, middle: tuple[float, float], half: float, ground: tuple[int, int, int]
) -> None:
    """Draw one thing around a middle."""
    from PIL import ImageFont

    (x, y), colour = middle, COLOURS[thing.colour]
    if thing.what.startswith("text:"):
        pen.text((x, y), thing.what.removeprefix("text:"), colour, ImageFont.load_default(size=2 * half), anchor="mm")
    elif corners := SHAPES[thing.what]:
        pen.polygon([(x + half * across, y + half * down) for across, down in corners], fill=colour)
    else:
        pen.ellipse((x - half, y - half, x + half, y + half), fill=colour)
        if thing.what == "ring":
            pen.ellipse((x - half / 2, y - half / 2, x + half / 2, y + half / 2), fill=ground)


def save_frames(segments: Sequence[str], folder: Path, count: int, size: tuple[int, int]) -> tuple[str, ...]:
    """Write the frames of a sequence and return their paths, in order.

    Args:
        segments: such as `0-27 blank`: the first and last of 32 frames, and what they show; together they cover all.
        folder: where the files go; it is made.
        count: how many frames a video has in the study; they are spread over the 32.
        size: width and height in pixels.

    Raises:
        ValueError: a segment cannot be read, or a frame is in none.
    """
    folder.mkdir(parents=True)
    shown: dict[int, tuple[str, float]] = {}
    for segment in segments:
        span = re.fullmatch(r"(\d+)-(\d+) (.+)", segment)
        if span is None:
            raise ValueError(f"segment {segment!r}: not of the form FIRST-LAST DRAWING")
        first, last = int(span[1]), int(span[2])
        shown |= {index: (span[3], (index - first) / max(1, last - first)) for index in range(first, last + 1)}
    paths = []
    for number in range(count):
        index = int((number + 0.5) * 32 / count)
        if index not in shown:
            raise ValueError(f"segments {list(segments)}: nothing is shown at frame {index}")
        paths.append(folder / f"{number:03d}.jpg")
        draw(shown[index][0], paths[-1], size, shown[index][1])
    return tuple(str(path) for path in paths)
