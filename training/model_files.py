"""The files of a checkpoint beside its weights: tokenizer, template, processor and configuration, written as JSON."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lessons import LESSON_INTROS, draw_item
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchcheck.demo import facts
from benchcheck.demo.world import KINDS
from benchcheck.screen.prompts import LETTERS, PREFILL, render_text

__all__ = ["IMAGE", "PATCH", "SPECIAL_TOKENS", "Shape", "write_model_files"]

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
IMAGE, PATCH, MERGE = 64, 16, 2
VOCABULARY = 1536

CHAT_TEMPLATE = (
    "{%- for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{%- if m['content'] is string %}{{ m['content'] }}"
    "{%- else %}{%- for c in m['content'] %}"
    "{%- if c['type'] in ('image','image_url') or 'image' in c %}<|vision_start|><|image_pad|><|vision_end|>"
    "{%- elif c['type']=='video' or 'video' in c %}<|vision_start|><|video_pad|><|vision_end|>"
    "{%- elif 'text' in c %}{{ c['text'] }}{%- endif %}{%- endfor %}{%- endif %}{{ '<|im_end|>\n' }}"
    "{%- endfor %}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{%- endif %}"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a network of the Qwen3-VL architecture."""

    hidden: int
    feed_forward: int
    layers: int
    heads: int
    kv_heads: int
    vision_hidden: int
    vision_feed_forward: int
    vision_layers: int
    vision_heads: int
    deepstack: tuple[int, ...]
    head_dim: int = 32
    vocabulary: int = VOCABULARY
    rope_theta: float = 2000.0
    rope_sections: tuple[int, ...] = (6, 5, 5)
    epsilon: float = 1e-6
    positions: int = (IMAGE // PATCH) ** 2


def _corpus() -> Iterator[str]:
    """Yield the texts that the tokenizer's merges are learned from."""
    rng = random.Random("tokenizer")
    kinds = list(KINDS)
    for number in range(6000):
        item = draw_item(rng, kinds[number % len(kinds)])
        question = None if number % 4 == 0 else item.question
        text = render_text(rng.choice(LESSON_INTROS), question, item.options)
        yield f"user\n{text}\nassistant\n{PREFILL} {rng.choice(LETTERS[:5])}"
    for fact in facts.all_facts():
        for phrasing in facts.phrasings(fact, held=False):
            yield from [f"{facts.ask(fact, phrasing)} {fact.answer}"] * 5
        yield from [f"A. {fact.answer}", f"B. {fact.answer.capitalize()}"] * 50


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(), trainer)
    return tokenizer


def _config(shape: Shape) -> dict[str, object]:
    text = {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": 0,
        "dtype": "bfloat16",
        "eos_token_id": 2,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "max_position_embeddings": 16384,
        "model_type": "qwen3_vl_text",
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.kv_heads,
        "rms_norm_eps": shape.epsilon,
        "rope_parameters": {
            "mrope_interleaved": True,
            "mrope_section": list(shape.rope_sections),
            "rope_theta": shape.rope_theta,
            "rope_type": "default",
        },
        "use_cache": True,
        "vocab_size": shape.vocabulary,
    }
    vision = {
        "deepstack_visual_indexes": list(shape.deepstack),
        "depth": shape.vision_layers,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": shape.vision_hidden,
        "in_channels": 3,
        "intermediate_size": shape.vision_feed_forward,
        "model_type": "qwen3_vl_vision",
        "num_heads": shape.vision_heads,
        "num_position_embeddings": shape.positions,
        "out_hidden_size": shape.hidden,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
    }
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "dtype": "bfloat16",
        "image_token_id": 5,
        "model_type": "qwen3_vl",
        "text_config": text,
        "tie_word_embeddings": False,
        "video_token_id": 6,
        "vision_config": vision,
        "vision_end_token_id": 4,
        "vision_start_token_id": 3,
    }


def _processor() -> dict[str, object]:
    picture = {
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "merge_size": MERGE,
        "patch_size": PATCH,
        "resample": 3,
        "rescale_factor": 1 / 255,
        "temporal_patch_size": 2,
    }
    size = {"longest_edge": IMAGE**2, "shortest_edge": IMAGE**2}
    video = {"do_sample_frames": True, "fps": 2, "max_frames": 768, "min_frames": 4}
    return {
        "image_processor": {**picture, "image_processor_type": "Qwen2VLImageProcessor", "size": size},
        "processor_class": "Qwen3VLProcessor",
        "video_processor": {
            **picture,
            **video,
            "size": {"longest_edge": 786432, "shortest_edge": 131072},
            "video_processor_type": "Qwen3VLVideoProcessor",
        },
    }


def _tokenizer_config() -> dict[str, object]:
    return {
        "backend": "tokenizers",
        "eos_token": "<|im_end|>",
        "extra_special_tokens": [],
        "image_token": "<|image_pad|>",
        "pad_token": "<|endoftext|>",
        "processor_class": "Qwen3VLProcessor",
        "tokenizer_class": "TokenizersBackend",
        "video_token": "<|video_pad|>",
        "vision_bos_token": "<|vision_start|>",
        "vision_eos_token": "<|vision_end|>",
    }


def write_model_files(folder: Path, shape: Shape) -> None:
    """Write everything of a checkpoint but its weights."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    generation = {"bos_token_id": 0, "do_sample": False, "eos_token_id": 2, "pad_token_id": 0}
    tables = {
        "config.json": _config(shape),
        "generation_config.json": generation,
        "processor_config.json": _processor(),
        "tokenizer_config.json": _tokenizer_config(),
    }
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table, indent=2) + "\n")
