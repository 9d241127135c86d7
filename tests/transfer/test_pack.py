"""What goes home: whole lines only, every file with its hash, the same bytes for the same rows."""

import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from return_files import answer, contents, packed

from benchcheck.errors import StudyError
from benchcheck.run.driver import run_study
from benchcheck.study import Study
from benchcheck.transfer.pack import FACTS, host_part, pack_returns
from benchcheck.transfer.provenance import pool_facts
from benchcheck.transfer.rows import snapshot
from studies import Run, framed_study, make_item, make_items

ITEMS = make_items(a=12, b=5)


@pytest.fixture
def done(tmp_path: Path) -> Study:
    """A study with rows of every step, second readings and logs."""
    study = framed_study(tmp_path / "done", ITEMS)
    run_study(study, "scripted")
    again = study.reread_folder(1) / "a.jsonl"
    again.parent.mkdir(parents=True)
    again.write_text(json.dumps(answer(study, ITEMS[0])) + "\n")
    (study.logs / "doctor.json").write_text('{"sound": true}\n')
    (study.logs / "vllm_s1_gpu0.log").write_text("line\nhalf a li")
    return study


def test_a_package_holds_rows_logs_and_what_they_must_be(done: Study, tmp_path: Path) -> None:
    made = pack_returns(done, tmp_path)
    inside = contents(made.file)
    assert next(iter(inside)) == FACTS
    assert list(inside)[1:] == sorted(list(inside)[1:])
    facts = json.loads(inside.pop(FACTS))
    assert set(facts["files"]) == set(inside)
    for name, data in inside.items():
        said = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "lines": data.count(b"\n")}
        assert facts["files"][name] == said
    assert facts["pool"] == pool_facts(done)
    assert facts["rows"] == {str(step): rows for step, rows in made.rows.items()}
    assert made.rows[1] == 17
    assert inside["step1/a.jsonl"] == done.step_file(1, "a").read_bytes()
    assert inside["reread/step1/a.jsonl"] == (done.reread_folder(1) / "a.jsonl").read_bytes()
    assert inside["logs/vllm_s1_gpu0.log"] == b"line\n"
    assert {"logs/accounting.jsonl", "logs/doctor.json"} < set(inside)
    assert "logs/run.lock" not in inside


def test_the_hash_beside_it_is_one_that_sha256sum_checks(done: Study, tmp_path: Path) -> None:
    made = pack_returns(done, tmp_path)
    told = subprocess.run(
        ["sha256sum", "-c", f"{made.file.name}.sha256"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout == f"{made.file.name}: OK\n"


def test_the_same_rows_give_the_same_bytes(done: Study, tmp_path: Path) -> None:
    first = packed(done, tmp_path / "x").read_bytes()
    os.utime(done.step_file(1, "a"))
    assert packed(done, tmp_path / "y").read_bytes() == first
    done.append(1, "a", None, [answer(done, ITEMS[0], at="later")])
    assert packed(done, tmp_path / "y").read_bytes() != first


def test_the_default_place_is_the_study_and_a_second_package_takes_the_place(run: Run, done: Study) -> None:
    code, out, _ = run("pack", done.root)
    assert code == 0
    (file,) = done.root.glob("pool_returns_*.tar.gz")
    assert out.splitlines()[-1] == f"{file} ({file.stat().st_size:,} bytes), {file.name}.sha256"
    assert out.splitlines()[0] == "step 1: 17 rows"
    done.append(1, "a", None, [answer(done, ITEMS[0], at="later")])
    assert run("pack", done.root)[0] == 0
    assert list(done.root.glob("pool_returns_*.tar.gz")) == [file]
    subprocess.run(["sha256sum", "-c", f"{file.name}.sha256"], cwd=done.root, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("host", "part"),
    [
        ("a/b c\nd", "a-b-c-d"),
        ("..", "host"),
        ("", "host"),
        ("nœud.क", "n-ud"),
        ("x" * 300, "x" * 64),
        ("gpu-07.lan",) * 2,
    ],
)
def test_a_hosts_name_makes_a_file_name(host: str, part: str) -> None:
    assert host_part(host) == part


def test_torn_stale_and_strange_lines_stay(run: Run, done: Study, tmp_path: Path) -> None:
    """Elsewhere nobody could tell what an earlier protocol's rows were; here a reader counts them."""
    before = contents(packed(done, tmp_path / "x"))
    with done.step_file(1, "a").open("ab") as file:
        file.write(b'{"torn": \n\0\0\0\n[1]\n{"item_id": 3}\n' + b"[" * 50_000 + b"\n")
    done.append(1, "a", None, [answer(done, ITEMS[0], step_key="0" * 16), answer(done, make_item(77))])
    with done.step_file(2, "a").open("ab") as file:
        file.write(b'{"item_id": "half a li')
    (done.logs / "odd name\n.log").write_text("x\n")
    (done.logs / "link.log").symlink_to("/etc/passwd")
    (done.logs / "empty.log").touch()
    assert contents(packed(done, tmp_path / "y")) == before
    assert "7 lines stay here" in run("pack", done.root, "--to", tmp_path / "y")[2]


def test_a_package_is_whole_while_rows_are_written(done: Study, tmp_path: Path) -> None:
    """Half of the writer's appends come as torn halves, closed by the next one, as a killed writer's are."""
    stop, path = threading.Event(), done.step_file(1, "b")
    line = (json.dumps(answer(done, ITEMS[13])) + "\n").encode() * 40

    def write() -> None:
        for _ in range(2_000):  # 60 MB at most, however slow the rest is
            if stop.wait(0.002):
                return
            with path.open("ab", buffering=0) as file:
                file.write(line[:1000])
                file.write(line[1000:])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            inside = contents(packed(done, tmp_path / "x"))
            facts = json.loads(inside[FACTS])
            data = inside["step1/b.jsonl"]
            assert data.endswith(b"}\n")
            assert facts["files"]["step1/b.jsonl"]["lines"] == data.count(b"\n")
            assert hashlib.sha256(data).hexdigest() == facts["files"]["step1/b.jsonl"]["sha256"]
    finally:
        stop.set()
        writer.join()


def test_the_last_whole_line_is_found_however_far_back(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for tail in (0, 5, (1 << 20) - 1, 1 << 20, 3_000_000):
        path.write_bytes(b"one\ntwo\n" + b"x" * tail)
        taken = snapshot(path, "x")
        assert (taken.bytes, taken.lines, taken.sha256) == (8, 2, hashlib.sha256(b"one\ntwo\n").hexdigest())
    path.write_bytes(b"x" * 3_000_000)
    assert snapshot(path, "x").bytes == 0
    with pytest.raises(StudyError, match="not readable"):
        snapshot(tmp_path / "gone", "x")


def test_a_full_disk_keeps_the_earlier_package(small_disk: Path, done: Study) -> None:
    made = pack_returns(done, small_disk)
    before = made.file.read_bytes()
    noise = [answer(done, item, at=os.urandom(40_000).hex()) for item in ITEMS]
    done.append(1, "a", None, noise)
    with pytest.raises(StudyError, match="the disk is full"):
        pack_returns(done, small_disk)
    assert made.file.read_bytes() == before
    assert [path.name for path in small_disk.iterdir()] == [made.file.name]


def test_without_a_pool_there_is_nothing_to_pack(study: Study) -> None:
    with pytest.raises(StudyError, match="no pool yet"):
        pack_returns(study)


def test_no_place_for_copies_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    monkeypatch.setenv("BENCHCHECK_SCRATCH", "/proc/nothing/here")
    with pytest.raises(StudyError, match="/proc/nothing/here: cannot make this folder"):
        pack_returns(study)
