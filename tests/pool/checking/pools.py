"""Small pools made of items, for tests of what is read from a pool."""

import random
from dataclasses import replace
from pathlib import Path

from benchcheck.config import Config, Model, Protocol
from benchcheck.pool.items import Item, VideoRef
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study

__all__ = ["item", "pool_of", "random_items"]


def item(bench: str, row: int, options: tuple[str, ...], gold: int | None = 0, **values: object) -> Item:
    """An item whose question is `What?` and whose video has the row's number, unless `values` say otherwise."""
    video = VideoRef(bench, f"{values.pop('video', row)}.mp4")
    found = Item(
        item_id=f"{bench}_{row}",
        bench=bench,
        source_id=str(row),
        question="What?",
        options=options,
        gold=gold,
        format="mcq" if gold is not None else "open",
        video_key=video.key,
        video_id=video.video_id,
    )
    return replace(found, **values)  # type: ignore[arg-type]


def pool_of(folder: Path, items: list[Item]) -> Study:
    """A study that holds these items."""
    models = {LADDER[number].role: Model(model="none") for number in Protocol().steps}
    study = Study(folder, Config(study_version=1, models=models))
    study.write_pool(items)
    return study


TEXTS = (
    "red",
    "Red",
    " red ",
    "re\u00a0d",
    "re d",
    "stra\u00dfe",
    "STRASSE",
    "",
    "blue",
    "all of the above",
    "not sure",
)


def random_items(seed: int, count: int, benches: int = 2) -> list[Item]:
    """Items full of ties, folded doubles, repeats, open ones, missing videos and golds elsewhere in the file."""
    rng = random.Random(seed)
    made = []
    for row in range(count):
        options = tuple(rng.choice(TEXTS) for _ in range(rng.choice((0, 1, 2, 2, 3, 4, 7))))
        gold = rng.randrange(len(options)) if len(options) > 1 and rng.random() < 0.85 else None
        found = item(
            f"bench{rng.randrange(benches)}",
            row,
            options,
            gold,
            video=rng.randrange(3),
            question=rng.choice(("What?", "what?", "Who?")),
            start=rng.choice((None, 0.0, 1.0)),
            category=rng.choice(("", "a", "b")),
            file_gold=rng.choice((None, rng.randrange(7))),
            issues=rng.choice(((), ("duplicate_options",), ("no_video", "other_gold"))),
        )
        made.append(replace(found, video_key="", video_id="") if rng.random() < 0.1 else found)
    return made
