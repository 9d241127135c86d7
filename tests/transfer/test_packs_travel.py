"""A package of results goes to a hub dataset, comes down elsewhere, and is merged there."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from writable_hub import TOKEN, Dataset, WritableHub, serving

from benchcheck.run.plan import survey
from benchcheck.study import Study
from studies import Run, framed_study, make_items


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    with serving(WritableHub({"owner/returns": Dataset()})) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def test_results_come_home_through_a_dataset(
    hub: WritableHub, tmp_path: Path, run: Run, tiny_pool: Callable[..., Study]
) -> None:
    away = framed_study(tmp_path / "away", make_items(a=12))
    home = tiny_pool()
    assert run("screen", away.root, "--engine", "scripted", "--step", 1)[0] == 0
    assert run("pack", away.root, "--to", tmp_path / "out")[0] == 0
    code, out, err = run("upload", tmp_path / "out", "hf://datasets/owner/returns/node-7")
    assert (code, out.startswith("2 files sent: ")) == (0, True), err
    code, out, err = run("download", "hf://datasets/owner/returns/node-7", tmp_path / "arrived")
    assert (code, out.startswith("2 files fetched: ")) == (0, True), err
    (package,) = (tmp_path / "arrived").glob("pool_returns_*.tar.gz")
    assert package.read_bytes() == (tmp_path / "out" / package.name).read_bytes()
    assert survey(home).fold.steps[0].todo.sum() == 12
    code, out, err = run("merge", home.root, package)
    assert code == 0, err
    assert survey(home).fold.steps[0].todo.sum() == 0
