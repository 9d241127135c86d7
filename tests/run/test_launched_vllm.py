"""Real vLLM on the CPU, started and ended by the run itself, through all six steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from served import free_port
from studies import rows_on_disk

pytestmark = [pytest.mark.long, pytest.mark.model]


@pytest.fixture(scope="module")
def vllm(repository: Path) -> Path:
    """The `vllm` command of the venv that `scripts/vllm-venv` makes."""
    made = subprocess.run([repository / "scripts" / "vllm-venv"], capture_output=True, text=True, check=False)
    if made.returncode == 2:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stdout + made.stderr
    return repository / ".venv-vllm" / "bin" / "vllm"


def benchcheck(folder: Path, *words: str) -> str:
    """Run a command in a folder and return what it printed."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchcheck", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_study_is_screened_through_servers_that_it_starts(tmp_path: Path, vllm: Path) -> None:
    """Six starts of vLLM: the demo's models change with every step. About six minutes on two cores."""
    benchcheck(tmp_path, "controls", "make", "controls", "--per-class", "1")
    source = ("--file", "controls/items.jsonl", "--bench", "mine", "--videos", "controls")
    for name in ("served", "here"):
        benchcheck(tmp_path, "init", name, "--embedded", *source)
        benchcheck(tmp_path, "pool", "build", name)
        benchcheck(tmp_path, "frames", "extract", name)
    port = str(free_port())
    out = benchcheck(
        tmp_path, "screen", "served", "--engine", "server", "--launch", "--vllm", str(vllm), "--port", port
    )
    assert out.splitlines()[-3:] == ["WAITING_TOTAL=0", "FAILED_TOTAL=0", "REMAINING_TOTAL=0"]
    benchcheck(tmp_path, "screen", "here", "--engine", "transformers")

    served, here = Study.open(tmp_path / "served"), Study.open(tmp_path / "here")
    for step in LADDER:
        ours = {row["item_id"]: row for row in rows_on_disk(here, step)}
        rows = rows_on_disk(served, step)
        assert rows, f"step {step} asked nothing"
        for row in rows:
            assert row["status"] == "ok"
            assert row["engine"]["name"] == "server"
            assert row["engine"]["version"].startswith("vllm 0.")
            assert row["missing"] == [[]] * row["n_perm"], "every letter is read by its token ids"
            if row["item_id"] in ours:  # an item near the threshold may leave in another step
                pairs = zip(row["logprobs"], ours[row["item_id"]]["logprobs"], strict=True)
                apart = [abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]
                assert max(apart) < 0.1, "bf16 against float32: 0.09 was seen"
        assert "head_dtype" in (served.logs / f"vllm_s{step}_gpu0.log").read_text().splitlines()[0]
    costs = [json.loads(line) for line in served.accounting_file.read_text().splitlines()]
    # Two questions on one video share its frames. On the CPU a cache block has 128 tokens, more than a text here.
    assert sum(cost["cached_tokens"] for cost in costs if cost["step"] == 3) > 0
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"--port {port}" not in left
