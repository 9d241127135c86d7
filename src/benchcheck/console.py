"""What the commands draw in a terminal: progress with rate and rest, tables, warnings. Only this and cli/ print."""

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from benchcheck.pool.building.declared import newer_files
from benchcheck.pool.building.summary import PoolSummary
from benchcheck.report.notices import IMPORTED_NOTICE, embedded_notice
from benchcheck.report.tables import STATE_NAMES
from benchcheck.run.accounting import costs
from benchcheck.run.driver import StepSummary, step_warnings
from benchcheck.run.pilot import StepForecast, forecast
from benchcheck.run.plan import Survey
from benchcheck.run.reread import StepNoise
from benchcheck.run.waiting import reasons
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import Flags
from benchcheck.study import Study
from benchcheck.video.making.extract import FramesProgress
from benchcheck.video.preparing.prepare import PrepareProgress

__all__ = [
    "Bars",
    "FramesBar",
    "busy",
    "columns",
    "doubts",
    "ending",
    "funnel_table",
    "noise_shown",
    "note",
    "outdated",
    "plan_table",
    "pool_table",
    "span",
    "states_line",
    "tell",
    "terminal_width",
    "warn",
]

_WIDE = 1000
"""Columns of what is no terminal: a file or another program."""
_WAIT_S = 15.0
"""Seconds between two lines about the same waiting where there is no terminal."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What a terminal obeys or cannot show, other than ends of lines and tabs: names of files and videos may hold it."""

_out = Console(highlight=False, emoji=False)
_err = Console(stderr=True, highlight=False, emoji=False)


def tell(what: object) -> None:
    """Print a line or a table; text in square brackets is text, and nothing is cut."""
    if isinstance(what, str):
        _lines(_out, what, None)
    elif _out.is_terminal:
        _out.print(what)
    else:
        # Blanks that fill the last column up would make rows of the longest one's length.
        _out.width = _WIDE
        with _out.capture() as shown:
            _out.print(what)
        _out.file.writelines(f"{line.rstrip()}\n" for line in shown.get().splitlines())


def terminal_width() -> int:
    """Columns of the terminal; 0 where there is none, and nothing has to be cut."""
    return _out.width if _out.is_terminal else 0


def note(text: str) -> None:
    """Print a line to standard error, where it does not disturb what a program reads."""
    _lines(_err, text, "dim")


def warn(text: str) -> None:
    """Print a warning to standard error."""
    _lines(_err, f"warning: {text}", "yellow")


def _lines(console: Console, text: str, style: str | None) -> None:
    """Print a text; a terminal breaks it between words, but not where it holds a command that somebody may copy."""
    whole = not console.is_terminal or "benchcheck " in text
    visible = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    console.print(escape(visible), style=style, soft_wrap=whole)


@dataclass(slots=True)
class Bars:
    """A run's Reporter: one bar per step, with items a second and the time that is left."""

    started: float = field(default_factory=time.monotonic)
    _bars: Progress | None = None
    _task: TaskID | None = None
    _errors: int = 0
    _told: float = -math.inf

    def step_begins(self, step: Step, todo: int, waiting: int, blocked: int) -> None:
        """Start a step's bar."""
        self._errors = 0
        waits = f", {waiting:,} waiting for frames" if waiting else ""
        waits += f", {blocked:,} waiting for an earlier step" if blocked else ""
        if not todo:
            note(f"step {step.number} {step.name}: nothing to ask{waits}")
            return
        if not _err.is_terminal:
            note(f"step {step.number} {step.name}: asking {todo:,} item{'s' if todo > 1 else ''}{waits}")
            return
        self._bars = progress_bar()
        self._bars.start()
        name = f"step {step.number} {step.name}"
        self._task = self._bars.add_task(name, total=todo, rate="", failed="", step=name, waits=False)

    def advance(self, items: int, errors: int) -> None:
        """Move the bar."""
        self._errors += errors
        if self._bars is not None and self._task is not None:
            elapsed = self._bars.tasks[0].elapsed or 0.0
            done = self._bars.tasks[0].completed + items
            rate = f"{done / elapsed:,.1f} items/s" if elapsed else ""
            failed = f"{self._errors:,} errors" if self._errors else ""
            self._bars.update(self._task, advance=items, rate=rate, failed=failed)

    def waits(self, text: str) -> None:
        """Show what the step waits for, in the bar's place; without a terminal a line now and then. Empty: no more."""
        if self._bars is not None and self._task is not None:
            task = self._bars.tasks[0]
            if task.fields["waits"] and not text and not task.completed:
                self._bars.reset(self._task)  # else the rate would count the seconds that nothing could be asked
            shown = escape(text[: max(20, _err.width - 12)]) or task.fields["step"]
            self._bars.update(self._task, description=shown, waits=bool(text))
        elif text and time.monotonic() - self._told > _WAIT_S:
            self._told = time.monotonic()
            note(text)

    def step_ends(self, summary: StepSummary) -> None:
        """Take the bar away and say what the step did."""
        self.close()
        if summary.asked_now:
            note(
                f"step {summary.step.number} {summary.step.name}: {summary.removed:,} of {summary.answered:,} removed, "
                f"{summary.waiting:,} waiting, {summary.failed:,} failed, {summary.wall_s:,.1f} s, "
                f"{summary.items_per_s:,.1f} items/s, {summary.worker_items_per_s:,.1f} a worker"
            )
        for text in doubts_of(summary):
            warn(text)

    def close(self) -> None:
        """Take a bar away that an error or Ctrl-C left standing."""
        if self._bars is not None:
            self._bars.stop()
        self._bars = self._task = None


def progress_bar() -> Progress:
    """A bar that is gone when it is done."""
    return Progress(
        TextColumn("{task.description}"),
        _unless_it_waits(BarColumn()),
        _unless_it_waits(MofNCompleteColumn()),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[failed]}", style="yellow"),
        _unless_it_waits(TimeRemainingColumn()),
        console=_err,
        transient=True,
    )


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show in a terminal that something goes on, and for how long, where nobody counts its parts."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=_err, transient=True, disable=not _err.is_terminal) as sign:
        sign.add_task(what, total=None)
        yield


def _unless_it_waits(column: ProgressColumn) -> ProgressColumn:
    """Return a column that makes room while something is waited for."""

    class Column(ProgressColumn):
        def render(self, task: Task) -> RenderableType:
            return Text() if task.fields.get("waits") else column.render(task)

    return Column()


def funnel_table(summaries: Sequence[StepSummary]) -> Table:
    """The funnel, one row per step."""
    table = columns("step", "name", "alive", "answered", "removed", "share", "waiting", "failed", "to ask")
    for item in summaries:
        share = f"{item.removed / item.answered:.1%}" if item.answered else "-"
        cells = [f"{n:,}" for n in (item.alive, item.answered, item.removed)]
        rest = [f"{n:,}" for n in (item.waiting, item.failed, item.remaining)]
        table.add_row(str(item.step.number), item.step.name, *cells, share, *rest)
    return table


def noise_shown(steps: Sequence[StepNoise]) -> Iterator[Table | str]:
    """What second readings showed, one row per step; nothing where there are none."""
    if not steps:
        return
    table = columns("step", "again", "mean", "95 %", "most", "band", "differ", "near", "may turn", "beyond")
    for found in steps:
        noise = found.noise
        moved = [f"{value:.2g}" for value in (noise.letters.mean, noise.letters.p95, noise.letters.most, noise.band)]
        counts = [f"{count:,}" for count in (noise.flips, found.near, found.unsure)]
        table.add_row(str(found.step.number), f"{noise.items:,}", *moved, *counts, f"<{noise.beyond.high:.1%}")
    yield from (
        "",
        "Noise: items that were read again, and how far their letters moved (mean, 95 %, most; nats).",
        table,
    )
    for found in steps:
        if len(found.engines) > 1:
            yield f"step {found.step.number} was read by {' and by '.join(found.engines)}"
    yield (
        "differ: verdicts of the sample that came out otherwise. near: answered items within the band of the "
        "threshold. may turn: verdicts that the noise could turn. beyond: share of items that may move further."
    )


def forecast_table(foreseen: Sequence[StepForecast]) -> Table:
    """What a pilot says of the whole."""
    table = columns("step", "name", "pilot", "removed, 95 %", "whole: items", "engine time")
    for item in foreseen:
        share = f"{item.removed.share:.1%} ({item.removed.low:.1%} to {item.removed.high:.1%})" if item.asked else "-"
        table.add_row(str(item.step), item.name, f"{item.asked:,}", share, f"{item.items:,}", span(item.seconds))
    return table


def states_line(states: Mapping[str, int]) -> str:
    """Verdicts in one line."""
    return " · ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in states.items() if count)


def plan_table(state: Survey, step: int = 0, wanted: Flags | None = None) -> Table:
    """What is left to ask, per benchmark and step; `wanted` limits what is to ask, as in `totals`."""
    folds = [here for here in state.fold.steps if step in (0, here.step.number)]
    table = columns("benchmark", "screened", *(f"step {here.step.number}" for here in folds))
    for bench in state.pool.benches():
        mine = state.pool.bench == bench
        asked = mine if wanted is None else mine & wanted
        cells = [f"{int((here.todo & asked).sum()):,}" for here in folds]
        table.add_row(escape(bench), f"{int((state.pool.screenable & mine).sum()):,}", *cells)
    return table


def pool_table(summary: PoolSummary) -> Table:
    """What a build found, per benchmark."""
    table = columns("benchmark", "items", "multiple-choice", "open", "issues")
    for bench in summary.benches:
        issues = ", ".join(f"{code} {count:,}" for code, count in bench.issue_counts.most_common()) or "-"
        table.add_row(escape(bench.bench), f"{bench.rows:,}", f"{bench.mcq:,}", f"{bench.open:,}", issues)
    return table


@dataclass(slots=True)
class FramesBar:
    """Hears of an extraction, or of a preparation, and draws its bar."""

    label: str = "frames"
    _bars: Progress | None = None
    _task: TaskID | None = None

    def __call__(self, state: FramesProgress | PrepareProgress) -> None:
        """Move the bar."""
        if not _err.is_terminal:
            return
        if self._bars is None:
            self._bars = progress_bar()
            self._bars.start()
            self._task = self._bars.add_task(self.label, total=state.total, rate="", failed="")
        failed = f"{state.failed:,} failed" if state.failed else ""
        done, rate = state.done + state.failed, f"{state.videos_per_s:,.1f} videos/s"
        self._bars.update(self._task or TaskID(0), completed=done, rate=rate, failed=failed)

    def close(self) -> None:
        """Take the bar away."""
        if self._bars is not None:
            self._bars.stop()
        self._bars = None


def states_of(state: Survey) -> dict[str, int]:
    """Items per state, by name."""
    codes = state.fold.state.tolist()
    return {name: codes.count(code) for code, name in STATE_NAMES.items()}


def ending(study: Study, state: Survey, steps: Sequence[StepSummary], pilot: int = 0) -> list[object]:
    """What ends a run: the funnel of its steps and the verdicts, and what a pilot says of the whole."""
    shown: list[object] = [funnel_table(steps), states_line(states_of(state))]
    if pilot:
        shown += ["", "The whole, as this pilot foresees it:"]
        whole, cascade = _whole(study, state), study.config.protocol.cascade
        shown.append(forecast_table(forecast(steps, whole, _seconds_per_item(study), cascade)))
    if embedded_notice(study.config) and not all(source.truth for source in study.config.pool):
        shown.append("The embedded models know a made-up world: on a real benchmark these verdicts mean nothing.")
    return shown


def outdated(study: Study) -> None:
    """Say which annotation files were written after the pool was built: what they say now is not asked yet."""
    for path in newer_files(study):
        warn(f"{path} is newer than the pool. Cure: benchcheck pool build {study.root}")


def _whole(study: Study, state: Survey) -> dict[str, int]:
    """How many items of each benchmark a whole run asks first: all that are screened, or the sample."""
    counts = {bench: int((state.pool.screenable & (state.pool.bench == bench)).sum()) for bench in state.pool.benches()}
    limit = 0 if study.config.protocol.cascade else study.config.protocol.sample
    return {bench: min(count, limit) if limit else count for bench, count in counts.items()}


def doubts(study: Study, state: Survey, steps: Sequence[StepSummary]) -> list[str]:
    """What a reader should distrust, one line each."""
    imported = [IMPORTED_NOTICE] if study.import_differences.exists() else []
    return [line for summary in steps for line in doubts_of(summary)] + waits(study, state) + imported


def waits(study: Study, state: Survey) -> list[str]:
    """Why items wait for frames: one line per reason, the most items first.

    Raises:
        StudyError: the video manifest cannot be read.
    """
    lines = []
    for reason in reasons(study, state):
        cure = f" ({reason.cure})" if reason.cure else ""
        lines.append(f"{reason.items:,} items wait: {reason.status}{cure}, such as {' '.join(reason.example.split())}")
    return lines


def doubts_of(summary: StepSummary) -> list[str]:
    """What a reader should distrust in one step."""
    step = summary.step.number
    failed = [
        f"step {step}: {kind.count:,} items failed with {kind.kind}, such as {', '.join(kind.examples)}"
        for kind in summary.kinds
    ]
    return failed + list(step_warnings(summary))


def _seconds_per_item(study: Study) -> dict[int, float]:
    """Engine seconds per item so far, by step; what another model cost there says nothing of this one."""
    models = {step.number: study.config.models[step.role].model for step in study.config.steps}
    items: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for cost in [cost for cost in costs(study) if cost["model"] == models.get(cost["step"])]:
        items[cost["step"]] = items.get(cost["step"], 0) + cost["items"]
        seconds[cost["step"]] = seconds.get(cost["step"], 0.0) + cost["wall_s"]
    return {step: seconds[step] / count for step, count in items.items() if count}


def columns(*names: str) -> Table:
    """A plain table; numbers stand right, all but the first column and texts."""
    table = Table(box=None, pad_edge=False)
    texts = ("step", "name", "benchmark", "spec", "issues", "licence", "source", "class", "answerable", "should")
    for name in names:
        left = name.startswith(texts) and not name.startswith("step ")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    return table


def span(seconds: float) -> str:
    """Seconds as a span that a person reads."""
    if math.isnan(seconds):
        return "-"
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
