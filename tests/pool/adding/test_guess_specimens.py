"""Guesses on the specimens of all specs that ship: the golds of the spec, or a question, and never another gold."""

from collections import Counter
from pathlib import Path

import pytest

from benchcheck.errors import UsageError
from benchcheck.pool.adding.proposal import Asked, propose
from benchcheck.pool.items import Item
from benchcheck.pool.specs import load_spec
from pool.fixtures import all_fixtures, items_in, write

FIXTURES = all_fixtures()


def right(item: Item) -> str | None:
    return None if item.gold is None else item.options[item.gold]


def outcome(name: str, folder: Path) -> str:
    fixture = FIXTURES[name]
    files = write(fixture, folder)
    try:
        found = propose(Asked(files=tuple(map(str, files)), header=load_spec(name).header))
    except UsageError:
        return "refused"
    if found.spec is None:
        assert all(doubt.why for doubt in found.doubts)
        return "asked"
    guessed = items_in(found.spec, files)
    if len(guessed) != len(fixture.items):
        return "another set"  # the spec leaves records of another split out
    for item, want in zip(guessed, fixture.items, strict=True):
        if want.gold is not None and right(item) is not None:
            # VNBench's file holds whole prompts, whose ending stays on the last option.
            assert (right(item) or "").startswith(want.gold), item
    return "same"


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_no_specimen_gets_another_gold(name: str, tmp_path: Path) -> None:
    outcome(name, tmp_path)


def test_most_specimens_are_read_without_a_question(tmp_path: Path) -> None:
    """Two records with a trap in one of them are often too few to be sure; 106 of 155 were read unasked."""
    seen = Counter(outcome(name, tmp_path / name) for name in FIXTURES)
    assert seen["same"] >= 0.6 * sum(seen.values()), seen
