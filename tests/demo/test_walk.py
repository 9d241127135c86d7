"""The demo is the promise of the first page: its numbers are held here, with margins for another seed's luck."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchcheck.config import STUDY_VERSION
from benchcheck.demo.walk import CLASSES, Cell, accuracy, falls, walk
from benchcheck.errors import UsageError
from benchcheck.run.driver import summarize
from benchcheck.run.plan import survey, totals
from benchcheck.screen.steps import LADDER, STEP_NUMBERS
from benchcheck.study import Study

PER_CLASS = 24


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as `make demo` runs it: 24 items a class through all six steps, with and without the cascade."""
    folder = tmp_path_factory.mktemp("demo") / "study"
    walk(folder, PER_CLASS)
    return folder


@pytest.mark.model
def test_each_class_falls_where_it_should(demo: Path) -> None:
    counts = falls(Study.open(demo))
    assert {klass: fates.total() for klass, fates in counts.items()} == dict.fromkeys(CLASSES, PER_CLASS)
    blind, options, one, many, order = (counts[klass] for klass in CLASSES)
    assert blind["1"] >= 21
    assert options["1"] == options["4"] == 12
    assert one["2"] >= 21
    assert many["3"] + many["5"] >= 16
    assert order["3"] >= 14
    # The smaller model leaves some to the larger: steps 3 and 6 differ.
    assert many["6"] + order["6"] >= 4
    # Nothing falls to a step that shows no evidence: at most one item in 24 by luck.
    assert one["1"] + one["4"] <= 1
    assert many["1"] + many["2"] + many["4"] <= 1
    assert order["1"] + order["2"] + order["4"] + order["5"] <= 1


@pytest.mark.model
def test_without_the_cascade_missing_evidence_means_chance(demo: Path) -> None:
    cells = accuracy(Study.open(demo))
    assert set(cells) == {(klass, step) for klass in CLASSES for step in STEP_NUMBERS}
    assert all(cell.answered == PER_CLASS for cell in cells.values())
    seen = {
        "blind": (1, 2, 3, 5, 6), "options": (4,), "one_frame": (2, 3, 5, 6), "many_frames": (3, 5, 6), "order": (3, 6)
    }  # fmt: skip
    for klass, steps in seen.items():
        for step in steps:
            assert cells[klass, step].right >= 0.85, (klass, step)
    blindfold = {"blind": (4,), "one_frame": (1, 4), "many_frames": (1, 2, 4), "order": (1, 2, 4, 5)}
    for klass, steps in blindfold.items():
        for step in steps:
            cell = cells[klass, step]
            # Three standard deviations of 24 coins of chance 0.25 are 0.27: more would be knowledge.
            assert abs(cell.right - cell.chance) <= 0.27, (klass, step, cell)


@pytest.mark.model
def test_the_demo_ends_complete_and_running_it_again_asks_nothing(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = Study.open(demo)
    state = survey(study)
    assert totals(state) == type(totals(state))(waiting=0, failed=0, remaining=0)
    rows = {step: len(study.rows(step).table) for step in STEP_NUMBERS}
    walk(demo, PER_CLASS)
    out, err = capsys.readouterr()
    assert {step: len(Study.open(demo).rows(step).table) for step in STEP_NUMBERS} == rows
    assert "is there already" in err
    assert "asking" not in err
    assert re.search(r"order +frame order +24", out)


@pytest.mark.model
def test_the_page_shows_truth_and_says_that_the_models_are_toys(demo: Path) -> None:
    page = (demo / "results" / "report.html").read_text(encoding="utf-8")
    assert all(klass in page for klass in CLASSES)
    assert "embedded:large" in page
    assert "mean nothing" in page


@pytest.mark.model
def test_saturation_is_reported_under_its_name(demo: Path) -> None:
    study = Study.open(demo)
    summaries = [summarize(study, survey(study), index) for index in range(6)]
    assert [summary.step for summary in summaries] == list(LADDER.values())
    assert [summary.step.number for summary in summaries if "saturation" in summary.step.measures] == [3, 6]


def test_another_study_is_never_overwritten(tmp_path: Path) -> None:
    Study.create(tmp_path / "mine", pool=[{"spec": "generic", "files": ["a.jsonl"], "bench": "mine"}])
    before = (tmp_path / "mine" / "benchcheck.toml").read_text(encoding="utf-8")
    assert f"study_version = {STUDY_VERSION}" in before
    with pytest.raises(UsageError, match=r"not a demo\. Cure: choose another folder"):
        walk(tmp_path / "mine", 1)
    assert (tmp_path / "mine" / "benchcheck.toml").read_text(encoding="utf-8") == before


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"not empty \(notes\.txt\)"):
        walk(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_tables_of_nothing_are_tables() -> None:
    from benchcheck.demo.walk import accuracy_table, falls_table

    assert falls_table({"blind": Counter({"1": 3})}).row_count == len(CLASSES)
    assert accuracy_table({("blind", 1): Cell(3, 1.0, 0.25)}).row_count == len(CLASSES)
