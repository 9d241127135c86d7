"""Ways to damage a clip, in the file or between its packets, and how honest what is left of it is taken to be."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import av

from benchcheck.video.making.draw import draw
from benchcheck.video.task import Task

from .clips import number_of
from .test_decode import SPEC

RATE = 25


def tenths(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file cut after every tenth of it."""
    for tenth in range(1, 10):
        yield f"cut after {tenth} tenths", data[: len(data) * tenth // 10]


def stretches(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A twentieth of the file zeroed, or left out; noise put in."""
    noise, some = random.Random(len(data)).randbytes(777), len(data) // 20
    for part in (3, 5, 7):
        at = len(data) * part // 10
        yield f"zeros at {part} tenths", data[:at] + bytes(some) + data[at + some :]
        yield f"a hole at {part} tenths", data[:at] + data[at + some :]
        yield f"noise at {part} tenths", data[:at] + noise + data[at:]


def flipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Bits changed in the headers, the middle and the end."""
    for seed in range(12):
        draws, changed = random.Random(seed), bytearray(data)
        first = (0, len(data) // 2, max(0, len(data) - 800))[seed % 3]
        for _ in range(4):
            changed[min(len(data) - 1, first + draws.randrange(800))] ^= 1 << draws.randrange(8)
        yield f"flips from byte {first}, {seed}", bytes(changed)


def hurt_packets(path: Path, target: Path, numbers: range, *, zeros: bool) -> Path:
    """A copy in which these packets are zeros, or noise, behind their first bytes; the index stays."""
    with av.open(str(path)) as container:
        spans = [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]
    data = bytearray(path.read_bytes())
    for pos, size in [spans[number] for number in numbers]:
        length = max(0, size - 6)
        data[pos + 6 : pos + 6 + length] = bytes(length) if zeros else random.Random(pos).randbytes(length)
    target.write_bytes(bytes(data))
    return target


def without(path: Path, target: Path, numbers: range) -> Path:
    """A copy that lacks these packets, as a recording does that lost them; the others keep their times."""
    with av.open(str(path)) as read, av.open(str(target), "w") as written:
        stream = written.add_stream_from_template(read.streams.video[0])
        for place, packet in enumerate(packet for packet in read.demux(video=0) if packet.size):
            if place not in numbers:
                packet.stream = stream
                written.mux(packet)
    return target


def outcome(path: Path, folder: Path) -> tuple[str, list[tuple[int, int]], int]:
    """Status, the unflagged frames that show another number than their time says (seen, due), and how many are flagged.

    Where the first frames are gone time counts from the first that is there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (done,) = draw(Task("r::::m", (str(path),), {"k": (None, None)}, str(path.parent)), SPEC, folder)
    if not done.ready:
        return done.status, [], 0
    frames = json.loads((folder / "k" / "frames.json").read_text())["frames"]
    seen = [number_of(folder / "k" / f"frame_{frame['index']}.jpg") for frame in frames]
    due = [round(frame["pts"] * RATE) for frame in frames]
    whole = [place for place, frame in enumerate(frames) if not frame["damaged"]]
    offset = seen[whole[0]] - due[whole[0]] if whole else 0
    wrong = [(seen[place], due[place] + offset) for place in whole if seen[place] != due[place] + offset]
    return done.status, wrong, len(frames) - len(whole)


Damage = Callable[[bytes], Iterator[tuple[str, bytes]]]
