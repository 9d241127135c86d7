"""The table of specs in terminals of all widths, and one spec in full."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from benchcheck.cli import specs_table as shown
from benchcheck.cli.specs_table import spec_shown, specs_shown, specs_table
from benchcheck.pool.specs import load_spec, spec_names

SHIPPED = [load_spec(name) for name in spec_names() if name != "generic"]


def drawn(what: Table | str, width: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, color_system=None).print(what, markup=not isinstance(what, str))
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 109, 110, 160, 240])
def test_every_spec_has_one_line_that_fits(width: int) -> None:
    lines = drawn(specs_table(SHIPPED, width), width)
    assert len(lines) == len(SHIPPED) + 1
    assert [line.split()[0] for line in lines[1:]] == [spec.bench for spec in SHIPPED]
    assert ("benchmark" in lines[0]) is (width >= 110)


def test_what_is_cut_at_80_columns_is_whole_where_there_is_no_terminal() -> None:
    longest = max(SHIPPED, key=lambda spec: len(spec.source.licence))
    cut = next(line for line in drawn(specs_table(SHIPPED, 80), 80) if line.startswith(f"{longest.bench} "))
    assert cut.rstrip().endswith("…")
    whole = "\n".join(drawn(specs_table(SHIPPED, 0), 1000))
    assert "…" not in whole
    assert longest.source.licence in whole
    assert longest.title in whole


def test_a_terminal_too_narrow_still_names_them() -> None:
    assert drawn(specs_table(SHIPPED[:3], 30), 200)[1].startswith(SHIPPED[0].bench)


def test_the_marks_are_explained_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "terminal_width", lambda: 80)
    table, *lines = specs_shown(SHIPPED)
    assert len(drawn(table, 80)[0]) <= 80
    text = "\n".join(str(line) for line in lines)
    for level in ("● real files (", "◐ survey (", "○ fields only ("):
        assert level in text
    assert "benchcheck benchmarks NAME" in text


def test_one_spec_in_full_wraps_within_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "terminal_width", lambda: 80)
    lines = [line for part in spec_shown(load_spec("egoschema_full")) for line in drawn(part, 80)]
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith(" " * 11) for line in lines) >= 4


def test_one_spec_in_full() -> None:
    text = "\n".join(line for part in spec_shown(load_spec("egoschema_full")) for line in drawn(part, 1000))
    for words in (
        "egoschema_full: EgoSchema", "subset_answers.json, joined on q_uid", "5,031 items", "○ fields only: written",
        "may not be passed on, as far as is known", 'spec = "egoschema_full"', "[[pool]]", "cite",
    ):  # fmt: skip
        assert words in text
    other = "\n".join(line for part in spec_shown(load_spec("nextqa_val")) for line in drawn(part, 1000))
    assert "4,996 items, 4,996 of them multiple-choice" in other
    assert "MIT; may be passed on" in other
    both = "\n".join(line for part in spec_shown(load_spec("videomme_v2")) for line in drawn(part, 1000))
    assert both.count("passed on") == 1


def test_the_spec_of_ones_own_file_says_nothing_of_terms() -> None:
    text = "\n".join(line for part in spec_shown(load_spec("generic")) for line in drawn(part, 1000))
    assert "licence" not in text
    assert "checked" not in text
    assert 'files = ["annotations/items.jsonl"]' in text
