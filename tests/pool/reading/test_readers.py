"""Files as records: what is read, and the one line for what cannot be."""

import csv
import datetime as dt
import decimal
import errno
import glob
import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchcheck.errors import InputError
from benchcheck.pool.reading.jsontext import Fault, Window, parse, stream
from benchcheck.pool.reading.nesting import root_records, unnest
from benchcheck.pool.reading.paths import find_files
from benchcheck.pool.reading.readers import Layout, Record, read_records, stem

ROWS = [{"question": "q1", "answer": "0"}, {"question": "q, 2\nlines", "answer": "1"}]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(folder: Path, members: dict[str, str | bytes]) -> Path:
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return path


def values(path: Path, layout: Layout = Layout()) -> list[dict[str, Any]]:  # noqa: B008 - frozen, so safe to share
    return [record.values for record in read_records(path, layout)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(ROWS)),
        ("a.JSON", json.dumps(ROWS, indent=1)),
        ("a.json", json.dumps({"data": ROWS})),
        ("a.json", "\n".join(map(json.dumps, ROWS))),
        ("a.json", "\ufeff" + json.dumps(ROWS)),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("a.ndjson", "\ufeff" + "\n\n".join(map(json.dumps, ROWS)) + "\n\n"),
        ("a.csv", 'question,answer\nq1,0\n"q, 2\nlines",1\n'),
        ("a.csv", '\ufeff\n"question", answer\r\nq1,0\r\n\r\n"q, 2\nlines",1'),
        ("a.tsv", 'question\tanswer\nq1\t0\n"q, 2\nlines"\t1\n'),
    ],
)
def test_every_text_format_gives_the_same_records(tmp_path: Path, name: str, content: str) -> None:
    assert values(write(tmp_path, name, content)) == ROWS


def test_parquet_gives_lists_and_dicts(tmp_path: Path) -> None:
    rows = [
        {"q": "a", "options": ["x", "y"], "meta": {"k": 1}, "n": None},
        {"q": "é", "options": [], "meta": None, "n": 2},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=1)
    assert values(tmp_path / "a.parquet") == rows
    assert [record.place for record in read_records(tmp_path / "a.parquet")] == ["row 1", "row 2"]


def test_a_dict_of_id_to_record_keeps_the_id(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '{"x": {"q": 1}, "y": {"q": 2}}')
    assert values(path) == [{"_key": "x", "q": 1}, {"_key": "y", "q": 2}]


def test_a_record_knows_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'q,a\n"x\ny",1\n\nz,2\n')
    assert list(read_records(path)) == [
        Record({"q": "x\ny", "a": "1"}, path, "line 2", 0),
        Record({"q": "z", "a": "2"}, path, "line 5", 1),
    ]
    assert [record.where for record in read_records(write(tmp_path, "b.jsonl", '{"q": 1}\n\n{"q": 2}'))] == [
        f"{tmp_path}/b.jsonl: line 1",
        f"{tmp_path}/b.jsonl: line 3",
    ]
    assert [record.place for record in read_records(write(tmp_path, "c.json", '[{"q": 1}, {"q": 2}]'))] == [
        "record 1",
        "record 2",
    ]


def test_a_header_can_be_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "v1,x,y\nv2,z,w\n")
    assert values(path, Layout(header=("video", "w0", "gold")))[0] == {"video": "v1", "w0": "x", "gold": "y"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"video": "v", "qa": [{"q": 1}, {"q": 2}]}]'),
        ("a.jsonl", '{"video": "v", "qa": [{"q": 1}, {"q": 2}]}'),
    ],
)
def test_nested_lists_are_unnested(tmp_path: Path, name: str, content: str) -> None:
    steps = ("flatten", "each:qa") if name.endswith(".json") else ("each:qa",)
    assert values(write(tmp_path, name, content), Layout(unnest=steps)) == [
        {"_i": 0, "video": "v", "q": 1},
        {"_i": 1, "video": "v", "q": 2},
    ]


def test_nan_is_null_and_an_infinity_stays_one(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"a": NaN, "b": Infinity, "c": -Infinity}')
    assert values(path) == [{"a": None, "b": float("inf"), "c": float("-inf")}]


def test_files_are_streamed(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"q": 1}\nbroken')
    assert next(read_records(path)).values == {"q": 1}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace"))))
@pytest.mark.parametrize("name", ["h.json", "h.jsonl", "h.csv", "h.tsv", "h.parquet"])
def test_any_bytes_are_records_or_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    path = write(tmp_path, name, data)
    try:
        records = list(read_records(path))
    except InputError as reason:
        assert str(path) in str(reason)  # noqa: PT017 - either outcome is right
    else:
        assert records
        assert all(isinstance(record.values, dict) for record in records)


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=8)
CELL = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
FLAT = st.fixed_dictionaries({"q": CELL, "é,\t": CELL})
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
NESTED = st.recursive(
    SCALAR, lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3), max_leaves=8
)
RECORDS = st.lists(st.dictionaries(TEXT, NESTED, max_size=4), min_size=1, max_size=5)


def blocks_of(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(FLAT, min_size=1, max_size=5), end=st.sampled_from(["\n", "\r\n", "\r"]))
@pytest.mark.parametrize(("name", "delimiter"), [("p.csv", ","), ("p.tsv", "\t"), ("p.csv.gz", ",")])
def test_a_table_gives_back_what_was_written(
    tmp_path: Path, name: str, delimiter: str, rows: list[dict[str, str]], end: str
) -> None:
    buffer = io.StringIO(newline="")
    table = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    table.writeheader()
    table.writerows(rows)
    data = buffer.getvalue().encode()
    path = write(tmp_path, name, gzip.compress(data) if name.endswith(".gz") else data)
    assert values(path) == [{name.strip(): cell for name, cell in row.items()} for row in rows]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=RECORDS, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_json_in_any_file_gives_back_what_was_written(
    tmp_path: Path, rows: list[dict[str, Any]], indent: int | None, ascii_only: bool
) -> None:
    whole = json.dumps(rows, indent=indent, ensure_ascii=ascii_only)
    lines = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    arrays = "\n".join(json.dumps(row) for row in (["q", "a"], *([row, 1] for row in rows)))
    assert values(write(tmp_path, "a.json", whole)) == rows
    assert values(write(tmp_path, "a.jsonl", lines)) == rows
    assert values(write(tmp_path, "b.jsonl", arrays), Layout("jsonl_rows")) == [{"q": row, "a": 1} for row in rows]
    assert values(zipped(tmp_path, {"x/b.jsonl": lines, "x/a.json": whole})) == rows + rows
    assert values(zipped(tmp_path, {"x/b.jsonl": lines, "x/a.json": whole}), Layout(members=("x/b*",))) == rows


@given(rows=RECORDS, indent=st.sampled_from([None, 1]), size=st.integers(1, 40))
def test_a_document_reads_alike_through_any_window(rows: list[dict[str, Any]], indent: int | None, size: int) -> None:
    keyed = {str(number): row for number, row in enumerate(rows)}
    shapes: list[tuple[Any, tuple[str, ...]]] = [
        (rows, ()),
        ({"data": rows}, ()),
        (keyed, ()),
        ([rows, rows], ("flatten", "flatten")),
        (keyed, ("values",)),
        (keyed, ("values:id!",)),
        ({"about": 1, "data": rows, "more": [[]]}, ("get:data", "flatten")),
        ({"about": {"x": keyed}}, ("get:about", "get:x", "values")),
        ({"about": {"x": rows}}, ("get:about.x", "flatten")),
        ({"video": "v", "qa": rows}, ("each:qa",)),
        ([{"video": "v", "qa": rows}], ("flatten", "each:qa")),
        ({"v": {"dim": rows}}, ("values", "lists")),
    ]
    for document, steps in shapes:
        text = json.dumps(document, indent=indent)
        wanted = list(unnest([document], steps)) if steps else root_records(document)
        assert list(stream(Window(blocks_of(text, size)), steps)) == wanted


@settings(max_examples=300)
@given(text=st.text(alphabet='[]{}",:1e-.\\utn \n', max_size=30), size=st.integers(1, 12))
def test_what_is_json_does_not_depend_on_the_window(text: str, size: int) -> None:
    def outcome(blocks: Iterator[str]) -> object:
        window = Window(blocks)
        try:
            found = window.value(1 << 20)
            window.end()
        except Fault as fault:
            return fault.line, fault.column, str(fault)[:30]
        return found

    found = outcome(iter([text]))
    assert outcome(blocks_of(text, size)) == found
    try:
        assert found == parse(text)
    except Fault as fault:
        assert (found if isinstance(found, tuple) else ())[2:] == (str(fault)[:30],)  # noqa: PT017


NESTED_TYPES = pa.schema(
    [
        ("options", pa.list_(pa.string())),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("meta", pa.struct([("k", pa.int64()), ("l", pa.list_(pa.float64()))])),
        ("names", pa.map_(pa.string(), pa.int64())),
        ("number", pa.int64()),
    ]
)
PARQUET_ROW = st.fixed_dictionaries(
    {
        "options": st.none() | st.lists(TEXT, max_size=3),
        "kind": st.none() | TEXT,
        "meta": st.none()
        | st.fixed_dictionaries(
            {"k": st.integers(-(2**63), 2**63 - 1), "l": st.lists(st.floats(allow_nan=False), max_size=2)}
        ),
        "names": st.dictionaries(TEXT, st.integers(0, 9), min_size=1, max_size=2),
        "number": st.integers(-(2**63), 2**63 - 1),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(PARQUET_ROW, min_size=1, max_size=4))
def test_parquet_gives_back_what_was_written(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    written = [{**row, "names": list(row["names"].items())} for row in rows]
    pq.write_table(pa.Table.from_pylist(written, NESTED_TYPES), tmp_path / "a.parquet", row_group_size=2)
    assert values(tmp_path / "a.parquet") == rows
    assert values(zipped(tmp_path, {"a.parquet": (tmp_path / "a.parquet").read_bytes()})) == rows


def test_parquet_values_come_as_json_would_have_them(tmp_path: Path) -> None:
    row = {
        "at": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "day": dt.date(2024, 1, 2),
        "time": dt.time(0, 1, 2),
        "long": dt.timedelta(minutes=1.5),
        "whole": decimal.Decimal("12"),
        "part": decimal.Decimal("0.50"),
        "image": b"\x89PNG",
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    assert values(tmp_path / "a.parquet") == [
        {
            "at": "2024-01-02T03:04:05+00:00",
            "day": "2024-01-02",
            "time": "00:01:02",
            "long": 90.0,
            "whole": 12,
            "part": "0.50",
            "image": b"\x89PNG",
        }
    ]


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    cell = "x\n" * 200_000
    assert values(write(tmp_path, "a.csv", f'q,a\n"{cell}",1\n')) == [{"q": cell, "a": "1"}]


def test_an_archive_s_records_know_their_member(tmp_path: Path) -> None:
    junk = {"__MACOSX/in/._a.json": "x", "in/.DS_Store": "x", "in/readme.md": "x"}
    path = zipped(
        tmp_path, {"in/b.csv": "q,a\n1,2\n", "in/a.json": '[{"q": 1}, {"q": 2}]', "in/none.json": "[]", **junk}
    )
    found = list(read_records(path))
    assert [(record.where, record.member, record.row) for record in found] == [
        (f"{path}!/in/a.json: record 1", "a", 0),
        (f"{path}!/in/a.json: record 2", "a", 1),
        (f"{path}!/in/b.csv: line 2", "b", 2),
    ]
    assert {record.file for record in found} == {path}


def test_a_folder_is_its_files(tmp_path: Path) -> None:
    (tmp_path / "set" / "in").mkdir(parents=True)
    for name in ("b.jsonl", "in/a.jsonl", ".hidden.jsonl", "notes.md"):
        write(tmp_path / "set", name, '{"q": 1}')
    found = [(record.file.name, record.member, record.row) for record in read_records(tmp_path / "set")]
    assert found == [("b.jsonl", "b", 0), ("a.jsonl", "a", 0)]
    only = Layout(members=("in/*",))
    assert [record.file.name for record in read_records(tmp_path / "set", only)] == ["a.jsonl"]
    assert find_files(tmp_path, ["set"], ["in/*"]) == [tmp_path / "set" / "in" / "a.jsonl"]


def test_the_stem_of_a_packed_file_has_no_suffix_left() -> None:
    assert [stem(name) for name in ("a.json", "a.b.jsonl.gz", "in/a.csv")] == ["a", "a.b", "a"]


@pytest.mark.parametrize("content", ['{"q": 1}\n{"q": 2}', '\n {"q": 1}\r\n\n\n{"q": 2}\n', '{"q": 1}\r{"q": 2}\r'])
def test_json_lines_have_any_line_ends(tmp_path: Path, content: str) -> None:
    assert values(write(tmp_path, "a.jsonl", content)) == [{"q": 1}, {"q": 2}]


def test_json_lines_in_a_json_file_are_seen_by_the_first_line(tmp_path: Path) -> None:
    assert values(write(tmp_path, "a.json", '{"x": {"q": 1}}\n')) == [{"_key": "x", "q": 1}]
    assert values(write(tmp_path, "a.json", '{"x": {"q": 1},\n"y": {"q": 2}}')) == [
        {"_key": "x", "q": 1},
        {"_key": "y", "q": 2},
    ]
    assert values(write(tmp_path, "a.json", '{"x": {"q": 1}}\n\n{"x": 2}')) == [{"x": {"q": 1}}, {"x": 2}]


def test_lone_surrogates_and_control_characters_are_left_to_the_items(tmp_path: Path) -> None:
    assert values(write(tmp_path, "a.jsonl", '{"q": "\\ud800\\u0000"}')) == [{"q": "\ud800\0"}]


def test_find_files_keeps_the_order_given_and_sorts_a_pattern(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "z[1].csv", ".hidden.csv"):
        write(tmp_path, name, "x")
    (tmp_path / "sub").mkdir()
    write(tmp_path, "sub/c.csv", "x")
    names = ["z[1].csv", "*.csv", "sub/../b.csv", str(tmp_path / "**/c.csv")]
    found = [str(path.relative_to(tmp_path)) for path in find_files(tmp_path, names)]
    assert found == ["z[1].csv", "a.csv", "b.csv", "sub/../b.csv", "sub/c.csv"]


@pytest.mark.parametrize(
    "pattern",
    ["**/*.csv", "**", "a/**/*.csv", "a/**/c/**/*.csv", "**/c/*", "*/**/x.*", "**/.h/*.csv", "**/**/x.csv", "a/**"],
)
def test_two_stars_are_those_of_glob(tmp_path: Path, pattern: str) -> None:
    for name in ("x.csv", "a/x.csv", "a/b/x.csv", "a/b/c/x.csv", "a/c/.y.csv", "a/.h/x.csv", "d/c/x.csv", "d/c/y.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, name, "x")
    wanted = {Path(path) for path in glob.glob(str(tmp_path / pattern), recursive=True) if Path(path).is_file()}
    assert find_files(tmp_path, [pattern]) == sorted(wanted)
    assert wanted


def test_links_to_folders_above_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path, "in/x.csv", "x")
    for name in "abc":
        (tmp_path / "in" / name).symlink_to(tmp_path)
    assert find_files(tmp_path, ["**/*.csv"]) == [tmp_path / "in" / "x.csv"]
    monkeypatch.chdir(tmp_path)
    assert find_files(Path(), ["**/*.csv"]) == [Path("in/x.csv")]


@pytest.mark.parametrize("pattern", ["in", "**/*.csv"])
def test_a_folder_that_may_not_be_looked_into_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    (tmp_path / "in" / "closed").mkdir(parents=True)
    write(tmp_path, "in/x.csv", "x")
    looked = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return looked(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputError, match=r"in/closed: not readable: Permission denied\. Cure: check its permissions"):
        find_files(tmp_path, [pattern])


def test_a_folder_whose_name_is_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "study[1]"
    folder.mkdir()
    write(folder, "a.csv", "x")
    assert find_files(folder, ["*.csv"]) == [folder / "a.csv"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("none.csv", "no such file. {folder} holds: a.csv, sub/"),
        ("*.jsonl", "no such file. {folder} holds: a.csv, sub/"),
        ("sub/x.csv", "no such file. {folder}/sub is empty"),
        ("nowhere/x.csv", "There is no folder {folder}/nowhere either"),
        ("*/deep/x.csv", "The pattern matches nothing"),
        ("sub", "no file in this folder matches .json, .jsonl, .ndjson, .csv, .tsv, .parquet. It is empty. Cure:"),
        ("a" * 300, "not readable: File name too long"),
    ],
)
def test_what_is_not_there_says_what_is(tmp_path: Path, pattern: str, message: str) -> None:
    write(tmp_path, "a.csv", "x")
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError) as caught:
        find_files(tmp_path, [pattern])
    assert message.format(folder=tmp_path) in str(caught.value)


def test_the_folder_one_stands_in_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.csv", "x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"none.csv: no such file. This folder holds: a.csv"):
        find_files(Path(), ["none.csv"])


def test_a_full_folder_is_not_listed_whole(tmp_path: Path) -> None:
    for number in range(15):
        write(tmp_path, f"{number:02}.csv", "x")
    with pytest.raises(InputError, match=r"09\.csv and 5 more"):
        find_files(tmp_path, ["x.csv"])
