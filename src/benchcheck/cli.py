"""The command line: it translates, calls and prints. What it does to a study, functions do too (docs/python.md).

Wrong use ends with exit code 2, a failed run with 1, Ctrl-C with 130; each in one line. A bug keeps its traceback.
"""

import errno
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from benchcheck import __version__
from benchcheck.errors import BenchcheckError, UsageError

if TYPE_CHECKING:
    from benchcheck.run.plan import Survey
    from benchcheck.screen.verdicts import Flags
    from benchcheck.study import Study

__all__ = ["app", "main"]

_SETTINGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help="Find the items of a video benchmark that can be answered without watching.",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings=_SETTINGS,
)
pool_app = typer.Typer(help="Annotation files become items.")
frames_app = typer.Typer(help="Videos become frames.")
controls_app = typer.Typer(
    help="Benchmarks whose truth is known, for testing a model or a setup.", no_args_is_help=True
)
app.add_typer(pool_app, name="pool")
app.add_typer(frames_app, name="frames")
app.add_typer(controls_app, name="controls")

StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder.", show_default=False)]
BackendName = Annotated[str, typer.Option("--backend", help="What reads the prompts: transformers or scripted.")]
Workers = Annotated[int, typer.Option("--workers", min=1, max=256, help="Worker processes on this machine.")]
OneStep = Annotated[int, typer.Option("--step", help="Only this step, 1 to 6; 0 is all.")]
Pilot = Annotated[int, typer.Option("--pilot", min=0, help="Only this many items of each benchmark; 0 is all.")]


def main() -> None:
    """Run the command line; expected failures become one line on standard error and an exit code."""
    sys.unraisablehook = _unraisable
    # A scheduler that takes the machine back sends SIGTERM: what was read is written, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="benchcheck", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BenchcheckError as reason:
        _fail(str(reason), reason.exit_code)
    except TyperException as reason:
        _fail(f"{reason.format_message().rstrip('.')}. See benchcheck --help, or --help of the command", 2)
    except KeyboardInterrupt:
        code = 130
    except (OSError, RuntimeError) as reason:
        code = _ending(reason)
    if code == 130:
        _fail("stopped. What was written stays; the same command continues.", code)
    sys.exit(code)


def _ending(reason: OSError | RuntimeError) -> int:
    """Say how what reaches the end of a command ends it: Ctrl-C inside DuckDB, or nowhere to print; a bug stays one."""
    if str(reason) == "Query interrupted":
        return 130
    if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT, errno.EPIPE):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still to be printed would fail again when Python ends
        if reason.errno == errno.EPIPE:
            return 1
        where = reason.filename or "standard output"
        _fail(f"{where}: {reason.strerror}. Cure: free space and run the same command again; what was written stays", 1)
    raise reason


def _unraisable(reason: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C that fell into a place where Python ignores it, such as a destructor, is pressed again."""
    if issubclass(reason.exc_type, KeyboardInterrupt):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(reason)


def _fail(message: str, code: int) -> NoReturn:
    """Print one line to standard error and end."""
    print(f"benchcheck: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def init(
    study: StudyFolder,
    spec: Annotated[str, typer.Option(help="A benchmark's spec, by name or TOML file.")] = "generic",
    file: Annotated[list[Path] | None, typer.Option(help="Annotation file; may be given several times.")] = None,
    bench: Annotated[str, typer.Option(help="The benchmark's name, where the spec has none or another.")] = "",
    videos: Annotated[Path | None, typer.Option(help="Folder of the video files.")] = None,
    embedded: Annotated[bool, typer.Option(help="Use the package's tiny models, to try things out.")] = False,
) -> None:
    """Make a study: a folder with a commented benchcheck.toml."""
    from benchcheck.backends.checkpoint import pinned
    from benchcheck.config import EMBEDDED, QWEN3_VL
    from benchcheck.console import note
    from benchcheck.study import Study

    if not file and (bench or spec != "generic"):
        raise UsageError("--spec and --bench say how a file is read. Cure: name it with --file")
    missing = [path for path in (*(file or []), *([videos] if videos else [])) if not path.exists()]
    if missing:
        note(f"{missing[0]} is not there yet")
    # What is typed is relative to where it is typed; in the study's file it would be relative to the study.
    read_by = str(Path(spec).absolute()) if spec.endswith(".toml") else spec
    named = {"bench": bench} if bench else {}
    pool = [{"spec": read_by, "files": [str(path.absolute()) for path in file], **named}] if file else []
    made = Study.create(
        study,
        pool=pool,
        videos=str(videos.absolute()) if videos else "videos",
        models=pinned(EMBEDDED) if embedded else QWEN3_VL,
    )
    print(f"{made.root / 'benchcheck.toml'} written. Next: benchcheck pool build {study}")


@app.command()
def benchmarks() -> None:
    """List the benchmarks that have a spec."""
    from benchcheck.console import specs_table, tell

    tell(specs_table())


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


@frames_app.command("extract")
def frames_extract(
    study: StudyFolder,
    workers: Annotated[int, typer.Option(min=0, max=256, help="Worker processes; 0 is one per core.")] = 0,
) -> None:
    """Decode the frames that are not there yet; the same command continues where it stopped."""
    from benchcheck.console import FramesBar, tell
    from benchcheck.study import Study
    from benchcheck.video.extract import extract_frames

    opened, bar = Study.open(study), FramesBar()
    try:
        summary = extract_frames(opened, workers=workers or None, progress=bar)
    finally:
        bar.close()
    for line in summary.lines():
        tell(line)


@app.command()
def plan(study: StudyFolder, step: OneStep = 0, pilot: Pilot = 0) -> None:
    """Print what is left to ask; needs no GPU and no model. The last line is REMAINING_TOTAL=<n>."""
    from benchcheck.console import outdated, plan_table, tell
    from benchcheck.run.plan import survey

    opened = _open(study, step)
    outdated(opened)
    state = survey(opened)
    tell(plan_table(state, step, _wanted(opened, state, pilot)))
    _print_totals(opened, state, step, pilot)


@app.command()
def screen(
    study: StudyFolder,
    backend: BackendName = "transformers",
    workers: Workers = 1,
    step: OneStep = 0,
    pilot: Pilot = 0,
    retry_failed: Annotated[bool, typer.Option(help="Give items that failed another try first.")] = False,
) -> None:
    """Ask every step's items until nothing is left; the same command continues where it stopped."""
    from benchcheck.console import Bars, ending, note, outdated, tell
    from benchcheck.run.driver import retry_failed as retry
    from benchcheck.run.driver import screen as run_steps
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.local import Local

    opened, bars = _open(study, step), Bars()
    executor = Local(opened, backend, workers, pilot)
    outdated(opened)
    if retry_failed:
        note(f"{retry(opened, step):,} failed items get another try")
    try:
        state = run_steps(opened, executor, bars, pilot, step)
    finally:
        bars.close()
        executor.close()
    for table in ending(opened, state, summarize_all(opened, state), pilot):
        tell(table)
    _print_totals(opened, state, step, pilot)


@app.command()
def status(study: StudyFolder) -> None:
    """Show where a study stands: the funnel, verdicts, failures and warnings."""
    from benchcheck.console import doubts, ending, outdated, tell, warn
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.plan import survey
    from benchcheck.study import Study

    opened = Study.open(study)
    outdated(opened)
    state = survey(opened)
    steps = summarize_all(opened, state)
    for table in ending(opened, state, steps):
        tell(table)
    for text in doubts(opened, state, steps):
        warn(text)
    _print_totals(opened, state)


@app.command()
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


@app.command()
def report(study: StudyFolder) -> None:
    """Write the report: one HTML page that works offline."""
    from benchcheck.report.page import write_report
    from benchcheck.study import Study

    print(write_report(Study.open(study)))


@app.command()
def work(
    study: StudyFolder,
    step: Annotated[int, typer.Option(help="The step, 1 to 6.")],
    backend: BackendName = "transformers",
    task: Annotated[int, typer.Option(min=-1, help="This worker's number; by default from SLURM_ARRAY_*.")] = -1,
    tasks: Annotated[int, typer.Option(min=0, help="Number of workers; by default from SLURM_ARRAY_*.")] = 0,
    pilot: Pilot = 0,
) -> None:
    """Do one worker's share of one step; prints the items and errors of each write. `screen` starts these."""
    from benchcheck.run.local import do_share
    from benchcheck.run.plan import slurm_task
    from benchcheck.study import Study

    if (task >= 0) != (tasks > 0) or task >= max(tasks, 0) > 0:
        raise UsageError(f"--task {task} and --tasks {tasks} go together, the first below the second")
    number, total = (task, tasks) if tasks else slurm_task(os.environ)
    opened = Study.open(study)
    do_share(opened, step, backend, (number, total), pilot, lambda items, errors: print(items, errors, flush=True))


@controls_app.command("make")
def controls_make(
    folder: Annotated[Path, typer.Argument(help="Where the videos, items.jsonl and truth.jsonl go.")],
    per_class: Annotated[int, typer.Option(min=1, max=100_000, help="Items of each of the five classes.")] = 24,
    seed: Annotated[int, typer.Option(help="The same seed makes the same items.")] = 1,
) -> None:
    """Render a control benchmark: real mp4 files and items of five known classes, the truth in a file of its own."""
    from benchcheck.demo.controls import make_controls

    made = make_controls(folder, n_per_class=per_class, seed=seed)
    print(f"{len(made.controls)} items on {len(made.videos)} videos: {made.items}; their truth: {made.truth}")


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the demo study goes.")] = Path("demo-study"),
    per_class: Annotated[int, typer.Option(min=1, max=1000, help="Items of each of the five classes.")] = 24,
) -> None:
    """Screen a made-up benchmark, whose truth is known, with the package's tiny models; takes a minute or two."""
    from benchcheck.demo.walk import walk

    walk(folder, per_class)


def _open(folder: Path, step: int) -> "Study":
    """Open a study that has this step."""
    from benchcheck.run.plan import step_index
    from benchcheck.study import Study

    study = Study.open(folder)
    if step != 0:
        step_index(study, step)
    return study


def _wanted(study: "Study", state: "Survey", pilot: int) -> "Flags | None":
    """Flag the items of a pilot; None is all."""
    from benchcheck.run.plan import pilot_flags

    return pilot_flags(state.pool, pilot, study.config.protocol.seed) if pilot else None


def _print_totals(study: "Study", state: "Survey", step: int = 0, pilot: int = 0) -> None:
    """Print the three totals, REMAINING_TOTAL last (protocol 8)."""
    from benchcheck.run.plan import totals

    counts = totals(state, step, _wanted(study, state, pilot))
    print(f"WAITING_TOTAL={counts.waiting}\nFAILED_TOTAL={counts.failed}\nREMAINING_TOTAL={counts.remaining}")
