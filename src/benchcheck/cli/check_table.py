"""What `benchcheck pool check` shows in a terminal, and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from benchcheck.console import columns, terminal_width
from benchcheck.files import publish
from benchcheck.pool.checking.check import ALPHA, BenchCheck, PoolCheck
from benchcheck.pool.checking.findings import findings

__all__ = ["check_json", "check_shown", "check_table", "write_check"]

WIDE = 120
"""Columns of a terminal that has room for all."""
_SHOWN = 20
"""Findings that are printed; all of them are in the JSON."""


def check_shown(check: PoolCheck) -> Iterator[Table | str]:
    """What the command prints: a row per benchmark, how to read it, then findings."""
    yield check_table(check, terminal_width() or WIDE)
    yield (
        f"Shares in per cent. letter: how often the most frequent right letter is right. longest, shortest, prior: "
        f"what choosing by length, or by how often a text is right in other items, gets right. * beyond chance: "
        f"p < {ALPHA} after Holm over {check.tests} tests. Items of one video are not independent: see "
        "docs/pool-check.md."
    )
    found = findings(check)
    yield ""
    yield "Findings, what matters most first:" if found else "No findings."
    for finding in found[:_SHOWN]:
        yield f"{finding.bench}: {finding.text}"
    if len(found) > _SHOWN:
        yield f"and {len(found) - _SHOWN} more: --json FILE has them all, --bench NAME those of one benchmark"


def check_table(check: PoolCheck, width: int = WIDE) -> Table:
    """One row a benchmark; a narrow terminal has the columns that matter most."""
    narrow = ("benchmark", "mcq", "options", "chance", "letter", "longest", "prior", "repeats", "shared")
    wide = ("benchmark", "items", *narrow[1:6], "shortest", *narrow[6:], "files", "checked", "issues")
    names = wide if width >= WIDE else narrow
    table = columns(*names)
    if width < WIDE:
        table.padding = (0, 1, 0, 0)
    for bench in check.benches:
        cells = _cells(bench)
        table.add_row(*(cells[name] for name in names))
    return table


def _cells(bench: BenchCheck) -> dict[str, str]:
    """Every column's text."""
    found, sizes = bench.figures, bench.figures.sizes
    span = f"{min(sizes)}-{max(sizes)}" if len(sizes) > 1 else "".join(map(str, sizes)) or "-"
    letters = _share(bench, "letters", bench.majority_acc)
    states = set(bench.moved.values()) or set(bench.files.values())
    drifted = ["drift"] if bench.drift else []
    return {
        "benchmark": escape(bench.bench),
        "items": f"{bench.items:,}",
        "mcq": f"{found.mcq:,}",
        "options": span,
        "chance": "-" if found.chance is None else f"{100 * found.chance:.1f}",
        "letter": f"{bench.majority_letter} {letters}".strip(),
        "longest": _share(bench, "longest", found.longest.share),
        "shortest": _share(bench, "shortest", found.shortest.share),
        "prior": _share(bench, "option_prior", found.option_prior.share),
        "repeats": f"{bench.repeats:,}",
        "shared": f"{bench.shared:,}",
        "files": ", ".join([*sorted(states), *drifted]) or "-",
        "checked": bench.checked or "-",
        "issues": ", ".join(f"{escape(code)} {count:,}" for code, count in bench.issues.most_common()) or "-",
    }


def _share(bench: BenchCheck, test: str, share: float | None) -> str:
    """A share in per cent, with a star where it is beyond chance."""
    if share is None:
        return "-"
    return f"[bold red]{100 * share:.1f}*[/]" if bench.marked(test) else f"{100 * share:.1f} "


def check_json(check: PoolCheck) -> str:
    """The whole check as JSON, as docs/pool-check.md describes it."""
    return json.dumps(check.row() | {"findings": [finding.row() for finding in findings(check)]}, indent=1)


def write_check(check: PoolCheck, path: Path) -> None:
    """Write the JSON whole or not at all."""
    with publish(path) as temporary:
        temporary.write_text(check_json(check) + "\n", encoding="utf-8")
