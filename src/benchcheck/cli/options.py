"""What commands share: the app, its options, and how a study is opened for a command."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from benchcheck.run.local import Asked
    from benchcheck.run.plan import Survey
    from benchcheck.screen.verdicts import Flags
    from benchcheck.study import Study

__all__ = [
    "BackendName",
    "Endpoints",
    "GpuMemory",
    "Gpus",
    "InFlight",
    "MaxSequences",
    "OneStep",
    "Pilot",
    "Port",
    "Python",
    "Settings",
    "StudyFolder",
    "Vllm",
    "Workers",
    "app",
    "asked_of",
    "keys_of",
    "open_study",
    "print_totals",
    "wanted_items",
]

app = typer.Typer(
    help="Find the items of a video benchmark that can be answered without watching.",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder.", show_default=False)]
BackendName = Annotated[
    str,
    typer.Option("--backend", "--engine", help="What reads the prompts: transformers, vllm, server or scripted."),
]
Endpoints = Annotated[
    list[str] | None,
    typer.Option("--endpoint", help="A server to ask, such as http://host:8001/v1; may be given several times."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="A key of the [engine] table, such as max_sequences=64; may be given several times."),
]
Workers = Annotated[
    int, typer.Option("--workers", min=0, max=256, help="Worker processes here; 0 is one a GPU or endpoint.")
]
Gpus = Annotated[int | None, typer.Option("--gpus", help="GPUs of this machine to use; 0 is all.")]
InFlight = Annotated[int | None, typer.Option("--in-flight", help="Prompts asked at once of a server; 0 by step.")]
Port = Annotated[int | None, typer.Option("--port", help="GPU i is served on this port + i; 8001.")]
GpuMemory = Annotated[float | None, typer.Option("--gpu-memory", help="Share of a GPU's memory; 0.85.")]
MaxSequences = Annotated[int | None, typer.Option("--max-sequences", help="Prompts computed at once; 0 by step.")]
Python = Annotated[str | None, typer.Option("--python", help="Interpreter that has vLLM.", show_default=False)]
Vllm = Annotated[str | None, typer.Option("--vllm", help="Command that starts vLLM.", show_default=False)]
OneStep = Annotated[int, typer.Option("--step", help="Only this step, 1 to 6; 0 is all.")]
Pilot = Annotated[int, typer.Option("--pilot", min=0, help="Only this many items of each benchmark; 0 is all.")]


def open_study(folder: Path, step: int) -> "Study":
    """Open a study that has this step; 0 is any.

    Raises:
        UsageError: the folder is no study, or the study has no such step.
        ConfigError: its benchcheck.toml is wrong.
    """
    from benchcheck.run.plan import step_index
    from benchcheck.study import Study

    study = Study.open(folder)
    if step != 0:
        step_index(study, step)
    return study


def asked_of(study: "Study", backend: str, endpoints: list[str] | None, settings: list[str] | None) -> "Asked":
    """Return which backend reads, and how: flags win over the environment, that over the study's `[engine]`.

    Raises:
        UsageError: a setting that does not exist, or a value that is not allowed.
    """
    from benchcheck.config import engine_settings
    from benchcheck.run.local import Asked

    given = [*(settings or []), *([f"endpoints={endpoints!r}"] if endpoints else [])]
    return Asked(backend, engine_settings(study.config.engine, os.environ, given))


def keys_of(settings: list[str] | None, **flags: object) -> list[str]:
    """Return `--set` flags with those behind them that have a name of their own; None is one that was not given."""
    return [*(settings or []), *(f"{key}={json.dumps(value)}" for key, value in flags.items() if value is not None)]


def wanted_items(study: "Study", state: "Survey", pilot: int) -> "Flags | None":
    """Flag the items of a pilot; None is all."""
    from benchcheck.run.plan import pilot_flags

    return pilot_flags(state.pool, pilot, study.config.protocol.seed) if pilot else None


def print_totals(study: "Study", state: "Survey", step: int = 0, pilot: int = 0) -> None:
    """Print the three totals, REMAINING_TOTAL last (protocol 8)."""
    from benchcheck.run.plan import totals

    counts = totals(state, step, wanted_items(study, state, pilot))
    print(f"WAITING_TOTAL={counts.waiting}\nFAILED_TOTAL={counts.failed}\nREMAINING_TOTAL={counts.remaining}")
