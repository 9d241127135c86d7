"""Frames: videos a second with one and with all workers, against a plain one-process loop, as ratios in one run.

    python bench/frames.py [--seconds 20] [--size 1280x720] [--copies 8]

The plain loop is what one writes first: decode every frame of the video, convert each chosen one at full size, resize
it with Pillow, save it. Also measured here: jumping against one pass, what a jump
costs in decoded frames (`seeks.SEEK_COST`), and what loading a set costs.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

from benchcheck.config import Config, Frames, Model
from benchcheck.pool.items import Item, VideoRef
from benchcheck.study import Study
from benchcheck.video.decoding import decode, opened, picture, seeks
from benchcheck.video.frames import load_frames
from benchcheck.video.grid import grid_times
from benchcheck.video.making.extract import extract_frames


def make_clip(path: Path, seconds: int, width: int, height: int, gop: int = 250) -> None:
    """Moving noise at 25 frames a second: costs a decoder about what a film does, as a flat test picture would not."""
    rng = np.random.default_rng(0)
    texture = np.asarray(
        Image.fromarray(rng.integers(0, 255, (height // 8, width // 4, 3), np.uint8)).resize((2 * width, height))
    )
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "veryfast", "g": str(gop)})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(25 * seconds):
            shift = number * 4 % width
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(texture[:, shift : shift + width]), format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def make_item(number: int) -> Item:
    ref = VideoRef("b", f"{number}.mp4")
    shown = {"question": "?", "options": ("a", "b"), "gold": 0, "format": "mcq"}
    return Item(item_id=f"b_{number}", bench="b", source_id="", video_key=ref.key, video_id=ref.video_id, **shown)


def make_study(root: Path) -> Study:
    models = {role: Model(model="m") for role in ("8b", "2b")}
    return Study(root, Config(study_version=1, models=models, frames=Frames()))


def naive(paths: list[Path], out: Path) -> None:
    """Decode all, convert at full size, resize with Pillow."""
    for path in paths:
        with av.open(str(path)) as container:
            count = container.streams.video[0].frames
            chosen = {(2 * k + 1) * count // 64 for k in range(32)}
            for number, frame in enumerate(container.decode(video=0)):
                image = frame.to_image()
                if number in chosen:
                    image.thumbnail((448, 448))
                    image.save(out / f"{path.stem}_{number}.jpg", quality=85)


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    begun = clock()
    work()
    return clock() - begun


def extraction(study: Study, items: list[Item], workers: int) -> float:
    shutil.rmtree(study.frames, ignore_errors=True)
    spent = timed(lambda: extract_frames(study, items=items, workers=workers))
    assert len(study.frames_ready()) == len(items)
    return spent


def one_video(path: Path, *, jump: bool | None) -> float:
    """CPU seconds for one video in this process, which other work on the machine does not disturb."""
    real = seeks.saves_time
    decode.saves_time = real if jump is None else lambda runs: jump and bool(runs)
    try:
        return min(timed(lambda: grid(path), time.process_time) for _ in range(3))
    finally:
        decode.saves_time = real


def grid(path: Path) -> decode.Video:
    video = decode.Video(str(path), picture.Spec(32, 448, 85))
    timeline = video.timeline()
    video.pictures([timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, 32)])
    return video


def report_workers(study: Study, items: list[Item], paths: list[Path], out: Path) -> None:
    count = len(items)
    plain = timed(lambda: naive(paths, out))
    print(f"plain loop, one process       {count / plain:6.2f} videos/s   1.0")
    for workers in (1, 2, 4):
        spent = extraction(study, items, workers)
        print(
            f"extract_frames, {workers} worker(s)   {count / spent:6.2f} videos/s   {plain / spent:.1f} times the plain"
        )


def report_ways(name: str, path: Path) -> None:
    """What jumping saves, and what a jump costs: the excess over the decoded frames' share of one pass."""
    once, jumped, chosen = (one_video(path, jump=jump) for jump in (False, True, None))
    print(f"{name}: one pass {once:.2f} CPU s, jumping {jumped:.2f} s, chosen {chosen:.2f} s")
    with opened.Opened(str(path), 1) as (container, stream):
        packets = opened.packets_of(container, stream)
    assert packets is not None
    timeline = decode.Video(str(path), picture.Spec(32, 448, 85)).timeline()
    indices = {timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, 32)}
    runs = seeks.plan_runs(packets, sorted(timeline.pts[index] for index in indices))
    decoded, each = sum(run.last - run.first + 1 for run in runs), once / len(packets.pts)
    print(f"  {len(runs)} runs decode {decoded} of {len(packets.pts)} frames; a jump costs as much as "
          f"{(jumped - decoded * each) / each / len(runs):.0f} frames")  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=20)
    options.add_argument("--size", default="1280x720")
    options.add_argument("--copies", type=int, default=8)
    given = options.parse_args()
    width, height = map(int, given.size.split("x"))
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "videos").mkdir()
        make_clip(root / "videos" / "0.mp4", given.seconds, width, height)
        make_clip(root / "long.mp4", 6 * given.seconds, width // 2, height // 2, gop=50)
        paths = [root / "videos" / f"{number}.mp4" for number in range(given.copies)]
        for path in paths[1:]:
            shutil.copy(paths[0], path)
        (root / "plain").mkdir()
        study, items = make_study(root), [make_item(number) for number in range(given.copies)]
        report_workers(study, items, paths, root / "plain")
        report_ways("short", paths[0])
        report_ways("long, a key frame every 2 s", root / "long.mp4")
        loading = timed(lambda: [load_frames(study, item.frames_key) for _ in range(50) for item in items])
        print(f"load_frames: {1000 * loading / 50 / given.copies:.2f} ms a set")


if __name__ == "__main__":
    main()
