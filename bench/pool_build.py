"""Times `benchcheck pool build` on a million rows of JSON lines: wall, processors and memory of all its processes.

Run with `python bench/pool_build.py [ROWS]`. Each build is a process of its own, beside a json.loads loop over the same
file: a machine's speed differs from hour to hour, their ratio hardly. Memory is the resident size of the build and its
workers together, looked at every 50 ms. Then what each part of the work costs a row, in one process.
"""

import itertools
import json
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

from benchcheck.pool.building.declared import declared
from benchcheck.pool.building.outcomes import outcome_of, settle
from benchcheck.pool.building.tasks import tasks_of
from benchcheck.pool.mapping import map_record
from benchcheck.pool.together import Together
from benchcheck.study import Study, items_table

REPEATS = 3
PLACES = ("table", "window", "door", "lamp", "shelf", "bed", "desk", "stairs")
COLOURS = ("red", "green", "blue", "yellow", "white", "black")


def rows(count: int) -> Iterator[str]:
    """Lines of 300 bytes: four options with letters before them, a gold letter, twelve questions a video."""
    rng = random.Random(7)
    for number in range(count):
        places = rng.sample(PLACES, 4)
        colour = rng.choice(COLOURS)
        yield json.dumps(
            {
                "id": f"q{number:07d}",
                "question": f"What does the person in the {colour} coat do after opening door number {number}?",
                "options": [f"{letter}. Walk to the {place}" for letter, place in zip("ABCD", places, strict=True)],
                "answer": "ABCD"[number % 4],
                "video": f"clips/{number // 12:06d}.mp4",
                "category": ("action", "order", "colour")[number % 3],
                "start": number % 50,
                "end": number % 50 + 10.5,
            }
        )


def resident(pid: int) -> int:
    """Bytes in memory of a process and all below it."""
    total, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except (OSError, IndexError):  # it has ended
            continue
    return total


def build(study: Study, workers: int) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak bytes of one build."""
    command = [sys.executable, "-m", "benchcheck", "pool", "build", str(study.root), "--workers", str(workers)]
    before, started, peak = processor_seconds(), time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"the build ended with {process.returncode}")
    return time.perf_counter() - started, processor_seconds() - before, peak


def processor_seconds() -> float:
    """Of this process's children that have ended, and theirs: a build waits for its workers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loop(path: Path) -> float:
    """Seconds of a json.loads loop."""
    started = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            json.loads(line)
    return time.perf_counter() - started


def compare(study: Study, path: Path, count: int, workers: int) -> None:
    for number in range(REPEATS):
        alone = loop(path)
        wall, used, peak = build(study, workers)
        print(
            f"{workers} worker(s), run {number + 1}: {wall:.1f} s ({wall / alone:.1f} times a json.loads loop of "
            f"{alone:.1f} s), {used:.1f} s of processors, {used / count * 1e6:.0f} us a row, peak {peak / 1e6:.0f} MB"
        )


def shares(study: Study) -> None:
    """What each part costs, one after the other in this process, on the first tasks of the file."""
    spec, path = declared(study)[0].spec, declared(study)[0].files[0]
    tasks = list(itertools.islice(tasks_of([path], spec, None), 10))
    together, count, spent, clock = Together(spec), 0, defaultdict[str, float](float), time.process_time()

    def lap(name: str) -> None:
        nonlocal clock
        spent[name] += time.process_time() - clock
        clock = time.process_time()

    with tempfile.NamedTemporaryFile() as file:
        for task in tasks:
            clock = time.process_time()
            records, _ = task.read(spec.layout)
            lap("read")
            mapped = [map_record(spec, record, count + number) for number, record in enumerate(records)]
            lap("map")
            items = [one.item for one in mapped if one.item is not None]
            [(item.digest, item.frames_key) for item in items]
            lap("digests")
            items_table(items)
            lap("digests and columns")
            found = outcome_of(mapped)
            lap("digests, columns and counts")
            data = pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
            lap("send")
            found = pickle.loads(data)
            lap("receive")
            table = settle(found, together).table
            lap("fold")
            pq.write_table(table, file.name, compression="zstd")
            lap("write")
            count += len(records)
    print(", ".join(f"{name} {seconds / count * 1e6:.1f}" for name, seconds in spent.items()), "us a row")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in rows(count))
        study = Study.create(Path(folder) / "study", pool=[{"spec": "generic", "files": [str(path)]}])
        print(f"{count:,} rows of {path.stat().st_size / count:.0f} bytes, {os.cpu_count()} cores")
        shares(study)
        for workers in (1, 2):
            compare(study, path, count, workers)
        size = study.pool_file.stat().st_size
        print(f"the pool: {size / 1e6:.0f} MB, {size / count:.0f} bytes an item")


if __name__ == "__main__":
    main()
