"""What a run sends home: one tar.gz of a study's rows and logs, every file's hash inside and its own beside it.

Consistent while a run goes on (whole lines only), and the same bytes for the same rows.
"""

import datetime as dt
import json
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchcheck.files import make_folder, publish, writing
from benchcheck.run.lock import LOCK_NAME
from benchcheck.study import Study
from benchcheck.tars import Member, write_tar
from benchcheck.transfer.protocol import protocol_hash, protocol_table, rule_of
from benchcheck.transfer.provenance import code_version, pool_facts
from benchcheck.transfer.rows import Snapshot, current_rows, snapshot, tables

__all__ = ["FACTS", "RETURNS_VERSION", "Returned", "facts_of", "gathered", "host_part", "pack_returns"]

RETURNS_VERSION = 1
FACTS = "returns.json"
"""The first member: what the rest must be."""
_LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+=-]{0,200}")
"""Names of logs that travel; none of ours is called otherwise."""
_ALL = 1 << 20
"""A log up to this many bytes is copied first, so that it may be written anew while the package is made."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A package of results that was made."""

    file: Path
    sha256: str
    rows: Mapping[int, int]
    """Rows by step, second readings apart."""
    left_out: int
    """Lines that stay here: torn, of an earlier protocol, or of items that were edited since."""


def pack_returns(study: Study, to: str | Path | None = None) -> Returned:
    """Make `pool_returns_<host>_<yyyymmdd>.tar.gz` in a folder (the study's own by default), and its `.sha256`.

    An earlier file of that name is replaced by one move.

    Raises:
        StudyError: there is no pool, a file cannot be read, or the disk is full; an earlier package is as it was.
    """
    host = host_part(platform.node())
    folder = Path(to) if to is not None else study.root
    file = folder / f"pool_returns_{host}_{dt.datetime.now(dt.UTC):%Y%m%d}.tar.gz"
    beside = file.with_name(file.name + ".sha256")
    with gathered(study) as snapshots:
        facts = (json.dumps(facts_of(study, snapshots, host), indent=1) + "\n").encode()
        members = [Member(one.name, one.path, one.bytes) for one in snapshots]
        with writing(beside):
            beside.unlink(missing_ok=True)  # never the hash of another file
        written = write_tar(file, [Member(FACTS, facts), *members], packed=True)
    with publish(beside) as temporary:
        temporary.write_text(f"{written.sha256}  {file.name}\n", encoding="utf-8")
    rows = {step.number: _lines(snapshots, step.number) for step in study.config.steps}
    return Returned(file, written.sha256, rows, sum(one.left_out for one in snapshots))


def host_part(node: str) -> str:
    """Return a machine's name as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", node).strip("-.")[:64] or "host"


def facts_of(study: Study, snapshots: Sequence[Snapshot], host: str) -> dict[str, Any]:
    """Return what returns.json says: the protocol, the code, the pool, and every file with its hash and lines."""
    table = protocol_table(study.config)
    return {
        "format": "benchcheck returns",
        "returns_version": RETURNS_VERSION,
        "study": study.config.name,
        "host": host,
        "benchcheck": code_version(),
        "protocol_sha256": protocol_hash(table),
        "protocol": table,
        "rule": rule_of(study.config),
        "pool": pool_facts(study),
        "rows": {str(step.number): _lines(snapshots, step.number) for step in study.config.steps},
        "files": {one.name: one.entry for one in snapshots},
    }


def _lines(snapshots: Sequence[Snapshot], step: int) -> int:
    """Rows of a step."""
    return sum(one.lines for one in snapshots if one.name.startswith(f"step{step}/"))


@contextmanager
def gathered(study: Study) -> Iterator[list[Snapshot]]:
    """Give what of a study goes home, by name; copies in it last as long as the block.

    Rows of an earlier protocol, or of items that were edited, stay: elsewhere they would be nobody's.

    Raises:
        StudyError: there is no pool, a file cannot be read, or there is no place for copies.
    """
    place = study.places.scratch
    make_folder(place)
    with writing(place):
        room = tempfile.TemporaryDirectory(prefix="benchcheck-pack-", dir=place)
    with room as name:
        scratch, found = Path(name), list[Snapshot]()
        with tables(study, scratch) as db:
            for step in study.config.steps:
                for folder, files in (
                    (f"step{step.number}", study.step_files(step.number)),
                    (f"reread/step{step.number}", sorted(study.reread_folder(step.number).glob("*.jsonl"))),
                ):
                    named = [(path, f"{folder}/{path.name}") for path in files]
                    found += current_rows(study, db, step, named, scratch)
        found += _others(study, scratch)
        yield sorted((one for one in found if one.bytes or one.left_out), key=lambda one: one.name)


def _others(study: Study, scratch: Path) -> Iterator[Snapshot]:
    """Yield the logs and what says where the study comes from."""
    certificate = study.certificate_file
    paths = [(path, path.name) for path in (study.package_file, certificate) if path.is_file()]
    if study.logs.is_dir():
        logs = (path for path in study.logs.iterdir() if path.is_file() and not path.is_symlink())
        paths += [(path, f"logs/{path.name}") for path in sorted(logs) if path.name != LOCK_NAME]
    for number, (path, name) in enumerate(paths):
        if not _LOG.fullmatch(path.name):
            continue
        if path.suffix not in (".jsonl", ".log") and path.stat().st_size <= _ALL:
            path = _copied(path, scratch / f"log-{number}")  # noqa: PLW2901
        yield snapshot(path, name)


def _copied(path: Path, copy: Path) -> Path:
    """Copy a small file that may be written anew while it is read."""
    with writing(copy):
        data = path.read_bytes()
        copy.write_bytes(data if data.endswith(b"\n") else data + b"\n")
    return copy
