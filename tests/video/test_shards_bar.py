"""The bar of packing and unpacking, where there is a terminal."""

from collections.abc import Callable

import pytest
from rich.console import Console

from benchcheck import console
from benchcheck.cli.shards import ShardsBar
from benchcheck.video.shards.packing import ShardsProgress


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_shows_megabytes_and_their_rate(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    shown = Console(stderr=True, force_terminal=terminal, width=120, record=True)
    monkeypatch.setattr(console, "_err", shown)
    told: Callable[[ShardsProgress], None] = ShardsBar("pack")
    for done in (0, 250_000_000, 500_000_000):
        told(ShardsProgress(done, 500_000_000, done / 1e8))
    text = [task.description for task in told.bars.tasks]  # type: ignore[attr-defined]
    assert text == (["pack, MB"] if terminal else [])
    if terminal:
        task = told.bars.tasks[0]  # type: ignore[attr-defined]
        assert (task.completed, task.total, task.fields["rate"]) == (500, 500, "100 MB/s")
    told.close()  # type: ignore[attr-defined]
