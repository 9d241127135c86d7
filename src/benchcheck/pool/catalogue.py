"""What the specs say about their benchmarks: which there are, how far each was checked, how to get one. Pure.

Both tables of the documentation (`docs/benchmarks.md`, `DATA.md`) are made of this by `scripts/benchmark_pages.py`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from benchcheck.pool.specs import CHECKED, Spec

__all__ = [
    "MARKS",
    "UNKNOWN",
    "counted",
    "entry_to_paste",
    "facts",
    "licence_rows",
    "matching",
    "page_rows",
    "standing",
    "where_from",
]

MARKS = dict(zip(CHECKED, "●◐○", strict=True))
"""How far a spec was checked, in one sign."""
UNKNOWN = "-"


def matching(specs: Iterable[Spec], checked: str = "", search: str = "") -> list[Spec]:
    """Return the specs of a level whose name, title, hub dataset, repository or citation has a text, case aside."""
    wanted = search.casefold()
    return [
        spec
        for spec in specs
        if checked in ("", spec.source.checked)
        and any(
            wanted in part.casefold()
            for part in (spec.bench, spec.title, spec.source.hub, spec.source.repository, spec.source.citation)
        )
    ]


def standing(specs: Sequence[Spec]) -> list[str]:
    """What the marks of these specs mean, one line a level, with how many have it."""
    counts = Counter(spec.source.checked for spec in specs)
    return [f"{mark} {level} ({counts[level]}): {CHECKED[level]}" for level, mark in MARKS.items() if counts[level]]


def counted(number: int) -> str:
    """A count, or a dash when it is not known."""
    return f"{number:,}" if number else UNKNOWN


def facts(spec: Spec) -> dict[str, Any]:
    """Everything that a program may want to know of a benchmark before it fetches it; JSON can hold it."""
    source = spec.source
    return {
        "spec": spec.bench,
        "title": spec.title,
        "items": spec.expect.items or None,
        "mcq": spec.expect.mcq or None,
        "options": list(spec.expect.options),
        "checked": source.checked,
        "hub": source.hub,
        "revision": source.revision,
        "repository": source.repository,
        "commit": source.commit,
        "files": list(source.files),
        "join": spec.join.file if spec.join else "",
        "licence": source.licence,
        "redistributable": source.redistributable,
        "citation": source.citation,
        "note": source.note,
        "screenable": spec.options.kind != "none" and spec.gold.kind not in ("none", "order"),
    }


def where_from(spec: Spec) -> list[str]:
    """Say where the annotation files come from, a line for each place."""
    source = spec.source
    names = ", ".join(source.files)
    lines = []
    if source.hub:
        pinned = f"at {source.revision}" if source.revision else "no revision was checked: pin one"
        lines.append(f"{names} of the hub dataset {source.hub} ({pinned})")
    if source.repository:
        commit = f" at {source.commit}" if source.commit else ""
        lines.append(f"{source.repository}{commit}" if source.hub else f"{names} of {source.repository}{commit}")
    return lines or [f"{names or 'a file'} of your own"]


def entry_to_paste(spec: Spec) -> str:
    """The entry to paste into `benchcheck.toml`: from files on disk, and from the hub where they are there."""
    source = spec.source
    names = dict.fromkeys(name.rpartition("/")[2] for name in source.files) or ["items.jsonl"]
    files = json.dumps([f"annotations/{name}" for name in names], ensure_ascii=False)
    lines = ["[[pool]]", f'spec = "{spec.bench}"']
    if source.hub and source.revision:
        lines.append(f"# files = {files} # in place of the hub's")
    else:
        lines.append(f"files = {files} # where you put them")
    if source.hub and not source.revision:
        lines.append('# or from the hub, without files: revision = "<commit>" # 40 hex digits')
    if spec.join:
        beside = spec.join.file.rpartition("/")[2]
        lines.append(f'# join = "annotations/{beside}" # only where it does not lie beside the first file')
    return "\n".join(lines)


def page_rows(specs: Iterable[Spec]) -> list[str]:
    """Return the rows of the table in `docs/benchmarks.md`, by name."""
    head = ["| spec | benchmark | items | multiple-choice | checked | annotations |", "|---|---|--:|--:|---|---|"]
    return head + [
        f"| `{spec.bench}` | {spec.title} | {counted(spec.expect.items)} | {counted(spec.expect.mcq)} "
        f"| {spec.source.checked} | {_place(spec)} |"
        for spec in sorted(specs, key=lambda spec: spec.bench)
    ]


def licence_rows(specs: Iterable[Spec]) -> list[str]:
    """Return the rows of the manifest in `DATA.md`: specs from one place on one set of terms share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for spec in sorted(specs, key=lambda spec: spec.bench):
        source = spec.source
        terms = (_place(spec), source.commit or source.revision or UNKNOWN, source.licence or "not checked")
        rows.setdefault((*terms, "yes" if source.redistributable else "no"), []).append(f"`{spec.bench}`")
    head = ["| spec | source | version | licence of the annotations | may be passed on |", "|---|---|---|---|---|"]
    return head + [f"| {', '.join(names)} | {' | '.join(terms)} |" for terms, names in rows.items()]


def _place(spec: Spec) -> str:
    """Where the annotations are, as a link: the repository when a commit of it was checked, else the hub dataset."""
    source = spec.source
    if source.hub and not source.commit:
        return f"[{source.hub}](https://huggingface.co/datasets/{source.hub})"
    name = source.repository.removeprefix("https://").removeprefix("github.com/")
    return f"[{name}]({source.repository})" if source.repository else UNKNOWN
