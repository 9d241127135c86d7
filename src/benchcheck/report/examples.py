"""A few items in full: a seeded choice over all outcomes, with the readings that decided and the frames."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchcheck.config import Config
from benchcheck.pool.items import Item
from benchcheck.report.findings import Row, rows_of
from benchcheck.report.pictures import FilmStrip, film_strip
from benchcheck.screen.answers import prompts_of
from benchcheck.screen.prompts import LETTERS, PREFILL
from benchcheck.screen.steps import LADDER, Step
from benchcheck.study import Study

if TYPE_CHECKING:
    import duckdb

__all__ = ["Cell", "Example", "ShownPrompt", "ShownReading", "StepAnswer", "examples_of", "shown_prompts"]

MIN_EXAMPLES = 6
MAX_EXAMPLES = 10
_CANDIDATES = 20
"""How many of a group are looked at for one whose frames are on disk."""
_MAX_READINGS = 8
"""Orders of an item that are drawn."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The probability of one option's letter in one order."""

    letter: str
    """The letter under which the option was shown."""
    share: float
    gold: bool
    absent: bool
    """Whether the endpoint did not list the letter among its top tokens."""


@dataclass(frozen=True, slots=True)
class ShownReading:
    """One order of an item in a step, as the page shows it; cells stand in the stored order of the options."""

    cells: tuple[Cell, ...]
    right: bool
    margin: float
    label_mass: float


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """What one step said of an item."""

    step: Step
    n_right: int
    n_perm: int
    margin: float
    threshold: float
    decisive: bool
    """Whether it is the step that removed the item, or the last one of an item that stayed."""
    readings: tuple[ShownReading, ...]

    @property
    def cut(self) -> int:
        """Orders that are not drawn."""
        return self.n_perm - len(self.readings)

    @property
    def span(self) -> float:
        """Half the width of the margin's axis, in nats."""
        return max(4.0, 1.1 * abs(self.margin), 1.5 * self.threshold)

    def place(self, nats: float) -> float:
        """Where a value lies on the margin's axis, in percent of its width."""
        return round(50 + 50 * nats / self.span, 2)


@dataclass(frozen=True, slots=True)
class Example:
    """One item as the page shows it."""

    item: Item
    verdict: str
    left_at: int | None
    reason: str
    chosen_as: str
    strip: FilmStrip
    answers: tuple[StepAnswer, ...]

    @property
    def window(self) -> str:
        """The item's time window in seconds, empty for the whole video."""
        if self.item.start is None and self.item.end is None:
            return ""
        return f"{self.item.start or 0:g} to {'the end' if self.item.end is None else format(self.item.end, 'g')} s"


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """The exact text of one kind of prompt, with the steps that show it."""

    steps: tuple[Step, ...]
    item_id: str
    images: str
    text: str
    prefill: str


def examples_of(study: Study, db: "duckdb.DuckDBPyConnection") -> list[Example]:
    """Choose 6 to 10 items (fewer where the pool has fewer) and gather what is known of each."""
    chosen = _choose(study, db)
    if not chosen:
        return []
    ids = [row["item_id"] for row in chosen]
    answers: dict[str, list[Row]] = {}
    for row in rows_of(db, "select * from answers where list_contains(?, item_id) order by step", [ids]):
        answers.setdefault(row["item_id"], []).append(row)
    return [_example(study, row, answers.get(row["item_id"], [])) for row in chosen]


def shown_prompts(config: Config, examples: Sequence[Example]) -> list[ShownPrompt]:
    """Return one prompt of every kind of sight, made of the first example in its first order."""
    if not examples:
        return []
    item = next((example.item for example in examples if example.item.format == "mcq"), None)
    if item is None:
        return []
    kinds: dict[str, list[Step]] = {}
    for step in config.steps:
        kinds.setdefault(step.sight.value, []).append(step)
    return [
        ShownPrompt(
            steps=tuple(steps),
            item_id=item.item_id,
            images=_images(steps[0], config),
            text=prompts_of(item, steps[0], config)[0].text,
            prefill=PREFILL,
        )
        for steps in kinds.values()
    ]


def _images(step: Step, config: Config) -> str:
    """What stands before a prompt's text, in words."""
    frames = config.frames
    words = {
        "single_frame": f"One image: frame {frames.single} of the grid, counted from 0. Then this text:",
        "frames": f"{frames.count} images: the frames of the grid, in time order. Then this text:",
        "shuffled": f"{frames.count} images: the frames of the grid, in a shuffled order. Then this text:",
    }
    return words.get(step.sight.value, "No image. Only this text:")


def _choose(study: Study, db: "duckdb.DuckDBPyConnection") -> list[Row]:
    """Choose the items: one that fell at each step, two that stayed, the closest to the threshold, then more."""
    groups = _candidates(study, db)
    threshold = study.config.protocol.margin
    nearest = rows_of(
        db,
        "select * from verdicts join items using (item_id) where verdict in ('kept', 'removed') "
        "and margin is not null order by abs(margin - ?), item_id limit ?",
        [threshold, _CANDIDATES],
    )
    decided = [rows for (verdict, _), rows in groups.items() if verdict in ("removed", "kept")]
    undecided = [rows for (verdict, _), rows in groups.items() if verdict in ("waiting", "pending", "failed")]
    chosen: dict[str, Row] = {}
    for rows in decided:
        _take(chosen, rows, 2 if rows[0]["verdict"] == "kept" else 1)
    _take(chosen, [row | {"chosen_as": "closest to the threshold"} for row in nearest], 1)
    for rows in (*decided, *decided, *undecided, *undecided):
        if len(chosen) < MIN_EXAMPLES:
            _take(chosen, rows, 1)
    return list(chosen.values())[:MAX_EXAMPLES]


def _candidates(study: Study, db: "duckdb.DuckDBPyConnection") -> dict[tuple[str, int], list[Row]]:
    """Return some items of every outcome in a seeded order, those with frames first; steps first, then the others."""
    query = (
        "select * exclude (place) from (select *, row_number() over (partition by verdict, left_at "
        "order by md5(concat(?, '|', item_id)), item_id) as place from verdicts join items using (item_id) "
        "where format = 'mcq') where place <= ? order by left_at nulls last, verdict, place"
    )
    ready, groups = study.frames_ready(), dict[tuple[str, int], list[Row]]()
    for row in rows_of(db, query, [f"{study.config.protocol.seed}|page", _CANDIDATES]):
        fate = {"removed": f"fell at step {row['left_at']}", "failed": "failed", "kept": "survived"}
        named = row | {"chosen_as": fate.get(row["verdict"], row["verdict"])}
        groups.setdefault((row["verdict"], row["left_at"] or 0), []).append(named)
    return {key: sorted(rows, key=lambda row: row["frames_key"] not in ready) for key, rows in groups.items()}


def _take(chosen: dict[str, Row], rows: Iterable[Row], count: int) -> None:
    """Add up to `count` of `rows` that are not chosen yet."""
    fresh = [row for row in rows if row["item_id"] not in chosen]
    chosen.update({row["item_id"]: row for row in fresh[:count]})


def _example(study: Study, row: Row, answers: Sequence[Row]) -> Example:
    """Gather one item."""
    item = Item.of(row)
    decisive = row["left_at"] or (answers[-1]["step"] if answers else 0)
    return Example(
        item=item,
        verdict=row["verdict"],
        left_at=row["left_at"],
        reason=_reason(row),
        chosen_as=row["chosen_as"],
        strip=film_strip(study, item.frames_key),
        answers=tuple(_answer(answer, item, study.config, decisive) for answer in answers),
    )


def _reason(row: Row) -> str:
    """Why an item has its verdict; of a video without frames the status alone, as its reason names local folders."""
    reason = str(row["reason"])
    return ": ".join(reason.split(": ")[:2]) if row["verdict"] == "waiting" else reason


def _answer(row: Mapping[str, Any], item: Item, config: Config, decisive: int) -> StepAnswer:
    """Turn an answer's row into what the page draws."""
    columns = zip(row["orders"], row["logprobs"], row["missing"], strict=True)
    scores = zip(row["right"], row["margins"], row["label_mass"], strict=True)
    readings = [
        ShownReading(_cells(order, logprobs, missing, item.gold), right, margin, mass)
        for (order, logprobs, missing), (right, margin, mass) in zip(columns, scores, strict=True)
    ]
    return StepAnswer(
        step=LADDER[row["step"]],
        n_right=row["n_right"],
        n_perm=row["n_perm"],
        margin=row["mean_margin"],
        threshold=config.protocol.margin,
        decisive=row["step"] == decisive,
        readings=tuple(readings[:_MAX_READINGS]),
    )


def _cells(
    order: Sequence[int], logprobs: Sequence[float], missing: Sequence[str], gold: int | None
) -> tuple[Cell, ...]:
    """Return the letters' probabilities in the stored order of the options."""
    shown = {option: position for position, option in enumerate(order)}
    return tuple(
        Cell(
            letter=LETTERS[shown[option]],
            share=min(1.0, math.exp(logprobs[shown[option]])),
            gold=option == gold,
            absent=LETTERS[shown[option]] in missing,
        )
        for option in sorted(shown)
    )
