"""A second annotation file beside the first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import InputError
from benchcheck.inputs import PoolSource
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.gold import Gold
from benchcheck.pool.joins import Partners
from benchcheck.pool.options import Options
from benchcheck.pool.reading.readers import Layout, Record, read_records
from benchcheck.pool.specs import JOINED, Join, Spec
from benchcheck.pool.together import items_of
from benchcheck.study import Study

ANSWERS = Join(file="answers.json", on="question_id")


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def questions(folder: Path, *ids: object) -> list[Record]:
    return list(read_records(write(folder / "questions.json", [{"question_id": one, "q": "why"} for one in ids])))


def test_lists_are_joined_on_a_field_whatever_their_order(tmp_path: Path) -> None:
    write(
        tmp_path / "answers.json",
        [{"question_id": "2", "answer": "no", "q": "theirs"}, {"question_id": 1, "answer": "yes"}],
    )
    partners = Partners(ANSWERS)
    found = [record.values for record in partners.lay(questions(tmp_path, 1, 2, 3))]
    assert found == [
        {"question_id": 1, "q": "why", "answer": "yes", JOINED: True},
        {"question_id": 2, "q": "why", "answer": "no", JOINED: True},
        {"question_id": 3, "q": "why", JOINED: False},
    ]
    assert partners.unmet == 0


def test_a_field_that_is_null_in_the_first_file_comes_from_the_second(tmp_path: Path) -> None:
    write(tmp_path / "answers.json", [{"question_id": 1, "answer": "yes", "q": None}])
    first = write(tmp_path / "questions.json", [{"question_id": 1, "q": "why", "answer": None}])
    (found,) = Partners(ANSWERS).lay(read_records(first))
    assert found.values == {"question_id": 1, "q": "why", "answer": "yes", JOINED: True}


def test_a_dict_of_plain_answers_joins_by_its_keys(tmp_path: Path) -> None:
    """EgoSchema: a list of questions, and `{id: index}`."""
    write(tmp_path / "answers.json", {"a": 3, "b": 0, "unused": 1})
    partners = Partners(Join(file="answers.json", on="question_id", key="_key", unnest=("values",)))
    found = list(partners.lay(questions(tmp_path, "b", "a")))
    assert [record.values["_value"] for record in found] == [0, 3]
    assert [record.place for record in found] == ["record 1", "record 2"]
    assert partners.unmet == 1


def test_a_second_file_in_every_folder(tmp_path: Path) -> None:
    """Causal-VidQA: a folder per video, a question of each kind in text.json, and its answer in answer.json."""
    kinds = ("descriptive", "predictive")
    for video in ("v1", "v2"):
        write(
            tmp_path / video / "text.json",
            {kind: {"question": f"{video} {kind}?", "answer": ["x", "y"]} for kind in kinds},
        )
        write(tmp_path / video / "answer.json", {kind: {"gold": place} for place, kind in enumerate(kinds)})
    steps = ("split:descriptive,predictive",)
    join = Join(file="answer.json", on="_key", unnest=steps)
    partners = Partners(join)
    files = sorted(tmp_path.glob("*/text.json"))
    records = [record for path in files for record in read_records(path, Layout("json", (), steps))]
    spec = Spec(
        bench="b",
        question="question",
        options=Options(kind="list", field="answer"),
        gold=Gold(kind="index", field="gold"),
        join=join,
    )
    found = list(items_of(spec, partners.lay(records)))
    assert [(item.question, item.gold) for item in found] == [
        ("v1 descriptive?", 0), ("v1 predictive?", 1), ("v2 descriptive?", 0), ("v2 predictive?", 1)
    ]  # fmt: skip


def test_a_record_without_partner_is_kept_and_says_so(tmp_path: Path) -> None:
    write(tmp_path / "answers.json", [{"question_id": 1, "answer": 0, "options": ["x", "y"]}])
    spec = Spec(
        bench="b",
        question="q",
        options=Options(kind="list", field="options"),
        gold=Gold(kind="index", field="answer"),
        join=ANSWERS,
    )
    found = list(items_of(spec, Partners(ANSWERS).lay(questions(tmp_path, 1, 2))))
    assert [(item.format, "no_join_row" in item.issues) for item in found] == [("mcq", False), ("open", True)]
    assert "question_id" in spec.needed_fields()


def test_the_file_can_lie_elsewhere_and_have_a_reader_of_its_own(tmp_path: Path) -> None:
    path = write(tmp_path / "else" / "gold.txt", "v1_7,B\nv1_8,C\n")
    join = Join(file=str(path), on="{v}_{n}", key="id", reader="csv", header=("id", "answer"))
    records = [Record({"v": "v1", "n": 8}, tmp_path / "a.json", "record 1", 0)]
    assert [record.values["answer"] for record in Partners(join).lay(records)] == ["C"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"question_id": 1}, {"question_id": "1"}], "record 2: question_id = '1' is that of record 1. Cure: one"),
        ([{"question_id": 1}, {"id": 2}], "record 2: no 'question_id' to join it by. Its fields: 'id'. Cure: join.key"),
        ("[]", "no record in it"),
        ("<html>", "this is a web page"),
    ],
)  # fmt: skip
def test_a_wrong_second_file_is_one_line(tmp_path: Path, content: object, message: str) -> None:
    path = write(tmp_path / "answers.json", content)
    with pytest.raises(InputError) as caught:
        list(Partners(ANSWERS).lay(questions(tmp_path, 1)))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_missing_second_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"answers\.json: no such file, and the spec joins it on 'question_id'\. Cure: "
    ):
        list(Partners(ANSWERS).lay(questions(tmp_path, 1)))
    with pytest.raises(InputError, match=r"aaa\.json: no such file"):
        list(Partners(Join(file="a" * 300 + ".json", on="question_id")).lay(questions(tmp_path, 1)))


def test_a_pool_is_built_of_two_files(make_study: Callable[..., Study], tmp_path: Path) -> None:
    """As EgoSchema publishes its subset: all questions in one file, answers to some of them in another."""
    write(tmp_path / "questions.json", [
        {"q_uid": uid, "question": f"{uid}?", "option 0": "x", "option 1": "y", "option 2": "z"} for uid in "abcd"
    ])  # fmt: skip
    write(tmp_path / "subset_answers.json", {"b": 2, "d": 0, "gone": 1})
    write(tmp_path / "ego.toml", """
        bench = "ego"
        id = "q_uid"
        question = "question"
        [join]
        file = "subset_answers.json"
        on = "q_uid"
        key = "_key"
        unnest = ["values"]
        [where]
        _joined = true
        [options]
        kind = "columns"
        fields = ["option 0", "option 1", "option 2"]
        [gold]
        kind = "index"
        field = "_value"
        [video]
        member = "{q_uid}.mp4"
    """)  # fmt: skip
    study = make_study(PoolSource(spec="ego.toml", files=("questions.json",)))
    summary = build_pool(study).benches[0]
    assert [(item.item_id, item.source_id, item.gold) for item in study.items()] == [
        ("ego_1", "b", 2),
        ("ego_3", "d", 0),
    ]
    assert (summary.rows, summary.left_out, summary.join_left) == (2, 2, 1)
