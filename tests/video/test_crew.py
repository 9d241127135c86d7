import os
import sys
import time
from contextlib import closing

import pytest

from benchcheck.errors import RunError
from benchcheck.pipes import Death
from benchcheck.video.crew import how_it_died, work_through

ECHO = (
    sys.executable,
    "-c",
    """
import json, os, sys
settings = json.loads(sys.stdin.readline())
print(json.dumps({"hello": os.getpid()}), flush=True)
for line in sys.stdin:
    task = json.loads(line)
    if "signal" in task:
        os.kill(os.getpid(), task["signal"])
    if "exit" in task:
        sys.exit(task["exit"])
    print(json.dumps({"echo": task, "pid": os.getpid()}), flush=True)
""",
)


def through(tasks: list[dict], workers: int = 2) -> dict[int, object]:
    pairs = ((number, task) for number, task in enumerate(tasks))
    return dict(work_through(pairs, {"settings": 1}, workers, ECHO))


def test_every_task_is_answered_once() -> None:
    answers = through([{"n": n} for n in range(20)])
    assert {number: answer["echo"]["n"] for number, answer in answers.items()} == {n: n for n in range(20)}


def test_a_worker_that_dies_fails_its_task_only_and_is_replaced() -> None:
    tasks: list[dict] = [
        {"n": 0},
        {"signal": 11},
        {"n": 2},
        {"exit": "out of cheese"},
        {"n": 4},
        {"signal": 9},
        {"n": 6},
    ]
    answers = through(tasks, workers=1)
    assert sorted(answers) == list(range(7))
    deaths = {number: how_it_died(answer) for number, answer in answers.items() if isinstance(answer, Death)}
    assert list(deaths) == [1, 3, 5]
    assert "SIGSEGV" in deaths[1]
    assert "out of cheese" in deaths[3]
    assert "SIGKILL (often: out of memory)" in deaths[5]


def test_its_own_alarm_is_a_time_out() -> None:
    [death] = [answer for answer in through([{"signal": 14}], 1).values() if isinstance(answer, Death)]
    assert death.timed_out


def test_a_worker_that_cannot_start_is_one_line() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('no module named av')")
    with pytest.raises(RunError, match=r"cannot start: .* no module named av"):
        list(work_through([(0, {})], {}, 2, command))


def test_no_process_is_left_when_the_run_is_broken_off() -> None:
    with closing(work_through(((n, {"n": n}) for n in range(100)), {}, 2, ECHO)) as answers:
        pids = {next(answers)[1]["pid"] for _ in range(6)}
    deadline = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{pid}") for pid in pids):
        assert time.monotonic() < deadline
