"""`benchcheck pool build` as typed: its flags, exit codes, and the line that says how far it is."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchcheck.cli import pools
from benchcheck.study import Study
from studies import Run

SPEC = """\
bench = "mine"
id = "id"
question = "question"
[options]
kind = "list"
field = "options"
[gold]
kind = "index"
field = "answer"
[video]
member = "video"
[expect]
items = 5
[source]
repository = "https://example.org/r"
commit = "0123abcd"
"""


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """A study whose one benchmark has three items where its spec expects five."""
    rows = [
        {"id": str(n), "question": f"What is it, {n}?", "options": ["a cup", "a hat"], "answer": 0, "video": "v"}
        for n in range(3)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "mine.toml").write_text(SPEC, encoding="utf-8")
    made = tmp_path / "study"
    assert run("init", made, "--file", tmp_path / "items.jsonl", "--spec", tmp_path / "mine.toml")[0] == 0
    return made


def test_drift_ends_the_build_and_can_be_accepted(run: Run, folder: Path) -> None:
    code, out, err = run("pool", "build", folder)
    assert (code, out) == (2, "")
    assert err.startswith("benchcheck: mine: 3 items where 5 were expected: another version of the file")
    assert "(the spec is for https://example.org/r at 0123abcd)" in err
    assert "Cure: get those files, or accept these with `benchcheck pool build --accept-drift`" in err
    assert err.count("\n") == 1
    assert not (folder / "results" / "pool_items_base.parquet").exists()
    code, out, err = run("pool", "build", folder, "--accept-drift", "--workers", 2)
    assert (code, out.splitlines()[-1]) == (0, "3 items, 3 of them multiple-choice")
    assert "warning: mine: 3 items where 5 were expected" in err


def test_drift_can_be_accepted_in_the_config(run: Run, folder: Path) -> None:
    path = folder / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8") + "accept_drift = true\n", encoding="utf-8")
    assert run("pool", "build", folder)[0] == 0


def test_a_number_of_workers_that_cannot_be_is_refused(run: Run, folder: Path) -> None:
    assert run("pool", "build", folder, "--workers", "-1")[0] == 2


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_build_says_on_a_terminal_how_far_it_is(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    shown: list[str] = []
    monkeypatch.setattr(Console, "is_terminal", property(lambda _: terminal))
    monkeypatch.setattr("rich.status.Status.start", lambda _: shown.append("start"))
    monkeypatch.setattr("rich.status.Status.stop", lambda _: shown.append("stop"))
    monkeypatch.setattr("rich.status.Status.update", lambda _, text: shown.append(text))
    with pools.how_far() as progress:
        progress("a[b]", 10_000)
        progress("a[b]", 2_345)
    assert shown == (["start", "a\\[b]: 12,345 items of the pool", "stop"] if terminal else ["stop"])


def test_a_study_of_a_hub_dataset_needs_no_file(run: Run, tmp_path: Path) -> None:
    text = SPEC.replace("[source]", '[source]\nhub = "owner/name"\nfiles = ["items.jsonl"]')
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert run("init", tmp_path / "study", "--spec", tmp_path / "mine.toml")[0] == 0
    (source,) = Study.open(tmp_path / "study").config.pool
    assert (source.spec, source.files) == (str(tmp_path / "mine.toml"), ())
    (tmp_path / "mine.toml").write_text(SPEC, encoding="utf-8")
    code, _, err = run("init", tmp_path / "other", "--spec", tmp_path / "mine.toml")
    assert (code, "Cure: name it with --file" in err) == (2, True)
