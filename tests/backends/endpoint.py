"""A server that does what a test says: honest by default, hostile where told, dead and alive again on demand.

It speaks HTTP over plain sockets in a thread of its own, so that it can break off in the middle of a body.
"""

import asyncio
import json
import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchcheck.backends.vocabulary import Vocabulary, load_vocabulary
from benchcheck.screen.prompts import LETTERS

MODEL = "embedded:large"
HANG = "hang"
RESET = "reset"
DIE = "die"


def vocabulary() -> Vocabulary:
    """The tokenizer of the checkpoint that the server pretends to serve."""
    found = load_vocabulary(MODEL, "")
    assert isinstance(found, Vocabulary)
    return found


VOCABULARY = vocabulary()


@dataclass(frozen=True)
class Raw:
    """Bytes to send as they are; the connection closes behind them."""

    data: bytes


@dataclass(frozen=True)
class Reply:
    """A reply with a status, a body and headers."""

    body: bytes
    status: int = 200
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> dict[str, Any]:
        """The body."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The text of the user's turn."""
        content = self.json["messages"][0]["content"]
        return content if isinstance(content, str) else content[-1]["text"]

    @property
    def frames(self) -> list[str]:
        """The frames' data URLs."""
        content = self.json["messages"][0]["content"]
        return [] if isinstance(content, str) else [part["image_url"]["url"] for part in content[:-1]]

    @property
    def is_specimen(self) -> bool:
        """Whether it is the probe's own prompt."""
        return "a cat" in self.text and "a dog" in self.text


def distribution(text: str) -> dict[str, float]:
    """Log-probabilities of every letter's tokens and of others behind a prompt: the same for the same text."""
    rng = random.Random(text)
    ids = [number for letter in LETTERS for number in VOCABULARY.variants[letter]]
    tokens = [VOCABULARY.texts[number] for number in ids] + [" cat", " dog", "x"]
    scores = {
        token: rng.gauss(0, 1) - (0 if token in (" A", " B", " C", " D", " E") else 6) for token in tokens
    }  # fmt: skip
    total = math.log(math.fsum(map(math.exp, scores.values())))
    return {token: score - total for token, score in scores.items()}


def completion(tokens: list[tuple[str | None, Any]], prompt_tokens: int = 9, cached: int | None = None) -> bytes:
    """A chat completion that lists tokens."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in tokens]
    choice = {"index": 0, "message": {"role": "assistant", "content": "A"}, "finish_reason": "length"}
    details = None if cached is None else {"cached_tokens": cached}
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "prompt_tokens_details": details}
    choice |= {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}} if top else {"logprobs": None}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def refusal(status: int, message: str) -> Reply:
    """An error as vLLM writes it."""
    return Reply(
        json.dumps({"error": {"message": message, "type": "BadRequestError", "code": status}}).encode(), status
    )


Answer = Reply | Raw | str
Behaviour = Callable[[Request], Answer | None]


@dataclass
class Server:
    """A server on a port of its own.

    `behave` is asked first for each chat completion; None leaves it to the honest answer.
    """

    behave: Behaviour = lambda request: None
    models: Answer | None = None
    served: str = MODEL
    by_id: bool = True
    most: int = 20
    version: str | None = "0.32.0"
    tokenizer_shift: int = 0
    continues: bool = True
    counts: bool = True
    key: str = ""
    delay: float = 0.0
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self._now = 0
        self._connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.revive()

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> list[Request]:
        """Completions other than the probe's."""
        return [one for one in self.requests if one.path.endswith("/chat/completions") and not one.is_specimen]

    def revive(self) -> None:
        """Listen, on the port that it had before."""

        async def start() -> None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 26)
            self.port = self._server.sockets[0].getsockname()[1]

        asyncio.run_coroutine_threadsafe(start(), self._loop).result()

    def kill(self) -> None:
        """Stop listening and reset every connection."""
        asyncio.run_coroutine_threadsafe(self._kill(), self._loop).result()

    async def _kill(self) -> None:
        if self._server is not None:
            self._server.close()
        self._server = None
        for writer in self._writers:
            writer.transport.abort()

    def close(self) -> None:
        """End it."""

        async def end() -> None:
            await self._kill()
            rest = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self._connections += 1
        number = self._connections
        try:
            while await self._exchange(reader, writer, number):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            self._writers.discard(writer)
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, body, number)
        self.requests.append(request)
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            return await self._send(self._answer(request), writer)
        finally:
            self._now -= 1

    async def _send(self, answer: Answer, writer: asyncio.StreamWriter) -> bool:
        if answer == HANG:
            await asyncio.sleep(3600)
        if answer == DIE:
            await self._kill()
            return False
        if answer == RESET:
            writer.transport.abort()
            return False
        if isinstance(answer, Raw):
            writer.write(answer.data)
            await writer.drain()
            return False
        assert isinstance(answer, Reply)
        lines = [f"HTTP/1.1 {answer.status} X", f"Content-Length: {len(answer.body)}", *answer.headers, "", ""]
        writer.write("\r\n".join(lines).encode() + answer.body)
        await writer.drain()
        return True

    def _answer(self, request: Request) -> Answer:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return refusal(401, "Unauthorized")
        if request.path == "/v1/models":
            listed = {"object": "list", "data": [{"id": self.served, "owned_by": "vllm", "root": "/models/x"}]}
            return self.models or Reply(json.dumps(listed).encode())
        if request.path == "/version" and self.version:
            return Reply(json.dumps({"version": self.version}).encode())
        if request.path == "/tokenize":
            ids = [number + self.tokenizer_shift for number in VOCABULARY.encode(request.json["prompt"])]
            return Reply(json.dumps({"tokens": ids}).encode())
        if request.path == "/v1/chat/completions":
            return self.behave(request) or self.honest(request)
        return refusal(404, "Not Found")

    def honest(self, request: Request) -> Reply:
        """Answer as a well-made server does."""
        asked, told = request.json, distribution(request.text)
        if asked["model"] != self.served:
            return refusal(404, f"The model `{asked['model']}` does not exist.")
        ids, wide = asked.get("logprob_token_ids") or [], asked.get("top_logprobs", 0)
        if len(ids) > 128:
            return refusal(400, "Requested logprob_token_ids of length 129, which is greater than max allowed: 128")
        if wide > self.most:
            return refusal(400, f"Requested sample logprobs of {wide}, which is greater than max allowed: {self.most}")
        ranked = sorted(told.items(), key=lambda pair: -pair[1])
        if ids and self.by_id:
            tokens = dict([ranked[0], *((VOCABULARY.texts[number], told[VOCABULARY.texts[number]]) for number in ids)])
            listed = list(tokens.items())
        else:
            listed = ranked[:wide]
        turns = asked["messages"][1:]
        prompt_tokens = len(VOCABULARY.encode(request.text)) + 8 + 4 * len(request.frames)
        prompt_tokens += sum(2 * turn["content"].count("Answer:") for turn in turns)
        prompt_tokens += 5 if turns and not (self.continues and asked.get("continue_final_message")) else 0
        return Reply(completion(listed, prompt_tokens if self.counts else 0, cached=4))
