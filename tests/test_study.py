"""A study's folder: its paths, its pool, its frames and its rows."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck import study as study_module
from benchcheck.config import EMBEDDED
from benchcheck.errors import ConfigError, StudyError, UsageError
from benchcheck.pool.items import Item
from benchcheck.study import Study
from studies import give_frames, make_item, make_items, make_study


def test_a_new_study_has_the_folder_s_name_and_opens(tmp_path: Path) -> None:
    made = Study.create(tmp_path / "deep" / "mine", models=EMBEDDED)
    assert (made.config.name, made.config.models["8b"].model) == ("mine", "embedded:large")
    assert [path.name for path in made.root.iterdir()] == ["benchcheck.toml"]
    assert Study.open(str(made.root)).config == made.config
    assert Study.create(tmp_path / "other", name="given").config.name == "given"


def test_a_second_study_in_the_same_folder_is_refused_and_the_first_kept(tmp_path: Path) -> None:
    made = Study.create(tmp_path / "s")
    before = (made.root / "benchcheck.toml").read_bytes()
    with pytest.raises(UsageError, match=r"no benchcheck\.toml here, so not a study"):
        Study.open(tmp_path / ("a" * 300))
    with pytest.raises(StudyError, match="cannot make this folder"):
        Study.create(tmp_path / ("a" * 300))
    with pytest.raises(UsageError, match=r"there is a study already\. Cure: choose another folder"):
        Study.create(made.root, name="x")
    assert (made.root / "benchcheck.toml").read_bytes() == before


@pytest.mark.parametrize(
    "name", ['q"uote', "it's", "a=b", "s[1]", "{x}", "back\\slash", "ä 日本", "new\nline", "\x7f\x01"]
)
def test_a_study_s_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    made = Study.create(tmp_path / name)
    assert made.config.name == name
    made.write_pool(make_items(a=3))
    assert len(made.items()) == 3
    made.append(1, "a", None, [{"item_id": "a_1"}])
    assert made.rows(1).table.column("item_id").to_pylist() == ["a_1"]


def test_a_folder_name_that_is_no_utf_8_becomes_a_readable_name(tmp_path: Path) -> None:
    assert Study.create(tmp_path / "s\udcff").config.name == "s\ufffd"


def test_a_path_that_is_no_utf_8_is_refused_in_one_line_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not UTF-8 cannot stand in"):
        Study.create(tmp_path / "s", pool=[{"spec": "generic", "files": ["a\udcff.jsonl"]}])
    assert not (tmp_path / "s").exists()


def test_a_folder_that_is_no_study_is_refused_with_the_cure(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(UsageError, match=r"no benchcheck\.toml here, so not a study. Cure: benchcheck init"):
            Study.open(root)
    (tmp_path / "benchcheck.toml").write_text("study_version = 2")
    with pytest.raises(ConfigError):
        Study.open(tmp_path)


def test_paths_are_the_contract(study: Study) -> None:
    results = study.root / "results"
    assert study.results == results
    assert study.frames == study.root / "frames" / "pool_frames"
    assert study.pool_file == results / "pool_items_base.parquet"
    assert study.manifest_file == results / "pool_schema_manifest.csv"
    assert study.step_folder(3) == results / "step3"
    assert study.step_file(3, "mv") == results / "step3" / "mv.jsonl"
    assert study.step_file(3, "mv", 0) == results / "step3" / "mv.p0.jsonl"
    assert (study.database, study.pool_items) == (results / "pool.duckdb", results / "pool_items.parquet")
    assert (study.summary_md, study.summary_csv) == (results / "pool_summary.md", results / "pool_summary.csv")
    assert (study.accounting, study.report) == (results / "run_accounting.csv", results / "report.html")
    assert study.video_manifest == study.root / "logs" / "manifest.jsonl"
    assert study.accounting_file == study.root / "logs" / "accounting.jsonl"


def test_the_original_package_s_environment_moves_the_folders(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL_RESULTS_ROOT", "/r")
    assert (study.results, study.pool_file) == (Path("/r"), Path("/r/pool_items_base.parquet"))
    monkeypatch.setenv("POOL_FRAMES_DIR", "/f")
    assert study.frames == Path("/f")
    monkeypatch.setenv("POOL_BASE", "/p")
    assert study.pool_file == Path("/p/pool_items_base.parquet")
    monkeypatch.setenv("POOL_BASE", "/p/other.parquet")
    assert study.pool_file == Path("/p/other.parquet")
    for name in ("POOL_RESULTS_ROOT", "POOL_FRAMES_DIR", "POOL_BASE"):
        monkeypatch.setenv(name, "")
    assert study.pool_file == study.root / "results" / "pool_items_base.parquet"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
items = st.builds(
    Item,
    item_id=texts,
    bench=texts,
    source_id=texts,
    question=texts,
    options=st.lists(texts, max_size=5).map(tuple),
    gold=st.none() | st.integers(0, 25),
    format=st.sampled_from(["mcq", "open"]),
    video_key=texts,
    video_id=texts,
    start=st.none() | st.floats(0, 1e5),
    end=st.none() | st.floats(0, 1e5),
    category=texts,
    duration=st.none() | st.floats(0, 1e5),
    issues=st.lists(texts, max_size=2).map(tuple),
).filter(lambda item: item.format == "open" or item.askable)


@given(st.lists(items, max_size=6))
def test_items_come_back_as_they_were_and_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, pool: list[Item]
) -> None:
    study = make_study(tmp_path_factory.mktemp("study"))
    assert study.write_pool(iter(pool)) == len(pool)
    assert study.items() == pool
    table = study.item_table(["item_digest", "frames_key"])
    assert table.column("item_digest").to_pylist() == [item.digest for item in pool]
    assert table.column("frames_key").to_pylist() == [item.frames_key for item in pool]


def test_a_pool_of_several_batches_is_written_whole(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_module, "_ITEM_BATCH", 4)
    pool = make_items(a=8, b=3)
    assert study.write_pool(pool) == 11
    assert study.items() == pool
    assert pq.ParquetFile(study.pool_file).metadata.num_row_groups == 3


def test_some_items_come_in_the_pool_s_order(study: Study) -> None:
    study.write_pool(make_items(a=6))
    assert [item.item_id for item in study.items(["a_5", "a_0", "nobody"])] == ["a_0", "a_5"]
    assert study.items([]) == []


def test_a_pool_that_fails_in_the_middle_leaves_the_old_one(study: Study) -> None:
    study.write_pool(make_items(a=2))

    def broken() -> "object":
        yield make_item(0)
        raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        study.write_pool(broken())  # type: ignore[arg-type]
    assert len(study.items()) == 2
    assert [path.name for path in study.results.iterdir()] == ["pool_items_base.parquet"]


def test_a_pool_on_a_full_disk_is_one_line_and_leaves_the_old_one(
    study: Study, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POOL_RESULTS_ROOT", str(small_disk / "results"))
    study.write_pool(make_items(a=2))
    # Text that does not shrink.
    large = [
        dataclasses.replace(item, question="".join(map(str, range(2000 * n, 2000 * n + 2000))))
        for n, item in enumerate(make_items(a=60))
    ]
    with pytest.raises(StudyError, match="the disk is full"):
        study.write_pool(large)
    assert len(study.items()) == 2
    assert [path.name for path in study.results.iterdir()] == ["pool_items_base.parquet"]


def test_no_pool_and_a_damaged_one_are_one_line_with_the_cure(study: Study) -> None:
    with pytest.raises(StudyError, match=r"no pool yet\. Cure: benchcheck pool build"):
        study.items()
    study.write_pool(make_items(a=2))
    data = study.pool_file.read_bytes()
    for damage in (b"", b"PAR1", data[: len(data) // 2], b"x" * len(data)):
        study.pool_file.write_bytes(damage)
        with pytest.raises(StudyError, match=r"not readable as parquet .* makes it again"):
            study.item_table()
    study.pool_file.unlink()
    pq.write_table(pa.table({"item_id": ["a"]}), study.pool_file)
    with pytest.raises(StudyError, match="not readable as parquet"):
        study.item_table(["item_id", "item_digest"])


def test_frames_are_ready_when_their_folder_is_there(study: Study) -> None:
    assert study.frames_ready() == frozenset()
    give_frames(study, [make_item(0), make_item(1), make_item(2)])
    (study.frames / ".half.tmp").mkdir()
    assert study.frames_ready() == {make_item(0).frames_key, make_item(2).frames_key}


def test_rows_of_all_parts_are_read_and_other_files_are_not(study: Study) -> None:
    assert study.step_files(1) == []
    assert len(study.rows(1).table) == 0
    study.append(1, "b", 1, [{"item_id": "b_1"}])
    study.append(1, "b", 0, [{"item_id": "b_0", "status": "error", "detail": "x"}])
    study.append(1, "a", None, [{"item_id": "a_0"}])
    study.append(2, "a", None, [{"item_id": "other step"}])
    (study.step_folder(1) / "notes.txt").write_text("not a row")
    assert [path.name for path in study.step_files(1)] == ["a.jsonl", "b.p0.jsonl", "b.p1.jsonl"]
    assert study.rows(1).table.column("item_id").to_pylist() == ["a_0", "b_0", "b_1"]
    (row,) = study.answers(1, "status = 'error'").table.to_pylist()
    assert (row["item_id"], row["detail"], row["engine"]) == ("b_0", "x", None)


def test_opening_a_study_imports_no_table_library(study: Study) -> None:
    program = (
        "import sys\nfrom benchcheck.study import Study\nStudy.open(sys.argv[1])\n"
        "print(sorted({'numpy', 'pyarrow', 'duckdb', 'av', 'torch', 'PIL'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program, study.root], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_some_items_are_those_of_a_pool_that_was_built_anew(study: Study) -> None:
    study.write_pool([make_item(0), make_item(1)])
    assert [item.question for item in study.items(["a_1"])] == ["What happens in scene 1?"]
    study.write_pool([make_item(1, question="another")])
    assert [item.question for item in study.items(["a_0", "a_1"])] == ["another"]
    study.pool_file.unlink()
    with pytest.raises(StudyError, match="no pool yet"):
        study.items(["a_1"])


@pytest.mark.parametrize(("options", "gold"), [("a", 0), ("", None), ("ab", None), ("ab", 2), ("ab", -1)])
def test_an_item_that_is_no_multiple_choice_is_not_asked_as_one(tmp_path: Path, options: str, gold: int | None) -> None:
    study = make_study(tmp_path / "study")
    study.write_pool([make_item(0), make_item(1, options=tuple(options), gold=gold)])
    wrong = rf"item a_1 has format mcq, {len(options)} options, gold {gold}\. Allowed: 2 to 26"
    for ids in (None, ["a_0", "a_1"]):
        with pytest.raises(StudyError, match=wrong):
            study.items(ids)
    assert [item.item_id for item in study.items(["a_0"])] == ["a_0"]
    study.write_pool([make_item(1, options=tuple(options), gold=gold, format="open")])
    assert len(study.items()) == 1
