"""Hostile and broken annotation files: each ends in one line with the file, the place and the cure, and its exit code.

1 where nothing can be read from the file whatever a spec says of it, 2 where it is not what the command or spec says.
"""

import gzip
import json
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchcheck.errors import DamagedFileError, InputError
from benchcheck.pool.reading import jsontext, parquet, sources
from benchcheck.pool.reading.paths import find_files
from benchcheck.pool.reading.readers import Layout, read_records

ROWS = [{"question": "q1", "answer": "0"}, {"question": "q, 2\nlines", "answer": "1"}]
PLAIN = Layout()


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def zipped(
    folder: Path, members: dict[str, str | bytes], name: str = "a.zip", method: int = zipfile.ZIP_DEFLATED
) -> Path:
    with zipfile.ZipFile(folder / name, "w", method) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return folder / name


def complaint(path: Path, layout: Layout = PLAIN, code: int = 1) -> str:
    with pytest.raises(InputError) as caught:
        list(read_records(path, layout))
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert len(text) < 700 + len(str(path))
    assert caught.value.exit_code == code, text
    assert isinstance(caught.value, DamagedFileError) == (code == 1)
    return text.removeprefix(str(path))


NO_ANNOTATIONS: list[tuple[bytes, str]] = [
    (b"", "the file is empty"),
    (b"\xef\xbb\xbf \n", "the file is empty"),
    (b"<!DOCTYPE html><html>404</html>", "a web page, not annotations. Cure: download the raw file"),
    (b"\n <HTML>", "a web page"),
    (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "a web page"),
    (b"404: Not Found", "a server's error message"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer, not the file"),
    (gzip.compress(b"x", mtime=0), "a gzip archive. Cure: name it .gz behind its suffix"),
    (b"PK\x03\x04rest", "a zip archive"),
    (b"\x80\x04\x95", "a Python pickle. Cure: save it as JSON lines"),
    (b"\x7fELF\2\1\1" + bytes(9) + b"\3\0\x3e\0\1\0\0\0\x30", "a binary file"),
    ("q,a\n".encode("utf-16"), "UTF-16 text. Cure: save it as UTF-8"),
    ("question,answer\n".encode("utf-16-le"), "UTF-16 text. Cure: save it as UTF-8"),
    (b"\x00\x01\x02\x03", "a binary file (a NUL byte at 0). Allowed: UTF-8 text"),
]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.tsv", "a.parquet"])
@pytest.mark.parametrize(("content", "message"), NO_ANNOTATIONS, ids=[message[:20] for _, message in NO_ANNOTATIONS])
def test_what_is_no_annotation_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    assert message in complaint(write(tmp_path, name, content))


@pytest.mark.parametrize(("content", "message"), NO_ANNOTATIONS, ids=[message[:20] for _, message in NO_ANNOTATIONS])
def test_so_is_a_member_of_an_archive(tmp_path: Path, content: bytes, message: str) -> None:
    assert complaint(zipped(tmp_path, {"x/a.json": content})).startswith("!/x/a.json: ")
    assert message in complaint(zipped(tmp_path, {"x/a.parquet": content}))


DEEP = "[" * 100_000
BROKEN: list[tuple[str, str | bytes, int, str]] = [
    ("a.txt", "x", 2, "nothing reads '.txt'. Allowed: .json, .jsonl, .ndjson, .csv, .tsv, .parquet, each also as .gz"),
    ("a", "x", 2, "nothing reads a name without suffix"),
    ("a.txt.gz", gzip.compress(b"x"), 2, "nothing reads '.txt'"),
    ("a.xlsx", b"PK\x03\x04", 2, "nothing reads '.xlsx'. Allowed: .json"),
    ("a.xlsx", b"PK\x03\x04", 2, "Cure: save the sheet as CSV (UTF-8)"),
    ("a.pkl", b"\x80\x04", 2, "to read a pickle is to run the code in it"),
    ("a.tar.gz", gzip.compress(b"x"), 2, "nothing reads '.tar'"),
    ("a.json", "[]", 2, "no record in it"),
    ("a.json", "{}", 2, "neither a list of records, nor a dict"),
    ("a.json", '{"data": []}', 2, "no record in it"),
    ("a.json", "5", 2, "neither a list of records, nor a dict"),
    ("a.json", '[{"q": 1}, 5]', 2, "record 2 is 5. Allowed: a record with named fields"),
    ("a.json", '{"a": 1}', 2, "neither a list of records, nor a dict"),
    ("a.json", '{"a": [1]}', 2, "neither a list of records, nor a dict"),
    ("a.json", '{"a": {"q": 1}, "b": [{"q": 2}]}', 2, "record 2: neither a list of records, nor a dict"),
    ("a.json", '{"a": [{"q": 1}], "b": {"q": 2}}', 2, "record 2: neither a list of records, nor a dict"),
    ("a.json", '[{"q": "x"}, {"q": ', 1, "line 1, column 20: not valid JSON: Expecting value. It seems to be cut off"),
    ("a.json", '[{"q": "x"}, {"q": "y', 1, "Unterminated string starting at. It seems to be cut off"),
    ("a.json", '[{"q": "x"},', 1, "not valid JSON: Expecting value. It seems to be cut off"),
    ("a.json", '[{"q": "x"}', 1, "line 1, column 12: not valid JSON: Expecting ',' delimiter. It seems to be cut off"),
    ("a.json", '{"x": {"q": 1}', 1, "not valid JSON: Expecting ',' delimiter. It seems to be cut off"),
    ("a.json", '{"x"', 1, "not valid JSON: Expecting ':' delimiter. It seems to be cut off"),
    ("a.json", '[{"q": 1},\n{q: 2}]', 1, "line 2, column 2: not valid JSON: Expecting property name"),
    ("a.json", '[{"q": 1},\n{"q": 2}] [', 1, "line 2, column 11: not valid JSON: Extra data: '[' follows the end"),
    ("a.json", '[{"q": 1},\n]', 1, "line 2, column 1: not valid JSON: a trailing comma before ']'"),
    ("a.json", '[{"q": 1,\n}]', 1, "not valid JSON: a trailing comma before '}'"),
    ("a.json", '{"x": {"q": 1},\n}', 1, "line 2, column 1: not valid JSON: a trailing comma before '}'"),
    ("a.json", "[{'q': 1}]", 1, "not valid JSON: single quotes, as Python prints a dict; JSON has double quotes"),
    ("a.json", "{'q': 1}", 1, "not valid JSON: single quotes, as Python prints a dict"),
    ("a.json", '[{"q": None}]', 1, "line 1, column 8: not valid JSON: None is Python's word"),
    ("a.json", '[{"q": 1} // one\n]', 1, "not valid JSON: a comment, which JSON does not have"),
    ("a.json", '[{"q": 1},\n {"q": 2, "q": 3}]', 1, "line 2, column 2: the key 'q' is there twice in one object"),
    ("a.json", '{"x": {"q": 1},\n "x": {"q": 2}}', 1, "line 2, column 2: the key 'x' is there twice in one object"),
    ("a.json", DEEP, 1, "line 1, column 2: nested too deep. Cure:"),
    ("a.json", '{"a":' * 100_000, 1, "nested too deep"),
    ("a.json", '[{"q": ' + "9" * 5000 + "}]", 1, "line 1, column 2: an integer of over 4,300 digits"),
    ("a.json", '[{"q": 1e400}]', 1, "the number 1e400 is larger than any that can be stored"),
    ("a.json", b'[{"q": "\xff"}]', 1, "line 1: byte 0xff is not UTF-8"),
    ("a.json", b'[{"q": 1},\n{"q": "\xc3', 1, "line 2: byte 0xc3 is not UTF-8 (unexpected end of data)"),
    ("a.json", b'[{"q": 1}]' + b"\n" * 70_000 + b"\0", 1, "line 70001 holds a NUL byte"),
    ("a.json", '[{"q": 1}]\ufeff[{"q": 2}]', 1, "Extra data: '\\ufeff[{"),
    ("a.json", '{"q": 1}\n{"q": ', 1, "line 2: not valid JSON: Expecting value. It seems to be cut off at column 6"),
    ("a.jsonl", '{"q": 1}\n[1]', 2, "line 2 is [1]"),
    ("a.jsonl", '{"q": 1}\n{"q": 2', 1, "line 2: not valid JSON"),
    (
        "a.jsonl",
        '{"q": 1} {"q": 2}',
        1,
        "line 1: not valid JSON: Extra data: '{\"q\": 2}' follows the end at column 10",
    ),
    ("a.jsonl", "{'q': 1}\n", 1, "line 1: not valid JSON: single quotes, as Python prints a dict"),
    ("a.jsonl", '{"q": 1}\n{"q": 2, "q": 3}', 1, "line 2: the key 'q' is there twice"),
    ("a.jsonl", '{"q": 1}\n{"q": -1.5e999}', 1, "line 2: the number -1.5e999 is larger than any"),
    ("a.jsonl", '{"q": 1}\n{"q": ' + "9" * 5000 + "}", 1, "line 2: an integer of over 4,300 digits"),
    ("a.jsonl", '{"q": 1}\n' + DEEP, 1, "line 2: nested too deep"),
    ("a.jsonl", '{"q": 1}\n{"q": ' + DEEP, 1, "line 2: nested too deep"),
    ("a.jsonl", b'{"q": 1}\n{"q": "\xe9"}', 1, "line 2: byte 0xe9 is not UTF-8"),
    ("a.jsonl", b'{"q": 1}' + b" " * 70_000 + b'\n{"q": "\0"}', 1, "line 2 holds a NUL byte"),
    ("a.jsonl", '{"q": 1}\n\ufeff{"q": 2}\n', 1, "line 2 begins with a byte order mark: files were joined here. Cure:"),
    ("a.csv", "q,a\nx,1\n\ufeffq,a\ny,2\n", 1, "line 3 begins with a byte order mark"),
    ("a.jsonl", '[\n{"q": 1}\n]', 1, "line 1: not valid JSON: Expecting value. It seems to be cut off at column 2"),
    ("a.jsonl", '[\n{"q": 1}\n]', 1, "Cure: one JSON object a line; a document over many lines is named .json"),
    ("a.csv", '[{"q": 1,\n"a": 2}]', 2, "JSON, not a table. Cure: name it .json or .jsonl"),
    ("a.csv", "question\nq1\n", 2, "one column, 'question', split at ','"),
    ("a.csv", "q\ta\nx\t1\n", 2, "Cure: set reader = 'tsv'"),
    ("a.tsv", "q,a\nx,1\n", 2, "Cure: set reader = 'csv'"),
    ("a.csv", "q;a\nx;1\n", 2, "Cure: use commas, or reader = 'tsv' and tabs"),
    ("a.csv", "q,a,q\n", 2, "the header names 'q' twice"),
    ("a.csv", "q,a\n", 2, "no record in it"),
    ("a.csv", "q,a\nx,1\ny\n", 1, "line 3: 1 cells where the header has 2"),
    ("a.csv", "q,a\nx, y,1\n", 1, "line 2: 3 cells where the header has 2. Cure: quote cells that hold ','"),
    ("a.csv", 'q,a\n"x,1\ny,2\n', 1, "the row at line 2: unexpected end of data"),
    ("a.csv", 'q,a\n"x"y,1\n', 1, "the row at line 2"),
    ("a.csv", b"q,a\nx,\xe9\n", 1, "line 2: byte 0xe9 is not UTF-8"),
    ("a.csv", "q,a\nx,\u201cy\u201d\n".encode("cp1252"), 1, "line 2: byte 0x93 is not UTF-8"),
    ("a.parquet", b"q,a\nx,1\n", 1, "no Parquet file: it starts with b'q,a\\n'"),
    ("a.parquet", b"PAR1 and then nothing", 1, "after row 0: not readable as Parquet"),
    ("a.json", b"PAR1", 1, "this is a Parquet file. Cure: name it .parquet"),
    ("a.json.gz", b"[]", 1, "the archive is damaged or cut off after 0 bytes: Not a gzipped file"),
    ("a.json.gz", gzip.compress(json.dumps(ROWS * 99).encode())[:-9], 1, "damaged or cut off after"),
    ("a.json.gz", gzip.compress(b"\x1f\x8b"), 1, "this is a gzip archive"),
    ("a.zip", b"no archive", 1, "no zip archive, or cut off: File is not a zip file"),
]


@pytest.mark.parametrize(
    ("name", "content", "code", "message"), BROKEN, ids=[f"{name} {message[:30]}" for name, _, _, message in BROKEN]
)
def test_a_broken_file_is_one_line_with_the_place_and_the_cure(
    tmp_path: Path, name: str, content: str | bytes, code: int, message: str
) -> None:
    path = write(tmp_path, name, content)
    found = complaint(path, code=code)
    assert message in found
    assert code == 2 or "Cure:" in found or "Allowed:" in found


def test_a_header_row_is_as_wide_as_the_arrays_below_it(tmp_path: Path) -> None:
    rows = Layout(reader="jsonl_rows")
    assert "line 2: 1 values where the header has 2" in complaint(write(tmp_path, "a.jsonl", '["q", "a"]\n["x"]'), rows)
    assert "the header names 'q' twice" in complaint(write(tmp_path, "a.jsonl", '["q", "q"]\n["x", 1]'), rows, 2)
    assert "Cure: set reader = 'jsonl'" in complaint(write(tmp_path, "a.jsonl", '{"q": 1}'), rows, 2)
    assert "no record in it" in complaint(write(tmp_path, "a.jsonl", '["q", "a"]'), rows, 2)


def test_a_header_that_is_declared_and_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "q,a\nx,1\n")
    assert "line 1 is the header that the spec declares. Cure: take header out" in complaint(
        path, Layout(header=("q", "a")), 2
    )
    assert "line 1: 2 cells where the header has 3" in complaint(path, Layout(header=("q", "a", "b")))


def test_parquet_in_an_archive_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.Table.from_pylist([{"q": "x" * 5000}]), tmp_path / "a.parquet", compression="none")
    path = zipped(tmp_path, {"a.parquet": (tmp_path / "a.parquet").read_bytes()})
    monkeypatch.setattr(parquet, "_MAX_PARQUET", 2000)
    monkeypatch.setattr(sources, "_BLOCK", 1000)
    assert "unpacked. Cure: unpack it first" in complaint(path)


def test_parquet_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], names=["q", "q"]), tmp_path / "a.parquet")
    assert "the header names 'q' twice" in complaint(tmp_path / "a.parquet", code=2)
    twice = pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"m": twice}), tmp_path / "a.parquet")
    assert "after row 1: not readable as Parquet: a map holds a key twice" in complaint(tmp_path / "a.parquet")


def test_a_step_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    each = Layout(unnest=("each:qa",))
    assert "unnest = 'values' does not fit a list" in complaint(
        write(tmp_path, "a.json", '[{"q": 1}]'), Layout(unnest=("values",)), 2
    )
    assert "line 1: unnest = 'each:qa' does not fit" in complaint(write(tmp_path, "a.jsonl", '{"q": 1}'), each, 2)
    assert "line 2: unnest = 'each:qa' does not fit" in complaint(write(tmp_path, "a.csv", "q,a\n1,2\n"), each, 2)
    assert "'get:z' does not fit a dict with the keys 'x', 'y'" in complaint(
        write(tmp_path, "b.json", '{"x": 1, "y": [2]}'), Layout(unnest=("get:z", "values")), 2
    )


def test_lines_and_records_and_documents_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE", 100)
    monkeypatch.setattr(sources, "_BLOCK", 40)
    monkeypatch.setattr(jsontext, "MAX_VALUE", 100)
    monkeypatch.setattr(jsontext, "MAX_DOCUMENT", 200)
    assert "line 2 is longer than" in complaint(write(tmp_path, "a.jsonl", '{"q": 1}\n' + "x" * 1000))
    long = json.dumps({"q": "x" * 300})
    assert "line 1, column 11: longer than" in complaint(write(tmp_path, "a.json", f'[{{"q": 1}},{long}]'))
    assert "line 1, column 1: longer than" in complaint(
        write(tmp_path, "a.json", f"[{long}]"), Layout(unnest=("each:x",))
    )


def test_a_line_of_100_mb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        file.write(b'{"q": "first"}\n{"q": "')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    try:
        assert ": line 2 is longer than 64 MB. Cure: one record a line" in complaint(path)
    finally:
        path.unlink()


def test_a_file_cut_anywhere_never_reads_as_whole(tmp_path: Path) -> None:
    whole = json.dumps(ROWS).encode()
    for cut in range(len(whole)):
        assert complaint(write(tmp_path, "a.json", whole[:cut]))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "b.parquet")
    packed = zipped(tmp_path, {"x.json": whole}, "b.zip").read_bytes()
    for name, data in {"a.parquet": (tmp_path / "b.parquet").read_bytes(), "a.zip": packed}.items():
        for cut in range(0, len(data), 40):
            assert complaint(write(tmp_path, name, data[:cut]))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_flipped_byte_of_an_archive_is_seen(tmp_path: Path, method: int) -> None:
    path = zipped(tmp_path, {"\u00e9.json": json.dumps(ROWS)}, method=method)
    good, wanted = path.read_bytes(), [record.values for record in read_records(path)]
    for place in range(len(good)):
        write(tmp_path, "a.zip", good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        try:
            assert [record.values for record in read_records(path)] == wanted  # a date, an attribute
        except InputError as reason:
            assert "\n" not in str(reason)  # noqa: PT017 - either outcome is right


MEMBERS: list[tuple[dict[str, str | bytes], int, str]] = [
    ({"a.json": "[]", "../b.json": "[]"}, 1, "the member '../b.json' points out of the archive"),
    ({"x\\..\\b.json": "[]"}, 1, "points out of the archive"),
    ({"/etc/b.json": "[]"}, 1, "the member '/etc/b.json' points out of the archive"),
    ({"C:/b.json": "[]"}, 1, "the member 'C:/b.json' points out of the archive"),
    ({"in/inner.zip": b"PK\x03\x04"}, 1, "!/in/inner.zip: an archive in an archive. Cure: unpack the outer one"),
    ({"a.json.gz": gzip.compress(b"[]")}, 1, "!/a.json.gz: an archive in an archive"),
    ({"readme.md": "x", "__MACOSX/._a.json": "x", "._b.json": "x"}, 2, "no member matches .json, .jsonl"),
    ({"readme.md": "x"}, 2, "It holds: readme.md. Cure: set members in the spec"),
    ({"a.json": "[]", "b/c.json": "[]"}, 2, "no record in it"),
    ({"a.json": '[{"q": 1}]', "b.json": '[{"q": 1},]'}, 1, "!/b.json: line 1, column 11: not valid JSON: a trailing"),
    ({"a.csv": "q,a\n1,2\n", "b.csv": "q,a\n1\n"}, 1, "!/b.csv: line 2: 1 cells where the header has 2"),
]


@pytest.mark.parametrize(("members", "code", "message"), MEMBERS, ids=[message[:40] for _, _, message in MEMBERS])
def test_a_member_that_cannot_be_trusted_is_refused_by_name(
    tmp_path: Path, members: dict[str, str | bytes], code: int, message: str
) -> None:
    assert message in complaint(zipped(tmp_path, members), code=code)


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"a.json": "[]", "b.json": "[]"})
    write(tmp_path, "a.zip", path.read_bytes().replace(b"b.json", b"a.json"))
    assert "the member 'a.json' is there twice" in complaint(path)


def test_a_member_without_a_name_is_none(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"a.json": '[{"q": 1}]', "x": ""})
    data = path.read_bytes().replace(b"x", b"\0")  # Python ends a name at a zero byte
    write(tmp_path, "a.zip", data)
    assert [record.values for record in read_records(path)] == [{"q": 1}]


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"a.json": '[{"q": 1}]'})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    write(tmp_path, "a.zip", bytes(data))
    assert "!/a.json: this member is encrypted. Cure: unpack it with its password" in complaint(path)


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"a.json": '[{"q": 1}]'})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        data[data.index(mark) + offset] = 97
    write(tmp_path, "a.zip", bytes(data))
    assert "!/a.json: not readable: That compression method is not supported" in complaint(path)


def bomb(folder: Path, name: str, megabytes: int) -> Path:
    """An archive of one row over and over: 1 MB goes in as a few thousand bytes."""
    row = b'{"question": "q", "answer": 0}\n' + b" " * 993 + b"\n"
    if name.endswith(".gz"):
        with gzip.open(folder / name, "wb") as file:
            for _ in range(megabytes):
                file.write(row * 1024)
        return folder / name
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.jsonl", "w") as member:
        for _ in range(megabytes):
            member.write(row * 1024)
    return folder / name


@pytest.mark.parametrize("name", ["a.zip", "a.jsonl.gz"])
def test_a_zip_bomb_is_refused_while_it_is_read(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bomb(tmp_path, name, 4)
    assert sum(1 for _ in read_records(path)) == 4096  # a small file may pack well
    monkeypatch.setattr(sources, "FREE", 1 << 20)
    assert "unpacks to over 200 times its" in complaint(path)
    monkeypatch.setattr(sources, "MAX_RATIO", 10_000)
    assert sum(1 for _ in read_records(path)) == 4096
    monkeypatch.setattr(sources, "MAX_UNPACKED", 3 << 20)
    assert "as a zip bomb does. Cure: unpack it yourself if it is none" in complaint(path)


def test_a_zip_bomb_of_many_members_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = json.dumps([{"q": str(number)} for number in range(20_000)])
    path = zipped(tmp_path, {f"{number}.json": rows for number in range(8)})
    assert sum(1 for _ in read_records(path)) == 160_000
    monkeypatch.setattr(sources, "MAX_ARCHIVE", 1 << 20)
    assert "the archive unpacks to over" in complaint(path)
    monkeypatch.setattr(sources, "MAX_ARCHIVE", 1 << 30)
    monkeypatch.setattr(sources, "FREE", len(rows))
    monkeypatch.setattr(sources, "MAX_RATIO", 2)
    assert "times its" in complaint(path)


def test_a_header_that_lies_about_its_size_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FREE", 1 << 20)
    path = bomb(tmp_path, "a.zip", 4)
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = (1000).to_bytes(4, "little")  # uncompressed size
    write(tmp_path, "a.zip", bytes(data))
    assert "!/a.jsonl: " in complaint(path)


def test_a_file_that_may_not_be_read_is_wrong_use_and_one_that_breaks_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "a.csv", "q,a\n1,2")
    monkeypatch.setattr(Path, "open", raising(13))
    assert "not readable: Permission denied. Cure: check the path" in complaint(path, code=2)
    monkeypatch.setattr(Path, "open", raising(5))
    assert "not readable after record 0: Input/output error. Cure: check the disk" in complaint(path)
    monkeypatch.undo()
    path.unlink()
    assert "not readable: No such file or directory" in complaint(path, code=2)


def raising(number: int):  # type: ignore[no-untyped-def]
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def test_a_folder_that_links_to_itself_is_read_once(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    (folder / "in").mkdir(parents=True)
    write(folder, "in/a.json", json.dumps(ROWS))
    (folder / "in" / "loop").symlink_to(folder)
    assert find_files(tmp_path, ["set"]) == [folder / "in" / "a.json"]
    assert find_files(tmp_path, ["set/**/*.json"]) == [folder / "in" / "a.json"]
    assert [record.values for record in read_records(folder)] == ROWS
