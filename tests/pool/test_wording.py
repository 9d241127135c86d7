"""Notes that an item's texts call for."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.fields import fold
from benchcheck.pool.issues import ISSUES, Issue, blocking
from benchcheck.pool.wording import text_issues

PLAIN = ("share with the girl", "approach the lady", "unwrap it", "play with a toy train")


def issues(question: str, options: Sequence[str], gold: int | None) -> list[Issue]:
    return text_issues(fold(question), [fold(option) for option in options], gold)


def codes(question: str, options: Sequence[str] = PLAIN, gold: int | None = 2) -> list[str]:
    return [issue.code for issue in issues(question, options, gold)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Why did the boy pick up one present?", []),
        ("Whose previous question was this?", ["needs_previous_item"]),
        ("See the question above. Who wins?", ["needs_previous_item"]),
        ("Who answers a question?", []),
        ("What does he do after the first question?", []),
        ("Who is the man mentioned in the first question?", ["needs_previous_item"]),
        ("What is the score of the team that the third question refers to?", ["needs_previous_item"]),
        ("What is the score at 1:05:07.5?", ["time_in_question"]),
        ("Who leads 21:75 now?", []),
        ("What happens at the 5th second?", ["time_in_question"]),
        ("What happens after 2 minutes?", ["time_in_question"]),
        ("How many of the 3 men run 100 metres?", []),
        ("Does he wait 5 seconds?", []),
        ("Which dialogue fits?", ["speech_in_question"]),
        ("What does the essay show?", []),
        ("What is in <video 2> and <frame>?", ["media_placeholder"]),
        ("Is 1 < 2 in this?", []),
        ("What is \u4e2d\u6587?", []),
        ("What is here\ufffd?", ["bad_text"]),
        ("Does he unwrap it?", ["answer_in_question"]),
        ("Does he unwrap item 3?", []),
        ("Does he unwrap it, or play with a toy train?", []),
        ("Who said 'the last question' at 0:15?", ["needs_previous_item", "time_in_question", "speech_in_question"]),
    ],
)
def test_questions(question: str, expected: list[str]) -> None:
    assert codes(question) == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("none of the above", ["option_about_options"]),
        ("All the above.", ["option_about_options"]),
        ("any of these answers is correct", ["option_about_options"]),
        ("neither", ["option_about_options"]),
        ("A and C", ["option_about_options"]),
        ("Both (B) & (C)", ["option_about_options"]),
        ("option a or b", ["option_about_options"]),
        ("none of them wave", []),
        ("all of the men", []),
        ("a and so on", []),
        ("Both men", []),
        ("H and G", []),
        ("both bands", []),
        ("Corb", []),
        ("two options for the same exercise", []),
        ("none of these people", []),
        ("Not sure", ["abstention_option"]),
        ("I'm not sure.", ["abstention_option"]),
        ("do not know what is going on", ["abstention_option"]),
        ("It cannot be determined from the video", ["abstention_option"]),
        ("It's impossible to tell", ["abstention_option"]),
        ("unclear", ["abstention_option"]),
        ("I don\u2019t know", ["abstention_option"]),
        ("Not enough information in the scene to answer", ["abstention_option"]),
        ("unclear water", []),
        ("do not touch", []),
        ("(b)", ["letter_like_option"]),
        ("C.", ["letter_like_option"]),
        ("E", []),
        ("", []),
        ("<image 3>", ["media_placeholder"]),
    ],
)
def test_options(option: str, expected: list[str]) -> None:
    assert codes("What is it?", (option, "one thing", "another thing"), None) == expected


def test_equal_options() -> None:
    texts = ("red", "Red ", "blue")
    assert codes("Which?", texts, None) == ["duplicate_options"]
    assert codes("Which?", texts, 2) == ["duplicate_options"]
    assert codes("Which?", texts, 1) == ["duplicate_options", "duplicate_gold"]


def test_an_answer_of_signs_is_not_in_the_question() -> None:
    assert codes("What is -> here?", ("->", "<-"), 0) == []


def test_the_detail_shows_what_was_found() -> None:
    found = issues("Who said it at 0:15?", ("Not sure", "a\u200bb"), 0)
    assert [issue.detail for issue in found] == ["'0:15'", "'said'", "'not sure'", "U+200B"]


@given(st.text(max_size=40), st.lists(st.text(max_size=8), max_size=5), st.data())
def test_no_text_crashes_and_nothing_blocks(question: str, options: list[str], data: st.DataObject) -> None:
    gold = data.draw(st.sampled_from([None, *range(len(options))]))
    found = codes(question, options, gold)
    assert set(found) <= set(ISSUES)
    assert not any(map(blocking, found))
