"""Building the pool of a study: two files that belong together, or one line and nothing changed."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchcheck.config import PoolSource
from benchcheck.errors import ConfigError, DamagedFileError, InputError, SpecError, StudyError, UsageError
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.building.declared import bench_name, newer_files
from benchcheck.pool.building.summary import MANIFEST_COLUMNS
from benchcheck.pool.issues import ISSUES
from benchcheck.pool.specs import load_spec
from benchcheck.study import Study

MakeStudy = Callable[..., Study]
OPTIONS = ["red", "green", "blue"]


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "question": f"Which colour is number {number}?",
        "options": OPTIONS,
        "answer": number % 3,
        "video": f"{number}.mp4",
    } | changes


def write_rows(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")


def manifest(study: Study) -> list[dict[str, str]]:
    with study.manifest_file.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def generic(name: str, bench: str = "") -> PoolSource:
    return PoolSource(spec="generic", files=(name,), bench=bench)


def test_a_pool_that_the_environment_names_is_never_written(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "mine.jsonl", row(0))
    study, given = make_study(generic("mine.jsonl")), tmp_path / "package" / "pool_items_base.parquet"
    given.parent.mkdir()
    given.write_bytes(b"another package's pool")
    monkeypatch.setenv("POOL_BASE", str(given.parent))
    with pytest.raises(UsageError, match=r"given by POOL_BASE and never written\. Cure: unset POOL_BASE"):
        build_pool(study)
    assert given.read_bytes() == b"another package's pool"
    assert not study.manifest_file.exists()


def test_a_file_of_ones_own(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(
        tmp_path / "mine.jsonl", row(0), row(1, start=2, end="0:05"), row(2, answer="F"), row(3, options="?"), row(0)
    )
    study = make_study(generic("mine.jsonl"))
    summary = build_pool(study)
    assert (summary.rows, summary.mcq, summary.open) == (5, 3, 2)
    assert summary.issue_counts == {"gold_out_of_range": 1, "unreadable_options": 1, "repeated_item": 1}
    path = tmp_path / "mine.jsonl"
    no_list = 'no list such as ["yes", "no"]'
    outside, unreadable = ISSUES["gold_out_of_range"].meaning, ISSUES["unreadable_options"].meaning
    where = f"{path}: line 3"
    assert list(summary.warnings) == [
        f"mine: 1 not screened: gold_out_of_range ({outside}) First: {where}: gold 'F', options A to C: {OPTIONS}",
        f"mine: 1 not screened: unreadable_options ({unreadable}) First: {path}: line 4: '?' holds {no_list}",
    ]
    items = study.items()
    assert [item.item_id for item in items] == ["mine_0", "mine_1", "mine_2", "mine_3", "mine_4"]
    assert [item.source_id for item in items] == ["s0", "s1", "s2", "s3", "s0"]
    assert [(item.gold, item.format) for item in items[:4]] == [(0, "mcq"), (1, "mcq"), (None, "open"), (None, "open")]
    assert (items[1].start, items[1].end, items[1].video_key) == (2.0, 5.0, "mine::::1.mp4")
    assert items[0].options == ("red", "green", "blue")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "question,a0,a1,a2,answer,video\nq,x,y,,1,v.mp4\n"),
        ("a.csv", 'question,options,answer,video\nq,"[""x"", ""y""]",B,v.mp4\n'),
        ("a.csv", "question,A,B,answer,video\nq,x,y,y,v.mp4\n"),
        ("a.tsv", "question\toption_0\toption_1\tanswer\tvideo\nq\tx\ty\t1\tv.mp4\n"),
        ("a.json", '{"k": {"question": "q", "options": {"B": "y", "A": "x"}, "answer": "(b)", "video": "v.mp4"}}'),
    ],
)
def test_generic_reads_what_people_have(make_study: MakeStudy, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    study = make_study(generic(name, "mine"))
    build_pool(study)
    item = study.items()[0]
    assert (item.item_id, item.options, item.gold, item.format) == ("mine_0", ("x", "y"), 1, "mcq")


def test_the_manifest_says_what_there_is_and_where_it_comes_from(make_study: MakeStudy, tmp_path: Path) -> None:
    header = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"
    options = "a cup,a ball,a hat,a key,a pen"
    (tmp_path / "val.csv").write_text(header + f"7,1,1,1,why,2,0,CW,{options}\n7,1,1,1,how,9,1,CH,{options}\n")
    write_rows(tmp_path / "mine.jsonl", row(0))
    study = make_study(PoolSource(spec="nextqa_val", files=("val.csv",)), generic("mine.jsonl"))
    summary = build_pool(study, accept_drift=True)
    rows = manifest(study)
    assert list(rows[0]) == list(MANIFEST_COLUMNS)
    assert tuple(MANIFEST_COLUMNS)[:7] == ("bench", "rows", "mcq", "open", "issues", "source", "spec")
    assert (rows[0]["bench"], rows[0]["rows"], rows[0]["mcq"], rows[0]["open"], rows[0]["issues"]) == (
        "nextqa_val",
        "2",
        "1",
        "1",
        "1",
    )
    assert rows[0]["source"] == "https://github.com/doc-doc/NExT-QA@6b92588a"
    assert json.loads(rows[0]["issue_counts"]) == {"gold_out_of_range": 1}
    drift = (
        "2 items where 4,996 were expected, 1 mcq where 4,996 were expected: "
        "another version of the file, or a part of it"
    )
    assert rows[0]["drift"] == drift
    assert f"nextqa_val: {drift}" in summary.warnings
    assert (rows[0]["checked"], rows[0]["options"], rows[0]["left_out"]) == ("real files", '{"5": 1}', "0")
    assert (rows[1]["bench"], rows[1]["source"], rows[1]["drift"]) == ("mine", "mine.jsonl", "")
    assert set(json.loads(rows[1]["files"])) == {"mine.jsonl"}
    assert len(json.loads(rows[1]["files"])["mine.jsonl"]) == 64


def own_spec(folder: Path, name: str, **expect: Any) -> PoolSource:
    """A spec like `generic` that expects some counts, and a file of two items."""
    write_rows(folder / f"{name}.jsonl", row(0), row(1))
    (folder / f"{name}.toml").write_text(
        f'bench = "{name}"\nid = "id"\nquestion = "question"\n[options]\nkind = "list"\nfield = "options"\n[gold]\n'
        'kind = "auto"\nfield = "answer"\n[video]\nmember = "video"\n[expect]\n'
        + "".join(f"{key} = {value}\n" for key, value in expect.items())
        + '[source]\nrepository = "https://example.org/r"\ncommit = "0123abcd"\n',
        encoding="utf-8",
    )
    return PoolSource(spec=f"{name}.toml", files=(f"{name}.jsonl",))


def test_all_drift_is_refused_at_once_and_nothing_is_written(make_study: MakeStudy, tmp_path: Path) -> None:
    sources = [
        own_spec(tmp_path, "one", items=3, mcq=2),
        own_spec(tmp_path, "right", items=2, mcq=2, options=[3]),
        own_spec(tmp_path, "two", options=[4, 5]),
        own_spec(tmp_path, "three", mcq=1000),
        own_spec(tmp_path, "four", items=1),
    ]
    study = make_study(*sources)
    with pytest.raises(UsageError) as caught:
        build_pool(study)
    assert str(caught.value) == (
        "one: 2 items where 3 were expected: another version of the file, or a part of it (the spec is for "
        "https://example.org/r at 0123abcd); two: 3 options where 4, 5 were expected: another version of the file, or "
        "a part of it (the spec is for https://example.org/r at 0123abcd); and 2 more benchmarks: three, four. "
        "Nothing was written. Cure: get those files, or accept these with `benchcheck pool build --accept-drift` or "
        "accept_drift = true in the [[pool]] entry"
    )
    assert caught.value.exit_code == 2
    assert list(study.results.iterdir()) == []
    summary = build_pool(study, accept_drift=True)
    assert [bool(bench.drift) for bench in summary.benches] == [True, False, True, True, True]
    assert "three: 2 mcq where 1,000 were expected: another version of the file, or a part of it" in summary.warnings
    assert [bool(bench["drift"]) for bench in manifest(study)] == [True, False, True, True, True]


def test_an_entry_accepts_its_own_drift_only(make_study: MakeStudy, tmp_path: Path) -> None:
    one, two = own_spec(tmp_path, "one", items=3), own_spec(tmp_path, "two", items=3)
    accepted = dataclasses.replace(one, accept_drift=True)
    assert build_pool(make_study(accepted)).benches[0].drift
    with pytest.raises(UsageError, match=r"^two: 2 items"):
        build_pool(make_study(accepted, two))


def test_a_file_of_errata_keeps_items_from_being_screened(make_study: MakeStudy, tmp_path: Path) -> None:
    source = dataclasses.replace(own_spec(tmp_path, "one"), errata="wrong.csv")
    path = tmp_path / "wrong.csv"
    path.write_text(
        "id,reason\ns1,the gold is wrong\nnone,x\n" + "".join(f"n{n},x\n" for n in range(9)), encoding="utf-8"
    )
    study = make_study(source)
    summary = build_pool(study)
    assert [(item.format, item.issues) for item in study.items()] == [("mcq", ()), ("open", ("erratum",))]
    assert "one: errata for ids that no item has: 'none', 'n0', 'n1', 'n2', 'n3' and 5 more" in summary.warnings
    assert set(json.loads(manifest(study)[0]["files"])) == {"one.jsonl", "wrong.csv"}
    path.write_text("id,reason\ns1,\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2: no reason\. Allowed: columns id and reason, both filled"):
        build_pool(study)
    path.write_text("name,reason\ns1,x\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2: no id\."):
        build_pool(study)
    path.unlink()
    with pytest.raises(InputError, match=r"wrong\.csv"):
        build_pool(study)


def test_what_a_user_edits_is_newer_than_the_pool(make_study: MakeStudy, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("id,reason\ns1,x\n", encoding="utf-8")
    study = make_study(dataclasses.replace(own_spec(tmp_path, "one"), errata="wrong.csv"), generic("one.jsonl", "two"))
    build_pool(study)
    assert newer_files(study) == []
    later = study.pool_file.stat().st_mtime + 60
    for name in ("one.toml", "wrong.csv"):
        os.utime(tmp_path / name, (later, later))
    assert newer_files(study) == [tmp_path / "wrong.csv", tmp_path / "one.toml"]


def test_an_entry_may_name_what_its_spec_has_a_place_for(make_study: MakeStudy, tmp_path: Path) -> None:
    source = own_spec(tmp_path, "one")
    with pytest.raises(ConfigError, match=r"joins no second file\. Cure: leave out join"):
        build_pool(make_study(dataclasses.replace(source, join="k.json")))
    with pytest.raises(ConfigError, match=r"one: no files, and spec 'one.toml' names no hub dataset\. Cure: add files"):
        build_pool(make_study(dataclasses.replace(source, files=())))
    text = (tmp_path / "one.toml").read_text(encoding="utf-8")
    (tmp_path / "one.toml").write_text(f'{text}[join]\nfile = "k.json"\non = "id"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"absent\.json: no such file\. Cure: mend join"):
        build_pool(make_study(dataclasses.replace(source, join="absent.json")))


def test_a_spec_s_hub_dataset_is_fetched_where_no_file_is_named(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_spec(tmp_path, "one")
    text = (tmp_path / "one.toml").read_text(encoding="utf-8")
    hub = f'{text}hub = "owner/name"\nrevision = "{"a" * 40}"\nfiles = ["data/*.jsonl"]\n'
    (tmp_path / "one.toml").write_text(hub, encoding="utf-8")
    asked = []

    def fetch(*wanted: object) -> list[Path]:
        asked.append(wanted)
        path = tmp_path / "cache" / str(wanted[1]) / "data" / "one.jsonl"
        path.parent.mkdir(parents=True)
        return [(tmp_path / "one.jsonl").rename(path)]

    monkeypatch.setattr("benchcheck.pool.building.declared.fetch", fetch)
    study = make_study(PoolSource(spec="../one.toml"))
    (tmp_path / "study").mkdir()
    study = Study(tmp_path / "study", study.config)
    assert build_pool(study).rows == 2
    assert manifest(study)[0]["source"] == f"owner/name@{'a' * 40}"
    assert list(json.loads(manifest(study)[0]["files"])) == ["data/one.jsonl"]
    write_rows(tmp_path / "one.jsonl", row(0), row(1))
    build_pool(make_study(PoolSource(spec="one.toml", revision="b" * 40)))
    assert asked == [("owner/name", letter * 40, ("data/*.jsonl",), "") for letter in "ab"]


def test_the_second_file_of_a_hub_dataset_is_fetched_too(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_spec(tmp_path, "one")
    text = (tmp_path / "one.toml").read_text(encoding="utf-8")
    hub = (
        f'hub = "owner/name"\nrevision = "{"a" * 40}"\nfiles = ["data/one.jsonl"]\n[join]\nfile = "k.json"\non = "id"\n'
    )
    (tmp_path / "one.toml").write_text(text + hub, encoding="utf-8")
    asked, data = [], tmp_path / "cache" / "data"
    data.mkdir(parents=True)
    (data / "k.json").write_text('[{"id": "s0"}, {"id": "s1"}]', encoding="utf-8")
    (tmp_path / "one.jsonl").rename(data / "one.jsonl")

    def fetch(_hub: str, _revision: str, patterns: Sequence[str], _cache: str) -> list[Path]:
        asked.extend(patterns)
        return [data.parent / name for name in patterns]

    monkeypatch.setattr("benchcheck.pool.building.declared.fetch", fetch)
    build_pool(make_study(PoolSource(spec="one.toml")))
    assert asked == ["data/one.jsonl", "data/k.json"]
    assert list(json.loads(manifest(make_study())[0]["files"])) == ["cache/data/one.jsonl", "cache/data/k.json"]


def test_folders_and_archives_are_files_of_a_benchmark(make_study: MakeStudy, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write_rows(tmp_path / "parts" / "a.jsonl", row(0), row(1))
    write_rows(tmp_path / "parts" / "b.jsonl", row(2))
    with zipfile.ZipFile(tmp_path / "parts.zip", "w") as archive:
        archive.write(tmp_path / "parts" / "a.jsonl", "x/a.jsonl")
        archive.write(tmp_path / "parts" / "b.jsonl", "x/b.jsonl")
    study = make_study(generic("parts", "folder"), generic("parts.zip", "archive"))
    build_pool(study)
    folder, archive_ = manifest(study)
    assert (folder["rows"], archive_["rows"]) == ("3", "3")
    assert [item.source_id for item in study.items()] == ["s0", "s1", "s2"] * 2
    assert set(json.loads(folder["files"])) == {"parts/a.jsonl", "parts/b.jsonl"}
    assert set(json.loads(archive_["files"])) == {"parts.zip"}


def test_the_pool_of_the_build_before_is_no_annotation_file(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", row(0), row(1))
    study = make_study(generic(".", "mine"))
    build_pool(study)
    before = study.pool_file.read_bytes()
    with pytest.raises(InputError, match=r"pool_items_base\.parquet: written by `pool build`, no annotation file"):
        build_pool(study)
    assert study.pool_file.read_bytes() == before


@pytest.mark.parametrize("change", ["grows", "is another one", "goes"])
def test_a_file_that_changes_while_it_is_read_is_refused(make_study: MakeStudy, tmp_path: Path, change: str) -> None:
    for name in ("a.jsonl", "b.jsonl", "other"):
        write_rows(tmp_path / name, row(0), row(1))

    def touched(bench: str, _: int) -> None:
        """Change the first benchmark's file while the second one's is read."""
        if bench == "b" and change == "grows":
            with (tmp_path / "a.jsonl").open("a") as file:
                file.write(json.dumps(row(2)) + "\n")
        elif bench == "b" and change == "is another one":
            (tmp_path / "other").replace(tmp_path / "a.jsonl")
        elif bench == "b":
            (tmp_path / "a.jsonl").unlink()

    study = make_study(generic("a.jsonl"), generic("b.jsonl"))
    with pytest.raises(InputError, match=r"a\.jsonl: changed while it was read\. Cure: let it be"):
        build_pool(study, progress=touched)
    assert not study.pool_file.exists()
    assert not study.manifest_file.exists()


@pytest.mark.parametrize(
    "entry",
    [
        PoolSource(spec="generic", files=("~nobody-9/a.jsonl",), bench="mine"),
        PoolSource(spec="generic", files=("a.jsonl",), errata="~nobody-9/wrong.csv"),
        PoolSource(spec="~nobody-9/mine.toml", files=("a.jsonl",)),
    ],
    ids=["files", "errata", "spec"],
)
def test_the_home_of_nobody_is_one_line(make_study: MakeStudy, tmp_path: Path, entry: PoolSource) -> None:
    write_rows(tmp_path / "a.jsonl", row(0))
    with pytest.raises(UsageError, match=r"~nobody-9/.*: there is no such user\. Cure: write the whole path"):
        build_pool(make_study(entry))


def test_building_again_with_another_benchmark_keeps_all_ids(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "one.jsonl", row(0), row(1))
    write_rows(tmp_path / "two.jsonl", row(0))
    build_pool(make_study(generic("one.jsonl")))
    before = {item.item_id: item for item in make_study().items()}
    build_pool(make_study(generic("two.jsonl"), generic("one.jsonl")))
    after = {item.item_id: item for item in make_study().items()}
    assert list(after) == ["two_0", "one_0", "one_1"]
    assert {key: after[key] for key in before} == before


def test_ids_that_stand_for_something_else_now_are_told(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", *(row(number) for number in range(5)))
    study = make_study(generic("a.jsonl"))
    assert build_pool(study).warnings == build_pool(study).warnings == ()
    write_rows(tmp_path / "a.jsonl", *(row(number) for number in range(5) if number != 2))
    summary = build_pool(study)
    assert summary.changed == 2
    assert summary.warnings[-1].startswith("2 items of the pool before have another text, gold or video now")


@pytest.mark.parametrize("old", ["damaged", "another layout"])
def test_a_pool_that_cannot_be_compared_is_written_anew(make_study: MakeStudy, tmp_path: Path, old: str) -> None:
    write_rows(tmp_path / "a.jsonl", row(0))
    study = make_study(generic("a.jsonl"))
    study.results.mkdir()
    if old == "damaged":
        study.pool_file.write_bytes(b"PAR1 no more")
    else:
        pq.write_table(pa.table({"item_id": ["a_0"], "question": ["?"]}), study.pool_file)
    assert build_pool(study).changed == 0
    assert len(study.items()) == 1


def test_many_files_are_one_benchmark_in_the_order_of_their_names(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "p2.jsonl", row(2))
    write_rows(tmp_path / "p1.jsonl", row(0), row(1))
    study = make_study(generic("p*.jsonl", "parts"))
    summary = build_pool(study)
    assert [(item.item_id, item.source_id) for item in study.items()] == [
        ("parts_0", "s0"),
        ("parts_1", "s1"),
        ("parts_2", "s2"),
    ]
    assert list(summary.benches[0].files) == ["p1.jsonl", "p2.jsonl"]


def test_a_spec_of_ones_own_lies_beside_the_study(make_study: MakeStudy, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'bench = "own"\nitem_id = "{id}"\nquestion = "q"\n[options]\nkind = "list"\nfield = "o"\n'
        '[gold]\nkind = "letter"\nfield = "a"\n',
        encoding="utf-8",
    )
    write_rows(tmp_path / "x.jsonl", {"id": "u1", "q": "?", "o": ["A. x", "B. y"], "a": "B"})
    study = make_study(PoolSource(spec="mine.toml", files=("x.jsonl",)))
    build_pool(study)
    item = study.items()[0]
    assert (item.item_id, item.bench, item.options, item.gold, item.issues) == (
        "u1",
        "own",
        ("x", "y"),
        1,
        ("no_video",),
    )


def test_a_hidden_test_set_builds_when_it_says_so(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "x.jsonl", {"q": "?", "o": ["x", "y"], "v": "v"})
    text = 'question = "q"\n[options]\nkind = "list"\nfield = "o"\n[gold]\nkind = "none"\n[video]\nmember = "v"\n'
    (tmp_path / "hidden.toml").write_text(text, encoding="utf-8")
    summary = build_pool(make_study(PoolSource(spec="hidden.toml", files=("x.jsonl",))))
    assert (summary.rows, summary.mcq, summary.issue_counts) == (1, 0, {"hidden_gold": 1})


def test_odd_texts_are_written(make_study: MakeStudy, tmp_path: Path) -> None:
    text = '{"question": "lone \\ud800 and nul \\u0000", "options": ["x\\udfff", "y"], "answer": 1, "video": "v"}'
    (tmp_path / "odd.jsonl").write_text(text, encoding="utf-8")
    study = make_study(generic("odd.jsonl"))
    build_pool(study)
    item = study.items()[0]
    assert (item.question, item.options, item.issues) == ("lone \ufffd and nul \0", ("x\ufffd", "y"), ("bad_text",))
    assert item.format == "mcq"


def bad_studies() -> dict[str, tuple[dict[str, str], list[PoolSource], type[UsageError], str]]:
    good = json.dumps(row(0)) + "\n"
    own = (
        'item_id = "{id}"\nquestion = "question"\n[options]\nkind = "list"\nfield = "options"\n'
        '[gold]\nkind = "index"\nfield = "answer"\n'
    )
    return {
        "no pool": ({}, [], ConfigError, "the config names no benchmark. Cure: benchcheck pool add FILE --study"),
        "empty": ({"a.jsonl": ""}, [generic("a.jsonl")], InputError, "the file is empty"),
        "one column": ({"a.csv": "question\nq\n"}, [generic("a.csv")], InputError, "one column, 'question'"),
        "binary": ({"a.csv": "\0\1\2"}, [generic("a.csv")], InputError, "a binary file"),
        "missing": ({"b.csv": "x"}, [generic("a.csv")], InputError, "holds: b.csv"),
        "letter": (
            {"a.jsonl": json.dumps(row(0, answer="F"))},
            [generic("a.jsonl")],
            InputError,
            "line 1: gold 'F', options A to C: ['red', 'green', 'blue']: gold_out_of_range. None of the 1 items",
        ),
        "later line": ({"a.jsonl": good * 3 + "{"}, [generic("a.jsonl")], InputError, "line 4: not valid JSON"),
        "spec": (
            {"a.jsonl": good},
            [PoolSource(spec="none", files=("a.jsonl",))],
            SpecError,
            "no spec is called 'none'",
        ),
        "later spec": (
            {"a.jsonl": good},
            [generic("a.jsonl"), PoolSource(spec="none.toml", files=("a.jsonl",))],
            SpecError,
            "none.toml: no such file",
        ),
        "twice": (
            {"a.jsonl": good, "b.jsonl": good},
            [generic("a.jsonl", "x"), generic("b.jsonl", "x")],
            ConfigError,
            "two [[pool]] entries are called 'x': a.jsonl and b.jsonl",
        ),
        "no name": (
            {"a b.jsonl": good},
            [generic("a b.jsonl")],
            ConfigError,
            "'a b' cannot name a benchmark. Cure: set bench",
        ),
        "clash": (
            {"a.jsonl": good + good, "own.toml": own},
            [PoolSource(spec="own.toml", files=("a.jsonl",))],
            InputError,
            "a.jsonl: line 2: item id 's0' is taken by {folder}/a.jsonl: line 1. Cure: leave item_id out",
        ),
        "clash of benchmarks": (
            {"a.jsonl": good + json.dumps(row(1, id="z_0")), "z.jsonl": good, "own.toml": own},
            [PoolSource(spec="own.toml", files=("a.jsonl",)), generic("z.jsonl")],
            InputError,
            "z.jsonl: line 1: item id 'z_0' is taken by {folder}/a.jsonl: line 2",
        ),
    }


@pytest.mark.parametrize("case", list(bad_studies()))
def test_bad_input_is_one_line_and_the_old_pool_stays(make_study: MakeStudy, tmp_path: Path, case: str) -> None:
    write_rows(tmp_path / "old.jsonl", row(0), row(1))
    build_pool(make_study(generic("old.jsonl")))
    (tmp_path / "old.jsonl").unlink()
    results = tmp_path / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    files, sources, error, message = bad_studies()[case]
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(error) as caught:
        build_pool(make_study(*sources))
    assert message.format(folder=tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == (1 if isinstance(caught.value, DamagedFileError) else 2)
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before


def test_a_full_disk_leaves_the_old_pair(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "a.jsonl", row(0))
    build_pool(make_study(generic("a.jsonl")))
    before = {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()}
    write_rows(tmp_path / "a.jsonl", row(0), row(1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match="the disk is full"):
        build_pool(make_study(generic("a.jsonl")))
    assert {path.name: path.read_bytes() for path in (tmp_path / "results").iterdir()} == before


def test_a_pool_that_outgrows_a_limit_is_one_line_and_the_old_pair_stays(make_study: MakeStudy, tmp_path: Path) -> None:
    """The kernel's own refusal, in the middle of a row group, as on a disk that is full."""
    write_rows(tmp_path / "a.jsonl", row(0))
    study = make_study(generic("a.jsonl"))
    build_pool(study)
    before = {path.name: path.read_bytes() for path in study.results.iterdir()}
    write_rows(tmp_path / "a.jsonl", *(row(number) for number in range(20_000)))
    code = f"""
import resource
from pathlib import Path
from benchcheck.config import Config, Model, PoolSource
from benchcheck.errors import StudyError
from benchcheck.pool.building.build import build_pool
from benchcheck.study import Study

models = {{role: Model(model="m") for role in ("8b", "2b")}}
config = Config(study_version=1, models=models, pool=(PoolSource(spec="generic", files=("a.jsonl",)),))

resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    build_pool(Study(Path({str(tmp_path)!r}), config), workers=1)
except StudyError as reason:
    print(reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{study.pool_file}: the file would grow over the size limit of this process (ulimit -f)\n"
    assert {path.name: path.read_bytes() for path in study.results.iterdir()} == before


def test_a_killed_build_leaves_the_old_pair_and_the_next_one_works(make_study: MakeStudy, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", row(0))
    build_pool(make_study(generic("a.jsonl")))
    results = tmp_path / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    write_rows(tmp_path / "a.jsonl", row(0), row(1))
    code = f"""
import os
from pathlib import Path
from benchcheck.config import Config, Model, PoolSource
from benchcheck.pool.building import build
from benchcheck.study import Study

models = {{role: Model(model="m") for role in ("8b", "2b")}}
config = Config(study_version=1, models=models, pool=(PoolSource(spec="generic", files=("a.jsonl",)),))

build.drift_of = lambda expect, summary: os.kill(os.getpid(), 9)
build.build_pool(Study(Path({str(tmp_path)!r}), config))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -9
    assert {path.name: path.read_bytes() for path in results.iterdir() if not path.name.startswith(".")} == before
    assert build_pool(make_study(generic("a.jsonl"))).rows == 2
    assert [bench["rows"] for bench in manifest(make_study())] == ["2"]


def test_a_file_that_cannot_be_opened_is_one_line(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows(tmp_path / "a.jsonl", row(0))

    opened = Path.open

    def denied(path: Path, *args: Any, **settings: Any) -> Any:
        if path.suffix == ".jsonl":
            raise PermissionError(13, os.strerror(13))
        return opened(path, *args, **settings)

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match=r"not readable: Permission denied\. Cure: check its permissions"):
        build_pool(make_study(generic("a.jsonl")))


def test_a_benchmark_is_named_by_config_spec_or_file() -> None:
    generic_spec, nextqa = load_spec("generic"), load_spec("nextqa_val")
    assert bench_name(PoolSource(spec="x", files=("f/items.jsonl",), bench="mine"), nextqa) == "mine"
    assert bench_name(PoolSource(spec="x", files=("f/items.jsonl",)), nextqa) == "nextqa_val"
    assert bench_name(PoolSource(spec="x", files=("f/items.jsonl",)), generic_spec) == "items"
    with pytest.raises(ConfigError, match=r"'\*' cannot name a benchmark"):
        bench_name(PoolSource(spec="x", files=("f/*.jsonl",)), generic_spec)


def test_importing_the_pool_loads_neither_pyarrow_nor_duckdb() -> None:
    code = "import sys, benchcheck.pool.building.build; print({'pyarrow', 'duckdb', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
