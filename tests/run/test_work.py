"""One unit of work: every item gets its row, whatever the backend does."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends import ModelSpec, Outcome
from benchcheck.backends.scripted import ScriptedBackend
from benchcheck.errors import BackendError, StudyError
from benchcheck.pool.items import Item
from benchcheck.run import work
from benchcheck.run.accounting import costs
from benchcheck.run.plan import Unit
from benchcheck.run.work import do_unit, shown_frames
from benchcheck.screen.prompts import Prompt, frame_order
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from studies import (
    GRID,
    FakeBackend,
    failing,
    framed_study,
    give_frames,
    make_item,
    make_items,
    reading,
    rows_on_disk,
)


@pytest.fixture
def pool() -> list[Item]:
    return make_items(a=9)


@pytest.fixture
def study(tmp_path: Path, pool: list[Item]) -> Study:
    return framed_study(tmp_path / "study", pool)


class Steps(list[tuple[int, int]]):
    """What a Progress was told."""

    def __call__(self, items: int, errors: int) -> None:
        self.append((items, errors))


def by_item(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by their item, without the time."""
    return {row["item_id"]: {**row, "at": ""} for row in rows}


def unit_of(pool: Sequence[Item], part: int = 0, parts: int = 1) -> Unit:
    return Unit("a", part, parts, tuple(item.item_id for item in pool))


def do(study: Study, backend: Any, pool: Sequence[Item], step: int = 1) -> Steps:
    told = Steps()
    do_unit(study, LADDER[step], unit_of(pool), backend, told)
    return told


def test_every_item_gets_one_row_in_the_benchmark_s_file(study: Study, pool: list[Item]) -> None:
    backend = ScriptedBackend(ModelSpec("scripted", "rev", seed=42))
    for step in LADDER:
        assert do(study, backend, pool, step) == [(9, 0)]
        rows = rows_on_disk(study, step)
        assert sorted(row["item_id"] for row in rows) == [item.item_id for item in pool]
        assert {len(row["orders"]) for row in rows} == {4 if step in (1, 4) else 1}
        assert {row["revision"] for row in rows} == {"rev"}
        assert {row["engine"]["name"] for row in rows} == {"scripted"}
        assert [path.name for path in study.step_files(step)] == ["a.jsonl"]


def test_a_part_of_a_benchmark_has_its_own_file(study: Study, pool: list[Item]) -> None:
    do_unit(study, LADDER[1], unit_of(pool[:2], 3, 5), FakeBackend(), Steps())
    assert [path.name for path in study.step_files(1)] == ["a.p3.jsonl"]
    assert len(rows_on_disk(study, 1)) == 2


@pytest.mark.parametrize("step", [1, 2])
def test_outcomes_may_come_in_any_order(study: Study, pool: list[Item], step: int) -> None:
    def by_text(prompt: Prompt) -> Reading:
        return reading([-1.0 - (hash((prompt.text, index)) % 1000) / 100 for index in range(len(prompt.order))])

    do(study, FakeBackend(by_text), pool, step)
    forward = rows_on_disk(study, step)
    study.step_file(step, "a").unlink()
    do(study, FakeBackend(by_text, backwards=True), pool, step)
    backward = rows_on_disk(study, step)
    assert by_item(forward) == by_item(backward)
    assert [row["item_id"] for row in backward] == [row["item_id"] for row in reversed(forward)]


@pytest.mark.parametrize("kind", ["timeout", "refused", "context_too_long", "no_logprobs"])
def test_a_failure_is_an_error_row_of_its_kind(study: Study, pool: list[Item], kind: str) -> None:
    assert do(study, FakeBackend(failing(kind)), pool) == [(9, 9)]
    assert {(row["status"], row["error"]) for row in rows_on_disk(study, 1)} == {("error", kind)}
    (cost,) = costs(study)
    assert (cost["items"], cost["errors"], cost["prompts"], cost["tokens"]) == (9, 9, 36, 0)


def test_one_failed_order_spoils_its_item_only(study: Study, pool: list[Item]) -> None:
    def answer(prompt: Prompt) -> Reading | Failure:
        if prompt.item_id == "a_4" and prompt.order[0] == 0:
            return Failure("timeout", "late")
        return reading([-1.0] * len(prompt.order))

    do(study, FakeBackend(answer), pool)
    assert [row["item_id"] for row in rows_on_disk(study, 1) if row["status"] == "error"] == ["a_4"]


@pytest.mark.parametrize("reason", [BackendError("the engine died"), KeyboardInterrupt(), RuntimeError("bug")])
def test_what_was_read_before_an_engine_stops_is_on_disk(study: Study, pool: list[Item], reason: BaseException) -> None:
    with pytest.raises(type(reason)):
        do(study, FakeBackend(stop=reason, after=4 * 5 + 2), pool)
    assert [row["item_id"] for row in rows_on_disk(study, 1)] == [f"a_{index}" for index in range(5)]
    (cost,) = costs(study)
    assert (cost["items"], cost["prompts"], cost["tokens"]) == (5, 20, 140)


def test_an_engine_that_stops_before_its_first_answer_leaves_nothing(study: Study, pool: list[Item]) -> None:
    with pytest.raises(BackendError):
        do(study, FakeBackend(stop=BackendError("x")), pool)
    assert study.step_files(1) == []
    assert costs(study) == []


def test_an_engine_that_leaves_prompts_out_is_not_believed(study: Study, pool: list[Item]) -> None:
    with pytest.raises(BackendError, match="fake: 2 items came back without all of their outcomes"):
        do(study, FakeBackend(leave_out=5), pool)
    assert len(rows_on_disk(study, 1)) == 7


def test_rows_are_written_in_batches(study: Study, pool: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "FLUSH_ITEMS", 4)
    assert do(study, FakeBackend(), pool) == [(4, 0), (4, 0), (1, 0)]


def test_old_rows_are_written_though_they_are_few(
    study: Study, pool: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "FLUSH_SECONDS", -1.0)
    assert do(study, FakeBackend(), pool) == [(1, 0)] * 9


def test_rows_are_written_once_though_the_run_is_stopped_while_they_are(
    study: Study, pool: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = study.append

    def stopped(*where: Any) -> None:
        append(*where)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(work, "FLUSH_ITEMS", 2)
    monkeypatch.setattr(study, "append", stopped)
    with pytest.raises(KeyboardInterrupt):
        do(study, FakeBackend(), pool)
    assert len(rows_on_disk(study, 1)) == 2
    assert sum(cost["items"] for cost in costs(study)) == 2


def test_a_full_disk_is_no_progress(study: Study, pool: list[Item], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StudyError("the disk is full")

    monkeypatch.setattr(Study, "append", full)
    told = Steps()
    with pytest.raises(StudyError, match="the disk is full"):
        do_unit(study, LADDER[1], unit_of(pool), FakeBackend(), told)
    assert told == []


def test_an_item_without_readable_frames_fails_and_the_others_are_read(study: Study, pool: list[Item]) -> None:
    # Items 0 and 1 share a video.
    (study.frames / pool[0].frames_key / "frame_1.jpg").write_bytes(b"other length")
    assert do(study, FakeBackend(), pool, 3) == [(9, 2)]
    errors = [row for row in rows_on_disk(study, 3) if row["status"] == "error"]
    assert sorted((row["item_id"], row["error"]) for row in errors) == [
        ("a_0", "undecodable_frames"),
        ("a_1", "undecodable_frames"),
    ]
    assert "frame_1.jpg: 12 bytes instead of 4" in errors[0]["detail"]


def test_questions_of_one_video_are_neighbours_and_share_a_prefix(study: Study, pool: list[Item]) -> None:
    backend = FakeBackend()
    do(study, backend, pool, 6)
    keys = [prompt.prefix for prompt in backend.asked]
    assert keys == sorted(keys)
    assert len(set(keys)) == 6


def test_an_item_s_orders_are_neighbours(study: Study, pool: list[Item]) -> None:
    backend = FakeBackend()
    do(study, backend, pool, 4)
    assert [prompt.item_id for prompt in backend.asked] == [item.item_id for item in pool for _ in range(4)]


def test_each_step_shows_its_frames(study: Study, pool: list[Item]) -> None:
    paths = tuple(f"{study.frames}/{pool[5].frames_key}/frame_{index}.jpg" for index in range(GRID))
    shown = {}
    for step in LADDER:
        backend = FakeBackend()
        do(study, backend, pool[5:6], step)
        shown[step] = backend.asked[0].frames
        assert all(Path(path).is_file() for path in shown[step])
    shuffled = tuple(paths[index] for index in frame_order("a_5", GRID, seed=42))
    assert shown == {1: (), 2: (paths[2],), 3: paths, 4: (), 5: shuffled, 6: paths}
    assert shuffled != paths


def test_the_shuffle_follows_the_seed(study: Study) -> None:
    config = replace(study.config, protocol=replace(study.config.protocol, seed=7))
    paths = [str(index) for index in range(32)]
    assert shown_frames("a_5", paths, LADDER[5], config) == tuple(map(str, frame_order("a_5", 32, seed=7)))
    assert shown_frames("a_5", paths, LADDER[5], config) != shown_frames("a_6", paths, LADDER[5], config)


def test_a_window_has_frames_of_its_own(tmp_path: Path) -> None:
    item = make_item(0, start=1.5, end=9.0)
    study = framed_study(tmp_path, [item])
    backend = FakeBackend()
    do(study, backend, [item], 2)
    assert backend.asked[0].frames == (f"{study.frames}/{item.video_id}@1500-9000/frame_2.jpg",)


def test_frames_of_another_grid_stop_the_run(study: Study, pool: list[Item]) -> None:
    about = study.frames / pool[8].frames_key / "frames.json"
    about.write_text(about.read_text().replace('"quality": 85', '"quality": 50'))
    with pytest.raises(StudyError, match=r"frames\.quality = 50, but the config says 85"):
        do(study, FakeBackend(), pool, 3)


def test_what_a_unit_cost_is_kept(study: Study, pool: list[Item]) -> None:
    def answer(prompt: Prompt) -> Reading | Failure:
        return Failure("timeout", "late") if prompt.item_id == "a_0" else reading([-1.0] * len(prompt.order), tokens=10)

    cost = do_unit(study, LADDER[1], unit_of(pool, 1, 2), FakeBackend(answer), Steps())
    (row,) = costs(study)
    assert (row["step"], row["bench"], row["part"], row["items"], row["prompts"]) == (1, "a", 1, 9, 36)
    assert (row["tokens"], row["errors"], row["model"], row["revision"]) == (320, 1, "scripted", "r1")
    assert (row["engine"], row["version"], row["dtype"], row["device"]) == ("fake", "1", "float64", "paper")
    assert row["wall_s"] == cost.wall_s >= 0
    assert row["at"].endswith("+00:00")


def test_items_that_left_the_pool_are_not_asked(study: Study, pool: list[Item]) -> None:
    backend = FakeBackend()
    do_unit(study, LADDER[1], Unit("a", 0, 1, ("a_0", "gone_1")), backend, Steps())
    assert {prompt.item_id for prompt in backend.asked} == {"a_0"}
    cost = do_unit(study, LADDER[1], Unit("a", 0, 1, ("gone_1",)), backend, Steps())
    assert (cost.items, len(costs(study))) == (0, 1)


def test_a_backend_that_answers_twice_is_a_bug(study: Study, pool: list[Item]) -> None:
    class Twice(FakeBackend):
        def read(self, prompts: Sequence[Prompt]) -> Any:
            for index, prompt in enumerate(prompts):
                outcome = Outcome(index, reading([-1.0] * len(prompt.order)))
                yield from (outcome, outcome)

    with pytest.raises(KeyError):
        do(study, Twice(), pool[:1], 2)
    assert len(rows_on_disk(study, 2)) == 1


def test_frames_that_come_later_are_used(tmp_path: Path, pool: list[Item]) -> None:
    study = framed_study(tmp_path, pool[:1])
    study.write_pool(pool)
    do(study, FakeBackend(), pool[:3], 2)
    assert [row["error"] for row in rows_on_disk(study, 2) if row["status"] == "error"] == ["undecodable_frames"]
    give_frames(study, pool)
    do(study, FakeBackend(), pool[3:], 2)
    assert len([row for row in rows_on_disk(study, 2) if row["status"] == "ok"]) == 8
