"""The tables and views of pool.duckdb, and the wide table of every item (documented in docs/results.md)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import step_key
from benchcheck.errors import InputError, StudyError
from benchcheck.files import rows_source
from benchcheck.run.accounting import COLUMNS, costs
from benchcheck.run.plan import Survey
from benchcheck.screen.steps import Step
from benchcheck.screen.verdicts import State
from benchcheck.study import ANSWER_COLUMNS, Study

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["STATE_NAMES", "VIEWS", "fill", "open_results"]

STATE_NAMES = {
    State.KEPT: "kept",
    State.REMOVED: "removed",
    State.FAILED: "failed",
    State.WAITING: "waiting",
    State.PENDING: "pending",
    State.OUTSIDE: "not_screened",
}

VIEWS = {
    "last_errors": "select item_id, step, last(error) as error, last(detail) as detail from errors group by all",
    "survivors": "select * from items join verdicts using (item_id) where verdict = 'kept'",
    "readings": "select item_id, bench, step, unnest(orders) as letter_order, unnest(logprobs) as logprobs, "
    'unnest(label_mass) as label_mass, unnest(margins) as margin, unnest("right") as is_right from answers',
    "funnel": "select s.step, s.name, s.measures, count(a.item_id) as asked, "
    "count(*) filter (v.verdict = 'removed' and v.left_at = s.step) as removed, "
    "avg(a.n_right / a.n_perm) as right_share, avg(a.mean_margin) as mean_margin "
    "from steps s left join answers a on a.step = s.step left join verdicts v on v.item_id = a.item_id "
    "group by all order by s.step",
    "by_benchmark": "select i.bench, v.verdict, v.left_at, count(*) as items "
    "from items i join verdicts v using (item_id) group by all order by all",
    "by_category": "select i.bench, i.category, v.verdict, v.left_at, count(*) as items "
    "from items i join verdicts v using (item_id) group by all order by all",
    "by_class": "select t.class, a.step, count(*) as asked, avg(a.n_right / a.n_perm) as right_share, "
    "count(*) filter (v.left_at = a.step and v.verdict = 'removed') as removed, "
    "avg(1.0 / len(i.options)) as chance from truth t join items i using (item_id) join answers a using (item_id) "
    "join verdicts v using (item_id) group by all order by all",
}
"""Views of pool.duckdb, by name."""


def open_results(study: Study) -> "duckdb.DuckDBPyConnection":
    """Open a study's assembled tables, read only.

    Raises:
        StudyError: the study was not assembled yet.
    """
    import duckdb

    if not study.database.is_file():
        raise StudyError(f"{study.database}: not assembled yet. Cure: benchcheck assemble {study.root}")
    return duckdb.connect(str(study.database), read_only=True)


def fill(study: Study, state: Survey, names: Sequence[str], path: Path, parquet: Path) -> None:
    """Fill the DuckDB file and write the wide table from it."""
    import duckdb

    with duckdb.connect(str(path)) as db:
        try:
            db.sql(f"create table items as select * from {_parquet(study.pool_file)}")
            _load(db, "steps", _steps_table(study))
            _load(db, "runs", _table(costs(study), COLUMNS))
            _load(db, "truth", _table(_truth(study), ("item_id", "class")))
            _answers(db, study)
            _load(db, "placed", _placed(state, names))
            db.sql(f"create view last_errors as {VIEWS['last_errors']}")
            db.sql(f"create table verdicts as {_VERDICTS}")
            db.sql("drop table placed")
            for name, query in VIEWS.items():
                db.sql(f"create or replace view {name} as {query}")
            db.sql(f"copy ({_wide(study.config.steps)}) to '{_quoted(parquet)}' (format parquet, compression zstd)")
        except duckdb.IOException as reason:
            raise StudyError(f"{path.parent}: cannot be written: {reason}") from reason


_VERDICTS = """
select p.item_id, p.verdict, p.left_at, a.mean_margin as margin,
  case p.verdict
    when 'removed' then format('right in {} of {} orders, mean margin {:.2f} nats; {}',
                               a.n_right, a.n_perm, a.mean_margin, s.measures)
    when 'failed' then coalesce(e.error || ': ' || e.detail, 'failed')
    when 'waiting' then 'no frames of its video yet'
    when 'pending' then 'a step has still to ask it'
    when 'not_screened' then coalesce(nullif(array_to_string(i.issues, ', '), ''), 'left out by the sample')
    else 'passed every step'
  end as reason
from placed p
join items i using (item_id)
left join steps s on s.step = p.left_at
left join answers a on a.item_id = p.item_id and a.step = p.left_at
left join last_errors e on e.item_id = p.item_id and e.step = p.left_at
order by p.position
"""


def _answers(db: "duckdb.DuckDBPyConnection", study: Study) -> None:
    """Load the last good row of every item and step into `answers`, and all error rows into `errors`."""
    good, bad = [], []
    for step in study.config.steps:
        source = rows_source(study.step_files(step.number), ANSWER_COLUMNS)
        rows = (
            f"select {step.number}::integer as step, row_number() over () as line, r.* from {source} r "
            f"where r.step_key = '{step_key(study.config, step)}'"
        )
        same = "join items i on i.item_id = r.item_id and i.item_digest = r.item_digest"
        good.append(
            f"select r.* exclude (line, error, detail, status) from ({rows}) r {same} where r.status = 'ok' "
            "qualify row_number() over (partition by r.item_id order by r.line desc) = 1"
        )
        bad.append(
            f"select r.item_id, r.bench, r.step, r.error, r.detail, r.at from ({rows}) r {same} "
            "where r.status = 'error'"
        )
    db.sql("create table answers as " + " union all by name ".join(f"({query})" for query in good))
    db.sql("create table errors as " + " union all by name ".join(f"({query})" for query in bad))


def _wide(steps: Sequence[Step]) -> str:
    """Return the query of pool_items.parquet: every item with every step's outcome."""
    columns, joins = [], []
    for step in steps:
        name, alias, error = f"step{step.number}", f"a{step.number}", f"e{step.number}"
        columns += [
            f"if({alias}.item_id is not null, 'ok', if({error}.item_id is null, null, 'error')) as {name}_status",
            f"{alias}.n_right as {name}_n_right",
            f"{alias}.n_perm as {name}_n_perm",
            f"{alias}.mean_margin as {name}_margin",
            f"list_min({alias}.label_mass) as {name}_label_mass",
            f"{alias}.orders as {name}_orders",
            f"{alias}.logprobs as {name}_logprobs",
            f"{error}.error as {name}_error",
        ]
        joins += [
            f"left join answers {alias} on {alias}.item_id = i.item_id and {alias}.step = {step.number}",
            f"left join last_errors {error} on {error}.item_id = i.item_id and {error}.step = {step.number}",
        ]
    return (
        f"select i.*, v.verdict, v.left_at, v.margin, v.reason, {', '.join(columns)} from items i "
        f"join verdicts v using (item_id) {' '.join(joins)} order by i.bench, i.item_id"
    )


def _placed(state: Survey, names: Sequence[str]) -> "pa.Table":
    """Where every item stands, in the pool's order."""
    import pyarrow as pa

    columns = {
        "item_id": state.pool.item_id,
        "verdict": pa.array(names, pa.string()),
        "left_at": pa.array(state.fold.left_at.tolist(), pa.int32()),
        "position": pa.array(range(len(names)), pa.int64()),
    }
    return pa.table(columns)


def _steps_table(study: Study) -> "pa.Table":
    """The rungs of this study, each with its key and model."""
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
    return _table(rows, tuple(rows[0]))


def _truth(study: Study) -> list[dict[str, str]]:
    """Read the classes of control benchmarks, for the items whose class is known."""
    import pyarrow.compute as pc

    classes: list[dict[str, str]] = []
    for source in study.config.pool:
        if not source.truth:
            continue
        known = _read_truth(study.root / source.truth)
        items = study.item_table(["item_id", "bench", "source_id"])
        if source.bench:
            items = items.filter(pc.equal(items.column("bench"), source.bench))
        classes += [
            {"item_id": row["item_id"], "class": known[row["source_id"]]}
            for row in items.to_pylist()
            if row["source_id"] in known
        ]
    return classes


def _read_truth(path: Path) -> dict[str, str]:
    """Read a truth file: JSON lines with `id` and `class`."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return {str(row["id"]): str(row["class"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise InputError(f"{path}: not a truth file, JSON lines with id and class ({reason!r})") from None


def _table(rows: Sequence[Mapping[str, Any]], columns: Iterable[str]) -> "pa.Table":
    """Rows as an Arrow table; without rows, text columns of these names."""
    import pyarrow as pa

    if rows:
        return pa.Table.from_pylist([dict(row) for row in rows])
    return pa.table({name: pa.array([], pa.string()) for name in columns})


def _load(db: "duckdb.DuckDBPyConnection", name: str, table: "pa.Table") -> None:
    """Copy an Arrow table into the DuckDB file."""
    db.register("incoming", table)
    db.sql(f"create table {name} as select * from incoming")
    db.unregister("incoming")


def _quoted(path: Path) -> str:
    """A path inside SQL quotes."""
    return str(path).replace("'", "''")


def _parquet(path: Path) -> str:
    """What stands behind `from` to read a parquet file."""
    return f"read_parquet('{_quoted(path)}')"
