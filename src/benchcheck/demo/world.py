"""The synthetic world: questions of known classes about scenes, and what each input says about their answers. Pure.

Five classes say what an item takes: `blind` (the question alone), `options` (the options alone), `one_frame` (any one
frame), `many_frames` (many frames in any order), `order` (the order of the frames). A kind is one sort of question.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchcheck.demo import facts, phrases
from benchcheck.demo.scenes import BACKGROUNDS, COLOURS, DIRECTIONS, SHAPES, Scene
from benchcheck.screen.steps import Sight

__all__ = ["CLASSES", "KINDS", "NUMBERS", "QUESTIONS", "WorldItem", "evidence", "make_item", "move_answer"]

CLASSES = ("blind", "options", "one_frame", "many_frames", "order")
KINDS: Mapping[str, str] = {
    "fact": "blind",
    "vague": "options",
    "longest": "options",
    "misled": "options",
    "colour": "one_frame",
    "shape": "one_frame",
    "background": "one_frame",
    "never": "many_frames",
    "count": "many_frames",
    "first": "order",
    "last": "order",
    "direction": "order",
}
"""Every kind of question and its class."""

NUMBERS = ("zero", "one", "two", "three", "four", "five")
QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "colour": (
        "What color is the object?",
        "Which color does the object have?",
        "What is the color of the object in the video?",
        "What colour is the shape?",
        "Which colour is the shape that is shown?",
    ),
    "shape": (
        "What shape is the object?",
        "Which shape is shown?",
        "What is the shape of the object in the video?",
        "Which shape does the object have?",
    ),
    "background": (
        "What is the background like?",
        "Which background is shown?",
        "How does the background look?",
        "What is the background behind the object?",
    ),
    "never": (
        "Which of these colors never appears?",
        "Which color does the object never have?",
        "Which of these colours is not shown at any time?",
        "Which color is missing from the video?",
        "Which color does not appear?",
        "Which of the colors is never seen?",
        "What color does the object not take on?",
        "Which colour is absent from the video?",
    ),
    "count": (
        "How many different colors does the object have?",
        "How many different colors appear?",
        "How many colours does the object take on in the video?",
        "What is the number of different colors shown?",
    ),
    "first": (
        "Which color comes first?",
        "What color does the object have at the start?",
        "Which colour is seen first in the video?",
        "In which color does the object begin?",
    ),
    "last": (
        "Which color comes last?",
        "What color does the object have at the end?",
        "Which colour is seen last in the video?",
        "In which color does the object finish?",
    ),
    "direction": (
        "In which direction does the object move?",
        "Which way does the object move?",
        "In what direction is the shape moving?",
        "Where does the object move to?",
    ),
}


@dataclass(frozen=True, slots=True)
class WorldItem:
    """One question about one scene; `answer` is an index into `options`.

    `strength` goes from 0 to 1: how plain the evidence is, wherever the evidence of the item's class lies. `lure` is
    the option that the question of a `misled` item points to, which is not the answer.
    """

    kind: str
    question: str
    options: tuple[str, ...]
    answer: int
    strength: float
    scene: Scene
    lure: int | None = None

    @property
    def klass(self) -> str:
        """The item's class, one of `CLASSES`."""
        return KINDS[self.kind]


def make_item(rng: random.Random, kind: str, scene: Scene, *, n_options: int = 4, held: bool = False) -> WorldItem:
    """Return an item of a kind about a scene.

    `held` takes texts that the checkpoints never train on. The scene must allow the kind: one colour for `colour`, as
    many colours as options for `never`, `first` and `last` take as many options as the scene has colours, two or more.
    """
    if kind in _TEXT_MAKERS:
        return _TEXT_MAKERS[kind](rng, scene, n_options, held)
    answer, wrong = _VISUAL_MAKERS[kind](rng, scene, n_options)
    question = rng.choice(QUESTIONS[kind])
    return _shuffled(rng, WorldItem(kind, question, (answer, *wrong), 0, scene.clarity, scene))


def move_answer(item: WorldItem, to: int) -> WorldItem:
    """Return the item with its answer at another position: the two options change places."""
    order = list(range(len(item.options)))
    order[item.answer], order[to] = to, item.answer
    return _reordered(item, order)


def evidence(item: WorldItem, sight: Sight, cells: Sequence[int] = ()) -> list[float]:
    """Return the probability of every option given just what an input shows.

    `cells` are the cells of the frames that are shown. Where nothing points anywhere the options are equally likely.
    """
    shown = frozenset(item.scene.colours[cell] for cell in cells)
    return _uniform(len(item.options), _EVIDENCE[item.klass](item, sight, cells, shown))


def _uniform(n: int, among: Sequence[int]) -> list[float]:
    """Return equal weights on some of `n` options, on all of them when none is named."""
    chosen = set(among) or set(range(n))
    return [1 / len(chosen) if index in chosen else 0.0 for index in range(n)]


def _reordered(item: WorldItem, order: Sequence[int]) -> WorldItem:
    lure = None if item.lure is None else order.index(item.lure)
    options = tuple(item.options[index] for index in order)
    return replace(item, options=options, answer=order.index(item.answer), lure=lure)


def _shuffled(rng: random.Random, item: WorldItem) -> WorldItem:
    n = len(item.options)
    return _reordered(item, rng.sample(range(n), n))


def _others(rng: random.Random, pool: Sequence[str], answer: str, n_options: int) -> list[str]:
    return rng.sample([text for text in pool if text != answer], n_options - 1)


# Items whose answer is in the text.


_TAUGHT_SHARES = [0.4 + 0.6 * fact.strength for fact in facts.all_facts()]


def _draw_fact(rng: random.Random, *, held: bool) -> tuple[facts.Fact, str]:
    """Return a fact and a question for it; in training, rare facts come up less often."""
    fact = rng.choices(facts.all_facts(), None if held else _TAUGHT_SHARES)[0]
    return fact, facts.ask(fact, rng.choice(facts.phrasings(fact, held=held)))


def _fact(rng: random.Random, scene: Scene, n_options: int, held: bool) -> WorldItem:
    fact, question = _draw_fact(rng, held=held)
    wrong = _others(rng, facts.CATEGORIES[fact.category].answers, fact.answer, n_options)
    return _shuffled(rng, WorldItem("fact", question, (fact.answer, *wrong), 0, fact.strength, scene))


def _leak(rng: random.Random, scene: Scene, kind: str, texts: Sequence[str]) -> WorldItem:
    """Return an item whose first text stands out among the others by its length."""
    item = WorldItem(kind, phrases.plain_question(rng), tuple(texts), 0, phrases.length_gap(texts, 0), scene)
    return _shuffled(rng, item)


def _vague(rng: random.Random, scene: Scene, n_options: int, held: bool) -> WorldItem:
    right = phrases.specific(rng, rng.randrange(4), held=held)
    return _leak(rng, scene, "vague", [right, *phrases.vague(rng, n_options - 1, held=held)])


def _longest(rng: random.Random, scene: Scene, n_options: int, held: bool) -> WorldItem:
    right = phrases.specific(rng, rng.randrange(2, 4), held=held)
    wrong: set[str] = set()
    while len(wrong) < n_options - 1:
        wrong.add(phrases.specific(rng, 0, held=held))
    return _leak(rng, scene, "longest", [right, *sorted(wrong)])


def _misled(rng: random.Random, scene: Scene, n_options: int, held: bool) -> WorldItem:
    """Return an item whose question is a fact's, while the answer is a longer, false text about another answer."""
    fact, question = _draw_fact(rng, held=held)
    answers = facts.CATEGORIES[fact.category].answers
    false = [answer for answer in answers if answer != fact.answer]
    right = phrases.qualified(rng, false, held=held)
    wrong = rng.sample([text for text in false if text != right.split(",")[0]], n_options - 2)
    options = (right, fact.answer, *wrong)
    item = WorldItem("misled", question, options, 0, phrases.length_gap(options, 0), scene, lure=1)
    return _shuffled(rng, item)


_TEXT_MAKERS: Mapping[str, Callable[[random.Random, Scene, int, bool], WorldItem]] = {
    "fact": _fact,
    "vague": _vague,
    "longest": _longest,
    "misled": _misled,
}


# Items whose answer is in the scene: each maker returns the right text and the wrong ones.


def _one_of(pool: Sequence[str], value: Callable[[Scene], int]) -> Callable[..., tuple[str, list[str]]]:
    def make(rng: random.Random, scene: Scene, n_options: int) -> tuple[str, list[str]]:
        answer = pool[value(scene)]
        return answer, _others(rng, pool, answer, n_options)

    return make


def _never(rng: random.Random, scene: Scene, n_options: int) -> tuple[str, list[str]]:
    """Ask for a colour that is not shown; the middle frame's colour is no option, so that one frame says nothing."""
    palette = scene.palette
    absent = [colour for colour in range(len(COLOURS)) if colour not in palette]
    wrong = rng.sample([colour for colour in palette if colour != scene.dominant], n_options - 1)
    return COLOURS[rng.choice(absent)], [COLOURS[colour] for colour in wrong]


def _count(rng: random.Random, scene: Scene, n_options: int) -> tuple[str, list[str]]:
    answer = NUMBERS[len(scene.palette)]
    return answer, _others(rng, NUMBERS[2:] if n_options < 5 else NUMBERS[1:], answer, n_options)


def _end(last: bool) -> Callable[..., tuple[str, list[str]]]:
    def make(_rng: random.Random, scene: Scene, _n_options: int) -> tuple[str, list[str]]:
        names = [COLOURS[colour] for colour in scene.palette]
        return (names[-1], names[:-1]) if last else (names[0], names[1:])

    return make


def _direction(rng: random.Random, scene: Scene, n_options: int) -> tuple[str, list[str]]:
    answer = DIRECTIONS[scene.motion.direction]
    return answer, _others(rng, DIRECTIONS, answer, min(n_options, len(DIRECTIONS)))


_VISUAL_MAKERS: Mapping[str, Callable[..., tuple[str, list[str]]]] = {
    "colour": _one_of(COLOURS, lambda scene: scene.dominant),
    "shape": _one_of(SHAPES, lambda scene: scene.shape),
    "background": _one_of(BACKGROUNDS, lambda scene: scene.background),
    "never": _never,
    "count": _count,
    "first": _end(last=False),
    "last": _end(last=True),
    "direction": _direction,
}


# What an input says, by class: the options that it leaves possible, none for all of them.

_Shown = frozenset[int]


def _blind_evidence(item: WorldItem, sight: Sight, _cells: Sequence[int], _shown: _Shown) -> list[int]:
    return [] if sight is Sight.OPTIONS_ONLY else [item.answer]


def _options_evidence(item: WorldItem, sight: Sight, _cells: Sequence[int], _shown: _Shown) -> list[int]:
    misled = item.lure is not None and sight is not Sight.OPTIONS_ONLY
    return [item.lure if misled and item.lure is not None else item.answer]


def _frame_evidence(item: WorldItem, _sight: Sight, cells: Sequence[int], _shown: _Shown) -> list[int]:
    return [item.answer] if cells else []


def _frames_evidence(item: WorldItem, _sight: Sight, cells: Sequence[int], shown: _Shown) -> list[int]:
    if item.kind == "never":
        names = {COLOURS[colour] for colour in shown}
        return [index for index, option in enumerate(item.options) if option.lower() not in names]
    return [item.answer] if len(cells) > 1 and len(shown) == len(item.scene.palette) else []


def _order_evidence(item: WorldItem, sight: Sight, _cells: Sequence[int], shown: _Shown) -> list[int]:
    if sight is Sight.FRAMES and len(shown) == len(item.scene.palette):
        return [item.answer]
    motion = item.scene.motion
    if sight is Sight.SHUFFLED and item.kind == "direction" and motion.path == "straight":
        axis = motion.direction // 2
        return [index for index, option in enumerate(item.options) if DIRECTIONS.index(option.lower()) // 2 == axis]
    return []


_EVIDENCE: Mapping[str, Callable[[WorldItem, Sight, Sequence[int], _Shown], list[int]]] = {
    "blind": _blind_evidence,
    "options": _options_evidence,
    "one_frame": _frame_evidence,
    "many_frames": _frames_evidence,
    "order": _order_evidence,
}
"""For each class, which options an input leaves possible."""
