"""The stack that is examined: a backend, opened for so many frames, one at a time, with what it was asked kept."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchcheck.backends import Backend, Engine
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading

__all__ = ["Opener", "Sitting", "Stack"]

Opener = Callable[[int], Backend]
"""Opens a backend for prompts of so many frames."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """Prompts that were asked together, their results in the same order, and the seconds that took."""

    prompts: tuple[Prompt, ...]
    results: tuple[Reading | Failure, ...]
    seconds: float = 0.0

    def part(self, prompts: Sequence[Prompt]) -> "Sitting":
        """Return the results of some of the prompts, in their order."""
        at = dict(zip(self.prompts, self.results, strict=True))
        return Sitting(tuple(prompts), tuple(at[prompt] for prompt in prompts))

    @property
    def readings(self) -> list[Reading]:
        """The results that are readings."""
        return [result for result in self.results if isinstance(result, Reading)]


@dataclass(slots=True)
class Stack:
    """Opens a backend as prompts ask for it. Opening does not count in a sitting's seconds."""

    opener: Opener
    shaped: bool = False
    """Whether it is opened anew for another number of frames."""
    clock: Callable[[], float] = time.monotonic
    kept: list[tuple[int, Sitting]] = field(default_factory=list)
    """Frames and sittings so far, for another engine to be asked the same."""
    engine: Engine | None = None
    _backend: Backend | None = None
    _images: int = -1

    def read(self, prompts: Sequence[Prompt], images: int) -> Sitting:
        """Ask prompts together; a prompt that the backend leaves out has failed.

        Args:
            prompts: all of at most so many frames.
            images: for how many frames the backend is opened.

        Raises:
            UsageError: the backend or the checkpoint was refused.
            BackendError: the engine stopped answering.
        """
        backend = self._open(images)
        results: dict[int, Reading | Failure] = {}
        start = self.clock()
        for outcome in backend.read(iter(prompts)):
            results[outcome.index] = outcome.result
        seconds = self.clock() - start
        lost = Failure("no_outcome", "the backend gave no outcome for a prompt")
        ordered = tuple(results.get(index, lost) for index in range(len(prompts)))
        sitting = Sitting(tuple(prompts), ordered, seconds)
        self.kept.append((images, sitting))
        return sitting

    def close(self) -> None:
        """Close what is open."""
        if self._backend is not None:
            self._backend.close()
        self._backend = None

    def _open(self, images: int) -> Backend:
        wanted = images if self.shaped else 0
        if self._backend is None or wanted != self._images:
            self.close()
            self._backend, self._images = self.opener(wanted), wanted
            self.engine = self._backend.engine
        return self._backend
