"""The traps of options and gold in the real files of ../shared/data: what each known item becomes."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchcheck.pool.fields import fold
from benchcheck.pool.gold import Gold, map_gold, other_option
from benchcheck.pool.options import Options, raw_options
from benchcheck.pool.raw import settled
from benchcheck.pool.wording import text_issues

pytestmark = pytest.mark.shared

LIST = Options(kind="list", field="options")
JOINED = Options(kind="list", field="options", rejoin=True)
LETTER = Gold(kind="letter", field="answer")
INDEX = Gold(kind="index", field="gold")
TEXT = Gold(kind="text", field="answer")


def outcome(options: Options, gold: Gold, record: dict[str, Any], value: Any) -> tuple[tuple[str, ...], Any, set[str]]:
    """Texts, place of the gold, and all codes."""
    raw = raw_options(options, record, "")
    mapped = map_gold(gold, value, raw)
    found = settled(raw, mapped.index)
    return found.texts, found.gold, {*found.codes, *filter(None, [mapped.code])}


def text_codes(question: str, options: Sequence[str], gold: int | None) -> list[str]:
    """Codes of what the texts alone say."""
    return [issue.code for issue in text_issues(fold(question), [fold(option) for option in options], gold)]


@pytest.fixture(scope="module")
def omni(shared_data: Path) -> list[dict[str, Any]]:
    videos = json.loads((shared_data / "streamingbench" / "questions_omni.json").read_text(encoding="utf-8"))
    return [question for video in videos for question in video["questions"]]


SPLIT = {
    33: (4, 2),
    148: (4, 3),
    187: (4, 2),
    315: (4, 0),
    316: (4, 1),
    646: (4, 1),
    656: (4, 1),
    660: (4, 1),
    1151: (4, 3),
}
"""Rows of StreamingBench omni whose options were split at line breaks: their options and gold when put together."""


def test_the_13_rows_with_more_than_four_options(omni: list[dict[str, Any]]) -> None:
    long = [row for row, record in enumerate(omni) if len(record["options"]) > 4]
    assert len(long) == 13
    found = {}
    for row in long:
        texts, gold, codes = outcome(JOINED, LETTER, omni[row], omni[row]["answer"])
        found[row] = (len(texts), gold, *sorted(codes))
    assert found == {row: (*counts, "options_rejoined") for row, counts in SPLIT.items()} | {
        188: (5, 2, "prefix_out_of_order"),
        330: (6, 1, "empty_option"),
        702: (6, 0, "empty_option"),
        394: (7, None, "gold_ambiguous", "prefix_out_of_order"),
    }


@pytest.mark.parametrize("row", sorted(SPLIT))
def test_no_letter_is_scored_with_the_option_at_its_place(omni: list[dict[str, Any]], row: int) -> None:
    """Joined or not, the gold is the text behind the gold's own letter, or it is none."""
    record = omni[row]
    behind = next(text for text in record["options"] if text.startswith(record["answer"]))[2:].strip()
    texts, gold, _ = outcome(JOINED, LETTER, record, record["answer"])
    assert texts[gold].startswith(behind)
    texts, gold, codes = outcome(LIST, LETTER, record, record["answer"])
    assert (texts[gold] == behind) if row == 33 else ("options_split" in codes)


def test_letters_that_repeat_or_are_out_of_order(omni: list[dict[str, Any]]) -> None:
    for row in (107, 394, 1330):
        _, gold, codes = outcome(JOINED, LETTER, omni[row], omni[row]["answer"])
        assert (gold, codes) == (None, {"gold_ambiguous", "prefix_out_of_order"})
    rest = [row for row in range(len(omni)) if row not in {*SPLIT, 107, 188, 330, 394, 702, 1330}]
    assert all(outcome(JOINED, LETTER, omni[row], omni[row]["answer"])[2] == set() for row in rest)


def test_two_hundred_questions_need_the_one_before(shared_data: Path) -> None:
    groups = json.loads((shared_data / "streamingbench" / "questions_sqa.json").read_text(encoding="utf-8"))
    questions = [question for group in groups for video in group for question in video["questions"]]
    codes = [text_codes(one["question"], one["options"], None) for one in questions]
    assert sum("needs_previous_item" in found for found in codes) == 200
    # two options B, and the gold is another: it can be scored
    assert outcome(LIST, LETTER, questions[104], "A") == (
        ("A. 107.", "B. 93.", "B. 91.", "D. 99."),
        0,
        {"prefix_out_of_order"},
    )


def test_eight_golds_of_ovo_bench_have_the_text_of_another_option(shared_data: Path) -> None:
    records = json.loads((shared_data / "ovo_bench" / "ovo_bench_new.json").read_text(encoding="utf-8"))
    found = {}
    for record in records:
        if record.get("options"):
            other = other_option(record["answer"], record["gt"], raw_options(LIST, record))
            found |= {} if other is None else {record["id"]: (record["gt"], other)}
    assert sorted(found) == [609, 707, 755, 766, 869, 918, 931, 1220]
    assert all(gold != other for gold, other in found.values())


def test_happy_stands_twice(shared_data: Path) -> None:
    """The text of NExT-GQA cannot tell the two apart; the index of NExT-QA can."""
    columns = Options(kind="columns", fields=("a0", "a1", "a2", "a3", "a4"))
    with (shared_data / "nextgqa" / "test.csv").open(encoding="utf-8", newline="") as file:
        as_text = [row for row in csv.DictReader(file) if (row["video_id"], row["qid"]) == ("3842638015", "4")]
    with (shared_data / "nextqa" / "test.csv").open(encoding="utf-8", newline="") as file:
        as_index = [row for row in csv.DictReader(file) if (row["video"], row["qid"]) == ("3842638015", "4")]
    texts, gold, codes = outcome(columns, TEXT, as_text[0], as_text[0]["answer"])
    assert (texts[3], texts[4], gold, codes) == ("happy", "happy", None, {"gold_matches_two_options"})
    assert outcome(columns, INDEX, as_index[0], as_index[0]["answer"]) == (texts, 4, set())


def test_six_golds_of_social_iq_stand_twice(shared_data: Path) -> None:
    columns = Options(kind="columns", fields=("a0", "a1", "a2", "a3"))
    lines = (shared_data / "socialiq2" / "qa_val.json").read_text(encoding="utf-8").splitlines()
    twice = 0
    for record in map(json.loads, lines):
        texts, gold, codes = outcome(columns, INDEX, record, record["answer_idx"])
        assert (texts[gold], codes) == (record[f"a{record['answer_idx']}"], set())
        twice += "duplicate_gold" in text_codes(record["q"], texts, gold)
    assert twice == 6


def test_vlm4d(shared_data: Path) -> None:
    records = json.loads((shared_data / "vlm4d" / "real_mc.json").read_text(encoding="utf-8"))
    options = Options(kind="dict", field="choices")
    codes = {record["id"]: outcome(options, TEXT, record, record["answer"])[2] for record in records}
    assert {name: found for name, found in codes.items() if found} == {"validation_633": {"gold_matches_two_options"}}
    numbers = next(record for record in records if record["id"] == "validation_3")
    assert outcome(options, TEXT, numbers, numbers["answer"]) == (("1", "2", "3", "0"), 0, set())
