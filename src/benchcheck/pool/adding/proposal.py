"""Adding a benchmark of one's own: read a sample, guess a spec, try it, and write it whole or not at all."""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchcheck.config import BENCH_NAME, PoolSource, from_table, load, parse
from benchcheck.errors import BenchcheckError, ConfigError, InputError, SpecError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.pool.adding.guess import Guess, guess
from benchcheck.pool.adding.guess_names import Doubt, Sample
from benchcheck.pool.adding.lmms_spec import from_task_alone, note_task, of_task
from benchcheck.pool.adding.lmms_task import LmmsTask, load_task
from benchcheck.pool.adding.samples import found_layout, read_sample
from benchcheck.pool.adding.spec_text import in_order, pool_entry, spec_text
from benchcheck.pool.building.declared import bench_of
from benchcheck.pool.items import Item
from benchcheck.pool.reading.paths import find_files
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec
from benchcheck.pool.together import CheckedItem, checked_items
from benchcheck.screen.prompts import LETTERS
from benchcheck.study import CONFIG_NAME

__all__ = ["Asked", "Proposal", "add_to_study", "check_free", "propose", "with_entry", "write_spec"]

_PLAIN_NAMES = frozenset({
    *("test", "val", "valid", "validation", "train", "dev", "data", "qa", "questions", "annotations", "annotation"),
    *("items", "mc", "all", "main", "index", "test_qa", "val_qa", "qa_val", "qa_test", "mcq", "real_mc", "test_mc"),
})  # fmt: skip
"""Names of files that name no benchmark: the folder's name goes before them."""
_ENOUGH = 20
"""Items from which on a place that is always right says something: by chance of four options, 1 in 4^19."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a user gave: files, `--map`, a name, the header of a table without one."""

    files: tuple[str, ...]
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
        UsageError: a file that cannot be read, a table without a header, a `--map` that names no field, or no item
            that could be screened.
    """
    task, names = _task(asked.files)
    if task and not names:
        bench = _bench(asked, task.name)
        return _untried(Proposal(bench, (), from_task_alone(task, asked.given, bench)))
    files = tuple(path for name in names for path in find_files(Path(), [name]))
    layout, steps = found_layout(files[0], asked.header, asked.given)
    records, whole = read_sample(files, layout)
    sample = Sample([record.values for record in records])
    said = of_task(task, sample) if task else {}
    given = said | {key: value for key, value in asked.given.items() if key != "unnest"}
    bench = _bench(asked, (task.name if task else "") or _named_by(files))
    made = guess(sample, given, bench, steps)
    _complete(made, layout.reader, layout.header, files)
    if task:
        note_task(made, task)
        _task_said(made, set(said) - set(asked.given))
    found = Proposal(bench, files, made, len(records), whole)
    return found if made.doubts else _tried(found, records, "question" in given)


def _complete(made: Guess, reader: str, header: Sequence[str], files: Sequence[Path]) -> None:
    """Put in what the files say themselves."""
    if reader != "auto":
        whys = {"tsv": "tabs between the cells, whatever the name says", "jsonl_rows": "lines are lists"}
        made.put("reader", reader, whys[reader])
    if header:
        made.put("header", list(header), "the file has none; as you say")
    if len({path.name for path in files}) == len(files) > 1 and "category" not in made.table:
        made.put("category", "_file", "one file for each kind")


def _task_said(made: Guess, keys: set[str]) -> None:
    """A task's word is not the user's."""
    for key, reason in made.reasons.items():
        if key.partition(".")[0] in keys:
            made.reasons[key] = reason.replace("as you say", "as the task says")


def _untried(found: Proposal) -> Proposal:
    """A spec that no record was tried on."""
    if not found.doubts:
        found.spec = from_table(Spec, found.guess.table, "the guessed spec", SpecError)
        found.text = _text(found)
    return found


def _tried(found: Proposal, records: Sequence[Record], question_given: bool = False) -> Proposal:
    """Turn the sample into items with the guessed spec."""
    found.spec, items = _items(found.guess, records)
    split = sum("options_split" in checked.item.issues for checked in items)
    if split and "rejoin" not in found.guess.table["options"]:
        why = f"{split:,} of the sample have texts without a letter, split off at a line break: they go back"
        found.guess.put("options.rejoin", True, why)
        found.spec, items = _items(found.guess, records)
    found.mcq = sum(checked.item.format == "mcq" for checked in items)
    found.options.update(len(checked.item.options) for checked in items)
    for checked in items:
        found.issues.update(checked.item.issues)
        for issue in checked.issues:
            found.examples.setdefault(issue.code, f"{checked.record.place}: {issue.detail}")
    _judge(found, [checked.item for checked in items if checked.item.format == "mcq"], question_given)
    found.shown = _telling(items)
    found.text = _text(found)
    return found


def _judge(found: Proposal, items: Sequence[Item], question_given: bool) -> None:
    """Say what only the items show: a question that tells the answer, and a right option that is always in one place.

    The user's own word on the question is not doubted. Of real questions few do: 12 of NExT-QA's 8,564.
    """
    telling, places = found.issues["answer_in_question"], {item.gold for item in items}
    if not question_given and 2 * telling > len(items):
        why = f"it holds the words of the right option, and of no other, in {telling:,} of {len(items):,} items"
        found.guess.doubts.append(Doubt("question", why, ()))
    if len(places) == 1 and len(items) >= _ENOUGH and not found.guess.table["options"].get("shuffle"):
        letter = LETTERS[items[0].gold or 0]
        cure = "shuffle = true below [options] draws an order for each"
        found.guess.notes.append(f"{letter} is right in all {len(items):,} items. Cure: {cure}")


def _items(made: Guess, records: Sequence[Record]) -> tuple[Spec, list[CheckedItem]]:
    """The guessed spec, and the sample's items by it."""
    spec = from_table(Spec, made.table, "the guessed spec", SpecError)
    return spec, list(checked_items(spec, records))


def _telling(items: Sequence[CheckedItem]) -> tuple[CheckedItem, ...]:
    """The first item, one with an issue (a blocking one before others), and one with another number of options."""
    number = len(items[0].item.options)
    chosen = [
        0,
        *sorted(
            (place for place, checked in enumerate(items) if checked.item.issues),
            key=lambda place: (items[place].item.format == "mcq", place),
        )[:1],
        *[place for place, checked in enumerate(items) if len(checked.item.options) not in (number, 0)][:1],
        *range(min(3, len(items))),
    ]
    return tuple(items[place] for place in sorted(list(dict.fromkeys(chosen))[:3]))


def _text(found: Proposal) -> str:
    """The spec's file."""
    names = ", ".join(path.name for path in found.files[:3]) + ", …" * (len(found.files) > 3)
    share = f"all {found.records:,}" if found.whole else f"the first {found.records:,}"
    tried = f"Guessed from {share} records of {names} and tried on them." if found.files else "Not tried on any record."
    head = [
        f"How the annotation files of {found.bench} are read. {tried}",
        "Yours to edit: docs/pool.md has every key.",
    ]
    return spec_text(in_order(found.guess.table), found.guess.reasons, head)


def _bench(asked: Asked, name: str) -> str:
    """The benchmark's name: as given, else one made of another name."""
    if asked.bench:
        if BENCH_NAME.fullmatch(asked.bench) is None:
            raise UsageError(f"--bench {asked.bench}: not a name. Allowed: letters, digits, _ and -, 64 at most")
        return asked.bench
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:64] or "mybench"


def _named_by(files: Sequence[Path]) -> str:
    """What files are called: the one file, or their folder when there are several or the name says nothing."""
    source = files[0].absolute()
    stem = source.name.partition(".")[0]
    if len(files) > 1:
        return Path(os.path.commonpath([path.absolute().parent for path in files])).name
    return f"{source.parent.name}_{stem}" if stem.lower() in _PLAIN_NAMES else stem


def _task(files: Sequence[str]) -> tuple[LmmsTask | None, list[str]]:
    """The lmms-eval task among the files, and the data files."""
    tasks = [name for name in files if name.lower().endswith((".yaml", ".yml"))]
    if len(tasks) > 1:
        raise UsageError(f"{tasks[1]}: a second task file. Cure: add one task at a time")
    return (_read_task(Path(tasks[0])) if tasks else None), [name for name in files if name not in tasks]


def _read_task(path: Path) -> LmmsTask:
    """Read a task file with what it includes, which lies beside it."""
    return load_task(_read(path), str(path), lambda name: _read(path.parent / name))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as reason:
        what = reason.strerror if isinstance(reason, OSError) else "not UTF-8"
        raise InputError(f"{path}: not readable: {what}. Cure: check the path") from None


def write_spec(found: Proposal, path: Path, force: bool = False) -> None:
    """Write the spec; an existing file is never overwritten without `force`.

    Raises:
        UsageError: it is there already.
        StudyError: the disk is full or the folder is not writable.
    """
    check_free(path, force)
    with publish(path) as temporary:
        temporary.write_text(found.text, encoding="utf-8")


def check_free(path: Path, force: bool) -> None:
    """Refuse to write over a file.

    Raises:
        UsageError: it is there already.
    """
    if path.exists() and not force:
        raise UsageError(f"{path}: this file is there already. Cure: --spec another.toml, or --force to write over it")


def add_to_study(found: Proposal, study: Path, path: Path, force: bool = False) -> None:
    """Write the spec and add its entry to a study's config: both, or neither.

    Raises:
        ConfigError: the config is wrong, or has a benchmark of that name.
        UsageError: the spec's file is there already.
        StudyError: the disk is full or the folder is not writable.
    """
    text = with_entry(found, study, path)
    before = path.read_bytes() if path.exists() else None
    write_spec(found, path, force)
    try:
        with publish(study / CONFIG_NAME) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except StudyError:
        path.unlink() if before is None else path.write_bytes(before)
        raise


def with_entry(found: Proposal, study: Path, path: Path) -> str:
    """Return a study's config with the entry behind it; what was there stays as it is, comments and all.

    Raises:
        ConfigError: the config is wrong, or has a benchmark of that name, or lists its pool in another way.
    """
    config = study / CONFIG_NAME
    for source in load(config).pool:
        if _name_of(source, study) == found.bench:
            cure = "--bench another-name, or take that [[pool]] entry out"
            raise ConfigError(f"{config}: a benchmark is called {found.bench!r} already. Cure: {cure}")
    before = config.read_bytes().decode("utf-8-sig")
    entry = pool_entry(_from(study, path), [_from(study, file) for file in found.files], found.bench)
    text = before + "\n" * (not before.endswith("\n")) + entry
    try:
        parse(tomllib.loads(text), str(config))
    except ValueError as reason:
        cure = f"add it by hand: {', '.join(entry.split(chr(10))[2:-1])}"
        raise ConfigError(f"{config}: no entry can be added at its end ({reason}). Cure: {cure}") from None
    return text


def _name_of(source: PoolSource, study: Path) -> str:
    """An entry's benchmark; where its own spec is wrong, that is for `pool build` to say."""
    try:
        return bench_of(source, study)
    except BenchcheckError:
        return source.bench


def _from(study: Path, path: Path) -> str:
    """A path as the study's config names it: relative when below the study, else whole."""
    root, whole = study.resolve(), path.resolve()
    return str(whole.relative_to(root) if whole.is_relative_to(root) else whole)
