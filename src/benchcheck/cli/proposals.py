"""How a guessed spec is shown: what each field is and why, three items, what is odd about the sample."""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from benchcheck.pool.adding.guess_names import Doubt
from benchcheck.pool.adding.proposal import Proposal
from benchcheck.pool.issues import ISSUES, blocking
from benchcheck.pool.together import CheckedItem
from benchcheck.screen.prompts import LETTERS

__all__ = ["asked_for", "proposal_json", "proposal_shown"]

_ROWS = (
    ("reader", "reader"),
    ("header", "header"),
    ("unnest", "unnest"),
    ("question", "question"),
    ("question_text", "question"),
    ("options.kind", "options"),
    ("gold.kind", "gold"),
    ("video.member", "video"),
    ("video.start", "start"),
    ("video.end", "end"),
    ("video.window", "window"),
    *((key, key) for key in ("id", "category", "duration", "subtitles", "group", "mcq_where", "leaks")),
    ("source.hub", "hub"),
)
"""Keys of a spec that are shown, each with what `--map` calls it."""


def proposal_shown(found: Proposal) -> Iterator[RenderableType]:
    """What is shown before a spec is written, part by part."""
    names = ", ".join(path.name for path in found.files[:3]) + ", …" * (len(found.files) > 3)
    share = "all" if found.whole else "the first"
    read = f"{share} {found.records:,} records of {names}" if found.files else "a task file alone: nothing was tried"
    yield Text.assemble((found.bench, "bold"), f" · {read}")
    yield Padding(_mapping(found), (1, 0, 1, 1), expand=False)
    for line in found.guess.notes:
        yield Text(f" note: {line}", "dim")
    if found.guess.notes and found.shown:
        yield Text()
    if found.shown:
        number = {1: "One item", 2: "Two items"}.get(len(found.shown), "Three items")
        yield Text(f"{number} as understood", "bold")
        for checked in found.shown:
            yield Padding(_item(checked), (1, 0, 0, 1), expand=False)
        yield Text()
        yield from _summary(found)


def _mapping(found: Proposal) -> Table:
    """One row for everything that was found: what, where, why."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold", ratio=2)
    table.add_column(style="dim", ratio=3)
    for key, name in _ROWS:
        head, _, last = key.rpartition(".")
        part = found.guess.table.get(head, {}) if head else found.guess.table
        if last in part:
            table.add_row(name, _cell(key, part), found.guess.reasons.get(key, ""))
    for doubt in found.doubts:
        table.add_row(Text(doubt.key, "yellow"), Text("?", "yellow"), Text(doubt.why, "yellow"))
    return table


def _cell(key: str, part: dict[str, Any]) -> str:
    """What was found for a key: of options and gold the fields that they are read from."""
    if key == "options.kind":
        fields = part.get("fields") or part.get("values") or part.get("others")
        return part.get("field") or (_columns(fields) if fields else "in the question")
    if key == "gold.kind":
        return str(part.get("field", part["kind"])) + (f", text {part['text']}" if "text" in part else "")
    return _shown(part[key.rpartition(".")[2]])


def _columns(names: list[str]) -> str:
    """Columns in a cell; of many the first and the last."""
    return ", ".join(names) if len(names) < 5 else f"{names[0]}, {names[1]} … {names[-1]}"


def _shown(value: Any) -> str:
    """A value of the spec in a cell."""
    if isinstance(value, list):
        return ", ".join(value)
    return ", ".join(f"{key} = {part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def _item(checked: CheckedItem) -> Group:
    """One item: where it stands, its video and window, the question, the options with the gold marked, its issues."""
    item = checked.item
    where = [checked.record.place, item.source_id, f"video {item.video_key.rpartition('::')[2] or 'none'}"]
    if item.start is not None or item.end is not None:
        where.append(f"{_seconds(item.start or 0)} to {_seconds(item.end)}")
    where += [item.category] if item.category else []
    head = Text.assemble((" · ".join(where), "dim"), "\n", (_cut(item.question, 400) or "(no question)", "bold"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for place, option in enumerate(item.options[: len(LETTERS)]):
        right = place == item.gold
        style = "green" if right else ""
        mark = Text(f"  {'▸' if right else ' '} {LETTERS[place]}", style)
        table.add_row(mark, Text(_cut(option, 200) + ("   ← gold" if right else ""), style))
    issues = [
        Text("  " + _cut(f"{issue.code}: {issue.detail}", 160), "red" if blocking(issue.code) else "yellow")
        for issue in checked.issues
    ]
    return Group(head, table, *issues) if item.options else Group(head, *issues)


def _seconds(value: float | None) -> str:
    return "the end" if value is None else f"{value:g} s"


def _cut(text: str, most: int) -> str:
    """A text on one line, cut to what says enough."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _summary(found: Proposal) -> Iterator[RenderableType]:
    """How many items can be screened, their numbers of options, and every issue with its first case."""
    options = ", ".join(f"{size} in {count:,}" for size, count in sorted(found.options.items()))
    kept = found.records - found.mcq
    yield Text.assemble((f"{found.mcq:,} of {found.records:,} can be screened", "bold"), f"; options: {options}")
    if kept:
        yield Text(f"{kept:,} {'is' if kept == 1 else 'are'} kept as open: never asked, never dropped", "yellow")
    if not found.issues:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    table.add_column(style="dim")
    for code, count in sorted(found.issues.items(), key=lambda pair: (not blocking(pair[0]), -pair[1])):
        colour = "red" if blocking(code) else "yellow"
        table.add_row(f"{count:,}", Text(code, colour), ISSUES[code].meaning)
    yield Padding(table, (1, 0, 0, 1), expand=False)


def asked_for(doubts: list[Doubt]) -> str:
    """What a user has to say before the spec can be written, on one line."""
    parts = []
    for doubt in doubts:
        choices = [f"--map {shlex.quote(f'{doubt.key}={choice}')}" for choice in doubt.choices]
        cure = f"Cure: {' or '.join(choices)}" if choices else f"Cure: --map {doubt.key}=…"
        parts.append(f"{doubt.key}: {doubt.why}. {cure}")
    return "; ".join(parts)


def proposal_json(found: Proposal, written: str) -> str:
    """The same for programs."""
    guess = found.guess
    items = [
        {
            "place": checked.record.where,
            **{name: getattr(checked.item, name) for name in ("source_id", "question", "options", "gold", "format")},
            **{name: getattr(checked.item, name) for name in ("video_key", "start", "end", "category", "issues")},
        }
        for checked in found.shown
    ]
    shown = {
        "bench": found.bench,
        "files": list(map(str, found.files)),
        "records": found.records,
        "whole": found.whole,
        "spec": guess.table,
        "reasons": guess.reasons,
        "open": [{"key": one.key, "why": one.why, "choices": list(one.choices)} for one in found.doubts],
        "notes": guess.notes,
        "mcq": found.mcq,
        "options": {str(size): count for size, count in sorted(found.options.items())},
        "issues": dict(sorted(found.issues.items())),
        "examples": found.examples,
        "items": items,
        "written": written,
    }
    return json.dumps(shown, ensure_ascii=True, indent=1)
