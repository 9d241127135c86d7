"""package, pack and merge that are killed at any moment: the same command completes them, and nothing is doubled."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from return_files import contents, packed, twin, verdict_rows

from benchcheck.run.driver import run_study
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.transfer.pack import FACTS
from benchcheck.transfer.package import arrived
from studies import framed_study, give_frames, make_items, rows_on_disk

ITEMS = make_items(a=200, b=80)
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Study, Path]:
    """A study without rows, its twin with all of them, and the package of those."""
    folder = tmp_path_factory.mktemp("kill")
    home = framed_study(folder / "home", ITEMS)
    there = twin(home, folder / "there")
    run_study(there, "scripted")
    return home, there, packed(there, folder / "out")


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "benchcheck", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed_after(seconds: float, *arguments: object) -> int:
    process = start(*arguments)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def whole_time(*arguments: object) -> float:
    begun = time.monotonic()
    assert start(*arguments).wait() == 0
    return time.monotonic() - begun


def finished(*arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchcheck", *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_merge_killed_at_any_moment_is_completed_by_the_same_command(
    studies: tuple[Study, Study, Path], tmp_path: Path
) -> None:
    home, there, file = studies
    took = whole_time("merge", twin(home, tmp_path / "timed").root, file)
    for share in (0.5, 0.7, 0.8, 0.85, 0.9, 0.95):
        study = twin(home, tmp_path / f"home{share}")
        killed_after(took * share, "merge", study.root, file)
        finished("merge", study.root, file)
        for step in LADDER:
            assert rows_on_disk(study, step) == rows_on_disk(there, step)
        assert verdict_rows(study) == verdict_rows(there)
        assert study.accounting_file.read_bytes() == there.accounting_file.read_bytes()
        assert not (study.results / ".merge").exists()


def test_a_merge_killed_between_two_writes(studies: tuple[Study, Study, Path], tmp_path: Path) -> None:
    """Each write of it in turn is the last one."""
    home, there, file = studies
    script = (
        "import os, signal, sys\n"
        "from benchcheck import files, study\n"
        "from benchcheck.transfer import merge\n"
        "real, left = files.append_rows, [int(sys.argv.pop())]\n"
        "def append(path, rows):\n"
        "    real(path, rows)\n"
        "    left[0] -= 1\n"
        "    if left[0] == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "study.append_rows = merge.append_rows = append\n"
        "merge.merge_returns(study.Study.open(sys.argv[1]), sys.argv[2:])\n"
    )
    study = twin(home, tmp_path / "home")
    seen = []
    for write in (1, 2, 1, 3, 2):
        done = subprocess.run([sys.executable, "-c", script, study.root, file, str(write)], check=False)
        assert done.returncode == -9
        seen.append(sum(len(rows_on_disk(study, step)) for step in LADDER))
    assert seen == sorted(set(seen))
    finished("merge", study.root, file)
    for step in LADDER:
        assert rows_on_disk(study, step) == rows_on_disk(there, step)
    assert study.accounting_file.read_bytes() == there.accounting_file.read_bytes()


def members(file: Path) -> dict[str, Any]:
    """What a package holds, but for the code that made it, which may be edited while this runs."""
    inside: dict[str, Any] = contents(file)
    return inside | {FACTS: json.loads(inside[FACTS]) | {"benchcheck": None}}


def test_a_pack_killed_at_any_moment_leaves_a_whole_file_or_none(
    studies: tuple[Study, Study, Path], tmp_path: Path
) -> None:
    there, good = studies[1], members(studies[2])
    out = tmp_path / "out"
    out.mkdir()
    took = whole_time("pack", there.root, "--to", out)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    for share in (0.6, 0.75, 0.85, 0.95):
        killed_after(took * share, "pack", there.root, "--to", out)
        files = list(out.glob("pool_returns_*.tar.gz"))
        assert [members(path) for path in files] in ([], [good])
        if list(out.glob("*.sha256")):
            subprocess.run(["sha256sum", "--status", "-c", f"{files[0].name}.sha256"], cwd=out, check=True)
    subprocess.run([sys.executable, "-m", "benchcheck", "pack", there.root, "--to", out], env=environment, check=True)
    assert [members(path) for path in out.glob("*.tar.gz")] == [good]


def test_a_package_killed_at_any_moment_is_no_package_until_it_is_whole(
    studies: tuple[Study, Study, Path], tmp_path: Path
) -> None:
    there = studies[1]
    took = whole_time("package", there.root, tmp_path / "timed")
    wanted = {path.relative_to(tmp_path / "timed"): path for path in (tmp_path / "timed").rglob("*") if path.is_file()}
    for number, share in enumerate((0.6, 0.75, 0.85, 0.95)):
        folder = tmp_path / f"pkg{number}"
        code = killed_after(took * share, "package", there.root, folder)
        if not (folder / "package.json").exists():
            assert code != 0
            finished("package", there.root, folder)
        made = Study.open(folder)
        arrived(made)
        found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
        assert set(wanted) <= set(found)
        for name in set(wanted) - {Path("package.json"), Path("README.md")}:  # these two hold the time
            assert found[name].read_bytes() == wanted[name].read_bytes()


def test_a_package_of_a_killed_run_is_packed_and_merged(tmp_path: Path) -> None:
    """B is killed while it writes, packs what it has, goes on, and packs again."""
    slow = {"large": "scripted?slow=0.004", "small": "scripted?slow=0.004&skill=0.4"}
    home = framed_study(tmp_path / "home", ITEMS, **slow)
    there = twin(home, tmp_path / "there")
    process = start("screen", there.root, "--engine", "scripted")
    while not any(path.stat().st_size for path in there.step_files(2)):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    with there.step_file(2, "a").open("ab") as file:
        file.write(b'{"item_id": "a_0", "sta')
    finished("merge", home.root, packed(there, tmp_path / "x"))
    finished("screen", there.root, "--engine", "scripted")
    give_frames(home, ITEMS)
    finished("merge", home.root, packed(there, tmp_path / "y"))
    assert verdict_rows(home) == verdict_rows(there)
    for step in LADDER:
        ids = [row["item_id"] for row in rows_on_disk(home, step)]
        assert len(ids) == len(set(ids))
