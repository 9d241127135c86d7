"""Train the demo's tiny checkpoints from scratch: `python training/train_tiny.py large OUT --bank BANK` (or `small`).

`bank.py` makes the bank of clips; without one all frames are painted. Needs torch, tokenizers and safetensors; a few
minutes on a data-centre GPU. Steps, seeds and every batch are fixed: a rerun repeats up to the order of floating-point
sums.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from bank import Bank, draw_scenes
from batches import CONTENTS, KIND_NAMES, MAX_OPTIONS, NO_CONTENT, SIGHTS, Lessons, Reader
from model_files import Shape, write_model_files
from network import FRAME_TOKENS, Weights, forward, head, initial_weights, read_out
from paint import paint
from pupils import PUPILS
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader

from benchcheck.demo.scenes import BACKGROUNDS, COLOURS, SHAPES
from benchcheck.screen.steps import Sight

SORTS = {"frames": (192, 1.0), "one_frame": (160, 0.7), "text": (224, 0.7)}
"""Rows of a batch and weight of its loss, for the three sorts of batch that make one step."""
RATE, WARM_UP, HOLD, LAST_RATE = 1.2e-3, 200, 0.55, 0.02
"""Learning rate, its first steps, the share of steps before it falls, and what share of it is left at the end."""
DECAY = 0.03
AUXILIARY = (1.0, 0.3)
"""Weight of the auxiliary losses at the start, and from the end of HOLD on."""
N_COLOURS, N_SHAPES, N_BACKGROUNDS = len(COLOURS), len(SHAPES), len(BACKGROUNDS)
LOOKS = (N_COLOURS, N_SHAPES, N_BACKGROUNDS, 3)
"""What the head behind a frame reads in it: colour, shape, background; place and clarity."""
MEMORY = (N_COLOURS, N_COLOURS, 6, 4)
"""What the head behind a frame has seen so far: colours, the first colour, how many colours, the direction."""

Batch = dict[str, Tensor]


class Trainer:
    """The weights in float32, their working copies, and one step of learning."""

    def __init__(
        self, shape: Shape, reader: Reader, device: torch.device, seed: int, clips: Tensor | None = None
    ) -> None:
        self.shape, self.device = shape, device
        self.clips = None if clips is None else clips.to(device)
        self.letters = torch.tensor(reader.letters, device=device)
        self.opening = torch.tensor(reader.opening, device=device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        weights = initial_weights(shape, seed) | self._heads(seed)
        self.exact = {name: value.to(device) for name, value in weights.items()}
        self.working: Weights = {name: value.to(self.dtype).requires_grad_() for name, value in self.exact.items()}
        plain = [name for name, value in self.exact.items() if value.ndim < 2 or "embed" in name or "aux" in name]
        groups = [
            {"params": [value for name, value in self.exact.items() if name not in plain], "weight_decay": DECAY},
            {"params": [self.exact[name] for name in plain], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), fused=device.type == "cuda")
        last = shape.layers - 1
        self.taps = {"looks": min(1, last), "memory": min(3, last - 2), "content": last - 2, "options": last - 1}
        self.tally = torch.zeros(len(KIND_NAMES) * len(SIGHTS), 3, device=device)

    def _heads(self, seed: int) -> Weights:
        generator = torch.Generator().manual_seed(seed + 1)
        sizes = {"looks": sum(LOOKS), "memory": sum(MEMORY), "content": len(CONTENTS), "options": 1}
        heads: Weights = {}
        for name, size in sizes.items():
            heads[f"aux.{name}.weight"] = torch.randn(size, self.shape.hidden, generator=generator) * 0.02
            heads[f"aux.{name}.bias"] = torch.zeros(size)
        return heads

    def learn(self, batches: list[tuple[Batch, float]], rate: float, auxiliary: float) -> Tensor:
        """Take one step over batches and their weights; return the loss of the first."""
        losses = []
        for batch, weight in batches:
            loss = self.loss(batch, auxiliary)
            torch.autograd.backward(weight * loss)
            losses.append(loss.detach())
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for name, value in self.exact.items():
            gradient = self.working[name].grad
            value.grad = torch.zeros_like(value) if gradient is None else gradient.float()
            self.working[name].grad = None
        torch.nn.utils.clip_grad_norm_(list(self.exact.values()), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(list(self.working.values()), list(self.exact.values()))
        return losses[0]

    def loss(self, batch: Batch, auxiliary: float) -> Tensor:
        """Return the loss of a batch: the letters' and, weighted, the auxiliary heads'."""
        patches = colours = places = None
        if batch["cells"].shape[1]:
            patches, colours, places = paint(batch, self.generator, self.clips)
            patches = patches.to(self.dtype)
        n_frames = batch["cells"].shape[1]
        states = forward(self.shape, self.working, self.opening, patches, batch["text"])
        begin, rows = len(self.opening) + FRAME_TOKENS * n_frames, torch.arange(len(batch["last"]), device=self.device)
        logits = read_out(self.shape, self.working, states[-1][rows, begin + batch["last"]])
        letters = logits.float().log_softmax(-1)[:, self.letters]
        surprise = -(batch["target"] * letters).sum(1)
        self._count(batch, letters.detach(), surprise.detach())
        extra = self._text_loss(batch, states, begin)
        if colours is not None and places is not None:
            behind = len(self.opening) + FRAME_TOKENS * torch.arange(n_frames, device=self.device) + FRAME_TOKENS - 1
            extra = extra + self._look_loss(batch, states[self.taps["looks"]][:, behind], colours, places)
            if n_frames > 1:
                extra = extra + self._memory_loss(batch, states[self.taps["memory"]][:, behind], colours)
        return surprise.mean() + auxiliary * extra

    def _text_loss(self, batch: Batch, states: list[Tensor], begin: int) -> Tensor:
        """Return the loss of naming the answer behind the question, and of judging every option behind it."""
        rows = torch.arange(len(batch["last"]), device=self.device)
        behind = states[self.taps["options"]][rows[:, None], begin + batch["option_ends"]]
        judged = head(self.working, "options", behind)[..., 0]
        wrong = functional.binary_cross_entropy_with_logits(judged, batch["target"], reduction="none")
        valid = torch.arange(MAX_OPTIONS, device=self.device)[None] < batch["n_options"][:, None]
        asked = states[self.taps["content"]][rows, begin + batch["question_end"].clamp_min(0)]
        named = functional.cross_entropy(
            head(self.working, "content", asked), batch["content"], ignore_index=NO_CONTENT, reduction="sum"
        )
        settled = (batch["content"] != NO_CONTENT).sum().clamp_min(1)
        return (wrong * valid).sum() / valid.sum() + 0.5 * named / settled

    def _look_loss(self, batch: Batch, behind: Tensor, colours: Tensor, places: Tensor) -> Tensor:
        """Return the loss of describing each frame behind it."""
        colour, shape, background, numbers = torch.split(head(self.working, "looks", behind), list(LOOKS), -1)
        n = colours.shape[1]
        loss = functional.cross_entropy(colour.flatten(0, 1), colours.flatten())
        for logits, name in ((shape, "shape"), (background, "background")):
            loss = loss + functional.cross_entropy(logits.flatten(0, 1), batch[name].repeat_interleave(n))
        clarity = batch["clarity"][:, None, None].expand(-1, n, 1)
        return 0.3 * loss + functional.mse_loss(numbers, torch.cat([places / 16, clarity], -1))

    def _memory_loss(self, batch: Batch, behind: Tensor, colours: Tensor) -> Tensor:
        """Return the loss of summing up, behind each frame, all frames up to it."""
        seen_logits, first, count, direction = torch.split(head(self.working, "memory", behind), list(MEMORY), -1)
        n = colours.shape[1]
        seen = functional.one_hot(colours, N_COLOURS).cumsum(1) > 0
        loss = functional.binary_cross_entropy_with_logits(seen_logits, seen.float())
        loss = loss + 0.3 * functional.cross_entropy(first.flatten(0, 1), colours[:, 0].repeat_interleave(n))
        loss = loss + 0.3 * functional.cross_entropy(count.flatten(0, 1), seen.sum(-1).flatten())
        moves = (batch["sight"] == SIGHTS.index(Sight.FRAMES)) & (batch["motion"][:, 0] > 0)
        late = torch.arange(n, device=self.device) >= min(8, n // 2)
        heading = batch["motion"][:, 1].long().repeat_interleave(n)
        wrong = functional.cross_entropy(direction.flatten(0, 1), heading, reduction="none").reshape(-1, n)
        known = moves[:, None] & late[None]
        return loss + 0.5 * (wrong * known).sum() / known.sum().clamp_min(1)

    def _count(self, batch: Batch, letters: Tensor, surprise: Tensor) -> None:
        """Add a batch to the running table of accuracy and excess surprise."""
        missing = torch.arange(MAX_OPTIONS, device=self.device)[None] >= batch["n_options"][:, None]
        right = letters.masked_fill(missing, -torch.inf).argmax(1) == batch["answer"]
        least = -torch.xlogy(batch["target"], batch["target"]).sum(1)
        row = torch.stack([torch.ones_like(surprise), right.float(), surprise - least], 1)
        self.tally.index_add_(0, batch["kind"] * len(SIGHTS) + batch["sight"], row)

    def table(self) -> str:
        """Return accuracy / excess surprise per kind and sight since the last call."""
        cells = self.tally.clone().cpu().reshape(len(KIND_NAMES), len(SIGHTS), 3)
        self.tally.zero_()
        lines = [f"{'':12}" + "".join(f"{sight.value:>15}" for sight in SIGHTS)]
        for name, row in zip(KIND_NAMES, cells, strict=True):
            shown = [f"{right / n:.2f}/{excess / n:.3f}" if n else "-" for n, right, excess in row.tolist()]
            lines.append(f"{name:12}" + "".join(f"{text:>15}" for text in shown))
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the weights in bfloat16, without the auxiliary heads."""
        kept = {name: value for name, value in self.exact.items() if not name.startswith("aux.")}
        tensors = {name: value.detach().to(torch.bfloat16).cpu().contiguous() for name, value in kept.items()}
        save_file(tensors, str(path), metadata={"format": "pt"})


def schedule(done: float) -> tuple[float, float]:
    """Return the learning rate's factor and the auxiliary weight when a share of the steps is done."""
    fall = max(0.0, (done - HOLD) / (1 - HOLD))
    factor = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * fall))
    start, end = AUXILIARY
    return factor, start + (end - start) * min(1.0, done / HOLD)


def read_clips(path: Path | None) -> Tensor | None:
    """Return the clips of a bank's file."""
    return None if path is None else torch.from_numpy(np.load(path))


def batches(lessons: Sequence[Lessons], device: torch.device, workers: int) -> Iterator[list[tuple[Batch, float]]]:
    """Yield the batches of every step and their weights, in order, on the device."""
    pinned = device.type == "cuda"
    loaders = [DataLoader(each, batch_size=None, num_workers=workers, pin_memory=pinned) for each in lessons]
    for taken in zip(*loaders, strict=True):
        moved = [{name: value.to(device, non_blocking=True) for name, value in batch.items()} for batch in taken]
        yield [(batch, weight) for batch, (_, weight) in zip(moved, SORTS.values(), strict=True)]


def train(arguments: argparse.Namespace) -> None:
    """Train one checkpoint and write it."""
    shape, pupil = PUPILS[arguments.pupil]
    if arguments.steps:
        pupil = replace(pupil, steps=arguments.steps)
    out: Path = arguments.out
    write_model_files(out, shape)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clips = read_clips(arguments.bank)
    bank = Bank([] if clips is None else draw_scenes(len(clips)))
    trainer = Trainer(shape, Reader(out), device, arguments.seed, clips)
    n = sum(value.numel() for name, value in trainer.exact.items() if not name.startswith("aux."))
    print(f"{arguments.pupil}: {n / 1e6:.2f} M parameters, {pupil.steps} steps on {device}", flush=True)
    start = time.monotonic()
    sizes = {sort: max(2, int(size * arguments.scale)) for sort, (size, _) in SORTS.items()}
    lessons = [Lessons(out, pupil, sort, size, arguments.seed, bank) for sort, size in sizes.items()]
    for step, parts in enumerate(batches(lessons, device, arguments.workers)):
        factor, auxiliary = schedule(step / pupil.steps)
        loss = trainer.learn(parts, RATE * factor * min(1.0, (step + 1) / WARM_UP), auxiliary)
        if (step + 1) % arguments.every == 0 or step + 1 == pupil.steps:
            print(f"[{time.monotonic() - start:5.0f} s] step {step + 1} loss {float(loss):.3f}", flush=True)
            print(trainer.table(), flush=True)
            trainer.save(out / "model.safetensors")


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pupil", choices=sorted(PUPILS))
    parser.add_argument("out", type=Path)
    parser.add_argument("--bank", type=Path, help="file of clips that bank.py made")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=4, help="processes that make batches, for each sort of batch")
    parser.add_argument("--every", type=int, default=300, help="steps between two tables")
    parser.add_argument("--steps", type=int, default=0, help="other than the pupil's number of steps (a trial)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the batch size (a trial)")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
