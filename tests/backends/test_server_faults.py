"""The server backend on servers that cannot be used, fail on a prompt, or fall in the middle of a run."""

import contextlib
import math
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from backends.asking import ServerBackend, ask, items, kinds, read_all, spec, whole
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
    refusal,
)
from benchcheck import settings
from benchcheck.backends import ModelSpec, Outcome, desk, endpoint, wire
from benchcheck.backends.checkpoint import EMBEDDED
from benchcheck.errors import BackendError, MissingExtraError, ModelRefusedError, UsageError
from benchcheck.screen.prompts import Prompt
from benchcheck.settings import EngineSettings

HTML = b"<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head></html>"


# Servers that cannot be used.


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
    "a list that is cut without a word": (
        {"behave": whole(completion([(" A", -1.0), (" B", -1.0), (" C", -1.5)])), "counts": False},
        ModelRefusedError,
        r"lists 3 tokens whatever it is asked for\. Allowed: at least 5",
    ),
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
    assert isinstance(caught.value, ModelRefusedError) is (kind is ModelRefusedError)
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
    with pytest.raises(UsageError, match=r"status 413: an HTML page.*Cure: raise the limit of request bodies"):
        ServerBackend(spec(serve(lambda request: Reply(b"<html>", 413) if request.frames else None), images=4))
    with pytest.raises(BackendError, match="status 500"):
        ServerBackend(spec(serve(lambda request: Reply(b"", 500) if request.frames else None), images=1))
    with pytest.raises(BackendError, match="no JSON"):
        ServerBackend(spec(serve(lambda request: Reply(b"") if request.frames else None), images=1))


def test_an_endpoint_that_is_down(serve: Callable[..., Server]) -> None:
    server = serve()
    server.kill()
    with pytest.raises(
        BackendError,
        match=rf"no endpoint answers: http://127.0.0.1:{server.port}/v1: no connection \(Connection refused\)\. Cure",
    ):
        ServerBackend(spec(server))


def test_a_name_that_leads_nowhere() -> None:
    url = "http://no.such.host.invalid/v1"
    with pytest.raises(BackendError, match=rf"no endpoint answers: {url}: no connection \([^()]+\)\. Cure"):
        ServerBackend(ModelSpec(MODEL, settings=EngineSettings(endpoints=(url,))))


def test_an_address_that_the_client_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_is_address", lambda url: True)
    for url in ("http://..../v1", "http://h:99999/v1"):
        with pytest.raises(BackendError, match=rf"no endpoint answers: {url}: no connection \(no such address: .*Cure"):
            ServerBackend(ModelSpec(MODEL, settings=EngineSettings(endpoints=(url,))))


def test_a_certificate_that_nobody_trusts() -> None:
    key = ConnectionKey("host", 443, True, True, None, None, None)
    error = aiohttp.ClientConnectorCertificateError(key, ssl.SSLCertVerificationError("self-signed certificate"))
    assert "self-signed certificate" in wire._connecting(error)


def test_a_machine_that_takes_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CONNECT_S", 0.3)
    with socket.socket() as full, contextlib.ExitStack() as callers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        with pytest.raises(BackendError, match=r"no endpoint answers: .*no connection within 0\.3 s"):
            ServerBackend(ModelSpec(MODEL, settings=EngineSettings(endpoints=(url,))))


def test_a_server_that_hangs_at_the_start(serve: Callable[..., Server]) -> None:
    with pytest.raises(BackendError, match=r"no endpoint answers: .*no reply within 0\.2 s"):
        ServerBackend(spec(serve(lambda request: HANG), timeout_s=0.2))


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


def test_endpoints_of_the_study_s_other_model_are_left_out(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture
) -> None:
    right, other = serve(), serve(served="embedded:small")
    assert kinds(ask(items(2), other, right)) == ["ok"] * 8
    assert f"left out: {other.url} serves embedded:small" in caplog.text
    assert not other.asked
    with pytest.raises(UsageError, match=f"{other.url} serves embedded:small"):
        ServerBackend(spec(other, serve(served="third")))
    with pytest.raises(BackendError, match="fails on a plain question"):
        ServerBackend(spec(other, serve(whole(b"", 500))))


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


def test_the_last_server_dies_and_comes_back(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "GRACE_S", 60.0)
    once = dying(30)

    def dies_for_a_while(request: Request) -> Answer | None:
        answer = once(request)
        if answer == DIE:
            threading.Timer(0.4, server.revive).start()
        return answer

    server = serve(dies_for_a_while)
    assert kinds(ask(items(20), server, in_flight=4)) == ["ok"] * 80
    assert f"{server.url} is down" in caplog.text
    assert f"{server.url} is back" in caplog.text


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
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "GRACE_S", 60.0)
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
