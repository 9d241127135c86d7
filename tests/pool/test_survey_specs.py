"""Every spec that ships, on a specimen of its files: the items, and that nothing in them tells the answer.

The specimens are in the modules `fixtures_*.py`; their form is in `fixtures.py`.
"""

import fnmatch
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Config, Model, Protocol
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.fields import named
from benchcheck.pool.items import Item
from benchcheck.pool.leaks import LEAKS
from benchcheck.pool.options import column_family
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec, load_spec, spec_names
from benchcheck.pool.together import items_of
from benchcheck.screen.answers import prompts_of
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.steps import LADDER

from .fixtures import Fixture, Want, all_fixtures, items_in, records_in, write

FIXTURES = all_fixtures()
NAMES = [name for name in spec_names() if name not in ("generic", "rextime_val")]
"""`generic` is no benchmark; what ReXTime's file becomes is a refusal (tests/pool/test_real_files.py)."""
CONFIG = Config(study_version=1, models={LADDER[step].role: Model(model="none") for step in Protocol().steps})
MARK = "xq{}leak"


def test_every_spec_has_a_specimen() -> None:
    assert sorted(set(NAMES) - set(FIXTURES)) == []
    assert sorted(set(FIXTURES) - set(NAMES)) == []


@pytest.fixture(params=[name for name in NAMES if name in FIXTURES])
def specimen(request: pytest.FixtureRequest) -> Fixture:
    return FIXTURES[request.param]


def test_the_items_are_those_that_the_records_mean(specimen: Fixture, tmp_path: Path) -> None:
    spec = load_spec(specimen.spec)
    items = items_in(spec, write(specimen, tmp_path))
    assert [seen(item, want, spec) for item, want in itertools.zip_longest(items, specimen.items)] == [
        wanted(want, spec) for want in specimen.items
    ]
    assert len({item.item_id for item in items}) == len(items)


def seen(item: Item | None, want: Want | None, spec: Spec) -> dict[str, Any]:
    """What is compared of an item. Its options, in file order where they were put in another."""
    if item is None:
        return {"item": "missing"}
    options = sorted(item.options) if spec.options.shuffle else list(item.options)
    codes = set(item.issues) - ({"shuffled_options"} if spec.options.shuffle else set())
    return {
        "question": item.question,
        "options": options,
        "gold": None if item.gold is None else item.options[item.gold],
        "video": item.video_key,
        "window": (item.start, item.end),
        "issues": sorted(codes),
    } | {name: getattr(item, name) for name in (want.more if want else {})}


def wanted(want: Want, spec: Spec) -> dict[str, Any]:
    """The same of what an item must be."""
    options = want.options.split(" | ") if want.options else []
    return {
        "question": want.question,
        "options": sorted(options) if spec.options.shuffle else options,
        "gold": want.gold,
        "video": want.video,
        "window": want.window,
        "issues": sorted(want.issues.split()),
        **want.more,
    }


def shown_texts(item: Item) -> Iterator[str]:
    """Everything that a model reads of an item: its texts, and the prompts of all six steps."""
    yield item.question
    yield from item.options
    if item.askable:
        for step in LADDER.values():
            frames = ("f.jpg",) * 32 if step.sight.needs_frames else ()
            yield from (prompt.text for prompt in prompts_of(item, step, CONFIG, frames))


def expressions(spec: Spec) -> tuple[set[str], set[str]]:
    """Fields that may be shown; and those that decide which records are asked at all, and are left as they are."""
    options = spec.options
    shown = (spec.question, spec.question_fill, options.field, *options.fields, options.gold_field, *options.others)
    joined = (spec.join.on, spec.join.key) if spec.join else ()
    kept = (*spec.where, *spec.mcq_where, *joined)
    return {name for part in shown for name in named(part)}, {name for part in kept for name in named(part)}


class Marker:
    """Replaces values by marks that are found again wherever they come out."""

    def __init__(self, keep: set[str]) -> None:
        """Keep the values at and below these paths; a `*` in a path is any name."""
        self.keep = keep
        self.count = itertools.count()

    def marked(self, value: Any, path: str = "") -> Any:
        """The value with every leaf replaced, those at and below the kept paths aside."""
        if any(fnmatch.fnmatchcase(path, pattern) for name in self.keep for pattern in (name, f"{name}.*")):
            return value
        if isinstance(value, dict):
            return {key: self.marked(part, f"{path}.{key}" if path else key) for key, part in value.items()}
        if isinstance(value, list):
            return [self.marked(part, f"{path}.{place}") for place, part in enumerate(value)]
        return MARK.format(next(self.count))


def with_leaks(values: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """A record that has every field which the spec, or the package, says gives the answer away."""
    found = dict(values)
    for name in (*sorted(LEAKS), *spec.leaks):
        head, _, rest = name.partition(".")
        if rest and isinstance(found.get(head), dict):
            found[head] = {rest: "the answer", **found[head]}
        else:
            found.setdefault(name, "the answer")
    return found


@pytest.mark.parametrize("gold_too", [False, True], ids=["all_but_the_gold", "the_gold_too"])
def test_nothing_but_question_and_options_is_shown(specimen: Fixture, tmp_path: Path, gold_too: bool) -> None:
    spec = load_spec(specimen.spec)
    shown, kept = expressions(spec)
    gold = set(named(spec.gold.field)) if spec.gold.field else set()
    member = {f"{spec.options.field}.{place}.{spec.options.member}" for place in (*range(30), *LETTERS)}
    keep = (shown - {spec.options.field} | member if spec.options.member else shown) | kept
    records = list(records_in(spec, write(specimen, tmp_path)))
    if spec.options.kind == "auto":
        keep |= {name for record in records for name in column_family(record.values)}
    leaks = {name.lower() for name in (*LEAKS, *spec.leaks)}
    keep = {name for name in keep if not leaks & {name.lower(), *name.lower().split(".")}}
    marker = Marker(keep | (set() if gold_too else gold))
    records = [
        Record(marker.marked(with_leaks(record.values, spec)) | joined(record), record.file, record.place, record.row)
        for record in records
    ]
    items = list(items_of(spec, records))
    assert len(items) == len(specimen.items)
    assert [text for item in items for text in shown_texts(item) if "leak" in text] == []
    if not gold_too:
        assert sum(map(len, (item.options for item in items))) == sum(
            len(want.options.split(" | ")) for want in specimen.items if want.options
        )


def joined(record: Record) -> dict[str, Any]:
    """Whether the second file had a row stays as it is."""
    return {name: record.values[name] for name in ("_joined",) if name in record.values}


def test_a_specimen_can_be_built_as_a_study(tmp_path: Path, make_study: Any) -> None:
    """Reading here is what the build does: one benchmark of each reader goes through it."""
    from benchcheck.config import PoolSource

    names = [name for name in ("mvbench", "how2qa_val", "hlv1k_mc", "videomme", "vcr_bench") if name in FIXTURES]
    sources = []
    for name in names:
        files = write(FIXTURES[name], tmp_path / name)
        sources.append(PoolSource(spec=name, files=tuple(map(str, files)), accept_drift=True))
    summary = build_pool(make_study(*sources))
    assert summary.rows == sum(len(FIXTURES[name].items) for name in names) > 0
