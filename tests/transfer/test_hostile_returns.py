"""Packages of results that were damaged on the way, or that somebody made up: one line, and no row is written."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from return_files import answer, contents, flipped, packed, repacked, resealed, twin

from benchcheck.errors import BenchcheckError, DamagedFileError, InputError
from benchcheck.run.driver import run_study
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.transfer.merge import merge_returns
from benchcheck.transfer.pack import FACTS
from benchcheck.transfer.protocol import protocol_hash
from studies import Run, framed_study, make_items, rows_on_disk

ITEMS = make_items(a=12, b=5)
ROWS = "step1/a.jsonl"


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Study]:
    folder = tmp_path_factory.mktemp("hostile")
    home = framed_study(folder / "home", ITEMS)
    there = twin(home, folder / "there")
    run_study(there, "scripted")
    return home, there


@pytest.fixture
def file(studies: tuple[Study, Study], tmp_path: Path) -> Path:
    return packed(studies[1], tmp_path / "x")


@pytest.fixture
def refused(studies: tuple[Study, Study]) -> Callable[..., None]:
    """Merging this raises that, in one line, and writes nothing."""
    home = studies[0]

    def call(source: Path, said: str, kind: type[BenchcheckError] = DamagedFileError) -> None:
        with pytest.raises(kind, match=said) as found:
            merge_returns(home, [source])
        assert type(found.value) is kind
        assert len(str(found.value)) < 600
        assert not any(rows_on_disk(home, step) for step in LADDER)
        assert not home.accounting_file.exists()
        assert not (home.logs / "returns").exists()
        assert not (home.results / ".merge").exists()

    return call


@pytest.mark.parametrize("place", [0.001, 0.1, 0.4, 0.7, 0.95])
def test_a_flipped_bit_is_found_with_and_without_the_file_beside(
    file: Path, refused: Callable[..., None], place: float
) -> None:
    flipped(file, place)
    refused(file, r"sha256 differs from that in pool_returns_.*\.sha256\. Cure: get both files again")
    file.with_name(file.name + ".sha256").unlink()
    refused(file, r"pool_returns_.*(no tar file|cut off|damaged|is not|not readable)")


@pytest.mark.parametrize("said", [b'"returns_version":', b'"bytes":', b'"files":', b'"protocol_sha256":'])
def test_a_flipped_bit_of_the_list_is_damage_and_no_other_version(
    file: Path, refused: Callable[..., None], said: bytes
) -> None:
    """Stored without packing, so that the bit is that of a number or a name, and gzip's checksum alone knows."""
    data = bytearray(gzip.compress(gzip.decompress(file.read_bytes()), 0))
    data[data.index(said) + len(said) + 1] ^= 8
    file.write_bytes(data)
    file.with_name(file.name + ".sha256").unlink()
    refused(file, r"pool_returns_.*no tar file, cut off or damaged: CRC check failed")


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.999])
def test_a_file_that_was_cut_off(file: Path, refused: Callable[..., None], share: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    refused(file, "sha256 differs")
    resealed(file)
    refused(file, "pool_returns_")


@pytest.mark.parametrize(
    "text", ["", "\0" * 80, "<html>not found</html>", "0" * 64, f"{'0' * 63}  x\n", f"{'0' * 64}  a\n{'1' * 64}  b\n"]
)
def test_a_hash_file_that_is_none(file: Path, refused: Callable[..., None], text: str) -> None:
    file.with_name(file.name + ".sha256").write_text(text)
    refused(file, r"\.sha256: not one line of sha256sum")


def test_the_hash_of_another_file(file: Path, refused: Callable[..., None]) -> None:
    file.with_name(file.name + ".sha256").write_text(f"{'0' * 64}  {file.name}\n")
    refused(file, "sha256 differs")
    beside = file.with_name(file.name + ".sha256")
    beside.unlink()
    beside.mkdir()
    refused(file, "not readable: Is a directory")


def test_a_hash_file_of_a_file_that_was_renamed_is_of_it_still(
    studies: tuple[Study, Study], file: Path, tmp_path: Path
) -> None:
    renamed = file.rename(file.with_name("it's b.tar.gz"))
    file.with_name(file.name + ".sha256").rename(renamed.with_name(renamed.name + ".sha256"))
    notes: list[str] = []
    merge_returns(twin(studies[0], tmp_path / "h"), [renamed], note=notes.append)
    assert notes == []


OTHER_FILES: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("text", b"hello\n" * 1000),
    ("page", b"<!DOCTYPE html><html><body>404</body></html>"),
    ("zeros", bytes(10240)),
    ("gzip of nothing", __import__("gzip").compress(b"")),
    ("gzip of text", __import__("gzip").compress(b"hello\n" * 1000)),
    ("pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"),
]


@pytest.mark.parametrize(("name", "data"), OTHER_FILES, ids=[name for name, _ in OTHER_FILES])
def test_another_file_under_the_name(tmp_path: Path, studies: tuple[Study, Study], name: str, data: bytes) -> None:
    path = tmp_path / "pool_returns_x.tar.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match="pool_returns_x"):
        merge_returns(studies[0], [path])


def test_a_zip_file_instead(studies: tuple[Study, Study], file: Path, refused: Callable[..., None]) -> None:
    path = file.with_name("pool_returns_z.tar.gz")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents(file).items():
            archive.writestr(name, data)
    refused(path, "pool_returns_z")


def test_a_tar_of_something_else(file: Path, refused: Callable[..., None]) -> None:
    inside = contents(file)
    with tarfile.open(file, "w:gz") as tar:
        for name, data in reversed(inside.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    resealed(file)
    refused(file, r"no package of results, its first member is not returns\.json", InputError)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "logs/../../x", "a\\b", "step1/./a.jsonl"])
def test_a_member_that_leads_out(file: Path, refused: Callable[..., None], name: str, tmp_path: Path) -> None:
    inside = contents(file)
    refused(repacked(file, {**inside, name: b"{}\n"}, listed=False), "pool_returns_")
    refused(repacked(file, {**inside, name: b"{}\n"}), r"returns\.json lists a file that no package has|leads out")
    assert not (tmp_path / "x" / ".." / "x.jsonl").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_a_link_or_a_device(file: Path, refused: Callable[..., None], kind: bytes) -> None:
    info = tarfile.TarInfo("logs/a.log")
    info.type, info.linkname = kind, "/etc/passwd"
    refused(repacked(file, contents(file), extra=[info]), r"logs/a\.log")


def test_a_member_twice_unlisted_or_missing(file: Path, refused: Callable[..., None]) -> None:
    inside = contents(file)
    info = tarfile.TarInfo(ROWS)
    refused(repacked(file, inside, extra=[info]), r"step1/a\.jsonl")
    info = tarfile.TarInfo("step1/c.jsonl")
    refused(repacked(file, inside, extra=[info]), r"'step1/c\.jsonl' is not in returns\.json")
    del inside["step2/b.jsonl"]
    refused(repacked(file, inside, listed=False), r"step2/b\.jsonl is missing \(1 files\)")


@pytest.mark.parametrize("change", [{"bytes": 1}, {"sha256": "0" * 64}, {"lines": 3}])
def test_a_list_that_does_not_fit(file: Path, refused: Callable[..., None], change: dict[str, Any]) -> None:
    inside = contents(file)
    files = json.loads(inside[FACTS])["files"]
    files[ROWS] |= change
    refused(repacked(file, inside, facts={"files": files}, listed=False), r"step1/a\.jsonl is not the file that")


def test_rows_of_a_step_that_the_protocol_does_not_have(file: Path, refused: Callable[..., None]) -> None:
    """They would be left out without a word."""
    inside = contents(file)
    facts = json.loads(inside[FACTS])
    protocol = {step: table for step, table in facts["protocol"].items() if step != "1"}
    changed = {"protocol": protocol, "protocol_sha256": protocol_hash(protocol)}
    refused(repacked(file, inside, facts=changed), r"lists step1/a\.jsonl, and its protocol has no such step")


@pytest.mark.parametrize(
    "facts",
    [
        {"files": None}, {"files": {"step1/a.jsonl": 3}}, {"files": {"step9/a.jsonl": {}}},
        {"files": {"a" * 100_000: {"sha256": "0" * 64, "bytes": 1, "lines": 1}}},
        {"files": {ROWS: {"sha256": "x", "bytes": 1, "lines": 1}}},
        {"files": {ROWS: {"sha256": "0" * 64, "bytes": 1e99, "lines": 1}}},
        {"files": {ROWS: {"sha256": "0" * 64, "bytes": -1, "lines": 1}}},
        {"protocol": []}, {"protocol": {}}, {"protocol_sha256": "0" * 64},
    ],
)  # fmt: skip
def test_facts_that_no_package_has(file: Path, refused: Callable[..., None], facts: dict[str, Any]) -> None:
    refused(repacked(file, contents(file), facts=facts, listed=False), r"returns\.json (lists|has)")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"[" * 200_000, b"\0" * 50, b"\xff\xfe{}", b'{"format": "other"}'])
def test_facts_that_are_no_json_object(file: Path, refused: Callable[..., None], text: bytes) -> None:
    info = tarfile.TarInfo(FACTS)
    info.size = len(text)
    with tarfile.open(file, "w:gz") as tar:
        tar.addfile(info, io.BytesIO(text))
    resealed(file)
    kind = InputError if text in (b"[]", b'{"format": "other"}') else DamagedFileError
    refused(file, r"returns\.json is not", kind)


def test_facts_of_another_version(file: Path, refused: Callable[..., None]) -> None:
    said = r"returns_version = 9, this benchcheck reads 1"
    refused(repacked(file, contents(file), facts={"returns_version": 9}), said, InputError)


def test_facts_of_another_protocol_name_the_field(file: Path, refused: Callable[..., None]) -> None:
    from benchcheck.transfer.protocol import protocol_hash

    table = json.loads(contents(file)[FACTS])["protocol"]
    table["2"]["frames"][0] = 8
    table["2"]["single"] = 4
    facts = {"protocol": table, "protocol_sha256": protocol_hash(table)}
    said = r"another protocol: frames\.count = 4 here, 8 in the package \(step 2\); frames\.single = 2 here, 4 in the"
    refused(repacked(file, contents(file), facts=facts), said, InputError)


def test_a_line_of_100_mb(file: Path, refused: Callable[..., None]) -> None:
    inside = contents(file)
    inside[ROWS] += b'{"item_id": "' + b"x" * 100_000_000 + b'"}\n'
    refused(repacked(file, inside), r"pool_returns_.*(step1/a\.jsonl, line 13: longer than 8388608 bytes|200 times)")


def test_a_package_that_unpacks_to_more_than_there_is_room_for(file: Path, refused: Callable[..., None]) -> None:
    from benchcheck.errors import StudyError

    inside = contents(file)
    files = json.loads(inside[FACTS])["files"]
    files[ROWS]["bytes"] = 1 << 47
    refused(repacked(file, inside, facts={"files": files}, listed=False), "unpacks to 140,737,488.4 MB", StudyError)


def hostile_rows(home: Study) -> dict[str, tuple[Any, str, type[BenchcheckError]]]:
    """Lines of a package, what is said of them, and how it ends."""
    row = answer(home, ITEMS[0])
    lacking = {key: value for key, value in row.items() if key != "item_digest"}
    odd: dict[str, Any] = {
        "a list": [1, 2],
        "a number": 7,
        "an empty object": {},
        "without a digest": lacking,
        "item_id is a list": row | {"item_id": ["a_0"], "step_key": None},
        "of another step": row | {"step": 2},
        "step as text": row | {"step": "one"},
    }
    cases: dict[str, tuple[Any, str, type[BenchcheckError]]] = {
        name: (value, r"step1/a\.jsonl, line 13: no row of step 1", DamagedFileError) for name, value in odd.items()
    }
    for name, change in {
        "more right than asked": {"n_right": 9},
        "no margin": {"mean_margin": None},
        "a margin of text": {"mean_margin": "high"},
        "negative": {"n_right": -1},
        "asked nothing": {"n_perm": 0, "n_right": 0},
    }.items():
        cases[name] = (row | change, "line 13: no answer: n_right, n_perm and mean_margin", DamagedFileError)
    cases |= {
        "status unknown": (row | {"status": "fine"}, "line 13: of no known status", DamagedFileError),
        "an error of no kind": (row | {"status": "error"}, "line 13: an error without its kind", DamagedFileError),
        "a retry of nothing": (row | {"status": "retry"}, "line 13: a retry without", DamagedFileError),
        "another benchmark's": (row | {"bench": "b"}, "line 13: in the file of another benchmark", DamagedFileError),
        "another key": (
            row | {"step_key": "f" * 16},
            r"1 rows of step 1 answer other questions \(step key f{16}",
            InputError,
        ),
        "a long key": (row | {"step_key": "f" * 5000}, "answer other questions", InputError),
        "another digest": (
            row | {"item_digest": "0" * 16},
            "1 rows of step 1 are of 1 items whose question",
            InputError,
        ),
        "an unknown item": (
            row | {"item_id": "a_'; drop table pool; --"},
            "does not have: a_'; drop table",
            InputError,
        ),
        "infinite": (json.dumps(row)[:-1] + ', "x": 1e999}', "a row that cannot be written", DamagedFileError),
        "not a number": (row | {"label_mass": [float("nan")]}, "a row that cannot be written", DamagedFileError),
        "endless": (row | {"margins": [float("-inf")]}, "a row that cannot be written", DamagedFileError),
        "nan": (json.dumps(row)[:-1] + ', "x": nan}', "(cannot be written|torn)", DamagedFileError),
        "deep": (
            json.dumps(row)[:-1] + ', "x": ' + "[" * 9999 + "]" * 9999 + "}",
            "cannot be written",
            DamagedFileError,
        ),
        "a number without end": (
            json.dumps(row)[:-1] + ', "x": ' + "9" * 9999 + "}",
            "cannot be written",
            DamagedFileError,
        ),
    }
    return cases


@pytest.mark.parametrize("name", range(26))
def test_a_row_that_is_none_of_ours(
    studies: tuple[Study, Study], file: Path, refused: Callable[..., None], name: int
) -> None:
    cases = hostile_rows(studies[0])
    assert len(cases) == 26
    line, said, kind = list(cases.values())[name]
    inside = contents(file)
    text = line if isinstance(line, str) else json.dumps(line)
    inside[ROWS] += text.encode() + b"\n"
    refused(repacked(file, inside), said, kind)


def test_lines_that_are_no_json_are_passed_over_and_said(
    run: Run, studies: tuple[Study, Study], file: Path, tmp_path: Path
) -> None:
    """NUL bytes are what a power failure leaves at the end of a file: they were there before it was packed."""
    home = twin(studies[0], tmp_path / "home")
    inside = contents(file)
    inside[ROWS] += b"\0" * 4096 + b"\n" + b'{"item_id": "a_1", "status": "ok"\n' + b"\xff\xfe\n"
    code, _, err = run("merge", home.root, repacked(file, inside))
    assert code == 0, err
    assert "step 1: 3 lines were torn" in err
    assert rows_on_disk(home, 1) == rows_on_disk(studies[1], 1)


def test_an_unpacked_package_with_a_link_in_it(file: Path, refused: Callable[..., None], tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    for name, data in contents(file).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / ROWS).unlink()
    refused(folder, r"'step1/a\.jsonl' is missing or no plain file")
    (folder / ROWS).symlink_to("/etc/passwd")
    refused(folder, r"'step1/a\.jsonl' is missing or no plain file")


def test_the_command_line_is_one_line_and_a_code(studies: tuple[Study, Study], file: Path) -> None:
    flipped(file, 0.5)
    done = subprocess.run(
        [sys.executable, "-m", "benchcheck", "merge", studies[0].root, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"benchcheck: {file}: sha256 differs")
