"""Where the parts of a study lie, who decides it, and that no row depends on it."""

import hashlib
import json
import os
import tempfile
import tomllib
from pathlib import Path

import pytest

from benchcheck import console
from benchcheck.backends.checkpoint import downloaded, local_revision
from benchcheck.config import Config, Places, Videos, parse
from benchcheck.errors import ConfigError, InputError, ModelRefusedError, UsageError
from benchcheck.places import VARIABLES, Located, Place, environment_of, look
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.building.declared import newer_files
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.slurm import arrays
from benchcheck.study import Study
from benchcheck.video.wanted import tasks_of, wanted_sets
from studies import Heard, Run, config_text, give_frames, make_study, rows_on_disk


def config(text: str) -> Config:
    return parse(tomllib.loads(config_text() + text), "here")


def test_by_default_all_of_it_lies_in_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    found = {place.name: str(place.path) for place in Located(Path("/s"), Places()).all()}
    assert found == {
        "data": "/s",
        "videos": "/s/videos",
        "normalized": "/s/normalized",
        "frames": "/s/frames/pool_frames",
        "results": "/s/results",
        "pool": "/s/results/pool_items_base.parquet",
        "logs": "/s/logs",
        "models": "/s/models",
        "scratch": tempfile.gettempdir(),
        "hub": "/home/me/.cache/huggingface/hub",
    }
    assert {place.by for place in Located(Path("/s"), Places()).all()} == {"default"}


def test_the_config_moves_each_and_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    said = config('[places]\ndata = "~/data"\nframes = "/scratch/f"\nresults = "out"\nscratch = "tmp"\n')
    located = Located(Path("/s"), said.places, "clips")
    assert located.of("data") == Place("data", Path("/home/me/data"), "benchcheck.toml")
    assert located.of("videos") == Place("videos", Path("/home/me/data/clips"), "benchcheck.toml")
    assert located.of("pool") == Place("pool", Path("/s/out/pool_items_base.parquet"), "benchcheck.toml")
    assert located.scratch == Path("/s/tmp")
    for name, variable in VARIABLES.items():
        monkeypatch.setenv(variable, f"~/{name}")
        assert located.of(name) == Place(name, Path(f"/home/me/{name}"), variable)
        monkeypatch.setenv(variable, "near/it")
        assert located.of(name).path == Path("near/it"), "relative to the current folder"
        monkeypatch.setenv(variable, "")
        assert located.of(name).by != variable, "an empty variable is none"


def test_a_benchmark_s_own_videos_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    located = Located(Path("/s"), Places(data="/d"), Videos().folder)
    monkeypatch.setenv("BENCHCHECK_VIDEOS", "/v")
    assert located.videos("videos") == Path("/v")
    assert located.videos("clips") == Path("/d/clips")
    assert located.videos("/else/where") == Path("/else/where")


def test_the_hub_library_s_own_variables_win(monkeypatch: pytest.MonkeyPatch) -> None:
    located = Located(Path("/s"), Places(hub="cache"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HF_HOME", raising=False)
    assert located.hub == "/s/cache"
    monkeypatch.setenv("HF_HOME", "/hf")
    assert (located.hub, located.of("hub")) == ("", Place("hub", Path("/hf/hub"), "HF_HOME"))
    monkeypatch.setenv("HF_HUB_CACHE", "/hub")
    assert located.of("hub") == Place("hub", Path("/hub"), "HF_HUB_CACHE")


@pytest.mark.parametrize("line", ['data = "a\\u0000b"', 'frames = " "', 'logs = ""', "data = 3", 'video = "x"'])
def test_a_path_that_cannot_be_is_a_fault_of_the_config(line: str) -> None:
    with pytest.raises(ConfigError, match=r"here: places(: |\.)"):
        config(f"[places]\n{line}\n")


def test_a_user_who_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHCHECK_DATA", "~nobody-of-this-name/x")
    with pytest.raises(UsageError, match="there is no such user"):
        _ = Located(Path("/s"), Places()).data


@pytest.mark.parametrize("name", sorted(set(VARIABLES) - {"pool"}))
def test_a_file_where_a_folder_is_wanted(name: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    study, file = make_study(tmp_path / "study"), tmp_path / "a file"
    file.write_bytes(b"")
    monkeypatch.setenv(VARIABLES[name], str(file))
    code, _, said = run("plan", str(study.root))
    assert code == 2
    assert said == (
        f"benchcheck: {file}: a file stands here, and {VARIABLES[name]} wants a folder for {name}. "
        "Cure: name another path\n"
    )
    code, shown, _ = run("places", str(study.root))
    assert code == 0
    assert [line.split()[1:3] for line in shown.splitlines() if line.startswith(name)] == [["a", "file"]]


def test_places_below_the_current_folder_are_short_in_a_terminal(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole path has no room in 80 columns, and is what another program wants."""
    study = make_study(tmp_path / "study")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCHCHECK_MODELS", "/elsewhere")

    def paths() -> dict[str, str]:
        return {line.split()[0]: line.split()[-1] for line in run("places", study.root)[1].splitlines()}

    assert paths()["frames"] == f"{tmp_path}/study/frames/pool_frames"
    monkeypatch.setattr(console, "terminal_width", lambda: 80)
    assert (paths()["frames"], paths()["data"]) == ("study/frames/pool_frames", "study")
    assert paths()["models"] == "/elsewhere"


def test_places_as_json(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path / "a study")
    (tmp_path / "f").mkdir()
    monkeypatch.setenv("POOL_FRAMES_DIR", str(tmp_path / "f"))
    monkeypatch.setenv("BENCHCHECK_LOGS", "/proc/1/cwd/x" if os.getuid() else "/dev/null/x")
    code, shown, _ = run("places", str(study.root), "--json")
    rows = {row["place"]: row for row in json.loads(shown)}
    assert code == 0
    assert set(rows) == {*VARIABLES, "hub"}
    assert rows["frames"]["state"] == "writable"
    assert rows["frames"]["by"] == rows["frames"]["variable"] == "POOL_FRAMES_DIR"
    assert rows["frames"]["free_bytes"] > 0
    assert rows["results"]["state"] == "not there yet"
    assert rows["logs"]["state"] == "cannot be made"


def test_a_read_only_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert look(Place("frames", tmp_path)).state == "read only"
    assert look(Place("frames", tmp_path / "new")).state == "cannot be made"


def test_what_children_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"POOL_BASE": "p.parquet", "BENCHCHECK_DATA": "", "BENCHCHECK_MODELS": "~", "HF_HOME": "/hf", "PATH": "x"}
    assert environment_of(given) == {
        "POOL_BASE": str(tmp_path / "p.parquet"),
        "BENCHCHECK_MODELS": str(Path.home()),
        "HF_HOME": "/hf",
    }


# The same study, all of it elsewhere.


def data_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    rows = [
        {"id": str(n), "question": f"What is {n}?", "options": ["a", "b", "c"], "answer": "B", "video": f"v{n}.mp4"}
        for n in range(30)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "wrong.csv").write_text("id,reason\n3,broken\n", encoding="utf-8")
    (folder / "truth.jsonl").write_text('{"id": "1", "class": "blind"}\n', encoding="utf-8")
    return folder


ENTRY = """
[[pool]]
spec = "generic"
files = ["items.jsonl"]
bench = "mine"
errata = "wrong.csv"
truth = "truth.jsonl"
"""


def screened(root: Path) -> tuple[Study, list[dict[str, object]], bytes]:
    study = make_study(root)
    (root / "benchcheck.toml").write_text(config_text() + ENTRY, encoding="utf-8")
    study = Study.open(root)
    build_pool(study)
    give_frames(study, [item for item in study.items() if item.format == "mcq"])
    screen(study, Local(study, Asked("scripted"), 1), Heard())
    rows = [row for step in range(1, 7) for row in rows_on_disk(study, step)]
    return study, [row | {"at": "", "latency_s": 0} for row in rows], study.pool_file.read_bytes()


def test_rows_do_not_depend_on_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    data_folder(tmp_path / "here")
    here, rows, pool = screened(tmp_path / "here")
    data = data_folder(tmp_path / "data")
    for name in set(VARIABLES) - {"pool", "data"}:
        monkeypatch.setenv(VARIABLES[name], str(tmp_path / "moved" / name))
    monkeypatch.setenv("BENCHCHECK_DATA", str(data))
    there, moved, moved_pool = screened(tmp_path / "there")
    assert (moved, moved_pool) == (rows, pool)
    assert len(rows) > 60
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"benchcheck.toml"}
    assert there.manifest_file.read_bytes() == (tmp_path / "here/results/pool_schema_manifest.csv").read_bytes()
    assert newer_files(there) == []
    assert run("pool", "check", str(there.root), "--strict")[0] in (0, 1)
    assert run("assemble", str(there.root))[0] == 0
    task = tasks_of(there, wanted_sets(there))[0][0]
    assert task.folder == str(tmp_path / "moved" / "videos")
    assert task.paths[0].startswith(task.folder)
    commands = arrays(there, Asked("scripted"))
    assert all(array.environment["BENCHCHECK_DATA"] == str(data) for array in commands)
    (data / "items.jsonl").unlink()
    with pytest.raises(InputError, match=r"data/items\.jsonl: no such file"):
        build_pool(there)
    assert here.root != there.root


# Models.


def test_a_model_is_looked_for_in_the_study_then_where_models_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    located = Located(tmp_path / "study", Places())
    monkeypatch.setenv("BENCHCHECK_MODELS", str(tmp_path / "models"))
    assert located.model("Qwen/Q") == "Qwen/Q"
    (tmp_path / "models/Qwen/Q").mkdir(parents=True)
    assert located.model("Qwen/Q") == str(tmp_path / "models/Qwen/Q")
    (tmp_path / "study/Qwen/Q").mkdir(parents=True)
    assert located.model("Qwen/Q") == str(tmp_path / "study/Qwen/Q")
    assert located.model("embedded:large") == "embedded:large"


def fetched(folder: Path, commit: str) -> Path:
    """A folder as `hf download --local-dir` leaves it."""
    notes = folder / ".cache" / "huggingface" / "download"
    notes.mkdir(parents=True)
    small, large = b'{"architectures": []}', b"weights"
    marks = {
        "config.json": hashlib.sha1(b"blob %d\0" % len(small) + small, usedforsecurity=False).hexdigest(),
        "model.safetensors": hashlib.sha256(large).hexdigest(),
    }
    for name, data in (("config.json", small), ("model.safetensors", large)):
        (folder / name).write_bytes(data)
        (notes / f"{name}.metadata").write_text(f"{commit}\n{marks[name]}\n1.0\n", encoding="utf-8")
    return folder


def test_a_downloaded_folder_proves_its_commit(tmp_path: Path) -> None:
    commit = "ab" * 20
    folder = fetched(tmp_path / "model", commit)
    assert downloaded(folder) == commit
    assert local_revision(folder, commit) == commit
    with pytest.raises(ModelRefusedError, match="the revision asked for is cdcd"):
        local_revision(folder, "cd" * 20)
    (folder / "model.safetensors").write_bytes(b"Weights")
    assert downloaded(folder) == ""
    with pytest.raises(ModelRefusedError, match="Cure: set `revision` to one of these"):
        local_revision(folder, commit)


def test_a_folder_of_two_commits_or_without_notes_proves_none(tmp_path: Path) -> None:
    folder = fetched(tmp_path / "model", "ab" * 20)
    note = folder / ".cache/huggingface/download/config.json.metadata"
    note.write_text(note.read_text().replace("ab" * 20, "cd" * 20))
    assert downloaded(folder) == ""
    note.write_bytes(b"\xff")
    assert downloaded(folder) == ""
    note.unlink()
    assert downloaded(folder) == ""


def test_worker_processes_see_the_same_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Relative paths in the environment, as a shell's user writes them."""
    data_folder(tmp_path / "data")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "benchcheck.toml").write_text(config_text() + ENTRY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in set(VARIABLES) - {"pool", "data"}:
        monkeypatch.setenv(VARIABLES[name], f"moved/{name}")
    monkeypatch.setenv("BENCHCHECK_DATA", "data")
    assert run("pool", "build", "study")[0] == 0
    study = Study.open("study")
    give_frames(study, [item for item in study.items() if item.format == "mcq"])
    assert run("screen", "study", "--engine", "scripted", "--workers", "2")[0] == 0
    assert {path.name for path in (tmp_path / "study").iterdir()} == {"benchcheck.toml"}
    assert len(rows_on_disk(study, 1)) == 29
    assert {path.name for path in (tmp_path / "moved").iterdir()} == {"frames", "results", "logs"}
