"""A run that is killed at any moment continues where it stopped and ends as one that was left alone."""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchcheck.run.plan import survey, totals
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from studies import framed_study, make_items, rows_on_disk

SLOW = {"large": "scripted?slow=0.004", "small": "scripted?slow=0.004&skill=0.4"}
ITEMS = make_items(a=150, b=50)
VOLATILE = ("at", "latency_s")


def start(study: Study, *options: str) -> "subprocess.Popen[str]":
    """Start `benchcheck screen` in a process group of its own, as a terminal does."""
    command = [sys.executable, "-m", "benchcheck", "screen", str(study.root), "--backend", "scripted", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def finish(study: Study, *options: str) -> str:
    """Run `benchcheck screen` to its end and return what it printed."""
    process = start(study, *options)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out


def stop_when_rows_come(process: "subprocess.Popen[str]", study: Study, step: int, how: signal.Signals) -> str:
    """Send a signal as soon as a step has rows on disk, and return what was written to standard error."""
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size for path in study.step_files(step)):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(how)
    return process.communicate(timeout=60)[1]


def verdicts(study: Study) -> list[tuple[str, int, int]]:
    """State and step of every item."""
    state = survey(study)
    ids = state.pool.item_id.to_pylist()
    return list(zip(ids, state.fold.state.tolist(), state.fold.left_at.tolist(), strict=True))


def answers(study: Study) -> dict[tuple[int, str], dict[str, Any]]:
    """Every row by step and item, without what a clock decides; an item that was asked twice has one answer."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for step in LADDER:
        for row in rows_on_disk(study, step):
            steady = {key: value for key, value in row.items() if key not in VOLATILE}
            assert found.setdefault((step, row["item_id"]), steady) == steady
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that was screened without being stopped."""
    study = framed_study(tmp_path_factory.mktemp("undisturbed"), ITEMS, **SLOW)
    assert finish(study).endswith("WAITING_TOTAL=0\nFAILED_TOTAL=0\nREMAINING_TOTAL=0\n")
    return study


@pytest.mark.long
@pytest.mark.parametrize("step", LADDER)
def test_a_run_killed_in_a_step_ends_as_one_that_was_left_alone(tmp_path: Path, undisturbed: Study, step: int) -> None:
    study = framed_study(tmp_path / "study", ITEMS, **SLOW)
    process = start(study)
    stop_when_rows_come(process, study, step, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    before = rows_on_disk(study, step)
    whole = sum(number == step for number, _ in answers(undisturbed))
    assert 0 < len(before) < whole
    assert totals(survey(study)).remaining > 0
    with study.step_files(step)[0].open("ab") as file:
        file.write(b'{"item_id": "a_0", "status": "ok", "n_ri')  # what a killed writer may leave
    finish(study)
    assert verdicts(study) == verdicts(undisturbed)
    assert answers(study) == answers(undisturbed)
    for number in LADDER:
        assert set(Counter(row["item_id"] for row in rows_on_disk(study, number)).values()) == {1}
    assert survey(study).reports[step].unreadable == 1


@pytest.mark.long
@pytest.mark.parametrize("step", [1, 3])
def test_the_parent_of_two_workers_may_be_killed(tmp_path: Path, undisturbed: Study, step: int) -> None:
    """Its workers may still be writing while the next run asks the same items."""
    study = framed_study(tmp_path / "study", ITEMS, **SLOW)
    process = start(study, "--workers", "2")
    stop_when_rows_come(process, study, step, signal.SIGKILL)
    finish(study, "--workers", "2")
    assert verdicts(study) == verdicts(undisturbed)
    assert answers(study) == answers(undisturbed)
    assert all(report.unreadable == 0 for report in survey(study).reports.values())


@pytest.mark.long
def test_killed_again_and_again(tmp_path: Path, undisturbed: Study) -> None:
    study = framed_study(tmp_path / "study", ITEMS, **SLOW)
    for _ in range(20):
        process = start(study)
        try:
            process.wait(1.7)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        if process.returncode == 0:
            break
    finish(study)
    assert verdicts(study) == verdicts(undisturbed)
    assert answers(study) == answers(undisturbed)


@pytest.mark.parametrize(
    ("workers", "sent"), [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM), (2, signal.SIGTERM)]
)
def test_being_stopped_is_one_line_and_keeps_the_rows(tmp_path: Path, workers: int, sent: signal.Signals) -> None:
    study = framed_study(tmp_path / "study", make_items(a=150), large="scripted?slow=0.004", protocol={"steps": [1]})
    process = start(study, "--workers", str(workers))
    told = stop_when_rows_come(process, study, 1, sent)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "benchcheck: stopped. What was written stays; the same command continues."
    assert "Traceback" not in told
    before = {row["item_id"] for row in rows_on_disk(study, 1)}
    assert 0 < len(before) < 150
    assert totals(survey(study)).remaining == 150 - len(before)
    finish(study)
    assert len(rows_on_disk(study, 1)) == 150
    assert len({row["item_id"] for row in rows_on_disk(study, 1)}) == 150


def test_a_slurm_array_of_workers_is_the_same_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = framed_study(tmp_path / "study", make_items(a=20), protocol={"steps": [1]})
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "4")
    command = [sys.executable, "-m", "benchcheck", "work", str(study.root), "--step", "1", "--backend", "scripted"]
    for number in (3, 4):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(number))
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        assert found.stdout == "10 0\n"
    assert sorted(Counter(row["item_id"] for row in rows_on_disk(study, 1)).values()) == [1] * 20
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "5")
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "benchcheck: SLURM_ARRAY_TASK_ID = 5 lies outside the array 3 to 4\n"
