"""The `transformers` backend: a Qwen3-VL checkpoint in this process, on a CPU or one GPU.

Neighbouring prompts are packed into token trees (`packed`), so the four orders of an item compute their question once
and the questions of a video its frames. Each frame goes through the vision tower once while it is remembered.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from benchcheck.backends import Backend, Engine, ModelSpec, Outcome, checkpoint
from benchcheck.backends.decoding import usual_workers
from benchcheck.backends.letters import check_core, unreadable_letters, variants_of_letters
from benchcheck.backends.network import Network, quiet
from benchcheck.backends.packed import plan_batches
from benchcheck.backends.pixels import FrameReader, FrameSource, Memory, UndecodableFrameError
from benchcheck.backends.readout import Readout, check_preset
from benchcheck.backends.rendering import Renderer, refusal
from benchcheck.backends.shipped import ShippedFrames
from benchcheck.backends.window import Planned, Seen, Window, rows_of
from benchcheck.errors import BackendError, MissingExtraError, first_line
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, LetterLogprobs, Reading

if TYPE_CHECKING:
    import torch

__all__ = ["Budget", "TransformersBackend", "open_checkpoint"]


@dataclass(frozen=True, slots=True)
class Budget:
    """How much runs at once.

    Measured on the CPU with the embedded checkpoint, 78-token prompts of four orders, one thread: rows of 200 nodes, 4
    side by side, read 204 prompts a second, one row of 800 reads 180 and one of 3,200 only 66, since a mask is
    quadratic. Without masks, on a GPU, a row is a whole batch, so that all its prompts share what they begin with.
    """

    row_tokens: int
    """Nodes of a tree, unless a prompt alone is longer."""
    batch_tokens: int
    """Nodes of all trees that run side by side, padding included."""
    window_tokens: int
    """Nodes that are planned together, so that rows of like length find each other. Short on a CPU, where two windows
    run side by side and even 3 videos should make two."""
    memory_bytes: int
    """Frame features that are remembered."""
    ahead: int = 8
    """Prompts that are tokenised together, while the frames of as many behind them are being decoded."""

    @classmethod
    def of(cls, device: str, *, masks: bool) -> Budget:
        """Return the budget for a device type, where attention needs masks or not."""
        if device == "cuda":
            return cls(1024 if masks else 16_384, 16_384, 32_768, 2 << 30, 96)
        return cls(256, 1024, 1024, 256 << 20)


class TransformersBackend:
    """Reads letters from a checkpoint of the Qwen3-VL family.

    A letter behind E that the tokenizer cannot say in one token fails the prompts that show so many options; one of A
    to E refuses the checkpoint. `Reading.latency_s` is a prompt's share of the seconds of the batch it was in.
    """

    def __init__(self, spec: ModelSpec, fetched: tuple[Path, str] | None = None) -> None:
        """Open a checkpoint.

        Args:
            spec: which, and how letters are read.
            fetched: what `checkpoint.fetch` gave for it, if it was asked already.

        Raises:
            UsageError: the model or preset does not exist, or a hub id has no revision.
            MissingExtraError: torch or transformers is not installed.
            ModelRefusedError: the checkpoint is damaged, of another kind, or its letters are not single tokens.
        """
        check_preset(spec.preset)
        version = _version()
        folder, revision = fetched or checkpoint.fetch(spec.model, spec.revision, cache=spec.cache)
        with quiet():
            self._renderer = Renderer(folder)
        tokens = self._renderer.vocabulary()
        variants = variants_of_letters(tokens)
        self._unreadable = unreadable_letters(self._renderer.specimen, self._renderer.tokenize, variants)
        check_core(folder, self._unreadable)
        self._network = Network(folder, exact_head=spec.preset == "exact")
        self._reader = self._source(folder, spec.settings.decode_workers)
        self._readout = Readout(spec.preset, tokens, variants)
        self.budget = Budget.of(self._network.device.type, masks=self._network.kernel is None)
        self._memory: Memory[Seen] = Memory(self.budget.memory_bytes, Seen.size)
        self._workers = ThreadPoolExecutor(self._network.workers, thread_name_prefix="batches")
        self.engine = Engine("transformers", version, self._network.dtype_name, self._network.device_name, revision)

    def close(self) -> None:
        """Give back memory and CPU threads."""
        self._workers.shutdown()
        self._reader.close()
        self._memory.clear()
        self._network.close()

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt; one that cannot be prepared fails ahead of the readings of its window.

        Raises:
            BackendError: the GPU failed.
        """
        try:
            yield from self._read(prompts)
        finally:
            self._reader.forget()

    def _read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        window = self._window()
        running: deque[Future[list[Outcome]]] = deque()
        full = self.budget.window_tokens
        before: Prompt | None = None
        met = self._ahead(prompts, lambda prompt: window.expect(prompt.frames))
        for index, (prompt, tokens) in enumerate(met):
            alike = before is not None and _alike(before, prompt)
            before = prompt
            # Prompts that share frames stay together even where one is longer than a window: each adds little.
            if window.nodes > (2 * full + window.longest if alike else full):
                running.append(self._workers.submit(self._read_window, window))
                window = self._window()
            failure = tokens if isinstance(tokens, Failure) else self._prepare(window, index, prompt, tokens)
            if failure:
                yield Outcome(index, failure)
            # This thread decodes and tokenises one window ahead of those that are being read.
            if len(running) > self._network.workers:
                yield from running.popleft().result()
        running.append(self._workers.submit(self._read_window, window))
        for last in running:
            yield from last.result()

    def _ahead(
        self, prompts: Iterable[Prompt], meet: Callable[[Prompt], None]
    ) -> Iterator[tuple[Prompt, list[int] | Failure]]:
        """Yield prompts with their tokens or why they have none; `ahead` later ones are met before."""
        coming = iter(prompts)
        following: list[Prompt] = []
        while True:
            chunk, following = following, list(islice(coming, self.budget.ahead))
            for prompt in following:
                meet(prompt)
            yield from zip(chunk, self._tokens(chunk), strict=True)
            if not following:
                return

    def _tokens(self, prompts: Sequence[Prompt]) -> list[list[int] | Failure]:
        """Return the tokens of prompts, with one per image, or why one cannot be read."""
        refusals = [refusal(prompt, self._renderer, self._unreadable) for prompt in prompts]
        shown = [prompt for prompt, refused in zip(prompts, refusals, strict=True) if not refused]
        texts = [self._renderer.text(prompt.text, images=len(prompt.frames)) for prompt in shown]
        tokens = iter(self._renderer.tokenize_all(texts))
        return [refused or next(tokens) for refused in refusals]

    def _source(self, folder: Path, workers: int) -> FrameSource:
        """Return where frames come from: worker processes beside a GPU, threads otherwise."""
        if self._network.recipe:
            return ShippedFrames(self._network.recipe, workers or usual_workers())
        with quiet():
            return FrameReader(folder)

    def _window(self) -> Window:
        return Window(self._reader, self._memory, self._network.merge)

    def _prepare(self, window: Window, index: int, prompt: Prompt, tokens: Sequence[int]) -> Failure | None:
        """Add a prompt to a window, or say why that cannot be."""
        try:
            rendered = self._renderer.placed(tokens, window.sizes(prompt.frames))
        except UndecodableFrameError as error:
            return Failure(error.kind, str(error))
        length, limit = len(rendered.ids), self._network.max_tokens
        if length > limit:
            return Failure("context_too_long", f"{length} tokens; the model takes {limit}")
        window.add(index, prompt, rendered)
        return None

    def _read_window(self, window: Window) -> list[Outcome]:
        """Return the outcomes of a window's prompts; runs on a worker thread."""
        import torch

        try:
            features = window.features(self._network)
            rows = rows_of(window.prompts, self.budget.row_tokens)
            lengths = [len(row.tree.symbols) for _, row in rows]
            batches = plan_batches(lengths, self.budget.batch_tokens)
            return [outcome for batch in batches for outcome in self._read_batch([rows[i] for i in batch], features)]
        except torch.OutOfMemoryError as error:
            failure = Failure("out_of_memory", f"vision tower: {first_line(error)}")
            return [Outcome(prompt.index, failure) for prompt in window.prompts]
        except torch.AcceleratorError as error:
            raise BackendError(f"the GPU failed ({first_line(error)}). Cure: run the same command again") from error

    def _read_batch(self, rows: Sequence[Planned], features: Mapping[int, torch.Tensor]) -> Iterator[Outcome]:
        """Yield the readings of rows that run at once; where memory is short, of one half and then the other."""
        prompts = [prompt for members, _ in rows for prompt in members]
        start = time.perf_counter()
        letters = self._letters(rows, features)
        seconds = (time.perf_counter() - start) / len(prompts)
        if not isinstance(letters, Failure):
            for prompt, one in zip(prompts, letters, strict=True):
                yield Outcome(prompt.index, Reading(one, len(prompt.symbols), seconds))
        elif len(prompts) == 1:
            yield Outcome(prompts[0].index, letters)
        else:
            middle = len(prompts) // 2
            for half in (prompts[:middle], prompts[middle:]):
                yield from self._read_batch(rows_of(half, self.budget.row_tokens), features)

    def _letters(self, rows: Sequence[Planned], features: Mapping[int, torch.Tensor]) -> list[LetterLogprobs] | Failure:
        """Return the letters behind every prompt of rows, or that the device's memory does not hold them."""
        import torch

        try:
            logits = self._network.leaf_logits([row for _, row in rows], features)
            return self._readout.read(logits, [prompt.options for members, _ in rows for prompt in members])
        except torch.OutOfMemoryError as error:
            return Failure("out_of_memory", first_line(error))


def open_checkpoint(spec: ModelSpec) -> Backend:
    """Open a checkpoint of any family that is read here: Qwen3-VL packed, others one prompt a forward.

    Raises:
        UsageError: see `TransformersBackend`, as the others.
        MissingExtraError: a package is not installed.
        ModelRefusedError: the checkpoint cannot be read.
    """
    check_preset(spec.preset)
    version = _version()
    folder, revision = checkpoint.fetch(spec.model, spec.revision, checkpoint.ARCHITECTURES, spec.cache)
    if checkpoint.architecture(folder) in checkpoint.QWEN3_VL:
        return TransformersBackend(spec, (folder, revision))
    from benchcheck.backends.plain import PlainBackend

    return PlainBackend(folder, spec.preset, version, revision)


def _alike(first: Prompt, second: Prompt) -> bool:
    """Tell whether neighbours are worth keeping in one window: orders of an item, or questions on the same frames."""
    return first.item_id == second.item_id or (bool(first.frames) and first.frames == second.frames)


def _version() -> str:
    """Return the version of transformers.

    Raises:
        MissingExtraError: it or torch is not installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise MissingExtraError("the transformers backend", "transformers")
    return importlib.metadata.version("transformers")
