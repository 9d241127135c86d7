"""The tables and views of pool.duckdb, against counts taken by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from worlds import ENGINE, FATES, World, item, make_world, table

from benchcheck import __version__
from benchcheck.config import parse
from benchcheck.errors import InputError, StudyError
from benchcheck.report.assemble import assemble
from benchcheck.report.tables import open_results, settings_of
from benchcheck.report.views import VIEWS
from benchcheck.study import Study
from benchcheck.video.store import Outcome, record

DOCS = Path(__file__).parents[2] / "docs" / "results.md"


def ask(world: World, query: str) -> list[tuple[Any, ...]]:
    with open_results(world.study) as db:
        return db.sql(query).fetchall()


def test_every_item_has_one_verdict_in_the_pools_order(small: World) -> None:
    assemble(small.study)
    rows = ask(small, "select item_id, verdict, left_at from verdicts")
    assert [row[0] for row in rows] == [of.item_id for of in small.items]
    assert {row[0]: (row[1], row[2]) for row in rows} == FATES


def test_a_verdict_says_why(small: World) -> None:
    assemble(small.study)
    rows = dict(ask(small, "select item_id, reason from verdicts"))
    assert rows["alpha_1"] == (
        "right in 3 of 4 orders, margin 2.00 nats; shortcut: answered from the question and options alone"
    )
    assert rows["alpha_2"] == "right, margin 2.00 nats; shortcut: answered from one middle frame"
    assert rows["alpha_7"] == "timeout: no reply in 60 s"
    assert rows["alpha_4"] == "passed every step"
    assert rows["alpha_6"] == "a step has still to ask it"


def test_a_waiting_item_says_what_became_of_its_video(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [2]})
    world.put([item(number) for number in range(4)])
    keys = [of.frames_key for of in world.items]
    assemble(world.study)
    assert ask(world, "select count(*) from videos") == [(0,)]
    assert ask(world, "select distinct reason from verdicts") == [
        ("no frames of its video yet: run benchcheck frames extract",)
    ]
    world.frames(world.items[3])
    record(
        world.study,
        [
            Outcome("alpha::v0.mp4", keys[0], "missing", "", "no file '/videos/v0.mp4'"),
            Outcome("alpha::v1.mp4", keys[1], "crashed"),
            Outcome("alpha::v2.mp4", keys[2], "ready", "f" * 64),
            Outcome("alpha::v3.mp4", keys[3], "missing", "", "no file '/videos/v3.mp4'"),
        ],
    )
    record(world.study, [Outcome("alpha::v0.mp4", keys[0], "cut", "", "12 of 900 bytes are there")])
    record(world.study, [Outcome("alpha::v3.mp4", keys[3], "ready", "a" * 64)])
    assemble(world.study)
    assert ask(world, "select reason from verdicts") == [
        ("no frames: cut: 12 of 900 bytes are there",),
        ("no frames: crashed",),
        ("no frames of its video yet: run benchcheck frames extract",),
        ("a step has still to ask it",),
    ]
    rows = ask(world, "select frames_key, video_key, status, reason, content_hash from videos order by video_key")
    assert rows == [
        (keys[0], "alpha::v0.mp4", "cut", "12 of 900 bytes are there", None),
        (keys[1], "alpha::v1.mp4", "crashed", None, None),
        (keys[2], "alpha::v2.mp4", "ready", None, "f" * 64),
        (keys[3], "alpha::v3.mp4", "ready", None, "a" * 64),
    ]
    last = json.loads(world.study.video_manifest.read_text().splitlines()[-1])
    assert ask(world, "select max(v.at) from videos v where video_key = 'alpha::v3.mp4'") == [(last["at"],)]


def test_margin_is_of_the_step_that_decided_or_the_largest_of_a_survivor(small: World) -> None:
    assemble(small.study)
    margins = dict(ask(small, "select item_id, margin from verdicts"))
    assert margins["alpha_0"] == pytest.approx(2.0)
    assert margins["alpha_1"] == pytest.approx((3 * 3.0 - 1.0) / 4)
    assert margins["beta_0"] == pytest.approx(2 / 3)
    assert margins["alpha_7"] is None


def test_the_funnel_counts_what_is_alive_at_each_step(small: World) -> None:
    assemble(small.study)
    rows = ask(small, "select step, name, alive, asked, answered, removed, failed, waiting, pending from funnel")
    assert rows == [
        (1, "blind", 12, 11, 9, 2, 2, 0, 1),
        (2, "single_frame", 8, 4, 4, 1, 0, 4, 0),
        (4, "opt_only", 7, 4, 4, 2, 0, 0, 3),
    ]
    shares = ask(small, "select removed_share, right_share from funnel")
    assert shares == [pytest.approx(pair) for pair in [(2 / 9, 1.75 / 9), (1 / 4, 1 / 4), (2 / 4, 2.5 / 4)]]


def test_benchmarks_and_categories(small: World) -> None:
    assemble(small.study)
    assert ask(small, "select * from benchmark_steps where bench = 'beta'") == [
        ("beta", 1, 3, 3, 2, 0, 1, 0, 0),
        ("beta", 2, 2, 1, 1, 0, 0, 1, 0),
        ("beta", 4, 2, 1, 1, 0, 0, 0, 1),
    ]
    assert ask(small, "select verdict, left_at, items from by_benchmark where bench = 'alpha' order by all") == [
        ("failed", 1, 1),
        ("kept", None, 1),
        ("pending", None, 2),
        ("removed", 1, 2),
        ("removed", 2, 1),
        ("removed", 4, 2),
    ]
    query = "select verdict, items from by_category where bench = 'beta' and category = 'kind 0'"
    assert ask(small, query) == [("kept", 1)]


def test_errors_by_kind_and_last_errors(small: World) -> None:
    assemble(small.study)
    assert ask(small, "select * from error_kinds") == [
        (1, "context_too_long", 1, 1, 1, ["beta_2"]),
        (1, "timeout", 3, 1, 1, ["alpha_7"]),
    ]
    assert ask(small, "select * from last_errors where item_id = 'alpha_7'") == [
        ("alpha_7", 1, "timeout", "no reply in 60 s", 3)
    ]


def test_readings_are_one_row_per_order(small: World) -> None:
    assemble(small.study)
    rows = ask(small, "select reading, is_right, margin, label_mass from readings where item_id = 'alpha_1' order by 1")
    assert [row[:2] for row in rows] == [(1, True), (2, True), (3, True), (4, False)]
    assert [row[2] for row in rows] == [pytest.approx(value) for value in (3, 3, 3, -1)]
    assert {row[3] for row in rows} == {0.9}


def test_engines_and_runs_say_what_answered(small: World) -> None:
    assemble(small.study)
    name, version, dtype, device = ENGINE.values()
    assert ask(small, "select * from engines where step = 1") == [
        (1, "org/large", "rev1", name, version, dtype, device, 9)
    ]
    assert ask(small, "select bench, items, prompts, tokens, wall_s from runs order by bench") == [
        ("alpha", 8, 32, 3200, 2.0),
        ("beta", 3, 12, 1200, 1.0),
    ]


def test_survivors_are_whole_items(small: World) -> None:
    assemble(small.study)
    rows = ask(small, "select item_id, question, gold from survivors order by 1")
    assert rows == [("alpha_4", "What happens in scene 4?", 0), ("beta_0", "What happens in scene 0?", 0)]


def test_the_last_good_row_wins_and_an_error_after_it_does_not_count(small: World) -> None:
    target = small.items[0]
    small.answer(1, target, False)
    for _ in range(3):
        small.fail(1, target)
    assemble(small.study)
    assert ask(small, "select n_right from answers where item_id = 'alpha_0' and step = 1") == [(0,)]
    assert ask(small, "select verdict from verdicts where item_id = 'alpha_0'") == [("pending",)]
    assert ask(small, "select rows, items, failed from error_kinds where error = 'timeout'") == [(6, 2, 1)]


def test_rows_of_another_key_or_of_a_changed_item_are_left_out_and_counted(small: World) -> None:
    small.answer(1, small.items[8], True, key="0123456789abcdef")
    changed = item(8, question="What was asked before?")
    small.answer(1, changed, True)
    result = assemble(small.study)
    assert ask(small, "select count(*) from answers where item_id = 'alpha_8'") == [(0,)]
    text = "step 1 (blind): 2 rows of another protocol or of changed items were left out"
    assert text in result.warnings
    assert ask(small, f"select step from warnings where warning = '{text}'") == [(1,)]


def test_a_torn_line_is_left_out_and_counted(small: World) -> None:
    with small.study.step_file(4, "alpha").open("a", encoding="utf-8") as file:
        file.write('{"item_id": "alpha_6", "bench": "al')
    result = assemble(small.study)
    assert "step 4 (opt_only): 1 lines were not readable as rows and were left out" in result.warnings
    assert ask(small, "select count(*) from answers where step = 4") == [(4,)]


def test_file_order_holds_over_many_rows_and_files(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    first, *others = [item(number) for number in range(1500)]
    world.put([first, *others])
    wrong, right = world.row(1, first, False), world.row(1, first, True)
    filler = [world.row(1, of, False) for of in others]
    world.study.append(1, "alpha", 0, [right, *filler[:700], wrong, *filler[700:]])
    world.study.append(1, "alpha", 1, [*filler, right])
    assemble(world.study)
    assert ask(world, "select n_right from answers where item_id = 'alpha_0'") == [(4,)]
    assert ask(world, "select verdict, count(*) from verdicts group by all order by 1") == [
        ("kept", 1499),
        ("removed", 1),
    ]


def test_an_outcome_without_a_cascade_stands_beside_the_verdict(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1, 4], "cascade": False, "sample": 2})
    world.put([item(number) for number in range(5)])
    for of in world.items:
        world.answer(1, of, of.item_id == "alpha_0")
        world.answer(4, of, True)
    world.put([*world.items, item(5), item(6)])
    assemble(world.study)
    rows = ask(world, "select item_id, alive, outcome from outcomes where step = 4 and outcome <> 'pending' order by 1")
    assert rows[0] == ("alpha_0", False, "removed")
    assert rows[1] == ("alpha_1", True, "removed")
    left = dict(ask(world, "select outcome, count(*) from outcomes where item_id in ('alpha_5', 'alpha_6') group by 1"))
    assert left.keys() <= {"pending", "left_out"}
    assert sum(left.values()) == 4


def test_truth_gives_classes_of_the_named_benchmark_only(tmp_path: Path) -> None:
    pool = [{"spec": "any", "files": ["a"], "bench": "alpha", "truth": "truth.jsonl"}]
    world = make_world(tmp_path, protocol={"steps": [1]}, pool=pool)
    world.put([item(0), item(1), item(2, options=("x", "y"), gold=0), item(0, "beta")])
    lines = [{"id": "q0", "class": "blind"}, {"id": "q1", "class": "order"}, {"id": "q2", "class": "order"}]
    (tmp_path / "truth.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    for of, right in zip(world.items, (True, 1, 2, True), strict=True):
        world.answer(1, of, right)
    assemble(world.study)
    assert ask(world, "select * from truth order by 1") == [
        ("alpha_0", "blind"),
        ("alpha_1", "order"),
        ("alpha_2", "order"),
    ]
    assert ask(world, "select * from by_class") == [
        ("blind", 1, 1, 1.0, 0.25, 1),
        ("order", 1, 2, pytest.approx((1 / 4 + 2 / 4) / 2), pytest.approx((1 / 4 + 1 / 2) / 2), 0),
    ]
    assert ask(world, "select * from class_verdicts") == [("blind", "removed", 1, 1), ("order", "kept", None, 2)]


def test_truth_without_a_name_belongs_to_the_benchmark_that_the_pool_gives_it(tmp_path: Path) -> None:
    pool = [{"spec": "generic", "files": ["beta.jsonl"], "truth": "truth.jsonl"}]
    world = make_world(tmp_path, pool=pool)
    world.put([item(0), item(0, "beta")])
    (tmp_path / "truth.jsonl").write_text('{"id": "q0", "class": "blind"}\n')
    assemble(world.study)
    assert ask(world, "select item_id from truth") == [("beta_0",)]


@pytest.mark.parametrize("text", ['{"id": "q0"}\n', "no json\n", "[1]\n"])
def test_a_truth_file_that_is_none_is_an_input_error(tmp_path: Path, text: str) -> None:
    pool = [{"spec": "any", "files": ["a"], "bench": "alpha", "truth": "truth.jsonl"}]
    world = make_world(tmp_path, pool=pool)
    world.put([item(0)])
    (tmp_path / "truth.jsonl").write_text(text)
    with pytest.raises(InputError, match="not a truth file"):
        assemble(world.study)
    assert not world.study.database.exists()


def test_settings_hold_what_is_measured(small: World) -> None:
    assemble(small.study)
    settings = dict(ask(small, "select * from settings"))
    assert settings["benchcheck"] == __version__
    assert settings["protocol.steps"] == "[1, 2, 4]"
    assert settings["models.8b"] == "org/large"
    assert settings["prompts.blind"].startswith("Answer the multiple-choice question")
    assert "models.2b" not in settings
    moved = table(protocol={"steps": [1, 2, 4], "margin": 1.5})
    assert settings_of(parse(moved, "x"))["protocol.margin"] == "1.5"


def test_an_empty_pool_has_every_table_with_its_columns(tmp_path: Path, small: World) -> None:
    world = make_world(tmp_path / "empty")
    world.put([])
    assemble(world.study)
    assemble(small.study)
    query = "select table_name, column_name, data_type from information_schema.columns order by all"
    assert ask(world, query) == ask(small, query)
    assert ask(world, "select sum(alive) from funnel") == [(0,)]


def test_results_that_are_not_there_or_damaged_name_the_cure(small: World) -> None:
    with pytest.raises(StudyError, match=r"not assembled yet\. Cure: benchcheck assemble"):
        open_results(small.study)
    small.study.database.write_bytes(b"no database at all" * 100)
    with pytest.raises(StudyError, match="not readable as DuckDB tables"):
        open_results(small.study)


def test_a_path_with_a_quote_is_no_query(tmp_path: Path) -> None:
    world = make_world(tmp_path / "it's a study")
    world.put([item(0)])
    world.answer(1, world.items[0], True)
    assemble(world.study)
    assert ask(world, "select verdict from verdicts") == [("removed",)]


def documented() -> dict[str, list[str]]:
    """The columns that docs/results.md lists, by table, file and view."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if line.startswith("### `"):
            name = line.split("`")[1]
            found[name] = []
        elif line.startswith("| `") and name:
            cell = line.split("|")[1]
            found[name] += cell.split("`")[1::2]
        elif line.startswith("## "):
            name = ""
    return found


def real_columns(study: Study) -> dict[str, list[str]]:
    """The columns that are really there."""
    import pyarrow.parquet as pq

    columns: dict[str, list[str]] = {}
    with open_results(study) as db:
        rows = db.sql(
            "select table_name, column_name from information_schema.columns order by table_name, ordinal_position"
        ).fetchall()
    for name, column in rows:
        columns.setdefault(name, []).append(column)
    columns["pool_items.parquet"] = pq.read_schema(study.pool_items).names
    for path in (study.summary_csv, study.accounting):
        columns[path.name] = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    return columns


def test_docs_list_every_table_view_and_column(small: World) -> None:
    assemble(small.study)
    pages, columns = documented(), real_columns(small.study)
    steps = [name for name in columns["pool_items.parquet"] if name.startswith("step")]
    per_step = [name.replace("step1_", "step<k>_") for name in steps if name.startswith("step1_")]
    columns["pool_items.parquet"] = [name for name in columns["pool_items.parquet"] if name not in steps] + per_step
    assert pages.keys() == columns.keys()
    for name, real in columns.items():
        assert pages[name] == real, f"docs/results.md: {name}"
    assert set(VIEWS) <= pages.keys()


def test_sql_of_the_docs_runs(small: World) -> None:
    assemble(small.study)
    queries = re.findall(r"^```sql\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(queries) == 7
    shares, moved, letters, odd, pairs, undecided, near = (ask(small, query) for query in queries)
    assert shares == [("alpha", pytest.approx(2 / 7)), ("beta", 0.0)]
    assert moved == [(2,)]
    assert sum(row[1] for row in letters) == 36
    assert {row[0] for row in letters} <= set("ABCD")
    assert odd == pairs == []
    assert sorted(undecided) == [
        ("alpha_6", "pending", "a step has still to ask it"),
        ("alpha_7", "failed", "timeout: no reply in 60 s"),
        ("alpha_8", "pending", "a step has still to ask it"),
        ("beta_1", "pending", "a step has still to ask it"),
        ("beta_2", "failed", "context_too_long: 9,000 tokens"),
    ]
    assert near == [("beta_0", "kept", pytest.approx(2 / 3))]


def test_importing_the_report_is_light() -> None:
    code = (
        "import sys, benchcheck.report.page, benchcheck.report.assemble; "
        "print([name for name in ('jinja2', 'duckdb', 'PIL', 'pyarrow', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
