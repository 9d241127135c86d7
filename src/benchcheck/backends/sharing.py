"""How much of the prompts an engine computed once and used again, against how much it could have. Pure.

vLLM keeps whole blocks of tokens. When it stops sharing it says nothing and is 2 to 4 times slower (a small encoder
cache does that to questions on one video), so what it reports is compared with what neighbours have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchcheck.backends.packed import Ints

__all__ = ["Asked", "Sharing"]

_ENOUGH = 0.8
_FEW = 64
"""Prompts before a judgement: the first few of a run share what they can only after the first was computed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt as an engine's prefix cache sees it."""

    ids: Ints
    images: tuple[tuple[int, str], ...] = ()
    """First token and digest of each image, in order: equal ids of another image are another prefix."""

    def shared_with(self, other: Asked, block: int) -> int:
        """Return how many leading tokens, in whole blocks, are those of another prompt; never the last token."""
        length = min(len(self.ids), len(other.ids))
        unlike = np.flatnonzero(self.ids[:length] != other.ids[:length])
        same = int(unlike[0]) if len(unlike) else length
        for mine, theirs in zip(self.images, other.images, strict=False):
            if mine != theirs:
                same = min(same, mine[0], theirs[0])
                break
        return min(same, len(self.ids) - 1) // block * block


@dataclass(slots=True)
class Sharing:
    """Sums over the prompts of a backend."""

    block: int
    """Tokens of a block of the engine's prefix cache."""
    prompts: int = 0
    tokens: int = 0
    shareable: int = 0
    """Tokens that a prompt has in common with the one sent before it."""
    cached: int = 0
    """Tokens that the engine took from its cache."""
    missed: int = 0
    """Shareable tokens that it computed again."""
    _before: Asked | None = field(default=None, repr=False)

    def expect(self, asked: Asked) -> int:
        """Return how many tokens of a prompt, sent after the one before, should come from the cache."""
        before, self._before = self._before, asked
        return asked.shared_with(before, self.block) if before is not None else 0

    def count(self, tokens: int, expected: int, cached: int) -> None:
        """Add an answered prompt."""
        self.prompts += 1
        self.tokens += tokens
        self.shareable += expected
        self.cached += cached
        self.missed += max(0, expected - cached)

    @property
    def rate(self) -> float:
        """Share of the shareable tokens that were not computed again, 0 to 1; 1 where there was nothing to share."""
        return 1 - self.missed / self.shareable if self.shareable else 1.0

    def note(self) -> str | None:
        """Return a line for the user when an engine does not share what it should, or None."""
        if self.prompts < _FEW or self.rate >= _ENOUGH or self.shareable < self.tokens / 10:
            return None
        return (
            f"the engine used {self.rate:.0%} of the tokens that neighbouring prompts share ({self.cached:,} cached, "
            f"{self.shareable:,} shareable, {self.tokens:,} in all): the run is slower than it could be. Cure: raise "
            "engine.gpu_memory, or lower engine.in_flight"
        )
