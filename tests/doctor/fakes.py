"""Stand-in stacks: one that knows every answer of an exam, and the ways to break it."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchcheck.backends import Engine, Outcome
from benchcheck.doctor.exam import Exam, Question
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, LetterLogprobs, Reading, log_sum_exp

Change = Callable[[Prompt, Reading | Failure], Reading | Failure]


def letters_of(scores: Sequence[float], mass: float = 0.99) -> LetterLogprobs:
    total = log_sum_exp(scores) - math.log(mass)
    return LetterLogprobs(tuple(score - total for score in scores), (), mass)


def digest(path: str) -> str:
    return hashlib.sha1(Path(path).read_bytes()).hexdigest()


@dataclass
class Oracle:
    """Knows an exam. It tells frames apart by their pixels, as a model would, and looks at the first `sight`."""

    exam: Exam
    sight: int = 1000
    change: Change = lambda prompt, result: result
    leave_out: int = 0
    tick: Callable[[], None] = lambda: None
    engine: Engine = field(default_factory=lambda: Engine("oracle", "1", "float64", "paper", "r1"))
    opened: int = 0
    closed: bool = False
    calls: int = 0

    def __post_init__(self) -> None:
        exam = self.exam
        everything = (*exam.facts, *exam.pictures, *exam.sequences, *exam.places.values())
        self._questions = {question.item.item_id: question for question in everything}
        self._sequences = {question.item.item_id for question in exam.sequences}
        self._digests: dict[str, str] = {}

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        asked = list(prompts)
        self.calls += 1
        for index, prompt in enumerate(asked[: len(asked) - self.leave_out]):
            self.tick()
            yield Outcome(index, self.change(prompt, self._reading(prompt)))

    def close(self) -> None:
        self.closed = True

    def _reading(self, prompt: Prompt) -> Reading:
        known = self._known(self._questions[prompt.item_id], prompt)
        scores = [5.0 * (option == known) for option in prompt.order]
        return Reading(letters_of(scores), len(prompt.text.split()) + 7 * len(prompt.frames), 0.001)

    def _known(self, question: Question, prompt: Prompt) -> int | None:
        if not question.frames:
            return question.gold
        seen, right, other = (self._seen(paths) for paths in (prompt.frames, question.frames, question.other))
        if right == other or not prompt.frames:
            return None
        # Backwards, a sequence of the exam says what its other one says.
        back = self._seen(question.frames[::-1])
        if seen == right:
            return question.gold
        return (
            question.other_gold
            if seen == other or (seen == back and question.item.item_id in self._sequences)
            else None
        )

    def _seen(self, paths: Sequence[str]) -> tuple[str, ...]:
        for path in paths:
            if path not in self._digests:
                self._digests[path] = digest(path)
        return tuple(self._digests[path] for path in paths)[: self.sight]


def with_mass(mass: float, only_frames: bool = False) -> Change:
    """The letters are a small part of what is said."""

    def change(prompt: Prompt, result: Reading | Failure) -> Reading | Failure:
        if isinstance(result, Failure) or (only_frames and not prompt.frames):
            return result
        return replace(result, letters=letters_of(result.letters.logprobs, mass))

    return change


def with_letters(change: Callable[[Prompt, tuple[float, ...]], Sequence[float]]) -> Change:
    """The letters' log-probabilities are others."""

    def changed(prompt: Prompt, result: Reading | Failure) -> Reading | Failure:
        if isinstance(result, Failure):
            return result
        return replace(result, letters=replace(result.letters, logprobs=tuple(change(prompt, result.letters.logprobs))))

    return changed
