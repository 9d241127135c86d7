"""Real annotation files, golden cases, and studies whose pool is a few tiny files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Config, Model, PoolSource, Protocol
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study

SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the real annotation files are not in ../shared/data")
    return folder


@pytest.fixture(scope="session")
def golden() -> dict[str, list[dict[str, Any]]]:
    path = Path(__file__).parents[1] / "golden" / "screening.json"
    cases: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return cases


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    """A study in `tmp_path` with the given pool entries."""

    def make(*pool: PoolSource) -> Study:
        models = {LADDER[number].role: Model(model="none") for number in Protocol().steps}
        return Study(tmp_path, Config(study_version=1, models=models, pool=pool))

    return make
