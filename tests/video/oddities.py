"""Clips that are whole and odd: edit lists, sizes that change, company in the file, clocks that turn over."""

import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from .clips import Clip, picture

TICKS_A_FRAME = 512
"""Of the media clock that the mp4 muxer takes for 25 frames a second; the movie's own counts milliseconds."""


def with_edits(source: Path, target: Path, edits: Sequence[tuple[int, int]]) -> Path:
    """Copy an mp4 whose index stands at its end, with this edit list: length in ms, and media time (-1: nothing)."""
    data = bytearray(source.read_bytes())
    at = data.index(b"elst") - 4
    size = struct.unpack(">I", data[at : at + 4])[0]
    entries = b"".join(struct.pack(">IiI", length, start, 1 << 16) for length, start in edits)
    box = struct.pack(">I4sII", 16 + len(entries), b"elst", 0, len(edits)) + entries
    data[at : at + size] = box
    for parent in (b"moov", b"trak", b"edts"):
        place = data.index(parent) - 4
        old = struct.unpack(">I", data[place : place + 4])[0]
        data[place : place + 4] = struct.pack(">I", old + len(box) - size)
    target.write_bytes(bytes(data))
    return target


def changing_size(path: Path, frames: int = 40) -> Path:
    """Motion JPEG whose second half is larger than the first."""
    with av.open(str(path), "w") as container:
        stream: Any = None
        for part, (width, height) in enumerate(((176, 96), (352, 288))):
            encoder: Any = av.CodecContext.create("mjpeg", "w")
            encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuvj420p"
            encoder.time_base = Fraction(1, 25)
            for number in range(part * frames // 2, (part + 1) * frames // 2):
                frame = av.VideoFrame.from_ndarray(picture(number, width, height), format="rgb24")
                frame.pts = number
                for packet in encoder.encode(frame):
                    if stream is None:
                        stream = container.add_stream("mjpeg", rate=25)
                        stream.width, stream.height, stream.pix_fmt = width, height, "yuvj420p"
                        stream.codec_context.time_base = Fraction(1, 25)
                    packet.stream, packet.time_base = stream, Fraction(1, 25)
                    container.mux(packet)
    return path


def in_company(path: Path, *, later: float = 0.0, longer: float = 0.0, second: bool = False) -> Path:
    """A clip of 64 frames beside sound; `later`: s by which the picture starts after it, `longer`: s by which it lasts
    on; `second`: a second picture, which shows 500 and up, comes behind the first.
    """  # fmt: skip
    with av.open(str(path), "w") as container:
        sound: Any = container.add_stream("aac", rate=8000, layout="mono")
        pictures: list[Any] = [container.add_stream("libx264", rate=25) for _ in range(1 + second)]
        for stream in pictures:
            stream.width, stream.height, stream.pix_fmt = 176, 96, "yuv420p"
            stream.codec_context.thread_count = 1
        for block in range(int((2.56 + later + longer) * 8000 / 1024)):
            heard = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            heard.rate, heard.pts = 8000, block * 1024
            container.mux(sound.encode(heard))
        container.mux(sound.encode())
        for number in range(64):
            for first, stream in zip((0, 500), pictures, strict=False):
                frame = av.VideoFrame.from_ndarray(picture(first + number, 176, 96), format="rgb24")
                frame.pts = number + round(later * 25)
                container.mux(stream.encode(frame))
        for stream in pictures:
            container.mux(stream.encode())
    return path


def with_cover(source: Path, path: Path) -> Path:
    """A clip behind the picture of a cover, which is the first stream."""
    still: Any = av.CodecContext.create("mjpeg", "w")
    still.width, still.height, still.pix_fmt, still.time_base = 320, 240, "yuvj420p", Fraction(1, 25)
    (image,) = still.encode(av.VideoFrame.from_ndarray(picture(999, 320, 240), format="rgb24"))
    with av.open(str(source)) as read, av.open(str(path), "w") as written:
        cover: Any = written.add_stream("mjpeg", rate=25)
        cover.width, cover.height, cover.pix_fmt = 320, 240, "yuvj420p"
        cover.disposition = av.stream.Disposition.attached_pic
        film = written.add_stream_from_template(read.streams.video[0])
        image.stream, image.pts, image.dts = cover, 0, 0
        written.mux(image)
        for packet in read.demux(video=0):
            if packet.size:
                packet.stream = film
                written.mux(packet)
    return path


def turning_clock(path: Path) -> Path:
    """A transport stream whose 33-bit clock turns over after a second."""
    start = (1 << 33) - 90000
    return Clip(pts=[start + 3600 * number for number in range(64)], time_base=Fraction(1, 90000)).write(path)
