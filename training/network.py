"""The Qwen3-VL forward pass for batches of one layout, over a dict of weights under transformers' names.

Layout of a row: opening tokens, then n frames of `<|vision_start|>` 4 by `<|image_pad|>` `<|vision_end|>`, then text,
padded on the right. Frames are 64 by 64 pixels. It computes what transformers computes (`check_network.py` compares),
several times faster because nothing depends on the content of the batch.
"""

import math
from collections.abc import Sequence

import torch
from model_files import PATCH, Shape
from torch import Tensor
from torch.nn import functional

__all__ = ["FRAME_TOKENS", "Weights", "forward", "head", "initial_weights", "read_out"]

Weights = dict[str, Tensor]
FRAME_TOKENS = 6
VISION, TEXT = "model.visual.", "model.language_model."
VISION_START, VISION_END = 3, 4
PATCH_VALUES = 3 * PATCH * PATCH


def _linear(name: str, out: int, into: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def _vision_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    width = shape.vision_hidden
    shapes: dict[str, tuple[int, ...]] = {
        f"{VISION}patch_embed.proj.weight": (width, 3, 2, PATCH, PATCH),
        f"{VISION}patch_embed.proj.bias": (width,),
        f"{VISION}pos_embed.weight": (shape.positions, width),
    }
    for layer in range(shape.vision_layers):
        block = f"{VISION}blocks.{layer}."
        for norm in ("norm1", "norm2"):
            shapes |= {f"{block}{norm}.weight": (width,), f"{block}{norm}.bias": (width,)}
        shapes |= _linear(f"{block}attn.qkv", 3 * width, width) | _linear(f"{block}attn.proj", width, width)
        shapes |= _linear(f"{block}mlp.linear_fc1", shape.vision_feed_forward, width)
        shapes |= _linear(f"{block}mlp.linear_fc2", width, shape.vision_feed_forward)
    merged = 4 * width
    mergers = [(f"{VISION}merger.", width)]
    mergers += [(f"{VISION}deepstack_merger_list.{index}.", merged) for index in range(len(shape.deepstack))]
    for merger, norm_width in mergers:
        shapes |= {f"{merger}norm.weight": (norm_width,), f"{merger}norm.bias": (norm_width,)}
        shapes |= _linear(f"{merger}linear_fc1", merged, merged) | _linear(f"{merger}linear_fc2", shape.hidden, merged)
    return shapes


def _text_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    width, queries, keys = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    shapes: dict[str, tuple[int, ...]] = {f"{TEXT}embed_tokens.weight": (shape.vocabulary, width)}
    for layer in range(shape.layers):
        block = f"{TEXT}layers.{layer}."
        shapes |= {
            f"{block}self_attn.q_proj.weight": (queries, width),
            f"{block}self_attn.k_proj.weight": (keys, width),
            f"{block}self_attn.v_proj.weight": (keys, width),
            f"{block}self_attn.o_proj.weight": (width, queries),
            f"{block}mlp.gate_proj.weight": (shape.feed_forward, width),
            f"{block}mlp.up_proj.weight": (shape.feed_forward, width),
            f"{block}mlp.down_proj.weight": (width, shape.feed_forward),
            f"{block}self_attn.q_norm.weight": (shape.head_dim,),
            f"{block}self_attn.k_norm.weight": (shape.head_dim,),
            f"{block}input_layernorm.weight": (width,),
            f"{block}post_attention_layernorm.weight": (width,),
        }
    return shapes | {f"{TEXT}norm.weight": (width,), "lm_head.weight": (shape.vocabulary, width)}


def _initial(name: str, size: Sequence[int], layers: int, generator: torch.Generator) -> Tensor:
    """Return one weight at the start."""
    if name.endswith("bias"):
        return torch.zeros(*size)
    if "norm" in name:
        return torch.ones(*size)
    random = torch.randn(*size, generator=generator)
    if "patch_embed" in name:  # a still picture fills both temporal halves; the second stays out of it
        random[:, :, 1] = 0
        return random / math.sqrt(PATCH_VALUES)
    fixed = {"embed_tokens": 0.3, "pos_embed": 0.2, "lm_head": 0.02}
    for part, scale in fixed.items():
        if part in name:
            return random * scale
    scale = 0.8 / math.sqrt(size[1])
    writes = ("o_proj", "down_proj", "attn.proj", "mlp.linear_fc2")
    return random * (scale / math.sqrt(2 * layers) if any(part in name for part in writes) else scale)


def initial_weights(shape: Shape, seed: int) -> Weights:
    """Return the weights at the start, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    shapes = _vision_shapes(shape) | _text_shapes(shape)
    return {name: _initial(name, size, shape.layers, generator) for name, size in shapes.items()}


def _dense(weights: Weights, name: str, x: Tensor) -> Tensor:
    return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _layer_norm(weights: Weights, name: str, x: Tensor) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-6)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


def _patch_places(device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row and column of the 16 patches, in the processor's order: 2 by 2 blocks of 2 by 2 patches."""
    block_row, block_column, row, column = torch.meshgrid(*[torch.arange(2, device=device)] * 4, indexing="ij")
    return (block_row * 2 + row).flatten(), (block_column * 2 + column).flatten()


def _merge(weights: Weights, name: str, x: Tensor) -> Tensor:
    return _dense(weights, f"{name}linear_fc2", functional.gelu(_dense(weights, f"{name}linear_fc1", x)))


def _vision_block(shape: Shape, weights: Weights, block: str, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    n, tokens, width = x.shape
    heads = shape.vision_heads
    y = _dense(weights, f"{block}attn.qkv", _layer_norm(weights, f"{block}norm1", x))
    query, key, value = y.view(n, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)
    query = _turned(query.float(), *turn).to(x.dtype)
    key = _turned(key.float(), *turn).to(x.dtype)
    seen = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(n, tokens, width)
    x = x + _dense(weights, f"{block}attn.proj", seen)
    y = _dense(weights, f"{block}mlp.linear_fc1", _layer_norm(weights, f"{block}norm2", x))
    return x + _dense(weights, f"{block}mlp.linear_fc2", functional.gelu(y, approximate="tanh"))


def _see(shape: Shape, weights: Weights, patches: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return four tokens per picture, and what the deepstack taps add to the first text layers."""
    n, width, device = patches.shape[0], shape.vision_hidden, patches.device
    row, column = _patch_places(device)
    kernel = weights[f"{VISION}patch_embed.proj.weight"][:, :, 0].reshape(width, PATCH_VALUES)
    x = functional.linear(patches, kernel, weights[f"{VISION}patch_embed.proj.bias"])
    x = x + weights[f"{VISION}pos_embed.weight"][row * 4 + column]
    half = width // shape.vision_heads // 2
    frequency = 1.0 / (10000.0 ** (torch.arange(0, half, 2, device=device).float() / half))
    angle = torch.cat([row[:, None] * frequency, column[:, None] * frequency], -1).repeat(1, 2)
    turn = (angle.cos(), angle.sin())
    taps = []
    for layer in range(shape.vision_layers):
        x = _vision_block(shape, weights, f"{VISION}blocks.{layer}.", x, turn)
        if layer in shape.deepstack:
            name = f"{VISION}deepstack_merger_list.{shape.deepstack.index(layer)}."
            merged = _layer_norm(weights, f"{name}norm", x.reshape(n, 4, 4 * width))
            taps.append(_merge(weights, name, merged))
    name = f"{VISION}merger."
    return _merge(weights, name, _layer_norm(weights, f"{name}norm", x).reshape(n, 4, 4 * width)), taps


def _places(n_opening: int, n_frames: int, n_text: int, device: torch.device) -> Tensor:
    """Return the three position ids of every token; a picture's tokens count as 2 by 2, a frame spans four places."""
    opening = torch.arange(n_opening, device=device).expand(3, -1)
    start = n_opening + 4 * torch.arange(n_frames, device=device)[:, None]
    time = torch.tensor([0, 1, 1, 1, 1, 3], device=device)
    row = torch.tensor([0, 1, 1, 2, 2, 3], device=device)
    column = torch.tensor([0, 1, 2, 1, 2, 3], device=device)
    frames = torch.stack([(start + offsets).flatten() for offsets in (time, row, column)])
    text = (n_opening + 4 * n_frames + torch.arange(n_text, device=device)).expand(3, -1)
    return torch.cat([opening, frames, text], 1)


def _text_turn(shape: Shape, places: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the interleaved three-axis rotary embedding."""
    exponent = torch.arange(0, shape.head_dim, 2, device=places.device).float() / shape.head_dim
    angles = places[..., None].float() / shape.rope_theta**exponent
    angle = angles[0].clone()
    for axis in (1, 2):
        chosen = slice(axis, shape.rope_sections[axis] * 3, 3)
        angle[:, chosen] = angles[axis][:, chosen]
    angle = angle.repeat(1, 2)
    return angle.cos(), angle.sin()


def _text_block(shape: Shape, weights: Weights, block: str, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    n, tokens, _ = x.shape
    queries, keys = shape.heads, shape.kv_heads
    y = functional.rms_norm(x, (shape.hidden,), weights[f"{block}input_layernorm.weight"], shape.epsilon)
    kernel = torch.cat([weights[f"{block}self_attn.{name}_proj.weight"] for name in "qkv"])
    heads = functional.linear(y, kernel).view(n, tokens, queries + 2 * keys, shape.head_dim).transpose(1, 2)
    query, key, value = torch.split(heads, [queries, keys, keys], 1)
    size = (shape.head_dim,)
    query = functional.rms_norm(query, size, weights[f"{block}self_attn.q_norm.weight"], shape.epsilon)
    key = functional.rms_norm(key, size, weights[f"{block}self_attn.k_norm.weight"], shape.epsilon)
    seen = functional.scaled_dot_product_attention(
        _turned(query, *turn), _turned(key, *turn), value, is_causal=True, enable_gqa=True
    )
    seen = seen.transpose(1, 2).reshape(n, tokens, queries * shape.head_dim)
    x = x + functional.linear(seen, weights[f"{block}self_attn.o_proj.weight"])
    y = functional.rms_norm(x, (shape.hidden,), weights[f"{block}post_attention_layernorm.weight"], shape.epsilon)
    kernel = torch.cat([weights[f"{block}mlp.{name}_proj.weight"] for name in ("gate", "up")])
    gate, up = functional.linear(y, kernel).chunk(2, -1)
    return x + functional.linear(functional.silu(gate) * up, weights[f"{block}mlp.down_proj.weight"])


def _embed(
    shape: Shape, weights: Weights, opening: Tensor, patches: Tensor | None, text: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Return the embedded rows and the deepstack additions, laid out along them."""
    table, rows = weights[f"{TEXT}embed_tokens.weight"], text.shape[0]
    parts = [functional.embedding(opening, table)[None].expand(rows, -1, -1)]
    taps: list[Tensor] = []
    if patches is not None:
        n = rows * patches.shape[1]
        tokens, taps = _see(shape, weights, patches.reshape(n, -1, PATCH_VALUES))
        start, end = table[VISION_START].expand(n, 1, -1), table[VISION_END].expand(n, 1, -1)
        parts.append(torch.cat([start, tokens, end], 1).reshape(rows, -1, shape.hidden))
        around = (0, 0, opening.shape[0], text.shape[1])
        taps = [functional.pad(tap, (0, 0, 1, 1)).reshape(rows, -1, shape.hidden) for tap in taps]
        taps = [functional.pad(tap, around) for tap in taps]
    return torch.cat([*parts, functional.embedding(text, table)], 1), taps


def forward(shape: Shape, weights: Weights, opening: Tensor, patches: Tensor | None, text: Tensor) -> list[Tensor]:
    """Return the hidden states after every text layer.

    `opening` is one row of token ids, `patches` rows by frames by 16 by values or None, `text` rows by tokens of ids.
    """
    x, taps = _embed(shape, weights, opening, patches, text)
    n_frames = 0 if patches is None else patches.shape[1]
    places = _places(opening.shape[0], n_frames, text.shape[1], text.device)
    cos, sin = _text_turn(shape, places)
    turn = (cos.to(x.dtype), sin.to(x.dtype))
    states = []
    for layer in range(shape.layers):
        x = _text_block(shape, weights, f"{TEXT}layers.{layer}.", x, turn)
        if layer < len(taps):
            x = x + taps[layer]
        states.append(x)
    return states


def read_out(shape: Shape, weights: Weights, x: Tensor) -> Tensor:
    """Return the logits of hidden states."""
    y = functional.rms_norm(x, (shape.hidden,), weights[f"{TEXT}norm.weight"], shape.epsilon)
    return functional.linear(y, weights["lm_head.weight"])


def head(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Return what an auxiliary head of training reads in hidden states; these heads are not exported."""
    y = functional.rms_norm(x.float(), x.shape[-1:])
    return functional.linear(y, weights[f"aux.{name}.weight"].float(), weights[f"aux.{name}.bias"].float())
