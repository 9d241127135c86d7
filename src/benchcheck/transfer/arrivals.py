"""What came home: a package of results is unpacked beside the study and proved whole before any row of it is read.

It may be a pool_returns_*.tar.gz, the folder it was unpacked to, or another study's folder.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchcheck.config import BENCH_NAME
from benchcheck.errors import DamagedFileError, InputError, StudyError, UsageError
from benchcheck.files import LONGEST_ROW, writing
from benchcheck.study import CONFIG_NAME, Study
from benchcheck.tars import hash_of, members_of
from benchcheck.transfer.pack import FACTS, RETURNS_VERSION, facts_of, gathered
from benchcheck.transfer.protocol import differences, protocol_hash, protocol_table, rule_differences, rule_of
from benchcheck.transfer.rows import Snapshot

__all__ = ["Arrival", "receive", "refuse_other_protocol"]

_BLOCK = 1 << 20
_MOST_FACTS = 1 << 26
"""Bytes of returns.json: a million files."""
_ROWS = re.compile(rf"(?:reread/)?step([1-6])/({BENCH_NAME.pattern})(\.p[0-9]{{1,6}})?\.jsonl")
_PLAIN = re.compile(r"logs/[A-Za-z0-9][A-Za-z0-9._@+=-]{0,200}|package\.json|frames_certificate\.json")
_LONGEST = LONGEST_ROW // 2
"""Bytes of a line that may be a row: one of 26 options in 24 orders has 30,000."""
_AGAIN = "Cure: get the package again"
_PACK = "Cure: name what `benchcheck pack` made"
_SUM = re.compile(r"\\?([0-9a-fA-F]{64}) [ *](.*)")
_Files = Iterator[tuple[str, int, IO[bytes]]]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A package of results that is whole: each file of it has the hash that it left with."""

    name: str
    """For its logs: the file's name without its ending."""
    source: Path
    facts: dict[str, Any]
    files: dict[str, Path]
    """By name in the package."""
    notes: tuple[str, ...] = ()


def receive(source: Path, staging: Path) -> Arrival:
    """Unpack a package of results into `staging`, and check all that can be checked without the study.

    Raises:
        UsageError: there is nothing of that name, or no package of results.
        DamagedFileError: it is not what left: cut off, changed, hostile; the line names the member.
        StudyError: the disk has no room for it.
    """
    stem = source.absolute().name.removesuffix(".gz").removesuffix(".tar")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-.") or "returns"
    if source.is_dir():
        return _folder(source, name, staging)
    if not source.exists():
        raise UsageError(f"{source}: no such file. Cure: name a pool_returns_*.tar.gz, or a folder")
    notes = _check_sum(source)
    members = members_of(source)
    first = next(members, None)
    if first is None or first[0] != FACTS:
        raise InputError(f"{source}: no package of results, its first member is not {FACTS}. {_PACK}")
    facts = _facts(source, first[1], first[2])
    return Arrival(name, source, facts, _unpack(source, members, facts, staging), notes)


def _folder(source: Path, name: str, staging: Path) -> Arrival:
    """Receive an unpacked package, or another study."""
    if (source / FACTS).is_file():
        path = source / FACTS
        with path.open("rb") as file:
            facts = _facts(source, path.stat().st_size, file)
        return Arrival(name, source, facts, _unpack(source, _files(source, facts), facts, staging))
    if not (source / CONFIG_NAME).is_file():
        raise UsageError(f"{source}: neither {FACTS} nor {CONFIG_NAME} is in this folder. {_PACK}")
    study = Study.open(source)
    with gathered(study) as snapshots:
        facts = facts_of(study, snapshots, "")
        return Arrival(name, source, facts, _unpack(source, _taken(snapshots), facts, staging))


def _taken(snapshots: Sequence[Snapshot]) -> _Files:
    """The files of another study, as far as they were taken."""
    for one in snapshots:
        with one.path.open("rb") as file:
            yield one.name, one.bytes, file


def _files(source: Path, facts: dict[str, Any]) -> _Files:
    """The files of a folder that its returns.json lists."""
    for name in facts["files"]:
        path = source / name
        if path.is_symlink() or not path.is_file():
            raise DamagedFileError(f"{source}: {name[:200]!r} is missing or no plain file. {_AGAIN}")
        with path.open("rb") as file:
            yield name, path.stat().st_size, file


def _check_sum(source: Path) -> tuple[str, ...]:
    """Compare a file with the `.sha256` beside it; without one, the hashes inside have to do, and a line says so."""
    beside = source.with_name(source.name + ".sha256")
    try:
        lines = beside.read_bytes()[: 1 << 16].decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        # A flipped bit of its list would be read as another version, protocol or size before gzip's checksum comes.
        for _ in members_of(source):
            pass
        return (f"{source.name}: no {beside.name} beside it; the hashes inside it are checked alone",)
    except OSError as reason:
        raise DamagedFileError(f"{beside}: not readable: {reason.strerror}. Cure: get it again, or remove it") from None
    found = [match for line in lines if (match := _SUM.fullmatch(line))]
    if len(found) != 1 or len(lines) != 1:
        raise DamagedFileError(f"{beside}: not one line of sha256sum. Cure: get it again, or remove it")
    if hash_of(source) != found[0][1].lower():
        raise DamagedFileError(f"{source}: sha256 differs from that in {beside.name}. Cure: get both files again")
    return ()


def _facts(source: Path, size: int, file: IO[bytes]) -> dict[str, Any]:
    """Read returns.json and check its form.

    Raises:
        DamagedFileError: it is not what `pack` writes.
        InputError: it is of another version.
    """
    if size > _MOST_FACTS:
        raise DamagedFileError(f"{source}: {FACTS} has {size} bytes, more than any package needs. {_AGAIN}")
    try:
        facts = json.loads(file.read(size))
    except (ValueError, RecursionError) as reason:
        raise DamagedFileError(f"{source}: {FACTS} is not readable as JSON: {reason}. {_AGAIN}") from None
    if not isinstance(facts, dict) or facts.get("format") != "benchcheck returns":
        raise InputError(f"{source}: {FACTS} is not of a package of results. {_AGAIN}")
    if facts.get("returns_version") != RETURNS_VERSION:
        raise InputError(
            f"{source}: {FACTS} has returns_version = {facts.get('returns_version')!r}, this benchcheck reads "
            f"{RETURNS_VERSION}. Cure: use the benchcheck that packed it"
        )
    files = facts.get("files")
    if not isinstance(files, dict) or not all(map(_listed, files.items())):
        raise DamagedFileError(f"{source}: {FACTS} lists a file that no package has. {_AGAIN}")
    protocol = facts.get("protocol")
    if not isinstance(protocol, dict) or facts.get("protocol_sha256") != protocol_hash(protocol):
        raise DamagedFileError(f"{source}: {FACTS} has a protocol and a hash that do not belong together. {_AGAIN}")
    if odd := next((name for name in files if (row := _ROWS.fullmatch(name)) and row[1] not in protocol), None):
        raise DamagedFileError(f"{source}: {FACTS} lists {odd}, and its protocol has no such step. {_AGAIN}")
    return facts


def _listed(entry: tuple[str, Any]) -> bool:
    """Whether a file of returns.json has a name that `pack` gives, with a hash, a size and a number of lines."""
    name, values = entry
    if not isinstance(values, dict) or not (_ROWS.fullmatch(name) or _PLAIN.fullmatch(name)):
        return False
    numbers = [values.get("bytes"), values.get("lines")]
    hashed = isinstance(values.get("sha256"), str) and re.fullmatch("[0-9a-f]{64}", values["sha256"])
    return bool(hashed) and all(type(number) is int and 0 <= number < 1 << 48 for number in numbers)


def _unpack(source: Path, members: _Files, facts: dict[str, Any], staging: Path) -> dict[str, Path]:
    """Copy every file to `staging`, and compare it with what returns.json says.

    Raises:
        DamagedFileError: a file is missing, changed or one too many, or a line longer than a row.
        StudyError: the disk has no room for it.
    """
    wanted, found = facts["files"], dict[str, Path]()
    needed, free = sum(entry["bytes"] for entry in wanted.values()), shutil.disk_usage(staging).free
    if needed > free:
        raise StudyError(
            f"{staging.parent}: {source.name} unpacks to {needed / 1e6:,.1f} MB, {free / 1e6:,.1f} MB are free. "
            "Cure: free space and run the same command again"
        )
    for name, size, file in members:
        if name not in wanted:
            raise DamagedFileError(f"{source}: {name[:200]!r} is not in {FACTS}. {_AGAIN}")
        path, entry = staging / f"{len(found)}.part", wanted[name]
        hashed = _copied(source, name, (file, size), path) if size == entry["bytes"] else None
        if hashed is None or hashed[:2] != (entry["sha256"], entry["lines"]):
            raise DamagedFileError(f"{source}: {name} is not the file that {FACTS} lists. {_AGAIN}")
        if not hashed[2]:
            raise DamagedFileError(f"{source}: {name}: its last line has no end, so a row is missing. {_AGAIN}")
        found[name] = path
    if missing := sorted(set(wanted) - set(found)):
        raise DamagedFileError(f"{source}: {missing[0]} is missing ({len(missing)} files). {_AGAIN}")
    return found


def _copied(source: Path, name: str, content: tuple[IO[bytes], int], path: Path) -> tuple[str, int, bool]:
    """Copy a file of so many bytes; returns its sha256, its number of lines, and whether the last of rows has an end.

    Raises:
        DamagedFileError: rows with a line that is longer than any row.
    """
    digest, lines, length, rows = hashlib.sha256(), 0, 0, _ROWS.fullmatch(name) is not None
    file, left = content
    with writing(path), path.open("wb") as out:
        while left and (block := file.read(min(_BLOCK, left))):
            left -= len(block)
            digest.update(block)
            lines += block.count(b"\n")
            length = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else length + len(block)
            if rows and length > _LONGEST:
                raise DamagedFileError(f"{source}: {name}, line {lines + 1}: longer than {_LONGEST} bytes, so no row")
            out.write(block)
    return digest.hexdigest(), lines, not (rows and length)


def refuse_other_protocol(study: Study, arrival: Arrival) -> list[str]:
    """Refuse answers to other questions than the study's; returns what else differs, in lines.

    Raises:
        InputError: the protocols differ; the line names the field.
    """
    found = differences(protocol_table(study.config), arrival.facts["protocol"])
    if found:
        more = f"; and {len(found) - 3} more" if len(found) > 3 else ""
        raise InputError(
            f"{arrival.source}: made under another protocol: {'; '.join(found[:3])}{more}. "
            "Cure: merge it into a study of that protocol"
        )
    rules = rule_differences(rule_of(study.config), arrival.facts.get("rule"))
    return [f"{arrival.source.name}: {line}: other items may have been asked there" for line in rules]
