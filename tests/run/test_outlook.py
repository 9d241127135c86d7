"""What an estimate rests on, read from studies whose every number is known; and the commands that show it."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import UsageError
from benchcheck.run.accounting import Cost, costs, note_cost
from benchcheck.run.driver import run_study
from benchcheck.run.outlook import Assumed, Outlook, going, outlook
from benchcheck.run.plan import survey
from benchcheck.study import Study
from studies import error_of, framed_study, make_items, make_study, row_of, rows_on_disk

ENGINE = {"name": "vllm", "version": "1", "dtype": "bf16", "device": "NVIDIA H200"}
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return framed_study(tmp_path / "study", make_items(a=60), protocol={"steps": [1, 3]})


def spend(study: Study, step: int = 1, ago: int = 0, pid: int = 1, **changes: Any) -> None:
    """Note what a worker did so many seconds ago."""
    at = (NOW - timedelta(seconds=ago)).isoformat(timespec="seconds")
    model = study.config.models["8b" if step == 1 else "2b"].model
    cost = Cost(step, "a", 0, 20, 80, 2000, 10.0, 1, model, "", ENGINE, at, 500, {"timeout": 1}, "r", "node", pid)
    note_cost(study, replace(cost, **changes))


def look(study: Study, **assumed: float) -> Outlook:
    return outlook(study, survey(study), Assumed(**assumed))


def test_before_anything_ran(study: Study) -> None:
    found = look(study)
    first, second = found.steps
    assert (first.coming.items, first.load.prompts) == (60, 240)
    assert second.coming.items == pytest.approx(48)
    assert first.basis == "assumed: 479 prompts/s on one H200"
    assert found.row_bytes == pytest.approx(60 * 1180 + 48 * 718)
    assert found.videos_missing == 0
    assert found.frames_measured


def test_a_gpu_s_data_sheet_scales_it(study: Study) -> None:
    fast, slow = look(study).steps[1], look(study, gpu_tflops=98.9).steps[1]
    assert slow.gpu_hours == pytest.approx(10 * fast.gpu_hours)
    assert slow.basis.endswith("on a GPU of 98.9 TFLOP/s")
    assert look(study, survive=0.5).steps[1].coming.items == 30


def test_frames_that_are_not_there_need_disk(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.write_pool(make_items(a=60))
    found = look(study)
    assert (found.videos_missing, found.frames_measured) == (40, False)  # two of three items share a video
    assert found.frame_bytes == 40 * 4 * 43_000
    text_only = make_study(tmp_path, protocol={"steps": [1, 4]})
    assert look(text_only).videos_missing == 0


def test_what_ran_replaces_what_is_assumed(study: Study) -> None:
    # What a CPU took before is no basis for what answers now; servers differ in nothing but their address.
    spend(study, wall_s=4000.0, engine=ENGINE | {"device": "cpu"})
    spend(study)
    spend(study, model="another")
    spend(study, step=6)
    first, second = look(study).steps
    assert first.basis == "measured here: 8.0 prompts/s a worker on NVIDIA H200"
    assert first.gpu_hours == pytest.approx(240 / 8 / 3600)
    assert second.basis.startswith("assumed")
    for port, wall in ((8001, 10.0), (8002, 30.0)):
        spend(study, wall_s=wall, engine=ENGINE | {"name": "server", "device": f"127.0.0.1:{port}"})
    assert look(study).steps[0].basis.startswith("measured here: 4.0 prompts/s")


def test_rows_are_as_long_as_those_on_disk(study: Study) -> None:
    items = study.items()
    study.append(1, "a", None, [row_of(study, item) for item in items[:30]])
    size = study.step_file(1, "a").stat().st_size / 30
    asked = [one.coming.items for one in look(study).steps]
    assert asked == [30, 60]  # all thirty that were answered stayed
    assert look(study).row_bytes == pytest.approx(30 * size + 60 * 718)
    assert look(study).steps[0].coming.measured


def test_workers_at_work_are_those_that_wrote_within_a_minute(study: Study) -> None:
    spend(study, ago=61, pid=9)
    spend(study, ago=50, pid=1)
    spend(study, ago=10, pid=1)
    spend(study, ago=10, pid=2)
    found = going(study, survey(study), NOW)
    assert found.workers == 2
    assert found.seconds == pytest.approx(60 * 0.5 / 2)
    assert found.without == (3,)
    assert going(study, survey(study), NOW + timedelta(days=1)).workers == 0
    assert going(study, survey(study), NOW + timedelta(days=1)).seconds == pytest.approx(30)


def test_workers_of_the_step_before_are_gone(study: Study) -> None:
    spend(study, ago=20, pid=1)
    spend(study, ago=20, pid=2)
    spend(study, ago=10, pid=3, step=3)
    assert going(study, survey(study), NOW).workers == 1


# The commands.


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        from benchcheck.cli import app

        capsys.readouterr()
        app([*arguments], standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_plan_says_what_it_will_cost(study: Study, told: Callable[..., str]) -> None:
    plain = told("plan", str(study.root))
    assert "GPU-hours" not in plain
    text = told("plan", str(study.root), "--estimate", "--gpu-tflops", "312", "--survive", "0.5")
    lines = text.splitlines()
    assert lines[-1] == "REMAINING_TOTAL=120"
    (row,) = [line.split() for line in lines if line.startswith("3 ") and "v32_2b" in line]
    assert row[2:5] == ["30", "60", "30"]
    assert "GPUs of 312 TFLOP/s" in text
    assert "50% stay" in text
    assert text.startswith(plain.rpartition("WAITING_TOTAL")[0])
    only = told("plan", str(study.root), "--estimate", "--step", "1", "--pilot", "5")
    assert "v32_2b" not in only
    assert "REMAINING_TOTAL=5" in only


@pytest.mark.parametrize("flag", [("--gpu-tflops", "0"), ("--gpu-tflops", "nan"), ("--survive", "1.5")])
def test_what_no_gpu_or_share_is(study: Study, told: Callable[..., str], flag: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=rf"^{flag[0]} .*Allowed: above 0"):
        told("plan", str(study.root), "--estimate", *flag)


def test_an_estimate_of_frames_that_are_not_there(tmp_path: Path, told: Callable[..., str]) -> None:
    study = make_study(tmp_path)
    study.write_pool(make_items(a=3))
    text = told("plan", str(study.root), "--estimate")
    assert "frames of 2 videos are not on disk: 344 kB (43 kB a frame of 448 px)" in text


def test_status_before_the_first_run_has_no_basis(study: Study, told: Callable[..., str]) -> None:
    text = told("status", str(study.root))
    assert (
        "left: about 108 items over all steps, with those that wait (120 at most), no basis yet "
        "(no run at work, so as for one worker)" in text
    )
    assert "prompts/s" not in text


def test_status_while_a_run_goes_on(study: Study, told: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    spend(study, at=now)
    spend(study, at=now, pid=2, kinds={"timeout": 2, "not_finite": 1})
    study.append(1, "a", None, [error_of(study, study.items()[0])])
    text = told("status", str(study.root))
    (row,) = [line for line in text.splitlines() if line.startswith("1 ") and "timeout" in line]
    assert row.split()[:8] == ["1", "40", "160", "4", "k", "25%", "20", "s"]
    assert "not_finite 1, timeout 3" in row
    (who,) = [line for line in text.splitlines() if line.startswith("by 1: ")]
    assert who.endswith(", read by vllm 1 bf16 NVIDIA H200")
    assert "about 15 s (2 workers at work)" in text
    assert "nothing of them was measured yet: steps 3" in text


def test_status_of_a_study_that_is_done_has_nothing_left(study: Study, told: Callable[..., str]) -> None:
    run_study(study, "scripted")
    text = told("status", str(study.root))
    assert "left:" not in text
    assert "REMAINING_TOTAL=0" in text


@pytest.mark.long
def test_a_run_is_seen_while_it_goes_on_and_its_sums_hold_after_a_kill(
    tmp_path: Path, told: Callable[..., str]
) -> None:
    study = framed_study(tmp_path, make_items(a=500), large="scripted?slow=0.01", protocol={"steps": [1]})
    command = [sys.executable, "-m", "benchcheck", "screen", str(study.root), "--backend", "scripted"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while not study.accounting_file.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        text = told("status", str(study.root))
    finally:
        process.kill()
        process.wait()
    assert "(1 worker at work)" in text
    assert "no basis" not in text
    first = sum(row["items"] for row in costs(study))
    written = len(rows_on_disk(study, 1))
    assert 0 < first <= written < 500
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert sum(row["items"] for row in costs(study)) == first + 500 - written
    assert len(rows_on_disk(study, 1)) == 500
