"""The engine's driver against a package `vllm` in small, whose engine is a real process that can be killed."""

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace

import pytest

from benchcheck.backends import vllm_engine
from benchcheck.backends.patches import Recipe
from benchcheck.backends.vllm_engine import Answered, Core, Plan, check_version
from benchcheck.backends.vllm_log import EngineLog, cure_for, short, why_not_started
from benchcheck.errors import BackendError, MissingExtraError, UsageError

RECIPE = Recipe(16, 2, 4096, 262_144, (0.5,) * 3, (0.5,) * 3)
TEXT = Plan(0, 0, 999, 16_384, 512, 0.85, "", exact_head=True)
FRAMES = Plan(32, 448, 9999, 32_768, 256, 0.85, "fp8", exact_head=False)
PATIENCE = 60


class FlatLogprobs:
    def __init__(self, **logprobs):
        self.token_ids, self.logprobs = zip(*((int(k[1:]), v) for k, v in logprobs.items()), strict=True)

    def __len__(self):
        return 1


def output(name, logprobs, cached=0, reason="length"):
    completion = SimpleNamespace(logprobs=logprobs, finish_reason=reason)
    return SimpleNamespace(request_id=name, outputs=[completion], num_cached_tokens=cached)


class StandInEngine:
    """`LLMEngine` in small; its core is a process that sleeps."""

    facts = MappingProxyType({"device": "cpu", "dtype": "float32", "encoder_cache": 131_072, "model": "M"})
    head = MappingProxyType({"head": "native"})
    pixels = MappingProxyType({"pixels": "native", "error": 0.5})
    start_error = None
    core_dies = False

    def __init__(self, config):
        self.vllm_config = config
        if self.start_error:
            os.write(2, self.start_error[0].encode())
            raise self.start_error[1]
        self.process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
        self.process.start()
        self.engine_core = SimpleNamespace(shutdown=self.shutdown)
        self.asked, self.due, self.aborted = [], queue.SimpleQueue(), []
        self.unfinished = 0
        self.add_error = self.step_error = None

    def shutdown(self, timeout):
        self.process.terminate()

    def collective_rpc(self, method, args):  # as LLMEngine: the method by its name
        if self.core_dies:
            os.kill(self.process.pid, signal.SIGKILL)
            time.sleep(600)
        answer = {"benchcheck_facts": self.facts, "benchcheck_exact_head": self.head, "benchcheck_uint8": self.pixels}
        if isinstance(answer[method], Exception):
            raise answer[method]
        return [answer[method]]

    def add_request(self, name, prompt, params):
        if self.add_error:
            raise self.add_error
        self.asked.append((name, prompt, params))
        self.unfinished += 1

    def has_unfinished_requests(self):
        return self.unfinished > 0

    def step(self):
        outputs = self.due.get()
        if isinstance(outputs, Exception):
            raise outputs
        self.unfinished -= len(outputs)
        return outputs

    def abort_request(self, names):
        self.aborted += names


@pytest.fixture
def vllm(monkeypatch):
    """Put the package in small in place; gives a namespace to change it and see what it was told."""
    seen = SimpleNamespace(arguments={}, engine=type("Engine", (StandInEngine,), {}), cpu=True, made=[])

    class EngineArgs:
        def __init__(self, **arguments):
            seen.arguments = arguments

        def create_engine_config(self, context):
            scheduler = SimpleNamespace(encoder_cache_size=seen.arguments["max_num_batched_tokens"])
            seen.config = SimpleNamespace(
                scheduler_config=scheduler,
                cache_config=SimpleNamespace(block_size=16),
                model_config=SimpleNamespace(max_model_len=seen.arguments["max_model_len"]),
            )
            return seen.config

    class LLMEngine:
        @staticmethod
        def from_vllm_config(config, disable_log_stats):
            assert disable_log_stats
            seen.made.append(seen.engine(config))
            return seen.made[-1]

    parts = {
        "vllm": {"SamplingParams": lambda **what: what},
        "vllm.engine": {},
        "vllm.engine.arg_utils": {"EngineArgs": EngineArgs},
        "vllm.inputs": {"tokens_input": lambda ids: {"type": "token", "prompt_token_ids": ids}},
        "vllm.platforms": {"current_platform": SimpleNamespace(is_cpu=lambda: seen.cpu)},
        "vllm.sampling_params": {"RequestOutputKind": SimpleNamespace(FINAL_ONLY="final")},
        "vllm.usage": {},
        "vllm.usage.usage_lib": {"UsageContext": SimpleNamespace(LLM_CLASS="llm")},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.llm_engine": {"LLMEngine": LLMEngine},
    }
    for name, holds in parts.items():
        module = ModuleType(name)
        vars(module).update(holds)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vllm_engine, "_LOOK_S", 0.05)
    for name in vllm_engine._ENVIRONMENT:
        monkeypatch.setenv(name, os.environ.get(name, "1"))
    yield seen
    for engine in seen.made:
        engine.process.kill()
        engine.process.join()


@pytest.fixture
def start(vllm):
    """Start a core that is closed whatever happens; returns it and its events."""
    cores = []

    def begin(plan=TEXT):
        events = queue.SimpleQueue()
        cores.append(Core(Path("/model"), plan, events))
        return cores[-1], events

    yield begin
    for core in cores:
        core.close()


def test_the_engine_is_told_what_the_plan_says(vllm, start):
    core, _ = start(FRAMES)
    told = vllm.arguments
    assert told["limit_mm_per_prompt"] == {"image": {"count": 32, "width": 448, "height": 448}, "video": 0}
    assert (told["max_model_len"], told["max_num_batched_tokens"], told["max_num_seqs"]) == (10_000, 32_768, 256)
    assert (told["quantization"], told["hf_overrides"], told["dtype"]) == ("fp8", {}, "float32")
    assert told["enable_prefix_caching"]
    assert vllm.config.scheduler_config.encoder_cache_size == 4 * 32_768
    assert core.max_tokens == 9_999
    assert core.block == 16
    assert core.pids == [vllm.made[0].process.pid]
    assert core.engine is vllm.made[0]


def test_text_needs_no_vision_tower_and_a_gpu_computes_in_bfloat16(vllm, start):
    vllm.cpu = False
    start()
    assert vllm.arguments["limit_mm_per_prompt"] == {"image": 0, "video": 0}
    assert vllm.arguments["hf_overrides"] == {"head_dtype": "float32"}
    assert (vllm.arguments["quantization"], vllm.arguments["dtype"]) == (None, "bfloat16")


def test_requests_and_answers(vllm, start):
    core, events = start()
    assert core.text([1, 2]) == {"type": "token", "prompt_token_ids": [1, 2]}
    assert core.add("a", [1], (7, 8)) is None
    assert core.add("b", [2], ()) is None
    assert core.add("c", [3], (7, 8)) is None
    engine = vllm.made[0]
    letters, top = engine.asked[0][2], engine.asked[1][2]
    assert letters["logprob_token_ids"] == [7, 8]
    assert (letters["max_tokens"], letters["temperature"], letters["output_kind"]) == (1, 0.0, "final")
    assert top["logprobs"] == 20
    assert engine.asked[2][2] is letters  # made once
    other = [{7: SimpleNamespace(logprob=-0.5)}]
    engine.due.put([output("a", FlatLogprobs(t7=-1.0, t8=-2.0), cached=48), output("b", other)])
    assert events.get(timeout=PATIENCE) == [
        Answered("a", {7: -1.0, 8: -2.0}, 48),
        Answered("b", {7: -0.5}, 0),
    ]
    engine.due.put([])  # a step that finished nothing
    engine.due.put([output("c", None, reason="error")])
    assert events.get(timeout=PATIENCE)[0].error == "no log-probabilities (finish reason error)"
    core.add("d", [4], (7, 8))  # the thread went to sleep and wakes
    engine.due.put([output("d", other)])
    assert events.get(timeout=PATIENCE)[0].name == "d"
    core.abort(["x"])
    assert engine.aborted == ["x"]


def test_one_refused_request_is_not_the_engines_end(vllm, start):
    core, _ = start()
    vllm.made[0].add_error = ValueError("The decoder prompt is too long\nand more")
    assert core.add("a", [1], ()) == "The decoder prompt is too long"
    vllm.made[0].add_error = RuntimeError("EngineCore encountered an issue.")
    with pytest.raises(BackendError, match=r"vLLM's engine stopped: EngineCore encountered an issue\. Cure: run the"):
        core.add("b", [1], ())


def test_a_killed_engine_is_noticed_by_who_waits(vllm, start):
    core, events = start()
    core.add("a", [1], ())
    core.check()
    os.kill(core.pids[0], signal.SIGKILL)
    vllm.made[0].process.join()
    with pytest.raises(BackendError, match=r"engine stopped: its process ended with code -9\. Cure: run the same"):
        core.check()
    assert events.empty()  # `step` says nothing: it waits for ever


def test_an_engine_that_fails_in_a_step_tells_its_last_words(vllm, start):
    core, events = start()
    with core._log.taking_output():
        os.write(
            2, b"\x1b[31m(EngineCore pid=7) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB.\x1b[0m\n"
        )
    core.add("a", [1], ())
    vllm.made[0].due.put(RuntimeError("EngineCore encountered an issue."))
    error = events.get(timeout=PATIENCE)
    assert str(error) == (
        "vLLM's engine stopped: EngineCore encountered an issue; it said: OutOfMemoryError: CUDA out of memory. Tried "
        "2 GiB. Cure: lower engine.gpu_memory or engine.max_sequences"
    )


def test_after_close_nobody_is_told_and_no_process_is_left(vllm, start):
    core, events = start()
    core.add("a", [1], ())
    core.close()
    core.close()
    vllm.made[0].due.put(RuntimeError("socket closed"))
    assert not vllm.made[0].process.is_alive()
    time.sleep(0.05)
    assert events.empty()


def test_an_engine_that_does_not_end_is_killed(vllm, start, monkeypatch):
    monkeypatch.setattr(vllm_engine, "_PATIENCE_S", 0.05)
    core, _ = start()
    vllm.made[0].engine_core = SimpleNamespace(shutdown=lambda timeout: None)
    core.close()
    assert not vllm.made[0].process.is_alive()


@pytest.mark.parametrize(
    ("log", "error", "said"),
    [
        (
            "(pid=1) ERROR ValueError: Free memory on device (3/79 GiB) is less than desired. Decrease it.\n",
            RuntimeError("Engine core initialization failed. See root cause above."),
            "is less than desired. Decrease it. Cure: lower engine.gpu_memory, or end what else runs on this GPU",
        ),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried 20 MiB\n",
            RuntimeError("Engine core initialization failed. See root cause above."),
            "OutOfMemoryError: CUDA out of memory. Tried 20 MiB. Cure: lower engine.gpu_memory or engine.max_sequences",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing it.\n",
            RuntimeError("Engine core initialization failed."),
            "Cure: raise engine.gpu_memory",
        ),
        (
            "",
            ValueError("unknown quantization"),
            "does not start: unknown quantization. Cure: see the cause; `vllm serve` with this checkpoint shows",
        ),
    ],
)
def test_an_engine_that_does_not_start_is_one_line_with_the_cause_and_the_setting(vllm, start, log, error, said):
    vllm.engine.start_error = (log, error)
    with pytest.raises(BackendError) as refusal:
        start()
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_version_without_a_name_is_refused(vllm, start, monkeypatch):
    monkeypatch.delattr(sys.modules["vllm.platforms"], "current_platform")
    with pytest.raises(BackendError, match=r"lacks a name that is needed \(cannot import name 'current_platform'"):
        start()


def test_a_head_that_rounds_and_cannot_be_mended_is_refused(vllm, start):
    vllm.engine.head = {"head": "none"}
    with pytest.raises(BackendError, match=r"rounds logits .* Cure: use vLLM 0\.32, or the preset benchcheck-2026"):
        start()
    assert not vllm.made[0].process.is_alive()
    start(FRAMES)  # the original preset takes the model's own numerics


def test_an_encoder_cache_that_did_not_grow_is_refused(vllm, start):
    vllm.engine.facts = {**StandInEngine.facts, "encoder_cache": 32_768}
    with pytest.raises(BackendError, match="keeps 32768 image tokens instead of 131072"):
        start(FRAMES)
    start(TEXT)


def test_pixels_are_checked(vllm, start):
    core, _ = start(FRAMES)
    assert core.takes_uint8(RECIPE)
    vllm.made[0].pixels = {"pixels": "none", "error": 0.0}
    assert not core.takes_uint8(RECIPE)
    vllm.made[0].pixels = {"pixels": "mended", "error": 99.0}
    with pytest.raises(BackendError, match=r"other pixels than its own processor \(by 99\.0 units"):
        core.takes_uint8(RECIPE)


def test_a_worker_that_fails_or_dies_while_it_is_asked(vllm, start):
    vllm.engine.facts = RuntimeError("AttributeError: no scheduler_config")
    with pytest.raises(BackendError, match="engine stopped: AttributeError: no scheduler_config"):
        start()
    vllm.engine.core_dies = True
    with pytest.raises(BackendError, match="ended with code -9"):
        start()


@pytest.mark.parametrize(
    ("found", "noted"),
    [("0.25.1", False), ("0.32.0+cpu", False), ("0.32.7", False), ("0.33.0", True), ("1.0.0rc1", True)],
)
def test_versions(monkeypatch, found, noted):
    monkeypatch.setattr(vllm_engine.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(vllm_engine.importlib.metadata, "version", lambda name: found)
    version, note = check_version()
    assert version == found
    assert (note is not None) == noted


def test_an_old_or_absent_vllm_is_refused(monkeypatch):
    monkeypatch.setattr(vllm_engine.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'benchcheck\[vllm\]'"):
        check_version()
    monkeypatch.setattr(vllm_engine.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(vllm_engine.importlib.metadata, "version", lambda name: "0.11.0")
    with pytest.raises(UsageError, match=r"vLLM 0\.11\.0 cannot .* Allowed: 0\.25\.1 or newer"):
        check_version()


def test_the_terminal_is_given_back():
    code = textwrap.dedent(
        """
        import os, subprocess, sys
        from benchcheck.backends.vllm_log import EngineLog
        log = EngineLog()
        with log.taking_output():
            print("kept out")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(.2); print('ValueError: late')"])
        print("back")
        child.wait()
        print(log.telling())
        log.close()
        """
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "back\n['ValueError: late']\n"
    assert found.stderr == ""


def test_lines_of_a_log():
    assert short("(pid=1) ERROR [core.py:12] RuntimeError: it broke. ") == "RuntimeError: it broke"
    assert cure_for(["all is well"]) is None
    assert "raise engine.gpu_memory" in why_not_started("failed", ["5 GiB KV cache is needed, which is larger"])
    log = EngineLog()
    assert log.telling() == []
    log.close()
    assert log.telling() == []


def test_no_thread_is_left_waiting(vllm, start):
    before = set(threading.enumerate())
    core, _ = start()
    mine = set(threading.enumerate()) - before
    core.close()
    for thread in mine:
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()
