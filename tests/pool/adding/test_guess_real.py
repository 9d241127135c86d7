"""Guesses on the real annotation files in ../shared/data: the same gold texts as the specs that ship."""

from pathlib import Path

import pytest

from benchcheck.errors import InputError
from benchcheck.pool.adding.proposal import Asked, propose
from benchcheck.pool.items import Item
from benchcheck.pool.reading.readers import read_records
from benchcheck.pool.specs import Spec, load_spec, spec_names
from benchcheck.pool.together import items_of
from pool.fixtures import REAL_FILES

pytestmark = pytest.mark.shared

HEADERS = {"how2qa_val": ("vid", "ts", "w0", "w1", "w2", "question", "correct")}


def items(spec: Spec, path: Path) -> list[Item]:
    return list(items_of(spec, read_records(path, spec.layout)))


def told(item: Item) -> tuple[str, str | None]:
    """What was asked and what is right, whatever the place of the options."""
    return item.question, None if item.gold is None else item.options[item.gold]


@pytest.mark.parametrize("name", REAL_FILES)
def test_the_guess_has_the_gold_texts_of_the_spec_that_ships(shared_data: Path, name: str) -> None:
    assert name in spec_names()
    path = shared_data / REAL_FILES[name]
    found = propose(Asked(files=(str(path),), header=HEADERS.get(name, ())))
    assert found.doubts == []
    assert found.spec is not None
    guessed, shipped = items(found.spec, path), items(load_spec(name), path)
    assert [told(item)[0] for item in guessed] == [told(item)[0] for item in shipped]
    right = [(told(one)[1], told(other)[1]) for one, other in zip(guessed, shipped, strict=True)]
    assert [(one, other) for one, other in right if one and other and one != other] == []
    assert sum(one is None for one, _ in right) <= sum(other is None for _, other in right) + 0.01 * len(right)


def test_how2qa_has_no_header_and_says_so(shared_data: Path) -> None:
    with pytest.raises(InputError, match=r"first row looks like data.*NOuQuofjk44.*--header video,ts,column3"):
        propose(Asked(files=(str(shared_data / REAL_FILES["how2qa_val"]),)))


def test_rextime_keeps_its_options_elsewhere_and_says_so(shared_data: Path) -> None:
    found = propose(Asked(files=(str(shared_data / "rextime/rextime_val.jsonl"),)))
    assert [(doubt.key, doubt.why.partition(",")[0]) for doubt in found.doubts] == [
        ("options", "no field holds options")
    ]
    assert found.guess.table["question"] == "query"
    assert found.guess.table["leaks"] == ["relevant_windows"]
    assert found.text == ""


def test_a_file_of_lengths_alone_is_no_benchmark(shared_data: Path) -> None:
    with pytest.raises(InputError, match=r"trims.json: no records with questions"):
        propose(Asked(files=(str(shared_data / "socialiq2/trims.json"),)))


def test_leaks_of_real_files_are_named(shared_data: Path) -> None:
    found = propose(Asked(files=(str(shared_data / REAL_FILES["streamingbench_real"]),)))
    assert found.guess.table["leaks"] == ["captions"]
    assert found.guess.table["unnest"] == ["flatten", "each:questions"]
