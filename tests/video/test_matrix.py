"""The product of clips (matrix.py): the frames on screen are chosen, read off their pattern, either way."""

import random
from fractions import Fraction
from pathlib import Path

import pytest

from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.grid import Timeline, grid_times, span_of

from .matrix import CODECS, CONTAINERS, STEADY, TIMINGS, Cell, cells, shown
from .test_decode import numbers

SPEC = Spec(count=32, long_side=448, quality=85)
CELLS = tuple(cells())


def looked_at(video: Video, window: tuple[int, int]) -> tuple[Timeline, list[list[int]]]:
    """The timeline, and the numbers seen in the whole video and in a window of it (in ms)."""
    pictures = None
    while pictures is None:
        timeline = video.timeline()
        spans = [span_of(part, timeline.length) for part in ((None, None), window)]
        chosen = [[timeline.shown_at(time) for time in grid_times(*span, 32)] for span in spans]
        pictures = video.pictures({index for indices in chosen for index in indices})
    seen = {index: numbers([jpeg])[0] for index, jpeg in pictures.items()}
    return timeline, [[seen[index] for index in indices] for indices in chosen]


def check(cell: Cell, folder: Path) -> None:
    path, pts = str(cell.write(folder)), cell.pts()
    end = int(pts[-1] * 1000) + 1
    start = random.Random(str(cell)).randrange(end)
    window = (start, random.Random(f"{cell} end").randint(start + 1, end))
    timeline, quick = looked_at(Video(path, SPEC), window)
    again, thorough = looked_at(Video(path, SPEC, thorough=True), window)
    assert (timeline, quick) == (again, thorough), f"{cell}: two ways, two results"
    assert [(tick - timeline.pts[0]) * timeline.time_base for tick in timeline.pts] == pts, cell
    if cell.timing in STEADY:
        rounding = Fraction(1, CONTAINERS[cell.container].base or 10**6)
        assert abs(timeline.length - cell.frames / TIMINGS[cell.timing].rate) <= rounding, cell
    assert pts[-1] < timeline.length, cell
    assert not timeline.damaged | timeline.holes, cell
    start_s, end_s = Fraction(window[0], 1000), min(Fraction(window[1], 1000), timeline.length)
    for seen, (begin, stop) in zip(quick, ((Fraction(0), timeline.length), (start_s, end_s)), strict=True):
        times = [begin + (stop - begin) * Fraction(2 * place + 1, 64) for place in range(32)]
        assert seen == shown(pts, times), cell


def sampled() -> list[Cell]:
    """Two cells of every codec and one of every container and timing, the same in every run."""
    draw = random.Random(5)
    groups = [[cell for cell in CELLS if cell.codec == codec] for codec in (*CODECS, *CODECS)]
    groups += [[cell for cell in CELLS if cell.container == container] for container in CONTAINERS]
    groups += [[cell for cell in CELLS if cell.timing == timing] for timing in TIMINGS]
    return list(dict.fromkeys(draw.choice([cell for cell in group if cell.frames < 400]) for group in groups))


@pytest.mark.parametrize("cell", sampled(), ids=str)
def test_a_sample_of_the_product(cell: Cell, tmp_path: Path) -> None:
    check(cell, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("codec", CODECS)
def test_the_whole_product(codec: str, timing: str, tmp_path: Path) -> None:
    for cell in CELLS:
        if (cell.codec, cell.timing) == (codec, timing):
            check(cell, tmp_path)
