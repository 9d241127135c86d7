"""A Slurm of one machine: `sbatch`, `scontrol` and `squeue` on PATH, and a clock that really runs the arrays' tasks."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SBATCH = """
import json, os, sys
from pathlib import Path
state = Path({state!r})
jobs = sorted(state.glob("job_*.json"))
if sys.argv[1:] != ["--parsable"]:
    sys.exit("sbatch: error: unknown use")
if len(jobs) >= int((state / "room").read_text()):
    sys.exit("sbatch: error: Batch job submission failed: Job violates accounting policy")
number = 101 + len(jobs)
text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
job = {{"number": number, "text": text, "folder": os.getcwd(), "over": False}}
(state / f"job_{{number}}.json").write_text(json.dumps(job))
print((state / "answer").read_text().format(number))
"""
SCONTROL = """
import sys
from pathlib import Path
assert sys.argv[1:] == ["show", "config"]
print("Configuration data as of 2026-11-30T12:00:00\\nMaxArraySize            = "
      + (Path({state!r}) / "max_array_size").read_text() + "\\nMaxJobCount             = 10000")
"""
SQUEUE = """
import json, sys
from pathlib import Path
assert sys.argv[1:] == ["--me", "--noheader", "--format=%F"]
for path in sorted(Path({state!r}).glob("job_*.json")):
    job = json.loads(path.read_text())
    if not job["over"]:
        print(job["number"])
"""


@dataclass
class FakeSlurm:
    """The cluster: what was submitted, and what ran."""

    state: Path
    most_at_once: int = 0
    ran: list[tuple[int, int]] = field(default_factory=list)
    """Job and task of every start, in order."""

    @classmethod
    def on_path(cls, folder: Path, monkeypatch: pytest.MonkeyPatch, max_array_size: int = 1001) -> "FakeSlurm":
        """Put the three programs on PATH."""
        programs, state = folder / "slurm bin", folder / "slurm state"
        programs.mkdir()
        state.mkdir()
        for name, body in (("sbatch", SBATCH), ("scontrol", SCONTROL), ("squeue", SQUEUE)):
            program = programs / name
            program.write_text(f"#!{sys.executable}\n{body.format(state=str(state))}")
            program.chmod(0o755)
        for name, value in (("max_array_size", str(max_array_size)), ("room", "99"), ("answer", "{}")):
            (state / name).write_text(value)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        return cls(state)

    def say(self, name: str, value: str) -> None:
        """Change what the cluster says: `max_array_size`, `room` (jobs it takes) or `answer` (what sbatch prints)."""
        (self.state / name).write_text(value)

    def jobs(self) -> list[dict[str, Any]]:
        """Everything that was submitted."""
        return [json.loads(path.read_text()) for path in sorted(self.state.glob("job_*.json"))]

    def run(self, kill: Callable[[int, int], bool] = lambda *_: False) -> dict[tuple[int, int], int]:
        """Run every array that is not over, in the order of their dependencies; returns the exit codes.

        `kill(job, task)` is asked again and again while a task runs: True takes its machine away. It is then put into
        the queue again, as `--requeue` asks.
        """
        codes: dict[tuple[int, int], int] = {}
        over = {job["number"] for job in self.jobs() if job["over"]}
        for job in [job for job in self.jobs() if not job["over"]]:
            asked = options_of(job["text"])
            if "dependency" in asked:
                kind, _, after = asked["dependency"].partition(":")
                assert kind == "afterany"
                assert int(after) in over
            codes |= self._array(job, asked, kill)
            over.add(job["number"])
            (self.state / f"job_{job['number']}.json").write_text(json.dumps({**job, "over": True}))
        return codes

    def _array(self, job: dict[str, Any], asked: dict[str, str], kill: Callable[[int, int], bool]) -> dict[Any, int]:
        """Run one array, so many tasks at a time as it allows."""
        found = re.fullmatch(r"0-(\d+)(?:%(\d+))?", asked["array"])
        assert found is not None
        last = int(found[1])
        waiting, running = list(range(last + 1)), dict[int, "subprocess.Popen[bytes]"]()
        codes: dict[tuple[int, int], int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < int(found[2] or last + 1):
                    task = waiting.pop(0)
                    running[task] = self._start(job, asked, task, last)
                self.most_at_once = max(self.most_at_once, len(running))
                for task, process in list(running.items()):
                    if kill(job["number"], task):
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                        assert "requeue" in asked
                        waiting.append(task)
                        del running[task]
                    elif process.poll() is not None:
                        codes[job["number"], task] = running.pop(task).returncode
                time.sleep(0.005)
        finally:
            for process in running.values():
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return codes

    def _start(self, job: dict[str, Any], asked: dict[str, str], task: int, last: int) -> "subprocess.Popen[bytes]":
        """Start one task as Slurm does: the script in the job's folder, its output to the named file."""
        self.ran.append((job["number"], task))
        number = str(job["number"])
        script = self.state / f"script_{number}_{task}"
        script.write_bytes(job["text"].encode("utf-8", "surrogateescape"))
        script.chmod(0o755)
        array = {"ID": task, "MIN": 0, "MAX": last, "COUNT": last + 1}
        own = {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in array.items()}
        environment = {**os.environ, **own, "SLURM_ARRAY_JOB_ID": number, "SLURM_JOB_ID": number}
        name = asked["output"].replace("%A", number).replace("%a", str(task))
        assert asked["open-mode"] == "append"
        with (Path(job["folder"]) / name).open("ab") as log:
            return subprocess.Popen(
                [script], stdout=log, stderr=log, cwd=job["folder"], env=environment, start_new_session=True
            )


def options_of(text: str) -> dict[str, str]:
    """Read the options of a batch script as sbatch does: the lines behind `#SBATCH` above the first command."""
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash"
    found = {}
    for line in lines[1:]:
        if not line.startswith("#"):
            break
        option = re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line)
        assert option is not None, line
        assert option[1] not in found
        found[option[1]] = option[2] or ""
    return found
