"""Commands that ask no model, apart from the demo: inputs, results and control benchmarks."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, SEEING, TRYING, StudyFolder, app
from benchcheck.errors import UsageError

__all__ = [
    "assemble",
    "controls_make",
    "demo",
    "init",
    "report",
]

controls_app = typer.Typer(
    help="Benchmarks whose truth is known, for testing a model or a setup.", no_args_is_help=True
)
app.add_typer(controls_app, name="controls", rich_help_panel=TRYING)


@app.command(rich_help_panel=MAKING)
def init(
    study: StudyFolder,
    spec: Annotated[str, typer.Option(metavar="SPEC", help="A benchmark's spec, by name or TOML file.")] = "generic",
    file: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Annotation file; may be given several times.")
    ] = None,
    bench: Annotated[
        str, typer.Option(metavar="NAME", help="The benchmark's name, where the spec has none or another.")
    ] = "",
    videos: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder of the video files.")] = None,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Use the package's tiny models, to try things out.")
    ] = False,
) -> None:
    """Make a study: a folder with a commented benchcheck.toml."""
    from benchcheck.backends.checkpoint import pinned
    from benchcheck.config import EMBEDDED, QWEN3_VL
    from benchcheck.console import note
    from benchcheck.pool.specs import load_spec
    from benchcheck.study import Study

    # Without a file, the files of the spec's hub dataset are meant, where it has one.
    fetched = not file and spec != "generic" and bool(load_spec(spec).source.hub)
    if not file and (bench or spec != "generic") and not fetched:
        raise UsageError("--spec and --bench say how a file is read. Cure: name it with --file")
    missing = [path for path in (*(file or []), *([videos] if videos else [])) if not path.exists()]
    if missing:
        note(f"{missing[0]} is not there yet")
    # What is typed is relative to where it is typed; in the study's file it would be relative to the study.
    read_by = str(Path(spec).absolute()) if spec.endswith(".toml") else spec
    named = {"bench": bench} if bench else {}
    files = {"files": [str(path.absolute()) for path in file]} if file else {}
    pool = [{"spec": read_by, **files, **named}] if file or fetched else []
    made = Study.create(
        study,
        pool=pool,
        videos=str(videos.absolute()) if videos else "videos",
        models=pinned(EMBEDDED) if embedded else QWEN3_VL,
    )
    typed = shlex.quote(str(study))
    then = f"pool build {typed}" if pool else f"pool add FILE --study {typed}"
    print(f"{made.root / 'benchcheck.toml'} written. Next: benchcheck {then}")


@app.command(rich_help_panel=SEEING)
def assemble(study: StudyFolder) -> None:
    """Write the results as tables: pool_items.parquet, pool.duckdb, pool_summary and run_accounting."""
    from benchcheck.console import funnel_table, states_line, tell, warn
    from benchcheck.report.assemble import assemble as write_tables
    from benchcheck.study import Study

    assembled = write_tables(Study.open(study))
    tell(funnel_table(assembled.summaries))
    for text in assembled.warnings:
        warn(text)
    print(states_line(assembled.states))
    for path in assembled.files:
        print(path)


@app.command(rich_help_panel=SEEING)
def report(study: StudyFolder) -> None:
    """Write the report: one HTML page that works offline."""
    from benchcheck.report.page import write_report
    from benchcheck.study import Study

    print(write_report(Study.open(study)))


@controls_app.command("make")
def controls_make(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the videos, items.jsonl and truth.jsonl go.")],
    per_class: Annotated[int, typer.Option(min=1, max=100_000, help="Items of each of the five classes.")] = 24,
    seed: Annotated[int, typer.Option(help="The same seed makes the same items.")] = 1,
) -> None:
    """Render a control benchmark: real mp4 files and items of five known classes, the truth in a file of its own."""
    from benchcheck.demo.controls import make_controls

    made = make_controls(folder, n_per_class=per_class, seed=seed)
    print(f"{len(made.controls)} items on {len(made.videos)} videos: {made.items}; their truth: {made.truth}")


@app.command(rich_help_panel=TRYING)
def demo(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the demo study goes.")] = Path("demo-study"),
    per_class: Annotated[int, typer.Option(min=1, max=1000, help="Items of each of the five classes.")] = 24,
) -> None:
    """Screen a made-up benchmark, whose truth is known, with the package's tiny models; takes a minute or two."""
    from benchcheck.demo.walk import walk

    walk(folder, per_class)
