"""Commands that carry a study to another machine, and its results home: package, pack, merge."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import CARRYING, StudyFolder, app, print_totals
from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from benchcheck.study import Study
    from benchcheck.transfer.merge import Merged

__all__ = ["check_arrived", "merge", "pack", "package"]


def check_arrived(study: "Study") -> None:
    """Compare a study that came as a package with what it was, and say what differs.

    Raises:
        ConfigError: it would ask something else than the package did.
        StudyError: its package.json or pool is not what came.
    """
    from benchcheck.study import PACKAGE_MARK

    if not study.package_file.exists() and not (study.root / PACKAGE_MARK).exists():
        # Nothing of the transfer room is loaded for a study that came as none.
        return
    from benchcheck.console import warn
    from benchcheck.transfer.package import arrived

    for line in arrived(study):
        warn(line)


@app.command(rich_help_panel=CARRYING)
def package(
    study: StudyFolder,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder that is not there yet.")],
    steps: Annotated[
        str, typer.Option(metavar="K,K", help="Steps that run there, such as 1,2,3; all when left out.")
    ] = "",
    frames: Annotated[bool, typer.Option("--frames", help="Put the frames into it, as tar shards.")] = False,
    answers: Annotated[
        bool, typer.Option("--answers/--no-answers", help="Whether the rows that are here travel, too.")
    ] = True,
) -> None:
    """Make a folder that runs steps of a study on a machine that has only it and the frames."""
    from benchcheck.cli.shards import ShardsBar
    from benchcheck.console import note, tell
    from benchcheck.study import Study
    from benchcheck.transfer.package import make_package

    if steps and not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3})*", steps):
        raise UsageError(f"--steps {steps}: not numbers with commas between them, such as 1,2,3")
    opened, chosen, bar = Study.open(study), [int(step) for step in steps.split(",") if step], ShardsBar("pack")
    try:
        made = make_package(opened, folder, steps=chosen, frames=frames, answers=answers, progress=bar)
    finally:
        bar.close()
    facts = made.facts
    if made.left_out:
        note(f"{made.left_out:,} lines stay here: torn, of an earlier protocol, or of items that were edited since")
    if facts["model_folders"]:
        note(f"models that are folders here, and must be there, too: {', '.join(facts['model_folders'])}")
    rows = sum(facts["answers"].values())
    shards = f"{facts['frames']['shards']:,}" if facts["frames"] else "none"
    numbers = ",".join(map(str, facts["steps"]))
    tell(f"{folder}: {facts['pool']['items']:,} items for steps {numbers}; rows: {rows:,}; shards of frames: {shards}")
    note(f"Its README.md has the commands; `benchcheck merge {shlex.quote(str(study))} FILE` takes what comes back")


@app.command(rich_help_panel=CARRYING)
def pack(
    study: StudyFolder,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the file goes. \\[default: the study's folder]")
    ] = None,
) -> None:
    """Make one file of a study's rows and logs, for the machine that the study came from."""
    from benchcheck.console import busy, note, tell
    from benchcheck.study import Study
    from benchcheck.transfer.pack import pack_returns

    with busy("packing"):
        made = pack_returns(Study.open(study), to)
    if made.left_out:
        note(f"{made.left_out:,} lines stay here: torn, of an earlier protocol, or of items that were edited since")
    for step, rows in made.rows.items():
        tell(f"step {step}: {rows:,} rows")
    tell(f"{made.file} ({made.file.stat().st_size:,} bytes), {made.file.name}.sha256")
    note("Where the study came from: benchcheck merge STUDY FILE")


@app.command(rich_help_panel=CARRYING)
def merge(
    study: StudyFolder,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="pool_returns_*.tar.gz, or the folder of one or of a study.")
    ],
    keep: Annotated[
        str, typer.Option(metavar="WHOSE", help="Where both have an answer and they differ: ours or theirs stays.")
    ] = "",
) -> None:
    """Fold results that came home into the study; all is checked before the first row is written."""
    from benchcheck.console import busy, note
    from benchcheck.run.plan import survey
    from benchcheck.study import Study
    from benchcheck.transfer.merge import merge_returns

    opened = Study.open(study)
    with busy("checking and folding"):
        found = merge_returns(opened, files, keep=keep, note=note)
    for merged in found:
        _tell(merged, keep)
    print_totals(opened, survey(opened))


def _tell(merged: "Merged", keep: str) -> None:
    """Print what became of one package."""
    from benchcheck.console import columns, note, tell

    tell(str(merged.source))
    table = columns("step", "new", "identical", "passed over", "conflicts")
    for one in merged.steps:
        counts = (one.new, one.identical, one.passed_over, one.conflicts)
        table.add_row(str(one.step), *(f"{count:,}" for count in counts))
        if one.unreadable:
            note(f"step {one.step}: {one.unreadable:,} lines were torn where they were written, and are passed over")
    tell(table)
    if conflicts := sum(one.conflicts for one in merged.steps):
        tell(f"{conflicts:,} conflicts: {keep} stay")
    tell(f"{merged.rereads:,} second readings and {merged.costs:,} lines of accounting are new")
    if merged.logs:
        tell(f"its logs: {merged.logs}")
