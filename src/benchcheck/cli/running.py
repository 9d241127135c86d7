"""Commands that ask models: screen, work."""

import os
from typing import Annotated

import typer

from benchcheck.cli.options import (
    BackendName,
    Endpoints,
    OneStep,
    Pilot,
    Settings,
    StudyFolder,
    Workers,
    app,
    asked_of,
    open_study,
    print_totals,
)
from benchcheck.errors import UsageError

__all__ = ["screen", "work"]


@app.command()
def screen(
    study: StudyFolder,
    backend: BackendName = "transformers",
    workers: Workers = 1,
    step: OneStep = 0,
    pilot: Pilot = 0,
    endpoint: Endpoints = None,
    settings: Settings = None,
    retry_failed: Annotated[bool, typer.Option(help="Give items that failed another try first.")] = False,
) -> None:
    """Ask every step's items until nothing is left; the same command continues where it stopped."""
    from benchcheck.console import Bars, ending, note, outdated, tell
    from benchcheck.run.driver import retry_failed as retry
    from benchcheck.run.driver import screen as run_steps
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.local import Local

    opened, bars = open_study(study, step), Bars()
    executor = Local(opened, asked_of(opened, backend, endpoint, settings), workers, pilot)
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
    print_totals(opened, state, step, pilot)


@app.command()
def work(
    study: StudyFolder,
    step: Annotated[int, typer.Option(help="The step, 1 to 6.")],
    backend: BackendName = "transformers",
    task: Annotated[int, typer.Option(min=-1, help="This worker's number; by default from SLURM_ARRAY_*.")] = -1,
    tasks: Annotated[int, typer.Option(min=0, help="Number of workers; by default from SLURM_ARRAY_*.")] = 0,
    pilot: Pilot = 0,
    settings: Settings = None,
) -> None:
    """Do one worker's share of one step; prints the items and errors of each write. `screen` starts these."""
    from benchcheck.run.local import do_share
    from benchcheck.run.plan import slurm_task
    from benchcheck.study import Study

    if (task >= 0) != (tasks > 0) or task >= max(tasks, 0) > 0:
        raise UsageError(f"--task {task} and --tasks {tasks} go together, the first below the second")
    number, total = (task, tasks) if tasks else slurm_task(os.environ)
    opened = Study.open(study)
    asked = asked_of(opened, backend, None, settings)
    do_share(opened, step, asked, (number, total), pilot, lambda items, errors: print(items, errors, flush=True))
