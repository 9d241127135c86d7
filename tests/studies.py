"""Studies, items, rows and doubles that tests are made of."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.backends import Engine, Outcome
from benchcheck.config import step_key
from benchcheck.pool.items import Item, VideoRef
from benchcheck.run.driver import StepSummary
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, LetterLogprobs, Reading
from benchcheck.screen.steps import LADDER, Step
from benchcheck.study import Study
from benchcheck.video.frames import Drawn, publish_frames

Run = Callable[..., tuple[int, str, str]]
"""The command line in this process: exit code, standard output, standard error."""
GRID = 4
"""Frames of a test study."""


def config_text(
    large: str = "scripted",
    small: str = "scripted?skill=0.4",
    protocol: Mapping[str, Any] | None = None,
    prompts: Mapping[str, str] | None = None,
) -> str:
    """Return the text of a benchcheck.toml with scripted models and a small grid."""
    lines = ["study_version = 1", "[protocol]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in (protocol or {}).items()]
    lines += ["[frames]", f"count = {GRID}", "single = 2", "[prompts]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in (prompts or {}).items()]
    lines += ["[models.8b]", f"model = {json.dumps(large)}", "[models.2b]", f"model = {json.dumps(small)}"]
    return "\n".join(lines) + "\n"


def make_study(root: Path, **settings: Any) -> Study:
    """Make a study's folder, or give an existing one another config; the settings are those of `config_text`."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "benchcheck.toml").write_text(config_text(**settings), encoding="utf-8")
    return Study.open(root)


def make_item(index: int, bench: str = "a", **changes: Any) -> Item:
    """Return a made-up item with two to five options, every third on the video of the one before."""
    ref = VideoRef(bench, f"v{index - (index % 3 == 1)}.mp4")
    values: dict[str, Any] = {
        "item_id": f"{bench}_{index}",
        "bench": bench,
        "source_id": str(index),
        "question": f"What happens in scene {index}?",
        "options": tuple(f"event {index}.{number}" for number in range(2 + index % 4)),
        "gold": index % 2,
        "format": "mcq",
        "video_key": ref.key,
        "video_id": ref.video_id,
    }
    return Item(**values | changes)


def make_items(**benches: int) -> list[Item]:
    """Return so many items of each benchmark."""
    return [make_item(index, bench) for bench, count in benches.items() for index in range(count)]


def give_frames(study: Study, items: Sequence[Item]) -> None:
    """Put made-up frames of the items' videos into the study."""
    about = {"count": GRID, "long_side": study.config.frames.long_side, "quality": study.config.frames.quality}
    drawn = [Drawn(pts=float(index), duplicate=False, damaged=False, jpeg=b"jpeg") for index in range(GRID)]
    for key in {item.frames_key for item in items}:
        publish_frames(study.frames, key, drawn, about)


def framed_study(root: Path, items: Sequence[Item], **settings: Any) -> Study:
    """Make a study whose items all have frames."""
    study = make_study(root, **settings)
    study.write_pool(items)
    give_frames(study, items)
    return study


def row_of(study: Study, item: Item, step: int = 1, **changes: Any) -> dict[str, Any]:
    """Return an answer that passes the step; `changes` make it another row."""
    n_perm = study.config.orders_of(LADDER[step])
    row: dict[str, Any] = {
        "item_id": item.item_id,
        "bench": item.bench,
        "step": step,
        "step_key": step_key(study.config, LADDER[step]),
        "item_digest": item.digest,
        "status": "ok",
        "n_perm": n_perm,
        "n_right": 0,
        "mean_margin": -1.0,
    }
    return row | changes


def error_of(study: Study, item: Item, step: int = 1, kind: str = "timeout") -> dict[str, Any]:
    """Return an error row."""
    head = {key: row_of(study, item, step)[key] for key in ("item_id", "bench", "step", "step_key", "item_digest")}
    return head | {"status": "error", "error": kind, "detail": "made up"}


def rows_on_disk(study: Study, step: int) -> list[dict[str, Any]]:
    """Return a step's rows with json.loads, apart from torn lines: a second way to read what DuckDB reads."""
    rows = []
    for path in study.step_files(step):
        for line in path.read_bytes().split(b"\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def reading(logprobs: Sequence[float], mass: float = 0.9, tokens: int = 7) -> Reading:
    """Return a reading of these letters."""
    return Reading(LetterLogprobs(tuple(logprobs), (), mass), tokens, 0.5)


@dataclass
class FakeBackend:
    """Answers from a function of the prompt; `order` turns the outcomes round, `stop` is raised after so many."""

    answer: Any = None
    backwards: bool = False
    stop: BaseException | None = None
    after: int = 0
    leave_out: int = 0
    asked: list[Prompt] = field(default_factory=list)
    engine: Engine = field(default_factory=lambda: Engine("fake", "1", "float64", "paper", "r1"))
    closed: bool = False

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield an outcome per prompt."""
        prompts = list(prompts)
        self.asked += prompts
        numbered = list(enumerate(prompts))[: len(prompts) - self.leave_out]
        for done, (index, prompt) in enumerate(reversed(numbered) if self.backwards else numbered):
            if self.stop is not None and done == self.after:
                raise self.stop
            yield Outcome(
                index, self.answer(prompt) if self.answer else reading([-0.1] + [-3.0] * (len(prompt.order) - 1))
            )

    def close(self) -> None:
        """Remember it."""
        self.closed = True


@dataclass
class Heard:
    """A Reporter that keeps what it was told."""

    begun: list[tuple[int, int, int]] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    items: int = 0
    errors: int = 0
    ended: list[StepSummary] = field(default_factory=list)

    def step_begins(self, step: Step, todo: int, waiting: int, blocked: int) -> None:
        """Keep it."""
        self.begun.append((step.number, todo, waiting))
        self.blocked.append(blocked)

    def advance(self, items: int, errors: int) -> None:
        """Add it up."""
        self.items += items
        self.errors += errors

    def step_ends(self, summary: StepSummary) -> None:
        """Keep it."""
        self.ended.append(summary)


def failing(kind: str) -> Any:
    """Return an answer that always fails so."""
    return lambda prompt: Failure(kind, "made up")
