"""Fields, templates, seconds, windows, texts."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool import fields

RECORD = {"q": "why", "n": 7, "meta": {"kind": "x", "list": ["a", "b"]}, "a.b": "dotted", "none": None, "nan": math.nan}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("q", "why"),
        ("q?", "why"),
        ("meta.kind", "x"),
        ("meta.list.1", "b"),
        ("meta.list.2", None),
        ("meta.kind.deeper", None),
        ("a.b", "dotted"),
        ("none", None),
        ("nan", None),
        ("missing", None),
        ("", None),
        ("{q}_{n}", "why_7"),
        ("{q}.mp4", "why.mp4"),
        ("{meta.kind}/{q?}", "x/why"),
        ("{q}_{none}", None),
        ("{q}_{missing?}", None),
    ],
)
def test_value_of(expression: str, value: object) -> None:
    assert fields.value_of(RECORD, expression) == value


def test_needed_and_has_field() -> None:
    assert fields.needed("{a}_{b?}_{c.d}") == ["a", "c.d"]
    assert fields.needed("a?") == []
    assert fields.needed("a") == ["a"]
    assert fields.needed("") == []
    assert fields.has_field(RECORD, "none")
    assert not fields.has_field(RECORD, "meta.nothing")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, ""),
        (3, "3"),
        (2.5, "2.5"),
        (True, "true"),
        (["é", 1], '["é", 1]'),
        ({"a": Decimal("1.5")}, '{"a": "1.5"}'),
        (Decimal("1.5"), "1.5"),
        (b"caf\xc3\xa9\xff", "café\udcff"),
    ],
)
def test_text_of(value: object, text: str) -> None:
    assert fields.text_of(value) == text


def test_a_value_too_deep_to_print_is_no_crash() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert fields.text_of(deep) == "[…]"
    assert len(fields.shown(deep)) < 80
    while deep:  # taken apart here: freeing it in one go would need as deep a stack
        deep = deep.pop()  # type: ignore[assignment] # every level is a list


def test_clean_replaces_what_cannot_be_written_and_reports_what_is_odd() -> None:
    assert fields.clean("plain") == ("plain", False)
    assert fields.clean("two\nlines\tand é\u00a0") == ("two\nlines\tand é\u00a0", False)
    assert fields.clean("lone \ud800!") == ("lone \ufffd!", True)
    assert fields.clean("\x0crac{1}{2}") == ("\x0crac{1}{2}", True)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_clean_text_can_always_be_written(text: str) -> None:
    fixed, _ = fields.clean(text)
    assert fixed.encode().decode() == fixed
    assert fields.clean(fixed)[0] == fixed
    assert len(fixed) == len(text)


def test_fold_and_words() -> None:
    assert fields.fold("  A\u00a0b\n C ") == "a b c"
    assert fields.words("The cat-sat, on_it.") == " the cat sat on it "
    assert fields.words("?!") == " "


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, None),
        ("", None),
        (math.nan, None),
        (215, 215.0),
        (0, 0.0),
        ("0.00", 0.0),
        ("30s", 30.0),
        (" 12.5 s", 12.5),
        (".5", 0.5),
        ("03:28", 208.0),
        ("1:02:03.5", 3723.5),
    ],
)
def test_seconds(value: object, number: float | None) -> None:
    assert fields.seconds(value) == number


@pytest.mark.parametrize("value", [-1, "-1", "short", True, math.inf, 10**400, "1e5", "9" * 50, [1], "1:2:3:4"])
def test_seconds_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number of seconds"):
        fields.seconds(value)


@pytest.mark.parametrize(
    ("value", "window"),
    [
        (None, (None, None)),
        ("", (None, None)),
        ("0.00-60.019000", (0.0, 60.019)),
        ("[0:01:00 - 0:02:00]", (60.0, 120.0)),
        ([3, "4.5"], (3.0, 4.5)),
        ((None, 9), (None, 9.0)),
    ],
)
def test_window_of(value: object, window: tuple[float | None, float | None]) -> None:
    assert fields.window_of(value) == window


@pytest.mark.parametrize("value", ["12", "a-b", 5, [1, 2, 3], "1-2-3", {"start": 1}])
def test_window_of_refuses(value: object) -> None:
    with pytest.raises(ValueError, match="is not a"):
        fields.window_of(value)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers())))
def test_seconds_are_never_negative_nor_infinite(value: object) -> None:
    try:
        number = fields.seconds(value)
    except ValueError:
        return
    assert number is None or 0 <= number < 1e12
