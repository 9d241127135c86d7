"""The form of a specimen: annotation files in the shape of a benchmark's real ones, and the items they must become.

Every spec that ships has one, in a table `FIXTURES` of a module `fixtures_*.py`. All content is invented; what is real
is the shape, and the traps that the field guide found in the real file. Two to four records each.
"""

import csv
import importlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.pool.fields import text_of
from benchcheck.pool.items import Item
from benchcheck.pool.joins import Partners
from benchcheck.pool.reading.readers import Record, read_records
from benchcheck.pool.specs import Spec, load_spec
from benchcheck.pool.together import items_of

__all__ = ["REAL_FILES", "Fixture", "Want", "all_fixtures", "items_in", "records_in", "row", "rows", "write"]

REAL_FILES = {
    "nextqa_val": "nextqa/val.csv",
    "nextqa_test": "nextqa/test.csv",
    "nextgqa_test": "nextgqa/test.csv",
    "ovo_bench": "ovo_bench/ovo_bench_new.json",
    "streamingbench_real": "streamingbench/questions_real.json",
    "streamingbench_omni": "streamingbench/questions_omni.json",
    "streamingbench_sqa": "streamingbench/questions_sqa.json",
    "socialiq2_val": "socialiq2/qa_val.json",
    "vlm4d_real": "vlm4d/real_mc.json",
    "vlm4d_synthetic": "vlm4d/synthetic_mc.json",
    "how2qa_val": "how2qa/how2QA_val_release.csv",
}
"""Spec to its published file below ../shared/data; ReXTime's has no options and is left out."""


@dataclass(frozen=True, slots=True)
class Want:
    """What one item must be.

    `options` are parted by ` | `, as they are kept (of a shuffled benchmark: in the file's order, any order will do);
    `gold` is the right one's text, None without one; `video` is the key; `issues` are codes parted by spaces, in any
    order. `more` has further fields of the item.
    """

    question: str
    options: str
    gold: str | None
    video: str
    window: tuple[float | None, float | None] = (None, None)
    issues: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fixture:
    """A benchmark's specimen.

    `files` has, by file name, bytes or text as they are, or data that is written as the spec's reader reads it: a JSON
    document; the records of JSON lines, CSV, TSV and Parquet; the members of a zip archive. `beside` has what only lies
    there (the second file of a join): bytes, text, or a JSON document. `items` are those of all files, in their order.
    """

    spec: str
    files: Mapping[str, Any]
    items: Sequence[Want]
    beside: Mapping[str, Any] = field(default_factory=dict)


def row(names: str, *values: Any) -> dict[str, Any]:
    """Return a record with the fields whose names stand in a line."""
    return dict(zip(names.split(), values, strict=True))


def rows(names: str, *records: Sequence[Any]) -> list[dict[str, Any]]:
    """Return records with the same fields."""
    return [row(names, *values) for values in records]


def all_fixtures() -> dict[str, Fixture]:
    """Return the specimens of all tables by the name of their spec."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("fixtures_*.py"))
    tables = [importlib.import_module(f"{__package__}.{name}").FIXTURES for name in names]
    found = {fixture.spec: fixture for table in tables for fixture in table}
    assert len(found) == sum(map(len, tables)), "two specimens of one spec"
    return found


def _table(rows: Sequence[Mapping[str, Any]], header: Sequence[str], delimiter: str) -> str:
    """CSV or TSV; without a header line where the spec gives the names."""
    out = io.StringIO()
    names = list(header or dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(out, names, restval="", delimiter=delimiter, lineterminator="\n")
    if not header:
        table.writeheader()
    table.writerows({name: text_of(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), out)
    return out.getvalue()


def _zip(members: Mapping[str, Any], spec: Spec) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, _content(name, content, spec))
    return out.getvalue()


def _content(name: str, content: Any, spec: Spec) -> bytes:
    """What a file of that name holds."""
    suffix = Path(name).suffix.lower()
    reader = spec.reader if spec.reader != "auto" else suffix.removeprefix(".")
    if isinstance(content, bytes):
        return content
    if suffix == ".zip":
        return _zip(content, spec)
    if reader == "parquet":
        return _parquet(content)
    return (content if isinstance(content, str) else _text(content, reader, spec.header)).encode()


def _text(content: Any, reader: str, header: Sequence[str]) -> str:
    """Data as a text file of a reader's kind."""
    if reader in ("csv", "tsv"):
        return _table(content, header, "\t" if reader == "tsv" else ",")
    if reader == "json":
        return json.dumps(content, ensure_ascii=False, indent=1)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in content)


def write(fixture: Fixture, folder: Path) -> list[Path]:
    """Write a specimen's files; return those that a study would name."""
    spec = load_spec(fixture.spec)
    for name, content in {**fixture.files, **fixture.beside}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        plain = isinstance(content, bytes | str) or name not in fixture.beside
        path.write_bytes(_content(name, content if plain else json.dumps(content), spec))
    return [folder / name for name in fixture.files]


def records_in(spec: Spec, files: Sequence[Path]) -> Iterator[Record]:
    """Return the records of files as the build reads them, with what a second file adds."""
    records = (record for path in files for record in read_records(path, spec.layout))
    return Partners(spec.join).lay(records) if spec.join else records


def items_in(spec: Spec, files: Sequence[Path]) -> list[Item]:
    """Return the items of files."""
    return list(items_of(spec, records_in(spec, files)))
