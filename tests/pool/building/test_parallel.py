"""Many processes build the pool that one builds: the same bytes, the same error, and none of them left behind."""

import dataclasses
import gzip
import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import PoolSource
from benchcheck.errors import InputError, RunError
from benchcheck.pool.building import crew, tasks, worker
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.building.tasks import tasks_of
from benchcheck.pool.joins import Partners
from benchcheck.pool.reading.readers import read_records
from benchcheck.pool.specs import Join, load_spec
from benchcheck.study import Study

MakeStudy = Callable[..., Study]
COUNT = 600


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a hundred rows are long ones, and a task is some 20 rows."""
    monkeypatch.setattr(tasks, "BLOCK", 4_000)
    monkeypatch.setattr(tasks, "RECORDS", 50)
    monkeypatch.setattr(crew, "WORTH", 1_000)


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A record; some are wrong in a row's way."""
    rng = random.Random(number)
    options = rng.sample(["red", "green", "blue", "grey", "pink", "none of these"], rng.choice([2, 3, 4, 4]))
    return {
        "id": f"s{number}",
        "question": f"Which colour is number {number % 400}?" if number % 50 else "",
        "options": options,
        "answer": number % len(options) if number % 7 else "F",
        "video": f"{number % 30}.mp4",
    } | changes


def lines(numbers: range) -> list[str]:
    """Lines, with blank ones among them."""
    return [json.dumps(row(number)) + "\n" * (1 + (number % 11 == 0)) for number in numbers]


def write_kinds(folder: Path) -> list[PoolSource]:
    """Benchmarks of every kind of file; those in JSON lines are cut, the others are read in the build's process."""
    (folder / "a.jsonl").write_text("".join(lines(range(COUNT))), encoding="utf-8")
    (folder / "b.jsonl").write_text("".join(lines(range(50, 250))).rstrip("\n"), encoding="utf-8")
    (folder / "c.json").write_text(json.dumps([row(number) for number in range(300)]), encoding="utf-8")
    (folder / "d.jsonl").write_text(
        "".join(json.dumps({"video": f"{n}.mp4", "qa": [row(n), row(n + 1)]}) + "\n" for n in range(200)),
        encoding="utf-8",
    )
    (folder / "nested.toml").write_text(
        'bench = "nested"\nid = "{id}_{_row}"\nquestion = "question"\nunnest = ["each:qa"]\n[options]\nkind = "list"\n'
        'field = "options"\nshuffle = true\n[gold]\nkind = "auto"\nfield = "answer"\n[video]\nmember = "video"\n'
        "[where]\nvideo = [" + ", ".join(f'"{n}.mp4"' for n in range(0, 30, 2)) + "]\n",
        encoding="utf-8",
    )
    return [
        PoolSource(spec="generic", files=("b.jsonl", "a.jsonl"), bench="two"),
        PoolSource(spec="generic", files=("c.json",)),
        PoolSource(spec="nested.toml", files=("d.jsonl",)),
    ]


def results(study: Study) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in study.results.iterdir()}


@pytest.mark.usefixtures("small_blocks")
def test_what_is_written_does_not_depend_on_the_number_of_processes(make_study: MakeStudy, tmp_path: Path) -> None:
    study = make_study(*write_kinds(tmp_path))
    alone = build_pool(study, workers=1)
    written = results(study)
    for workers in (2, 3):
        study.pool_file.unlink()
        assert build_pool(study, workers=workers) == alone
        assert results(study) == written
    two, nested = alone.benches[0], alone.benches[2]
    assert two.rows == COUNT + 200
    assert set(two.issue_counts) >= {"repeated_item", "other_gold", "gold_out_of_range", "empty_question"}
    assert nested.left_out > 0
    assert nested.rows + nested.left_out == 400


@pytest.mark.usefixtures("small_blocks")
def test_long_files_are_cut_and_the_cuts_change_nothing(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a build that reads every file from its beginning to its end."""
    study = make_study(*write_kinds(tmp_path))
    cut = [task.size for task in tasks_of([tmp_path / "a.jsonl"], load_spec("generic"), None)]
    assert len(cut) > 10
    assert all(cut)
    summary = build_pool(study, workers=2)
    table = study.item_table()
    monkeypatch.setattr(tasks, "BLOCK", 1 << 30)
    assert build_pool(study, workers=1) == summary
    assert study.item_table().equals(table)


@pytest.mark.usefixtures("small_blocks")
def test_stretches_hold_the_records_of_the_whole_file(tmp_path: Path) -> None:
    path, spec = tmp_path / "a.jsonl", load_spec("generic")
    path.write_text("".join(lines(range(COUNT))), encoding="utf-8")
    whole = list(read_records(path, spec.layout))
    found, before = [], 0
    for task in tasks_of([path], spec, None):
        records, fault = task.read(spec.layout)
        assert fault is None
        found += [(record.values, record.place, record.row + before) for record in records]
        before += len(records)
    assert found == [(record.values, record.place, record.row) for record in whole]


@pytest.mark.parametrize(
    ("name", "text", "cut"),
    [
        ("a.jsonl", '{"a": 1}\n', True),
        ("a.ndjson", '{"a": 1}\n', True),
        ("a.jsonl", '{"a": 1} \r\n', True),
        ("a.jsonl", '\ufeff{"a": 1}\n', False),
        ("a.jsonl", '["a"]\n', False),
        ("a.jsonl", '{"a": 1}\r{"a": 2}\n', False),
        ("a.jsonl", '{"a":\n', False),
        ("a.json", '{"a": 1}\n', False),
        ("a.jsonl.gz", '{"a": 1}\n', False),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_only_json_lines_of_objects_are_cut(tmp_path: Path, name: str, text: str, cut: bool) -> None:
    path = tmp_path / name
    path.write_bytes(text.encode() * 2_000)
    first = next(tasks_of([path], load_spec("generic"), None))
    assert bool(first.size) is cut


def failing(folder: Path, fault: str) -> tuple[PoolSource, str]:
    """A benchmark that goes wrong at line 301, and again later in another way; and what is said of it."""
    some = [json.dumps(row(number)) + "\n" for number in range(COUNT)]
    some[500] = "{\n"
    wrong = {"not json": "{'a': 1}\n", "no record": "[1]\n", "no id": json.dumps(row(300, id=" ")) + "\n"}
    some[300] = wrong[fault]
    (folder / "a.jsonl").write_text("".join(some), encoding="utf-8")
    (folder / "own.toml").write_text(
        'item_id = "id"\nquestion = "question"\n[options]\nkind = "list"\nfield = "options"\n'
        '[gold]\nkind = "auto"\nfield = "answer"\n',
        encoding="utf-8",
    )
    said = {"not json": "single quotes", "no record": "a record with named fields", "no id": "no item id"}
    return PoolSource(spec="own.toml", files=("a.jsonl",)), f"a.jsonl: line 301: {said[fault]}"


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("fault", ["not json", "no record", "no id"])
@pytest.mark.usefixtures("small_blocks")
def test_the_first_fault_of_the_file_is_told(make_study: MakeStudy, tmp_path: Path, fault: str, workers: int) -> None:
    source, said = failing(tmp_path, fault)
    study = make_study(source)
    with pytest.raises(InputError) as caught:
        build_pool(study, workers=workers)
    message = str(caught.value).replace("line 301 is", "line 301:")
    assert all(part in message for part in said.split(": ")), message
    assert list(study.results.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.usefixtures("small_blocks")
def test_an_id_that_is_taken_names_both_rows_of_a_long_file(
    make_study: MakeStudy, tmp_path: Path, workers: int
) -> None:
    source, _ = failing(tmp_path, "no id")
    some = [json.dumps(row(number, id=f"s{number % 450}")) + "\n" for number in range(COUNT)]
    (tmp_path / "a.jsonl").write_text("".join(some), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 451: item id 's0' is taken by .*a\.jsonl: line 1\."):
        build_pool(make_study(source), workers=workers)


@pytest.mark.usefixtures("small_blocks")
def test_a_second_file_is_joined_before_records_are_dealt_out(make_study: MakeStudy, tmp_path: Path) -> None:
    some = [row(number) for number in range(COUNT)]
    keys = [{"id": one["id"], "key": one.pop("answer")} for one in some[:-1]] + [{"id": "other", "key": 0}]
    del some[-1]["answer"]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in some), encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "k.json").write_text(json.dumps(keys), encoding="utf-8")
    (tmp_path / "two.toml").write_text(
        'bench = "two"\nid = "id"\nquestion = "question"\n[join]\nfile = "answers.json"\non = "id"\n[options]\n'
        'kind = "list"\nfield = "options"\n[gold]\nkind = "auto"\nfield = "key"\n[video]\nmember = "video"\n',
        encoding="utf-8",
    )
    study = make_study(PoolSource(spec="two.toml", files=("q.jsonl",), join="elsewhere/k.json"))
    summary = build_pool(study, workers=2)
    assert summary.benches[0].issue_counts["no_join_row"] == 1
    assert summary.benches[0].join_left == 1
    assert any("1 of the joined file's records belong to none of the first" in line for line in summary.warnings)
    assert list(summary.benches[0].files) == ["q.jsonl", "elsewhere/k.json"]


@pytest.mark.usefixtures("small_blocks")
def test_a_killed_worker_is_one_line(make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(*write_kinds(tmp_path))
    kill = "import os, sys; print('no memory', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    monkeypatch.setattr(crew, "WORKER", (sys.executable, "-c", kill))
    with pytest.raises(RunError, match=r"ended by SIGKILL .*no memory\. Nothing was written\. Cure: .* --workers 1"):
        build_pool(study, workers=2)
    monkeypatch.setattr(crew, "WORKER", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(RunError, match=r"a worker of the pool build ended with code 3\. Nothing"):
        build_pool(study, workers=2)
    assert list(study.results.iterdir()) == []


@pytest.mark.usefixtures("small_blocks")
def test_a_bug_in_a_worker_keeps_its_traceback(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(*write_kinds(tmp_path))
    code = (
        "from benchcheck.pool.building import outcomes, worker\n"
        "def broken(*_): raise KeyError('a bug')\n"
        "outcomes.map_record = broken\nworker.main()\n"
    )
    monkeypatch.setattr(crew, "WORKER", (sys.executable, "-c", code))
    with pytest.raises(RuntimeError, match=r"KeyError\('a bug'\)[\s\S]*in broken"):
        build_pool(study, workers=2)


def test_cores_and_the_size_of_a_crew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= crew.cores() <= (os.cpu_count() or 1)
    monkeypatch.setattr(crew, "cores", lambda: 200)
    assert crew.Crew().size == crew.MOST
    assert crew.Crew(40).size == 40


def test_small_files_start_no_process(make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "WORKER", (sys.executable, "-c", "raise SystemExit(3)"))
    assert build_pool(make_study(*write_kinds(tmp_path)), workers=2).rows > COUNT


@pytest.mark.usefixtures("small_blocks")
def test_packed_files_are_long_for_a_tenth_of_the_bytes(
    make_study: MakeStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "WORKER", (sys.executable, "-c", "raise SystemExit(3)"))
    study = make_study(PoolSource(spec="generic", files=("a.jsonl.gz",), bench="mine"))
    packed = gzip.compress("".join(lines(range(COUNT))).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(packed)
    monkeypatch.setattr(crew, "WORTH", len(packed) * 11)
    assert build_pool(study, workers=2).rows == COUNT
    monkeypatch.setattr(crew, "WORTH", len(packed) * 9)
    with pytest.raises(RunError, match="ended with code 3"):
        build_pool(study, workers=2)


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(holds: Callable[[], Any]) -> Any:
    """What holds in the end; it is awaited, never timed."""
    until = time.monotonic() + 60
    while not (found := holds()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return found


@pytest.fixture
def long_build(make_study: MakeStudy, tmp_path: Path) -> Iterator[tuple[Study, "subprocess.Popen[bytes]"]]:
    """A build with two workers that is in the middle of its work, over a pool that is there."""
    study = make_study(PoolSource(spec="generic", files=("a.jsonl",)))
    (tmp_path / "a.jsonl").write_text("".join(lines(range(10))), encoding="utf-8")
    build_pool(study)
    with (tmp_path / "a.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(lines(range(60_000)))
    models = '[models.8b]\nmodel = "none"\n[models.2b]\nmodel = "none"\n'
    (tmp_path / "benchcheck.toml").write_text(
        f'study_version = 1\n{models}[[pool]]\nspec = "generic"\nfiles = ["a.jsonl"]\n', encoding="utf-8"
    )
    command = [sys.executable, "-m", "benchcheck", "pool", "build", str(tmp_path), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: any(one.stat().st_size for one in study.results.glob(".pool_items_base*.tmp")))
        yield study, process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_ended_leaves_the_old_pair_and_no_process(
    long_build: tuple[Study, "subprocess.Popen[bytes]"], number: signal.Signals
) -> None:
    study, process = long_build
    workers = wait_for(lambda: len(found := children_of(process.pid)) == 2 and found)
    before = {path.name: path.read_bytes() for path in study.results.iterdir() if not path.name.startswith(".")}
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or b"stopped. What was written stays" in said
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    left = {path.name: path.read_bytes() for path in study.results.iterdir() if not path.name.startswith(".")}
    assert left == before
    assert len(study.items()) == 10
    assert build_pool(study).rows == 60_000


@pytest.mark.usefixtures("small_blocks")
def test_a_long_file_with_a_second_one_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(lines(range(COUNT))), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("".join(lines(range(COUNT))), encoding="utf-8")
    spec = load_spec("generic")
    dealt = list(tasks_of([tmp_path / "a.jsonl"], spec, Partners(Join(file="b.jsonl", on="id"))))
    assert [len(task.here) for task in dealt] == [50] * (COUNT // 50)


def spoken(*messages: Any) -> io.TextIOWrapper:
    """What a build says to a worker: the settings, then pickles with their lengths."""
    said = io.BytesIO(b"{}\n")
    said.seek(0, io.SEEK_END)
    for message in messages:
        data = pickle.dumps(message)
        said.write(json.dumps({"bytes": len(data)}).encode() + b"\n" + data)
    said.seek(0)
    return io.TextIOWrapper(said)


def heard(answers: io.TextIOWrapper) -> list[Any]:
    """What a worker answered."""
    said, found = io.BytesIO(answers.buffer.getvalue()), []  # type: ignore[attr-defined]
    while line := said.readline():
        found.append(pickle.loads(said.read(json.loads(line)["bytes"])))
    return found


def test_a_worker_answers_until_its_input_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = dataclasses.replace(load_spec("generic"), bench="mine")
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row(number)) + "\n" for number in range(3)), encoding="utf-8")
    task = tasks.Task(path, 0, path.stat().st_size)
    fault = tasks.Task(path, fault=InputError("a fault"))
    answers = io.TextIOWrapper(io.BytesIO())
    worker.serve(spoken((spec, task), (7, 2), (spec, fault), (10, 5), (spec, task)), answers)
    three, outcome, none, error, again = heard(answers)
    assert (three, none, again) == (3, 0, 3)
    assert outcome.table.column("item_id").to_pylist() == ["mine_7", "mine_8", "mine_9"]
    assert outcome.trace.places == [f"{path}: line {number}" for number in (1, 2, 3)]
    assert (type(error), str(error)) == (InputError, "a fault")
    monkeypatch.setattr("benchcheck.pool.building.outcomes.map_record", None)
    answers = io.TextIOWrapper(io.BytesIO())
    worker.serve(spoken((spec, task), (0, 0)), answers)
    assert "TypeError" in str(heard(answers)[1])


def test_a_file_that_is_gone_or_closed_is_a_fault_of_its_task(tmp_path: Path) -> None:
    spec, path = load_spec("generic"), tmp_path / "gone.jsonl"
    records, fault = tasks.Task(path, 0, 10).read(spec.layout)
    assert records == []
    assert "not readable: No such file" in str(fault)
    (task,) = tasks_of([path], spec, None)
    assert task.fault is not None


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_vanishes_while_it_is_cut_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(lines(range(COUNT))), encoding="utf-8")
    dealt = tasks_of([path], load_spec("generic"), None)
    opened, calls = Path.open, []

    def closing(self: Path, *args: Any, **settings: Any) -> Any:
        calls.append(self)
        if len(calls) > 1:
            raise OSError(5, os.strerror(5))
        return opened(self, *args, **settings)

    monkeypatch.setattr(Path, "open", closing)
    (task,) = dealt
    assert "not readable: Input/output error" in str(task.fault)
