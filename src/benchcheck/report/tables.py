"""The tables of pool.duckdb, filled from a study's files (columns in docs/results.md; the queries are in views.py)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchcheck import __version__
from benchcheck.config import Config, step_key
from benchcheck.errors import InputError, StudyError
from benchcheck.files import rows_source, sql_text
from benchcheck.pool.building.declared import bench_of
from benchcheck.pool.reading.paths import located
from benchcheck.report.views import VERDICTS, VIEWS, wide_query
from benchcheck.run.accounting import COLUMNS, costs
from benchcheck.run.plan import Survey
from benchcheck.screen.verdicts import Mark, State
from benchcheck.study import ANSWER_COLUMNS, Study
from benchcheck.video.store import last_outcomes

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["OUTCOMES", "STATE_NAMES", "engines_in", "fill", "open_results", "settings_of", "state_names"]

STATE_NAMES = {
    State.KEPT: "kept",
    State.REMOVED: "removed",
    State.FAILED: "failed",
    State.WAITING: "waiting",
    State.PENDING: "pending",
    State.OUTSIDE: "not_screened",
}

OUTCOMES = {Mark.PASSED: "passed", Mark.REMOVED: "removed", Mark.FAILED: "failed"}
"""What an item's rows in one step come to; without them it is `waiting`, `pending` or `left_out`."""


def state_names(state: Survey) -> list[str]:
    """Return every item's verdict by name, in the pool's order."""
    return [STATE_NAMES[State(code)] for code in state.fold.state.tolist()]


def settings_of(config: Config) -> dict[str, str]:
    """Return what is measured, setting by setting: what the results depend on and what a reader may quote."""
    settings = {"study": config.name}
    for part, values in (("protocol", config.protocol), ("frames", config.frames)):
        settings |= {f"{part}.{name}": json.dumps(value) for name, value in asdict(values).items()}
    for role in sorted({step.role for step in config.steps}):
        settings[f"models.{role}"] = " ".join((config.models[role].model, config.models[role].revision)).strip()
    return settings | {f"prompts.{step.sight.value}": config.intro(step.sight) for step in config.steps}


def open_results(study: Study) -> "duckdb.DuckDBPyConnection":
    """Open a study's assembled tables, read only.

    Raises:
        StudyError: the study was not assembled yet, or the file is damaged.
    """
    import duckdb

    cure = f"Cure: benchcheck assemble {study.root}"
    if not study.database.is_file():
        raise StudyError(f"{study.database}: not assembled yet. {cure}")
    try:
        return duckdb.connect(str(study.database), read_only=True)
    except duckdb.Error as reason:
        raise StudyError(f"{study.database}: not readable as DuckDB tables ({reason}). {cure}") from reason


def fill(study: Study, state: Survey, warnings: Sequence[tuple[int, str]], path: Path, parquet: Path) -> None:
    """Fill the DuckDB file and write the wide table from it; `warnings` are pairs of a step and a line.

    Raises:
        StudyError: the disk is full, or a file of rows cannot be read.
        InputError: a control benchmark's truth file is not readable.
    """
    import duckdb

    if odd := set("?\\") & set(str(path.absolute())):
        raise StudyError(
            f"{path.parent.absolute()}: DuckDB keeps no tables in a folder whose path holds {min(odd)!r}. "
            "Cure: rename it, or set POOL_RESULTS_ROOT to another folder for the results"
        )
    try:
        with duckdb.connect(str(path)) as db:
            db.sql(f"create table items as select * from {_parquet(study.pool_file)}")
            _load(db, "steps", _steps_table(study))
            _load(db, "settings", _settings_table(study))
            _load(db, "runs", _runs_table(study))
            _load(db, "truth", _text_table(_truth(study), ("item_id", "class")))
            _load(db, "outcomes", _outcomes(state))
            _load(db, "videos", _videos_table(study))
            _load(db, "warnings", _warnings_table(warnings))
            _answers(db, study)
            _load(db, "placed", _placed(state))
            db.sql(f"create view last_errors as {VIEWS['last_errors']}")
            db.sql(f"create table verdicts as {VERDICTS}")
            db.sql("drop table placed")
            for name, query in VIEWS.items():
                db.sql(f"create or replace view {name} as {query}")
            db.sql(
                f"copy ({wide_query(study.config.steps)}) to {sql_text(str(parquet))} "
                "(format parquet, compression zstd)"
            )
    except (duckdb.IOException, duckdb.TransactionException) as reason:
        raise StudyError(f"{path.parent}: cannot be read or written: {reason}") from reason


def engines_in(path: Path) -> set[str]:
    """Return the names of the engines that a filled DuckDB file has answers of."""
    import duckdb

    with duckdb.connect(str(path), read_only=True) as db:
        return {name for (name,) in db.sql("select distinct engine from engines where engine is not null").fetchall()}


def _answers(db: "duckdb.DuckDBPyConnection", study: Study) -> None:
    """Load the last good row of every item and step into `answers`, and all error rows into `errors`.

    A step's files are read once, into a temporary table: 300,000 rows take 5 s on two cores, half of that for JSON.
    """
    for step in study.config.steps:
        source = rows_source(study.step_files(step.number), ANSWER_COLUMNS)
        db.sql(
            f"create or replace temp table staged as select {step.number}::integer as step, "
            f"row_number() over () as line, r.* from {source} r "
            f"where r.step_key = '{step_key(study.config, step)}'"
        )
        db.sql(
            "delete from staged r where not exists (from items i where i.item_id = r.item_id "
            "and i.item_digest = r.item_digest)"
        )
        for table, query in (("answers", _GOOD), ("errors", _BAD)):
            first = step is study.config.steps[0]
            db.sql(f"create table {table} as {query}" if first else f"insert into {table} by name {query}")
    db.sql("drop table staged")


_GOOD = (
    "select r.* exclude (line, error, detail, status, forgives) from staged r "
    "where r.line in (select max(line) from staged where status = 'ok' and n_right between 0 and n_perm "
    "and n_perm > 0 and isfinite(mean_margin) group by item_id)"
)
"""The last sound answer of each item; what a damaged row is says `run.plan`."""
_BAD = "select r.item_id, r.bench, r.step, r.line, r.error, r.detail, r.at from staged r where r.status = 'error'"


def _placed(state: Survey) -> "pa.Table":
    """Where every item stands, in the pool's order."""
    import pyarrow as pa

    left_at = state.fold.left_at
    columns = {
        "item_id": state.pool.item_id,
        "verdict": pa.array(state_names(state), pa.string()),
        "left_at": pa.array(left_at, pa.int32(), mask=left_at == 0),
        "position": pa.array(range(len(left_at)), pa.int64()),
    }
    return pa.table(columns)


def _outcomes(state: Survey) -> "pa.Table":
    """How every item fared in every step that it came to, or that asked it without a cascade."""
    import pyarrow as pa

    parts = []
    for here in state.fold.steps:
        named = [(OUTCOMES[mark], here.marks == mark) for mark in OUTCOMES]
        named += [("waiting", here.waiting), ("pending", here.todo)]
        named.append(("left_out", here.alive & ~np.logical_or.reduce([flags for _, flags in named])))
        for outcome, flags in named:
            chosen = pa.array(flags)
            count = int(np.count_nonzero(flags))
            columns = {
                "item_id": state.pool.item_id.filter(chosen),
                "step": pa.array(np.full(count, here.step.number, dtype=np.int32)),
                "alive": pa.array(here.alive[flags]),
                "outcome": pa.array([outcome] * count, pa.string()),
            }
            parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def _steps_table(study: Study) -> "pa.Table":
    """The rungs of this study, each with its key and model."""
    import pyarrow as pa

    models = study.config.models
    rows = [
        {
            "step": step.number,
            "name": step.name,
            "measures": step.measures,
            "step_key": step_key(study.config, step),
            "model": models[step.role].model,
            "revision": models[step.role].revision,
            "orders": study.config.orders_of(step),
        }
        for step in study.config.steps
    ]
    return pa.Table.from_pylist(rows)


def _settings_table(study: Study) -> "pa.Table":
    """What is measured and the version that assembled it, as names and values."""
    rows = [{"name": "benchcheck", "value": __version__}]
    rows += [{"name": name, "value": value} for name, value in settings_of(study.config).items()]
    return _text_table(rows, ("name", "value"))


def _runs_table(study: Study) -> "pa.Table":
    """What every unit of every run cost; without a run the columns have their types all the same."""
    import pyarrow as pa

    kinds = dict.fromkeys(("items_per_s", "prompts_per_s", "wall_s"), pa.float64())
    whole = ("step", "part", "items", "prompts", "tokens", "cached_tokens", "errors")
    kinds |= dict.fromkeys(whole, pa.int64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    return pa.Table.from_pylist([dict(row) for row in costs(study)], schema=schema)


def _warnings_table(warnings: Sequence[tuple[int, str]]) -> "pa.Table":
    """What a reader should distrust."""
    import pyarrow as pa

    schema = pa.schema([("step", pa.int32()), ("warning", pa.string())])
    return pa.Table.from_pylist([{"step": step, "warning": text} for step, text in warnings], schema=schema)


def _videos_table(study: Study) -> "pa.Table":
    """What became of every set of frames that was tried: its last ready attempt, else its last."""
    rows = [
        {
            "frames_key": outcome.frames_key,
            "video_key": outcome.key,
            "status": outcome.status,
            "reason": outcome.error or None,
            "content_hash": outcome.content_hash or None,
            "at": outcome.at or None,
        }
        for outcome in last_outcomes(study).values()
    ]
    return _text_table(rows, ("frames_key", "video_key", "status", "reason", "content_hash", "at"))


def _truth(study: Study) -> list[dict[str, str]]:
    """Read the classes of control benchmarks, for the items whose class is known."""
    import pyarrow.compute as pc

    classes: list[dict[str, str]] = []
    for source in study.config.pool:
        if not source.truth:
            continue
        known = read_truth(located(study.places.data, source.truth))
        items = study.item_table(["item_id", "bench", "source_id"])
        items = items.filter(pc.equal(items.column("bench"), bench_of(source, study.root)))
        classes += [
            {"item_id": row["item_id"], "class": known[row["source_id"]]}
            for row in items.to_pylist()
            if row["source_id"] in known
        ]
    return classes


def read_truth(path: Path) -> dict[str, str]:
    """Read a truth file: JSON lines with `id` and `class`."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return {str(row["id"]): str(row["class"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise InputError(f"{path}: not a truth file, JSON lines with id and class ({reason!r})") from None


def _text_table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> "pa.Table":
    """Rows of text as an Arrow table that has its columns without rows, too."""
    import pyarrow as pa

    return pa.Table.from_pylist(
        [dict(row) for row in rows], schema=pa.schema([(name, pa.string()) for name in columns])
    )


def _load(db: "duckdb.DuckDBPyConnection", name: str, table: "pa.Table") -> None:
    """Copy an Arrow table into the DuckDB file."""
    db.register("incoming", table)
    db.sql(f"create table {name} as select * from incoming")
    db.unregister("incoming")


def _parquet(path: Path) -> str:
    """What stands behind `from` to read a parquet file."""
    return f"read_parquet({sql_text(str(path))})"
