"""Frames to patches: each file is decoded once while it is remembered, by the checkpoint's own image processor.

The processor is the PIL one of `transformers`, which needs no torchvision and gives the same pixels on every machine.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchcheck.errors import ModelRefusedError

__all__ = ["FrameReader", "Memory", "Patches", "UndecodableFrameError"]

Value = TypeVar("Value")


class UndecodableFrameError(Exception):
    """A frame file that is missing or no image; the backend turns it into a failure of the prompts that show it."""


@dataclass(frozen=True, slots=True)
class Patches:
    """One frame as the vision tower takes it."""

    values: npt.NDArray[np.float32]
    """float32 [height * width, values of a patch], normalised."""
    grid: tuple[int, int]
    """Height and width in patches."""


class FrameReader:
    """Reads frame files as patches."""

    def __init__(self, folder: Path) -> None:
        """Load the image processor of a checkpoint.

        Raises:
            ModelRefusedError: the checkpoint has none.
        """
        # By its module: AutoImageProcessor of 5.17 cannot be named without torchvision, even for the PIL class.
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

        # Pillow and numpy release the GIL while they decode, resize and scale.
        self._threads = ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1), thread_name_prefix="frames")
        try:
            self._processor: Any = Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelRefusedError(
                f"{folder}: no image processor can be loaded. Allowed: preprocessor_config.json or "
                "processor_config.json of a Qwen3-VL checkpoint. Cure: fetch the checkpoint again"
            ) from error

    def read_all(self, paths: Sequence[str]) -> list[Patches | UndecodableFrameError]:
        """Return the patches of frames, or what is wrong with one, side by side on the CPU's cores."""
        return list(self._threads.map(self._attempt, paths))

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    def _attempt(self, path: str) -> Patches | UndecodableFrameError:
        try:
            return self.read(path)
        except UndecodableFrameError as error:
            return error

    def read(self, path: str) -> Patches:
        """Return a frame's patches.

        Raises:
            UndecodableFrameError: the file is missing, cut or no image.
        """
        try:
            with Image.open(path) as image:
                image.load()
                given = self._processor(images=image, return_tensors="np")
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise UndecodableFrameError(f"{path}: {reason}") from error
        _, height, width = (int(side) for side in given["image_grid_thw"][0])
        return Patches(np.asarray(given["pixel_values"], dtype=np.float32), (height, width))


class Memory(Generic[Value]):
    """The least recently used go first once the bytes are more than `limit`; one value larger than it is kept alone.

    Threads may share it.
    """

    def __init__(self, limit: int, size: Callable[[Value], int]) -> None:
        self._lock = Lock()
        self._limit = limit
        self._size = size
        self._values: OrderedDict[str, Value] = OrderedDict()
        self.bytes = 0

    def get(self, key: str) -> Value | None:
        """Return what is kept under `key`, now the most recent, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: str, value: Value) -> None:
        """Keep a value, and let go of the oldest ones; a key that is there already keeps its value."""
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self.bytes += self._size(value)
            while self.bytes > self._limit and len(self._values) > 1:
                self.bytes -= self._size(self._values.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._values)
