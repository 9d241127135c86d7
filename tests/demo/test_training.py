"""The trainer: its network is transformers' network, its batches repeat, its tokenizer is the one that is shipped."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchcheck.demo import controls

MODELS = Path(controls.__file__).parent / "models"
TRAINING = Path(__file__).parents[2] / "training"

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def _on_the_path() -> Iterator[None]:
    pytest.importorskip("transformers", reason="needs the transformers extra")
    sys.path.insert(0, str(TRAINING))
    yield
    sys.path.remove(str(TRAINING))


@pytest.mark.parametrize("name", ["large", "small"])
def test_the_forward_pass_is_that_of_transformers(name: str) -> None:
    from check_network import difference

    assert difference(MODELS / name, 8) < 1e-3


@pytest.mark.parametrize("sort", ["frames", "one_frame", "text"])
def test_a_batch_is_the_same_every_time_and_its_targets_are_distributions(sort: str) -> None:
    from batches import Lessons
    from pupils import PUPILS

    first, again = (Lessons(MODELS / "small", PUPILS["small"][1], sort, 24, 1)[5] for _ in range(2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert np.allclose(first["target"].sum(1), 1)
    assert (first["text"][np.arange(24), first["last"]] > 0).all()


@pytest.mark.parametrize("name", ["large", "small"])
def test_the_files_beside_the_weights_are_those_that_the_trainer_writes(name: str, tmp_path: Path) -> None:
    from model_files import write_model_files
    from pupils import PUPILS

    write_model_files(tmp_path, PUPILS[name][0])
    for written in tmp_path.iterdir():
        assert written.read_bytes() == (MODELS / name / written.name).read_bytes(), written.name


def test_painted_frames_are_close_to_decoded_ones(tmp_path: Path) -> None:
    import random

    import torch
    from batches import Lesson, _scenes
    from evaluate import Checkpoint, grid_frames
    from paint import paint

    from benchcheck.demo.clips import write_clip
    from benchcheck.demo.scenes import draw_scene, grid
    from benchcheck.demo.world import make_item
    from benchcheck.screen.steps import Sight

    rng = random.Random(3)
    scene = draw_scene(rng, n_colours=4)
    write_clip(scene, tmp_path / "clip.mp4")
    decoded, _ = Checkpoint(MODELS / "small", "cpu").prepare(grid_frames(tmp_path / "clip.mp4"))
    lesson = Lesson(make_item(rng, "first", scene), Sight.FRAMES, grid(32), "")
    batch = {name: torch.from_numpy(values) for name, values in _scenes([lesson]).items()}
    painted, _, _ = paint(batch, torch.Generator().manual_seed(0))
    once = decoded.reshape(32, 16, 3, 2, 256)[:, :, :, 0].reshape(32, 16, 768)
    assert float((once - painted[0]).abs().mean()) * 127.5 < 12
