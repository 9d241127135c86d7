"""Commands that look and ask no model: what is left and what it will cost, and where a study stands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchcheck.cli.options import ASKING, OneStep, Pilot, StudyFolder, app, open_study, print_totals, wanted_items
from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from benchcheck.run.outlook import Assumed, Going, Outlook
    from benchcheck.run.waiting import Reason
    from benchcheck.study import Study

__all__ = ["plan", "status"]

_ESTIMATE = "With --estimate"


@app.command(rich_help_panel=ASKING)
def plan(
    study: StudyFolder,
    step: OneStep = 0,
    pilot: Pilot = 0,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it will cost: tokens, GPU-hours, disk.")
    ] = False,
    gpu_tflops: Annotated[
        float,
        typer.Option(
            metavar="TFLOPS",
            help="Dense bf16 TFLOP/s of your GPU by its data sheet: H200 and H100 SXM 989, A100 312, L40S 362.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = 989.0,
    survive: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Share of a step's items that goes on to the next, where none was measured yet.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = 0.8,
) -> None:
    """Print what is left to ask; needs no GPU and no model. The last line is REMAINING_TOTAL=<n>."""
    from benchcheck.console import outdated, plan_table, tell
    from benchcheck.run.outlook import Assumed, outlook
    from benchcheck.run.plan import survey

    if not 0 < gpu_tflops < 1e6:
        raise UsageError(f"--gpu-tflops {gpu_tflops:g}: Allowed: above 0, in TFLOP/s, such as 312")
    if not 0 < survive <= 1:
        raise UsageError(f"--survive {survive:g}: Allowed: above 0, up to 1 (a share)")
    opened = open_study(study, step)
    outdated(opened)
    state = survey(opened)
    wanted = wanted_items(opened, state, pilot)
    tell(plan_table(state, step, wanted))
    if estimate:
        assumed = Assumed(gpu_tflops, survive)
        for shown in _cost(outlook(opened, state, assumed, wanted), assumed, step):
            tell(shown)
    print_totals(opened, state, step, pilot)


def _cost(found: "Outlook", assumed: "Assumed", only: int) -> "Iterator[Table | str]":
    """What the rest will cost: a table of its steps, the disk it needs, and what was taken for granted."""
    from benchcheck.console import columns
    from benchcheck.run.estimate import CHARS_PER_TOKEN
    from benchcheck.video.amounts import shown_size

    yield ""
    steps = [one for one in found.steps if only in (0, one.coming.step.number)]
    if not any(one.coming.at_most for one in steps):
        yield "nothing is left to ask, so nothing to pay"
        return
    table = columns("step", "name", "items", "at most", "prompts", "tokens", "computed", "GPU-hours", "stays")
    table.add_column("basis", overflow="fold")
    for one in steps:
        asked, load = one.coming, one.load
        cells = [f"{asked.items:,.0f}", f"{asked.at_most:,}", f"{load.prompts:,.0f}", _short(load.tokens)]
        stays = f"{asked.survive:.0%}{'' if asked.measured else ' ?'}"
        hours = _hours(one.gpu_hours)
        table.add_row(str(asked.step.number), asked.step.name, *cells, _short(load.computed), hours, stays, one.basis)
    yield table
    total, tokens = sum(one.gpu_hours for one in steps), sum(one.load.tokens for one in steps)
    yield f"{_hours(total)} GPU-hours, {_short(tokens)} tokens; rows {shown_size(found.row_bytes)}"
    if found.videos_missing:
        source = "as those on disk" if found.frames_measured else "43 kB a frame of 448 px"
        yield f"frames of {found.videos_missing:,} videos are not on disk: {shown_size(found.frame_bytes)} ({source})"
    yield (
        f"Assumed: {CHARS_PER_TOKEN:g} characters a token, videos of 16:9; {assumed.survive:.0%} stay where a step is "
        f"marked ?; GPUs of {assumed.gpu_tflops:g} TFLOP/s that reach the share one H200 reached. A pilot "
        "(screen --pilot 300) measures all of it."
    )


@app.command(rich_help_panel=ASKING)
def status(study: StudyFolder) -> None:
    """Show where a study stands: the funnel, verdicts, why items wait, failures, costs, and how long the rest takes."""
    from benchcheck.console import doubts, ending, noise_shown, outdated, tell, warn
    from benchcheck.report.noise import noise_found
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.outlook import going
    from benchcheck.run.plan import survey
    from benchcheck.run.waiting import reasons
    from benchcheck.study import Study
    from benchcheck.video.proving.certificate import certificate_line

    opened = Study.open(study)
    outdated(opened)
    state = survey(opened)
    steps = summarize_all(opened, state)
    for table in ending(opened, state, steps):
        tell(table)
    for shown in (*_spent(opened), *_rest(going(opened, state))):
        tell(shown)
    if found := reasons(opened, state):
        tell("")
        tell(_waiting(found))
    for text in doubts(opened, state, steps):
        warn(text)
    for shown in noise_shown(noise_found(opened, state.pool)):
        tell(shown)
    if line := certificate_line(opened):
        tell(line)
    print_totals(opened, state)


def _waiting(found: "Sequence[Reason]") -> "Table":
    """Why items wait, by reason; the warnings say what helps."""
    from rich.markup import escape

    from benchcheck.console import columns

    table = columns("step", "items", "videos or windows")
    table.columns[0].header = "waiting"
    table.add_column("benchmarks", overflow="fold")
    for reason in found:
        benches = ", ".join(reason.benches[:3]) + ", ..." * (len(reason.benches) > 3)
        table.add_row(escape(reason.status), f"{reason.items:,}", f"{reason.sets:,}", escape(benches))
    return table


def _spent(study: "Study") -> "Iterator[Table | str]":
    """What runs cost so far, one row per step and engine; nothing before the first."""
    from benchcheck.console import columns
    from benchcheck.run.accounting import costs

    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in costs(study):
        key = tuple(row[name] for name in ("step", "model", "engine", "version", "dtype", "device"))
        groups.setdefault(key, []).append(row)
    if not groups:
        return
    table = columns("step", "items", "prompts", "tokens", "cached", "worker time", "prompts/s")
    table.add_column("by")
    table.add_column("errors", overflow="fold")
    # What answered is long and mostly the same from step to step: numbered below, so that a row fits in 80 columns.
    who = {one: str(number) for number, one in enumerate(dict.fromkeys(key[1:] for key in sorted(groups)), 1)}
    for key, rows in sorted(groups.items()):
        table.add_row(*_sums(key[0], who[key[1:]], rows))
    yield ""
    yield table
    for (model, *engine), number in who.items():
        yield f"by {number}: {model}, read by {' '.join(engine)}"


def _sums(step: int, who: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One row of what was spent."""
    from rich.markup import escape

    from benchcheck.console import span

    names = ("items", "prompts", "tokens", "cached_tokens", "wall_s")
    items, prompts, tokens, cached, wall = (sum(row[name] for row in rows) for name in names)
    kinds: dict[str, int] = {}
    for row in rows:
        for kind, _, count in (part.rpartition(" ") for part in row["error_kinds"].split(", ") if part):
            kinds[kind] = kinds.get(kind, 0) + int(count)
    errors = ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items())) or "-"
    share = f"{cached / tokens:.0%}" if tokens else "-"
    rate = f"{prompts / wall:,.1f}" if wall else "-"
    return [str(step), f"{items:,}", f"{prompts:,}", _short(tokens), share, span(wall), rate, who, escape(errors)]


def _rest(found: "Going") -> Iterator[str]:
    """How long what is left takes, and on what that rests; nothing where nothing is left."""
    from benchcheck.console import span

    if not any(asked.at_most for asked in found.steps):
        return
    yield ""
    left = sum(asked.items for asked in found.steps)
    at_most = sum(asked.at_most for asked in found.steps)
    many = f"{found.workers} worker{'s' if found.workers > 1 else ''} at work"
    who = many if found.workers else "no run at work, so as for one worker"
    known = f"about {span(found.seconds)}" if found.seconds else "no basis yet"
    yield f"left: about {left:,.0f} items over all steps, with those that wait ({at_most:,} at most), {known} ({who})"
    yield "Basis: each step's own items a second of a worker; the share that each step was seen to keep, 80 % before."
    if found.without and found.seconds:
        yield f"Not in it, since nothing of them was measured yet: steps {', '.join(map(str, found.without))}"


def _short(number: float) -> str:
    """A count with three figures."""
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:.0f}"


def _hours(number: float) -> str:
    """Hours, and not 0 for what is a little."""
    return "<0.01" if 0 < number < 0.005 else f"{number:,.2f}"
