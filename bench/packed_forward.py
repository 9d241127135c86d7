"""The packed forward against one forward per prompt: same checkpoint, same prompts, same letters, one run.

    python bench/packed_forward.py [--model embedded:large] [--repeats 5] [--json FILE]

Both sides take prompts and frame files and give the letters' log-probabilities. The plain side is what transformers'
examples do: tokenise, decode and patch the prompt's frames, one forward of the whole model. It runs with torch's own
number of threads or with one, whichever is faster on a few prompts first. In the row
`frames ready` the pixels lie ready for both, so that only the network is compared. Rounds alternate between the sides;
medians are compared. It wants an idle machine: where other work holds the cores, two threads wait for each other.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchcheck.backends import ModelSpec, checkpoint
from benchcheck.backends.letters import variants_of_letters
from benchcheck.backends.network import quiet
from benchcheck.backends.pixels import FrameReader, Patches
from benchcheck.backends.readout import Readout
from benchcheck.backends.rendering import Renderer
from benchcheck.backends.transformers import TransformersBackend
from benchcheck.screen.prompts import INTROS, Prompt, frame_order, option_orders, render_text
from benchcheck.screen.readings import Reading
from benchcheck.screen.steps import Sight

WORDS = (
    "red",
    "blue",
    "green",
    "square",
    "ball",
    "moving",
    "left",
    "right",
    "colour",
    "video",
    "first",
    "which",
    "how",
)
ITEMS, VIDEOS = 32, 8
TARGET = 2.0
Letters = list[tuple[float, ...]]


@dataclass(frozen=True)
class Comparison:
    """One row of the table; rates are prompts per second of the median round."""

    what: str
    prompts: int
    tokens: float
    plain: float
    packed: float
    ratio: float
    difference: float
    """Largest difference of a letter's log-probability between the sides, in nats."""


def words(rng: np.random.Generator, count: int) -> str:
    return " ".join(rng.choice(WORDS, count))


def text_prompts(items: int) -> list[Prompt]:
    prompts = []
    for i in range(items):
        rng = np.random.default_rng(i)
        question, options = words(rng, 12) + "?", [words(rng, 3) for _ in range(4)]
        for order in option_orders(f"text_{i}", 4):
            shown = [options[j] for j in order]
            prompts.append(Prompt(f"text_{i}", 1, order, render_text(INTROS[Sight.BLIND], question, shown)))
    return prompts


def frame_prompts(videos: int, sight: Sight, folder: Path) -> list[Prompt]:
    prompts = []
    for v in range(videos):
        frames = tuple(str(folder / f"{v}_{k}.jpg") for k in range(32))
        for q in range(3):
            rng = np.random.default_rng((v, q))
            item = f"video_{3 * v + q}"
            order = frame_order(item, 32) if sight is Sight.SHUFFLED else range(32)
            text = render_text(INTROS[sight], words(rng, 12) + "?", [words(rng, 3) for _ in range(4)])
            shown = tuple(frames[k] for k in order)
            prompts.append(Prompt(item, 3, (0, 1, 2, 3), text, shown, f"video_{v}"))
    return prompts


def make_frames(videos: int, folder: Path) -> None:
    for v in range(videos):
        for k in range(32):
            coarse = np.random.default_rng((v, k)).integers(0, 255, (6, 8, 3), dtype=np.uint8)
            frame = Image.fromarray(coarse).resize((448, 256), Image.Resampling.BICUBIC)
            frame.save(folder / f"{v}_{k}.jpg", quality=85)


def _quietly(kind: Any, folder: Path) -> Any:
    with quiet():
        return kind.from_pretrained(folder, dtype=torch.float32).eval()


class Plain:
    """One forward of the whole model per prompt."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForImageTextToText

        self.model: Any = _quietly(AutoModelForImageTextToText, folder)
        self.renderer = Renderer(folder)
        self.reader = FrameReader(folder)
        tokens = self.renderer.vocabulary()
        self.readout = Readout("exact", tokens, variants_of_letters(tokens))
        self.ready: dict[str, Patches] = {}

    def read(self, prompts: Sequence[Prompt]) -> Letters:
        """Return the letters of prompts, one by one."""
        return [self.one(prompt) for prompt in prompts]

    def one(self, prompt: Prompt) -> tuple[float, ...]:
        """Return the letters of a prompt."""
        frames = [self.ready.get(path) or self.reader.read(path) for path in prompt.frames]
        merge = self.model.config.vision_config.spatial_merge_size
        rendered = self.renderer.render(prompt, [(f.grid[0] // merge, f.grid[1] // merge) for f in frames])
        ids = torch.from_numpy(rendered.ids)[None]
        seen: dict[str, Any] = {}
        if frames:
            seen["pixel_values"] = torch.from_numpy(np.concatenate([frame.values for frame in frames]))
            seen["image_grid_thw"] = torch.tensor([(1, *frame.grid) for frame in frames])
        kinds = (ids == self.model.config.image_token_id).int()
        with torch.inference_mode():
            logits = self.model(
                input_ids=ids, mm_token_type_ids=kinds, logits_to_keep=1, use_cache=False, **seen
            ).logits
        (letters,) = self.readout.read(logits[0].float(), [len(prompt.order)])
        return letters.logprobs


class Packed:
    """The backend; its memory of frames is emptied before every round."""

    def __init__(self, folder: Path) -> None:
        self.backend = TransformersBackend(ModelSpec(str(folder)))
        self.tokens = 0.0
        self.decode = self.backend._reader.read

    def read(self, prompts: Sequence[Prompt]) -> Letters:
        """Return the letters of prompts in their order."""
        self.backend._memory.clear()
        letters: Letters = [()] * len(prompts)
        total = 0
        for outcome in self.backend.read(prompts):
            if not isinstance(outcome.result, Reading):
                sys.exit(f"prompt {outcome.index} failed: {outcome.result}")
            letters[outcome.index] = outcome.result.letters.logprobs
            total += outcome.result.prompt_tokens
        self.tokens = total / len(prompts)
        return letters

    def use(self, ready: dict[str, Patches]) -> None:
        """Take frames from `ready` instead of their files; an empty dictionary goes back to the files."""
        self.backend._reader.__dict__["read"] = ready.__getitem__ if ready else self.decode


def timed(read: Callable[[Sequence[Prompt]], Letters], prompts: Sequence[Prompt]) -> tuple[float, Letters]:
    start = time.perf_counter()
    letters = read(prompts)
    return time.perf_counter() - start, letters


def fastest_threads(plain: Plain, prompts: Sequence[Prompt]) -> int:
    """Return the number of CPU threads with which the plain side is faster."""
    seconds = {}
    for threads in {1, THREADS}:
        torch.set_num_threads(threads)
        plain.read(prompts[:2])
        seconds[threads] = min(timed(plain.read, prompts)[0] for _ in range(2))
    return min(seconds, key=seconds.__getitem__)


def compare(what: str, plain: Plain, packed: Packed, prompts: Sequence[Prompt], repeats: int) -> Comparison:
    """Alternate the sides and compare the medians."""
    threads = {"plain": fastest_threads(plain, prompts[:6]), "packed": 1 if packed.backend._network.small else THREADS}
    sides = {"plain": plain.read, "packed": packed.read}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    letters: dict[str, Letters] = {}
    for turn in range(repeats + 1):  # the first warms both up
        for name, read in sides.items():
            torch.set_num_threads(threads[name])
            took, letters[name] = timed(read, prompts)
            seconds[name] += [took] if turn else []
    median = {name: statistics.median(values) for name, values in seconds.items()}
    pairs = zip(letters["plain"], letters["packed"], strict=True)
    difference = max(abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True))
    rates = {name: len(prompts) / value for name, value in median.items()}
    ratio = median["plain"] / median["packed"]
    return Comparison(what, len(prompts), packed.tokens, rates["plain"], rates["packed"], ratio, difference)


def run(model: str, repeats: int, folder: Path) -> list[Comparison]:
    place = checkpoint.resolve(model)
    if not isinstance(place, Path):
        sys.exit("name a folder or an embedded checkpoint")
    make_frames(VIDEOS, folder)
    plain, packed = Plain(place), Packed(place)
    ordered, mixed = (frame_prompts(VIDEOS, sight, folder) for sight in (Sight.FRAMES, Sight.SHUFFLED))
    rows = [
        compare("text, 4 orders an item", plain, packed, text_prompts(ITEMS), repeats),
        compare("32 frames, 3 questions a video", plain, packed, ordered, repeats),
        compare("32 frames shuffled, 3 questions a video", plain, packed, mixed, repeats),
    ]
    plain.ready = {path: plain.reader.read(path) for prompt in ordered for path in prompt.frames}
    packed.use(plain.ready)
    rows.append(compare("32 frames ready, 3 questions a video", plain, packed, ordered, repeats))
    packed.backend.close()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded:large")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(given.model, given.repeats, Path(folder))
    print(f"torch {torch.__version__}, {THREADS} CPU threads, {given.model}, float32")
    print(f"{'what':46}{'tokens':>7}{'plain/s':>9}{'packed/s':>10}{'ratio':>7}{'nats':>9}")
    for row in rows:
        print(f"{row.what:46}{row.tokens:7.0f}{row.plain:9.1f}{row.packed:10.1f}{row.ratio:7.2f}{row.difference:9.1e}")
    text = json.dumps([asdict(row) for row in rows])
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")
    wanted = [row for row in rows if "shuffled" not in row.what]
    return 0 if all(row.ratio >= TARGET and math.isfinite(row.difference) for row in wanted) else 1


THREADS = torch.get_num_threads()

if __name__ == "__main__":
    sys.exit(main())
