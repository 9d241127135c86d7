"""Guessing how unknown records are read: names, contents, what is asked for, and what the user says."""

import json
import re
from typing import Any

import pytest

from benchcheck.config import from_table
from benchcheck.errors import SpecError
from benchcheck.pool.adding.guess import KEYS, Guess, given_mapping, guess
from benchcheck.pool.adding.guess_gold import find_gold, is_gold_name
from benchcheck.pool.adding.guess_names import (
    Doubt,
    Found,
    Sample,
    find_named,
    find_question,
    leak_fields,
    named,
    plain,
    unused_times,
)
from benchcheck.pool.adding.guess_options import UNNAMED, columns_of, families, option_candidates, options_given
from benchcheck.pool.options import COLUMN_FAMILIES
from benchcheck.pool.specs import Spec

TEXTS = ["a red ball", "a cup", "two dogs", "nobody"]


def records(count: int = 8, **fields: Any) -> list[dict[str, Any]]:
    """Records with a question; of a list the value of a record's place, of a function what it gives."""
    found = []
    for number in range(count):
        record: dict[str, Any] = {"question": f"What is seen at place {number}?"}
        for name, value in fields.items():
            record[name.replace("__", " ")] = value(number) if callable(value) else value
        found.append(record)
    return found


def of(*given: str, count: int = 8, **fields: Any) -> Guess:
    made = guess(Sample(records(count, **fields)), given_mapping(given), "mine")
    if not made.doubts:
        from_table(Spec, made.table, "guessed", SpecError)
    return made


def letter(number: int) -> str:
    return "ABCD"[number % 4]


def doubts(made: Guess) -> list[tuple[str, tuple[str, ...]]]:
    return [(doubt.key, doubt.choices) for doubt in made.doubts]


def columns(names: str) -> dict[str, Any]:
    return dict(zip(names.split(), TEXTS, strict=False))


# Names


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("Video ID", "video_id"),
        ("videoID", "video_id"),
        ("gt-answer", "gt_answer"),
        ("correctAnswer", "correct_answer"),
    ],
)
def test_names_are_compared_plainly(name: str, same: str) -> None:
    assert plain(name) == same


def test_a_question_of_an_odd_name_comes_after_known_ones() -> None:
    found = find_question(Sample([{"question_en_v2.2": "Who is it?"}] * 2))
    assert isinstance(found, Found)
    assert found.value == "question_en_v2.2"


def test_known_names_come_by_rank_and_nested_ones_after() -> None:
    assert named(["x", "meta.video", "vid", "video"], ("video", "vid")) == [(0, "video"), (1, "vid"), (2, "meta.video")]


@pytest.mark.parametrize("name", ["answer", "gt", "correct_choice", "right_answer", "gt-answer", "qa.answer", "anser"])
def test_names_of_golds(name: str) -> None:
    assert is_gold_name(name)


@pytest.mark.parametrize(
    "name", ["prediction", "pred_answer", "answer_type", "answer_time", "question", "correct_interval"]
)
def test_names_that_are_no_golds(name: str) -> None:
    assert not is_gold_name(name)


# Question


def test_two_questions_of_one_rank_are_asked_for() -> None:
    sample = Sample([{"Question": "Who is it?", "question": "Who was it?"}] * 3)
    assert find_question(sample) == Doubt("question", "'Question' and 'question' look alike", ("Question", "question"))


def test_a_question_under_another_name_is_what_asks() -> None:
    found = find_question(Sample([{"what": "Who is it?", "note": "no text"}] * 3))
    assert found is not None
    assert not isinstance(found, Doubt)
    assert (found.value, found.reason) == ("what", "a text in 3 of 3, 1 different")


def test_two_questions_leave_the_spec_open() -> None:
    rows = [
        {"Question": "Who is it?", "question": "Who was it?", "options": TEXTS, "answer": letter(n)} for n in range(4)
    ]
    assert doubts(guess(Sample(rows), {}, "b")) == [("question", ("Question", "question"))]


def test_steps_to_the_records_stand_in_the_spec() -> None:
    steps = [Found("flatten", "a list"), Found("each:qa", "its questions")]
    made = guess(Sample(records(4, options=TEXTS, answer=letter)), {}, "b", steps)
    assert (made.table["unnest"], made.reasons["unnest"]) == (["flatten", "each:qa"], "a list; its questions")


def test_what_asks_twice_is_asked_for_and_what_does_not_is_none() -> None:
    assert isinstance(find_question(Sample([{"one": "Who is it?", "other": "Who was it?"}])), Doubt)
    assert find_question(Sample([{"caption": "a dog runs"}])) is None


def test_a_nested_question() -> None:
    made = guess(
        Sample([{"qa": {"question": "Who is it?", "answer": letter(n)}, "options": TEXTS} for n in range(4)]), {}, "b"
    )
    assert (made.table["question"], made.table["gold"]["field"]) == ("qa.question", "qa.answer")


def test_records_without_any_question_are_asked_for() -> None:
    made = guess(Sample([{"events": TEXTS, "answer": number} for number in range(4)]), {}, "b")
    assert doubts(made) == [("question_text", ("Which option fits the video?",))]
    made = guess(Sample([{"events": TEXTS, "answer": number} for number in range(4)]), {"question_text": "Which?"}, "b")
    assert (made.doubts, made.table["question_text"]) == ([], "Which?")


# Options


@pytest.mark.parametrize(
    ("names", "head"),
    [
        ("a0 a1 a2", "a"),
        ("a1 a2 a3", "a"),
        ("A B C", ""),
        ("option_a option_b", "option"),
        ("optionA optionB", "option"),
        ("answer_choice_0 answer_choice_1", "answer_choice"),
        ("choice 1 choice 2", "choice"),
    ],
)
def test_families_of_columns(names: str, head: str) -> None:
    parts = names.split() if not names.startswith("choice ") else ["choice 1", "choice 2"]
    assert families(parts) == [(head, tuple(parts))]


@pytest.mark.parametrize(
    "names", [["what?"], ["a", "id"], ["a0"], ["a2", "a3"], ["video", "audio"], ["b", "c"], ["qa", "qb"]]
)
def test_names_that_are_no_family(names: list[str]) -> None:
    assert families(names) == []


@pytest.mark.parametrize(
    ("fields", "kind", "value"),
    [
        ({"options": TEXTS}, "list", "options"),
        ({"options": repr(TEXTS)}, "list", "options"),
        ({"options": json.dumps(TEXTS)}, "list", "options"),
        ({"Choice": dict(zip("ABCD", TEXTS, strict=True))}, "dict", "Choice"),
        ({"option": {f"option {n}": text for n, text in enumerate(TEXTS)}}, "dict", "option"),
        ({"options": json.dumps(dict(zip("ABCD", TEXTS, strict=True)))}, "dict", "options"),
        (columns("a1 a2 a3 a4"), "columns", "a1,a2,a3,a4"),
        (columns("zz_1 zz_2 zz_3 zz_4"), "columns", "zz_1,zz_2,zz_3,zz_4"),
        ({"mcq_test": "A. a cup\nB. a ball"}, "embedded", "embedded:mcq_test"),
        ({"shown": TEXTS, "position": [1, 2]}, "list", "shown"),
        ({"wrong_1": "a", "wrong_2": "b", "correct": "c"}, "pair", "pair:correct,wrong_1,wrong_2"),
        ({"caption": "a dog", "foils": ["a cat", "a cow"]}, "pair", "pair:caption,foils"),
        ({"choices": [{"choice": text, "right": "no"} for text in TEXTS]}, "list", "choices:choice"),
        ({"answer": "Yes."}, "const", "const:yes,no"),
        ({"answer": "false"}, "const", "const:true,false"),
    ],
)
def test_kinds_of_options(fields: dict[str, Any], kind: str, value: str) -> None:
    found = option_candidates(Sample(records(3, **fields)), "question")
    assert [(one.options.kind, one.value) for one in found] == [(kind, value)]
    again = options_given(Sample(records(3, **fields)), found[0].value)
    assert [again.count, again.options.kind] == [found[0].count, kind]


def test_options_in_the_question() -> None:
    sample = Sample([{"question": "Who?\n(A) a man\n(B) a dog", "answer": letter(n % 2)} for n in range(4)])
    made = guess(sample, {}, "b")
    assert made.table["options"] == {"kind": "embedded", "field": "question"}
    assert made.table["gold"] == {"kind": "letter", "field": "answer"}


def test_no_options_says_which_fields_there_are() -> None:
    made = of(ans=letter)
    assert doubts(made) == [("options", ())]
    assert "Its fields: question, ans" in made.doubts[0].why


def test_a_dict_or_list_that_is_no_option_list() -> None:
    odd = {
        "meta": {"fps": 30, "size": 4},
        "one": {"A": "x"},
        "mix": {"a1": "x", "b2": "y"},
        "video_1": "v",
        "video_2": "w",
    }
    assert option_candidates(Sample(records(3, **odd, spans=[[1, 2]], nothing=[])), "question") == []
    assert option_candidates(Sample([{"one": "two", "tags": "[]"}]), "") == []
    assert option_candidates(Sample(records(3, choices="one", correct="maybe")), "question") == []
    assert option_candidates(Sample(records(3, q1="x y?", q2="z?", list_1=[1], list_2=[2])), "question") == []


def test_options_that_no_name_tells_are_taken_by_the_golds_words_alone() -> None:
    zz = {f"zz_{number}": text for number, text in enumerate(TEXTS)}
    assert of(**zz, answer=lambda n: TEXTS[n % 4]).table["options"]["fields"] == ["zz_0", "zz_1", "zz_2", "zz_3"]
    assert doubts(of(**zz, answer=letter)) == [("options", ("zz_0,zz_1,zz_2,zz_3",))]
    assert doubts(of("gold=answer", **zz, answer=letter)) == [("options", ("zz_0,zz_1,zz_2,zz_3",))]
    assert of("options=zz_*", **zz, answer=letter).table["gold"] == {"kind": "letter", "field": "answer"}


def test_a_list_of_kinds_is_not_taken_for_the_options_in_the_question() -> None:
    asked = "Who?\n(A) he\n(B) she"
    rows = [{"question": asked, "question_type": ["who", "when"], "answer": "AB"[n % 2]} for n in range(4)]
    assert guess(Sample(rows), {}, "b").table["options"] == {"kind": "embedded", "field": "question"}


def test_orders_to_a_model_are_cut_off_the_question() -> None:
    order = "Answer with the option's letter directly."
    rows = [{"question": f"Who is {n}?\n(A) he\n(B) she\n{order}", "answer": "AB"[n % 2]} for n in range(4)]
    made = guess(Sample(rows), {}, "b")
    assert made.table["question_tail"] == re.escape(order)
    assert "question_tail" not in guess(Sample(rows[:1]), {}, "b").table


def test_two_sets_of_options_are_told_apart_by_the_gold_or_asked_for() -> None:
    others = ["x", "y", "z", "w"]
    assert of(options=TEXTS, choices=others, answer=lambda n: TEXTS[n % 4]).table["options"]["field"] == "options"
    assert doubts(of(options=TEXTS, choices=others, answer=letter)) == [("options", ("options", "choices"))]
    assert of("options=choices", options=TEXTS, choices=others, answer=letter).table["options"]["field"] == "choices"


def test_the_same_options_twice_are_one() -> None:
    assert of(options=TEXTS, choices=TEXTS, answer=letter).table["options"]["field"] == "options"


def test_options_that_a_user_names() -> None:
    sample = Sample(records(2, **columns("o1 o2 o10"), question2="Who?\nA. x\nB. y"))
    assert columns_of(sample, "o*") == ("o1", "o2", "o10")
    assert options_given(sample, "o1, o10").options.fields == ("o1", "o10")
    assert options_given(sample, "embedded:question2").count == 2
    assert options_given(sample, "question2").options.kind == "embedded"
    assert options_given(sample, "none").options.kind == "none"
    assert options_given(sample, "const:yes,no").options.values == ("yes", "no")
    with pytest.raises(SpecError, match=r"--map options=pair:question: kind = 'pair' needs gold_field and others"):
        of("options=pair:question")


@pytest.mark.parametrize("family", COLUMN_FAMILIES, ids=lambda family: family[0])
def test_columns_that_a_build_knows_are_known_here_too(family: tuple[str, ...]) -> None:
    """One list of names is for a build, which takes them at their word; this one has to know all of it, and more."""
    sample = Sample(records(3, **dict(zip(family[:3], TEXTS, strict=False))))
    assert [one.options.fields for one in option_candidates(sample, "question")] == [family[:3]]
    assert option_candidates(sample, "question")[0].tier < UNNAMED


# Gold


@pytest.mark.parametrize(
    ("value", "gold"),
    [
        (letter, {"kind": "letter"}),
        (lambda n: letter(n).lower(), {"kind": "letter"}),
        (lambda n: f"({letter(n)})", {"kind": "letter"}),
        (lambda n: n % 4, {"kind": "index"}),
        (lambda n: str(n % 4), {"kind": "index"}),
        (lambda n: n % 4 + 1, {"kind": "index", "base": 1}),
        (lambda n: TEXTS[n % 4], {"kind": "text"}),
        (lambda n: f"{letter(n)}. {TEXTS[n % 4]}", {"kind": "letter"}),
    ],
)
def test_kinds_of_golds(value: Any, gold: dict[str, Any]) -> None:
    made = of(options=TEXTS, answer=value)
    assert made.table["gold"] == {"field": "answer", **gold}


def test_numbers_that_may_count_from_0_or_from_1_are_asked_for() -> None:
    made = of(options=TEXTS, answer=lambda n: 1 + n % 3)
    assert doubts(made) == [("gold", ("answer:index0", "answer:index1"))]
    assert "neither 0 nor the number of the options occurs" in made.doubts[0].why
    made = of(options=TEXTS, answer=lambda n: n % 5)
    assert "both 0 and the number of the options occur" in made.doubts[0].why
    assert of(options=["a", "b"], answer=lambda n: n % 2 * 2).doubts[0].why.endswith("from 0 or from 1")
    made = of("gold=answer", options=TEXTS, answer=lambda n: 1 + n % 3)
    assert doubts(made) == [("gold", ("answer:index0", "answer:index1"))]
    assert doubts(of("gold=answer:index", options=TEXTS, answer=lambda n: 1 + n % 3)) == doubts(made)
    assert of("gold=answer:index1", options=TEXTS, answer=lambda n: 1 + n % 3).table["gold"]["base"] == 1


def test_the_place_of_a_filler_says_nothing_of_where_numbers_count_from() -> None:
    made = of(options=["a", "b", "c", None], answer=lambda n: (1, 3)[n % 2])
    assert doubts(made) == [("gold", ("answer:index0", "answer:index1"))]


def test_a_text_beside_the_number_settles_from_where_it_counts() -> None:
    made = of(options=TEXTS, answer_id=lambda n: 1 + n % 3, answer=lambda n: TEXTS[n % 3])
    assert made.table["gold"] == {"kind": "index", "field": "answer_id", "base": 1, "text": "answer"}
    made = of("gold=answer_id:index", options=TEXTS, answer_id=lambda n: 1 + n % 3, answer=lambda n: TEXTS[n % 3 + 1])
    assert made.table["gold"] == {"kind": "index", "field": "answer_id"}
    assert made.reasons["gold.kind"] == "a number, as you say"


@pytest.mark.parametrize("said", [(), ("gold=answer",)])
def test_an_option_is_not_the_golds_text_whatever_its_column_is_called(said: tuple[str, ...]) -> None:
    made = of(*said, count=1, answer_choice_0="2", answer_choice_1="a red ball", answer="2")
    assert doubts(made) == [("gold", ("answer:index1", "answer:text"))]


def test_a_number_that_is_an_option_too_is_asked_for() -> None:
    made = of(options=["2", "0", "1"], answer=lambda n: str(n % 3))
    assert doubts(made) == [("gold", ("answer:index0", "answer:text"))]
    assert made.doubts[0].why.endswith("(record 1: answer:index0 is '2', answer:text is '0')")


def test_two_golds_that_differ_are_asked_for() -> None:
    made = of(options=TEXTS, answer=letter, label=lambda n: letter(n + 1))
    assert doubts(made) == [("gold", ("answer:letter", "label:letter"))]
    assert "differ in 8 of 8 records" in made.doubts[0].why
    assert of("gold=label", options=TEXTS, answer=letter, label=lambda n: letter(n + 1)).doubts == []


def test_a_few_texts_that_contradict_the_index_are_rows_to_look_at() -> None:
    made = of(count=40, options=TEXTS, gt=lambda n: n % 4, answer=lambda n: TEXTS[(n + (n == 7)) % 4])
    assert made.table["gold"] == {"kind": "index", "field": "gt", "text": "answer"}
    assert "another one in 1" in made.reasons["gold.kind"]


def test_letters_and_texts_in_one_field_are_read_as_both() -> None:
    made = of(count=20, options=["Yes", "No"], answer=lambda n: "AB"[n % 2] if n % 3 else ["Yes", "No"][n % 2])
    assert made.table["gold"] == {"kind": "auto", "field": "answer"}
    assert made.reasons["gold.kind"] == "read in two ways: 13 as letter, 7 as text"


def test_a_gold_that_mostly_names_no_option_is_asked_for() -> None:
    made = of(options=TEXTS, answer=lambda n: TEXTS[0] if n < 3 else "something else")
    assert made.doubts[0].why == "'answer' names an option in only 38% of the records that have options"


def test_a_field_that_only_looks_like_a_gold_is_named_and_not_taken() -> None:
    made = of(options=TEXTS, blob=letter, same=lambda n: "a cup", numbers=lambda n: n % 4, all_one=0, tags=["x"])
    assert doubts(made) == [("gold", ("blob:letter", "same:text", "numbers:index0"))]
    assert doubts(of(options=TEXTS, nothing="else")) == [("gold", ())]
    assert doubts(of(options=TEXTS, answer="", nothing="else")) == [("gold", ("none",))]


def test_a_label_may_be_one_of_something_else() -> None:
    made = of(options=TEXTS, label=lambda n: n % 4, zz=letter, other=lambda n: letter(n + 1))
    assert doubts(made) == [("gold", ("label:index0", "other:letter"))]
    assert of(options=TEXTS, label=lambda n: n % 4, zz=letter).table["gold"]["field"] == "label"


def test_right_beside_wrong_answers() -> None:
    made = of(caption="a dog", foils=["a cat", "a cow"])
    assert made.table["gold"] == {"kind": "first"}
    assert made.table["options"]["shuffle"] is True
    made = guess(Sample([{"caption": "a dog", "foils": ["a cat"]}]), {}, "b")
    assert made.table["question_text"] == "Which of these descriptions fits the video?"


def test_choices_that_are_records() -> None:
    parts = [{"choice": "a", "answer": "wrong"}, {"choice": "b", "answer": "Correct"}]
    made = of(choices=parts)
    assert made.table["options"] == {"kind": "list", "field": "choices", "member": "choice"}
    assert made.table["gold"] == {"kind": "per_choice", "field": "answer", "right": "Correct"}
    assert doubts(of(choices=[{"choice": "a", "n": 1}, {"choice": "b", "n": 2}])) == [("gold", ())]
    both = [part | {"correct": part["choice"] == "a"} for part in parts]
    assert doubts(of(choices=both)) == [("gold", ("answer:per_choice", "correct:per_choice"))]
    flagged = [{"text": "a", "seen": False}, {"text": "b", "seen": False}, "no record"]
    assert of("options=choices:text", choices=flagged).table["gold"] == {"kind": "per_choice", "field": "seen"}
    assert of("gold=answer:per_choice", choices=parts).table["gold"] == {"kind": "per_choice", "field": "answer"}


@pytest.mark.parametrize(
    ("said", "gold"),
    [
        ("answer:letter", {"kind": "letter", "field": "answer"}),
        ("answer:auto", {"kind": "auto", "field": "answer"}),
        ("answer", {"kind": "letter", "field": "answer"}),
        ("first", {"kind": "first"}),
        ("none", {"kind": "none"}),
    ],
)
def test_golds_that_a_user_names(said: str, gold: dict[str, Any]) -> None:
    assert of(f"gold={said}", options=TEXTS, answer=letter).table["gold"] == gold


def test_a_named_gold_that_fits_nowhere() -> None:
    made = of("gold=other", options=TEXTS, other="x y z")
    assert doubts(made)[0] == ("gold", ("other:index0", "other:index1", "other:letter", "other:text"))
    assert doubts(of("gold=other:index", options=TEXTS, other="x y z")) == []


def test_the_text_of_the_gold_that_a_user_names() -> None:
    made = of("gold_text=why", options=TEXTS, answer=letter, why=lambda n: TEXTS[n % 4])
    assert made.table["gold"] == {"kind": "letter", "field": "answer", "text": "why"}


def test_a_second_field_that_is_no_text_is_not_the_golds_text() -> None:
    made = of(options=TEXTS, answer=letter, right=7)
    assert made.table["gold"] == {"kind": "letter", "field": "answer"}


def test_hidden_golds_count_for_nothing() -> None:
    made = of(options=TEXTS, answer=lambda n: letter(n) if n % 2 else "NA")
    assert made.reasons["gold.kind"] == "letters B to D; name an option in 4 of 4"
    sample = Sample(records(2, options=TEXTS))
    assert isinstance(find_gold(sample, option_candidates(sample, "question")[0]), Doubt)


# The rest


def test_everything_else_is_found_by_name_and_content() -> None:
    made = of(
        options=TEXTS, answer=letter, video="v.mp4", uid=lambda n: f"u{n}", task_type=lambda n: "ab"[n % 2],
        start=1.5, end="0:09", duration="30s", subtitle_path="s/x.srt", group_id=lambda n: n // 2,
        reasoning="since", clue_intervals=[[1, 2]],
    )  # fmt: skip
    assert made.table["video"] == {"member": "video", "start": "start", "end": "end"}
    assert {key: made.table[key] for key in ("id", "category", "duration", "subtitles", "group")} == {
        "id": "uid", "category": "task_type", "duration": "duration", "subtitles": "subtitle_path", "group": "group_id",
    }  # fmt: skip
    assert made.table["leaks"] == ["reasoning", "clue_intervals"]


def test_fields_that_some_records_lack_may_be_missing() -> None:
    rows = records(4, options=TEXTS, answer=letter, type=lambda n: "ab"[n % 2], duration=3)
    del rows[3]["type"], rows[2]["duration"]
    made = guess(Sample(rows), {}, "b")
    assert (made.table["category"], made.table["duration"]) == ("type?", "duration?")


@pytest.mark.parametrize(
    ("fields", "video"),
    [
        ({"video": 17}, {"member": "video"}),
        ({"video": ["a"], "clip": "c"}, {"member": "clip"}),
        ({"where": "a b/c.MP4"}, {"member": "where"}),
        ({"video": "x.mp4", "prefix": "a/", "start": "", "end": ""}, {"member": "{prefix}{video}"}),
        ({"video": "x", "prefix": "a", "suffix": ".mp4"}, {"member": "{prefix}/{video}{suffix}"}),
        ({"video": "v", "start_ms": 1, "end_ms": 2}, {"member": "video", "start": "start_ms|ms", "end": "end_ms|ms"}),
        ({"video": "v", "begin": 1, "stop": 2}, {"member": "video", "start": "begin", "end": "stop"}),
        ({"video": "v", "start": "soon", "end": 2}, {"member": "video"}),
        ({"video": "v", "question_start_time": 1.0, "question_stop_time": 2.0},
         {"member": "video", "start": "question_start_time", "end": "question_stop_time"}),
        ({"video": "v", "ts": "0.00-60.02"}, {"member": "video", "window": "ts"}),
        ({"video": "v", "ts": "one", "time": [1, 2]}, {"member": "video", "window": "time"}),
        ({"video": "v", "realtime": 12}, {"member": "video", "end": "realtime"}),
    ],
)  # fmt: skip
def test_videos_and_windows(fields: dict[str, Any], video: dict[str, str]) -> None:
    assert of(options=TEXTS, answer=letter, **fields).table["video"] == video


@pytest.mark.parametrize("url", ["https://youtu.be/abcdefghijk?t=3", "https://www.youtube.com/watch?v=abcdefghijk"])
def test_addresses_of_videos_are_a_note(url: str) -> None:
    made = of(options=TEXTS, answer=letter, video_url=url)
    assert made.table["video"] == {"member": "video_url"}
    cure = "--map 'video={video_url|youtube}.mp4'"
    assert made.notes == [
        f"video_url: addresses, and video files are looked for by name. Where files are named by id: {cure}"
    ]


def test_no_video_is_a_note() -> None:
    made = of(options=TEXTS, answer=letter, time_stamp="00:00:05")
    assert made.notes == [
        "no field looks like a video: text steps run, frame steps wait. Cure: --map video=…",
        "time_stamp: a time that is not used; if a question is asked at that second: --map end=time_stamp",
    ]
    assert unused_times(Sample([{"time_stamp": "noon"}]), ()) == []


def test_keys_above_records_are_the_video_or_the_id() -> None:
    rows = records(4, options=TEXTS, answer=letter)
    shared = [{**row, "_key": f"v{number // 2}", "_dim": "ab"[number % 2]} for number, row in enumerate(rows)]
    made = guess(Sample(shared), {}, "b")
    assert (made.table["video"], made.table["category"]) == ({"member": "_key"}, "_dim")
    assert guess(Sample([{**row, "_key": str(n)} for n, row in enumerate(rows)]), {}, "b").table["id"] == "_key"


def test_ids_that_repeat() -> None:
    made = of(options=TEXTS, answer=letter, qid=lambda n: n // 2, video=lambda n: f"v{n % 2}")
    assert made.table["id"] == "{video}_{qid}"
    made = of(options=TEXTS, answer=letter, qid=lambda n: n // 2, video=lambda n: f"v{n % 2}", prefix="p")
    assert made.table["id"] == "{prefix}/{video}_{qid}"
    made = of(count=20, options=TEXTS, answer=letter, qid=lambda n: max(n, 1), video="v")
    assert made.reasons["id"] == "19 different in 20 of 20: some repeat"
    assert "id" not in of(options=TEXTS, answer=letter, qid=1, video="v").table
    assert "id" not in of(options=TEXTS, answer=letter, qid=lambda n: n or None, video="v").table


def test_formats_are_told_by_a_field_where_there_is_one() -> None:
    def kind(number: int) -> str:
        return "multiple-choice" if number % 2 else "open-ended"

    made = of(options=lambda n: TEXTS if n % 2 else [], answer=lambda n: "B", kind=kind)
    assert made.table["mcq_where"] == {"kind": "multiple-choice"}
    made = of(options=lambda n: TEXTS if n % 2 else [], answer="B", kind=lambda n: f"mc{n}" if n in (1, 3) else kind(n))
    assert made.table["mcq_where"] == {"kind": ["mc1", "mc3", "multiple-choice"]}
    made = of(options=lambda n: TEXTS if n % 2 else [], answer="B", kind="all")
    assert made.notes[-1] == "4 of 8 records have no two options: they are kept as open items, and never screened"


def test_what_a_user_says_wins_and_an_empty_value_leaves_out() -> None:
    made = of(
        "video={video}_{uid}", "category=", "end=stop", "id=uid", options=TEXTS, answer=letter, video="v", uid=str,
        type=lambda n: "ab"[n % 2], start=1, stop=3,
    )  # fmt: skip
    assert made.table["video"] == {"member": "{video}_{uid}", "end": "stop"}
    assert "category" not in made.table
    assert of("question=other", options=TEXTS, answer=letter, other="Who is it?").table["question"] == "other"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("gold", "--map gold: not KEY=VALUE with a known key. Allowed keys: question"),
        ("golt=answer", "--map golt=answer: not KEY=VALUE with a known key. Did you mean 'gold'?"),
        ("gold=anwser", "gold=anwser: no record has 'anwser'. Close: answer. Its fields: question, options, answer"),
        ("gold=anwser:letter", "no record has 'anwser'"),
        ("options=x,y", "no record has 'x'"),
        ("options=opt_*", "no record has 'opt_.'"),
        ("options=zzz", "no record has 'zzz'"),
        ("options=pair:nope,answer", "no record has 'nope'"),
        ("video={vid}.mp4", "no record has 'vid'"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_one_line(said: str, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace(".mp4", "")):
        of(said, options=TEXTS, answer=letter)


def test_a_key_given_twice_or_two_questions() -> None:
    with pytest.raises(SpecError, match=r"--map gold is given twice: 'a' and 'b'"):
        given_mapping(["gold=a", "gold=b"])
    with pytest.raises(SpecError, match=r"question and question_text: one of the two"):
        given_mapping(["question=a", "question_text=b"])
    said = [f"{key}={'flatten' if key == 'unnest' else 'x'}" for key in KEYS if key != "question_text"]
    assert set(given_mapping(said)) == KEYS.keys() - {"question_text"}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("gold=", "--map gold=: no value. Allowed: a field, with :index0"),
        ("options= ", "--map options=: no value. Allowed: a field, columns"),
        ("unnest=each:qa,foo", "--map unnest=each:qa,foo: unnest = 'foo' is not allowed. Allowed: values"),
        ("id={video}_{qid", "has a brace without its partner"),
        ("gold=answer|upper", "--map gold=answer|upper: the transform 'upper' is not allowed"),
        ("duration=length|hours", "the transform 'hours' is not allowed"),
    ],
)
def test_a_value_that_nothing_can_be_read_by_is_one_line(said: str, message: str) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        given_mapping([said])


def test_leaks_by_their_names() -> None:
    sample = Sample(
        [{"Explaination": "x", "caption": "y", "subtitles": "long text", "gt_span": 1, "meta": {"clue": 2}}]
    )
    assert leak_fields(sample, ()) == ["Explaination", "caption", "subtitles"]
    assert leak_fields(sample, ("caption",)) == ["Explaination", "subtitles"]
    assert find_named(sample) == {}
    made = of(options=TEXTS, answer=letter, gt_span=1)
    assert made.table["leaks"] == ["gt_span"]


def test_automatic_fields_of_records_are_not_guessed_at() -> None:
    meta = {"a": 1, "fps": 30, "more": {"b": 1, "size": 2}}
    sample = Sample([{"_file": "x", "_key": "k", "meta": meta, "big": {str(n): n for n in range(99)}}])
    assert sample.names == ("_key", "meta", "meta.fps", "meta.more", "meta.more.size", "big")


def test_empty_fields_are_no_answer_to_anything() -> None:
    made = of(options=TEXTS, answer=letter, group="", type="", task_type="one", video="", subtitles="")
    assert {"group", "category", "subtitles"} & made.table.keys() == set()


def test_a_table_of_vlmevalkit() -> None:
    candidates = str([f"{mark}. {text}" for mark, text in zip("ABCD", TEXTS, strict=True)])
    made = of(
        index=str, video="x", candidates=candidates, answer=letter, prefix="clips", suffix=".mp4",
        start=lambda n: "1.5" if n % 2 else "", end=lambda n: "3" if n % 2 else "",
        task_type=lambda n: "ab"[n % 2], subtitle_path="x.srt",
    )  # fmt: skip
    assert made.notes == ["these are the columns of a VLMEvalKit table: prefix and suffix belong to the video's path"]
    assert made.table["video"] == {"member": "{prefix}/{video}{suffix}", "start": "start", "end": "end"}
    assert (made.table["id"], made.table["subtitles"], made.table["category"]) == (
        "index",
        "subtitle_path",
        "task_type",
    )
    assert made.table["options"] == {"kind": "list", "field": "candidates"}
    made = of(index=str, video="x", answer=letter, **columns("A B C D"))
    assert made.table["options"] == {"kind": "columns", "fields": ["A", "B", "C", "D"]}


def test_a_reason_that_asks_is_no_question() -> None:
    given = [{"explanation": f"Because of what? {number}?", "answer": letter(number)} for number in range(8)]
    assert find_question(Sample(given)) is None


def test_several_splits_are_noted() -> None:
    made = of(options=TEXTS, answer=letter, split=lambda number: ["train", "val", "val", "test"][number % 4])
    assert 'split: val 4, train 2, test 2. All are taken; [where] in the spec keeps one: split = "test"' in made.notes
    for kinds in (["val"], ["indoor", "outdoor"], [f"val{number}" for number in range(8)]):
        notes = of(options=TEXTS, answer=letter, subset=lambda number, kinds=kinds: kinds[number % len(kinds)]).notes
        assert not any(note.startswith("subset") for note in notes)


def test_names_that_mean_something_else_in_a_spec_are_left_alone() -> None:
    odd = {"a|b": 1, "{x}": 1, "y{": 1, "video?": "v.mp4", "": 2, "meta": {"z|z": 1}}
    given = [{"question": f"What is at place {n}?", "options": TEXTS, "answer": letter(n), **odd} for n in range(8)]
    sample = Sample(given)
    assert sample.names == ("question", "options", "answer", "meta")
    made = guess(sample, {}, "mine")
    assert not made.doubts
    said = "no spec can name 'a|b', '{x}', 'y{', 'video?', '': not with `|`, a brace or a last `?`"
    assert f"{said}. Cure: rename what you need" in made.notes


def test_keys_that_are_no_texts() -> None:
    given = [{"_key": [n % 2], "question": f"What is at {n}?", "options": TEXTS, "answer": letter(n)} for n in range(8)]
    assert guess(Sample(given), {}, "mine").table["video"] == {"member": "_key"}
