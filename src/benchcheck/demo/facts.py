"""A closed set of facts and the ways to ask for them: what the `blind` class of the world is made of. Pure.

Every fact is asked in six phrasings. Two of them, different ones from fact to fact, are held out: the checkpoints never
train on these pairs, and the controls use nothing else.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

__all__ = ["CATEGORIES", "Category", "Fact", "all_facts", "ask", "phrasings"]

N_PHRASINGS = 6
HELD_DISTANCE = 3
"""The two held-out phrasings of a fact are this far apart in its category's list."""


@dataclass(frozen=True, slots=True)
class Category:
    """Questions of one kind: the phrasings (`{s}` the subject, `{S}` with a capital) and subjects by answer."""

    phrasings: tuple[str, ...]
    subjects: Mapping[str, tuple[str, ...]]

    @property
    def answers(self) -> tuple[str, ...]:
        """Every answer of the category; wrong options are drawn from these."""
        return tuple(self.subjects)


@dataclass(frozen=True, slots=True)
class Fact:
    """One subject and its answer."""

    category: str
    subject: str
    answer: str

    @property
    def digest(self) -> int:
        """A number that is fixed by the fact and otherwise arbitrary."""
        text = f"{self.category}|{self.subject}|{self.answer}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    @property
    def strength(self) -> float:
        """How well known the fact is, from 0 (rare) to 1; a rare fact is trained less often and less surely."""
        return (self.digest % 1009) / 1008


CATEGORIES: Mapping[str, Category] = {
    "colour": Category(
        (
            "What color is {s}?",
            "Which color does {s} usually have?",
            "What is the typical color of {s}?",
            "{S} is usually which color?",
            "Name the usual color of {s}.",
            "In most cases, what colour would {s} be?",
        ),
        {
            "yellow": ("a ripe banana", "a lemon", "a sunflower", "a baby chick", "a canary"),
            "green": ("fresh grass", "a frog", "a cucumber", "broccoli", "a pea"),
            "blue": ("the clear sky", "the deep ocean", "a sapphire"),
            "white": ("fresh snow", "milk", "a polar bear", "salt", "a swan"),
            "black": ("coal", "a raven", "tar"),
            "red": ("a ripe tomato", "a strawberry", "a fire truck", "human blood", "a ruby"),
            "orange": ("a carrot", "a pumpkin", "a basketball"),
            "pink": ("a flamingo", "a pig", "cotton candy"),
            "purple": ("an eggplant", "a violet flower", "a grape"),
            "brown": ("chocolate", "tree bark", "roasted coffee"),
            "gray": ("an elephant", "ash", "a dolphin"),
        },
    ),
    "capital": Category(
        (
            "What is the capital of {s}?",
            "Which city is the capital of {s}?",
            "{S} has which capital city?",
            "Name the capital city of {s}.",
            "The government of {s} sits in which city?",
            "Which city would you find on a map as the capital of {s}?",
        ),
        {
            "Paris": ("France",),
            "Rome": ("Italy",),
            "Madrid": ("Spain",),
            "Berlin": ("Germany",),
            "Tokyo": ("Japan",),
            "Cairo": ("Egypt",),
            "Athens": ("Greece",),
            "Moscow": ("Russia",),
            "Beijing": ("China",),
            "Oslo": ("Norway",),
            "Warsaw": ("Poland",),
            "Lima": ("Peru",),
            "Vienna": ("Austria",),
            "Lisbon": ("Portugal",),
        },
    ),
    "sound": Category(
        (
            "What sound does {s} make?",
            "Which sound is typical of {s}?",
            "What does {s} do to make noise?",
            "How does {s} sound?",
            "Name the sound of {s}.",
            "When {s} makes itself heard, what does it do?",
        ),
        {
            "bark": ("a dog", "a puppy"),
            "meow": ("a cat", "a kitten"),
            "moo": ("a cow",),
            "quack": ("a duck",),
            "roar": ("a lion", "a tiger"),
            "neigh": ("a horse",),
            "buzz": ("a bee", "a mosquito"),
            "hiss": ("a snake",),
            "howl": ("a wolf",),
            "oink": ("a hog",),
        },
    ),
    "legs": Category(
        (
            "How many legs does {s} have?",
            "What is the number of legs of {s}?",
            "{S} walks on how many legs?",
            "Count the legs of {s}.",
            "How many legs are there on {s}?",
            "If you look at {s}, how many legs do you count?",
        ),
        {
            "eight": ("a spider", "a scorpion"),
            "six": ("an ant", "a beetle", "a fly"),
            "four": ("a dog", "a horse", "a table"),
            "two": ("a chicken", "a human", "an eagle"),
            "zero": ("a snake", "a worm", "a fish"),
        },
    ),
    "young": Category(
        (
            "What is a young {s} called?",
            "What do you call a baby {s}?",
            "Which word names the young of a {s}?",
            "A baby {s} is called what?",
            "Name the young of a {s}.",
            "Which word do farmers use for a newborn {s}?",
        ),
        {
            "puppy": ("dog",),
            "kitten": ("cat",),
            "calf": ("cow", "whale"),
            "lamb": ("sheep",),
            "foal": ("horse",),
            "cub": ("bear", "lion"),
            "piglet": ("pig",),
            "chick": ("hen",),
            "fawn": ("deer",),
        },
    ),
    "opposite": Category(
        (
            "What is the opposite of {s}?",
            "Which word is the opposite of {s}?",
            "{S} is the contrary of what?",
            "Name the opposite of {s}.",
            "Which word means the reverse of {s}?",
            "If something is not {s}, then what is it?",
        ),
        {
            "cold": ("hot",),
            "small": ("big",),
            "slow": ("fast",),
            "dark": ("bright",),
            "wet": ("dry",),
            "soft": ("hard",),
            "old": ("young",),
            "low": ("high",),
            "empty": ("full",),
            "weak": ("strong",),
            "late": ("early",),
            "poor": ("rich",),
        },
    ),
    "next day": Category(
        (
            "Which day comes after {s}?",
            "What day follows {s}?",
            "If today is {s}, which day is tomorrow?",
            "Name the day after {s}.",
            "The day right after {s} is which one?",
            "When {s} is over, which day begins?",
        ),
        {
            "Tuesday": ("Monday",),
            "Wednesday": ("Tuesday",),
            "Thursday": ("Wednesday",),
            "Friday": ("Thursday",),
            "Saturday": ("Friday",),
            "Sunday": ("Saturday",),
            "Monday": ("Sunday",),
        },
    ),
    "use": Category(
        (
            "What is {s} used for?",
            "Which job is {s} made for?",
            "People use {s} for what?",
            "Name the use of {s}.",
            "What do you do with {s}?",
            "For which task would someone take {s}?",
        ),
        {
            "cutting wood": ("a saw", "an axe"),
            "driving nails": ("a hammer",),
            "writing": ("a pen", "a pencil"),
            "cleaning teeth": ("a toothbrush",),
            "sweeping floors": ("a broom",),
            "telling time": ("a clock", "a watch"),
            "eating soup": ("a spoon",),
            "taking photos": ("a camera",),
            "opening locks": ("a key",),
            "digging holes": ("a shovel",),
        },
    ),
}


@cache
def all_facts() -> tuple[Fact, ...]:
    """Return every fact, in the order of the tables."""
    return tuple(
        Fact(name, subject, answer)
        for name, category in CATEGORIES.items()
        for answer, subjects in category.subjects.items()
        for subject in subjects
    )


def phrasings(fact: Fact, *, held: bool) -> tuple[int, ...]:
    """Return the numbers of the fact's phrasings that are held out of training, or of those that are not."""
    first = fact.digest % N_PHRASINGS
    held_out = {first, (first + HELD_DISTANCE) % N_PHRASINGS}
    return tuple(n for n in range(N_PHRASINGS) if (n in held_out) == held)


def ask(fact: Fact, phrasing: int) -> str:
    """Return the question for a fact in one phrasing."""
    subject = fact.subject
    return CATEGORIES[fact.category].phrasings[phrasing].format(s=subject, S=subject[0].upper() + subject[1:])
