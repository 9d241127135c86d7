"""An existing package of the original layout comes into a study: items, frames, rows; its verdicts are replayed.

Nothing of the package is changed, and no answer of the study is written over. The same call again brings what is not
there yet, after a crash too.
"""

import contextlib
import csv
import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.config import parse, step_key
from benchcheck.errors import InputError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pool.items import Item
from benchcheck.run.lock import run_lock
from benchcheck.run.work import now
from benchcheck.screen.steps import LADDER, STEP_NUMBERS, Step
from benchcheck.screen.verdicts import Rule
from benchcheck.study import CONFIG_NAME, IMPORTED, Study
from benchcheck.transfer.original.brought_frames import BroughtFrames, bring_frames, needed_sets
from benchcheck.transfer.original.brought_shards import bring_shards, grid_in
from benchcheck.transfer.original.files import Original, find_original, lines_of
from benchcheck.transfer.original.fitting import config_text, models_of, refuse_misfits
from benchcheck.transfer.original.layout import (
    ITEM_NAMES,
    ITEM_NEEDED,
    Answer,
    Asked,
    UnfitError,
    answer_of,
    item_of,
    named,
)
from benchcheck.transfer.original.seen_rows import StepSeen, fields_of, is_error, look_through
from benchcheck.video.faults import READY
from benchcheck.video.store import Outcome, last_outcomes, record

__all__ = ["HOW_FRAMES", "Difference", "Imported", "StepImported", "import_pool"]

HOW_FRAMES = ("link", "copy", "none")
_COLUMNS = ("step", "bench", "item_id", "what", "theirs", "ours", "file", "line")
_EXAMPLES = 10
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the package says of an answer and that our rule, of the same readings, does not."""

    step: int
    bench: str
    item_id: str
    what: str
    """`removed`, `n_right`, `mean_margin`, or `orders`: shown in other orders than the study's seed gives."""
    theirs: object
    ours: object
    file: str
    line: int


@dataclass(slots=True)
class StepImported:
    """What became of the rows of one step."""

    step: int
    rows: int
    answers: int = 0
    """Rows that were written as answers now."""
    errors: int = 0
    """Rows that were written as error rows now."""
    there: int = 0
    """Items whose answer or error the study had."""
    contradictory: tuple[str, ...] = ()
    """Items with answers that say different things: the last one counts."""
    unjudged: int = 0
    """Answers without a verdict of the package's own: nothing to compare."""
    differences: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Imported:
    """What an import did."""

    study: Path
    made: bool
    """Whether the study was made for it."""
    items: int
    """Items of the package that are in the study's pool."""
    items_left_out: Counter[str]
    steps: list[StepImported]
    frames: BroughtFrames
    videos: int
    """Failed videos whose reason came along."""
    notes: list[str]
    examples: list[Difference]
    """The first differences, verdicts first."""
    differences_file: Path

    @property
    def verdicts_differ(self) -> int:
        """Answers whose verdict is another by our rule."""
        return sum(step.differences["removed"] for step in self.steps)


def import_pool(
    package: str | Path,
    study: str | Path,
    *,
    frames: str = "link",
    steps: Sequence[int] = (),
) -> Imported:
    """Bring a package of the original layout (protocol 6 and 8) into a study, which is made where there is none.

    Rows get the study's step key and their item's digest, and say where they are from. Frames are linked, copied, or
    left (`link`, `copy`, `none`). Every verdict is replayed by our rule; where ours differs stands in
    `results/import_differences.csv`.

    Raises:
        UsageError: the study's protocol does not fit, columns are not known, or rows of one role name several models.
        InputError: the package has no items or no rows.
        DamagedFileError: a file of it cannot be read.
        StudyError: the study cannot be written; what was brought stays.
    """
    if frames not in HOW_FRAMES:
        raise UsageError(f"frames = {frames!r} is not allowed. Allowed: {', '.join(HOW_FRAMES)}")
    if odd := set(steps) - set(STEP_NUMBERS):
        raise UsageError(f"--step {min(odd)} is no step. Allowed: 1 to 6")
    original = find_original(Path(package))
    if missing := set(steps) - set(original.steps):
        there = ", ".join(map(str, original.steps))
        raise UsageError(f"{package}: no rows of step {min(missing)}. Found: steps {there}")
    theirs, left_out = _items(original)
    seen = [look_through(original, step, theirs) for step in original.steps if not steps or step in steps]
    opened, made = _study(Path(study), original, seen)
    with run_lock(opened):
        return _bring(opened, original, (theirs, left_out), seen, (frames, made))


def _items(original: Original) -> tuple[dict[str, Item], Counter[str]]:
    """The package's items by id, and how many rows are none.

    Raises:
        InputError: no parquet file, or a column is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    items, left_out = dict[str, Item](), Counter[str]()
    try:
        with pq.ParquetFile(original.items) as file:
            names = file.schema_arrow.names
            columns = named(ITEM_NAMES, names)
            if missing := [name for name in ITEM_NEEDED if name not in columns]:
                wanted = "; ".join(f"{name} ({' or '.join(ITEM_NAMES[name])})" for name in missing)
                found = ", ".join(names[:30])
                raise InputError(
                    f"{original.shown(original.items)}: columns are missing. Wanted: {wanted}. Found: {found}"
                )
            for batch in file.iter_batches(10_000, columns=sorted({*columns.values()})):
                for row in batch.to_pylist():
                    try:
                        item = item_of(row, columns)
                    except UnfitError as fault:
                        left_out[str(fault)] += 1
                        continue
                    if item.item_id in items:
                        left_out["item whose id is there twice: the first counts"] += 1
                    items.setdefault(item.item_id, item)
    except (pa.ArrowException, OSError) as reason:
        cure = "Cure: get the package again"
        raise InputError(f"{original.shown(original.items)}: not readable as parquet ({reason}). {cure}") from None
    if not items:
        raise InputError(f"{original.shown(original.items)}: not one item. Left out: {dict(left_out) or 'nothing'}")
    return items, left_out


def _study(root: Path, original: Original, seen: Sequence[StepSeen]) -> tuple[Study, bool]:
    """The study, made for these rows where there is none; whether it was made.

    Raises:
        UsageError: rows that it could not have asked; then none is made.
    """
    if os.path.isfile(root / CONFIG_NAME) or root.name == CONFIG_NAME:
        study = Study.open(root)
        refuse_misfits(study.config, seen)
        return study, False
    permuted = [max(step.n_perms, key=step.n_perms.__getitem__) for step in seen
                if LADDER[step.step].permuted and step.n_perms]  # fmt: skip
    name = os.fsencode(root.resolve().name).decode("utf-8", "replace")
    text = config_text(name, models_of(seen), max(1, min(24, permuted[0])) if permuted else 4, grid_in(original))
    refuse_misfits(parse(tomllib.loads(text), CONFIG_NAME), seen)
    with publish(root / CONFIG_NAME) as path:
        path.write_text(text, encoding="utf-8")
    return Study.open(root), True


def _bring(
    study: Study,
    original: Original,
    items: tuple[dict[str, Item], Counter[str]],
    seen: Sequence[StepSeen],
    how: tuple[str, bool],
) -> Imported:
    """Bring all of it: the pool, frames, what became of videos, rows."""
    theirs, left_out = items
    mine, unlike = _pool(study, theirs)
    left_out.update(unlike)
    frames, notes = BroughtFrames(), [f"{name!r} is no file of rows" for name in original.odd[:5]]
    if how[0] != "none":
        bring_frames(study, original, needed_sets(study, list(mine.values()), frames), how[0], frames)
        notes += bring_shards(study, original, needed_sets(study, list(mine.values()), BroughtFrames()), frames)
    videos = _videos(study, original, mine)
    examples, differences = list[Difference](), study.import_differences
    done = []
    with publish(differences) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(_COLUMNS)
        table.writerows(_kept(differences, {original.shown(path) for one in seen for path in original.steps[one.step]}))
        for step in seen:
            bringing = _Bringing(study, original, LADDER[step.step], mine, step)
            for found in bringing.run():
                table.writerow([getattr(found, name) for name in _COLUMNS])
                if found.what != "orders" and sum(one.what == found.what for one in examples) < _EXAMPLES:
                    examples.append(found)
            done.append(bringing.result)
    examples.sort(key=lambda one: one.what != "removed")
    return Imported(study.root, how[1], len(mine), left_out, done, frames, videos, notes, examples, differences)


def _kept(differences: Path, files: set[str]) -> Iterator[list[str]]:
    """Yield what an earlier import found in other files than these: another step, another package."""
    with (
        contextlib.suppress(FileNotFoundError, csv.Error),
        differences.open(encoding="utf-8", errors="replace", newline="") as file,
    ):
        rows = csv.reader(file)
        if tuple(next(rows, ())) == _COLUMNS:
            yield from (row for row in rows if len(row) == len(_COLUMNS) and row[-2] not in files)


def _pool(study: Study, theirs: Mapping[str, Item]) -> tuple[dict[str, Item], Counter[str]]:
    """The items that the study and the package share: all of them where the study had no pool; and those left out.

    A pool that is there stays as it is.
    """
    if not study.pool_file.exists():
        if study.pool_is_given:
            raise StudyError(f"{study.pool_file}: POOL_BASE names no pool. Cure: unset POOL_BASE")
        study.write_pool(theirs.values())
        return dict(theirs), Counter()
    pool = study.item_table(["item_id", "item_digest"]).to_pydict()
    ours = dict(zip(pool["item_id"], pool["item_digest"], strict=True))
    shared = {name: item for name, item in theirs.items() if ours.get(name) == item.digest}
    left_out: Counter[str] = Counter()
    for name in theirs:
        if name not in shared:
            left_out[
                "item with another text in the study's pool" if name in ours else "item that its pool has not"
            ] += 1
    return {item.item_id: item for item in study.items(shared)}, left_out


def _videos(study: Study, original: Original, items: Mapping[str, Item]) -> int:
    """Bring what became of videos that gave no frames: the last row of each, where the study has none of its own."""
    if original.videos is None:
        return 0
    last: dict[str, dict[str, Any]] = {}
    for _, row in lines_of(original.videos):
        if row is not None and isinstance(row.get("key"), str) and isinstance(row.get("status"), str):
            last[row["key"]] = row
    known, ready = last_outcomes(study), study.frames_ready()
    outcomes = []
    for item in {item.frames_key: item for item in items.values() if item.format == "mcq"}.values():
        row = last.get(item.video_key)
        if row is None or item.frames_key in known or item.frames_key in ready:
            continue
        if row["status"].lower() not in (READY, "ok", "done", "good", "success"):
            text = " ".join(str(row.get("error") or "").split())[:500]
            outcomes.append(Outcome(item.video_key, item.frames_key, row["status"][:40], "", text))
    for start in range(0, len(outcomes), _BATCH):
        record(study, outcomes[start : start + _BATCH])
    return len(outcomes)


class _Bringing:
    """The rows of one step on their way into the study."""

    def __init__(self, study: Study, original: Original, step: Step, items: Mapping[str, Item], seen: StepSeen) -> None:
        config, protocol = study.config, study.config.protocol
        rule = Rule(protocol.right_share, protocol.margin)
        self.study, self.original, self.step, self.items, self.seen = study, original, step, items, seen
        self.asked = Asked(step.number, config.orders_of(step), step.permuted, protocol.seed, rule)
        self.key, self.model = step_key(config, step), config.models[step.role]
        self.result = StepImported(step.number, seen.rows, contradictory=tuple(seen.contradictory))
        self.result.left_out.update(seen.left_out)
        self.waiting: dict[str, list[dict[str, Any]]] = {}
        self.answered, self.failed = self._here()

    def _here(self) -> tuple[set[str], set[str]]:
        """Items that have an answer of this step in the study, and those that have another row."""
        import pyarrow.compute as pc

        rows = self.study.rows(self.step.number).table.select(["item_id", "item_digest", "step_key", "status"])
        mine = rows.filter(pc.fill_null(pc.equal(rows.column("step_key"), self.key), fill_value=False)).to_pydict()
        answered, failed = set[str](), set[str]()
        for name, digest, status in zip(mine["item_id"], mine["item_digest"], mine["status"], strict=True):
            if name in self.items and self.items[name].digest == digest:
                (answered if status == "ok" else failed).add(name)
        return answered, failed

    def run(self) -> Iterator[Difference]:
        """Take the row of each item that counts; yields where ours differs from what the package says."""
        for place, path in enumerate(self.original.steps[self.step.number]):
            shown = self.original.shown(path)
            for line, row in lines_of(path):
                if row is None:
                    continue
                mine = fields_of(row)
                name = str(mine.get("item_id"))
                if name in self.items and self.seen.counting.get(name, ())[:2] == (place, line):
                    yield from self._take(mine, self.items[name], shown, line)
        for bench in list(self.waiting):
            self._flush(bench)

    def _take(self, row: Mapping[str, Any], item: Item, shown: str, line: int) -> Iterator[Difference]:
        """Take one row."""
        head = {
            "item_id": item.item_id,
            "bench": item.bench,
            "step": self.step.number,
            "step_key": self.key,
            "item_digest": item.digest,
        }
        tail = {"imported_from": f"{shown}:{line}", "at": str(row.get("at") or now())[:40]}
        if is_error(row):
            kind, detail = str(row.get("error") or "unknown")[:40], str(row.get("detail") or "")[:500]
            self._write(item, head | {"status": "error", "error": kind, "detail": detail} | tail)
            return
        try:
            answer = answer_of(row, item, self.asked)
        except UnfitError as fault:
            self.result.left_out[str(fault)] += 1
            return
        made_by = {
            "status": "ok",
            "model": self.model.model,
            "revision": str(row.get("revision") or self.model.revision),
            "engine": {"name": IMPORTED, "version": "unknown", "dtype": "unknown", "device": "unknown"},
        }
        self._write(item, head | made_by | dict(answer.fields) | tail)
        yield from self._differences(answer, item, shown, line)

    def _differences(self, answer: Answer, item: Item, shown: str, line: int) -> Iterator[Difference]:
        """Yield where an answer's replay gives something else, and count it."""
        self.result.unjudged += answer.their_removed is None
        for what, theirs, ours in answer.differences():
            self.result.differences[what] += 1
            yield Difference(self.step.number, item.bench, item.item_id, what, theirs, ours, shown, line)

    def _write(self, item: Item, row: dict[str, Any]) -> None:
        """Write a row, with others, unless the study has one; an answer ends an error that it has."""
        if item.item_id in self.answered or (row["status"] != "ok" and item.item_id in self.failed):
            self.result.there += 1
            return
        if row["status"] == "ok":
            self.result.answers += 1
        else:
            self.result.errors += 1
        rows = self.waiting.setdefault(item.bench, [])
        rows.append(row)
        if len(rows) >= _BATCH:
            self._flush(item.bench)

    def _flush(self, bench: str) -> None:
        """Write a benchmark's rows."""
        self.study.append(self.step.number, bench, None, self.waiting.pop(bench))
