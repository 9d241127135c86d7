"""Prompts: one item, one step, one option order, as the exact text and frames sent (protocol 4).

Changing an intro or the layout changes the step key, so that answers of the old wording are asked again, never mixed.
"""

import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from benchcheck.screen.steps import Sight

__all__ = [
    "INTROS",
    "LETTERS",
    "MAX_OPTIONS",
    "PREFILL",
    "Prompt",
    "frame_order",
    "option_orders",
    "render_options",
    "render_text",
]

LETTERS = string.ascii_uppercase
MAX_OPTIONS = len(LETTERS)
PREFILL = "Answer:"
"""The assistant turn starts with this text and is continued by one token, the letter."""

# Decision (D): the wording is ours. Each says what the model is shown and nothing that is not so.
INTROS: Mapping[Sight, str] = MappingProxyType(
    {
        Sight.BLIND: "Answer the multiple-choice question about a video. The video is not shown.",
        Sight.SINGLE_FRAME: "Answer the multiple-choice question about a video. One frame of the video is shown.",
        Sight.FRAMES: "Answer the multiple-choice question about a video. "
        "Frames sampled evenly from the video are shown in time order.",
        Sight.SHUFFLED: "Answer the multiple-choice question about a video. "
        "Frames sampled evenly from the video are shown in random order.",
        Sight.OPTIONS_ONLY: "Choose the most likely answer of a multiple-choice question about a video. "
        "Neither the question nor the video is shown.",
    }
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one forward pass sees.

    `order[j]` is the original index of the option shown at position j. `frames` are image files in the order shown,
    placed before the text; `prefix` names what neighbours share (a video's frames), so that backends can group them.
    """

    item_id: str
    step: int
    order: tuple[int, ...]
    text: str
    frames: tuple[str, ...] = ()
    prefix: str = ""


def option_orders(item_id: str, k: int, *, n: int = 4, seed: int = 42) -> list[tuple[int, ...]]:
    """Return the `n` seeded orders in which an item's `k` options are shown (protocol 4; golden `option_orders`)."""
    rng = random.Random(f"{seed}|{item_id}")
    return [tuple(rng.sample(range(k), k)) for _ in range(n)]


def frame_order(item_id: str, n: int, *, seed: int = 42) -> tuple[int, ...]:
    """Return the seeded shuffle of `n` frame positions for step 5, never the identity (protocol 4, D).

    One frame has no other order than its own; the caller sees that from the length.
    """
    rng = random.Random(f"{seed}|frames|{item_id}")
    identity = list(range(n))
    order = identity
    while order == identity and n > 1:
        order = rng.sample(identity, n)
    return tuple(order)


def render_options(texts: Sequence[str]) -> str:
    """Return the options one per line as `A. text` (protocol 4; golden `render_options`)."""
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))


def render_text(intro: str, question: str | None, options: Sequence[str]) -> str:
    """Return the text of the user turn; `question=None` is the options-only layout (protocol 4)."""
    asked = "" if question is None else f"Question: {question}\n"
    return f"{intro}\n\n{asked}Options:\n{render_options(options)}\nAnswer with the option letter only."
