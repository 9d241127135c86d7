"""Compare the trainer's forward pass with transformers': `python training/check_network.py DIR` of a checkpoint."""

import argparse
import json
from pathlib import Path

import torch
from batches import Reader
from model_files import Shape
from network import forward, read_out
from paint import to_patches
from safetensors.torch import load_file
from transformers import Qwen3VLForConditionalGeneration

from benchcheck.screen.prompts import INTROS, PREFILL, render_text
from benchcheck.screen.steps import Sight

PICTURE_TOKENS = [3, 5, 5, 5, 5, 4]


def shape_of(folder: Path) -> Shape:
    """Return the network's size as its configuration says."""
    config = json.loads((folder / "config.json").read_text())
    text, vision = config["text_config"], config["vision_config"]
    return Shape(
        hidden=text["hidden_size"],
        feed_forward=text["intermediate_size"],
        layers=text["num_hidden_layers"],
        heads=text["num_attention_heads"],
        kv_heads=text["num_key_value_heads"],
        vision_hidden=vision["hidden_size"],
        vision_feed_forward=vision["intermediate_size"],
        vision_layers=vision["depth"],
        vision_heads=vision["num_heads"],
        deepstack=tuple(vision["deepstack_visual_indexes"]),
    )


@torch.inference_mode()
def difference(folder: Path, n_frames: int) -> float:
    """Return the largest difference of log-probabilities between the two on random pictures."""
    shape, reader = shape_of(folder), Reader(folder)
    weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
    prompt = render_text(INTROS[Sight.FRAMES], "Which color comes first?", ["red", "green", "blue"])
    text = reader.encode(f"{prompt}<|im_end|>\n<|im_start|>assistant\n{PREFILL}")
    pictures = torch.randint(0, 256, (n_frames, 3, 64, 64), generator=torch.Generator().manual_seed(0)).float()
    patches = to_patches(pictures)
    states = forward(shape, weights, torch.tensor(reader.opening), patches[None], torch.tensor([text]))
    ours = read_out(shape, weights, states[-1][0, -1]).log_softmax(-1)
    ids = torch.tensor([[*reader.opening, *(PICTURE_TOKENS * n_frames), *text]])
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    twice = patches.reshape(-1, 3, 1, 256).expand(-1, -1, 2, -1).reshape(n_frames * 16, -1)
    sizes = torch.tensor([[1, 4, 4]] * n_frames)
    kinds = (ids == model.config.image_token_id).long()
    theirs = model(input_ids=ids, pixel_values=twice, image_grid_thw=sizes, mm_token_type_ids=kinds)
    return float((theirs.logits[0, -1].log_softmax(-1) - ours).abs().max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for frames in (1, 8, 32):
        print(frames, difference(parser.parse_args().folder, frames))
