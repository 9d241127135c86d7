"""The local executor: one process or several, the same rows."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends import ModelSpec
from benchcheck.backends.gpus import visible_gpus
from benchcheck.errors import BackendError, UsageError
from benchcheck.inputs import Places
from benchcheck.places import Located
from benchcheck.run import local, processes
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Assignment, Local, do_share, flags_of, model_spec, share, subset, worker_command
from benchcheck.run.plan import Unit, load_pool, units_of
from benchcheck.screen.steps import LADDER
from benchcheck.settings import EngineSettings
from benchcheck.study import Study
from studies import FakeBackend, Heard, framed_study, make_items, make_study, rows_on_disk


def by_item(study: Study, step: int) -> dict[str, dict[str, Any]]:
    """A step's rows by item, without what a clock decides."""
    return {row["item_id"]: {**row, "at": "", "latency_s": 0} for row in rows_on_disk(study, step)}


def test_two_workers_give_the_same_rows_and_verdicts_as_one(tmp_path: Path) -> None:
    items = make_items(a=30, b=11)
    found = []
    for workers in (1, 2):
        study = framed_study(tmp_path / str(workers), items, protocol={"steps": [1, 5]})
        heard = Heard()
        state = screen(study, Local(study, Asked("scripted"), workers), heard)
        rows = [by_item(study, step) for step in (1, 5)]
        found.append((state.fold.state.tolist(), state.fold.left_at.tolist(), heard.begun, heard.items, rows))
    assert found[0] == found[1]
    assert [path.name for path in study.step_files(1)] == ["a.p0.jsonl", "a.p1.jsonl", "b.jsonl"]


def test_workers_share_a_pilot(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=30), protocol={"steps": [1]})
    screen(study, Local(study, Asked("scripted"), 2, pilot=6), Heard(), pilot=6)
    assert len({row["item_id"] for row in rows_on_disk(study, 1)}) == len(rows_on_disk(study, 1)) == 6


def test_what_a_worker_says_last_is_what_the_user_reads(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=4), large="scripted?skil=1")
    with pytest.raises(UsageError, match=r"^2 of 2 workers of step 1 ended early: model .*no option 'skil'"):
        screen(study, Local(study, Asked("scripted"), 2), Heard())


def fake_worker(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Make every worker process run another program."""
    real = subprocess.Popen

    def start(command: list[str], **settings: Any) -> Any:
        return real([sys.executable, "-c", program, *command], **settings)

    monkeypatch.setattr(processes.subprocess, "Popen", start)


def test_a_worker_that_dies_without_a_word_is_told(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(4)
    fake_worker(monkeypatch, "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(BackendError, match="2 of 2 workers of step 1 ended early: without a word"):
        screen(study, Local(study, Asked("scripted"), 2), Heard())


def test_what_a_library_prints_is_not_progress(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(4)
    fake_worker(monkeypatch, "print('Loading weights: 100%'); print(3, 1); print(); print('1 2 3'); print('-1 2')")
    told = []
    executor = Local(study, Asked("scripted"), 2)
    executor.run(
        LADDER[1], units_of(load_pool(study), 2), frozenset(["a_0", "a_3"]), lambda *counts: told.append(counts)
    )
    assert told == [(3, 1), (3, 1)]


def test_a_worker_s_long_last_words_do_not_block_it(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(4)
    fake_worker(monkeypatch, "import sys; print('x' * 99 + '\\n' * 99_999, 'last words', file=sys.stderr); sys.exit(1)")
    with pytest.raises(BackendError, match=r"ended early: last words$"):
        screen(study, Local(study, Asked("scripted"), 2), Heard())


def test_only_workers_with_something_to_do_are_started(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(6)
    started = []
    real = subprocess.Popen
    monkeypatch.setattr(
        processes.subprocess, "Popen", lambda command, **kw: started.append(command) or real(command, **kw)
    )
    Local(study, Asked("scripted"), 3).run(
        LADDER[1], units_of(load_pool(study), 3), frozenset(["a_5"]), lambda *_: None
    )
    (command,) = started
    assert command[1:4] == ["-m", "benchcheck", "work"]
    assert command[-2:] == ["--task", "2"]
    # The worker looks for itself what is left of its share.
    assert sorted(row["item_id"] for row in rows_on_disk(study, 1)) == ["a_4", "a_5"]


def test_an_interrupt_ends_all_workers(tiny_pool: Any) -> None:
    study = tiny_pool(40, large="scripted?slow=0.02")

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Local(study, Asked("scripted"), 2).run(
            LADDER[1], units_of(load_pool(study), 2), frozenset(f"a_{n}" for n in range(40)), interrupt
        )
    before = len(rows_on_disk(study, 1))
    assert 0 < before < 40
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert all("benchcheck" not in Path(f"/proc/{child}/cmdline").read_text() for child in children)
    assert len(rows_on_disk(study, 1)) == before


# One task's share.


def test_the_tasks_of_an_array_ask_everything_once(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=10, b=5, c=1))
    for task in range(4):
        do_share(study, Asked("scripted"), Assignment(1, task, 4), lambda *_: None)
    ids = sorted(row["item_id"] for row in rows_on_disk(study, 1))
    assert ids == sorted(item.item_id for item in make_items(a=10, b=5, c=1))
    do_share(study, Asked("scripted"), Assignment(1, 0, 1), lambda *_: pytest.fail("nothing is left"))


def test_a_task_asks_only_what_is_ready_and_in_the_pilot(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=10))
    do_share(study, Asked("scripted"), Assignment(2, 0, 1), lambda *_: None)
    assert rows_on_disk(study, 2) == []
    do_share(study, Asked("scripted"), Assignment(1, 0, 1, pilot=3), lambda *_: None)
    assert len(rows_on_disk(study, 1)) == 3


def test_a_task_without_a_share_has_nothing_to_do(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=2))
    do_share(study, Asked("scripted"), Assignment(1, 7, 9), lambda *_: pytest.fail("there are two items"))
    assert study.step_files(1) == []


def test_a_step_that_the_study_lacks_is_refused(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=2), protocol={"steps": [1, 4]})
    with pytest.raises(UsageError, match=r"--step 2 is not a step of this study\. Allowed: 1, 4"):
        do_share(study, Asked("scripted"), Assignment(2, 0, 1), lambda *_: None)


def test_a_share_is_what_is_left_without_empty_units() -> None:
    units = [Unit("a", 0, 2, ("1", "2")), Unit("a", 1, 2, ("3",)), Unit("b", 0, 1, ("4",))]
    assert share(units, frozenset(["2", "4"])) == [Unit("a", 0, 2, ("2",)), Unit("b", 0, 1, ("4",))]


# Models.


def test_models_are_fetched_into_the_hub_cache_of_the_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("HF_HOME", raising=False)
    study = make_study(tmp_path)
    assert model_spec(study.config, LADDER[1], study.places, Asked("scripted")).cache == ""
    places = Located(tmp_path, Places(hub="cache"))
    assert model_spec(study.config, LADDER[1], places, Asked("scripted")).cache == str(tmp_path / "cache")


def test_a_model_s_folder_may_lie_in_the_study(tmp_path: Path) -> None:
    study = make_study(tmp_path, large="models/large", protocol={"preset": "benchcheck-2026", "seed": 9})
    wanted = ModelSpec("models/large", "", "benchcheck-2026", 9)
    assert model_spec(study.config, LADDER[1], study.places, Asked("scripted")) == wanted
    (tmp_path / "models" / "large").mkdir(parents=True)
    inside = dataclasses.replace(wanted, model=str(tmp_path / "models" / "large"))
    assert model_spec(study.config, LADDER[1], study.places, Asked("scripted")) == inside
    assert model_spec(study.config, LADDER[3], study.places, Asked("scripted")).model == "scripted?skill=0.4"


def test_one_model_is_open_at_a_time(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[FakeBackend] = []
    monkeypatch.setattr(local, "open_backend", lambda *_: opened.append(FakeBackend()) or opened[-1])
    executor = Local(study, Asked("scripted"))
    assert executor.open(LADDER[1]) is executor.open(LADDER[6])
    assert executor.open(LADDER[3]) is not opened[0]
    assert [backend.closed for backend in opened] == [True, False]
    executor.close()
    executor.close()
    assert [backend.closed for backend in opened] == [True, True]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("2,5", ["2", "5"]),
        ("", []),
        ("-1", []),
        ("2,-1,3", ["2"]),
        ("GPU-a, MIG-b", ["GPU-a", "MIG-b"]),
        (None, ["0", "1", "2"]),
    ],
)
def test_gpus_are_those_that_are_named_or_all(tmp_path: Path, named: str | None, found: list[str]) -> None:
    for name in ("nvidia10", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia0x"):
        (tmp_path / name).touch()
    environment = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
    assert visible_gpus(environment, tmp_path) == found


def test_each_worker_has_a_gpu_of_its_own(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(6)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    fake_worker(monkeypatch, "import os; print(100, int(os.environ['CUDA_VISIBLE_DEVICES']), flush=True)")
    told: list[tuple[int, int]] = []
    todo = frozenset(item.item_id for item in study.items())
    Local(study, Asked("scripted"), 3).run(
        LADDER[1], units_of(load_pool(study), 3), todo, lambda *counts: told.append(counts)
    )
    assert sorted(told) == [(100, 4), (100, 4), (100, 7)]


# How many workers, and who asks whom.


@pytest.mark.parametrize(
    ("backend", "gpus", "settings", "workers"),
    [
        ("scripted", "0,1", {}, 1),
        ("transformers", "", {}, 1),
        ("transformers", "3", {}, 1),
        ("transformers", "0,1,2", {}, 3),
        ("vllm", "0,1,2", {"gpus": 2}, 2),
        ("server", "0,1,2", {}, 1),
        ("server", "", {"endpoints": ("http://a:1/v1",)}, 1),
        ("server", "", {"endpoints": ("http://a:1/v1", "http://b:1/v1")}, 1),
        ("server", "", {"endpoints": tuple(f"http://a:{port}/v1" for port in range(1, 10))}, 2),
    ],
)
def test_a_worker_a_gpu_and_one_for_eight_endpoints_when_nobody_says(
    study: Study, monkeypatch: pytest.MonkeyPatch, backend: str, gpus: str, settings: dict[str, Any], workers: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    asked = Asked(backend, EngineSettings(**settings))
    assert Local(study, asked, 0).workers == workers
    assert Local(study, asked, 5).workers == 5
    assert Local(study, asked).workers == 1


def test_more_gpus_than_there_are_is_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(
        UsageError, match=r"gpus = 3 \(engine\.gpus, --gpus, NGPU\) is not allowed. Allowed: 0 \(all\) to 2 here"
    ):
        Local(study, Asked("vllm", EngineSettings(gpus=3)), 0)


@given(st.lists(st.integers(), unique=True, max_size=12), st.integers(1, 12))
def test_endpoints_are_shared_out(numbers: list[int], workers: int) -> None:
    endpoints = [f"http://host{number}/v1" for number in numbers]
    parts = [subset(endpoints, number, workers) for number in range(workers)]
    assert {endpoint for part in parts for endpoint in part} == set(endpoints)
    if endpoints:
        assert all(parts)
    if 2 <= workers <= len(endpoints):
        assert sum(map(len, parts)) == len(endpoints)


def test_each_worker_asks_its_own_endpoints(tiny_pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    study = tiny_pool(6)
    ends = tuple(f"http://host:{port}/v1" for port in (1, 2, 3))
    commands: list[list[str]] = []
    monkeypatch.setattr(local, "run_workers", lambda _, workers, __: commands.extend(w.command for w in workers))
    Local(study, Asked("server", EngineSettings(endpoints=ends, in_flight=5)), 2).run(
        LADDER[1], units_of(load_pool(study), 2), frozenset(item.item_id for item in study.items()), lambda *_: None
    )
    asked = [[word for word in command if word.startswith(("endpoints=", "in_flight="))] for command in commands]
    assert asked == [
        ['endpoints=["http://host:1/v1", "http://host:3/v1"]', "in_flight=5"],
        ['endpoints=["http://host:2/v1"]', "in_flight=5"],
    ]


def test_a_worker_is_told_what_the_run_changed_back(tiny_pool: Any) -> None:
    """The file says 7, a flag of the run said 0, which is the default: the worker must not read 7."""
    in_file = EngineSettings(in_flight=7)
    assert flags_of(EngineSettings(), in_file) == ["--set", "in_flight=0"]
    assert flags_of(in_file, in_file) == ["--set", "in_flight=7"]
    assert flags_of(EngineSettings(), EngineSettings()) == []


def test_workers_of_a_share_ask_that_share_alone(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=20), protocol={"steps": [1]})
    command = worker_command(study, Asked("scripted"), Assignment(1, 1, 2, pilot=9, shard=(2, 5)))
    assert command[3:] == [
        *("work", str(study.root), "--step", "1", "--backend", "scripted", "--pilot", "9", "--shard", "2/5"),
        *("--tasks", "2", "--task", "1"),
    ]
    for task in (0, 1):
        do_share(study, Asked("scripted"), Assignment(1, task, 2, shard=(2, 5)), lambda *_: None)
    assert {row["item_id"] for row in rows_on_disk(study, 1)} == {
        item for unit in units_of(load_pool(study), 5)[2] for item in unit.item_ids
    }
