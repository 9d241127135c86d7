"""Clips whose every frame says its own number: eleven stripes, left to right, white for a 1 bit (the last is parity).

Made with PyAV at test time. The stripes survive scaling, lossy codecs and JPEG, so a test can assert which frame of a
clip was chosen, not merely that some frame was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

BITS = 10


def picture(number: int, width: int, height: int) -> np.ndarray:
    """The RGB picture of one number."""
    bits = [number >> bit & 1 for bit in range(BITS)]
    stripes = np.array([*bits, 1 - sum(bits) % 2]) * 200 + 28
    row = stripes[np.arange(width) * (BITS + 1) // width].astype(np.uint8)
    return np.repeat(np.repeat(row[None, :, None], height, 0), 3, 2)


def number_of(image: Image.Image | str | Path) -> int:
    """The number a picture shows; -1 when the stripes do not add up."""
    opened = image if isinstance(image, Image.Image) else Image.open(image)
    with opened:
        pixels = np.asarray(opened.convert("L"), dtype=float)
    height, width = pixels.shape
    centres = ((np.arange(BITS + 1) + 0.5) * width / (BITS + 1)).astype(int)
    bits = (pixels[height // 4 : -height // 4].mean(0)[centres] > 128).astype(int)
    return int(sum(bit << place for place, bit in enumerate(bits[:-1]))) if bits.sum() % 2 else -1


@dataclass(frozen=True, slots=True)
class Clip:
    """How to make a clip; the defaults are H.264 with B-frames in MP4, 25 frames a second."""

    frames: int = 64
    width: int = 176
    height: int = 96
    codec: str = "libx264"
    rate: int | Fraction = 25
    pixels: str = "yuv420p"
    options: tuple[tuple[str, str], ...] = ()
    container: tuple[tuple[str, str], ...] = ()
    pts: Sequence[int] | None = None
    time_base: Fraction | None = None
    rotation: int = 0
    first: int = 0

    def write(self, path: Path) -> Path:
        """Write the clip; `rotation` turns the stored pictures so that they are upright when shown."""
        sideways = self.rotation % 180 != 0
        width, height = (self.height, self.width) if sideways else (self.width, self.height)
        with av.open(str(path), "w", options=dict(self.container)) as container:
            stream = container.add_stream(self.codec, rate=self.rate, options=dict(self.options))
            stream.width, stream.height, stream.pix_fmt = width, height, self.pixels
            if self.time_base is not None:
                stream.codec_context.time_base = self.time_base
            stream.codec_context.thread_count = 1  # tiny pictures: threads would only wait for each other
            if self.rotation:
                stream.set_display_rotation(self.rotation)
            for number in range(self.frames):
                upright = picture(self.first + number, self.width, self.height)
                stored = np.ascontiguousarray(np.rot90(upright, -self.rotation // 90))
                frame = av.VideoFrame.from_ndarray(stored, format="rgb24")
                frame.pts = number if self.pts is None else self.pts[number]
                if self.time_base is not None:
                    frame.time_base = self.time_base
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path


NO_B_FRAMES = (("bf", "0"),)
SHORT_GOP = (("g", "8"), ("keyint_min", "8"))
X265 = (("x265-params", "log-level=none"),)
KINDS = {
    "cfr.mp4": Clip(),
    "nob.mp4": Clip(options=NO_B_FRAMES),
    "gop.mp4": Clip(frames=400, options=SHORT_GOP),
    "opengop.mp4": Clip(frames=200, options=(("x264-params", "open-gop=1:keyint=12:min-keyint=4:bframes=3"),)),
    "faststart.mp4": Clip(container=(("movflags", "faststart"),)),
    "fragmented.mp4": Clip(container=(("movflags", "frag_keyframe+empty_moov"),), options=SHORT_GOP),
    "vfr.mp4": Clip(pts=[number * number * 7 + number * 11 for number in range(64)], time_base=Fraction(1, 1000)),
    "late.mp4": Clip(pts=[number + 50 for number in range(64)]),
    "odd.mkv": Clip(width=177, height=97, pixels="yuv444p"),
    "ten.mp4": Clip(codec="libx265", pixels="yuv420p10le", options=X265),
    "hevc.mkv": Clip(frames=200, codec="libx265", options=(("x265-params", "log-level=none:keyint=20:bframes=4"),)),
    "vp9.webm": Clip(codec="libvpx-vp9", options=(("deadline", "realtime"), ("cpu-used", "8"))),
    "vp8.webm": Clip(codec="libvpx", options=(("auto-alt-ref", "1"), ("lag-in-frames", "16"), ("deadline", "good"))),
    "mpeg4.avi": Clip(codec="mpeg4"),
    "bframes.avi": Clip(codec="mpeg4", options=(("bf", "2"),)),
    "h264.avi": Clip(),
    "broadcast.ts": Clip(options=SHORT_GOP),
    "disc.mpg": Clip(codec="mpeg2video"),
    "anim.gif": Clip(codec="gif", pixels="rgb8", rate=10),
    "raw.h264": Clip(),
    "one.mp4": Clip(frames=1),
    "seven.mp4": Clip(frames=7),
    "quarter.mp4": Clip(rotation=90),
    "half.mp4": Clip(rotation=180),
    "threequarter.mp4": Clip(rotation=-90),
}
