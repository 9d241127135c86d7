import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchcheck.backends.pixels import FrameReader, Memory, UndecodableFrameError
from benchcheck.errors import ModelRefusedError

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def reader(model_folder):
    opened = FrameReader(model_folder)
    yield opened
    opened.close()


@pytest.mark.parametrize("number", range(4))
def test_patches_are_those_of_the_checkpoints_image_processor(reader, model_folder, video, number):
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    (path,) = video(number, 1)
    patches = reader.read(path)
    given_by = Qwen2VLImageProcessorPil.from_pretrained(model_folder)(images=[Image.open(path)], return_tensors="np")
    assert (patches.values == given_by["pixel_values"]).all()
    assert [1, *patches.grid] == given_by["image_grid_thw"][0].tolist()
    assert patches.values.dtype == np.float32


def test_a_missing_or_broken_frame_says_so(reader, video, tmp_path):
    (path,) = video(0, 1)
    cut, text = tmp_path / "cut.jpg", tmp_path / "text.jpg"
    with open(path, "rb") as file:
        cut.write_bytes(file.read()[:2000])
    text.write_text("no image")
    good, *bad = reader.take([path, str(cut), str(text), str(tmp_path / "none.jpg")])
    assert good.grid
    for error, name in zip(bad, ("cut.jpg", "text.jpg", "none.jpg"), strict=True):
        assert isinstance(error, UndecodableFrameError)
        assert name in str(error)
        assert "\n" not in str(error)


def test_a_checkpoint_without_image_processor_is_refused(damaged):
    for name in ("processor_config.json", "preprocessor_config.json"):
        (damaged / name).unlink(missing_ok=True)
    with pytest.raises(ModelRefusedError, match="no image processor can be loaded"):
        FrameReader(damaged)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 5)), max_size=30), st.integers(1, 12))
def test_memory_stays_within_its_bytes_and_keeps_the_latest(puts, limit):
    memory = Memory(limit, int)
    for key, size in puts:
        kept = memory.get(key)
        memory.put(key, size)
        assert memory.get(key) == (size if kept is None else kept)
        assert memory.bytes <= limit or len(memory) == 1


def test_memory_lets_the_least_recently_used_go_first():
    memory = Memory(2, lambda _: 1)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.get("a")
    memory.put("c", 3)
    assert [memory.get(key) for key in "abc"] == [1, None, 3]
    memory.clear()
    assert (len(memory), memory.bytes) == (0, 0)
