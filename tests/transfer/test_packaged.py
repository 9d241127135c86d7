"""What a package says to those who unpack it."""

import shlex
import tomllib
from typing import Any

import pytest

from benchcheck.config import Config, parse
from benchcheck.transfer.packaged import config_text, launcher_text, readme_text, steps_of

FACTS: dict[str, Any] = {
    "study": "mine",
    "made_at": "2026-01-01T00:00:00+00:00",
    "benchcheck": {"version": "1.2.3", "commit": "", "source_sha256": "0"},
    "steps": [1],
    "pool": {"sha256": "0", "items": 1200, "benchmarks": {"a": {"items": 1200, "mcq": 1100}}},
    "answers": {"1": 0, "2": 5},
    "frames": None,
    "model_folders": [],
}


def config(model: str = "Org/Large", **protocol: Any) -> Config:
    models = {"8b": {"model": model, "revision": "c" * 40}, "2b": {"model": model}}
    return parse({"study_version": 1, "models": models, "protocol": protocol}, "test")


@pytest.mark.parametrize(
    ("commit", "model", "install", "more"),
    [
        ("", "Org/Large", "benchcheck[vllm]==1.2.3", "Other extras are"),
        ("a" * 40, "embedded:large", f"git+https://github.com/benchcheck/benchcheck@{'a' * 40}'", "## Run"),
        ("a" * 40 + "+", "scripted", f"benchcheck@{'a' * 40}'", "had changes that no commit has"),
    ],
)
def test_the_version_that_made_it_is_installed(commit: str, model: str, install: str, more: str) -> None:
    code = FACTS["benchcheck"] | {"commit": commit}
    text = readme_text(FACTS | {"benchcheck": code}, config(model))
    assert install in text
    assert more in text
    (command,) = [line for line in text.splitlines() if line.startswith("pip install")]
    assert len(shlex.split(command)) == 3


def test_frames_have_a_section_where_a_step_shows_some() -> None:
    text = readme_text(FACTS, config())
    assert "## Frames" not in text
    assert "1,200 items (a 1,200), 1,100 of them multiple-choice. Rows that are there already: step 2: 5." in text
    text = readme_text(FACTS | {"steps": [1, 3]}, config())
    assert "They are not in this package" in text
    text = readme_text(FACTS | {"steps": [3], "frames": {"shards": 1}}, config())
    assert "benchcheck frames unpack . --from frames/shards" in text
    assert "They are not in this package" not in text
    assert "| 3 | v32_2b | `Org/Large` |\n\nAll" in text
    assert "`Org/Large` at `cccc" in readme_text(FACTS, config())


def test_steps_before_the_chosen_ones_stay_in_a_cascade() -> None:
    assert steps_of(config(), [4]) == [1, 2, 3, 4]
    assert steps_of(config(steps=[1, 4, 6]), [4]) == [1, 4]
    assert steps_of(config(cascade=False), [2, 4]) == [2, 4]


def test_a_config_without_a_table_gets_its_steps() -> None:
    text = config_text({"study_version": 1, "models": {"8b": {"model": "m"}}, "engine": {}, "extra": []}, [1], [])
    assert tomllib.loads(text) == {
        "study_version": 1,
        "models": {"8b": {"model": "m"}},
        "protocol": {"steps": [1]},
        "engine": {},
    }


def test_the_launcher_asks_all_at_once_or_step_by_step() -> None:
    assert launcher_text([1, 2], [1, 2]).endswith('exec "${benchcheck[@]}" screen "$here" "$@"\n')
    assert "for step in 2 4; do" in launcher_text([2, 4], [1, 2, 3, 4])
