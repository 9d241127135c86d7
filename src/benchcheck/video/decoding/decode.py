"""Decoding with PyAV: which frames a file has and when, and the pictures of chosen ones as JPEG bytes.

Two ways, one result. A clean MP4 or Matroska file gives its timeline without decoding (the packets carry it), and its
frames by jumping to the key frames before them, or in one pass, whichever decodes less. Everything else, and every
file in which anything at all went wrong, is decoded from beginning to end twice: once for the timeline with its
damage, once for the pictures. So damage is always seen, and never costs a clean file anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from benchcheck.video.decoding.opened import TIMED, Errors, Opened, frames_of, packets_of
from benchcheck.video.decoding.picture import Picture, Spec
from benchcheck.video.decoding.seeks import Packets, Run, plan_runs, saves_time
from benchcheck.video.faults import VideoError
from benchcheck.video.grid import Timeline, end_tick

__all__ = ["Video"]

_SEEKABLE = {"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mpeg2video"}
"""Codecs whose key frame needs nothing before it. A GIF's frame is painted over the one before."""
_SPARING = {"h264"}
"""Codecs that say of a frame that no other refers to it. HEVC does so within its own temporal layer only."""
_MOST = Fraction(9, 10)
"""Where a file breaks off with a complaint, this share of the announced length must be there; junk may follow it."""
_LOST = -1
"""Stands where the arrival of a frame would, for one that never came."""


class Video:
    """One opened-on-demand video file: `timeline()` first, then `pictures()`.

    Raises:
        VideoError: from the constructor when FFmpeg finds no moving picture in the file.
    """

    def __init__(self, path: str, spec: Spec, *, thorough: bool = False, span: tuple[int, int] | None = None) -> None:
        """`thorough` decodes everything even where the packets would do; the result is the same.

        `span` is the stretch of the file that is the video, where it stands in an archive.
        """
        self.path, self.spec, self._span = path, spec, span
        self._picture: Picture | None = None
        self._packets: Packets | None = None
        self._order: list[int] = []
        with self._opened() as (container, stream):
            self.codec = stream.codec_context.codec.canonical_name
            self.decoder = stream.codec_context.name
            self.pixel_shape = stream.sample_aspect_ratio
            rate = stream.average_rate or stream.guessed_rate or Fraction(25)
            self._usual = max(1, round(1 / (rate * stream.time_base)))
            self._rate = rate
            self.container = container.format.name
            self.time_base = Fraction(stream.time_base)
            self._announced = Fraction(container.duration or 0, 1_000_000)
            timed = self.container in TIMED and not thorough
            self._packets = packets_of(container, stream) if timed else None
        self._timeline = self._by_packets() if self._packets else self._by_decoding()

    @property
    def picture(self) -> Picture:
        """How its frames are drawn; known once `pictures` has run."""
        if self._picture is None:
            raise VideoError("no_frames", "no frame can be decoded")
        return self._picture

    def timeline(self) -> Timeline:
        """When each frame comes on screen. May become truer in `pictures`, which then has to be asked again."""
        return self._timeline

    def pictures(self, indices: Iterable[int]) -> Mapping[int, bytes] | None:
        """Return JPEG bytes of the frames with these indices; holes are left out.

        Returns None when the packets' timeline proved wrong: `timeline` is then another one, to choose by anew.
        """
        # The first frame decides the size, and the last one proves the length.
        wanted = sorted({*indices, 0, len(self._timeline.pts) - 1} - self._timeline.holes)
        if not self._packets:
            return self._by_position(wanted)
        found = self._by_pts([self._timeline.pts[index] for index in wanted])
        if found is None:
            self._packets, self._picture = None, None
            self._timeline = self._by_decoding()
            return None
        return {index: found[self._timeline.pts[index]] for index in wanted}

    def shown(self) -> Iterator[tuple[int, Any]]:
        """Yield every decoded frame with its index, in the order in which the decoder gives them.

        Raises:
            VideoError: `damaged` when a frame is not as the packets said; a `thorough` video then knows better.
        """
        errors, places = Errors(started=True), {pts: index for index, pts in enumerate(self._timeline.pts)}
        with self._opened() as (container, stream):
            arriving = frames_of(container, stream, errors)
            if not self._packets:
                yield from zip(self._order, arriving, strict=False)
                return
            for frame in arriving:
                if errors.count or frame.is_corrupt:
                    raise VideoError("damaged", errors.first or "a frame is decoded from damaged data")
                if frame.pts in places:
                    yield places[frame.pts], frame

    # The quick way: times from the packets, frames by their times.

    def _by_packets(self) -> Timeline:
        packets = self._packets
        assert packets is not None
        pts = tuple(sorted(packets.pts))
        last = packets.durations[max(range(len(pts)), key=packets.pts.__getitem__)]
        return Timeline(pts, end_tick(pts, last, self._usual), self.time_base)

    def _by_pts(self, wanted: Sequence[int]) -> dict[int, bytes] | None:
        """Pictures by pts, None as soon as anything is not as the packets said."""
        packets = self._packets
        assert packets is not None
        runs = plan_runs(packets, wanted) if self.codec in _SEEKABLE else []
        if not saves_time(runs):
            runs = [Run(min(packets.pts), 0, len(packets.pts) - 1, tuple(wanted))]
        found: dict[int, bytes] = {}
        with self._opened() as (container, stream):
            for run in runs:
                if not self._decode_run(container, stream, run, found):
                    return None
        return found

    def _decode_run(self, container: Any, stream: Any, run: Run, found: dict[int, bytes]) -> bool:
        """Decode one run into `found`; False when a frame is missing, damaged or the jump went too far."""
        if run.first:
            container.seek(run.key, stream=stream, backward=True, any_frame=False)
        missing, errors = set(run.wanted), Errors(started=True)
        must_start, needed = run.key if run.first else None, frozenset(missing) if self.codec in _SPARING else None
        for frame in frames_of(container, stream, errors, must_start=must_start, needed=needed):
            if errors.count or frame.pts is None:
                return False
            if frame.pts < run.key:
                continue
            if frame.is_corrupt:
                return False
            if frame.pts in missing:
                missing.discard(frame.pts)
                found[frame.pts] = self._draw(frame)
            if not missing:
                return True
        return False

    # The thorough way: times from the decoded frames, frames by their position.

    def _by_decoding(self) -> Timeline:
        """Decode everything for its times; find what is missing and what builds on damage."""
        errors, shown = Errors(), _Shown()
        with self._opened() as (container, stream):
            marks: list[int] = []
            for frame in frames_of(container, stream, errors, marks=marks):
                errors.started = True
                shown.add(frame)
            # An AVI counts its frames, so that a lost one moves all that follow; its index knows how many there are.
            indexed = sum(entry.size > 0 for entry in stream.index_entries) if self.container == "avi" else 0
        if errors.stopped:
            raise VideoError("cut", f"cannot be read beyond frame {len(shown.pts)}: {errors.stopped}")
        if not shown.pts:
            raise VideoError("no_frames", errors.first or "no frame can be decoded")
        if errors.packets < indexed:
            raise VideoError("damaged", f"the index names {indexed} frames, {errors.packets} are there")
        if self.container == "gif" and len(shown.pts) == 1:
            raise VideoError("still_image", "the file is a GIF of one frame")
        timeline = self._placed(shown, errors, marks)
        if errors.lost and timeline.length < self._announced * _MOST:
            raise VideoError("cut", f"nothing can be read after {float(timeline.length):.3f} s: {errors.lost}")
        return timeline

    def _placed(self, shown: "_Shown", errors: Errors, marks: Sequence[int]) -> Timeline:
        """Place decoded frames, and the holes between them, in time."""
        pts = shown.pts
        shown.corrupt = [bad or tick in errors.torn for bad, tick in zip(shown.corrupt, pts, strict=True)]
        timed = None not in pts and (len(set(pts)) > 1 or len(pts) == 1 or self.container in TIMED)
        # Two frames may have one time (a container of whole milliseconds): the later one is then on screen.
        ascending = timed and all(later >= earlier for earlier, later in pairwise(pts))
        # After damage H.264 frames may come out of order; where packets are timed truly, so are their frames.
        trusted = timed and self.container in TIMED and errors.count > 0
        if not ascending and not trusted:
            # No usable times (a raw stream, B-frames in AVI): frames come at the frame rate, counted.
            if errors.count:
                raise VideoError("damaged", f"{errors.count} decoding errors: {errors.first}")
            self._order = list(range(len(pts)))
            counted, base = tuple(range(len(pts))), 1 / Fraction(self._rate)
            damaged = _spread(self._order, shown, frozenset())
            return Timeline(counted, len(pts), base, damaged=damaged)
        holes = frozenset(marks) - frozenset(pts) if errors.count else frozenset()
        lost = [(hole, _LOST) for hole in holes if hole > min(pts)]
        entries = sorted([*((tick, arrival) for arrival, tick in enumerate(pts)), *lost])
        place_of = {arrival: place for place, (_, arrival) in enumerate(entries)}
        self._order = [place_of[arrival] for arrival in range(len(pts))]
        every, last = tuple(tick for tick, _ in entries), entries[-1][1]
        end = end_tick(every, 0 if last == _LOST else shown.durations[last], self._usual)
        missing = frozenset(place for place, (_, arrival) in enumerate(entries) if arrival == _LOST)
        damaged = _spread(self._order, shown, missing)
        return Timeline(every, end, self.time_base, holes=missing, damaged=damaged)

    def _by_position(self, wanted: Sequence[int]) -> dict[int, bytes]:
        """Pictures by position among all decoded frames, in the order in which the first pass saw them come."""
        chosen, found = set(wanted), dict[int, bytes]()
        with self._opened() as (container, stream):
            for index, frame in zip(self._order, frames_of(container, stream, Errors()), strict=False):
                if self._picture is None:
                    self._draw(frame)
                if index in chosen:
                    found[index] = self._draw(frame)
                if len(found) == len(chosen):
                    break
        return found

    def _draw(self, frame: Any) -> bytes:
        if self._picture is None:
            self._picture = Picture.of(frame, self.pixel_shape, self.spec)
        return self._picture.draw(frame)

    def _opened(self) -> Opened:
        # One thread in the thorough way: with several, an error at the end takes whole frames with it.
        return Opened(self.path, self.spec.threads if self._packets else 1, self._span)


@dataclass(slots=True)
class _Shown:
    """What the thorough pass keeps of each decoded frame."""

    pts: list[int] = field(default_factory=list)
    durations: list[int] = field(default_factory=list)
    keys: list[bool] = field(default_factory=list)
    corrupt: list[bool] = field(default_factory=list)

    def add(self, frame: Any) -> None:
        self.pts.append(frame.pts)
        self.durations.append(frame.duration or 0)
        self.keys.append(bool(frame.key_frame))
        self.corrupt.append(bool(frame.is_corrupt))


def _spread(places: Sequence[int], shown: _Shown, lost: frozenset[int]) -> frozenset[int]:
    """Indices of frames that are damaged: corrupt themselves, or after damage with no whole key frame between.

    The frame before a corrupt one counts too: it may be on screen in the place of frames that never arrived.
    """
    damaged, tainted, before = set[int](), False, -1
    for place, key, corrupt in zip(places, shown.keys, shown.corrupt, strict=True):
        harmed = corrupt or place < before or any(hole in lost for hole in range(before + 1, place))
        if corrupt and before >= 0:
            damaged.add(before)
        tainted = corrupt or (not key and (tainted or harmed))
        if tainted:
            damaged.add(place)
        before = max(before, place)
    return frozenset(damaged)
