"""What workers do, done in this process: the same bytes and findings, and lines that coverage sees.

A worker process is ended by SIGKILL when its tasks are done, so what it ran leaves no trace for a measurement.
"""

import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchcheck.errors import StudyError
from benchcheck.inputs import Normalize
from benchcheck.study import Study
from benchcheck.video import crew
from benchcheck.video.frames import frame_name
from benchcheck.video.making import draw
from benchcheck.video.making.claims import claimed
from benchcheck.video.making.extract import extract_frames
from benchcheck.video.preparing.prepare import prepare_videos
from benchcheck.video.proving import compare, second
from benchcheck.video.store import last_outcomes
from benchcheck.video.wanted import tasks_of, wanted_sets
from benchcheck.video.worker import JOBS

from .studies import CONFIG_TEXT, item

ALL = CONFIG_TEXT + '[videos]\narchives = ["stored.zip", "deflated.zip", "all.tar.gz"]\n'


def here(
    tasks: Iterable[tuple[Any, Mapping[str, Any]]], settings: Mapping[str, Any], *_: object
) -> Generator[tuple[Any, Mapping[str, Any]]]:
    """`crew.work_through` without processes; all that goes in and out is JSON as it is there."""
    do = import_module(JOBS[settings["job"]]).begin(json.loads(json.dumps(settings)))
    for task, message in tasks:
        try:
            yield task, json.loads(json.dumps(do(json.loads(json.dumps(message)))))
        except StudyError as reason:
            yield task, {"stop": str(reason)}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(crew, "work_through", here)


def laid(root: Path, clip: Callable[[str], Path]) -> Study:
    """A study of a plain video and one out of each kind of archive, one of them with a window."""
    videos = root / "videos"
    videos.mkdir(parents=True)
    shutil.copy(clip("cfr.mp4"), videos)
    for name, method, member in (
        ("stored.zip", zipfile.ZIP_STORED, "gop.mp4"),
        ("deflated.zip", zipfile.ZIP_DEFLATED, "odd.mkv"),
    ):
        with zipfile.ZipFile(videos / name, "w") as archive:
            archive.write(clip(member), member, method)
    with tarfile.open(videos / "all.tar.gz", "w:gz") as tar:
        tar.add(clip("vp9.webm"), "vp9.webm")
    (root / "benchcheck.toml").write_text(ALL)
    study = Study.open(root)
    names = ("cfr.mp4", "gop.mp4", "odd.mkv", "vp9.webm", "gone.mp4")
    window = replace(item("cfr.mp4", start=0.5, end=1.5, number=9), item_id="b_w")
    study.write_pool([*(item(name, number=number) for number, name in enumerate(names)), window])
    return study


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def both(
    tmp_path: Path, clip: Callable[[str], Path], in_process: Callable[[], None]
) -> Callable[[Callable[[Study], Any]], Sequence[Any]]:
    """What a function of a study gives with worker processes, and what without."""

    def call(ask: Callable[[Study], Any]) -> Sequence[Any]:
        first = ask(laid(tmp_path / "workers", clip))
        in_process()
        return first, ask(laid(tmp_path / "here", clip))

    return call


def drawn(study: Study) -> Any:
    summary = extract_frames(study, workers=1)
    statuses = {key: (one.status, one.content_hash) for key, one in last_outcomes(study).items()}
    return summary.lines()[1:], statuses, bytes_of(study.frames)


def test_frames_are_the_same(both: Callable[..., Sequence[Any]]) -> None:
    workers, mine = both(drawn)
    assert workers == mine
    assert len(mine[2]) == 5 * 33
    assert sorted(status for status, _ in mine[1].values()) == ["missing", *["ready"] * 5]


def test_prepared_videos_and_their_frames_are_the_same(both: Callable[..., Sequence[Any]]) -> None:
    form = Normalize(frames="normalized", short_side=48)

    def ask(study: Study) -> Any:
        study.config = replace(study.config, normalize=form)
        lines = prepare_videos(study, workers=1, limit_s=60).lines()
        made = drawn(study)
        seen = {one.video_key: one.video_id for one in study.items()}
        return lines, seen, bytes_of(study.normalized), made

    workers, mine = both(ask)
    assert workers == mine
    assert sum(name.endswith("video.mp4") for name in mine[2]) == 4
    assert len(mine[3][2]) == 5 * 33


def test_certificates_are_the_same(both: Callable[..., Sequence[Any]]) -> None:
    pytest.importorskip("cv2", reason="OpenCV (check extra) is not installed")
    from benchcheck.video.proving.certificate import certify

    def ask(study: Study) -> Any:
        extract_frames(study, workers=1)
        table = certify(study, workers=1)
        return {name: table[name] for name in ("counts", "frames", "psnr_db", "pts_difference_s", "sets")}

    workers, mine = both(ask)
    assert workers == mine
    assert mine["counts"]["agreeing"] == 5


# What another run does meanwhile.


def message_of(study: Study) -> Mapping[str, Any]:
    return tasks_of(study, wanted_sets(study))[0][0].table()


def job(study: Study, **more: object) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """What a worker does with each task."""
    from benchcheck.video.making.extract import _settings

    settings = _settings(study, threads=1, limit_s=60) | more
    return import_module(JOBS["draw"]).begin(settings)  # type: ignore[no-any-return]


def test_a_video_that_another_run_holds_is_busy_and_its_sets_are_met(study: Study, clip: Callable[[str], Path]) -> None:
    shutil.copy(clip("one.mp4"), study.root / "videos")
    study.write_pool([item("one.mp4")])
    message = message_of(study)
    with claimed(study.frames, message["key"]) as mine:
        assert mine
        assert job(study)(message) == {"busy": True}
        blind = job(study, claims=False)(message)  # a disk without locks: whoever comes draws
    assert [one["status"] for one in blind["outcomes"]] == ["ready"]
    assert job(study)(message) == {"outcomes": [], "met": list(message["windows"])}


def test_pictures_that_do_not_fit_in_memory_are_an_outcome(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*_: object) -> None:
        raise MemoryError

    shutil.copy(clip("one.mp4"), study.root / "videos")
    study.write_pool([item("one.mp4")])
    monkeypatch.setattr(draw, "_decoded", large)
    [outcome] = job(study)(message_of(study))["outcomes"]
    assert (outcome["status"], outcome["error"]) == ("unsupported", "its pictures do not fit in memory")


# The second decoder meets what the first did not.


class Stub:
    """OpenCV as it is, but for how one capture behaves."""

    def __init__(self, real: Any, **changes: Any) -> None:
        self.real, self.changes = real, changes

    def __getattr__(self, name: str) -> Any:
        return self.changes[name] if name in self.changes else getattr(self.real, name)


@pytest.fixture
def one(study: Study, clip: Callable[[str], Path]) -> Study:
    pytest.importorskip("cv2", reason="OpenCV (check extra) is not installed")
    shutil.copy(clip("cfr.mp4"), study.root / "videos")
    study.write_pool([item("cfr.mp4")])
    assert extract_frames(study, workers=1).made == 1
    return study


def compared(study: Study) -> tuple[str, str]:
    [task] = tasks_of(study, wanted_sets(study))[0]
    [found] = compare.compare(task, study.frames, study.normalized)
    return found.status, found.reason


def capture(**changes: Any) -> Callable[..., Stub]:
    import cv2

    def opened(*arguments: Any) -> Stub:
        real = cv2.VideoCapture(*arguments)
        return Stub(real, **{name: change(real) for name, change in changes.items()})

    return opened


def first(count: int) -> Callable[[Any], Callable[[], bool]]:
    """`grab` of a capture that ends after so many frames, every time but the first."""
    opened = []

    def made(real: Any) -> Callable[[], bool]:
        opened.append(real)
        again, left = len(opened) > 1, iter(range(count))
        return lambda: real.grab() and (not again or next(left, None) is not None)

    return made


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"isOpened": lambda real: lambda: False}, "not_decoded", "OpenCV does not open it"),
        ({"grab": lambda real: lambda: False}, "not_decoded", "OpenCV gives no frame of it"),
        ({"get": lambda real: lambda which: 0.0}, "not_decoded", "OpenCV has neither times nor a frame rate of it"),
        ({"grab": first(5)}, "not_decoded", "OpenCV stopped at frame 5 of"),
        ({"retrieve": lambda real: lambda: (False, None)}, "not_decoded", "OpenCV cannot convert frame"),
    ],
)
def test_what_the_second_decoder_cannot_do_is_no_difference(
    one: Study, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], status: str, told: str
) -> None:
    import cv2

    stub = Stub(cv2, VideoCapture=capture(**changes))
    monkeypatch.setattr(second, "_opencv", lambda: stub)
    found = compared(one)
    assert found[0] == status
    assert found[1].startswith(told)


def test_errors_of_the_second_decoder_are_told(one: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    def refusing(*_: object) -> None:
        raise cv2.error("no backend")

    monkeypatch.setattr(second, "_opencv", lambda: Stub(cv2, VideoCapture=refusing))
    assert compared(one) == ("not_decoded", "OpenCV: no backend")
    monkeypatch.setattr(second, "_opencv", lambda: Stub(cv2, imencode=lambda *_: (False, None)))
    assert compared(one) == ("not_decoded", "OpenCV cannot compress a frame")

    def large(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(second, "_opencv", lambda: Stub(cv2, imencode=large))
    assert compared(one) == ("not_decoded", "its pictures do not fit in memory")


def test_pictures_of_another_size_and_none_at_all_differ(one: Study) -> None:
    from PIL import Image

    [folder] = [path for path in one.frames.iterdir() if (path / "frames.json").exists()]
    table = json.loads((folder / "frames.json").read_text())
    small = io.BytesIO()
    Image.new("RGB", (8, 8)).save(small, "JPEG")
    for data, told in ((small.getvalue(), "is 8x8"), (b"\xff\xd8" + b"\0" * 50 + b"\xff\xd9", "cannot be decoded")):
        (folder / frame_name(4)).write_bytes(data)
        table["frames"][4]["bytes"] = len(data)
        pictures = [(folder / frame_name(index)).read_bytes() for index in range(32)]
        table["sha256"] = hashlib.sha256(b"".join(pictures)).hexdigest()
        (folder / "frames.json").write_text(json.dumps(table))
        assert compared(one) == ("differs", f"{frame_name(4)} {told}")


def test_sources_that_are_gone_or_others(one: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    video = one.root / "videos" / "cfr.mp4"
    with video.open("ab") as file:
        file.write(b"\0" * 9)
    assert compared(one)[0] == "source_changed"
    video.unlink()
    assert compared(one)[0] == "source_missing"
    monkeypatch.setattr(compare, "_digest", lambda *_: None)  # another process removed it just now
    status, reason = compared(one)
    assert (status, reason.endswith("its files went away, or cannot be read")) == ("differs", True)
