"""Attention over packed sequences, without masks and without padding.

One kernel takes sequences of any lengths laid behind each other, as `torch.nn.attention.varlen` has it (run on a GPU
with torch 2.11). `attend_tree` runs token trees through it (`packed.Layout`), `attend_frames` the frames of a vision
tower; both are given to `transformers` as attention functions by name (`install`). What a GPU spends on attention is
then the pairs that see each other: no mask of nodes x nodes is built, and nothing loops over frames.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from benchcheck.backends.packed import Layout

if TYPE_CHECKING:
    import torch

__all__ = ["FRAMES", "TREE", "DeviceLayout", "Kernel", "attend_frames", "attend_tree", "bound", "install", "varlen"]

TREE = "benchcheck_tree"
FRAMES = "benchcheck_flash_frames"
"""The word `flash` makes the vision towers of `transformers` ask once a layer, with the frames' lengths."""


class Kernel(Protocol):
    """Attention of sequences laid behind each other."""

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        lengths: DeviceLayout,
        *,
        causal: bool,
        scale: float,
    ) -> torch.Tensor:
        """Return [queries, heads, width].

        Args:
            query: [queries, heads, width].
            key: [keys, key heads, width], where heads are a multiple of key heads.
            value: like `key`.
            lengths: where sequences begin and end.
            causal: the last query of a sequence sees all its keys, the one before it all but one, and so on;
                otherwise every query sees every key of its sequence.
            scale: what scores are multiplied by.
        """
        ...


@dataclass(frozen=True, slots=True)
class DeviceLayout:
    """A `packed.Layout` on the device of the network."""

    query_ends: torch.Tensor
    """int32 [sequences + 1]: 0 and where each sequence's queries end."""
    key_ends: torch.Tensor
    """int32 [sequences + 1], the same for keys."""
    longest_query: int
    longest_key: int
    keys: torch.Tensor | None = None
    """int64 [keys]: which node each key is; None where keys lie as queries do."""

    @classmethod
    def of(cls, layout: Layout, device: torch.device) -> DeviceLayout:
        """Copy a layout there."""
        import torch

        query_ends, key_ends = (torch.from_numpy(ends).to(device) for ends in (layout.query_ends, layout.key_ends))
        keys = torch.from_numpy(layout.keys).to(device)
        return cls(query_ends, key_ends, layout.longest_query, layout.longest_key, keys)


def attend_tree(
    *inputs: Any, scaling: float, layout: DeviceLayout, kernel: Kernel, **_: Any
) -> tuple[torch.Tensor, None]:
    """Attend along the paths of token trees, as an attention function of `transformers`.

    Args:
        inputs: the layer, query [1, heads, nodes, width], key and value [1, key heads, nodes, width], and no mask.
        scaling: what scores are multiplied by.
        layout: who sees whom.
        kernel: see `varlen`.
        _: what other attention functions take.

    Returns:
        [1, nodes, heads, width] and no weights.
    """
    query, key, value = (part[0].transpose(0, 1) for part in inputs[1:4])
    if layout.keys is not None:
        key, value = key.index_select(0, layout.keys), value.index_select(0, layout.keys)
    return kernel(query, key, value, layout, causal=True, scale=scaling)[None], None


def attend_frames(
    *inputs: Any, scaling: float, cu_seq_lens_q: torch.Tensor, max_length_q: int, kernel: Kernel, **_: Any
) -> tuple[torch.Tensor, None]:
    """Attend within each frame; inputs and result as those of `attend_tree`, with patches for nodes.

    Args:
        inputs: see there.
        scaling: what scores are multiplied by.
        cu_seq_lens_q: int32 [frames + 1], 0 and where each frame ends.
        max_length_q: patches of the largest frame.
        kernel: see `varlen`.
        _: what other attention functions take.
    """
    query, key, value = (part[0].transpose(0, 1) for part in inputs[1:4])
    frames = DeviceLayout(cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)
    return kernel(query, key, value, frames, causal=False, scale=scaling)[None], None


def varlen() -> Kernel | None:
    """Return torch's own kernel, or None where this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return bound(varlen_attn)


def bound(attention: Callable[..., Any]) -> Kernel | None:
    """Return `torch.nn.attention.varlen.varlen_attn` as a `Kernel`, or None where it cannot be called so.

    Its keywords differ between versions of torch: causal attention is `is_causal` or a window of (-1, 0), and shared
    key heads are said by `enable_gqa` (2.13) or not at all, while the kernel below takes them all along.
    """
    takes = inspect.signature(attention).parameters
    if "scale" not in takes or not {"window_size", "is_causal"} & set(takes):
        return None

    def kernel(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        lengths: DeviceLayout,
        *,
        causal: bool,
        scale: float,
    ) -> torch.Tensor:
        how: dict[str, Any] = {"scale": scale}
        if causal:
            how |= {"window_size": (-1, 0)} if "window_size" in takes else {"is_causal": True}
        if "enable_gqa" in takes:
            how["enable_gqa"] = query.shape[1] != key.shape[1]
        ends = (lengths.query_ends, lengths.key_ends, lengths.longest_query, lengths.longest_key)
        attended: torch.Tensor = attention(query, key, value, *ends, **how)
        return attended

    return kernel


def install(core: Any) -> None:
    """Make a Qwen3-VL model use both functions: its language model wants `layout` and `kernel`, its tower `kernel`.

    Two more steps become what a GPU is quick at. The tower's first, a convolution whose windows do not overlap, is the
    matrix product that it is. A norm of the language model is one kernel instead of seven, which reads 16 % more text
    prompts a second (8B; 22 % with 2B, one H200) and rounds to bfloat16 once instead of twice: letters move by 0.02
    nats in the mean, as much as by another batch.
    """
    import torch
    from transformers import AttentionInterface

    AttentionInterface.register(TREE, attend_tree)
    AttentionInterface.register(FRAMES, attend_frames)
    # Not by set_attn_implementation: a name with `flash` in it would make it look for that package.
    core.language_model.config._attn_implementation = TREE
    core.visual.config._attn_implementation = FRAMES
    project = core.visual.patch_embed.proj
    weight = project.weight.detach().flatten(1)
    core.visual.patch_embed.forward = partial(torch.nn.functional.linear, weight=weight, bias=project.bias)
    for norm in core.language_model.modules():
        if type(norm).__name__.endswith("RMSNorm"):
            width, epsilon = tuple(norm.weight.shape), norm.variance_epsilon
            norm.forward = partial(
                torch.nn.functional.rms_norm, normalized_shape=width, weight=norm.weight.detach(), eps=epsilon
            )
