"""A spec as TOML: what is written is read back as it was, whatever the names and reasons hold."""

import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchcheck.pool.adding.spec_text import in_order, pool_entry, spec_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUE: st.SearchStrategy[Any] = st.one_of(TEXT, st.booleans(), st.integers(-5, 5), st.lists(TEXT, max_size=3))


@given(st.dictionaries(TEXT, VALUE, max_size=5), st.dictionaries(TEXT, VALUE, max_size=5), TEXT)
def test_what_is_written_is_read_back(inline: dict[str, Any], part: dict[str, Any], reason: str) -> None:
    table = {**inline, "mcq_where": part, "options": part}
    reasons = dict.fromkeys([*inline, *(f"options.{key}" for key in part), "mcq_where"], reason)
    assert tomllib.loads(spec_text(table, reasons, [f"head {reason}"])) == table


def test_comments_stand_behind_short_lines_and_above_long_ones() -> None:
    table = {"bench": "b", "question": "q", "options": {"kind": "list", "field": "o"}}
    text = spec_text(table, {"question": "why", "options.kind": "because " * 20}, ["A head."])
    assert text.splitlines()[:5] == ["# A head.", 'bench = "b"', 'question = "q"  # why', "", "[options]"]
    assert text.splitlines()[5].startswith("# because because")
    assert text.splitlines()[-2:] == ['kind = "list"', 'field = "o"']


def test_a_lone_surrogate_is_written_as_a_mark() -> None:
    assert tomllib.loads(spec_text({"question": "a\ud800b"}, {}, [])) == {"question": "a\ufffdb"}


def test_keys_come_in_the_order_of_the_page() -> None:
    assert list(in_order({"gold": {}, "zzz": 1, "bench": "b", "id": "i"})) == ["bench", "id", "gold", "zzz"]


def test_an_entry_names_spec_files_and_bench() -> None:
    entry = pool_entry("a b.toml", ["x.csv", 'y"z.csv'], "b")
    assert tomllib.loads(entry) == {"pool": [{"spec": "a b.toml", "files": ["x.csv", 'y"z.csv'], "bench": "b"}]}
    assert tomllib.loads(pool_entry("a.toml", [], "b")) == {"pool": [{"spec": "a.toml", "bench": "b"}]}
