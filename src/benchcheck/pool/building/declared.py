"""What a study's config declares: each benchmark's spec and annotation files, all found before the first is read."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchcheck.config import BENCH_NAME, PoolSource
from benchcheck.errors import ConfigError, InputError
from benchcheck.places import Located
from benchcheck.pool.building.summary import BenchSummary
from benchcheck.pool.reading.hub import fetch
from benchcheck.pool.reading.paths import find_files, located
from benchcheck.pool.reading.readers import Layout, read_records
from benchcheck.pool.specs import Join, Spec, load_spec
from benchcheck.study import Study

__all__ = ["Declared", "bench_name", "bench_of", "declared", "newer_files"]


@dataclass(frozen=True, slots=True)
class Declared:
    """One benchmark of the config: its spec as this study uses it, its files, and the study's own list of errors."""

    spec: Spec
    source: PoolSource
    files: tuple[Path, ...]
    errata: tuple[Path, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """All that its items depend on: its files, the second ones beside them and the errata, each once."""
        joined = map(self.spec.join.beside, self.files) if self.spec.join else ()
        return list(dict.fromkeys((*self.files, *filter(Path.is_file, joined), *self.errata)))

    def summary(self, root: Path) -> BenchSummary:
        """Return an empty summary with where the benchmark comes from.

        Raises:
            InputError: a file cannot be read.
        """
        origin = self.spec.source
        place, version = origin.repository, origin.commit
        if not self.source.files:
            place, version = origin.hub, self.source.revision or origin.revision
        source = f"{place}@{version}" if place and version else place
        return BenchSummary(
            bench=self.spec.bench,
            spec=self.source.spec,
            source=source or ", ".join(self.source.files),
            licence=origin.licence,
            redistributable=origin.redistributable,
            checked=origin.checked,
            files={_shown(path, root, version): _sha256(path) for path in self.paths},
        )


def declared(study: Study) -> list[Declared]:
    """Load every spec and find every file, so that a mistake in the last benchmark shows before the first is read.

    Raises:
        ConfigError: the config names no benchmark, one twice, or something that its spec has no place for.
        SpecError: a spec is not there or is wrong.
        UsageError: a file is not there, or a hub dataset cannot be had.
    """
    found: dict[str, Declared] = {}
    data = study.places.data
    if not study.config.pool:
        cure = f"benchcheck pool add FILE --study {study.root}, or a [[pool]] entry by hand (docs/pool.md)"
        raise ConfigError(f"{study.root}: the config names no benchmark. Cure: {cure}")
    for source in study.config.pool:
        spec = load_spec(source.spec, study.root)
        bench = bench_name(source, spec)
        if bench in found:
            raise ConfigError(
                f"{study.root}: two [[pool]] entries are called {bench!r}: {_named(found[bench].source)} and "
                f"{_named(source)}. Cure: list all files in one entry, or set bench to another name"
            )
        spec = dataclasses.replace(
            spec, bench=bench, join=_join(spec, source, data), errata=_errata(spec, source, data)
        )
        errata = (located(data, source.errata),) if source.errata else ()
        found[bench] = Declared(spec, source, tuple(_files(spec, source, study.places)), errata)
        _refuse_own(found[bench].files, study)
    return list(found.values())


def newer_files(study: Study) -> list[Path]:
    """Return the annotation files of the config that were written after the pool; none where there is no pool yet."""
    try:
        built = study.pool_file.stat().st_mtime
        named = [path for source in study.config.pool for path in _own_files(source, study)]
        return [] if study.pool_is_given else [path for path in named if path.stat().st_mtime > built]
    except (OSError, InputError):
        return []


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
        ConfigError: there is no file, or its name is a pattern, or holds more than letters, digits, _ and -.
    """
    name = source.bench or spec.bench or Path((*source.files, "")[0]).stem
    if BENCH_NAME.fullmatch(name) is None:
        cure = "set bench in its [[pool]] entry: letters, digits, _ and -, 64 at most"
        raise ConfigError(f"{_named(source)}: {name!r} cannot name a benchmark. Cure: {cure}")
    return name


def _named(source: PoolSource) -> str:
    """An entry as messages name it: its files, or its spec."""
    return ", ".join(source.files) or f"spec {source.spec!r}"


def _files(spec: Spec, source: PoolSource, places: Located) -> list[Path]:
    """The annotation files that an entry names, or those of its spec's hub dataset."""
    if source.files:
        return find_files(places.data, source.files, spec.members)
    if not spec.source.hub:
        cure = f'add files = ["…"] to its [[pool]] entry{_where_from(spec)}'
        raise ConfigError(f"{spec.bench}: no files, and spec {source.spec!r} names no hub dataset. Cure: {cure}")
    hub, revision, files = spec.source.hub, source.revision or spec.source.revision, spec.source.files
    found = fetch(hub, revision, files, places.hub)
    if spec.join is not None and not source.join:  # then it lies beside the first, in the cache's folder of this commit
        fetch(hub, revision, [spec.join.beside(Path(name)).as_posix() for name in files], places.hub)
    return found


def _refuse_own(files: Iterable[Path], study: Study) -> None:
    """Refuse what a build wrote: `files = ["."]` would take the pool of the one before for annotations."""
    own = {study.pool_file.resolve(), study.manifest_file.resolve()}
    for path in files:
        if path.resolve() in own:
            cure = "keep the annotation files in a folder of their own, or name each of them"
            raise InputError(f"{path}: written by `pool build`, no annotation file. Cure: {cure}")


def _where_from(spec: Spec) -> str:
    """Where a spec says that its files are, for a message."""
    origin = spec.source
    files = ", ".join(origin.files)
    return f"; they are {files or 'published'} in {origin.repository}" if origin.repository else ""


def _own_files(source: PoolSource, study: Study) -> Iterator[Path]:
    """The files that an entry names and a user may edit; those of the hub cannot change."""
    data = study.places.data
    yield from find_files(data, source.files)
    yield from (located(data, name) for name in (source.errata, source.join) if name)
    if source.spec.endswith(".toml"):
        yield located(study.root, source.spec)


def _join(spec: Spec, source: PoolSource, root: Path) -> Join | None:
    """The spec's second file, where the entry says that it lies."""
    if not source.join:
        return spec.join
    if spec.join is None:
        raise ConfigError(
            f"{_named(source)}: join = {source.join!r}, but spec {source.spec!r} joins no second file. Cure: leave out "
            "join, or declare [join] in the spec (docs/pool.md)"
        )
    path = located(root, source.join).absolute()
    if not path.is_file():
        raise InputError(f"{path}: no such file. Cure: mend join in the [[pool]] entry of {_named(source)}")
    return dataclasses.replace(spec.join, file=str(path))


def _errata(spec: Spec, source: PoolSource, root: Path) -> dict[str, str]:
    """The spec's errata and those of the entry's own file, which come first.

    Raises:
        InputError: the file is no CSV with the columns id and reason, or a row lacks one.
    """
    own: dict[str, str] = {}
    if source.errata:
        path = located(root, source.errata)
        for record in read_records(path, Layout("csv")):
            row = [str(record.values.get(name, "")).strip() for name in ("id", "reason")]
            if not all(row):
                raise InputError(
                    f"{record.where}: no {'reason' if row[0] else 'id'}. Allowed: columns id and reason, both filled"
                )
            own[row[0]] = row[1]
    return {**spec.errata, **own}


def _shown(path: Path, root: Path, version: str) -> str:
    """A path as the manifest shows it: relative to the study when below it, in the hub's cache to the dataset."""
    if path.is_relative_to(root):
        return str(path.relative_to(root))
    parts = path.parts
    return "/".join(parts[parts.index(version) + 1 :]) if len(version) == 40 and version in parts[:-1] else str(path)


def _sha256(path: Path) -> str:
    """SHA-256 of a file, in hex digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as reason:
        raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check its permissions") from None
