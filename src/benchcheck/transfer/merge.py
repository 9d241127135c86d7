"""Merging: packages of results are proved, then their rows, costs and logs become the study's (protocol 8).

Everything is checked before the first row is written, and what is written is decided by the rows that are there, so
that a merge that was killed is completed by the same call, and one that was done changes nothing.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.errors import UsageError
from benchcheck.files import append_rows, publish, writing
from benchcheck.run.lock import run_lock
from benchcheck.run.reread import Again
from benchcheck.study import Study
from benchcheck.transfer.arrivals import Arrival, receive, refuse_other_protocol
from benchcheck.transfer.fold import Folded, Folding
from benchcheck.transfer.provenance import pool_facts
from benchcheck.transfer.rows import tables

if TYPE_CHECKING:
    import duckdb

__all__ = ["Merged", "merge_returns"]

_STAGING = ".merge"
"""Below results; whoever holds the study's lock may remove what another left there."""
_COSTS = {"logs/accounting.jsonl": False, "logs/reread_accounting.jsonl": True}
"""Logs whose lines are added to the study's own; the second is of second readings."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of one package."""

    source: Path
    steps: tuple[Folded, ...]
    rereads: int
    """Second readings that were added."""
    costs: int
    """Lines of accounting that were added."""
    logs: Path | None
    """Where its logs lie now."""


def merge_returns(
    study: Study,
    sources: Sequence[str | Path],
    *,
    keep: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> list[Merged]:
    """Fold packages of results into a study; all of them are checked before the first row is written.

    Args:
        study: the study.
        sources: files that `pack` made, folders they were unpacked to, or other studies.
        keep: which answer stays where both have one of an item: `ours`, `theirs`, or neither, which refuses.
        note: hears what is worth knowing and no reason to refuse.

    Raises:
        UsageError: no such file, a run is at work on the study, or answers that contradict those of the study or of
            a package before theirs.
        InputError: a package of another protocol or pool; the line names the field or the items.
        DamagedFileError: a package that is not what was packed.
        StudyError: there is no pool, or the disk is full; the same call completes what was begun.
    """
    if keep not in ("", "ours", "theirs"):
        raise UsageError(f"--keep {keep} is not known. Allowed: ours, theirs")
    with run_lock(study, warn=note), _staging(study) as staging:
        arrivals = [_receive(study, Path(source), staging / str(number), note) for number, source in enumerate(sources)]
        with tables(study, staging) as db:
            foldings = [_taken(db, study, arrival) for arrival in arrivals]
            pairs = list(zip(arrivals, foldings, strict=True))
            if not keep:
                _refuse_conflicts(pairs)
            return [_merge(study, *pair, keep) for pair in pairs]


def _receive(study: Study, source: Path, folder: Path, note: Callable[[str], None]) -> Arrival:
    """Unpack a package and refuse one of another protocol."""
    folder.mkdir()
    arrival = receive(source, folder)
    for line in (*arrival.notes, *refuse_other_protocol(study, arrival), *_pool_note(study, arrival)):
        note(line)
    return arrival


@contextmanager
def _staging(study: Study) -> Iterator[Path]:
    """Give an empty folder beside the study's rows, removed in the end; the study's lock is held."""
    staging = study.results / _STAGING
    with writing(staging):
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _pool_note(study: Study, arrival: Arrival) -> list[str]:
    """Say that the pool has changed since; rows of items that changed are refused one by one."""
    theirs = arrival.facts.get("pool")
    if isinstance(theirs, dict) and theirs.get("sha256") == pool_facts(study)["sha256"]:
        return []
    return [f"{arrival.source.name}: made on another state of the pool; its rows are compared item by item"]


def _taken(db: "duckdb.DuckDBPyConnection", study: Study, arrival: Arrival) -> list[Folding]:
    """Read and check the rows of a package: each step, and its second readings."""
    found = []
    for step in study.config.steps:
        for head, again in (("", False), ("reread/", True)):
            folder = f"{head}step{step.number}/"
            files = {name: path for name, path in arrival.files.items() if name.startswith(folder)}
            if files:
                found.append(Folding(db, study, step, again))
                found[-1].take(arrival.source, files)
    return found


def _merge(study: Study, arrival: Arrival, foldings: Sequence[Folding], keep: str) -> Merged:
    """Fold one package: decide for every step first, then write."""
    decided = [(folding, folding.decide(keep)) for folding in foldings]
    for folding, folded in decided:
        if folded.new:
            folding.write()
    rereads = sum(folded.new for folding, folded in decided if folding.again)
    steps = tuple(folded for folding, folded in decided if not folding.again)
    return Merged(arrival.source, steps, rereads, _add_costs(study, arrival), _keep_logs(study, arrival))


def _refuse_conflicts(pairs: Sequence[tuple[Arrival, Sequence[Folding]]]) -> None:
    """Refuse answers that contradict those of the study, or of a package before theirs, before any row is written."""
    earlier: list[Folding] = []
    for arrival, foldings in pairs:
        decided = [folding.decide("", [one for one in earlier if one.is_of(folding)]) for folding in foldings]
        if found := [folded for folded in decided if folded.conflicts]:
            counts = ", ".join(f"step {folded.step}: {folded.conflicts:,}" for folded in found)
            before = ", or in a package before it" if earlier else ""
            raise UsageError(
                f"{arrival.source}: items have other answers than in this study{before} ({counts}), such as "
                f"{found[0].example}. Cure: --keep ours or --keep theirs"
            )
        earlier += foldings


def _add_costs(study: Study, arrival: Arrival) -> int:
    """Add the lines of accounting that the study does not have; returns how many."""
    count = 0
    for name, again in _COSTS.items():
        if name in arrival.files:
            target = (Again(study.root, study.config) if again else study).accounting_file
            had = {_said(line) for line in _lines(target)} if target.exists() else set()
            new = [line for line in _lines(arrival.files[name]) if _said(line) not in had]
            append_rows(target, new)
            count += len(new)
    return count


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, torn lines left out."""
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
                json.dumps(row, allow_nan=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row


def _said(line: dict[str, Any]) -> str:
    """A line of accounting as it is compared."""
    return json.dumps(line, sort_keys=True)


def _keep_logs(study: Study, arrival: Arrival) -> Path | None:
    """Keep what else came, below logs/returns/; accounting apart, which is the study's now.

    Two packages of one machine and day have one name: what would replace another file than its own beginning lies in a
    folder with a number.
    """
    names = [name for name in arrival.files if name not in _COSTS and not _is_rows(name)]
    if not names:
        return None
    logs = {name.removeprefix("logs/"): arrival.files[name] for name in names}
    folders = (study.logs / "returns" / f"{arrival.name}{ending}" for ending in _endings())
    folder = next(folder for folder in folders if all(_begins(folder / name, logs[name]) for name in logs))
    for name, file in logs.items():
        with publish(folder / name) as temporary:
            shutil.copyfile(file, temporary)
    return folder


def _endings() -> Iterator[str]:
    """What tells folders of one name apart."""
    yield ""
    yield from (f"-{number}" for number in itertools.count(2))


def _begins(before: Path, after: Path) -> bool:
    """Whether a file is not there, or holds what another one begins with: a log that has grown since."""
    if not before.exists():
        return True
    with before.open("rb") as old, after.open("rb") as new:
        while block := old.read(1 << 20):
            if new.read(len(block)) != block:
                return False
    return True


def _is_rows(name: str) -> bool:
    """Whether a file holds rows of a step."""
    return name.startswith(("step", "reread/"))
