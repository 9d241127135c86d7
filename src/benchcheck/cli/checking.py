"""Commands that check what reads and what was read: doctor, reread."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import (
    ASKING,
    BackendName,
    Endpoints,
    OneStep,
    Settings,
    StudyFolder,
    app,
    asked_of,
    given_settings,
    open_study,
)
from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from benchcheck.doctor.findings import Diagnosis
    from benchcheck.run.local import Asked
    from benchcheck.settings import EngineSettings

__all__ = ["doctor", "reread"]

_SECOND = "A second engine on the same prompts"


@app.command(rich_help_panel=ASKING)
def doctor(
    study: Annotated[Path | None, typer.Argument(metavar="STUDY", help="A study: its models are examined.")] = None,
    model: Annotated[
        str, typer.Option(metavar="MODEL", help="Instead of a study: a folder, HUB_ID@COMMIT, or embedded:large.")
    ] = "",
    role: Annotated[str, typer.Option(metavar="ROLE", help="Of a study's models only this one: 8b or 2b.")] = "",
    kit: Annotated[
        str,
        typer.Option(
            metavar="KIT", help="What is asked: 8b or 2b (real models), world (embedded ones), auto (by the model)."
        ),
    ] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Text alone, no pictures.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the findings to this file, too.")
    ] = None,
    backend: BackendName = "transformers",
    endpoint: Endpoints = None,
    settings: Settings = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|URL",
            help="Compare with this engine, or with the server at this URL; may be given several times.",
            rich_help_panel=_SECOND,
        ),
    ] = None,
    against_set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of that engine, such as quantization=fp8; may be given several times.",
            rich_help_panel=_SECOND,
        ),
    ] = None,
) -> None:
    """Check a model and what serves it with questions whose answers are known; exit code 1 when a check fails."""
    from benchcheck.backends import check_backend
    from benchcheck.config import engine_settings
    from benchcheck.console import note
    from benchcheck.doctor.findings import closing_line
    from benchcheck.doctor.visit import Wish, config_of, visit, visit_study
    from benchcheck.run.local import Asked
    from benchcheck.settings import EngineSettings

    if (study is None) == (not model):
        raise UsageError("doctor examines a study's models or one model. Cure: name a STUDY, or --model, not both")
    if role and study is None:
        raise UsageError("--role chooses among a study's models. Cure: name a STUDY, or leave it out")
    check_backend(backend)
    opened = open_study(study, 0) if study is not None else None
    if opened is not None:
        asked = asked_of(opened, backend, endpoint, settings)
    else:
        given = given_settings(backend, endpoint, settings)
        asked = Asked(backend, engine_settings(EngineSettings(), os.environ, given))
    others = tuple(_other(name, asked.settings, against_set or []) for name in against or [])
    wish = Wish(asked, others, kit, quick, role, lambda what: note(f"asking {what} …"))
    name, _, revision = (model, "", "") if Path(model).is_dir() else model.partition("@")
    if opened is not None:
        found = visit_study(opened, wish)
    else:
        config = config_of(name, revision)
        found = iter([visit(config, config.steps[0], ".", wish)])
    kept = [*([opened.doctor_file] if opened is not None else []), *([json_file] if json_file else [])]
    diagnoses = _shown(found, kept)
    print(closing_line(diagnoses))
    if not all(diagnosis.sound for diagnosis in diagnoses):
        raise typer.Exit(1)


def _shown(found: "Iterator[Diagnosis]", files: list[Path]) -> "list[Diagnosis]":
    """Show and keep each diagnosis before the next model is opened, which may be refused."""
    from benchcheck.console import tell
    from benchcheck.files import publish
    from benchcheck.run.work import now

    diagnoses: list[Diagnosis] = []
    for diagnosis in found:
        diagnoses.append(diagnosis)
        tell(_heading(diagnosis))
        tell(_table(diagnosis))
        row = {"at": now(), "models": [one.row() for one in diagnoses]}
        for path in files:
            with publish(path) as temporary:
                temporary.write_text(json.dumps(row, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return diagnoses


def _other(name: str, settings: "EngineSettings", given: list[str]) -> "Asked":
    """Return what `--against` names: a backend, or the server at a URL."""
    from dataclasses import replace

    from benchcheck.backends import check_backend
    from benchcheck.config import engine_settings
    from benchcheck.run.local import Asked

    if name.startswith(("http://", "https://")):
        # The key and the name at one server are not those at another unless --against-set says so.
        settings = replace(settings, served_name="", api_key="")
        return Asked("server", engine_settings(settings, {}, [f"endpoints={[name]!r}", *given]))
    check_backend(name)
    return Asked(name, engine_settings(settings, {}, given))


def _heading(diagnosis: "Diagnosis") -> str:
    """What was examined, in a line."""
    about = diagnosis.about
    engine = " ".join(about[key] for key in ("engine", "version", "dtype", "device") if about.get(key))
    revision = about.get("revision", "")[:19]
    return f"{about['model']} {revision} · {engine or about['backend']} · {about['kit']}"


def _table(diagnosis: "Diagnosis") -> object:
    """The findings, one row each; what did not pass says what was wanted and the cure."""
    from rich.markup import escape
    from rich.table import Table

    colours = {"pass": "green", "warn": "yellow", "fail": "red", "not applicable": "dim"}
    table = Table(box=None, pad_edge=False)
    for name in ("check", "verdict", "measured"):
        table.add_column(name, overflow="fold")
    for finding in diagnosis.findings:
        verdict = finding.verdict.value
        lines = [escape(finding.measured)]
        if finding.cure:
            lines += [f"wanted: {escape(finding.wanted)}", f"cure: {escape(finding.cure)}"]
        table.add_row(finding.name, f"[{colours[verdict]}]{verdict}[/]", "\n".join(lines))
    return table


@app.command(rich_help_panel=ASKING)
def reread(
    study: StudyFolder,
    share: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Share of the answered items of each benchmark and step; at least 20 are read."
        ),
    ] = 0.02,
    step: OneStep = 0,
    again: Annotated[bool, typer.Option("--again", help="Ask once more, too, what was read again before.")] = False,
    backend: BackendName = "transformers",
    endpoint: Endpoints = None,
    settings: Settings = None,
) -> None:
    """Read a sample of the answered items again, and say how far readings move and which verdicts that could turn."""
    from benchcheck.console import Bars, noise_shown, tell
    from benchcheck.report.noise import noise_found
    from benchcheck.run.reread import reread as read_again

    opened, bars = open_study(study, step), Bars()
    asked = asked_of(opened, backend, endpoint, settings)
    try:
        counts = read_again(opened, asked, share=share, only=step, again=again, watch=bars)
    finally:
        bars.close()
    for shown in noise_shown(noise_found(opened)):
        tell(shown)
    print(f"{sum(counts.values())} items read again")
