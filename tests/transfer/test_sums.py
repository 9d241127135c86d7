"""The manifest of a folder far away: written and read as coreutils' sha256sum does, hostile ones refused."""

import hashlib
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.errors import DamagedFileError
from benchcheck.transfer.far.sums import MANIFEST, clash, fault_of, read_sums, sums_text

DIGEST = "0" * 64
OTHER = "1" * 64
SIGNS = st.one_of(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), st.sampled_from("\\\n\r *\"'न"))
PARTS = st.text(SIGNS, min_size=1, max_size=12).filter(lambda part: part not in (".", ".."))
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@given(st.dictionaries(PATHS, st.sampled_from([DIGEST, OTHER]), max_size=8))
def test_what_is_written_is_read(sums: dict[str, str]) -> None:
    if clash(sums):
        with pytest.raises(DamagedFileError, match="is a file and a folder at once"):
            read_sums(sums_text(sums), MANIFEST)
    else:
        assert read_sums(sums_text(sums), MANIFEST) == sums


@settings(max_examples=25)
@given(st.sets(PATHS.filter(lambda path: path != "-" and len(path.encode()) < 200), min_size=1, max_size=6))
def test_coreutils_agrees(paths: set[str]) -> None:
    """Of a file called `-` it cannot: that is its name for what is piped in."""
    if clash(paths):
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sums = {}
        for path in paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(path.encode())
            sums[path] = hashlib.sha256(path.encode()).hexdigest()
        (folder / ".list").write_bytes(sums_text(sums))
        subprocess.run(["sha256sum", "--strict", "--quiet", "-c", ".list"], cwd=folder, check=True)
        theirs = subprocess.run(["sha256sum", "--", *sorted(paths)], cwd=folder, check=True, capture_output=True).stdout
        assert read_sums(theirs, MANIFEST) == sums
        assert sorted(theirs.splitlines(keepends=True)) == sorted(sums_text(sums).splitlines(keepends=True))


def test_a_name_that_is_no_utf8_comes_back() -> None:
    name = b"caf\xe9.mp4".decode("utf-8", "surrogateescape")
    assert sums_text({name: DIGEST}) == DIGEST.encode() + b"  caf\xe9.mp4\n"
    assert read_sums(sums_text({name: DIGEST}), MANIFEST) == {name: DIGEST}
    assert read_sums(f"{DIGEST} *binary\n".encode(), MANIFEST) == {"binary": DIGEST}
    assert read_sums(b"", MANIFEST) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<!doctype html><html>Log in</html>", "a web page stands where the manifest should be"),
        (b" \n<html>\n", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "is no line of a manifest"),
        (f"{DIGEST}  a\n{DIGEST}  b".encode(), "cut off in the middle of a line"),
        (f"{DIGEST}  ../a\n".encode(), "the path '../a' leads out of the folder"),
        (f"{DIGEST}  a/../../b\n".encode(), "leads out of the folder"),
        (f"{DIGEST}  /etc/passwd\n".encode(), "leads out of the folder"),
        (f"{DIGEST}  a//b\n".encode(), "is no path of a file"),
        (f"{DIGEST}  ./a\n".encode(), "is no path of a file"),
        (f"{DIGEST}  a/\n".encode(), "is no path of a file"),
        (f"{DIGEST}  a\0b\n".encode(), "is no path of a file"),
        (f"\\{DIGEST}  a\\tb\n".encode(), "is no path of a file"),
        (f"\\{DIGEST}  a\\\n".encode(), "is no path of a file"),
        (f"{DIGEST}  {'a' * 256}\n".encode(), "is longer than a file system takes"),
        (f"{DIGEST}  {'a/' * 2000}a\n".encode(), "is longer than a file system takes"),
        (f"{DIGEST}  a\n{OTHER}  a\n".encode(), "line 2: 'a' is there twice, with two hashes"),
        (f"{DIGEST}  a\n{OTHER}  a/b/c\n".encode(), "'a' is a file and a folder at once"),
        (f"{DIGEST} a\n".encode(), "is no line of a manifest"),
        (b"\xef\xbb\xbf" + f"{DIGEST}  a\n".encode(), "is no line of a manifest"),
        (f"{DIGEST.replace('0', 'A')}  a\n".encode(), "is no line of a manifest"),
        (b"\0" * 99 + b"\n", "is no line of a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DamagedFileError) as caught:
        read_sums(data, "s3://bucket/SHA256SUMS")
    assert str(caught.value).startswith("s3://bucket/SHA256SUMS")
    assert message in str(caught.value)
    assert "Cure: get it again" in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        sums = read_sums(data, MANIFEST)
    except DamagedFileError:
        return
    assert not any(fault_of(name) for name in sums)
