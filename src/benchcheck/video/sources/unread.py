"""Archives that lie in a videos folder and that nobody named: where videos are missing, they may be in there."""

import os
from collections.abc import Iterator

from benchcheck.config import Videos
from benchcheck.pool.reading.sources import listed
from benchcheck.study import Study
from benchcheck.video.sources.parts import is_archive

__all__ = ["unread_archives"]


def unread_archives(study: Study) -> Iterator[str]:
    """Say which archives stand in the videos folders of a study that names none, a line a folder.

    Only the folders themselves are looked at, not what is below: a tree of a million files would take minutes.
    """
    own = [source.videos for source in study.config.pool if source.videos is not None]
    for folder in dict.fromkeys(str(_folder(study, each)) for each in (study.config.videos, *own) if not each.archives):
        try:
            names = sorted(filter(is_archive, os.listdir(folder)))
        except OSError:  # no such folder, or a file: the reason of each video says so
            continue
        if names:
            seen = f"{folder} holds archives that are not looked into: {listed(names)}"
            yield f"{seen}. Cure: name them in videos.archives"


def _folder(study: Study, videos: Videos) -> "os.PathLike[str]":
    """Where these videos lie."""
    return study.places.videos(videos.folder)
