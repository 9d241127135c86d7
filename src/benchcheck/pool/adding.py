"""Adding a benchmark of one's own: read a sample, guess a spec, try it, and write it whole or not at all."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchcheck.config import BENCH_NAME, from_table, load, parse
from benchcheck.errors import BenchcheckError, ConfigError, InputError, SpecError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pool.guess import Guess, guess
from benchcheck.pool.guess_names import Doubt, Found, Sample
from benchcheck.pool.guess_nesting import header_doubt, steps_to_records
from benchcheck.pool.lmms_task import LmmsTask, load_task
from benchcheck.pool.mapping import CheckedItem, checked_items
from benchcheck.pool.nesting import root_records
from benchcheck.pool.readers import Layout, Record, find_files, read_records
from benchcheck.pool.spec_text import pool_entry, spec_text
from benchcheck.pool.specs import Spec

__all__ = ["SAMPLE", "Asked", "Proposal", "add_to_study", "propose", "write_spec"]

SAMPLE = 1_000
"""Records that a guess is tried on."""
MAX_WHOLE = 64 << 20
"""Bytes of a JSON document that is looked at whole, to see how it is nested."""
_HEAD = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a user gave."""

    files: tuple[Path, ...]
    given: Mapping[str, str] = field(default_factory=dict)
    bench: str = ""
    header: tuple[str, ...] = ()


@dataclass(slots=True)
class Proposal:
    """A guessed spec, and what came out when it was tried on the sample."""

    bench: str
    files: tuple[Path, ...]
    guess: Guess
    records: int = 0
    whole: bool = False
    """Whether the sample is all there is."""
    spec: Spec | None = None
    """None while something is open."""
    mcq: int = 0
    options: Counter[int] = field(default_factory=Counter)
    issues: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    """Per code the first case: place and value."""
    shown: tuple[CheckedItem, ...] = ()
    """Three items that say most: the first, one with an issue, one with another number of options."""
    text: str = ""
    """The spec as TOML, comments and all."""

    @property
    def doubts(self) -> list[Doubt]:
        """What has to be answered before the spec can be written."""
        return self.guess.doubts


def propose(asked: Asked) -> Proposal:
    """Read a sample of the files, guess a spec and try it; nothing is written.

    Raises:
        UsageError: a file that cannot be read, a table without a header, a `--map` that names no field.
    """
    task, names = _task(asked.files)
    if not names:
        return _from_task_alone(asked, _needed_task(task))
    files = tuple(path for name in names for path in find_files(Path(), [str(name)]))
    layout, steps = _layout(files[0], asked)
    records, whole = _sample(files, layout)
    sample = Sample([record.values for record in records])
    given = {key: value for key, value in asked.given.items() if key != "unnest"}
    given = _of_task(task, sample) | given if task else given
    made = guess(sample, given, _bench(asked, files), steps)
    for key, value in (("reader", layout.reader), ("header", list(layout.header))):
        if value not in ("auto", []):
            made.put(key, value, "tabs between the cells, whatever the name says" if key == "reader" else "as you say")
    if len(files) > 1 and "category" not in made.table:
        made.put("category", "_file", "one file for each kind")
    if task:
        _note_task(made, task)
    found = Proposal(_bench(asked, files), files, made, len(records), whole)
    return found if made.doubts else _tried(found, records)


def _needed_task(task: LmmsTask | None) -> LmmsTask:
    if task is None:
        raise UsageError("no file given. Cure: benchcheck pool add FILE")
    return task


def _tried(found: Proposal, records: Sequence[Record]) -> Proposal:
    """Turn the sample into items with the guessed spec."""
    found.spec = from_table(Spec, found.guess.table, "the guessed spec", SpecError)
    items = list(checked_items(found.spec, records))
    found.mcq = sum(checked.item.format == "mcq" for checked in items)
    found.options.update(len(checked.item.options) for checked in items)
    for checked in items:
        found.issues.update(checked.item.issues)
        for issue in checked.issues:
            found.examples.setdefault(issue.code, f"{checked.record.place}: {issue.detail}")
    found.shown = _telling(items)
    found.text = _text(found)
    return found


def _telling(items: Sequence[CheckedItem]) -> tuple[CheckedItem, ...]:
    """The first item, the first with an issue, and one with another number of options; filled up from the front."""
    chosen = dict.fromkeys([0])
    number = len(items[0].item.options)
    tests = [lambda item: bool(item.issues), lambda item: len(item.options) not in (number, 0)]
    for test in tests:
        place = next((n for n, checked in enumerate(items) if n not in chosen and test(checked.item)), None)
        chosen |= {} if place is None else {place: None}
    chosen |= dict.fromkeys(range(min(3, len(items))))
    return tuple(items[place] for place in sorted(list(chosen)[:3]))


def _text(found: Proposal) -> str:
    """The spec's file."""
    names = ", ".join(path.name for path in found.files[:3]) + ", …" * (len(found.files) > 3)
    share = f"all {found.records:,}" if found.whole else f"the first {found.records:,}"
    tried = f" Guessed from {share} records of {names} and tried on them." if found.files else ""
    head = [f"{found.bench}: how its annotation files are read.{tried} Yours to edit: docs/pool.md explains every key."]
    return spec_text(found.guess.table, found.guess.reasons, head)


def _bench(asked: Asked, files: Sequence[Path]) -> str:
    """The benchmark's name: as given, else from the file, or from the folder when there are several."""
    if asked.bench:
        if BENCH_NAME.fullmatch(asked.bench) is None:
            raise UsageError(f"--bench {asked.bench}: not a name. Allowed: letters, digits, _ and -, 64 at most")
        return asked.bench
    source = files[0].absolute()
    name = source.stem if len(files) == 1 else source.parent.name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name.partition(".")[0]).strip("_-")[:64] or "mybench"


def _layout(path: Path, asked: Asked) -> tuple[Layout, tuple[Found, ...]]:
    """How the first file is laid out: its reader, its header, and the steps to its records."""
    reader = "auto"
    if path.suffix.lower() in (".csv", ".tsv") and path.is_file():
        reader = _check_table(path, asked.header)
    if "unnest" in asked.given:
        steps = tuple(Found(step.strip(), "as you say") for step in asked.given["unnest"].split(",") if step.strip())
    else:
        steps = _nesting(path, Layout(reader, asked.header))
    return Layout(reader, asked.header, tuple(step.value for step in steps)), steps


def _check_table(path: Path, header: Sequence[str]) -> str:
    """Say which reader fits a table, and refuse one whose first row looks like data."""
    try:
        with path.open("rb") as file:
            text = file.read(_HEAD).decode("utf-8-sig", "replace")
    except OSError as reason:
        raise InputError(f"{path}: not readable: {reason.strerror}. Cure: check the path") from None
    first = text.partition("\n")[0]
    tabs = path.suffix.lower() == ".tsv" or ("\t" in first and "," not in first)
    rows = list(islice(filter(None, _rows(text, "\t" if tabs else ",")), 2))
    proposed = header_doubt(rows[0], rows[1] if len(rows) > 1 else []) if rows and not header else ""
    if proposed:
        raise InputError(
            f"{path}: its first row looks like data, not like a header: {', '.join(rows[0])[:120]}. "
            f"Cure: name its {len(rows[0])} columns, such as --header {proposed}"
        )
    return "tsv" if tabs and path.suffix.lower() != ".tsv" else "auto"


def _rows(text: str, mark: str) -> Iterator[list[str]]:
    """Rows of the head of a table; what is wrong with it, its reader will say."""
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    except csv.Error:
        return


def _nesting(path: Path, layout: Layout) -> tuple[Found, ...]:
    """The steps to the records of a file."""
    if path.suffix.lower() == ".json" and path.is_file() and path.stat().st_size <= MAX_WHOLE:
        try:
            document = json.loads(path.read_bytes().decode("utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            document = None  # JSON lines, or damaged: the reader tells
        if isinstance(document, list | dict):
            return _of_document(path, document)
    return steps_to_records([record.values for record in islice(read_records(path, layout), 200)], lines=True)


def _of_document(path: Path, document: Any) -> tuple[Found, ...]:
    """The steps into a document; one without any question is refused with what it is."""
    steps = steps_to_records(document)
    if not steps:
        try:
            root_records(document)
        except ValueError as reason:
            cure = "Cure: --map unnest=get:KEY or another step (docs/pool.md), or give the file with the questions"
            raise InputError(f"{path}: no records with questions: {reason}. {cure}") from None
    return steps


def _sample(files: Sequence[Path], layout: Layout) -> tuple[list[Record], bool]:
    """The first records, of every file the same number; and whether these are all."""
    found, whole = list[Record](), True
    for number, path in enumerate(files):
        wanted = max(1, (SAMPLE - len(found)) // (len(files) - number))
        part = list(islice(read_records(path, layout), wanted + 1))
        whole &= len(part) <= wanted
        found += part[:wanted]
    return found, whole


def _task(files: Sequence[Path]) -> tuple[LmmsTask | None, list[Path]]:
    """The lmms-eval task among the files, and the data files."""
    tasks = [path for path in files if path.suffix.lower() in (".yaml", ".yml")]
    if len(tasks) > 1:
        raise UsageError(f"{tasks[1]}: a second task file. Cure: one at a time")
    data = [path for path in files if path not in tasks]
    return (_read_task(tasks[0]) if tasks else None), data


def _read_task(path: Path) -> LmmsTask:
    """Read a task file with what it includes, which lies beside it."""

    def read(name: str) -> str:
        return _text_of(path.parent / name)

    return load_task(_text_of(path), str(path), read)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        what = reason.strerror if isinstance(reason, OSError) else "not UTF-8"
        raise InputError(f"{path}: not readable: {what}. Cure: check the path") from None


def _of_task(task: LmmsTask, sample: Sample) -> dict[str, str]:
    """What a task gives away, where the data have it; the gold and the question by their fields, as lmms-eval does."""
    found = {}
    for key, value in task.mapping.items():
        if value.startswith("const:") or all(sample.has(name) for name in value.split(",")):
            found[key] = value
        else:
            task.functions[f"{key} ({value!r})"] = "a field that these data do not have"
    return found


def _note_task(made: Guess, task: LmmsTask) -> None:
    """Say what the task decides by code, and where its data lie."""
    made.notes += task.notes
    if task.hub:
        made.put("source.hub", task.hub, "dataset_path of the task")
        made.put("source.files", list(task.files), "as datasets lays them out; check it on the hub")


def _from_task_alone(asked: Asked, task: LmmsTask) -> Proposal:
    """A spec from a task file without data: only what it gives away or the user says; the rest is open."""
    mapping = {**task.mapping, **asked.given}
    made = Guess()
    bench = asked.bench or re.sub(r"[^A-Za-z0-9_-]+", "_", task.name).strip("_-") or "mybench"
    made.put("bench", _bench(Asked(files=asked.files, bench=bench[:64]), asked.files))
    for key in ("question", "options", "gold"):
        if key not in mapping:
            decided = next((name for name in task.functions if name in _DECIDES[key]), "the task")
            why = f"{decided} is decided by {task.functions.get(decided, 'nothing that it says')}, which is never run"
            made.doubts.append(Doubt(key, f"{why}. Give a data file beside the task, and it is guessed from that", ()))
        else:
            _put_untried(made, key, mapping[key], "as you say" if key in asked.given else "as the task says")
    for key in ("category", "id", "duration", "subtitles", "group"):
        if key in asked.given:
            made.put(key, asked.given[key], "as you say")
    made.put("video.member", mapping.get("video", "video?"), "" if "video" in mapping else "not tried: check its name")
    _note_task(made, task)
    found = Proposal(made.table["bench"], (), made)
    if not made.doubts:
        found.spec = from_table(Spec, made.table, "the guessed spec", SpecError)
        found.text = _text(found)
    return found


_DECIDES = {"question": ("doc_to_text",), "options": ("doc_to_choice", "doc_to_text"), "gold": ("doc_to_target",)}


def _put_untried(made: Guess, key: str, value: str, reason: str) -> None:
    """Put a mapping in that no record was tried on: options and gold are read as what they turn out to be."""
    if key == "question":
        made.put("question", value, reason)
    elif key == "gold":
        head, _, kind = value.rpartition(":")
        plain_kind = kind.rstrip("01")
        made.put("gold.kind", plain_kind if head else "auto", reason)
        made.put("gold.field", head or value)
        if kind == "index1":
            made.put("gold.base", 1)
    elif value.startswith("const:"):
        made.put("options.kind", "const", reason)
        made.put("options.values", value.removeprefix("const:").split(","))
    elif "," in value:
        made.put("options.kind", "columns", reason)
        made.put("options.fields", value.split(","))
    else:
        made.put("options.kind", "auto", reason)
        made.put("options.field", value)


def write_spec(found: Proposal, path: Path, force: bool) -> None:
    """Write the spec; an existing file is never overwritten without `force`.

    Raises:
        UsageError: it is there already.
        StudyError: the disk is full or the folder is not writable.
    """
    if path.exists() and not force:
        raise UsageError(f"{path}: this file is there already. Cure: --spec another.toml, or --force to write over it")
    with publish(path) as temporary:
        temporary.write_text(found.text, encoding="utf-8")


def add_to_study(found: Proposal, study: Path, path: Path, force: bool) -> None:
    """Write the spec and add its entry to a study's config: both, or neither.

    Raises:
        ConfigError: the config is wrong, or has a benchmark of that name.
        UsageError: the spec's file is there already.
        StudyError: the disk is full or the folder is not writable.
    """
    config = study / "benchcheck.toml"
    text = _with_entry(config, found, study, path)
    before = path.read_bytes() if path.exists() else None
    write_spec(found, path, force)
    try:
        with publish(config) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except StudyError:
        path.unlink() if before is None else path.write_bytes(before)
        raise


def check_name(found: Proposal, study: Path) -> None:
    """Refuse a name that a study's config has already."""
    from benchcheck.pool.declared import bench_of

    for source in load(study / "benchcheck.toml").pool:
        try:
            name = bench_of(source, study)
        except BenchcheckError:
            name = source.bench  # its own spec is wrong: that is for `pool build` to say
        if name == found.bench:
            cure = "--bench another-name, or take that [[pool]] entry out"
            raise ConfigError(f"{study}/benchcheck.toml: a benchmark is called {name!r} already. Cure: {cure}")


def _with_entry(config: Path, found: Proposal, study: Path, path: Path) -> str:
    """The config's text with the entry behind it; what was there stays as it is, comments and all."""
    check_name(found, study)
    before = config.read_bytes().decode("utf-8-sig")
    entry = pool_entry(_from(study, path), [_from(study, file) for file in found.files], found.bench)
    text = before + ("" if before.endswith("\n") else "\n") + entry
    import tomllib

    try:
        parse(tomllib.loads(text), str(config))
    except ValueError as reason:
        cure = f"add this by hand: {' '.join(entry.split())}"
        raise ConfigError(f"{config}: an entry cannot be added at its end ({reason}). Cure: {cure}") from None
    return text


def _from(study: Path, path: Path) -> str:
    """A path as the study's config names it: relative when below it, else whole."""
    root, whole = study.resolve(), path.resolve()
    return str(whole.relative_to(root)) if whole.is_relative_to(root) else str(whole)
