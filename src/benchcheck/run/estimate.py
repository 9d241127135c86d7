"""What a study will cost: items that come to each step, tokens, GPU-hours and disk, before and while it runs. Pure.

Two bases, and every figure says which: what runs of this study measured, else the floating-point work of a prompt by
what one H200 was measured to achieve. Sizes of models are those of Qwen3-VL 8B and 2B, or of the number in a name.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchcheck.screen.steps import Sight, Step
from benchcheck.screen.verdicts import Flags, Fold, Mark

__all__ = [
    "CHARS_PER_TOKEN",
    "ENOUGH",
    "H200_TFLOPS",
    "MOST_PROMPTS_S",
    "SURVIVE",
    "Coming",
    "Geometry",
    "Load",
    "Spent",
    "StepEstimate",
    "Texts",
    "achieved",
    "coming",
    "estimate_step",
    "load_of",
    "row_bytes",
    "seconds_left",
    "survival",
    "tokens_of_frame",
]

CHARS_PER_TOKEN = 4.0
"""Characters of English text per token."""
TEMPLATE_TOKENS = 16
"""The chat's own tokens around a prompt, and the prefilled `Answer:`."""
OPTION_TOKENS = 3
"""The letter, its dot and the line's end."""
ROW_BYTES = (564, 154)
"""A row, and each order in it: 1,180 bytes with four orders, 718 with one."""
SURVIVE = 0.8
"""Share of a step's items that stays, assumed where nothing was answered."""
ENOUGH = 30
"""Answers from which a step's own share is taken: its 95 % interval is then within 18 points."""
H200_TFLOPS = 989.0
"""Dense bf16 by NVIDIA's data sheet; H100 SXM has the same, A100 312, L40S 362."""

MOST_PROMPTS_S = 479.0
"""The most prompts a second that one engine was measured at: what a prompt costs beside its tokens is not modelled."""

_PER_TOKEN = {"8b": 13.9e9, "2b": 2.8e9}
"""Floating-point operations of Qwen3-VL's language models per token: twice their linear parameters."""
_PER_PATCH = 0.82e9
"""Of its vision tower, per 16x16 patch."""


@dataclass(frozen=True, slots=True)
class Texts:
    """How long a pool's texts are, in characters: means over its items."""

    question: float
    options: float
    """All options together."""
    n_options: float


@dataclass(frozen=True, slots=True)
class Geometry:
    """What the frames of a study are; 16:9 where nothing is known of the videos."""

    count: int
    long_side: int
    videos: int
    """Sets of frames."""


@dataclass(frozen=True, slots=True)
class Coming:
    """What a step has still to ask."""

    step: Step
    items: float
    """Expected: items that earlier steps have still to ask count with their chance to come this far."""
    at_most: int
    """If none of them leaves."""
    survive: float
    """Share of this step's items that stays."""
    measured: bool
    """Whether that share is this study's own."""


@dataclass(frozen=True, slots=True)
class Load:
    """The work of a step: prompts, their tokens, those that are computed, and floating-point operations."""

    prompts: float
    tokens: float
    computed: float
    """Tokens without those of a prefix that an item's orders, or a video's questions, share."""
    flops: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What runs of this study measured in a step."""

    items: int
    prompts: int
    wall_s: float
    """Seconds of all workers together."""
    device: str = ""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """A step of the whole, and on what the estimate rests."""

    coming: Coming
    load: Load
    gpu_hours: float
    basis: str


def survival(fold: Fold, assumed: float = SURVIVE) -> dict[int, tuple[float, bool]]:
    """Return the share of each step's items that stays, and whether it was measured here."""
    shares = {}
    for here in fold.steps:
        passed, left = here.count(Mark.PASSED), here.count(Mark.REMOVED) + here.count(Mark.FAILED)
        measured = passed + left >= ENOUGH
        shares[here.step.number] = (passed / (passed + left) if measured else assumed, measured)
    return shares


def coming(fold: Fold, cascade: bool = True, assumed: float = SURVIVE, wanted: Flags | None = None) -> list[Coming]:
    """Return what each step has still to ask; items that wait for frames are counted as if they had them.

    `wanted` limits it to flagged items, such as a pilot's; `assumed` is the share that stays where none was measured.
    """
    shares = survival(fold, assumed)
    chance: NDArray[np.float64] = np.ones(len(fold.state))
    found = []
    for here in fold.steps:
        share, measured = shares[here.step.number]
        open_here = (here.todo | here.waiting) & (True if wanted is None else wanted)
        items = float(chance[open_here].sum())
        found.append(Coming(here.step, items, int(np.count_nonzero(open_here)), share, measured))
        if cascade:
            chance[open_here] *= share
    return found


def tokens_of_frame(long_side: int) -> int:
    """Return a 16:9 frame's tokens: one per 32x32 pixels, sides rounded to that, and two that mark its ends."""
    wide, high = (max(1, round(side / 32)) for side in (long_side, long_side * 9 / 16))
    return wide * high + 2


def load_of(step: Step, items: float, texts: Texts, frames: Geometry, orders: int, of: tuple[str, float]) -> Load:
    """Return the work of asking so many items in a step.

    Args:
        step: the step.
        items: how many items it asks.
        texts: their lengths.
        frames: their frames, and on how many videos all of the pool's items lie.
        orders: option orders an item gets.
        of: the model's name, and how many items the pool has on those videos.
    """
    model, pool_items = of
    options = texts.options / CHARS_PER_TOKEN + OPTION_TOKENS * texts.n_options
    question = 0.0 if step.sight is Sight.OPTIONS_ONLY else texts.question / CHARS_PER_TOKEN
    head = TEMPLATE_TOKENS + 25 + question  # an intro has about 100 characters
    count = _frames_of(step, frames)
    seen = count * tokens_of_frame(frames.long_side)
    videos = _videos(items, pool_items, frames.videos) if count else 0.0
    # The prefix of a shuffled order is an item's own; its frames' vision tower is the video's all the same.
    prefixes = items if step.sight is Sight.SHUFFLED else videos
    prompts = items * orders
    tokens = prompts * (head + options + seen)
    computed = items * (head + orders * options) + prefixes * seen
    patches = videos * count * 4 * (tokens_of_frame(frames.long_side) - 2)
    return Load(prompts, tokens, computed, computed * _per_token(step.role, model) + patches * _PER_PATCH)


def _frames_of(step: Step, frames: Geometry) -> int:
    """Frames that a prompt of a step shows."""
    if not step.sight.needs_frames:
        return 0
    return 1 if step.sight is Sight.SINGLE_FRAME else frames.count


def _videos(items: float, pool_items: float, videos: int) -> float:
    """How many of the videos still have a question when so many items are left, spread evenly."""
    if not videos or not pool_items:
        return items
    gone = max(0.0, 1 - items / pool_items)
    return min(items, videos * (1 - math.pow(gone, max(1.0, pool_items / videos))))


def _per_token(role: str, model: str) -> float:
    """Floating-point operations per token: by the role for the protocol's models, else by a size such as `4B`."""
    named = re.search(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[Bb](?![A-Za-z0-9])", model.rpartition("/")[2])
    if "Qwen3-VL" in model or named is None:
        return _PER_TOKEN[role]
    return 2e9 * float(named[1])


_MEASURED = (("text", "8b", 1, 4, 479.0), ("frames", "2b", 3, 1, 51.0), ("frames", "8b", 6, 1, 22.0))
"""Prompts a second on one H200 (vLLM 0.25.1, bf16): kind, role, step, orders; 130 tokens of text, 3 questions a
video of 32 frames."""
_MEASURED_TEXTS = Texts(question=76.0, options=232.0, n_options=4.0)
"""That text: 60 tokens that four orders share and 70 that they do not, so 85 computed a prompt."""


def achieved(ladder: Mapping[int, Step]) -> dict[tuple[str, str], float]:
    """Return the operations a second that one H200 achieved, by kind of prompt and role, as this module counts them."""
    figures = {}
    for kind, role, number, orders, rate in _MEASURED:
        load = load_of(ladder[number], 3000.0, _MEASURED_TEXTS, Geometry(32, 448, 1000), orders, ("", 3000.0))
        figures[kind, role] = load.flops / load.prompts * rate
    figures["text", "2b"] = figures["frames", "2b"]
    return figures


def estimate_step(asked: Coming, load: Load, spent: Spent | None, speed: float, gpu: str) -> StepEstimate:
    """Return a step's GPU-hours: by what this study measured, else by the work and `speed` (operations a second).

    `gpu` names where that speed comes from.
    """
    if spent is not None and spent.prompts >= ENOUGH and spent.wall_s > 0:
        rate = spent.prompts / spent.wall_s
        basis = f"measured here: {rate:,.1f} prompts/s a worker on {spent.device or 'an unnamed device'}"
        return StepEstimate(asked, load, load.prompts / rate / 3600, basis)
    if not load.prompts:
        return StepEstimate(asked, load, 0.0, "nothing to ask")
    rate = min(speed * load.prompts / load.flops, MOST_PROMPTS_S)
    return StepEstimate(asked, load, load.prompts / rate / 3600, f"assumed: {rate:,.0f} prompts/s on {gpu}")


def row_bytes(orders: int) -> float:
    """Return the bytes of an answer's row."""
    return ROW_BYTES[0] + ROW_BYTES[1] * orders


def seconds_left(steps: Sequence[Coming], spent: Mapping[int, Spent], workers: int) -> tuple[float, tuple[int, ...]]:
    """Return the seconds that so many workers need for what is left, and the steps that have no basis yet.

    A step's rate is that of one of its workers, as its runs measured it.
    """
    seconds, without = 0.0, []
    for asked in steps:
        if not asked.at_most:
            continue
        known = spent.get(asked.step.number)
        if known is None or known.items < 1 or known.wall_s <= 0:
            without.append(asked.step.number)
        else:
            seconds += asked.items * known.wall_s / known.items / max(1, workers)
    return seconds, tuple(without)
