"""Folding rows that came home into a study's own, one step at a time; DuckDB compares, so that memory stays flat.

Rows are keyed by item, step, step key and item digest (protocol 8). What decides is what was measured: two answers with
the same orders and log-probabilities are one answer, whenever they were given.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import step_key
from benchcheck.errors import DamagedFileError, InputError
from benchcheck.files import name_in_duckdb
from benchcheck.run.reread import Again
from benchcheck.screen.steps import Step
from benchcheck.study import ANSWER_COLUMNS, Study
from benchcheck.transfer.rows import lines_source

if TYPE_CHECKING:
    import duckdb

__all__ = ["Folded", "Folding"]

_BATCH = 5_000
"""Rows of one write: about 5 MB."""
_COLUMNS = {name: kind for name, kind in ANSWER_COLUMNS.items() if name != "engine"} | {"step": "BIGINT"}
_numbers = itertools.count()
"""Tells the tables of two packages apart."""
_WHEN = ("at", "latency_s")
_GOOD = "(status = 'ok' and coalesce(n_right between 0 and n_perm and n_perm > 0 and isfinite(mean_margin), false))"
"""What `run.plan` takes for an answer."""
_ODD = r"\[\s*\[\s*\[|\{[^{]*\{[^{]*\{|[0-9]{300}|[eE]\+?[0-9]{3}|[:,\[]\s*-?(?i:nan|inf)"
"""What a row of ours never holds and what Python's JSON may refuse where DuckDB's does not."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What became of the rows of one step."""

    step: int
    new: int
    """Rows that were added."""
    identical: int
    """Rows that the study had."""
    passed_over: int
    """Tries before answers that the study has, and older answers: they would change nothing."""
    conflicts: int
    """Items with two answers."""
    example: str = ""
    """One of them."""
    unreadable: int = 0
    """Lines that were torn there; a reader passes over them."""


class Folding:
    """The rows of one step of a package beside those of the study; `again` is for second readings.

    What is held is numbers and hashes, a row of 900 bytes in about 100; the lines stay in their files.
    """

    def __init__(self, db: "duckdb.DuckDBPyConnection", study: Study, step: Step, again: bool = False) -> None:
        self.db, self.step, self.again = db, step, again
        self.study = Again(study.root, study.config) if again else study
        self.key = step_key(study.config, step)
        self.mark = f"{next(_numbers)}"
        self.files: list[Path] = []

    def take(self, source: Path, files: Mapping[str, Path]) -> None:
        """Read a package's rows and refuse those that are none of this study.

        Args:
            source: the package, for messages.
            files: the step's files by their name in the package.

        Raises:
            DamagedFileError: a row is not what a row is; with its file and line.
            InputError: rows of another protocol, or of items that are not in the study's pool as they are there.
        """
        named = sorted(files.items())
        self.files = [path for _, path in named]
        self.db.sql(f"create temp table theirs{self.mark} as {_rows_query(self.files)}")
        self.db.sql(f"create temp table files{self.mark} (filename varchar, name varchar, stem varchar)")
        for name, path in named:
            stem = name.rpartition("/")[2].removesuffix(".jsonl")
            self.db.execute(f"insert into files{self.mark} values (?, ?, ?)", [name_in_duckdb(path), name, stem])
        self._refuse_malformed(source)
        self._refuse_strangers(source)

    def is_of(self, other: "Folding") -> bool:
        """Whether both are of the same step and kind of rows."""
        return (self.step, self.again) == (other.step, other.again)

    def _query(self, query: str) -> str:
        """Put this package's tables in place of `theirs`, `files` and `added`."""
        return re.sub(r"\b(theirs|files|added)\b", rf"\g<1>{self.mark}", query)

    def _one(self, query: str, values: Sequence[object] = ()) -> tuple[Any, ...] | None:
        """Return the first row of what a query finds."""
        rows: list[tuple[Any, ...]] = self.db.execute(self._query(query), list(values)).fetchall()
        return rows[0] if rows else None

    def _refuse_malformed(self, source: Path) -> None:
        """Refuse a row that lacks what every row has, or that could not be written again."""
        sound = {
            f"no row of step {self.step.number}": "item_id is not null and bench is not null and step_key is not null "
            f"and item_digest is not null and step is not distinct from {self.step.number}",
            "of no known status": "coalesce(status in ('ok', 'error', 'retry'), false)",
            "no answer: n_right, n_perm and mean_margin do not go together": "status <> 'ok' or good",
            "an error without its kind": "status <> 'error' or error is not null",
            "a retry without the errors that it forgives": "status <> 'retry' or coalesce(forgives >= 0, false)",
            "in the file of another benchmark": "stem = bench or starts_with(stem, bench || '.p')",
        }
        cases = " ".join(f"when not ({holds}) then '{what}'" for what, holds in sound.items())
        found = self._one(
            f"select name, n - first, case {cases} end as fault from theirs join files using (filename) "
            "join (select filename, min(n) - 1 as first from theirs group by filename) using (filename) "
            "where readable and fault is not null order by n limit 1"
        )
        if found:
            cure = "Cure: get the package again, or ask who made it"
            raise DamagedFileError(f"{source}: {found[0]}, line {found[1]}: {found[2]}. {cure}")
        if self._one("from theirs where odd limit 1"):
            for line in self._lines("select n, '' as target from theirs where odd order by n"):
                self._refuse_unwritable(source, line[1])

    def _refuse_unwritable(self, source: Path, line: str) -> None:
        """Refuse a line that Python's JSON does not take, or would not write."""
        try:
            json.dumps(json.loads(line), allow_nan=False)
        except (ValueError, RecursionError) as reason:
            what = f"step {self.step.number} has a row that cannot be written: {reason}"
            raise DamagedFileError(f"{source}: {what}. Cure: get the package again, or ask who made it") from None

    def _refuse_strangers(self, source: Path) -> None:
        """Refuse rows of another protocol, and of items that are not in the pool as the row has them."""
        step = f"step {self.step.number}"
        other = self._one("select count(*), min(step_key) from theirs where step_key <> ?", [self.key])
        if other and other[0]:
            raise InputError(
                f"{source}: {other[0]:,} rows of {step} answer other questions (step key {other[1][:40]}, here "
                f"{self.key}). Cure: pack them again where they were made, which leaves such rows out"
            )
        for what, condition in (
            ("items that this study's pool does not have", "p.item_id is null"),
            ("items whose question, options, answer, video or window differ here", "p.item_digest <> t.item_digest"),
            ("items that belong to another benchmark here", "p.bench <> t.bench"),
        ):
            found = self._one(
                "select count(*), count(distinct t.item_id), list_sort(list(distinct t.item_id))[1:5] from theirs t "
                f"left join pool p using (item_id) where t.readable and {condition}"
            )
            if found and found[0]:
                ids = ", ".join(item[:80] for item in found[2])
                raise InputError(
                    f"{source}: {found[0]:,} rows of {step} are of {found[1]:,} {what}: {ids}. Cure: merge it into the "
                    "study whose pool was packaged"
                )

    def decide(self, keep: str, earlier: "Sequence[Folding]" = ()) -> Folded:
        """Compare with the study's rows; nothing is written yet.

        Args:
            keep: settles conflicts: ours, theirs, or neither.
            earlier: packages whose rows of this step will be the study's by then, decided already.
        """
        self.db.sql(f"create or replace temp table ours as {_rows_query(self.study.step_files(self.step.number))}")
        self.db.execute(
            "delete from ours o where step_key is distinct from ? or not exists "
            "(from pool p where p.item_id = o.item_id and p.item_digest = o.item_digest)",
            [self.key],
        )
        for one in earlier:
            self.db.sql(
                "insert into ours select t.* replace (t.n + (select coalesce(max(n), 0) from ours) as n) "
                f"from theirs{one.mark} t semi join added{one.mark} using (n)"
            )
        numbered = "select *, row_number() over (partition by item_id, id order by n) as copy from"
        self.db.sql(
            self._query(
                f"create or replace temp table missing as select t.n, t.item_id from "
                f"({numbered} theirs where readable) t anti join ({numbered} ours) o using (item_id, id, copy)"
            )
        )
        self.db.sql(self._query(f"create or replace temp table fates as {_ALWAYS_NEW if self.again else _FATES}"))
        wins = "fate in ('newer', 'conflict')" if keep == "theirs" else "fate = 'newer'"
        self.db.sql(
            self._query(
                "create or replace temp table added as select m.n, if(fate = 'new', f.stem, held_in) as target "
                "from missing m join fates using (item_id) join theirs t using (n) join files f using (filename) "
                f"where fate = 'new' or ({wins} and m.n = last)"
            )
        )
        return self._counted()

    def _counted(self) -> Folded:
        """Count what was decided."""
        rows, torn, missing, added, conflicts = (
            int(found[0]) if (found := self._one(f"select count(*) from {table}")) else 0
            for table in (
                *("theirs where readable", "theirs where not readable", "missing", "added"),
                "fates where fate = 'conflict'",
            )
        )
        example = self._one(
            "select f.item_id, o.n_right, o.n_perm, o.mean_margin, t.n_right, t.n_perm, t.mean_margin from fates f "
            "join theirs t on t.n = f.last join ours o on o.n = f.held where fate = 'conflict' order by all limit 1"
        )
        text = ""
        if example:
            sides = [f"right in {part[0]} of {part[1]}, margin {part[2]:.4g}" for part in (example[1:4], example[4:])]
            text = f"{example[0]}: {sides[0]} here; {sides[1]} there"
        return Folded(self.step.number, added, rows - missing, missing - added, conflicts, text, torn)

    def write(self) -> None:
        """Add the rows that `decide` chose, in their order.

        Raises:
            StudyError: the disk is full or a folder is not writable; deciding and writing again completes it.
        """
        rows = self._lines("select n, target from added order by target, n")
        while batch := list(islice(rows, _BATCH)):
            for target, group in groupby(batch, key=lambda row: row[0]):
                self.study.append(self.step.number, target, None, [json.loads(line) for _, line in group])

    def _lines(self, which: str) -> Iterator[tuple[str, str]]:
        """Yield target and text of the lines that a query numbers, in its order."""
        numbered = f"select row_number() over () as n, json::varchar as line from {lines_source(self.files)}"
        found = self.db.execute(
            self._query(f"select target, line from ({which}) join ({numbered}) using (n) order by target, n")
        )
        while batch := found.fetchmany(_BATCH):
            yield from batch


def _rows_query(files: Sequence[Path]) -> str:
    """Return a query for rows: their number in file order, what decides about them, and a hash of what they say."""
    said = [column for column in _COLUMNS if column not in _WHEN]
    answer = ", ".join(f'"{column}" := "{column}"' for column in said)
    other = ", ".join(f'"{column}" := "{column}"' for column in (*said, "at"))
    columns = ", ".join(f'row."{column}"' for column in _COLUMNS)
    return (
        f"with lines as (select row_number() over () as n, filename, json as line from {lines_source(files)}), "
        f"read as (select n, filename, line, json_transform(line, '{json.dumps(_COLUMNS)}') as row from lines), "
        f"flat as (select n, filename, line, {columns} from read), marked as (select *, {_GOOD} as good from flat) "
        "select n, filename, item_id, bench, step, step_key, item_digest, status, error, forgives, n_right, n_perm, "
        f"mean_margin, good, line is not null as readable, coalesce(regexp_matches(line::varchar, '{_ODD}'), false) as "
        f"odd, md5(case when good then struct_pack({answer})::varchar else struct_pack({other})::varchar end) as id "
        "from marked"
    )


_FATES = """
with t as (
  select item_id, max(n) filter (good) as last, arg_max(id, n) filter (good) as last_id from theirs
  where readable group by item_id
), o as (
  select item_id, max(n) filter (good) as last, arg_max(id, n) filter (good) as last_id,
    arg_max(filename, n) filter (good) as filename from ours group by item_id
)
select t.item_id, t.last, o.last as held, regexp_extract(o.filename, '([^/]*)[.]jsonl$', 1) as held_in, case
  when o.last is null then 'new'
  when t.last is null or t.last_id = o.last_id then 'answered'
  when exists (from theirs g where g.item_id = t.item_id and g.good and g.id = o.last_id) then 'newer'
  when exists (from ours g where g.item_id = t.item_id and g.good and g.id = t.last_id) then 'answered'
  else 'conflict' end as fate
from t left join o using (item_id)
"""
"""What becomes of an item's rows. The last good row wins, so that of two answers the later one in their file decides:
`answered` has what they say, `newer` lacks their last, whose file holds ours before it."""
_ALWAYS_NEW = """
select distinct item_id, null::bigint as last, null::bigint as held, '' as held_in, 'new' as fate from theirs
where readable
"""
"""Of second readings every one counts."""
