"""Whatever a well-formed benchmark calls its fields, a guess gives the true items or asks: never another gold."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.config import from_table
from benchcheck.errors import SpecError
from benchcheck.pool.adding.guess import Guess, guess
from benchcheck.pool.adding.guess_names import Sample
from benchcheck.pool.adding.guess_nesting import steps_to_records
from benchcheck.pool.reading.nesting import root_records, unnest
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec
from benchcheck.pool.together import checked_items

LETTERS = "ABCDEFGH"
WORDS = (
    *("a red ball", "two dogs", "the left one", "nobody", "yes", "no", "0", "1", "2", "3", "4", "A", "B", "C", "D"),
    *("a cup of tea", "It is raining.", "the man with the hat", "3 times", "left", "right", "none of these"),
)
LIST_NAMES = ("options", "choices", "candidates", "Options", "answer_choices", "mc_options", "events")
QUESTIONS = ("question", "query", "q", "question_text", "Question", "q_body")
GOLDS = ("answer", "gt", "label", "correct_answer", "answer_id", "correct_idx", "gt-answer", "ans", "Answer", "truth")
VIDEOS = ("video", "video_id", "vid", "video_path", "Video ID", "vid_name")
FAMILIES = ("a{}", "option_{}", "option{}", "choice_{}", "answer_choice_{}", "opt {}", "{}", "candidate{}")


@dataclass
class Made:
    """A benchmark that somebody wrote: its document, and per record the options and the right one."""

    document: Any
    truth: list[tuple[list[str], str]]


def options_in(style: str, name: str, options: list[str], prefixed: bool) -> dict[str, Any]:
    texts = [f"{LETTERS[place]}. {text}" for place, text in enumerate(options)] if prefixed else options
    if style == "list":
        return {name: texts}
    if style == "python":
        return {name: repr(texts)}
    if style == "json":
        return {name: json.dumps(texts)}
    if style == "dict":
        return {name: {LETTERS[place]: text for place, text in enumerate(options)}}
    if style == "numbered":
        return {name: {f"option {place}": text for place, text in enumerate(options)}}
    family, first = name.split("|")
    places = [LETTERS[place] if first == "A" else str(place + int(first)) for place in range(len(options))]
    return {family.format(place): text for place, text in zip(places, texts, strict=True)}


@st.composite
def benchmarks(draw: st.DrawFn) -> Made:
    style = draw(st.sampled_from(("list", "python", "json", "dict", "numbered", "columns")))
    first = draw(st.sampled_from(("0", "1", "A")))
    family, listed = draw(st.sampled_from(FAMILIES)), draw(st.sampled_from(LIST_NAMES))
    name = f"{family}|{first}" if style == "columns" else listed
    gold_name = draw(st.sampled_from(GOLDS))
    gold_style = draw(st.sampled_from(("index0", "index1", "str0", "letter", "(letter)", "text")))
    prefixed = style in ("list", "python", "json") and draw(st.booleans())
    beside, decoy = draw(st.booleans()), draw(st.sampled_from(("", "label", "target", "pred", "option_kind")))
    question_name, video_name = draw(st.sampled_from(QUESTIONS)), draw(st.sampled_from(VIDEOS))
    size = draw(st.integers(2, 5))
    records, truth = [], []
    for number in range(draw(st.integers(1, 9))):
        options = draw(st.lists(st.sampled_from(WORDS), min_size=size, max_size=size, unique_by=str.casefold))
        place = draw(st.integers(0, size - 1))
        golds = {
            "index0": place,
            "index1": place + 1,
            "str0": str(place),
            "letter": LETTERS[place],
            "(letter)": f"({LETTERS[place]})",
            "text": options[place],
        }
        record = {
            "uid": number,
            question_name: f"What happens at place {number} of the film?",
            **options_in(style, name, options, prefixed),
            gold_name: golds[gold_style],
            video_name: f"v{number % 3}.mp4",
            **({decoy: draw(st.integers(0, size - 1))} if decoy and decoy != gold_name else {}),
            "reasoning": f"because of {options[place]}",
            "kind of thing": ("what", "where")[number % 2],
        }
        records.append(record | ({"answer_text": options[place]} if beside else {}))
        truth.append((options, options[place]))
    order = draw(st.permutations(list(records[0])))
    records = [{key: record[key] for key in order} for record in records]
    shape = draw(st.sampled_from(("list", "dict", "child", "wrapper")))
    document: Any = records
    if shape == "dict":
        document = {f"id{number}": record for number, record in enumerate(records)}
    elif shape == "child":
        document = [{"film": f"f{number}", "qa": [record]} for number, record in enumerate(records)]
    elif shape == "wrapper":
        document = {"version": "1", "data": records}
    return Made(document, truth)


def guessed(document: Any) -> tuple[Guess, list[Record]]:
    steps = steps_to_records(document)
    nodes = list(unnest([document], [step.value for step in steps])) if steps else root_records(document)
    made = guess(Sample(nodes), {}, "made", steps)
    return made, [Record(node, Path("made.json"), f"record {row + 1}", row) for row, node in enumerate(nodes)]


@settings(max_examples=200)
@given(benchmarks())
def test_the_true_items_or_a_question_and_never_another_gold(made: Made) -> None:
    found, records = guessed(made.document)
    assert len(records) == len(made.truth)
    if found.doubts:
        assert all(doubt.why for doubt in found.doubts)
        return
    spec = from_table(Spec, found.table, "guessed", SpecError)
    for checked, (options, right) in zip(checked_items(spec, records), made.truth, strict=True):
        assert checked.item.options == tuple(options)
        if checked.item.gold is not None:
            assert checked.item.options[checked.item.gold] == right
    assert found.table["leaks"] == ["reasoning"]


@settings(max_examples=60)
@given(benchmarks(), st.sampled_from(("blob", "zz", "field 7")))
def test_a_gold_under_a_name_that_says_nothing_is_asked_for(made: Made, name: str) -> None:
    records = guessed(json.loads(json.dumps(made.document)))[1]
    for record in records:
        for gold in {*GOLDS, "target", "answer_text"} & record.values.keys():
            value = record.values.pop(gold)
            if gold not in ("label", "target"):
                record.values["beside" if gold == "answer_text" else name] = value
    found = guess(Sample([record.values for record in records]), {}, "made")
    assert found.doubts
    assert "gold" not in found.table
