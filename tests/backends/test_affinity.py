"""No job is lost or done twice, a group stays with who began it, and who has room takes the next one."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from benchcheck.backends.affinity import Board


def taken(board: Board[str, int], taker: str) -> list[int]:
    jobs = []
    while (job := board.take(taker)) is not None:
        jobs.append(job)
    return jobs


def test_a_group_stays_with_who_began_it() -> None:
    board: Board[str, int] = Board()
    board.put(0, 1)
    assert board.take("a") == 1
    assert board.owner(0) == "a"
    board.put(0, 2)
    board.put(1, 3)
    board.put(1, 4)
    assert board.take("b") == 3
    assert len(board) == 2
    assert board.take("a") == 2
    assert board.take("a") is None
    assert board.take("b") == 4


def test_a_free_group_goes_to_the_first_with_room() -> None:
    board: Board[str, int] = Board()
    for group in range(3):
        board.put(group, group)
    assert [board.take(taker) for taker in "abc"] == [0, 1, 2]


def test_what_was_given_back_comes_first_and_is_for_anyone() -> None:
    board: Board[str, int] = Board()
    for job in range(4):
        board.put(job // 2, job)
    assert [board.take("a"), board.take("a")] == [0, 1]
    board.give_back(0, 1)
    board.give_back(0, 0)
    assert board.owner(0) is None
    assert taken(board, "b") == [0, 1, 2, 3]


def test_the_groups_of_one_that_left_are_free_in_their_order() -> None:
    board: Board[str, int] = Board()
    for job in range(6):
        board.put(job // 2, job)
    assert board.take("a") == 0
    assert board.take("b") == 2
    board.release("a")
    board.put(2, 6)
    assert taken(board, "b") == [3, 1, 4, 5, 6]


def test_later_jobs_of_a_group_whose_owner_left_go_to_anyone() -> None:
    board: Board[str, int] = Board()
    board.put(0, 0)
    assert board.take("a") == 0
    board.release("a")
    board.put(0, 1)
    assert board.take("b") == 1


def test_cleared_is_empty() -> None:
    board: Board[str, int] = Board()
    board.put(0, 0)
    board.clear()
    assert len(board) == 0
    assert board.take("a") is None
    board.put(0, 1)
    assert board.take("a") == 1


class Play(RuleBasedStateMachine):
    """Servers that take, finish and fall in any order, while jobs come in group after group."""

    takers = st.sampled_from("abc")

    def __init__(self) -> None:
        super().__init__()
        self.board: Board[str, int] = Board()
        self.group = 0
        self.groups: list[int] = []
        self.held: dict[str, list[int]] = {taker: [] for taker in "abc"}
        self.done: list[int] = []
        self.homes: dict[int, set[str]] = {}
        self.fell = False

    @rule()
    def put(self) -> None:
        self.board.put(self.group, len(self.groups))
        self.groups.append(self.group)

    @rule()
    def next_group(self) -> None:
        self.group += 1

    @rule(taker=takers)
    def take(self, taker: str) -> None:
        job = self.board.take(taker)
        if job is not None:
            self.held[taker].append(job)
            self.homes.setdefault(self.groups[job], set()).add(taker)

    @rule(taker=takers)
    def finish(self, taker: str) -> None:
        self.done += self.held[taker][:1]
        del self.held[taker][:1]

    @rule(taker=takers)
    def fall(self, taker: str) -> None:
        for job in reversed(self.held[taker]):
            self.board.give_back(self.groups[job], job)
        self.held[taker] = []
        self.board.release(taker)
        self.fell = True

    def teardown(self) -> None:
        if not self.fell:
            assert all(len(home) == 1 for home in self.homes.values())
        for taker in "abc":
            self.done += self.held[taker]
            self.board.release(taker)
        self.done += taken(self.board, "z")
        assert sorted(self.done) == list(range(len(self.groups)))
        assert len(self.board) == 0


test_every_job_is_taken_once_and_groups_do_not_wander = Play.TestCase


@pytest.mark.parametrize("takers", [1, 3])
def test_jobs_of_one_taker_keep_their_order(takers: int) -> None:
    board: Board[int, int] = Board()
    for job in range(40):
        board.put(job // 4, job)
    order = {taker: [] for taker in range(takers)}
    for turn in range(40 * takers):
        job = board.take(turn % takers)
        if job is not None:
            order[turn % takers].append(job)
    assert all(jobs == sorted(jobs) for jobs in order.values())
    assert sorted(job for jobs in order.values() for job in jobs) == list(range(40))
