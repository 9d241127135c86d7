"""Real video files of scenes: H.264 in MP4, painted frame by frame."""

import os
from fractions import Fraction
from pathlib import Path

import av

from benchcheck.demo.render import frames
from benchcheck.demo.scenes import CELLS, Scene

__all__ = ["FRAME_RATE", "N_FRAMES", "SIZE", "write_clip"]

N_FRAMES = 3 * CELLS
"""Three frames per cell, so that a grid of 32 always meets the middle one of a cell."""
FRAME_RATE = 24
SIZE = 128
"""Width and height in pixels."""
_AT_ONCE = 16
_QUALITY = {"crf": "18", "preset": "veryfast", "threads": "1"}


def write_clip(scene: Scene, path: Path) -> None:
    """Write a scene as a video file of four seconds; the file appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    with av.open(str(part), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=FRAME_RATE, options=_QUALITY)
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        stream.time_base = Fraction(1, FRAME_RATE)
        for begin in range(0, N_FRAMES, _AT_ONCE):
            times = [(index + 0.5) / N_FRAMES for index in range(begin, begin + _AT_ONCE)]
            for picture in frames(scene, times, SIZE):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    os.replace(part, path)
