"""One `vllm serve` as data: its command line, its environment, and what a dead one's last words mean. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchcheck.screen.readings import TOP
from benchcheck.settings import EngineSettings

__all__ = ["HOST", "ServedModel", "Server", "default_in_flight", "servers_of", "why_ended"]

HOST = "127.0.0.1"
"""Servers that a run starts answer this machine alone: they ask nobody for a key."""

_TEXT_TOKENS = 8192
"""Room for the words of a prompt; those of the benchmarks seen have 60 to 1500 tokens."""
_BATCH = 16_384
"""Tokens of one forward: fewer than a whole GPU's worth below, and a step of this size keeps an H200 busy on text."""
_LARGEST_BATCH = 131_072
_SEQUENCES = {"text": 64, "frames": 32}
_CUT = re.compile(r"^(\x1b\[[0-9;]*m|\([^)]*pid=\d+\)|(INFO|WARNING|ERROR|CRITICAL)\b.*?\]|\s)+")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """What a server serves, as vLLM is told."""

    path: str
    """A folder or a hub id."""
    revision: str
    """A hub commit; empty for a folder."""
    name: str
    """The name under which requests ask for it."""
    longest: int
    """Tokens that the checkpoint's positions allow; 0 where its config is not at hand."""
    exact: bool
    """Whether every letter is read: then the last layer computes in float32."""
    images: int
    """Frames of a prompt."""
    image_side: int
    """Pixels of a frame's longest side."""
    cache: str = ""
    """The hub cache; the library's own when empty."""


@dataclass(frozen=True, slots=True)
class Server:
    """One server to start."""

    number: int
    """Its place among the machine's servers, counted from 0."""
    gpu: str
    """The GPU as `CUDA_VISIBLE_DEVICES` names it; empty on a machine without one."""
    host: str
    port: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    """Variables that it gets beside those of this process."""

    @property
    def endpoint(self) -> str:
        """The base URL that clients on this machine ask."""
        host = HOST if self.host in ("0.0.0.0", "::") else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/v1"

    @property
    def place(self) -> str:
        """Where it runs, for people."""
        return f"GPU {self.gpu}" if self.gpu else "the CPU"


def default_in_flight(images: int) -> int:
    """Return how many prompts are asked at once of one server: 32, 16 or 8 for text, one frame, many frames."""
    return 32 if not images else 16 if images == 1 else 8


def servers_of(
    model: ServedModel,
    settings: EngineSettings,
    gpus: Sequence[str],
    start: Sequence[str],
    host: str = HOST,
) -> list[Server]:
    """Return the servers of a model: one for every GPU on `first_port` + i, or one on the CPU.

    Args:
        model: what they serve.
        settings: how.
        gpus: the GPUs of this machine; the first `settings.gpus` of them are used, all where that is 0.
        start: the words that start vLLM, without `serve`.
        host: the address that they listen on.

    Raises:
        ValueError: ports end before the GPUs do.
    """
    used = list(gpus[: settings.gpus] if settings.gpus else gpus) or [""]
    last = settings.first_port + len(used) - 1
    if last > 65_535:
        raise ValueError(
            f"first_port = {settings.first_port} leaves no port for {len(used)} servers. "
            f"Allowed: 1 to {65_536 - len(used)}"
        )
    servers = []
    for number, gpu in enumerate(used):
        port = settings.first_port + number
        command = (*start, "serve", model.path, *_arguments(model, settings, on_gpu=bool(gpu)))
        environment = {"CUDA_VISIBLE_DEVICES": gpu} if gpu else {"VLLM_CPU_KVCACHE_SPACE": "2"}
        environment |= {"HF_HUB_CACHE": model.cache} if model.cache else {}
        servers.append(Server(number, gpu, host, port, (*command, "--host", host, "--port", str(port)), environment))
    return servers


def _arguments(model: ServedModel, settings: EngineSettings, on_gpu: bool) -> list[str]:
    """The arguments that all servers of a model share."""
    batch, sequences = _sizes(model, settings)
    arguments = ["--served-model-name", model.name]
    arguments += ["--revision", model.revision] if model.revision else []
    arguments += ["--dtype", "bfloat16", "--max-logprobs", str(TOP), "--enable-prefix-caching"]
    arguments += ["--gpu-memory-utilization", str(settings.gpu_memory)] if on_gpu else ["--enforce-eager"]
    arguments += ["--max-num-seqs", str(sequences), "--max-num-batched-tokens", str(batch)]
    arguments += ["--max-model-len", str(_length(model))]
    arguments += ["--limit-mm-per-prompt", json.dumps({"image": model.images, "video": 0})]
    # A checkpoint's own sampling settings, such as a repetition penalty, are no part of what is measured.
    arguments += ["--generation-config", "vllm", "--disable-uvicorn-access-log"]
    arguments += ["--enable-prompt-tokens-details"]  # replies then say how many tokens came from the prefix cache
    if model.exact:
        # bf16 logits move in steps of 0.125 nats at their usual size; one row a prompt in float32 costs nothing.
        arguments += ["--hf-overrides", json.dumps({"head_dtype": "float32"})]
    if settings.quantization:
        arguments += ["--quantization", settings.quantization]
    return arguments


def _tokens_of_frame(image_side: int) -> int:
    """The most tokens that a frame becomes: a square one, in 28-pixel patches (Qwen2.5-VL; Qwen3-VL's have 32)."""
    across = -(-image_side // 28)
    return max(64, across * across) + 2


def _length(model: ServedModel) -> int:
    """The longest prompt that a server takes; memory for one such prompt must fit on the GPU."""
    wanted = _TEXT_TOKENS + model.images * _tokens_of_frame(model.image_side)
    return min(wanted, model.longest) if model.longest else wanted


def _sizes(model: ServedModel, settings: EngineSettings) -> tuple[int, int]:
    """Tokens of one forward, and prompts computed at once.

    vLLM keeps the embeddings of frames in a cache of just as many tokens as one forward has. Once it is full, waiting
    prompts are let in with the few tokens before their first frame, and a prompt that is in never looks at the prefix
    cache again: every question of a video then computes all its frames (seen with vLLM 0.25.1: 9956 tokens a video
    of three questions instead of 4005, half the speed). So a forward holds the frames of all prompts that are let in,
    each of a video of its own, and where that is more than `_LARGEST_BATCH` fewer are let in.
    """
    sequences = settings.max_sequences or _SEQUENCES["frames" if model.images else "text"]
    frames = model.images * _tokens_of_frame(model.image_side)
    if not frames:
        return _BATCH, sequences
    asked = min(settings.in_flight or default_in_flight(model.images), sequences)
    batch = min(_LARGEST_BATCH, max(_BATCH, -(-asked * frames // _BATCH) * _BATCH))
    return max(batch, frames), max(1, min(sequences, batch // frames))


# What a server that died said last. Each pattern with what it means and the cure; the first that is found counts.
_MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"address already in use",
        "port {port} is in use. Cure: another first port (--port, engine.first_port), or end what listens there",
    ),
    (
        r"Free memory on device.*less than desired",
        "another process holds memory of this GPU. Cure: end it, or lower --gpu-memory (engine.gpu_memory)",
    ),
    (
        r"No available memory for the cache blocks|larger than the available KV cache memory|KV cache is needed",
        "the model leaves no memory for its prompts. Cure: raise --gpu-memory (engine.gpu_memory), or a larger GPU",
    ),
    (
        r"out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED",
        "out of memory. Cure: lower --gpu-memory (engine.gpu_memory) or --max-sequences (engine.max_sequences)",
    ),
    (
        r"(Repo\w*|Revision|Entry) ?NotFound|not found for url|repository ID|valid model identifier|connect to 'https",
        "the model cannot be fetched. Cure: check model, revision and network, or name a folder in benchcheck.toml",
    ),
    (
        r"No module named '?vllm|^\S*: No such file or directory",
        "vLLM was not found. Cure: pip install 'benchcheck[vllm]', or name it with --vllm or --python",
    ),
    (
        r"unrecognized arguments|invalid choice",
        "this vLLM takes other arguments. Cure: a version that docs/engines.md names",
    ),
)
_EMPTY_REASONS = re.compile(r"Engine core initialization failed|See root cause above|SystemExit")


def why_ended(log: str, code: int | None, port: int) -> str:
    """Return in one line why a server ended: its exit code, what its log means, and the line that tells it.

    Args:
        log: what it wrote since it was started.
        code: its exit code; None where it was killed together with what watched it, negative for a signal.
        port: its port.
    """
    lines = [line for line in (_CUT.sub("", line).strip() for line in log.splitlines()) if line]
    how = "killed" if code is None else f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    for pattern, meaning in _MEANINGS:
        found = [line for line in lines if re.search(pattern, line, re.IGNORECASE)]
        if found:
            return f"{how}: {meaning.format(port=port)} ({_short(found[-1])})"
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    telling = [line for line in errors if not _EMPTY_REASONS.search(line)] or errors or lines
    return f"{how}: {_short(telling[-1])}" if telling else f"{how}, without a word"


def _short(line: str) -> str:
    """A line that is short enough to stand in another."""
    return line if len(line) <= 300 else line[:299] + "…"
