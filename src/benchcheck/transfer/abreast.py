"""Several files at a time, in threads that a stop does not wait for."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["abreast"]

_Thing = TypeVar("_Thing")
_Done = TypeVar("_Done")
_PATIENCE_S = 5.0
"""How long a failure waits for the files that are on their way in other threads, so that they clean up."""


def abreast(work: Callable[[_Thing], _Done], things: Iterable[_Thing], workers: int) -> Iterator[_Done]:
    """Do a work for each thing, in `workers` threads; results come as they are done.

    The first failure is raised, and nothing new is begun after it. Ctrl-C ends the waiting at once: the threads are
    daemons, since a file of an hour would else be sent to its end first.
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
    for thread in threads:
        thread.start()
    try:
        yield from _results(done, workers)
    except Exception:
        stop.set()
        for thread in threads:
            thread.join(_PATIENCE_S)
        raise
    finally:
        stop.set()


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
