"""Frames against ffmpeg: CPU and wall time for the same 32 JPEGs of each clip, and the memory of both, in one run.

    python bench/frames_ffmpeg.py [--clips 200] [--every 1] [--seconds 60] [--size 1280x720] [--keep FOLDER]

Made clips (H.264, moving test pattern with noise; a key frame every 250 frames as x264 sets it, or every 50) lie under
many names. In turns, a few clips at a time: `extract_frames` with one worker, and ffmpeg with one call a clip, which
selects the same frame numbers, scales them by the same filter and writes JPEGs, once with one thread and once with the
threads that it takes by itself. Ratios are of means a clip; with `--every 4` ffmpeg takes part in each fourth turn
only, since it is the slower one and its figure hardly moves. ffmpeg is no dependency of benchcheck: without it this
ends.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from benchcheck.config import Config, Frames, Model
from benchcheck.pool.items import Item, VideoRef
from benchcheck.study import Study
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.grid import grid_times
from benchcheck.video.making.extract import extract_frames

GOPS = (250, 50)
TURN = 5
"""Clips in one turn."""


def make_clip(path: Path, seconds: int, size: str, gop: int) -> None:
    source = f"testsrc2=size={size}:rate=25:duration={seconds},noise=alls=5:allf=t"
    coding = ["-c:v", "libx264", "-preset", "veryfast", "-bf", "3", "-crf", "24", "-g", str(gop), "-pix_fmt", "yuv420p"]
    run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, *coding, str(path))


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def make_study(root: Path) -> Study:
    models = {role: Model(model="m") for role in ("8b", "2b")}
    return Study(root, Config(study_version=1, models=models, frames=Frames()))


def make_item(name: str) -> Item:
    ref = VideoRef("b", name)
    shown = {"question": "?", "options": ("a", "b"), "gold": 0, "format": "mcq"}
    return Item(item_id=f"b_{name}", bench="b", source_id="", video_key=ref.key, video_id=ref.video_id, **shown)


def numbers_of(path: Path) -> list[int]:
    """Frame numbers of the grid, by benchcheck."""
    timeline = Video(str(path), Spec(32, 448, 85)).timeline()
    return [timeline.shown_at(moment) for moment in grid_times(Fraction(0), timeline.length, 32)]


def by_ffmpeg(path: Path, numbers: list[int], out: Path, size: tuple[int, int], threads: int) -> None:
    """The frames of one clip by one call, the way its documentation gives."""
    chosen = "+".join(f"eq(n\\,{number})" for number in sorted(set(numbers)))
    one = ["-threads", "1", "-filter_threads", "1"] if threads == 1 else []
    out.mkdir()
    run(
        "ffmpeg", "-v", "error", "-nostdin", *one, "-i", str(path),
        "-vf", f"select={chosen},scale={size[0]}:{size[1]}:flags=bicubic",
        "-vsync", "0", "-frames:v", str(len(set(numbers))), "-q:v", "4", *one[:2], str(out / "%d.jpg"),
    )  # fmt: skip


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of this process and all it started, and wall seconds."""

    def cpu() -> float:
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(each.ru_utime + each.ru_stime for each in used)

    before, begun = cpu(), time.perf_counter()
    work()
    return cpu() - before, time.perf_counter() - begun


class Memory(threading.Thread):
    """The resident memory of this process and its children over time."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.over = 0, False

    def run(self) -> None:
        """Look, fifty times a second."""
        while not self.over:
            self.peak = max(self.peak, sum(map(resident, family())))
            time.sleep(0.02)

    def take(self) -> float:
        """Peak megabytes since the last time."""
        peak, self.peak = self.peak, 0
        return peak / 1e6


def family() -> list[int]:
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children")
    return [me, *(int(pid) for pid in children.read_text().split())] if children.exists() else [me]


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def same_frames(study: Study, item: Item, by_other: Path) -> float:
    """The least PSNR between benchcheck's frames and ffmpeg's, of brightness: told apart, they would be far below."""
    import numpy as np
    from PIL import Image

    worst = 99.0
    for index in range(32):
        ours, other = (
            np.asarray(Image.open(path).convert("L"), dtype=float)
            for path in (study.frames / item.frames_key / f"frame_{index}.jpg", by_other / f"{index + 1}.jpg")
        )
        error = float(np.mean((ours - other) ** 2))
        worst = min(worst, 10 * np.log10(255**2 / error) if error else 99.0)
    return worst


def turn(study: Study, items: list[Item], scratch: Path, numbers: list[int], size: tuple[int, int]) -> dict[str, tuple]:
    """The same clips by all three, or by benchcheck alone where no numbers are given."""
    paths = [study.root / "videos" / item.item_id.removeprefix("b_") for item in items]

    def all_by_ffmpeg(threads: int) -> None:
        for path in paths:
            out = scratch / path.stem
            shutil.rmtree(out, ignore_errors=True)
            by_ffmpeg(path, numbers, out, size, threads)

    ours = {"benchcheck": spent(lambda: extract_frames(study, items=items, workers=1))}
    return (
        ours
        if not numbers
        else {
            **ours,
            "ffmpeg, 1 thread": spent(lambda: all_by_ffmpeg(1)),
            "ffmpeg, its own threads": spent(lambda: all_by_ffmpeg(0)),
        }
    )


def compare(study: Study, gop: int, names: list[str], scratch: Path, every: int) -> None:
    """All turns of one kind of clip, in one run."""
    items = [make_item(name) for name in names]
    numbers = numbers_of(study.root / "videos" / names[0])
    assert len(set(numbers)) == 32
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
    memory, peaks = Memory(), []
    memory.start()
    worst = 99.0
    for first in range(0, len(items), TURN):
        some = items[first : first + TURN]
        both = first // TURN % every == 0
        size = frames_size(study, some[0], names[0])
        memory.take()
        found = turn(study, some, scratch, numbers if both else [], size)
        if not both:  # ffmpeg holds more: peaks of benchcheck alone are compared
            peaks.append(memory.take())
        for name, (cpu, wall) in found.items():
            sums[name] = [had + new for had, new in zip(sums[name], (cpu, wall, len(some)), strict=True)]
        if both:
            worst = min(worst, same_frames(study, some[0], scratch / Path(names[first]).stem))
    memory.over = True
    own_cpu, own_wall = (value / len(items) for value in sums["benchcheck"][:2])
    print(f"key frame every {gop}: {len(items)} clips; the same frames: least PSNR {worst:.1f} dB")
    for name, (total_cpu, total_wall, count) in sums.items():
        cpu, wall = total_cpu / count, total_wall / count
        print(f"  {name:24} {count} clips, {cpu:6.2f} CPU s a clip, {wall:6.2f} s, {32 / cpu:5.1f} frames a "
              f"core-second, CPU x {cpu / own_cpu:.2f}, wall x {wall / own_wall:.2f}", flush=True)  # fmt: skip
    if not peaks:
        return
    third = max(1, len(peaks) // 3)
    print(
        "  memory of benchcheck's processes, turns without ffmpeg: "
        f"first third {max(peaks[:third]):.0f} MB, last third {max(peaks[-third:]):.0f} MB"
    )


def frames_size(study: Study, item: Item, name: str) -> tuple[int, int]:
    """What size benchcheck gives this clip, from a first set of its own."""
    first = study.frames / item.frames_key / "frames.json"
    if not first.exists():
        extract_frames(study, items=[make_item(name)], workers=1)
        first = study.frames / make_item(name).frames_key / "frames.json"
    width, height = json.loads(first.read_text())["size"]
    if item.item_id == f"b_{name}":
        shutil.rmtree(first.parent)
    return width, height


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clips", type=int, default=200)
    options.add_argument("--every", type=int, default=1, help="ffmpeg takes part in each such turn.")
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--size", default="1280x720")
    options.add_argument("--keep", type=Path, help="Folder in which made clips stay, for the next time.")
    given = options.parse_args()
    if shutil.which("ffmpeg") is None:
        sys.exit("ffmpeg is not installed: nothing to compare with. Cure: apt install ffmpeg")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        kept = given.keep or root / "made"
        kept.mkdir(parents=True, exist_ok=True)
        for gop in GOPS:
            made = kept / f"{given.size}_{given.seconds}_{gop}.mp4"
            if not made.exists():
                make_clip(made, given.seconds, given.size, gop)
            study = make_study(root / f"study{gop}")
            (study.root / "videos").mkdir(parents=True)
            names = [f"{number}.mp4" for number in range(given.clips // len(GOPS))]
            for each in names:
                os.symlink(made.absolute(), study.root / "videos" / each)
            (root / f"scratch{gop}").mkdir()
            compare(study, gop, names, root / f"scratch{gop}", given.every)
            shutil.rmtree(study.root)


if __name__ == "__main__":
    main()
