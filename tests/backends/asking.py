"""Prompts for servers, and what becomes of them."""

from collections.abc import Callable
from typing import Any, ClassVar

from backends.endpoint import MODEL, VOCABULARY, Reply, Request, Server, distribution
from benchcheck.backends import ModelSpec, server
from benchcheck.screen.prompts import INTROS, LETTERS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Failure, Reading, log_sum_exp
from benchcheck.screen.steps import Sight
from benchcheck.settings import EngineSettings


class ServerBackend(server.ServerBackend):
    """Closed when the test ends, however it ends: the fixture `serve` does it."""

    opened: ClassVar[list[server.ServerBackend]] = []

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.opened.append(self)


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


def whole(reply: bytes, status: int = 200) -> Callable[[Request], Reply]:
    return lambda request: Reply(reply, status)
