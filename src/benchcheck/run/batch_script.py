"""The text of a Slurm batch script: one array that does one step of a study. Pure.

Every value stands on its own line and in its own quotes, whatever it holds.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchcheck.settings import SlurmSettings

__all__ = ["NOTICE_SECONDS", "Array", "batch_text", "quoted"]

NOTICE_SECONDS = 60
"""SIGTERM comes this long before the time limit: what was read is written within a second or two."""


@dataclass(frozen=True, slots=True)
class Array:
    """One step's array of tasks."""

    step: int
    command: Sequence[str]
    """What every task runs; it finds its number in SLURM_ARRAY_*."""
    after: str = ""
    """The job that ends first: a number, or a word where the text is only shown."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the command needs, whatever the site passes on."""


def quoted(text: str) -> str:
    """Return a text as one word of bash, on one line even where the text has several."""
    if not any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(f"\\x{ord(c):02x}" if ord(c) < 32 or ord(c) == 127 else c for c in escaped) + "'"


def batch_text(settings: SlurmSettings, array: Array) -> str:
    """Return the batch script of one step.

    The working directory is the study's folder, so that no path stands behind `#SBATCH`, where Slurm's own quoting
    rules. `afterany`, since a task that was killed must not keep from the next step what is ready for it: what is
    left over, the same command asks for later. `exec` makes the command the process that gets Slurm's SIGTERM.

    Raises:
        ValueError: a step, job or variable that is no such thing.
    """
    if not re.fullmatch(r"\w*", array.after, re.ASCII):
        raise ValueError(f"{array.after!r} is no job")
    at_once = f"%{settings.at_once}" if settings.at_once else ""
    lines = [
        f"--job-name=benchcheck_s{array.step:d}",
        f"--array=0-{settings.tasks - 1}{at_once}",
        f"--output=logs/slurm_s{array.step:d}_%A_%a.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:TERM@{NOTICE_SECONDS}",
        *([f"--dependency=afterany:{array.after}"] if array.after else []),
        "--ntasks=1",
        f"--cpus-per-task={settings.cpus_per_task}",
        *([f"--gres=gpu:{settings.gpus_per_task}"] if settings.gpus_per_task else []),
        *_given("mem", settings.memory),
        *_given("time", settings.time),
        *_given("partition", settings.partition),
        *_given("account", settings.account),
        *_given("qos", settings.qos),
        *_given("constraint", settings.constraint),
        *settings.options,
    ]
    exports = []
    for name, value in array.environment.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is no variable")
        exports.append(f"export {name}={quoted(value)}")
    body = [
        "set -e",
        'export BENCHCHECK_RUN="slurm-${SLURM_ARRAY_JOB_ID}"',
        *exports,
        # eval keeps an open quote or a trailing backslash in its own line.
        *(f"eval {quoted(line)}" for line in settings.setup),
        f"exec {' '.join(map(quoted, array.command))}",
    ]
    return "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), "", *body, ""])


def _given(option: str, value: str) -> list[str]:
    """An option that has a value."""
    return [f"--{option}={value}"] if value else []
