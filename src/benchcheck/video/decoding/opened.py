"""An opened video file: its stream, its packets, its frames in the order shown, and every error on the way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import av

from benchcheck.video.decoding.heard import Care, complaint, heard, level_of
from benchcheck.video.decoding.seeks import Packets
from benchcheck.video.faults import VideoError

__all__ = ["TIMED", "Errors", "Opened", "frames_of", "packets_in", "packets_of"]

_DEMUXERS = (
    "mov,mp4,3gp,3g2,matroska,webm,avi,gif,mpegts,mpeg,mpegvideo,flv,asf,ogg,h264,hevc,m4v,ivf,mjpeg,"
    "rm,dv,mxf,nut,wtv,jpeg_pipe,png_pipe,webp_pipe,bmp_pipe,tiff_pipe,gif_pipe,image2,"
    "mp3,wav,flac,aac,ac3,amr,w64,aiff"
)
"""What may be opened. Not in it: playlists and scripts (hls, concat, dash), which would read other files."""
_OPEN = {"protocol_whitelist": "file,subfile", "format_whitelist": _DEMUXERS}
_UNREADABLE = (av.FFmpegError, IndexError)
"""What reading packets raises. PyAV 18 has an IndexError for a stream that appears in the middle of a broken file."""
TIMED = {"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm"}
"""Containers whose packets carry true presentation times; in AVI, for example, they are guessed."""
_RIGID = {"h264", "hevc"}
"""Codecs that give pictures without a key frame to begin with; in `TIMED` a first packet that is none is damage."""
_STILLS = {"image2", "jpeg_pipe", "png_pipe", "webp_pipe", "bmp_pipe", "tiff_pipe", "gif_pipe"}


@dataclass(slots=True)
class Errors:
    """What went wrong while decoding; errors before the first frame are the start of a broadcast, not damage."""

    started: bool = False
    count: int = 0
    first: str = ""
    torn: set[int] = field(default_factory=set)
    """The pts of packets that are damaged, incomplete or after a gap, and of those that build on such a packet."""
    lost: str = ""
    """What the container said of bytes that it had to pass over before the next packet."""
    packets: int = 0
    """How many packets were read."""
    stopped: str = ""
    """Why the file could not be read to its end."""

    def note(self, reason: Exception) -> None:
        """Remember the first error, and count those after the first frame."""
        self.first = self.first or str(reason)
        self.count += self.started


class Opened:
    """The file with its video stream, closed in the end; what FFmpeg says is wrong becomes a `VideoError`."""

    def __init__(self, path: str, threads: int, span: tuple[int, int] | None = None) -> None:
        """`span`: first byte and the one after the last, of a video that is a stretch of the file."""
        # `file:` keeps FFmpeg from reading a protocol out of a name with a colon.
        self.url = f"file:{path}" if span is None else f"subfile,,start,{span[0]},end,{span[1]},,:{path}"
        self.threads = threads
        self.container: Any = None

    def __enter__(self) -> tuple[Any, Any]:
        try:
            self.container = av.open(self.url, container_options=_OPEN)
            return self.container, self._stream()
        except VideoError:
            self.__exit__()
            raise
        except av.error.ArgumentError as reason:
            raise VideoError("not_a_video", "a playlist, a script or a rare image format, not a video") from reason
        except (av.FFmpegError, UnicodeError) as reason:
            raise VideoError("not_a_video", f"no decoder reads it: {_plain(reason)}") from reason

    def __exit__(self, *_: object) -> None:
        if self.container is not None:
            self.container.close()

    def _stream(self) -> Any:
        """The video stream to show: covers of songs are none."""
        name = self.container.format.name
        if name in _STILLS:
            raise VideoError("still_image", f"the file is one image ({name})")
        streams = [
            stream
            for stream in self.container.streams.video
            if not stream.disposition & av.stream.Disposition.attached_pic
        ]
        if not streams:
            sound = "sound only" if self.container.streams.audio else "no stream at all"
            raise VideoError("no_video_stream", f"the file has {sound}")
        stream = streams[0]
        if stream.codec_context is None:
            raise VideoError("unsupported", "this FFmpeg has no decoder for its codec")
        # Threads within a picture, so that all its complaints are heard before the decoder gives it.
        stream.thread_type = "SLICE"
        # dav1d has threads of its own, which may complain, and wait for Python, while it is being closed.
        stream.codec_context.thread_count = 1 if stream.codec_context.name == "libdav1d" else self.threads
        return stream


def packets_of(container: Any, stream: Any) -> Packets | None:
    """The stream's packets, or None when they do not say clearly what is shown when."""
    pts: list[int] = []
    keys, durations = [], []
    try:
        for packet in container.demux(stream):
            if packet.size == 0 or packet.is_discard:
                continue
            if packet.pts is None or packet.is_corrupt:
                return None
            if packet.is_keyframe:
                keys.append(len(pts))
            pts.append(packet.pts)
            durations.append(packet.duration or 0)
    except _UNREADABLE:
        return None
    if not pts or len(set(pts)) < len(pts):
        return None
    return Packets(tuple(pts), tuple(keys), tuple(durations))


def frames_of(
    container: Any,
    stream: Any,
    errors: Errors,
    *,
    marks: list[int] | None = None,
    must_start: int | None = None,
    needed: frozenset[int] | None = None,
) -> Iterator[Any]:
    """Decoded frames in the order shown. A packet that cannot be decoded is an error noted, not the end.

    `marks` collects the pts of every packet. `must_start` is the pts of the key frame a jump was for: a first packet
    behind it is an error, and what is wrong with pictures shown before it is none. With `needed`, frames of another
    pts to which no other frame refers are not decoded: 40 % of the time of an H.264 file as x264 makes it.
    """
    level = level_of(stream.codec_context.name)
    care = Care(container.format.name in TIMED and stream.codec_context.name in _RIGID)
    for packet in packets_in(container, stream, errors, needed):
        pts = packet.pts
        if care.fresh and must_start is not None and (pts or 0) > must_start:
            errors.note(ValueError("the jump went too far"))
        if marks is not None and pts is not None and not packet.is_discard:
            marks.append(pts)
        with heard(level) as told:
            frames = _noted(packet.decode, errors)
        torn = care.judge(packet, errors.lost or complaint(told))
        errors.lost = ""
        if torn and (must_start is None or pts is None or pts >= must_start):
            errors.note(ValueError(torn))
        if care.tainted:
            errors.torn.add(pts)
        yield from frames
    with heard(level) as told:
        frames = _noted(lambda: stream.codec_context.decode(None), errors)
    if torn := errors.lost or complaint(told):
        errors.note(ValueError(torn))
    yield from frames


def packets_in(container: Any, stream: Any, errors: Errors, needed: frozenset[int] | None = None) -> Iterator[Any]:
    """Packets up to the end of the file, or to where it cannot be read on; the flushing packet is left out."""
    packets = container.demux(stream)
    try:
        while True:
            with heard() as told:
                packet = next(packets, None)
            errors.lost = errors.lost or complaint(told)
            if packet is None:
                return
            if packet.size:
                errors.packets += 1
                if needed is not None:
                    # Said by the picture itself; containers mark it seldom (packet.is_disposable is false for x264).
                    stream.codec_context.skip_frame = "DEFAULT" if packet.pts in needed else "NONREF"
                yield packet
    except _UNREADABLE as reason:
        errors.stopped = _plain(reason)
        errors.note(reason)


def _noted(decode: Callable[[], Sequence[Any]], errors: Errors) -> Sequence[Any]:
    """What a decoder call gives; nothing, and a note, when it fails."""
    try:
        return decode()
    except av.error.EOFError:
        return ()
    except av.FFmpegError as reason:
        errors.note(ValueError(_plain(reason)))
        return ()


def _plain(reason: BaseException) -> str:
    """FFmpeg's words without the path, which the row has anyway."""
    return str(getattr(reason, "strerror", None) or reason)
