"""The pool: every benchmark of a study's config as one Parquet file, and a manifest of what is in it (protocol 6)."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchcheck.errors import InputError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pool.building.crew import Crew
from benchcheck.pool.building.declared import Declared, declared
from benchcheck.pool.building.drift import drift_of, refuse_drift
from benchcheck.pool.building.outcomes import settle
from benchcheck.pool.building.summary import MANIFEST_COLUMNS, BenchSummary, PoolSummary
from benchcheck.pool.building.tasks import tasks_of
from benchcheck.pool.building.unique import refuse_clash
from benchcheck.pool.contents import content_ids, with_ids
from benchcheck.pool.joins import Partners
from benchcheck.pool.together import Together
from benchcheck.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["build_pool"]

Progress = Callable[[str, int], None]
"""Hears of a benchmark and how many items more of it are done."""


def build_pool(
    study: Study, accept_drift: bool = False, workers: int = 0, progress: Progress = lambda _bench, _items: None
) -> PoolSummary:
    """Build the pool of a study from its config.

    Item ids depend on the benchmark and the row alone, so that building again with further benchmarks keeps all ids;
    videos that `videos prepare` knows keep theirs by content.
    Both files are written beside the old ones first; then the pool is moved into place, and the manifest right after.
    When anything fails before, both stay as they were.

    Args:
        study: the study.
        accept_drift: go on where counts differ from those that a spec expects; the manifest and a warning say so.
        workers: processes that map long files, 0 for one a core; what is written does not depend on it.
        progress: hears how many items of which benchmark are done.

    Raises:
        UsageError: `POOL_BASE` names the pool; or counts differ from those that a spec expects.
        ConfigError: the config names no benchmark, or one twice.
        SpecError: a spec is not there or is wrong.
        InputError: an annotation file is missing or not what its spec says, or two items have one id.
        StudyError: the disk is full or the folder is not writable.
        RunError: a worker process was killed.
    """
    if study.pool_is_given:
        raise UsageError(f"{study.pool_file}: this pool is given by POOL_BASE and never written. Cure: unset POOL_BASE")
    benches = declared(study)
    stamps = {path: _stamp(path) for one in benches for path in one.paths}
    summaries = [one.summary(study.places.data) for one in benches]
    before, ids = _digests(study), content_ids(study)
    with Crew(workers) as crew, publish(study.manifest_file) as manifest:
        build = _Build(benches, summaries, crew, progress)
        tables = _unchanged(build.tables(accept_drift, manifest), stamps)
        study.write_tables(with_ids(table, ids) for table in tables)
    return PoolSummary(tuple(summaries), _changed(before, _digests(study)))


class _Build:
    """One build on its way: tables come out, and the summaries fill."""

    def __init__(
        self, benches: Sequence[Declared], summaries: Sequence[BenchSummary], crew: Crew, progress: Progress
    ) -> None:
        self._benches, self._summaries, self._crew, self._progress = benches, summaries, crew, progress

    def tables(self, accept_drift: bool, manifest: Path) -> "Iterator[pa.Table]":
        """Yield the items of all benchmarks; after the last one the summaries are complete and the manifest is written.

        Drift is refused when all benchmarks were read, so that all of it is told at once.
        """
        ids: list[pa.Array] = []
        for one, summary in zip(self._benches, self._summaries, strict=True):
            for table in self._tables_of(one, summary):
                ids += table.column("item_id").chunks
                yield table
        refuse_clash(self._benches, ids)
        pairs = zip(self._benches, self._summaries, strict=True)
        refuse_drift([found for one, found in pairs if found.drift and not (accept_drift or one.source.accept_drift)])
        with manifest.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            table_ = csv.DictWriter(file, list(MANIFEST_COLUMNS), lineterminator="\n")
            table_.writeheader()
            table_.writerows(summary.row() for summary in self._summaries)

    def _tables_of(self, one: Declared, summary: BenchSummary) -> "Iterator[pa.Table]":
        """The items of one benchmark; after the last one its summary is complete."""
        spec, together = one.spec, Together(one.spec)
        partners = Partners(spec.join) if spec.join else None
        for found in self._crew.outcomes(spec, one.files, tasks_of(one.files, spec, partners)):
            outcome = settle(found, together)
            summary.add(outcome.tally)
            self._progress(summary.bench, outcome.tally.rows)
            yield outcome.table
        together.finish()
        summary.join_left = partners.unmet if partners else 0
        summary.missing_errata = tuple(key for key in spec.errata if key not in summary.errata)
        _check_usable(one, summary)
        summary.drift = drift_of(spec.expect, summary)


def _stamp(path: Path) -> tuple[int, ...]:
    """What tells whether a file was written or replaced; nothing where it cannot be looked at."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _unchanged(tables: "Iterator[pa.Table]", stamps: Mapping[Path, tuple[int, ...]]) -> "Iterator[pa.Table]":
    """Yield tables, and refuse files that changed meanwhile: a part of the items, and the SHA-256, would be of others.

    Raises:
        InputError: names one.
    """
    yield from tables
    for path, stamp in stamps.items():
        if _stamp(path) != stamp:
            raise InputError(f"{path}: changed while it was read. Cure: let it be, and run the same command again")


def _check_usable(one: Declared, summary: BenchSummary) -> None:
    """Refuse a benchmark of which no item can be screened: its spec does not fit, unless it declares that."""
    spec = one.spec
    if summary.mcq or not summary.blocked or spec.gold.kind in ("none", "order") or spec.options.kind == "none":
        return
    code, count = max(summary.blocked.items(), key=lambda pair: pair[1])
    cure = 'mend the file or the spec (docs/issue-codes.md), or declare gold.kind = "none" for a hidden test set'
    raise InputError(
        f"{summary.examples[code]}: {code}. None of the {summary.rows} items of {summary.bench} can be screened, "
        f"{count} for this. Cure: {cure}"
    )


def _digests(study: Study) -> "pa.Table | None":
    """What each id of the pool stands for; None where there is no pool yet, or it is damaged or of another layout."""
    columns = ["item_id", "item_digest"]
    try:
        table = study.item_table(columns)
    except StudyError:
        return None
    return table if table.column_names == columns else None


def _changed(before: "pa.Table | None", now: "pa.Table | None") -> int:
    """How many ids of both pools stand for something else now."""
    import pyarrow.compute as pc

    if before is None or now is None:
        return 0
    places = pc.index_in(before.column("item_id"), value_set=now.column("item_id").combine_chunks())
    same = pc.equal(before.column("item_digest"), now.column("item_digest").combine_chunks().take(places))
    return int(pc.sum(pc.invert(same), min_count=0).as_py())
