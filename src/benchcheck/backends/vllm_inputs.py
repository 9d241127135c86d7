"""Prompts as vLLM's engine takes them, past its own preprocessing, which is one thread for all videos.

Two routes give the same letters. The ready-made one hands the engine uint8 patches that our workers made. The ordinary
one hands it images and lets it do everything again, prompt by prompt; it uses documented names only and is taken where
a version lacks one of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PIL import Image

from benchcheck.backends.decoding import FramePatches
from benchcheck.backends.rendering import Rendered

if TYPE_CHECKING:
    import torch

__all__ = ["Frames", "Ordinary", "ReadyMade"]


@dataclass(frozen=True, slots=True)
class Frames:
    """A video's frames as one of the routes made them: what to send, by the frame's path."""

    digests: dict[str, str]
    sizes: dict[str, tuple[int, int]]
    """Height and width in tokens."""
    items: dict[str, Any]


class ReadyMade:
    """Patches straight to the engine, each frame once while the engine still holds it.

    The engine keeps what it was sent in a cache that this process mirrors: what it holds is sent as None. The mirror
    is right only while one thread sends everything in the order in which it asks the mirror.
    """

    def __init__(self, engine: Any, merge: int) -> None:
        """Find the names.

        Raises:
            ImportError: this version of vLLM lacks one.
            AttributeError: likewise.
        """
        from transformers import BatchFeature
        from vllm.inputs import mm_input
        from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems, PlaceholderRange

        self._batch, self._input, self._items, self._range = (
            BatchFeature,
            mm_input,
            MultiModalKwargsItems,
            PlaceholderRange,
        )
        self._flat, self._single = MultiModalFieldConfig.flat_from_sizes, MultiModalFieldConfig.batched
        self._merge = merge
        # None where the engine was told to keep nothing: everything is then sent with every prompt.
        self._mirror = engine.input_processor.renderer.mm_processor_cache
        if self._mirror is not None:
            for name in ("is_cached_item", "touch_sender_cache_item", "get_and_update_item"):
                getattr(self._mirror, name)

    def frames(self, paths: Sequence[str], frames: Sequence[FramePatches], patches: torch.Tensor) -> Frames:
        """Return a video's frames; `patches`, uint8 [patches, bytes of a patch], must stay as they are."""
        made, row = Frames({}, {}, {}), 0
        for path, frame in zip(paths, frames, strict=True):
            count = frame.height * frame.width
            made.digests[path] = frame.digest
            made.sizes[path] = (frame.height // self._merge, frame.width // self._merge)
            made.items[path] = self._item(patches[row : row + count], frame)
            row += count
        return made

    def _item(self, patches: torch.Tensor, frame: FramePatches) -> Any:
        """Return one image. One item for all would carry every slice's bounds with every image."""
        import torch

        values = {
            "pixel_values": patches,
            "image_grid_thw": torch.tensor([[1, frame.height, frame.width]]),
        }
        fields = {
            "pixel_values": self._flat("image", torch.tensor([len(patches)])),
            "image_grid_thw": self._single("image", keep_on_cpu=True),
        }
        return self._items.from_hf_inputs(self._batch(values), fields)["image"][0]

    def prompt(self, rendered: Rendered, paths: Sequence[str], made: Frames) -> Any:
        """Return a prompt for `LLMEngine.add_request`, which must be called with it at once."""
        digests = [made.digests[path] for path in paths]
        items = self._send([made.items[path] for path in paths], digests)
        ranges = [self._range(offset=first, length=high * wide) for first, high, wide in rendered.images]
        return self._input(rendered.ids.tolist(), self._items({"image": items}), {"image": digests}, {"image": ranges})

    def _send(self, items: list[Any], digests: list[str]) -> list[Any]:
        """Return the items with None for those that the engine holds; the order of calls is that of vLLM's own."""
        if self._mirror is None:
            return items
        for digest in digests:
            if self._mirror.is_cached_item(digest):
                self._mirror.touch_sender_cache_item(digest)
        return [
            self._mirror.get_and_update_item((item, []), digest)[0] for item, digest in zip(items, digests, strict=True)
        ]


class Ordinary:
    """Images through vLLM's own processor: the reference, and 3 to 7 times slower with 32 frames a prompt."""

    def __init__(self, image_token: int, merge: int) -> None:
        self._image_token, self._merge = image_token, merge

    def frames(self, paths: Sequence[str], frames: Sequence[FramePatches], patches: torch.Tensor) -> Frames:
        """Return a video's frames, opened again; the patches served to say that they can be."""
        del patches
        made = Frames({}, {}, {})
        for path, frame in zip(paths, frames, strict=True):
            made.digests[path] = frame.digest
            made.sizes[path] = (frame.height // self._merge, frame.width // self._merge)
            with Image.open(path) as image:
                made.items[path] = image.convert("RGB")
        return made

    def prompt(self, rendered: Rendered, paths: Sequence[str], made: Frames) -> Any:
        """Return a prompt for `LLMEngine.add_request`: one placeholder per image, which vLLM repeats itself."""
        ids, at = list[int](), 0
        for first, high, wide in rendered.images:
            ids += [*rendered.ids[at:first].tolist(), self._image_token]
            at = first + high * wide
        return {
            "prompt_token_ids": ids + rendered.ids[at:].tolist(),
            "multi_modal_data": {"image": [made.items[path] for path in paths]},
            "multi_modal_uuids": {"image": [made.digests[path] for path in paths]},
        }
