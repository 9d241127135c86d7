"""Option texts: held-out ones are never taught, and longer ones are longer."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.demo import facts, phrases


def _texts(seed: int, *, held: bool) -> set[str]:
    rng = random.Random(seed)
    texts = {phrases.specific(rng, n % 4, held=held) for n in range(400)}
    colours = facts.CATEGORIES["colour"].answers
    texts |= {phrases.qualified(rng, rng.sample(colours, 6), held=held) for _ in range(600)}
    return texts.union(*(phrases.vague(rng, 4, held=held) for _ in range(100)))


def test_no_text_is_both_held_out_and_taught() -> None:
    assert not _texts(1, held=True) & _texts(2, held=False)


@given(st.integers(), st.booleans())
def test_details_make_a_sentence_longer(seed: int, held: bool) -> None:
    words = [len(phrases.specific(random.Random(seed), extras, held=held).split()) for extras in (0, 2, 3)]
    assert words == sorted(set(words))


def test_vague_texts_differ() -> None:
    assert len(set(phrases.vague(random.Random(0), 5, held=True))) == 5


def test_a_qualified_answer_starts_with_an_answer() -> None:
    text = phrases.qualified(random.Random(0), ["red", "blue"], held=True)
    assert text.split(",")[0] in ("red", "blue")
    assert len(text.split()) > 3


def test_plain_questions_ask_something() -> None:
    assert phrases.plain_question(random.Random(0)).endswith("?")


@pytest.mark.parametrize(
    ("options", "answer", "gap"),
    [
        (("a b c d e", "a", "b"), 0, 0.5),
        (("a", "a b c d e", "b"), 0, 0.0),
        (("a", "b c d e f g h i j k l"), 1, 1.0),
    ],
)
def test_the_gap_is_counted_in_words(options: tuple[str, ...], answer: int, gap: float) -> None:
    assert phrases.length_gap(options, answer) == gap


def test_every_category_has_held_out_texts_whichever_answer_is_the_true_one() -> None:
    for category in facts.CATEGORIES.values():
        for answer in category.answers:
            others = [other for other in category.answers if other != answer]
            assert phrases.qualified(random.Random(0), others, held=True)
