"""A visit: which models a study or a user names, which stacks read them, and a diagnosis of each."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchcheck.backends import SHAPED, open_backend
from benchcheck.config import Config, Model
from benchcheck.doctor.exam import Exam
from benchcheck.doctor.examine import Case, compare_with, examine
from benchcheck.doctor.findings import Diagnosis, Finding, Verdict
from benchcheck.doctor.kit import acceptance_kit, kit_size
from benchcheck.doctor.speed import Demand
from benchcheck.doctor.stack import Stack
from benchcheck.doctor.tail import Tail, open_tail
from benchcheck.doctor.world import made_up_world
from benchcheck.errors import BackendError, UsageError
from benchcheck.places import Located
from benchcheck.run.local import Asked, model_spec
from benchcheck.run.outlook import Assumed, outlook
from benchcheck.run.plan import survey
from benchcheck.screen.steps import Sight, Step
from benchcheck.study import Study

__all__ = ["KITS", "Wish", "config_of", "demand", "name_of", "visit", "visit_study"]

KITS = ("auto", "8b", "2b", "world")
"""`auto` asks embedded models about their made-up world, and others the acceptance kit, by the size in their name."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the doctor is asked for."""

    asked: Asked
    against: tuple[Asked, ...] = ()
    kit: str = "auto"
    quick: bool = False
    role: str = ""
    """Of a study's models, only that of this role."""
    hear: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        """Refuse a kit that there is not."""
        if self.kit not in KITS:
            raise UsageError(f"--kit {self.kit} does not exist. Allowed: {', '.join(KITS)}")


def config_of(model: str, revision: str) -> Config:
    """Return the config of a study that would ask this model everything."""
    named = Model(model=model, revision=revision)
    return Config(study_version=1, models={"8b": named, "2b": named})


def visit_study(study: Study, wish: Wish) -> Iterator[Diagnosis]:
    """Examine the models of a study, each as soon as it is asked for.

    Raises:
        UsageError: the backend or a checkpoint was refused, or no step has that role.
    """
    config = study.config
    if wish.role not in ("", *(step.role for step in config.steps)):
        allowed = ", ".join(sorted({step.role for step in config.steps}))
        raise UsageError(f"--role {wish.role} has no step in this study. Allowed: {allowed}")
    roles: dict[tuple[str, str], Step] = {}
    for step in config.steps:
        named = config.models[step.role]
        if wish.role in ("", step.role):
            roles.setdefault((named.model, named.revision), step)
    left = demand(study)
    for step in roles.values():
        mine = {kind: count for (role, kind), count in left.items() if role == step.role}
        yield visit(config, step, str(study.root), wish, mine)


def demand(study: Study) -> dict[tuple[str, str], Demand]:
    """Return what a study is expected to ask still, by role and kind; nothing where it has no pool yet."""
    if not study.pool_file.exists():
        return {}
    left: dict[tuple[str, str], Demand] = {}
    for estimate in outlook(study, survey(study), Assumed()).steps:
        step, load = estimate.coming.step, estimate.load
        key = (step.role, _kind(step))
        left[key] = left.get(key, Demand(0.0, 0.0)) + Demand(load.prompts, load.tokens)
    return {key: asked for key, asked in left.items() if asked.prompts}


def _kind(step: Step) -> str:
    """The kind of cost of a step's prompts."""
    if step.sight is Sight.SINGLE_FRAME:
        return "one frame"
    return "frames" if step.sight.needs_frames else "text"


def visit(config: Config, step: Step, root: str, wish: Wish, left: Mapping[str, Demand] | None = None) -> Diagnosis:
    """Examine the model of a step's role.

    Args:
        config: the study's config, or `config_of`.
        step: any step of the role.
        root: the study's folder, that relative model folders are relative to.
        wish: what is asked for.
        left: what the study is expected to ask still of this model, by kind.

    Raises:
        UsageError: a backend or the checkpoint was refused.
    """
    spec = model_spec(config, step, Located(Path(root), config.places), wish.asked)
    tail = open_tail(spec.model, spec.revision, cache=spec.cache)
    with tempfile.TemporaryDirectory(prefix="benchcheck-doctor-") as folder:
        exam = _exam(Path(folder), config, spec.model, wish.kit)
        stack = _stack(config, step, root, wish.asked)
        case = Case(stack, exam, config, tail, left or {}, wish.hear, wish.quick)
        try:
            findings = _examined(case)
            # Two engines seldom fit in one GPU's memory.
            stack.close()
            for asked in wish.against:
                findings.append(_compared(case, _stack(config, step, root, asked), name_of(asked)))
        finally:
            stack.close()
            if isinstance(tail, Tail):
                tail.close()
    about = {
        "role": step.role,
        "model": config.models[step.role].model,
        "kit": exam.name,
        "backend": wish.asked.backend,
    }
    if stack.engine is not None:
        engine = stack.engine
        about |= {"engine": engine.name, "version": engine.version, "dtype": engine.dtype, "device": engine.device}
        about["revision"] = engine.revision
    return Diagnosis(about, tuple(findings))


def _exam(folder: Path, config: Config, model: str, kit: str) -> Exam:
    frames = config.frames
    if kit == "world" or (kit == "auto" and model.startswith("embedded:")):
        return made_up_world(folder, frames.count)
    return acceptance_kit(folder, frames.count, frames.long_side, kit_size(model) if kit == "auto" else kit)


def _stack(config: Config, step: Step, root: str, asked: Asked) -> Stack:
    spec = model_spec(config, step, Located(Path(root), config.places), asked)
    return Stack(lambda images: open_backend(asked.backend, replace(spec, images=images)), asked.backend in SHAPED)


def _examined(case: Case) -> list[Finding]:
    """Examine; an engine that stops answering is a finding too."""
    try:
        return examine(case)
    except BackendError as reason:
        return [_stopped("the engine keeps answering", reason)]


def _compared(case: Case, other: Stack, name: str) -> Finding:
    """Compare with another stack; one that stops answering is a finding too."""
    try:
        return compare_with(case, other, name)
    except BackendError as reason:
        return _stopped(f"agrees with {name}", reason)
    finally:
        other.close()


def _stopped(name: str, reason: BackendError) -> Finding:
    return Finding(
        name=name,
        verdict=Verdict.FAIL,
        measured=" ".join(str(reason).split()),
        wanted="an outcome for every prompt",
        cure="the message says what ended it",
    )


def name_of(asked: Asked) -> str:
    """Name a stack in a line."""
    places: Sequence[str] = asked.settings.endpoints if asked.backend == "server" else ()
    more = [*places, *([asked.settings.quantization] if asked.settings.quantization else [])]
    return f"{asked.backend}{' ' if more else ''}{' '.join(more)}"
