"""Studies made up for the report: pools, rows and frames whose every count is known."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchcheck.config import parse, step_key
from benchcheck.pool.items import Item
from benchcheck.run.accounting import Cost, note_cost
from benchcheck.screen.answers import Asking, answer_row, error_row, prompts_of
from benchcheck.screen.readings import Failure, LetterLogprobs, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.video.frames import Drawn, publish_frames

ENGINE = {"name": "scripted", "version": "1", "dtype": "float32", "device": "cpu"}
AT = "2026-01-02T03:04:05+00:00"


def item(number: int, bench: str = "alpha", **changes: Any) -> Item:
    """An item with four options, whose gold moves with its number."""
    made = Item(
        item_id=f"{bench}_{number}",
        bench=bench,
        source_id=f"q{number}",
        question=f"What happens in scene {number}?",
        options=("a cat runs", "a dog sleeps", "a bird sings", "a fish swims"),
        gold=number % 4,
        format="mcq",
        video_key=f"{bench}::v{number}.mp4",
        video_id=f"{bench}v{number}",
        category=f"kind {number % 3}",
    )
    return replace(made, **changes)


def reading(k: int, best: int, lead: float, mass: float = 0.9) -> Reading:
    """A reading whose letter at position `best` lies `lead` nats above the others, which are equal."""
    weight = math.exp(lead)
    total = weight + k - 1
    logs = tuple(math.log(mass * (weight if position == best else 1.0) / total) for position in range(k))
    return Reading(LetterLogprobs(logs, (), mass), 100, 0.01)


@dataclass(slots=True)
class World:
    """A study on disk and the means to put rows and frames into it."""

    study: Study
    items: list[Item] = field(default_factory=list)

    def put(self, items: Sequence[Item]) -> None:
        """Write the pool."""
        self.items = list(items)
        self.study.write_pool(items)

    def asking(self, step: int, key: str = "") -> Asking:
        """What the rows of a step share."""
        rung = LADDER[step]
        return Asking(self.study.config, rung, key or step_key(self.study.config, rung), "rev1", ENGINE)

    def row(self, step: int, of: Item, right: bool | int, lead: float = 2.0, key: str = "") -> dict[str, Any]:
        """An answer: `right` is whether, or in how many of its orders, the gold letter leads."""
        prompts = prompts_of(of, LADDER[step], self.study.config)
        n_right = len(prompts) * right if isinstance(right, bool) else right
        k, gold = len(of.options), of.gold
        assert gold is not None
        spots = [prompt.order.index(gold) for prompt in prompts]
        best = [spot if turn < n_right else (spot + 1) % k for turn, spot in enumerate(spots)]
        return answer_row(self.asking(step, key), of, prompts, [reading(k, spot, lead) for spot in best], AT)

    def answer(self, step: int, of: Item, right: bool | int, lead: float = 2.0, key: str = "") -> None:
        """Append an answer."""
        self.study.append(step, of.bench, None, [self.row(step, of, right, lead, key)])

    def fail(self, step: int, of: Item, kind: str = "timeout", detail: str = "no reply in 60 s") -> None:
        """Append an error row."""
        row = error_row(self.asking(step), of, Failure(kind, detail), AT)
        self.study.append(step, of.bench, None, [row])

    def frames(self, of: Item, size: tuple[int, int] = (64, 36)) -> None:
        """Write an item's frames: a gradient that moves from frame to frame."""
        spec = self.study.config.frames
        count = spec.count
        drawn = [Drawn(index / 2, False, False, gradient(index, size)) for index in range(count)]
        about = {"count": count, "long_side": spec.long_side, "quality": spec.quality}
        publish_frames(self.study.frames, of.frames_key, drawn, about)

    def cost(self, step: int, bench: str, items: int, wall_s: float = 2.0, part: int = 0) -> None:
        """Note what a unit cost."""
        prompts = items * self.study.config.orders_of(LADDER[step])
        model = self.study.config.models[LADDER[step].role].model
        note_cost(self.study, Cost(step, bench, part, items, prompts, prompts * 100, wall_s, 0, model, "", ENGINE, AT))


def gradient(index: int, size: tuple[int, int]) -> bytes:
    """A small JPEG file."""
    import io

    from PIL import Image

    width, height = size
    image = Image.new("RGB", size)
    image.putdata(
        [(255 * x // width, 255 * y // height, index * 37 % 256) for y in range(height) for x in range(width)]
    )
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def table(**changes: Any) -> dict[str, Any]:
    """A config as TOML gives it."""
    base: dict[str, Any] = {
        "study_version": 1,
        "name": "tiny",
        "protocol": {"steps": [1, 2, 4]},
        "frames": {"count": 4, "single": 2},
        "models": {"8b": {"model": "org/large"}, "2b": {"model": "org/small"}},
    }
    return base | changes


def make_world(root: Path, **changes: Any) -> World:
    """Make an empty study in a folder; keyword arguments replace tables of its config."""
    return World(Study(root, parse(table(**changes), "benchcheck.toml")))


def small_world(root: Path, **changes: Any) -> World:
    """Twelve items of two benchmarks, one fate each (`FATES`), in steps 1 (four orders), 2 (one frame) and 4."""
    world = make_world(root, **changes)
    world.put([*(item(number) for number in range(9)), *(item(number, "beta") for number in range(3))])
    a, b = world.items[:9], world.items[9:]
    world.answer(1, a[0], True)
    world.answer(1, a[1], 3, 3.0)
    for passed in (*a[2:7], b[0], b[1]):
        world.answer(1, passed, False)
    for _ in range(3):
        world.fail(1, a[7])
    world.fail(1, b[2], "context_too_long", "9,000 tokens")
    for framed in (a[2], a[3], a[4], b[0]):
        world.frames(framed)
    world.answer(2, a[2], True)
    for passed in (a[3], a[4], b[0]):
        world.answer(2, passed, False)
    world.answer(4, a[3], True)
    world.answer(4, a[5], True)
    world.answer(4, a[4], False)
    world.answer(4, b[0], 2)
    world.cost(1, "alpha", 8)
    world.cost(1, "beta", 3, 1.0)
    return world


FATES = {
    "alpha_0": ("removed", 1),
    "alpha_1": ("removed", 1),
    "alpha_2": ("removed", 2),
    "alpha_3": ("removed", 4),
    "alpha_4": ("kept", None),
    "alpha_5": ("removed", 4),
    "alpha_6": ("pending", None),
    "alpha_7": ("failed", 1),
    "alpha_8": ("pending", None),
    "beta_0": ("kept", None),
    "beta_1": ("pending", None),
    "beta_2": ("failed", 1),
}
