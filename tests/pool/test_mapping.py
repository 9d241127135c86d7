"""Records to items: one each, with every issue."""

import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.config import Config, Model, Protocol
from benchcheck.errors import InputError
from benchcheck.pool.footage import hub_video
from benchcheck.pool.gold import Gold
from benchcheck.pool.issues import ISSUES, blocking
from benchcheck.pool.items import Item, VideoRef
from benchcheck.pool.mapping import map_record
from benchcheck.pool.options import Options
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec, VideoFields, load_spec
from benchcheck.pool.together import Together, checked_items, items_of
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study

SPEC = Spec(
    bench="b",
    id="id?",
    question="question",
    options=Options(kind="list", field="options"),
    gold=Gold(kind="index", field="answer", text="text?"),
    video=VideoFields(member="video", start="start?", end="end?"),
    category="category?",
    duration="duration?",
)
GOOD = {"question": "What is red?", "options": ["apple", "sky", "grass"], "answer": 0, "video": "v.mp4"}


def records(rows: Iterable[Any]) -> list[Record]:
    return [Record(row, Path("f.jsonl"), f"line {number + 1}", number) for number, row in enumerate(rows)]


def items(*rows: dict[str, Any], spec: Spec = SPEC) -> list[Item]:
    return list(items_of(spec, records(rows)))


def one(spec: Spec = SPEC, **changes: Any) -> Item:
    """The item of a good record with some changes, read after the good one."""
    return items({**GOOD, "video": "other.mp4"}, {**GOOD, **changes}, spec=spec)[1]


def test_an_item_holds_what_the_record_says() -> None:
    row = {**GOOD, "id": 7, "category": ["a", "b"], "start": "1:00", "end": 90, "duration": "2:00"}
    assert items(row) == [
        Item(
            item_id="b_0",
            bench="b",
            source_id="7",
            question="What is red?",
            options=("apple", "sky", "grass"),
            gold=0,
            format="mcq",
            video_key="b::::v.mp4",
            video_id=VideoRef("b", "v.mp4").video_id,
            start=60.0,
            end=90.0,
            category="a, b",
            duration=120.0,
        )
    ]


def test_every_record_counts_and_keeps_its_row() -> None:
    found = items(GOOD, {"question": "no options"}, {}, {**GOOD, "answer": 1, "video": "w.mp4"})
    assert [(item.item_id, item.source_id, item.format) for item in found] == [
        ("b_0", "f.jsonl#0", "mcq"),
        ("b_1", "f.jsonl#1", "open"),
        ("b_2", "f.jsonl#2", "open"),
        ("b_3", "f.jsonl#3", "mcq"),
    ]
    assert found[2].issues == ("empty_question", "hidden_gold", "no_options", "no_video")


@pytest.mark.parametrize(
    ("changes", "issues"),
    [
        ({"question": "  \n"}, ("empty_question",)),
        ({"question": None}, ("empty_question",)),
        ({"options": []}, ("no_options",)),
        ({"options": None}, ("no_options",)),
        ({"options": "a or b"}, ("unreadable_options",)),
        ({"options": {"A": 1}}, ("unreadable_options",)),
        ({"options": ["one"]}, ("single_option",)),
        ({"options": ["one", "N/A"]}, ("single_option", "empty_option")),
        ({"options": [str(number) for number in range(27)]}, ("too_many_options",)),
        ({"options": [str(number) for number in range(26)]}, ()),
        ({"answer": None}, ("hidden_gold",)),
        ({"answer": -1}, ("hidden_gold",)),
        ({"answer": 9}, ("gold_out_of_range",)),
        ({"answer": "apple"}, ("gold_not_among_options",)),
        ({"options": ["", "sky", "grass"]}, ("gold_is_filler", "empty_option")),
        ({"options": ["apple", "", "grass"]}, ("empty_option",)),
        ({"start": 5, "end": 5}, ("bad_window",)),
        ({"start": -1}, ("bad_window",)),
        ({"end": "soon"}, ("bad_window",)),
        ({"end": 0}, ("bad_window",)),
        ({"start": 5}, ()),
        ({"end": 130, "duration": 120}, ("window_out_of_range",)),
        ({"end": 120.9, "duration": 120}, ()),
        ({"end": 130, "duration": "short"}, ()),
        ({"text": "sky"}, ("index_text_contradict",)),
        ({"text": "an apple"}, ()),
        ({"text": "Apple"}, ()),
        ({"options": ["apple", "Sky", "sky "]}, ("duplicate_options",)),
        ({"options": ["apple", "Apple", "sky"]}, ("duplicate_options", "duplicate_gold")),
        ({"options": ["A. x", "C. y", "B. z"]}, ("prefix_out_of_order",)),
        ({"options": [["a"], ["b"]]}, ("non_string_option",)),
        ({"options": [1, 2.5]}, ()),
        ({"question": "Is the apple red?"}, ("answer_in_question",)),
        ({"question": "Is the apple or the sky red?"}, ()),
        ({"question": "Is the pineapple red?"}, ()),
        ({"question": "?! ?", "options": ["?", "no"]}, ()),
        ({"question": "What \x0c is red?"}, ("bad_text",)),
        ({"question": b"What \xff is red?"}, ("bad_text",)),  # a binary column of Parquet
        ({"options": ["apple", "sky \udc00"]}, ("bad_text",)),
        ({"video": "\ud800.mp4"}, ("bad_text",)),
        ({"id": "\x00"}, ("bad_text",)),
        ({"video": None}, ("no_video",)),
        ({"video": " "}, ("no_video",)),
        ({"video": "other.mp4"}, ("repeated_item",)),
        ({"video": "other.mp4", "options": ["grass", "APPLE", "sky"], "answer": 1}, ("repeated_item",)),
        ({"video": "other.mp4", "answer": 1}, ("other_gold",)),
        ({"video": "other.mp4", "answer": None}, ("hidden_gold",)),
        ({"video": "other.mp4", "answer": 1, "end": 9}, ()),
        ({}, ()),
    ],
)
def test_issues(changes: dict[str, Any], issues: tuple[str, ...]) -> None:
    item = one(**changes)
    assert item.issues == issues
    assert item.format == ("open" if any(map(blocking, issues)) else "mcq")


def test_questions_about_unknown_videos_are_no_repeats() -> None:
    found = items(GOOD, {**GOOD, "video": ""}, {**GOOD, "video": ""})
    assert [item.issues for item in found] == [(), ("no_video",), ("no_video",)]
    assert (found[1].video_key, found[1].video_id) == ("", "")


@pytest.mark.parametrize(
    ("video", "detail"),
    [
        (VideoFields(member="clip?"), "clip? is empty"),
        (VideoFields(members=("v1?", "v2?")), "v1?, v2? is empty"),
        (VideoFields(), "the spec declares no video"),
    ],
)
def test_where_no_video_was_looked_for_is_said(video: VideoFields, detail: str) -> None:
    (found,) = checked_items(replace(SPEC, video=video), records([GOOD]))
    assert [issue.detail for issue in found.issues if issue.code == "no_video"] == [detail]


def test_fields_of_the_identity_make_records_different() -> None:
    spec = Spec(
        bench="b", question="question", options=SPEC.options, gold=SPEC.gold, video=SPEC.video, identity=("inputs?",)
    )
    found = items({**GOOD, "inputs": 1}, {**GOOD, "inputs": 2, "answer": 1}, {**GOOD, "inputs": 1}, spec=spec)
    assert [item.issues for item in found] == [(), (), ("repeated_item",)]


def test_a_declared_window_that_a_record_lacks_is_noted() -> None:
    spec = Spec(
        bench="b",
        question="question",
        options=SPEC.options,
        gold=SPEC.gold,
        video=VideoFields(member="video", window="ts"),
    )
    found = items({**GOOD, "ts": "0.00-60.019"}, {**GOOD, "ts": ""}, {**GOOD, "ts": "x"}, spec=spec)
    assert [(item.start, item.end, item.issues) for item in found] == [
        (0.0, 60.019, ()),
        (None, None, ("no_window",)),
        (None, None, ("bad_window", "repeated_item")),
    ]


@pytest.mark.parametrize(
    ("video", "member", "key"),
    [
        (VideoFields(member="video", repo="o/r"), "v.mp4", "o/r::::v.mp4"),
        (VideoFields(member="{video}.mp4", zip_path="videos.zip"), "v", "b::videos.zip::v.mp4"),
        (VideoFields(member="video", repo="o/r", zip_path="{question}.zip"), "v", "o/r::What is red?.zip::v"),
        (
            VideoFields(member="video"),
            "https://huggingface.co/datasets/o/VLM/resolve/main/real/a%20b.mp4?download=true",
            "o/VLM::::real/a b.mp4",
        ),
        (VideoFields(member="video"), "https://youtube.com/watch?v=x", "b::::https://youtube.com/watch?v=x"),
    ],
)
def test_video_keys_are_namespaced(video: VideoFields, member: str, key: str) -> None:
    spec = Spec(bench="b", question="question", options=SPEC.options, gold=SPEC.gold, video=video)
    item = items({**GOOD, "video": member}, spec=spec)[0]
    assert item.video_key == key
    assert item.video_id.startswith("k:")


def test_hub_video() -> None:
    assert hub_video("https://huggingface.co/o/m/blob/v1/x/y.mp4") == ("o/m", "x/y.mp4")
    assert hub_video("x/y.mp4") is None


def test_an_item_id_can_be_declared_and_is_then_needed() -> None:
    spec = Spec(bench="b", item_id="{_bench}_{uid}", question="question", options=SPEC.options, gold=SPEC.gold)
    assert items({**GOOD, "uid": 63703}, spec=spec)[0].item_id == "b_63703"
    with pytest.raises(InputError, match=r"f\.jsonl: line 2: no item id"):
        items({**GOOD, "uid": 1}, {**GOOD, "uid": None}, spec=spec)


def test_file_and_row_can_be_named() -> None:
    spec = Spec(
        bench="b", id="{_file}/{_row}", question="question", options=SPEC.options, gold=SPEC.gold, category="_file"
    )
    item = items(GOOD, spec=spec)[0]
    assert (item.source_id, item.category) == ("f/0", "f")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"q": 1, "options": [], "answer": 0, "video": ""},
            "no record has 'question', which is needed for the question. ",
        ),
        (
            {"question": "", "options": [], "video": "", "gt": 0},
            "no record has 'answer', which is needed for the gold. ",
        ),
        ({"question": "", "answer": 0, "options": []}, "no record has 'video'"),
        ({"question": "", "answer": 0, "video": ""}, "no record has options. Allowed: 'options'"),
    ],
)
def test_a_field_that_no_record_has_is_an_error_that_lists_those_there_are(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        items(row, row)
    assert message in str(caught.value)
    assert f"Its fields: {', '.join(map(repr, row))}. Cure: " in str(caught.value)


def test_the_generic_spec_says_which_columns_it_knows() -> None:
    row = {"question": "q", "answer": 0, "video": "v", "option_8": "x", "option_9": "y"}
    with pytest.raises(
        InputError, match="'options', or columns such as option_0 option_1 …, option0 option1 …"
    ) as caught:
        items(row, spec=load_spec("generic"))
    assert "'option_8', 'option_9'" in str(caught.value)


def test_columns_need_only_the_first_two() -> None:
    spec = Spec(
        bench="b",
        question="question",
        options=Options(kind="columns", fields=("a0", "a1", "a2")),
        gold=Gold(kind="index", field="answer"),
        video=VideoFields(member="video"),
    )
    row = {"question": "q", "answer": 1, "video": "v", "a0": "x", "a1": "y"}
    assert items(row, spec=spec)[0].options == ("x", "y")
    with pytest.raises(InputError, match=r"no record has options\. Allowed: 'a0', 'a1', 'a2'"):
        items({"question": "q", "answer": 1, "video": "v", "a1": "y"}, spec=spec)


def test_captions_need_the_right_one_and_a_wrong_one() -> None:
    spec = replace(
        SPEC,
        question="",
        question_text="Which?",
        options=Options(kind="pair", gold_field="caption", others=("foils", "more?")),
        gold=Gold(kind="first"),
    )
    found = items({"caption": "x", "foils": ["y", "z"], "video": "v"}, spec=spec)
    assert (found[0].options, found[0].gold) == (("x", "y", "z"), 0)
    with pytest.raises(InputError, match=r"no record has options\. Allowed: 'caption', 'foils', 'more\?'"):
        items({"caption": "x", "video": "v"}, spec=spec)


def test_golds_that_count_from_another_number_are_never_shifted_in_silence() -> None:
    rows = [{**GOOD, "answer": answer, "video": str(answer)} for answer in (1, 3, 2)]
    with pytest.raises(InputError, match=r"just past the options 1 times, and never the first one.*gold.base = 1"):
        items(*rows)
    found = items(*rows, {**GOOD, "answer": 0})
    assert [item.gold for item in found] == [1, None, 2, 0]
    spec = Spec(bench="b", question="question", options=SPEC.options, gold=Gold(kind="index", field="answer", base=1))
    assert [item.gold for item in items(*rows, spec=spec)] == [0, 2, 1]
    rows = [{**GOOD, "answer": answer, "video": str(answer)} for answer in (1, 0, 2)]
    with pytest.raises(InputError, match=r"just before the options 1 times, and never the last one.*gold.base = 0"):
        items(*rows, spec=spec)


def test_numbers_that_are_texts_of_options_do_not_count_from_anything() -> None:
    spec = load_spec("generic")
    rows = [{**GOOD, "options": ["4", "5", "6", "7"], "answer": str(number)} for number in (4, 5)]
    assert [item.gold for item in items(*rows, spec=spec)] == [0, 1]


def test_no_records_are_no_items() -> None:
    assert items() == []


def test_issues_carry_the_value_that_shows_them() -> None:
    checked = list(checked_items(SPEC, records([{**GOOD, "answer": 9}, GOOD])))
    assert [(issue.code, issue.detail) for issue in checked[0].issues] == [
        ("gold_out_of_range", "gold 9, options A to C: ['apple', 'sky', 'grass']")
    ]
    assert checked[0].record.where == "f.jsonl: line 1"


SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=6),
    st.sampled_from(["A", "B. x", "N/A", "1-2", "0:30", '["x"]', "https://huggingface.co/o/r/resolve/main/x%ff"]),
)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
)


@settings(max_examples=60)  # 12 s at the usual 100: drawing nested records is slow
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([*GOOD, "id", "start", "end", "duration", "category", "text", "a0", "a1"]), VALUE
        )
    )
)
def test_any_record_becomes_an_item_that_can_be_written(rows: list[dict[str, Any]]) -> None:
    spec = load_spec("generic")
    made = []
    try:
        made.extend(items_of(spec, records([{**GOOD, "answer": 0}, *rows])))
    except InputError:
        raise AssertionError("a good first record makes the file good") from None
    assert len(made) == len(rows) + 1
    for item in made:
        texts = (item.item_id, item.source_id, item.question, *item.options, item.video_key, item.category)
        assert all(text.encode() is not None for text in texts)
        assert (item.format == "open") == any(map(blocking, item.issues))
        assert set(item.issues) <= set(ISSUES)
        if item.format == "mcq":
            assert 2 <= len(item.options) <= 26
            assert item.gold is not None
            assert 0 <= item.gold < len(item.options)


def test_a_filter_leaves_records_out_and_counts_them() -> None:
    spec = replace(SPEC, where={"split": ["val", "dev"], "n": 1})
    rows = [
        {**GOOD, "split": split, "n": n} for split, n in [("val", 1), ("test", 1), ("DEV ", "1"), ("val", 2), (None, 1)]
    ]
    together = Together(spec)
    found = list(checked_items(spec, records(rows), together))
    assert [checked.item.item_id for checked in found] == ["b_0", "b_2"]  # rows keep their numbers
    assert together.left_out == 3
    with pytest.raises(InputError, match=r"f\.jsonl: no record has 'splt', which is needed for where"):
        items(*rows, spec=replace(SPEC, where={"splt": "val"}))
    with pytest.raises(InputError, match=r"no record is one of split = 'train': all 5 are left out\. Cure: mend where"):
        items(*rows, spec=replace(SPEC, where={"split": "train"}))


def test_flags_and_missing_values_can_be_filtered_by() -> None:
    rows = [{**GOOD, "hard": hard} for hard in (True, "True", "true", False, None)]
    assert len(items(*rows, spec=replace(SPEC, where={"hard": True}))) == 3
    assert len(items(*rows, spec=replace(SPEC, where={"hard": ""}))) == 1


def test_open_ended_records_are_kept_as_such_and_may_lack_everything() -> None:
    spec = replace(SPEC, mcq_where={"kind": "mc"})
    found = items(
        {**GOOD, "kind": "mc"}, {"kind": "open", "question": "Why?", "video": "v", "answer": "For fun."}, spec=spec
    )
    assert [(item.format, item.issues) for item in found] == [("mcq", ()), ("open", ("open_ended",))]
    assert (found[1].options, found[1].gold) == ((), None)


def test_a_benchmark_without_options_is_open_and_no_error() -> None:
    spec = replace(SPEC, options=Options(kind="none"), gold=Gold(kind="none"))
    rows = [{"question": "Why?", "video": "v"}, {"question": "When?", "video": "v"}]
    assert [item.issues for item in items(*rows, spec=spec)] == [("open_ended",), ("open_ended",)]


def test_files_with_other_columns_can_follow_one_another() -> None:
    """MLVU: the files 8 and 9 have neither `candidates` nor, in part, the columns of the others."""
    found = items(GOOD, {"question": "q", "video": "w.mp4", "scoring_points": [1]}, {**GOOD, "video_name": "x"})
    assert [item.format for item in found] == ["mcq", "open", "mcq"]


def test_a_fixed_question() -> None:
    spec = replace(SPEC, question="", question_text="Which caption fits the video?")
    assert {item.question for item in items(GOOD, {**GOOD, "question": None}, spec=spec)} == {spec.question_text}


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Why?\nAnswer with the letter.", "Why?"),
        ("Why?", "Why?"),
        ("Answer with care: why?", "Answer with care: why?"),
    ],
)
def test_a_prompts_ending_is_cut_off(question: str, kept: str) -> None:
    assert (
        items({**GOOD, "question": question}, spec=replace(SPEC, question_tail=r"\s+Answer with"))[0].question == kept
    )


@pytest.mark.parametrize(
    ("values", "question", "issues"),
    [
        ('["flute", "left"]', "Is the flute left?", ()),
        (["flute", 2], "Is the flute 2?", ()),
        ('["flute"]', "Is the <Object> <RL>?", ("media_placeholder",)),
        ("flute", "Is the <Object> <RL>?", ("media_placeholder",)),
        ("[" * 100_000, "Is the <Object> <RL>?", ("media_placeholder",)),
        (None, "Is the <Object> <RL>?", ("media_placeholder",)),
        ({"a": 1}, "Is the <Object> <RL>?", ("media_placeholder",)),
    ],
)
def test_placeholders_are_filled_in_order_or_not_at_all(values: Any, question: str, issues: tuple[str, ...]) -> None:
    spec = replace(SPEC, question_fill="templ_values")
    item = items({**GOOD, "question": "Is the <Object> <RL>?", "templ_values": values}, spec=spec)[0]
    assert item.question == question
    assert [code for code in item.issues if code == "media_placeholder"] == list(issues)


def test_one_value_that_is_no_list_fills_one_place() -> None:
    spec = replace(SPEC, question_fill="value")
    assert (
        items({**GOOD, "question": "How many <Object>s?", "value": "flute"}, spec=spec)[0].question
        == "How many flutes?"
    )


def test_options_are_cut_out_of_the_question() -> None:
    spec = replace(
        SPEC, options=Options(kind="embedded"), gold=Gold(kind="letter", field="answer"), question_tail="\nBest:"
    )
    row = {**GOOD, "question": "What is red?\nA. apple\nB. sky\nBest:", "answer": "B"}
    item = items(row, spec=spec)[0]
    assert (item.question, item.options, item.gold) == ("What is red?", ("apple", "sky"), 1)
    named = replace(spec, options=Options(kind="embedded", field="question"))
    assert items({**row, "question": "What is red?\nA. apple\nB. sky"}, spec=named)[0] == item
    other = replace(spec, options=Options(kind="embedded", field="text"))
    assert items({**GOOD, "text": "A. apple\nB. sky", "answer": "B"}, spec=other)[0].question == "What is red?"
    assert items(row, {**row, "question": "What?\nA. x\nC. y"}, spec=spec)[1].issues[0] == "unreadable_options"


def test_options_are_put_in_an_order_drawn_for_the_item() -> None:
    spec = replace(SPEC, gold=Gold(kind="last"), options=Options(kind="list", field="options", shuffle=True), id="id?")
    rows = [{"question": f"{n}?", "options": ["p", "q", "r", f"gold {n}"], "video": str(n)} for n in range(200)]
    found = items(*rows, spec=spec)
    assert all(item.options[item.gold or 0] == f"gold {n}" for n, item in enumerate(found))
    assert all((item.file_gold, item.issues) == (3, ("shuffled_options",)) for item in found)
    counts = Counter(item.gold for item in found)
    assert set(counts) == {0, 1, 2, 3}
    assert max(counts.values()) < 80
    order = random.Random("42|options|b_7").sample(range(4), 4)
    assert found[7].options == tuple(["p", "q", "r", "gold 7"][place] for place in order)
    assert items(*rows, spec=spec) == found


def test_a_shuffled_hidden_gold_stays_hidden() -> None:
    spec = replace(SPEC, gold=Gold(kind="none"), options=Options(kind="list", field="options", shuffle=True))
    item = items(GOOD, spec=spec)[0]
    assert (item.gold, item.file_gold, sorted(item.options)) == (None, None, ["apple", "grass", "sky"])


@pytest.mark.parametrize(
    ("row", "key", "issues"),
    [
        ({"v1": "a.mp4", "v2": "b.mp4"}, "b::::a.mp4|b.mp4", ("several_videos",)),
        ({"v1": "a.mp4", "v2": None}, "b::::a.mp4", ()),
        ({"v1": " ", "v2": "b.mp4"}, "b::::b.mp4", ()),
        ({"v1": None, "v2": ""}, "", ("no_video",)),
        ({"v1": ["a", "b"], "v2": "c"}, "b::::a|b|c", ("several_videos",)),
        ({"v1": "a", "v2": "", "frames": "a/1.jpg"}, "b::::a", ("frames_not_video",)),
    ],
)
def test_several_videos_and_frames(row: dict[str, Any], key: str, issues: tuple[str, ...]) -> None:
    spec = replace(SPEC, video=VideoFields(members=("v1", "v2"), frames="frames?"))
    item = items({**GOOD, **row}, spec=spec)[0]
    assert (item.video_key, item.issues) == (key, issues)


def test_known_errors_are_kept_as_open_and_those_that_no_item_has_are_told() -> None:
    spec = replace(SPEC, errata={"7": "none of the options is right", "9": "typing error"})
    together = Together(spec)
    found = list(checked_items(spec, records([{**GOOD, "id": 7}, {**GOOD, "id": 8, "video": "w"}]), together))
    assert [(checked.item.format, checked.item.issues) for checked in found] == [("open", ("erratum",)), ("mcq", ())]
    assert found[0].issues[0].detail == "7: none of the options is right"
    assert list(together.unmet_errata) == ["9"]


def test_subtitles_and_groups_are_kept() -> None:
    item = items({**GOOD, "srt": "s/a.srt", "pair": 4}, spec=replace(SPEC, subtitles="srt|basename", group="pair"))[0]
    assert (item.subtitles, item.group) == ("a.srt", "4")


@pytest.mark.parametrize(
    ("inside", "automatic"), [("", "set text text"), ("videos/v7/qa.json", "v7 text qa"), ("qa.json", " text qa")]
)
def test_file_member_and_folder_can_be_named(inside: str, automatic: str) -> None:
    """Causal-VidQA: the folder is the video."""
    spec = replace(SPEC, category="{_folder} {_file} {_member}" if inside != "qa.json" else " {_file} {_member}")
    record = Record(dict(GOOD), Path("data/set/text.json.gz"), "record 1", 0, inside)
    assert next(items_of(spec, [record])).category == automatic


def test_a_field_of_the_file_wins_over_an_automatic_one() -> None:
    assert items({**GOOD, "_file": "own"}, spec=replace(SPEC, category="_file"))[0].category == "own"


def test_what_a_record_becomes_is_small_and_can_be_sent() -> None:
    """A worker process maps; whoever holds the rows together sees no record again."""
    big = {**GOOD, "reasoning": "x" * 10_000}
    sent = [
        pickle.dumps(map_record(SPEC, record, row)) for row, record in enumerate(records([big, {**big, "answer": 1}]))
    ]
    assert max(map(len, sent)) < 1_500
    together = Together(SPEC)
    found = [together.add(pickle.loads(data)) for data in sent]
    together.finish()
    assert found == list(checked_items(SPEC, records([big, {**big, "answer": 1}])))
    assert [issue.detail for checked in found if checked for issue in checked.issues] == ["gold 'sky', before 'apple'"]


def test_a_repeat_is_known_without_the_item() -> None:
    """Another process may keep the items and send what identifies them alone."""
    together = Together(SPEC)
    for row, record in enumerate(records([GOOD, GOOD])):
        mapped = map_record(SPEC, record, row)
        mapped.item = replace(mapped.item, options=()) if mapped.item else None
        checked = together.add(mapped)
    assert checked is not None
    assert checked.item.issues == ("repeated_item",)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@settings(max_examples=25)  # each writes a file
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": TEXT,
                "question": TEXT,
                "options": st.lists(TEXT, min_size=2, max_size=6, unique=True),
                "answer": st.integers(0, 7),
                "video": TEXT,
                "start": st.none() | st.floats(0, 50),
                "end": st.none() | st.floats(51, 1e5),
                "category": st.none() | TEXT,
                "duration": st.none() | st.floats(0, 1e5),
                "sub": st.none() | TEXT,
                "pair": st.none() | st.integers(),
            }
        ),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_spec_to_items_to_parquet_to_items_is_exact(rows: list[dict[str, Any]], shuffle: bool) -> None:
    spec = replace(
        SPEC, options=Options(kind="list", field="options", shuffle=shuffle), subtitles="sub", group="{pair}/{question}"
    )
    made = items({**GOOD, "sub": "s", "pair": 1}, *rows, {**GOOD, "answer": 2, "sub": "s", "pair": 1}, spec=spec)
    assert len(made) == len(rows) + 2
    with tempfile.TemporaryDirectory() as folder:
        models = {LADDER[number].role: Model(model="none") for number in Protocol().steps}
        study = Study(Path(folder), Config(study_version=1, models=models))
        study.write_pool(iter(made))
        assert study.items() == made
