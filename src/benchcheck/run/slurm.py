"""Slurm: one array per step, each waiting for the one before; every task is `benchcheck screen … --shard auto`.

Submitting needs no GPU and no model. What a task could not do, the same command asks for again.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchcheck.backends import check_backend
from benchcheck.errors import RunError, UsageError
from benchcheck.files import append_rows
from benchcheck.places import environment_of
from benchcheck.run.batch_script import Array, batch_text
from benchcheck.run.local import Asked, flags_of
from benchcheck.run.plan import pilot_flags, survey
from benchcheck.run.work import now
from benchcheck.study import Study

__all__ = ["Job", "arrays", "still_queued", "submit"]

_PATIENCE_S = 120
"""A controller under load answers late; after this it does not answer."""


@dataclass(frozen=True, slots=True)
class Job:
    """An array that Slurm has taken."""

    job: str
    """Its number; with `;` and the cluster where there are several."""
    step: int
    tasks: int

    @property
    def number(self) -> str:
        """The number alone."""
        return self.job.partition(";")[0]


def arrays(study: Study, asked: Asked, pilot: int = 0, only: int = 0, extra: Sequence[str] = ()) -> list[Array]:
    """Return the arrays that a study needs now, without their dependencies: steps that may still ask something.

    Args:
        study: the study.
        asked: what reads the prompts, and how.
        pilot: items of each benchmark, 0 is all.
        only: this step alone, 0 is all.
        extra: further flags of every task, such as `--launch`.

    Raises:
        UsageError: there is no such backend.
        StudyError: there is no pool yet, or rows cannot be read.
    """
    check_backend(asked.backend)
    state = survey(study)
    wanted = np.ones(len(state.pool), dtype=np.bool_)
    if pilot:
        wanted = pilot_flags(state.pool, pilot, study.config.protocol.seed)
    command = [sys.executable, "-m", "benchcheck", "screen", str(study.root.absolute()), "--shard", "auto"]
    command += [
        "--backend",
        asked.backend,
        *flags_of(asked.settings, study.config.engine),
        *extra,
        *(["--pilot", str(pilot)] * bool(pilot)),
    ]
    folders = environment_of(os.environ)
    return [
        Array(here.step.number, [*command, "--step", str(here.step.number)], environment=folders)
        for here in state.fold.steps
        if only in (0, here.step.number) and np.any(here.todo & wanted)
    ]


def submit(study: Study, wanted: Sequence[Array], told: Callable[[Job], None]) -> list[Job]:
    """Give a study's arrays to Slurm, each behind the one before; `told` hears of each.

    Raises:
        UsageError: Slurm is not here, more tasks than it takes, or earlier jobs of the study are not over.
        RunError: Slurm refused an array; the message names those that it took.
    """
    settings = study.config.slurm
    _check_size(settings.tasks)
    if jobs := still_queued(study):
        numbers = " ".join(jobs)
        raise UsageError(
            f"{study.root}: jobs {numbers} of this study are still queued or running. "
            f"Cure: wait for them (squeue -j {','.join(jobs)}), or scancel {numbers}"
        )
    taken: list[Job] = []
    try:
        for folder in (study.logs, study.root / "logs"):  # Slurm makes no folder for its logs
            folder.mkdir(parents=True, exist_ok=True)
        for array in wanted:
            after = taken[-1].number if taken else ""
            text = batch_text(settings, Array(array.step, array.command, after, array.environment))
            answer = _ask(["sbatch", "--parsable"], text, study.root)
            if not re.fullmatch(r"[0-9]+(;[A-Za-z0-9_.-]+)?", answer.strip()):
                said = " ".join(answer.split())[:200]
                raise RunError(f"sbatch answered {said!r} instead of a job's number. See squeue whether it took one")
            taken.append(Job(answer.strip(), array.step, settings.tasks))
            append_rows(study.slurm_jobs, [{"job": taken[-1].job, "step": array.step, "tasks": settings.tasks,
                                            "at": now()}])  # fmt: skip
            told(taken[-1])
    except RunError as reason:
        if not taken:
            raise
        numbers = " ".join(job.number for job in taken)
        raise RunError(
            f"{reason}. {len(taken)} of {len(wanted)} arrays were submitted and go on: {numbers}. "
            f"Cure: run the same command again when they are over, or first scancel {numbers}"
        ) from reason
    return taken


def still_queued(study: Study) -> list[str]:
    """Return the jobs of this study that Slurm has not ended, by their numbers.

    Raises:
        RunError: squeue does not answer.
        UsageError: it is not here.
    """
    ours = dict.fromkeys(job.number for job in _recorded(study.slurm_jobs))
    if not ours:
        return []
    queued = set(_ask(["squeue", "--me", "--noheader", "--format=%F"], "", study.root).split())
    return [number for number in ours if number in queued]


def _recorded(path: Path) -> Iterator[Job]:
    """Read the jobs that were submitted; a damaged line is none."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            yield Job(str(row["job"]), int(row["step"]), int(row["tasks"]))
        except (ValueError, KeyError, TypeError):
            continue


def _check_size(tasks: int) -> None:
    """Refuse more tasks than an array may have here."""
    found = re.search(r"^MaxArraySize\s*=\s*([0-9]+)\s*$", _ask(["scontrol", "show", "config"]), re.MULTILINE)
    if found is None:
        raise RunError("scontrol show config names no MaxArraySize. Cure: ask whoever runs the cluster")
    if tasks > int(found[1]):
        cure = f"Cure: set [slurm] tasks to at most {found[1]}; a task may do many units"
        raise UsageError(f"[slurm] tasks = {tasks}, but this cluster's MaxArraySize is {found[1]}. {cure}")


def _ask(command: Sequence[str], text: str = "", folder: Path | None = None) -> str:
    """Run one of Slurm's commands and return what it printed."""
    program = shutil.which(command[0])
    if program is None:
        raise UsageError(
            f"{command[0]} is not on PATH, so this machine cannot submit to Slurm. "
            "Cure: run this on a login node of the cluster; --plan-only shows the scripts anywhere"
        )
    data = text.encode("utf-8", "surrogateescape")
    arguments = [program, *command[1:]]
    try:
        found = subprocess.run(arguments, input=data, capture_output=True, cwd=folder, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        raise RunError(f"{command[0]} did not answer within {_PATIENCE_S} s") from None
    if found.returncode:
        words = " ".join(found.stderr.decode(errors="replace").split()) or "without a word"
        raise RunError(f"{command[0]} ended with exit code {found.returncode}: {words.rstrip('.')}")
    return found.stdout.decode(errors="replace")
