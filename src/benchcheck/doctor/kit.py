"""The acceptance kit: what any working Qwen3-VL-8B or 2B answers on day one, as data (`kit.toml`) and drawings.

Decision (D): the shares that pass are expectations, not measurements: the real weights could not be run where this was
written. They are stated low enough that a correct stack should pass by far, and far above the 25 % of guessing.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchcheck.doctor.drawing import draw, save_frames
from benchcheck.doctor.exam import Exam, Question, Wanted, make_question

__all__ = ["WANTED", "acceptance_kit", "kit_size", "load_kit"]

WANTED: Mapping[str, Wanted] = MappingProxyType(
    {
        # Facts of primary school and single shapes on a plain ground: what a stack gets wrong here, it gets wrong
        # everywhere. Sequences ask for order over 32 frames, which small models are known to be weak at.
        "8b": Wanted(facts=0.95, pictures=0.90, sequences=0.75),
        "2b": Wanted(facts=0.90, pictures=0.80, sequences=0.60),
    }
)


def kit_size(model: str) -> str:
    """Return which shares a model is held to, by its name: `2b` where that says so, else `8b`."""
    return "2b" if "2b" in model.lower() else "8b"


@cache
def load_kit() -> Mapping[str, Any]:
    """Return the kit's data."""
    text = resources.files("benchcheck.doctor").joinpath("kit.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


def acceptance_kit(folder: Path, count: int, long_side: int, size: str) -> Exam:
    """Draw the kit.

    Args:
        folder: where the pictures go.
        count: frames of a video.
        long_side: their width in pixels.
        size: a key of `WANTED`.
    """
    kit, pixels = load_kit(), (long_side, max(32, round(long_side * 9 / 16 / 32) * 32))
    facts = [make_question(n, (row["question"], row["options"]), kind="fact") for n, row in enumerate(kit["fact"])]
    pictures = [_picture(n, row, folder, pixels) for n, row in enumerate(kit["picture"])]
    sequences = [_sequence(n, row, folder, (count, pixels)) for n, row in enumerate(kit["sequence"])]
    place = kit["place"]
    last = count - 1
    places = {}
    for number, (name, at) in enumerate({"first": 0, "middle": count // 2, "last": last}.items()):
        shown = []
        for which in ("right", "other"):
            lone, rest = folder / f"lone-{which}.jpg", folder / "rest.jpg"
            draw(place[which], lone, pixels)
            draw(place["others"], rest, pixels)
            shown.append(tuple(str(lone if index == at else rest) for index in range(count)))
        places[name] = make_question(number, (place["question"], place["options"]), shown[0], shown[1], "place")
    return Exam(
        f"acceptance kit, {size}",
        WANTED[size],
        tuple(facts),
        tuple(pictures),
        tuple(sequences),
        MappingProxyType(places),
    )


def _picture(number: int, row: Mapping[str, Any], folder: Path, pixels: tuple[int, int]) -> Question:
    """Draw a question's right picture and that of the option behind it."""
    paths = [folder / f"picture{number}-{which}.jpg" for which in ("right", "other")]
    for path, drawing in zip(paths, row["draw"], strict=True):
        draw(drawing, path, pixels)
    return make_question(number, (row["question"], row["options"]), (str(paths[0]),), (str(paths[1]),), "picture")


def _sequence(number: int, row: Mapping[str, Any], folder: Path, shape: tuple[int, tuple[int, int]]) -> Question:
    """Draw a question's right frames and those of the option behind it."""
    right, other = (
        save_frames(row[which], folder / f"sequence{number}-{which}", shape[0], shape[1]) for which in ("show", "other")
    )
    return make_question(number, (row["question"], row["options"]), right, other, "sequence")
