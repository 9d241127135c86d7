"""Shards of frames: MB a second of `frames pack` and `frames unpack` against tar and sha256sum, as ratios in one run.

    python bench/shards.py [--sets 1000] [--frame-bytes 25000] [--rounds 3]

Both sides read and write the same files, warm in the page cache: 32 frames and a frames.json a set. tar and sha256sum
run one after the other, as a shell script would; what they do not do is in no column: look whether each set is whole,
compare pictures with the hash they were made with, publish each set in one move. The best of the rounds counts, for
wall time and for CPU time each; the peak of memory is that of this process. TMPDIR says on which disk.
"""

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchcheck.config import Config, Model
from benchcheck.study import Study
from benchcheck.video.frames import Drawn, publish_frames
from benchcheck.video.shards.packing import pack_frames
from benchcheck.video.shards.unpacking import unpack_frames


def make_study(root: Path) -> Study:
    return Study(root, Config(study_version=1, models={role: Model(model="m") for role in ("8b", "2b")}))


def make_frames(study: Study, sets: int, frame_bytes: int) -> None:
    about = {"count": 32, "long_side": 448, "quality": 85, "normalized": None, "source": {"sha256": "0" * 64}}
    for number in range(sets):
        drawn = [Drawn(float(index), False, False, os.urandom(frame_bytes)) for index in range(32)]
        publish_frames(study.frames, f"k:{number:016x}", drawn, about)


def cpu() -> float:
    """CPU seconds of this process and the commands that it ran."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, spent = time.perf_counter(), cpu()
    work()
    return time.perf_counter() - wall, cpu() - spent


def best(rounds: int, before: Callable[[], object], *works: Callable[[], object]) -> list[tuple[float, float]]:
    """Turn about, so that what else the machine does falls on all."""
    times: list[list[tuple[float, float]]] = [[] for _ in works]
    for _ in range(rounds):
        for found, work in zip(times, works, strict=True):
            before()
            found.append(timed(work))
    return [(min(wall for wall, _ in found), min(spent for _, spent in found)) for found in times]


def shell(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def report(name: str, size: int, theirs: tuple[float, float], ours: tuple[float, float]) -> None:
    walls, spent = (f"{size / one / 1e6:6.0f} MB/s" for one in (theirs[0], ours[0])), ours[1] / theirs[1]
    print(f"{name:7} tar and sha256sum {next(walls)}, ours {next(walls)}: "
          f"{theirs[0] / ours[0]:.2f} times as fast, {spent:.2f} times the CPU time")  # fmt: skip


def compare(root: Path, sets: int, frame_bytes: int, rounds: int) -> int:
    """Run it all below a folder; returns the bytes of the frames."""
    study, other = make_study(root / "a"), make_study(root / "b")
    make_frames(study, sets, frame_bytes)
    shards, plain, out, kept = root / "shards", root / "plain.tar", root / "out", root / "kept"
    size = sum(path.stat().st_size for path in study.frames.rglob("*") if path.is_file())

    def clear() -> None:
        for folder in (shards, out, other.frames):
            shutil.rmtree(folder, ignore_errors=True)
        plain.unlink(missing_ok=True)
        os.sync()

    def plain_pack() -> None:
        shell("tar", "-cf", plain, "-C", study.frames, ".")
        shell("sha256sum", plain)

    def plain_unpack() -> None:
        out.mkdir()
        shell("sha256sum", kept / "plain.tar")
        shell("tar", "-xf", kept / "plain.tar", "-C", out)

    theirs, ours = best(rounds, clear, plain_pack, lambda: pack_frames(study, shards, everything=True))
    report("pack", size, theirs, ours)
    pack_frames(study, kept, everything=True)
    plain_pack()
    plain.rename(kept / "plain.tar")
    theirs, ours = best(rounds, clear, plain_unpack, lambda: unpack_frames(other, kept))
    report("unpack", size, theirs, ours)
    print(f"unpack again, all there: {timed(lambda: unpack_frames(other, kept))[0]:.2f} s")
    print(f"verify alone: {size / timed(lambda: unpack_frames(other, kept, verify_only=True))[0] / 1e6:.0f} MB/s")
    return size


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sets", type=int, default=1000)
    options.add_argument("--frame-bytes", type=int, default=25_000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        size = compare(Path(name), given.sets, given.frame_bytes, given.rounds)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB, frames {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
