"""What an HTTP client costs: prompts a second and core against a server that does nothing but reply 20 log-probs.

    python bench/http_client.py [--prompts 4000] [--in-flight 32] [--rounds 3] [--json FILE]

The null server is a process of its own on the last core, the client on the first. "A core" is seconds of the client's
own CPU time, so that the figure stands on a busy machine too; "wall" is what the clock says. Each variant runs once a
round, in turn; the best of the rounds counts. `backend` is the whole `server` backend, prompts to readings; the others
are bare libraries that send the same bytes and parse the reply with the module named. Text prompts, four orders of each
item; "backend, 32 frames" asks a twentieth as many with 32 JPEGs each, 1.6 MB of base64, three questions a video.
"""

import argparse
import asyncio
import http.client
import importlib.util
import json
import multiprocessing
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchcheck.screen.prompts import INTROS, PREFILL, Prompt, option_orders, render_text
from benchcheck.screen.steps import Sight

OPTIONS = ("a red ball rolls down", "a green door is opened", "a blue car drives away", "two dogs play in the snow")
PATH = "/v1/chat/completions"
FRAMES = tempfile.TemporaryDirectory()


def prompts(count: int) -> Iterator[Prompt]:
    """Yield text prompts of the usual length, about 600 characters, four orders of each item back to back."""
    detail = "seen from the window of the house that stands at the far end of the long road " * 3
    for number in range((count + 3) // 4):
        for order in option_orders(f"t{number}", len(OPTIONS)):
            question, shown = f"What is {number}, {detail}?", [OPTIONS[j] for j in order]
            yield Prompt(f"t{number}", 1, order, render_text(INTROS[Sight.BLIND], question, shown))


def body(prompt: Prompt) -> dict[str, Any]:
    """Return a request as vLLM takes it."""
    turns = [{"role": "user", "content": prompt.text}, {"role": "assistant", "content": PREFILL}]
    return {
        "model": "null", "messages": turns, "max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": 20,
        "continue_final_message": True, "add_generation_prompt": False,
    }  # fmt: skip


def reply() -> bytes:
    """Return a reply with 20 log-probs, laid out as vLLM does."""
    texts = [form.format(letter) for form in (" {}", "{}", " ({}", "{}.") for letter in "ABCDE"]
    top = [
        {"token": text, "logprob": -1.234567 - 0.37 * rank, "bytes": list(text.encode())}
        for rank, text in enumerate(texts)
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": " A", "refusal": None, "tool_calls": [], "reasoning": None},
        "logprobs": {"content": [{**top[0], "top_logprobs": top}]},
        "finish_reason": "length", "stop_reason": None, "token_ids": None,
    }  # fmt: skip
    usage = {"prompt_tokens": 178, "total_tokens": 179, "completion_tokens": 1, "prompt_tokens_details": None}
    return json.dumps(
        {"id": "chatcmpl-" + "0" * 32, "object": "chat.completion", "created": 1764500000, "model": "null",
         "choices": [choice], "usage": usage}
    ).encode()  # fmt: skip


class NullServer(asyncio.Protocol):
    """Answers every request with the same bytes."""

    replies: dict[bytes, bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin a connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.data = bytearray()
        self.whole = 0
        self.answer = b""

    def data_received(self, data: bytes) -> None:
        """Answer as soon as a request is whole; frames are only counted."""
        self.data += data
        while self.data:
            if not self.whole:
                end = self.data.find(b"\r\n\r\n")
                if end < 0:
                    return
                head = bytes(self.data[:end])
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                self.whole = end + 4 + (int(length.group(1)) if length else 0)
                self.answer = self.replies.get(head.split(b" ", 2)[1], self.replies[b""])
            if len(self.data) < self.whole:
                return
            del self.data[: self.whole]
            self.whole = 0
            self.transport.write(self.answer)


def serve(ready: Any, core: int) -> None:
    """Run the null server until its parent ends."""
    os.sched_setaffinity(0, {core})

    def whole(content: bytes, status: str = "200 OK") -> bytes:
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        return head.encode() + content

    models = json.dumps({"object": "list", "data": [{"id": "null", "object": "model"}]}).encode()
    NullServer.replies = {
        PATH.encode(): whole(reply()),
        b"/v1/models": whole(models),
        b"": whole(b'{"detail":"Not Found"}', "404 Not Found"),
    }

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(NullServer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@dataclass(frozen=True)
class Task:
    """What a variant does: so many prompts, so many at once, JSON by these functions."""

    port: int
    count: int
    in_flight: int
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]


def check(parsed: Any) -> None:
    """Look at the reply as far as any client must."""
    assert len(parsed["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 20


def with_aiohttp(task: Task) -> None:
    """Ask with aiohttp: `in_flight` tasks on one session."""
    import aiohttp

    url, waiting = f"http://127.0.0.1:{task.port}{PATH}", prompts(task.count)

    async def run() -> None:
        connector = aiohttp.TCPConnector(limit=task.in_flight)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                for prompt in waiting:
                    content, kind = task.dumps(body(prompt)), {"content-type": "application/json"}
                    async with session.post(url, data=content, headers=kind) as answer:
                        check(task.loads(await answer.read()))

            await asyncio.gather(*(worker() for _ in range(task.in_flight)))

    asyncio.run(run())


def with_httpx(task: Task) -> None:
    """Ask with httpx: `in_flight` tasks on one client."""
    import httpx

    url, waiting = f"http://127.0.0.1:{task.port}{PATH}", prompts(task.count)

    async def run() -> None:
        limits = httpx.Limits(max_connections=task.in_flight, max_keepalive_connections=task.in_flight)
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:

            async def worker() -> None:
                for prompt in waiting:
                    kind = {"content-type": "application/json"}
                    check(task.loads((await client.post(url, content=task.dumps(body(prompt)), headers=kind)).content))

            await asyncio.gather(*(worker() for _ in range(task.in_flight)))

    asyncio.run(run())


def with_threads(task: Task) -> None:
    """Ask with the standard library: `in_flight` threads, a kept connection each."""
    local, waiting = threading.local(), list(prompts(task.count))
    opened: list[http.client.HTTPConnection] = []

    def one(prompt: Prompt) -> None:
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection("127.0.0.1", task.port)
            opened.append(local.connection)
        local.connection.request("POST", PATH, task.dumps(body(prompt)), {"content-type": "application/json"})
        check(task.loads(local.connection.getresponse().read()))

    with ThreadPoolExecutor(task.in_flight) as pool:
        list(pool.map(one, waiting))
    for connection in opened:
        connection.close()


class Connection(asyncio.Protocol):
    """A kept connection: one request at a time, the reply's body taken apart by httptools."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport: Any = transport

    def ask(self, content: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is its reply's body."""
        import httptools

        self.future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []
        lines = [
            f"POST {PATH} HTTP/1.1",
            "host: x",
            "content-type: application/json",
            f"content-length: {len(content)}",
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + content)
        return self.future

    def data_received(self, data: bytes) -> None:
        """Take what came."""
        self.parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self.parts.append(data)

    def on_message_complete(self) -> None:
        """Hand the body over."""
        self.future.set_result(b"".join(self.parts))


def with_protocol(task: Task) -> None:
    """Ask with asyncio's protocols and httptools: the least that Python can do."""
    waiting = prompts(task.count)

    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def worker() -> None:
            _, connection = await loop.create_connection(Connection, "127.0.0.1", task.port)
            for prompt in waiting:
                check(task.loads(await connection.ask(task.dumps(body(prompt)))))
            connection.transport.close()

        await asyncio.gather(*(worker() for _ in range(task.in_flight)))

    asyncio.run(run())


def with_backend(task: Task) -> None:
    """Ask with the whole backend."""
    from benchcheck.backends import ModelSpec
    from benchcheck.backends.server import ServerBackend
    from benchcheck.screen.readings import Reading
    from benchcheck.settings import EngineSettings

    settings = EngineSettings(
        endpoints=(f"http://127.0.0.1:{task.port}/v1",), served_name="null", in_flight=task.in_flight
    )
    backend = ServerBackend(ModelSpec("embedded:large", preset="benchcheck-2026", settings=settings))
    read = sum(isinstance(outcome.result, Reading) for outcome in backend.read(prompts(task.count)))
    assert read == task.count, f"{read} of {task.count} prompts were read"
    backend.close()


def with_frames(task: Task) -> None:
    """Ask with the whole backend, 32 frames of about 37 kB each and three questions on each video."""
    from benchcheck.backends import ModelSpec
    from benchcheck.backends.server import ServerBackend
    from benchcheck.screen.readings import Reading
    from benchcheck.settings import EngineSettings

    url = f"http://127.0.0.1:{task.port}/v1"
    settings = EngineSettings(endpoints=(url,), served_name="null", in_flight=8)
    backend = ServerBackend(ModelSpec("embedded:large", preset="benchcheck-2026", settings=settings))
    read = backend.read(frame_prompts(FRAMES.name, task.count))
    assert sum(isinstance(outcome.result, Reading) for outcome in read) == task.count
    backend.close()


def frame_prompts(folder: str, count: int) -> Iterator[Prompt]:
    """Yield prompts of 32 frames, three to a video, whose files are bytes that begin and end as a JPEG does.

    The first round writes them; only later rounds tell what reading them costs.
    """
    text = render_text(INTROS[Sight.FRAMES], "What is shown?", OPTIONS)
    for number in range(count):
        frames = tuple(f"{folder}/{number // 3}_{k}.jpg" for k in range(32))
        if number % 3 == 0 and not os.path.exists(frames[0]):
            for frame in frames:
                with open(frame, "wb") as file:
                    file.write(b"\xff\xd8\xff" + os.urandom(37_000) + b"\xff\xd9")
        yield Prompt(f"v{number}", 3, (0, 1, 2, 3), text, frames, f"{number // 3}")


def plain_dumps(value: Any) -> bytes:
    """Return JSON by the standard library."""
    return json.dumps(value).encode()


def measure(ask: Callable[[Task], None], task: Task) -> tuple[float, float]:
    """Return seconds of this process's CPU and of the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    ask(task)
    return time.process_time() - cpu, time.perf_counter() - wall


def variants() -> dict[str, tuple[Callable[[Task], None], Any, Any]]:
    """Return what can be measured here, by name: how it asks, how it writes and reads JSON."""
    clients = {
        "backend": (with_backend, "aiohttp"),
        "backend, 32 frames": (with_frames, "aiohttp"),
        "aiohttp": (with_aiohttp, "aiohttp"),
        "httpx": (with_httpx, "httpx"),
        "http.client": (with_threads, "http"),
        "httptools": (with_protocol, "httptools"),
    }
    found: dict[str, tuple[Callable[[Task], None], Any, Any]] = {}
    for name, (ask, module) in clients.items():
        if importlib.util.find_spec(module) is None:
            continue
        found[name] = (ask, plain_dumps, json.loads)
        if not name.startswith("backend") and importlib.util.find_spec("orjson"):
            import orjson

            found[f"{name} + orjson"] = (ask, orjson.dumps, orjson.loads)
    return found


def main() -> None:
    """Measure every variant and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=4000)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of variants, comma-separated")
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, cores[-1]), daemon=True)
    server.start()
    port = here.recv()
    os.sched_setaffinity(0, {cores[0]})
    wanted = [name for name in variants() if not given.only or name in given.only.split(",")]
    best: dict[str, tuple[float, float]] = {}
    for _ in range(given.rounds):
        for name in wanted:
            ask, dumps, loads = variants()[name]
            count = given.prompts // (20 if ask is with_frames else 1)
            cpu, wall = measure(ask, Task(port, count, given.in_flight, dumps, loads))
            rates = (count / cpu, count / wall)
            best[name] = max(rates, best.get(name, rates))
    server.terminate()
    server.join()
    report = {name: {"per_core": per_core, "wall": clock} for name, (per_core, clock) in best.items()}
    one_x = report.get("httpx", report[wanted[0]])["per_core"]
    print(
        f"{given.prompts} prompts, {given.in_flight} at once, replies of {len(reply())} bytes, best of {given.rounds}"
    )
    print(f"{'client':24} {'prompts/s per core':>18} {'wall prompts/s':>15} {'x httpx':>8}")
    for name, one in sorted(report.items(), key=lambda pair: -pair[1]["per_core"]):
        print(f"{name:24} {one['per_core']:18.0f} {one['wall']:15.0f} {one['per_core'] / one_x:8.1f}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)


if __name__ == "__main__":
    main()
