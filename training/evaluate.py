"""Measure checkpoints on control items whose frames went through H.264, JPEG and the processor's resize.

`python training/evaluate.py LARGE SMALL --per-class 40` makes controls, reads every step of the ladder on every item
with transformers, and prints accuracy and margins per class and input, then what falls at which step.
"""

import argparse
import io
import math
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer
from torch import Tensor
from transformers import AutoImageProcessor, Qwen3VLForConditionalGeneration

from benchcheck.demo.controls import Control, make_controls
from benchcheck.demo.world import CLASSES
from benchcheck.screen.prompts import INTROS, LETTERS, PREFILL, frame_order, option_orders, render_text
from benchcheck.screen.steps import LADDER, Sight, Step

__all__ = ["Checkpoint", "Reading", "grid_frames", "measure"]

LONG_SIDE, JPEG_QUALITY = 448, 85
THRESHOLD, LEAST_RIGHT = math.log(2), 3
READ = (1, 2, 3, 4, 5)
"""The steps that are read with both checkpoints; step 6 shows what step 3 shows."""
IMAGE_TOKENS = 4
_CHUNK = 48


@dataclass(frozen=True, slots=True)
class Reading:
    """What one step read of one item: right in how many orders of how many, and the mean margin."""

    n_right: int
    n_orders: int
    margin: float

    @property
    def leaves(self) -> bool:
        """Whether the ladder's rule removes the item."""
        return self.n_right >= min(LEAST_RIGHT, self.n_orders) and self.margin > THRESHOLD


def grid_frames(video: Path, n: int = 32) -> list[Image.Image]:
    """Return the frames shown at (k + 0.5) / n of the video's length, as a JPEG cache would give them back."""
    with av.open(str(video)) as container:
        decoded = [frame.to_image() for frame in container.decode(video=0)]
    chosen = [decoded[int((k + 0.5) * len(decoded) / n)] for k in range(n)]
    return [_through_jpeg(frame) for frame in chosen]


def _through_jpeg(frame: Image.Image) -> Image.Image:
    frame.thumbnail((LONG_SIDE, LONG_SIDE))
    buffer = io.BytesIO()
    frame.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return Image.open(io.BytesIO(buffer.getvalue())).convert("RGB")


class Checkpoint:
    """A checkpoint in transformers, in float32."""

    def __init__(self, folder: Path, device: str) -> None:
        self._device = device
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._pictures = AutoImageProcessor.from_pretrained(folder)
        model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
        self._model = model.to(device).eval()
        self._letters = [self._tokenizer.encode(f" {letter}").ids[0] for letter in LETTERS[:5]]

    def prepare(self, frames: Sequence[Image.Image]) -> tuple[Tensor, Tensor]:
        """Return a video's frames as the processor gives them to the network."""
        done = self._pictures(images=list(frames), return_tensors="pt")
        return done["pixel_values"].reshape(len(frames), -1, done["pixel_values"].shape[-1]), done["image_grid_thw"]

    @torch.inference_mode()
    def read(self, prompts: Sequence[tuple[str, Tensor | None, Tensor | None]]) -> Tensor:
        """Return the letters' log-probabilities for texts with pixel values and grids (None: no frames)."""
        ids = [self._ids(text, 0 if pixels is None else len(pixels)) for text, pixels, _ in prompts]
        longest = max(len(row) for row in ids)
        padded = torch.zeros(len(ids), longest, dtype=torch.long)
        mask = torch.zeros_like(padded)
        for place, row in enumerate(ids):
            padded[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        inputs = {"input_ids": padded, "attention_mask": mask}
        shown = [(pixels, sizes) for _, pixels, sizes in prompts if pixels is not None and sizes is not None]
        if shown:
            inputs["pixel_values"] = torch.cat([pixels.reshape(-1, pixels.shape[-1]) for pixels, _ in shown])
            inputs["image_grid_thw"] = torch.cat([sizes for _, sizes in shown])
            inputs["mm_token_type_ids"] = (padded == self._model.config.image_token_id).long()
        output = self._model(**{name: value.to(self._device) for name, value in inputs.items()})
        last = mask.sum(1) - 1
        logits: Tensor = output.logits[torch.arange(len(ids)), last.to(self._device)].float()
        return logits.log_softmax(-1)[:, self._letters].cpu()

    def _ids(self, text: str, n_frames: int) -> list[int]:
        frame = "<|vision_start|>" + "<|image_pad|>" * IMAGE_TOKENS + "<|vision_end|>"
        turn = f"<|im_start|>user\n{frame * n_frames}{text}<|im_end|>\n<|im_start|>assistant\n{PREFILL}"
        return list(self._tokenizer.encode(turn).ids)


def _orders(item_id: str, step: Step, n_options: int) -> list[tuple[int, ...]]:
    return option_orders(item_id, n_options) if step.permuted else [tuple(range(n_options))]


def _shown(item_id: str, sight: Sight, n_frames: int) -> list[int] | None:
    if not sight.needs_frames:
        return None
    if sight is Sight.SINGLE_FRAME:
        return [n_frames // 2]
    return list(frame_order(item_id, n_frames)) if sight is Sight.SHUFFLED else list(range(n_frames))


def _margin(letters: Tensor, gold: int, n: int) -> tuple[bool, float]:
    """Return whether the gold letter is the first of the likeliest, and by how much it is likelier than the others."""
    values = letters[:n].double().numpy()
    others = np.delete(values, gold)
    return int(values.argmax()) == gold, float(values[gold] - others.mean())


def _step_prompts(control: Control, item_id: str, step: Step) -> Iterator[tuple[int, str]]:
    """Yield the gold's position and the text for every order of a step."""
    item = control.item
    question = None if step.sight is Sight.OPTIONS_ONLY else item.question
    for order in _orders(item_id, step, len(item.options)):
        text = render_text(INTROS[step.sight], question, [item.options[index] for index in order])
        yield order.index(item.answer), text


def read_step(
    checkpoint: Checkpoint, step: Step, controls: Sequence[Control], cache: Mapping[str, tuple[Tensor, Tensor]]
) -> dict[str, Reading]:
    """Return the readings of every control in one step."""
    asked: list[tuple[Control, int]] = []
    prompts: list[tuple[str, Tensor | None, Tensor | None]] = []
    for number, control in enumerate(controls):
        item_id = f"controls_{number}"
        pixels, sizes = cache[control.video]
        shown = _shown(item_id, step.sight, len(pixels))
        for gold, text in _step_prompts(control, item_id, step):
            asked.append((control, gold))
            prompts.append((text, None, None) if shown is None else (text, pixels[shown], sizes[shown]))
    letters = torch.cat([checkpoint.read(prompts[at : at + _CHUNK]) for at in range(0, len(prompts), _CHUNK)])
    found: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for (control, gold), row in zip(asked, letters, strict=True):
        found[control.id].append(_margin(row, gold, len(control.item.options)))
    return {
        control_id: Reading(sum(right for right, _ in rows), len(rows), float(np.mean([m for _, m in rows])))
        for control_id, rows in found.items()
    }


def measure(folders: Mapping[str, Path], *, per_class: int, seed: int, n_frames: int) -> None:
    """Make controls, read them with both checkpoints at every step, and print the tables."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        made = make_controls(scratch, n_per_class=per_class, seed=seed)
        frames = {video.name: grid_frames(video, n_frames) for video in made.videos}
    by_role: dict[str, dict[int, dict[str, Reading]]] = {}
    for role, folder in folders.items():
        checkpoint = Checkpoint(folder, device)
        cache = {name: checkpoint.prepare(shown) for name, shown in frames.items()}
        by_role[role] = {n: read_step(checkpoint, LADDER[n], made.controls, cache) for n in READ}
        print(f"\n{role}: accuracy, margin from 2nd to 98th percentile, share that the rule removes")
        _print_accuracy(made.controls, by_role[role])
    _print_falls(made.controls, {n: by_role[step.role][n if n in READ else 3] for n, step in LADDER.items()})


def _groups(controls: Sequence[Control]) -> Iterator[tuple[str, list[Control]]]:
    for klass in CLASSES:
        yield klass, [control for control in controls if control.item.klass == klass]
        kinds = sorted({control.item.kind for control in controls if control.item.klass == klass})
        for kind in kinds if len(kinds) > 1 else []:
            yield f"  {kind}", [control for control in controls if control.item.kind == kind]


def _print_accuracy(controls: Sequence[Control], steps: Mapping[int, Mapping[str, Reading]]) -> None:
    print(f"{'':14}" + "".join(f"{LADDER[n].sight.value:>24}" for n in steps))
    for name, group in _groups(controls):
        line = f"{name:14}"
        for readings in steps.values():
            rows = [readings[control.id] for control in group]
            accuracy = np.mean([row.n_right / row.n_orders for row in rows])
            low, high = np.quantile([row.margin for row in rows], (0.02, 0.98))
            over = np.mean([row.leaves for row in rows])
            line += f"{accuracy:7.2f} {low:5.2f}..{high:4.2f} {over:4.2f}"
        print(line, flush=True)


def _print_falls(controls: Sequence[Control], steps: Mapping[int, Mapping[str, Reading]]) -> None:
    print("\nfalls at step (cascade)\n" + f"{'':14}" + "".join(f"{n:>7}" for n in steps) + f"{'kept':>7}{'n':>6}")
    for name, group in _groups(controls):
        fallen = [next((n for n in steps if steps[n][control.id].leaves), 0) for control in group]
        shares = [fallen.count(n) / len(group) for n in (*steps, 0)]
        print(f"{name:14}" + "".join(f"{share:7.2f}" for share in shares) + f"{len(group):6}", flush=True)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("large", type=Path)
    parser.add_argument("small", type=Path)
    parser.add_argument("--per-class", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--frames", type=int, default=32, help="frames of a video that are shown")
    arguments = parser.parse_args()
    folders = {"8b": arguments.large, "2b": arguments.small}
    measure(folders, per_class=arguments.per_class, seed=arguments.seed, n_frames=arguments.frames)


if __name__ == "__main__":
    main()
