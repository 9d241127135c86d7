"""The `vllm` backend: a Qwen3-VL checkpoint in vLLM's engine, on this machine's GPU, without a server between.

Against requests to a server it saves HTTP, base64 and vLLM's one preprocessing thread: frames are decoded once per
video in worker processes, reach the engine as uint8 patches, and every option letter is asked by its token ids.
"""

from __future__ import annotations

import json
import logging
import queue
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path

from benchcheck.backends import Engine, ModelSpec, Outcome, checkpoint
from benchcheck.backends.decoding import Decoders, usual_workers
from benchcheck.backends.letters import check_core, unreadable_letters, variants_of_letters
from benchcheck.backends.network import quiet
from benchcheck.backends.patches import Recipe
from benchcheck.backends.queries import Queries
from benchcheck.backends.readout import check_preset
from benchcheck.backends.rendering import Renderer
from benchcheck.backends.sharing import Sharing
from benchcheck.backends.vllm_engine import Core, Event, Plan, check_version
from benchcheck.backends.vllm_inputs import Ordinary, ReadyMade
from benchcheck.backends.vllm_session import Limits, Session
from benchcheck.errors import first_line
from benchcheck.screen.prompts import Prompt

__all__ = ["VllmBackend"]

log = logging.getLogger("benchcheck")

_TEXT_TOKENS = 16_384
"""Room for an item's text. The whole context of the real models, 262,144 tokens, would need a KV cache of 36 GB."""
_MANY = 4
"""Frames from which a prompt counts as a video: then videos, not prompts, are what an engine is kept fed with."""


class VllmBackend:
    """Reads letters from a checkpoint of the Qwen3-VL family through vLLM 0.25.1 to 0.32.

    `notes` says what the user should know about the run; `sharing` counts what the prefix cache did.
    `Reading.latency_s` is the time from sending a prompt to its answer, waiting for its batch included.
    """

    def __init__(self, spec: ModelSpec) -> None:
        """Start an engine for prompts of `spec.images` frames.

        Raises:
            UsageError: the model or preset does not exist, a hub id has no revision, or vLLM is too old.
            MissingExtraError: vLLM is not installed.
            ModelRefusedError: the checkpoint is damaged, of another kind, or its letters are not single tokens.
            BackendError: the engine does not start; the message names the setting to change.
        """
        check_preset(spec.preset)
        version, untested = check_version()
        folder, revision = checkpoint.fetch(spec.model, spec.revision, cache=spec.cache)
        recipe = Recipe.of(folder)
        with quiet():
            self.renderer = Renderer(folder)
        tokens = self.renderer.vocabulary()
        variants = variants_of_letters(tokens)
        self.unreadable: Mapping[str, str] = unreadable_letters(
            self.renderer.specimen, self.renderer.tokenize, variants
        )
        check_core(folder, self.unreadable)
        self.queries = Queries(spec.preset, tokens, variants)
        self.notes: list[str] = []
        if untested:
            self._note(untested)
        self._told = False
        self._numbers = count()
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.decoders: Decoders | None = None
        self.route: ReadyMade | Ordinary | None = None
        plan = _plan(spec, _context(folder), recipe)
        self.limits = _limits(spec, plan)
        self.core = Core(folder, plan, self.events)
        try:
            self.sharing = Sharing(self.core.block)
            if spec.images:
                self.route = self._route(recipe)
                workers = spec.settings.decode_workers or usual_workers()
                # After the engine: a process that vLLM forks would hold the workers' pipes open.
                self.decoders = Decoders(recipe, self.events.put, workers=workers)
        except BaseException:
            self.close()
            raise
        facts = self.core.facts
        dtype = str(facts["dtype"]) + (f"+{plan.quantization}" if plan.quantization else "")
        self.engine = Engine("vllm", version, dtype, str(facts["device"]), revision)

    def _route(self, recipe: Recipe) -> ReadyMade | Ordinary:
        """Return how frames reach the engine: ready-made where this version takes them."""
        try:
            route = ReadyMade(self.core.engine, recipe.merge)
            if self.core.takes_uint8(recipe):
                return route
            reason = "its vision tower takes no uint8 patches"
        except (ImportError, AttributeError) as error:
            reason = first_line(error)
        self._note(f"vLLM prepares the frames itself, which is 3 to 7 times slower: {reason}")
        return Ordinary(self.renderer.image_token, recipe.merge)

    def number(self) -> int:
        """Return a number that was not used before."""
        return next(self._numbers)

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt, in any order; what shares frames or a question should be neighbours.

        Raises:
            BackendError: the engine died, hung, or memory ran out.
        """
        yield from Session(self, prompts).outcomes()
        note = self.sharing.note()
        if note is not None and not self._told:
            self._told = True
            self._note(note)

    def _note(self, text: str) -> None:
        self.notes.append(text)
        log.warning("%s", text)

    def close(self) -> None:
        """End the engine's and the decoders' processes and give their memory back."""
        if self.decoders is not None:
            self.decoders.close()
        self.core.close()


def _context(folder: Path) -> int:
    """Return how many tokens the model takes."""
    config = json.loads((folder / "config.json").read_bytes())
    return int(config.get("text_config", config)["max_position_embeddings"])


def _plan(spec: ModelSpec, context: int, recipe: Recipe) -> Plan:
    """Return an engine's shape: as much context as the prompts need, as large a batch as a GPU is quick with."""
    side = max(recipe.size(spec.image_side, spec.image_side)) if spec.images else 0
    frame = (side // (recipe.patch * recipe.merge)) ** 2 + 2 if side else 0
    room = max(32_768, _TEXT_TOKENS + spec.images * frame)
    many = spec.images >= _MANY
    return Plan(
        images=spec.images,
        image_side=side,
        max_tokens=min(context, room) - 1,
        batch_tokens=32_768 if many else 16_384,
        sequences=spec.settings.max_sequences or (256 if many else 512),
        gpu_memory=spec.settings.gpu_memory,
        quantization=spec.settings.quantization,
        exact_head=spec.preset == "exact",
    )


def _limits(spec: ModelSpec, plan: Plan) -> Limits:
    """Return how far ahead to read: 4 batches of short prompts, or 48 videos, of which 36 fit the encoder cache."""
    many = spec.images >= _MANY
    prompts = spec.settings.in_flight or (1024 if many else 4 * plan.sequences)
    return Limits(prompts, 48 if many else max(16, plan.sequences), spec.settings.timeout_s)
