"""Times `benchcheck plan` on 300,000 items with one full step on disk, beside a plain json.loads loop over its rows.

Run with `python bench/plan.py [ITEMS]`. The command is timed as a whole process, the loop without its process; both
in one run, since a machine's speed differs from hour to hour.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchcheck.config import step_key
from benchcheck.pool.items import Item, VideoRef
from benchcheck.screen.answers import Asking, answer_row, prompts_of
from benchcheck.screen.readings import LetterLogprobs, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study

BENCHES = 12
REPEATS = 5


def items(count: int) -> Iterator[Item]:
    for index in range(count):
        bench = f"bench{index % BENCHES}"
        ref = VideoRef(bench, f"videos/{index // 3}.mp4")
        yield Item(
            item_id=f"{bench}_{index // BENCHES}",
            bench=bench,
            source_id=str(index),
            question=f"What does the person in the red coat do after opening door number {index}?",
            options=tuple(f"They walk to the {place} and sit down" for place in ("table", "window", "bed", "lamp")),
            gold=index % 4,
            format="mcq",
            video_key=ref.key,
            video_id=ref.video_id,
        )


def write_rows(study: Study, pool: list[Item]) -> int:
    """Write one answer per item in step 1; returns the bytes of all rows."""
    step, rng = LADDER[1], random.Random(1)
    engine = {"name": "transformers", "version": "5.24.0", "dtype": "bfloat16", "device": "NVIDIA H200"}
    asking = Asking(
        study.config, step, step_key(study.config, step), "0c351dd01ed87e9c1b53cbc748cba10e6187ff3b", engine
    )
    rows: dict[str, list[dict[str, object]]] = {}
    for item in pool:
        prompts = prompts_of(item, step, study.config)
        readings = []
        for _ in prompts:
            letters = LetterLogprobs(tuple(-rng.expovariate(0.4) for _ in range(4)), (), 0.9 + rng.random() / 10)
            readings.append(Reading(letters, 130, round(rng.random(), 6)))
        rows.setdefault(item.bench, []).append(answer_row(asking, item, prompts, readings, "2026-01-01T00:00:00+00:00"))
    for bench, of in rows.items():
        study.append(1, bench, None, of)
    return sum(path.stat().st_size for path in study.step_files(1))


def loads_loop(study: Study) -> int:
    count = 0
    for path in study.step_files(1):
        with path.open("rb") as file:
            for line in file:
                count += json.loads(line)["n_right"] >= 0
    return count


def plan(study: Study) -> str:
    command = [sys.executable, "-m", "benchcheck", "plan", str(study.root)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]


def timed(work: Callable[[Study], object], study: Study) -> tuple[float, float]:
    """Seconds on the clock and of all processors, children included."""
    clock, processor = time.perf_counter(), processor_seconds()
    work(study)
    return time.perf_counter() - clock, processor_seconds() - processor


def processor_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(Path(folder) / "study")
        pool = list(items(count))
        study.write_pool(pool)
        size = write_rows(study, pool)
        del pool
        print(f"{count:,} items, {count:,} rows of {size / count:,.0f} bytes, {os.cpu_count()} cores; {plan(study)}")
        plans, loops = [], []
        for _ in range(REPEATS):
            plans.append(timed(plan, study))
            loops.append(timed(loads_loop, study))
        for name, runs in (("benchcheck plan, whole process", plans), ("json.loads loop alone", loops)):
            clock, processor = zip(*runs, strict=True)
            spread = f"{min(clock):.2f} to {max(clock):.2f}, {REPEATS} runs"
            used = f"{statistics.median(processor):.2f} s of processors"
            print(f"{name}: median {statistics.median(clock):.2f} s ({spread}), {used}")
        ratios = [one[0] / other[0] for one, other in zip(plans, loops, strict=True)]
        print(
            f"plan / loop, run by run: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
