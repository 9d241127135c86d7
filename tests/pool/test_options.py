"""Options as records hold them and as items keep them."""

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.items import split_prefix
from benchcheck.pool.options import Options, column_family, raw_options
from benchcheck.pool.raw import RawOptions, labelled, rejoined, settled

AUTO = Options(kind="auto", field="options")
TEXTS = st.text(alphabet="abc A.)", max_size=5)


@pytest.mark.parametrize(
    ("values", "texts", "labels"),
    [
        ({"options": ["x", 2]}, ["x", "2"], ()),
        ({"options": '["x", "y"]'}, ["x", "y"], ()),
        ({"options": "['x', \"it's\"]"}, ["x", "it's"], ()),
        ({"options": {"B": "y", "A": "x"}}, ["x", "y"], ("A", "B")),
        ({"options": '{"option 10": "k", "option 2": "c"}'}, ["c", "k"], ("option 2", "option 10")),
        ({"options": {"yes": 1, "no": 2}}, ["1", "2"], ("yes", "no")),
        ({"options": None, "A": "x", "B": "y"}, [], ()),
        ({"options": ""}, [], ()),
        ({"options": "  "}, [], ()),
        ({"option_0": "x", "option_1": "y", "option_3": "z"}, ["x", "y"], ("option_0", "option_1")),
        ({"a0": "x", "a1": None, "a2": "z"}, ["x", "", "z"], ("a0", "a1", "a2")),
        ({"A": "x", "B": "y", "C": ""}, ["x", "y", ""], ("A", "B", "C")),
        ({"option_1": "x", "option_2": "y"}, ["x", "y"], ("option_1", "option_2")),
    ],
)
def test_auto_reads_lists_dicts_cells_and_columns(values: dict, texts: list[str], labels: tuple[str, ...]) -> None:
    raw = raw_options(AUTO, values)
    assert (raw.texts, raw.labels) == (texts, labels)


@pytest.mark.parametrize(
    "cell",
    ["yes; no", "['a' 'b']", "['a'\n 'b', 'c']", "[", "[" * 5000, "{1: ", "[x, y]", "['a', open('f')]", "5"],
)
def test_a_cell_without_a_list_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="holds no list"):
        raw_options(AUTO, {"options": cell})


@pytest.mark.parametrize(("kind", "value"), [("list", {"A": "x"}), ("dict", ["x"]), ("auto", 5), ("list", True)])
def test_another_kind_than_declared_is_refused(kind: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"is not the {kind} that the spec declares"):
        raw_options(Options(kind=kind, field="options"), {"options": value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "lines"}, "Allowed: auto, list, dict, columns, embedded, const, pair, none"),
        ({"kind": "const", "values": ("yes",)}, "needs values with two texts"),
        ({"kind": "pair", "gold_field": "caption"}, "needs gold_field and others"),
        ({"kind": "columns", "fields": ("a0",)}, "needs fields with two names"),
        ({"kind": "list"}, "needs field"),
    ],
)
def test_options_refuse_what_cannot_be_read(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Options(**settings)


def test_column_family_needs_the_first_two() -> None:
    assert column_family({"a0": 1, "a1": 2, "a2": 3}) == ("a0", "a1", "a2")
    assert column_family({"a0": 1, "a2": 3}) == ()
    assert column_family({}) == ()


def test_labelled() -> None:
    assert labelled(RawOptions(("x", "y"), ("a", "C"))) == ["A", "C"]
    assert labelled(RawOptions(("x", "y"), ("a0", "a1"))) == ["A", "B"]
    assert labelled(RawOptions(("x",) * 30)) == list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


@pytest.mark.parametrize(
    ("values", "labels", "gold", "texts", "index", "codes"),
    [
        (["x", "y"], (), 1, ("x", "y"), 1, ()),
        # SUTD: a filler in the middle moves what follows
        (["Good", "", "scratch", "dent"], tuple("ABCD"), 3, ("Good", "scratch", "dent"), 2, ("empty_option",)),
        # LongVideoBench: fillers at the end of columns are how fewer options are written
        (["x", "y", "N/A", None, math.nan], tuple("ABCDE"), 1, ("x", "y"), 1, ()),
        (["x", "y", ""], (), 0, ("x", "y"), 0, ("empty_option",)),
        (["A. x", "(B) y"], (), 1, ("x", "y"), 1, ()),
        (["A. x", "B. "], (), 0, ("x", ""), 0, ("empty_option",)),
        # OVO-Bench 1326
        (["A. W", "B. T", "D. C", "C. J"], (), 2, ("A. W", "B. T", "D. C", "C. J"), 2, ("prefix_out_of_order",)),
        (["(A) W", "B. T", "C J", "D) C"], (), 2, ("(A) W", "B. T", "C J", "D) C"), 2, ("prefix_on_some",)),
        (["A. W", "T", "J"], (), 2, ("A. W", "T", "J"), 2, ()),
        (["B. W", "C. T", "J"], (), 2, ("B. W", "C. T", "J"), 2, ("prefix_out_of_order",)),
        (
            ["A. Einstein", "I. Newton", "N. Bohr"],
            (),
            2,
            ("A. Einstein", "I. Newton", "N. Bohr"),
            2,
            ("prefix_out_of_order",),
        ),
        # Video-MME 623-3: stripped once
        (["A. L. Pasteur", "B. R. Koch"], (), 0, ("L. Pasteur", "R. Koch"), 0, ()),
        ([1, 2.5], (), 0, ("1", "2.5"), 0, ()),
        ([["a", "b"], ["b", "a"]], (), None, ('["a", "b"]', '["b", "a"]'), None, ("non_string_option",)),
        ([True, False], (), None, ("true", "false"), None, ("non_string_option",)),
        ([], (), None, (), None, ()),
        (["", None], (), None, (), None, ()),
    ],
)
def test_settled(values: list, labels: tuple[str, ...], gold, texts, index, codes) -> None:
    found = settled(RawOptions(tuple(values), labels, ("", "N/A")), gold)
    assert (found.texts, found.gold, found.codes) == (texts, index, codes)


@given(st.lists(st.one_of(st.none(), st.just("N/A"), TEXTS), max_size=30), st.data())
def test_the_gold_stays_the_same_option_whatever_is_dropped(values: list[str | None], data: st.DataObject) -> None:
    raw = RawOptions(tuple(values), (), ("", "N/A"))
    gold = data.draw(st.sampled_from(raw.kept)) if raw.kept else None
    found = settled(raw, gold)
    assert len(found.texts) == len([value for value in values if value and value.strip() not in ("", "N/A")])
    if gold is not None:
        assert found.gold is not None
        kept = str(values[gold])
        assert found.texts[found.gold] in (kept, kept.split(".", 1)[-1].strip(), kept.split(")", 1)[-1].strip())


@given(st.lists(st.text(max_size=8), min_size=1, max_size=6))
def test_a_list_survives_a_cell_as_json_and_as_python_prints_it(texts: list[str]) -> None:
    for cell in (json.dumps(texts), repr(texts)):
        assert raw_options(AUTO, {"options": cell}).texts == texts


@given(st.text())
def test_no_cell_crashes(cell: str) -> None:
    with contextlib.suppress(ValueError):
        raw_options(AUTO, {"options": cell})


@pytest.mark.parametrize(
    ("options", "record", "texts", "labels"),
    [
        (Options(kind="const", values=("yes", "no")), {}, ["yes", "no"], ()),
        (
            Options(kind="pair", gold_field="c", others=("f", "g")),
            {"c": "x", "f": ["y", "z"], "g": "w"},
            list("xyzw"),
            (),
        ),
        (Options(kind="pair", gold_field="c", others=("f",)), {"c": "x"}, ["x", ""], ()),
        (Options(kind="list", field="o", member="t"), {"o": [{"t": "x"}, {"u": 1}]}, ["x", ""], ()),
        (
            Options(kind="dict", field="o", member="t.s"),
            {"o": {"B": {"t": {"s": "y"}}, "A": {}}},
            ["", "y"],
            ("A", "B"),
        ),
        (Options(kind="list", field="o", rejoin=True), {"o": ["A. x", "y", "B. z"]}, ["A. x\ny", "B. z"], ()),
        (Options(kind="list", field="o", rejoin=True), {"o": ["A. x", "B. z"]}, ["A. x", "B. z"], ()),
        (Options(kind="embedded"), {}, ["x", "y"], ("A", "B")),
        (Options(kind="embedded", field="o"), {"o": "Option 1: u\nOption 2: v"}, ["u", "v"], ("1", "2")),
        (Options(kind="embedded", field="missing"), {}, [], ()),
        (Options(kind="none"), {}, [], ()),
        (AUTO, {"a1": "x", "a2": "y", "a3": "z"}, ["x", "y", "z"], ("a1", "a2", "a3")),
        (AUTO, {"choice_a": "x", "choice_b": "y"}, ["x", "y"], ("choice_a", "choice_b")),
        (AUTO, {"answer_choice_0": "x", "answer_choice_1": "y"}, ["x", "y"], ("answer_choice_0", "answer_choice_1")),
        (AUTO, {"answer0": "x", "answer1": "y"}, ["x", "y"], ("answer0", "answer1")),
        (AUTO, {"a": "x", "b": "y", "c": None}, ["x", "y", ""], ("a", "b", "c")),
        (AUTO, {"option 0": "x", "option 1": "y"}, ["x", "y"], ("option 0", "option 1")),
    ],
)
def test_every_kind(options: Options, record: dict, texts: list[str], labels: tuple[str, ...]) -> None:
    raw = raw_options(options, record, "Which?\nA. x\nB. y")
    assert (raw.texts, raw.labels) == (texts, labels)


def test_embedded_options_leave_the_question() -> None:
    assert raw_options(Options(kind="embedded"), {}, "Which?\nA. x\nB. y").question == "Which?"
    assert raw_options(AUTO, {"options": ["x"]}, "Which?").question is None


def test_embedded_options_are_not_stripped_again() -> None:
    raw = raw_options(Options(kind="embedded"), {}, "Who?\nA. A. Lincoln\nB. B. Franklin")
    assert settled(raw, 1).texts == ("A. Lincoln", "B. Franklin")


def test_members_that_are_no_records_are_refused() -> None:
    with pytest.raises(ValueError, match="has members without 't'"):
        raw_options(Options(kind="list", field="o", member="t"), {"o": ["x"]})


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["A. x", "B. y", "z"], ["A. x", "B. y\nz"]),
        (["A. x", "", "B. y", ""], ["A. x", "B. y"]),
        (["A. x", "y", "z", "B. w"], ["A. x\ny\nz", "B. w"]),
        (["A. x", "B. y"], None),
        (["x", "A. y", "B. z"], None),
        (["A. x", "y", "C. z"], None),
        (["A. x", "y", "B. z", "B. w"], None),
        (["A. x", "y"], None),
        (["A. x", None, "B. y"], None),
        ([], None),
    ],
)
def test_rejoined(texts: list, expected: list[str] | None) -> None:
    assert rejoined(texts) == expected


@pytest.mark.parametrize(
    ("values", "labels", "codes"),
    [
        (["A. x", "y", "B. z"], (), ["options_split"]),
        (["A. x", "B. y", "C. z", "w"], (), ["options_split"]),
        (["A. x", "y", "B. z"], ("a0", "a1", "a2"), ["prefix_out_of_order"]),
        (["A. x, B. y"], (), ["options_glued"]),
        (["x A. y B. z"], (), []),
        (["A. x B. y D. z"], (), []),
        (["A. x B. y", "C. z"], (), ["options_glued"]),
        (["A. x", "B. y; C. z", "D. w E. v", "F. u"], (), ["options_glued"]),
        (["A. x", "C. z"], (), ["prefix_out_of_order"]),
        (["B. x C. y", "D. z"], (), ["prefix_out_of_order"]),
        (["C. x", "B. y"], (), ["prefix_out_of_order"]),
        (["x", "."], (), ["empty_option"]),
    ],
)
def test_split_and_glued_options(values: list, labels: tuple[str, ...], codes: list[str]) -> None:
    assert list(settled(RawOptions(tuple(values), labels), None).codes) == codes


PLAIN = st.text(alphabet="klm nop,?\u4e2d", min_size=1, max_size=8).map(str.strip).filter(bool)


@given(st.lists(st.lists(PLAIN, min_size=1, max_size=3), min_size=2, max_size=6))
def test_put_together_is_the_inverse_of_split(lines: list[list[str]]) -> None:
    whole = [f"{letter}. " + "\n".join(parts) for letter, parts in zip("ABCDEF", lines, strict=False)]
    pieces = [piece for text in whole for piece in text.split("\n")]
    assert rejoined(pieces) == (whole if len(pieces) > len(whole) else None)


@given(st.lists(st.sampled_from(["A. x", "B. y", "B. B. y", "(C) C. z", "C: A. w", "D. ", "x"]), max_size=5))
def test_no_prefix_is_stripped_twice(values: list[str]) -> None:
    texts = settled(RawOptions(tuple(values)), None).texts
    assert list(texts) in (values, [split_prefix(value)[1] for value in values])
