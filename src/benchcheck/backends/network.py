"""The network of a Qwen3-VL checkpoint: frames to features, token trees to logits at their leaves.

The language model is called below `forward` of the whole model, with embeddings, a mask of ancestors and M-RoPE
positions of our own; `transformers` 5.17 and 5.24 take the same arguments there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchcheck.backends import attention
from benchcheck.backends.packed import Ints, Tree, ancestors, is_image, layout_of, split_symbol
from benchcheck.backends.patches import Recipe
from benchcheck.backends.pixels import Patches
from benchcheck.errors import ModelRefusedError, first_line

if TYPE_CHECKING:
    import torch

__all__ = ["Network", "Row", "load", "quiet"]

SMALL_PARAMETERS = 50_000_000
"""Below this a matrix is too small to split over CPU threads; whole batches are (`workers`)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One token tree with its M-RoPE positions, int64 [3, nodes]."""

    tree: Tree
    positions: Ints

    @classmethod
    def of(cls, tree: Tree, positions: Sequence[Ints]) -> Row:
        """Give every node the position it has in each of its prompts (`positions[i]` is int64 [3, prompt length])."""
        packed = np.empty((3, len(tree.symbols)), dtype=np.int64)
        for path, alone in zip(tree.paths, positions, strict=True):
            packed[:, path] = alone
        return cls(tree, packed)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log and progress bars of `transformers` inside the block, and give both back as they were."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


class Network:
    """A checkpoint's weights on one device.

    float32 on a CPU, bfloat16 on a GPU. `exact_head` keeps a float32 copy of the output head on a GPU (2.5 GB for the
    8B model): bfloat16 logits come in steps of 0.125, and two thirds of the items at chance then tie for the top.

    On a CPU, a small network (the embedded ones have 4 million parameters) keeps torch to one thread while it is open,
    and `workers` batches may run side by side instead. Packed text prompts a second on two cores: one thread 215, two
    batches of one thread each 345, two threads 345. With both cores busy with something else: one thread 115, two
    threads 19 to 95, since every small operation then waits for the slower half.
    """

    def __init__(self, folder: Path, *, exact_head: bool) -> None:
        import torch

        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.model = load(folder, self.dtype, self.device)
        self.dtype_name = str(self.dtype).removeprefix("torch.")
        self.device_name = torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu"
        self._core = self.model.model
        weight = self.model.lm_head.weight.detach()
        self._head = weight.float() if exact_head else weight
        self.merge = int(self._core.visual.spatial_merge_size)
        self.max_tokens = int(self.model.config.text_config.max_position_embeddings)
        self.small = self.device.type == "cpu" and self.model.num_parameters() < SMALL_PARAMETERS
        self._threads = torch.get_num_threads()
        self.workers = 2 if self.device.type == "cuda" else min(2, self._threads) if self.small else 1
        if self.small:
            torch.set_num_threads(1)
        # The kernel is flash attention, which runs from compute capability 8.0 (A100) on.
        fit = self.device.type == "cuda" and torch.cuda.get_device_capability() >= (8, 0)
        self.use(attention.varlen() if fit else None)
        self.vision_patches = 57_344 if self.device.type == "cuda" else 16_384
        """Patches that go through the vision tower at once: 128 or 36 frames of 448 x 256. With 36, an H200 that reads
        8 videos with the 2B model is busy 43 % of the time: Python cannot start the tower's kernels as fast."""
        self.recipe: Recipe | None = None
        """How bytes are normalised, where frames come as bytes."""
        if self.device.type == "cuda":
            self.recipe = _recipe(folder)

    def use(self, kernel: attention.Kernel | None) -> None:
        """Send attention through a kernel; None leaves it to masks and loops over frames, as on a CPU."""
        if kernel is not None:
            attention.install(self._core)
        self.kernel: attention.Kernel | None = kernel
        self._places = lru_cache(maxsize=16)(self._find_places)

    def close(self) -> None:
        """Drop the weights and give CPU threads back."""
        import torch

        if self.small:
            torch.set_num_threads(self._threads)
        self._places.cache_clear()
        del self.model, self._core, self._head
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def encode(self, patches: Sequence[Patches]) -> list[torch.Tensor]:
        """Return the features of each frame, [taps + 1, tokens, hidden]: the last layer's, then the deepstack taps'."""
        import torch

        pixels = self._pixels([frame.values for frame in patches])
        grids = tuple(frame.grid for frame in patches)
        with torch.inference_mode():
            # Copied, since the tower takes out what it uses.
            places = dict(self._places(grids))
            seen = self._core.visual(pixels, grid_thw=None, return_dict=True, **places)
            features = torch.stack([seen.pooler_output, *seen.deepstack_features])
        # Cloned, since a split is a view that would keep the other frames of its batch alive in the cache.
        sizes = [len(frame.values) // self.merge**2 for frame in patches]
        return [part.clone() for part in torch.split(features, sizes, dim=1)]

    def _find_places(self, grids: tuple[tuple[int, int], ...]) -> dict[str, Any]:
        """Return what the tower computes from its frames' grids.

        It is computed on the CPU: on a GPU the tower would wait for it several times, and in every layer. It takes 15
        ms for 32 frames, a third of the whole tower on an H200, so it is kept for the next frames of the same sizes.
        """
        import torch
        from transformers import vision_utils

        tower = self._core.visual
        grid_thw = torch.tensor([(1, *grid) for grid in grids])
        indices, weights = vision_utils.get_vision_interpolation_indices_and_weights(
            grid_thw,
            num_grid_per_side=tower.num_grid_per_side,
            mode=tower.interpolation_mode,
            align_corners=tower.interpolation_align_corners,
            spatial_merge_size=self.merge,
        )
        places = {
            "interp_indices": indices,
            "interp_weights": weights,
            "position_ids": vision_utils.get_vision_position_ids(grid_thw, self.merge),
            "cu_seqlens": vision_utils.get_vision_cu_seqlens(grid_thw),
        }
        rest = {"max_seqlen": int(grid_thw.prod(1).max()), "kernel": self.kernel} if self.kernel else {}
        return {name: place.to(self.device) for name, place in places.items()} | rest

    def leaf_logits(self, rows: Sequence[Row], features: Mapping[int, torch.Tensor]) -> torch.Tensor:
        """Return the next-token logits behind every prompt, float32 [prompts, vocabulary], in the order of the rows.

        Args:
            rows: trees that run at once.
            features: what `encode` gave, by frame number, for every frame in the rows.
        """
        import torch

        with torch.inference_mode():
            hidden, starts = (self._behind if self.kernel else self._beside)(rows, features)
            leaves = np.concatenate([start + row.tree.leaves for start, row in zip(starts, rows, strict=True)])
            states = hidden.flatten(0, 1)[self._sent(leaves)]
            return torch.nn.functional.linear(states.to(self._head.dtype), self._head).float()

    def _beside(self, rows: Sequence[Row], features: Mapping[int, torch.Tensor]) -> tuple[torch.Tensor, Ints]:
        """Run rows beside each other, padded to the longest.

        Returns:
            Hidden states [rows, width, hidden], and where each row begins among all nodes.
        """
        width = max(len(row.tree.symbols) for row in rows)
        symbols = _stack([row.tree.symbols for row in rows], width)
        positions = _stack([row.positions for row in rows], width)
        hidden = self._states(symbols, positions, features, attention_mask=self._mask(rows, width))
        return hidden, np.arange(len(rows)) * width

    def _behind(self, rows: Sequence[Row], features: Mapping[int, torch.Tensor]) -> tuple[torch.Tensor, Ints]:
        """Run rows behind each other, without padding; returns what `_beside` does, with one row."""
        trees = [row.tree for row in rows]
        layout = attention.DeviceLayout.of(layout_of(trees), self.device)
        symbols = np.concatenate([tree.symbols for tree in trees])[None]
        positions = np.concatenate([row.positions for row in rows], axis=1)[:, None]
        hidden = self._states(symbols, positions, features, layout=layout, kernel=self.kernel)
        return hidden, np.cumsum([0, *(len(tree.symbols) for tree in trees[:-1])])

    def _sent(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """Return an array on the device, without waiting there for what is still being computed."""
        import torch

        tensor = torch.from_numpy(array)
        if self.device.type != "cuda":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def _states(self, symbols: Ints, positions: Ints, features: Mapping[int, torch.Tensor], **sight: Any) -> Any:
        """Return the last hidden states behind symbols [rows, width] at positions [3, rows, width]."""
        return self._core.language_model(
            position_ids=self._sent(positions),
            use_cache=False,
            **self._embedded(symbols, features),
            **sight,
        ).last_hidden_state

    def _pixels(self, patches: Sequence[Any]) -> torch.Tensor:
        """Return patches as the tower takes them, [patches, values]: float32 as they are, bytes normalised.

        Bytes are those of one moment, [patches, channels x side x side], half of what a still frame's patch holds.
        """
        import torch

        given = self._sent(np.concatenate(patches))
        if given.dtype is not torch.uint8:
            return given.to(self.dtype)
        assert self.recipe is not None
        mean, std = (torch.tensor(of, device=self.device)[:, None, None] for of in (self.recipe.mean, self.recipe.std))
        # [patches, channels, moments, values], as the tower wants a still frame: the same moment twice.
        still = given.view(len(given), 3, 1, -1).float() / 255
        return ((still - mean) / std).to(self.dtype).expand(-1, -1, 2, -1).reshape(len(given), -1)

    def _embedded(self, symbols: Ints, features: Mapping[int, torch.Tensor]) -> dict[str, Any]:
        """Return the language model's inputs for symbols [rows, width]: text embedded, image tokens from `features`."""
        import torch

        visual = is_image(symbols)
        embeds = self._core.language_model.embed_tokens(self._sent(np.where(visual, 0, symbols)))
        if not visual.any():
            return {"inputs_embeds": embeds}
        numbers, cells = split_symbol(symbols[visual])
        used = np.unique(numbers)
        starts = np.cumsum([0, *(features[int(number)].shape[1] for number in used)])
        at = starts[np.searchsorted(used, numbers)] + cells
        table = torch.cat([features[int(number)] for number in used], dim=1)
        seen = table[:, self._sent(at)]
        where = self._sent(visual)
        embeds[where] = seen[0]
        return {"inputs_embeds": embeds, "visual_pos_masks": where, "deepstack_visual_embeds": list(seen[1:])}

    def _mask(self, rows: Sequence[Row], width: int) -> torch.Tensor:
        """Return bool [rows, 1, width, width]; padding sees only itself, since a softmax over nothing is NaN."""
        import torch

        node = np.arange(width)
        post = np.stack([np.concatenate([row.tree.post, node[len(row.tree.post) :] + 1]) for row in rows])
        mask: torch.Tensor = ancestors(torch.arange(width, device=self.device), torch.from_numpy(post).to(self.device))
        return mask[:, None]


def _recipe(folder: Path) -> Recipe | None:
    """Return a checkpoint's recipe, or None where frames need its own image processor."""
    try:
        return Recipe.of(folder)
    except ModelRefusedError:
        return None


def _stack(parts: Sequence[Ints], width: int) -> Ints:
    """Pad the last axis of int64 [..., n] arrays with zeros to `width` and stack them before it."""
    stacked = np.zeros((*parts[0].shape[:-1], len(parts), width), dtype=np.int64)
    for index, part in enumerate(parts):
        stacked[..., index, : part.shape[-1]] = part
    return stacked


def load(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    """Load the model of a checked folder, for reading, with attention by sdpa.

    Raises:
        ModelRefusedError: its weights are not those of its config; `transformers` would only warn and go on with
            random ones.
    """
    import torch
    from transformers import AutoModelForImageTextToText

    with quiet():
        try:
            model, report = AutoModelForImageTextToText.from_pretrained(
                folder,
                dtype=dtype,
                attn_implementation="sdpa",
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are refused below, by name and after seconds, not with a table
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelRefusedError(
                f"{folder}: cannot be loaded ({first_line(error)}). Cure: fetch the checkpoint again"
            ) from error
    wrong = sorted(report["missing_keys"]) or sorted(str(key[0]) for key in report["mismatched_keys"])
    if wrong:
        raise ModelRefusedError(
            f"{folder}: the weights lack {len(wrong)} tensors of the config, or have them in another shape, such as "
            f"{wrong[0]}. Allowed: weights saved with this config.json. Cure: fetch the checkpoint again"
        )
    return torch.nn.Module.eval(model.to(device))
