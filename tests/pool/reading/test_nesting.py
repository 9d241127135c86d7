"""Records out of nested documents."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.reading.nesting import check_step, root_records, unnest


@pytest.mark.parametrize(
    ("document", "records"),
    [
        ([{"a": 1}], [{"a": 1}]),
        ([], []),
        ({"x": {"a": 1}, "y": {"a": 2}}, [{"_key": "x", "a": 1}, {"_key": "y", "a": 2}]),
        ({"data": [{"a": 1}]}, [{"a": 1}]),
    ],
)
def test_root_records(document: object, records: list[object]) -> None:
    assert root_records(document) == records


@pytest.mark.parametrize("document", [{}, 5, "text", None, {"a": 1}, {"a": [1]}, {"a": [{}], "b": [{}]}, {"a": []}])
def test_root_records_refuses(document: object) -> None:
    with pytest.raises(ValueError, match="neither a list of records"):
        root_records(document)


VIDEO = {"v": {"k": {"video": "m", "qa": [{"q": 1}, {"q": 2}]}}}
DIMS = {"v1": {"speed": [{"q": 1}, {"q": 2}], "order": [{"q": 3}]}}
PAIR = [{"basic": {"q": 1, "video": "own"}, "halluc": {"q": 2}, "type": "t", "video": "outer"}]


@pytest.mark.parametrize(
    ("document", "steps", "records"),
    [
        (VIDEO, [], [VIDEO]),
        (VIDEO, ["get:v"], [{"k": {"video": "m", "qa": [{"q": 1}, {"q": 2}]}}]),
        (VIDEO, ["get:v.k.qa", "flatten"], [{"q": 1}, {"q": 2}]),
        (VIDEO, ["get:v", "values"], [{"_key": "k", "video": "m", "qa": [{"q": 1}, {"q": 2}]}]),
        (
            VIDEO,
            ["get:v", "values", "each:qa"],
            [{"_key": "k", "_i": 0, "video": "m", "q": 1}, {"_key": "k", "_i": 1, "video": "m", "q": 2}],
        ),
        (
            DIMS,
            ["values", "lists"],
            [
                {"_key": "v1", "_dim": "speed", "_i": 0, "q": 1},
                {"_key": "v1", "_dim": "speed", "_i": 1, "q": 2},
                {"_key": "v1", "_dim": "order", "_i": 0, "q": 3},
            ],
        ),
        (DIMS, ["values:video", "values"], [{"video": "v1", "_key": "speed", "_value": [{"q": 1}, {"q": 2}]},
                                            {"video": "v1", "_key": "order", "_value": [{"q": 3}]}]),
        ({"a": 3, "b": None}, ["values"], [{"_key": "a", "_value": 3}, {"_key": "b", "_value": None}]),
        ({"a": {"b": 3}}, ["values:x", "values:y"], [{"x": "a", "y": "b", "_value": 3}]),
        ([["a"], ["b"]], ["flatten", "flatten"], ["a", "b"]),
        ({"x": {"m": {"q": 1}}, "s": 5}, ["each:x"], [{"_key": "m", "_i": 0, "s": 5, "q": 1}]),
        ({"x": ["why"], "s": 5}, ["each:x"], [{"_i": 0, "s": 5, "_value": "why"}]),
        ([{"x": [{"q": 1}]}, {"q": 2}, {"x": None, "q": 3}], ["flatten", "each?:x"],
         [{"_i": 0, "q": 1}, {"q": 2}, {"x": None, "q": 3}]),
        (
            PAIR,
            ["flatten", "split:basic,halluc"],
            [
                PAIR[0] | {"_key": "basic", "_i": 0, "video": "own", "q": 1},
                PAIR[0] | {"_key": "halluc", "_i": 1, "q": 2},
            ],
        ),
        ({"k": {"_key": "own", "_i": 9}}, ["values"], [{"_key": "own", "_i": 9}]),
        ({"k": {"video": "k"}}, ["values:video"], [{"video": "k"}]),
    ],
)  # fmt: skip
def test_unnest(document: object, steps: list[str], records: list[object]) -> None:
    assert list(unnest([document], steps)) == records


@pytest.mark.parametrize(
    ("node", "step", "seen"),
    [
        ([], "values", "does not fit a list"),
        ([], "values:x", "'values:x' does not fit a list"),
        ({"k": {"x": 1}}, "values:x", "the record 'k' has 'x' itself: 1"),
        ([], "lists", "does not fit a list"),
        ({"a": 1}, "lists", "below 'a' stands 1, not a list"),
        ({"a": 1}, "flatten", "does not fit a dict with the keys 'a'"),
        ({"a": 1}, "get:b", "does not fit a dict with the keys 'a'"),
        ({"a": {}}, "get:a.b", "does not fit a dict with the keys 'a'"),
        (5, "get:b", "does not fit a int"),
        ({"b": 1}, "each:b", "does not fit a dict with the keys 'b'"),
        ({"b": {"c": 1}}, "each:b", "does not fit a dict with the keys 'b'"),
        ({"b": 1}, "each?:b", "does not fit a dict with the keys 'b'"),
        ("x", "each:b", "does not fit a str"),
        ({"a": {}}, "split:a,b", "no 'b' in a dict with the keys 'a'"),
        ([], "split:a", "no 'a' in a list"),
    ],
)
def test_a_step_that_does_not_fit_says_what_it_met(node: object, step: str, seen: str) -> None:
    with pytest.raises(ValueError, match="unnest = ") as caught:
        list(unnest([node], [step]))
    assert seen in str(caught.value)


def test_check_step() -> None:
    for step in ("values", "values:name", "lists", "flatten", "get:a.b", "each:b", "each?:b", "split:a,b"):
        check_step(step)
    for step in ("value", "get:", "get", "each", "all:x", "split:a,", "lists:x", "flatten:x", "each?", ""):
        with pytest.raises(ValueError, match="Allowed: values, values:<name>, lists, flatten, get"):
            check_step(step)


def test_records_are_made_as_they_are_asked_for() -> None:
    made = unnest(iter([{"x": [1, 2]}, {"no": 0}]), ["each:x"])
    assert [next(made), next(made)] == [{"_i": 0, "_value": 1}, {"_i": 1, "_value": 2}]
    with pytest.raises(ValueError, match="does not fit"):
        next(made)


NAME = st.text(st.characters(categories=["Ll"]), min_size=1, max_size=3)
MEMBER = st.dictionaries(NAME, st.integers(), max_size=3)


@given(st.dictionaries(NAME, st.dictionaries(NAME, st.lists(MEMBER, max_size=3), max_size=3), max_size=3))
def test_no_member_is_lost_whichever_way_a_dict_of_dicts_of_lists_is_taken_apart(document: dict[str, Any]) -> None:
    found = list(unnest([document], ["values", "lists"]))
    assert found == [
        {"_key": key, "_dim": dim, "_i": place, **member}
        for key, dims in document.items()
        for dim, members in dims.items()
        for place, member in enumerate(members)
    ]
    flat = list(unnest([document], ["values", "values:_dim", "flatten"]))
    assert flat == [{name: value for name, value in record.items() if name != "_i"} for record in found]
