"""Slurm: a study is submitted, its arrays really run, and what is left over is asked by the same command again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from fake_slurm import FakeSlurm, options_of

from benchcheck.errors import RunError, UsageError
from benchcheck.run import slurm
from benchcheck.run.accounting import costs
from benchcheck.run.local import Asked
from benchcheck.run.plan import survey, totals
from benchcheck.run.slurm import Job, arrays, still_queued, submit
from benchcheck.screen.steps import LADDER
from benchcheck.settings import EngineSettings
from benchcheck.study import Study
from studies import framed_study, make_items, row_of, rows_on_disk

SLURM = """
[slurm]
tasks = {tasks}
at_once = 2
gpus_per_task = 0
partition = "cpu"
"""


def slurm_study(root: Path, items: int = 40, tasks: int = 3, **settings: str) -> Study:
    """A study of two benchmarks, whose folder has what a shell would stumble on."""
    study = framed_study(root / 'it\'s a "study" $HOME', make_items(a=items, b=items // 4), **settings)
    with (study.root / "benchcheck.toml").open("a") as file:
        file.write(SLURM.format(tasks=tasks))
    return Study.open(study.root)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    return FakeSlurm.on_path(tmp_path, monkeypatch)


def submit_all(study: Study) -> list[Job]:
    told: list[Job] = []
    taken = submit(study, arrays(study, Asked("scripted")), told.append)
    assert told == taken
    return taken


def test_every_step_is_an_array_behind_the_one_before(tmp_path: Path, cluster: FakeSlurm) -> None:
    study = slurm_study(tmp_path)
    taken = submit_all(study)
    assert [(job.job, job.step, job.tasks) for job in taken] == [(str(100 + k), k, 3) for k in LADDER]
    found = [options_of(job["text"]) for job in cluster.jobs()]
    assert [one.get("dependency", "") for one in found] == ["", *(f"afterany:{n}" for n in range(101, 106))]
    assert {one["array"] for one in found} == {"0-2%2"}
    assert [job["folder"] for job in cluster.jobs()] == [str(study.root)] * 6
    assert [json.loads(line)["job"] for line in study.slurm_jobs.read_text().splitlines()] == [
        str(n) for n in range(101, 107)
    ]


def test_only_steps_that_may_ask_something_are_submitted(tmp_path: Path, cluster: FakeSlurm) -> None:
    study = slurm_study(tmp_path)
    for item in study.items():
        study.append(1, item.bench, None, [row_of(study, item)])
    assert [array.step for array in arrays(study, Asked("scripted"))] == [2, 3, 4, 5, 6]
    assert [array.step for array in arrays(study, Asked("scripted"), only=4)] == [4]
    assert arrays(study, Asked("scripted"), only=1) == []
    assert submit(study, [], print) == []
    assert cluster.jobs() == []


def test_a_task_s_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = slurm_study(tmp_path)
    monkeypatch.chdir(study.root.parent)
    monkeypatch.setenv("POOL_FRAMES_DIR", "frames here")
    (study.root.parent / "frames here").symlink_to(study.frames)
    here = Study.open(study.root.name)
    (array, *_) = arrays(here, Asked("scripted", EngineSettings(gpus=2)), pilot=5, extra=["--launch"])
    head = [sys.executable, "-m", "benchcheck", "screen", str(study.root), "--shard", "auto", "--backend", "scripted"]
    assert array.command == [*head, "--set", "gpus=2", "--launch", "--pilot", "5", "--step", "1"]
    assert array.environment == {"POOL_FRAMES_DIR": str(study.root.parent / "frames here")}
    with pytest.raises(UsageError, match="backend 'x' does not exist"):
        arrays(here, Asked("x"))


# A whole study. The commands are real processes.


@pytest.mark.parametrize("steps", [[1], pytest.param([*LADDER], marks=pytest.mark.long)])
def test_a_study_runs_through_its_arrays(tmp_path: Path, cluster: FakeSlurm, steps: list[int]) -> None:
    study = slurm_study(tmp_path, protocol={"steps": steps})
    submit_all(study)
    codes = cluster.run()
    assert set(codes.values()) == {0}, [path.read_text()[-2000:] for path in study.logs.glob("slurm_*")]
    assert len(codes) == 3 * len(steps)
    assert cluster.most_at_once == 2
    assert totals(survey(study)).remaining == 0
    for step in steps:
        assert set(Counter(row["item_id"] for row in rows_on_disk(study, step)).values()) == {1}
    assert {path.name for path in study.logs.glob("slurm_s1_*")} == {f"slurm_s1_101_{task}.log" for task in range(3)}
    assert {(cost["step"], cost["run"]) for cost in costs(study)} == {(k, f"slurm-{100 + k}") for k in steps}
    assert still_queued(study) == []
    assert arrays(study, Asked("scripted")) == []


@pytest.mark.long
def test_a_task_whose_machine_is_lost_continues(tmp_path: Path, cluster: FakeSlurm) -> None:
    study = slurm_study(tmp_path, items=400, large="scripted?slow=0.004", protocol={"steps": [1, 4]})
    submit_all(study)
    killed: list[int] = []

    def kill(job: int, task: int) -> bool:
        mine = study.step_file(1, "a", 1)
        if killed or (job, task) != (101, 1) or not mine.exists() or not mine.stat().st_size:
            return False
        killed.append(len(mine.read_bytes().splitlines()))
        return True

    assert set(cluster.run(kill).values()) == {0}
    assert killed
    assert cluster.ran.count((101, 1)) == 2
    assert totals(survey(study)).remaining == 0
    for step in (1, 4):
        counts = Counter(row["item_id"] for row in rows_on_disk(study, step))
        assert set(counts.values()) == {1}
    assert sum(cost["items"] for cost in costs(study) if cost["step"] == 1) <= 500


@pytest.mark.long
def test_what_a_lost_task_left_does_not_keep_the_next_step_from_its_own(tmp_path: Path, cluster: FakeSlurm) -> None:
    """`afterany`: the next array begins; its leftovers are asked when the same command is given again."""
    study = slurm_study(tmp_path, protocol={"steps": [1, 4]})
    submit_all(study)
    first = cluster.jobs()[0]
    broken = first["text"].replace("exec ", '[ "$SLURM_ARRAY_TASK_ID" != 2 ] || kill -9 $$\nexec ')
    (cluster.state / "job_101.json").write_text(json.dumps({**first, "text": broken}))
    assert Counter(cluster.run().values()) == {0: 5, -9: 1}
    assert rows_on_disk(study, 4)
    assert totals(survey(study)).remaining > 0
    assert [job.step for job in submit_all(study)] == [1, 4]
    assert set(cluster.run().values()) == {0}
    assert totals(survey(study)).remaining == 0


# Refusals.


def test_more_tasks_than_an_array_may_have(tmp_path: Path, cluster: FakeSlurm) -> None:
    cluster.say("max_array_size", "4")
    study = slurm_study(tmp_path, tasks=5)
    with pytest.raises(UsageError) as refused:
        submit_all(study)
    assert str(refused.value) == (
        "[slurm] tasks = 5, but this cluster's MaxArraySize is 4. "
        "Cure: set [slurm] tasks to at most 4; a task may do many units"
    )
    assert cluster.jobs() == []
    cluster.say("max_array_size", "5")
    assert submit_all(study)


def test_a_cluster_that_does_not_say_how_large_an_array_may_be(tmp_path: Path, cluster: FakeSlurm) -> None:
    cluster.say("max_array_size", "many")
    with pytest.raises(RunError, match="names no MaxArraySize"):
        submit_all(slurm_study(tmp_path))


@pytest.mark.parametrize("program", ["scontrol", "sbatch"])
def test_a_machine_without_slurm(
    tmp_path: Path, cluster: FakeSlurm, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    (tmp_path / "slurm bin" / program).unlink()
    with pytest.raises(UsageError, match=rf"^{program} is not on PATH, .* Cure: run this on a login node"):
        submit_all(slurm_study(tmp_path))


def test_jobs_that_are_not_over_are_not_doubled(tmp_path: Path, cluster: FakeSlurm) -> None:
    study = slurm_study(tmp_path, protocol={"steps": [1, 4]})
    submit_all(study)
    with study.slurm_jobs.open("a") as file:
        file.write('{"torn\n[]\n')
    with pytest.raises(UsageError, match=r"jobs 101 102 of this study are still queued.*scancel 101 102$"):
        submit_all(study)
    assert len(cluster.jobs()) == 2


def test_a_refusal_in_the_middle_says_what_goes_on(tmp_path: Path, cluster: FakeSlurm) -> None:
    cluster.say("room", "2")
    study = slurm_study(tmp_path)
    with pytest.raises(RunError) as refused:
        submit_all(study)
    text = str(refused.value)
    assert text.startswith("sbatch ended with exit code 1: sbatch: error: Batch job submission failed: Job violates")
    assert "2 of 6 arrays were submitted and go on: 101 102." in text
    assert text.endswith("first scancel 101 102")
    assert refused.value.exit_code == 1
    cluster.say("room", "0")
    (cluster.state / "job_101.json").unlink()
    (cluster.state / "job_102.json").unlink()
    with pytest.raises(RunError, match=r"^sbatch ended with exit code 1: [^.]*$"):
        submit_all(study)


@pytest.mark.parametrize("answer", ["Submitted batch job {}", "", "{} 7", "{};", "-1"])
def test_an_answer_that_is_no_job_is_not_believed(tmp_path: Path, cluster: FakeSlurm, answer: str) -> None:
    cluster.say("answer", answer)
    with pytest.raises(RunError, match=r"sbatch answered '.*' instead of a job's number"):
        submit_all(slurm_study(tmp_path))


def test_a_job_of_a_named_cluster(tmp_path: Path, cluster: FakeSlurm) -> None:
    cluster.say("answer", "{};east-1")
    taken = submit_all(slurm_study(tmp_path))
    assert (taken[0].job, taken[0].number) == ("101;east-1", "101")
    assert options_of(cluster.jobs()[1]["text"])["dependency"] == "afterany:101"


def test_a_controller_that_does_not_answer(tmp_path: Path, cluster: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("scontrol", 120)

    monkeypatch.setattr(slurm.subprocess, "run", late)
    with pytest.raises(RunError, match="scontrol did not answer within 120 s"):
        submit_all(slurm_study(tmp_path))


# The command.


def command(*arguments: str) -> None:
    from benchcheck.cli import app

    app(["screen", *arguments], standalone_mode=False)


def test_plan_only_prints_the_scripts_and_submits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")  # on a machine without Slurm
    study = slurm_study(tmp_path, protocol={"steps": [1, 4]})
    command(str(study.root), "--backend", "scripted", "--executor", "slurm", "--plan-only", "--pilot", "3")
    first, second = capsys.readouterr().out.split("# step ")[1:]
    assert first.startswith(f"1: sbatch --parsable, in {study.root}\n#!/bin/bash\n#SBATCH --job-name=benchcheck_s1\n")
    assert "--dependency" not in first
    assert "#SBATCH --dependency=afterany:JOB_OF_STEP_1\n" in second
    assert "--shard auto --backend scripted --pilot 3 --step 4\n" in second
    assert not study.slurm_jobs.exists()


def test_the_command_submits_and_says_what_is_left(
    tmp_path: Path, cluster: FakeSlurm, capsys: pytest.CaptureFixture[str]
) -> None:
    study = slurm_study(tmp_path, protocol={"steps": [1, 4]})
    command(str(study.root), "--engine", "scripted", "--executor", "slurm", "--workers", "2")
    assert capsys.readouterr().out.splitlines() == [
        *("step 1: job 101, 3 tasks", "step 4: job 102, 3 tasks"),
        *("WAITING_TOTAL=0", "FAILED_TOTAL=0", "REMAINING_TOTAL=100"),
    ]
    assert "--workers 2 --step 1\n" in cluster.jobs()[0]["text"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--executor", "slurm", "--shard", "0/2"], "are for runs on this machine"),
        (["--executor", "slurm", "--retry-failed"], "are for runs on this machine"),
        (["--executor", "slrum"], "slrum does not exist. Allowed: local, slurm, ray"),
        (["--executor", "ray", "--launch"], "--launch starts servers on this machine"),
        (["--executor", "ray", "--workers", "2"], "set [ray] actors"),
    ],
)
def test_flags_that_do_not_go_with_an_executor(tmp_path: Path, flags: list[str], told: str) -> None:
    study = slurm_study(tmp_path)
    with pytest.raises(UsageError) as refused:
        command(str(study.root), "--backend", "scripted", *flags)
    assert told in str(refused.value)


@pytest.mark.long
def test_slurm_s_notice_before_the_time_limit_reaches_the_command(tmp_path: Path, cluster: FakeSlurm) -> None:
    """`--signal=B:TERM@60` goes to the batch shell, which is the command by then: what was read is written."""
    study = slurm_study(tmp_path, items=400, tasks=1, large="scripted?slow=0.01", protocol={"steps": [1]})
    submit_all(study)
    (job,) = cluster.jobs()
    process = cluster._start(job, options_of(job["text"]), 0, 0)
    try:
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size for path in study.step_files(1)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
    log = (study.logs / "slurm_s1_101_0.log").read_text()
    assert log.splitlines()[-1] == "benchcheck: stopped. What was written stays; the same command continues."
    before = rows_on_disk(study, 1)
    assert 0 < len(before) < 500
    assert sum(cost["items"] for cost in costs(study)) == len(before)
