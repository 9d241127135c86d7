"""What stands beside each server: it ends the server's whole group, and tells how it ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchcheck.backends import keeper
from served import all_gone

# As a function of the package, where the package runs it as a file: coverage looks at modules.
KEEP = "import sys; from benchcheck.backends import keeper; keeper.GRACE_S = 1.0; keeper.keep(sys.argv[1:])"
ENGINE = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); {}"


@contextmanager
def kept(*command: str) -> Iterator["subprocess.Popen[str]"]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", KEEP, *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for end in (process.stdin, process.stdout, process.stderr):
            if end is not None:
                end.close()


def group_is_gone(group: int) -> bool:
    return all_gone([int(pid) for pid in os.listdir("/proc") if pid.isdecimal() and group_of(int(pid)) == group])


def group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


@pytest.mark.parametrize(
    ("program", "code"),
    [("raise SystemExit(7)", "7"), ("import os; os.kill(os.getpid(), 9)", "-9"), (ENGINE.format("sys.exit(3)"), "3")],
)
def test_a_server_that_ends_is_told_and_what_it_left_goes(program: str, code: str) -> None:
    with kept(sys.executable, "-c", program) as process:
        assert process.stdout is not None
        group, told = process.stdout.read().split()
        assert told == code
        assert process.wait() == 0
        assert group_is_gone(int(group))


@pytest.mark.parametrize("how", ["pipe", "sigterm"])
@pytest.mark.parametrize("stubborn", [False, True])
def test_a_server_goes_with_its_driver(how: str, stubborn: bool) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else ""
    program = deaf + ENGINE.format("print('up', file=sys.stderr, flush=True); time.sleep(600)")
    with kept(sys.executable, "-c", program) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        group = int(process.stdout.readline())
        assert process.stderr.readline() == "up\n", "what the server prints goes to the log"
        if how == "pipe":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == ("-9\n" if stubborn else "-15\n")
        process.wait()
        assert group_is_gone(group)


def test_a_command_that_there_is_not() -> None:
    with kept("/nowhere/vllm", "serve") as process:
        out, err = process.communicate()
        assert out == "0\n127\n"
        assert err == "/nowhere/vllm: No such file or directory\n"


def test_it_needs_the_standard_library_alone() -> None:
    command = [sys.executable, "-I", "-S", keeper.__file__, "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "0\n127\n", done.stderr
