"""What `benchcheck benchmarks` shows in a terminal: every spec in a line, or one of them in full."""

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from benchcheck.console import terminal_width
from benchcheck.pool.catalogue import MARKS, UNKNOWN, counted, entry_to_paste, standing, where_from
from benchcheck.pool.specs import CHECKED, Source, Spec

__all__ = ["spec_shown", "specs_shown", "specs_table"]

_ROOMY = 110
"""Columns from which a benchmark's title has a place of its own."""
_GAP = 2
"""Blanks between two columns."""
_TITLE, _LICENCE = 1, 5
"""Places of the columns that are cut."""
_LEAST = 8
"""Columns that are left to the licence in a terminal too narrow for the rest."""


def specs_shown(specs: Sequence[Spec]) -> Iterator[Table | str]:
    """What the command prints: the table, what its marks mean, and where to look next."""
    yield specs_table(specs, terminal_width())
    yield ""
    yield from standing(specs)
    yield f"{UNKNOWN} is not known: nothing is expected of such a file, and nothing can drift."
    yield "One in full: benchcheck benchmarks NAME"
    yield 'A file of your own needs none of these: spec = "generic", or benchcheck pool add FILE'


def specs_table(specs: Sequence[Spec], width: int) -> Table:
    """A row per spec, cut to a terminal's columns; nothing is cut where `width` is 0, which is no terminal."""
    roomy = not 0 < width < _ROOMY
    rows = [_row(spec, roomy) for spec in specs]
    heads = [
        "spec",
        "benchmark",
        "items",
        "multiple-choice" if roomy else "choice",
        "checked" if roomy else "",
        "licence",
    ]
    longest = [max(len(text) for text in texts) for texts in zip(heads, *rows, strict=True)]
    fixed = sum(longest) - longest[_TITLE] - longest[_LICENCE] + _GAP * (len(heads) - (1 if roomy else 2))
    rest = max(width - fixed, _LEAST)
    title = min(longest[_TITLE], rest * 3 // 5) if roomy else 0
    rooms = {_TITLE: title, _LICENCE: rest - title} if width else {}
    table = Table(box=None, pad_edge=False)
    shown = [place for place in range(len(heads)) if roomy or place != _TITLE]
    for place in shown:
        table.add_column(heads[place], justify="right" if place in (2, 3) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(_cut(row[place], rooms.get(place, 0))) for place in shown))
    return table


def _row(spec: Spec, roomy: bool) -> tuple[str, ...]:
    """The texts of a spec's row, whole."""
    level = spec.source.checked
    mark = f"{MARKS[level]} {level}" if roomy else MARKS[level]
    counts = counted(spec.expect.items), counted(spec.expect.mcq)
    return spec.bench, spec.title, *counts, mark, spec.source.licence or "not checked"


def _cut(text: str, room: int) -> str:
    """A text within so many columns; whole where there is no bound."""
    return text if not room or len(text) <= room else text[: room - 1].rstrip() + "…"


def spec_shown(spec: Spec) -> Iterator[Table | str]:
    """One spec in full: where to get it, on which terms, what to expect, and the entry to paste."""
    yield f"{spec.bench}: {spec.title or 'a file of your own'}"
    if terminal_width():
        table = Table.grid(padding=(0, 2))
        for name, text in _lines(spec):
            table.add_row(name, escape(text))
        yield table
    else:
        yield from (f"{name:11}{text}" for name, text in _lines(spec))
    yield ""
    yield "In benchcheck.toml:"
    yield ""
    yield entry_to_paste(spec)


def _lines(spec: Spec) -> Iterator[tuple[str, str]]:
    """What is known of a benchmark, each with its name."""
    source, expect = spec.source, spec.expect
    for number, line in enumerate(where_from(spec)):
        yield "" if number else "get", line
    if spec.join:
        yield "beside it", f"{spec.join.file}, joined on {spec.join.on}"
    published = source.files or source.hub or source.repository
    if published:
        yield "licence", _terms(source)
    options = f"; {', '.join(map(str, expect.options))} options" if expect.options else ""
    counts = f"{expect.items:,} items" if expect.items else "any number of items"
    yield "expects", f"{counts}{f', {expect.mcq:,} of them multiple-choice' if expect.mcq else ''}{options}"
    if published:
        yield "checked", f"{MARKS[source.checked]} {source.checked}: {CHECKED[source.checked]}"
    yield from (pair for pair in (("note", source.note), ("cite", source.citation)) if pair[1])


def _terms(source: Source) -> str:
    """The licence, and whether files may be passed on, unless it says so itself."""
    may = "may be passed on" if source.redistributable else "may not be passed on, as far as is known"
    return source.licence if "passed on" in source.licence else f"{source.licence or 'not checked'}; {may}"
