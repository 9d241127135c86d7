"""The `transformers` backend on a GPU: agreement with the CPU, and prompts a second at the shapes of the real models.

    python bench/gpu_backend.py [--shapes 2b,8b] [--json FILE]

Agreement: letters of the embedded checkpoint in bfloat16 on the GPU, packed and one prompt at a time, against float32
on the CPU (in a process that sees no GPU). Speed: random weights of the shapes of Qwen3-VL-2B and 8B, 4 option orders
of 512 text items, and 3 questions on each of 12 sets of 32 frames, cold. Random weights give flat letters; only the
time means something. Frames are made here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchcheck.backends import ModelSpec, checkpoint
from benchcheck.backends.transformers import TransformersBackend
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Reading
from benchcheck.screen.steps import Sight

EMBEDDED = "embedded:large"
OPTIONS = ("red ball", "green", "blue", "two dogs that play")
TEXT = {
    "2b": {"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16},
    "8b": {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32},
}
VISION = {
    "2b": {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "deepstack_visual_indexes": [5, 11, 17]},
    "8b": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]},
}


def text_prompts(items: int) -> list[Prompt]:
    """Four orders of each item, back to back."""
    question = "What is the {} of this thing that is shown to us?"
    return [
        Prompt(f"t{n}", 1, order, render_text(INTROS[Sight.BLIND], question.format(n), [OPTIONS[j] for j in order]))
        for n in range(items)
        for order in option_orders(f"t{n}", len(OPTIONS))
    ]


def video_prompts(folder: Path, videos: int) -> list[Prompt]:
    """Three questions on each set of 32 frames of 448x256 pixels."""
    rng, prompts = np.random.default_rng(0), []
    for video in range(videos):
        frames = [str(folder / f"{video}_{index}.jpg") for index in range(32)]
        for frame in frames:
            blocks = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
            Image.fromarray(blocks).resize((448, 256), Image.Resampling.BICUBIC).save(frame, quality=85)
        for number in range(3):
            text = render_text(INTROS[Sight.FRAMES], f"What colour is number {number}?", OPTIONS)
            prompts.append(Prompt(f"v{video}_{number}", 3, (0, 1, 2, 3), text, tuple(frames)))
    return prompts


def letters(backend: TransformersBackend, prompts: Sequence[Prompt]) -> np.ndarray:
    """Log-probabilities of the letters, one row per prompt in its place."""
    found = np.full((len(prompts), len(OPTIONS)), np.nan)
    for outcome in backend.read(prompts):
        assert isinstance(outcome.result, Reading), outcome.result
        found[outcome.index] = outcome.result.letters.logprobs
    return found


def real_shape(size: str, folder: Path) -> Path:
    """Write a checkpoint of a real model's shape with random weights; returns its folder."""
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    source = checkpoint.resolve(EMBEDDED)
    made = folder / size
    made.mkdir()
    for file in Path(source).iterdir():
        if file.suffix != ".safetensors":
            (made / file.name).write_bytes(file.read_bytes())
    table = json.loads((made / "config.json").read_text())
    table["text_config"] |= TEXT[size] | {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936}
    table["text_config"]["rope_parameters"] |= {"mrope_section": [24, 20, 20], "rope_theta": 5_000_000}
    table["text_config"]["max_position_embeddings"] = 262_144
    wide = {"num_heads": 16, "out_hidden_size": TEXT[size]["hidden_size"], "num_position_embeddings": 2304}
    table["vision_config"] |= VISION[size] | wide
    (made / "config.json").write_text(json.dumps(table))
    images = json.loads((made / "processor_config.json").read_text())
    images["image_processor"]["size"] = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
    (made / "processor_config.json").write_text(json.dumps(images))
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        Qwen3VLForConditionalGeneration(Qwen3VLConfig.from_pretrained(made)).save_pretrained(made)
    torch.set_default_dtype(torch.float32)
    torch.cuda.empty_cache()
    return made


def rate(model: Path, prompts: Sequence[Prompt]) -> float:
    """Prompts a second, frames cold: the better of two runs of a backend opened anew, after a warm-up."""
    best = 0.0
    for _ in range(2):
        backend = TransformersBackend(ModelSpec(str(model)))
        letters(backend, text_prompts(8))
        torch.cuda.synchronize()
        start = time.perf_counter()
        letters(backend, prompts)
        best = max(best, len(prompts) / (time.perf_counter() - start))
        backend.close()
        torch.cuda.empty_cache()
    return best


def main() -> int:
    """Print the figures; `--cpu FILE` is the child that reads on the CPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="2b,8b")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--cpu", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.cpu.parent if options.cpu else Path(name)
        few = text_prompts(50) + video_prompts(folder, 4)
        backend = TransformersBackend(ModelSpec(EMBEDDED))
        here = letters(backend, few)
        if options.cpu:
            np.save(options.cpu, here)
            return 0
        alone = np.concatenate([letters(backend, [prompt]) for prompt in few])
        figures: dict[str, object] = {"engine": str(backend.engine)}
        backend.close()
        hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
        subprocess.run([sys.executable, __file__, "--cpu", str(folder / "cpu.npy")], check=True, env=hidden)
        exact = np.load(folder / "cpu.npy")
        figures["bf16 packed against bf16 alone, nats"] = float(np.abs(here - alone).max())
        figures["bf16 against float32 on the CPU, nats"] = float(np.abs(here - exact).max())
        figures["same letter as float32"] = float((here.argmax(1) == exact.argmax(1)).mean())
        print(json.dumps(figures, indent=1), flush=True)
        text, video = text_prompts(512), video_prompts(folder, 12)
        for size in [part for part in options.shapes.split(",") if part]:
            model = real_shape(size, folder)
            figures[f"{size} text, 4 orders, prompts/s"] = round(rate(model, text), 1)
            figures[f"{size} 32 frames, 3 questions, prompts/s"] = round(rate(model, video), 1)
            print(json.dumps(figures, indent=1), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
