"""Exams: made-up items with known answers, drawn when they are needed, and how well they must be answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchcheck.pool.items import Item, VideoRef
from benchcheck.screen.prompts import LETTERS

__all__ = ["Exam", "Question", "Wanted", "make_question"]


@dataclass(frozen=True, slots=True)
class Question:
    """An item, what it is asked about, and the same item about something else."""

    item: Item
    frames: tuple[str, ...] = ()
    """Image files, in order; none for a question that text alone answers."""
    other: tuple[str, ...] = ()
    """As many files that make `other_gold` right."""
    other_gold: int = 0

    @property
    def gold(self) -> int:
        """The right option about `frames`."""
        assert self.item.gold is not None
        return self.item.gold


@dataclass(frozen=True, slots=True)
class Wanted:
    """Shares of right answers at which an exam is passed."""

    facts: float
    pictures: float
    sequences: float


@dataclass(frozen=True, slots=True)
class Exam:
    """Questions of three kinds, and the one frame that matters at several places."""

    name: str
    wanted: Wanted
    facts: tuple[Question, ...]
    pictures: tuple[Question, ...]
    """One frame each."""
    sequences: tuple[Question, ...]
    """All frames of a video each."""
    places: Mapping[str, Question]
    """By the place of the one frame in which `frames` and `other` differ."""


def make_question(
    number: int,
    texts: tuple[str, Sequence[str]],
    frames: tuple[str, ...] = (),
    other: tuple[str, ...] = (),
    kind: str = "",
) -> Question:
    """Return a question whose options come with the right one first and that of `other` second.

    The right option is moved to each place in turn, by the question's number, so that no letter is right more often.
    """
    question, options = texts
    at = number % len(options)
    order = list(range(1, len(options)))
    order.insert(at, 0)
    ref = VideoRef("doctor", f"{kind}{number}")
    item = Item(
        item_id=f"doctor-{kind}_{number}",
        bench=f"doctor-{kind}",
        source_id=LETTERS[at],
        question=question,
        options=tuple(options[index] for index in order),
        gold=at,
        format="mcq",
        video_key=ref.key,
        video_id=ref.video_id,
        category=kind,
    )
    return Question(item, frames, other, order.index(1))
