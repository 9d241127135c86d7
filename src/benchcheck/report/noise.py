"""The measured noise of a study, for the terminal and the page, and in the lines of the summary."""

from benchcheck.run.plan import Pool, load_pool
from benchcheck.run.reread import StepNoise, step_noise
from benchcheck.study import Study

__all__ = ["noise_found", "noise_lines"]


def noise_found(study: Study, pool: Pool | None = None) -> list[StepNoise]:
    """Return the noise of each step of which a sample was read again; none where `benchcheck reread` never ran.

    Raises:
        StudyError: a file of rows cannot be read.
    """
    steps = [step for step in study.config.steps if study.reread_folder(step.number).is_dir()]
    pool = (pool or load_pool(study)) if steps else None
    return [found for step in steps if pool is not None and (found := step_noise(study, pool, step))]


def noise_lines(study: Study) -> list[str]:
    """Return a line per step of which a sample was read again.

    Raises:
        StudyError: a file of rows cannot be read.
    """
    return [_line(found) for found in noise_found(study)]


def _line(found: StepNoise) -> str:
    """What was measured, and what follows for the step's verdicts."""
    noise, step = found.noise, found.step
    engines = f" (by {' and by '.join(found.engines)})" if len(found.engines) > 1 else ""
    letters = noise.letters
    moved = f"{letters.mean:.2g} nats on average, 95 % within {letters.p95:.2g}, {letters.most:.2g} at most"
    return (
        f"noise of step {step.number} {step.name}: {noise.items:,} items read again{engines}, letters moved by "
        f"{moved}, mean margins by {noise.margins.most:.2g} at most, {noise.flips:,} verdicts "
        f"differed; {found.near:,} of {found.answered:,} answered items lie within {noise.band:.2g} nats of the "
        f"threshold, {found.unsure:,} verdicts could change (up to {noise.beyond.high:.1%} of items may move further)"
    )
