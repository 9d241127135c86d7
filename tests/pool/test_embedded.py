"""Options cut out of a text: every style, and what is no option."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.embedded import cut
from benchcheck.screen.prompts import LETTERS

LINED = {
    "(A) x": "({}) {}",
    "A. x": "{}. {}",
    "A.x": "{}.{}",
    "A) x": "{}) {}",
    "A: x": "{}: {}",
    "[A] x": "[{}] {}",
    "Sentence A: x": "Sentence {}: {}",
    "Caption A: x": "Caption {}: {}",
    "option A) x": "option {}) {}",
}
INLINE = ("(A) x", "A. x", "A) x", "A: x", "Sentence A: x", "Caption A: x")
PHRASE = st.text(alphabet="klmn op,?)('\u4e2d", min_size=1, max_size=12).map(str.strip).filter(bool)
PHRASES = st.lists(PHRASE, min_size=2, max_size=8)


def halves(text: str) -> tuple[str, tuple[str, ...]]:
    """The question and the bare options."""
    found = cut(text)
    return found.question, found.texts


@pytest.mark.parametrize(
    ("text", "question", "options"),
    [
        ("Which?\n(A) x\n(B) y) z\n(C) w", "Which?", ("x", "y) z", "w")),
        ("Which?\nA. L. Pasteur and R. Koch.\nB. M. Curie", "Which?", ("L. Pasteur and R. Koch.", "M. Curie")),
        (
            "Q? A. L. Pasteur and R. Koch. B. M. Curie. C. E. Fermi",
            "Q?",
            ("L. Pasteur and R. Koch.", "M. Curie.", "E. Fermi"),
        ),
        ("Which? A. x B. y C. z", "Which?", ("x", "y", "z")),
        ("Which?(A)x(B)y", "Which?", ("x", "y")),
        ("Which?\nA. x      B. y", "Which?", ("x", "y")),
        ("Which?\nA. x B. y\nC. z D. w", "Which?", ("x", "y", "z", "w")),
        ("Which?\nA. x\nB. y   C. z", "Which?", ("x", "y", "z")),
        ("Which?\nA. Kennedy, J. F.\nB. Franklin C. Roosevelt", "Which?", ("Kennedy, J. F.", "Franklin C. Roosevelt")),
        ("Which?\na) x\nb) y", "Which?", ("x", "y")),
        ("Which?\n A. x\r\n\tB. y\r\n", "Which?", ("x", "y")),
        ("Which?\nOptions:\nA. x\nB. y", "Which?", ("x", "y")),
        ("Which?\nA. x\nof two lines\nB. y", "Which?", ("x\nof two lines", "y")),
        ("Which?\nA.\nB. y", "Which?", ("", "y")),
        ("A. x\nB. y", "", ("x", "y")),
        ("A: hi\nB: ho\nWho is late?\nA. x\nB. y", "A: hi\nB: ho\nWho is late?", ("x", "y")),
        ("1. cut\n2. cook\nWhich order?\nA. 1-2\nB. 2-1", "1. cut\n2. cook\nWhich order?", ("1-2", "2-1")),
        ("Which?\nOption 1: x\nOption 2: y", "Which?", ("x", "y")),
        ("Which? Option 1: x Option 2: y", "Which?", ("x", "y")),
        ("\u54ea\u4e2a\uff1f\n\uff21\uff0e\u7ea2\n\uff22\uff1a\u7eff", "\u54ea\u4e2a\uff1f", ("\u7ea2", "\u7eff")),
        ("\uff08A\uff09x\uff08B\uff09y", "", ("x", "y")),
        ("What is vitamin A. Who knows?", "What is vitamin A. Who knows?", ()),
        ("1. x\n2. y", "1. x\n2. y", ()),
        ("Option 0: x Option 27: y", "Option 0: x Option 27: y", ()),
        ("", "", ()),
        ("Who? A. A. L. Pasteur B. B. Obama C. nobody", "Who?", ("A. L. Pasteur", "B. Obama", "nobody")),
        ("Kim?\n\u0130. x\n\u0131) y", "Kim?\n\u0130. x\n\u0131) y", ()),  # Turkish i: letters, and no labels
    ],
)
def test_cut(text: str, question: str, options: tuple[str, ...]) -> None:
    assert halves(text) == (question, options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Which?\nA. x\nB. y\nD. z", "the letter C is missing before D"),
        ("Which? (A) x (B) y (D) z", "the letter C is missing before D"),
        ("Which? A. John B. Smith B. Jane", "the letter B stands twice"),
        ("Which?\nA. x\nC) y", "have the letters A, C"),
        ("Is it (A) or (B)? A) left B) right", "can be cut in two ways"),
        ("Which? A. 2 B. line A. x B. y C. 3", "the letters A and B stand twice"),
    ],
)
def test_letters_with_a_hole_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cut(text)


def test_long_texts_end() -> None:
    """Written so that an expression which tries every way to share out the spaces would run for hours."""
    spaces, lines = " " * 200_000, "\n" * 200_000
    for gap in (spaces, lines, f"option{spaces}" * 2, f"{spaces}C"):
        question, options = halves(f"Which? {gap}\nA. x\nB. y{gap}")
        assert (question.split()[0], options[0]) == ("Which?", "x")


def test_labels() -> None:
    assert cut("q\nb\n(a) x\n(b) y").labels == ("A", "B")
    assert cut("q\nOption 1: x\nOption 2: y").labels == ("1", "2")


@given(st.sampled_from(sorted(LINED)), PHRASES)
def test_options_on_lines_come_back(style: str, texts: list[str]) -> None:
    lines = [LINED[style].format(letter, text) for letter, text in zip(LETTERS, texts, strict=False)]
    assert halves("\n".join(["Which is it?", *lines])) == ("Which is it?", tuple(texts))


@given(st.sampled_from(INLINE), PHRASES)
def test_options_on_one_line_come_back(style: str, texts: list[str]) -> None:
    parts = [LINED[style].format(letter, text) for letter, text in zip(LETTERS, texts, strict=False)]
    assert halves(" ".join(["Which is it?", *parts])) == ("Which is it?", tuple(texts))


@given(PHRASES)
def test_numbered_options_come_back(texts: list[str]) -> None:
    lines = [f"Option {number}: {text}" for number, text in enumerate(texts, 1)]
    assert halves("\n".join(["Which is it?", *lines])) == ("Which is it?", tuple(texts))


@given(st.text(alphabet="ABCabc12. :)(\n\uff21\uff0eOption", max_size=60))
def test_no_text_crashes_and_nothing_is_lost(text: str) -> None:
    with contextlib.suppress(ValueError):
        found = cut(text)
        assert len(found.texts) == len(found.labels) != 1
        assert found.texts or found.question == text
        assert all(part in text for part in found.texts)
