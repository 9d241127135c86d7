"""Fields, templates, transforms, texts."""

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


RAW = {
    "url": "https://www.youtube.com/watch?v=a-b_c123456&t=139s",
    "short": "https://youtu.be/a-b_c123456?t=1",
    "path": "C:\\videos/a.b/6H78U_11.1_19.6.mp4",
    "clip": "my_show_510.0_660",
    "minutes": "2.5",
    "list": ["A", "B"],
    "none": None,
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("url|youtube", "a-b_c123456"),
        ("{short|youtube}.mp4", "a-b_c123456.mp4"),
        ("clip|youtube", "my_show_510.0_660"),
        ("path|basename", "6H78U_11.1_19.6.mp4"),
        ("path|basename|stem", "6H78U_11.1_19.6"),
        ("path|basename|stem|stem", "6H78U_11.1_19.6"),  # .6 is no suffix
        ("path|basename|stem|clip", "6H78U"),
        ("clip|clip", "my_show"),
        ("clip|span", [510.0, 660.0]),
        ("url|clip", RAW["url"]),
        ("url|span", None),
        ("url|span|lower", None),
        ("minutes|minutes", 150.0),
        ("minutes|ms", 0.0025),
        ("clip|minutes", "my_show_510.0_660"),
        ("clip|before:_", "my_show_510.0"),
        ("clip|after:_", "660"),
        ("clip|after:_show", "_510.0_660"),
        ("clip|before:#", "my_show_510.0_660"),
        ("clip|after:#", "my_show_510.0_660"),
        ("list|lower", '["a", "b"]'),
        ("none|lower", None),
        ("missing?|lower", None),
        ("{clip|clip}_{missing?|lower}", None),
        ("{minutes|minutes} s", "150.0 s"),
    ],
)
def test_transforms(expression: str, value: object) -> None:
    assert fields.value_of(RAW, expression) == value


def test_transforms_are_no_part_of_a_name() -> None:
    assert fields.needed("{a|stem}_{b?|after:x}") == ["a"]
    assert fields.named("{a|stem}_{b?|after:x}") == ["a", "b"]
    for wrong in ("a|stems", "a|", "a|before", "a|after:", "{a|youtube?}"):
        with pytest.raises(ValueError, match=r"the transform .* is not allowed\. Allowed: stem, basename"):
            fields.named(wrong)


@given(st.text(st.characters(exclude_characters="{}|"), min_size=1), st.floats(0, 9999), st.floats(0, 9999))
def test_a_clip_is_its_id_and_its_span(name: str, start: float, end: float) -> None:
    clip = {"v": f"{name}_{start:.2f}_{end:.2f}"}
    assert fields.value_of(clip, "v|clip") == name
    assert fields.value_of(clip, "v|span") == [float(f"{start:.2f}"), float(f"{end:.2f}")]
    assert fields.value_of({"v": f"{name}.mp4"}, "v|stem") == name
