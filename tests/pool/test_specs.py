"""Specs: strict, and those that ship."""

from pathlib import Path

import pytest

from benchcheck.errors import SpecError
from benchcheck.pool.gold import Gold
from benchcheck.pool.options import Options
from benchcheck.pool.specs import Spec, VideoFields, load_spec, spec_names

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + 'questoin = "q"', "gold: unknown key 'questoin'. Allowed: kind, field, base, text"),
        (
            'questoin = "q"\n' + MINIMAL,
            "unknown key 'questoin'. Allowed: bench, reader, header, unnest, id, item_id, question",
        ),
        ("question = 5\n[options]\n[gold]", "question = 5 is not of type str"),
        ('question = "q"\n[options]\nkind = "list"\nfield = "o"', "key 'gold' is missing"),
        (MINIMAL.replace('"list"', '"embedded"'), "options: kind = 'embedded' is not allowed"),
        (MINIMAL.replace('"index"', '"last"'), "gold: kind = 'last' is not allowed"),
        ('reader = "xml"' + MINIMAL, "reader = 'xml' is not allowed. Allowed: auto, json, jsonl, csv, tsv, parquet"),
        ('bench = "a/b"' + MINIMAL, "bench = 'a/b' is not allowed"),
        ('unnest = ["all"]' + MINIMAL, "unnest = 'all' is not allowed"),
        (MINIMAL.replace('question = "q"', 'question = ""'), "question is empty"),
        (MINIMAL + '[video]\nwindow = "w"\nend = "e"', "video: window stands for start and end"),
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
    with pytest.raises(SpecError, match=r"no spec is called 'nextqa-val'\. Did you mean 'nextqa_val'") as caught:
        load_spec("nextqa-val")
    assert "generic, nextqa_test, nextqa_val, ovo_bench" in str(caught.value)
    with pytest.raises(SpecError, match="no such file"):
        load_spec("none.toml", tmp_path)


@pytest.mark.parametrize("name", spec_names())
def test_specs_that_ship_are_whole(name: str) -> None:
    spec = load_spec(name)
    if name == "generic":
        assert spec.bench == ""
        return
    assert spec.bench == name
    assert spec.source.repository.startswith("https://")
    assert len(spec.source.commit) >= 8
    assert spec.source.licence
    assert spec.source.citation
    assert spec.source.files
    assert spec.expect.items >= spec.expect.mcq > 0
