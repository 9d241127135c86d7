"""The trainer: its network is transformers' network, its batches repeat, its tokenizer is the one that is shipped."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchcheck.demo import controls

if TYPE_CHECKING:
    import torch

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
    from bank import Bank, draw_scenes
    from batches import Lessons
    from pupils import PUPILS

    bank = Bank(draw_scenes(40))
    first, again = (Lessons(MODELS / "small", PUPILS["small"][1], sort, 24, 1, bank)[5] for _ in range(2))
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
    from bank import Bank
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
    batch = {name: torch.from_numpy(values) for name, values in _scenes([lesson], Bank()).items()}
    painted, _, _ = paint(batch, torch.Generator().manual_seed(0))
    once = decoded.reshape(32, 16, 3, 2, 256)[:, :, :, 0].reshape(32, 16, 768)
    assert float((once - painted[0]).abs().mean()) * 127.5 < 12


def test_a_clip_of_the_bank_is_what_a_screening_shows_the_model(tmp_path: Path) -> None:
    from bank import SPEC, clip_frames
    from evaluate import Checkpoint
    from PIL import Image

    from benchcheck.video.making.draw import draw
    from benchcheck.video.task import Task

    video = controls.make_controls(tmp_path, n_per_class=1, workers=1).videos[0]
    task = Task("controls:v", (str(video),), {"v": (None, None)}, str(tmp_path))
    assert draw(task, SPEC, tmp_path / "frames")[0].ready
    files = [tmp_path / "frames" / "v" / f"frame_{index}.jpg" for index in range(SPEC.count)]
    shown, _ = Checkpoint(MODELS / "small", "cpu").prepare([Image.open(file) for file in files])
    ours = _patches(clip_frames(video))
    difference = (shown.reshape(32, 16, 3, 2, 256)[:, :, :, 0].reshape(32, 16, 768) - ours).abs() * 127.5
    assert float(difference.max()) < 1.5
    assert float(difference.mean()) < 0.1


def test_no_scene_of_the_bank_is_a_control_and_every_clip_is_asked_about() -> None:
    from bank import PAINTED, Bank, draw_scenes
    from batches import Lessons
    from pupils import PUPILS

    scenes = draw_scenes(400)
    assert scenes == draw_scenes(400)
    assert len(set(scenes)) == 400
    held = {control.item.scene for seed in (1, 2, 7) for control in controls.draw_controls(50, seed)}
    assert not held & set(scenes)
    lessons = Lessons(MODELS / "small", PUPILS["small"][1], "frames", 200, 1, Bank(scenes))
    clips = np.concatenate([lessons[number]["clip"] for number in range(20)])
    assert 0.45 < float(np.mean(clips != PAINTED)) < 0.55
    assert len(set(clips)) > 380


@pytest.mark.parametrize("n_frames", [1, 8])
def test_a_lesson_about_a_clip_shows_its_frames_and_asks_about_its_scene(n_frames: int) -> None:
    import random

    import torch
    from bank import Bank, draw_scenes
    from batches import Lesson, _scenes
    from lessons import draw_item
    from paint import paint

    from benchcheck.demo.scenes import grid
    from benchcheck.screen.steps import Sight

    scenes = draw_scenes(60)
    bank, rng = Bank(scenes), random.Random(0)
    items = [draw_item(rng, "never", draw=bank.draw), draw_item(rng, "count")]
    cells = tuple(rng.sample(grid(n_frames), n_frames))
    lessons = [Lesson(item, Sight.SHUFFLED, cells, "") for item in items]
    batch = {name: torch.from_numpy(values) for name, values in _scenes(lessons, bank).items()}
    number = scenes.index(items[0].scene)
    assert batch["clip"].tolist() == [number, -1]
    assert tuple(batch["colours"][0].tolist()) == scenes[number].colours
    clips = torch.randint(0, 256, (60, 32, 64, 64, 3), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    with_clips, without = (paint(batch, torch.Generator().manual_seed(0), each)[0] for each in (clips, None))
    assert torch.equal(with_clips[0], _patches(clips[number, list(cells)].numpy()))
    assert torch.equal(with_clips[1], without[1])


def _patches(frames: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]") -> "torch.Tensor":
    import torch
    from paint import to_patches

    return to_patches(torch.from_numpy(frames).permute(0, 3, 1, 2).float())
