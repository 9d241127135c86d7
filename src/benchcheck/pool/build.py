"""The pool: every benchmark of a study's config as one Parquet file, and a manifest of what is in it (protocol 6)."""

import contextlib
import csv
import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchcheck.config import BENCH_NAME, PoolSource
from benchcheck.errors import ConfigError, InputError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pool.issues import ISSUES, blocking
from benchcheck.pool.items import Item
from benchcheck.pool.mapping import CheckedItem, checked_items
from benchcheck.pool.readers import Layout, Record, find_files, read_records
from benchcheck.pool.specs import Spec, load_spec
from benchcheck.study import Study

__all__ = ["MANIFEST_COLUMNS", "BenchSummary", "PoolSummary", "bench_name", "build_pool"]

MANIFEST_COLUMNS = (
    "bench",
    "rows",
    "mcq",
    "open",
    "issues",
    "source",
    "spec",
    "issue_counts",
    "drift",
    "files",
    "licence",
    "redistributable",
)
"""Columns of pool_schema_manifest.csv. `issues` counts items with any issue; `issue_counts` (JSON) items per code;
`files` (JSON) the SHA-256 of every annotation file; `drift` what differs from the counts that the spec expects."""


@dataclass(slots=True)
class BenchSummary:
    """What a build found in one benchmark."""

    bench: str
    spec: str
    source: str
    licence: str
    redistributable: bool
    files: dict[str, str]
    rows: int = 0
    mcq: int = 0
    with_issues: int = 0
    issue_counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """Per code the first case: file, place and value."""
    drift: str = ""

    @property
    def open(self) -> int:
        """Items that are kept and never screened."""
        return self.rows - self.mcq

    @property
    def warnings(self) -> list[str]:
        """One line for the drift and one per code that keeps items from being screened."""
        lines = [f"{self.bench}: {self.drift}"] if self.drift else []
        for code, count in sorted(self.issue_counts.items()):
            if blocking(code):
                lines.append(
                    f"{self.bench}: {count} not screened: {code} ({ISSUES[code].meaning}) First: {self.examples[code]}"
                )
        return lines

    def row(self) -> dict[str, str]:
        """The manifest's row."""
        return {
            "bench": self.bench,
            "rows": str(self.rows),
            "mcq": str(self.mcq),
            "open": str(self.open),
            "issues": str(self.with_issues),
            "source": self.source,
            "spec": self.spec,
            "issue_counts": json.dumps(dict(sorted(self.issue_counts.items()))),
            "drift": self.drift,
            "files": json.dumps(self.files, ensure_ascii=False),
            "licence": self.licence,
            "redistributable": str(self.redistributable).lower(),
        }


@dataclass(frozen=True, slots=True)
class PoolSummary:
    """What a build found, benchmark by benchmark, in the config's order."""

    benches: tuple[BenchSummary, ...]
    changed: int = 0
    """Ids of the pool before that now stand for another text, gold or video."""

    @property
    def rows(self) -> int:
        """All items."""
        return sum(bench.rows for bench in self.benches)

    @property
    def mcq(self) -> int:
        """Items that are screened."""
        return sum(bench.mcq for bench in self.benches)

    @property
    def open(self) -> int:
        """Items that are kept and never screened."""
        return self.rows - self.mcq

    @property
    def issue_counts(self) -> Counter[str]:
        """Items per issue code."""
        return sum((bench.issue_counts for bench in self.benches), Counter())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should read after a build, one line each."""
        lines = [line for bench in self.benches for line in bench.warnings]
        if self.changed:
            lines.append(
                f"{self.changed} items of the pool before have another text, gold or video now, under the same id: "
                "answers to the old ones are left out, and these items are asked again"
            )
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class _Input:
    """One benchmark of the config with its spec loaded and its files found."""

    spec: Spec
    source: PoolSource
    files: tuple[Path, ...]


def build_pool(study: Study) -> PoolSummary:
    """Build the pool of a study from its config.

    Item ids depend on the benchmark and the row alone, so that building again with further benchmarks keeps all ids.
    Both files are written beside the old ones first; then the pool is moved into place, and the manifest right after.
    When anything fails before, both stay as they were.

    Raises:
        UsageError: `POOL_BASE` names the pool.
        ConfigError: the config names no benchmark, or one twice.
        SpecError: a spec is not there or is wrong.
        InputError: an annotation file is missing or not what its spec says, or two items have one id.
        StudyError: the disk is full or the folder is not writable.
    """
    if study.pool_is_given:
        raise UsageError(f"{study.pool_file}: this pool is given by POOL_BASE and never written. Cure: unset POOL_BASE")
    inputs = _inputs(study)
    summaries = [_summary(one, study) for one in inputs]
    before = _digests(study)
    with contextlib.ExitStack() as stack:
        manifest = stack.enter_context(publish(study.manifest_file))
        study.write_pool(_all_items(inputs, summaries, manifest))
    now = _digests(study)
    changed = sum(now.get(item_id, digest) != digest for item_id, digest in before.items())
    return PoolSummary(tuple(summaries), changed)


def newer_files(study: Study) -> list[Path]:
    """Return the annotation files of the config that were written after the pool; none where there is no pool yet."""
    try:
        built = study.pool_file.stat().st_mtime
        files = [path for source in study.config.pool for path in find_files(study.root, source.files)]
        return [] if study.pool_is_given else [path for path in files if path.stat().st_mtime > built]
    except (OSError, InputError):
        return []


def _digests(study: Study) -> dict[str, str]:
    """What each id of the pool stands for, empty where there is no pool yet or it is damaged."""
    try:
        table = study.item_table(["item_id", "item_digest"])
    except StudyError:
        return {}
    return dict(zip(table.column("item_id").to_pylist(), table.column("item_digest").to_pylist(), strict=True))


def _inputs(study: Study) -> list[_Input]:
    """Load every spec and find every file, so that a mistake in the last benchmark shows before the first is read."""
    found: dict[str, _Input] = {}
    if not study.config.pool:
        cure = 'add [[pool]] with spec = "generic" and files = ["items.jsonl"] to benchcheck.toml'
        raise ConfigError(f"{study.root}: the config names no benchmark. Cure: {cure}")
    for source in study.config.pool:
        spec = load_spec(source.spec, study.root)
        bench = bench_name(source, spec)
        if bench in found:
            raise ConfigError(
                f"{study.root}: two [[pool]] entries are called {bench!r}: {', '.join(found[bench].source.files)} and "
                f"{', '.join(source.files)}. Cure: list all files in one entry, or set bench to another name"
            )
        files = tuple(find_files(study.root, source.files))
        found[bench] = _Input(dataclasses.replace(spec, bench=bench), source, files)
    return list(found.values())


def bench_of(source: PoolSource, root: Path) -> str:
    """Return the benchmark that an entry of a study's config fills; its spec is read only where it must be.

    Raises:
        SpecError: the spec is not there or is wrong.
        ConfigError: the name is no benchmark's.
    """
    return source.bench or bench_name(source, load_spec(source.spec, root))


def bench_name(source: PoolSource, spec: Spec) -> str:
    """Return a benchmark's name: the config's, else the spec's, else (`generic` has none) that of its first file.

    Raises:
        ConfigError: that file's name is a pattern, or holds more than letters, digits, _ and -.
    """
    name = source.bench or spec.bench or Path(source.files[0]).stem
    if BENCH_NAME.fullmatch(name) is None:
        cure = "set bench in its [[pool]] entry: letters, digits, _ and -, 64 at most"
        raise ConfigError(f"{source.files[0]}: {name!r} cannot name a benchmark. Cure: {cure}")
    return name


def _summary(one: _Input, study: Study) -> BenchSummary:
    """An empty summary with where the benchmark comes from."""
    origin = one.spec.source
    source = f"{origin.repository}@{origin.commit}" if origin.commit else origin.repository
    return BenchSummary(
        bench=one.spec.bench,
        spec=one.source.spec,
        source=source or ", ".join(one.source.files),
        licence=origin.licence,
        redistributable=origin.redistributable,
        files={_relative(path, study.root): _sha256(path) for path in one.files},
    )


def _relative(path: Path, root: Path) -> str:
    """A path as the manifest shows it: relative to the study when below it, else as given."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _sha256(path: Path) -> str:
    """SHA-256 of a file, in hex digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check its permissions") from None


def _all_items(inputs: Sequence[_Input], summaries: Sequence[BenchSummary], manifest: Path) -> Iterator[Item]:
    """Items of all benchmarks; after the last one the summaries are complete and the manifest is written."""
    places: dict[str, Record] = {}
    for one, summary in zip(inputs, summaries, strict=True):
        layout = Layout(one.spec.reader, one.spec.header, one.spec.unnest)
        records = (record for path in one.files for record in read_records(path, layout))
        for checked in checked_items(one.spec, records):
            _claim_id(checked, places)
            _count(checked, summary)
            yield checked.item
        _check_usable(one.spec, summary)
        summary.drift = _drift(one.spec, summary)
    with manifest.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.DictWriter(file, MANIFEST_COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(summary.row() for summary in summaries)


def _claim_id(checked: CheckedItem, places: dict[str, Record]) -> None:
    """Refuse an item id that another row has (protocol 1)."""
    item_id, record = checked.item.item_id, checked.record
    earlier = places.setdefault(item_id, Record({}, record.file, record.place, record.row))
    if (earlier.file, earlier.place, earlier.row) != (record.file, record.place, record.row):
        cure = "leave item_id out of the spec, or give the benchmark another name"
        raise InputError(f"{record.where}: item id {item_id!r} is taken by {earlier.where}. Cure: {cure}")


def _count(checked: CheckedItem, summary: BenchSummary) -> None:
    """Add one item to its benchmark's summary."""
    item = checked.item
    summary.rows += 1
    summary.mcq += item.format == "mcq"
    summary.with_issues += bool(item.issues)
    summary.issue_counts.update(item.issues)
    for issue in checked.issues:
        summary.examples.setdefault(issue.code, f"{checked.record.where}: {issue.detail}")


def _check_usable(spec: Spec, summary: BenchSummary) -> None:
    """Refuse a benchmark of which no item can be screened: its spec does not fit, unless it declares a hidden gold."""
    if summary.mcq or spec.gold.kind == "none":
        return
    code, count = max(
        ((code, n) for code, n in summary.issue_counts.items() if blocking(code)), key=lambda pair: pair[1]
    )
    cure = 'mend the file or the spec (docs/issue-codes.md), or declare gold.kind = "none" for a hidden test set'
    raise InputError(
        f"{summary.examples[code]}: {code}. None of the {summary.rows} items of {summary.bench} can be screened, "
        f"{count} for this. Cure: {cure}"
    )


def _drift(spec: Spec, summary: BenchSummary) -> str:
    """What differs from the counts of the version that the spec was checked on."""
    pairs = (("items", summary.rows, spec.expect.items), ("mcq", summary.mcq, spec.expect.mcq))
    found = [
        f"{count:,} {name} where {wanted:,} were expected" for name, count, wanted in pairs if wanted not in (0, count)
    ]
    return f"{', '.join(found)}: another version of the file, or a part of it" if found else ""
