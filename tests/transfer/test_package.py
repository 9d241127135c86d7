"""A package is a study that runs elsewhere: whole or not there, without what is this machine's, and it knows itself."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchcheck.cli.transfer import check_arrived
from benchcheck.config import step_key
from benchcheck.errors import ConfigError, StudyError, UsageError
from benchcheck.run.driver import run_study
from benchcheck.run.plan import survey, totals
from benchcheck.screen.steps import LADDER
from benchcheck.settings import ENVIRONMENT
from benchcheck.study import Study
from benchcheck.tars import hash_of
from benchcheck.transfer import package as module
from benchcheck.transfer.far.incoming import download
from benchcheck.transfer.far.remote import upload
from benchcheck.transfer.package import arrived, make_package
from benchcheck.transfer.provenance import code_version, pool_facts, read_json
from studies import Run, framed_study, give_frames, make_item, make_items, make_study, row_of, rows_on_disk

ITEMS = make_items(a=12, b=5)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_package_is_a_study_that_runs_its_steps(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    made = make_package(study, tmp_path / "pkg", steps=[1, 2, 3])
    there = Study.open(made.folder)
    give_frames(there, ITEMS)
    assert arrived(there) == []
    run_study(there, "scripted")
    assert totals(survey(there)).remaining == 0
    assert there.config.protocol.steps == (1, 2, 3)
    assert all(step_key(there.config, LADDER[n]) == step_key(study.config, LADDER[n]) for n in (1, 2, 3))
    facts = made.facts
    assert (facts["steps"], facts["frames"], facts["answers"]) == ([1, 2, 3], None, {"1": 0, "2": 0, "3": 0})
    assert facts["pool"] == pool_facts(study)
    assert facts["pool"]["benchmarks"] == {"a": {"items": 12, "mcq": 12}, "b": {"items": 5, "mcq": 5}}
    assert facts["benchcheck"] == code_version()
    assert facts == {
        key: value for key, value in read_json(made.folder / "package.json", "x").items() if key != "files"
    }


def test_every_file_is_listed_with_its_hash_and_nothing_else_is_there(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    study.manifest_file.write_text("bench,rows\n", encoding="utf-8")
    run_study(study, "scripted", pilot=3)
    folder = make_package(study, tmp_path / "pkg").folder
    listed = read_json(folder / "package.json", "x")["files"]
    assert set(files_of(folder)) == {*listed, "package.json"}
    assert {"benchcheck.toml", "run.sh", "README.md", "results/pool_schema_manifest.csv"} < set(listed)
    for name, entry in listed.items():
        assert entry == {"sha256": hash_of(folder / name), "bytes": (folder / name).stat().st_size}
    assert os.access(folder / "run.sh", os.X_OK)


def test_rows_travel_with_it_unless_they_do_not_count(tmp_path: Path) -> None:
    """A later step asks what earlier steps left alive: without their rows nothing would be."""
    study = framed_study(tmp_path / "a", ITEMS)
    run_study(study, "scripted")
    before = {number: rows_on_disk(study, number) for number in LADDER}
    study.append(1, "a", None, [row_of(study, ITEMS[0], step_key="0" * 16), row_of(study, make_item(99))])
    study.append(1, "a", None, [row_of(study, ITEMS[1], item_digest="0" * 16)])
    with study.step_file(1, "a").open("ab") as file:
        file.write(b'{"torn": \n[1]\n{"item_id": "a_1"')
    made = make_package(study, tmp_path / "pkg", steps=[4, 5])
    there = Study.open(made.folder)
    assert there.config.protocol.steps == (1, 2, 3, 4, 5)
    for number in (1, 2, 3, 4, 5):
        assert rows_on_disk(there, number) == before[number]
    assert made.left_out == 5
    assert '--step "$step"' in (made.folder / "run.sh").read_text()
    assert re.search(r"for step in 4 5; do", (made.folder / "run.sh").read_text())
    bare = make_package(study, tmp_path / "bare", answers=False)
    assert not (bare.folder / "results" / "step1").exists()
    assert bare.left_out == 0


def test_without_a_cascade_only_the_chosen_steps_are_there(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS, protocol={"cascade": False})
    assert Study.open(make_package(study, tmp_path / "p", steps=[4, 2]).folder).config.protocol.steps == (2, 4)


CONFIG = """
study_version = 1
name = "two\\nlines \\"quoted\\""
[protocol]
margin = 0.5
[frames]
count = 4
single = 2
[videos]
folder = "/secret/videos"
[places]
hub = "/secret/hub"
[models.8b]
model = "scripted"
[models.2b]
model = "scripted?skill=0.4"
[prompts]
blind = "Rate's \\u0007 \\\\ 'me'"
[engine]
endpoints = ["http://secret:8001/v1"]
python = "/secret/bin/python"
gpu_memory = 0.5
[slurm]
partition = "secret"
[[pool]]
spec = "own spec.toml"
files = ["/secret/items.jsonl"]
errata = "/secret/errata.csv"
truth = "/secret/truth.jsonl"
[pool.videos]
folder = "/secret/clips"
[[pool]]
spec = "generic"
files = ["/secret/b.jsonl"]
bench = "b"
"""
SPEC = 'bench = "a"\nlayout = "records"\n'


def test_what_is_of_this_machine_stays_here(tmp_path: Path) -> None:
    study = make_study(tmp_path / "a")
    shipped = Path(module.__file__).parents[1] / "pool" / "benchmarks" / "generic.toml"
    text = shipped.read_text(encoding="utf-8")
    (study.root / "own spec.toml").write_text(text.replace("[", 'bench = "a"\n[', 1) if "bench" not in text else text)
    (study.root / "benchcheck.toml").write_text(
        CONFIG.replace('[[pool]]\nspec = "own', '[[pool]]\nbench = "a"\nspec = "own')
    )
    study = Study.open(study.root)
    study.write_pool(ITEMS)
    folder = make_package(study, tmp_path / "pkg").folder
    for name, content in files_of(folder).items():
        assert b"secret" not in content, name
        assert os.fsencode(tmp_path) not in content, name
    there = Study.open(folder)
    assert there.config.name == study.config.name
    assert there.config.prompts == study.config.prompts
    assert there.config.protocol.margin == 0.5
    assert there.config.engine.gpu_memory == 0.5
    assert [(source.spec, source.bench) for source in there.config.pool] == [("specs/a.toml", "a"), ("generic", "b")]
    assert (folder / "specs" / "a.toml").is_file()
    assert (folder / "README.md").read_text().splitlines()[0] == '# two lines "quoted": a package of benchcheck'


def test_a_model_that_is_a_folder_is_named(tmp_path: Path) -> None:
    study = make_study(tmp_path / "a", large="models/mine", small="Org/Name")
    study.write_pool(ITEMS)
    (study.root / "models" / "mine").mkdir(parents=True)
    made = make_package(study, tmp_path / "pkg")
    assert made.facts["model_folders"] == ["models/mine"]
    assert "Models that were folders: 'models/mine'" in (made.folder / "README.md").read_text()
    assert "benchcheck[vllm]" in (made.folder / "README.md").read_text()


def test_refusals_are_one_line(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    with pytest.raises(UsageError, match=r"--steps 7 is not a step of this study\. Allowed: 1, 2, 3, 4, 5, 6"):
        make_package(study, tmp_path / "pkg", steps=[1, 7])
    with pytest.raises(UsageError, match=r"not empty \('benchcheck.toml'\)"):
        make_package(study, study.root)
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"file: not a folder to make a package in"):
        make_package(study, tmp_path / "file")
    with pytest.raises(StudyError, match="no pool yet"):
        make_package(make_study(tmp_path / "poolless"), tmp_path / "pkg")
    assert not (tmp_path / "pkg" / "package.json").exists()
    make_package(study, tmp_path / "pkg")
    with pytest.raises(UsageError, match="there is a package already"):
        make_package(study, tmp_path / "pkg")


def test_a_package_that_was_not_finished_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    run_study(study, "scripted", pilot=2)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, "_json", fail)
        with pytest.raises(KeyboardInterrupt):
            make_package(study, tmp_path / "pkg")
    assert not (tmp_path / "pkg" / "package.json").exists()
    with pytest.raises(StudyError, match="pkg: a package that was not finished"):
        check_arrived(Study.open(tmp_path / "pkg"))
    (tmp_path / "pkg" / "link").symlink_to(study.root)
    made = make_package(study, tmp_path / "pkg", steps=[2], answers=False)
    check_arrived(Study.open(made.folder))
    assert study.pool_file.is_file()
    assert not (made.folder / "results" / "step1").exists()
    fresh = make_package(study, tmp_path / "other", steps=[2], answers=False)
    assert set(files_of(made.folder)) == set(files_of(fresh.folder))


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b""])
def test_a_spec_that_cannot_be_read_is_one_line(run: Run, tmp_path: Path, content: bytes | None) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    config = study.root / "benchcheck.toml"
    config.write_text(config.read_text() + '[[pool]]\nspec = "own.toml"\nbench = "a"\nfiles = ["x"]\n')
    spec = study.root / "own.toml"
    if content is not None:
        spec.write_bytes(content) if content else spec.mkdir()
    code, _, err = run("package", study.root, tmp_path / "p")
    assert (code, err.count("\n")) == (1, 1)
    assert "own.toml: a spec that is not readable (" in err
    assert not (tmp_path / "p").exists()


def test_a_full_disk_is_one_line(small_disk: Path, tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", make_items(a=3000))
    with pytest.raises(StudyError, match="the disk is full"):
        make_package(study, small_disk / "pkg")
    assert not (small_disk / "pkg" / "package.json").exists()


def edited(study: Study, old: str, new: str) -> Study:
    path = study.root / "benchcheck.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return Study.open(study.root)


@pytest.fixture
def there(tmp_path: Path) -> Study:
    return Study.open(make_package(framed_study(tmp_path / "a", ITEMS), tmp_path / "pkg", steps=[1, 2]).folder)


def test_screen_refuses_a_package_whose_config_was_edited(run: Run, there: Study) -> None:
    edited(there, "count = 4", "count = 8")
    code, out, err = run("screen", there.root, "--engine", "scripted")
    assert (code, out) == (2, "")
    assert (
        "frames.count = 8 here, 4 in the package (step 2); answers to it would not be merged. Cure: set it back" in err
    )
    assert len(err.splitlines()) == 1
    edited(there, "count = 8", "count = 4")
    edited(there, 'model = "scripted"', 'model = "scripted?skill=0.1"')
    assert "models.8b.model" in run("screen", there.root, "--engine", "scripted")[2]


def test_screen_warns_of_another_threshold_and_another_version(run: Run, there: Study) -> None:
    edited(there, "[protocol]", "[protocol]\nmargin = 2.0")
    assert "protocol.margin = 2.0 here" in run("screen", there.root, "--engine", "scripted")[2]
    facts = json.loads(there.package_file.read_text())
    facts["benchcheck"]["source_sha256"] = "0" * 64
    there.package_file.write_text(json.dumps(facts))
    assert any("this benchcheck differs from the one" in note for note in arrived(there))
    facts["benchcheck"] = {"version": "0.0.9", "commit": ""}
    there.package_file.write_text(json.dumps(facts))
    assert any("was made by benchcheck 0.0.9" in note for note in arrived(there))
    facts["benchcheck"] = None
    facts["rule"] = 3
    there.package_file.write_text(json.dumps(facts))
    assert len(arrived(there)) == 1


def test_a_pool_that_is_not_the_one_that_came_is_refused(there: Study) -> None:
    there.write_pool(ITEMS[1:])
    with pytest.raises(StudyError, match="not the pool that came with the package"):
        arrived(there)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"format": "other"}', '{"a": NaN', "<html>", "\0" * 99]
)
def test_a_damaged_description_is_one_line(there: Study, text: str) -> None:
    there.package_file.write_text(text)
    with pytest.raises(StudyError, match=r"package\.json: .*Cure"):
        arrived(there)


def test_a_protocol_that_is_no_table_is_refused(there: Study) -> None:
    facts = json.loads(there.package_file.read_text())
    there.package_file.write_text(json.dumps(facts | {"protocol": [1]}))
    with pytest.raises(ConfigError, match="the protocol in the package is no table of steps"):
        arrived(there)
    there.package_file.unlink()
    assert arrived(there) == []


def test_the_launcher_passes_flags_and_variables_on(tmp_path: Path) -> None:
    """It runs from anywhere, from a folder whose name needs quotes, and takes PY where no benchcheck is on PATH."""
    study = framed_study(tmp_path / "a", ITEMS)
    folder = make_package(study, tmp_path / "pkg", steps=[1]).folder
    odd = tmp_path / 'it\'s a "pkg" $HOME\n* हिन्दी'
    shutil.move(folder, odd)
    shown = tmp_path / "bin" / "benchcheck"
    shown.parent.mkdir()
    shown.write_text('#!/bin/sh\nfor a in "$@"; do printf "[%s]" "$a"; done; printf "\\n%s %s" "$NGPU" "$MAX_SEQS"\n')
    shown.chmod(0o755)
    plain = {"PATH": "/usr/bin:/bin", "NGPU": "3", "MAX_SEQS": "9"}
    told = subprocess.run(
        [odd / "run.sh", "--set", "a=b c"], env=plain | {"PATH": f"{shown.parent}:/usr/bin:/bin"},
        capture_output=True, text=True, check=True, cwd="/",
    )  # fmt: skip
    assert told.stdout.splitlines()[-1] == "3 9"
    assert told.stdout.startswith(f"[screen][{odd}][--set][a=b c]\n")
    environment = plain | {"PY": sys.executable, "HOME": str(tmp_path)}
    done = subprocess.run(
        [odd / "run.sh", "--engine", "scripted"], env=environment, capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("REMAINING_TOTAL=0\n")
    assert all(name in (odd / "run.sh").read_text() for name in ENVIRONMENT)
    subprocess.run(["bash", "-n", odd / "run.sh"], check=True)


def test_a_package_that_was_sent_runs_without_its_bits_and_wherever_cd_looks(tmp_path: Path) -> None:
    """No store keeps the right to execute; CDPATH would lead to another folder of the package's name."""
    study = framed_study(tmp_path / "a", ITEMS)
    upload(make_package(study, tmp_path / "pkg", steps=[1]).folder, f"{tmp_path / 'far'}")
    download(f"{tmp_path / 'far'}", tmp_path / "there" / "pkg")
    environment = {"PATH": "/usr/bin:/bin", "PY": sys.executable, "CDPATH": f"{tmp_path}:."}
    command = ["bash", "pkg/run.sh", "--engine", "scripted"]
    done = subprocess.run(command, env=environment, cwd=tmp_path / "there", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert rows_on_disk(Study.open(tmp_path / "there" / "pkg"), 1) != []
    assert rows_on_disk(Study.open(tmp_path / "pkg"), 1) == []
    assert "\nbash run.sh --engine vllm " in (tmp_path / "there" / "pkg" / "README.md").read_text()


def test_the_launcher_goes_step_by_step_where_earlier_ones_are_not_its_own(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    run_study(study, "scripted", pilot=4)
    folder = make_package(study, tmp_path / "pkg", steps=[2, 3]).folder
    there = Study.open(folder)
    give_frames(there, ITEMS)
    before = rows_on_disk(there, 1)
    environment = {"PATH": "/usr/bin:/bin", "PY": sys.executable}
    done = subprocess.run(
        [folder / "run.sh", "--engine", "scripted"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rows_on_disk(there, 1) == before


def test_the_command_says_what_was_made(run: Run, tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    study.append(1, "a", None, [row_of(study, ITEMS[0]), row_of(study, ITEMS[1], step_key="x")])
    code, out, err = run("package", study.root, tmp_path / "pkg", "--steps", "1,3")
    assert (code, out) == (0, f"{tmp_path}/pkg: 17 items for steps 1,3; rows: 1; shards of frames: none\n")
    assert err.splitlines() == [
        "1 lines stay here: torn, of an earlier protocol, or of items that were edited since",
        f"Its README.md has the commands; `benchcheck merge {study.root} FILE` takes what comes back",
    ]
    code, _, err = run("package", study.root, tmp_path / "other", "--steps", "1-3")
    assert code == 2
    assert "--steps 1-3: not numbers with commas between them" in err


def test_frames_travel_in_it_as_shards(run: Run, tmp_path: Path) -> None:
    study = framed_study(tmp_path / "a", ITEMS)
    code, out, _ = run("package", study.root, tmp_path / "pkg", "--frames")
    assert code == 0
    assert "shards of frames: 1" in out
    there = Study.open(tmp_path / "pkg")
    assert run("frames", "unpack", there.root, "--from", there.root / "frames" / "shards")[0] == 0
    assert there.frames_ready() == study.frames_ready()
    assert "benchcheck frames unpack . --from frames/shards" in (there.root / "README.md").read_text()
