"""Ray: a real cluster of two local nodes, one of which is lost in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_slurm import FakeSlurm

from benchcheck.errors import BackendError, MissingExtraError, StudyError, UsageError
from benchcheck.run import ray as run_ray
from benchcheck.run.accounting import costs
from benchcheck.run.actors import EngineActor, Heard, Order, digest_of
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import Unit, load_pool, survey, totals
from benchcheck.run.ray import UNITS_PER_ACTOR, RayExecutor
from benchcheck.run.work import FLUSH_ITEMS
from benchcheck.screen.steps import LADDER
from benchcheck.settings import RaySettings
from benchcheck.study import Study
from studies import Heard as Reported
from studies import framed_study, make_items, rows_on_disk

pytest.importorskip("ray", reason="needs the ray extra")

ON_CPUS = RaySettings(gpus_per_actor=0, cpus_per_actor=1)


@dataclass
class TwoNodes:
    """A head without room for actors, and nodes that have room for one each."""

    cluster: Any
    nodes: list[Any]

    def add(self) -> Any:
        """Add a node."""
        self.nodes.append(self.cluster.add_node(num_cpus=1, object_store_memory=80 * 1024 * 1024))
        self.cluster.wait_for_nodes()
        return self.nodes[-1]

    def lose(self, index: int = -1) -> None:
        """Take a node away as a machine goes: raylet and workers at once."""
        self.cluster.remove_node(self.nodes.pop(index), allow_graceful=False)


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoNodes]:
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 80 * 1024 * 1024}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = TwoNodes(cluster, [])
        nodes.add()
        nodes.add()
        yield nodes
    finally:
        ray.shutdown()
        cluster.shutdown()


def on(cluster: TwoNodes, study: Study, **settings: Any) -> RayExecutor:
    """An executor on a test cluster."""
    chosen = {"gpus_per_actor": 0.0, "address": cluster.cluster.address} | settings
    return RayExecutor(study, Asked("scripted"), RaySettings(**chosen))


def answered(study: Study, step: int) -> Counter[str]:
    """How many rows each item has in a step."""
    return Counter(row["item_id"] for row in rows_on_disk(study, step))


@pytest.mark.long
def test_a_study_completes_after_a_node_is_lost_in_the_middle(tmp_path: Path, two_nodes: TwoNodes) -> None:
    study = framed_study(tmp_path, make_items(a=700, b=100), large="scripted?slow=0.002", small="scripted?skill=0.4")
    executor = on(two_nodes, study)
    assert executor.workers == 2 * UNITS_PER_ACTOR
    heard, lost = Reported(), []

    def advance(items: int, errors: int) -> None:
        Reported.advance(heard, items, errors)
        if heard.items > 200 and not lost:
            lost.append(len(answered(study, 1)))
            two_nodes.lose()

    heard.advance = advance  # type: ignore[method-assign]
    try:
        screen(study, executor, heard)
    finally:
        executor.close()
    assert 200 < lost[0] < 800
    assert totals(survey(study)).remaining == 0
    doubled = sum(count - 1 for count in answered(study, 1).values())
    assert doubled <= FLUSH_ITEMS  # what the lost node had in flight
    assert len(answered(study, 1)) == 800
    for step in (2, 3, 4, 5, 6):
        assert set(answered(study, step).values()) == {1}
    assert [summary.step.number for summary in heard.ended] == list(LADDER)
    assert len({cost["run"] for cost in costs(study)}) == 1


@pytest.mark.long
def test_local_slurm_and_ray_work_on_one_study_in_turn(
    tmp_path: Path, two_nodes: TwoNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchcheck.run.slurm import arrays, submit

    undisturbed = framed_study(tmp_path / "undisturbed", make_items(a=90, b=20))
    screen(undisturbed, Local(undisturbed, Asked("scripted"), 1), Reported())
    study = framed_study(tmp_path / "study", make_items(a=90, b=20))
    with (study.root / "benchcheck.toml").open("a") as file:
        file.write("[slurm]\ntasks = 2\ngpus_per_task = 0\n")
    study = Study.open(study.root)
    screen(study, Local(study, Asked("scripted"), 1, pilot=7), Reported(), pilot=7)
    slurm = FakeSlurm.on_path(tmp_path, monkeypatch)
    submit(study, arrays(study, Asked("scripted"), pilot=40), lambda _: None)
    assert set(slurm.run().values()) == {0}
    executor = on(two_nodes, study)
    try:
        screen(study, executor, Reported())
    finally:
        executor.close()
    assert survey(study).fold.state.tolist() == survey(undisturbed).fold.state.tolist()
    for step in LADDER:
        assert answered(study, step) == answered(undisturbed, step)


@pytest.mark.long
def test_units_that_lose_every_actor_are_given_up(tmp_path: Path, two_nodes: TwoNodes) -> None:
    study = framed_study(tmp_path, make_items(a=400), large="scripted?slow=0.01", protocol={"steps": [1]})
    executor = on(two_nodes, study, retries=0)
    heard = Reported()
    heard.advance = lambda *_: two_nodes.lose() if two_nodes.nodes else None  # type: ignore[method-assign]
    try:
        with pytest.raises(BackendError, match=r"step 1, part \d of a: its Ray actors were lost 1 times"):
            screen(study, executor, heard)
    finally:
        executor.close()
    before = answered(study, 1)
    assert 0 < len(before) < 400
    assert set(before.values()) == {1}


@pytest.mark.long
def test_a_cluster_that_loses_all_nodes_is_told(tmp_path: Path, two_nodes: TwoNodes) -> None:
    study = framed_study(tmp_path, make_items(a=400), large="scripted?slow=0.01", protocol={"steps": [1]})
    executor = on(two_nodes, study, retries=50)
    heard = Reported()
    heard.advance = lambda *_: [two_nodes.lose() for _ in two_nodes.nodes[:]]  # type: ignore[method-assign]
    try:
        with pytest.raises(BackendError, match="no node left with 1 CPUs and 0 GPUs"):
            screen(study, executor, heard)
    finally:
        executor.close()


@pytest.mark.long
def test_what_a_checkpoint_is_refused_for_reaches_the_driver(tmp_path: Path, two_nodes: TwoNodes) -> None:
    study = framed_study(tmp_path, make_items(a=4), large="scripted?skil=1")
    executor = on(two_nodes, study)
    try:
        with pytest.raises(UsageError, match=r"^node .*: model .*no option 'skil'"):
            screen(study, executor, Reported())
    finally:
        executor.close()


@pytest.mark.long
def test_a_cluster_without_room(tmp_path: Path, two_nodes: TwoNodes) -> None:
    study = framed_study(tmp_path, make_items(a=4))
    with pytest.raises(UsageError, match=r"has no node with 1 CPUs and 1 GPUs for an actor\. Cure: set \[ray\]"):
        on(two_nodes, study, gpus_per_actor=1.0)
    with pytest.raises(UsageError, match=r"has no node with 2 CPUs"):
        on(two_nodes, study, cpus_per_actor=2.0)


RUN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.default_int_handler)
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked
from benchcheck.run.ray import RayExecutor
from benchcheck.settings import RaySettings
from benchcheck.study import Study
from studies import Heard
study = Study.open(sys.argv[1])
executor = RayExecutor(study, Asked("scripted"), RaySettings(gpus_per_actor=0, actors=1))
try:
    screen(study, executor, Heard())
except KeyboardInterrupt:
    print("stopped", flush=True)
finally:
    executor.close()
"""


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_actors_and_a_cluster_of_our_own_down(tmp_path: Path, sent: signal.Signals) -> None:
    study = framed_study(tmp_path, make_items(a=2000), large="scripted?slow=0.01", protocol={"steps": [1]})
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "BENCHCHECK_RAY_TEST": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(study.root)], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size for path in study.step_files(1)):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(sent)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert out == "stopped\n"
    assert set(answered(study, 1).values()) == {1}
    deadline = time.monotonic() + 20
    while left := of_this_test(tmp_path):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def of_this_test(mark: Path) -> list[str]:
    """Commands of processes that inherited this test's mark: raylet, gcs_server, actors."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"BENCHCHECK_RAY_TEST={mark}".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes()[:100].decode(errors="replace"))
        except OSError:
            continue
    return found


# What needs no cluster.


def test_sigterm_while_ray_starts_ends_as_ctrl_c_does() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def starting() -> None:
        with run_ray._own_signals():
            signal.signal(signal.SIGTERM, lambda number, _: sys.exit(number))  # as Ray does
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        starting()
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_ray_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    study = framed_study(tmp_path, make_items(a=4))
    with pytest.raises(MissingExtraError, match=r"^the ray executor needs .* Cure: pip install 'benchcheck\[ray\]'$"):
        RayExecutor(study, Asked("scripted"), ON_CPUS)
    with pytest.raises(UsageError, match="backend 'x' does not exist"):
        RayExecutor(study, Asked("x"), ON_CPUS)


@pytest.mark.long
def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=4))
    with pytest.raises(UsageError, match=r"^no Ray cluster answers at auto: .*\. Cure: start one with `ray start"):
        RayExecutor(study, Asked("scripted"), RaySettings(address="auto"))


class Ear:
    """Heard, called as a Ray actor's handle is."""

    def __init__(self) -> None:
        self.heard = Heard()
        self.add = self

    def remote(self, *counts: int) -> bool:
        return self.heard.add(*counts)


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[EngineActor, Study, Ear]:
    """An actor in this process."""
    import ray

    monkeypatch.setattr(ray, "get", lambda value: value)
    study, ear = framed_study(tmp_path, make_items(a=200)), Ear()
    return EngineActor(3, str(study.root), Asked("scripted"), {}, ear), study, ear


def order_of(study: Study, places: list[int], **changes: Any) -> Order:
    import numpy as np

    pool = load_pool(study)
    ids = [pool.item_id[place].as_py() for place in places]
    values = {"step": 1, "bench": "a", "part": 0, "parts": 2, "digest": digest_of(ids)} | changes
    return Order(places=np.array(places, dtype=np.int32).tobytes(), **values)


def test_an_actor_does_what_it_is_ordered(actor: tuple[EngineActor, Study, Ear]) -> None:
    engine, study, ear = actor
    assert engine.ready() == ""
    assert engine.do(order_of(study, [5, 0, 7])) is None
    assert sorted(answered(study, 1)) == ["a_0", "a_5", "a_7"]
    assert [path.name for path in study.step_files(1)] == ["a.p0.jsonl"]
    assert ear.heard.take() == (3, 0)
    assert ear.heard.take() == (0, 0)
    engine.close()


@pytest.mark.parametrize("everyone", [True, False])
def test_an_actor_that_is_to_stop_ends_after_its_write(actor: tuple[EngineActor, Study, Ear], everyone: bool) -> None:
    engine, study, ear = actor
    if everyone:
        ear.heard.stop_all()
    else:
        ear.heard.stop(3)
    assert engine.do(order_of(study, list(range(200)))) is None
    assert len(answered(study, 1)) == FLUSH_ITEMS
    assert [cost["items"] for cost in costs(study)] == [FLUSH_ITEMS]


def test_an_actor_says_in_one_line_what_it_lacks(actor: tuple[EngineActor, Study, Ear], tmp_path: Path) -> None:
    engine, study, _ = actor
    blind = EngineActor(0, str(tmp_path / "nowhere"), Asked("scripted"), {}, None)
    assert "does not see the study as the driver does" in blind.ready()
    assert "under the same path" in blind.ready()
    kind, text = engine.do(order_of(study, [1], version="0.0")) or ("", "")
    assert kind == "StudyError"
    assert "0.0 drives. Cure: install the same" in text
    for other in (order_of(study, [1], digest="x"), Order(1, "a", 0, 1, b"\xff\xff\xff\x7f", "x")):
        kind, text = engine.do(other) or ("", "")
        assert kind == "StudyError"
        assert "is another pool here than the driver's" in text
    kind, text = engine.do(order_of(study, [1], step=9)) or ("", "")
    assert (kind, "--step 9 is not a step" in text) == ("UsageError", True)


def test_a_pool_that_was_built_anew_is_read_again(actor: tuple[EngineActor, Study, Ear]) -> None:
    engine, study, _ = actor
    assert engine.do(order_of(study, [0])) is None
    study.write_pool(make_items(a=300))
    assert engine.do(order_of(study, [299])) is None
    assert sorted(answered(study, 1)) == ["a_0", "a_299"]


def test_a_pool_that_lost_items_during_the_run_ends_it(tmp_path: Path) -> None:
    executor = object.__new__(RayExecutor)
    executor.study = framed_study(tmp_path, make_items(a=4))
    executor._pool, executor._idle = load_pool(executor.study), [0]
    with pytest.raises(StudyError, match=r"was built anew during the run\. Cure: run the same command again"):
        executor._give(LADDER[1], Unit("a", 0, 1, ("a_0", "a_9")))


def test_a_node_that_does_not_see_the_study_ends_the_run(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=4))
    executor = object.__new__(RayExecutor)
    executor.study, executor._starting, executor._idle = study, {"ref": 0}, []
    executor._ray = type("Fake", (), {"get": staticmethod(lambda _: "node x does not see"), "exceptions": run_ray})
    run_ray.RayError = RuntimeError  # type: ignore[attr-defined]
    try:
        with pytest.raises(StudyError, match="node x does not see"):
            executor._welcome("ref")
    finally:
        del run_ray.RayError  # type: ignore[attr-defined]
