"""The manifest `key,file`: read strictly, one line for every mistake."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.errors import InputError
from benchcheck.video.sources.key_files import read_key_files

GOOD = {
    "m.csv": b'key,file\na.mp4,x/1.mp4\nb::z::c,"a, b.mp4"\n',
    "m.tsv": b"file\tkey\nx/1.mp4\ta.mp4\na, b.mp4\tb::z::c\n",
    "m.jsonl": b'{"key": "a.mp4", "file": "x/1.mp4"}\n{"file": "a, b.mp4", "key": "b::z::c"}\n',
    "M.NDJSON": b'{"key": "a.mp4", "file": "x/1.mp4"}\n{"file": "a, b.mp4", "key": "b::z::c"}\n',
}


def read(folder: Path, name: str, data: bytes) -> dict[str, str]:
    (folder / name).write_bytes(data)
    return dict(read_key_files(folder / name))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("change", [
    lambda data: data,
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data + data.splitlines(keepends=True)[-1],
    lambda data: data.rstrip(b"\n"),
], ids=["plain", "mark", "windows", "twice", "open end"])  # fmt: skip
def test_every_form_gives_the_same_files(tmp_path: Path, name: str, change) -> None:
    assert read(tmp_path, name, change(GOOD[name])) == {"a.mp4": "x/1.mp4", "b::z::c": "a, b.mp4"}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.txt", b"key,file\na,b\n", "not a manifest by its name. Allowed: .csv"),
        ("m.csv", b"key,file\na,b\na,c\n", "line 3: 'a' is 'c' here and 'b' in line 2"),
        ("m.csv", b"key,file,size\na,b,1\n", "line 2: unknown column 'size'. Allowed: key and file"),
        ("m.csv", b"key,path\na,b\n", "unknown column 'path'"),
        ("m.csv", b"key,file\na,\n", "line 2: no file."),
        ("m.csv", b"key,file\n ,b\n", "line 2: no key."),
        ("m.csv", b"key,file\na,b,c\n", "3 cells where the header has 2"),
        ("m.csv", b"key,key\na,b\n", "the header names 'key' twice"),
        ("m.csv", b"key,file\n", "no record in it"),
        ("m.csv", b"", "the file is empty"),
        ("m.csv", b"key,file\na,b\0\n", "NUL byte"),
        ("m.csv", b"key,file\na,\xff\n", "not UTF-8"),
        ("m.csv", b'key,file\na,"b\n', "line 2"),
        ("m.csv", b"PK\x03\x04" + bytes(99), "a zip archive"),
        ("m.jsonl", b'{"key": "a"}\n', "no file"),
        ("m.jsonl", b'{"key": "a", "file": 3}\n', "another kind of value than a file"),
        ("m.jsonl", b'{"key": "a", "file": "b"}\n{"key"\n', "line 2"),
        ("m.jsonl", b'["a", "b"]\n', "line 1"),
        ("m.jsonl", b'{"key": "a", "key": "b", "file": "c"}\n', "twice"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, data)
    assert str(tmp_path / name) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_manifest_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"m\.csv: not readable: No such file"):
        read_key_files(tmp_path / "m.csv")
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(InputError, match=r"f\.csv"):
        read_key_files(tmp_path / "f.csv")


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@settings(deadline=None)
@given(st.dictionaries(TEXT, TEXT, min_size=1))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> None:
    folder = tmp_path_factory.mktemp("m")
    for name, delimiter in (("m.csv", ","), ("m.tsv", "\t")):
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=delimiter).writerows([("key", "file"), *files.items()])
        assert read(folder, name, buffer.getvalue().encode()) == files
    lines = "".join(json.dumps({"key": key, "file": file}) + "\n" for key, file in files.items())
    assert read(folder, "m.jsonl", lines.encode()) == files


@settings(deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["m.csv", "m.tsv", "m.jsonl"]), st.booleans())
def test_anything_else_is_one_line_or_files(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str, begins_well: bool
) -> None:
    head = {"m.csv": b"key,file\n", "m.tsv": b"key\tfile\n", "m.jsonl": b'{"key": "a", "file": "b"}\n'}[name]
    folder = tmp_path_factory.mktemp("m")
    told, found = "", {"k": "f"}
    try:
        found = read(folder, name, (head if begins_well else b"") + data)
    except InputError as reason:
        told = str(reason)
    assert "\n" not in told
    assert all(key.strip() and file.strip() for key, file in found.items())
