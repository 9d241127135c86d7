"""What an engine is asked for one prompt, and how its answers become letters: ids out, log-probabilities in. Pure.

vLLM returns the exact log-probabilities of at most 128 chosen tokens. A letter has several tokens ("A", " A", "(A"),
and only the letters that a prompt shows are asked, so that nearly every item fits in one request. More are asked in
further requests of the same prompt, which the prefix cache makes nearly free. No token is left out: mass is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchcheck.backends.replies import split_ids
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import TOP, Failure, LetterLogprobs, log_sum_exp, merge_letters

__all__ = ["Queries", "Query"]


@dataclass(frozen=True, slots=True)
class Query:
    """The requests for a prompt with `options` letters."""

    options: int
    chunks: tuple[tuple[int, ...], ...]
    """Token ids, one tuple per request; one empty tuple asks for the top 20 instead."""


class Queries:
    """Makes queries and reads their answers, by either preset (protocol 5)."""

    def __init__(self, preset: str, tokens: Sequence[str], variants: Mapping[str, Sequence[int]]) -> None:
        """Keep what the preset needs.

        Args:
            preset: one of `readings.PRESETS`.
            tokens: decoded text by id.
            variants: ids by letter, as `letters.variants_of_letters` gives them.
        """
        self._exact = preset == "exact"
        self._tokens = tokens
        self._variants = [tuple(variants[letter]) for letter in LETTERS]
        self._made: dict[int, Query] = {}

    def of(self, options: int) -> Query:
        """Return the query for a prompt that shows `options` options."""
        if options not in self._made:
            ids = [identifier for letter in self._variants[:options] for identifier in letter]
            self._made[options] = Query(options, split_ids(ids) if self._exact else ((),))
        return self._made[options]

    def read(self, query: Query, answers: Sequence[Mapping[int, float]]) -> LetterLogprobs | Failure:
        """Return the letters of the answers to a query's requests: log-probabilities by token id.

        A token that was asked and is not there is a failure, never a guess; so is one that is not a number.
        """
        merged = {identifier: value for answer in answers for identifier, value in answer.items()}
        if not self._exact:
            # The sampled token is listed beside the top 20, of which it is the first.
            top = sorted(merged.items(), key=lambda pair: -pair[1])[:TOP]
            return merge_letters([(self._token(identifier), value) for identifier, value in top], query.options)
        absent = [identifier for chunk in query.chunks for identifier in chunk if identifier not in merged]
        if absent:
            return Failure("letters_not_returned", f"the engine left out {len(absent)} of the tokens that were asked")
        letters = [[merged[identifier] for identifier in ids] for ids in self._variants[: query.options]]
        if any(math.isnan(value) for values in letters for value in values):
            return Failure("not_finite", "a letter's log-probability is not a number")
        logprobs = tuple(log_sum_exp(values) for values in letters)
        return LetterLogprobs(logprobs, (), min(1.0, math.fsum(math.exp(value) for value in logprobs)))

    def _token(self, identifier: int) -> str | None:
        """Return a token's text, or None for one of the output rows that pad the vocabulary."""
        return self._tokens[identifier] if identifier < len(self._tokens) else None
