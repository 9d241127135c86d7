"""Logits to letters, by either preset (protocol 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from benchcheck.errors import UsageError
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import PRESETS, TOP, LetterLogprobs, merge_letters

if TYPE_CHECKING:
    import torch

__all__ = ["Readout", "check_preset"]

_ROWS = 64
"""Rows in float64 at a time: 64 x 152,000 tokens are 78 MB."""


def check_preset(preset: str) -> None:
    """Refuse a preset that does not exist.

    Raises:
        UsageError: naming the presets.
    """
    if preset not in PRESETS:
        raise UsageError(f"preset {preset!r} does not exist. Allowed: {', '.join(PRESETS)}")


class Readout:
    """Reads the letters of next-token logits.

    `exact` sums the full distribution over every token that stands for a letter. `benchcheck-2026` sees the top 20 of
    the same distribution; a letter that is not among them is missing.
    """

    def __init__(self, preset: str, tokens: Sequence[str], variants: Mapping[str, Sequence[int]]) -> None:
        """Keep what the preset needs.

        Args:
            preset: one of `readings.PRESETS`.
            tokens: decoded text by id.
            variants: ids by letter.
        """
        self._preset = preset
        self._tokens = tokens
        self._variants = [tuple(variants[letter]) for letter in LETTERS]

    def read(self, logits: torch.Tensor, counts: Sequence[int]) -> list[LetterLogprobs]:
        """Return the letters of logits, float32 [prompts, vocabulary].

        Args:
            logits: on any device.
            counts: how many options each prompt shows.
        """
        import torch

        one = self._exact if self._preset == "exact" else self._top
        with torch.inference_mode():
            return [
                letters
                for at in range(0, len(counts), _ROWS)
                for letters in one(logits[at : at + _ROWS].double(), counts[at : at + _ROWS])
            ]

    def _exact(self, logits: torch.Tensor, counts: Sequence[int]) -> list[LetterLogprobs]:
        import torch

        total = logits.logsumexp(-1)
        columns = [logits[:, list(ids)].logsumexp(-1) - total for ids in self._variants[: max(counts)]]
        rows = torch.stack(columns, dim=1).tolist()
        masses = torch.stack(columns, dim=1).exp().cumsum(1).tolist()
        return [
            LetterLogprobs(tuple(row[:k]), (), min(mass[k - 1], 1.0))
            for row, mass, k in zip(rows, masses, counts, strict=True)
        ]

    def _top(self, logits: torch.Tensor, counts: Sequence[int]) -> list[LetterLogprobs]:
        top = (logits - logits.logsumexp(-1, keepdim=True)).topk(min(TOP, logits.shape[-1]))
        return [
            merge_letters([(self._token(i), value) for i, value in zip(ids, values, strict=True)], k)
            for ids, values, k in zip(top.indices.tolist(), top.values.tolist(), counts, strict=True)
        ]

    def _token(self, identifier: int) -> str | None:
        """Return a token's text, or None for one of the output rows that pad the vocabulary."""
        return self._tokens[identifier] if identifier < len(self._tokens) else None
