"""Frames from many small clips in one archive against the same clips as plain files, as ratios in one run.

    python bench/archives.py [--clips 200] [--rounds 3] [--workers 2]

Times are CPU seconds of this process and its workers, which other work on the machine disturbs less than the clock.
Each round goes through every kind; the best of each counts.
"""

import argparse
import resource
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from frames import make_clip, make_item

from benchcheck.config import Config, Model, Videos
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames

KINDS = ("plain files", "stored.zip", "deflated.zip", "plain.tar", "packed.tar.gz")


def make_archive(path: Path, clips: list[Path]) -> None:
    """One archive of all clips, by what its name says."""
    if path.suffix == ".zip":
        method = zipfile.ZIP_STORED if path.stem == "stored" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", method) as archive:
            for clip in clips:
                archive.write(clip, clip.name)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
            for clip in clips:
                tar.add(clip, clip.name)


def make_study(root: Path, kind: str) -> Study:
    models = {role: Model(model="m") for role in ("8b", "2b")}
    videos = Videos(folder="plain") if kind == KINDS[0] else Videos(folder="packed", archives=(kind,))
    return Study(root, Config(study_version=1, models=models, videos=videos))


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def extraction(root: Path, kind: str, items: list[Item], workers: int) -> float:
    """CPU seconds for the frames of all clips."""
    study = make_study(root, kind)
    shutil.rmtree(study.frames, ignore_errors=True)
    begun = cpu_seconds()
    summary = extract_frames(study, items=items, workers=workers)
    spent = cpu_seconds() - begun
    assert summary.made == len(items), summary.lines()
    return spent


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clips", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--workers", type=int, default=2)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "plain").mkdir()
        (root / "packed").mkdir()
        clips = [root / "plain" / f"{number}.mp4" for number in range(given.clips)]
        make_clip(clips[0], 4, 320, 192)
        for clip in clips[1:]:
            shutil.copy(clips[0], clip)
        for kind in KINDS[1:]:
            make_archive(root / "packed" / kind, clips)
        items = [make_item(number) for number in range(given.clips)]
        times = {kind: list[float]() for kind in KINDS}
        for _ in range(given.rounds):
            for kind in KINDS:
                times[kind].append(extraction(root, kind, items, given.workers))
        print(f"{given.clips} clips of {clips[0].stat().st_size:,} bytes, 4 s, 320x192, {given.workers} workers")
        plain = min(times[KINDS[0]])
        for kind, spent in times.items():
            each, ratio = 1000 * min(spent) / given.clips, min(spent) / plain
            print(f"{kind:14} {each:6.1f} CPU ms a clip   {ratio:.2f} times the plain files")


if __name__ == "__main__":
    main()
