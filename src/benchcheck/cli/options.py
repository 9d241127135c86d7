"""What commands share: the app, its options, and how a study is opened for a command."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from benchcheck.run.local import Asked
    from benchcheck.run.plan import Survey
    from benchcheck.screen.verdicts import Flags
    from benchcheck.study import Study

__all__ = [
    "ASKING",
    "CARRYING",
    "ENGINE",
    "MAKING",
    "PARTS",
    "SEEING",
    "SERVERS",
    "TRYING",
    "WHERE",
    "BackendName",
    "Endpoints",
    "GpuMemory",
    "Gpus",
    "InFlight",
    "InOrder",
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
    "given_settings",
    "keys_of",
    "open_study",
    "print_totals",
    "wanted_items",
]

_ORDER = (
    *("init", "pool", "videos", "frames", "benchmarks", "places"),
    *("add", "build", "prepare", "extract", "check", "unpack"),
    *("doctor", "plan", "screen", "status", "reread"),
    *("assemble", "report"),
    *("package", "pack", "merge", "upload", "download", "import-pool"),
    *("demo", "controls"),
    *("serve", "work"),
)


class InOrder(TyperGroup):
    """Lists the commands as a study meets them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in that order."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)


app = typer.Typer(
    cls=InOrder,
    help="Find the items of a video benchmark that can be answered without watching.",
    epilog="To see it work on your CPU: benchcheck demo",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MAKING = "Make a study"
ASKING = "Ask the models"
SEEING = "See the results"
CARRYING = "Carry it to another machine, and the results home"
TRYING = "Try it on a benchmark whose truth is known"
PARTS = "Parts of a run, each by itself"
"""Panels of commands in `benchcheck --help`."""

ENGINE = "The engine (--set has every setting: docs/engines.md)"
WHERE = "Where it runs"
SERVERS = "vLLM servers that this command starts"
"""Panels of options."""

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder.", show_default=False)]
BackendName = Annotated[
    str,
    typer.Option(
        *("--engine", "--backend"),
        metavar="NAME",
        help="What reads the prompts: transformers, vllm, server, or scripted (no model).",
        rich_help_panel=ENGINE,
    ),
]
Endpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="A server to ask, such as http://host:8001/v1; may be given several times.",
        rich_help_panel=ENGINE,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any setting of the engine, such as quantization=fp8; may be given several times.",
        rich_help_panel=ENGINE,
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        min=0,
        max=256,
        metavar="N",
        help="Worker processes on this machine; 0 is one per GPU, or per eight endpoints.",
        rich_help_panel=WHERE,
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option("--gpus", metavar="N", help="GPUs of this machine to use. \\[default: all]", rich_help_panel=WHERE),
]
InFlight = Annotated[
    int | None,
    typer.Option(
        "--in-flight",
        metavar="N",
        help="Prompts asked at once of a server, or read ahead by vllm. \\[default: by the step]",
        rich_help_panel=ENGINE,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", metavar="N", help="GPU i is served on this port + i. \\[default: 8001]", rich_help_panel=SERVERS
    ),
]
GpuMemory = Annotated[
    float | None,
    typer.Option(
        "--gpu-memory",
        metavar="SHARE",
        help="Share of each GPU's memory that vLLM takes. \\[default: 0.85]",
        rich_help_panel=ENGINE,
    ),
]
MaxSequences = Annotated[
    int | None,
    typer.Option(
        "--max-sequences",
        metavar="N",
        help="Prompts that vLLM computes at once. \\[default: by the step]",
        rich_help_panel=ENGINE,
    ),
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="FILE",
        help="Python interpreter that has vLLM, such as .venv-vllm/bin/python.",
        rich_help_panel=SERVERS,
    ),
]
Vllm = Annotated[
    str | None,
    typer.Option(
        "--vllm",
        metavar="COMMAND",
        help="Command that starts vLLM. \\[default: vllm beside this Python or on PATH]",
        rich_help_panel=SERVERS,
    ),
]
OneStep = Annotated[int, typer.Option("--step", metavar="K", help="Only this step, 1 to 6; 0 is all.")]
Pilot = Annotated[
    int, typer.Option("--pilot", min=0, metavar="N", help="Only this many items of each benchmark; 0 is all.")
]


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

    return Asked(
        backend, engine_settings(study.config.engine, os.environ, given_settings(backend, endpoints, settings))
    )


def given_settings(backend: str, endpoints: list[str] | None, settings: list[str] | None) -> list[str]:
    """Return the settings that flags give, as `key=value`.

    Raises:
        UsageError: endpoints for an engine that asks none: it would run here instead, without a word.
    """
    if endpoints and backend != "server":
        raise UsageError(f"--endpoint names servers, but --engine is {backend}. Cure: --engine server")
    return [*(settings or []), *([f"endpoints={endpoints!r}"] if endpoints else [])]


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
