"""Which server reads which prompt: groups that share a prefix stay together, the next group goes where room is. Pure.

A server takes a prompt when it has room: first of a group that it has begun, else of the oldest group that nobody has.
So the least busy server takes the next group, and a slow one takes fewer.
"""

from collections import defaultdict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Board"]

Job = TypeVar("Job")
Taker = TypeVar("Taker", bound=Hashable)


class Board(Generic[Taker, Job]):
    """Jobs that wait, by group. Groups are numbered in the order in which they come, and come one after the other."""

    def __init__(self) -> None:
        """Begin empty."""
        self._waiting: dict[int, deque[Job]] = {}
        self._owners: dict[int, Taker] = {}
        # Groups with a waiting job, by owner, in order; a group is in one of them, and only while it has a job.
        self._ready: defaultdict[Taker | None, deque[int]] = defaultdict(deque)
        self._newest = -1

    def __len__(self) -> int:
        """Return how many jobs wait."""
        return sum(map(len, self._waiting.values()))

    def owner(self, group: int) -> Taker | None:
        """Return who has begun a group."""
        return self._owners.get(group)

    def put(self, group: int, job: Job) -> None:
        """Add a job to its group."""
        if group > self._newest:
            # Nothing more comes for older groups: their owners matter only while jobs wait.
            self._owners = {old: owner for old, owner in self._owners.items() if old in self._waiting}
            self._newest = group
        if group not in self._waiting:
            self._waiting[group] = deque()
            self._ready[self._owners.get(group)].append(group)
        self._waiting[group].append(job)

    def take(self, taker: Taker) -> Job | None:
        """Return the next job for `taker`, or None when none waits for it."""
        mine, free = self._ready[taker], self._ready[None]
        if not mine:
            if not free:
                return None
            mine.append(free.popleft())
            self._owners[mine[0]] = taker
        group = mine[0]
        job = self._waiting[group].popleft()
        if not self._waiting[group]:
            mine.popleft()
            del self._waiting[group]
        return job

    def give_back(self, group: int, job: Job) -> None:
        """Put a job that was taken back in front of its group, for anyone."""
        if group in self._waiting:
            self._waiting[group].appendleft(job)
            return
        self._waiting[group] = deque([job])
        self._owners.pop(group, None)
        self._ready[None].appendleft(group)

    def release(self, taker: Taker) -> None:
        """Free the groups of one that takes no more."""
        self._ready[None].extendleft(reversed(self._ready.pop(taker, deque())))
        self._owners = {group: owner for group, owner in self._owners.items() if owner != taker}

    def clear(self) -> None:
        """Forget all jobs."""
        self._waiting.clear()
        self._owners.clear()
        self._ready.clear()
        self._newest = -1
