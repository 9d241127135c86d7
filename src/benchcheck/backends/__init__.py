"""Backends read prompts. The protocol has one method; the table says which module holds which backend.

A backend never decides: it returns the letters' log-probabilities or the reason why there are none.
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, cast

from benchcheck.errors import UsageError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading
from benchcheck.settings import EngineSettings

__all__ = ["BACKENDS", "SHAPED", "Backend", "Engine", "ModelSpec", "Outcome", "check_backend", "open_backend"]

BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "server": "benchcheck.backends.server:ServerBackend",
        "vllm": "benchcheck.backends.vllm:VllmBackend",
        "transformers": "benchcheck.backends.transformers:open_checkpoint",
        "scripted": "benchcheck.backends.scripted:ScriptedBackend",
    }
)
"""Name to `module:class`; the module is imported when the backend is opened."""

SHAPED = frozenset({"server", "vllm"})
"""Backends that are opened anew when a step shows another number of frames: an engine without frames has no vision
tower, and bounds on what is asked at once differ."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Which checkpoint a role of the ladder uses, and how letters are read from it."""

    model: str
    """A folder, a hub id, or `embedded:large` / `embedded:small`."""
    revision: str = ""
    """A hub commit, or `sha256:…` of a local folder's files; empty accepts whatever lies in a local folder."""
    preset: str = "exact"
    """`exact` reads every letter; `benchcheck-2026` reads the top 20 tokens (protocol 5)."""
    seed: int = 0
    """Used by the scripted backend only."""
    images: int = 0
    """Frames of a prompt, for the backends in `SHAPED`; others are opened with 0 and take any number."""
    image_side: int = 448
    """The longest side of a frame, in pixels."""
    settings: EngineSettings = EngineSettings()
    """How it runs."""
    cache: str = ""
    """The hub cache; the library's own when empty."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What answered: recorded on every row, never part of the step key (protocol 6)."""

    name: str
    version: str
    dtype: str
    device: str
    revision: str
    """The checkpoint's revision as loaded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reading of prompt number `index` of a `read` call, or why there is none."""

    index: int
    result: Reading | Failure


class Backend(Protocol):
    """Reads prompts; opened once per model and closed by `close`."""

    engine: Engine

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt, in any order; neighbours that share a prefix come back to back.

        Prompts are taken one by one, a bounded number ahead, and only in the thread that asks for outcomes: taking one
        may read the study's files.

        Raises:
            BackendError: the engine stopped answering; outcomes already yielded stand.
        """
        ...

    def close(self) -> None:
        """Give back memory and processes."""
        ...


def check_backend(name: str) -> None:
    """Refuse the name of a backend that there is not, without importing any.

    Raises:
        UsageError: there is no such backend.
    """
    if name not in BACKENDS:
        raise UsageError(f"backend {name!r} does not exist. Allowed: {', '.join(BACKENDS)}")


def open_backend(name: str, spec: ModelSpec) -> Backend:
    """Open backend `name` on a checkpoint.

    Raises:
        UsageError: there is no such backend.
        MissingExtraError: its packages are not installed.
        ModelRefusedError: the checkpoint cannot be read letter by letter.
    """
    check_backend(name)
    module, _, attribute = BACKENDS[name].partition(":")
    opener = getattr(importlib.import_module(module), attribute)
    return cast(Backend, opener(spec))
