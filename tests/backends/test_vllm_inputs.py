"""Prompts for the engine, against a package `vllm` in small that checks what it is given."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from benchcheck.backends.decoding import FramePatches
from benchcheck.backends.rendering import Rendered
from benchcheck.backends.vllm_inputs import Ordinary, ReadyMade

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


class Mirror:
    """vLLM's sender cache in small, holding two items."""

    def __init__(self):
        self.held, self.calls = [], []

    def is_cached_item(self, digest):
        return digest in self.held

    def touch_sender_cache_item(self, digest):
        self.calls.append(("touch", digest))
        self.held.remove(digest)
        self.held.append(digest)

    def get_and_update_item(self, item, digest):
        self.calls.append(("get", digest))
        if digest in self.held:
            return None, []
        self.held = [*self.held, digest][-2:]
        return item


class Fields:
    @staticmethod
    def flat_from_sizes(modality, sizes):
        return ("flat", modality, sizes.tolist())

    @staticmethod
    def batched(modality, keep_on_cpu):
        return ("batched", modality, keep_on_cpu)


class Items(dict):
    @classmethod
    def from_hf_inputs(cls, values, fields):
        assert fields["pixel_values"] == ("flat", "image", [len(values["pixel_values"])])
        assert fields["image_grid_thw"] == ("batched", "image", True)
        return cls(image=[dict(values)])


@pytest.fixture
def package(monkeypatch):
    inputs, multimodal = ModuleType("vllm.inputs"), ModuleType("vllm.multimodal.inputs")
    inputs.mm_input = lambda ids, kwargs, hashes, ranges: SimpleNamespace(
        ids=ids, items=kwargs["image"], hashes=hashes["image"], ranges=ranges["image"]
    )
    multimodal.MultiModalFieldConfig = Fields
    multimodal.MultiModalKwargsItems = Items
    multimodal.PlaceholderRange = lambda offset, length: (offset, length)
    for name, module in (
        ("vllm", ModuleType("vllm")),
        ("vllm.inputs", inputs),
        ("vllm.multimodal", ModuleType("vllm.multimodal")),
        ("vllm.multimodal.inputs", multimodal),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    return SimpleNamespace(inputs=inputs, multimodal=multimodal)


def engine(mirror):
    return SimpleNamespace(input_processor=SimpleNamespace(renderer=SimpleNamespace(mm_processor_cache=mirror)))


PATHS = ("a", "b")
FRAMES = (FramePatches(2, 4, "A"), FramePatches(4, 4, "B"))
RENDERED = Rendered(np.array([1, 9, 9, 2, 9, 9, 9, 9, 3]), ((1, 1, 2), (4, 2, 2)))


def test_patches_are_cut_by_frame_and_sent_once(package):
    mirror = Mirror()
    route = ReadyMade(engine(mirror), merge=2)
    patches = torch.arange(24 * 768).view(24, 768) % 256
    made = route.frames(PATHS, FRAMES, patches)
    assert made.sizes == {"a": (1, 2), "b": (2, 2)}
    first = route.prompt(RENDERED, PATHS, made)
    assert first.ids == RENDERED.ids.tolist()
    assert first.hashes == ["A", "B"]
    assert first.ranges == [(1, 2), (4, 4)]
    assert torch.equal(first.items[0]["pixel_values"], patches[:8])
    assert torch.equal(first.items[1]["pixel_values"], patches[8:])
    assert first.items[1]["image_grid_thw"].tolist() == [[1, 4, 4]]
    mirror.calls.clear()
    again = route.prompt(RENDERED, PATHS, made)
    assert again.items == [None, None]
    # Touch all before any is put in, as vLLM does: else putting one in could push out one that is needed.
    assert mirror.calls == [("touch", "A"), ("touch", "B"), ("get", "A"), ("get", "B")]


def test_a_frame_that_is_shown_twice_is_sent_once(package):
    made = (route := ReadyMade(engine(Mirror()), merge=2)).frames(PATHS, FRAMES, torch.zeros(24, 768))
    sent = route.prompt(Rendered(RENDERED.ids, ((1, 1, 2), (4, 1, 2))), ("a", "a"), made)
    assert sent.items[0] is made.items["a"]
    assert sent.items[1] is None


def test_without_a_mirror_everything_is_sent_every_time(package):
    route = ReadyMade(engine(None), merge=2)
    made = route.frames(PATHS, FRAMES, torch.zeros(24, 768))
    for _ in range(2):
        assert route.prompt(RENDERED, PATHS, made).items == [made.items["a"], made.items["b"]]


def test_a_version_that_lacks_a_name_says_so_when_opened(package, monkeypatch):
    monkeypatch.delattr(Mirror, "touch_sender_cache_item")
    with pytest.raises(AttributeError):
        ReadyMade(engine(Mirror()), merge=2)
    monkeypatch.delattr(package.multimodal, "PlaceholderRange")
    with pytest.raises(ImportError):
        ReadyMade(engine(None), merge=2)


def test_the_ordinary_route_sends_images_and_one_placeholder_each(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.png", "b.png")]
    for path, colour in zip(paths, ("red", "blue"), strict=True):
        Image.new("L", (64, 32), colour).save(path)
    route = Ordinary(image_token=9, merge=2)
    made = route.frames(paths, FRAMES, torch.zeros(24, 768))
    assert made.sizes == {paths[0]: (1, 2), paths[1]: (2, 2)}
    prompt = route.prompt(RENDERED, paths, made)
    assert prompt["prompt_token_ids"] == [1, 9, 2, 9, 3]
    assert [image.mode for image in prompt["multi_modal_data"]["image"]] == ["RGB", "RGB"]
    assert prompt["multi_modal_uuids"] == {"image": ["A", "B"]}
