"""What FFmpeg complains of: damage that a decoder hides well enough to raise no error and set no flag.

A picture that builds on one that never came is given as if it were whole; that a picture was missing is said in the log
alone. The words are those of FFmpeg 8; tests damage files and hold them.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import av.logging

__all__ = ["Care", "complaint", "heard", "level_of"]

_DAMAGE = re.compile(
    r"frame num gap|missing reference|reference picture missing|could not find ref|no frame!"
    r"|error while decoding|error decoding|co located pocs|reference \d+ >="
    r"|damaged|mismatch|overread|concealing|invalid nal unit size|splitting the input into nal"
    r"|invalid as first byte of an ebml|exceeds containing master|not available|invalid mb type|illegal",
    re.IGNORECASE,
)
"""Words for pictures made of missing or changed data. Other complaints (of odd headers) come with whole files too."""


def level_of(decoder: str) -> int:
    """How closely to listen to a decoder: H.264 calls a lost picture ("frame num gap") a detail, others an error."""
    return int(av.logging.DEBUG if decoder == "h264" else av.logging.ERROR)


@contextlib.contextmanager
def heard(at_least: int = av.logging.ERROR) -> Iterator[list[tuple[int, str, str]]]:
    """Collect what FFmpeg says while the block runs: level, who, what. Nothing of it reaches the terminal.

    Only for decoders without threads that outlive the call. The log is one for the process, and each message waits for
    Python's lock. With frame threads (H.264, 4 of them) the complaint about packet 20 came with packet 21 or 22, and
    some came after the block, to a log that was closed. dav1d's speak while they are being closed, by a caller that
    holds that lock and waits for them: for ever. So `opened.Opened` has slice threads, and one for AV1.
    """
    level, repeats = av.logging.get_level(), av.logging.get_skip_repeated()
    av.logging.set_level(at_least)
    av.logging.set_skip_repeated(False)
    try:
        with av.logging.Capture(local=False) as told:
            yield told
    finally:
        av.logging.set_skip_repeated(repeats)
        av.logging.set_level(level)


def complaint(told: Sequence[tuple[int, str, str]]) -> str:
    """The first message that tells of damage, or "" without one."""
    return next((message.strip() for _, _, message in told if _DAMAGE.search(message)), "")


@dataclass(slots=True)
class Care:
    """Follows damage through a stream in the order of decoding: what comes after it builds on it, up to a key frame."""

    rigid: bool
    """Whether a first packet that is no key frame is damage, and not the start of a broadcast."""
    fresh: bool = True
    """No key frame came so far."""
    tainted: bool = False
    """The last packet judged is damaged, or builds on one that is."""

    def judge(self, packet: Any, words: str) -> str:
        """What is wrong with a packet after which `words` were heard; "" for nothing."""
        torn = words
        if packet.is_corrupt:
            torn = "a packet is incomplete"
        elif self.fresh:
            # What a first key frame refers to was never there to be lost: a jump, or the start of a broadcast.
            self.fresh = not packet.is_keyframe
            torn = "the first key frame is missing" if self.fresh and self.rigid else ""
        self.tainted = bool(torn) or (self.tainted and not packet.is_keyframe)
        return torn
