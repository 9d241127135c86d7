import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck import pipes
from benchcheck.study import Study
from benchcheck.video.making import claims
from benchcheck.video.making.claims import CLAIMS, claimed, clear_claims, no_locks
from benchcheck.video.making.extract import extract_frames

from .studies import CONFIG_TEXT, item

HOLD = """
import sys, time
from pathlib import Path
from benchcheck.video.making.claims import claimed
with claimed(Path(sys.argv[1]), "video") as mine:
    print(mine, flush=True)
    time.sleep(60)
"""
RUN = """
import os, sys, time
from benchcheck.video import crew
counting = '''
import os, sys, time
from benchcheck.video import worker
from benchcheck.video.making import draw
real = draw.draw
def counted(task, *rest, **named):
    with open(os.environ["COUNT"], "a") as file:
        file.write(task.key + chr(10))
    time.sleep(float(os.environ["SLOW"]))
    return real(task, *rest, **named)
draw.draw = counted
worker.main()
'''
real = crew.work_through
crew.work_through = lambda tasks, settings, workers: real(tasks, settings, workers, (sys.executable, "-c", counting))
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames
summary = extract_frames(Study.open(sys.argv[1]), workers=2, limit_s=float(sys.argv[2]))
print(summary.made, summary.met, summary.failed, sum(summary.statuses.values()))
"""


def holder(frames: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(frames)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "True\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def study_of(study: Study, clip: Callable[[str], Path], count: int) -> list[str]:
    """A study on disk with so many videos; returns their keys."""
    for number in range(count):
        shutil.copy(clip("cfr.mp4"), study.root / "videos" / f"{number}.mp4")
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    items = [item(f"{n}.mp4", number=n) for n in range(count)]
    study.write_pool(items)
    return [each.video_key for each in items]


def start(study: Study, count_file: Path, slow: float, limit_s: float = 60) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", RUN, str(study.root), str(limit_s)]
    given = os.environ | {"COUNT": str(count_file), "SLOW": str(slow)}
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_a_video_that_is_held_is_not_held_twice_and_free_once_its_holder_was_killed(tmp_path: Path) -> None:
    process = holder(tmp_path)
    with claimed(tmp_path, "video") as mine:
        assert not mine
    with claimed(tmp_path, "another") as mine:
        assert mine
    end(process)
    with claimed(tmp_path, "video") as mine:
        assert mine
        clear_claims(tmp_path)
        assert len(os.listdir(tmp_path / CLAIMS)) == 1
    assert os.listdir(tmp_path / CLAIMS) == []
    clear_claims(tmp_path)
    assert not (tmp_path / CLAIMS).exists()


def test_what_a_killed_holder_left_is_cleared(tmp_path: Path) -> None:
    process = holder(tmp_path)
    clear_claims(tmp_path)
    assert (tmp_path / CLAIMS).exists()
    end(process)
    clear_claims(tmp_path)
    assert not (tmp_path / CLAIMS).exists()


def test_waiting_ends_when_the_holder_dies_and_stops_the_clock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    signal.setitimer(signal.ITIMER_REAL, 30)
    try:
        with pipes.unhurried():
            assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
            os.kill(process.pid, signal.SIGSTOP)
            threading.Timer(0.5, process.kill).start()
            begun = time.monotonic()
            with claimed(tmp_path, "video", wait=True) as mine:
                assert mine
            assert time.monotonic() - begun > 0.3
        assert 25 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        end(process)


def test_a_name_that_is_no_utf8_can_be_held(tmp_path: Path) -> None:
    with claimed(tmp_path, "r::::\udcff/../../x\n") as mine:
        assert mine
        assert len(os.listdir(tmp_path / CLAIMS)) == 1


def test_the_file_that_the_holder_before_removed_is_not_taken_for_the_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, removed = fcntl.flock, []

    def slow(file: object, how: int) -> None:
        real(file, how)  # type: ignore[arg-type]
        if not removed:
            removed.extend(path.unlink() or path for path in (tmp_path / CLAIMS).iterdir())

    monkeypatch.setattr(claims.fcntl, "flock", slow)
    with claimed(tmp_path, "video") as mine:
        assert mine
        assert removed
        assert [path.name for path in (tmp_path / CLAIMS).iterdir()] == [removed[0].name]


def test_a_disk_without_locks_is_a_note_and_the_run_goes_on(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    study_of(study, clip, 2)
    assert no_locks(study.frames) == ""

    def refused(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    summary = extract_frames(study, workers=1)
    assert summary.made == 2
    assert any("cannot lock (No locks available)" in line for line in summary.lines())


def test_two_runs_at_once_decode_each_video_once(study: Study, clip: Callable[[str], Path], tmp_path: Path) -> None:
    keys = study_of(study, clip, 8)
    both = [start(study, tmp_path / "count", 0.2) for _ in range(2)]
    said = [[int(word) for word in run.communicate(timeout=120)[0].split()] for run in both]
    assert Counter((tmp_path / "count").read_text().splitlines()) == Counter(keys)
    rows = study.video_manifest.read_text().splitlines()
    assert len(rows) == 8
    assert sum(made for made, *_ in said) == 8
    for made, met, failed, _ in said:
        assert failed == 0
        assert met <= 8 - made
    assert not (study.frames / CLAIMS).exists()
    assert len(study.frames_ready()) == 8


def test_waiting_for_another_run_is_not_the_videos_own_time(
    study: Study, clip: Callable[[str], Path], tmp_path: Path
) -> None:
    [key] = study_of(study, clip, 1)
    with claimed(study.frames, key):
        run = start(study, tmp_path / "count", 0.0, limit_s=3.0)
        time.sleep(6.0)
        assert run.poll() is None
    assert run.communicate(timeout=60)[0].split() == ["1", "0", "0", "0"]


@pytest.mark.long
def test_a_killed_run_leaves_its_videos_to_the_other(study: Study, clip: Callable[[str], Path], tmp_path: Path) -> None:
    keys = study_of(study, clip, 6)
    first = start(study, tmp_path / "first", 5.0)
    deadline = time.monotonic() + 60
    while not (tmp_path / "first").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    other = start(study, tmp_path / "other", 0.0)
    time.sleep(1.0)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    made, met, failed, _ = map(int, other.communicate(timeout=120)[0].split())
    assert (made + met, failed) == (6, 0)
    assert set((tmp_path / "other").read_text().split()) <= set(keys)
    assert len(study.frames_ready()) == 6
    assert not (study.frames / CLAIMS).exists()
