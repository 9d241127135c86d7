"""The documentation stays true: commands and Python run, links lead somewhere, tables are the code's."""

import dataclasses
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from benchcheck.cli import app
from benchcheck.config import Frames, PoolSource, Protocol, Videos
from benchcheck.pool.specs import spec_names
from benchcheck.screen.readings import PERMANENT_FAILURES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("make ", "git clone", "cd ", "pip install", "python3 -m venv", ". ")
"""Lines of an `sh` block that install or clone: `.ci/run` does the same on a fresh clone."""


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> list[str]:
    lines = [line for body in blocks(page, "sh") for line in re.sub(r"\\\n\s*", "", body).splitlines()]
    return [line for line in lines if line.strip() and not line.startswith(("#", *ELSEWHERE))]


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "HF_HUB_OFFLINE": "1"}


RUNNABLE = [page for page in PAGES if commands(page)]


@pytest.mark.model
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


@pytest.mark.model
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_of_a_page_runs_as_written(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_there_are_commands_and_python_to_run() -> None:
    assert {"README.md", "screen.md"} <= {page.name for page in RUNNABLE}
    assert blocks(ROOT / "docs" / "python.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: the page's headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_into_a_page_names_a_heading(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", text):
        assert anchor in anchors(page.parent / target if target else page), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in ROOT.glob("docs/*.md") if f"(docs/{page.name})" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for name in re.findall(r"`((?:docs|bench|tests|scripts|training|src)/[\w./-]+\.(?:md|py|toml))`", text):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def leaves(group: object, head: str = "") -> list[str]:
    found = []
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        found += leaves(command, f"{head}{name} ") if hasattr(command, "commands") else [f"{head}{name}"]
    return found


def test_every_command_is_in_the_documentation() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = leaves(typer.main.get_command(app))
    assert len(names) >= 12
    for name in names:
        assert f"benchcheck {name}" in text or f"`{name}`" in text, f"{name} is in no page"


def test_every_setting_is_in_the_starter_file() -> None:
    starter = (ROOT / "src" / "benchcheck" / "starter.toml").read_text(encoding="utf-8")
    for section in (Protocol, Frames, Videos):
        for field in dataclasses.fields(section):
            assert f"\n{field.name} =" in starter


def test_every_permanent_error_kind_is_explained() -> None:
    page = (ROOT / "docs" / "screen.md").read_text(encoding="utf-8")
    for kind in PERMANENT_FAILURES:
        assert f"| `{kind}` |" in page


TOML = [(page, body) for page in PAGES for body in blocks(page, "toml")]


@pytest.mark.parametrize(("page", "body"), TOML, ids=[f"{page.name}-{n}" for n, (page, _) in enumerate(TOML)])
def test_toml_of_a_page_is_toml_and_names_specs_that_ship(page: Path, body: str) -> None:
    table = tomllib.loads(body)
    for entry in table.get("pool", []):
        assert set(entry) <= {field.name for field in dataclasses.fields(PoolSource)}, page.name
        assert entry["spec"] in spec_names() or entry["spec"].endswith(".toml"), page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_left_to_be_filled_in(page: Path) -> None:
    for line in page.read_text(encoding="utf-8").splitlines():
        assert not re.fullmatch(r"[A-Z]{4,}", line.strip()), f"{page.name}: {line}"
