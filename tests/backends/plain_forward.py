"""Prompts, and one ordinary forward of the whole model per prompt to hold a backend against."""

import json
import math

import pytest
from PIL import Image

from benchcheck.screen.prompts import INTROS, Prompt, frame_order, option_orders, render_text
from benchcheck.screen.readings import Reading, letter_of_token, log_sum_exp
from benchcheck.screen.steps import Sight

torch = pytest.importorskip("torch")

OPTIONS = ["a red ball", "a green box", "blue", "two dogs", "nothing"]


def text_prompts(items=3, k=4):
    return [
        Prompt(f"t_{i}", 1, order, render_text(INTROS[Sight.BLIND], f"What is {i} of it?", [OPTIONS[j] for j in order]))
        for i in range(items)
        for order in option_orders(f"t_{i}", k)
    ]


def frame_prompts(frames, questions=3, sight=Sight.FRAMES, name="v"):
    order = tuple(range(4))
    return [
        Prompt(f"{name}_{i}", 3, order, render_text(INTROS[sight], f"Which of {i}?", OPTIONS[:4]), frames, frames[0])
        for i in range(questions)
    ]


def shuffled(frames):
    return tuple(frames[k] for k in frame_order("item", len(frames)))


class Plain:
    """One ordinary forward of the whole model per prompt, as transformers' own examples do it."""

    def __init__(self, folder):
        from transformers import AutoModelForImageTextToText, AutoTokenizer
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self.image = self.model.config.image_token_id

    def inputs(self, prompt):
        content = [{"type": "image"} for _ in prompt.frames] + [{"type": "text", "text": prompt.text}]
        turn = [{"role": "user", "content": content}]
        text = self.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True) + "Answer:"
        seen = {}
        if prompt.frames:
            images = [Image.open(path) for path in prompt.frames]
            seen = dict(self.processor(images=images, return_tensors="pt"))
            counts = seen["image_grid_thw"].prod(-1) // 4
            head, *parts = text.split("<|image_pad|>")
            shown = (f"{'<|image_pad|>' * int(n)}{part}" for n, part in zip(counts, parts, strict=True))
            text = head + "".join(shown)
        ids = self.tokenizer(text, return_tensors="pt")["input_ids"]
        return {"input_ids": ids, "mm_token_type_ids": (ids == self.image).int(), **seen}

    def letters(self, prompt):
        with torch.inference_mode():
            logits = self.model(**self.inputs(prompt), logits_to_keep=1).logits[0, -1]
        logprobs = logits.double().log_softmax(-1)
        found = {letter: [] for letter in "ABCDE"[: len(prompt.order)]}
        for token, logprob in enumerate(logprobs.tolist()):
            letter = letter_of_token(self.tokenizer.decode([token]))
            if letter in found:
                found[letter].append(logprob)
        return [log_sum_exp(values) for values in found.values()]


def make_mixture(folder):
    """Overwrite a checkpoint with random weights in the layout of Qwen3VLMoe: two layers of four experts."""
    from transformers import Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration

    given = json.loads((folder / "config.json").read_text())
    text = {key: value for key, value in given["text_config"].items() if key != "model_type"}
    vision = {key: value for key, value in given["vision_config"].items() if key != "model_type"}
    text |= {"num_hidden_layers": 2, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    tokens = {key: value for key, value in given.items() if key.endswith("_token_id")}
    torch.manual_seed(0)
    config = Qwen3VLMoeConfig(text_config=text, vision_config=vision, **tokens)
    Qwen3VLMoeForConditionalGeneration(config).save_pretrained(folder)


def readings(backend, prompts):
    outcomes = {outcome.index: outcome.result for outcome in backend.read(prompts)}
    assert sorted(outcomes) == list(range(len(prompts)))
    return [outcomes[index] for index in range(len(prompts))]


def assert_as_plain(backend, plain, prompts):
    for prompt, reading in zip(prompts, readings(backend, prompts), strict=True):
        assert isinstance(reading, Reading)
        assert reading.letters.logprobs == pytest.approx(plain.letters(prompt), abs=1e-4)
        assert reading.letters.missing == ()
        assert reading.letters.label_mass == pytest.approx(math.fsum(map(math.exp, reading.letters.logprobs)))
        assert reading.prompt_tokens == plain.inputs(prompt)["input_ids"].shape[1]
        assert reading.latency_s > 0
