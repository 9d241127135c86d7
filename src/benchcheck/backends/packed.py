"""Packing: prompts that begin alike become one token tree, laid out depth-first as one sequence. Pure, no torch.

A prompt is a row of symbols: a text token is its id, a token of a frame is negative (`image_symbols`).
Equal symbols at equal places after equal beginnings are one node, so the orders of an item share their question and
the questions of a video share its frames. A node sees exactly the nodes on its way to the root, which is what it would
see in its own prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Ints",
    "Layout",
    "Tree",
    "ancestors",
    "image_symbols",
    "is_image",
    "layout_of",
    "mrope_positions",
    "pack",
    "plan_batches",
    "plan_rows",
    "shared_length",
    "split_symbol",
]

Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_CELL_BITS = 24
"""A frame has fewer than 2^24 tokens; what is above numbers the frame."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A packed token tree of n nodes, in depth-first order."""

    symbols: Ints
    """int64 [n]: what stands at each node."""
    post: Ints
    """int64 [n]: the first node behind node k that is not below it, so k's subtree is `k <= q < post[k]`."""
    paths: tuple[Ints, ...]
    """Per prompt, the nodes from the root to its last token; `symbols[path]` is the prompt again."""

    @property
    def leaves(self) -> Ints:
        """int64 [prompts]: the node of each prompt's last token; equal prompts share it."""
        return np.array([path[-1] for path in self.paths], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Trees as sequences for causal attention without masks: one sequence a prompt.

    A sequence's queries are the nodes that no prompt before it has, its keys are the prompt's whole path. The last
    query sees all keys, the one before it all but the last, and so on, so that every node sees its path and itself.
    Keys of nodes that prompts share are read once a prompt, queries once.
    """

    query_ends: Shorts
    """int32 [sequences + 1]: 0 and where each sequence's queries end; together they are the nodes in their order."""
    key_ends: Shorts
    """int32 [sequences + 1]: 0 and where each sequence's keys end."""
    keys: Ints
    """int64 [keys]: the node of each key."""

    @property
    def longest_query(self) -> int:
        """The most queries of a sequence."""
        return int(np.diff(self.query_ends).max())

    @property
    def longest_key(self) -> int:
        """The most keys of a sequence."""
        return int(np.diff(self.key_ends).max())


def layout_of(trees: Sequence[Tree]) -> Layout:
    """Return the layout of trees, whose nodes are numbered on from one tree to the next."""
    queries, paths = [0], []
    start = nodes = 0
    for tree in trees:
        # Depth-first, so a prompt's own nodes are those up to its leaf that none before it has; an equal one has none.
        for path in sorted(tree.paths, key=lambda path: int(path[-1])):
            end = start + int(path[-1]) + 1
            if end > nodes:
                queries.append(end)
                paths.append(start + path)
                nodes = end
        start = nodes
    keys = np.cumsum([0, *map(len, paths)])
    return Layout(np.array(queries, dtype=np.int32), keys.astype(np.int32), np.concatenate(paths))


def image_symbols(number: int, count: int) -> Ints:
    """Return the `count` symbols of frame `number`'s tokens, all negative and used by no other frame."""
    return -1 - ((number << _CELL_BITS) + np.arange(count, dtype=np.int64))


def is_image(symbols: Ints) -> Bools:
    """Tell which symbols are image tokens."""
    return symbols < 0


def split_symbol(symbols: Ints) -> tuple[Ints, Ints]:
    """Return frame number and cell of each image symbol."""
    flat = -1 - symbols
    return flat >> _CELL_BITS, flat & ((1 << _CELL_BITS) - 1)


def shared_length(first: Ints, second: Ints) -> int:
    """Return how many symbols two prompts have in common from the start."""
    short = min(len(first), len(second))
    differs = first[:short] != second[:short]
    return int(differs.argmax()) if differs.any() else short


def pack(prompts: Sequence[Ints]) -> Tree:
    """Return the token tree of prompts, which may be equal, or one the beginning of another.

    Args:
        prompts: int64 symbols, each at least one.
    """
    # Bytes of a fixed width compare symbol by symbol, so prompts that begin alike become neighbours in any such order.
    order = sorted(range(len(prompts)), key=lambda i: prompts[i].astype(">i8").tobytes())
    path = np.empty(0, dtype=np.int64)
    before = path
    paths: list[Ints] = [path] * len(prompts)
    new: list[Ints] = []
    post = np.zeros(sum(map(len, prompts)), dtype=np.int64)
    n = 0
    for i in order:
        shared = shared_length(before, prompts[i])
        post[path[shared:]] = n
        grown = len(prompts[i]) - shared
        path = np.concatenate([path[:shared], np.arange(n, n + grown)])
        new.append(prompts[i][shared:])
        paths[i], before, n = path, prompts[i], n + grown
    post[path] = n
    return Tree(symbols=np.concatenate([before[:0], *new]), post=post[:n], paths=tuple(paths))


def ancestors(node: Any, post: Any) -> Any:
    """Return bool [..., n, n], True where node q (row) may see node k (column): k is q or is on its way to the root.

    Args:
        node: 0 to n - 1, an array or a tensor, so that a mask can be made where it is used.
        post: [..., n] of the same kind, see `Tree`. A node whose post is the next one is seen by itself alone.
    """
    return (node <= node[:, None]) & (node[:, None] < post[..., None, :])


def mrope_positions(length: int, images: Sequence[tuple[int, int, int]]) -> Ints:
    """Return int64 [3, length], the M-RoPE positions (time, height, width) of one prompt of text and images.

    Text counts up by one on all three axes. An image of h x w tokens stands at one time, spreads over the other two
    axes, and what follows goes on behind the longer of its sides.

    Args:
        length: tokens of the prompt.
        images: (first token, h, w) of each image in order, in merged tokens.
    """
    positions = np.empty((3, length), dtype=np.int64)
    token = following = 0
    for first, height, width in images:
        positions[:, token:first] = following + np.arange(first - token)
        following += first - token
        token = first + height * width
        positions[:, first:token] = following + _cells(height, width)
        following += max(height, width)
    positions[:, token:] = following + np.arange(length - token)
    return positions


@lru_cache(maxsize=64)
def _cells(height: int, width: int) -> Ints:
    """Return int64 [3, height * width], (0, row, column) of each token of an image."""
    rows, columns = np.divmod(np.arange(height * width), width)
    return np.stack([np.zeros_like(rows), rows, columns])


def plan_rows(prompts: Sequence[Ints], row_tokens: int) -> list[list[int]]:
    """Cut prompts into rows, runs of neighbours that become one tree each.

    A neighbour joins while the row has at most `row_tokens` nodes. One that shares at least half of itself with the
    prompt before joins up to twice the row's first prompt too: computing 3,800 shared tokens again for the next
    question costs more than the wider mask. Both bounds keep the mask, which is quadratic in a row's nodes, bounded.
    """
    rows: list[list[int]] = []
    nodes = 0
    for i, prompt in enumerate(prompts):
        shared = shared_length(prompts[i - 1], prompt) if i else 0
        grown = nodes + len(prompt) - shared
        wide = 2 * len(prompts[rows[-1][0]]) if rows and 2 * shared >= len(prompt) else 0
        if rows and grown <= max(row_tokens, wide):
            rows[-1].append(i)
            nodes = grown
        else:
            rows.append([i])
            nodes = len(prompt)
    return rows


def plan_batches(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Cut rows into batches that run side by side: longest first, padded to at most `tokens` together, never empty."""
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
