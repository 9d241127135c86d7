"""Frames to patches: each file is decoded once while it is remembered, ahead of the prompts that show it.

On a CPU by the checkpoint's own image processor, the PIL one of `transformers`, which needs no torchvision and gives
the same pixels on every machine; beside a GPU by worker processes (`shipped`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchcheck.errors import ModelRefusedError, first_line

__all__ = ["FrameReader", "FrameSource", "Memory", "Patches", "UndecodableFrameError"]

Value = TypeVar("Value")


class UndecodableFrameError(Exception):
    """A frame file that is missing or no image; the backend turns it into a failure of the prompts that show it."""

    def __init__(self, detail: str, kind: str = "undecodable_frames") -> None:
        """Keep what the failure says; another `kind` where the file may well be sound and asking again may help."""
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Patches:
    """One frame as the vision tower takes it."""

    values: npt.NDArray[np.float32] | npt.NDArray[np.uint8]
    """[height * width, values of a patch]: float32 is normalised and holds a frame twice, as the tower takes it; uint8
    is neither, and an eighth of the bytes."""
    grid: tuple[int, int]
    """Height and width in patches."""


class FrameSource(Protocol):
    """Where the patches of frame files come from. One thread calls it."""

    def start(self, paths: Sequence[str]) -> None:
        """Begin to decode frames that `take` will ask for soon; returns at once."""
        ...

    def take(self, paths: Sequence[str]) -> list[Patches | UndecodableFrameError]:
        """Return the patches of frames, or what is wrong with one; waits for them, started or not."""
        ...

    def forget(self, paths: Iterable[str] | None = None) -> None:
        """Drop what was started and not taken: of these frames, or all."""
        ...

    def close(self) -> None:
        """End threads and processes."""
        ...


class FrameReader:
    """Reads frame files as patches, side by side on the CPU's cores."""

    def __init__(self, folder: Path) -> None:
        """Load the image processor of a checkpoint.

        Raises:
            ModelRefusedError: the checkpoint has none.
        """
        # By its module: AutoImageProcessor of 5.17 cannot be named without torchvision, even for the PIL class.
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

        # Pillow and numpy release the GIL while they decode, resize and scale.
        self._threads = ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1), thread_name_prefix="frames")
        self._started: dict[str, Future[Patches | UndecodableFrameError]] = {}
        try:
            self._processor: Any = Qwen2VLImageProcessorPil.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelRefusedError(
                f"{folder}: no image processor can be loaded. Allowed: preprocessor_config.json or "
                "processor_config.json of a Qwen3-VL checkpoint. Cure: fetch the checkpoint again"
            ) from error

    def start(self, paths: Sequence[str]) -> None:
        """See `FrameSource`."""
        for path in paths:
            if path not in self._started:
                self._started[path] = self._threads.submit(self._attempt, path)

    def take(self, paths: Sequence[str]) -> list[Patches | UndecodableFrameError]:
        """See `FrameSource`."""
        self.start(paths)
        return [self._started.pop(path).result() for path in paths]

    def forget(self, paths: Iterable[str] | None = None) -> None:
        """See `FrameSource`."""
        for path in list(self._started) if paths is None else paths:
            self._started.pop(path, None)

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
            raise UndecodableFrameError(f"{path}: {first_line(error)}") from error
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

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
