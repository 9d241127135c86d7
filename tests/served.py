"""Studies whose models a fake vLLM serves, and what becomes of its processes."""

import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_vllm
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.frames import Drawn, publish_frames
from studies import GRID, make_study

FAKE = f"{sys.executable} {fake_vllm.__file__}"
JPEG = b"\xff\xd8\xff made up \xff\xd9"
"""What a server's client takes for a JPEG, as far as it looks."""


def served_study(root: Path, items: Sequence[Item], **settings: Any) -> Study:
    """Make a study with frames and two folders as models, which the fake vLLM serves."""
    for name in ("large", "small"):
        folder = root / "models" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 32_768, "name": name}))
    study = make_study(root, large="models/large", small="models/small", **settings)
    study.write_pool(items)
    about = {"count": GRID, "long_side": study.config.frames.long_side, "quality": study.config.frames.quality}
    drawn = [Drawn(pts=float(index), duplicate=False, damaged=False, jpeg=JPEG) for index in range(GRID)]
    for key in {item.frames_key for item in items}:
        publish_frames(study.frames, key, drawn, about)
    return study


def free_port(count: int = 1) -> int:
    """The first of so many ports that are free now, below those that outgoing connections take meanwhile."""
    while True:
        first = random.randrange(10_000, 32_000)
        if all(_is_free(first + number) for number in range(count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_gone(pids: Sequence[int], seconds: float = 20) -> bool:
    """Whether all of them end in time."""
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, pids))


def read_pids(path: Path) -> list[int]:
    """The processes that fake servers noted."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def fakes(pids: Sequence[int]) -> list[int]:
    """Those that are fake servers: a long run of tests uses up all numbers, and another process gets an old one."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if "fake_vllm" in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def kill_left(path: Path) -> list[int]:
    """Kill those that are left; returns which."""
    left = [pid for pid in fakes(read_pids(path)) if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left
