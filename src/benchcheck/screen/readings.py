"""Readings: the log-probability of every option letter for one prompt, from a distribution over tokens (protocol 5)."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchcheck.screen.prompts import LETTERS

__all__ = [
    "MISSING_LOGPROB",
    "PERMANENT_FAILURES",
    "PRESETS",
    "TOP",
    "Failure",
    "LetterLogprobs",
    "Reading",
    "argmax",
    "letter_of_token",
    "log_sum_exp",
    "margin_of",
    "merge_letters",
]

PRESETS = ("exact", "benchcheck-2026")
"""How letters are read: exactly, or from the top 20 tokens as the original does (protocol 5)."""

TOP = 20
"""How many tokens `benchcheck-2026` sees (protocol 5)."""

MISSING_LOGPROB = math.log(1e-6)
"""What a letter gets that an endpoint did not list among its top tokens (protocol 5)."""

PERMANENT_FAILURES = frozenset(
    {"context_too_long", "low_label_mass", "undecodable_frames", "unreadable_letters", "control_token_in_text"}
)
"""Error kinds that repeat by nature: one such row fails the item at once (protocol 5; the last two are ours, D)."""

_LETTER_TOKEN = re.compile(r"\s*[(\[]?([A-Z])[)\].:]?\s*")


@dataclass(frozen=True, slots=True)
class LetterLogprobs:
    """Natural-log probabilities of the first k letters; letters that were not seen are in `missing`."""

    logprobs: tuple[float, ...]
    missing: tuple[str, ...]
    label_mass: float
    """Total probability of all letters that were seen, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one prompt gave: letters by shown position, with the prompt's length and the seconds it took."""

    letters: LetterLogprobs
    prompt_tokens: int
    latency_s: float
    cached_tokens: int = 0
    """Tokens of the prompt that the engine had computed for another one before, where it says so."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a prompt gave no reading: a kind that a program can act on, a detail that a person can."""

    kind: str
    detail: str


def letter_of_token(token: str | None) -> str | None:
    """Return the letter that a token stands for, or None.

    One upper-case letter, with white space around, at most one opening bracket before and one closing mark behind.
    Endpoints send null for a token that is no text; it stands for no letter.
    """
    match = _LETTER_TOKEN.fullmatch(token or "")
    return match.group(1) if match else None


def log_sum_exp(values: Sequence[float]) -> float:
    """Return log(sum(exp(values))) without overflow; an empty list or only -inf gives -inf."""
    top = max(values, default=-math.inf)
    if top == -math.inf:
        return -math.inf
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def merge_letters(tokens: Iterable[tuple[str | None, float]], k: int) -> LetterLogprobs:
    """Merge the tokens of a distribution into the first `k` letters (protocol 5; golden `letter_logprobs`).

    Where one token's value is not a number the distribution is none, and no letter has a number: letters that such a
    list happens to leave out would otherwise count as missing, and the first position as the answer.
    """
    seen: dict[str, list[float]] = {letter: [] for letter in LETTERS[:k]}
    for token, logprob in tokens:
        if math.isnan(logprob):
            return LetterLogprobs((math.nan,) * k, (), math.nan)
        letter = letter_of_token(token)
        if letter in seen:
            seen[letter].append(logprob)
    merged = {letter: log_sum_exp(values) for letter, values in seen.items() if values}
    return LetterLogprobs(
        logprobs=tuple(merged.get(letter, MISSING_LOGPROB) for letter in seen),
        missing=tuple(letter for letter in seen if letter not in merged),
        label_mass=math.fsum(math.exp(value) for value in merged.values()),
    )


def argmax(values: Sequence[float]) -> int:
    """Return the first position of the largest value."""
    return max(range(len(values)), key=values.__getitem__)


def margin_of(logprobs: Sequence[float], gold: int) -> float:
    """Return log-prob of the gold position minus the mean log-prob of the other positions, in nats."""
    others = [value for position, value in enumerate(logprobs) if position != gold]
    return logprobs[gold] - math.fsum(others) / len(others)
