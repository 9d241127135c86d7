"""The tokenizer of the checkpoint that a server serves, as far as a client needs it: which ids stand for which letter.

It needs the checkpoint's tokenizer.json alone, from a folder, the package or the hub's cache, and no model code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchcheck.backends.checkpoint import resolve
from benchcheck.backends.letters import unreadable_letters, variants_of_letters
from benchcheck.errors import UsageError, first_line
from benchcheck.screen.prompts import PREFILL

__all__ = ["Vocabulary", "load_vocabulary"]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a tokenizer says about letters."""

    texts: Sequence[str]
    """Decoded text of every id."""
    variants: Mapping[str, Sequence[int]]
    """Ids of every token that stands for a letter."""
    unreadable: Mapping[str, str]
    """Letters that no single token says behind the prefill, with what they become."""
    control: re.Pattern[str] | None
    """Finds a control token in a text."""
    encode: Callable[[str], list[int]]
    """Text to ids, adding nothing."""


def load_vocabulary(model: str, revision: str, cache: str = "") -> Vocabulary | str:
    """Return the vocabulary of a checkpoint, or in words why there is none at hand."""
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        return "the tokenizers package is not installed"
    file = _tokenizer_file(model, revision, cache)
    if isinstance(file, str):
        return file
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 - tokenizers raises bare Exception on a file it cannot read
        return f"{file} is no tokenizer ({first_line(error)})"
    identifiers = [[number] for number in range(tokenizer.get_vocab_size(with_added_tokens=True))]
    texts: list[str] = tokenizer.decode_batch(identifiers, skip_special_tokens=False)
    variants = variants_of_letters(texts)

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    special = [re.escape(token.content) for token in tokenizer.get_added_tokens_decoder().values() if token.special]
    control = re.compile("|".join(sorted(special))) if special else None
    return Vocabulary(texts, variants, unreadable_letters(PREFILL, encode, variants), control, encode)


def _tokenizer_file(model: str, revision: str, cache: str) -> Path | str:
    """Return where a checkpoint's tokenizer.json lies, or why it is not at hand."""
    try:
        place = resolve(model)
    except UsageError as error:
        return str(error)
    if isinstance(place, Path):
        file = place / "tokenizer.json"
        return file if file.is_file() else f"{place} has no tokenizer.json"
    if not revision:
        return f"{model} has no revision in the config"
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        # From the cache where it is there; a few MB from the hub otherwise.
        return Path(
            huggingface_hub.hf_hub_download(place, "tokenizer.json", revision=revision, cache_dir=cache or None)
        )
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        return f"{model}@{revision}: tokenizer.json cannot be fetched ({first_line(error)})"
