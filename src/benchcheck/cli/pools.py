"""Commands on the pool: annotation files become items, and what is in them."""

import typer

from benchcheck.cli.options import MAKING, StudyFolder, app

__all__ = ["pool_app", "pool_build"]

pool_app = typer.Typer(help="Annotation files become items.")
app.add_typer(pool_app, name="pool", rich_help_panel=MAKING)


@pool_app.command("build")
def pool_build(study: StudyFolder) -> None:
    """Read the annotation files named in benchcheck.toml and write the pool of items."""
    from benchcheck.console import note, pool_table, tell, warn
    from benchcheck.pool.build import build_pool
    from benchcheck.study import Study

    summary = build_pool(Study.open(study))
    tell(pool_table(summary))
    for text in summary.warnings:
        warn(text)
    print(f"{summary.rows} items, {summary.mcq} of them multiple-choice")
    note(f"Next: benchcheck frames extract {study}, then benchcheck screen {study}")
