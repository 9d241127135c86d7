"""Items: one multiple-choice question about one video or time window (protocol 1). Pure."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["Item", "VideoRef", "item_text", "split_prefix", "strip_letter_prefix"]

_LATER = frozenset({"subtitles", "group", "file_gold"})
"""Fields that older pools lack."""
_PREFIX = re.compile(
    r"\s*[(\[\uff08\uff3b\u3010]?([A-Za-z\uff21-\uff3a\uff41-\uff5a])[)\].:\uff09\uff3d\u3011\uff0e\uff1a\u3001](.*)",
    re.DOTALL,
)
_FULL_WIDTH = 0xFEE0
"""From a plain letter to the full-width one of Chinese files."""


_JSON = json.JSONEncoder(ensure_ascii=False)
"""What `json.dumps` makes anew for each item: a third of its time."""


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
        return hashlib.sha256(_JSON.encode(shown).encode()).hexdigest()[:16]

    @property
    def frames_key(self) -> str:
        """Name of the item's frame folder: the video id, with `@<start>-<end>` in ms for a window (protocol 3)."""
        if self.start is None and self.end is None:
            return self.video_id
        end = "" if self.end is None else str(round(self.end * 1000))
        return f"{self.video_id}@{round((self.start or 0) * 1000)}-{end}"


def split_prefix(text: str) -> tuple[str, str]:
    """Return a text's letter prefix in upper case (`(b) y` has B) and the text behind it.

    Without a prefix the letter is empty.
    """
    match = _PREFIX.fullmatch(text)
    if match is None:
        return "", text
    letter = match[1] if match[1].isascii() else chr(ord(match[1]) - _FULL_WIDTH)
    return letter.upper(), match[2].strip()


def strip_letter_prefix(options: Sequence[Any]) -> tuple[list[str], bool]:
    """Strip a letter prefix once, only when every option carries its own position's letter (golden of the same name).

    Returns the texts and whether they were stripped.
    """
    texts = [str(option) for option in options]
    parts = [split_prefix(text) for text in texts]
    if len(texts) > MAX_OPTIONS or [letter for letter, _ in parts] != list(LETTERS[: len(texts)]):
        return texts, False
    return [bare for _, bare in parts], True


def item_text(question: str | None, options: Sequence[str] | str | None) -> str:
    """Return the text that duplicates are found by: the question, white space collapsed, then one option a line."""
    lines = [" ".join((question or "").split())]
    if options and not isinstance(options, str):
        lines += [str(option) for option in options]
    return "\n".join(lines)
