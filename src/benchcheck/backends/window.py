"""A window: prompts that are planned together, with the frames they show, on their way to the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchcheck.backends.network import Network, Row
from benchcheck.backends.packed import Ints, image_symbols, mrope_positions, pack, plan_rows, shared_length
from benchcheck.backends.pixels import FrameSource, Memory, Patches, UndecodableFrameError
from benchcheck.backends.rendering import Rendered
from benchcheck.screen.prompts import Prompt

if TYPE_CHECKING:
    import torch

__all__ = ["Encoded", "Planned", "Seen", "Window", "rows_of"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A frame behind the vision tower."""

    features: torch.Tensor
    """[taps + 1, tokens, hidden]."""
    grid: tuple[int, int]
    """Height and width in patches."""

    def size(self) -> int:
        """Return the bytes it takes."""
        return int(self.features.nbytes)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A prompt as the network takes it."""

    index: int
    """Its number in the `read` call."""
    options: int
    symbols: Ints
    """int64 [tokens], see `packed`."""
    positions: Ints
    """int64 [3, tokens], as they would be in a forward of its own."""


class Window:
    """Collects prompts; decodes each frame it meets once, unless its features are remembered."""

    def __init__(self, reader: FrameSource, memory: Memory[Seen], merge: int) -> None:
        """Start empty.

        Args:
            reader: where frames come from.
            memory: features of frames, shared between windows.
            merge: patches per token along one side.
        """
        self.prompts: list[Encoded] = []
        self.nodes = 0
        """About how many nodes the prompts' trees have: what each adds to the one before it."""
        self.longest = 0
        """Tokens of its longest prompt."""
        self._reader = reader
        self._memory = memory
        self._merge = merge
        self._numbers: dict[str, int] = {}
        self._broken: dict[str, UndecodableFrameError] = {}
        self._seen: dict[str, Seen] = {}
        self._unseen: dict[str, Patches] = {}

    def sizes(self, frames: Sequence[str]) -> list[tuple[int, int]]:
        """Return height and width of frames in tokens.

        Raises:
            UndecodableFrameError: one of them is no image.
        """
        self._look(frames)
        for path in frames:
            if path in self._broken:
                raise self._broken[path]
        grids = ((self._seen.get(path) or self._unseen[path]).grid for path in frames)
        return [(height // self._merge, width // self._merge) for height, width in grids]

    def expect(self, frames: Sequence[str]) -> None:
        """Have frames decoded that a later prompt shows, unless they are known here or remembered."""
        self._reader.start([path for path in frames if path not in self._numbers and path not in self._memory])

    def _look(self, frames: Sequence[str]) -> None:
        """Take what is new among frames from memory, or else from its file."""
        fresh = []
        for path in dict.fromkeys(frames):
            if path in self._numbers:
                continue
            self._numbers[path] = len(self._numbers)
            remembered = self._memory.get(path)
            if remembered is None:
                fresh.append(path)
            else:
                self._seen[path] = remembered
                self._reader.forget([path])  # it may have been started before it was remembered
        for path, patches in zip(fresh, self._reader.take(fresh), strict=True):
            if isinstance(patches, UndecodableFrameError):
                self._broken[path] = patches
            else:
                self._unseen[path] = patches

    def add(self, index: int, prompt: Prompt, rendered: Rendered) -> None:
        """Add a prompt whose frames `sizes` has seen."""
        symbols = rendered.ids.copy()
        for path, (first, height, width) in zip(prompt.frames, rendered.images, strict=True):
            symbols[first : first + height * width] = image_symbols(self._numbers[path], height * width)
        shared = shared_length(self.prompts[-1].symbols, symbols) if self.prompts else 0
        self.nodes += len(symbols) - shared
        self.longest = max(self.longest, len(symbols))
        positions = mrope_positions(len(symbols), rendered.images)
        self.prompts.append(Encoded(index, len(prompt.order), symbols, positions))

    def features(self, network: Network) -> dict[int, torch.Tensor]:
        """Return the features of every frame by number; new ones go through the vision tower and are remembered."""
        chunk: list[str] = []
        patches = 0
        for path, frame in self._unseen.items():
            if chunk and patches + len(frame.values) > network.vision_patches:
                self._encode(network, chunk)
                chunk, patches = [], 0
            chunk.append(path)
            patches += len(frame.values)
        if chunk:
            self._encode(network, chunk)
        self._unseen.clear()
        return {self._numbers[path]: seen.features for path, seen in self._seen.items()}

    def _encode(self, network: Network, paths: Sequence[str]) -> None:
        """Send frames through the tower; where memory is short, one half and then the other.

        Raises:
            OutOfMemoryError: there is none for a single frame.
        """
        import torch

        frames = [self._unseen[path] for path in paths]
        try:
            features = network.encode(frames)
        except torch.OutOfMemoryError:
            if len(paths) == 1:
                raise
            features = []
        if not features:  # outside the handler, whose traceback would keep the failed call's tensors alive
            middle = len(paths) // 2
            self._encode(network, paths[:middle])
            self._encode(network, paths[middle:])
            return
        for path, frame, feature in zip(paths, frames, features, strict=True):
            self._seen[path] = Seen(feature, frame.grid)
            self._memory.put(path, self._seen[path])


Planned = tuple[list[Encoded], Row]
"""The prompts of a row, in the order of its leaves, and the row."""


def rows_of(prompts: Sequence[Encoded], row_tokens: int) -> list[Planned]:
    """Return the rows of prompts (`packed.plan_rows`)."""
    rows: list[Planned] = []
    for numbers in plan_rows([prompt.symbols for prompt in prompts], row_tokens):
        members = [prompts[number] for number in numbers]
        tree = pack([prompt.symbols for prompt in members])
        rows.append((members, Row.of(tree, [prompt.positions for prompt in members])))
    return rows
