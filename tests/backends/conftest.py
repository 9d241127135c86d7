"""A checkpoint that is read once, damaged copies of it, and frames."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchcheck.backends import ModelSpec
from benchcheck.backends.checkpoint import EMBEDDED

SIZES = ((448, 256), (256, 448), (320, 180), (97, 61))
"""Width and height in pixels of the test videos: even, upright, no multiple of 32, odd."""


@pytest.fixture(scope="session")
def model_folder() -> Path:
    return EMBEDDED / "large"


@pytest.fixture
def damaged(model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint that a test may break."""
    return Path(shutil.copytree(model_folder, tmp_path / "model", copy_function=shutil.copyfile))


@pytest.fixture(scope="session")
def backend(model_folder: Path) -> Iterator[object]:
    from benchcheck.backends.transformers import TransformersBackend

    opened = TransformersBackend(ModelSpec(str(model_folder)))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def video(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], tuple[str, ...]]:
    """Make frames: `video(number, frames)` gives JPEG files of coarse random colours, the same for a number."""
    root = tmp_path_factory.mktemp("frames")

    def make(number: int, frames: int) -> tuple[str, ...]:
        files = []
        for k in range(frames):
            path = root / f"{number}_{k}.jpg"
            if not path.exists():
                coarse = np.random.default_rng((number, k)).integers(0, 255, (6, 8, 3), dtype=np.uint8)
                size = SIZES[number % len(SIZES)]
                Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=85)
            files.append(str(path))
        return tuple(files)

    return make


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Start servers that end with the test, for backends that wait only as long as a test can sit through."""
    from backends.asking import ServerBackend
    from backends.endpoint import Server
    from benchcheck.backends import desk, endpoint, wire

    monkeypatch.setattr(wire, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(endpoint, "FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(endpoint, "SPECIMEN_S", 2.0)
    monkeypatch.setattr(desk, "GRACE_S", 1.0)
    started: list[Server] = []

    def start(behave: Any = None, **settings: Any) -> Server:
        started.append(Server(**({"behave": behave} if behave else {}), **settings))
        return started[-1]

    yield start
    while ServerBackend.opened:
        ServerBackend.opened.pop().close()
    for server in started:
        server.close()
