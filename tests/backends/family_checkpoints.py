"""Tiny random checkpoints of other families, made without a download: the embedded tokenizer, small configs."""

import json
from pathlib import Path

import pytest

from benchcheck.backends.checkpoint import EMBEDDED

torch = pytest.importorskip("torch")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}@IMAGE@{% endif %}{% endfor %}"
    "{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}"
    "{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SMOL = (
    "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize }}{% if m['content'][0]['type'] == 'image' %}:"
    "{% else %}: {% endif %}{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}"
    "{% elif c['type'] == 'image' %}<image>{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] | trim }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<start_of_image>{% elif c['type'] == 'text' %}{{ c['text'] | trim }}{% endif %}"
    "{% endfor %}{% endif %}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT |= {"num_key_value_heads": 2, "max_position_embeddings": 4096}
SEEN = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def tokenizer(special, template, **named):
    """The embedded checkpoint's tokenizer with other special tokens; `named` are those the processor asks for."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(
        tokenizer_file=str(EMBEDDED / "large" / "tokenizer.json"),
        pad_token="<|endoftext|>",
        extra_special_tokens=named,
        **({"bos_token": "<bos>"} if "<bos>" in special else {}),
    )
    made.add_special_tokens({"additional_special_tokens": [*special, *named.values()]})
    made.chat_template = template
    return made


def save(folder, model, tokens, images, **processor):
    """Write a checkpoint as the hub holds one."""
    folder = Path(folder)
    torch.manual_seed(0)
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    images.save_pretrained(folder)
    (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder


def internvl(folder):
    from transformers import InternVLConfig, InternVLForConditionalGeneration
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil

    named = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>"}
    tokens = tokenizer([], CHATML.replace("@IMAGE@", "<IMG_CONTEXT>\n"), **named, video_token="<video>")
    torch.manual_seed(0)
    config = InternVLConfig(
        text_config={"model_type": "qwen2", "vocab_size": len(tokens), **TEXT},
        vision_config={**SEEN, "image_size": [28, 28], "patch_size": [7, 7]},
        image_token_id=tokens.convert_tokens_to_ids("<IMG_CONTEXT>"),
    )
    images = GotOcr2ImageProcessorPil(size={"height": 28, "width": 28}, crop_to_patches=True, max_patches=4)
    return save(
        folder,
        InternVLForConditionalGeneration(config),
        tokens,
        images,
        processor_class="InternVLProcessor",
        image_seq_length=4,
    )


def llava(folder):
    from transformers import LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration
    from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
        LlavaOnevisionImageProcessorPil,
    )

    tokens = tokenizer(
        [], CHATML.replace("@IMAGE@", "<image>").replace("}}\n", "}} "), image_token="<image>", video_token="<video>"
    )
    pinpoints = [[28, 28], [28, 56], [56, 28], [56, 56]]
    torch.manual_seed(0)
    config = LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", "vocab_size": len(tokens), **TEXT},
        vision_config={"model_type": "siglip_vision_model", **SEEN, "image_size": 28, "patch_size": 7},
        image_token_index=tokens.convert_tokens_to_ids("<image>"),
        video_token_index=tokens.convert_tokens_to_ids("<video>"),
        image_grid_pinpoints=pinpoints,
        vision_feature_layer=-1,
    )
    images = LlavaOnevisionImageProcessorPil(size={"height": 28, "width": 28}, image_grid_pinpoints=pinpoints)
    return save(
        folder,
        LlavaOnevisionForConditionalGeneration(config),
        tokens,
        images,
        processor_class="LlavaOnevisionProcessor",
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_9",
    )


def smolvlm(folder):
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil

    places = [f"<row_{row}_col_{column}>" for row in range(1, 5) for column in range(1, 5)]
    named = {"image_token": "<image>", "fake_image_token": "<fake_token_around_image>"}
    named |= {"global_image_token": "<global-img>", "end_of_utterance_token": "<end_of_utterance>"}
    tokens = tokenizer(places, SMOL, **named)
    torch.manual_seed(0)
    config = SmolVLMConfig(
        text_config={"model_type": "llama", "vocab_size": len(tokens), **TEXT, "pad_token_id": 0},
        vision_config={**SEEN, "image_size": 28, "patch_size": 7},
        image_token_id=tokens.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    images = SmolVLMImageProcessorPil(size={"longest_edge": 56}, max_image_size={"longest_edge": 28})
    return save(
        folder,
        SmolVLMForConditionalGeneration(config),
        tokens,
        images,
        processor_class="SmolVLMProcessor",
        image_seq_len=4,
    )


def gemma3(folder):
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    named = {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"}
    tokens = tokenizer(["<bos>", "<start_of_turn>", "<end_of_turn>"], GEMMA, **named)
    torch.manual_seed(0)
    config = Gemma3Config(
        text_config={"vocab_size": len(tokens), "head_dim": 8, "sliding_window": 64, **TEXT},
        vision_config={**SEEN, "image_size": 28, "patch_size": 7},
        mm_tokens_per_image=4,
        boi_token_index=tokens.convert_tokens_to_ids("<start_of_image>"),
        eoi_token_index=tokens.convert_tokens_to_ids("<end_of_image>"),
        image_token_index=tokens.convert_tokens_to_ids("<image_soft_token>"),
    )
    images = Gemma3ImageProcessorPil(size={"height": 28, "width": 28})
    model = Gemma3ForConditionalGeneration(config)
    # It starts at zero, which would make the model blind.
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight)
    return save(
        folder,
        model,
        tokens,
        images,
        processor_class="Gemma3Processor",
        image_seq_length=4,
    )


FAMILIES = {"InternVL": internvl, "LLaVA-OneVision": llava, "SmolVLM": smolvlm, "Gemma 3": gemma3}
