"""The page on adding a benchmark: what it prints is what is printed, and its table is the code's."""

import re
from pathlib import Path

import pytest

from benchcheck.pool.adding.guess import KEYS
from studies import Run

PAGE = Path(__file__).parents[2] / "docs" / "add-your-benchmark.md"


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1)


def test_what_the_page_shows_is_what_is_printed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = re.findall(r"^  '(.*)'", block("sh"), re.MULTILINE)
    (tmp_path / "clips.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    code, out, _ = run("pool", "add", "clips.csv")
    assert code == 0
    assert [line.rstrip() for line in out.splitlines()] == block("text").splitlines()


def test_every_key_of_map_is_on_the_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == KEYS
