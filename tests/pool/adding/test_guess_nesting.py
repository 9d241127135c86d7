"""How unknown documents are nested, and which tables have no header."""

from typing import Any

import pytest

from benchcheck.pool.adding.guess_nesting import header_doubt, steps_to_records
from benchcheck.pool.reading.nesting import root_records, unnest

ASKS = {"question": "What is it?", "options": ["a", "b"], "answer": 0}


def many(**parts: Any) -> list[dict[str, Any]]:
    return [dict(parts), dict(parts)]


@pytest.mark.parametrize(
    ("document", "steps", "count"),
    [
        ([ASKS, ASKS], [], 2),
        ({"x1": ASKS, "x2": ASKS}, [], 2),
        ({"x1": ASKS}, [], 1),
        ({"data": [ASKS, ASKS]}, [], 2),
        ({"version": "1", "data": [ASKS, ASKS]}, ["get:data", "flatten"], 2),
        ({"Adaptation": {"a": ASKS, "b": ASKS}}, ["get:Adaptation", "values"], 2),
        ([{"video": "v", "qa": [ASKS, ASKS]}, {"video": "w", "qa": [ASKS]}], ["flatten", "each:qa"], 3),
        ([{"video": "v", "questions": [ASKS]}, {"video": "w"}], ["flatten", "each?:questions"], 2),
        ([[{"time": "x", "questions": [ASKS]}]], ["flatten", "flatten", "each:questions"], 1),
        ({"v1": {"action": [ASKS, ASKS], "way": [ASKS]}, "v2": {"action": [ASKS]}}, ["values", "lists"], 4),
        ({"v1": {"meta": {"d": 3}, "set": [ASKS]}, "v2": {"meta": {"d": 3}, "set": [ASKS]}}, ["values", "each:set"], 2),
        ({"v1": {"length": 3, "qa": {"q1": ASKS, "q2": ASKS}}, "v2": {"length": 3, "qa": {"q1": ASKS}}},
         ["values", "each:qa"], 3),
        (many(type="x", basic=ASKS, hallucination=ASKS), ["flatten", "split:basic,hallucination"], 4),
        (many(basic=ASKS, hallucination=ASKS), ["flatten", "split:basic,hallucination"], 4),
        (many(video_id=1, qa={"question": "Who?", "answer": "a"}, options=["a", "b"]), [], 2),
        (many(scene=1, questions=[{"question": "Who?", "choices": [{"choice": "a", "answer": "wrong"}]}]),
         ["flatten", "each:questions"], 2),
        ({"one": [ASKS, ASKS], "two": [ASKS]}, ["lists"], 3),
        (many(video="v", caption="a dog runs"), [], 2),
        (many(questions={"q1": ASKS}), ["flatten", "each:questions"], 2),
        (many(qa={"question": "Who?"}), [], 2),
        (many(scene=1, frames={"f1": {"qa": [ASKS]}}), [], 2),
        (many(video="v", annotations={"by": "us", "qa": [ASKS, ASKS]}), ["flatten", "each:annotations.qa"], 4),
        (many(video="v", annotations={"qa": [ASKS], "more": [ASKS]}), [], 2),
        ([*many(video="v", annotations={"qa": [ASKS]}), {"video": "w", "annotations": {}}], [], 3),
        ([1, 2], [], 2),
    ],
)  # fmt: skip
def test_steps_to_records(document: Any, steps: list[str], count: int) -> None:
    found = steps_to_records(document)
    assert [step.value for step in found] == steps
    assert all(step.reason for step in found)
    assert len(list(unnest([document], steps)) if steps else root_records(document)) == count


def test_lines_of_json_are_records_or_hold_them() -> None:
    assert steps_to_records([ASKS, ASKS], lines=True) == ()
    rows = many(key="v", qa=[ASKS, ASKS])
    assert [step.value for step in steps_to_records(rows, lines=True)] == ["each:qa"]
    assert [step.value for step in steps_to_records([[ASKS], [ASKS]], lines=True)] == ["flatten"]


@pytest.mark.parametrize(
    "document", [[], {}, 3, {"a": 1.5, "b": 2.5}, {"a": {"b": {"c": 1}}}, [{"x": 1, "y": {"z": 2}}]]
)
def test_documents_without_questions_have_no_steps(document: Any) -> None:
    assert steps_to_records(document) == ()


def test_steps_end_somewhere() -> None:
    deep: Any = [ASKS]
    for _ in range(20):
        deep = [deep]
    assert len(steps_to_records(deep)) == 6


def test_a_pair_of_which_only_one_asks_is_a_field_with_a_path() -> None:
    assert steps_to_records(many(type=[1], basic={"deep": {"asked": ASKS}}, note=1)) == ()


@pytest.mark.parametrize(
    ("names", "second", "header"),
    [
        (["NOuQuofjk44", "[7.2:18.0]", "10", "12", "16", "how many knives?", "1"],
         ["piYcgGdO8_w", "[134.15:181.52]", "White", "Grey", "Red", "What colour?", "Brown"],
         "video,ts,column3,column4,column5,question,column7"),
        (["clip one", "what?"], ["clip two"], "column1,column2"),
        (["question", "a0", "1"], [], ""),
        (["who", "what", "right"], ["Is it?", "x", "y"], ""),
        (["alpha", "beta"], ["Is it?", "x"], ""),
    ],
)  # fmt: skip
def test_tables_whose_first_row_is_data(names: list[str], second: list[str], header: str) -> None:
    assert header_doubt(names, second) == header
