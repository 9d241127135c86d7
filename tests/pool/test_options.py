"""Options as records hold them and as items keep them."""

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.options import Options, RawOptions, column_family, labelled, raw_options, settled

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
