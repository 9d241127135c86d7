import gc

import numpy as np
import pytest
from PIL import Image

from benchcheck.backends import ModelSpec, shipped
from benchcheck.backends.decoding import Lost
from benchcheck.backends.patches import Recipe
from benchcheck.backends.pixels import FrameReader, Patches, UndecodableFrameError
from benchcheck.backends.shipped import ShippedFrames
from benchcheck.backends.transformers import TransformersBackend
from benchcheck.errors import BackendError
from benchcheck.screen.readings import PERMANENT_FAILURES, Failure, Reading

pytestmark = pytest.mark.model
torch = pytest.importorskip("torch")
from plain_forward import frame_prompts, readings, text_prompts  # noqa: E402


@pytest.fixture(scope="module")
def source(model_folder):
    opened = ShippedFrames(Recipe.of(model_folder), workers=2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bytewise(model_folder):
    """A backend that takes frames as one beside a GPU does."""
    opened = TransformersBackend(ModelSpec(str(model_folder)))
    opened._network.recipe = Recipe.of(model_folder)
    opened._reader.close()
    opened._reader = opened._source(model_folder, 2)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def unresized(model_folder, tmp_path_factory):
    """Frames of the size that the checkpoint wants, which no filter touches."""
    root = tmp_path_factory.mktemp("unresized")
    height, width = Recipe.of(model_folder).size(64, 64)
    assert (height, width) == (64, 64)
    paths = tuple(str(root / f"{n}.jpg") for n in range(6))
    for n, path in enumerate(paths):
        noise = np.random.default_rng(n).integers(0, 255, (height, width, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)
    return paths


def test_bytes_become_the_patches_of_the_models_own_processor(source, bytewise, model_folder, unresized):
    own = FrameReader(model_folder)
    for shipped_frame, frame in zip(source.take(unresized), own.take(unresized), strict=True):
        assert shipped_frame.grid == frame.grid
        assert shipped_frame.values.dtype == np.uint8
        normalised = bytewise._network._pixels([shipped_frame.values]).numpy()
        np.testing.assert_allclose(normalised, frame.values, atol=1e-6)
    own.close()


def test_letters_are_those_of_the_models_own_processor(bytewise, backend, unresized):
    """Resized frames differ in the last bit of 0.5 % of their values, by another bicubic filter."""
    prompts = frame_prompts(unresized) + text_prompts(1)
    for one, other in zip(readings(bytewise, prompts), readings(backend, prompts), strict=True):
        assert one.letters.logprobs == pytest.approx(other.letters.logprobs, abs=1e-4)


def test_a_broken_frame_fails_its_prompts_only(bytewise, video, tmp_path):
    frames = video(4, 3)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8\xff")
    bad = frame_prompts((*frames, str(broken)), 1) + frame_prompts((str(tmp_path / "none.jpg"),), 1)
    results = readings(bytewise, [*bad, *frame_prompts(frames, 1)])
    assert [type(result) for result in results] == [Failure, Failure, Reading]
    assert {result.kind for result in results[:2]} == {"undecodable_frames"}
    assert "broken.jpg" in results[0].detail
    assert "none.jpg" in results[1].detail


def test_what_is_started_is_decoded_once_and_can_be_forgotten(source, video):
    frames = video(8, 4)
    source.start(frames[:3])
    source.start(frames)
    asked = next(source._keys)
    first, *_ = source.take(frames)
    assert isinstance(first, Patches)
    assert next(source._keys) == asked + 1
    source.start(frames)
    source.forget(frames[:1])
    assert set(source._started) == set(frames[1:])
    source.forget()
    assert source._started == {}


def test_every_good_frame_of_a_broken_shipment_arrives(source, video, tmp_path):
    frames = (*video(0, 2), str(tmp_path / "none.jpg"))
    good, also, bad = source.take(frames)
    assert isinstance(good, Patches)
    assert isinstance(also, Patches)
    assert isinstance(bad, UndecodableFrameError)
    with_reader = source.take(frames[:1])[0]
    assert (with_reader.values == good.values).all()


def test_a_worker_that_died_is_no_property_of_the_frames(bytewise, video, monkeypatch, tmp_path):
    """`undecodable_frames` is never asked again, and a worker that was killed for memory says nothing of a file."""

    class Dying:
        def __init__(self, recipe, done, *, workers):
            self.done = done

        def submit(self, key, paths):
            self.done(Lost(key, "decoder_died", f"{paths[0]}: two workers died of it"))

        def close(self):
            pass

    monkeypatch.setattr(shipped, "Decoders", Dying)
    monkeypatch.setattr(bytewise, "_reader", ShippedFrames(bytewise._network.recipe, 1))
    (result,) = readings(bytewise, frame_prompts(video(20, 2), 1))
    assert result.kind == "decoder_died"
    assert result.kind not in PERMANENT_FAILURES


def test_workers_that_cannot_start_are_an_error(model_folder, monkeypatch, video):
    class Broken:
        def __init__(self, recipe, done, *, workers):
            self.done = done

        def submit(self, key, paths):
            self.done(BackendError("a decode worker cannot start"))

        def close(self):
            pass

    monkeypatch.setattr(shipped, "Decoders", Broken)
    frames = ShippedFrames(Recipe.of(model_folder), 1)
    with pytest.raises(BackendError, match="cannot start"):
        frames.take(video(0, 1))
    with pytest.raises(BackendError, match="cannot start"):
        frames.start(video(1, 1))
    frames.close()


def test_text_starts_no_worker(model_folder):
    frames = ShippedFrames(Recipe.of(model_folder), 1)
    frames.start(())
    assert frames.take(()) == []
    assert frames._decoders is None
    frames.close()
    gc.collect()


def test_frames_are_met_before_their_prompts_are_prepared(bytewise, video, monkeypatch):
    monkeypatch.setattr(bytewise, "budget", bytewise.budget.__class__(256, 1024, 1024, 1 << 28, ahead=3))

    def asked():
        for number in range(12, 17):
            yield from frame_prompts(video(number, 2), 1)

    read = bytewise.read(asked())
    met = []
    expect = bytewise._reader.start
    monkeypatch.setattr(bytewise._reader, "start", lambda paths: (met.append(tuple(paths)), expect(paths))[1])
    results = [outcome.result for outcome in read]
    assert all(isinstance(result, Reading) for result in results)
    assert met[:5] == [video(number, 2) for number in range(12, 17)]
    assert bytewise._reader._started == {}
