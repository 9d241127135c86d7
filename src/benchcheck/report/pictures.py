"""An item's frames as small pictures inside the page: thumbnails as data URIs, so that nothing is loaded."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from benchcheck.errors import StudyError
from benchcheck.screen.readings import Failure
from benchcheck.study import Study
from benchcheck.video.frames import load_frames

__all__ = ["FilmStrip", "Thumbnail", "film_strip"]

THUMBNAIL_PX = 96
STILL_PX = 288
MAX_THUMBNAILS = 32
"""A strip of 32 thumbnails takes about 80 kB, at worst (noise) 300 kB: ten items stay below the page's 3 MB."""


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """One small picture."""

    index: int
    """Grid position, from 0."""
    seconds: float | None
    """When it came on screen; None for imported frames whose times nobody wrote down."""
    uri: str
    width: int
    height: int
    alone: bool
    """Whether this is the frame that the single-frame step shows."""


@dataclass(frozen=True, slots=True)
class FilmStrip:
    """The frames of an item, or why there are none."""

    thumbnails: tuple[Thumbnail, ...] = ()
    still: Thumbnail | None = None
    """The frame shown alone, larger."""
    count: int = 0
    """Frames of the grid; a long grid shows every n-th."""
    problem: str = ""


def film_strip(study: Study, frames_key: str) -> FilmStrip:
    """Return an item's frames in the grid's order; whatever is wrong with them is a line on the page, no error."""
    try:
        frames = load_frames(study, frames_key)
        if isinstance(frames, Failure):
            return FilmStrip(problem="No frames of this video are on disk.")
        single = min(study.config.frames.single, len(frames.paths) - 1)
        shown = [
            _thumbnail(frames.paths[index], index, frames.pts[index], THUMBNAIL_PX, index == single)
            for index in _positions(len(frames.paths), single)
        ]
        still = _thumbnail(frames.paths[single], single, frames.pts[single], STILL_PX, alone=True)
    except StudyError:
        return FilmStrip(problem="The frames on disk were made with another grid than the study's.")
    except OSError:
        return FilmStrip(problem="The frames on disk are not readable as pictures.")
    return FilmStrip(tuple(shown), still, len(frames.paths))


def _positions(count: int, single: int) -> Sequence[int]:
    """Return the grid positions to show: all, or an even choice that has the single frame in it."""
    if count <= MAX_THUMBNAILS:
        return range(count)
    chosen = {count * place // (MAX_THUMBNAILS - 1) for place in range(MAX_THUMBNAILS - 1)}
    return sorted(chosen | {single})


def _thumbnail(path: str, index: int, seconds: float, side: int, alone: bool) -> Thumbnail:
    """Shrink a picture and write it anew: what an unknown file carries beside its pixels stays behind."""
    from PIL import Image

    with Image.open(path, formats=("JPEG",)) as image:
        image.draft("RGB", (side, side))
        image.thumbnail((side, side))
        small = image.convert("RGB")
    file = io.BytesIO()
    small.save(file, "JPEG", quality=60, optimize=True)
    uri = "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode("ascii")
    return Thumbnail(index, seconds if seconds >= 0 else None, uri, small.width, small.height, alone)
