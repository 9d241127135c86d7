import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from benchcheck.cli import app
from benchcheck.config import Frames
from benchcheck.errors import StudyError
from benchcheck.run.shard import parse_shard
from benchcheck.study import Study
from benchcheck.video.making import disk, extract
from benchcheck.video.making.disk import FRAME_BYTES, SPARE_BYTES, bytes_of_set, free_at, need_of
from benchcheck.video.making.extract import extract_frames, plan_extraction

from .clips import Clip
from .studies import CONFIG_TEXT, item


def disk_of(monkeypatch: pytest.MonkeyPatch, free: int, files: int = 10**9) -> None:
    found = SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_blocks=10**9, f_files=10**9, f_favail=files)
    monkeypatch.setattr(disk.os, "statvfs", lambda _: found)


def test_a_set_is_measured_on_those_that_are_there(study: Study, clip: Callable[[str], Path]) -> None:
    assert bytes_of_set(study) == (32 * FRAME_BYTES, False)
    shutil.copy(clip("cfr.mp4"), study.root / "videos" / "a.mp4")
    extract_frames(study, items=[item("a.mp4")], workers=1)
    size = sum(path.stat().st_size for path in study.frames.rglob("*.jpg"))
    assert bytes_of_set(study) == (size, True)
    assert bytes_of_set(study, made=["gone", item("a.mp4").frames_key]) == (size, True)
    assert need_of(study, 10).bytes == 10 * size


def test_half_the_side_is_a_quarter_of_the_bytes(make_study: Callable[..., Study]) -> None:
    assert bytes_of_set(make_study(Frames(long_side=224, count=8, single=1))) == (2 * FRAME_BYTES, False)


def test_too_little_space_or_too_few_files_are_refused_before_anything_is_decoded(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        shutil.copy(clip("cfr.mp4"), study.root / "videos" / f"{number}.mp4")
    items = [item(f"{n}.mp4", number=n) for n in range(3)]
    need = 3 * 32 * FRAME_BYTES
    disk_of(monkeypatch, need + SPARE_BYTES)
    with pytest.raises(StudyError, match=r"3 sets of frames to make: about 105 MB .* 104 MB free\. Cure: free"):
        extract_frames(study, items=items, workers=1)
    disk_of(monkeypatch, 10**12, files=99)
    with pytest.raises(StudyError, match=r"about 102 files .* room for 99 free"):
        extract_frames(study, items=items, workers=1)
    assert study.frames_ready() == frozenset()
    assert plan_extraction(study, items).run(workers=1, ignore_free_space=True).made == 3
    disk_of(monkeypatch, 0, files=0)
    assert extract_frames(study, items=items, workers=1).before == 3


def test_videos_that_are_not_there_need_no_space(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_of(monkeypatch, 10)
    summary = extract_frames(study, items=[item(f"{n}.mp4", number=n) for n in range(50)], workers=1)
    assert summary.statuses == {"missing": 50}


def test_space_that_runs_out_stops_the_run_and_keeps_what_was_made(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        shutil.copy(clip("cfr.mp4"), study.root / "videos" / f"{number}.mp4")
    items = [item(f"{n}.mp4", number=n) for n in range(4)]
    monkeypatch.setattr(extract, "_LOOK_S", 0.0)
    disk_of(monkeypatch, 10**12)
    with pytest.raises(StudyError, match="2 sets of frames to make: about"):
        extract_frames(
            study,
            items=items,
            workers=1,
            progress=lambda seen: disk_of(monkeypatch, 10**12 // 10 ** (9 * (seen.done > 1))),
        )
    assert len(study.frames_ready()) >= 2


def test_a_file_system_that_says_nothing_refuses_nothing(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = SimpleNamespace(f_bavail=0, f_frsize=4096, f_blocks=0, f_files=0, f_favail=0)
    monkeypatch.setattr(disk.os, "statvfs", lambda _: silent)
    need = need_of(study, 5)
    need.refuse()
    assert need.line().endswith("unknown")

    def fails(_: object) -> os.statvfs_result:
        raise OSError

    monkeypatch.setattr(disk.os, "statvfs", fails)
    assert free_at(study.frames) == (None, None)


def test_shares_cover_every_video_once_whatever_is_ready(study: Study, clip: Callable[[str], Path]) -> None:
    items = [item(f"{n}.mp4", number=n, start=start, end=start + 1.0) for n in range(40) for start in (0.0, 1.0)]
    shares = [plan_extraction(study, items, (number, 3)) for number in range(3)]
    keys = [{task.key for task in share.tasks} for share in shares]
    assert sum(map(len, keys)) == len(set().union(*keys)) == 40
    assert all(5 < len(each) < 25 for each in keys)
    assert sum(share.wanted for share in shares) == 80
    assert [plan_extraction(study, items[:10], (number, 3)).wanted for number in range(3)] == [
        sum(each.video_key in part for each in items[:10]) for part in keys
    ]


def test_the_largest_videos_are_begun_first(study: Study) -> None:
    for number in range(5):
        (study.root / "videos" / f"{number}.mp4").write_bytes(b"\0" * (100 * (number * 3 % 5) + 1))
    tasks = plan_extraction(study, [item(f"{n}.mp4", number=n) for n in range(6)]).tasks
    sizes = [os.path.getsize(task.paths[0]) if os.path.exists(task.paths[0]) else 0 for task in tasks]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 401
    assert sizes[-1] == 0


def test_the_command_says_what_it_will_take_and_makes_a_share(study: Study, tmp_path: Path) -> None:
    for number in range(4):
        Clip(frames=8, first=number).write(study.root / "videos" / f"{number}.mp4")
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    study.write_pool([item(f"{n}.mp4", number=n) for n in range(4)])
    run = CliRunner()
    made = 0
    for number in range(2):
        done = run.invoke(app, ["frames", "extract", str(study.root), "--workers", "1", "--shard", f"{number}/2"])
        assert done.exit_code == 0, done.output
        assert " of frames to make: about" in done.stderr or "0 of 0" in done.stdout
        made += int(done.stdout.split("(")[1].split()[0])
    assert made == 4
    array = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_MAX": "3"}
    assert parse_shard("auto", array) == (1, 2)
    again = run.invoke(app, ["frames", "extract", str(study.root), "--shard", "auto"], env=array)
    assert again.exit_code == 0, again.output
    refused = run.invoke(app, ["frames", "extract", str(study.root), "--shard", "2/2"])
    assert refused.exit_code != 0
