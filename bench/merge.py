"""Times `pack` and `merge` of a large screening: 300,000 items, every step answered for every item.

Run with `python bench/merge.py [ITEMS]`; writing the rows takes some minutes and 2 GB. Each command is a process of its
own, so that its peak memory is its own; it merges into a study without rows, then once more, when all rows are there.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plan import items, write_rows

from benchcheck.screen.steps import LADDER
from benchcheck.study import CONFIG_NAME, Study


def timed(name: str, rows: int, *command: object) -> None:
    start = time.monotonic()
    arguments = [sys.executable, "-m", "benchcheck", *map(str, command)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    assert process.returncode == 0, f"{name} ended with {process.returncode}"
    print(f"{name}: {wall:.1f} s, {rows / wall:,.0f} rows/s, peak {usage.ru_maxrss / 1024:,.0f} MB", flush=True)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        there = Study.create(Path(folder) / "there")
        pool = list(items(count))
        there.write_pool(pool)
        rows = sum(write_rows(there, pool, number, 1.0, 0.8) for number in LADDER)
        size = sum(path.stat().st_size for step in LADDER for path in there.step_files(step))
        home = Path(folder) / "home"
        (home / "results").mkdir(parents=True)
        shutil.copyfile(there.root / CONFIG_NAME, home / CONFIG_NAME)
        shutil.copyfile(there.pool_file, home / "results" / there.pool_file.name)
        print(f"{count:,} items, {rows:,} rows, {size / 1e6:,.0f} MB of JSON", flush=True)
        timed("pack", rows, "pack", there.root, "--to", folder)
        (file,) = Path(folder).glob("pool_returns_*.tar.gz")
        print(f"packed: {file.stat().st_size / 1e6:,.0f} MB")
        timed("merge, nothing there yet", rows, "merge", home, file)
        timed("merge again", rows, "merge", home, file)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300_000)
