"""The command that adds a benchmark of one's own."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.pools import pool_app
from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from benchcheck.pool.adding.proposal import Proposal

__all__ = ["pool_add"]


@pool_app.command("add")
def pool_add(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Annotation files or patterns; an lmms-eval task.yaml too.", show_default=False
        ),
    ],
    study: Annotated[Path | None, typer.Option(metavar="STUDY", help="Add it to this study's benchcheck.toml.")] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="KEY=VALUE",
            help="Say what a field is, such as gold=answer:index1 or options=opt_*; may be given several times.",
        ),
    ] = None,
    header: Annotated[str, typer.Option(metavar="A,B,…", help="Names of the columns of a table without header.")] = "",
    bench: Annotated[
        str, typer.Option(metavar="NAME", help="The benchmark's name. \\[default: the task's or the file's]")
    ] = "",
    spec: Annotated[
        Path | None,
        typer.Option(metavar="OUT.toml", help="The spec to write. \\[default: NAME.toml, in the study if any]"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a spec that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON; asks nothing.")] = False,
) -> None:
    """Guess how a file is read, show three items, and write the spec for you to keep."""
    from benchcheck.cli.proposals import asked_for, proposal_json, proposal_shown
    from benchcheck.console import tell
    from benchcheck.pool.adding.guess import given_mapping
    from benchcheck.pool.adding.proposal import Asked, propose

    _check_places(study, spec)
    columns = tuple(name.strip() for name in header.split(",")) if header else ()
    found = propose(Asked(files=tuple(files), given=given_mapping(mapping or []), bench=bench, header=columns))
    path = spec or (study or Path()) / f"{found.bench}.toml"
    if not as_json:
        for part in proposal_shown(found):
            tell(part)
    sure = not found.doubts and (found.mcq > 0 or not found.files)
    written = sure and _write(found, study, path, force, ask=not (yes or as_json))
    if as_json:
        print(proposal_json(found, str(path) if written else ""))
    if found.doubts:
        raise UsageError(asked_for(found.doubts))
    if not sure:
        code = max(found.issues, key=lambda code: found.issues[code])
        raise UsageError(f"{found.examples[code]}: {code}. No item of the sample can be screened. Cure: --map …")
    if not as_json:
        _next(found, study, path, written)


def _check_places(study: Path | None, spec: Path | None) -> None:
    """Refuse a study that is none, and a spec without its suffix, before anything is read."""
    from benchcheck.study import Study

    if study is not None:
        Study.open(study)
    if spec is not None and spec.suffix != ".toml":
        raise UsageError(f"--spec {spec}: a spec is known by its suffix. Cure: --spec {spec}.toml")


def _write(found: "Proposal", study: Path | None, path: Path, force: bool, ask: bool) -> bool:
    """Write the spec and the study's entry, on a terminal when the user says yes; what cannot be is said before."""
    from benchcheck.pool.adding.proposal import add_to_study, check_free, with_entry, write_spec

    if study is not None:
        with_entry(found, study, path)
    check_free(path, force)
    if ask and _on_terminal():
        and_entry = f" and add it to {study}/benchcheck.toml" if study else ""
        try:
            right = typer.confirm(f"\nIs this right? Write {path}{and_entry}")
        except typer.Abort:
            print()
            raise KeyboardInterrupt from None
        if not right:
            return False
    if study is None:
        write_spec(found, path, force)
    else:
        add_to_study(found, study, path, force)
    return True


def _on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _next(found: "Proposal", study: Path | None, path: Path, written: bool) -> None:
    """Say what was written and what to type next."""
    from benchcheck.console import note

    if not written:
        note("Nothing was written. What is wrong can be said with --map KEY=VALUE: benchcheck pool add --help")
        return
    print(f"{path} written" + (f", {found.bench} added to {study}/benchcheck.toml" if study else ""))
    files = "".join(f" --file {shlex.quote(str(file))}" for file in found.files)
    init = "" if study else f"benchcheck init STUDY --spec {shlex.quote(str(path))}{files}, then "
    build = f"benchcheck pool build {shlex.quote(str(study)) if study else 'STUDY'}"
    pin = "" if files else f'write revision = "<the dataset\'s commit>" below [source] in {path}, then '
    note(f"Next: {pin}{init}{build}")
