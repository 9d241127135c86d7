"""The sound of a normalised video: decoded, encoded as AAC, shifted as the pictures are."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import av

from benchcheck.video.decoding.opened import Errors, frames_of

__all__ = ["Sound"]

_FRAME = 1024
"""Samples of an AAC frame."""
_LIMITS = (8000, 48000)
"""Samples a second that AAC is written with here."""


class Sound:
    """The first sound stream of an opened container, on its way into another one.

    It is read in step with the pictures: a muxer holds back what comes ahead of the other stream.
    """

    def __init__(self, container: Any, out: Any, origin: Fraction) -> None:
        """`origin` is the time of the first picture, in seconds: the new zero."""
        self._container, self._source, self._origin = container, container.streams.audio[0], origin
        context = self._source.codec_context
        self._rate = min(max(context.sample_rate, _LIMITS[0]), _LIMITS[1])
        layout = "mono" if context.channels == 1 else "stereo"
        self._target = out.add_stream("aac", rate=self._rate, layout=layout)
        self._resampler = av.AudioResampler(format="fltp", layout=layout, rate=self._rate, frame_size=_FRAME)
        self._packets = self._encoded()
        self._held: Any = None

    @staticmethod
    def of(container: Any, out: Any, origin: Fraction) -> "Sound | None":
        """Return the sound of a container; None where it has none that can be decoded."""
        streams = container.streams.audio
        context = streams[0].codec_context if streams else None
        return Sound(container, out, origin) if context is not None and context.channels else None

    def until(self, seconds: Fraction | None) -> Iterator[Any]:
        """Yield the packets up to a time; None is the end."""
        while True:
            packet = self._held or next(self._packets, None)
            self._held = None
            if packet is None:
                return
            if seconds is not None and packet.pts * packet.time_base > seconds:
                self._held = packet
                return
            yield packet

    def _encoded(self) -> Iterator[Any]:
        """All packets in their order; what cannot be decoded is left out."""
        for frame in frames_of(self._container, self._source, Errors()):
            yield from self._fed(self._resampler.resample(frame) if self._placed(frame) else [])
        yield from self._fed(self._resampler.resample(None))
        yield from self._target.encode(None)

    def _placed(self, frame: Any) -> bool:
        """Shift a frame to the new zero; False for one before it or without a time."""
        if frame.pts is None:
            return False
        shifted = frame.pts * Fraction(frame.time_base) - self._origin
        frame.time_base = Fraction(1, frame.sample_rate)
        frame.pts = round(shifted * frame.sample_rate)
        return bool(frame.pts >= 0)

    def _fed(self, frames: Any) -> Iterator[Any]:
        for frame in frames:
            yield from self._target.encode(frame)
