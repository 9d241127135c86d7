"""Golden cases of protocol 1, and what a prefix strip may and may not do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.items import Item, VideoRef, item_text, split_prefix, strip_letter_prefix
from benchcheck.screen.prompts import LETTERS

WORDS = st.text(alphabet="abc ABC.():[]\n\u4e2d\u00a0", max_size=12)


@pytest.mark.shared
def test_golden_strip_letter_prefix(golden) -> None:
    for case in golden["strip_letter_prefix"]:
        assert strip_letter_prefix(case["options"]) == (case["texts"], case["stripped"])


@pytest.mark.shared
def test_golden_item_text(golden) -> None:
    for case in golden["item_text"]:
        assert item_text(case["question"], case["options"]) == case["text"]


@pytest.mark.shared
def test_golden_video_key(golden) -> None:
    for case in golden["video_key"]:
        ref = VideoRef(**case["ref"])
        assert (ref.key, ref.video_id) == (case["key"], case["video_id"])


@given(st.lists(WORDS, min_size=2, max_size=26))
def test_a_prefix_that_was_put_on_comes_off_once(bare: list[str]) -> None:
    lettered = [f"{letter}. {text}" for letter, text in zip(LETTERS, bare, strict=False)]
    assert strip_letter_prefix(lettered) == ([text.strip() for text in bare], True)


@given(st.lists(WORDS, max_size=30))
def test_texts_that_are_not_stripped_stay_as_they_are(texts: list[str]) -> None:
    found, stripped = strip_letter_prefix(texts)
    assert stripped or found == texts
    assert len(found) == len(texts)


def test_more_than_26_options_are_never_stripped() -> None:
    texts = [f"{letter}. x" for letter in LETTERS] + ["A. x"]
    assert strip_letter_prefix(texts) == (texts, False)


def test_a_long_run_of_blanks_takes_no_time() -> None:
    text = "A. x" + " " * 200_000 + "y"
    assert strip_letter_prefix([text, "B. z"])[0][0] == text[3:]


def test_split_prefix() -> None:
    texts = ["A. x", "(b) y", "D: z ", "\uff23\uff0e w", "plain ", "E"]
    found = [("A", "x"), ("B", "y"), ("D", "z"), ("C", "w"), ("", "plain "), ("", "E")]
    assert [split_prefix(text) for text in texts] == found


def test_the_digest_is_over_what_is_shown_and_the_frames_key_over_what_is_seen() -> None:
    item = Item("b_0", "b", "s", "q", ("x", "y"), 0, "mcq", "r::::m", "k:00")
    window = Item("b_0", "b", "s", "q", ("x", "y"), 0, "mcq", "r::::m", "k:00", start=1.5, end=60.019)
    assert item.digest != window.digest
    assert (item.frames_key, window.frames_key) == ("k:00", "k:00@1500-60019")
