"""The doctor on a real vLLM engine, compared with transformers; the environment is that of scripts/vllm-venv."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.model]


def test_vllm_and_transformers_agree_in_the_doctors_eyes(repository: Path, tmp_path: Path) -> None:
    made = subprocess.run([repository / "scripts" / "vllm-venv"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    command = [repository / ".venv-vllm" / "bin" / "python", "-m", "benchcheck", "doctor", "--model", "embedded:small"]
    command += ["--backend", "vllm", "--against", "transformers", "--json", tmp_path / "found.json"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = process.communicate(timeout=900)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever is left of the engine's processes
    assert process.returncode == 0, out + err
    (found,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["models"]
    checks = {check["check"]: check for check in found["checks"]}
    assert found["about"]["engine"] == "vllm"
    agrees = checks["agrees with transformers"]
    assert agrees["verdict"] == "pass"
    assert agrees["figures"]["most"] < 0.1
    assert agrees["figures"]["flips"] == 0
    for name in ("the prefill is continued", "32 frames come to their tokens", "every frame is seen"):
        assert checks[name]["verdict"] == "pass"
    shared = checks["a video's frames are computed once"]["figures"]
    assert shared["share"] >= 0.9
