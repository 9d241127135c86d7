"""Other families than Qwen3-VL in this process: one ordinary forward of the whole model per prompt.

Nothing is packed or shared, so it is slow beside the packed forward and depends on nothing but the prompt: a reading is
the same in any batch and order. Meant for held-out auditors, which read a few hundred prompts.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchcheck.backends import Engine, Outcome, checkpoint
from benchcheck.backends.families import FAMILIES, FamilyRenderer, images_of
from benchcheck.backends.letters import check_core, unreadable_letters, variants_of_letters
from benchcheck.backends.network import load, quiet
from benchcheck.backends.pixels import UndecodableFrameError
from benchcheck.backends.readout import Readout
from benchcheck.backends.rendering import refusal
from benchcheck.errors import BackendError, first_line
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading

__all__ = ["PlainBackend"]

AHEAD = 4
"""Prompts whose tokens and pixels are made while earlier ones are computed."""


class PlainBackend:
    """Reads letters from a checkpoint of one of `families.FAMILIES`."""

    def __init__(self, folder: Path, preset: str, version: str, revision: str) -> None:
        """Open a checked folder (`transformers.open_checkpoint`).

        Raises:
            ModelRefusedError: the checkpoint is damaged, or its letters are not single tokens.
        """
        import torch

        with quiet():
            self._renderer = FamilyRenderer(folder, FAMILIES[checkpoint.architecture(folder)])
        tokens = self._renderer.vocabulary()
        variants = variants_of_letters(tokens)
        self._unreadable = unreadable_letters(self._renderer.specimen, self._renderer.tokenize, variants)
        check_core(folder, self._unreadable)
        self._readout = Readout(preset, tokens, variants)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._dtype = torch.bfloat16 if self._device.type == "cuda" else torch.float32
        self._model = load(folder, self._dtype, self._device)
        self.max_tokens = int(self._model.config.get_text_config().max_position_embeddings)
        if preset == "exact":
            self._exact_head()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="forward")
        device = torch.cuda.get_device_name() if self._device.type == "cuda" else "cpu"
        self.engine = Engine("transformers", version, str(self._dtype).removeprefix("torch."), device, revision)

    def _exact_head(self) -> None:
        """Compute logits in float32, from a copy of the head: those of bfloat16 come in steps of 0.125."""
        import torch

        head = self._model.get_output_embeddings()
        weight, bias = head.weight.detach().float(), None if head.bias is None else head.bias.detach().float()
        head.forward = lambda states: torch.nn.functional.linear(states.float(), weight, bias)

    def close(self) -> None:
        """Give back memory."""
        import torch

        self._thread.shutdown()
        del self._model
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt.

        Raises:
            BackendError: the GPU failed.
        """
        running: deque[tuple[int, Future[Reading | Failure]]] = deque()
        for index, prompt in enumerate(prompts):
            inputs = self._inputs(prompt)
            if isinstance(inputs, Failure):
                yield Outcome(index, inputs)
                continue
            running.append((index, self._thread.submit(self._read, inputs, len(prompt.order))))
            if len(running) > AHEAD:
                first, reading = running.popleft()
                yield Outcome(first, reading.result())
        for first, reading in running:
            yield Outcome(first, reading.result())

    def _inputs(self, prompt: Prompt) -> dict[str, Any] | Failure:
        """Return what the model takes for a prompt, or why it cannot be read."""
        failure = refusal(prompt, self._renderer, self._unreadable)
        if failure:
            return failure
        try:
            inputs = self._renderer.inputs(prompt, images_of(prompt.frames))
        except UndecodableFrameError as error:
            return Failure("undecodable_frames", str(error))
        length = inputs["input_ids"].shape[1]
        if length > self.max_tokens:
            return Failure("context_too_long", f"{length} tokens; the model takes {self.max_tokens}")
        return inputs

    def _read(self, inputs: Mapping[str, Any], options: int) -> Reading | Failure:
        """Return a prompt's letters; runs on the thread of forwards."""
        import torch

        start = time.perf_counter()
        try:
            with torch.inference_mode():
                given = {name: self._sent(value) for name, value in inputs.items()}
                logits = self._model(**given, logits_to_keep=1, use_cache=False).logits[:, -1].float()
            (letters,) = self._readout.read(logits, [options])
        except torch.OutOfMemoryError as error:
            return Failure("out_of_memory", first_line(error))
        except torch.AcceleratorError as error:
            raise BackendError(f"the GPU failed ({first_line(error)}). Cure: run the same command again") from error
        return Reading(letters, inputs["input_ids"].shape[1], time.perf_counter() - start)

    def _sent(self, value: Any) -> Any:
        """Return an input on the device, pixels in the model's own type."""
        import torch

        if not isinstance(value, torch.Tensor):
            return value
        return value.to(self._device, self._dtype) if value.is_floating_point() else value.to(self._device)
