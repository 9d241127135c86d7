import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchcheck.config import Normalize
from benchcheck.errors import StudyError
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.faults import VideoError
from benchcheck.video.folders import clear_abandoned
from benchcheck.video.grid import Timeline, grid_times
from benchcheck.video.preparing.normalise import even_size, normalise, showings
from benchcheck.video.preparing.normalized import normalized_media, read_meta
from benchcheck.video.sources.media import Media
from benchcheck.video.store import check_file

from .clips import KINDS, Clip, number_of
from .test_probe import with_sound

CUT_IN = Clip(
    frames=80,
    pts=[number - 15 for number in range(80)],
    container=(("avoid_negative_ts", "disabled"), ("use_editlist", "1")),
)
"""An edit list leaves the first 15 frames out."""


def media_of(path: Path) -> Media:
    digest, size = check_file(str(path))
    return Media(str(path), path.name, digest, size)


def normal(path: Path, parent: Path, **settings: Any) -> Path:
    media = media_of(path)
    normalise(media, Normalize(**settings), parent)
    return parent / media.sha256 / "video.mp4"


def grid_of(path: Path, count: int = 32) -> tuple[Timeline, list[float], list[int]]:
    """A video's timeline, and when and what the frames of its grid are."""
    video, pictures = Video(str(path), Spec(count, 448, 90)), None
    while pictures is None:
        timeline = video.timeline()
        places = [timeline.shown_at(moment) for moment in grid_times(Fraction(0), timeline.length, count)]
        pictures = video.pictures(set(places))
    numbers = [number_of(Image.open(io.BytesIO(pictures[place]))) for place in places]
    return timeline, [timeline.seconds(place) for place in places], numbers


@pytest.mark.parametrize("name", [*KINDS, "edited.mp4"])
def test_the_grid_of_the_normalised_video_has_the_same_frames_at_the_same_times(
    name: str, clip: Callable[[str], Path], tmp_path: Path
) -> None:
    source = CUT_IN.write(tmp_path / name) if name == "edited.mp4" else clip(name)
    path = normal(source, tmp_path / "normalized")
    (before, when, numbers), (after, then, again) = grid_of(source), grid_of(path)
    assert (again, then) == (numbers, when)
    assert -1 not in numbers
    assert after.length == before.length
    assert [after.seconds(n) for n in range(len(after.pts))] == [before.seconds(n) for n in range(len(before.pts))]
    if name == "edited.mp4":
        assert numbers[0] == 15 + 1
    meta = json.loads((path.parent / "meta.json").read_text())
    assert meta["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert meta["content_hash"] == path.parent.name == media_of(source).sha256
    assert (meta["frames"], meta["sound"]) == (len(before.pts), False)
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert [stream.width, stream.height] == meta["size"] == [176, 96]
        assert not container.streams.audio


def test_a_constant_rate_shows_what_the_original_shows_then(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path = normal(clip("vfr.mp4"), tmp_path, timestamps="constant", fps=4.0)
    before = Video(str(clip("vfr.mp4")), Spec(1, 448, 90))
    after = Video(str(path), Spec(1, 448, 90))
    timeline = after.timeline()
    assert {later - earlier for earlier, later in zip(timeline.pts, timeline.pts[1:], strict=False)} == {
        Fraction(1, 4) / timeline.time_base
    }
    assert abs(timeline.length - before.timeline().length) < Fraction(1, 4)
    every = after.pictures(range(len(timeline.pts)))
    assert every is not None
    for index in range(len(timeline.pts)):
        shown = number_of(Image.open(io.BytesIO(every[index])))
        assert shown == before.timeline().shown_at(Fraction(index, 4))


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=40),
    st.integers(-100, 100),
    st.fractions(Fraction(1, 2), 60, max_denominator=1001),
    st.sampled_from([Fraction(1, 25), Fraction(1, 1000), Fraction(1001, 30000)]),
)
def test_when_frames_are_shown(gaps: list[int], first: int, fps: Fraction, base: Fraction) -> None:
    pts = [first + sum(gaps[:n]) for n in range(len(gaps))]
    gaps[-1] = max(1, gaps[-1])  # a last frame lasts
    timeline = Timeline(tuple(pts), first + sum(gaps), base)
    tick, times = showings(timeline, None)
    assert tick == base
    assert [times(n) for n in range(len(pts))] == [
        [(p - first, gap)] if gap else [] for p, gap in zip(pts, gaps, strict=True)
    ]
    tick, times = showings(timeline, fps)
    shown = {place: n for n in range(len(pts)) for place, lasting in times(n) if lasting == 1}
    assert tick == 1 / fps
    assert shown == {n: timeline.shown_at(n / fps) for n in range(len(shown))}
    assert 0 <= len(shown) / fps - timeline.length < 1 / fps


@given(st.integers(1, 8000), st.integers(1, 8000), st.integers(16, 4320))
def test_sizes_are_even_small_enough_and_of_the_same_shape(width: int, height: int, short_side: int) -> None:
    wide, high = even_size(width, height, short_side)
    assert wide % 2 == high % 2 == 0
    assert min(wide, high) <= max(2, short_side)
    assert (wide <= max(2, width), high <= max(2, height)) == (True, True)
    scale = min(1, short_side / min(width, height))
    assert abs(wide - width * scale) <= 2
    assert abs(high - height * scale) <= 2


def test_large_videos_are_made_smaller_and_square_their_pixels(tmp_path: Path) -> None:
    source = with_sound(tmp_path / "a.mp4", Clip(frames=10, width=640, height=480), shape=Fraction(1, 2))
    meta = read_meta(normal(source, tmp_path / "n", short_side=120).parent)
    assert meta is not None
    assert meta["size"] == [120, 180]  # 320 x 480 with square pixels


def test_sound_is_kept_in_step_when_it_is_wanted(tmp_path: Path) -> None:
    source = with_sound(tmp_path / "a.mp4", Clip(frames=75), late=1.0)
    path = normal(source, tmp_path / "n", audio=True)
    with av.open(str(path)) as container:
        assert container.streams.audio[0].codec_context.name == "aac"
        heard = [(float(f.pts * f.time_base), float(np.abs(f.to_ndarray()).mean())) for f in container.decode(audio=0)]
    loud = [second for second, level in heard if level > 0.05]
    assert loud[0] == pytest.approx(1.0, abs=0.15)
    assert loud[-1] == pytest.approx(4.0, abs=0.2)
    assert grid_of(path)[2] == grid_of(source)[2]
    silent = normal(Clip(frames=5).write(tmp_path / "s.mp4"), tmp_path / "n", audio=True)
    assert json.loads((silent.parent / "meta.json").read_text())["sound"] is False


def test_one_that_is_there_in_this_form_stays_and_another_form_replaces_it(
    clip: Callable[[str], Path], tmp_path: Path
) -> None:
    path = normal(clip("cfr.mp4"), tmp_path)
    stamp = path.stat().st_mtime_ns
    assert normal(clip("cfr.mp4"), tmp_path).stat().st_mtime_ns == stamp
    other = normal(clip("cfr.mp4"), tmp_path, short_side=48)
    assert read_meta(other.parent) is not None
    assert json.loads((other.parent / "meta.json").read_text())["size"] == [88, 48]
    other.write_bytes(other.read_bytes()[:-5])
    assert read_meta(other.parent) is None
    assert read_meta(normal(clip("cfr.mp4"), tmp_path, short_side=48).parent) is not None
    assert os.listdir(tmp_path) == [other.parent.name]


def test_a_normalised_video_is_found_by_content_and_checked(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path, pictures = normal(clip("cfr.mp4"), tmp_path), Normalize().pictures
    content = path.parent.name
    media = normalized_media(tmp_path, content, pictures)
    assert (media.path, media.name) == (str(path), f"normalized/{content}/video.mp4")
    for wrong in ("", "0" * 64):
        with pytest.raises(VideoError) as fault:
            normalized_media(tmp_path, wrong, pictures)
        assert fault.value.status == "not_prepared"
    with pytest.raises(VideoError) as fault:
        normalized_media(tmp_path, content, pictures | {"crf": 30})
    assert fault.value.status == "not_prepared"
    data = bytearray(path.read_bytes())
    data[data.index(b"mdat") + 700] ^= 1
    path.write_bytes(data)
    with pytest.raises(VideoError) as fault:
        normalized_media(tmp_path, content, pictures)
    assert fault.value.status == "changed"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"version": 1}', '{"version": 1, "bytes": 3, "form": {}, "sha256": 5}']
)
def test_a_meta_file_that_is_none_is_no_video(text: str, tmp_path: Path) -> None:
    (tmp_path / "video.mp4").write_bytes(b"abc")
    (tmp_path / "meta.json").write_text(text)
    assert read_meta(tmp_path) is None


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, small_disk: Path) -> None:
    source, noise = tmp_path / "noise.mp4", np.random.default_rng(0)
    with av.open(str(source), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for _ in range(30):
            picture = noise.integers(0, 256, (240, 320, 3)).astype(np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    with pytest.raises(StudyError, match="the disk is full"):
        normalise(media_of(source), Normalize(crf=0), small_disk)
    assert os.listdir(small_disk) == []


KILLED = """
import sys
from pathlib import Path
from benchcheck.config import Normalize
from benchcheck.video.sources.media import Media
from benchcheck.video.preparing.normalise import normalise
from benchcheck.video.store import check_file
digest, size = check_file(sys.argv[1])
print("begun", flush=True)
normalise(Media(sys.argv[1], "a.mp4", digest, size), Normalize(), Path(sys.argv[2]))
"""


def test_killed_while_writing_it_is_not_there_and_the_next_run_makes_it(tmp_path: Path) -> None:
    source = Clip(frames=1000, width=640, height=360).write(tmp_path / "a.mp4")
    parent = tmp_path / "normalized"
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(source), str(parent)], stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"begun\n"
    while not any(parent.glob(".*.tmp/video.mp4")):
        assert run.poll() is None
        time.sleep(0.005)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert all(name.startswith(".") for name in os.listdir(parent))
    assert clear_abandoned(parent, "meta.json") == 1
    assert read_meta(normal(source, parent).parent) is not None


def test_frames_of_one_time_are_one_frame(tmp_path: Path) -> None:
    """Matroska counts whole milliseconds: of 2000 frames a second every other one is never on screen."""
    source = Clip(frames=60, rate=2000, options=(("bf", "0"),)).write(tmp_path / "dense.mkv")
    (before, when, numbers), (after, then, again) = grid_of(source), grid_of(normal(source, tmp_path / "n"))
    assert len(set(before.pts)) < len(before.pts) == 60
    assert len(after.pts) == len(set(before.pts))
    assert (again, then, after.length) == (numbers, when, before.length)
