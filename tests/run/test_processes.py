"""Worker processes end with whoever started them, and their words reach the log."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchcheck.errors import BackendError, StudyError
from benchcheck.run import processes
from benchcheck.run.processes import DRIVER, Worker, end_with_driver, run_workers
from served import all_gone
from studies import framed_study, make_items, rows_on_disk


def worker(program: str, log: Path | None = None, **environment: str) -> Worker:
    return Worker([sys.executable, "-c", program], environment, log)


def test_what_a_worker_writes_reaches_its_log_whole(tmp_path: Path) -> None:
    program = "import sys; [print(number, file=sys.stderr) for number in range(200)]"
    log = tmp_path / "logs" / "client.log"
    for _ in range(2):
        run_workers(1, [worker(program, log), worker("pass")], lambda *_: None)
    assert log.read_text().split() == [str(number) for number in range(200)] * 2


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(StudyError, match="logs"):
        run_workers(1, [worker("pass", tmp_path / "logs" / "client.log")], lambda *_: None)


def test_a_worker_gets_its_settings_as_flags_and_not_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS", "7")
    monkeypatch.setenv("OTHER", "8")
    told: list[tuple[int, int]] = []
    program = "import os; print(int('WORKERS' in os.environ), int(os.environ['OTHER'] + os.environ['OWN']), flush=True)"
    run_workers(1, [worker(program, OWN="9")], lambda *counts: told.append(counts))
    assert told == [(0, 89)]


def test_a_note_of_an_engine_is_passed_on_once_and_is_no_reason_for_an_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noting = "import sys; print('benchcheck: note: nothing is shared', file=sys.stderr)"
    log = tmp_path / "client.log"
    run_workers(1, [worker(noting, log), worker(noting)], lambda *_: None)
    assert caplog.messages == ["nothing is shared"]
    assert log.read_text() == "benchcheck: note: nothing is shared\n"
    dying = "import sys; print('benchcheck: it died', file=sys.stderr); " + noting + "; sys.exit(1)"
    with pytest.raises(BackendError, match=r"1 of 1 workers of step 1 ended early: it died$"):
        run_workers(1, [worker(dying)], lambda *_: None)


def test_what_a_watch_raises_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real = subprocess.Popen

    def start(*words: object, **settings: object) -> object:
        process = real(*words, **settings)  # type: ignore[call-overload]
        started.append(process.pid)
        return process

    monkeypatch.setattr(processes.subprocess, "Popen", start)
    looks = iter(range(10))

    def watch() -> None:
        if next(looks) == 2:
            raise BackendError("the server died")

    with pytest.raises(BackendError, match="the server died"):
        run_workers(1, [worker("import time; time.sleep(600)")] * 2, lambda *_: None, watch)
    assert len(started) == 2
    assert all_gone(started)


def test_a_worker_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.1)
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), 0, flush=True); "
    heard: list[int] = []

    def hear(number: int, _: int) -> None:
        heard.append(number)
        raise BackendError("enough")

    with pytest.raises(BackendError, match="enough"):
        run_workers(1, [worker(deaf + "time.sleep(600)")], hear)
    assert len(heard) == 1
    assert all_gone(heard)


def test_ctrl_c_in_a_terminal_reaches_the_driver_alone() -> None:
    """Its workers would be stopped twice: by the terminal, and by the driver in the middle of their last write."""
    sessions: list[int] = []
    run_workers(1, [worker("import os; print(os.getsid(0), 0)")], lambda session, _: sessions.append(session))
    assert sessions
    assert sessions != [os.getsid(0)]


def test_a_worker_that_cannot_be_started_ends_those_that_were() -> None:
    missing = Worker(["/nowhere/program"], {})
    with pytest.raises(FileNotFoundError):
        run_workers(1, [worker("import time; time.sleep(600)"), missing], lambda *_: None)


PARENT = """
import os, subprocess, sys, time
environment = os.environ | {"BENCHCHECK_DRIVER": str(os.getpid())}
command = [sys.executable, "-m", "benchcheck", "work", sys.argv[1], "--step", "1", "--backend", "scripted"]
child = subprocess.Popen([*command, "--tasks", "1", "--task", "0"], env=environment, stdout=subprocess.PIPE)
print(child.pid, flush=True)
child.stdout.readline()
print("asked", flush=True)
time.sleep(600)
"""


def test_a_worker_whose_driver_is_killed_writes_what_it_has_and_ends(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=400), large="scripted?slow=0.01", protocol={"steps": [1]})
    command = [sys.executable, "-c", PARENT, str(study.root)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "asked\n"
        time.sleep(0.3)
    finally:
        parent.kill()
        parent.communicate()
    assert all_gone([child]), "it does not wait for its next line of progress, which may be minutes away"
    assert 0 < len(rows_on_disk(study, 1)) < 400


def test_a_worker_that_comes_too_late_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "from benchcheck.run.processes import end_with_driver as e; import os; e(os.environ); print('begun')"
    environment = os.environ | {DRIVER: "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == -signal.SIGINT or "KeyboardInterrupt" in done.stderr


@pytest.mark.parametrize("environment", [{}, {DRIVER: ""}, {DRIVER: "me"}])
def test_a_worker_that_nobody_started_is_its_own_master(environment: dict[str, str]) -> None:
    end_with_driver(environment)
