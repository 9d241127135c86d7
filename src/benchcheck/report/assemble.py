"""Assemble a study's results: one table of every item, a DuckDB file, a summary and the accounting.

DuckDB does the work, out of core; each file appears whole or not at all. Tables and columns are documented in
docs/results.md, and a test compares.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.files import publish
from benchcheck.report.tables import STATE_NAMES, fill
from benchcheck.run.accounting import COLUMNS, costs
from benchcheck.run.driver import StepSummary, step_warnings, summarize
from benchcheck.run.plan import Survey, survey
from benchcheck.screen.verdicts import State
from benchcheck.study import Study

__all__ = ["Assembled", "assemble"]


@dataclass(frozen=True, slots=True)
class Assembled:
    """What was written, and the numbers that a summary shows."""

    survey: Survey
    summaries: tuple[StepSummary, ...]
    states: Mapping[str, int]
    """Items per state, over the whole pool."""
    warnings: tuple[str, ...]
    files: tuple[Path, ...]


def assemble(study: Study) -> Assembled:
    """Write pool.duckdb, pool_items.parquet, pool_summary.md and .csv and run_accounting.csv.

    Raises:
        StudyError: there is no pool, or a file cannot be read or written.
        InputError: a control benchmark's truth file is not readable.
    """
    state = survey(study)
    summaries = tuple(summarize(study, state, index) for index in range(len(study.config.steps)))
    names = [STATE_NAMES[State(code)] for code in state.fold.state.tolist()]
    counts = {name: names.count(name) for name in STATE_NAMES.values()}
    warnings = tuple(warning for summary in summaries for warning in step_warnings(summary))
    with publish(study.pool_items) as parquet, publish(study.database) as path:
        fill(study, state, names, path, parquet)
    _write_csv(study.accounting, COLUMNS, costs(study))
    _write_csv(study.summary_csv, _SUMMARY_COLUMNS, _summary_rows(summaries))
    with publish(study.summary_md) as path:
        path.write_text(_summary_page(study, summaries, counts, warnings), encoding="utf-8")
    files = (study.pool_items, study.database, study.summary_md, study.summary_csv, study.accounting)
    return Assembled(state, summaries, counts, warnings, files)


_SUMMARY_COLUMNS = ("step", "name", "bench", "asked", "removed", "removed_share", "failed")


def _summary_rows(summaries: Sequence[StepSummary]) -> list[dict[str, Any]]:
    """One row per step and benchmark."""
    return [
        {
            "step": summary.step.number,
            "name": summary.step.name,
            "bench": loss.bench,
            "asked": loss.asked,
            "removed": loss.removed,
            "removed_share": round(loss.removed / loss.asked, 6) if loss.asked else "",
            "failed": loss.failed,
        }
        for summary in summaries
        for loss in summary.losses
    ]


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Publish a CSV file."""
    with publish(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _summary_page(
    study: Study, summaries: Sequence[StepSummary], counts: Mapping[str, int], warnings: Sequence[str]
) -> str:
    """The summary as Markdown."""
    total = sum(counts.values())
    lines = [f"# {study.config.name}", "", f"{total:,} items in the pool."]
    lines += ["", "| verdict | items | share |", "|---|--:|--:|"]
    lines += [f"| {name} | {count:,} | {count / max(total, 1):.1%} |" for name, count in counts.items()]
    lines += ["", "| step | name | alive | answered | removed | waiting | failed | remaining |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for item in summaries:
        cells = (item.alive, item.answered, item.removed, item.waiting, item.failed, item.remaining)
        lines.append(f"| {item.step.number} | {item.step.name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    lines += ["", "Steps 3 and 6 measure saturation, not a shortcut."]
    if warnings:
        lines += ["", "Warnings", "", *(f"- {warning}" for warning in warnings)]
    return "\n".join(lines) + "\n"
