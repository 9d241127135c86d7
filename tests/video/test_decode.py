import io
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from benchcheck.video.decoding import decode, opened
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec, decoder_versions
from benchcheck.video.faults import VideoError
from benchcheck.video.grid import grid_times

from .clips import KINDS, NO_B_FRAMES, SHORT_GOP, Clip, number_of

SPEC = Spec(count=32, long_side=448, quality=85)
EXPECTED_S = {"vfr.mp4": 63 * 63 * 7 + 63 * 11}


def grid(video: Video, count: int = 32) -> tuple[list[int], list[bytes]]:
    """Indices and pictures of a video's grid, chosen anew when its timeline proves wrong."""
    pictures = None
    while pictures is None:
        timeline = video.timeline()
        indices = [timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, count)]
        pictures = video.pictures(indices)
    return indices, [pictures[index] for index in indices]


def numbers(jpegs: list[bytes]) -> list[int]:
    return [number_of(Image.open(io.BytesIO(jpeg))) for jpeg in jpegs]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "vfr.mp4"])
def test_the_frame_on_screen_is_chosen(clip: Callable[[str], Path], name: str) -> None:
    count = KINDS[name].frames
    video = Video(str(clip(name)), SPEC)
    _, jpegs = grid(video)
    assert len(video.timeline().pts) == count
    assert video.timeline().length == Fraction(count, KINDS[name].rate)
    assert numbers(jpegs) == [(2 * k + 1) * count // 64 for k in range(32)]


def test_irregular_times_are_honoured(clip: Callable[[str], Path]) -> None:
    pts = KINDS["vfr.mp4"].pts
    assert pts is not None
    video = Video(str(clip("vfr.mp4")), SPEC)
    _, jpegs = grid(video)
    length = video.timeline().length * 1000
    assert pts[-1] < length < 2 * pts[-1]
    expected = [max(n for n, tick in enumerate(pts) if tick <= Fraction(2 * k + 1, 64) * length) for k in range(32)]
    assert numbers(jpegs) == expected
    assert expected != [(2 * k + 1) for k in range(32)], "by number would be another choice"


@pytest.mark.parametrize("name", KINDS)
def test_both_ways_give_the_same_frames(clip: Callable[[str], Path], name: str) -> None:
    for count in (32, 3):
        quick, thorough = Video(str(clip(name)), SPEC), Video(str(clip(name)), SPEC, thorough=True)
        assert grid(quick, count) == grid(thorough, count)
        assert quick.timeline().length == thorough.timeline().length


@pytest.mark.parametrize("name", ["gop.mp4", "opengop.mp4", "hevc.mkv"])
@pytest.mark.parametrize("threads", [1, 2])
def test_jumping_gives_the_frames_of_one_pass(
    clip: Callable[[str], Path], name: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Spec(6, 448, 85, threads)
    jumps = []
    real = decode.saves_time
    monkeypatch.setattr(decode, "saves_time", lambda runs: jumps.append(len(runs)) or real(runs))
    jumped = grid(Video(str(clip(name)), spec), 6)
    assert jumps[0] > 1
    assert real is not None
    monkeypatch.setattr(decode, "saves_time", lambda runs: False)
    assert grid(Video(str(clip(name)), spec), 6) == jumped


def test_a_jump_that_lands_too_late_falls_back(clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = grid(Video(str(clip("gop.mp4")), SPEC, thorough=True), 4)
    real = opened.frames_of

    def late(container, stream, errors, *, must_start=None, **others):
        return real(container, stream, errors, must_start=None if must_start is None else must_start - 1, **others)

    monkeypatch.setattr(decode, "frames_of", late)
    assert grid(Video(str(clip("gop.mp4")), SPEC), 4) == expected


@pytest.mark.parametrize(
    "options",
    [(("bf", "3"), ("x264-params", "b-pyramid=normal")), (("bf", "8"), ("x264-params", "b-pyramid=none")), NO_B_FRAMES],
)
def test_frames_that_no_other_refers_to_are_left_out_and_pictures_stay_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[tuple[str, str], ...]
) -> None:
    path = Clip(frames=300, options=options).write(tmp_path / "a.mp4")
    seen = Counter[bool]()
    real = opened.frames_of

    def counted(*given, needed=None, **named):
        for frame in real(*given, needed=needed, **named):
            seen[needed is not None] += 1
            yield frame

    monkeypatch.setattr(decode, "frames_of", counted)
    sparing = grid(Video(str(path), SPEC), 16)
    monkeypatch.setattr(decode, "_SPARING", frozenset())
    assert grid(Video(str(path), SPEC), 16) == sparing
    # Without B-frames each frame refers to the one before; with eight in a row most are left out.
    assert seen[True] == seen[False] if options is NO_B_FRAMES else seen[True] < 0.75 * seen[False]


@pytest.mark.parametrize(("width", "height"), [(1000, 300), (300, 1000), (451, 449), (96, 64)])
def test_pictures_are_scaled_to_the_long_side_and_never_enlarged(tmp_path: Path, width: int, height: int) -> None:
    video = Video(str(Clip(4, width, height, pixels="yuv444p").write(tmp_path / "a.mp4")), SPEC)
    _, jpegs = grid(video)
    size = Image.open(io.BytesIO(jpegs[0])).size
    assert size == video.picture.size
    assert max(size) == min(448, max(width, height))
    assert abs(size[0] / size[1] / (width / height) - 1) < 0.01


def test_turned_video_is_upright_and_its_stored_size_is_kept(clip: Callable[[str], Path]) -> None:
    video = Video(str(clip("quarter.mp4")), SPEC)
    _, jpegs = grid(video)
    assert (video.picture.stored, video.picture.size, video.picture.turns) == ((96, 176), (176, 96), 1)
    assert Image.open(io.BytesIO(jpegs[0])).size == (176, 96)


def test_anamorphic_pixels_are_squared(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 160, 100, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(2, 1)
        for pts in range(3):
            frame = av.VideoFrame.from_ndarray(np.zeros((100, 160, 3), np.uint8), format="rgb24")
            frame.pts = pts
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    video = Video(str(tmp_path / "a.mp4"), SPEC)
    grid(video)
    assert video.picture.size == (160, 50)


def test_colours_survive(tmp_path: Path) -> None:
    colours = [(250, 10, 10), (10, 250, 10), (10, 10, 250)]
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("libx264", rate=1, options={"crf": "10"})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for pts, colour in enumerate(colours):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), colour, np.uint8), format="rgb24")
            frame.pts = pts
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    _, jpegs = grid(Video(str(tmp_path / "a.mp4"), SPEC), 3)
    for jpeg, colour in zip(jpegs, colours, strict=True):
        assert np.abs(np.asarray(Image.open(io.BytesIO(jpeg))).mean((0, 1)) - colour).max() < 12


def refused(path: Path) -> VideoError:
    with pytest.raises(VideoError) as raised:
        grid(Video(str(path), SPEC))
    return raised.value


def test_sound_only(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.rate = 8000
        container.mux([*stream.encode(frame), *stream.encode()])
    assert refused(tmp_path / "a.mp4").status == "no_video_stream"


def test_still_images(tmp_path: Path) -> None:
    image = Image.new("RGB", (32, 32))
    for name in ("a.gif", "a.webp", "a.tiff"):
        image.save(tmp_path / name)
        assert refused(tmp_path / name).status == "still_image"


def test_no_frame_at_all(tmp_path: Path, clip: Callable[[str], Path]) -> None:
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        container.start_encoding()
    assert refused(tmp_path / "a.mkv").status == "not_a_video"
    data = bytearray(clip("nob.mp4").read_bytes())
    with av.open(str(clip("nob.mp4"))) as container:
        for packet in container.demux(video=0):
            if packet.size:
                data[packet.pos : packet.pos + packet.size] = b"\xff" * packet.size
    (tmp_path / "b.mp4").write_bytes(bytes(data))
    told = refused(tmp_path / "b.mp4")
    assert (told.status, bool(told.reason)) == ("no_frames", True)


def test_other_files_are_never_opened_through_a_playlist(tmp_path: Path, clip: Callable[[str], Path]) -> None:
    (tmp_path / "a.mp4").write_text(f"ffconcat version 1.0\nfile {clip('cfr.mp4')}\n")
    (tmp_path / "b.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{clip('broadcast.ts')}\n#EXT-X-ENDLIST\n"
    )
    assert {refused(tmp_path / name).status for name in ("a.mp4", "b.mp4")} == {"not_a_video"}


def test_noise_is_not_a_video(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(np.random.default_rng(1).bytes(20000))
    assert refused(tmp_path / "a.mp4").status in {"not_a_video", "no_frames", "damaged"}


def damaged(path: Path, target: Path, *, start: float, share: float) -> Path:
    """A copy whose packets in a part of the data are overwritten with noise; the index stays."""
    with av.open(str(path)) as container:
        spans = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    data = bytearray(path.read_bytes())
    for pos, size in spans[int(start * len(spans)) : int((start + share) * len(spans))]:
        data[pos + 4 : pos + size] = np.random.default_rng(pos).bytes(size - 4) if size > 4 else b""
    target.write_bytes(bytes(data))
    return target


def test_damage_is_found_where_it_is(clip: Callable[[str], Path], tmp_path: Path) -> None:
    video = Video(str(damaged(clip("gop.mp4"), tmp_path / "a.mp4", start=0.5, share=0.02)), SPEC)
    pictures = video.pictures(range(0, 400, 10))
    assert pictures is None, "the packets' timeline is given up as soon as anything is wrong"
    timeline = video.timeline()
    hurt = timeline.damaged | timeline.holes
    assert len(timeline.pts) == 400
    assert hurt
    assert all(190 <= index <= 220 for index in hurt), sorted(hurt)
    whole = video.pictures(index for index in range(0, 400, 10) if index not in hurt)
    assert whole is not None
    for index, jpeg in whole.items():
        if index not in hurt:
            assert numbers([jpeg]) == [index]


def test_a_jump_over_the_damage_sees_the_same_video(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path = str(damaged(clip("gop.mp4"), tmp_path / "a.mp4", start=0.3, share=0.02))
    quick, thorough = Video(path, SPEC), Video(path, SPEC, thorough=True)
    assert grid(quick, 2) == grid(thorough, 2)
    assert quick.timeline().length == thorough.timeline().length


def test_damage_in_a_file_without_times_fails_it(tmp_path: Path) -> None:
    path = Clip(200, options=SHORT_GOP).write(tmp_path / "a.avi")
    assert refused(damaged(path, path, start=0.4, share=0.3)).status == "damaged"


def test_a_truncated_file_is_never_filled_with_copies(clip: Callable[[str], Path], tmp_path: Path) -> None:
    """Beyond the structure checks: the index promises frames that the file has not."""
    data = clip("faststart.mp4").read_bytes()
    (tmp_path / "a.mp4").write_bytes(data[: int(len(data) * 0.6)])
    video = Video(str(tmp_path / "a.mp4"), SPEC)
    while (pictures := video.pictures(range(len(video.timeline().pts)))) is None:
        pass
    timeline = video.timeline()
    for index, jpeg in pictures.items():
        assert index in timeline.damaged or numbers([jpeg]) == [index]


def test_names_that_look_like_protocols_and_patterns(clip: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("k:a b.mp4", "http:x.mp4", "%03d.mp4", "né\n'\".mp4"):
        (tmp_path / name).write_bytes(clip("seven.mp4").read_bytes())
        assert len(Video(str(tmp_path / name), SPEC).timeline().pts) == 7


def test_versions_of_what_made_the_pixels() -> None:
    versions = decoder_versions("h264")
    assert versions["name"] == "h264"
    assert all(versions[part][0].isdigit() for part in ("pyav", "libavcodec", "libswscale", "pillow"))


@pytest.mark.parametrize("share", [0.3, 0.4, 0.5, 0.6, 0.7])
def test_a_gap_in_a_broadcast_is_flagged_or_refused(clip: Callable[[str], Path], tmp_path: Path, share: float) -> None:
    data = clip("broadcast.ts").read_bytes()
    middle = int(len(data) // 188 * share)
    (tmp_path / "a.ts").write_bytes(data[: middle * 188] + data[(middle + 5) * 188 :])
    try:
        video = Video(str(tmp_path / "a.ts"), SPEC)
    except VideoError as fault:
        refusal = fault.status
    else:
        refusal = "" if video.timeline().damaged else "nothing was noticed"
    assert refusal in ("", "damaged")


@pytest.mark.parametrize("codec", ["libx264", "libsvtav1"])
def test_threads_find_the_same_damage(tmp_path: Path, codec: str) -> None:
    """With several threads what the decoder says is still heard, and closing it amid damage does not hang."""
    path = damaged(Clip(300, codec=codec).write(tmp_path / "a.mp4"), tmp_path / "b.mp4", start=0.4, share=0.02)
    one, four = (Video(str(path), Spec(32, 448, 85, threads)) for threads in (1, 4))
    indices = range(0, 300, 7)
    for video in (one, four):
        while video.pictures(indices) is None:
            pass
    assert one.timeline() == four.timeline()
    assert one.timeline().damaged | one.timeline().holes
