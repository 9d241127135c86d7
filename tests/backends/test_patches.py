import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from benchcheck.backends.patches import BrokenFrameError, Recipe, opened, patchify, pixels, resized
from benchcheck.errors import ModelRefusedError

torch = pytest.importorskip("torch")
SIZES = ((448, 256), (448, 252), (256, 448), (320, 180), (97, 61), (1000, 37), (31, 17))


@pytest.fixture(scope="module", params=["embedded", "real bounds"])
def folder(request, model_folder, tmp_path_factory):
    """The embedded checkpoint, whose frames are all 64 x 64, and one with the pixel bounds of the real models."""
    if request.param == "embedded":
        return model_folder
    place = Path(shutil.copytree(model_folder, tmp_path_factory.mktemp("real") / "m", copy_function=shutil.copyfile))
    config = json.loads((place / "processor_config.json").read_text())
    config["image_processor"]["size"] = {"shortest_edge": 65_536, "longest_edge": 16_777_216}
    (place / "processor_config.json").write_text(json.dumps(config))
    return place


def saved(path, size, mode="RGB"):
    coarse = np.random.default_rng(sum(size)).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).convert(mode).save(path, quality=85)
    return str(path)


def ours(path, recipe):
    image, _ = opened(path)
    frame = resized(pixels(image, path), *recipe.size(image.height, image.width))
    out = np.empty((frame.shape[0] * frame.shape[1] // recipe.patch**2, recipe.width), np.uint8)
    return patchify(frame, recipe, out), out


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_patches_are_those_of_the_models_own_processor(folder, tmp_path, size, mode):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    path = saved(tmp_path / "f.jpg", size, mode)
    grid, mine = ours(path, Recipe.of(folder))
    given = Qwen2VLImageProcessorPil.from_pretrained(folder)(images=Image.open(path), return_tensors="np")
    assert given["image_grid_thw"].tolist() == [[1, *grid]]
    theirs = np.rint(given["pixel_values"] * 127.5 + 127.5).reshape(len(mine), 3, 2, -1)
    assert np.array_equal(theirs[:, :, 0], theirs[:, :, 1])
    apart = np.abs(theirs[:, :, 0].reshape(mine.shape) - mine)
    # This one resizes with Pillow, whose bicubic differs in the last bit; that of torchvision, which does not, is
    # compared in the environment that has it (tests marked long).
    assert apart.max() <= 2
    assert apart.mean() < 0.05
    if Recipe.of(folder).size(*size[::-1]) == size[::-1]:
        assert apart.max() == 0


def test_a_frame_of_the_right_size_is_not_touched():
    frame = np.random.default_rng(0).integers(0, 255, (64, 96, 3), dtype=np.uint8)
    assert resized(frame, 64, 96) is frame
    grown = resized(frame, 128, 96)
    assert grown.shape == (128, 96, 3)
    frame.flags.writeable = False
    assert np.array_equal(resized(frame, 128, 96), grown)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 3000), st.integers(1, 3000))
def test_the_size_is_that_of_the_models_own_processor(height, width):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

    recipe = Recipe(16, 2, 65_536, 1_000_000, (0.5,) * 3, (0.5,) * 3)
    try:
        theirs = smart_resize(height, width, 32, 65_536, 1_000_000)
    except ValueError:
        with pytest.raises(BrokenFrameError, match="over 200 times the other"):
            recipe.size(height, width)
        return
    assert recipe.size(height, width) == theirs


def test_a_recipe_survives_json():
    recipe = Recipe(16, 2, 1, 2, (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert Recipe.of_table(json.loads(json.dumps(recipe.table()))) == recipe


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"resample": 2}, "resample is 2. Allowed: 3"),
        ({"do_rescale": False}, "do_rescale is False. Allowed: True"),
        ({"temporal_patch_size": 4}, "temporal_patch_size is 4. Allowed: 2"),
        ({"rescale_factor": 1 / 128}, "rescale_factor is 0.0078125"),
        ({"patch_size": None}, "the image processor of a Qwen3-VL checkpoint"),
        ({"image_mean": [0.5, 0.5]}, "the image processor of a Qwen3-VL checkpoint"),
        ({"size": {"height": 3, "width": 3}}, "'shortest_edge'"),
        ({"size": {"shortest_edge": 9, "longest_edge": 3}}, "0 < shortest_edge <= longest_edge"),
    ],
)
def test_a_recipe_that_is_not_followed_to_the_bit_is_refused(damaged, change, said):
    path = damaged / "processor_config.json"
    config = json.loads(path.read_text())
    config["image_processor"] |= change
    path.write_text(json.dumps(config))
    with pytest.raises(ModelRefusedError, match=r"Cure: use the transformers backend") as refusal:
        Recipe.of(damaged)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_where_the_recipe_is_looked_for(damaged):
    whole = damaged / "processor_config.json"
    mine = json.loads(whole.read_text())["image_processor"]
    old = {key: value for key, value in mine.items() if key != "size"} | {"min_pixels": 1024, "max_pixels": 4096}
    (damaged / "preprocessor_config.json").write_text(json.dumps(old))
    assert Recipe.of(damaged).min_pixels == 4096  # processor_config.json goes first, as in transformers
    whole.unlink()
    assert (Recipe.of(damaged).min_pixels, Recipe.of(damaged).max_pixels) == (1024, 4096)
    (damaged / "preprocessor_config.json").write_text("{")
    with pytest.raises(ModelRefusedError, match="not JSON"):
        Recipe.of(damaged)
    (damaged / "preprocessor_config.json").unlink()
    with pytest.raises(ModelRefusedError, match="no image processor"):
        Recipe.of(damaged)


@pytest.mark.parametrize("content", [b"", b"no image", None, "cut"])
def test_what_is_no_frame_is_named(tmp_path, content):
    path = tmp_path / "f.jpg"
    if content == "cut":
        saved(path, (448, 252))
        path.write_bytes(path.read_bytes()[:2000])
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(BrokenFrameError) as broken:
        pixels(opened(str(path))[0], str(path))
    assert str(broken.value).startswith(f"{path}: ")
    assert "\n" not in str(broken.value)
