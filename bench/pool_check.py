"""Times `benchcheck pool check` on 300,000 items of 100 benchmarks, beside reading the same Parquet file once.

Run with `python bench/pool_check.py [ITEMS]`. Options have 2 to 10 texts an item: half of the items choose theirs from
a few thousand (colours, counts, names), the other half have sentences of their own. A twentieth of the items repeat an
earlier one of their benchmark, another twentieth one of the benchmark before. The command is timed as a whole process;
the reading is a process of its own too, so that both pay for Python and pyarrow.
"""

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchcheck.pool.items import Item, VideoRef
from benchcheck.study import Study

BENCHES = 100
REPEATS = 3
LINE = "red blue green small large man woman dog table door left right walks takes opens holds after before two"
WORDS = LINE.split()
READ = "import sys, pyarrow.parquet as pq; print(pq.read_table(sys.argv[1]).num_rows)"


def items(count: int) -> Iterator[Item]:
    """Items of all benchmarks, one benchmark after the other."""
    rng = random.Random(4)
    stock = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))) + f" {number % 900}" for number in range(3000)]
    before: list[Item] = []
    for number in range(BENCHES):
        bench, mine = f"bench{number}", list[Item]()
        for row in range(count // BENCHES):
            draw = rng.random()
            source = mine if draw < 0.05 else before if draw < 0.1 else []
            item = again(rng.choice(source), bench, row) if source else new(rng, stock, bench, row)
            mine.append(item)
            yield item
        before = mine


def again(item: Item, bench: str, row: int) -> Item:
    return replace(item, bench=bench, item_id=f"{bench}_{row}", source_id=str(row), issues=("repeated_item",))


def new(rng: random.Random, stock: list[str], bench: str, row: int) -> Item:
    size = rng.choice((2, 3, 4, 4, 4, 4, 5, 5, 10))
    sentences = [
        f"The {' '.join(rng.choices(WORDS, k=rng.randint(4, 14)))} number {rng.random():.9f}" for _ in range(size)
    ]
    video = VideoRef(bench, f"videos/{row // 3}.mp4")
    return Item(
        item_id=f"{bench}_{row}",
        bench=bench,
        source_id=str(row),
        question=f"What does the {' '.join(rng.choices(WORDS, k=9))}, seen {rng.randrange(40)} times?",
        options=tuple(rng.sample(stock, size) if row % 2 else sentences),
        gold=rng.randrange(size),
        format="mcq",
        video_key=video.key,
        video_id=video.video_id,
        start=float(rng.randrange(60)),
        end=90.0,
        category=f"type {rng.randrange(8)}",
        issues=("answer_in_question",) if rng.random() < 0.05 else (),
    )


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds of a process, and its peak memory in MB."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - started, used.ru_maxrss / 1e3


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(Path(folder) / "study")
        written = study.write_pool(items(count))
        options = sum(len(row) for row in study.item_table(["options"]).column("options").to_pylist())
        size = study.pool_file.stat().st_size / 1e6
        print(f"{written:,} items, {options:,} options, {BENCHES} benchmarks, {size:.0f} MB, {os.cpu_count()} cores")
        check = [sys.executable, "-m", "benchcheck", "pool", "check", str(study.root), "--json", f"{folder}/check.json"]
        read = [sys.executable, "-c", READ, str(study.pool_file)]
        runs = [(timed(check), timed(read)) for _ in range(REPEATS)]
        for name, number in (("benchcheck pool check", 0), ("reading the Parquet file", 1)):
            walls, peaks = zip(*(run[number] for run in runs), strict=True)
            spread = f"{min(walls):.2f} to {max(walls):.2f}, {REPEATS} runs"
            print(f"{name}: median {statistics.median(walls):.2f} s ({spread}), peak {max(peaks):,.0f} MB")
        ratios = [one[0] / other[0] for one, other in runs]
        print(f"check / reading, run by run: median {statistics.median(ratios):.1f} (load {os.getloadavg()[0]:.1f})")
        print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s to write the pool")


if __name__ == "__main__":
    main()
