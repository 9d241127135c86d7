"""Rows that come home are folded: identical ones skipped, new ones added in order, conflicts refused or settled."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from return_files import answer, contents, packed, twin, verdict_rows

from benchcheck.errors import InputError, StudyError, UsageError
from benchcheck.files import append_rows
from benchcheck.run.driver import retry_failed, run_study
from benchcheck.run.lock import run_lock
from benchcheck.run.plan import read_step, survey, totals
from benchcheck.run.reread import Again
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.transfer.merge import merge_returns
from benchcheck.transfer.pack import pack_returns
from studies import Run, error_of, framed_study, make_item, make_items, make_study, rows_on_disk

ITEMS = make_items(a=12, b=5)
FAILING = {"large": "scripted?fail=0.3", "small": "scripted?skill=0.4&fail=0.3"}


@pytest.fixture
def home(tmp_path: Path) -> Study:
    return framed_study(tmp_path / "it's home [1]", ITEMS)


@pytest.fixture
def there(home: Study, tmp_path: Path) -> Study:
    return twin(home, tmp_path / "there")


def rows(study: Study) -> dict[int, list[dict[str, Any]]]:
    return {step: rows_on_disk(study, step) for step in LADDER}


def errors(study: Study) -> list[list[int]]:
    """Every item's errors in every step, and its marks."""
    state = survey(study)
    return [[*report.errors.tolist(), *report.marks.tolist()] for report in state.reports.values()]


def test_what_another_machine_read_is_as_if_it_had_been_read_here(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted")
    (merged,) = merge_returns(home, [packed(there, tmp_path / "x")])
    assert rows(home) == rows(there)
    assert verdict_rows(home) == verdict_rows(there)
    assert [one.new for one in merged.steps] == [len(rows(there)[step]) for step in LADDER]
    assert home.accounting_file.read_bytes() == there.accounting_file.read_bytes()
    assert totals(survey(home)).remaining == 0
    assert not (home.results / ".merge").exists()


def test_a_second_merge_changes_nothing(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted")
    file = packed(there, tmp_path / "x")
    merge_returns(home, [file])
    before, costs = rows(home), home.accounting_file.read_bytes()
    (merged,) = merge_returns(home, [file])
    assert (rows(home), home.accounting_file.read_bytes()) == (before, costs)
    assert {(one.new, one.passed_over, one.conflicts) for one in merged.steps} == {(0, 0, 0)}
    assert [one.identical for one in merged.steps] == [len(before[step]) for step in LADDER]
    assert (merged.rereads, merged.costs) == (0, 0)


def test_the_order_of_keys_and_blanks_is_no_difference(home: Study, there: Study, tmp_path: Path) -> None:
    """A package that another program wrote is merged twice without doubling, too."""
    row = answer(there, ITEMS[0])
    path = there.step_file(1, "a")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dict(reversed(row.items())), separators=(",", ":")) + "\n")
    error = error_of(there, ITEMS[1]) | {"at": "x"}
    path.write_text(path.read_text() + json.dumps(error, indent=None, separators=(" , ", ":  ")) + "\n")
    file = packed(there, tmp_path / "x")
    assert merge_returns(home, [file])[0].steps[0].new == 2
    assert merge_returns(home, [file])[0].steps[0].new == 0
    assert rows_on_disk(home, 1) == [dict(reversed(row.items())), error]


@pytest.mark.parametrize("seed", range(4))
def test_errors_and_retries_count_as_where_they_were_made(tmp_path: Path, seed: int) -> None:
    home = framed_study(tmp_path / "home", ITEMS, **FAILING)
    there = twin(home, tmp_path / "there")
    run_study(there, "scripted", pilot=9)
    first = packed(there, tmp_path / "x")
    merge_returns(home, [first])
    assert errors(home) == errors(there)
    assert retry_failed(there) > 0
    run_study(there, "scripted")
    second = packed(there, tmp_path / "y")
    merge_returns(home, [second] if seed % 2 else [second, first])
    assert errors(home) == errors(there)
    assert verdict_rows(home) == verdict_rows(there)
    assert rows(home) == rows(there)


def test_equal_errors_within_a_second_are_as_many_as_they_were(home: Study, there: Study, tmp_path: Path) -> None:
    three = [error_of(there, ITEMS[0]) | {"at": "2026-01-01T00:00:00+00:00"}] * 3
    there.append(1, "a", None, three)
    home.append(1, "a", None, three[:1])
    (merged,) = merge_returns(home, [packed(there, tmp_path / "x")])
    assert (merged.steps[0].new, merged.steps[0].identical) == (2, 1)
    assert rows_on_disk(home, 1) == three


def test_rows_of_a_split_benchmark_keep_their_files(home: Study, there: Study, tmp_path: Path) -> None:
    there.append(1, "a", 1, [answer(there, ITEMS[0])])
    there.append(1, "a", 0, [answer(there, ITEMS[1])])
    there.append(1, "a", None, [answer(there, ITEMS[2])])
    merge_returns(home, [packed(there, tmp_path / "x")])
    assert [path.name for path in home.step_files(1)] == ["a.jsonl", "a.p0.jsonl", "a.p1.jsonl"]
    assert rows(home) == rows(there)


def test_tries_before_an_answer_that_is_here_are_passed_over(home: Study, there: Study, tmp_path: Path) -> None:
    home.append(1, "a", None, [answer(home, ITEMS[0])])
    there.append(
        1, "a", None, [error_of(there, ITEMS[0]) | {"at": "x"}, answer(there, ITEMS[0], at="later", latency_s=9.0)]
    )
    (merged,) = merge_returns(home, [packed(there, tmp_path / "x")])
    first = merged.steps[0]
    assert (first.new, first.identical, first.passed_over, first.conflicts) == (0, 1, 1, 0)
    assert rows_on_disk(home, 1) == [answer(home, ITEMS[0])]


def last_good(study: Study, item: str) -> float:
    """The margin that counts, as the tables have it."""
    table = study.rows(1).table
    return [row["mean_margin"] for row in table.to_pylist() if row["item_id"] == item and row["status"] == "ok"][-1]


@pytest.mark.parametrize(("part", "theirs_part"), [(None, None), (None, 3), (2, None), (2, 0), (2, 7)])
def test_a_conflict_is_refused_and_settled_by_name(
    home: Study, there: Study, tmp_path: Path, part: int | None, theirs_part: int | None
) -> None:
    """Where theirs stays it is the one that counts, whatever files the two lie in."""
    home.append(1, "a", part, [answer(home, ITEMS[0]), answer(home, ITEMS[1])])
    rival = answer(there, ITEMS[0], mean_margin=-7.0, logprobs=[[-9.0, -1.0]] * 4)
    there.append(1, "a", theirs_part, [rival, answer(there, ITEMS[2])])
    file, before = packed(there, tmp_path / "x"), rows(home)
    said = r"items have other answers than in this study \(step 1: 1\), such as a_0: right in 0 of 4, margin -1 here; "
    with pytest.raises(
        UsageError, match=said + r"right in 0 of 4, margin -7 there\. Cure: --keep ours or --keep theirs"
    ):
        merge_returns(home, [file])
    assert rows(home) == before
    (merged,) = merge_returns(home, [file], keep="ours")
    assert (merged.steps[0].new, merged.steps[0].conflicts) == (1, 1)
    assert last_good(home, "a_0") == -1.0
    (merged,) = merge_returns(home, [file], keep="theirs")
    assert (merged.steps[0].new, merged.steps[0].conflicts) == (1, 1)
    assert last_good(home, "a_0") == -7.0
    (merged,) = merge_returns(home, [file])
    assert (merged.steps[0].new, merged.steps[0].conflicts) == (0, 0)
    with pytest.raises(UsageError, match="--keep mine is not known"):
        merge_returns(home, [file], keep="mine")


def test_the_last_of_several_answers_counts_also_when_a_part_came_before(
    home: Study, there: Study, tmp_path: Path
) -> None:
    """A worker whose parent was killed may answer an item that the next run answers again."""
    early, late = answer(there, ITEMS[0], mean_margin=-1.0), answer(there, ITEMS[0], mean_margin=-2.0)
    there.append(1, "a", None, [error_of(there, ITEMS[0]) | {"at": "x"}, early, late])
    file = packed(there, tmp_path / "x")
    for first, after in (([], 3), ([early], 2), ([early, late], 2), ([late], 1)):
        study = twin(home, tmp_path / f"home{after}{len(first)}{first == [late]}")
        study.append(1, "a", None, first)
        for _ in range(2):
            merge_returns(study, [file])
            assert last_good(study, "a_0") == -2.0
            assert len(rows_on_disk(study, 1)) == after
    older = twin(home, tmp_path / "older")
    older.append(1, "a", None, [early])
    newer = twin(home, tmp_path / "newer")
    newer.append(1, "a", None, [early, late])
    merge_returns(newer, [packed(older, tmp_path / "y")])
    assert last_good(newer, "a_0") == -2.0


@pytest.mark.parametrize("seed", range(8))
def test_any_part_of_the_rows_first_ends_the_same(home: Study, there: Study, tmp_path: Path, seed: int) -> None:
    """Rows as a killed merge leaves them: some beginning of each file, in the order it writes."""
    rng = random.Random(seed)
    for item in rng.sample(ITEMS, 10):
        tries = [error_of(there, item) | {"at": f"{n}"} for n in range(rng.randrange(3))]
        goods = [answer(there, item, mean_margin=-float(n)) for n in range(rng.randrange(3))]
        there.append(1, item.bench, rng.choice([None, 0, 1]), [*tries, *goods])
    file = packed(there, tmp_path / "x")
    for path in there.step_files(1):
        lines = path.read_text().splitlines()
        append_rows(
            home.step_folder(1) / path.name, [json.loads(line) for line in lines[: rng.randrange(len(lines) + 1)]]
        )
    merge_returns(home, [file])
    assert errors(home) == errors(there)
    assert [last_good(home, i.item_id) for i in ITEMS if any_good(there, i.item_id)] == [
        last_good(there, i.item_id) for i in ITEMS if any_good(there, i.item_id)
    ]
    assert len(rows_on_disk(home, 1)) == len(rows_on_disk(there, 1))


def any_good(study: Study, item: str) -> bool:
    return any(row["item_id"] == item and row["status"] == "ok" for row in rows_on_disk(study, 1))


def test_stale_rows_that_are_here_are_nobodys(home: Study, there: Study, tmp_path: Path) -> None:
    home.append(1, "a", None, [answer(home, ITEMS[0], step_key="0" * 16), answer(home, ITEMS[1], item_digest="x")])
    there.append(1, "a", None, [answer(there, ITEMS[0]), answer(there, ITEMS[1])])
    assert merge_returns(home, [packed(there, tmp_path / "x")])[0].steps[0].new == 2
    assert read_step(home, survey(home).pool, LADDER[1]).marks.sum() > 0


def test_damaged_rows_that_are_here_are_no_answers(home: Study, there: Study, tmp_path: Path) -> None:
    home.append(1, "a", None, [answer(home, ITEMS[0], n_right=99)])
    there.append(1, "a", None, [answer(there, ITEMS[0])])
    assert merge_returns(home, [packed(there, tmp_path / "x")])[0].steps[0].new == 1


def test_second_readings_are_added_once_and_never_answers(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=2)
    again = Again(there.root, there.config)
    again.append(1, "a", None, [answer(there, ITEMS[0], at="x"), answer(there, ITEMS[0], at="x", mean_margin=-3.0)])
    append_rows(again.accounting_file, [{"run": "r", "step": 1, "items": 2}])
    file = packed(there, tmp_path / "x")
    assert merge_returns(home, [file])[0].rereads == 2
    assert merge_returns(home, [file])[0].rereads == 0
    assert rows(home) == rows(there)
    assert (home.reread_folder(1) / "a.jsonl").read_bytes() == (there.reread_folder(1) / "a.jsonl").read_bytes()
    assert Again(home.root, home.config).accounting_file.read_bytes() == again.accounting_file.read_bytes()


def test_logs_and_what_only_describes_there_lie_apart(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=2)
    (there.logs / "doctor.json").write_text("{}\n")
    there.certificate_file.write_text("{}\n")
    file = packed(there, tmp_path / "x")
    (merged,) = merge_returns(home, [file])
    assert merged.logs == home.logs / "returns" / file.name.removesuffix(".tar.gz")
    assert sorted(path.name for path in merged.logs.iterdir()) == ["doctor.json", "frames_certificate.json"]
    assert not home.doctor_file.exists()
    assert not home.certificate_file.exists()


def test_logs_of_two_packages_of_one_name_both_stay(home: Study, there: Study, tmp_path: Path) -> None:
    """Two studies on one machine, packed on one day; a log that has grown takes its own place."""
    other = twin(home, tmp_path / "other")
    for study, text in ((there, "one\n"), (other, "two\n")):
        study.logs.mkdir(exist_ok=True)
        (study.logs / "server.log").write_text(text)
    for study, folder in ((there, "x"), (other, "y"), (there, "x")):
        file = packed(study, tmp_path / folder)
        (merged,) = merge_returns(home, [file])
        assert merged.logs is not None
        with (study.logs / "server.log").open("a") as log:
            log.write("more\n")
    kept = sorted(path.read_text() for path in (home.logs / "returns").glob("*/server.log"))
    assert kept == ["one\nmore\n", "two\n"]


def test_damaged_lines_of_accounting_are_left_out(home: Study, there: Study, tmp_path: Path) -> None:
    there.append(1, "a", None, [answer(there, ITEMS[0])])
    there.logs.mkdir(exist_ok=True)
    there.accounting_file.write_text('{"run": "x"}\n[1]\n{"torn\n' + "[" * 90_000 + '\n{"a": NaN}\n{"run": "x"}\n')
    file = packed(there, tmp_path / "x")
    assert merge_returns(home, [file])[0].costs == 2
    assert home.accounting_file.read_text() == '{"run": "x"}\n' * 2
    assert merge_returns(home, [file])[0].costs == 0


def test_folders_and_studies_are_merged_too(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=3)
    file = packed(there, tmp_path / "x")
    folder = tmp_path / "unpacked"
    for name, data in contents(file).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    for source in (folder, there.root):
        study = twin(home, tmp_path / f"home of {source.name}")
        merge_returns(study, [source])
        assert rows(study) == rows(there)
    (folder / "step1" / "a.jsonl").write_bytes((folder / "step1" / "a.jsonl").read_bytes()[:-1] + b" ")
    with pytest.raises(InputError, match=r"step1/a\.jsonl is not the file that returns\.json lists"):
        merge_returns(home, [folder])
    with pytest.raises(UsageError, match=r"neither returns\.json nor benchcheck\.toml is in this folder"):
        merge_returns(home, [tmp_path / "x"])
    with pytest.raises(UsageError, match="no such file"):
        merge_returns(home, [tmp_path / "nowhere"])


def test_several_packages_are_all_checked_before_the_first_row(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=3)
    good = packed(there, tmp_path / "x")
    other = twin(home, tmp_path / "other")
    run_study(other, "scripted", pilot=5)
    also = packed(other, tmp_path / "y")
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(good.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"broken\.tar\.gz"):
        merge_returns(home, [good, broken])
    assert rows(home) == {step: [] for step in LADDER}
    first, second = merge_returns(home, [good, also])
    assert rows(home)[1] != rows(other)[1]
    assert verdict_rows(home) == verdict_rows(other)
    assert second.steps[0].identical + second.steps[0].new + second.steps[0].passed_over == 10
    assert first.steps[0].new == 6


def test_packages_that_contradict_each_other_are_found_before_the_first_row(
    home: Study, there: Study, tmp_path: Path
) -> None:
    there.append(1, "a", None, [answer(there, ITEMS[0]), answer(there, ITEMS[1])])
    other = twin(home, tmp_path / "other")
    other.append(1, "a", None, [answer(other, ITEMS[0]), answer(other, ITEMS[1], n_right=4), answer(other, ITEMS[2])])
    files = [packed(there, tmp_path / "x"), packed(other, tmp_path / "y")]
    said = r"y.*: items have other answers than in this study, or in a package before it \(step 1: 1\), such as a_1: "
    with pytest.raises(UsageError, match=said + "right in 0 of 4, margin -1 here; right in 4 of 4, margin -1 there"):
        merge_returns(home, files)
    assert rows(home) == {step: [] for step in LADDER}
    first, second = merge_returns(home, files, keep="theirs")
    assert (first.steps[0].new, second.steps[0].new, second.steps[0].conflicts) == (2, 2, 1)
    assert [row["n_right"] for row in rows(home)[1] if row["item_id"] == "a_1"] == [0, 4]
    merge_returns(home, files)
    assert len(rows(home)[1]) == 4


def test_a_path_with_a_pattern_and_dots_in_it_loses_no_row(home: Study, there: Study, tmp_path: Path) -> None:
    """DuckDB takes `..` out of the names of files that it finds by a pattern."""
    run_study(there, "scripted", pilot=3)
    with there.step_files(1)[0].open("a") as file:
        file.write('{"torn\n')
    odd = tmp_path / "a [1] place"
    odd.mkdir()
    there.root.rename(odd / "there")
    made = pack_returns(Study.open(odd / ".." / odd.name / "there"), tmp_path / "x")
    assert made.left_out == 1
    (merged,) = merge_returns(Study.open(home.root / ".." / home.root.name), [made.file])
    assert merged.steps[0].new == 6
    assert len(rows(home)[1]) == 6


def test_a_pool_that_grew_takes_what_was_made_before(home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=3)
    home.write_pool([*ITEMS, make_item(99)])
    notes: list[str] = []
    merge_returns(home, [packed(there, tmp_path / "x")], note=notes.append)
    assert len(notes) == 1
    assert "made on another state of the pool; its rows are compared item by item" in notes[0]
    assert rows(home) == rows(there)


def test_rows_of_other_items_are_refused_with_their_ids(tmp_path: Path) -> None:
    home = framed_study(tmp_path / "home", ITEMS)
    changed = [make_item(n, question="Edited?") for n in range(7)]
    there = framed_study(tmp_path / "there", changed)
    there.append(1, "a", None, [answer(there, item) for item in changed])
    said = (
        r"7 rows of step 1 are of 7 items whose question, options, answer, video or window differ here: a_0, a_1, a_2, "
    )
    with pytest.raises(InputError, match=said + "a_3, a_4. Cure"):
        merge_returns(home, [packed(there, tmp_path / "x")])
    there.write_pool([make_item(n) for n in range(50, 53)])
    there.append(1, "a", None, [answer(there, make_item(n)) for n in (50, 51)] * 2)
    said = "4 rows of step 1 are of 2 items that this study's pool does not have: a_50, a_51. Cure"
    with pytest.raises(InputError, match=said):
        merge_returns(home, [packed(there, tmp_path / "x")])
    assert rows(home) == {step: [] for step in LADDER}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"protocol": {"orders": 8}}, r"protocol\.orders = 4 here, 8 in the package \(steps 1, 4\)\. Cure"),
        ({"large": "other"}, r'models\.8b\.model = "scripted" here, "other" in the package'),
        ({"prompts": {"blind": "Guess."}}, r'prompts\.blind = "Answer the .*"Guess\." in the package \(step 1\)'),
    ],
)
def test_another_protocol_is_refused_with_the_field(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    home = framed_study(tmp_path / "home", ITEMS)
    there = framed_study(tmp_path / "there", ITEMS, **settings)
    there.append(1, "a", None, [answer(there, ITEMS[0])])
    with pytest.raises(InputError, match="made under another protocol: " + said):
        merge_returns(home, [packed(there, tmp_path / "x")])
    assert rows(home)[1] == []


def test_another_threshold_is_worth_a_line(home: Study, tmp_path: Path) -> None:
    there = framed_study(tmp_path / "there", ITEMS, protocol={"margin": 0.1})
    there.append(1, "a", None, [answer(there, ITEMS[0])])
    notes: list[str] = []
    merge_returns(home, [packed(there, tmp_path / "x")], note=notes.append)
    assert "protocol.margin = 0.6931471805599453 here, 0.1 in the package: other items may have been asked" in notes[0]


def test_a_study_of_some_steps_takes_those_alone(home: Study, tmp_path: Path) -> None:
    part = framed_study(tmp_path / "part", ITEMS, protocol={"steps": [1, 2]})
    run_study(part, "scripted")
    merge_returns(home, [packed(part, tmp_path / "x")])
    assert rows(home)[2] == rows(part)[2] != []
    run_study(home, "scripted")
    with pytest.raises(InputError, match=r"protocol\.steps = \[1, 2\] here, 3 as well in the package"):
        merge_returns(part, [packed(home, tmp_path / "x")])


def test_a_run_at_work_is_not_disturbed(home: Study, there: Study, tmp_path: Path) -> None:
    file = packed(there, tmp_path / "x")
    with run_lock(home), pytest.raises(UsageError, match="another run is at work on this study"):
        merge_returns(home, [file])


def test_the_command_prints_counts_and_totals(run: Run, home: Study, there: Study, tmp_path: Path) -> None:
    run_study(there, "scripted", pilot=3)
    file = packed(there, tmp_path / "x")
    file.with_name(file.name + ".sha256").unlink()
    code, out, err = run("merge", home.root, file)
    assert code == 0
    assert err == f"{file.name}: no {file.name}.sha256 beside it; the hashes inside it are checked alone\n"
    lines = out.splitlines()
    assert lines[0] == str(file)
    assert lines[1].split() == ["step", "new", "identical", "passed", "over", "conflicts"]
    assert lines[2].split() == ["1", "6", "0", "0", "0"]
    assert lines[-1].startswith("REMAINING_TOTAL=")
    assert out.splitlines()[-3:] == run("plan", home.root)[1].splitlines()[-3:]
    rival = twin(home, tmp_path / "rival")
    rival.append(
        1, "a", None, [answer(rival, item, mean_margin=5.0, logprobs=[[0.0, -1.0]] * 4) for item in ITEMS[:12]]
    )
    code, out, err = run("merge", rival.root, file)
    assert (code, out) == (2, "")
    assert "Cure: --keep ours or --keep theirs" in err.splitlines()[-1]
    code, out, _ = run("merge", rival.root, file, "--keep", "ours")
    assert code == 0
    assert "3 conflicts: ours stay" in out.splitlines()


def test_a_torn_line_there_is_told(run: Run, home: Study, there: Study, tmp_path: Path) -> None:
    """A package that an older benchcheck or a shell made may hold one; a reader passes over it."""
    from return_files import repacked

    there.append(1, "a", None, [answer(there, ITEMS[0]), answer(there, ITEMS[1])])
    file = packed(there, tmp_path / "x")
    inside = contents(file)
    lines = inside["step1/a.jsonl"].splitlines(keepends=True)
    inside["step1/a.jsonl"] = lines[0] + lines[0][:50] + b"\n\n" + lines[1]
    code, _, err = run("merge", home.root, repacked(file, inside))
    assert code == 0
    assert "step 1: 1 lines were torn where they were written, and are passed over" in err
    assert rows(home) == rows(there)


def test_a_disk_that_is_too_small_is_found_before_the_first_row(small_disk: Path, tmp_path: Path) -> None:
    there = framed_study(tmp_path / "there", ITEMS)
    for _ in range(40):
        there.append(1, "a", None, [error_of(there, item) | {"detail": "x" * 300} for item in ITEMS[:12]])
    file = packed(there, tmp_path / "x")
    home = make_study(small_disk / "home")
    home.write_pool(ITEMS)
    with pytest.raises(StudyError, match=r"unpacks to 0\.\d MB, 0\.\d MB are free\. Cure: free space"):
        merge_returns(home, [file])
    assert rows(home)[1] == []


def test_a_disk_that_fills_up_while_rows_are_added(
    home: Study, there: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added stays whole, and the same call completes it."""
    run_study(there, "scripted")
    file = pack_returns(there, tmp_path).file
    real, calls = Study.append, list[int]()

    def full(self: Study, step: int, bench: str, part: int | None, new: list[dict[str, Any]]) -> None:
        calls.append(step)
        if len(calls) == 4:
            raise StudyError("x: the disk is full")
        real(self, step, bench, part, new)

    with monkeypatch.context() as patched:
        patched.setattr(Study, "append", full)
        with pytest.raises(StudyError, match="the disk is full"):
            merge_returns(home, [file])
    assert 0 < sum(map(len, rows(home).values())) < sum(map(len, rows(there).values()))
    assert not (home.results / ".merge").exists()
    merge_returns(home, [file])
    assert rows(home) == rows(there)
    assert home.accounting_file.read_bytes() == there.accounting_file.read_bytes()
