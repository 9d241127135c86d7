"""The command that shows where the parts of a study lie, and who decided it."""

from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, StudyFolder, app

__all__ = ["places"]


@app.command(rich_help_panel=MAKING)
def places(
    study: StudyFolder,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON, sizes in bytes.")] = False,
) -> None:
    """Show where data, videos, frames, results, models and caches lie, who decided it, and the space left."""
    import json
    import os

    from rich.markup import escape

    from benchcheck.console import columns, tell, terminal_width
    from benchcheck.places import VARIABLES, look
    from benchcheck.study import Study
    from benchcheck.video.amounts import shown_size

    found = Study.open(study, checked=False).places.all()
    looked = [(place, look(place)) for place in found]
    if as_json:
        rows = [
            {
                "place": place.name,
                "path": os.path.abspath(place.path),
                "state": seen.state,
                "free_bytes": seen.free,
                "by": place.by,
                "variable": VARIABLES.get(place.name, "HF_HUB_CACHE"),
            }
            for place, seen in looked
        ]
        print(json.dumps(rows, indent=1))
        return
    table = columns("name", "state", "free")
    table.columns[1].justify = "left"
    for name in ("decided by", "path"):
        table.add_column(name, overflow="fold")
    for place, seen in looked:
        path = os.path.abspath(place.path)
        shown = escape((_from_here(path) if terminal_width() else path).encode("utf-8", "replace").decode())
        table.add_row(place.name, seen.state, shown_size(seen.free), place.by, shown)
    tell(table)


def _from_here(path: str) -> str:
    """A path below the current folder without that folder: a terminal has 80 columns."""
    import os

    here = os.path.join(os.getcwd(), "")
    return path.removeprefix(here)
