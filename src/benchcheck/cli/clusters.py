"""What `screen --executor slurm` does: it submits, and shows what it submits."""

from typing import TYPE_CHECKING

from benchcheck.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchcheck.run.driver import Executor
    from benchcheck.run.local import Asked
    from benchcheck.study import Study

__all__ = ["on_ray", "to_slurm"]


def on_ray(study: "Study", asked: "Asked", launch: bool, workers: int) -> "Executor":
    """Return the Ray executor of the study's `[ray]` table.

    Raises:
        UsageError: a flag that is for this machine alone, or no such cluster.
        MissingExtraError: Ray is not installed.
    """
    from benchcheck.run.ray import RayExecutor

    if launch:
        raise UsageError("--launch starts servers on this machine. Cure: with --executor ray use --engine vllm")
    if workers:
        raise UsageError(f"--workers {workers} is for this machine. Cure: set [ray] actors in benchcheck.toml")
    return RayExecutor(study, asked, study.config.ray)


def to_slurm(study: "Study", asked: "Asked", only: int, pilot: int, flags: "Sequence[str]", plan_only: bool) -> None:
    """Submit one array per step that still asks something, or print their scripts.

    Raises:
        UsageError: Slurm is not here, or would not take so many tasks.
        RunError: Slurm refused an array.
    """
    from benchcheck.run.batch_script import Array, batch_text
    from benchcheck.run.slurm import Job, arrays, submit

    wanted = arrays(study, asked, pilot, only, flags)
    if not plan_only:

        def told(job: Job) -> None:
            print(f"step {job.step}: job {job.number}, {job.tasks} tasks", flush=True)

        submit(study, wanted, told)
        return
    for before, array in zip([None, *wanted], wanted, strict=False):
        after = f"JOB_OF_STEP_{before.step}" if before else ""
        print(f"# step {array.step}: sbatch --parsable, in {study.root.absolute()}")
        print(batch_text(study.config.slurm, Array(array.step, array.command, after, array.environment)))
