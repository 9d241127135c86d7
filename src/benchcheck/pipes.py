"""Worker processes that may die: plain processes on pipes, one JSON line a message, and both ends of the pipe.

Not a pool: a pool breaks as a whole when one process is killed by a bad file, and needs an importable `__main__`, which
a notebook or `python -` has not. The worker's end imports the standard library only.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, TextIO

__all__ = ["Death", "Worker", "alarm", "answer_on_pipes", "cores", "send", "unhurried"]


def cores() -> int:
    """Return how many cores this process may use: so many workers keep busy."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Death:
    """How a worker process ended while it was to answer."""

    def __init__(self, code: int, last_words: str) -> None:
        self.code, self.last_words = code, last_words

    @property
    def timed_out(self) -> bool:
        """Whether its own alarm ended it."""
        return self.code == -signal.SIGALRM

    @property
    def signal(self) -> str:
        """The signal that ended it, with what that often means; empty where none did."""
        if self.code >= 0:
            return ""
        hint = " (often: out of memory)" if self.code == -signal.SIGKILL else ""
        return f"{signal.Signals(-self.code).name}{hint}"


class Worker:
    """One worker process, and the words it may die with. Its first answer is that it is there."""

    def __init__(
        self,
        command: Sequence[str],
        settings: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start it and send its settings.

        Args:
            command: what to start.
            settings: the first message.
            environment: variables that it gets beside those of this process.
            descriptors: open files that it shares.
        """
        # A file, not a pipe: nobody reads it while the worker lives, and a full pipe would stop it.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        # A session of its own: Ctrl-C reaches the run only, which then ends its workers.
        self._process = subprocess.Popen(
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            pass_fds=descriptors,
            env={**os.environ, **(environment or {})},
        )
        self.send(settings)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def answers(self) -> IO[bytes]:
        """The pipe to wait on."""
        assert self._process.stdout is not None
        return self._process.stdout

    def send(self, message: Mapping[str, Any], data: bytes = b"") -> None:
        """Send a message, and bytes behind it; a worker that is dead is noticed when its answer is awaited."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def answer(self) -> Mapping[str, Any] | Death:
        """Wait for the next answer, or how the process ended."""
        line = self.answers.readline()
        if line.endswith(b"\n"):
            answer: Mapping[str, Any] = json.loads(line)
            return answer
        code = self._process.wait()
        size = self._errors.seek(0, 2)
        self._errors.seek(max(0, size - 2000))
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return Death(code, lines[-1] if lines else "")

    def kill(self) -> None:
        """End the process now; whoever waits for its answer hears of that."""
        self._process.kill()

    def end(self) -> None:
        """End the process now and close its pipes."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def send(answers: TextIO, answer: Mapping[str, Any]) -> None:
    """Answer, in the worker."""
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Let the kernel end this worker when the block takes longer: what hangs is ended even inside C code."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextlib.contextmanager
def unhurried() -> Iterator[None]:
    """Stop the alarm's clock while the block runs: waiting for another process is not the task's own time."""
    left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)


def answer_on_pipes(serve: Callable[[TextIO, TextIO], None]) -> None:
    """Run a worker on the standard streams. What a library prints goes to stderr, never between the answers."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.stdin, answers)
    except BrokenPipeError:  # whoever asked is gone, and nobody waits for the answer
        os._exit(0)
