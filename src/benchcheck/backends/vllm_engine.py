"""vLLM's engine as this package drives it: started, checked, asked, watched.

Every name of vLLM's is here, in `vllm_inputs` or in `vllm_worker`; 0.25.1 and 0.32.0 were run. The model runs in a
process of vLLM's own, whose death is not always told: after `kill -9`, `LLMEngine.step` of both versions waits for
ever. So a thread of ours steps, and whoever waits for answers looks at the process meanwhile.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import logging
import multiprocessing
import os
import queue
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.backends.decoding import Decoded, Lost
from benchcheck.backends.patches import Recipe
from benchcheck.backends.vllm_log import EngineLog, cure_for, short, why_not_started
from benchcheck.errors import BackendError, MissingExtraError, UsageError, first_line
from benchcheck.screen.readings import TOP

__all__ = ["EXTRA", "TESTED", "Answered", "Core", "Event", "Plan", "check_version"]

TESTED = ("0.25.1", "0.32.0")
"""The first and last version that was run. Older ones lack `logprob_token_ids`; of newer ones the user is told."""

EXTRA: dict[str, Any] = {}
"""Further arguments of `EngineArgs`, such as `load_format` for speed runs without weights."""

_WORKER = "benchcheck.backends.vllm_worker.LetterWorker"
_LOOK_S = 1.0
"""How often who waits looks whether the engine lives."""
_PATIENCE_S = 10.0
"""How long an engine may take to end by itself."""
_PIXEL_ERROR = 4.0
"""Largest difference of a normalised pixel, in units of the tower's dtype; 0.32's own normalisation is within 1."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one request: log-probabilities by token id, or what went wrong with it."""

    name: str
    logprobs: Mapping[int, float]
    cached: int
    error: str = ""


Event = Decoded | Lost | list[Answered] | BackendError
"""What arrives in the one queue that a run waits on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How an engine is set up for the prompts of one shape."""

    images: int
    image_side: int
    max_tokens: int
    """Longest prompt, with one token to spare for the answer."""
    batch_tokens: int
    """Tokens of one forward pass."""
    sequences: int
    """Prompts of one forward pass."""
    gpu_memory: float
    quantization: str
    exact_head: bool

    @property
    def encoder_cache(self) -> int:
        """Image tokens whose features the engine keeps, in all prompts together.

        vLLM's own choice is the tokens of one pass. With 32 frames a prompt, async scheduling then finds it full,
        admits prompts with the tokens before their first image only, and never looks at the prefix cache for them
        again: every question computes its video's frames anew, at half the speed and without a word.
        """
        return 4 * self.batch_tokens


def check_version() -> tuple[str, str | None]:
    """Return vLLM's version, and a note where it was not tested.

    Raises:
        MissingExtraError: vLLM is not installed.
        UsageError: it is too old.
    """
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("the vllm backend", "vllm")
    found = importlib.metadata.version("vllm")
    first, last = (_numbers(version) for version in TESTED)
    if _numbers(found) < first:
        raise UsageError(
            f"vLLM {found} cannot return chosen letters. Allowed: {TESTED[0]} or newer. Cure: pip install "
            f"'benchcheck[vllm]', or start that vLLM yourself and use the server backend"
        )
    if _numbers(found)[:2] > last[:2]:
        return found, f"vLLM {found} is newer than what was tested ({TESTED[0]} to {TESTED[1]})"
    return found, None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


class Core:
    """One engine and the thread that collects its answers."""

    def __init__(self, folder: Path, plan: Plan, events: queue.SimpleQueue[Event]) -> None:
        """Start the engine and hold it against the plan.

        Raises:
            BackendError: it does not start, or does not do what it was told.
        """
        self.plan, self._events = plan, events
        self._log = EngineLog()
        self._open = True
        self._waiting = threading.Event()
        self._params: dict[tuple[int, ...], Any] = {}
        before = set(multiprocessing.active_children())
        try:
            with self._log.taking_output():
                self._engine = self._start(folder)
        except BaseException:
            self._log.close()
            raise
        self._processes = set(multiprocessing.active_children()) - before
        config = self._engine.vllm_config
        self.block = int(config.cache_config.block_size)
        self.max_tokens = int(config.model_config.max_model_len) - 1
        try:
            self.facts = self._ask("benchcheck_facts", os.getpid())
            self._check_plan()
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._step, daemon=True, name="engine").start()

    @property
    def engine(self) -> Any:
        """The `LLMEngine`."""
        return self._engine

    @property
    def pids(self) -> list[int]:
        """Process ids of the engine."""
        return [process.pid for process in self._processes if process.pid is not None]

    def _start(self, folder: Path) -> Any:
        # Set before vLLM is imported, and only where the user has not. Its log goes to a file that errors quote.
        self._quiet = "VLLM_LOGGING_LEVEL" not in os.environ
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            from vllm.engine.arg_utils import EngineArgs
            from vllm.inputs import tokens_input
            from vllm.platforms import current_platform
            from vllm.usage.usage_lib import UsageContext
            from vllm.v1.engine.llm_engine import LLMEngine

            arguments = _arguments(folder, self.plan, cpu=bool(current_platform.is_cpu()))
            config = EngineArgs(**arguments).create_engine_config(UsageContext.LLM_CLASS)
            # There is no argument for it; `_check_plan` asks whether it arrived.
            config.scheduler_config.encoder_cache_size = self.plan.encoder_cache
            self._tokens_input = tokens_input
            engine = LLMEngine.from_vllm_config(config, disable_log_stats=True)
            if self._quiet:  # now: starting sets the level again
                logging.getLogger("vllm").setLevel(logging.ERROR)
            return engine
        except (ImportError, AttributeError) as error:
            raise BackendError(
                f"this vLLM lacks a name that is needed ({first_line(error)}). Allowed: {TESTED[0]} to {TESTED[1]}. "
                "Cure: pip install 'benchcheck[vllm]', or use the server backend"
            ) from error
        except Exception as error:  # vLLM raises whatever its worker met with, as RuntimeError, ValueError and others
            raise BackendError(why_not_started(first_line(error), self._log.telling())) from error

    def _check_plan(self) -> None:
        """Refuse an engine that took an argument and did not follow it."""
        if self.plan.exact_head and self._ask("benchcheck_exact_head")["head"] == "none":
            raise BackendError(
                "this vLLM rounds logits to the model's dtype, so that letters tie by the step of 0.125. Allowed: an "
                "output head in float32. Cure: use vLLM 0.32, or the preset benchcheck-2026"
            )
        given = int(self.facts["encoder_cache"])
        if self.plan.images and given < self.plan.encoder_cache:
            raise BackendError(
                f"this vLLM keeps {given} image tokens instead of {self.plan.encoder_cache}: questions on one video "
                f"would not share its frames. Allowed: vLLM {TESTED[0]} to {TESTED[1]}"
            )

    def takes_uint8(self, recipe: Recipe) -> bool:
        """Make the engine take uint8 patches; False where this version offers no way.

        Raises:
            BackendError: it normalises them otherwise than the model's processor.
        """
        answer = self._ask("benchcheck_uint8", list(recipe.mean), list(recipe.std), recipe.width)
        if answer["pixels"] == "none":
            return False
        if answer["error"] > _PIXEL_ERROR:
            raise BackendError(
                f"this vLLM shows the model other pixels than its own processor (by {answer['error']:.1f} units of the "
                f"tower's dtype). Allowed: vLLM {TESTED[0]} to {TESTED[1]}. Cure: use the transformers backend"
            )
        return True

    def _ask(self, method: str, *arguments: Any) -> dict[str, Any]:
        """Return a worker's answer; vLLM itself would wait for ever for one that died.

        Raises:
            BackendError: the engine is gone, or the worker failed.
        """
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def call() -> None:
            try:
                answers.put(self._engine.collective_rpc(method, args=arguments)[0])
            except Exception as error:  # noqa: BLE001 (told below, in the thread that asked)
                answers.put(self._gone(error))

        threading.Thread(target=call, daemon=True, name=method).start()
        while True:
            try:
                answer = answers.get(timeout=_LOOK_S)
            except queue.Empty:
                self.check()
                continue
            if isinstance(answer, BackendError):
                raise answer
            facts: dict[str, Any] = answer
            return facts

    def text(self, ids: list[int]) -> Any:
        """Return a prompt without images for `add`: ready, so that the engine neither tokenises nor decodes it."""
        return self._tokens_input(ids)

    def add(self, name: str, prompt: Any, ids: tuple[int, ...]) -> str | None:
        """Send a request; return why it was refused, or None.

        Args:
            name: unique in this engine.
            prompt: as `vllm_inputs` makes it.
            ids: tokens whose log-probabilities are asked, or none for the top 20.

        Raises:
            BackendError: the engine is gone.
        """
        try:
            self._engine.add_request(name, prompt, self._sampling(ids))
        except ValueError as error:
            return first_line(error)
        except Exception as error:  # EngineDeadError, and whatever a socket says that was closed under it
            raise self._gone(error) from error
        self._waiting.set()
        return None

    def _sampling(self, ids: tuple[int, ...]) -> Any:
        if ids not in self._params:
            from vllm import SamplingParams
            from vllm.sampling_params import RequestOutputKind

            asked: dict[str, Any] = {"logprob_token_ids": list(ids)} if ids else {"logprobs": TOP}
            # One object for all requests: cloned by copying references, decoded never, and answered once, in flat
            # lists that the garbage collector need not walk.
            self._params[ids] = SamplingParams(
                max_tokens=1,
                temperature=0.0,
                detokenize=False,
                flat_logprobs=True,
                skip_clone=True,
                output_kind=RequestOutputKind.FINAL_ONLY,
                **asked,
            )
        return self._params[ids]

    def _step(self) -> None:
        """Collect answers while any are due; runs on a thread, which a dead engine may hold for ever."""
        try:
            while True:
                self._waiting.clear()  # before both looks: what is set later is waited for
                if not self._open:
                    return
                if not self._engine.has_unfinished_requests():
                    self._waiting.wait()
                    continue
                answers = [_answered(output) for output in self._engine.step()]
                if answers:
                    self._events.put(answers)
        except Exception as error:  # noqa: BLE001 (whatever it is, the run that waits must hear of it)
            if self._open:
                self._events.put(self._gone(error))

    def check(self) -> None:
        """Look whether the engine's processes live.

        Raises:
            BackendError: one does not.
        """
        for process in self._processes:
            if not process.is_alive():
                raise self._gone(RuntimeError(f"its process ended with code {process.exitcode}"))

    def _gone(self, error: BaseException) -> BackendError:
        words = self._log.telling()
        said = f"; it said: {short(words[-1])}" if words else ""
        cure = cure_for(words) or "run the same command again"
        return BackendError(f"vLLM's engine stopped: {first_line(error).rstrip('.')}{said}. Cure: {cure}")

    def abort(self, names: Sequence[str]) -> None:
        """Ask the engine to drop requests; their answers may still come and mean nothing."""
        with contextlib.suppress(Exception):
            self._engine.abort_request(list(names))

    def close(self) -> None:
        """End the engine and its processes."""
        if not self._open:
            return
        self._open = False
        self._waiting.set()
        with contextlib.suppress(Exception):
            self._engine.engine_core.shutdown(timeout=_PATIENCE_S)
        for process in self._processes:
            process.join(timeout=_PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
        self._log.close()


_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; a CPU would otherwise give `gpu_memory` of the machine's memory
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}


def _arguments(folder: Path, plan: Plan, *, cpu: bool) -> dict[str, Any]:
    """Return what `EngineArgs` is called with."""
    image = {"count": plan.images, "width": plan.image_side, "height": plan.image_side}
    return {
        "model": str(folder),
        "dtype": "float32" if cpu else "bfloat16",
        "max_model_len": plan.max_tokens + 1,
        "max_num_batched_tokens": plan.batch_tokens,
        "max_num_seqs": plan.sequences,
        "gpu_memory_utilization": plan.gpu_memory,
        "enable_prefix_caching": True,
        "generation_config": "vllm",  # the checkpoint's own would sharpen or penalise the distribution that is read
        # Without images the vision tower is not loaded; with them, memory is measured with frames of this size
        # instead of the largest image that the processor takes, 16 million pixels.
        "limit_mm_per_prompt": {"image": image if plan.images else 0, "video": 0},
        "mm_processor_cache_gb": 2 if plan.images else 0,
        "hf_overrides": {"head_dtype": "float32"} if plan.exact_head else {},
        "quantization": plan.quantization or None,
        "enforce_eager": True,
        "max_logprobs": TOP,
        "disable_log_stats": True,
        "worker_extension_cls": _WORKER,
        **EXTRA,
    }


def _answered(output: Any) -> Answered:
    """Return a `RequestOutput` as ours."""
    name, cached = str(output.request_id), int(output.num_cached_tokens or 0)
    completion = output.outputs[0]
    logprobs = completion.logprobs
    if not logprobs:
        return Answered(name, {}, cached, f"no log-probabilities (finish reason {completion.finish_reason})")
    if hasattr(logprobs, "token_ids"):
        return Answered(name, dict(zip(logprobs.token_ids, logprobs.logprobs, strict=True)), cached)
    return Answered(name, {identifier: one.logprob for identifier, one in logprobs[0].items()}, cached)
