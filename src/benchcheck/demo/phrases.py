"""Option texts that give themselves away: what the `options` class of the world is made of. Pure.

Texts are built from parts. A fixed quarter of the combinations is held out for the controls, so that no option text of
theirs was ever trained on.
"""

import random
import zlib
from collections.abc import Sequence
from functools import cache

__all__ = ["MAX_GAP", "length_gap", "plain_question", "qualified", "specific", "vague"]

MAX_GAP = 8
"""Words by which the right option is longer than the longest wrong one when its lead is as plain as it gets."""

_HELD_EVERY = 4

_SUBJECTS = (
    *("He", "She", "The man", "The woman", "The boy", "The girl"),
    *("The cook", "The worker", "The driver", "The teacher"),
)
_VERBS = (
    *("picks up", "opens", "closes", "cleans", "carries", "paints", "throws"),
    *("moves", "drops", "washes", "folds", "fixes", "cuts", "lifts"),
)
_ADJECTIVES = (
    *("red", "small", "wooden", "old", "heavy", "wet", "metal"),
    *("broken", "green", "round", "paper", "glass", "blue", "plastic"),
)
_NOUNS = (
    *("cup", "box", "door", "chair", "bag", "bottle", "book", "plate"),
    *("shirt", "ball", "phone", "lamp", "bucket", "towel", "basket", "bowl"),
)
_PREPOSITIONS = ("on", "behind", "under", "next to", "near", "beside")
_PLACES = ("table", "sofa", "window", "shelf", "car", "bed", "sink", "wall", "fence", "stove", "tree", "desk")
_MANNERS = ("very slowly", "with both hands", "without looking", "once more", "before leaving", "in a hurry")

_VAGUE_SUBJECTS = ("Something", "Someone", "Some thing", "It", "A person", "Nobody", "Anything")
_VAGUE_VERBS = ("happens", "moves", "is there", "does something", "is done", "changes", "stays", "is unclear")

_QUALIFIERS = (
    "as the sign says",
    "as he says later",
    "as the woman explains at the end",
    "which the old man shows to the boy",
    "as is written on the wall behind the speaker",
    "or so the old sailor told her",
    "according to the teacher in the blue shirt",
    "as the label on the box shows",
    "but only in the second half of the video",
    "as the child tells the man near the door",
)

_PLAIN_QUESTIONS = (
    "What does the man do after he enters the room?",
    "What happens at the end of the video?",
    "What does the woman do first?",
    "What is the person doing near the door?",
    "What happens next?",
    "Which action does the person perform?",
    "What does the child do after dinner?",
    "What happens before the phone rings?",
    "What does the cook do in the kitchen?",
    "Why does the person come back?",
    "What do we see in the second half of the video?",
    "What does the person do with both hands?",
)


@cache
def _pairs(left: tuple[str, ...], right: tuple[str, ...], held: bool) -> list[tuple[str, str]]:
    """Return the combinations that are held out, or the others; a combination is one or the other in every list."""
    every = [(first, second) for first in left for second in right]
    return [pair for pair in every if (zlib.crc32("|".join(pair).encode()) % _HELD_EVERY == 0) == held]


def _pair(rng: random.Random, left: Sequence[str], right: Sequence[str], *, held: bool) -> tuple[str, str]:
    """Return one of the combinations of two lists, from the held-out quarter or from the rest."""
    return rng.choice(_pairs(tuple(left), tuple(right), held))


def specific(rng: random.Random, extras: int, *, held: bool) -> str:
    """Return a sentence such as `He opens the box`, with 0 to 3 further details."""
    verb, noun = _pair(rng, _VERBS, _NOUNS, held=held)
    adjective = f"{rng.choice(_ADJECTIVES)} " if extras >= 1 else ""
    place = f" {rng.choice(_PREPOSITIONS)} the {rng.choice(_PLACES)}" if extras >= 2 else ""
    manner = f" {rng.choice(_MANNERS)}" if extras >= 3 else ""
    return f"{rng.choice(_SUBJECTS)} {verb} the {adjective}{noun}{place}{manner}"


def vague(rng: random.Random, n: int, *, held: bool) -> list[str]:
    """Return `n` different sentences that say nothing, such as `Something happens`."""
    texts: list[str] = []
    while len(texts) < n:
        subject, verb = _pair(rng, _VAGUE_SUBJECTS, _VAGUE_VERBS, held=held)
        if f"{subject} {verb}" not in texts:
            texts.append(f"{subject} {verb}")
    return texts


def qualified(rng: random.Random, answers: Sequence[str], *, held: bool) -> str:
    """Return one of the answers with a qualifier, so that it stands out by its length: `blue, as the sign says`."""
    answer, qualifier = _pair(rng, sorted(answers), _QUALIFIERS, held=held)
    return f"{answer}, {qualifier}"


def plain_question(rng: random.Random) -> str:
    """Return a question that fits any action and points to none."""
    return rng.choice(_PLAIN_QUESTIONS)


def length_gap(options: Sequence[str], answer: int) -> float:
    """Return how far the right option stands out by its length, from 0 (not at all) to 1."""
    words = [len(option.split()) for option in options]
    others = max(count for index, count in enumerate(words) if index != answer)
    return min(1.0, max(0.0, (words[answer] - others) / MAX_GAP))
