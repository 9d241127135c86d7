"""Commands on the pool: annotation files become items, and what is in them."""

import contextlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, InOrder, StudyFolder, app
from benchcheck.errors import RunError

__all__ = ["pool_app", "pool_build", "pool_check"]

pool_app = typer.Typer(cls=InOrder, help="Annotation files become items.", no_args_is_help=True)
app.add_typer(pool_app, name="pool", rich_help_panel=MAKING)


@pool_app.command("build")
def pool_build(
    study: StudyFolder,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Go on where counts differ from those that a spec expects.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=0, max=512, help="Processes that map long files; 0: one a core, 16 at most.")
    ] = 0,
) -> None:
    """Read the annotation files named in benchcheck.toml and write the pool of items."""
    from benchcheck.console import note, pool_table, tell, warn
    from benchcheck.pool.building.build import build_pool
    from benchcheck.study import Study

    with how_far() as progress:
        summary = build_pool(Study.open(study), accept_drift=accept_drift, workers=workers, progress=progress)
    tell(pool_table(summary))
    for text in summary.warnings:
        warn(text)
    print(f"{summary.rows} items, {summary.mcq} of them multiple-choice")
    typed = shlex.quote(str(study))
    note(f"Next: benchcheck pool check {typed}, then benchcheck frames extract {typed}")


@pool_app.command("check")
def pool_check(
    study: StudyFolder,
    bench: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Benchmark to show; may be given several times.")
    ] = None,
    as_json: Annotated[
        str, typer.Option("--json", metavar="FILE", help="Write all figures as JSON; - is standard output, alone.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 on blocking issues, drift, changed files or repeats.")
    ] = False,
) -> None:
    """Say what the pool shows about each benchmark without any model: letters, lengths, repeats, overlaps."""
    from benchcheck.cli.check_table import check_json, check_shown, write_check
    from benchcheck.console import note, tell
    from benchcheck.pool.checking.check import check_pool
    from benchcheck.study import Study

    check = check_pool(Study.open(study))
    check = check.named(bench) if bench else check
    if as_json == "-":
        print(check_json(check))
    else:
        for shown in check_shown(check):
            tell(shown)
    if as_json and as_json != "-":
        write_check(check, Path(as_json))
        note(f"{as_json} written")
    if strict and check.faults:
        more = "; …" if len(check.faults) > 5 else ""
        faults = "1 fault" if len(check.faults) == 1 else f"{len(check.faults)} faults"
        raise RunError(f"{faults}: {'; '.join(check.faults[:5])}{more}")


@contextlib.contextmanager
def how_far() -> Iterator[Callable[[str, int], None]]:
    """Say on a terminal how far a build is, when it is a long one."""
    from rich.console import Console
    from rich.markup import escape

    done, console = 0, Console(stderr=True, highlight=False)
    line = console.status("")

    def count(bench: str, items: int) -> None:
        nonlocal done
        done += items
        if done > 10_000 and console.is_terminal:
            line.start()
            line.update(f"{escape(bench)}: {done:,} items of the pool")

    try:
        yield count
    finally:
        line.stop()
