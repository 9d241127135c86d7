"""Assemble a study's results: one table of every item, a DuckDB file, a summary and the accounting.

DuckDB does the work, out of core; the files appear together and whole, or not at all. Tables and columns are documented
in docs/results.md, and a test compares.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.files import publish
from benchcheck.report.findings import MEANINGS, REMOVED, verdict_name
from benchcheck.report.noise import noise_lines
from benchcheck.report.notices import IMPORTED_NOTICE, embedded_notice
from benchcheck.report.tables import STATE_NAMES, engines_in, fill, state_names
from benchcheck.run.accounting import COLUMNS, costs
from benchcheck.run.driver import StepSummary, step_warnings, summarize_all
from benchcheck.run.plan import Survey, survey
from benchcheck.study import IMPORTED, Study
from benchcheck.video.proving.certificate import certificate_line

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
    summaries = summarize_all(study, state)
    names = state_names(state)
    counts = {name: names.count(name) for name in STATE_NAMES.values()}
    warnings = [(summary.step.number, text) for summary in summaries for text in step_warnings(summary)]
    texts = tuple(text for _, text in warnings)
    # Every file is written before the first appears, and the database, which the page reads, appears last.
    with ExitStack() as written:
        database, parquet, accounting, table, page = (
            written.enter_context(publish(path))
            for path in (study.database, study.pool_items, study.accounting, study.summary_csv, study.summary_md)
        )
        fill(study, state, warnings, database, parquet)
        _write_csv(accounting, COLUMNS, costs(study))
        _write_csv(table, _SUMMARY_COLUMNS, _summary_rows(summaries))
        page.write_text(_summary_page(study, summaries, counts, texts, engines_in(database)), encoding="utf-8")
    files = (study.pool_items, study.database, study.summary_md, study.summary_csv, study.accounting)
    return Assembled(state, summaries, counts, texts, files)


_SUMMARY_COLUMNS = ("step", "name", "bench", "asked", "answered", "removed", "removed_share", "failed")


def _summary_rows(summaries: Sequence[StepSummary]) -> list[dict[str, Any]]:
    """One row per step and benchmark."""
    return [
        {
            "step": summary.step.number,
            "name": summary.step.name,
            "bench": loss.bench,
            "asked": loss.asked,
            "answered": answered,
            "removed": loss.removed,
            "removed_share": round(loss.removed / answered, 6) if answered else "",
            "failed": loss.failed,
        }
        for summary in summaries
        for loss in summary.losses
        for answered in [loss.asked - loss.failed]
    ]


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _split(summaries: Sequence[StepSummary], counts: Mapping[str, int]) -> dict[str, int]:
    """Return items per verdict, the removed ones by what the step measures that removed them."""
    removed = {kind: sum(of.removed for of in summaries if of.step.kind == kind) for kind in REMOVED}
    return {name: removed.get(name, counts.get(name, 0)) for name in MEANINGS}


def _summary_page(
    study: Study,
    summaries: Sequence[StepSummary],
    counts: Mapping[str, int],
    warnings: Sequence[str],
    engines: set[str],
) -> str:
    """The summary as Markdown; `engines` are the backends that answered."""
    total = sum(counts.values())
    lines = ["# " + " ".join(study.config.name.split()), "", f"{total:,} items in the pool."]
    if notice := embedded_notice(study.config):
        lines += ["", f"**{notice}**"]
    if IMPORTED in engines:
        lines += ["", f"**{IMPORTED_NOTICE}**"]
    lines += ["", "| verdict | items | share |", "|---|--:|--:|"]
    for name, count in _split(summaries, counts).items():
        lines.append(f"| {verdict_name(name, study.config.steps)} | {count:,} | {count / max(total, 1):.1%} |")
    lines += ["", "| step | name | alive | answered | removed | waiting | failed | remaining |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|--:|"]
    for item in summaries:
        cells = (item.alive, item.answered, item.removed, item.waiting, item.failed, item.remaining)
        lines.append(f"| {item.step.number} | {item.step.name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    lines += ["", "Steps 3 and 6 measure saturation, not a shortcut; the two are never added up to one rate."]
    if noise := noise_lines(study):
        lines += ["", "Noise", "", *(f"- {line}" for line in noise)]
    if certificate := certificate_line(study):
        lines += ["", f"{certificate[0].upper()}{certificate[1:]}."]
    if warnings:
        lines += ["", "Warnings", "", *(f"- {warning}" for warning in warnings)]
    return "\n".join(lines) + "\n"
