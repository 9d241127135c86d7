"""What runs inside vLLM's worker process: it sees the model itself, so it can mend and check what no argument reaches.

Named as `worker_extension_cls`; vLLM makes it a base of its worker class. Each method is called once, by
`collective_rpc`, and answers with what it found: the process that asked decides.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["LetterWorker"]

_LOOK_S = 1.0
_CLOSE = 3e-4
"""Largest difference of logits, as a share of the largest logit, that float32 sums in another order make. Rounding to
bfloat16 makes 2e-3."""


class LetterWorker:
    """Methods of vLLM's worker that this package adds."""

    model_runner: Any
    vllm_config: Any

    def benchcheck_facts(self, asker: int) -> dict[str, Any]:
        """Return what the engine runs as: device, dtype, and the encoder cache that its scheduler was given.

        From now on the engine ends when the process `asker` is gone. Left to itself, vLLM's engine outlives a killed
        parent and keeps the GPU's memory (0.25.1 and 0.32).
        """
        import torch

        threading.Thread(target=_end_after, args=(asker, os.getppid()), daemon=True, name="benchcheck").start()
        model = _model(self.model_runner)
        parameter = next(model.parameters())
        cuda = parameter.device.type == "cuda"
        return {
            "device": torch.cuda.get_device_name(parameter.device) if cuda else parameter.device.type,
            "dtype": str(self.vllm_config.model_config.dtype).removeprefix("torch."),
            "encoder_cache": int(self.vllm_config.scheduler_config.encoder_cache_size),
            "model": type(model).__name__,
        }

    def benchcheck_exact_head(self) -> dict[str, Any]:
        """Make the output head give float32 logits, and return how: `native`, `mended` or `none`.

        vLLM 0.32 does so when told by `head_dtype`; 0.25.1 takes the same words, says nothing and rounds to bfloat16,
        in steps of 0.125 for logits near 20. Hence the check by numbers.
        """
        model = _model(self.model_runner)
        if _head_is_exact(model):
            return {"head": "native"}
        compute = _float32_head(model)
        if compute is None:
            return {"head": "none"}
        model.compute_logits = compute
        return {"head": "mended" if _head_is_exact(model) else "none"}

    def benchcheck_uint8(self, mean: Sequence[float], std: Sequence[float], width: int) -> dict[str, Any]:
        """Make the vision tower take uint8 patches of `width` bytes, without their temporal copy; return how.

        `pixels` is `native` where vLLM normalises on the device (0.32), `mended` where it does not (0.25.1, which
        would take raw bytes as they are), `none` where neither can be done; `error` is the largest difference from
        what the model's own processor gives, in units of the tower's dtype.
        """
        model = _model(self.model_runner)
        if not hasattr(model, "_process_image_input") or not hasattr(model, "visual"):
            return {"pixels": "none", "error": 0.0}
        visual = model.visual
        native = getattr(getattr(visual, "input_norm", None), "input_dtype", None) is not None
        prepare = _prepare(visual.dtype, None if native else (mean, std))
        plain = model._process_image_input

        def process(image_input: Any) -> Any:
            pixels = image_input["pixel_values"] if image_input["type"] == "pixel_values" else None
            # Others come from vLLM's own processor, which makes them as this version's tower takes them.
            if pixels is not None and pixels.element_size() == 1 and pixels.shape[1] == width:
                pixels = prepare(pixels)
                grid = image_input["image_grid_thw"]
                image_input = type(image_input)(type="pixel_values", pixel_values=pixels, image_grid_thw=grid)
            return plain(image_input)

        model._process_image_input = process
        return {"pixels": "native" if native else "mended", "error": _pixel_error(visual, prepare, mean, std)}


def _end_after(asker: int, parent: int) -> None:
    """End this process, and its parent where that is the engine's core, when `asker` is gone."""
    while _lives(asker):
        time.sleep(_LOOK_S)
    # On a GPU this process is the core itself, whose parent was the asker. An adopted process has another parent now.
    if parent not in (asker, 1) and os.getppid() == parent:
        os.kill(parent, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _model(runner: Any) -> Any:
    return runner.get_model() if hasattr(runner, "get_model") else runner.model


def _head_is_exact(model: Any) -> bool:
    """Tell whether logits are float32 sums, by a few rows against the same product in float64."""
    import torch

    weight = getattr(_head(model), "weight", None)
    if weight is None or not weight.is_floating_point():
        return False
    some = weight[:256]
    rows = torch.randn(4, weight.shape[1], generator=torch.Generator().manual_seed(0)).to(weight)
    with torch.inference_mode():
        want = rows.double() @ some.double().T
        got = model.compute_logits(rows)[:, : len(some)].double()
        return bool((got - want).abs().max() <= _CLOSE * want.abs().max())


def _head(model: Any) -> Any:
    return getattr(getattr(model, "language_model", model), "lm_head", None)


def _float32_head(model: Any) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return a `compute_logits` in float32, or None where the head is quantised or split over GPUs."""
    import torch

    head, rows = _head(model), _vocabulary(model)
    weight = getattr(head, "weight", None)
    if weight is None or not weight.is_floating_point() or getattr(head, "tp_size", 1) != 1 or rows is None:
        return None

    def on_a_gpu(hidden: torch.Tensor) -> torch.Tensor:
        # Sums in float32 without a float32 copy of the weights, which for the 8B model takes 2.5 GB.
        return torch.mm(hidden, weight.t(), out_dtype=torch.float32)[:, :rows]

    def anywhere(hidden: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(hidden.float(), weight.float())[:, :rows]

    narrow = weight.is_cuda and weight.dtype in (torch.bfloat16, torch.float16)
    return on_a_gpu if narrow else anywhere


def _vocabulary(model: Any) -> int | None:
    """Return how many rows of the head are tokens; the rest pads it."""
    processor = getattr(getattr(model, "language_model", model), "logits_processor", None)
    if processor is None or getattr(processor, "soft_cap", None) or getattr(processor, "scale", 1.0) != 1.0:
        return None
    return int(processor.org_vocab_size)


def _prepare(
    dtype: torch.dtype, normalise: tuple[Sequence[float], Sequence[float]] | None
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what makes patches as the tower takes them, [n, 2 x bytes of a patch], from uint8 [n, bytes of a patch].

    The processor shows every image twice, as the two frames of a pair; the copy is made here, behind the process
    boundary.
    """
    import torch

    def prepare(patches: torch.Tensor) -> torch.Tensor:
        planes = patches.view(len(patches), 3, 1, -1)
        if normalise is not None:
            mean, std = (torch.tensor(list(one), device=patches.device).view(1, 3, 1, 1) * 255 for one in normalise)
            planes = ((planes.float() - mean) / std).to(dtype)
        return planes.expand(-1, 3, 2, -1).reshape(len(patches), -1)

    return prepare


def _pixel_error(
    visual: Any, prepare: Callable[[torch.Tensor], torch.Tensor], mean: Sequence[float], std: Sequence[float]
) -> float:
    """Return how far what reaches the first layer is from (value / 255 - mean) / std, over all values and channels."""
    import torch

    device = next(visual.parameters()).device
    ramp = torch.arange(256, dtype=torch.uint8).repeat(3, 1)
    with torch.inference_mode():
        got = prepare(ramp.view(1, -1).to(device))
        if hasattr(visual, "input_norm"):
            got = visual.input_norm(got, visual.dtype)
        got = got.double().cpu().view(3, 2, 256)
    means, stds = (torch.tensor(list(one), dtype=torch.float64).view(3, 1, 1) for one in (mean, std))
    want = (ramp.double().view(3, 1, 256) / 255 - means) / stds
    return float((got - want).abs().max() / torch.finfo(visual.dtype).eps)
