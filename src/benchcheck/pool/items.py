"""Items: one multiple-choice question about one video or time window (protocol 1). Pure."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["Item", "VideoRef", "item_text", "letter_prefixes", "strip_letter_prefix"]

_LATER = frozenset({"subtitles", "group", "file_gold"})
"""Fields that older pools lack."""
_PREFIX = re.compile(r"\s*[(\[]?([A-Za-z])[)\].:](.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VideoRef:
    """Where a video comes from: a hub repository or namespace, an archive in it, a member or path."""

    repo: str
    member: str
    zip_path: str = ""

    @property
    def key(self) -> str:
        """`{repo}::{zip_path}::{member}` (protocol 1; golden `video_key`)."""
        return f"{self.repo}::{self.zip_path}::{self.member}"

    @property
    def video_id(self) -> str:
        """The id of a video whose content is not known yet: `k:` and 16 hex digits of sha1(key)."""
        return "k:" + hashlib.sha1(self.key.encode(), usedforsecurity=False).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Item:
    """One question. `gold` is an index into `options`.

    `format` is `mcq`, which is screened, or `open`, which is kept with its reasons in `issues` and never asked.
    `start` and `end` are seconds, None for the whole video; the window is part of an item's identity.
    """

    item_id: str
    bench: str
    source_id: str
    question: str
    options: tuple[str, ...]
    gold: int | None
    format: str
    video_key: str
    video_id: str
    start: float | None = None
    end: float | None = None
    category: str = ""
    duration: float | None = None
    issues: tuple[str, ...] = ()
    subtitles: str = ""
    """Where the subtitles lie; never shown to a model."""
    group: str = ""
    """What the items of one pair or family share, within their benchmark."""
    file_gold: int | None = None
    """Place of the right option in the annotation file, where the options were put in another order."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Item":
        """Return the item of a row of the pool's table; pools of the original layout have no column of the last few."""
        values = {name: row[name] for name in cls.__dataclass_fields__ if name not in _LATER or name in row}
        return cls(**values | {"options": tuple(row["options"]), "issues": tuple(row["issues"])})

    @property
    def askable(self) -> bool:
        """Whether it is multiple-choice as the protocol has it: 2 to 26 options, one of them right (protocol 1)."""
        return 2 <= len(self.options) <= MAX_OPTIONS and self.gold is not None and 0 <= self.gold < len(self.options)

    @property
    def digest(self) -> str:
        """16 hex digits over what a model is shown and what counts as right; step rows carry it.

        An edited question makes rows of the old wording stale instead of mixing them in.
        """
        shown = [self.question, self.options, self.gold, self.video_key, self.start, self.end]
        return hashlib.sha256(json.dumps(shown, ensure_ascii=False).encode()).hexdigest()[:16]

    @property
    def frames_key(self) -> str:
        """Name of the item's frame folder: the video id, with `@<start>-<end>` in ms for a window (protocol 3)."""
        if self.start is None and self.end is None:
            return self.video_id
        end = "" if self.end is None else str(round(self.end * 1000))
        return f"{self.video_id}@{round((self.start or 0) * 1000)}-{end}"


def strip_letter_prefix(options: Sequence[Any]) -> tuple[list[str], bool]:
    """Strip a letter prefix once, only when every option carries its own position's letter (golden of the same name).

    Returns the texts and whether they were stripped.
    """
    texts = [str(option) for option in options]
    matches = [_PREFIX.fullmatch(text) for text in texts]
    lettered = len(texts) <= MAX_OPTIONS and all(
        match is not None and match.group(1).upper() == letter for match, letter in zip(matches, LETTERS, strict=False)
    )
    if not lettered:
        return texts, False
    return [match.group(2).strip() for match in matches if match is not None], True


def letter_prefixes(texts: Sequence[str]) -> list[str | None]:
    """Return each text's letter prefix in upper case (`(b) y` has B), None where there is none."""
    matches = [_PREFIX.fullmatch(text) for text in texts]
    return [match.group(1).upper() if match is not None else None for match in matches]


def item_text(question: str | None, options: Sequence[str] | str | None) -> str:
    """Return the text that duplicates are found by: the question, white space collapsed, then one option a line."""
    lines = [" ".join((question or "").split())]
    if options and not isinstance(options, str):
        lines += [str(option) for option in options]
    return "\n".join(lines)
