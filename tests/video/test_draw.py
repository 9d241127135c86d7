import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.video.decoding.picture import Spec
from benchcheck.video.faults import CURES, READY
from benchcheck.video.frames import clean_leftovers
from benchcheck.video.making import draw as drawing
from benchcheck.video.making.draw import draw
from benchcheck.video.store import Outcome
from benchcheck.video.task import Task

from .clips import SHORT_GOP, Clip, number_of
from .test_decode import damaged

SPEC = Spec(count=32, long_side=128, quality=85)


def drawn(
    path: Path, folder: Path, windows: dict[str, tuple[int | None, int | None]] | None = None
) -> dict[str, Outcome]:
    task = Task("r::::m", (str(path),), windows or {"k": (None, None)}, str(path.parent))
    assert Task.of(json.loads(json.dumps(task.table()))) == task
    outcomes = {outcome.frames_key: outcome for outcome in draw(task, SPEC, folder)}
    assert clean_leftovers(folder) == 0
    return outcomes


def shown(folder: Path) -> list[int]:
    return [number_of(folder / f"frame_{index}.jpg") for index in range(32)]


def test_frames_json_says_where_the_frames_come_from(clip: Callable[[str], Path], tmp_path: Path) -> None:
    outcome = drawn(clip("threequarter.mp4"), tmp_path)["k"]
    digest = hashlib.sha256(clip("threequarter.mp4").read_bytes()).hexdigest()
    assert (outcome.status, outcome.content_hash, outcome.error) == (READY, digest, "")
    table = json.loads((tmp_path / "k" / "frames.json").read_text())
    assert {name: table[name] for name in ("key", "count", "long_side", "quality", "size", "distinct", "window")} == {
        "key": "k", "count": 32, "long_side": 128, "quality": 85, "size": [128, 70], "distinct": 32, "window": None,
    }  # fmt: skip
    assert (table["duration"], table["span"]) == (2.56, [0.0, 2.56])
    assert table["source"] == {
        "name": "threequarter.mp4", "sha256": digest, "bytes": clip("threequarter.mp4").stat().st_size,
        "codec": "h264", "container": "mov,mp4,m4a,3gp,3g2,mj2", "width": 96, "height": 176, "rotation": 270,
    }  # fmt: skip
    assert table["decoder"]["name"] == "h264"
    assert [frame["index"] for frame in table["frames"]] == list(range(32))
    assert [frame["pts"] for frame in table["frames"]] == [round((2 * k + 1) * 0.04, 6) for k in range(32)]


@pytest.mark.parametrize(("name", "count"), [("one.mp4", 1), ("seven.mp4", 7)])
def test_short_videos_repeat_frames_and_say_so(
    clip: Callable[[str], Path], tmp_path: Path, name: str, count: int
) -> None:
    drawn(clip(name), tmp_path)
    table = json.loads((tmp_path / "k" / "frames.json").read_text())
    assert shown(tmp_path / "k") == [(2 * k + 1) * count // 64 for k in range(32)]
    assert table["distinct"] == count == 32 - sum(frame["duplicate"] for frame in table["frames"])


def test_windows_of_one_video_are_cut_from_it(clip: Callable[[str], Path], tmp_path: Path) -> None:
    windows = {
        "all": (None, None),
        "a": (4000, 8000),
        "b": (15000, None),
        "c": (15500, 16500),
        "late": (16000, None),
        "bad": (3, 3),
    }
    outcomes = drawn(clip("gop.mp4"), tmp_path, windows)  # 400 frames of 40 ms
    assert {key: outcome.status for key, outcome in outcomes.items()} == {
        "all": READY, "a": READY, "b": READY, "c": READY, "late": "window_outside", "bad": "bad_window",
    }  # fmt: skip
    assert shown(tmp_path / "all") == [(2 * k + 1) * 400 // 64 for k in range(32)]
    assert shown(tmp_path / "a") == [100 + (2 * k + 1) * 100 // 64 for k in range(32)]
    assert shown(tmp_path / "b") == [375 + (2 * k + 1) * 25 // 64 for k in range(32)]
    table = json.loads((tmp_path / "c" / "frames.json").read_text())
    assert (table["window"], table["span"]) == ({"start": 15.5, "end": 16.5}, [15.5, 16.0])
    assert not (tmp_path / "late").exists()
    assert "16.000 s long" in outcomes["late"].error


def test_only_windows_that_do_not_exist(clip: Callable[[str], Path], tmp_path: Path) -> None:
    outcomes = drawn(clip("cfr.mp4"), tmp_path / "new", {"late": (99000, None)})
    assert outcomes["late"].status == "window_outside"
    assert outcomes["late"].content_hash


def test_much_damage_fails_and_little_is_flagged(tmp_path: Path) -> None:
    clip = Clip(800, options=SHORT_GOP).write(tmp_path / "a.mp4")
    little = drawn(damaged(clip, tmp_path / "little.mp4", start=0.5, share=0.002), tmp_path / "f")["k"]
    assert little.ready
    much = drawn(damaged(clip, tmp_path / "much.mp4", start=0.5, share=0.3), tmp_path / "g")["k"]
    assert (much.status, much.content_hash != "") == ("damaged", True)
    assert "grid frames" in much.error
    assert "more" in much.error
    assert not (tmp_path / "g" / "k").exists()


def test_concealed_frames_up_to_the_limit_are_kept_with_a_flag(
    clip: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hurt(drawing.Video):
        def timeline(self):
            return (
                super()
                .timeline()
                .__class__(super().timeline().pts, super().timeline().end, self.time_base, damaged=frozenset(hurt))
            )

    monkeypatch.setattr(drawing, "Video", Hurt)
    hurt = [1, 3, 5, 7]
    assert drawn(clip("cfr.mp4"), tmp_path / "f")["k"].ready
    table = json.loads((tmp_path / "f" / "k" / "frames.json").read_text())
    assert [frame["index"] for frame in table["frames"] if frame["damaged"]] == [0, 1, 2, 3]
    hurt = [1, 3, 5, 7, 9]
    assert drawn(clip("cfr.mp4"), tmp_path / "g")["k"].status == "damaged"


def test_a_bad_file_is_an_outcome_for_every_window(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"<html>404</html>")
    outcomes = drawn(tmp_path / "a.mp4", tmp_path / "f", {"a": (0, 10), "b": (None, None)})
    assert {outcome.status for outcome in outcomes.values()} == {"html"}
    assert drawn(tmp_path / "gone.mp4", tmp_path / "f")["k"].status == "missing"


def test_a_video_too_large_for_memory(
    clip: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(drawing, "Video", greedy)
    assert drawn(clip("cfr.mp4"), tmp_path)["k"].status == "unsupported"


def test_the_page_names_every_status() -> None:
    page = (Path(__file__).parents[2] / "docs" / "frames.md").read_text()
    assert [status for status in (READY, *CURES) if f"`{status}`" not in page] == []
