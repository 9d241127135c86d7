"""Faults of annotation files that were reported in public, each rebuilt in a few rows, with what becomes of it here.

Numbers are those of the field guide's list; those about videos and about replies have their tests beside these rooms.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Config, Model
from benchcheck.errors import InputError
from benchcheck.pool.gold import Gold
from benchcheck.pool.issues import ISSUES
from benchcheck.pool.items import Item
from benchcheck.pool.options import Options
from benchcheck.pool.reading.nesting import unnest
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec, VideoFields
from benchcheck.pool.together import items_of
from benchcheck.screen.answers import prompts_of
from benchcheck.screen.steps import LADDER

SPEC = Spec(
    bench="b",
    id="id?",
    question="question",
    options=Options(kind="list", field="candidates"),
    gold=Gold(kind="text", field="answer"),
    video=VideoFields(member="video"),
)
GOOD = {"question": "What colour?", "candidates": ["red", "blue"], "answer": "red", "video": "first.mp4"}
BY_INDEX = replace(SPEC, gold=Gold(kind="index", field="answer"))


def items(spec: Spec, *rows: dict[str, Any]) -> list[Item]:
    return list(items_of(spec, [Record(row, Path("f.json"), f"record {n + 1}", n) for n, row in enumerate(rows)]))


def test_1_a_gold_that_is_not_among_the_options_is_no_first_option() -> None:
    """FlagOpen/FlagEmbedding#976."""
    item = items(SPEC, GOOD, {**GOOD, "answer": "green", "video": "v"})[1]
    assert (item.gold, item.format, item.issues) == (None, "open", ("gold_not_among_options",))


def test_2_an_item_whose_options_are_all_wrong_is_taken_out_by_a_list() -> None:
    """zai-org/LVBench#16: the file looks sound, only a reader of the video can know."""
    row = {"id": 7, "question": "How many?", "candidates": ["1", "2", "3"], "answer": 2, "video": "v"}
    spec = replace(BY_INDEX, errata={"7": "the truth is 4"})
    assert items(BY_INDEX, row)[0].format == "mcq"
    assert (items(spec, row)[0].format, items(spec, row)[0].issues) == ("open", ("erratum",))


def test_5_na_is_no_label() -> None:
    """zai-org/MotionBench#5, with its questions below a video."""
    video = {
        "key": "v",
        "qa": [{"uid": "u", "question": "Which?\nA. x\nB. y", "answer": answer} for answer in ("NA", "B")],
    }
    spec = replace(SPEC, options=Options(kind="embedded"), gold=Gold(kind="letter", field="answer"), id="uid",
                   video=VideoFields(member="key"))  # fmt: skip
    hidden, known = items(spec, *unnest([video], ["each:qa"]))
    assert (hidden.gold, hidden.format, hidden.issues) == (None, "open", ("hidden_gold",))
    assert (hidden.question, hidden.options, known.gold) == ("Which?", ("x", "y"), 1)


def test_7_letters_come_from_the_number_of_options() -> None:
    """EmbodiedCity/UrbanVideo-Bench.code#1: 2 to 8 options against a prompt of five, and rows without options."""
    spec = replace(SPEC, gold=Gold(kind="letter", field="answer"))
    eight = [f"place {n}" for n in range(8)]
    none, last = items(
        spec, {"question": "Which?", "answer": "C", "video": "v"}, {**GOOD, "candidates": eight, "answer": "H"}
    )
    assert (none.format, none.issues) == ("open", ("no_options",))
    assert (last.format, last.gold) == ("mcq", 7)


def test_8_a_time_after_the_videos_end_is_noted() -> None:
    """THUNLP-MT/StreamingBench#18."""
    spec = replace(SPEC, video=VideoFields(member="video", end="time_stamp"), duration="duration")
    found = items(
        spec, {**GOOD, "time_stamp": "00:06:22", "duration": 300}, {**GOOD, "time_stamp": "00:04:22", "duration": 300}
    )
    assert [(item.end, item.issues) for item in found] == [(382.0, ("window_out_of_range",)), (262.0, ())]


def test_9_a_record_that_stands_for_several_items_is_taken_apart() -> None:
    """JoeLeelyf/OVO-Bench#5: how many items there are depends on who counts."""
    rows = [{"task": "REC", "test_info": [{"realtime": 5, "count": 1}, {"realtime": 9, "count": 2}]}, {"task": "EPM"}]
    assert list(unnest(rows, ["each?:test_info"])) == [
        {"task": "REC", "_i": 0, "realtime": 5, "count": 1},
        {"task": "REC", "_i": 1, "realtime": 9, "count": 2},
        {"task": "EPM"},
    ]


def test_10_frames_in_place_of_a_video_are_noted_and_another_name_of_the_options_ends_the_build() -> None:
    """MCG-NJU/StreamForest#4 and #2."""
    spec = replace(SPEC, video=VideoFields(member="video", frames="image_file?"))
    assert items(spec, {**GOOD, "image_file": "v/f1.jpg"}, {**GOOD, "video": "w"})[0].issues == ("frames_not_video",)
    renamed = {"question": "q", "options": ["x", "y"], "answer": "x", "video": "v"}
    with pytest.raises(
        InputError, match=r"no record has options\. Allowed: 'candidates'\. Its fields: 'question', 'options'"
    ):
        items(spec, renamed)


def test_11_a_clip_is_cut_into_id_and_span_but_not_an_id_with_underscores() -> None:
    """imagegridworth/IG-VLM#12 and #7."""
    spec = replace(SPEC, video=VideoFields(member="{video|clip}.mp4", window="video|span"))
    clip, whole = items(spec, {**GOOD, "video": "AB12C_1.5_7.0"}, {**GOOD, "video": "a_b_1"})
    assert (clip.video_key, clip.start, clip.end) == ("b::::AB12C.mp4", 1.5, 7.0)
    assert (whole.video_key, whole.start, whole.end) == ("b::::a_b_1.mp4", None, None)


def test_12_an_id_that_counts_within_a_video_is_none_of_the_benchmark() -> None:
    """doc-doc/NExT-QA#11."""
    found = items(replace(SPEC, id="qid"), {**GOOD, "qid": 0}, {**GOOD, "qid": 0, "video": "w"})
    assert [(item.item_id, item.source_id, item.issues) for item in found] == [("b_0", "0", ()), ("b_1", "0", ())]


def test_13_files_with_other_columns_follow_one_another() -> None:
    """JUNJIE99/MLVU#11 and #13."""
    open_ended = {"video_name": "w.mp4", "question": "What happens?", "answer": "Much.", "scoring_points": ["a"]}
    found = items(SPEC, GOOD, open_ended)
    assert [(item.format, item.issues) for item in found] == [
        ("mcq", ()),
        ("open", ("no_options", "no_video")),
    ]


def test_14_options_that_look_alike_are_alike() -> None:
    """Sakshi113/MMAU#31, hendrycks/test#21: spaces, and spaces that do not break."""
    item = items(BY_INDEX, {**GOOD, "candidates": ["4", "4 ", "4\u00a0", "5"], "answer": 0})[0]
    assert (item.gold, item.issues) == (0, ("duplicate_options", "duplicate_gold"))


def test_14_two_right_answers_are_no_single_one() -> None:
    """medmcqa/medmcqa#5: `select two` in a set of single answers."""
    row = {**GOOD, "candidates": ["red", "blue", "green"], "answer": "A, C"}
    item = items(
        replace(SPEC, gold=Gold(kind="letter", field="answer")), {**GOOD, "answer": "A"}, {**row, "video": "v"}
    )[1]
    assert (item.gold, item.format, item.issues) == (None, "open", ("several_gold",))


def test_15_the_items_of_a_pair_stay_together_and_a_swapped_gold_shows() -> None:
    """tsb0601/MMVP#30: the two items of a pair have one question and must differ in their gold."""
    found = items(
        replace(SPEC, group="pair"),
        *({**GOOD, "pair": 1, "video": video, "answer": "red"} for video in ("x", "y", "x")),
    )
    assert [item.group for item in found] == ["1", "1", "1"]
    assert [item.issues for item in found] == [(), (), ("repeated_item",)]
    assert len({item.gold for item in found[:2]}) == 1  # what a reader of the pool can ask for by group


def test_16_questions_about_speech_are_noted() -> None:
    """V-STaR-Bench/V-STaR#6."""
    assert items(SPEC, {**GOOD, "question": "What did the man say about it?"})[0].issues == ("speech_in_question",)


def test_22_subtitles_are_never_shown() -> None:
    """open-compass/VLMEvalKit#1207: a switch that was off gave them all the same."""
    spec = replace(SPEC, subtitles="subs", group="pair")
    item = items(spec, {**GOOD, "subs": "He says: it is red.", "pair": "He says"})[0]
    assert item.subtitles == "He says: it is red."
    config = Config(study_version=1, models={step.role: Model(model="none") for step in LADDER.values()})
    shown = [str(prompt) for step in LADDER.values() for prompt in prompts_of(item, step, config)]
    assert len(shown) >= len(LADDER)
    assert not any("He says" in text for text in shown)


def test_25_an_open_question_gets_no_made_up_choices() -> None:
    """open-compass/VLMEvalKit PR#1642: a gold `A` in an open item."""
    spec = replace(SPEC, gold=Gold(kind="auto", field="answer"), mcq_where={"type": "mc"})
    item = items(
        spec, {**GOOD, "type": "mc"}, {"question": "Which letter?", "type": "open", "answer": "A", "video": "v"}
    )[1]
    assert (item.options, item.gold, item.format, item.issues) == ((), None, "open", ("open_ended",))
    assert ISSUES["open_ended"].blocks


def test_31_a_gold_beyond_the_options_is_known_when_the_pool_is_built() -> None:
    """EleutherAI/lm-evaluation-harness#811, huggingface/lighteval#1162."""
    rows = [{**GOOD, "answer": 0}, {**GOOD, "candidates": ["red", "blue", "green"], "answer": 3, "video": "v"}]
    item = items(BY_INDEX, *rows)[1]
    assert (item.gold, item.format, item.issues) == (None, "open", ("gold_out_of_range",))
