import io
import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.errors import StudyError
from benchcheck.video.crew import WORKER
from benchcheck.video.making import draw
from benchcheck.video.worker import serve

SPEC = {"count": 4, "long_side": 64, "quality": 85, "threads": 1}


def lines(folder: Path, *tasks: dict) -> str:
    settings = {"job": "draw", "spec": SPEC, "folder": str(folder), "limit_s": 60}
    return "".join(json.dumps(line) + "\n" for line in (settings, *tasks))


def task(path: Path, frames_key: str = "k") -> dict:
    return {"key": "r::::m", "paths": [str(path)], "windows": {frames_key: [None, None]}, "folder": str(path.parent)}


def test_a_worker_says_hello_and_answers_each_task(clip: Callable[[str], Path], tmp_path: Path) -> None:
    answers = io.StringIO()
    serve(io.StringIO(lines(tmp_path, task(clip("cfr.mp4")), task(tmp_path / "gone.mp4", "g"))), answers)
    hello, first, second = map(json.loads, answers.getvalue().splitlines())
    assert "hello" in hello
    assert first["outcomes"][0]["status"] == "ready"
    assert second["outcomes"][0]["status"] == "missing"
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_study_that_cannot_be_written_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StudyError("the disk is full")

    monkeypatch.setattr(draw, "draw", full)
    answers = io.StringIO()
    serve(io.StringIO(lines(tmp_path, task(tmp_path / "a.mp4"))), answers)
    assert json.loads(answers.getvalue().splitlines()[1]) == {"stop": "the disk is full"}


def test_the_process_keeps_its_answers_apart_and_ends_with_its_input(
    clip: Callable[[str], Path], tmp_path: Path
) -> None:
    ended = subprocess.run(
        WORKER, input=lines(tmp_path, task(clip("cfr.mp4"))).encode(), capture_output=True, timeout=60, check=True
    )
    assert len(ended.stdout.splitlines()) == 2


def test_a_run_that_is_gone_is_no_error(clip: Callable[[str], Path], tmp_path: Path) -> None:
    with subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(lines(tmp_path).encode())
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(json.dumps(task(clip("cfr.mp4"))).encode() + b"\n")
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    assert (tmp_path / "k" / "frames.json").exists()
