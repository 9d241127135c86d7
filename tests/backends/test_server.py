"""The server backend against servers that are honest, differ, or break in every way that one can."""

import gc
import logging
import math
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from PIL import Image

from backends.endpoint import (
    DIE,
    HANG,
    MODEL,
    RESET,
    VOCABULARY,
    Answer,
    Raw,
    Reply,
    Request,
    Server,
    completion,
    distribution,
    refusal,
)  # fmt: skip
from benchcheck.backends import ModelSpec, Outcome, desk, endpoint, open_backend, wire
from benchcheck.backends import server as module
from benchcheck.backends.checkpoint import EMBEDDED
from benchcheck.backends.server import places
from benchcheck.errors import BackendError, MissingExtraError, ModelRefusedError, UsageError
from benchcheck.screen.prompts import INTROS, LETTERS, Prompt, option_orders, render_text
from benchcheck.screen.readings import MISSING_LOGPROB, Failure, Reading, log_sum_exp
from benchcheck.screen.steps import Sight
from benchcheck.settings import EngineSettings

HTML = b"<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head></html>"


class ServerBackend(module.ServerBackend):
    """Closed when the test ends, however it ends."""

    opened: ClassVar[list[module.ServerBackend]] = []

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.opened.append(self)


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while ServerBackend.opened:
        ServerBackend.opened.pop().close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that a test can sit through."""
    monkeypatch.setattr(wire, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(endpoint, "FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(endpoint, "SPECIMEN_S", 2.0)
    monkeypatch.setattr(desk, "GRACE_S", 1.0)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start servers that end with the test."""
    started: list[Server] = []

    def start(behave: Callable[[Request], Answer | None] | None = None, **settings: Any) -> Server:
        server = Server(**({"behave": behave} if behave else {}), **settings)
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


def spec(*servers: Server, preset: str = "exact", images: int = 0, model: str = MODEL, **settings: Any) -> ModelSpec:
    settings = {"timeout_s": 5.0, **settings}
    urls = tuple(server.url for server in servers)
    return ModelSpec(
        model, preset=preset, images=images, image_side=64, settings=EngineSettings(endpoints=urls, **settings)
    )


def items(count: int, k: int = 4, orders: int = 4) -> list[Prompt]:
    return [
        Prompt(
            f"i{n}", 1, order, render_text(INTROS[Sight.BLIND], f"What is {n}?", [f"o{j}" for j in order]), (), f"i{n}"
        )
        for n in range(count)
        for order in option_orders(f"i{n}", k, n=orders)
    ]


def read_all(backend: ServerBackend, prompts: list[Prompt]) -> list[Reading | Failure]:
    outcomes = list(backend.read(prompts))
    assert sorted(outcome.index for outcome in outcomes) == list(range(len(prompts)))
    return [outcome.result for outcome in sorted(outcomes, key=lambda outcome: outcome.index)]


def ask(prompts: list[Prompt], *servers: Server, **settings: Any) -> list[Reading | Failure]:
    backend = ServerBackend(spec(*servers, **settings))
    try:
        return read_all(backend, prompts)
    finally:
        backend.close()


def kinds(results: list[Reading | Failure]) -> list[str]:
    return [result.kind if isinstance(result, Failure) else "ok" for result in results]


def expected(prompt: Prompt) -> list[float]:
    told = distribution(prompt.text)
    return [
        log_sum_exp([told[VOCABULARY.texts[number]] for number in VOCABULARY.variants[letter]])
        for letter in LETTERS[: len(prompt.order)]
    ]


# What an honest server is read as.


def test_every_letter_is_read_exactly_and_numbered_by_its_prompt(serve: Callable[..., Server]) -> None:
    server, prompts = serve(), items(30)
    results = ask(prompts, server)
    for prompt, result in zip(prompts, results, strict=True):
        assert isinstance(result, Reading)
        assert result.letters.logprobs == pytest.approx(expected(prompt))
        assert result.letters.missing == ()
        assert result.letters.label_mass == pytest.approx(math.fsum(map(math.exp, expected(prompt))))
        assert result.prompt_tokens == len(VOCABULARY.encode(prompt.text)) + 10
        assert (result.cached_tokens, result.latency_s > 0) == (4, True)
    sent = server.asked[0].json
    assert sent["continue_final_message"] is True
    assert sent["add_generation_prompt"] is False
    assert (sent["max_tokens"], sent["temperature"]) == (1, 0.0)
    assert sent["messages"][1] == {"role": "assistant", "content": "Answer:"}
    # Only the letters shown are asked for: four of them have eight tokens.
    assert len(sent["logprob_token_ids"]) == 8


def test_the_original_preset_reads_the_top_20_and_both_ways_agree(serve: Callable[..., Server]) -> None:
    server, prompts = serve(), items(5)
    exact, top = ask(prompts, server), ask(prompts, server, preset="benchcheck-2026")
    assert {one.json.get("top_logprobs") for one in server.asked[20:]} == {20}
    for one, other in zip(exact, top, strict=True):
        assert isinstance(one, Reading)
        assert isinstance(other, Reading)
        seen = [i for i in range(4) if LETTERS[i] not in other.letters.missing]
        for i in seen:
            assert one.letters.logprobs[i] == pytest.approx(other.letters.logprobs[i], abs=0.02)


def test_a_letter_outside_the_top_tokens_is_listed_as_missing(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(by_id=False, most=3)
    server.most = 5
    results = ask(items(8, k=8, orders=1), server)
    missing = {letter for result in results if isinstance(result, Reading) for letter in result.letters.missing}
    assert missing
    for result in results:
        assert isinstance(result, Reading)
        for letter in result.letters.missing:
            assert result.letters.logprobs[LETTERS.index(letter)] == MISSING_LOGPROB
    assert {one.json["top_logprobs"] for one in server.asked} == {5}
    assert "absent ones are marked missing: they cannot list tokens by id" in caplog.text


def test_the_widest_list_that_the_server_allows_is_taken(serve: Callable[..., Server]) -> None:
    server = serve(by_id=False, most=64)
    ask(items(1), server)
    assert {one.json["top_logprobs"] for one in server.asked} == {50}


def test_without_the_model_s_tokenizer_the_top_tokens_are_read(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(served="far/away")
    assert kinds(ask(items(1), server, model="far/away")) == ["ok"] * 4
    assert "far/away has no revision in the config" in caplog.text
    assert all("logprob_token_ids" not in one.json for one in server.asked)


def test_tokens_that_are_written_as_ids_are_read_as_their_text(serve: Callable[..., Server]) -> None:
    def by_number(request: Request) -> Reply | None:
        told, ids = distribution(request.text), request.json.get("logprob_token_ids")
        if not ids:
            return None
        return Reply(completion([(f"token_id:{number}", told[VOCABULARY.texts[number]]) for number in ids]))

    prompts = items(2)
    for prompt, result in zip(prompts, ask(prompts, serve(by_number, counts=False)), strict=True):
        assert isinstance(result, Reading)
        assert result.letters.logprobs == pytest.approx(expected(prompt))


def test_more_ids_than_a_request_takes_are_asked_in_parts(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchcheck.backends import replies

    monkeypatch.setattr(replies, "MAX_ASKED", 5)
    server, prompts = serve(), items(3)
    results = ask(prompts, server)
    assert len(server.asked) == 2 * len(prompts)
    for prompt, result in zip(prompts, results, strict=True):
        assert isinstance(result, Reading)
        assert result.letters.logprobs == pytest.approx(expected(prompt))


def test_the_engine_says_what_a_server_tells(serve: Callable[..., Server]) -> None:
    first, second = serve(version="0.31.0"), serve(version=None)
    backend = ServerBackend(spec(first, second))
    assert backend.engine.name == "server"
    assert backend.engine.version == "vllm + vllm 0.31.0"
    assert backend.engine.dtype == "unknown"
    assert backend.engine.device == ", ".join(sorted(f"127.0.0.1:{one.port}" for one in (first, second)))
    assert backend.engine.revision == ""
    backend.close()


def test_the_table_opens_it(serve: Callable[..., Server]) -> None:
    open_backend("server", spec(serve())).close()


def test_places_by_frames() -> None:
    assert [places(n) for n in (0, 1, 2, 32)] == [32, 16, 8, 8]


@pytest.mark.parametrize(("images", "most"), [(0, 32), (1, 16), (4, 8)])
def test_no_more_than_the_places_are_asked_at_once(
    serve: Callable[..., Server], video: Callable[[int, int], tuple[str, ...]], images: int, most: int
) -> None:
    server = serve(delay=0.01)
    frames = video(0, images)
    prompts = [Prompt(f"i{n}", 1, (0, 1), f"text {n}", frames, f"v{n % 9}") for n in range(90)]
    assert kinds(ask(prompts, server, images=images)) == ["ok"] * 90
    assert server.most_at_once == most
    # Connections are kept: not many more than places.
    assert len({one.connection for one in server.asked}) <= most + 2


# Where prompts go.


def test_an_item_s_orders_go_back_to_back_to_one_server(serve: Callable[..., Server]) -> None:
    servers = [serve(delay=0.002), serve(delay=0.002)]
    prompts = items(60)
    assert kinds(ask(prompts, *servers, in_flight=8)) == ["ok"] * 240
    homes: dict[str, set[int]] = {}
    for number, server in enumerate(servers):
        assert len(server.asked) > 40
        for one in server.asked:
            homes.setdefault(one.text.partition("What is ")[2].partition("?")[0], set()).add(number)
    assert len(homes) == 60
    assert all(len(home) == 1 for home in homes.values())


def test_a_slow_server_takes_fewer_groups(serve: Callable[..., Server]) -> None:
    slow, quick = serve(delay=0.2), serve(delay=0.002)
    ask(items(60), slow, quick, in_flight=4)
    assert len(slow.asked) < len(quick.asked) / 2


def test_a_video_s_frames_are_read_once_for_its_questions(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = []
    for k in range(3):
        path = tmp_path / f"{k}.jpg"
        Image.new("RGB", (32, 32), (k, 0, 0)).save(path)
        frames.append(str(path))
    read: list[str] = []
    plain = module.read_jpeg
    monkeypatch.setattr(module, "read_jpeg", lambda path: read.append(path) or plain(path))
    server = serve()
    shuffled = (frames[2], frames[0], frames[1])
    prompts = [Prompt(f"i{n}", 5, (0, 1), f"t{n}", shuffled if n % 2 else tuple(frames), "v") for n in range(6)]
    assert kinds(ask(prompts, server, images=3)) == ["ok"] * 6
    assert sorted(read) == sorted(frames)
    first = next(one for one in server.asked if one.text == "t0")
    second = next(one for one in server.asked if one.text == "t1")
    assert [first.frames[2], first.frames[0], first.frames[1]] == second.frames
    content = first.json["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url"] * 3 + ["text"]


def test_a_large_body_goes_out_whole(serve: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "large.jpg"
    noise = random.Random(0).randbytes(1200 * 1000 * 3)
    Image.frombytes("RGB", (1200, 1000), noise).save(path, quality=95)
    server = serve()
    assert kinds(ask([Prompt("i", 2, (0, 1), "t", (str(path),), "v")], server, images=1)) == ["ok"]
    assert len(server.asked[0].body) > 1_500_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "an empty file"),
        (b"<html>Sign in</html>", "no JPEG, it begins with b'<html>"),
        (b"\xff\xd8\xff\xe0cut", "a JPEG that ends too early"),
    ],
)
def test_a_frame_that_is_no_jpeg_fails_its_prompts_only(
    serve: Callable[..., Server], tmp_path: Path, content: bytes | None, said: str
) -> None:
    bad, good = tmp_path / "bad.jpg", tmp_path / "good.jpg"
    Image.new("RGB", (32, 32)).save(good)
    if content is not None:
        bad.write_bytes(content)
    prompts = [Prompt(f"i{n}", 2, (0, 1), f"t{n}", (str(bad if n == 1 else good),), f"v{n}") for n in range(3)]
    results = ask(prompts, serve(), images=1)
    assert kinds(results) == ["ok", "undecodable_frames", "ok"]
    assert said in results[1].detail


def test_control_tokens_and_letters_of_two_tokens_are_refused_by_prompt(serve: Callable[..., Server]) -> None:
    bad = [
        Prompt("c", 1, (0, 1), "Is it over?<|im_end|>", (), "c"),
        Prompt("d", 1, (0, 1), "Is it over?", (), "d"),
    ]
    backend = ServerBackend(spec(serve()))
    object.__setattr__(backend._vocabulary, "unreadable", {"C": "' C' after the prompt is 2 tokens"})
    results = read_all(backend, [*bad, *items(1)])
    backend.close()
    assert kinds(results) == ["control_token_in_text", "ok", *["unreadable_letters"] * 4]
    assert "<|im_end|>" in results[0].detail


# Servers that cannot be used.


def whole(reply: bytes, status: int = 200) -> Callable[[Request], Reply]:
    return lambda request: Reply(reply, status)


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "500": (
        {"behave": whole(b"Internal Server Error", 500)},
        BackendError,
        r"fails on a plain question \(status 500: Internal",
    ),
    "500 for the list": ({"models": Reply(b"oops", 500)}, BackendError, "status 500: oops"),
    "HTML for the list": (
        {"models": Reply(HTML)},
        BackendError,
        r"no OpenAI-compatible server \(its list of models is an HTML page titled '502",
    ),
    "HTML": ({"behave": whole(HTML)}, BackendError, "no JSON object: an HTML page"),
    "truncated JSON": ({"behave": whole(completion([("A", -1.0)])[:60])}, BackendError, "the reply is no JSON object"),
    "no choices": ({"behave": whole(b'{"choices": []}')}, BackendError, "no choices"),
    "no log-probabilities": (
        {"behave": whole(completion([]))},
        ModelRefusedError,
        r"gives no log-prob.*--max-logprobs",
    ),
    "log-probabilities refused": (
        {"behave": lambda request: refusal(400, "logprobs are not supported")},
        ModelRefusedError,
        "gives no log-probabilities",
    ),
    "NaN": ({"behave": whole(completion([("A", math.nan)]))}, ModelRefusedError, "is not a number"),
    "null for NaN": ({"behave": whole(completion([("A", None)]))}, ModelRefusedError, "is not a number"),
    "logits": ({"behave": whole(completion([("A", 17.2)]))}, BackendError, "17.2 is no log-probability"),
    "another model": ({"served": "other/model"}, UsageError, r"serves other/model; the config's model is embedded:la"),
    "no model": ({"models": Reply(b'{"data": []}')}, UsageError, "serves no model"),
    "a list of something": ({"models": Reply(b'{"data": [1, {"id": 2}]}')}, UsageError, "serves no model"),
    "ignored prefill": (
        {"continues": False},
        ModelRefusedError,
        r"ignores continue_final_message \(the prefill 'Answer:' costs 7 tokens, a second one 2\)",
    ),
    "ignored prefill, not counted": (
        {"behave": whole(completion([(" The", -0.01), (" A", -7.0)], 0)), "counts": False},
        ModelRefusedError,
        r"ignores continue_final_message \(all letters together have probability 0\.0009",
    ),
    "refused prefill": (
        {"behave": lambda request: refusal(400, "Unknown parameter: 'continue_final_message'")},
        ModelRefusedError,
        "refuses a request that continues the assistant's turn",
    ),
    "a key": ({"key": "secret"}, UsageError, r"wants a key, .* set `api_key` under \[engine\]"),
    "no such address": (
        {"models": refusal(404, "Not Found"), "behave": lambda request: refusal(404, "Not Found")},
        UsageError,
        "usually end in /v1",
    ),
    "another tokenizer": ({"tokenizer_shift": 1}, ModelRefusedError, "another tokenizer than embedded:large"),
    "no HTTP": ({"models": Raw(b"SSH-2.0-OpenSSH_9\r\n\r\n")}, BackendError, "no OpenAI-compatible server"),
    "resets": ({"behave": lambda request: RESET}, BackendError, "no endpoint answers: .*the connection ended"),
    "stops in the middle": (
        {"behave": lambda request: Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")},
        BackendError,
        "no endpoint answers: .*the connection ended",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_server_that_cannot_be_used_is_refused_in_one_line(serve: Callable[..., Server], name: str) -> None:
    settings, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said) as caught:
        ServerBackend(spec(serve(**settings)))
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert "Cure: " in str(caught.value)


def test_two_readings_that_differ_are_no_distribution(serve: Callable[..., Server]) -> None:
    def raw_logits(request: Request) -> Reply | None:
        ids = request.json.get("logprob_token_ids")
        return ids and Reply(completion([(VOCABULARY.texts[number], -2.0 - number / 9) for number in ids]))

    with pytest.raises(ModelRefusedError, match=r"asked for by id and .* Cure: start the server without --logprobs-m"):
        ServerBackend(spec(serve(raw_logits)))


def test_the_original_preset_wants_20_tokens(serve: Callable[..., Server]) -> None:
    with pytest.raises(UsageError, match=r"does not list the top 20 tokens.*--max-logprobs 20"):
        ServerBackend(spec(serve(most=5), preset="benchcheck-2026"))


def test_frames_that_the_server_does_not_take(serve: Callable[..., Server]) -> None:
    def no_frames(request: Request) -> Reply | None:
        return refusal(400, "At most 0 image(s) may be provided in one prompt.") if request.frames else None

    def short(request: Request) -> Reply | None:
        return refusal(400, "This model's maximum context length is 64 tokens.") if request.frames else None

    with pytest.raises(UsageError, match=r"does not take the 4 frames.*--limit-mm-per-prompt '\{\"image\": 4\}'"):
        ServerBackend(spec(serve(no_frames), images=4))
    with pytest.raises(UsageError, match=r"Cure: start it with a larger --max-model-len"):
        ServerBackend(spec(serve(short), images=4))
    with pytest.raises(BackendError, match="status 500"):
        ServerBackend(spec(serve(lambda request: Reply(b"", 500) if request.frames else None), images=1))
    with pytest.raises(BackendError, match="no JSON"):
        ServerBackend(spec(serve(lambda request: Reply(b"") if request.frames else None), images=1))


def test_an_endpoint_that_is_down(serve: Callable[..., Server]) -> None:
    server = serve()
    server.kill()
    with pytest.raises(BackendError, match=rf"no endpoint answers: http://127.0.0.1:{server.port}/v1: .*Cure: start"):
        ServerBackend(spec(server))


def test_no_endpoint_at_all() -> None:
    with pytest.raises(UsageError, match=r"needs an endpoint.*--endpoint URL"):
        ServerBackend(ModelSpec(MODEL))


def test_a_preset_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="preset 'x' does not exist"):
        ServerBackend(ModelSpec(MODEL, preset="x"))


def test_without_aiohttp(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"benchcheck\[server\]"):
        ServerBackend(spec(serve()))


def test_servers_that_read_otherwise_are_not_mixed(serve: Callable[..., Server]) -> None:
    with pytest.raises(UsageError, match=r"every letter by token id, .* letters among the top 20 tokens"):
        ServerBackend(spec(serve(), serve(by_id=False)))


def test_a_served_name_of_the_user(serve: Callable[..., Server]) -> None:
    server = serve(served="tiny")
    assert kinds(ask(items(1), server, served_name="tiny")) == ["ok"] * 4
    with pytest.raises(UsageError, match="serves tiny; `served_name` is small"):
        ServerBackend(spec(server, served_name="small"))


def test_a_server_started_on_the_model_s_folder_is_known(serve: Callable[..., Server]) -> None:
    assert kinds(ask(items(1), serve(served=str(EMBEDDED / "large")))) == ["ok"] * 4


def test_a_server_without_a_list_is_asked_by_the_config_s_name(serve: Callable[..., Server]) -> None:
    server = serve(models=refusal(404, "Not Found"), version=None)
    assert kinds(ask(items(1), server)) == ["ok"] * 4
    assert server.asked[0].json["model"] == MODEL


def test_the_key_comes_from_the_environment_and_is_never_shown(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(key="s3cret")
    with pytest.raises(UsageError, match="environment variable MY_KEY, which is not set"):
        ServerBackend(spec(server, api_key="MY_KEY"))
    monkeypatch.setenv("MY_KEY", "s3cret\nX-Other: 1")
    with pytest.raises(UsageError, match="holds no key") as caught:
        ServerBackend(spec(server, api_key="MY_KEY"))
    assert "s3cret" not in str(caught.value)
    monkeypatch.setenv("MY_KEY", "wr0ng")
    with pytest.raises(UsageError, match="wants a key, or another one") as caught:
        ServerBackend(spec(server, api_key="MY_KEY"))
    assert "wr0ng" not in str(caught.value)
    monkeypatch.setenv("MY_KEY", "s3cret")
    assert kinds(ask(items(1), server, api_key="MY_KEY")) == ["ok"] * 4


# Prompts that fail, on a server that works.


def on_item(number: int, answer: Callable[[Request], Answer | None]) -> Callable[[Request], Answer | None]:
    return lambda request: answer(request) if f"What is {number}?" in request.text else None


FAILING: dict[str, tuple[Callable[[Request], Answer | None], str, str]] = {
    "too long": (
        lambda request: refusal(400, "This model's maximum context length is 8192 tokens. However, ..."),
        "context_too_long",
        "status 400: This model's maximum context length is 8192",
    ),
    "500": (whole(b'{"detail": "boom"}', 500), "server_error", "status 500: boom"),
    "503 for ever": (whole(b"busy", 503), "server_error", "status 503: busy"),
    "429 for ever": (whole(b"slow down", 429), "bad_request", "status 429: slow down"),
    "HTML": (whole(HTML), "bad_reply", "an HTML page titled"),
    "truncated JSON": (whole(completion([("A", -1.0)])[:-9]), "bad_reply", "no JSON object"),
    "no choices": (whole(b"{}"), "bad_reply", "no choices"),
    "no log-probabilities": (whole(completion([])), "no_logprobs", "lists no log-prob"),
    "NaN": (whole(completion([("A", math.nan)])), "nan_logprobs", "not a number"),
    "letters missing": (whole(completion([(" A", -1.0)])), "bad_reply", "asked for 2 tokens of letter A, the reply"),
    "stops in the middle": (
        lambda request: Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"),
        "bad_reply",
        "the connection ended before the reply",
    ),
    "reset": (lambda request: RESET, "bad_reply", "the connection ended before the reply"),
    "hangs": (lambda request: HANG, "timeout", "no reply within 0.4 s"),
    "an image that it cannot read": (
        lambda request: refusal(400, "Failed to load image: cannot identify image file"),
        "undecodable_frames",
        "Failed to load image",
    ),
    "key": (whole(b"no", 403), "bad_request", "status 403: no"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_prompt_that_fails_fails_alone(serve: Callable[..., Server], name: str) -> None:
    answer, kind, said = FAILING[name]
    results = ask(items(6), serve(on_item(3, answer)), timeout_s=0.4, in_flight=3)
    assert kinds(results) == ["ok"] * 12 + [kind] * 4 + ["ok"] * 8
    assert said in results[12].detail


def after(times: int, answer: Callable[[Request], Answer | None]) -> Callable[[Request], Answer | None]:
    """Answer so the first `times` times for each text, then honestly."""
    seen: dict[str, int] = {}

    def behave(request: Request) -> Answer | None:
        if request.is_specimen:
            return None
        seen[request.text] = seen.get(request.text, 0) + 1
        return answer(request) if seen[request.text] <= times else None

    return behave


@pytest.mark.parametrize(
    ("times", "answer"),
    [
        (1, lambda request: RESET),
        (1, lambda request: Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{")),
        (1, lambda request: Raw(b"")),
        (1, lambda request: HANG),
        (1, whole(b"", 500)),
        (3, whole(b"", 503)),
        (2, lambda request: Reply(b"", 429, ("Retry-After: 0",))),
        (2, lambda request: Reply(b"", 502, ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT",))),
        (1, lambda request: Reply(b"", 504, ("Retry-After: -5",))),
    ],
    ids=["reset", "cut", "closed", "hung", "500", "503", "429", "502", "504"],
)
def test_what_passes_is_tried_again(
    serve: Callable[..., Server], times: int, answer: Callable[[Request], Answer | None]
) -> None:
    assert kinds(ask(items(2), serve(after(times, answer)), timeout_s=0.5)) == ["ok"] * 8


# Servers that fail in the middle of a run.


def dying(after_requests: int) -> Callable[[Request], Answer | None]:
    """Die once, at this many prompts."""
    count = iter(range(1_000_000))
    return lambda request: DIE if not request.is_specimen and next(count) == after_requests else None


def test_one_of_two_servers_dies_and_no_item_gets_an_error(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    first, second = serve(dying(40), delay=0.001), serve(delay=0.001)
    assert kinds(ask(items(60), first, second, in_flight=8)) == ["ok"] * 240
    assert f"{first.url} is down" in caplog.text
    assert len(second.asked) > 150


def test_a_server_that_is_down_at_the_start_is_left_out_and_may_come_later(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    late, here = serve(), serve(delay=0.01)
    late.kill()
    backend = ServerBackend(spec(late, here, in_flight=2))
    assert "the others begin without it" in caplog.text
    prompts = iter(items(400))

    def slowly() -> Iterator[Prompt]:
        for number, prompt in enumerate(prompts):
            if number == 20:
                late.revive()
            yield prompt

    assert kinds([outcome.result for outcome in backend.read(slowly())]) == ["ok"] * 1600
    backend.close()
    assert f"{late.url} is back" in caplog.text
    assert late.asked


def test_the_last_server_dies_and_comes_back(serve: Callable[..., Server], caplog: pytest.LogCaptureFixture) -> None:
    server = serve(dying(30))
    backend = ServerBackend(spec(server, in_flight=4))
    outcomes: list[Outcome] = []
    for outcome in backend.read(items(20)):
        outcomes.append(outcome)
        if len(outcomes) == 20:
            threading.Timer(0.4, server.revive).start()
    assert kinds([outcome.result for outcome in outcomes]) == ["ok"] * 80
    assert "is back" in caplog.text


def test_when_none_is_left_the_run_ends_and_items_are_not_blamed(serve: Callable[..., Server]) -> None:
    first, second = serve(dying(10)), serve(dying(30))
    backend = ServerBackend(spec(first, second, in_flight=4))
    outcomes: list[Outcome] = []
    with pytest.raises(BackendError, match=rf"no endpoint is left: {first.url}: .*; {second.url}: .*goes on where"):
        outcomes.extend(backend.read(items(40)))
    results = [outcome.result for outcome in outcomes]
    # What was being read when both died is not asked a third time.
    assert set(kinds(results)) <= {"ok", "server_died"}
    assert 20 <= len(results) <= 46
    # Another read waits again, and ends again.
    with pytest.raises(BackendError, match="no endpoint is left"):
        list(backend.read(items(1)))
    backend.close()


def test_a_prompt_that_kills_servers_kills_no_third(serve: Callable[..., Server]) -> None:
    servers = [serve(on_item(7, lambda request: DIE)) for _ in range(3)]
    results = ask(items(20, orders=1), *servers, in_flight=1)
    assert kinds(results)[7] == "server_died"
    assert kinds(results).count("ok") == 19
    assert "2 servers died while they read it" in results[7].detail


def test_a_server_that_hangs_altogether_is_down_not_its_prompts(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "SPECIMEN_S", 0.2)
    stuck = threading.Event()
    hung = serve(lambda request: HANG if stuck.is_set() else None)
    backend = ServerBackend(spec(hung, serve(delay=0.001), in_flight=4, timeout_s=0.3))
    stuck.set()
    assert kinds(read_all(backend, items(40))) == ["ok"] * 160
    backend.close()


def test_a_server_that_answers_500_to_all_is_down_not_its_prompts(serve: Callable[..., Server]) -> None:
    broken = threading.Event()
    server = serve(lambda request: Reply(b"engine is dead", 500) if broken.is_set() else None)
    backend = ServerBackend(spec(server))
    broken.set()
    with pytest.raises(BackendError, match=r"no endpoint is left: .*status 500: engine is dead"):
        list(backend.read(items(10)))
    backend.close()


def test_a_server_that_comes_back_as_another_is_not_asked(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    changed, other = serve(), serve()
    backend = ServerBackend(spec(changed, other, in_flight=2))
    changed.served = "other/model"
    other.by_id = False
    changed.kill()
    other.kill()
    outcomes = backend.read(items(30))
    threading.Timer(0.2, changed.revive).start()
    threading.Timer(0.2, other.revive).start()
    with pytest.raises(
        BackendError, match=r"no endpoint is left: .*serves other/model.*reads letters among the top 20"
    ):
        list(outcomes)
    backend.close()
    assert "serves other/model" in caplog.text


# The reading thread.


def open_sockets() -> int:
    gc.collect()
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except FileNotFoundError:
            continue
    return count


def test_prompts_are_taken_in_this_thread_and_a_bounded_number_ahead(serve: Callable[..., Server]) -> None:
    threads, taken, answered = set(), 0, 0

    def prompts() -> Iterator[Prompt]:
        nonlocal taken
        for prompt in items(100):
            threads.add(threading.get_ident())
            taken += 1
            assert taken - answered <= 2 * 5 + 1
            yield prompt

    backend = ServerBackend(spec(serve(), in_flight=5))
    for _ in backend.read(prompts()):
        answered += 1
    backend.close()
    assert answered == 400
    assert threads == {threading.get_ident()}


def test_no_prompts_no_outcomes(serve: Callable[..., Server]) -> None:
    assert ask([], serve()) == []


def test_nothing_is_left_behind_when_a_reader_stops_early(serve: Callable[..., Server]) -> None:
    server = serve(delay=0.05)
    before, sockets = threading.active_count(), open_sockets()
    backend = ServerBackend(spec(server))
    outcomes = backend.read(items(100))
    next(outcomes)
    outcomes.close()
    assert kinds(read_all(backend, items(2))) == ["ok"] * 8
    backend.close()
    backend.close()
    server.kill()
    assert threading.active_count() == before
    assert open_sockets() < sockets


def test_ctrl_c_while_it_waits_leaves_nothing(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(lambda request: None if request.is_specimen else HANG)
    before = threading.active_count()
    backend = ServerBackend(spec(server))

    def interrupted(results: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(backend.read(items(5)))
    backend.close()
    assert threading.active_count() == before


def test_an_error_in_the_prompts_reaches_the_reader(serve: Callable[..., Server]) -> None:
    def broken() -> Iterator[Prompt]:
        yield from items(1)
        raise LookupError("no such item")

    backend = ServerBackend(spec(serve()))
    with pytest.raises(LookupError, match="no such item"):
        list(backend.read(broken()))
    assert kinds(read_all(backend, items(1))) == ["ok"] * 4
    backend.close()


def test_a_bug_keeps_its_traceback(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("a bug")

    backend = ServerBackend(spec(serve()))
    monkeypatch.setattr(endpoint, "letters_of", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        list(backend.read(items(1)))
    backend.close()


def test_a_warning_goes_to_the_log_not_to_the_output(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING, logger="benchcheck"):
        ServerBackend(spec(serve(by_id=False))).close()
    assert caplog.records
    assert capsys.readouterr().out == ""
