"""One run at a time on a study; tasks of an array together."""

import contextlib
import errno
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import StudyError, UsageError
from benchcheck.run import lock
from benchcheck.run.driver import run_study
from benchcheck.run.lock import LOCK_NAME, check_writable, run_lock
from benchcheck.study import Study
from studies import framed_study, make_items, make_study

HOLDING = """
import sys, time
from benchcheck.run.lock import run_lock
from benchcheck.study import Study
with run_lock(Study.open(sys.argv[1]), sys.argv[2] == "shared"):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def held_elsewhere(study: Study, how: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the study's lock."""
    command = [sys.executable, "-c", HOLDING, str(study.root), how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("theirs", "ours"), [("alone", False), ("alone", True), ("shared", False)])
def test_a_second_run_is_refused_with_the_first_one_s_host_and_process(study: Study, theirs: str, ours: bool) -> None:
    with held_elsewhere(study, theirs) as process:
        told = (
            rf"^{re.escape(str(study.root))}: another run is at work on this study \(process {process.pid} on "
            rf"{re.escape(platform.node())}, since 20\S+: benchcheck .*\)\. Cure: wait for it or end it"
        )
        with pytest.raises(UsageError, match=told) as raised, run_lock(study, shared=ours):
            pytest.fail("refused")
        assert raised.value.exit_code == 2


def test_tasks_of_an_array_run_together(study: Study) -> None:
    with held_elsewhere(study, "shared"), run_lock(study, shared=True):
        assert json.loads((study.logs / LOCK_NAME).read_text())["pid"] == os.getpid()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_is_free_when_its_holder_is_gone(study: Study, sent: signal.Signals) -> None:
    with held_elsewhere(study, "alone") as process:
        process.send_signal(sent)
        process.wait()
        with run_lock(study):
            assert json.loads((study.logs / LOCK_NAME).read_text())["pid"] == os.getpid()
    with run_lock(study):
        pass


def test_a_child_made_by_fork_does_not_keep_it(study: Study) -> None:
    reading, writing = os.pipe()
    with run_lock(study):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    with run_lock(study):
        os.write(writing, b"x")
        os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"host": "a"}'])
def test_a_lock_that_nobody_signed(study: Study, text: str) -> None:
    with held_elsewhere(study, "alone"):
        (study.logs / LOCK_NAME).write_text(text)
        with pytest.raises(UsageError, match="a process that has not signed yet"), run_lock(study):
            pass


def test_a_file_system_that_cannot_lock_is_a_warning(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    warned: list[str] = []
    with run_lock(study, warn=warned.append):
        pass
    (told,) = warned
    assert told.startswith(f"{study.logs / LOCK_NAME}: this file system cannot lock (No locks available): start no")


def test_what_goes_wrong_inside_is_not_the_lock_s(study: Study) -> None:
    with pytest.raises(OSError, match="elsewhere"), run_lock(study):
        raise OSError(errno.ENOSPC, "elsewhere")


def test_nothing_is_left_of_looking_whether_a_study_can_be_written(study: Study) -> None:
    check_writable(study)
    assert [path.name for folder in (study.results, study.logs) for path in folder.iterdir()] == []


def test_a_full_disk_is_found_before_a_model_is_opened(small_disk: Path) -> None:
    study = framed_study(small_disk / "study", make_items(a=2), large="scripted?no=such")
    filler = (small_disk / "filler").open("wb", buffering=0)
    with filler, contextlib.suppress(OSError):
        while filler.write(b"0" * 512):
            pass
    with pytest.raises(StudyError, match=r"the disk is full\. Cure: free space"):
        run_study(study, "scripted")


def test_a_read_only_study_is_found_before_a_model_is_opened(small_disk: Path) -> None:
    study = framed_study(small_disk / "study", make_items(a=2), large="scripted?no=such")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(StudyError, match="the file system is read-only"):
        run_study(study, "scripted")


def test_a_study_that_runs_is_locked(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=2))
    with held_elsewhere(study, "alone"), pytest.raises(UsageError, match="another run is at work"):
        run_study(study, "scripted")
    run_study(study, "scripted")


def test_a_study_without_a_folder_for_logs(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.logs.write_text("a file")
    with pytest.raises(StudyError, match="cannot make this folder"), run_lock(study):
        pass
