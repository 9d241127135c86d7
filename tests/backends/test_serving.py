"""The command line of a server, and what its last words mean."""

import dataclasses
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends.serving import ServedModel, Server, default_in_flight, servers_of, why_ended
from benchcheck.settings import EngineSettings

MODEL = ServedModel("Qwen/Q", "abc", "Q", 262_144, exact=True, images=0, image_side=448)


def options(server: Server) -> dict[str, str]:
    """A server's arguments by name; a flag without a value has the next flag as one."""
    words = server.command
    return {word: words[index + 1] for index, word in enumerate(words[:-1]) if word.startswith("--")}


def one(model: ServedModel = MODEL, **settings: object) -> Server:
    (server,) = servers_of(model, EngineSettings(**settings), ["0"], ["vllm"])  # type: ignore[arg-type]
    return server


def test_a_server_for_text_on_a_gpu() -> None:
    server = one()
    assert server.command == (
        *("vllm", "serve", "Qwen/Q", "--served-model-name", "Q", "--revision", "abc", "--dtype", "bfloat16"),
        *("--max-logprobs", "20", "--enable-prefix-caching", "--gpu-memory-utilization", "0.85"),
        *("--max-num-seqs", "64", "--max-num-batched-tokens", "16384", "--max-model-len", "8192"),
        *("--limit-mm-per-prompt", '{"image": 0, "video": 0}', "--generation-config", "vllm"),
        *(
            "--disable-uvicorn-access-log",
            "--enable-prompt-tokens-details",
            "--hf-overrides",
            '{"head_dtype": "float32"}',
        ),
        *("--host", "127.0.0.1", "--port", "8001"),
    )
    assert server.environment == {"CUDA_VISIBLE_DEVICES": "0"}
    assert server.endpoint == "http://127.0.0.1:8001/v1"
    assert server.place == "GPU 0"


def test_one_server_a_gpu_on_ports_that_follow_one_another() -> None:
    servers = servers_of(MODEL, EngineSettings(first_port=9000), ["2", "GPU-x"], ["python", "-m", "vllm"])
    assert [server.port for server in servers] == [9000, 9001]
    assert [server.environment["CUDA_VISIBLE_DEVICES"] for server in servers] == ["2", "GPU-x"]
    assert [server.command[:4] for server in servers] == [("python", "-m", "vllm", "serve")] * 2
    assert [server.number for server in servers] == [0, 1]
    assert len(servers_of(MODEL, EngineSettings(gpus=1), ["2", "3"], ["vllm"])) == 1


def test_a_machine_without_gpus_has_one_server_on_the_cpu() -> None:
    (server,) = servers_of(MODEL, EngineSettings(), [], ["vllm"])
    assert server.place == "the CPU"
    assert server.environment == {"VLLM_CPU_KVCACHE_SPACE": "2"}
    assert "--enforce-eager" in server.command
    assert "--gpu-memory-utilization" not in server.command


def test_a_server_fetches_into_the_study_s_hub_cache() -> None:
    (server,) = servers_of(dataclasses.replace(MODEL, cache="/a/cache"), EngineSettings(), ["0"], ["vllm"])
    assert server.environment == {"CUDA_VISIBLE_DEVICES": "0", "HF_HUB_CACHE": "/a/cache"}


def test_what_settings_change() -> None:
    plain = dataclasses.replace(MODEL, revision="", exact=False)
    server = one(plain, quantization="fp8", gpu_memory=0.4, max_sequences=8)
    found = options(server)
    assert (found["--quantization"], found["--gpu-memory-utilization"], found["--max-num-seqs"]) == ("fp8", "0.4", "8")
    assert not {"--revision", "--hf-overrides"} & set(server.command)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8001/v1"),
        ("::", "http://127.0.0.1:8001/v1"),
        ("10.0.0.5", "http://10.0.0.5:8001/v1"),
        ("::1", "http://[::1]:8001/v1"),
    ],
)
def test_an_endpoint_is_what_this_machine_can_ask(host: str, url: str) -> None:
    (server,) = servers_of(MODEL, EngineSettings(), ["0"], ["vllm"], host)
    assert server.endpoint == url
    assert options(server)["--host"] == host


def test_more_servers_than_ports_are_refused() -> None:
    with pytest.raises(ValueError, match=r"first_port = 65535 leaves no port for 2 servers\. Allowed: 1 to 65534"):
        servers_of(MODEL, EngineSettings(first_port=65_535), ["0", "1"], ["vllm"])


def test_prompts_in_flight_by_frames() -> None:
    assert [default_in_flight(images) for images in (0, 1, 2, 32)] == [32, 16, 8, 8]


def test_all_frames_of_the_prompts_in_flight_fit_into_the_encoder_cache() -> None:
    """vLLM's cache of frames has as many tokens as a forward; when it is full, prefixes are silently not shared."""
    found = options(one(dataclasses.replace(MODEL, images=32)))
    frames = 32 * (16 * 16 + 2)
    assert int(found["--max-num-batched-tokens"]) >= default_in_flight(32) * frames
    assert int(found["--max-num-seqs"]) >= default_in_flight(32)
    assert json.loads(found["--limit-mm-per-prompt"]) == {"image": 32, "video": 0}


@given(
    images=st.integers(0, 1024),
    image_side=st.integers(16, 4096),
    longest=st.integers(0, 300_000),
    in_flight=st.integers(0, 1000),
    max_sequences=st.integers(0, 1000),
)
def test_sizes_hold_together(images: int, image_side: int, longest: int, in_flight: int, max_sequences: int) -> None:
    model = dataclasses.replace(MODEL, images=images, image_side=image_side, longest=longest)
    found = options(one(model, in_flight=in_flight, max_sequences=max_sequences))
    batch, sequences = int(found["--max-num-batched-tokens"]), int(found["--max-num-seqs"])
    frames = images * (max(64, math.ceil(image_side / 28) ** 2) + 2)
    assert sequences >= 1
    assert batch >= max(16_384, sequences * frames if images else 0)
    assert sequences <= (max_sequences or (64 if not images else 32))
    assert not longest or int(found["--max-model-len"]) <= longest
    assert longest or int(found["--max-model-len"]) == 8192 + frames


PREFIX = "(EngineCore pid=7) ERROR 11-30 12:00:00 [core.py:1100] "


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ("OSError: [Errno 98] ... address already in use", r"port 8001 is in use\. Cure: .*--port.*engine\.first_port"),
        (
            f"{PREFIX}torch.OutOfMemoryError: CUDA out of memory. Tried\nRuntimeError: Engine core init",
            r"out of memory\. Cure: lower --gpu-memory \(engine\.gpu_memory\) or --max-sequences .*Tried\)$",
        ),
        ("ValueError: Free memory on device cuda:0 (3/79 GiB) is less than desired", "another process holds memory"),
        ("ValueError: No available memory for the cache blocks.", "raise --gpu-memory"),
        ("OSError: a/b is not a local folder and is not a valid model identifier", "model cannot be fetched"),
        ("huggingface_hub.errors.RepositoryNotFoundError: 404", "model cannot be fetched"),
        ("/usr/bin/python: No module named 'vllm'", r"vLLM was not found\. Cure: pip install"),
        ("/opt/vllm: No such file or directory", r"vLLM was not found"),
        ("vllm serve: error: unrecognized arguments: --x", "takes other arguments"),
        (
            f"INFO fine\n{PREFIX}Traceback (most\n{PREFIX}KeyError: 'a'\n{PREFIX}  at\nlast",
            r"exit code 1: KeyError: 'a'$",
        ),
        (
            f"{PREFIX}KeyError: 'a'\nRuntimeError: Engine core initialization failed. See root",
            r"code 1: KeyError: 'a'$",
        ),
        (
            "RuntimeError: Engine core initialization failed. See root cause above.",
            r"code 1: RuntimeError: Engine core",
        ),
        ("one\n\x1b[31mtwo\n\n", "exit code 1: two$"),
        ("", "exit code 1, without a word$"),
        ("x" * 400, "exit code 1: x{299}…$"),
    ],
)
def test_why_a_server_ended(log: str, told: str) -> None:
    found = why_ended(log, 1, 8001)
    assert re.search(told, found), found
    assert "\n" not in found


def test_how_a_server_ended() -> None:
    assert why_ended("", -9, 1) == "killed by signal 9, without a word"
    assert why_ended("hm", None, 1) == "killed: hm"


@given(st.text(), st.one_of(st.none(), st.integers(-64, 255)), st.integers(1, 65_535))
def test_any_log_has_one_line(log: str, code: int | None, port: int) -> None:
    found = why_ended(log, code, port)
    assert found
    assert len(found) < 700
    assert len(found.splitlines()) == 1
