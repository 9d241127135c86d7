import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `clips` is shared by these tests only

from clips import KINDS

from benchcheck.config import Config, Frames, Model, PoolSource, Videos
from benchcheck.pool.items import Item, VideoRef
from benchcheck.study import Study

MODELS = {"8b": Model(model="m"), "2b": Model(model="m")}


def item(
    member: str, *, start: float | None = None, end: float | None = None, number: int = 0, bench: str = "b"
) -> Item:
    ref = VideoRef(bench, member)
    return Item(
        item_id=f"{bench}_{number}", bench=bench, source_id="", question="q?", options=("a", "b"), gold=0, format="mcq",
        video_key=ref.key, video_id=ref.video_id, start=start, end=end,
    )  # fmt: skip


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    def make(frames: Frames = Frames(), videos: Videos = Videos(), pool: tuple[PoolSource, ...] = ()) -> Study:
        root = tmp_path / "study"
        (root / "videos").mkdir(parents=True, exist_ok=True)
        return Study(root, Config(study_version=1, models=MODELS, frames=frames, videos=videos, pool=pool))

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
