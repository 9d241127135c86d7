"""Specs: strict, and those that ship."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import SpecError
from benchcheck.pool.gold import Gold
from benchcheck.pool.leaks import LEAKS
from benchcheck.pool.mapping import map_record
from benchcheck.pool.options import Options
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Join, Spec, VideoFields, load_spec, spec_names

MINIMAL = """
question = "q"
[options]
kind = "list"
field = "o"
[gold]
kind = "index"
field = "a"
"""


def spec_file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_minimal_spec(tmp_path: Path) -> None:
    spec_file(tmp_path, MINIMAL)
    spec = Spec(question="q", options=Options(kind="list", field="o"), gold=Gold(kind="index", field="a"))
    assert load_spec("mine.toml", tmp_path) == spec
    assert load_spec("./mine.toml", tmp_path) == spec
    assert load_spec(str(tmp_path / "mine.toml")) == spec
    assert spec.needed_fields() == {"q": "the question", "a": "the gold"}


def test_needed_fields_are_all_that_are_named_without_a_question_mark() -> None:
    spec = Spec(
        question="{a} {b?}",
        id="{v}_{n}",
        category="c",
        duration="d?",
        identity=("x",),
        options=Options(kind="list", field="o"),
        gold=Gold(kind="index", field="g", text="t"),
        video=VideoFields(member="{v}.mp4", zip_path="videos.zip", start="s", end="e?"),
    )
    assert set(spec.needed_fields()) == {"a", "v", "n", "c", "x", "g", "t", "s"}


def test_needed_fields_of_the_rest() -> None:
    spec = Spec(
        question="a",
        question_fill="fill",
        options=Options(kind="list", field="o", member="choice"),
        gold=Gold(kind="per_choice", field="correct"),
        video=VideoFields(members=("v1", "v2?"), frames="frames"),
        where={"split": "test"},
        mcq_where={"kind?": ["mc", "yn"]},
        subtitles="sub|basename",
        group="pair",
        join=Join(file="b.json", on="uid"),
    )
    assert set(spec.needed_fields()) == {"a", "fill", "v1", "frames", "split", "sub", "pair", "uid"}
    assert hash(spec) == hash(replace(spec, where={}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + 'questoin = "q"', "gold: unknown key 'questoin'. Allowed: kind, field, base, text"),
        (
            'questoin = "q"\n' + MINIMAL,
            "unknown key 'questoin'. Allowed: bench, title, reader, header, members, unnest",
        ),
        ("question = 5\n[options]\n[gold]", "question = 5 is not of type str"),
        ('question = "q"\n[options]\nkind = "list"\nfield = "o"', "key 'gold' is missing"),
        (MINIMAL.replace('"list"', '"lists"'), "options: kind = 'lists' is not allowed"),
        (MINIMAL.replace('"index"', '"lsat"'), "gold: kind = 'lsat' is not allowed"),
        ('reader = "xml"' + MINIMAL, "reader = 'xml' is not allowed. Allowed: auto, json, jsonl, "),
        ('bench = "a/b"' + MINIMAL, "bench = 'a/b' is not allowed"),
        ('unnest = ["all"]' + MINIMAL, "unnest = 'all' is not allowed"),
        (MINIMAL.replace('question = "q"', 'question = ""'), "question or question_text: one of the two"),
        ('question_text = "Which?"' + MINIMAL, "question or question_text: one of the two"),
        ('question_tail = "(a"' + MINIMAL, "question_tail = '(a' is no regular expression: missing )"),
        ('category = "type|upper"' + MINIMAL, "the transform 'upper' is not allowed. Allowed: stem, basename"),
        ('where = { "split|low" = 1 }' + MINIMAL, "the transform 'low' is not allowed"),
        (MINIMAL + '[video]\nmember = "v"\nmembers = ["a", "b"]', "video: members stands for member"),
        (MINIMAL + '[join]\nfile = "b.json"', "join: key 'on' is missing"),
        (MINIMAL + '[join]\nfile = ""\non = "id"', "join: file and on are empty"),
        (MINIMAL + '[join]\nfile = "b.json"\non = "id"\nkey = "id|up"', "join: the transform 'up' is not allowed"),
        (MINIMAL + '[join]\nfile = "b.json"\non = "id"\nreader = "xml"', "join: reader = 'xml' is not allowed"),
        (MINIMAL + '[join]\nfile = "b.json"\non = "id"\nunnest = ["all"]', "join: unnest = 'all' is not allowed"),
        (MINIMAL.replace('"q"', '"reasoning"'), "question names 'reasoning', which gives the answer away"),
        (
            MINIMAL.replace('"q"', '"{q} {meta.Evidence?}"'),
            "question names 'meta.Evidence', which gives the answer away",
        ),
        (MINIMAL.replace('"q"', '"{q} ({a|lower})"'), "question names 'a', which is the gold"),
        (MINIMAL.replace('"q"', '"{q} ({t})"') + '\ntext = "t"', "question names 't', which is the gold"),
        (MINIMAL.replace('"a"', '"qa.a"').replace('"q"', '"qa"'), "question names 'qa', which is the gold"),
        ('leaks = ["q.Why"]\n' + MINIMAL, "question names 'q', which holds a leak"),
        ('id = "{v}_{n"\n' + MINIMAL, "the id: '{v}_{n' has a brace without its partner"),
        ('category = "{}"\n' + MINIMAL, "the category: '{}' has a brace without its partner, or with no name in it"),
        ('question_fill = "clue_intervals"' + MINIMAL, "question_fill names 'clue_intervals', which gives"),
        ('leaks = ["O"]' + MINIMAL, "options names 'o', which gives the answer away"),
        ('leaks = ["q?"]' + MINIMAL, "question names 'q', which gives the answer away"),
        (MINIMAL + '[video]\nwindow = "time_reference"', "video names 'time_reference', which gives the answer away"),
        (MINIMAL + '[video]\nstart = "accurate_start"', "video names 'accurate_start', which gives the answer away"),
        (MINIMAL + '[video]\nwindow = "w"\nend = "e"', "video: window stands for start and end"),
        (MINIMAL + '[source]\nchecked = "yes"', "source: checked = 'yes' is not allowed. Allowed: real files, survey"),
        (MINIMAL + '[source]\nrevision = "main"', "source: revision = 'main' is not allowed. Allowed: a commit, 40"),
        ("question = ", "not readable as TOML"),
    ],
)
def test_a_wrong_spec_is_one_line_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = spec_file(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        load_spec("mine.toml", tmp_path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_an_unknown_spec_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no spec is called 'nextqa-val'\. Did you mean 'nextqa_val'"):
        load_spec("nextqa-val")
    with pytest.raises(
        SpecError, match=r"'\?'\. Allowed: one of the \d+ that benchcheck benchmarks lists, or the path"
    ):
        load_spec("?")
    with pytest.raises(SpecError, match="no such file"):
        load_spec("none.toml", tmp_path)


@pytest.mark.parametrize("name", spec_names())
def test_specs_that_ship_are_whole(name: str) -> None:
    spec = load_spec(name)
    if name == "generic":
        assert spec.bench == ""
        return
    assert spec.bench == name
    assert spec.source.files
    assert spec.source.repository == "" or spec.source.repository.startswith("https://")
    assert spec.expect.items >= spec.expect.mcq
    if spec.source.checked != "fields only":
        assert spec.expect.items > 0 or spec.source.note
        assert spec.source.licence
        assert spec.source.citation


def put(values: dict[str, Any], path: str, value: object) -> None:
    """Set a field, also a nested one; list places count as keys."""
    *above, name = path.split(".")
    for part in above:
        inner = values.setdefault(part, {})
        values = inner if isinstance(inner, dict) else values
    values.setdefault(name, value)


@pytest.mark.parametrize("name", spec_names())
def test_what_gives_the_answer_away_never_reaches_what_a_model_sees(name: str) -> None:
    spec = replace(load_spec(name), bench="b", where={}, mcq_where={}, item_id="")
    options = spec.options
    values: dict[str, Any] = {}
    for field in (*spec.needed_fields(), *spec.video.members):
        put(values, field.partition("|")[0], f"value of {field}")
    texts = ["x", "y"] if not options.member else [{options.member: "x"}, {options.member: "y"}]
    for field, value in ((options.field, texts), *((one, "text") for one in (*options.fields, options.gold_field))):
        if field:
            put(values, field, value)
    for field in (*spec.leaks, *LEAKS):
        put(values, field.removesuffix("?"), "GIVEN AWAY")
    item = map_record(spec, Record(values, Path("f.json"), "record 1", 0), 0).item
    assert item is not None
    assert "GIVEN AWAY" not in "\n".join((item.question, *item.options, item.video_key, str(item.start), str(item.end)))
