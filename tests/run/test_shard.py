"""Shares of a study do not overlap and leave nothing out."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.errors import UsageError
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import Pool, load_pool, survey, totals, units_of
from benchcheck.run.shard import parse_shard, shard_flags, shard_units
from studies import Heard, framed_study, make_items, rows_on_disk


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return load_pool(framed_study(tmp_path_factory.mktemp("pool"), make_items(a=50, b=17, c=1)))


@given(st.integers(1, 12), st.lists(st.integers(1, 5), min_size=12, max_size=12))
def test_every_item_is_in_one_share_and_one_piece(pool: Pool, shares: int, workers: list[int]) -> None:
    asked: Counter[str] = Counter()
    for number in range(shares):
        pieces = shard_units(pool, (number, shares), workers[number])
        assert len(pieces) == workers[number]
        own = [item for units in pieces for unit in units for item in unit.item_ids]
        assert sorted(own) == sorted(pool.ids(shard_flags(pool, (number, shares))))
        asked.update(own)
    assert set(asked.values()) == {1}
    assert len(asked) == 68


def test_the_whole_is_dealt_out_as_ever(pool: Pool) -> None:
    assert shard_units(pool, (0, 1), 3) == units_of(pool, 3)
    assert shard_units(pool, (2, 4), 1) == [units_of(pool, 4)[2]]


@pytest.mark.parametrize(
    ("text", "environment", "found"),
    [
        ("0/1", {}, (0, 1)),
        ("3/8", {"SLURM_ARRAY_TASK_ID": "1"}, (3, 8)),
        ("auto", {}, (0, 1)),
        ("auto", {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_MAX": "7"}, (1, 4)),
    ],
)
def test_which_share(text: str, environment: dict[str, str], found: tuple[int, int]) -> None:
    assert parse_shard(text, environment) == found


@pytest.mark.parametrize("text", ["", "1", "1/1", "4/4", "-1/4", "0/0", "a/b", "1/2/3", "Auto", "1 / 2"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--shard .*Allowed: auto .* or I/N with I from 0 to N-1, such as 0/4$"):
        parse_shard(text, {})


def test_an_array_with_holes_is_refused() -> None:
    holes = {"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "8",
             "SLURM_ARRAY_TASK_COUNT": "3"}  # fmt: skip
    with pytest.raises(UsageError, match="has holes"):
        parse_shard("auto", holes)


def test_shares_go_down_all_steps_each_by_itself_and_end_as_one_run(tmp_path: Path) -> None:
    """What becomes of an item depends on no other."""
    items, found = make_items(a=30, b=11), []
    for shares in (1, 3):
        study = framed_study(tmp_path / str(shares), items)
        for number in range(shares):
            state = screen(study, Local(study, Asked("scripted")), Heard(), shard=(number, shares))
        found.append((state.fold.state.tolist(), state.fold.left_at.tolist()))
        assert Counter(row["item_id"] for row in rows_on_disk(study, 1)) == Counter(item.item_id for item in items)
    assert found[0] == found[1]


def test_a_share_asks_only_its_own(tmp_path: Path) -> None:
    study = framed_study(tmp_path, make_items(a=20), protocol={"steps": [1]})
    heard = Heard()
    screen(study, Local(study, Asked("scripted")), heard, shard=(1, 4), pilot=10)
    own = set(load_pool(study).ids(shard_flags(load_pool(study), (1, 4))))
    asked = {row["item_id"] for row in rows_on_disk(study, 1)}
    assert asked < own
    assert heard.begun[0][1] == len(asked) == heard.items
    screen(study, Local(study, Asked("scripted"), 2, shard=(1, 4)), Heard(), shard=(1, 4))
    assert {row["item_id"] for row in rows_on_disk(study, 1)} == own


def test_two_shares_run_beside_each_other_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One names its share, the other finds it in the variables of a Slurm array."""
    study = framed_study(tmp_path, make_items(a=14, b=6))
    base = [sys.executable, "-m", "benchcheck", "screen", str(study.root), "--backend", "scripted", "--shard"]
    array = {"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_MIN": "7", "SLURM_ARRAY_TASK_MAX": "8"}
    tasks = [
        subprocess.Popen(
            [*base, share], env=os.environ | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for share, more in (("0/2", {}), ("auto", array))
    ]
    try:
        told = [task.communicate(timeout=120) for task in tasks]
    finally:
        for task in tasks:
            task.kill()
    assert [task.returncode for task in tasks] == [0, 0], told
    for step in range(1, 7):
        assert set(Counter(row["item_id"] for row in rows_on_disk(study, step)).values()) <= {1}
    state = survey(study)
    assert totals(state).remaining == 0
    assert len(rows_on_disk(study, 1)) == 20
