"""The command that takes an existing package of the original layout into a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import CARRYING, StudyFolder, app

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from rich.table import Table

    from benchcheck.transfer.original.importing import Imported

__all__ = ["import_pool"]


@app.command("import-pool", rich_help_panel=CARRYING)
def import_pool(
    package: Annotated[Path, typer.Argument(metavar="PACKAGE", help="The unpacked package.", show_default=False)],
    study: StudyFolder,
    frames: Annotated[str, typer.Option(metavar="HOW", help="Frames: link, copy or none.")] = "link",
    step: Annotated[
        list[int] | None, typer.Option("--step", metavar="K", help="Only this step; may be given several times.")
    ] = None,
) -> None:
    """Bring a package of the original layout into a study, and say where its verdicts differ from ours."""
    from benchcheck.console import busy, tell, warn
    from benchcheck.transfer.original.importing import import_pool as bring

    with busy("importing"):
        found = bring(package, study, frames=frames, steps=step or ())
    for shown in _shown(found):
        tell(shown)
    for text in _doubts(found):
        warn(text)


def _shown(found: "Imported") -> "Iterator[Table | str]":
    """What came, and where verdicts differ."""
    from rich.markup import escape

    from benchcheck.console import columns

    made = " (made now)" if found.made else ""
    yield f"{found.items:,} items in {found.study}{made}"
    table = columns(
        "step", "rows", "answers", "errors", "there before", "left out", "verdicts differ", "numbers differ"
    )
    for one in found.steps:
        numbers = one.differences["n_right"] + one.differences["mean_margin"]
        counts = (one.rows, one.answers, one.errors, one.there, sum(one.left_out.values()))
        table.add_row(str(one.step), *(f"{n:,}" for n in (*counts, one.differences["removed"], numbers)))
    yield table
    sets = found.frames
    if sets.brought or sets.there or sets.left_out:
        yield f"frames: {sets.brought:,} sets came, {sets.there:,} were there"
    if found.examples:
        yield ""
        examples = columns("step", "benchmark", "item", "what", "theirs", "ours")
        for each in found.examples:
            cells = (str(each.step), each.bench, each.item_id, each.what, _cell(each.theirs), _cell(each.ours))
            examples.add_row(*(escape(_plain(cell)) for cell in cells))
        yield examples
    yield str(found.differences_file)


def _plain(text: str) -> str:
    """A text of the package without what moves a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _cell(value: object) -> str:
    """A value of the table of differences."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _doubts(found: "Imported") -> "Iterator[str]":
    """What a reader should know of it, one line per kind."""
    yield from _counted("items", found.items_left_out)
    for one in found.steps:
        yield from _counted(f"step {one.step}: rows", one.left_out)
        if one.contradictory:
            such = f"such as {', '.join(map(_plain, one.contradictory[:3]))}; the last counts"
            yield f"step {one.step}: {len(one.contradictory):,} rows contradict an earlier one of their item, {such}"
        if one.differences["orders"]:
            yield (
                f"step {one.step}: {one.differences['orders']:,} answers were asked in other option orders than the "
                "study's seed gives; they are kept, since hits and margins do not depend on orders"
            )
        if one.unjudged:
            yield f"step {one.step}: {one.unjudged:,} answers carry no verdict of their own to compare with"
    yield from _counted("frames: sets", found.frames.left_out)
    if found.frames.without_times:
        yield f"frames: {found.frames.without_times:,} sets have no times: the package has none, and no length is known"
    if found.videos:
        yield f"{found.videos:,} sets of frames are missing for the reason that the package gives"
    yield from found.notes


def _counted(what: str, counts: "Counter[str]") -> "Iterator[str]":
    """One line per reason."""
    for reason, count in counts.most_common():
        yield f"{what} left out: {count:,}, {reason}"
