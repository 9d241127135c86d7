"""A package: a folder that runs steps of a study on a machine that has only it and the frames (protocol 8)."""

import datetime as dt
import json
import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import Config, parse, read_toml
from benchcheck.errors import ConfigError, StudyError, UsageError
from benchcheck.files import publish, writing
from benchcheck.pool.building.declared import bench_of
from benchcheck.pool.reading.paths import located
from benchcheck.screen.steps import LADDER
from benchcheck.study import CONFIG_NAME, PACKAGE_MARK, Study
from benchcheck.tars import hash_of
from benchcheck.transfer.packaged import SHARDS, config_text, launcher_text, readme_text, steps_of
from benchcheck.transfer.protocol import differences, protocol_hash, protocol_table, rule_differences, rule_of
from benchcheck.transfer.provenance import code_version, pool_facts, read_json
from benchcheck.transfer.rows import Snapshot, current_rows, tables

if TYPE_CHECKING:
    from benchcheck.video.shards.packing import ShardsProgress

__all__ = ["PACKAGE_VERSION", "Packaged", "arrived", "make_package"]

PACKAGE_VERSION = 1
_FORMAT = "benchcheck package"
_SCRATCH = ".scratch"


@dataclass(frozen=True, slots=True)
class Packaged:
    """A package that was made."""

    folder: Path
    facts: dict[str, Any]
    """What its package.json says."""
    left_out: int
    """Rows of the study that are not in it: torn, of an earlier protocol, or of items that were edited since."""


def make_package(
    study: Study,
    folder: str | Path,
    *,
    steps: Sequence[int] = (),
    frames: bool = False,
    answers: bool = True,
    progress: "Callable[[ShardsProgress], None] | None" = None,
) -> Packaged:
    """Make a folder that runs steps of this study elsewhere; whole when its package.json is there, which comes last.

    Args:
        study: the study.
        folder: a folder that is empty or not there yet, or one in which this was stopped.
        steps: the steps that run there; none is all of the study's.
        frames: whether the frames travel in it, as tar shards.
        answers: whether the rows that the study has travel, too. Steps ask only items that earlier steps left alive,
            so that without them only the first step has anything to ask there.
        progress: hears of the frames that are packed.

    Raises:
        UsageError: the folder holds something else, or the study has no such step.
        StudyError: there is no pool, a file is damaged, or the disk is full.
    """
    chosen, target = _chosen(study.config, steps), Path(folder)
    numbers = steps_of(study.config, chosen)
    texts, config = _config_files(study, numbers)
    with _unfinished(target) as scratch:
        shards = _pack_frames(study, target, progress) if frames else None
        pool = pool_facts(study)
        kept = _rows(study, numbers, scratch) if answers else []
        facts: dict[str, Any] = {
            "format": _FORMAT,
            "package_version": PACKAGE_VERSION,
            "study": study.config.name,
            "made_at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "benchcheck": code_version(),
            "steps": chosen,
            "protocol_sha256": protocol_hash(protocol_table(config)),
            "protocol": protocol_table(config),
            "rule": rule_of(config),
            "pool": pool,
            "answers": {str(number): sum(s.lines for of, s in kept if of == number) for number in numbers},
            "frames": shards,
            "model_folders": _model_folders(study, chosen),
        }
        texts["README.md"] = readme_text(facts, config)
        texts["run.sh"] = launcher_text(chosen, numbers)
        files = _write(study, target, texts, [snapshot for _, snapshot in kept])
        _publish(target / "package.json", _json(facts | {"files": files}))
    return Packaged(target, facts, sum(snapshot.left_out for _, snapshot in kept))


def _chosen(config: Config, steps: Sequence[int]) -> list[int]:
    """The steps that run there, in order.

    Raises:
        UsageError: the study has no such step.
    """
    own = list(config.protocol.steps)
    for number in steps:
        if number not in own:
            raise UsageError(f"--steps {number} is not a step of this study. Allowed: {', '.join(map(str, own))}")
    return [number for number in own if number in steps] if steps else own


def _model_folders(study: Study, chosen: Sequence[int]) -> list[str]:
    """Models of these steps that are folders here: they are not in a package and no hub has them."""
    names = {study.config.models[LADDER[number].role].model for number in chosen}
    return sorted(name for name in names if Path(study.places.model(name)).is_dir())


def _config_files(study: Study, steps: Sequence[int]) -> tuple[dict[str, str], Config]:
    """Return benchcheck.toml and the specs of the study's own as they are in the package, and what that config says."""
    table, specs, entries = read_toml(study.root / CONFIG_NAME), dict[str, str](), list[dict[str, Any]]()
    for entry, source in zip(table.get("pool", []), study.config.pool, strict=True):
        bench, spec = bench_of(source, study.root), source.spec
        if spec.endswith(".toml") or "/" in spec:
            spec = f"specs/{bench}.toml"
            specs[spec] = _read(located(study.root, source.spec))
        entries.append({**entry, "spec": spec, "bench": bench})
    text = config_text(table, steps, entries)
    config = parse(tomllib.loads(text), f"the package's {CONFIG_NAME}")
    changed = differences(protocol_table(study.config), protocol_table(config))
    assert not changed, f"the package would ask something else: {changed}"
    return {**specs, CONFIG_NAME: text}, config


def _read(spec: Path) -> str:
    """Read a spec of the study's own.

    Raises:
        StudyError: it is not there, or no text.
    """
    try:
        return spec.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        raise StudyError(f"{spec}: a spec that is not readable ({reason}). Cure: put the file back") from None


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Give a folder for copies inside `target`, which stays marked as unfinished until the block ended well.

    Raises:
        UsageError: there is a package already, or something else.
    """
    mark, scratch = target / PACKAGE_MARK, target / _SCRATCH
    if (target / "package.json").exists():
        raise UsageError(f"{target}: there is a package already. Cure: choose another folder, or remove this one")
    if target.exists() and not mark.exists():
        try:
            names = sorted(path.name for path in target.iterdir())
        except OSError as reason:
            raise UsageError(f"{target}: not a folder to make a package in ({reason.strerror})") from None
        if names:
            raise UsageError(f"{target}: not empty ({names[0]!r}). Cure: choose a folder that is not there yet")
    with writing(target):
        target.mkdir(parents=True, exist_ok=True)
        mark.touch()
        for path in target.iterdir():  # what a stopped call left; shards are continued, all else is made again
            if path.is_dir() and not path.is_symlink() and path.name != SHARDS.partition("/")[0]:
                shutil.rmtree(path)
            elif path != mark and (path.is_symlink() or not path.is_dir()):
                path.unlink()
        scratch.mkdir()
        yield scratch
        shutil.rmtree(scratch)
        mark.unlink()


def _pack_frames(study: Study, target: Path, progress: "Callable[[ShardsProgress], None] | None") -> dict[str, Any]:
    """Pack the study's frames into the package; returns what its package.json says of them."""
    from benchcheck.video.shards.packing import pack_frames

    pack_frames(study, target / SHARDS, progress=progress)
    manifest = read_json(target / SHARDS / "frames_manifest.json", "the manifest of the shards")
    return {"folder": SHARDS, "n_videos": manifest["n_videos"], "shards": len(manifest["shards"])}


def _rows(study: Study, numbers: Sequence[int], scratch: Path) -> list[tuple[int, Snapshot]]:
    """Take the rows that the study has of these steps."""
    with tables(study, scratch) as db:
        return [
            (number, snapshot)
            for number in numbers
            for files in [[(path, f"results/step{number}/{path.name}") for path in study.step_files(number)]]
            for snapshot in current_rows(study, db, LADDER[number], files, scratch)
            if snapshot.lines
        ]


def _write(study: Study, target: Path, texts: dict[str, str], rows: Sequence[Snapshot]) -> dict[str, Any]:
    """Write all files but package.json; returns the list of them with sizes and hashes."""
    files: dict[str, Any] = {}
    _copy(study.pool_file, target / "results" / "pool_items_base.parquet")
    if study.manifest_file.is_file():
        _copy(study.manifest_file, target / "results" / "pool_schema_manifest.csv")
    for row in rows:
        _copy(row.path, target / row.name, row.bytes)
    for name, text in texts.items():
        _publish(target / name, text.encode(), executable=name.endswith(".sh"))
    for path in sorted(target.rglob("*")):
        name = path.relative_to(target).as_posix()
        if path.is_file() and not name.startswith((PACKAGE_MARK, _SCRATCH, SHARDS)):
            files[name] = {"sha256": hash_of(path), "bytes": path.stat().st_size}
    return files


def _copy(source: Path, target: Path, size: int | None = None) -> None:
    """Copy a file, or its first bytes.

    Raises:
        StudyError: it cannot be read, or the disk is full.
    """
    try:
        file = source.open("rb")
    except OSError as reason:
        raise StudyError(f"{source}: not readable: {reason.strerror}. Cure: put the file back") from reason
    with file, publish(target) as temporary, temporary.open("wb") as out:
        left = file.seek(0, 2) if size is None else size
        file.seek(0)
        while left and (block := file.read(min(1 << 20, left))):
            out.write(block)
            left -= len(block)


def _publish(path: Path, data: bytes, executable: bool = False) -> None:
    """Write a small file."""
    with publish(path) as temporary:
        temporary.write_bytes(data)
        if executable:
            temporary.chmod(0o755)


def _json(table: dict[str, Any]) -> bytes:
    """JSON for people and programs."""
    return (json.dumps(table, indent=1, ensure_ascii=True) + "\n").encode()


def arrived(study: Study) -> list[str]:
    """Compare a study that came as a package with its package.json; returns what its runner should know, in lines.

    A study that did not come as a package has nothing to compare.

    Raises:
        ConfigError: benchcheck.toml asks something else than the package did; the line names the field.
        StudyError: the package was not finished, package.json is damaged, or the pool is not the one that came.
    """
    if not study.package_file.exists():
        if (study.root / PACKAGE_MARK).exists():
            cure = "Cure: run the same `benchcheck package` again where it was made, then copy it"
            raise StudyError(f"{study.root}: a package that was not finished. {cure}")
        return []
    facts = read_json(study.package_file, "the package's description")
    if facts.get("format") != _FORMAT or facts.get("package_version") != PACKAGE_VERSION:
        raise StudyError(
            f"{study.package_file}: no description of a package of version {PACKAGE_VERSION}. Cure: use the benchcheck "
            "that made the package, or remove the file if this study is no package"
        )
    came, here = _table(facts, "benchcheck"), code_version()
    wanted = f"benchcheck {came.get('version')}" + (f" at commit {came['commit']}" if came.get("commit") else "")
    changed = differences(protocol_table(study.config), facts.get("protocol"))
    if changed:
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise ConfigError(
            f"{study.root / CONFIG_NAME}: {changed[0]}{more}; answers to it would not be merged. Cure: set it back, or "
            f"install {wanted}"
        )
    if _table(facts, "pool").get("sha256") != pool_facts(study)["sha256"]:
        raise StudyError(
            f"{study.pool_file}: not the pool that came with the package: items were added, changed or left out. "
            "Cure: put the package's own file back"
        )
    notes = [
        f"{line}: it decides which items are asked"
        for line in rule_differences(rule_of(study.config), facts.get("rule"))
    ]
    if came.get("version") != here["version"]:
        notes.append(f"this is benchcheck {here['version']}, the package was made by {wanted}")
    elif came.get("source_sha256") != here["source_sha256"]:
        notes.append(f"this benchcheck differs from the one that made the package ({wanted})")
    return notes


def _table(facts: dict[str, Any], name: str) -> dict[str, Any]:
    """A table inside package.json; an empty one where it holds something else."""
    value = facts.get(name)
    return value if isinstance(value, dict) else {}
