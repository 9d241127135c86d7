"""Files as records: what is read, and the one line for what cannot be."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchcheck.errors import InputError
from benchcheck.pool.readers import Layout, Record, find_files, read_records

ROWS = [{"question": "q1", "answer": "0"}, {"question": "q, 2\nlines", "answer": "1"}]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
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


CELL = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=5))
def test_a_csv_gives_back_what_was_written(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in [("q", "a"), *rows]]
    path = write(tmp_path, "p.csv", "\n".join(quoted))
    assert [tuple(record.values()) for record in values(path)] == rows


def test_find_files_keeps_the_order_given_and_sorts_a_pattern(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "z[1].csv", ".hidden.csv"):
        write(tmp_path, name, "x")
    (tmp_path / "sub").mkdir()
    write(tmp_path, "sub/c.csv", "x")
    names = ["z[1].csv", "*.csv", "sub/../b.csv", str(tmp_path / "**/c.csv")]
    found = [str(path.relative_to(tmp_path)) for path in find_files(tmp_path, names)]
    assert found == ["z[1].csv", "a.csv", "b.csv", "sub/../b.csv", "sub/c.csv"]


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


def test_a_full_folder_is_not_listed_whole(tmp_path: Path) -> None:
    for number in range(15):
        write(tmp_path, f"{number:02}.csv", "x")
    with pytest.raises(InputError, match=r"09\.csv and 5 more"):
        find_files(tmp_path, ["x.csv"])
