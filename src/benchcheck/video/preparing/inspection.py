"""One video: found, hashed, probed, seen, and brought into one form if wanted. What a worker process does per task."""

import io
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchcheck.config import Normalize
from benchcheck.pool.contents import PREPARED
from benchcheck.video.decoding.decode import Video
from benchcheck.video.decoding.picture import Spec
from benchcheck.video.faults import VideoError
from benchcheck.video.grid import grid_times
from benchcheck.video.preparing.fingerprint import GRID, SIDES, difference_hash
from benchcheck.video.preparing.normalise import normalise
from benchcheck.video.preparing.probe import probe
from benchcheck.video.sources.media import Media, reachable
from benchcheck.video.task import Task

__all__ = ["begin", "inspect"]

_SEEN = {"count": GRID, "long_side": 96, "quality": 90}
"""How large a frame is drawn before its 9 x 8 pixels are taken: from there its JPEG does not matter."""


def inspect(task: Task, threads: int, form: Normalize | None, normalized: Path) -> dict[str, Any]:
    """Return a video's row of the manifest, without key and time: status, hash, error, probe and fingerprint.

    Args:
        task: where the video is.
        threads: of the decoder and the encoder.
        form: what it is brought into; None for none.
        normalized: the folder of normalised videos.

    Raises:
        StudyError: a normalised video cannot be written.
    """
    digest, refused = "", {}
    try:
        with reachable(task) as media:
            digest = media.sha256
            seen = _looked_at(media, threads)
            if form is not None:
                refused = _refused(media, form, normalized, threads)
    except VideoError as fault:
        return {"status": fault.status, "content_hash": digest, "error": fault.reason}
    except MemoryError:
        return {"status": "unsupported", "content_hash": digest, "error": "its pictures do not fit in memory"}
    return {"status": PREPARED, "content_hash": digest, "error": None, "name": media.name, **seen, **refused}


def _refused(media: Media, form: Normalize, normalized: Path, threads: int) -> dict[str, Any]:
    """Normalise; what is to be noted where that cannot be: the video itself may be good enough for its frames."""
    try:
        normalise(media, form, normalized, threads)
    except VideoError as fault:
        return {"not_normalised": {"status": fault.status, "error": fault.reason}}
    return {}


def _looked_at(media: Media, threads: int) -> dict[str, Any]:
    """Probe and fingerprint.

    Raises:
        VideoError: no frame can be decoded.
    """
    video, pictures = Video(media.path, Spec(**_SEEN, threads=threads), span=media.span), None
    while pictures is None:  # anew when the packets' timeline proved wrong
        timeline = video.timeline()
        places = [timeline.shown_at(time) for time in grid_times(Fraction(0), timeline.length, GRID)]
        pictures = video.pictures(sorted(set(places)))
    whole = all(place in pictures for place in places)
    print_ = "".join(_hash_of(pictures[place]) for place in places) if whole else ""
    return {"probe": probe(media, video), "fingerprint": print_}


def _hash_of(jpeg: bytes) -> str:
    """The difference hash of one drawn picture, upright and with square pixels as it is."""
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(jpeg)) as image:
        small = image.convert("L").resize(SIDES, Image.Resampling.BOX)
    return difference_hash(np.asarray(small, dtype=np.uint8))


def begin(settings: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what a worker does with each task (`worker.JOBS`): its inspection in JSON values."""
    form = Normalize(**settings["form"]) if settings["form"] is not None else None
    threads, folder = settings["threads"], Path(settings["normalized"])
    return lambda task: inspect(Task.of(task), threads, form, folder)
