"""Packages of the original layout, as tests need them: from a study's own answers, without keys and digests."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from benchcheck.pool.items import Item
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.study import Study, items_table
from studies import GRID, Heard, config_text, give_frames, make_items, make_study, rows_on_disk

ORIGINAL_FIELDS = (
    *("item_id", "bench", "step", "status", "model", "revision", "n_perm", "orders", "logprobs", "missing"),
    *("label_mass", "margins", "right", "n_right", "mean_margin", "removed", "prompt_tokens", "latency_s", "at"),
)
PLAIN = {"preset": "benchcheck-2026"}


def screened_study(root: Path, items: Sequence[Item]) -> Study:
    """A study of the original preset, every step asked of the scripted models."""
    study = make_study(root, protocol=PLAIN)
    study.write_pool(items)
    give_frames(study, items)
    screen(study, Local(study, Asked("scripted"), 1), Heard())
    return study


def make_package(
    root: Path, study: Study, change: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda row: row
) -> Path:
    """Write a study's items, rows and made-up JPEG frames in the original layout; `change` makes other rows."""
    import pyarrow.parquet as pq

    (root / "results").mkdir(parents=True)
    table = items_table(study.items()).drop_columns(["item_digest", "frames_key", "subtitles", "group", "file_gold"])
    pq.write_table(table, root / "results" / "pool_items_base.parquet")
    for step in range(1, 7):
        for row in rows_on_disk(study, step):
            kept = change({name: row[name] for name in ORIGINAL_FIELDS if name in row})
            if kept is not None:
                path = root / "results" / f"step{step}" / f"{row['bench']}.jsonl"
                path.parent.mkdir(exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(kept) + "\n")
    for number, key in enumerate(sorted({item.frames_key for item in study.items()})):
        folder = root / "frames" / "pool_frames" / key
        folder.mkdir(parents=True)
        for index in range(GRID):
            Image.new("RGB", (32, 24), (number, index * 40, 0)).save(folder / f"frame_{index}.jpg")
    return root


def matching_study(root: Path) -> Path:
    """An empty study whose protocol is that of `screened_study`."""
    root.mkdir(parents=True)
    (root / "benchcheck.toml").write_text(config_text(protocol=PLAIN), encoding="utf-8")
    return root


def items_of_two_benches() -> list[Item]:
    """Two benchmarks, windows and durations among them."""
    items = make_items(a=24, b=12)
    return [*items[:-2], *(Item(**{**vars_of(item), "start": 1.5, "end": 9.5}) for item in items[-2:])]


def vars_of(item: Item) -> dict[str, Any]:
    """An item's fields."""
    return {name: getattr(item, name) for name in Item.__dataclass_fields__}
