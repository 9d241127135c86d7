"""Fixtures of all tests."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from benchcheck import cli
from benchcheck.places import VARIABLES
from benchcheck.settings import ENVIRONMENT
from benchcheck.study import Study
from studies import Heard, Run, framed_study, make_items, make_study

# Speed is never a timed unit test: on a busy machine an example may take as long as it takes.
settings.register_profile("benchcheck", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("benchcheck")

# A shell that starts the tests in the background lets Ctrl-C be ignored, by all they start as well; some press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real annotation files and golden cases, beside the repository."""
    folder = REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside the repository: its golden cases and real annotation files are not here")
    return folder


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's study lies where the test put it, whatever the shell says."""
    names = [*VARIABLES.values(), "BENCHCHECK_RUN", *ENVIRONMENT]
    for name in [*names, *(f"SLURM_ARRAY_TASK_{part}" for part in ("ID", "MIN", "MAX", "COUNT"))]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A study with scripted models and no pool."""
    return make_study(tmp_path / "study")


@pytest.fixture
def tiny_pool(tmp_path: Path) -> Callable[..., Study]:
    """Makes a study with a pool of `n` items of benchmark `a`, frames included."""
    return lambda n=12, **settings: framed_study(tmp_path / "study", make_items(a=n), **settings)


@pytest.fixture
def heard() -> Heard:
    """A Reporter that keeps what it was told."""
    return Heard()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; only root may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small file system here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        code = stop.value.code
        return (0 if code is None else int(code)), out, err

    return call
