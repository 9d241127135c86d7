"""Fixtures of the report's tests."""

from pathlib import Path

import pytest
from worlds import World, small_world


@pytest.fixture
def small(tmp_path: Path) -> World:
    """The small study; `worlds.FATES` says where its items stand."""
    return small_world(tmp_path / "study")
