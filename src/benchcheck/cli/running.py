"""Commands that ask models, or serve them: screen, serve, work."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import (
    ASKING,
    PARTS,
    SERVERS,
    WHERE,
    BackendName,
    Endpoints,
    GpuMemory,
    Gpus,
    InFlight,
    MaxSequences,
    OneStep,
    Pilot,
    Port,
    Python,
    Settings,
    StudyFolder,
    Vllm,
    Workers,
    app,
    asked_of,
    keys_of,
    open_study,
    print_totals,
    wanted_items,
)
from benchcheck.cli.transfer import check_arrived
from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from benchcheck.console import Bars
    from benchcheck.run.driver import Executor
    from benchcheck.run.local import Asked
    from benchcheck.study import Study

__all__ = ["screen", "serve", "work"]

_LOOK_S = 0.5

Shard = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only share I (from 0) of N, such as 0/4; auto is a Slurm array's task.",
        rich_help_panel=WHERE,
    ),
]
Launch = Annotated[
    bool,
    typer.Option(
        "--launch",
        help="Start one vLLM server per GPU, ask them, and end them; with --engine server.",
        rich_help_panel=SERVERS,
    ),
]
Where = Annotated[
    str,
    typer.Option(
        "--executor", metavar="NAME", help="Where workers run: local (here), slurm or ray.", rich_help_panel=WHERE
    ),
]


@app.command(rich_help_panel=ASKING)
def screen(
    study: StudyFolder,
    step: OneStep = 0,
    pilot: Pilot = 0,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Say what would run, and start nothing.")] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Give items that failed another try first.")
    ] = False,
    backend: BackendName = "transformers",
    endpoint: Endpoints = None,
    in_flight: InFlight = None,
    max_sequences: MaxSequences = None,
    gpu_memory: GpuMemory = None,
    settings: Settings = None,
    executor: Where = "local",
    workers: Workers = 0,
    gpus: Gpus = None,
    shard: Shard = "",
    launch: Launch = False,
    vllm: Vllm = None,
    python: Python = None,
    port: Port = None,
) -> None:
    """Ask every step's items until nothing is left; the same command continues where it stopped."""
    from benchcheck.run.shard import WHOLE, parse_shard

    opened = open_study(study, step)
    check_arrived(opened)
    sizes = {"gpus": gpus, "in_flight": in_flight, "first_port": port, "gpu_memory": gpu_memory}
    given = keys_of(settings, **sizes, max_sequences=max_sequences, python=python, vllm=vllm)
    asked = asked_of(opened, backend, endpoint, given)
    _check_flags(launch=launch, workers=workers, endpoints=endpoint, shard=shard, retry_failed=retry_failed)
    if executor != "ray":  # which starts none, and says so
        _check_launch(backend, launch, {"--vllm": vllm, "--python": python, "--port": port})
    part = parse_shard(shard, os.environ) if shard else WHOLE
    if executor == "slurm":
        _submit(opened, asked, (step, pilot, launch, workers), bool(shard) or retry_failed, plan_only)
        return
    with _executor(opened, asked, executor, launch, (workers, pilot, part)) as (runner, bars):
        if plan_only:
            _print_plan(opened, runner, step, pilot, part)
        else:
            _run(opened, runner, bars, (step, pilot, part), bool(shard), retry_failed)


def _check_flags(*, launch: bool, workers: int, endpoints: list[str] | None, shard: str, retry_failed: bool) -> None:
    """Refuse flags that contradict one another."""
    if launch and workers:
        raise UsageError(f"--workers {workers}: with --launch each server has one worker. Cure: --gpus or --in-flight")
    if launch and endpoints:
        raise UsageError("--launch starts servers, --endpoint names those that run. Cure: one of the two")
    if shard and retry_failed:
        raise UsageError("--retry-failed is for a run of the whole study. Cure: run it once without --shard")


def _check_launch(backend: str, launch: bool, flags: Mapping[str, object]) -> None:
    """Refuse flags of servers that nobody starts, and servers that nobody asks."""
    if launch and backend != "server":
        raise UsageError(f"--launch starts servers, but --engine is {backend}. Cure: --engine server")
    for flag, value in flags.items():
        if value is not None and not launch:
            raise UsageError(f"{flag} is for servers that a run starts. Cure: --engine server --launch, or without it")


@contextmanager
def _executor(
    study: "Study", asked: "Asked", where: str, launch: bool, share: tuple[int, int, tuple[int, int]]
) -> "Iterator[tuple[Executor, Bars]]":
    """Say where units run, and close it when the block is left."""
    from benchcheck.console import Bars, warn
    from benchcheck.run.launched import Launched
    from benchcheck.run.local import Local

    workers, pilot, part = share
    bars = Bars()
    runner: Executor
    if where not in ("local", "ray"):
        raise UsageError(f"--executor {where} does not exist. Allowed: local, slurm, ray")
    if where == "ray":
        from benchcheck.cli.clusters import on_ray

        runner = on_ray(study, asked, launch, workers)
    elif launch:
        runner = Launched(study, asked, pilot, part, bars.waits, warn)
    else:
        runner = Local(study, asked, workers, pilot, part)
    try:
        yield runner, bars
    finally:
        bars.close()
        runner.close()


def _submit(study: "Study", asked: "Asked", which: tuple[int, int, bool, int], alone: bool, plan_only: bool) -> None:
    """Give the study to Slurm and print what is left to ask."""
    from benchcheck.cli.clusters import to_slurm
    from benchcheck.run.plan import survey

    step, pilot, launch, workers = which
    if alone:
        raise UsageError("--shard and --retry-failed are for runs on this machine. Cure: run them without --executor")
    flags = [*(["--launch"] if launch else []), *(["--workers", str(workers)] if workers else [])]
    to_slurm(study, asked, step, pilot, flags, plan_only)
    print_totals(study, survey(study), step, pilot)


def _run(
    study: "Study",
    runner: "Executor",
    bars: "Bars",
    which: tuple[int, int, tuple[int, int]],
    shared: bool,
    retry_failed: bool,
) -> None:
    """Run the steps and print how the study stands then."""
    from benchcheck.console import ending, note, outdated, tell, warn
    from benchcheck.run.driver import retry_failed as retry
    from benchcheck.run.driver import screen as run_steps
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.lock import run_lock

    step, pilot, part = which
    outdated(study)
    with run_lock(study, shared, warn):
        if retry_failed:
            note(f"{retry(study, step):,} failed items get another try")
        state = run_steps(study, runner, bars, pilot, step, part)
    bars.close()
    for table in ending(study, state, summarize_all(study, state), pilot):
        tell(table)
    print_totals(study, state, step, pilot)


def _print_plan(study: "Study", runner: "Executor", step: int, pilot: int, part: tuple[int, int]) -> None:
    """Print what would run: the steps, each worker's units, and the servers with their commands."""
    from benchcheck.console import plan_table, tell
    from benchcheck.run.launched import Launched, plan_lines
    from benchcheck.run.plan import survey
    from benchcheck.run.shard import shard_flags, shard_units

    state = survey(study)
    wanted = shard_flags(state.pool, part)
    if (chosen := wanted_items(study, state, pilot)) is not None:
        wanted = wanted & chosen
    tell(plan_table(state, step, wanted))
    steps = [here for here in study.config.steps if step in (0, here.number)]
    launched = runner if isinstance(runner, Launched) else None
    for line in plan_lines(state, wanted, steps, shard_units(state.pool, part, runner.workers), launched):
        print(line)
    print_totals(study, state, step, pilot)


@app.command(rich_help_panel=PARTS)
def serve(
    study: StudyFolder,
    step: Annotated[int, typer.Option(metavar="K", help="The step whose model is served, 1 to 6.")],
    in_flight: InFlight = None,
    max_sequences: MaxSequences = None,
    gpu_memory: GpuMemory = None,
    settings: Settings = None,
    gpus: Gpus = None,
    vllm: Vllm = None,
    python: Python = None,
    port: Port = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; 0.0.0.0 lets other machines ask.", rich_help_panel=SERVERS
        ),
    ] = "127.0.0.1",
) -> None:
    """Serve a step's model, one vLLM server per GPU, until Ctrl-C; prints the endpoints when they answer."""
    from benchcheck.console import Bars, note
    from benchcheck.run.launched import served
    from benchcheck.screen.steps import LADDER

    opened = open_study(study, step)
    sizes = {"gpus": gpus, "in_flight": in_flight, "first_port": port, "gpu_memory": gpu_memory}
    given = keys_of(settings, **sizes, max_sequences=max_sequences, python=python, vllm=vllm)
    asked = asked_of(opened, "server", None, given)
    if step not in LADDER:
        raise UsageError(
            f"--step {step}: serve needs a step. Allowed: {', '.join(map(str, opened.config.protocol.steps))}"
        )
    with served(opened, LADDER[step], asked, host, Bars().waits) as servers:
        ends = [server.endpoint for server in servers.servers]
        print(*ends, sep="\n", flush=True)
        flags_text = " ".join(f"--endpoint {end}" for end in ends)
        note(f"Use: benchcheck screen {study} --engine server --step {step} {flags_text}. Ctrl-C ends the servers")
        try:
            while True:
                servers.watch()
                time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            note("the servers end")


@app.command(rich_help_panel=PARTS)
def work(
    study: StudyFolder,
    step: Annotated[int, typer.Option(metavar="K", help="The step, 1 to 6.")],
    task: Annotated[
        int, typer.Option(min=-1, metavar="N", help="This worker's number, from 0; -1 reads SLURM_ARRAY_TASK_ID.")
    ] = -1,
    tasks: Annotated[
        int, typer.Option(min=0, metavar="N", help="Number of workers; 0 reads SLURM_ARRAY_TASK_COUNT.")
    ] = 0,
    shard: Annotated[str, typer.Option(metavar="I/N", help="The share that the workers divide.")] = "0/1",
    pilot: Pilot = 0,
    backend: BackendName = "transformers",
    settings: Settings = None,
) -> None:
    """Do one worker's share of one step; prints the items and errors of each write. `screen` starts these."""
    from benchcheck.run.local import Assignment, do_share
    from benchcheck.run.plan import slurm_task
    from benchcheck.run.processes import end_with_driver
    from benchcheck.run.shard import parse_shard
    from benchcheck.study import Study

    end_with_driver(os.environ)
    if (task >= 0) != (tasks > 0) or task >= max(tasks, 0) > 0:
        raise UsageError(f"--task {task} and --tasks {tasks} go together, the first below the second")
    number, total = (task, tasks) if tasks else slurm_task(os.environ)
    opened = Study.open(study)
    asked = asked_of(opened, backend, None, settings)
    part = Assignment(step, number, total, pilot, parse_shard(shard, os.environ))
    do_share(opened, asked, part, lambda items, errors: print(items, errors, flush=True))
