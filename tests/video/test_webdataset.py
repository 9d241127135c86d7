"""Shards are read by the webdataset library, as docs/shards.md shows."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from benchcheck.config import Frames
from benchcheck.study import Study
from benchcheck.video.frames import Drawn, publish_frames

from .shard_studies import COUNT, KEYS, packed, pool

PAGE = Path(__file__).parents[2] / "docs" / "shards.md"


def snippet() -> str:
    """The code of the page that reads shards."""
    found = re.findall(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [body for body in found if "import webdataset" in body]
    return code


@pytest.fixture
def shards(make_study: Callable[..., Study], tmp_path: Path) -> Path:
    study = pool(make_study(Frames(count=COUNT, single=1)))
    about = {"count": COUNT, "long_side": 448, "quality": 85, "normalized": None}
    for number, key in enumerate(KEYS):
        drawn = []
        for index in range(COUNT):
            path = tmp_path / "picture.jpg"
            Image.new("RGB", (16, 8), (number * 20, index * 80, 0)).save(path)
            drawn.append(Drawn(float(index), False, False, path.read_bytes()))
        publish_frames(study.frames, key, drawn, about)
    return packed(study, study.root / "frames" / "shards", shard_bytes=15_000)


def test_the_pages_code_reads_every_set(shards: Path) -> None:
    """One sample a set: its JPEGs and its frames.json. Warnings are errors there, too."""
    assert len(list(shards.glob("*.tar"))) > 2
    report = """
import json
print(json.dumps({key: [table["key"], [one.getpixel((3, 3)) for one in images]] for key, table, images in seen}))
"""
    code = snippet().replace('print(key, len(images), table["quality"])', "seen.append((key, table, images))")
    assert "seen.append" in code
    command = [sys.executable, "-W", "error", "-c", f"seen = []\n{code}\n{report}"]
    done = subprocess.run(command, cwd=shards.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found) == KEYS
    for number, key in enumerate(KEYS):
        name, pixels = found[key]
        assert name == key
        assert len(pixels) == COUNT
        for index, (red, green, _) in enumerate(pixels):
            assert abs(red - number * 20) < 12
            assert abs(green - index * 80) < 12


def test_the_librarys_own_grouping_gives_one_sample_a_frame(shards: Path) -> None:
    code = """
import json, sys, webdataset as wds
samples = list(wds.WebDataset(sorted(sys.argv[1:]), shardshuffle=False))
print(json.dumps([[one["__key__"], sorted(name for name in one if not name.startswith("__"))] for one in samples]))
"""
    files = [str(path) for path in shards.glob("*.tar")]
    command = [sys.executable, "-W", "error", "-c", code, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    samples = json.loads(done.stdout)
    kinds = dict(samples)
    assert len(samples) == len(kinds) == len(KEYS) * (COUNT + 1)
    for key in KEYS:
        assert kinds[f"{key}/frames"] == ["json"]
        assert all(kinds[f"{key}/frame_{index}"] == ["jpg"] for index in range(COUNT))
