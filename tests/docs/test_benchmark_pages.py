"""The pages that list benchmarks are the specs': docs/benchmarks.md, the licences in DATA.md."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from benchcheck.pool.catalogue import MARKS
from benchcheck.pool.specs import load_spec, spec_names

ROOT = Path(__file__).parents[2]
NAMES = [name for name in spec_names() if name != "generic"]


def script() -> ModuleType:
    """The script as a module: it is in no package."""
    place = importlib.util.spec_from_file_location("benchmark_pages", ROOT / "scripts" / "benchmark_pages.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["docs/benchmarks.md", "DATA.md"])
def test_a_page_is_as_the_script_would_write_it(page: str) -> None:
    is_so = (ROOT / page).read_text(encoding="utf-8") == script().pages()[ROOT / page]
    assert is_so, f"{page} is not what the specs say. Cure: python scripts/benchmark_pages.py"


def test_the_readme_counts_the_specs() -> None:
    levels = [load_spec(name).source.checked for name in NAMES]
    real, survey, fields = (levels.count(level) for level in MARKS)
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{len(NAMES)} forms of published video benchmarks ship a spec" in text
    assert f"checked: {real} on the published files" in text
    assert f"{survey} by another program" in text
    assert f"{fields} are written from field names" in text
    assert f"- {len(NAMES)} specs of published video benchmarks" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="the marks 0 times"):
        script()._with_table("no marks", [])


def test_every_spec_is_on_both_pages_with_its_terms() -> None:
    listed = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    manifest = (ROOT / "DATA.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in manifest.splitlines() if line.startswith("| `")]
    terms = {name: row[3:] for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert sorted(name for name in terms if name in NAMES) == sorted(NAMES)
    for name in NAMES:
        source = load_spec(name).source
        assert f"| `{name}` |" in listed
        assert terms[name] == [source.licence or "not checked", "yes" if source.redistributable else "no"]


def test_the_levels_are_explained() -> None:
    listed = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\S) \| ([\w ]+) \|", listed, re.MULTILINE) == [
        (mark, level) for level, mark in MARKS.items()
    ]


def test_enough_benchmarks_ship() -> None:
    assert len(NAMES) >= 150


@pytest.mark.parametrize("name", NAMES)
def test_notes_name_specs_that_ship(name: str) -> None:
    spec = load_spec(name)
    named = re.findall(r"[Ss]ame (?:questions|pairs) as (\w+)", spec.source.note)
    assert [other for other in named if other not in NAMES] == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_may_be_passed_on_without_known_terms(name: str) -> None:
    source = load_spec(name).source
    unknown = re.search(r"not checked|not verified|none stated|research only|NC", source.licence) or not source.licence
    assert not (source.redistributable and unknown), source.licence
