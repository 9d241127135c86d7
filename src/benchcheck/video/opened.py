"""An opened video file: its stream, its packets, its frames in the order shown, and every error on the way."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import av

from benchcheck.video.faults import VideoError
from benchcheck.video.seeks import Packets

__all__ = ["Errors", "Opened", "frames_of", "packets_in", "packets_of"]

_DEMUXERS = (
    "mov,mp4,3gp,3g2,matroska,webm,avi,gif,mpegts,mpeg,mpegvideo,flv,asf,ogg,h264,hevc,m4v,ivf,mjpeg,"
    "rm,dv,mxf,nut,wtv,jpeg_pipe,png_pipe,webp_pipe,bmp_pipe,tiff_pipe,gif_pipe,image2,"
    "mp3,wav,flac,aac,ac3,amr,w64,aiff"
)
"""What may be opened. Not in it: playlists and scripts (hls, concat, dash), which would read other files."""
_OPEN = {"protocol_whitelist": "file,subfile", "format_whitelist": _DEMUXERS}
_UNREADABLE = (av.FFmpegError, IndexError)
"""What reading packets raises. PyAV 18 has an IndexError for a stream that appears in the middle of a broken file."""
_STILLS = {"image2", "jpeg_pipe", "png_pipe", "webp_pipe", "bmp_pipe", "tiff_pipe", "gif_pipe"}


@dataclass(slots=True)
class Errors:
    """What went wrong while decoding; errors before the first frame are the start of a broadcast, not damage."""

    started: bool = False
    count: int = 0
    first: str = ""
    torn: set[int] = field(default_factory=set)
    """The pts of packets that arrived incomplete, or after a gap (broadcast streams count theirs)."""
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
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = self.threads
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
    container: Any, stream: Any, errors: Errors, *, marks: list[int] | None = None, must_start: int | None = None
) -> Iterator[Any]:
    """Decoded frames in the order shown. A packet that cannot be decoded is an error noted, not the end.

    `marks` collects the pts of every packet. `must_start` is the pts of the key frame a jump was for: a first packet
    behind it is an error.
    """
    for packet in packets_in(container, stream, errors):
        if must_start is not None and packet.pts is not None:
            if packet.pts > must_start:
                errors.note(ValueError("the jump went too far"))
            must_start = None
        if marks is not None and packet.pts is not None and not packet.is_discard:
            marks.append(packet.pts)
        if packet.is_corrupt:
            errors.note(ValueError("a packet is incomplete"))
            errors.torn.add(packet.pts)
        yield from _noted(packet.decode, errors)
    yield from _noted(lambda: stream.codec_context.decode(None), errors)


def packets_in(container: Any, stream: Any, errors: Errors) -> Iterator[Any]:
    """Packets up to the end of the file, or to where it cannot be read on; the flushing packet is left out."""
    try:
        for packet in container.demux(stream):
            if packet.size:
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
