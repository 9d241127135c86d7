"""Keeps one server's processes together: a file that is run, never imported, beside each server.

    python -I keeper.py COMMAND ARGUMENT…

Its standard input is a pipe whose other end the driver holds and never writes to. When that end closes, however the
driver ended (kill -9 included), the server's whole process group goes: SIGTERM, then SIGKILL after `GRACE_S`. When the
server ends by itself, what it left behind goes too: vLLM's engine is a process of its own, which otherwise keeps the
GPU's memory when the API server is killed. Standard output tells the driver the group's number, then the exit code.

It imports the standard library only, so that it starts in 20 ms and needs 10 MB.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

__all__ = ["GRACE_S", "keep"]

GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL: vLLM 0.32 removes its shared memory and is gone in half a second."""
_LOOK_S = 0.1


def _die_with_keeper() -> None:
    """Let Linux kill the server should this process be killed; elsewhere the driver kills the group."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _tell(number: int) -> None:
    """Write a line to the driver, which may be gone."""
    with contextlib.suppress(OSError):
        os.write(1, f"{number}\n".encode())


def _clear(server: "subprocess.Popen[bytes]") -> None:
    """Kill a server's process group and wait until none of it is left: the next server needs the GPU's memory."""
    end = time.monotonic() + GRACE_S
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
        while time.monotonic() < end:
            server.poll()  # a process that ended and was not waited for counts as one of the group
            os.killpg(server.pid, 0)
            time.sleep(0.01)


def keep(command: list[str]) -> None:
    """Run a server until it ends, the driver is gone or this process gets SIGTERM; then kill its process group."""
    asked_to_end: list[int] = []
    # A handler, not SIG_IGN: what is ignored stays ignored in the server, a handler does not.
    signal.signal(signal.SIGTERM, lambda number, _: asked_to_end.append(number))
    try:
        # This process has one thread, so a function between fork and exec is safe.
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            process_group=0,
            preexec_fn=_die_with_keeper,  # noqa: PLW1509
        )
    except OSError as reason:
        os.write(2, f"{command[0]}: {reason.strerror}\n".encode())
        _tell(0)
        _tell(127)
        return
    _tell(server.pid)
    while server.poll() is None and not asked_to_end and not select.select([0], [], [], _LOOK_S)[0]:
        pass
    if server.poll() is None:
        server.terminate()  # the API server ends its engine
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(GRACE_S)
    _clear(server)
    _tell(server.wait())


if __name__ == "__main__":
    keep(sys.argv[1:])
