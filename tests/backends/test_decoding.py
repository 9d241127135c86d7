"""Videos through worker processes that die, hang, start badly and meet with bad files."""

import os
import queue
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchcheck.backends import decoding
from benchcheck.backends.decoding import WORKER, Decoded, Decoders, Lost, usual_workers
from benchcheck.backends.patches import Recipe, opened, patchify, pixels, resized
from benchcheck.errors import BackendError

RECIPE = Recipe(16, 2, 4096, 262_144, (0.5,) * 3, (0.5,) * 3)
PATIENCE = 120


@pytest.fixture
def frames(tmp_path):
    """Make frames; `frames(n, (w, h))` gives their paths."""

    def make(count, size=(96, 64), name="v"):
        paths = []
        for index in range(count):
            path = tmp_path / f"{name}_{index}.jpg"
            coarse = np.random.default_rng((index, *size)).integers(0, 255, (6, 8, 3), dtype=np.uint8)
            Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(path, quality=85)
            paths.append(str(path))
        return tuple(paths)

    return make


@pytest.fixture
def start():
    """Start decoders that are closed whatever happens; returns them and their events."""
    opened_ones = []

    def begin(workers=1, command=WORKER, limit_s=60.0):
        events = queue.SimpleQueue()
        decoders = Decoders(RECIPE, events.put, workers=workers, command=command, limit_s=limit_s)
        opened_ones.append(decoders)
        return decoders, events

    yield begin
    for decoders in opened_ones:
        decoders.close()


def stand_in(tmp_path, body):
    """A worker that answers as `body` says: `task` is the message, `answer(...)` replies."""
    path = tmp_path / "worker.py"
    path.write_text(
        textwrap.dedent(
            """
            import json, os, signal, sys, time
            def answer(**what):
                print(json.dumps(what), flush=True)
            settings = json.loads(sys.stdin.readline())
            """
        )
        + textwrap.dedent(body)
    )
    return (sys.executable, "-S", str(path))


def expected(paths):
    rows = []
    for path in paths:
        image, _ = opened(path)
        frame = resized(pixels(image, path), *RECIPE.size(image.height, image.width))
        out = np.empty((frame.shape[0] * frame.shape[1] // 256, 768), np.uint8)
        patchify(frame, RECIPE, out)
        rows.append(out)
    return np.concatenate(rows)


def test_a_video_comes_as_patches_with_the_digest_of_every_file(frames, start):
    decoders, events = start(workers=2)
    videos = {1: frames(5), 2: frames(2, (448, 252), "w"), 3: frames(1, (97, 61), "u") * 1}
    for key, paths in videos.items():
        decoders.submit(key, paths)
    for _ in videos:
        decoded = events.get(timeout=PATIENCE)
        assert isinstance(decoded, Decoded), decoded
        assert np.array_equal(decoded.patches, expected(videos[decoded.key]))
        assert sum(frame.height * frame.width for frame in decoded.frames) == len(decoded.patches)
        assert len({frame.digest for frame in decoded.frames}) == len(videos[decoded.key])
        decoders.release(decoded)


def test_slots_bound_what_lies_decoded_and_are_used_again(frames, start):
    decoders, events = start()
    paths = frames(1)
    for key in range(8):
        decoders.submit(key, paths)
    held = [events.get(timeout=PATIENCE) for _ in range(3)]
    with pytest.raises(queue.Empty):
        events.get(timeout=0.3)
    for _ in range(5):
        decoders.release(held.pop())
        held.append(events.get(timeout=PATIENCE))
    assert len({decoded.slot for decoded in held}) == 3


def test_a_bad_file_fails_its_video_only(frames, start, tmp_path):
    decoders, events = start()
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"")
    good = frames(2)
    decoders.submit(1, (*good, str(bad)))
    decoders.submit(2, (str(tmp_path / "missing.jpg"),))
    decoders.submit(3, good)
    first, second, third = (events.get(timeout=PATIENCE) for _ in range(3))
    assert first.kind == second.kind == "undecodable_frames"
    assert str(bad) in first.detail
    assert "missing.jpg" in second.detail
    assert isinstance(third, Decoded)


def test_a_killed_worker_is_replaced_and_its_video_tried_again(start, tmp_path):
    command = stand_in(
        tmp_path,
        f"""
        answer(hello=1)
        for line in sys.stdin:
            try:
                os.mkdir({str(tmp_path / "tried")!r})
            except FileExistsError:
                answer(broken="the second worker read it")
            else:
                time.sleep(600)
        """,
    )
    decoders, events = start(command=command)
    decoders.submit(1, ("a",))
    wait_for((tmp_path / "tried").exists)
    first = decoders.pids
    os.kill(first[0], signal.SIGKILL)
    assert events.get(timeout=PATIENCE) == Lost(1, "undecodable_frames", "the second worker read it")
    assert decoders.pids != first


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_a_video_that_ends_two_workers_is_lost_and_the_next_is_not(frames, start, tmp_path):
    command = stand_in(
        tmp_path,
        """
        answer(hello=1)
        for line in sys.stdin:
            task = json.loads(line)
            if task["paths"][0] == "poison":
                os.kill(os.getpid(), signal.SIGKILL)
            if task["paths"][0] == "slow":
                signal.setitimer(signal.ITIMER_REAL, task["limit_s"])
                time.sleep(60)
            if task["paths"][0] == "code":
                sys.exit("it fell over")
            answer(broken="read")
        """,
    )
    decoders, events = start(command=command, limit_s=0.05)
    for key, what in enumerate(("poison", "slow", "code", "fine")):
        decoders.submit(key, (what,))
    poison, slow, code, fine = (events.get(timeout=PATIENCE) for _ in range(4))
    assert poison.kind == slow.kind == code.kind == "decoder_died"  # not permanent: it may be tried again tomorrow
    assert poison.detail == "poison: two workers died of it: ended by SIGKILL (often: out of memory)"
    assert slow.detail.endswith("it took longer than allowed")
    assert code.detail.endswith("ended with code 1: it fell over")
    assert fine == Lost(3, "undecodable_frames", "read")


def test_frames_that_grow_while_they_are_read_are_no_trap(start, tmp_path):
    command = stand_in(
        tmp_path,
        """
        answer(hello=1)
        for line in sys.stdin:
            answer(need=json.loads(line)["bytes"] + 1)
        """,
    )
    decoders, events = start(command=command)
    decoders.submit(1, ("a",))
    assert events.get(timeout=PATIENCE).detail == "a: two workers died of it: the files changed while they were read"


def test_a_worker_that_cannot_start_ends_the_run(start, tmp_path):
    _, events = start(command=stand_in(tmp_path, "sys.exit('No module named numpy')"))
    error = events.get(timeout=PATIENCE)
    assert isinstance(error, BackendError)
    assert str(error).startswith("a decode worker cannot start: ended with code 1: No module named numpy. Cure: ")


def test_memory_that_is_short_is_an_error_and_no_bus_error(frames, start, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoding.os, "posix_fallocate", refuse)
    decoders, events = start()
    decoders.submit(1, frames(1))
    error = events.get(timeout=PATIENCE)
    assert isinstance(error, BackendError)
    assert "no memory for decoded frames (1 MiB" in str(error)


def test_close_ends_everything_also_in_the_middle_and_twice(frames, start):
    decoders, events = start(workers=2)
    for key in range(20):
        decoders.submit(key, frames(4, (448, 252)))
    decoded = events.get(timeout=PATIENCE)
    processes = decoders.pids
    decoders.close()
    decoders.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    assert decoded.patches.sum() > 0  # a view that is still held stays readable
    assert decoders.pids == []


def test_a_view_keeps_its_memory_when_its_slot_grows(frames, start):
    decoders, events = start()
    decoders.submit(1, frames(1))
    small = events.get(timeout=PATIENCE)
    kept = small.patches.copy()
    decoders.release(small)
    for key in (2, 3, 4):
        decoders.submit(key, frames(9, (448, 252), "big"))
        decoders.release(events.get(timeout=PATIENCE))
    assert kept.shape == small.patches.shape


def test_nothing_is_left_when_the_parent_is_killed(frames, tmp_path):
    """No process and no shared memory, however the parent ends: the memory has no name and the pipes close."""
    before = set(os.listdir("/dev/shm"))
    code = f"""
import queue, sys
from benchcheck.backends.decoding import Decoders
from benchcheck.backends.patches import Recipe
events = queue.SimpleQueue()
decoders = Decoders(Recipe(16, 2, 4096, 262144, (0.5,) * 3, (0.5,) * 3), events.put, workers=1)
decoders.submit(1, {frames(2)!r})
events.get()
print(decoders.pids[0], flush=True)
sys.stdin.read()
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        worker = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_for(lambda: not alive(worker))
        assert set(os.listdir("/dev/shm")) <= before
    finally:
        parent.kill()
        parent.communicate()


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_a_worker_imports_neither_vllm_nor_transformers():
    code = "import sys, benchcheck.backends.decode_worker; print(*{'vllm', 'transformers'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def test_workers_by_the_cores(monkeypatch):
    for cores, workers in ((1, 1), (2, 1), (8, 4), (128, 6)):
        monkeypatch.setattr(decoding.os, "sched_getaffinity", lambda _, n=cores: set(range(n)))
        assert usual_workers() == workers
