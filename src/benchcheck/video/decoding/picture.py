"""Pictures: how one decoded frame becomes a small upright JPEG, and what made its pixels."""

import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av

from benchcheck.video.grid import display_size, fit_size, quarter_turns

__all__ = ["Picture", "Spec", "decoder_versions"]


@dataclass(frozen=True, slots=True)
class Spec:
    """How pictures are made: the config's `[frames]`, and how many threads one decoder gets."""

    count: int
    long_side: int
    quality: int
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Picture:
    """How the pictures of one video are drawn: stored size, size in the upright JPEG, quarter turns to it."""

    stored: tuple[int, int]
    size: tuple[int, int]
    turns: int
    quality: int

    @classmethod
    def of(cls, frame: Any, shape: Fraction | None, spec: Spec) -> "Picture":
        """Decide by the first frame; later frames of another size are drawn in this one's, as players do."""
        turns = quarter_turns(frame.rotation)
        width, height = display_size(frame.width, frame.height, shape)
        size = fit_size(*((height, width) if turns % 2 else (width, height)), spec.long_side)
        return cls((frame.width, frame.height), size, turns, spec.quality)

    def draw(self, frame: Any) -> bytes:
        """Scale, turn and compress one frame.

        Scaling from the decoder's own pixels to the small size at once costs a seventh of converting at full size and
        resizing then: 3.6 against 26 ms a frame of 1080p.
        """
        from PIL import Image

        width, height = self.size[::-1] if self.turns % 2 else self.size
        small = frame.reformat(width=width, height=height, format="rgb24", interpolation="BICUBIC", threads=1)
        image = small.to_image()
        if self.turns:
            turn = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)[self.turns - 1]
            image = image.transpose(turn)
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=self.quality)
        return buffer.getvalue()


def decoder_versions(codec: str) -> dict[str, str]:
    """Return what made the pixels: the codec's decoder, PyAV, FFmpeg's libraries and Pillow, with versions."""
    import PIL

    def dotted(library: str) -> str:
        return ".".join(map(str, av.library_versions[library]))

    return {
        "name": codec,
        "pyav": av.__version__,
        "libavcodec": dotted("libavcodec"),
        "libswscale": dotted("libswscale"),
        "pillow": PIL.__version__,
    }
