import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from benchcheck.config import Normalize
from benchcheck.video.preparing.inspection import inspect
from benchcheck.video.task import Task

from .clips import KINDS, X265, Clip
from .test_decode import damaged
from .test_fingerprint import clips

CODECS = {"libx264": "h264", "libx265": "hevc", "libvpx-vp9": "vp9", "libvpx": "vp8"}
CONTAINERS = {".mp4": "mov,mp4,m4a,3gp,3g2,mj2", ".mkv": "matroska,webm", ".webm": "matroska,webm", ".ts": "mpegts"}


def task_of(path: Path) -> Task:
    return Task(f"b::::{path.name}", (str(path),), {}, str(path.parent))


def probe_of(path: Path) -> dict[str, Any]:
    found = inspect(task_of(path), 1, None, path.parent)
    assert found["status"] == "prepared", found
    return dict(found["probe"])


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_clip_is_what_it_was_made_as(name: str, clip: Callable[[str], Path]) -> None:
    path, made = clip(name), KINDS[name]
    found = probe_of(path)
    sideways = made.rotation % 180 != 0
    assert found["codec"] == CODECS.get(made.codec, made.codec)
    assert found["container"] == CONTAINERS.get(path.suffix, path.suffix[1:].replace("mpg", "mpeg"))
    assert found["pixel_format"] == ("bgra" if made.codec == "gif" else made.pixels)
    assert found["bit_depth"] == (10 if "10" in made.pixels else 8)
    stored = (made.height, made.width) if sideways else (made.width, made.height)
    assert (found["width"], found["height"], found["display"]) == (*stored, [made.width, made.height])
    assert found["rotation"] == made.rotation % 360
    assert found["frames"] == made.frames
    assert found["variable"] is (name == "vfr.mp4")
    assert (found["audio"], found["pixel_shape"], found["damaged"]) == (None, "1:1", 0)
    assert found["bytes"] == path.stat().st_size
    if name != "vfr.mp4":
        assert found["fps"] == pytest.approx(made.rate, rel=1e-4)
        assert found["duration"] == pytest.approx(made.frames / made.rate, abs=0.002)


def test_key_frames_are_counted_in_seconds(clip: Callable[[str], Path]) -> None:
    found = probe_of(clip("gop.mp4"))
    assert (found["key_frames"] >= 50, found["key_interval"] <= 8 / 25) == (True, True)
    assert probe_of(clip("fragmented.mp4"))["key_interval"] == pytest.approx(8 / 25)
    assert probe_of(clip("nob.mp4"))["key_frames"] == 1
    assert probe_of(clip("nob.mp4"))["key_interval"] == pytest.approx(64 / 25)
    assert probe_of(clip("broadcast.ts"))["key_frames"] >= 8


def test_a_header_that_lies_is_told_beside_what_is_so(clip: Callable[[str], Path], tmp_path: Path) -> None:
    data = bytearray(clip("odd.mkv").read_bytes())
    place = data.index(b"\x44\x89\x88") + 3  # the element Duration, a double in milliseconds
    assert struct.unpack(">d", data[place : place + 8]) == (2560.0,)
    data[place : place + 8] = struct.pack(">d", 36000.0)
    (tmp_path / "lie.mkv").write_bytes(data)
    found = probe_of(tmp_path / "lie.mkv")
    assert (found["frames"], found["duration"], found["fps"]) == (64, 2.56, 25.0)
    assert found["announced"] == {"duration": 36.0}
    assert probe_of(clip("odd.mkv"))["announced"] == {}
    assert probe_of(clip("vfr.mp4"))["announced"]["fps"] == pytest.approx(64 / 26.808, abs=1e-5)


def test_sound_pixel_shape_and_profile(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    with_sound(path, Clip(frames=20, options=(("profile", "main"),)), shape=Fraction(2, 1))
    found = probe_of(path)
    assert (found["audio"], found["profile"]) == ("aac", "Main")
    assert (found["pixel_shape"], found["display"]) == ("2:1", [176, 48])


def with_sound(path: Path, clip: Clip, shape: Fraction | None = None, rate: int = 16000, late: float = 0.0) -> Path:
    """A clip with a tone of its length that begins `late` seconds after it."""
    silent = clip.write(path.with_name(f"silent-{path.name}"))
    with av.open(str(silent)) as source, av.open(str(path), "w") as target:
        shown = source.streams.video[0]
        video = target.add_stream_from_template(shown)
        if shape is not None:
            video.sample_aspect_ratio = shape
        audio = target.add_stream("aac", rate=rate, layout="mono")
        for packet in source.demux(shown):
            if packet.size:
                packet.stream = video
                target.mux(packet)
        for start in range(0, int(clip.frames / clip.rate * rate), 1024):
            wave = np.sin(np.arange(start, start + 1024) / rate * 2 * np.pi * 440).astype(np.float32) / 4
            frame = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
            frame.rate, frame.pts = rate, start + round(late * rate)
            target.mux(audio.encode(frame))
        target.mux(audio.encode())
    return path


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html>", "html"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "lfs_pointer"),
        (bytes(range(256)) * 20, "not_a_video"),
    ],
)
def test_what_is_no_video_has_a_status(content: bytes, status: str, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    found = inspect(task_of(tmp_path / "a.mp4"), 1, None, tmp_path)
    assert (found["status"], bool(found["error"])) == (status, True)
    assert "probe" not in found


def test_a_cut_file_and_one_that_is_gone(clip: Callable[[str], Path], tmp_path: Path) -> None:
    data = clip("cfr.mp4").read_bytes()
    (tmp_path / "a.mp4").write_bytes(data[: len(data) // 2])
    assert inspect(task_of(tmp_path / "a.mp4"), 1, None, tmp_path)["status"] == "cut"
    assert inspect(task_of(tmp_path / "gone.mp4"), 1, None, tmp_path)["status"] == "missing"


def test_damaged_frames_are_counted_and_the_video_is_not_normalised(
    clip: Callable[[str], Path], tmp_path: Path
) -> None:
    path = damaged(clip("gop.mp4"), tmp_path / "a.mp4", start=0.3, share=0.1)
    found = inspect(task_of(path), 1, Normalize(), tmp_path / "normalized")
    assert found["status"] == "prepared"
    assert found["probe"]["damaged"] > 0
    assert found["not_normalised"]["status"] == "damaged"
    assert not list((tmp_path / "normalized").iterdir())


def test_pictures_that_do_not_fit_in_memory(
    clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("benchcheck.video.preparing.inspection._looked_at", full)
    assert inspect(task_of(clip("cfr.mp4")), 1, None, tmp_path)["status"] == "unsupported"


def test_ten_bits_of_hevc(tmp_path: Path) -> None:
    path = Clip(frames=5, codec="libx265", pixels="yuv420p10le", options=X265).write(tmp_path / "a.mkv")
    found = probe_of(path)
    assert (found["bit_depth"], found["profile"], found["codec"]) == (10, "Main 10", "hevc")


REAL = {
    "bigbuckbunny": (132, 25.0, [1280, 720], "aac", "1:1"),
    "bikes": (250, 25.0, [640, 272], None, "1:1"),
    "carphone_distorted": (120, 30000 / 1001, [176, 132], None, "128:117"),
    "carphone_pristine": (120, 30000 / 1001, [176, 132], None, "128:117"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_clips_are_what_they_are(name: str) -> None:
    frames, fps, display, audio, shape = REAL[name]
    found = probe_of(clips()[name])
    assert (found["frames"], found["display"], found["audio"]) == (frames, display, audio)
    assert found["fps"] == pytest.approx(fps, rel=1e-4)
    assert found["duration"] == pytest.approx(frames / fps, rel=1e-4)
    assert (found["pixel_shape"], found["codec"], found["variable"]) == (shape, "h264", False)
    assert found["announced"] == {}
