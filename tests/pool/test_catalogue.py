"""What the specs say of their benchmarks: choosing, facts, the entry to paste, the rows of the pages."""

import json
import tomllib
from dataclasses import replace

import pytest

from benchcheck.config import PoolSource
from benchcheck.pool.catalogue import (
    MARKS,
    counted,
    entry_to_paste,
    facts,
    licence_rows,
    matching,
    page_rows,
    standing,
    where_from,
)
from benchcheck.pool.gold import Gold
from benchcheck.pool.options import Options
from benchcheck.pool.specs import CHECKED, Expect, Join, Source, Spec

PINNED = "a" * 40


def spec(bench: str = "cats", **changes: object) -> Spec:
    source = Source(
        repository="https://github.com/owner/cats",
        commit="0123abcd",
        files=("data/val.csv",),
        licence="MIT",
        redistributable=True,
        citation="Doe, Cats, 2020",
        checked="survey",
    )
    whole = Spec(
        bench=bench,
        title="Cats and Dogs",
        question="q",
        options=Options(kind="list", field="o"),
        gold=Gold(kind="index", field="a"),
        expect=Expect(items=1200, options=(4, 5)),
        source=source,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def on_the_hub(**changes: object) -> Source:
    return replace(Source(hub="owner/birds", files=("mc/test-*.parquet",)), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["CATS", "and dogs", "github.com/owner", "doe", ""])
def test_a_search_looks_at_names_titles_sources_and_citations(text: str) -> None:
    birds = spec("birds", title="Birds", source=on_the_hub())
    assert matching([birds, spec()], search=text)[-1].bench == "cats"
    assert matching([birds], search="cats") == []
    assert [found.bench for found in matching([birds, spec()], search="owner/birds")] == ["birds"]


def test_levels_choose_and_are_counted() -> None:
    both = [spec(), spec("birds", source=on_the_hub())]
    assert [found.bench for found in matching(both, checked="fields only")] == ["birds"]
    assert matching(both, checked="real files") == []
    assert [line[:18] for line in standing(both)] == ["◐ survey (1): the ", "○ fields only (1):"]
    assert list(MARKS) == list(CHECKED)


def test_facts_are_everything_and_json_can_hold_them() -> None:
    found = json.loads(json.dumps(facts(spec(join=Join(file="a.json", on="id")))))
    assert found == {
        "spec": "cats", "title": "Cats and Dogs", "items": 1200, "mcq": None, "options": [4, 5], "checked": "survey",
        "hub": "", "revision": "", "repository": "https://github.com/owner/cats", "commit": "0123abcd",
        "files": ["data/val.csv"], "join": "a.json", "licence": "MIT", "redistributable": True,
        "citation": "Doe, Cats, 2020", "note": "", "screenable": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "hidden",
    [
        spec(gold=Gold(kind="none")),
        spec(gold=Gold(kind="order", field="a")),
        spec(options=Options(kind="none")),
    ],
)
def test_hidden_and_open_sets_say_that_nothing_can_be_screened(hidden: Spec) -> None:
    assert facts(hidden)["screenable"] is False


def test_where_annotations_come_from() -> None:
    assert where_from(spec()) == ["data/val.csv of https://github.com/owner/cats at 0123abcd"]
    assert where_from(spec(source=on_the_hub())) == [
        "mc/test-*.parquet of the hub dataset owner/birds (no revision was checked: pin one)"
    ]
    both = on_the_hub(revision=PINNED, repository="https://github.com/owner/birds")
    assert where_from(spec(source=both)) == [
        f"mc/test-*.parquet of the hub dataset owner/birds (at {PINNED})",
        "https://github.com/owner/birds",
    ]
    assert where_from(spec(source=Source())) == ["a file of your own"]


@pytest.mark.parametrize(
    ("source", "files"),
    [
        (spec().source, ("annotations/val.csv",)),
        (on_the_hub(), ("annotations/test-*.parquet",)),
        (on_the_hub(revision=PINNED), ()),
        (on_the_hub(files=("a/x.json", "b/x.json")), ("annotations/x.json",)),
    ],
)
def test_the_entry_to_paste_is_one_that_a_study_takes(source: Source, files: tuple[str, ...]) -> None:
    entry = tomllib.loads(entry_to_paste(spec(source=source)))["pool"][0]
    assert PoolSource(**entry | {"files": tuple(entry.get("files", ()))}) == PoolSource(spec="cats", files=files)


def test_an_entry_for_a_hub_dataset_without_a_revision_says_what_is_missing() -> None:
    entry = entry_to_paste(spec(source=on_the_hub()))
    assert 'revision = "<commit>" # 40 hex digits' in entry
    assert max(map(len, entry.split("\n"))) <= 80  # a terminal that breaks a line of TOML breaks the TOML
    assert "revision" not in entry_to_paste(spec())


def test_an_entry_says_where_a_second_file_goes() -> None:
    text = entry_to_paste(spec(join=Join(file="../answers.json", on="id")))
    assert text.endswith('# join = "annotations/answers.json" # only where it does not lie beside the first file')
    assert tomllib.loads(text)["pool"] == [{"spec": "cats", "files": ["annotations/val.csv"]}]


def test_rows_of_the_pages() -> None:
    specs = [spec("dogs"), spec(), spec("birds", title="Birds", expect=Expect(), source=on_the_hub())]
    assert page_rows(specs)[2:] == [
        "| `birds` | Birds | - | - | fields only | [owner/birds](https://huggingface.co/datasets/owner/birds) |",
        "| `cats` | Cats and Dogs | 1,200 | - | survey | [owner/cats](https://github.com/owner/cats) |",
        "| `dogs` | Cats and Dogs | 1,200 | - | survey | [owner/cats](https://github.com/owner/cats) |",
    ]
    assert licence_rows([*specs, spec("mine", source=Source())])[2:] == [
        "| `birds` | [owner/birds](https://huggingface.co/datasets/owner/birds) | - | not checked | no |",
        "| `cats`, `dogs` | [owner/cats](https://github.com/owner/cats) | 0123abcd | MIT | yes |",
        "| `mine` | - | - | not checked | no |",
    ]
    both = spec(source=replace(on_the_hub(), repository="https://example.org/birds", commit="0123abcd"))
    assert page_rows([both])[-1].endswith("| [example.org/birds](https://example.org/birds) |")
    assert counted(0) == "-"
