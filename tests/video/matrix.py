"""A product of clips: codec x container x timing x rotation x length, and what each must show.

What must be seen is computed from the known timestamps alone, rounded as the container's format rounds them: no
demuxer has a say in it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path

from .clips import Clip

LENGTHS = (1, 2, 7, 31, 32, 33, 64, 400)
ROTATIONS = (0, 90, 180, 270)


@dataclass(frozen=True, slots=True)
class Timing:
    """When each frame comes on screen: ticks of `base`."""

    rate: Fraction
    base: Fraction
    tick: Callable[[int], int]

    def pts(self, frames: int) -> list[int]:
        return [self.tick(number) for number in range(frames)]


def steady(rate: Fraction | int) -> Timing:
    return Timing(Fraction(rate), 1 / Fraction(rate), lambda number: number)


def varying(base: int, tick: Callable[[int], int]) -> Timing:
    return Timing(Fraction(25), Fraction(1, base), tick)


TIMINGS = {
    "2": steady(2),
    "25": steady(25),
    "ntsc": steady(Fraction(30000, 1001)),
    "149/6": steady(Fraction(149, 6)),
    "60": steady(60),
    "vfr": varying(1000, lambda number: number * number * 7 + number * 11),
    "minutes": varying(1000, lambda number: number * 40 + number // 5 * 97_003),
    "submillisecond": varying(90000, lambda number: number * 25 + number // 3 * 7000),
    "late": varying(1000, lambda number: number * 40 + 3_600_000),
}
STEADY = ("2", "25", "ntsc", "149/6", "60")
DISC = ("25", "ntsc", "60")
"""The frame rates that MPEG-2 knows."""


@dataclass(frozen=True, slots=True)
class Codec:
    encoder: str
    containers: tuple[str, ...]
    options: dict[str, str] = field(default_factory=dict)
    pixels: str = "yuv420p"
    timings: tuple[str, ...] = tuple(TIMINGS)
    size: tuple[int, int] = (176, 96)


@dataclass(frozen=True, slots=True)
class Container:
    suffix: str
    base: int | None = None
    """Ticks a second to which it rounds; None where it keeps the encoder's."""
    options: dict[str, str] = field(default_factory=dict)
    timings: tuple[str, ...] = tuple(TIMINGS)
    rotates: bool = False
    least: int = 1
    """Fewest frames with which it is recognised as a video."""


ISO = ("mp4", "faststart", "fragmented", "mov")
CONTAINERS = {
    "mp4": Container("mp4", rotates=True),
    "faststart": Container("mp4", options={"movflags": "faststart"}),
    "fragmented": Container("mp4", options={"movflags": "frag_keyframe+empty_moov"}),
    "mov": Container("mov", rotates=True),
    "mkv": Container("mkv", 1000, rotates=True),
    "webm": Container("webm", 1000),
    "ts": Container("ts", 90000, least=7),
    "mpg": Container("mpg", 90000, timings=DISC),
    "avi": Container("avi", timings=STEADY),
    "gif": Container("gif", 100, timings=STEADY, least=2),
    "raw.h264": Container("h264", timings=("25",)),
    "raw.hevc": Container("hevc", timings=("25",)),
}
X265 = "log-level=none:pools=none:frame-threads=1"
AV1 = {"preset": "8", "crf": "10", "svtav1-params": "lp=1"}
CODECS = {
    "h264": Codec("libx264", (*ISO, "mkv", "ts", "avi", "raw.h264")),
    "h264 no B": Codec("libx264", ("mp4", "avi", "ts"), {"bf": "0"}),
    "h264 short GOP": Codec("libx264", (*ISO, "mkv"), {"g": "8", "keyint_min": "8"}),
    "h264 open GOP": Codec(
        "libx264", ("mp4", "mkv", "ts"), {"x264-params": "open-gop=1:keyint=12:min-keyint=4:bframes=3"}
    ),
    "h264 one key frame": Codec("libx264", ("mp4", "mkv"), {"g": "1000"}),
    "h264 all intra": Codec("libx264", ("mov", "mkv"), {"g": "1"}),
    "h264 interlaced": Codec("libx264", ("mp4", "ts"), {"x264-params": "tff=1"}),
    "h264 4:4:4 odd": Codec("libx264", ("mp4", "mkv"), {}, "yuv444p", size=(177, 97)),
    "hevc": Codec("libx265", ("mp4", "mkv", "ts", "raw.hevc"), {"x265-params": X265}),
    "hevc open GOP": Codec("libx265", ("mp4", "mkv"), {"x265-params": f"{X265}:keyint=20:bframes=4:open-gop=1"}),
    "hevc 10 bit": Codec("libx265", ("mov", "mkv"), {"x265-params": X265}, "yuv420p10le"),
    "vp8": Codec(
        "libvpx", ("webm", "mkv"), {"auto-alt-ref": "1", "lag-in-frames": "16", "deadline": "realtime", "cpu-used": "8"}
    ),
    "vp8 alpha": Codec("libvpx", ("webm",), {"auto-alt-ref": "0", "deadline": "realtime", "cpu-used": "8"}, "yuva420p"),
    "vp9": Codec(
        "libvpx-vp9",
        ("webm", "mp4", "mkv"),
        {"auto-alt-ref": "1", "lag-in-frames": "16", "deadline": "good", "cpu-used": "8"},
    ),
    "vp9 alpha": Codec(
        "libvpx-vp9", ("webm",), {"auto-alt-ref": "0", "deadline": "realtime", "cpu-used": "8"}, "yuva420p"
    ),
    "av1 10 bit": Codec("libsvtav1", ("mp4", "webm"), AV1, "yuv420p10le"),
    "av1": Codec("libsvtav1", ("mp4", "webm", "mkv"), AV1),
    "mpeg4": Codec("mpeg4", ("mp4", "avi", "mkv"), timings=STEADY),
    "mpeg4 B": Codec("mpeg4", ("mp4", "avi"), {"bf": "2"}, timings=STEADY),
    "mpeg2": Codec("mpeg2video", ("mpg", "ts", "mkv", "mp4"), timings=DISC),
    "mpeg2 B": Codec("mpeg2video", ("mpg", "ts", "mkv", "mp4"), {"bf": "2"}, timings=DISC),
    "mpeg4 VFR": Codec("mpeg4", ("mp4", "mkv"), {"bf": "2"}, timings=("vfr", "minutes", "late")),
    "mjpeg": Codec("mjpeg", ("avi", "mov", "mkv"), pixels="yuvj420p"),
    "ffv1": Codec("ffv1", ("mkv", "avi"), {"level": "3", "slicecrc": "1"}),
    "prores": Codec("prores_ks", ("mov", "mkv"), pixels="yuva444p10le"),
    "gif": Codec("gif", ("gif",), pixels="rgb8"),
    "qtrle": Codec("qtrle", ("mov",), pixels="argb"),
    "png": Codec("png", ("mov", "avi"), pixels="rgba"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination."""

    codec: str
    container: str
    timing: str
    rotation: int
    frames: int

    def pts(self) -> list[Fraction]:
        """Seconds after the first frame, as the container keeps them."""
        timing, kept = TIMINGS[self.timing], CONTAINERS[self.container].base
        seconds = [tick * timing.base for tick in timing.pts(self.frames)]
        if kept is not None:
            seconds = [Fraction(int(second * kept + Fraction(1, 2)), kept) for second in seconds]
        return [second - seconds[0] for second in seconds]

    def write(self, folder: Path) -> Path:
        codec, timing, container = CODECS[self.codec], TIMINGS[self.timing], CONTAINERS[self.container]
        options = dict(codec.options)
        if codec.encoder == "libx265" and self.frames < 3:
            options["x265-params"] += ":bframes=0"  # its decoding times are not set before the third frame
        return Clip(
            frames=self.frames, width=codec.size[0], height=codec.size[1], codec=codec.encoder, rate=timing.rate,
            pixels=codec.pixels, options=tuple(options.items()), container=tuple(container.options.items()),
            pts=timing.pts(self.frames), time_base=timing.base, rotation=self.rotation,
        ).write(folder / f"clip.{container.suffix}")  # fmt: skip


def cells() -> Iterator[Cell]:
    """Every combination that a muxer writes."""
    for (name, codec), timing, frames in product(CODECS.items(), TIMINGS, LENGTHS):
        if timing not in codec.timings or (frames == 400 and timing not in ("25", "vfr")):
            continue
        for container, rotation in product(codec.containers, ROTATIONS):
            kept = CONTAINERS[container]
            turned = rotation == 0 or (kept.rotates and (frames == 7 or (frames == 64 and timing == "25")))
            # FFmpeg's own demuxer dates this one's frames one late from the 331st on: 15 of them share each packet that
            # has a time, as frames of 100 bytes do and filmed ones do not.
            misdated = (name, container, frames) == ("mpeg2", "mpg", 400)
            if timing in kept.timings and turned and frames >= kept.least and not misdated:
                yield Cell(name, container, timing, rotation, frames)


def shown(pts: Sequence[Fraction], times: Sequence[Fraction]) -> list[int]:
    """The numbers on screen, by counting: the last frame whose time is not later."""
    return [max(number for number, second in enumerate(pts) if second <= time) for time in times]
