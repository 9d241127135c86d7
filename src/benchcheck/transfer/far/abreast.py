"""Several files at a time, in threads that a stop does not wait for."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["abreast"]

_Thing = TypeVar("_Thing")
_Done = TypeVar("_Done")
_PATIENCE_S = 5.0
"""How long a stop waits for the files that are on their way in other threads, so that they clean up."""


def abreast(
    work: Callable[[_Thing], _Done], things: Iterable[_Thing], workers: int, halt: Callable[[], None] = lambda: None
) -> Iterator[_Done]:
    """Do a work for each thing, in `workers` threads; results come as they are done.

    The first failure is raised, and nothing new is begun after it. Then, or after Ctrl-C, `halt` is called, which may
    end the works that are under way, and they have some seconds to clean up. The threads are daemons: a file of an hour
    would else be sent to its end first.
    """
    waiting, gate, stop = iter(things), threading.Lock(), threading.Event()
    done: queue.SimpleQueue[tuple[list[_Done], BaseException | None] | None] = queue.SimpleQueue()

    def take() -> None:
        try:
            while not stop.is_set():
                with gate:
                    thing = next(waiting, None)
                if thing is None:
                    break
                done.put(([work(thing)], None))
        except BaseException as reason:  # noqa: BLE001 - raised again in the thread that asked
            done.put(([], reason))
        done.put(None)

    threads = [threading.Thread(target=take, daemon=True) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        yield from _results(done, workers)
    except BaseException:
        stop.set()
        halt()
        until = time.monotonic() + _PATIENCE_S
        for thread in [thread for thread in threads if thread.ident is not None]:
            thread.join(max(0.0, until - time.monotonic()))
        raise


def _results(
    done: "queue.SimpleQueue[tuple[list[_Done], BaseException | None] | None]", workers: int
) -> Iterator[_Done]:
    """Yield what threads have done until all have ended, or raise what one of them raised."""
    at_work = workers
    while at_work:
        answer = done.get()
        if answer is None:
            at_work -= 1
            continue
        results, reason = answer
        if reason is not None:
            raise reason
        yield from results
