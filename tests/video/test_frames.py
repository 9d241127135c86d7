import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.config import Frames
from benchcheck.errors import StudyError
from benchcheck.screen.readings import PERMANENT_FAILURES, Failure
from benchcheck.study import Study
from benchcheck.video.frames import (
    Drawn,
    FrameSet,
    clean_leftovers,
    load_frames,
    publish_frames,
    read_folder,
    usable_key,
)

ABOUT = {"count": 3, "long_side": 448, "quality": 85}
DRAWN = [Drawn(0.1, False, False, b"one"), Drawn(0.1, True, False, b"one"), Drawn(0.5, False, True, b"three")]


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    return make_study(Frames(count=3, single=1))


def test_a_set_is_written_and_loaded(study: Study) -> None:
    assert publish_frames(study.frames, "k:a@0-1000", DRAWN, ABOUT)
    loaded = load_frames(study, "k:a@0-1000")
    assert isinstance(loaded, FrameSet)
    assert [Path(path).name for path in loaded.paths] == ["frame_0.jpg", "frame_1.jpg", "frame_2.jpg"]
    assert [Path(path).read_bytes() for path in loaded.paths] == [b"one", b"one", b"three"]
    assert (loaded.pts, loaded.duplicates, loaded.damaged) == (
        (0.1, 0.1, 0.5),
        (False, True, False),
        (False, False, True),
    )
    assert study.frames_ready() == {"k:a@0-1000"}
    table = json.loads((study.frames / "k:a@0-1000" / "frames.json").read_text())
    assert table["frames"][2] == {"index": 2, "pts": 0.5, "duplicate": False, "damaged": True, "bytes": 5}
    assert (study.frames / "k:a@0-1000").stat().st_mode & 0o055, "readable by others as the umask says"


def test_the_first_to_finish_wins(study: Study) -> None:
    assert publish_frames(study.frames, "k", DRAWN, ABOUT)
    assert not publish_frames(study.frames, "k", [Drawn(0, False, False, b"x")] * 3, ABOUT)
    assert (study.frames / "k" / "frame_0.jpg").read_bytes() == b"one"
    assert os.listdir(study.frames) == ["k"]


@pytest.mark.parametrize("harm", ["frame_1.jpg", "frames.json", "all", "file"])
def test_a_damaged_folder_is_a_failure_and_is_replaced(study: Study, harm: str) -> None:
    publish_frames(study.frames, "k", DRAWN, ABOUT)
    if harm == "file":
        shutil.rmtree(study.frames / "k")
        (study.frames / "k").write_text("in the way")
    else:
        for path in (study.frames / "k").iterdir():
            if harm in ("all", path.name):
                path.unlink()
    failure = load_frames(study, "k")
    assert isinstance(failure, Failure)
    assert failure.kind in PERMANENT_FAILURES
    assert publish_frames(study.frames, "k", DRAWN, ABOUT)
    assert isinstance(load_frames(study, "k"), FrameSet)
    assert os.listdir(study.frames) == ["k"]


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "{}", '"x"', '{"version": 2}', '{"version": 1, "frames": {}}', '{"version": 1, "frames": []}',
        '{"version": 1, "count": 3, "frames": [1, 2, 3]}', '{"version": 1, "count": 2, "frames": [{}]}',
        '{"version": 1, "count": 1, "frames": [{"pts": "0", "duplicate": false, "damaged": false, "bytes": 3}]}',
        '{"version": 1, "count": 1, "frames": [{"pts": 0, "duplicate": 1, "damaged": false, "bytes": 3}]}',
    ],
)  # fmt: skip
def test_damaged_frames_json(study: Study, text: str) -> None:
    publish_frames(study.frames, "k", DRAWN, ABOUT)
    (study.frames / "k" / "frames.json").write_text(text)
    failure = load_frames(study, "k")
    assert isinstance(failure, Failure)
    assert "frames.json" in failure.detail


def test_a_cut_jpeg_and_a_missing_folder_are_told(study: Study) -> None:
    publish_frames(study.frames, "k", DRAWN, ABOUT)
    (study.frames / "k" / "frame_2.jpg").write_bytes(b"th")
    assert "2 bytes instead of 5" in str(load_frames(study, "k"))
    assert "no frames.json" in str(load_frames(study, "gone"))
    assert isinstance(read_folder(study.frames / "k"), str)


@pytest.mark.parametrize("field", ["count", "long_side", "quality"])
def test_frames_of_another_config_are_refused(study: Study, field: str) -> None:
    drawn = DRAWN[:2] if field == "count" else DRAWN
    publish_frames(study.frames, "k", drawn, ABOUT | {field: 2 if field == "count" else 77})
    with pytest.raises(StudyError, match=f"frames.{field} = .* Cure: set frames.{field}"):
        load_frames(study, "k")


def test_a_full_disk_is_one_line_and_leaves_nothing(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StudyError, match="the disk is full"):
        publish_frames(study.frames, "k", DRAWN, ABOUT)
    assert os.listdir(study.frames) == []


def test_leftovers_are_removed_unless_in_use(study: Study) -> None:
    assert clean_leftovers(study.frames) == 0
    killed, used, young, old, other = (
        study.frames / f".{name}.1.tmp" for name in ("killed", "used", "young", "old", "file")
    )
    for folder in (killed, used, young, old):
        folder.mkdir(parents=True)
    other.write_text("")
    for folder in (killed, used):
        (folder / "frames.json").write_text("")
    os.utime(old, (time.time() - 1000,) * 2)
    with (used / "frames.json").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert clean_leftovers(study.frames) == 2
    assert set(os.listdir(study.frames)) == {".used.1.tmp", ".young.1.tmp", ".file.1.tmp"}
    assert study.frames_ready() == frozenset()
    assert clean_leftovers(study.frames) == 1


def test_keys_that_can_be_folders() -> None:
    assert usable_key("k:0123@0-5")
    assert not any(map(usable_key, ["", "a/b", ".hidden", "..", "a\0"]))


def test_a_moved_error_that_is_none_of_ours_is_told(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, target: Path) -> Path:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "rename", denied)
    with pytest.raises(StudyError, match="no write permission"):
        publish_frames(study.frames, "k", DRAWN, ABOUT)


def test_a_place_that_is_damaged_again_and_again_is_given_up(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOTEMPTY, "not empty")

    monkeypatch.setattr(Path, "rename", taken)
    monkeypatch.setattr("benchcheck.video.folders.set_aside", lambda final: None)
    assert not publish_frames(study.frames, "k", DRAWN, ABOUT)
