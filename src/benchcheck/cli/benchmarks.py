"""The command that lists the benchmarks which have a spec."""

from dataclasses import replace
from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, app
from benchcheck.errors import UsageError

__all__ = ["benchmarks"]


@app.command(rich_help_panel=MAKING)
def benchmarks(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One spec, to see it in full.", show_default=False)] = "",
    checked: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="Those of one level: real files, survey or fields only.", show_default=False
        ),
    ] = "",
    search: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Those whose name, title, source or citation has this text.", show_default=False
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Everything that is known of them, as JSON.")] = False,
) -> None:
    """List the benchmarks that have a spec: items, how far it was checked, licence; or show one of them in full."""
    import json

    from benchcheck.cli.specs_table import spec_shown, specs_shown
    from benchcheck.console import tell
    from benchcheck.pool.catalogue import facts, matching
    from benchcheck.pool.specs import CHECKED, load_spec, spec_names

    if checked not in ("", *CHECKED):
        raise UsageError(f"--checked {checked!r} is not a level. Allowed: {', '.join(CHECKED)}")
    if name and (checked or search):
        raise UsageError("--checked and --search choose among all. Cure: leave the name out, or them")
    if name.endswith(".toml") or "/" in name:
        raise UsageError(f"{name}: only specs that ship are shown. Cure: benchcheck benchmarks for their names")
    if name:
        found = [replace(load_spec(name), bench=name)]
    else:
        found = matching((load_spec(each) for each in spec_names() if each != "generic"), checked, search)
    if as_json:
        known = [facts(spec) for spec in found]
        print(json.dumps(known[0] if name else known, indent=1, ensure_ascii=False))
        return
    if not found:
        raise UsageError("no spec is like that. Cure: a shorter --search, or benchcheck benchmarks for all of them")
    for what in spec_shown(found[0]) if name else specs_shown(found):
        tell(what)
