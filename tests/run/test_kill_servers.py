"""kill -9 of a worker, of the server, of the driver, again and again: the next run finishes as if nothing had been."""

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchcheck.backends.letters import SPECIMEN
from benchcheck.run.plan import survey, totals
from benchcheck.run.work import FLUSH_ITEMS
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from served import FAKE, alive, all_gone, fakes, free_port, kill_left, read_pids, served_study
from studies import make_items, rows_on_disk

ITEMS = make_items(a=300, b=100)
ROUNDS = 20
IN_FLIGHT = 4
VOLATILE = ("at", "latency_s", "engine")

pytestmark = pytest.mark.long


def start(study: Study, port: int, script: str) -> "subprocess.Popen[bytes]":
    """Start `benchcheck screen --launch`; what it says goes to a file, so that no pipe keeps it."""
    line = [sys.executable, "-m", "benchcheck", "screen", str(study.root), "--engine", "server", "--launch"]
    line += ["--vllm", FAKE, "--port", str(port), "--in-flight", str(IN_FLIGHT)]
    environment = os.environ | {"FAKE_VLLM": f"engine {script}"}
    with (study.root / "said").open("ab") as said:
        return subprocess.Popen(line, stdout=said, stderr=said, env=environment, start_new_session=True)


def said(study: Study) -> str:
    return (study.root / "said").read_text()


def children(pid: int) -> list[int]:
    """The processes that a process started, by any of its threads."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def runs(pid: int, words: str) -> bool:
    """Whether a process was started with these words."""
    with contextlib.suppress(OSError):
        return words in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return False


def victim(driver: int, kind: str) -> int:
    """The process of a kind in a run, 0 where there is none now."""
    if kind == "driver":
        return driver
    words = "benchcheck work" if kind == "worker" else "keeper.py"
    ours = [pid for pid in children(driver) if runs(pid, words)]
    if kind == "server":
        ours = [pid for keeper in ours for pid in children(keeper)]
    return next((pid for pid in ours if alive(pid)), 0)


def kill_at(process: "subprocess.Popen[bytes]", kind: str, moment: float) -> bool:
    """Kill a process of this kind at a moment after the start, or as soon as there is one; False if there was none."""
    until = time.monotonic() + moment
    while process.poll() is None:
        pid = victim(process.pid, kind)
        if pid and time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            return True
        time.sleep(0.005)
    return False


def on_disk(study: Study) -> dict[Path, bytes]:
    """Every file of rows with the whole lines in it."""
    files = [path for step in LADDER for path in study.step_files(step)]
    return {path: data[: data.rfind(b"\n") + 1] for path in files for data in [path.read_bytes()]}


def verdicts(study: Study) -> list[tuple[str, int, int]]:
    """State and step of every item."""
    state = survey(study)
    ids = state.pool.item_id.to_pylist()
    return list(zip(ids, state.fold.state.tolist(), state.fold.left_at.tolist(), strict=True))


def answers(study: Study) -> dict[tuple[int, str], dict[str, object]]:
    """Every row by step and item, without what a clock or a port decides; rows of one item say the same."""
    found: dict[tuple[int, str], dict[str, object]] = {}
    for step in LADDER:
        for row in rows_on_disk(study, step):
            steady = {key: value for key, value in row.items() if key not in VOLATILE}
            assert found.setdefault((step, row["item_id"]), steady) == steady
    return found


@pytest.fixture
def pids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of the fake servers' processes; none may be left when the test ends."""
    monkeypatch.setenv("FAKE_VLLM_PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("FAKE_VLLM_ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    yield tmp_path / "pids"
    kill_left(tmp_path / "pids")


def finish(study: Study, port: int) -> None:
    """Run to the end."""
    process = start(study, port, "")
    try:
        assert process.wait(timeout=300) == 0, said(study)
    finally:
        process.kill()
        process.wait()


def rounds(study: Study, port: int, seed: int, pids: Path) -> tuple[Counter[str], int]:
    """Kill in `ROUNDS` rounds; returns what was killed, and how often a process that reads or writes was.

    A keeper that was killed leaves its server to the run, which is not killed before it took it down: with both gone in
    the same second, nobody is left who knows of the server's engine (docs/launch.md).
    """
    rng, killed, interrupted = random.Random(seed), Counter[str](), 0
    kinds = [("worker", "server", "driver", "worker", "keeper", "driver")[number % 6] for number in range(ROUNDS)]
    for kind in kinds:
        process = start(study, port, "slow=0.04")
        try:
            hit = kill_at(process, kind, rng.uniform(0.5, 6.0))
            before = on_disk(study)
            killed[kind] += hit
            if kind == "keeper" and hit:
                assert all_gone(fakes(read_pids(pids))), "the run takes down what a killed keeper leaves"
            with contextlib.suppress(subprocess.TimeoutExpired):  # a run goes on with another server
                process.wait(rng.uniform(0.5, 3.0))
            interrupted += hit + (process.poll() is None)
        finally:
            process.kill()
            process.wait()
        # The next run starts while this one's processes are still going.
        for path, data in before.items():
            assert path.read_bytes().startswith(data), f"{path.name} lost rows when a {kind} was killed"
    return killed, interrupted


def wait_until_quiet(study: Study, pids: Path) -> None:
    """Nothing of the runs is left."""
    assert all_gone(fakes(read_pids(pids)))
    end = time.monotonic() + 20
    while processes_of(study) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(study) == []


def processes_of(study: Study) -> list[str]:
    """Processes that work on the study, as the system lists them."""
    return [path.name for path in Path("/proc").glob("[0-9]*") if runs(int(path.name), str(study.root))]


def test_killed_twenty_times_in_a_row(tmp_path: Path, pids: Path) -> None:
    port = free_port()
    undisturbed = served_study(tmp_path / "undisturbed", ITEMS)
    finish(undisturbed, port)
    (tmp_path / "asked").unlink()
    # The same models at the same paths: a row carries the model's name, not where it lies.
    study = served_study(tmp_path / "study", ITEMS)
    killed, interrupted = rounds(study, port, 11, pids)
    assert min(killed[kind] for kind in ("worker", "server", "driver", "keeper")) >= 2, killed
    assert 0 < len(rows_on_disk(study, 1)) < len(ITEMS) + FLUSH_ITEMS * interrupted
    finish(study, port)
    wait_until_quiet(study, pids)

    assert verdicts(study) == verdicts(undisturbed)
    assert answers(study) == answers(undisturbed), "one answer an item, the one that a run left alone has"
    state = survey(study)
    assert totals(state).remaining == 0
    assert sum(report.unreadable for report in state.reports.values()) <= interrupted
    assert not any(report.errors.any() for report in state.reports.values()), "a server that is gone is no item's error"
    asked = Counter((tmp_path / "asked").read_text().split())
    del asked[hashlib.sha256(SPECIMEN.encode()).hexdigest()]
    again = sum(asked.values()) - len(asked)
    orders = study.config.protocol.orders
    assert again <= interrupted * (FLUSH_ITEMS * orders + 2 * IN_FLIGHT), "a killed worker asks little again"
    print(f"{sum(killed.values())} kills {dict(killed)}, {interrupted} interruptions, {again} prompts asked again")
