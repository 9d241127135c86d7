"""What the commands draw in a terminal: progress with rate and rest, tables, warnings. Only this and cli.py print."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchcheck.run.driver import StepSummary, step_warnings
from benchcheck.run.pilot import StepForecast
from benchcheck.screen.steps import Step

__all__ = ["Bars", "forecast_table", "funnel_table", "note", "states_line", "tell", "warn"]

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


def tell(what: object) -> None:
    """Print a line or a table; text in square brackets is text."""
    _out.print(escape(what) if isinstance(what, str) else what)


def note(text: str) -> None:
    """Print a line to standard error, where it does not disturb what a program reads."""
    _err.print(escape(text), style="dim")


def warn(text: str) -> None:
    """Print a warning to standard error."""
    _err.print(f"warning: {escape(text)}", style="yellow")


@dataclass(slots=True)
class Bars:
    """A run's Reporter: one bar per step, with items a second and the time that is left."""

    started: float = field(default_factory=time.monotonic)
    _bars: Progress | None = None
    _task: TaskID | None = None
    _errors: int = 0

    def step_begins(self, step: Step, todo: int, waiting: int) -> None:
        """Start a step's bar."""
        self._errors = 0
        waits = f", {waiting:,} waiting for frames" if waiting else ""
        if not todo:
            note(f"step {step.number} {step.name}: nothing to ask{waits}")
            return
        if not _err.is_terminal:
            note(f"step {step.number} {step.name}: asking {todo:,} items{waits}")
            return
        self._bars = progress_bar()
        self._bars.start()
        self._task = self._bars.add_task(f"step {step.number} {step.name}", total=todo, rate="", failed="")

    def advance(self, items: int, errors: int) -> None:
        """Move the bar."""
        self._errors += errors
        if self._bars is not None and self._task is not None:
            elapsed = self._bars.tasks[0].elapsed or 0.0
            done = self._bars.tasks[0].completed + items
            rate = f"{done / elapsed:,.1f} items/s" if elapsed else ""
            failed = f"{self._errors:,} errors" if self._errors else ""
            self._bars.update(self._task, advance=items, rate=rate, failed=failed)

    def step_ends(self, summary: StepSummary) -> None:
        """Take the bar away and say what the step did."""
        self.close()
        if summary.asked_now:
            note(
                f"step {summary.step.number} {summary.step.name}: {summary.removed:,} of {summary.answered:,} removed, "
                f"{summary.waiting:,} waiting, {summary.failed:,} failed, {summary.wall_s:,.1f} s, "
                f"{summary.items_per_s:,.1f} items/s"
            )
        for kind in summary.kinds:
            warn(f"{kind.count:,} items failed with {kind.kind}, such as {', '.join(kind.examples)}")
        for text in step_warnings(summary):
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
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[failed]}", style="yellow"),
        TimeRemainingColumn(),
        console=_err,
        transient=True,
    )


def funnel_table(summaries: Sequence[StepSummary]) -> Table:
    """The funnel, one row per step."""
    table = Table(box=None, pad_edge=False)
    for name in ("step", "name", "alive", "answered", "removed", "share", "waiting", "failed", "to ask"):
        table.add_column(name, justify="left" if name in ("step", "name") else "right")
    for item in summaries:
        share = f"{item.removed / item.answered:.1%}" if item.answered else "-"
        cells = [f"{n:,}" for n in (item.alive, item.answered, item.removed)]
        rest = [f"{n:,}" for n in (item.waiting, item.failed, item.remaining)]
        table.add_row(str(item.step.number), item.step.name, *cells, share, *rest)
    return table


def forecast_table(foreseen: Sequence[StepForecast]) -> Table:
    """What a pilot says of the whole."""
    table = Table(box=None, pad_edge=False)
    for name in ("step", "name", "pilot", "removed, 95 %", "whole: items", "engine time"):
        table.add_column(name, justify="left" if name in ("step", "name") else "right")
    for item in foreseen:
        share = f"{item.removed.share:.1%} ({item.removed.low:.1%} to {item.removed.high:.1%})" if item.asked else "-"
        table.add_row(str(item.step), item.name, f"{item.asked:,}", share, f"{item.items:,}", _span(item.seconds))
    return table


def states_line(states: Mapping[str, int]) -> str:
    """Verdicts in one line."""
    return " · ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in states.items() if count)


def _span(seconds: float) -> str:
    """Seconds as a span that a person reads."""
    if math.isnan(seconds):
        return "-"
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
