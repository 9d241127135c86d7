"""A study is a folder: benchcheck.toml, inputs, frames, results. Every path and file format of it stands here.

How files are written and read so that none is ever half there stands in files.py.
"""

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck.config import Config, load, starter
from benchcheck.errors import StudyError, UsageError
from benchcheck.files import Rows, append_rows, publish, read_rows
from benchcheck.places import POOL_FILE, Located
from benchcheck.pool.items import Item

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ANSWER_COLUMNS", "CONFIG_NAME", "FRAMES_FILE", "IMPORTED", "PACKAGE_MARK", "Study", "items_table"]

CONFIG_NAME = "benchcheck.toml"
FRAMES_FILE = "frames.json"
PACKAGE_MARK = ".package-unfinished"
"""Stands in a folder while a package is made in it; what is there with it is no study, and may be made again."""

_ITEM_BATCH = 10_000
"""Items per parquet row group, at least: about 5 MB of text, so that a pool of any size needs bounded memory."""

ROW_COLUMNS = {
    "item_id": "VARCHAR",
    "step_key": "VARCHAR",
    "item_digest": "VARCHAR",
    "status": "VARCHAR",
    "error": "VARCHAR",
    "n_perm": "INTEGER",
    "n_right": "INTEGER",
    "mean_margin": "DOUBLE",
    "forgives": "INTEGER",
    "revision": "VARCHAR",
}
ANSWER_COLUMNS = {
    **ROW_COLUMNS,
    "bench": "VARCHAR",
    "model": "VARCHAR",
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
IMPORTED = "imported"
"""The engine's name in rows that came from a package of the original layout: which one it was, nobody wrote down."""


class Study:
    """A study's folder. Opening one reads only benchcheck.toml."""

    def __init__(self, root: Path, config: Config) -> None:
        self.root = root
        self.config = config
        self.places = Located(root, config.places, config.videos.folder)
        self._held: tuple[tuple[int, int, int], pa.Table] | None = None

    @classmethod
    def open(cls, root: str | Path, checked: bool = True) -> "Study":
        """Open a study's folder; `checked` refuses places where a file stands.

        Raises:
            UsageError: the folder is not a study, or one of its places is no folder.
            ConfigError: its benchcheck.toml is wrong.
        """
        folder = Path(root)
        if folder.name == CONFIG_NAME and os.path.isfile(folder):
            folder = folder.parent
        path = folder / CONFIG_NAME
        if not os.path.isfile(path):  # Path.is_file raises where the name is too long or the folder is closed
            raise UsageError(f"{folder}: no {CONFIG_NAME} here, so not a study. Cure: benchcheck init {folder}")
        study = cls(folder, load(path))
        if checked:
            study.places.refuse_files()
        return study

    @classmethod
    def create(cls, root: str | Path, **settings: Any) -> "Study":
        """Make a study's folder with a commented benchcheck.toml; `settings` are those of `starter`.

        Raises:
            UsageError: there is a study already.
            StudyError: the folder cannot be written.
        """
        folder = Path(root)
        path = folder / CONFIG_NAME
        name = os.fsencode(folder.resolve().name).decode("utf-8", "replace")
        if os.path.lexists(path):
            raise UsageError(f"{path}: there is a study already. Cure: choose another folder, or edit this file")
        try:
            text = starter(**({"name": name} | settings)).encode()
        except UnicodeEncodeError:
            raise UsageError("a path that is not UTF-8 cannot stand in benchcheck.toml. Cure: rename it") from None
        with publish(path) as temporary:
            temporary.write_bytes(text)
        return cls.open(folder)

    # Paths. Where they lie say `[places]` and environment variables (places.py).

    @property
    def results(self) -> Path:
        """Everything that a run made; `POOL_RESULTS_ROOT` moves it."""
        return self.places.of("results").path

    @property
    def frames(self) -> Path:
        """Folder of frame folders; `POOL_FRAMES_DIR` moves it."""
        return self.places.of("frames").path

    @property
    def pool_file(self) -> Path:
        """Every item; `POOL_BASE` names another parquet file, or a folder that holds pool_items_base.parquet."""
        base = self.places.of("pool").path
        return base if base.suffix == ".parquet" else base / POOL_FILE

    @property
    def pool_is_given(self) -> bool:
        """Whether `POOL_BASE` names the pool: then it is another package's, read and never written."""
        return bool(os.environ.get("POOL_BASE"))

    @property
    def manifest_file(self) -> Path:
        """Per benchmark: rows, mcq, open, issues, source, spec."""
        return self.results / "pool_schema_manifest.csv"

    @property
    def logs(self) -> Path:
        """Logs and the video manifest."""
        return self.places.of("logs").path

    @property
    def video_manifest(self) -> Path:
        """One row a set of frames and attempt (docs/frames.md); the last `ready` row of a set wins, else the last."""
        return self.logs / "manifest.jsonl"

    @property
    def certificate_file(self) -> Path:
        """What `frames check` found: a sample of frames decoded again by a second decoder."""
        return self.results / "frames_certificate.json"

    @property
    def normalized(self) -> Path:
        """Videos that were brought into one form: `<content hash>/video.mp4` and `meta.json` each."""
        return self.places.of("normalized").path

    @property
    def import_differences(self) -> Path:
        """What `import-pool` found to differ in a package of the original layout; a study without imports has none."""
        return self.results / "import_differences.csv"

    @property
    def package_file(self) -> Path:
        """What a study that came as a package says of where it comes from; others have none."""
        return self.root / "package.json"

    @property
    def accounting_file(self) -> Path:
        """One line per step, unit and run (JSON lines; `run_accounting.csv` is made from it)."""
        return self.logs / "accounting.jsonl"

    @property
    def slurm_jobs(self) -> Path:
        """One line per array that was given to Slurm: job, step, tasks, time."""
        return self.logs / "slurm_jobs.jsonl"

    @property
    def doctor_file(self) -> Path:
        """What `benchcheck doctor` last found about the study's models."""
        return self.logs / "doctor.json"

    @property
    def database(self) -> Path:
        """The results as DuckDB tables and views."""
        return self.results / "pool.duckdb"

    @property
    def pool_items(self) -> Path:
        """Every item with every step's outcome."""
        return self.results / "pool_items.parquet"

    @property
    def summary_md(self) -> Path:
        """Verdicts and funnel, for people."""
        return self.results / "pool_summary.md"

    @property
    def summary_csv(self) -> Path:
        """Asked, removed and failed per step and benchmark."""
        return self.results / "pool_summary.csv"

    @property
    def accounting(self) -> Path:
        """What every unit of every run cost."""
        return self.results / "run_accounting.csv"

    @property
    def report(self) -> Path:
        """The page."""
        return self.results / "report.html"

    def step_folder(self, step: int) -> Path:
        """Folder of a step's rows."""
        return self.results / f"step{step}"

    def reread_folder(self, step: int) -> Path:
        """Folder of a step's second readings, which are never answers."""
        return self.results / "reread" / f"step{step}"

    def step_file(self, step: int, bench: str, part: int | None = None) -> Path:
        """File of a benchmark's rows in a step; `part` counts from 0 when the benchmark is split."""
        return self.step_folder(step) / (f"{bench}.jsonl" if part is None else f"{bench}.p{part}.jsonl")

    # The pool.

    def write_pool(self, items: Iterable[Item]) -> int:
        """Write pool_items_base.parquet whole or not at all; returns the number of items."""
        rest = iter(items)
        return self.write_tables(map(items_table, iter(lambda: list(itertools.islice(rest, _ITEM_BATCH)), [])))

    def write_tables(self, tables: "Iterable[pa.Table]") -> int:
        """Write the pool from tables as `items_table` makes them, whole or not at all; returns the number of items."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        written, waiting, count = 0, [items_table([])], 0
        with publish(self.pool_file) as path, pq.ParquetWriter(path, waiting[0].schema, compression="zstd") as writer:
            for table in tables:
                waiting.append(table)
                count += table.num_rows
                if count >= _ITEM_BATCH:
                    writer.write_table(pa.concat_tables(waiting))
                    written += count
                    waiting, count = waiting[:1], 0
            writer.write_table(pa.concat_tables(waiting))
        return written + count

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
        """Return the pool's items, or those of the given ids, in the pool's order.

        Raises:
            StudyError: there is no pool yet, its file is damaged, or it calls an item multiple-choice that is not.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if item_ids is None:
            return [self._item(row) for row in self.item_table().to_pylist()]
        table = self._held_table()
        table = table.filter(pc.is_in(table.column("item_id"), value_set=pa.array(list(item_ids), pa.string())))
        return [self._item(row) for row in table.to_pylist()]

    def _item(self, row: Mapping[str, Any]) -> Item:
        item = Item.of(row)
        if item.format == "mcq" and not item.askable:
            raise StudyError(
                f"{self.pool_file}: item {item.item_id} has format mcq, {len(item.options)} options, gold {item.gold}. "
                "Allowed: 2 to 26 options and the index of one. Cure: build the pool again, or set its format to open"
            )
        return item

    def _held_table(self) -> "pa.Table":
        """The whole pool, read once and held while its file stays the same.

        A worker asks for the items of one unit after the other: of 300,000 items, reading takes 0.25 s of a core a
        time, held they take 122 MB and a unit 0.005 s.
        """
        try:
            found = self.pool_file.stat()
        except OSError:
            return self.item_table()  # which says what is wrong
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._held is None or self._held[0] != seen:
            self._held = (seen, self.item_table())
        return self._held[1]

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
        return read_rows(self.step_files(step), ROW_COLUMNS)

    def answers(self, step: int, where: str = "") -> Rows:
        """Return every field of a step's rows; `where` is a DuckDB condition on them."""
        return read_rows(self.step_files(step), ANSWER_COLUMNS, where)


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
            ("subtitles", text),
            ("group", text),
            ("file_gold", pa.int32()),
            ("item_digest", text),
            ("frames_key", text),
        ]
    )


def items_table(items: Sequence[Item]) -> "pa.Table":
    """Return items as rows of the pool, column by column: a dict a row takes three times as long."""
    import pyarrow as pa

    schema = _item_schema()
    made = {"item_digest": "digest", "frames_key": "frames_key"}
    columns = [list(map(attrgetter(made.get(name, name)), items)) for name in schema.names]
    return pa.Table.from_arrays([pa.array(*pair) for pair in zip(columns, schema.types, strict=True)], schema=schema)
