"""The server backend on servers that work: what is read, where prompts go, what is left behind."""

import gc
import logging
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from backends.asking import ServerBackend, ask, expected, items, kinds, read_all, spec
from backends.endpoint import (
    HANG,
    VOCABULARY,
    Reply,
    Request,
    Server,
    completion,
    distribution,
)
from benchcheck.backends import endpoint, open_backend
from benchcheck.backends import server as module
from benchcheck.screen.prompts import LETTERS, Prompt
from benchcheck.screen.readings import MISSING_LOGPROB, Reading

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


@pytest.mark.parametrize(
    ("model", "said"), [("far/away", "far/away has no revision in the config"), ("/far/away", "no such model folder")]
)
def test_without_the_model_s_tokenizer_the_top_tokens_are_read(
    serve: Callable[..., Server], caplog: pytest.LogCaptureFixture, model: str, said: str
) -> None:
    server = serve(served=model)
    assert kinds(ask(items(1), server, model=model)) == ["ok"] * 4
    assert said in caplog.text
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


ASKING = """
import sys, threading
from benchcheck.backends import ModelSpec
from benchcheck.backends.server import ServerBackend
from benchcheck.screen.prompts import Prompt
from benchcheck.settings import EngineSettings

backend = ServerBackend(ModelSpec("embedded:large", settings=EngineSettings(endpoints=(sys.argv[1],))))
try:
    for outcome in backend.read(Prompt(f"i{n}", 1, (0, 1), f"text {n}") for n in range(100)):
        print(outcome)
except KeyboardInterrupt:
    backend.close()
    print("interrupted", threading.active_count())
"""


def test_ctrl_c_leaves_no_thread_and_says_nothing(serve: Callable[..., Server]) -> None:
    server = serve(lambda request: None if request.is_specimen else HANG)
    command = [sys.executable, "-W", "error", "-c", ASKING, server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not server.asked and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, err) == ("interrupted 1\n", "")


def test_a_reader_that_is_forgotten_disturbs_no_other(serve: Callable[..., Server]) -> None:
    backend = ServerBackend(spec(serve()))
    forgotten = backend.read(items(50))
    next(forgotten)
    other = backend.read(items(20))
    first = next(other)
    forgotten.close()
    assert len({first.index, *(outcome.index for outcome in other)}) == 80
    last = backend.read(items(50))
    next(last)
    backend.close()
    last.close()


def test_outcomes_do_not_wait_for_prompts_that_are_slow_to_come(serve: Callable[..., Server]) -> None:
    answered = 0

    def slowly() -> Iterator[Prompt]:
        for number, prompt in enumerate(items(3)):
            if number == 8:
                while not answered:  # the frames of the ninth take their time
                    time.sleep(0.01)
                    yield prompt
            yield prompt

    backend = ServerBackend(spec(serve()))
    for _ in backend.read(slowly()):
        answered += 1
    assert answered >= 12


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
