"""What a video is: codec, size, length, cadence, sound; by its packets and frames, not by what its header claims."""

from fractions import Fraction
from typing import Any

from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.opened import Errors, Opened, packets_in
from benchcheck.video.grid import display_size
from benchcheck.video.preparing.cadence import disagreements, is_variable, longest_gap
from benchcheck.video.sources.media import Media

__all__ = ["probe"]


def probe(media: Media, video: Video) -> dict[str, Any]:
    """Return what docs/videos.md lists, as JSON values. The video has drawn a picture before.

    Raises:
        VideoError: the file cannot be opened any more.
    """
    timeline, picture = video.timeline(), video.picture
    length, frames = timeline.length, len(timeline.pts)
    width, height = display_size(*picture.stored, video.pixel_shape)
    with Opened(media.path, 1, media.span) as (container, stream):
        claims, facts = _claims(container, stream), _facts(container, stream)
        keys, last = _key_seconds(container, stream, length)
    found = {"frames": frames, "duration": float(length), "fps": float(frames / length)}
    return {
        "codec": video.codec,
        **facts,
        "width": picture.stored[0],
        "height": picture.stored[1],
        "display": [height, width] if picture.turns % 2 else [width, height],
        "rotation": 90 * picture.turns,
        "pixel_shape": _ratio(video.pixel_shape),
        "frames": frames,
        "duration": round(float(length), 6),
        "fps": round(found["fps"], 6),
        "variable": is_variable(timeline),
        "key_frames": len(keys),
        "key_interval": longest_gap(keys, last),
        "damaged": len(timeline.holes | timeline.damaged),
        "container": video.container,
        "bytes": media.bytes,
        "announced": disagreements(claims, found),
    }


def _ratio(shape: Fraction | None) -> str:
    """The shape of a pixel, width to height; square where the file says nothing."""
    return f"{shape.numerator}:{shape.denominator}" if shape else "1:1"


def _facts(container: Any, stream: Any) -> dict[str, Any]:
    """What the decoder was set up with."""
    context = stream.codec_context
    pixels, sound = context.format, container.streams.audio
    codec = sound[0].codec_context if sound else None
    return {
        "profile": context.profile or None,
        "pixel_format": pixels.name if pixels else None,
        "bit_depth": max(part.bits for part in pixels.components) if pixels else None,
        "audio": (codec.name if codec else "unknown") if sound else None,
    }


def _claims(container: Any, stream: Any) -> dict[str, float | None]:
    """What the header says of the length and the frames; None where it says nothing."""
    length = float(stream.duration * stream.time_base) if stream.duration else None
    if length is None and container.duration:
        length = container.duration / 1_000_000
    rate = stream.average_rate
    return {
        "frames": float(stream.frames) if stream.frames else None,
        "duration": None if length is None else round(length, 6),
        "fps": round(float(rate), 6) if rate else None,
    }


def _key_seconds(container: Any, stream: Any, length: Fraction) -> tuple[list[float], float]:
    """When each key frame is shown, in seconds after the first frame, and when the last frame ends."""
    ticks: list[int | None] = []
    keys: list[int] = []
    for packet in packets_in(container, stream, Errors()):
        if not packet.is_discard:
            if packet.is_keyframe:
                keys.append(len(ticks))
            ticks.append(packet.pts)
    known = [tick for tick in ticks if tick is not None]
    if len(set(known)) == len(ticks) and known:
        first, base = min(known), float(stream.time_base)
        return [(known[key] - first) * base for key in keys], float(length)
    # Without times of their own frames are counted.
    return [float(length) * key / max(1, len(ticks)) for key in keys], float(length)
