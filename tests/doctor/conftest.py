"""An exam of the made-up world, drawn once, small; and how it is asked of a stand-in."""

from collections.abc import Callable
from typing import Any

import pytest

from benchcheck.config import Config, Frames, Model
from benchcheck.doctor.exam import Exam
from benchcheck.doctor.examine import Case, examine
from benchcheck.doctor.findings import Finding
from benchcheck.doctor.stack import Stack
from benchcheck.doctor.world import made_up_world

from .fakes import Oracle

COUNT = 6


@pytest.fixture(scope="session")
def exam(tmp_path_factory: pytest.TempPathFactory) -> Exam:
    return made_up_world(tmp_path_factory.mktemp("exam"), COUNT)


@pytest.fixture(scope="session")
def config() -> Config:
    model = Model(model="oracle")
    return Config(study_version=1, frames=Frames(count=COUNT, single=2), models={"8b": model, "2b": model})


@pytest.fixture
def case_of(exam: Exam, config: Config) -> Callable[..., Case]:
    """Makes a case of a stand-in; a millisecond passes whenever the clock is looked at."""

    def make(backend: Any, **settings: Any) -> Case:
        seconds = settings.pop("seconds", [0.0])

        def clock() -> float:
            seconds[0] += 0.001
            return float(seconds[0])

        stack = Stack(lambda images: backend, clock=clock)
        return Case(stack, exam, config, settings.pop("tail", "no tokenizer at hand (paper)"), **settings)

    return make


@pytest.fixture
def examined(case_of: Callable[..., Case], exam: Exam) -> Callable[..., dict[str, Finding]]:
    """Examines a stand-in that is broken in some way; returns the findings by name."""

    def run(seconds: list[float] | None = None, **broken: Any) -> dict[str, Finding]:
        settings = {"seconds": seconds} if seconds is not None else {}
        return {finding.name: finding for finding in examine(case_of(Oracle(exam, **broken), **settings))}

    return run
