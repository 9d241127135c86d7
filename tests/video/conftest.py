from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.config import Config, Frames, PoolSource, Videos
from benchcheck.study import Study

from .clips import KINDS
from .studies import MODELS


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    def make(frames: Frames | None = None, pool: tuple[PoolSource, ...] = ()) -> Study:
        root = tmp_path / "study"
        (root / "videos").mkdir(parents=True, exist_ok=True)
        config = Config(study_version=1, models=MODELS, frames=frames or Frames(), videos=Videos(), pool=pool)
        return Study(root, config)

    return make


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    return make_study()


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Path of a clip of `clips.KINDS`, made once."""
    folder = tmp_path_factory.mktemp("clips")

    def get(name: str) -> Path:
        path = folder / name
        return path if path.exists() else KINDS[name].write(path)

    return get
