"""The checkpoint's own tokenizer and processor, beside the stack: what a prompt should come to in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.errors import BenchcheckError
from benchcheck.screen.prompts import Prompt

__all__ = ["Tail", "open_tail", "shareable"]

_MERGE = 2
"""Patches per image token along one side, in every Qwen3-VL checkpoint."""


@dataclass(slots=True)
class Tail:
    """A checkpoint's tokenizer, chat template and image processor."""

    renderer: Any
    reader: Any
    _grids: dict[str, tuple[int, int]] = field(default_factory=dict)

    def letters(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Return the token ids of every letter, and the letters that no single token says, with why."""
        from benchcheck.backends.letters import unreadable_letters, variants_of_letters

        variants = variants_of_letters(self.renderer.vocabulary())
        return variants, unreadable_letters(self.renderer.specimen, self.renderer.tokenize, variants)

    def texts(self, identifiers: Sequence[int]) -> list[str]:
        """Return the texts of token ids."""
        vocabulary = self.renderer.vocabulary()
        return [vocabulary[identifier] for identifier in identifiers]

    def ids(self, prompt: Prompt) -> list[int]:
        """Return a prompt's token ids, an image's tokens included; a frame's own are its number below zero.

        Raises:
            UndecodableFrameError: a frame is no image.
        """
        for path in set(prompt.frames) - set(self._grids):
            self._grids[path] = self.reader.read(path).grid
        grids = [self._grids[path] for path in prompt.frames]
        rendered = self.renderer.render(prompt, [(height // _MERGE, width // _MERGE) for height, width in grids])
        ids: list[int] = rendered.ids.tolist()
        for path, (first, height, width) in zip(prompt.frames, rendered.images, strict=True):
            ids[first : first + height * width] = [-1 - hash(path) % (1 << 40)] * (height * width)
        return ids

    def close(self) -> None:
        """End the processor's threads."""
        self.reader.close()


def open_tail(model: str, revision: str, download: bool = True, cache: str = "") -> Tail | str:
    """Open a checkpoint's tokenizer and processor, or say why there is none at hand.

    Args:
        model: a folder, a hub id or an embedded checkpoint.
        revision: of a hub id.
        download: whether a hub id's small files may be fetched; its weights never are.
        cache: the hub cache; the library's own when empty.
    """
    try:
        from benchcheck.backends.pixels import FrameReader
        from benchcheck.backends.rendering import Renderer

        folder = _folder(model, revision, download, cache)
        if isinstance(folder, str):
            return folder
        return Tail(Renderer(folder), FrameReader(folder))
    except (BenchcheckError, ImportError, AttributeError) as reason:
        return f"no tokenizer at hand ({str(reason).partition('. ')[0]})"


def _folder(model: str, revision: str, download: bool, cache: str) -> Path | str:
    """Return the folder of a checkpoint's small files, or why there is none."""
    from benchcheck.backends.checkpoint import resolve

    place = resolve(model)
    if isinstance(place, Path):
        return place
    import huggingface_hub

    patterns = ["*.json", "*.jinja", "*.txt"]
    try:
        found = huggingface_hub.snapshot_download(
            place,
            revision=revision or None,
            allow_patterns=patterns,
            local_files_only=not download,
            cache_dir=cache or None,
        )
    except (OSError, ValueError) as reason:
        return f"no tokenizer at hand ({model}: {str(reason).strip().partition(chr(10))[0]})"
    return Path(found)


def shareable(rows: Sequence[Sequence[int]], block: int = 1) -> list[int]:
    """Return for each prompt how many of its first tokens an earlier one of them begins with, too.

    Args:
        rows: token ids of each prompt, in the order asked.
        block: engines share whole blocks of so many tokens; the last token is always computed.
    """
    seen: dict[tuple[int, int], int] = {}
    shared = []
    for row in rows:
        node, depth = 0, 0
        sharing = True
        for token in row:
            step = seen.get((node, token))
            if step is None:
                sharing = False
                step = len(seen) + 1
                seen[(node, token)] = step
            elif sharing:
                depth += 1
            node = step
        shared.append(min(depth, max(0, len(row) - 1)) // block * block)
    return shared
