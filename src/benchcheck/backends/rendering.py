"""Prompts to token ids, by the checkpoint's own tokenizer and chat template.

The ids are those of the model's own processor: one user turn, images before the text, the assistant turn begun with
the prefill, and one image token per merged patch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchcheck.backends.letters import SPECIMEN, unreadable_failure
from benchcheck.backends.packed import Ints
from benchcheck.errors import ModelRefusedError, first_line
from benchcheck.screen.prompts import PREFILL, Prompt
from benchcheck.screen.readings import Failure

__all__ = ["Checking", "ControlTokenError", "Rendered", "Renderer", "check_text", "refusal"]


class ControlTokenError(Exception):
    """An item's text holds one of the model's control tokens, such as an end of turn or an image placeholder.

    Tokenised as it stands, it would be obeyed: a question could end its own turn and answer itself.
    """


class Checking(Protocol):
    """A renderer, as far as `refusal` needs it."""

    def check(self, prompt: Prompt) -> None:
        """Refuse a prompt whose text would be obeyed instead of read."""
        ...


def check_text(text: str, control: Sequence[str]) -> None:
    """Refuse a text that would be obeyed instead of read.

    Raises:
        ControlTokenError: it contains one of the control tokens.
    """
    held = [token for token in control if token in text]
    if held:
        raise ControlTokenError(f"the text holds {held[0]}, a control token of this model")


def refusal(prompt: Prompt, renderer: Checking, unreadable: Mapping[str, str]) -> Failure | None:
    """Return why a prompt's text cannot be read, if so.

    Args:
        prompt: the prompt.
        renderer: the model's.
        unreadable: what `letters.unreadable_letters` found.
    """
    failure = unreadable_failure(unreadable, len(prompt.order))
    if failure:
        return failure
    try:
        renderer.check(prompt)
    except ControlTokenError as error:
        return Failure("control_token_in_text", str(error))
    return None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as token ids, with every image token in its place."""

    ids: Ints
    """int64 [tokens]."""
    images: tuple[tuple[int, int, int], ...]
    """Per frame: first token, height and width in tokens."""


class Renderer:
    """The tokenizer of a checkpoint and its chat template."""

    def __init__(self, folder: Path) -> None:
        """Load the tokenizer.

        Raises:
            ModelRefusedError: it cannot be loaded, has no image token, or its template shows no images.
        """
        from jinja2 import TemplateError
        from transformers import AutoTokenizer

        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # the tokenizers library raises no narrower class on a file it cannot read
            raise ModelRefusedError(
                f"{folder}: the tokenizer cannot be loaded ({first_line(error)}). Allowed: the tokenizer of a Qwen3-VL "
                "checkpoint. Cure: fetch the checkpoint again"
            ) from error
        token = getattr(self._tokenizer, "image_token", "<|image_pad|>")
        self._image = self._tokenizer.convert_tokens_to_ids(token)
        self._around: dict[int, tuple[str, str] | None] = {}
        added = self._tokenizer.added_tokens_decoder.values()
        self._control = sorted({token, *(str(one.content) for one in added if one.special)})
        try:
            shown = self.tokenize(self.text(SPECIMEN, images=2))
        except TemplateError as error:
            raise ModelRefusedError(
                f"{folder}: the chat template cannot be used ({error}). Allowed: the chat template of a Qwen3-VL "
                "checkpoint. Cure: fetch the checkpoint again"
            ) from error
        if shown.count(self._image) != 2:
            raise ModelRefusedError(
                f"{folder}: the chat template shows {shown.count(self._image)} of 2 images as {token}. Allowed: a "
                "template with one such token per image. Cure: copy the chat template of a Qwen3-VL checkpoint"
            )

    @property
    def image_token(self) -> int:
        """The id that stands for an image, or for each of its tokens."""
        return int(self._image)

    @property
    def specimen(self) -> str:
        """A rendered prompt, whose end is the end of every prompt."""
        return self.text(SPECIMEN, images=0)

    def text(self, text: str, *, images: int) -> str:
        """Return the text that is tokenised, with one placeholder per image."""
        if images not in self._around:
            self._around[images] = self._find_around(images)
        around = self._around[images]
        return f"{around[0]}{text}{around[1]}" if around else self._by_template(text, images)

    def _find_around(self, images: int) -> tuple[str, str] | None:
        """Return what the template puts before and behind a user's text, or None where it changes the text itself.

        Running the embedded checkpoint's short template takes 0.04 ms of the 0.15 a text prompt costs, tokenising a
        batch 0.07. Templates that change a text trim it, escape it or look for a thinking block in it, so texts that
        would be changed by that are tried.
        """
        whole = self._by_template(_MARK, images)
        before, mark, after = whole.partition(_MARK)
        if not mark or any(self._by_template(text, images) != before + text + after for text in _PROBES):
            return None
        return before, after

    def _by_template(self, text: str, images: int) -> str:
        content = [{"type": "image"} for _ in range(images)] + [{"type": "text", "text": text}]
        turns = [{"role": "user", "content": content}]
        opened: str = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return opened + PREFILL

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a text, with nothing added."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, which the tokenizers library reads side by side."""
        given = self._tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False) if texts else {}
        ids: list[list[int]] = given["input_ids"] if texts else []
        return ids

    def vocabulary(self) -> list[str]:
        """Return the decoded text of every id."""
        ids = [[identifier] for identifier in range(len(self._tokenizer))]
        decoded: list[str] = self._tokenizer.batch_decode(ids, clean_up_tokenization_spaces=False)
        return decoded

    def render(self, prompt: Prompt, sizes: Sequence[tuple[int, int]]) -> Rendered:
        """Return a prompt's ids.

        Args:
            prompt: the prompt.
            sizes: height and width of each of its frames in tokens.

        Raises:
            ControlTokenError: its text contains a control token of this model.
        """
        self.check(prompt)
        return self.placed(self.tokenize(self.text(prompt.text, images=len(sizes))), sizes)

    def check(self, prompt: Prompt) -> None:
        """Refuse a prompt whose text would be obeyed instead of read.

        Raises:
            ControlTokenError: its text contains a control token of this model.
        """
        check_text(prompt.text, self._control)

    def render_all(self, prompts: Sequence[Prompt], sizes: Sequence[Sequence[tuple[int, int]]]) -> list[Rendered]:
        """Return the ids of prompts that `check` let through; `sizes` as for `render`, one list per prompt."""
        texts = [self.text(prompt.text, images=len(one)) for prompt, one in zip(prompts, sizes, strict=True)]
        return [self.placed(ids, one) for ids, one in zip(self.tokenize_all(texts), sizes, strict=True)]

    def placed(self, tokens: Sequence[int], sizes: Sequence[tuple[int, int]]) -> Rendered:
        """Repeat every image placeholder as often as the image has tokens."""
        ids = np.array(tokens, dtype=np.int64)
        if not sizes:
            return Rendered(ids, ())
        places = np.flatnonzero(ids == self._image)
        assert len(places) == len(sizes), f"{len(places)} image placeholders for {len(sizes)} frames"
        counts = np.ones(len(ids), dtype=np.int64)
        counts[places] = [height * width for height, width in sizes]
        firsts = (np.cumsum(counts) - counts)[places]
        images = tuple((int(first), *size) for first, size in zip(firsts, sizes, strict=True))
        return Rendered(np.repeat(ids, counts), images)


_MARK = "Which one? 7f3a"
_PROBES = ("", " a ", "\n\na\n", "<think>a</think>b", "{{ a }} {% b %}", "<b>&amp;'\"\\", "\t\u00a0\u2028é")
