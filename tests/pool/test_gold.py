"""Which option is right, or why nobody can say."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.gold import Gold, MappedGold, map_gold, other_option
from benchcheck.pool.options import RawOptions

ABC = ["red", "green", "blue"]
NUMBERS = ["2", "1", "3"]


def mapped(kind: str, value: Any, values: list, labels: tuple[str, ...] = (), base: int = 0) -> int | str:
    """The index, or the code."""
    raw = RawOptions(tuple(values), labels, ("", "N/A"))
    found = map_gold(Gold(kind=kind, field="answer", base=base), value, raw)
    assert (found.index is None) != (found.code == "")
    return found.code if found.index is None else found.index


@pytest.mark.parametrize(
    ("value", "values", "base", "expected"),
    [
        (2, ABC, 0, 2),
        ("2", ABC, 0, 2),
        (2.0, ABC, 0, 2),
        (" 1 ", ABC, 1, 0),
        (3, ABC, 1, 2),
        (3, ABC, 0, "gold_out_of_range"),
        (0, ABC, 1, "gold_out_of_range"),
        (-2, ABC, 0, "gold_out_of_range"),
        (-1, ABC, 0, "hidden_gold"),
        ("-1", ABC, 1, "hidden_gold"),
        (None, ABC, 0, "hidden_gold"),
        ("NA", ABC, 0, "hidden_gold"),
        ("red", ABC, 0, "gold_not_among_options"),
        (True, ABC, 0, "gold_not_among_options"),
        (1.5, ABC, 0, "gold_not_among_options"),
        (math.inf, ABC, 0, "gold_not_among_options"),
        ([1], ABC, 0, 1),
        ([0, 2], ABC, 0, "several_gold"),
        ([2, 0, 1], ABC, 0, "gold_is_order"),
        ("0, 2", ABC, 0, "several_gold"),
        (0, [], 0, "gold_out_of_range"),
        (1, ["x", "", "z"], 0, "gold_is_filler"),
        (2, ["x", "", "z"], 0, 2),
    ],
)
def test_index(value: Any, values: list, base: int, expected: int | str) -> None:
    assert mapped("index", value, values, base=base) == expected


@pytest.mark.parametrize(
    ("value", "values", "labels", "expected"),
    [
        ("C", ABC, (), 2),
        ("c", ABC, (), 2),
        ("(C)", ABC, (), 2),
        (" C. ", ABC, (), 2),
        ("D", ABC, (), "gold_out_of_range"),
        ("green", ABC, (), "gold_not_among_options"),
        ("C. blue", ABC, (), 2),
        ("C. Blue ", ["A. red", "B. green", "C. blue"], (), 2),
        ("C. green", ABC, (), "gold_not_among_options"),
        ("C", ["x", "z"], ("A", "C"), 1),
        ("B", ["x", "z"], ("A", "C"), "gold_out_of_range"),
        ("c", ["x", "z"], ("a", "c"), 1),
        ("a1", ["x", "y"], ("a0", "a1"), 1),
        ("B", ["x", "y"], ("a0", "a1"), 1),
        # a list whose letters run A B D C: C is the third by place, the fourth by its prefix
        ("C", ["A. w", "B. x", "D. y", "C. z"], (), "gold_ambiguous"),
        ("B", ["A. w", "B. x", "D. y", "C. z"], (), 1),
        ("B", ["x", "N/A", "z"], (), "gold_is_filler"),
        ("", ABC, (), "hidden_gold"),
    ],
)
def test_letter(value: Any, values: list, labels: tuple[str, ...], expected: int | str) -> None:
    assert mapped("letter", value, values, labels) == expected


@pytest.mark.parametrize(
    ("value", "values", "expected"),
    [
        ("green", ABC, 1),
        (" Green", ABC, 1),
        ("C", ["A", "C"], 1),
        ("teal", ABC, "gold_not_among_options"),
        ("happy", ["happy", "sad", "happy"], "gold_matches_two_options"),
        ("happy", ["happy", "sad", "Happy"], 0),
        ("HAPPY", ["happy", "sad", "Happy"], "gold_matches_two_options"),
        ("green", ["A. red", "B. green"], 1),
        ("B. green", ["A. red", "B. green"], 1),
        ("B. green", ["red", "green"], 1),
        ("A. green", ["red", "green"], "gold_not_among_options"),
        (1, [1, 2, 3, 0], 0),
        ("1", [1, 2, 3, 0], 0),
        ("None", ["None", "one"], 0),
        ("none", ["x", "y"], "hidden_gold"),
        ("None", ["none", "one"], 0),
        ("N/A", ["x", "N/A"], "hidden_gold"),
        ("", ["x", "", "z"], "hidden_gold"),
        ("?", ["x", "?"], 1),
        ("5", ["x", "y"], "gold_not_among_options"),
        ("x26", [f"x{number}" for number in range(30)], 26),
    ],
)
def test_text(value: Any, values: list, expected: int | str) -> None:
    assert mapped("text", value, values) == expected


@pytest.mark.parametrize(
    ("value", "values", "labels", "expected"),
    [
        (1, ABC, (), 1),
        ("1", ABC, (), 1),
        ("B", ABC, (), 1),
        ("(b)", ABC, (), 1),
        ("blue", ABC, (), 2),
        ("B. green", ABC, (), 1),
        # a number beside texts is an index; a text is both, and both must agree
        (1, NUMBERS, (), 1),
        ("1", NUMBERS, (), 1),
        ("2", NUMBERS, (), "gold_ambiguous"),
        ("0", NUMBERS, (), 0),
        ("7", ["5", "7"], (), 1),
        # numbers beside numbers: VLM4D answers 1 where the options are 1, 2, 3, 0
        (1, [1, 2, 3, 0], (), "gold_ambiguous"),
        (3, [1, 2, 3, 3], (), "gold_matches_two_options"),
        (9, [1, 9], (), 1),
        # a letter that is an option's text: Video-MME 840-2
        ("B", ["A. A", "B. F", "C. B"], (), "gold_ambiguous"),
        ("B", ["B", "A"], (), "gold_ambiguous"),
        ("B", ["A", "B"], (), 1),
        ("yes", ["yes", "Yes", "yes"], (), "gold_matches_two_options"),
        ("F", ABC, (), "gold_out_of_range"),
        (5, ABC, (), "gold_out_of_range"),
        (-1, ABC, (), "hidden_gold"),
        (None, ABC, (), "hidden_gold"),
        ("teal", ABC, (), "gold_not_among_options"),
        ("option_1", ABC, ("option_0", "option_1", "option_2"), 1),
        ("1", ["x", "y"], ("1", "2"), "gold_ambiguous"),
    ],
)
def test_auto(value: Any, values: list, labels: tuple[str, ...], expected: int | str) -> None:
    assert mapped("auto", value, values, labels) == expected


def test_a_hidden_test_set_is_declared() -> None:
    assert map_gold(Gold(kind="none"), "A", RawOptions(("x", "y"))) == MappedGold(code="hidden_gold")


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("Took the food.", 0, 1),
        ("took  THE food.", 0, 1),
        ("Put it down.", 0, None),
        ("paraphrase", 0, None),
        (None, 0, None),
    ],
)
def test_other_option(text: str | None, index: int, expected: int | None) -> None:
    assert other_option(text, index, RawOptions(("Put it down.", "Took the food."))) == expected


def test_a_text_that_stands_twice_contradicts_no_index_of_it() -> None:
    assert other_option("x", 1, RawOptions(("x", "X", "y"))) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "permutation"}, "Allowed: auto, index, letter, text, first, last, per_choice, order, none"),
        ({"kind": "index"}, "needs field"),
        ({"kind": "index", "field": "a", "base": 2}, "Allowed: 0 or 1"),
    ],
)
def test_gold_refuses_what_cannot_be_read(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gold(**settings)


OPTION = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["A", "B. x", "N/A", "1", "C. "]), st.integers(0, 5))


@given(
    st.sampled_from(["auto", "index", "letter", "text"]),
    st.one_of(OPTION, st.floats(), st.booleans(), st.binary(max_size=3), st.lists(st.integers(), max_size=2)),
    st.lists(OPTION, max_size=30),
)
def test_a_gold_is_an_option_or_has_a_code(kind: str, value: Any, values: list) -> None:
    raw = RawOptions(tuple(values), (), ("", "N/A"))
    found = map_gold(Gold(kind=kind, field="answer"), value, raw)
    assert (found.index is None) != (found.code == "")
    assert found.index is None or found.index in raw.kept
