"""Frame files to uint8 patches in the order of Qwen3-VL's vision tower, bit for bit as the model's own processor.

A patch is 3 x 16 x 16 = 768 bytes: neither normalised nor copied for the second half of its frame pair, both of which
the device does. The processor of `transformers` makes 6,144 bytes of the same patch, and takes 310 to 400 ms for a
video of 32 frames 448 x 252 where this takes 56 to 82 ms, most of it the JPEG decoder's.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchcheck.errors import ModelRefusedError, first_line

__all__ = ["BrokenFrameError", "Bytes", "Recipe", "opened", "patchify", "pixels", "resized"]

Bytes = npt.NDArray[np.uint8]

_BICUBIC = 3
_MAX_ASPECT = 200
_FIXED: Mapping[str, object] = {
    "do_convert_rgb": True,
    "do_normalize": True,
    "do_rescale": True,
    "do_resize": True,
    "resample": _BICUBIC,
    "rescale_factor": 1 / 255,
    "temporal_patch_size": 2,
}
"""Keys of an image processor's config that have one supported value, which is also what a missing key means."""


class BrokenFrameError(Exception):
    """A frame file that is missing, empty, cut or no image."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a checkpoint's image processor does to a frame."""

    patch: int
    """Side of a patch in pixels."""
    merge: int
    """Patches per side that become one token."""
    min_pixels: int
    max_pixels: int
    mean: tuple[float, float, float]
    """Per channel, of values between 0 and 1; used by whoever normalises."""
    std: tuple[float, float, float]

    @classmethod
    def of(cls, folder: Path) -> Recipe:
        """Read a checkpoint's recipe.

        Raises:
            ModelRefusedError: it has none, or one that this module does not follow to the bit.
        """
        config = _config(folder)
        for key, allowed in _FIXED.items():
            found = config.get(key, allowed)
            if found != allowed and not (key == "rescale_factor" and math.isclose(float(found), 1 / 255, rel_tol=1e-6)):
                raise _refusal(folder, key, found, str(allowed))
        size = config.get("size") or {}
        try:
            recipe = cls(
                patch=int(config["patch_size"]),
                merge=int(config["merge_size"]),
                min_pixels=int(config.get("min_pixels") or size["shortest_edge"]),
                max_pixels=int(config.get("max_pixels") or size["longest_edge"]),
                mean=_channels(config["image_mean"]),
                std=_channels(config["image_std"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _refusal(folder, str(error), None, "the image processor of a Qwen3-VL checkpoint") from error
        if recipe.patch < 1 or recipe.merge < 1 or not 0 < recipe.min_pixels <= recipe.max_pixels:
            raise _refusal(folder, "size", size, "0 < shortest_edge <= longest_edge, in pixels")
        return recipe

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> Recipe:
        """Return the recipe that `table` wrote."""
        return cls(**{**table, "mean": tuple(table["mean"]), "std": tuple(table["std"])})

    def table(self) -> dict[str, Any]:
        """Return the recipe as JSON takes it."""
        return asdict(self)

    @property
    def width(self) -> int:
        """Bytes of a patch."""
        return 3 * self.patch * self.patch

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width in pixels that a frame is resized to.

        Multiples of a token's side, near the frame's own, with a number of pixels between the recipe's bounds.

        Raises:
            BrokenFrameError: one side is more than 200 times the other, which the model's processor refuses.
        """
        short, long = min(height, width), max(height, width)
        if short < 1 or long > _MAX_ASPECT * short:
            raise BrokenFrameError(f"{width} x {height} pixels: one side is over {_MAX_ASPECT} times the other")
        unit = self.patch * self.merge
        high, wide = round(height / unit) * unit, round(width / unit) * unit
        if high * wide > self.max_pixels:
            shrink = math.sqrt(height * width / self.max_pixels)
            high, wide = (max(unit, math.floor(side / shrink / unit) * unit) for side in (height, width))
        elif high * wide < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (height * width))
            high, wide = (math.ceil(side * grow / unit) * unit for side in (height, width))
        return high, wide


def _config(folder: Path) -> Mapping[str, Any]:
    """Return the image processor's config; the one inside processor_config.json goes first, as in transformers."""
    for name, key in (("processor_config.json", "image_processor"), ("preprocessor_config.json", None)):
        try:
            whole = json.loads((folder / name).read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise ModelRefusedError(
                f"{folder / name}: not JSON ({error}). Allowed: the checkpoint's own file. "
                "Cure: fetch the checkpoint again"
            ) from error
        config = whole.get(key) if key else whole
        if isinstance(config, dict):
            return config
    raise ModelRefusedError(
        f"{folder}: no image processor. Allowed: preprocessor_config.json or processor_config.json of a Qwen3-VL "
        "checkpoint. Cure: fetch the checkpoint again"
    )


def _channels(values: object) -> tuple[float, float, float]:
    red, green, blue = (float(value) for value in values)  # type: ignore[attr-defined]
    return red, green, blue


def _refusal(folder: Path, key: str, found: object, allowed: str) -> ModelRefusedError:
    return ModelRefusedError(
        f"{folder}: the image processor's {key} is {found!r}. Allowed: {allowed}. "
        "Cure: use the transformers backend, which runs the checkpoint's own processor"
    )


def opened(path: str) -> tuple[Image.Image, bytes]:
    """Return a frame with its header read and its pixels not yet, and the file's bytes.

    Raises:
        BrokenFrameError: with the path and what is wrong.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
        return Image.open(io.BytesIO(data)), data
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from error


def pixels(image: Image.Image, path: str) -> Bytes:
    """Return a frame's pixels, uint8 [height, width, 3].

    Raises:
        BrokenFrameError: with the path and what is wrong.
    """
    try:
        return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _broken(path, error) from error


def _broken(path: str, error: BaseException) -> BrokenFrameError:
    return BrokenFrameError(f"{path}: {first_line(error)}")


def resized(frame: Bytes, height: int, width: int) -> Bytes:
    """Return a frame, uint8 [height, width, 3], in another size.

    torch's own bicubic filter on uint8, channels last, is what the processor runs through torchvision. Pillow's
    differs from it in the last bit of about 0.5 % of the values and takes 4 to 10 times as long.
    """
    if frame.shape[:2] == (height, width):
        return frame
    import torch

    # The view keeps channels last, where torch has a uint8 kernel. It reads only, so that a frame that Pillow lends
    # without leave to write is taken too.
    given = torch.frombuffer(bytearray(frame.tobytes()), dtype=torch.uint8).view(*frame.shape)
    channels_last = given.permute(2, 0, 1).unsqueeze(0)
    scaled = torch.nn.functional.interpolate(
        channels_last, size=[height, width], mode="bicubic", antialias=True, align_corners=False
    )
    result: Bytes = scaled[0].permute(1, 2, 0).contiguous().numpy()
    return result


def patchify(frame: Bytes, recipe: Recipe, out: Bytes) -> tuple[int, int]:
    """Write a frame's patches and return its height and width in patches.

    Args:
        frame: uint8 [height, width, 3], both multiples of a token's side.
        recipe: of the checkpoint.
        out: uint8 [patches, bytes of a patch], contiguous; a token's patches are neighbours.
    """
    patch, merge = recipe.patch, recipe.merge
    high, wide = frame.shape[0] // patch, frame.shape[1] // patch
    cut = frame.reshape(high // merge, merge, patch, wide // merge, merge, patch, 3)
    placed = out.reshape(high // merge, wide // merge, merge, merge, 3, patch, patch)
    np.copyto(placed, cut.transpose(0, 3, 1, 4, 6, 2, 5))
    return high, wide
