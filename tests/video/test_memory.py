"""A worker's memory after many videos is its memory after a few."""

import subprocess
import sys
from pathlib import Path

from .clips import Clip

MANY = """
import resource, sys
from pathlib import Path
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.making.draw import draw
from benchcheck.video.task import Task
path, folder = sys.argv[1:]
peak = []
for number in range(36):
    task = Task(f"r::::{number}", (path,), {f"k{number}": (None, None)}, folder)
    [done] = draw(task, Spec(32, 448, 85), Path(folder))
    assert done.ready, done
    peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
print(peak[5], peak[-1])
"""


def test_memory_is_flat_over_many_videos(tmp_path: Path) -> None:
    """One video has 32 pictures, 11 MB decoded: were they kept, 30 videos more would take 330 MB."""
    path = Clip(200, 640, 360).write(tmp_path / "a.mp4")
    line = [sys.executable, "-c", MANY, str(path), str(tmp_path / "frames")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    assert late - early < 40, f"{early} MB after 6 videos, {late} MB after 36"
