"""Records out of nested documents."""

import pytest

from benchcheck.pool.nesting import check_step, root_records, unnest


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


@pytest.mark.parametrize(
    ("steps", "records"),
    [
        ([], [{"v": {"k": {"video": "m", "qa": [{"q": 1}, {"q": 2}]}}}]),
        (["get:v"], [{"k": {"video": "m", "qa": [{"q": 1}, {"q": 2}]}}]),
        (["get:v", "values"], [{"_key": "k", "video": "m", "qa": [{"q": 1}, {"q": 2}]}]),
        (["get:v", "values", "each:qa"], [{"_key": "k", "video": "m", "q": 1}, {"_key": "k", "video": "m", "q": 2}]),
        (["get:v", "get:k", "get:qa", "flatten"], [{"q": 1}, {"q": 2}]),
    ],
)
def test_unnest(steps: list[str], records: list[object]) -> None:
    document = {"v": {"k": {"video": "m", "qa": [{"q": 1}, {"q": 2}]}}}
    assert list(unnest([document], steps)) == records


@pytest.mark.parametrize(
    ("node", "step", "seen"),
    [([], "values", "a list"), ({"a": 1}, "flatten", "'a'"), ({"a": 1}, "get:b", "'a'"), ({"b": 1}, "each:b", "'b'")],
)
def test_a_step_that_does_not_fit_says_what_it_met(node: object, step: str, seen: str) -> None:
    with pytest.raises(ValueError, match=f"does not fit.*{seen}"):
        list(unnest([node], [step]))


def test_check_step() -> None:
    for step in ("values", "flatten", "get:a", "each:b"):
        check_step(step)
    for step in ("value", "get:", "get", "each", "all:x"):
        with pytest.raises(ValueError, match="Allowed: values, flatten, get"):
            check_step(step)
