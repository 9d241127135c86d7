"""Real vLLM servers on the CPU for tests: one per checkpoint and test run, shared by all workers, always taken down.

Every process that uses a server holds a shared lock on its folder's `users` file; the kernel drops the lock however the
process ends. A keeper process starts `vllm serve`, and ends it once nobody holds the lock.

    python tests/vllm_server.py FOLDER CHECKPOINT PORT
"""

import ctypes
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MODELS = REPOSITORY / "src" / "benchcheck" / "demo" / "models"
START_S = 900
"""Importing, loading and compiling on two shared cores took 40 to 110 s."""
FLAGS = [
    *("--max-model-len", "8192", "--max-logprobs", "20", "--dtype", "bfloat16", "--enforce-eager"),
    *("--limit-mm-per-prompt", '{"image": 32}', "--enable-prompt-tokens-details"),
]  # fmt: skip


@contextmanager
def vllm_servers(folder: Path, *checkpoints: str) -> Iterator[list[str]]:
    """Hold a server of each `embedded:<checkpoint>` and yield their base URLs; the first that asks starts them.

    Args:
        folder: shared by all processes of the test run.
        checkpoints: `large` or `small`.
    """
    with ExitStack() as held:
        places = [folder / f"vllm-{checkpoint}" for checkpoint in checkpoints]
        for here, checkpoint in zip(places, checkpoints, strict=True):
            here.mkdir(exist_ok=True)
            users = held.enter_context((here / "users").open("w"))
            with (here / "start").open("w") as start:
                fcntl.flock(start, fcntl.LOCK_EX)
                fcntl.flock(users, fcntl.LOCK_SH)
                if not _lives(here):
                    _make_venv()
                    _start(here, checkpoint)
        yield [_wait(here) for here in places]


def _make_venv() -> None:
    made = subprocess.run([REPOSITORY / "scripts" / "vllm-venv"], capture_output=True, text=True, check=False)
    if made.returncode == 2:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stdout + made.stderr


def _start(here: Path, checkpoint: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(here), checkpoint, str(port)]
    with (here / "log").open("w") as log:
        keeper = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    (here / "keeper").write_text(str(keeper.pid))
    (here / "url").write_text(f"http://127.0.0.1:{port}/v1")
    keeper.returncode = 0  # it is left to itself: nobody here waits for it


def _lives(here: Path) -> bool:
    try:
        os.kill(int((here / "keeper").read_text()), 0)
    except (OSError, ValueError):
        return False
    return not (here / "ended").exists()


def _wait(here: Path) -> str:
    """Return a server's URL once it answers."""
    url = (here / "url").read_text()
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url.removesuffix("/v1") + "/health", timeout=5).close()
            return url
        except OSError:
            assert _lives(here), "vLLM did not start:\n" + (here / "log").read_text()[-3000:]
            time.sleep(0.5)
    raise AssertionError(f"vLLM did not answer within {START_S} s:\n" + (here / "log").read_text()[-3000:])


def _dies_with_keeper() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def keep(here: Path, checkpoint: str, port: str) -> None:
    """Serve until nobody holds the lock, then end the server and all its processes."""
    command = [str(REPOSITORY / ".venv-vllm" / "bin" / "vllm"), "serve", str(MODELS / checkpoint)]
    command += ["--served-model-name", f"embedded:{checkpoint}", "--port", port, *FLAGS]
    environment = dict(os.environ) | {"VLLM_CPU_KVCACHE_SPACE": "2", "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_dies_with_keeper)  # noqa: PLW1509 - one thread
    try:
        with (here / "users").open("r+") as users:
            while server.poll() is None and not _nobody(users.fileno()):
                time.sleep(0.5)
    finally:
        (here / "ended").touch()
        for signum in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(server.pid, signum)
                server.wait(timeout=10)
            except (subprocess.TimeoutExpired, ProcessLookupError):
                continue


def _nobody(users: int) -> bool:
    """Say whether no process holds the lock."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
