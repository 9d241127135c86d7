"""`benchcheck pool check`: the command, its table, findings and JSON, and what it makes of damaged or odd pools."""

import csv
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchcheck.cli.check_table import check_json, check_shown, check_table
from benchcheck.errors import StudyError, UsageError
from benchcheck.pool.building.build import MANIFEST_COLUMNS
from benchcheck.pool.checking.check import DECLARED, PoolCheck, check_pool
from benchcheck.pool.checking.findings import CODES, findings
from benchcheck.pool.issues import ISSUES
from benchcheck.study import Study

from .pools import item, pool_of, random_items

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "pool-check.md").read_text(encoding="utf-8")


def texts(check: PoolCheck) -> list[str]:
    return [f"{finding.bench} {finding.code}: {finding.text}" for finding in findings(check)]


def manifest(study: Study, **cells: str) -> None:
    row = dict.fromkeys(MANIFEST_COLUMNS, "") | {"bench": "a", "files": "{}"} | cells
    with study.manifest_file.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(MANIFEST_COLUMNS))
        table.writeheader()
        table.writerow(row)


def studied(folder: Path, *entries: str) -> Path:
    """A study whose benchmarks are the JSON lines in `entries`."""
    pool = []
    for number, lines in enumerate(entries):
        (folder / f"{'abc'[number]}.jsonl").write_text(lines, encoding="utf-8")
        pool.append({"spec": "generic", "files": [f"{'abc'[number]}.jsonl"]})
    Study.create(folder, pool=pool)
    return folder


def lines(count: int, answer: int = 0, start: int = 0) -> str:
    rows = [
        {
            "question": f"What is {row}?",
            "options": ["the long one", f"b{row}", "c", "d"],
            "answer": answer,
            "video": "v",
        }
        for row in range(start, start + count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


# The command.


def test_a_clean_pool(tmp_path: Path, run: Any) -> None:
    rows = [
        {"question": f"Which is {row}?", "options": list("abcd"), "answer": row % 4, "video": "v"} for row in range(40)
    ]
    study = studied(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert run("pool", "build", study)[0] == 0
    code, out, err = run("pool", "check", study, "--strict")
    assert (code, err) == (0, "")
    assert re.search(r"^a +40 +40 +4 +25\.0 +A 25\.0 +25\.0 +25\.0 +0\.0 +0 +0 +same ", out, re.MULTILINE)
    assert out.endswith("No findings.\n")


def test_a_biased_pool(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(60), lines(10, start=50))
    run("pool", "build", study)
    code, out, _ = run("pool", "check", study)
    assert code == 0
    assert "a: 100.0 % of the right answers are A, chance 25.0 %; chi-square 180 with 3 degrees of freedom" in out
    assert "a: the longest option is right in 100.0 % (94.0 % to 100.0 %), chance 25.0 %, p < 0.001" in out
    assert "b: 10 items have their question and options in a too" in out


def test_a_file_that_changed(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(30), lines(3))
    run("pool", "build", study)
    (tmp_path / "a.jsonl").write_text(lines(31), encoding="utf-8")
    (tmp_path / "b.jsonl").unlink()
    code, out, err = run("pool", "check", study, "--strict")
    assert code == 1
    assert "a: changed since the build: a.jsonl (changed). Figures are those of the files before" in out
    assert "b: changed since the build: b.jsonl (missing)." in out
    assert "2 faults: a: a.jsonl changed; b: b.jsonl missing" in err


def test_strict_names_one_fault(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(4) + lines(4))
    run("pool", "build", study)
    code, _, err = run("pool", "check", study, "--strict")
    assert (code, err) == (1, "benchcheck: 1 fault: a: 4 repeats\n")


def test_strict_names_five_faults_of_many(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, *(lines(4) + lines(4) for _ in range(3)))
    run("pool", "build", study)
    for name in "abc":
        (tmp_path / f"{name}.jsonl").write_text(lines(1), encoding="utf-8")
    code, _, err = run("pool", "check", study, "--strict")
    assert code == 1
    assert "6 faults: a: a.jsonl changed; a: 4 repeats; b: b.jsonl changed; b: 4 repeats; c: c.jsonl changed; …" in err
    assert run("pool", "check", study)[0] == 0


def test_one_benchmark_alone_keeps_its_figures(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(30), lines(30, 1))
    run("pool", "build", study)
    _, whole, _ = run("pool", "check", study, "--json", "-")
    code, out, _ = run("pool", "check", study, "--bench", "b", "--json", "-")
    assert code == 0
    one, every = json.loads(out), json.loads(whole)
    assert one["benches"] == every["benches"][1:]
    assert one["tests"] == every["tests"] == 8
    assert one["overlaps"] == every["overlaps"]
    assert {finding["bench"] for finding in one["findings"]} == {"b"}


@pytest.mark.parametrize(("name", "hint"), [("", ""), ("aa", " Did you mean 'a'?"), ("zebra", "")])
def test_a_benchmark_that_is_not_there(tmp_path: Path, run: Any, name: str, hint: str) -> None:
    study = studied(tmp_path, lines(3))
    run("pool", "build", study)
    code, _, err = run("pool", "check", study, "--bench", name)
    assert code == 2
    assert f"no benchmark is called {name!r}.{hint} Allowed: a\n" in err


def test_json_goes_into_a_file_whole(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(3))
    run("pool", "build", study)
    code, out, err = run("pool", "check", study, "--json", tmp_path / "deep" / "check.json")
    assert code == 0
    assert out.startswith("benchmark ")
    assert err.endswith("check.json written\n")
    assert json.loads((tmp_path / "deep" / "check.json").read_text(encoding="utf-8"))["mcq"] == 3


def test_a_folder_in_the_place_of_the_json(tmp_path: Path, run: Any) -> None:
    study = studied(tmp_path, lines(3))
    run("pool", "build", study)
    (tmp_path / "taken").mkdir()
    code, _, err = run("pool", "check", study, "--json", tmp_path / "taken")
    assert code == 1
    assert "taken: this is a folder where a file is wanted" in err
    assert err.count("\n") == 1
    assert list((tmp_path / "taken").iterdir()) == []


def test_no_pool_yet(tmp_path: Path, run: Any) -> None:
    code, _, err = run("pool", "check", studied(tmp_path, lines(3)))
    assert code == 1
    assert "no pool yet. Cure: benchcheck pool build" in err


# Damaged and odd pools.


def test_a_damaged_pool(tmp_path: Path) -> None:
    study = pool_of(tmp_path, random_items(1, 50))
    whole = study.pool_file.read_bytes()
    for broken in (b"", b"PAR1", whole[: len(whole) // 2], b"no parquet"):
        study.pool_file.write_bytes(broken)
        with pytest.raises(StudyError, match=r"not readable as parquet.*Cure: benchcheck pool build"):
            check_pool(study)


def test_another_parquet_file(tmp_path: Path) -> None:
    study = pool_of(tmp_path, [])
    pq.write_table(pa.table({"bench": ["a"], "question": ["?"]}), study.pool_file)
    with pytest.raises(StudyError, match=r"no column item_id, options, gold, format, .* so not a pool of items"):
        check_pool(study)


def test_a_column_of_another_type(tmp_path: Path) -> None:
    study = pool_of(tmp_path, random_items(1, 5))
    table = study.item_table()
    place = table.schema.get_field_index("gold")
    pq.write_table(table.set_column(place, "gold", pa.array(["one"] * 5)), study.pool_file)
    with pytest.raises(StudyError, match=r"column 'gold' is string, not int64 .*Cure: benchcheck pool build"):
        check_pool(study)


def test_an_item_that_is_called_multiple_choice_and_is_not(tmp_path: Path) -> None:
    study = pool_of(tmp_path, [item("a", 0, ("x", "y")), replace(item("a", 1, ("x", "y")), gold=2)])
    with pytest.raises(StudyError, match=r"item a_1 has format mcq, 2 options, gold 2\. Allowed: 2 to 26 options"):
        check_pool(study)


def test_the_original_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POOL_BASE names a pool without the newer columns, as pandas writes it, and without our manifest."""
    study = pool_of(tmp_path, [replace(one, file_gold=None) for one in random_items(3, 60)])
    wanted = check_pool(study)
    table = study.item_table().drop_columns(["subtitles", "group", "file_gold", "item_digest", "frames_key"])
    large = pa.large_list(pa.large_string())
    fields = [field.with_type(large) if field.name == "options" else field for field in table.schema]
    (tmp_path / "given").mkdir()
    pq.write_table(table.cast(pa.schema(fields)), tmp_path / "given" / "pool_items_base.parquet")
    monkeypatch.setenv("POOL_BASE", str(tmp_path / "given"))
    found = check_pool(study)
    assert [bench.row() for bench in found.benches] == [bench.row() for bench in wanted.benches]
    (tmp_path / "given" / "pool_schema_manifest.csv").write_text(
        'bench,rows,files\nbench0,9,"{""gone.csv"": ""00""}"\n', encoding="utf-8"
    )
    assert check_pool(study).benches == found.benches


@pytest.mark.parametrize("items", [[], [item("a", 0, ("x", "y"))], [item("a", 0, (), None)] * 2])
def test_next_to_nothing(tmp_path: Path, items: list[Any]) -> None:
    check = check_pool(pool_of(tmp_path, items))
    assert len(check.benches) == min(len(items), 1)
    assert [finding.code for finding in findings(check)] in ([], ["blocked"])
    shown = json.loads(check_json(check))
    assert shown["items"] == len(items)
    assert check_table(check, 80).row_count == len(check.benches)


def test_all_open_and_one_number_of_options(tmp_path: Path) -> None:
    open_ = [item("open", row, (), None, issues=("hidden_gold", "no_options")) for row in range(5)]
    asked = [item("asked", row, ("x", "y"), row % 2) for row in range(6)]
    check = check_pool(pool_of(tmp_path, open_ + asked))
    row = check.benches[0].row()
    assert (row["mcq"], row["open"], row["chance"], row["majority_letter"], row["longest_acc"]) == (
        0,
        5,
        None,
        "",
        None,
    )
    assert (row["letters_p_adjusted"], check.tests) == (None, 4)
    assert check.benches[1].row()["option_counts"] == {"2": 6}
    assert texts(check)[0].startswith("open blocked: 5 of 5 items not screened: hidden_gold 5, no_options 5")


def test_declared_codes_are_no_faults(tmp_path: Path) -> None:
    """A spec that keeps open-ended questions, or lists errata, is not wrong; nor is a code of a later version."""
    issues = [(code,) for code in sorted(DECLARED & set(ISSUES))] + [("of_tomorrow",)]
    items = [item("a", row, ("x", "y"), None, issues=codes) for row, codes in enumerate(issues)]
    check = check_pool(pool_of(tmp_path, [*items, item("a", 9, ("x", "z"))]))
    assert check.faults == []
    assert check.benches[0].issues["of_tomorrow"] == 1
    assert findings(check) == []


# The manifest.


def test_what_the_manifest_says(tmp_path: Path) -> None:
    study = pool_of(tmp_path, [item("a", row, ("x", "y"), row % 2) for row in range(4)])
    assert (check_pool(study).benches[0].spec, check_pool(study).benches[0].files) == ("", {})
    manifest(study, spec="own.toml", drift="4 items where 5 were expected")
    bench = check_pool(study).benches[0]
    assert (bench.spec, bench.drift) == ("own.toml", "4 items where 5 were expected")
    assert check_pool(study).faults == ["a: drift: 4 items where 5 were expected"]
    assert texts(check_pool(study)) == ["a drift: 4 items where 5 were expected"]


def test_files_of_a_hub_dataset_are_pinned(tmp_path: Path) -> None:
    """At a commit they cannot change, and another machine need not have them; a file of one's own is looked at."""
    study = pool_of(tmp_path, [item("a", 0, ("x", "y"))])
    (tmp_path / "own.json").write_text("[]", encoding="utf-8")
    named = json.dumps({"data/val.parquet": "00", "/nowhere/a.json": "00", "own.json": "00"})
    manifest(study, source=f"owner/name@{'ab' * 20}", files=named)
    states = {"data/val.parquet": "pinned", "/nowhere/a.json": "missing", "own.json": "changed"}
    assert check_pool(study).benches[0].files == states
    assert check_pool(study).faults == ["a: /nowhere/a.json missing", "a: own.json changed"]
    manifest(study, source="https://github.com/owner/name@0123abcd", files='{"data/val.parquet": "00"}')
    assert check_pool(study).benches[0].files == {"data/val.parquet": "missing"}


@pytest.mark.parametrize("files", ["{", "[1]", "12"])
def test_a_manifest_with_damaged_files(tmp_path: Path, files: str) -> None:
    study = pool_of(tmp_path, [item("a", 0, ("x", "y"))])
    manifest(study, files=files)
    with pytest.raises(StudyError, match=r"files of 'a' is no JSON object of path and SHA-256\. Cure: benchcheck pool"):
        check_pool(study)


def test_a_manifest_that_is_no_text(tmp_path: Path) -> None:
    study = pool_of(tmp_path, [item("a", 0, ("x", "y"))])
    study.manifest_file.write_bytes(b"bench\n\xff\xfe\n")
    with pytest.raises(StudyError, match=r"manifest\.csv: not readable"):
        check_pool(study)


# Findings.


def test_findings_stand_in_the_order_that_matters(tmp_path: Path) -> None:
    """Changed files, drift, what blocks; then all others by their size, a single blocked item last."""
    worst = [item("a", row, ("the longest", "x", "y", "z"), 0, question=f"{row}?") for row in range(60)]
    mild = [item("b", row, ("the longest", "x", "y", "z"), row % 5 % 4, question=f"{row}!") for row in range(900)]
    lost = [item("c", row, ("x", "y"), None, issues=("hidden_gold",), question="?") for row in range(30)]
    one = [item("b", 900, ("x", "y"), None, issues=("hidden_gold",), question="Who?")]
    study = pool_of(tmp_path, [*worst, *mild, *one, *lost])
    manifest(study, drift="less", files='{"gone.json": "00"}')
    found = findings(check_pool(study))
    codes = [(finding.bench, finding.code) for finding in found]
    assert codes[:3] == [("a", "files"), ("a", "drift"), ("c", "blocked")]
    assert {code for _, code in codes[3:-1]} == {"letters", "longest", "shortest", "option_prior"}
    sizes = [finding.size for finding in found[3:]]
    assert sizes == sorted(sizes, reverse=True)
    assert codes[-1] == ("b", "blocked")


def test_a_gold_that_another_benchmark_gives_away(tmp_path: Path) -> None:
    hidden = [
        item("hidden", row, ("x", "y", "z"), None, issues=("hidden_gold",), question=f"{row}?") for row in range(4)
    ]
    known = [item("known", row, ("Z", "y", "x"), 1, question=f"{row}?") for row in range(3)]
    check = check_pool(pool_of(tmp_path, hidden + known))
    assert check.overlaps == (
        {
            "one": "hidden", "other": "known", "questions": 3, "one_items": 3, "other_items": 3,
            "one_gold_in_other": 3, "other_gold_in_one": 0,
        },
    )  # fmt: skip
    assert "hidden gold_elsewhere: 3 items without a gold have one in known: same question, same options" in texts(
        check
    )
    assert "known shared: 3 items have their question and options in hidden too" in texts(check)
    assert not [text for text in texts(check.named(["known"])) if text.startswith("hidden")]


def test_one_item_is_no_items(tmp_path: Path) -> None:
    who = {"question": "Who?", "video": "same"}
    items = [item(bench, row, ("x", "y"), None, **who) for bench, row in (("a", 0), ("a", 1), ("b", 0))]
    items += [item("b", 1, ("p", "q"), 0), item("c", 0, ("x", "y"), 0, **who)]
    said = texts(check_pool(pool_of(tmp_path, items)))
    assert "a repeats: 1 item repeats an earlier one: question, options, video and window" in said
    assert "b gold_elsewhere: 1 item without a gold has one in c: same question, same options" in said
    assert "c shared: 1 item has its question and options in b too" in said


def test_wrong_golds_and_repeats_are_named(tmp_path: Path) -> None:
    items = [item("a", row, ("x", "y"), row % 2, video="same") for row in range(3)]
    items.append(item("a", 3, ("p", "p"), 0, issues=("duplicate_options", "duplicate_gold")))
    check = check_pool(pool_of(tmp_path, items))
    assert (
        "a wrong_gold: golds that are wrong or not the only right one: duplicate_gold 1 (docs/issue-codes.md)"
        in texts(check)
    )
    assert (
        "a repeats: 2 items repeat an earlier one: question, options, video and window, 1 of them with another gold"
        in texts(check)
    )


def test_more_findings_than_a_screen_holds(tmp_path: Path) -> None:
    items = [item(f"b{bench}", row, ("x", "y"), video="v") for bench in range(6) for row in range(2)]
    check = check_pool(pool_of(tmp_path, items))
    shown = [part for part in check_shown(check) if isinstance(part, str)]
    assert len(findings(check)) == 21
    assert shown[-1] == "and 1 more: --json FILE has them all, --bench NAME those of one benchmark"
    assert len(shown) == 2 + 1 + 20 + 1


def test_a_narrow_terminal(tmp_path: Path) -> None:
    """The longest names of the specs that ship fit 80 columns without a break."""
    from rich.console import Console

    check = check_pool(pool_of(tmp_path, [item("streamingbench_omni", row, ("xx", "y"), 0) for row in range(9_999)]))
    narrow = Console(width=80, highlight=False)
    with narrow.capture() as seen:
        narrow.print(check_table(check, 80))
    head, row = seen.get().splitlines()
    assert "issues" not in head
    assert row.split() == ["streamingbench_omni", "9,999", "2", "50.0", "A", "100.0*", "100.0*", "100.0*", "0", "0"]
    wide = Console(width=160, highlight=False)
    with wide.capture() as seen:
        wide.print(check_table(check, 160))
    assert "checked" in seen.get()


# JSON and its page.


def keys_on_page(after: str) -> list[str]:
    part = PAGE.split(after, 1)[1]
    table = part.split("\n\n", 2)[1] if part.startswith("\n\n") else part.split("\n\n")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_every_key_of_the_json_is_on_the_page(tmp_path: Path) -> None:
    items = random_items(5, 40) + [item("b", row, ("x", "y"), question="Who?") for row in range(3)]
    shown = json.loads(check_json(check_pool(pool_of(tmp_path, [*items, *(replace(one, bench="d") for one in items)]))))
    assert shown["overlaps"]
    assert shown["findings"]
    top = keys_on_page("null where there is no item to count.")
    assert sorted(top) == sorted(shown)
    assert sorted(keys_on_page("Each of `benches`:")) == sorted(shown["benches"][0])
    assert sorted(keys_on_page("Each of `overlaps`:")) == sorted(shown["overlaps"][0])
    for key in shown["findings"][0]:
        assert f"`{key}`" in PAGE
    section = PAGE.split("## Findings")[1].split("## JSON")[0]
    listed = [name for name in re.findall(r"`(\w+)`", section) if name in CODES]
    assert list(dict.fromkeys(listed)) == list(CODES)


def test_json_has_no_value_that_is_no_json(tmp_path: Path) -> None:
    """A letter that no item has gives an infinite statistic."""
    items = [item("a", row, ("x", "y"), 0, file_gold=3) for row in range(40)]
    shown = json.loads(check_json(check_pool(pool_of(tmp_path, items))), parse_constant=pytest.fail)
    row = shown["benches"][0]
    assert (row["letters_chi_square"], row["letters_p"]) == (None, 0.0)
    assert (row["majority_letter"], row["letters"]) == ("D", {"A": 0, "B": 0, "C": 0, "D": 40})
    assert math.fsum(row["letters_expected"].values()) == 40


def test_the_example_of_the_page_is_real(tmp_path: Path) -> None:
    commands = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    wanted = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"
    assert found.endswith(wanted)


def test_naming_benchmarks_of_a_check(tmp_path: Path) -> None:
    check = check_pool(pool_of(tmp_path, random_items(2, 30, benches=3)))
    assert [bench.bench for bench in check.named(["bench1", "bench0"]).benches] == [
        name for name in (bench.bench for bench in check.benches) if name != "bench2"
    ]
    with pytest.raises(UsageError, match=r"no benchmark is called 'bench9'\. Did you mean 'bench"):
        check.named(["bench0", "bench9"])
