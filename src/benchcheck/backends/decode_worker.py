"""The worker process of `decoding`: `python -m benchcheck.backends.decode_worker`.

Reads one JSON line with the recipe and the slots' file descriptors, then one a task; answers each with one JSON line,
the patches having been written into the task's slot. It imports neither vLLM nor transformers (vLLM alone takes 16 s),
ends when its input ends, and sets the kernel's alarm before each task: what hangs is ended even inside C code.
"""

import contextlib
import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from benchcheck.backends.patches import BrokenFrameError, Recipe, opened, patchify, pixels, resized
from benchcheck.pipes import alarm, answer_on_pipes, send

__all__ = ["main", "serve"]


class _Slots:
    """The shared memory, mapped as far as it was grown."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        self._descriptors = descriptors
        self._maps: dict[int, mmap.mmap] = {}

    def mapped(self, number: int, size: int) -> mmap.mmap:
        """Return slot `number`, at least `size` bytes of it."""
        held = self._maps.get(number)
        if held is None or len(held) < size:
            if held is not None:
                held.close()
            held = self._maps[number] = mmap.mmap(self._descriptors[number], size)
        return held


def serve(tasks: TextIO, answers: TextIO) -> None:
    """Answer tasks until they end.

    `{"frames": [[height, width, digest], …]}` when the patches lie in the slot, `{"need": bytes}` when it is too
    small, `{"broken": detail}` when a frame cannot be read.
    """
    settings = json.loads(tasks.readline())
    recipe, slots = Recipe.of_table(settings["recipe"]), _Slots(settings["slots"])
    with contextlib.suppress(ImportError):
        import torch  # now, not within the first video's time

        torch.set_num_threads(1)
    send(answers, {"hello": os.getpid()})
    for line in tasks:
        task = json.loads(line)
        with alarm(task["limit_s"]):
            try:
                answer = _decode(task["paths"], recipe, slots, task)
            except BrokenFrameError as error:
                answer = {"broken": str(error)}
        send(answers, answer)


def _decode(paths: Sequence[str], recipe: Recipe, slots: _Slots, task: Mapping[str, int]) -> dict[str, Any]:
    """Decode the frames one after the other into the slot, after a look at all their headers."""
    frames = [opened(path) for path in paths]
    sizes = [recipe.size(image.height, image.width) for image, _ in frames]
    need = sum(math.prod(size) for size in sizes) * 3
    if need > task["bytes"]:
        return {"need": need}
    memory = np.frombuffer(slots.mapped(task["slot"], task["bytes"]), dtype=np.uint8)
    rows = memory[:need].reshape(-1, recipe.width)
    table, row = [], 0
    for path, (image, data), size in zip(paths, frames, sizes, strict=True):
        frame = resized(pixels(image, path), *size)
        count = math.prod(size) // recipe.patch**2
        high, wide = patchify(frame, recipe, rows[row : row + count])
        # The same bytes give the same patches, so the digest names the frame wherever its file lies.
        table.append((high, wide, hashlib.blake2b(data, digest_size=16).hexdigest()))
        row += count
    return {"frames": table}


def main() -> None:
    """Serve on the standard streams."""
    answer_on_pipes(serve)


if __name__ == "__main__":
    main()
