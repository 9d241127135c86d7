"""Times planning at the size of a large screening: 300,000 items and six steps with a million rows on disk.

Run with `python bench/plan.py [ITEMS]`; writing the rows takes a few minutes and 1 GB. `benchcheck plan` is timed as
a whole process beside a plain json.loads loop over the same rows; both in one run, since a machine's speed differs
from hour to hour. Then what a task of an array pays before its first prompt.
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
from benchcheck.run.plan import load_pool, survey, units_of
from benchcheck.run.shard import shard_flags, shard_units
from benchcheck.screen.answers import Asking, answer_row, prompts_of
from benchcheck.screen.readings import LetterLogprobs, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study

BENCHES = 12
REPEATS = 3
SURVIVE = {1: 1.0, 2: 0.7, 3: 0.55, 4: 0.45, 5: 0.36, 6: 0.3}
"""Share of the items that come to each step: 300,000 items give 1,008,000 rows."""


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


def write_rows(study: Study, pool: list[Item], number: int, coming: float, passing: float) -> int:
    """Write an answer of each item that comes to a step; the first of them pass it. Returns the number of rows."""
    step, rng = LADDER[number], random.Random(number)
    engine = {"name": "vllm", "version": "0.25.1", "dtype": "bfloat16", "device": "NVIDIA H200"}
    revision = study.config.models[step.role].revision
    asking = Asking(study.config, step, step_key(study.config, step), revision, engine)
    there = pool[: round(len(pool) * coming)]
    rows: dict[str, list[dict[str, object]]] = {}
    for place, item in enumerate(there):
        passes = place < len(pool) * passing
        readings, prompts = [], prompts_of(item, step, study.config)
        for prompt in prompts:
            gold = prompt.order.index(item.gold or 0)
            lead = -3.0 if passes else 3.0
            logs = tuple(-rng.expovariate(0.4) + lead * (letter == gold) for letter in range(4))
            readings.append(Reading(LetterLogprobs(logs, (), 0.9 + rng.random() / 10), 130, round(rng.random(), 6)))
        row = answer_row(asking, item, prompts, readings, "2026-01-01T00:00:00+00:00")
        rows.setdefault(item.bench, []).append(row)
        if len(rows[item.bench]) == 2000:
            study.append(number, item.bench, None, rows.pop(item.bench))
    for bench, rest in rows.items():
        study.append(number, bench, None, rest)
    return len(there)


def loads_loop(study: Study) -> int:
    count = 0
    for step in LADDER:
        for path in study.step_files(step):
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


def compare(study: Study) -> None:
    """`benchcheck plan` beside the loop, run by run."""
    plans, loops = [], []
    for _ in range(REPEATS):
        plans.append(timed(plan, study))
        loops.append(timed(loads_loop, study))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    for name, runs in (("benchcheck plan, whole process", plans), ("json.loads loop alone", loops)):
        clock, processor = zip(*runs, strict=True)
        spread = f"{min(clock):.2f} to {max(clock):.2f}, {REPEATS} runs"
        used = f"{statistics.median(processor):.2f} s of processors"
        print(f"{name}: median {statistics.median(clock):.2f} s ({spread}), {used}")
    print(f"benchcheck plan: peak {peak:.2f} GB of memory")
    ratios = [one[0] / other[0] for one, other in zip(plans, loops, strict=True)]
    print(f"plan / loop, run by run: median {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def a_task_s_start(study: Study) -> None:
    """What a task of an array of 64 pays before its first prompt, beside the import of the package."""
    started = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal started
        print(f"{name}: {time.perf_counter() - started:.2f} s")
        started = time.perf_counter()

    pool = load_pool(study)
    lap("load_pool")
    units_of(pool, 1)
    lap("units_of, 1 task")
    units_of(pool, 64)
    lap("units_of, 64 tasks")
    shard_units(pool, (5, 64), 1)
    shard_flags(pool, (5, 64))
    lap("shard_units and shard_flags of task 5 of 64")
    survey(study, pool)
    lap("survey of six steps")
    units = [unit for task in units_of(pool, 1000) for unit in task]
    lap(f"units_of, 1000 tasks: {len(units):,} units")
    for unit in units[:20]:
        study.items(unit.item_ids)
    lap(f"items of 20 units of {len(units[0].item_ids)}")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(Path(folder) / "study")
        pool = list(items(count))
        study.write_pool(pool)
        for key in {item.frames_key for item in pool}:
            (study.frames / key).mkdir(parents=True)
        coming = list(SURVIVE.values())
        passing = [*coming[1:], coming[-1] / 2]
        rows = sum(
            write_rows(study, pool, step, *shares) for step, *shares in zip(LADDER, coming, passing, strict=True)
        )
        size = sum(path.stat().st_size for step in LADDER for path in study.step_files(step))
        del pool
        print(f"{count:,} items, {rows:,} rows of {size / rows:,.0f} bytes, {os.cpu_count()} cores; {plan(study)}")
        for step in LADDER:
            files = study.step_files(step)
            lines = round(count * SURVIVE[step])
            print(f"step {step}: {sum(path.stat().st_size for path in files) / lines:,.0f} bytes a row")
        compare(study)
        a_task_s_start(study)


if __name__ == "__main__":
    main()
