"""The files of results/: counts, and all of them or none."""

import csv
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from worlds import FATES, World, item, make_world

import benchcheck.report.assemble as module
from benchcheck.errors import StudyError
from benchcheck.report.assemble import assemble
from benchcheck.run.accounting import COLUMNS


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_counts_of_the_whole_pool(small: World) -> None:
    result = assemble(small.study)
    assert result.states == {
        "kept": 2, "removed": 5, "failed": 2, "waiting": 0, "pending": 3, "not_screened": 0
    }  # fmt: skip
    assert [(summary.step.number, summary.alive, summary.removed) for summary in result.summaries] == [
        (1, 12, 2), (2, 8, 1), (4, 7, 2)
    ]  # fmt: skip
    assert all(path.is_file() for path in result.files)
    assert result.warnings == ("step 1 (blind): 2 of 11 items failed (18.2%)",)


def test_the_wide_table_has_every_item_with_every_step(small: World) -> None:
    assemble(small.study)
    rows = {row["item_id"]: row for row in pq.read_table(small.study.pool_items).to_pylist()}
    assert {name: (row["verdict"], row["left_at"]) for name, row in rows.items()} == FATES
    first = rows["alpha_3"]
    assert (first["step1_status"], first["step1_n_right"], first["step1_n_perm"]) == ("ok", 0, 4)
    assert (first["step2_n_perm"], first["step4_n_right"]) == (1, 4)
    assert first["step4_margin"] == pytest.approx(2.0)
    assert first["step4_label_mass"] == pytest.approx(0.9)
    assert len(first["step4_orders"]) == len(first["step4_logprobs"]) == 4
    failed = rows["beta_2"]
    assert (failed["step1_status"], failed["step1_error"], failed["step2_status"]) == (
        "error", "context_too_long", None
    )  # fmt: skip


def test_the_funnel_agrees_with_the_steps_summaries(small: World) -> None:
    result = assemble(small.study)
    with duckdb.connect(str(small.study.database), read_only=True) as db:
        rows = db.sql("select alive, answered, removed, waiting, failed, pending from funnel").fetchall()
    assert rows == [(of.alive, of.answered, of.removed, of.waiting, of.failed, of.remaining) for of in result.summaries]


def test_summary_csv_and_accounting_csv(small: World) -> None:
    assemble(small.study)
    rows = read_csv(small.study.summary_csv)
    assert rows[0] == {
        "step": "1", "name": "blind", "bench": "alpha", "asked": "8", "answered": "7", "removed": "2",
        "removed_share": "0.285714", "failed": "1",
    }  # fmt: skip
    assert [row["bench"] for row in rows] == ["alpha", "beta"] * 3
    costs = read_csv(small.study.accounting)
    assert tuple(costs[0]) == COLUMNS
    assert [(row["bench"], row["items"], row["items_per_s"]) for row in costs] == [
        ("alpha", "8", "4.0"), ("beta", "3", "3.0")
    ]  # fmt: skip


def test_summary_page(small: World) -> None:
    assemble(small.study)
    text = small.study.summary_md.read_text(encoding="utf-8")
    assert "12 items in the pool." in text
    assert "| removed by a shortcut (steps 1, 2, 4) | 5 | 41.7% |" in text
    assert "| removed by saturation (no step of this study) | 0 | 0.0% |" in text
    assert "| not screened | 0 | 0.0% |" in text
    assert "| 2 | single_frame | 8 | 4 | 1 | 4 | 0 | 0 |" in text
    assert "- step 1 (blind): 2 of 11 items failed (18.2%)" in text


def test_assembling_again_gives_the_same_tables(small: World) -> None:
    assemble(small.study)
    before = pq.read_table(small.study.pool_items)
    assemble(small.study)
    assert pq.read_table(small.study.pool_items).equals(before)


@pytest.mark.parametrize("part", ["fill", "_write_csv", "_summary_page"])
def test_a_failure_midway_replaces_nothing(small: World, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    assemble(small.study)
    before = {path.name: path.read_bytes() for path in small.study.results.iterdir() if path.is_file()}
    small.answer(4, small.items[6], True)
    real = getattr(module, part)

    def broken(*arguments: object) -> None:
        real(*arguments)
        raise StudyError("the disk is full")

    monkeypatch.setattr(module, part, broken)
    with pytest.raises(StudyError, match="disk is full"):
        assemble(small.study)
    after = {path.name: path.read_bytes() for path in small.study.results.iterdir() if path.is_file()}
    assert after == before


@pytest.mark.parametrize("ballast", [0, 40, 60])
def test_a_full_disk_is_one_line_and_leaves_nothing(
    small: World, small_disk: Path, monkeypatch: pytest.MonkeyPatch, ballast: int
) -> None:
    monkeypatch.setenv("POOL_BASE", str(small.study.results))
    monkeypatch.setenv("POOL_RESULTS_ROOT", str(small_disk / "results"))
    (small_disk / "ballast").write_bytes(bytes(ballast * 1024))
    with pytest.raises(StudyError):
        assemble(small.study)
    assert list((small_disk / "results").iterdir()) == []


@pytest.mark.parametrize("name", ["what?", "back\\slash"])
def test_a_folder_in_which_duckdb_cannot_keep_tables_is_one_line(
    small: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("POOL_BASE", str(small.study.results))
    monkeypatch.setenv("POOL_RESULTS_ROOT", str(tmp_path / name))
    with pytest.raises(StudyError, match=r"DuckDB keeps no tables in a folder whose path holds .* Cure: rename it"):
        assemble(small.study)


def test_a_pool_of_no_items(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    world.put([])
    result = assemble(world.study)
    assert sum(result.states.values()) == 0
    assert pq.read_table(world.study.pool_items).num_rows == 0
    assert read_csv(world.study.accounting) == []


def test_open_items_and_waiting_ones(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [2]})
    world.put([
        item(0), item(1, format="open", gold=None, issues=("gold_missing", "one_option")),
        item(2, format="open"), item(3),
    ])  # fmt: skip
    world.frames(world.items[3])
    world.answer(2, world.items[3], False)
    result = assemble(world.study)
    assert result.states == {
        "kept": 1, "removed": 0, "failed": 0, "waiting": 1, "pending": 0, "not_screened": 2
    }  # fmt: skip
    rows = {row["item_id"]: row["reason"] for row in pq.read_table(world.study.pool_items).to_pylist()}
    assert rows == {
        "alpha_0": "no frames of its video yet: run benchcheck frames extract",
        "alpha_1": "gold_missing, one_option",
        "alpha_2": "an open question",
        "alpha_3": "passed every step",
    }


def test_there_is_no_pool_yet(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no pool yet"):
        assemble(make_world(tmp_path).study)
