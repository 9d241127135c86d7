"""One cluster prepares, another screens, the results come home: the same as one study that was never carried."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchcheck.study import Study

pytestmark = [pytest.mark.long, pytest.mark.model]
TIMES = ("at", "latency_s")


def benchcheck(folder: Path, *arguments: object, home: Path) -> str:
    """Run the command line in `folder`, as a machine has it that has nothing of another but the code."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "benchcheck", *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def prepared(folder: Path, home: Path) -> Study:
    """A study of the control benchmark with frames, and the two tiny checkpoints."""
    folder.mkdir()
    benchcheck(folder, "controls", "make", "controls", "--per-class", 4, "--seed", 5, home=home)
    init = ("init", "study", "--embedded", "--file", "controls/items.jsonl", "--bench", "mine", "--videos", "controls")
    benchcheck(folder, *init, home=home)
    benchcheck(folder, "pool", "build", "study", home=home)
    benchcheck(folder, "frames", "extract", "study", home=home)
    return Study.open(folder / "study")


def steady(value: Any) -> Any:
    """A value without what a clock or a machine decides."""
    if isinstance(value, dict):
        return {key: steady(part) for key, part in value.items() if key not in TIMES}
    return [steady(part) for part in value] if isinstance(value, list) else value


def test_two_clusters_end_as_one_study(tmp_path: Path) -> None:
    home_a, home_b = tmp_path / "user a", tmp_path / "user b"
    home_a.mkdir()
    home_b.mkdir()
    whole = prepared(tmp_path / "one", home_a)
    benchcheck(tmp_path / "one", "screen", "study", home=home_a)
    benchcheck(tmp_path / "one", "assemble", "study", home=home_a)

    a = prepared(tmp_path / "a", home_a)
    benchcheck(tmp_path / "a", "frames", "pack", "study", "--to", "shards", home=home_a)
    benchcheck(tmp_path / "a", "package", "study", "pkg", "--steps", "1,2,3", home=home_a)

    far = tmp_path / "far away"
    far.mkdir()
    shutil.copytree(tmp_path / "a" / "pkg", far / "pkg")
    shutil.copytree(tmp_path / "a" / "shards", far / "shards")
    (tmp_path / "a").rename(tmp_path / "hidden")  # what B might still reach by a path of A is not there
    benchcheck(far / "pkg", "frames", "unpack", ".", "--from", "../shards", home=home_b)
    assert benchcheck(far / "pkg", "plan", ".", home=home_b).splitlines()[-3] == "WAITING_TOTAL=0"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home_b), "HF_HUB_OFFLINE": "1", "PY": sys.executable}
    told = subprocess.run([far / "pkg" / "run.sh"], env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.endswith("REMAINING_TOTAL=0\n")
    benchcheck(far / "pkg", "pack", ".", "--to", far, home=home_b)
    (tmp_path / "hidden").rename(tmp_path / "a")

    (file,) = far.glob("pool_returns_*.tar.gz")
    subprocess.run(["sha256sum", "-c", f"{file.name}.sha256"], cwd=far, check=True, capture_output=True)
    merged = benchcheck(tmp_path / "a", "merge", "study", file, home=home_a)
    assert merged.splitlines()[-3:] == benchcheck(tmp_path / "a", "plan", "study", home=home_a).splitlines()[-3:]
    benchcheck(tmp_path / "a", "screen", "study", home=home_a)
    benchcheck(tmp_path / "a", "assemble", "study", home=home_a)

    one, two = pq.read_table(whole.pool_items), pq.read_table(a.pool_items)
    assert one.schema.equals(two.schema)
    for name in one.column_names:
        assert one.column(name).equals(two.column(name)), name
    assert whole.pool_items.read_bytes() == a.pool_items.read_bytes()  # times stand in the rows alone
    for step in whole.config.steps:
        rows = [pq_rows(study, step.number) for study in (whole, a)]
        assert rows[0] == rows[1]
        assert rows[0]


def pq_rows(study: Study, step: int) -> dict[str, Any]:
    """Every row of a step by its item, to the last bit of its floats, without what a clock decides."""
    found: dict[str, Any] = {}
    for path in study.step_files(step):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            assert row["item_id"] not in found
            found[row["item_id"]] = steady(row)
    return found


def test_nothing_of_the_environment_is_needed() -> None:
    """The test above hands no variable of this process on; it would say little where one of these was set for good."""
    assert not [name for name in os.environ if name.startswith("POOL_")]
