"""A study is a folder: benchcheck.toml, inputs, frames, results. Every path and file format of it stands here.

What this module promises: a file appears whole or not at all (`publish`), a row is appended whole or not at all
(`append_rows`), and reading tells good rows from torn ones and errors without hiding any (`read_rows`).
"""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import Config, load
from benchcheck.errors import StudyError, UsageError
from benchcheck.pool.items import Item

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CONFIG_NAME", "FRAMES_FILE", "Rows", "Study", "append_rows", "publish", "read_rows", "writing"]

CONFIG_NAME = "benchcheck.toml"
FRAMES_FILE = "frames.json"

_ITEM_BATCH = 10_000
"""Items per parquet row group: about 5 MB of text, so that a pool of any size is written in bounded memory."""

_ROW_COLUMNS = {
    "item_id": "VARCHAR",
    "step_key": "VARCHAR",
    "item_digest": "VARCHAR",
    "status": "VARCHAR",
    "error": "VARCHAR",
    "n_perm": "INTEGER",
    "n_right": "INTEGER",
    "mean_margin": "DOUBLE",
}
_ANSWER_COLUMNS = {
    **_ROW_COLUMNS,
    "bench": "VARCHAR",
    "model": "VARCHAR",
    "revision": "VARCHAR",
    "detail": "VARCHAR",
    "orders": "INTEGER[][]",
    "logprobs": "DOUBLE[][]",
    "missing": "VARCHAR[][]",
    "label_mass": "DOUBLE[]",
    "margins": "DOUBLE[]",
    "right": "BOOLEAN[]",
    "prompt_tokens": "INTEGER[]",
    "latency_s": "DOUBLE",
    "engine": "JSON",
    "at": "VARCHAR",
}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a full disk, a read-only folder and the like into one line with the path; a bug stays a bug."""
    cures = {
        errno.ENOSPC: "the disk is full. Cure: free space and run the same command again; what was written is kept",
        errno.EDQUOT: "the disk quota is used up. Cure: free space and run the same command again",
        errno.EFBIG: "the file would grow over the size limit of this process (ulimit -f)",
        errno.EACCES: "no write permission. Cure: chmod the folder or choose another",
        errno.EPERM: "no write permission. Cure: chmod the folder or choose another",
        errno.EROFS: "the file system is read-only. Cure: choose another folder",
        errno.ENOTDIR: "a part of this path is a file, not a folder",
        errno.EISDIR: "this is a folder where a file is wanted",
        errno.EEXIST: "a file stands where a folder is wanted",
    }
    try:
        yield
    except OSError as reason:
        if reason.errno not in cures:
            raise
        raise StudyError(f"{path}: {cures[reason.errno]}") from reason


@contextlib.contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; when the block ends well, it becomes `path` in one move.

    Raises:
        StudyError: the disk is full or the folder is not writable; `path` is as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def append_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a JSON-lines file: one write under an exclusive lock, whole rows only (protocol 6).

    A torn last line, left by a killed writer, is closed with a newline first, so that no row is glued to it. When the
    disk fills up in the middle, the file is cut back to where it was.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    if not rows:
        return
    data = "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                data = b"\n" + data
            try:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) or 0 :]
            except OSError:
                file.truncate(size)
                raise


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a step, and how many lines were no rows at all (torn by a killed writer, or damaged)."""

    table: "pa.Table"
    unreadable: int


def read_rows(files: Sequence[Path], columns: Mapping[str, str], where: str = "") -> Rows:
    """Read some columns of many JSON-lines files with DuckDB, in file order, torn lines left out and counted.

    `columns` maps names to DuckDB types. 300,000 rows of 900 bytes take 1.2 s on two cores; a json.loads loop 10 s.

    Raises:
        StudyError: a file cannot be read.
    """
    import duckdb

    names = [str(file) for file in files if file.stat().st_size]
    declared = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    nothing = ", ".join(f'null::{kind} as "{name}"' for name, kind in columns.items())
    source = (
        f"read_json($files, format='newline_delimited', columns={{{declared}}}, ignore_errors=true, "
        "maximum_object_size=268435456)"
        if names
        else f"(select {nothing} limit 0)"
    )
    query = f"select * from {source}" + (f" where item_id is null or ({where})" if where else "")
    with duckdb.connect() as connection:
        try:
            table = connection.sql(query, params={"files": names} if names else None).to_arrow_table()
        except duckdb.Error as reason:
            raise StudyError(f"{files[0].parent}: rows are not readable: {reason}") from reason
    torn = table.column("item_id").null_count
    if torn:
        table = table.filter(table.column("item_id").is_valid())
    return Rows(table, torn)


class Study:
    """A study's folder. Opening one reads only benchcheck.toml."""

    def __init__(self, root: Path, config: Config) -> None:
        self.root = root
        self.config = config

    @classmethod
    def open(cls, root: str | Path) -> "Study":
        """Open a study's folder.

        Raises:
            UsageError: the folder is not a study.
            ConfigError: its benchcheck.toml is wrong.
        """
        folder = Path(root)
        path = folder / CONFIG_NAME
        if not path.is_file():
            raise UsageError(f"{folder}: no {CONFIG_NAME} here, so not a study. Cure: benchcheck init {folder}")
        return cls(folder, load(path))

    # Paths. The three environment variables are those of the original package (protocol 8).

    @property
    def results(self) -> Path:
        """Everything that a run made; `POOL_RESULTS_ROOT` moves it."""
        return Path(os.environ.get("POOL_RESULTS_ROOT") or self.root / "results")

    @property
    def frames(self) -> Path:
        """Folder of frame folders; `POOL_FRAMES_DIR` moves it."""
        return Path(os.environ.get("POOL_FRAMES_DIR") or self.root / "frames" / "pool_frames")

    @property
    def pool_file(self) -> Path:
        """Every item; `POOL_BASE` names another parquet file, or a folder that holds pool_items_base.parquet."""
        base = Path(os.environ.get("POOL_BASE") or self.results)
        return base if base.suffix == ".parquet" else base / "pool_items_base.parquet"

    @property
    def manifest_file(self) -> Path:
        """Per benchmark: rows, mcq, open, issues, source, spec."""
        return self.results / "pool_schema_manifest.csv"

    @property
    def logs(self) -> Path:
        """Logs and the video manifest."""
        return self.root / "logs"

    @property
    def video_manifest(self) -> Path:
        """One row a video and attempt: key, status, content_hash, error; the last row of a key wins."""
        return self.logs / "manifest.jsonl"

    @property
    def accounting_file(self) -> Path:
        """One line per step, unit and run (JSON lines; `run_accounting.csv` is made from it)."""
        return self.logs / "accounting.jsonl"

    def step_folder(self, step: int) -> Path:
        """Folder of a step's rows."""
        return self.results / f"step{step}"

    def step_file(self, step: int, bench: str, part: int | None = None) -> Path:
        """File of a benchmark's rows in a step; `part` counts from 0 when the benchmark is split."""
        return self.step_folder(step) / (f"{bench}.jsonl" if part is None else f"{bench}.p{part}.jsonl")

    # The pool.

    def write_pool(self, items: Iterable[Item]) -> int:
        """Write pool_items_base.parquet whole or not at all; returns the number of items."""
        import pyarrow.parquet as pq

        schema, written, batch = _item_schema(), 0, list[dict[str, Any]]()
        with publish(self.pool_file) as path, pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for item in items:
                batch.append(_item_row(item))
                written += 1
                if len(batch) == _ITEM_BATCH:
                    writer.write_table(_item_table(batch, schema))
                    batch.clear()
            writer.write_table(_item_table(batch, schema))
        return written

    def item_table(self, columns: Sequence[str] | None = None) -> "pa.Table":
        """Read the pool, or some columns of it, in the pool's order.

        Raises:
            StudyError: there is no pool yet, or its file is damaged.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.pool_file
        try:
            return pq.read_table(path, columns=list(columns) if columns is not None else None)
        except FileNotFoundError:
            raise StudyError(f"{path}: no pool yet. Cure: benchcheck pool build {self.root}") from None
        except (pa.ArrowException, OSError) as reason:
            cure = f"Cure: benchcheck pool build {self.root} makes it again"
            raise StudyError(f"{path}: not readable as parquet ({reason}). {cure}") from reason

    def items(self, item_ids: Iterable[str] | None = None) -> list[Item]:
        """Return the pool's items, or those of the given ids, in the pool's order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = self.item_table()
        if item_ids is not None:
            table = table.filter(pc.is_in(table.column("item_id"), value_set=pa.array(list(item_ids), pa.string())))
        return [_item_of(row) for row in table.to_pylist()]

    # Frames.

    def frames_ready(self) -> frozenset[str]:
        """Return the frame folders that are complete: they are published whole, so being there is being complete."""
        if not self.frames.is_dir():
            return frozenset()
        with os.scandir(self.frames) as entries:
            return frozenset(entry.name for entry in entries if not entry.name.startswith("."))

    # Rows of steps.

    def append(self, step: int, bench: str, part: int | None, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append answers or error rows of one benchmark."""
        append_rows(self.step_file(step, bench, part), rows)

    def step_files(self, step: int) -> list[Path]:
        """Return the files that hold a step's rows, sorted by name."""
        return sorted(self.step_folder(step).glob("*.jsonl"))

    def rows(self, step: int) -> Rows:
        """Return what verdicts need of every row of a step, in file order."""
        return read_rows(self.step_files(step), _ROW_COLUMNS)

    def answers(self, step: int, where: str = "") -> Rows:
        """Return every field of a step's rows; `where` is a DuckDB condition on them."""
        return read_rows(self.step_files(step), _ANSWER_COLUMNS, where)


def _item_schema() -> "pa.Schema":
    """Columns of pool_items_base.parquet."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    return pa.schema(
        [
            ("item_id", text),
            ("bench", text),
            ("source_id", text),
            ("question", text),
            ("options", pa.list_(text)),
            ("gold", pa.int32()),
            ("format", text),
            ("video_key", text),
            ("video_id", text),
            ("start", number),
            ("end", number),
            ("category", text),
            ("duration", number),
            ("issues", pa.list_(text)),
            ("item_digest", text),
            ("frames_key", text),
        ]
    )


def _item_row(item: Item) -> dict[str, Any]:
    """One item as a row of the pool file."""
    row = {name: getattr(item, name) for name in Item.__dataclass_fields__}
    return row | {"item_digest": item.digest, "frames_key": item.frames_key}


def _item_table(rows: Sequence[Mapping[str, Any]], schema: "pa.Schema") -> "pa.Table":
    """A batch of rows as an Arrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema=schema)


def _item_of(row: Mapping[str, Any]) -> Item:
    """One row of the pool file as an item."""
    values = {name: row[name] for name in Item.__dataclass_fields__}
    return Item(**values | {"options": tuple(row["options"]), "issues": tuple(row["issues"])})
