"""The batch script: no value leaves its line or its quotes."""

import subprocess
import sys
from pathlib import Path

import pytest
from fake_slurm import options_of
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.config import from_table
from benchcheck.errors import ConfigError
from benchcheck.run.batch_script import Array, batch_text, quoted
from benchcheck.settings import SLURM_OURS, SlurmSettings

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
EVERYTHING = SlurmSettings(
    partition="gpu,long",
    account="lab@site",
    qos="high",
    tasks=12,
    at_once=4,
    gpus_per_task=2,
    cpus_per_task=16,
    memory="200G",
    time="2-00:00:00",
    constraint="[a100*2]&nvlink",
    setup=("source .venv/bin/activate",),
    options=("--exclude=node[7-9]", "--exclusive"),
)


def test_the_script_of_a_step() -> None:
    array = Array(3, ["python", "-m", "benchcheck", "screen", "/a study"], "41", {"POOL_BASE": "/my pool"})
    assert batch_text(EVERYTHING, array) == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=benchcheck_s3\n"
        "#SBATCH --array=0-11%4\n"
        "#SBATCH --output=logs/slurm_s3_%A_%a.log\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --requeue\n"
        "#SBATCH --signal=B:TERM@60\n"
        "#SBATCH --dependency=afterany:41\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task=16\n"
        "#SBATCH --gres=gpu:2\n"
        "#SBATCH --mem=200G\n"
        "#SBATCH --time=2-00:00:00\n"
        "#SBATCH --partition=gpu,long\n"
        "#SBATCH --account=lab@site\n"
        "#SBATCH --qos=high\n"
        "#SBATCH --constraint=[a100*2]&nvlink\n"
        "#SBATCH --exclude=node[7-9]\n"
        "#SBATCH --exclusive\n"
        "\n"
        "set -e\n"
        'export BENCHCHECK_RUN="slurm-${SLURM_ARRAY_JOB_ID}"\n'
        "export POOL_BASE='/my pool'\n"
        "eval 'source .venv/bin/activate'\n"
        "exec python -m benchcheck screen '/a study'\n"
    )


def test_what_is_not_asked_for_has_no_line() -> None:
    text = batch_text(SlurmSettings(gpus_per_task=0, memory="", time=""), Array(1, ["x"]))
    assert set(options_of(text)) == {
        *("job-name", "array", "output", "open-mode", "requeue", "signal", "ntasks", "cpus-per-task")
    }
    assert options_of(text)["array"] == "0-7"


@pytest.mark.parametrize("array", [Array(1, ["x"], "4:5"), Array(1, ["x"], "1\n2"), Array(1, ["x"], "", {"A B": "1"})])
def test_a_job_or_variable_that_is_none_is_a_bug(array: Array) -> None:
    with pytest.raises(ValueError, match=r"is no job|is no variable"):
        batch_text(SlurmSettings(), array)


PRINTS = (
    "import os, sys; sys.stdout.buffer.write(ascii([os.environb[b'GIVEN'], *map(os.fsencode, sys.argv[1:])]).encode())"
)


@settings(max_examples=60)
@given(words=st.lists(TEXT, max_size=4), value=TEXT, hints=st.lists(TEXT, max_size=2))
def test_the_command_gets_every_word_as_it_was(words: list[str], value: str, hints: list[str]) -> None:
    """Bash itself says so, with settings that hold whatever can be typed, open quotes and backslashes included."""
    harmless = tuple(f": {quoted(hint)}" for hint in hints)
    setup = tuple(line for line in harmless if line.isprintable())
    array = Array(1, [sys.executable, "-c", PRINTS, *words], environment={"GIVEN": value})
    text = batch_text(SlurmSettings(setup=setup), array)
    head = text.splitlines()[: text.splitlines().index("")] if "" in text.splitlines() else []
    assert all(line.startswith(("#!/bin/bash", "#SBATCH --")) for line in head)
    # C.UTF-8, so that bash does not read bytes as letters of another alphabet.
    found = subprocess.run(
        ["bash", "-s"], input=text.encode(), capture_output=True, check=False, env={"LC_ALL": "C.UTF-8"}
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.decode() == ascii([value.encode(), *(word.encode() for word in words)])


@given(TEXT)
def test_a_quoted_word_is_one_line(text: str) -> None:
    assert len(quoted(text).split("\n")) == 1
    assert not any(ord(letter) < 32 for letter in quoted(text))


@pytest.mark.parametrize("line", ["echo 'open", "echo x \\", "cat <<END", "if true; then"])
def test_an_unfinished_line_of_setup_swallows_nothing(tmp_path: Path, line: str) -> None:
    """It fails, or is harmless, alone: the lines below are never a part of it."""
    text = batch_text(SlurmSettings(setup=(line,)), Array(1, ["echo", "done"]))
    found = subprocess.run(["bash", "-s"], input=text, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.stdout.splitlines()[-1:] == ["done"] or found.returncode != 0
    assert "exec" not in found.stdout


# Settings.


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("partition", "gpu long", "letters, digits and"),
        ("partition", "gpu\n#SBATCH --x", "letters, digits and"),
        ("account", "a;b", "letters, digits and"),
        ("qos", "-x", "letters, digits and"),
        ("constraint", "a b", "features joined by & | ,"),
        ("memory", "64GB", "such as 64G"),
        ("memory", "0", "such as 64G"),
        ("time", "12h", "such as 12:00:00"),
        ("time", "1:2:3:4", "such as 12:00:00"),
        ("tasks", 0, "1 to 1000000"),
        ("at_once", -1, "0 (all)"),
        ("gpus_per_task", -1, "0 to 64"),
        ("cpus_per_task", 0, "1 to 1024"),
        ("setup", [""], "one line each"),
        ("setup", ["a\nb"], "one line each"),
        ("setup", ["a\u2028b"], "one line each"),
        ("options", ["exclude=node7"], "options such as --exclude=node7"),
        ("options", ["--comment=a b"], "without blanks"),
        ("options", ["--comment='a'"], "without blanks"),
        ("options", ["--exclude=a\n"], "without blanks"),
        ("options", ["--array=0-3"], "have keys or are ours"),
        ("options", ["--arr=0-3"], "have keys or are ours"),
        ("options", ["--output=x"], "have keys or are ours"),
        ("options", ["--dependency=afterok:1"], "have keys or are ours"),
        ("options", ["--no-requeue"], "have keys or are ours"),
    ],
)
def test_a_value_that_cannot_stand_in_a_script_is_refused(key: str, value: object, allowed: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_table(SlurmSettings, {key: value}, "benchcheck.toml: slurm")
    assert str(refused.value).startswith(f"benchcheck.toml: slurm: {key}")
    assert allowed in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("time", ["90", "90:00", "12:00:00", "1-0", "1-12:30", "2-00:00:00", ""])
def test_slurm_s_spellings_of_a_time(time: str) -> None:
    assert SlurmSettings(time=time).time == time


@given(
    partition=st.text(max_size=8), memory=st.text(max_size=5), option=st.text(max_size=12), line=st.text(max_size=12)
)
def test_settings_are_refused_or_stay_on_their_lines(partition: str, memory: str, option: str, line: str) -> None:
    try:
        chosen = SlurmSettings(partition=partition, memory=memory, options=(f"--{option}",), setup=(line,))
    except ValueError:
        return
    text = batch_text(chosen, Array(1, ["x"]))
    found = options_of(text)
    assert found.get("partition", "") == partition
    assert found.get("mem", "") == memory
    assert len(text.splitlines()) == len(found) + 6
    name = option.partition("=")[0]
    assert found.pop(name) == option.partition("=")[2]
    assert set(found) <= set(SLURM_OURS)
