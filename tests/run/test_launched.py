"""Screening with servers that the run starts: one worker a server, servers that die, what would run."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import BackendError, UsageError
from benchcheck.run import launched
from benchcheck.run.driver import screen
from benchcheck.run.launched import Launched, plan_lines
from benchcheck.run.local import Asked
from benchcheck.run.plan import survey
from benchcheck.run.shard import shard_flags, shard_units
from benchcheck.screen.steps import LADDER
from benchcheck.settings import EngineSettings
from benchcheck.study import Study
from served import FAKE, alive, all_gone, free_port, kill_left, read_pids, served_study
from studies import Heard, make_items, rows_on_disk

Run = Any


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the fake servers' processes; none may be left when the test ends."""
    path = tmp_path / "pids"
    monkeypatch.setenv("FAKE_VLLM_PIDS", str(path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("FAKE_VLLM", raising=False)
    yield path
    assert not kill_left(path)


def asked(count: int = 1, **settings: Any) -> Asked:
    return Asked("server", EngineSettings(vllm=FAKE, first_port=free_port(count), **settings))


def test_a_step_is_asked_of_a_server_a_gpu(tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,5")
    study = served_study(tmp_path / "study", make_items(a=12, b=4), protocol={"steps": [1]})
    said: list[str] = []
    executor = Launched(study, asked(2), say=said.append)
    assert executor.workers == 2
    try:
        screen(study, executor, heard := Heard())
        assert heard.items == 16
        assert len(read_pids(pids)) == 2
    finally:
        executor.close()
    executor.close()
    assert sorted(row["item_id"] for row in rows_on_disk(study, 1)) == sorted(i.item_id for i in make_items(a=12, b=4))
    assert {row["engine"]["name"] for row in rows_on_disk(study, 1)} == {"server"}
    logs = sorted(path.name for path in study.logs.glob("*_s1_*"))
    assert logs == ["client_s1_gpu0.log", "client_s1_gpu1.log", "vllm_s1_gpu0.log", "vllm_s1_gpu1.log"]
    assert "on GPU 5\n" in (study.logs / "vllm_s1_gpu1.log").read_text()
    ports = {row["engine"]["device"] for row in rows_on_disk(study, 1)}
    assert len(ports) == 2, "each worker has a server of its own"
    assert said[-1] == ""
    assert all_gone(read_pids(pids))


def test_servers_stay_while_role_and_frames_stay(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=6), protocol={"steps": [1, 4, 5]})
    executor = Launched(study, asked())
    try:
        for number, servers in ((1, 1), (4, 1), (5, 2)):
            executor.run(
                LADDER[number], shard_units(survey(study).pool, (0, 1), 1), frozenset(["a_1"]), lambda *_: None
            )
            assert len(read_pids(pids)) == servers
            assert alive(read_pids(pids)[-1])
        assert all_gone(read_pids(pids)[:1])
    finally:
        executor.close()
    assert [path.name for path in sorted(study.logs.glob("vllm_*"))] == ["vllm_s1_gpu0.log", "vllm_s5_gpu0.log"]


@pytest.mark.long
def test_a_server_that_dies_in_a_step_is_started_again(tmp_path: Path, pids: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FAKE_VLLM", "die-after=60")
    study = served_study(tmp_path / "study", make_items(a=30), protocol={"steps": [1]})
    warned: list[str] = []
    executor = Launched(study, asked(in_flight=2), warn=warned.append)
    try:
        screen(study, executor, Heard())
    finally:
        executor.close()
    assert len(read_pids(pids)) in (2, 3)
    assert re.search(
        r"^the server on the CPU ended, exit code 3: .*illegal memory.*Starting again \(1 of 2\)$", warned[0]
    )
    rows = rows_on_disk(study, 1)
    assert {row["item_id"] for row in rows} == {item.item_id for item in make_items(a=30)}
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.long
def test_a_server_that_dies_again_and_again_ends_the_run_with_its_reason(
    tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_VLLM", "die-after=12")
    study = served_study(tmp_path / "study", make_items(a=60), protocol={"steps": [1]})
    executor = Launched(study, asked(in_flight=1))
    told = r"^the server on the CPU ended, exit code 3: CUDA error.*started again 2 times in this run\. What was"
    with pytest.raises(BackendError, match=told), contextlib.closing(executor):
        screen(study, executor, Heard())
    assert len(read_pids(pids)) == 3
    assert all_gone(read_pids(pids))
    assert {row["status"] for row in rows_on_disk(study, 1)} == {"ok"}, "a server that is gone is no item's error"
    before = len(rows_on_disk(study, 1))
    assert 0 < before < 60
    monkeypatch.setenv("FAKE_VLLM", "")
    executor = Launched(study, asked())
    try:
        screen(study, executor, Heard())
    finally:
        executor.close()
    assert sorted(row["item_id"] for row in rows_on_disk(study, 1)) == sorted(i.item_id for i in make_items(a=60))


def test_what_else_stops_a_worker_is_no_server_s_fault(
    tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched, "_DYING_S", 0.0)
    study = served_study(tmp_path / "study", make_items(a=3), protocol={"steps": [1]})
    executor = Launched(study, asked(api_key="NO_SUCH_VARIABLE"))
    told = r"^1 of 1 workers of step 1 ended early: .*NO_SUCH_VARIABLE"
    with pytest.raises(UsageError, match=told), contextlib.closing(executor):
        screen(study, executor, Heard())
    assert "NO_SUCH_VARIABLE" in (study.logs / "client_s1_gpu0.log").read_text()


def test_what_is_refused_before_anything_starts(tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = served_study(tmp_path / "study", make_items(a=3))
    with pytest.raises(UsageError, match=r"--launch starts servers, but --engine is scripted\. Cure: --engine server"):
        Launched(study, Asked("scripted"))
    with pytest.raises(UsageError, match=r"gpus = 2 .*Allowed: 0 \(all\) to 1 here"):
        Launched(study, asked(gpus=2))
    with pytest.raises(UsageError, match=r"--shard 9/10 would need port 65544\. Cure: a lower --port"):
        Launched(study, Asked("server", EngineSettings(first_port=65_535)), shard=(9, 10))
    assert (
        Launched(study, Asked("server", EngineSettings(first_port=9000)), shard=(3, 4)).asked.settings.first_port
        == 9003
    )


def test_what_would_run(tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    study = served_study(tmp_path / "study", make_items(a=5, b=2), protocol={"steps": [1, 3]})
    executor, state = Launched(study, asked(2)), survey(study)
    units = shard_units(state.pool, (0, 1), 2)
    lines = list(plan_lines(state, shard_flags(state.pool, (0, 1)), study.config.steps, units, executor))
    port = executor.asked.settings.first_port
    assert lines[0] == "step 1 blind:"
    assert lines[1].startswith(f"  server 0: GPU 0, http://127.0.0.1:{port}/v1: {FAKE} serve {study.root}/models/large")
    assert lines[2].startswith(f"  server 1: GPU 1, http://127.0.0.1:{port + 1}/v1: ")
    assert lines[3:6] == ["  worker 0: a 1 of 2 (3)", "  worker 1: a 2 of 2 (2), b 1 of 1 (2)", "step 3 v32_2b:"]
    assert '--limit-mm-per-prompt \'{"image": 4, "video": 0}\'' in lines[6]
    only = list(plan_lines(state, shard_flags(state.pool, (0, 1)), [LADDER[3]], units, None))
    assert only == ["step 3 v32_2b:", *lines[3:5]]
    assert read_pids(pids) == []


# The commands.


def command(study: Study, *words: str, script: str = "") -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "benchcheck", words[0], str(study.root), *words[1:]]
    environment = os.environ | {"FAKE_VLLM": script}
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return process.returncode, out, err


def flags(port: int | None = None) -> tuple[str, ...]:
    return ("--engine", "server", "--launch", "--vllm", FAKE, "--port", str(port or free_port()))


def test_screen_with_launch_says_what_remains_and_leaves_nothing(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=8), protocol={"steps": [2]})
    code, out, err = ended(command(study, "screen", *flags()))
    assert code == 0, err
    assert out.endswith("REMAINING_TOTAL=0\n")
    assert "waiting for the server on the CPU (0 s): " in err
    assert all_gone(read_pids(pids))


def test_plan_only_starts_nothing(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=8), protocol={"steps": [1, 2]})
    code, out, _ = ended(command(study, "screen", *flags(), "--plan-only", "--in-flight", "3", "--max-sequences", "7"))
    assert code == 0
    assert " --max-num-seqs 7 " in out
    assert out.splitlines()[-1] == "REMAINING_TOTAL=16"
    assert read_pids(pids) == []
    assert not study.logs.exists()


def test_the_environment_of_the_original_package(tmp_path: Path, pids: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = served_study(tmp_path / "study", make_items(a=2), protocol={"steps": [1]})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    for name, value in {"NGPU": "2", "PORT0": "9100", "GPU_UTIL": "0.5", "MAX_SEQS": "9", "VLLM": FAKE}.items():
        monkeypatch.setenv(name, value)
    code, out, _ = ended(command(study, "screen", "--engine", "server", "--launch", "--plan-only"))
    assert code == 0
    servers = [line for line in out.splitlines() if line.startswith("  server ")]
    assert [re.search(r"--port (\d+)$", line)[1] for line in servers] == ["9100", "9101"]  # type: ignore[index]
    assert all("--gpu-memory-utilization 0.5 --max-num-seqs 9 " in line for line in servers)
    monkeypatch.delenv("VLLM")
    monkeypatch.setenv("PY", sys.executable)
    _, out, _ = ended(command(study, "screen", "--engine", "server", "--launch", "--plan-only", "--port", "9200"))
    assert f": {sys.executable} -m vllm.entrypoints.cli.main serve " in out
    assert "--port 9200\n" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--launch",), "--launch starts servers, but --engine is transformers. Cure: --engine server"),
        (("--launch", "--engine", "server", "--workers", "2"), "--workers 2: with --launch each server"),
        (
            ("--launch", "--engine", "server", "--endpoint", "http://a:1/v1"),
            "--launch starts servers, --endpoint names",
        ),
        (("--shard", "auto", "--retry-failed"), "--retry-failed is for a run of the whole study"),
        (("--shard", "2/2"), "--shard 2/2: Allowed: auto"),
        (("--executor", "cloud"), "--executor cloud does not exist. Allowed: local, slurm, ray"),
        (("--launch", "--engine", "server", "--vllm", "/nowhere/vllm"), "vllm = '/nowhere/vllm': no such command"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, pids: Path, words: tuple[str, ...], told: str) -> None:
    study = served_study(tmp_path / "study", make_items(a=2))
    code, out, err = ended(command(study, "screen", *words))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"benchcheck: {told}")


def test_a_server_that_dies_at_start_is_one_line_and_exit_code_1(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=2))
    code, _, err = ended(command(study, "screen", *flags(), script="engine die=oom"))
    assert code == 1
    assert err.splitlines()[-1].startswith(
        "benchcheck: the server on the CPU ended, exit code 1: out of memory. Cure: "
    )
    assert "Traceback" not in err


def test_two_runs_on_one_study_are_refused_with_host_and_process(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=2))
    first = command(study, "screen", *flags(), script="mute")
    try:
        wait_for_pids(first, pids, 1)
        for words in ((), ("--shard", "0/2")):
            code, _, err = ended(command(study, "screen", "--backend", "scripted", *words))
            assert code == 2
            assert f"another run is at work on this study (process {first.pid} on " in err
    finally:
        first.send_signal(signal.SIGINT)
        code, _, err = ended(first)
    assert code == 130
    assert err.splitlines()[-1].startswith("benchcheck: stopped.")
    assert all_gone(read_pids(pids))


def wait_for_pids(process: "subprocess.Popen[str]", pids: Path, count: int) -> None:
    ready = threading.Event()
    for _ in range(3000):
        if len(read_pids(pids)) >= count:
            return
        assert process.poll() is None, process.communicate()[1]
        ready.wait(0.02)
    pytest.fail("no server was started")


def test_serve_prints_the_endpoints_and_serves_until_it_is_stopped(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=4), protocol={"steps": [1, 4]})
    port = free_port()
    process = command(study, "serve", "--step", "4", "--vllm", FAKE, "--port", str(port), script="engine")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"http://127.0.0.1:{port}/v1\n"
        one = ("--engine", "server", "--endpoint", f"http://127.0.0.1:{port}/v1", "--step", "1")
        code, out, err = ended(command(study, "screen", *one))
        assert code == 0, err
        assert out.endswith("REMAINING_TOTAL=0\n")
    finally:
        process.send_signal(signal.SIGINT)
        code, _, err = ended(process)
    assert code == 0, err
    assert f"--engine server --step 4 --endpoint http://127.0.0.1:{port}/v1. Ctrl-C ends the servers" in err
    assert all_gone(read_pids(pids))


def test_serve_ends_when_a_server_does(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=4))
    process = command(study, "serve", "--step", "1", "--vllm", FAKE, "--port", str(free_port()))
    try:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(read_pids(pids)[0], signal.SIGKILL)
    finally:
        code, _, err = ended(process)
    assert code == 1
    assert err.splitlines()[-1].startswith("benchcheck: the server on the CPU ended, killed by signal 9: ")


def test_serve_needs_a_step_of_the_study(tmp_path: Path, pids: Path) -> None:
    study = served_study(tmp_path / "study", make_items(a=4), protocol={"steps": [1, 4]})
    for step in ("0", "2", "9"):
        code, _, err = ended(command(study, "serve", "--step", step, "--vllm", FAKE))
        assert code == 2
        assert "Allowed: 1, 4" in err
