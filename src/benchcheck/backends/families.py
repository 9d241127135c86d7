"""Prompts for other families than Qwen3-VL, by each model's own processor.

The processor makes the tokens and pixels, so that a prompt is what the family's own examples make of it: one user turn,
images before the text, and the assistant turn begun with the prefill. Images go through the family's PIL class, which
needs no torchvision and gives the same pixels on every machine.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from PIL import Image

from benchcheck.backends.letters import SPECIMEN
from benchcheck.backends.pixels import UndecodableFrameError
from benchcheck.backends.rendering import check_text
from benchcheck.errors import ModelRefusedError, first_line
from benchcheck.screen.prompts import PREFILL, Prompt

__all__ = ["FAMILIES", "Family", "FamilyRenderer", "images_of"]


@dataclass(frozen=True, slots=True)
class Family:
    """Where `transformers` keeps the classes of a family."""

    texts: str
    """Name of its processor class."""
    pictures: tuple[str, str]
    """Module below `transformers.models` and name of its PIL image processor."""
    needs: tuple[str, ...] = ()
    """Packages that its processor wants beyond torch and Pillow."""


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "Gemma3ForConditionalGeneration": Family(
            "Gemma3Processor", ("gemma3.image_processing_pil_gemma3", "Gemma3ImageProcessorPil")
        ),
        "InternVLForConditionalGeneration": Family(
            "InternVLProcessor", ("got_ocr2.image_processing_pil_got_ocr2", "GotOcr2ImageProcessorPil")
        ),
        "LlavaOnevisionForConditionalGeneration": Family(
            "LlavaOnevisionProcessor",
            ("llava_onevision.image_processing_pil_llava_onevision", "LlavaOnevisionImageProcessorPil"),
        ),
        "SmolVLMForConditionalGeneration": Family(
            "SmolVLMProcessor", ("smolvlm.image_processing_pil_smolvlm", "SmolVLMImageProcessorPil"), ("num2words",)
        ),
    }
)
"""By the architecture that a checkpoint's config names."""


class FamilyRenderer:
    """The processor of a checkpoint: what `rendering.Renderer` is for Qwen3-VL, with pixels."""

    def __init__(self, folder: Path, family: Family) -> None:
        """Load it.

        Raises:
            ModelRefusedError: it cannot be loaded, wants a package that is not installed, or its template drops images
                or text.
        """
        for package in family.needs:
            if importlib.util.find_spec(package) is None:
                raise ModelRefusedError(
                    f"{folder}: its processor wants the package {package}, which is not installed. "
                    f"Cure: pip install {package}"
                )
        self._folder = folder
        try:
            self._processor = _processor(folder, family)
            self._tokenizer: Any = self._processor.tokenizer
            shown, blind = self.text(SPECIMEN, images=2), self.specimen
        except Exception as error:  # each family's code raises what it likes on a file that it cannot use
            raise ModelRefusedError(
                f"{folder}: its processor cannot be used ({first_line(error)}). Allowed: a whole checkpoint of the "
                "family. Cure: fetch the checkpoint again"
            ) from error
        self._check_template(shown, blind)
        added = self._tokenizer.added_tokens_decoder.values()
        named = {value for name, value in vars(self._processor).items() if name.endswith("_token")}
        special = {str(one.content) for one in added if one.special}
        self._control = sorted({str(token) for token in named if token} | special)

    def _check_template(self, shown: str, blind: str) -> None:
        """Refuse a chat template that does not show two images and the text."""
        token = self._processor.image_token
        if shown.count(token) != 2 or token in blind or SPECIMEN not in shown:
            raise ModelRefusedError(
                f"{self._folder}: the chat template shows {shown.count(token)} of 2 images as {token}, or changes the "
                "text. Allowed: a template with one such token per image. Cure: fetch the checkpoint again"
            )

    @property
    def specimen(self) -> str:
        """A rendered prompt, whose end is the end of every prompt."""
        return self.text(SPECIMEN, images=0)

    def text(self, text: str, *, images: int) -> str:
        """Return the text of a prompt, with one placeholder per image, up to the prefill.

        The template itself continues the assistant's turn where it can: one that puts a space or a line before the
        answer then does so here too.
        """
        content = [{"type": "image"} for _ in range(images)] + [{"type": "text", "text": text}]
        begun = [{"type": "text", "text": PREFILL}]
        user, assistant = {"role": "user", "content": content}, {"role": "assistant", "content": begun}
        template = self._processor.chat_template or self._tokenizer.chat_template
        apply = self._tokenizer.apply_chat_template
        try:
            continued: str = apply(
                [user, assistant], chat_template=template, tokenize=False, continue_final_message=True
            )
        except (ValueError, TypeError):  # the template has changed the turn, so that its end is not found
            continued = ""
        if continued.endswith(PREFILL):
            return continued
        opened: str = apply([user], chat_template=template, tokenize=False, add_generation_prompt=True)
        return opened + PREFILL

    def tokenize(self, text: str) -> list[int]:
        """Return the ids of a prompt without images."""
        ids: list[int] = self._tokenizer(text, add_special_tokens=self._adds(text))["input_ids"]
        return ids

    def _adds(self, text: str) -> bool:
        """Tell whether the tokenizer should put its own tokens around a text, as the family's processor decides it."""
        start = self._tokenizer.bos_token
        return not (start and text.startswith(start))

    def vocabulary(self) -> list[str]:
        """Return the decoded text of every id."""
        ids = [[identifier] for identifier in range(len(self._tokenizer))]
        decoded: list[str] = self._tokenizer.batch_decode(ids, clean_up_tokenization_spaces=False)
        return decoded

    def check(self, prompt: Prompt) -> None:
        """Refuse a prompt whose text would be obeyed instead of read.

        Raises:
            ControlTokenError: its text contains a control token of this model.
        """
        check_text(prompt.text, self._control)

    def inputs(self, prompt: Prompt, images: Sequence[Image.Image]) -> dict[str, Any]:
        """Return what the model's forward takes for one prompt, tensors on the CPU."""
        text = self.text(prompt.text, images=len(images))
        # Nested: a flat list would be one image for each of several prompts, which LLaVA-OneVision cuts differently.
        shown = {"images": [list(images)]} if images else {}
        made = self._processor(text=[text], **shown, return_tensors="pt", add_special_tokens=self._adds(text))
        return dict(made)


def images_of(paths: Sequence[str]) -> list[Image.Image]:
    """Return frames as RGB images.

    Raises:
        UndecodableFrameError: a file is missing, cut or no image.
    """
    return [_image(path) for path in paths]


def _image(path: str) -> Image.Image:
    try:
        with Image.open(path) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UndecodableFrameError(f"{path}: {first_line(error)}") from error


def _processor(folder: Path, family: Family) -> Any:
    """Return a family's processor without the part for videos, which needs torchvision and is never asked."""
    import transformers

    module, name = family.pictures
    pictures = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    whole: Any = getattr(transformers, family.texts)

    def check(self: Any, name: str, part: Any) -> Any:
        return None if part is None else whole.check_argument_for_proper_class(self, name, part)

    still: Any = type(whole.__name__, (whole,), {"check_argument_for_proper_class": check})
    parts = {
        "image_processor": pictures.from_pretrained(folder, local_files_only=True),
        "tokenizer": transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True),
    }
    settings, _ = whole.get_processor_dict(folder, local_files_only=True)
    return still.from_args_and_dict([parts.get(part) for part in whole.get_attributes()], settings)
