"""Which option is right, or why nobody can say."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.gold import Gold, MappedGold, map_gold, other_option
from benchcheck.pool.raw import RawOptions, settled

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
        # what folds to i, s and k without being a letter of A to Z
        *((letter, ABC, (), "gold_not_among_options") for letter in "\u0130\u0131\u017f\u212a"),
        ("Sentence \u0130: red", ABC, (), "gold_not_among_options"),
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


@pytest.mark.parametrize(
    ("gold", "value", "values", "expected"),
    [
        (Gold(kind="first"), None, ["x", "y"], 0),
        (Gold(kind="last"), None, ["x", "y"], 1),
        (Gold(kind="last"), None, ["x", ""], "gold_is_filler"),
        (Gold(kind="first"), None, [], "gold_out_of_range"),
        (Gold(kind="order", field="a"), [0, 1], ["x", "y"], "gold_is_order"),
        (Gold(kind="letter", field="a"), "BA", ["x", "y"], "gold_is_order"),
        (Gold(kind="letter", field="a"), "AB", ["x", "y"], "several_gold"),
        (Gold(kind="letter", field="a"), "A and B", ["x", "y", "z"], "several_gold"),
        (Gold(kind="letter", field="a"), "['A', 'C']", ["x", "y", "z"], "several_gold"),
        (Gold(kind="letter", field="a"), "AD", ["x", "y", "z"], "gold_not_among_options"),
        (Gold(kind="letter", field="a"), "AA", ["x", "y", "z"], "gold_not_among_options"),
        (Gold(kind="letter", field="a"), [["A"], "B"], ["x", "y", "z"], "gold_not_among_options"),
        (Gold(kind="letter", field="a"), "option c", ["x", "y", "z"], 2),
        (Gold(kind="letter", field="a"), "\uff08\uff23\uff09", ["x", "y", "z"], 2),
        (Gold(kind="letter", field="a"), "\uff22\uff1ay", ["x", "y", "z"], 1),
        (Gold(kind="letter", field="a"), "B", ["A. x", "y", "A. z", "D. w"], 1),
        (Gold(kind="letter", field="a"), "C", ["A. x", "y", "B. z", "D. w"], "gold_out_of_range"),
        (Gold(kind="letter", field="a"), "B", ["I. Newton", "N. Bohr", "M. Curie"], 1),
        (Gold(kind="letter", field="a"), "C", ["A. x", "", "B. y"], "gold_out_of_range"),
        (Gold(kind="text", field="a"), ["red", "blue"], ["red", "blue", "grey"], "several_gold"),
        (Gold(kind="text", field="a"), "red, blue", ["red", "blue", "grey"], "gold_not_among_options"),
        (Gold(kind="text", field="a"), ["a", "b"], [["b", "a"], ["a", "b"]], 1),
        (Gold(kind="text", field="a"), "Caption B: blue", ["red", "blue"], 1),
        (Gold(kind="text", field="a"), "Option 2: BLUE", ["A. red", "B. blue"], 1),
        (Gold(kind="text", field="a"), "Sentence A: blue", ["red", "blue"], "gold_ambiguous"),
        (Gold(kind="text", field="a"), "Sentence D: blue", ["red", "blue"], 1),
        (Gold(kind="text", field="a"), "Sentence A: grey", ["red", "blue"], "gold_not_among_options"),
        (Gold(kind="text", field="a"), "N/A", ["red", "N/A"], "hidden_gold"),
        (Gold(kind="auto", field="a"), "x", ["A. x", "B. X"], 0),
        (Gold(kind="text", field="a"), "x", ["A. x", "B. x"], "gold_matches_two_options"),
        (Gold(kind="auto", field="a"), "B", ["B", "x"], "gold_ambiguous"),
    ],
)
def test_further_kinds_and_forms(gold: Gold, value: Any, values: list, expected: int | str) -> None:
    found = map_gold(gold, value, RawOptions(tuple(values), (), ("", "N/A")))
    assert (found.code if found.index is None else found.index) == expected


def test_fillers_among_lettered_columns_move_no_letter() -> None:
    raw = RawOptions(("A. x", "", "B. y"), ("a0", "a1", "a2"))
    assert map_gold(Gold(kind="letter", field="a"), "B", raw).index == 2
    by_key = RawOptions(("A. x", "", "C. y"), ("A", "B", "C"))
    assert map_gold(Gold(kind="letter", field="a"), "c", by_key).index == 2


@pytest.mark.parametrize("kind", ["auto", "letter", "text", "index"])
def test_long_golds_end(kind: str) -> None:
    """Written so that an expression which tries every way to share out the spaces would run for hours."""
    for value in ("a" + " " * 200_000 + "b", " " * 200_000 + "ab", "A, " * 70_000, ["A"] * 70_000):
        found = map_gold(Gold(kind=kind, field="a"), value, RawOptions(("x", "y")))
        assert found.code == "gold_not_among_options"


@pytest.mark.parametrize(
    ("right", "marks", "expected"),
    [
        ("correct", ["wrong", "Correct "], 1),
        ("correct", [False, True], 1),
        ("1", [0, 1], 1),
        ("correct", ["correct", "correct"], "several_gold"),
        ("correct", ["wrong", "wrong"], "gold_not_among_options"),
        ("correct", [None, None], "hidden_gold"),
    ],
)
def test_choices_that_are_marked(right: str, marks: list, expected: int | str) -> None:
    records = tuple({"text": f"x{place}", "mark": mark} for place, mark in enumerate(marks))
    raw = RawOptions(("x0", "x1"), records=records)
    found = map_gold(Gold(kind="per_choice", field="mark", right=right), None, raw)
    assert (found.code if found.index is None else found.index) == expected
    bare = map_gold(Gold(kind="per_choice", field="mark"), None, RawOptions(("x0", "x1")))
    assert bare.code == "hidden_gold"


def test_a_marked_choice_without_text_is_no_option() -> None:
    raw = RawOptions(("x", None), records=({"m": False}, {"m": True}))
    assert map_gold(Gold(kind="per_choice", field="m"), None, raw).code == "gold_is_filler"


@pytest.mark.parametrize(
    ("value", "base", "expected"),
    [
        (0, 0, 0),
        (1, 0, "gold_ambiguous"),
        (3, 0, 2),
        (4, 0, "gold_out_of_range"),
        (1, 1, 0),
        ("C", 0, 2),
        ("2", 0, "gold_ambiguous"),
    ],
)
def test_columns_that_count_from_1(value: Any, base: int, expected: int | str) -> None:
    raw = RawOptions(("x1", "x2", "x3"), ("option_1", "option_2", "option_3"))
    found = map_gold(Gold(kind="auto", field="a", base=base), value, raw)
    assert (found.code if found.index is None else found.index) == expected


WORDS = st.lists(
    st.text(alphabet="klmnop qrs", min_size=3, max_size=9).map(str.strip).filter(lambda text: len(text) > 2),
    min_size=2,
    max_size=8,
    unique=True,
)


@given(WORDS, st.sampled_from(["{1}", "{0}. {1}", "({0}) {1}", "{0}: {1}"]), st.data())
def test_order_fillers_and_prefixes_do_not_move_the_gold(words: list[str], style: str, data: st.DataObject) -> None:
    """The same right text, whatever the order, the fillers and the letters; and however the gold is written."""
    right = data.draw(st.sampled_from(words))
    shuffled = data.draw(st.permutations(words))
    place = shuffled.index(right)
    styled: list[str | None] = [style.format(letter, text) for letter, text in zip("ABCDEFGH", shuffled, strict=False)]
    raw = RawOptions(tuple(styled))
    for kind, value in (("letter", "ABCDEFGH"[place]), ("text", right), ("index", place), ("auto", right)):
        found = map_gold(Gold(kind=kind, field="a"), value, raw)
        assert found.index is not None, kind
        assert settled(raw, found.index).texts[place] == right
    at = data.draw(st.integers(0, len(styled)))
    with_filler = RawOptions((*styled[:at], None, *styled[at:]))
    moved = place + (at <= place)
    found = map_gold(Gold(kind="index", field="a"), moved, with_filler)
    kept = settled(with_filler, found.index)
    assert kept.gold is not None
    assert kept.texts[kept.gold] == right
