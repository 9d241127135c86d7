"""A bank of real clips to train on: H.264 in MP4, then the screening's own JPEG frames, then the processor's resize.

`python training/bank.py BANK.npy --clips 6000` draws scenes, writes each as a video file, takes its grid frames and
keeps them as uint8: clips by frames by height by width by 3. The same number of clips gives the same bank.
"""

import argparse
import io
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
from lessons import FRAMES, FRAMES_PATHS, draw_item
from model_files import IMAGE
from numpy.typing import NDArray
from PIL import Image

from benchcheck.demo.clips import write_clip
from benchcheck.demo.scenes import CELLS, Scene, draw_scene
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.grid import grid_times

__all__ = ["PAINTED", "Bank", "build", "clip_frames", "draw_scenes"]

SPEC = Spec(count=CELLS, long_side=448, quality=85)
"""How a study takes frames unless its configuration says otherwise."""
PAINTED = -1
"""The clip number of a scene that is in no clip."""


def draw_scenes(n_clips: int) -> list[Scene]:
    """Return the scenes of a bank, in the order of its clips: as lessons with frames need them."""
    scenes = []
    for number in range(n_clips):
        rng = random.Random(f"bank|{number}")
        kind = rng.choices(list(FRAMES), list(FRAMES.values()))[0]
        scenes.append(draw_item(rng, kind, paths=FRAMES_PATHS).scene)
    return scenes


class Bank:
    """Which clip shows which scene; its `draw` is used in place of `draw_scene`."""

    def __init__(self, scenes: Sequence[Scene] = ()) -> None:
        self._numbers = {scene: number for number, scene in enumerate(scenes)}
        self._alike: defaultdict[tuple[int, str], list[Scene]] = defaultdict(list)
        for scene in sorted(scenes, key=lambda scene: scene.clarity):
            self._alike[len(scene.palette), scene.motion.path].append(scene)

    def number(self, scene: Scene) -> int:
        """Return the number of a scene's clip, `PAINTED` if there is none."""
        return self._numbers.get(scene, PAINTED)

    def draw(self, rng: random.Random, *, n_colours: int, path: str, clarity: float) -> Scene:
        """Return the scene of a clip with so many colours and a path, at the clarity's rank; a new one if none is."""
        alike = self._alike.get((n_colours, path))
        if not alike:
            return draw_scene(rng, n_colours=n_colours, path=path, clarity=clarity)
        return alike[min(int(clarity * len(alike)), len(alike) - 1)]


def clip_frames(video: Path) -> NDArray[np.uint8]:
    """Return a video's grid frames as the network gets them: frames by height by width by 3."""
    opened = Video(str(video), SPEC)
    timeline = opened.timeline()
    shown = [timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, SPEC.count)]
    pictures = opened.pictures(shown)
    if pictures is None:
        raise ValueError(f"{video}: its timeline is not what its packets say")
    return np.stack([_as_processed(pictures[index]) for index in shown])


def _as_processed(picture: bytes) -> NDArray[np.uint8]:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    return np.asarray(image.resize((IMAGE, IMAGE), Image.Resampling.BICUBIC))


def _fill(path: Path, work: tuple[int, Scene]) -> None:
    """Write one clip as a video, take its frames and put them into the bank's file."""
    number, scene = work
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        video = Path(scratch) / "clip.mp4"
        write_clip(scene, video)
        frames = clip_frames(video)
    np.load(path, mmap_mode="r+")[number] = frames


def build(path: Path, n_clips: int, workers: int) -> None:
    """Write the bank of so many clips."""
    shape = (n_clips, CELLS, IMAGE, IMAGE, 3)
    np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=shape).flush()
    with ProcessPoolExecutor(workers) as pool:
        for _ in pool.map(partial(_fill, path), enumerate(draw_scenes(n_clips)), chunksize=8):
            pass


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--clips", type=int, default=6000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    start = time.monotonic()
    build(arguments.path, arguments.clips, arguments.workers)
    print(f"{arguments.clips} clips in {time.monotonic() - start:.1f} s by {arguments.workers} processes", flush=True)


if __name__ == "__main__":
    main()
