"""Where an item's video lies: in the videos folder, at a manifest's file, in an archive, in a hub dataset.

What costs something is asked once a run and only when an item needs it: an archive's directory, a dataset's list of
files. Whether a plain file is there is asked by the worker that reads it.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from benchcheck.config import Videos
from benchcheck.pool.items import VideoRef
from benchcheck.pool.reading.paths import located
from benchcheck.study import Study
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.datasets import Dataset
from benchcheck.video.sources.key_files import read_key_files
from benchcheck.video.sources.names import composed
from benchcheck.video.sources.shelves import Shelf, Shelves, one_of, told
from benchcheck.video.store import candidates
from benchcheck.video.task import HubFile, Member

__all__ = ["Finder", "Found"]

_INSIDE = "!/"
"""Between an archive and a member of it, in a manifest as in messages."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a video may be: the fields of `Task` of the same names."""

    paths: tuple[str, ...]
    member: Member | None = None
    hub: HubFile | None = None
    otherwise: tuple[str, str] | None = None

    @property
    def is_there(self) -> bool:
        """Whether something is there to be read, as far as that shows without reading it."""
        return self.member is not None or self.hub is not None or any(map(os.path.isfile, self.paths))


class Finder:
    """Finds the videos of one `[videos]` table."""

    def __init__(self, study: Study, videos: Videos) -> None:
        """Read the manifest, where there is one.

        Raises:
            InputError: the manifest cannot be read.
        """
        self.folder = os.path.abspath(study.places.videos(videos.folder))
        self._root, self._videos = study.root, replace(videos, folder=self.folder)
        manifest = located(study.places.data, videos.manifest) if videos.manifest else None
        self._listed = read_key_files(manifest) if manifest is not None else {}
        self._shelves = Shelves(self.folder)
        self._cache = study.places.hub

    def find(self, bench: str, ref: VideoRef, *, several: bool = False) -> Found:
        """Return where a video may be, or at least why it is nowhere else than at its paths.

        An item about `several` videos names them all, joined by `|`: only a manifest can say which one file is meant.

        Raises:
            VideoError: `outside`, `missing`, `no_video` or `several_videos`: no file can be meant by its name.
            UsageError: the hub dataset has no commit.
            RunError: the hub's cache cannot be written.
        """
        listed = self._listed.get(ref.key) or self._listed.get(ref.member)
        if listed is not None:
            return self._at(listed)
        if several:
            raise VideoError("several_videos", f"the item is about {ref.member.replace('|', ' and ')}")
        paths = tuple(candidates(self._root, self._videos, bench, ref.member))
        below = self.folder.rstrip("/") + "/"
        wanted = [path.removeprefix(below) for path in paths]
        try:
            shelves = self._local(ref.zip_path)
            if (member := one_of(self._holding(shelves, wanted), wanted)) is not None:
                return Found(paths, member)
            if self._dataset is None:
                return Found(paths, otherwise=told(shelves, wanted) if shelves else None)
            return self._from_hub(paths, wanted, ref.zip_path)
        except VideoError as fault:
            return Found(paths, otherwise=(fault.status, fault.reason))

    def _at(self, file: str) -> Found:
        """Where a manifest says that a video is."""
        archive, mark, path = file.partition(_INSIDE)
        if not mark:
            return Found((self._shelves.place(file, "the manifest's file"),))
        shelf = self._shelves.at(self._shelves.place(archive, "the manifest's archive"))
        if shelf is None:
            raise VideoError("missing", f"no archive {archive!r}, which the manifest names")
        if (member := one_of([shelf], [path])) is None:
            raise VideoError(*told([shelf], [path]))
        return Found((), member)

    def _local(self, zip_path: str) -> Sequence[Shelf]:
        """The archives on disk that may hold a video: the one that the item names, else all of the config."""
        if zip_path:
            same = [shelf for shelf in self._configured if _names(shelf.path, zip_path)]
            if same:
                return same
            named = self._shelves.at(self._shelves.place(zip_path, "the item's archive", absolute=False))
            if named is not None:
                return [named]
        return self._configured

    def _holding(self, shelves: Sequence[Shelf], wanted: Sequence[str]) -> Iterable[Shelf]:
        """Those of the archives that hold a file with the last part of a wanted path: there may be hundreds of both."""
        if shelves is not self._configured:
            return shelves
        lasts = dict.fromkeys(composed(path).rpartition("/")[2] for path in wanted)
        return dict.fromkeys(shelf for last in lasts for shelf in self._by_last.get(last, ()))

    @cached_property
    def _by_last(self) -> dict[str, list[Shelf]]:
        """The archives of the config by the last part of each name in them."""
        found: dict[str, list[Shelf]] = {}
        for shelf in self._configured:
            for last in shelf.names.last_parts:
                found.setdefault(last, []).append(shelf)
        return found

    @cached_property
    def _configured(self) -> list[Shelf]:
        """The archives of the config."""
        return self._shelves.matching(self._videos.archives)

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The hub dataset of the config."""
        videos = self._videos
        return Dataset(videos.hub, videos.revision, videos.files, self._cache) if videos.hub else None

    def _from_hub(self, paths: tuple[str, ...], wanted: Sequence[str], zip_path: str) -> Found:
        """A file of the dataset, else a member of an archive of it, which is downloaded where no plain file is there.

        Raises:
            VideoError: why it is in neither.
        """
        dataset = self._dataset
        assert dataset is not None
        if not zip_path and (file := dataset.file(wanted)) is not None:
            return Found(paths, hub=file)
        archives = dataset.archives(zip_path)
        if archives and any(map(os.path.isfile, paths)):
            return Found(paths)
        shelves = [dataset.shelf(name) for name in archives]
        if (member := one_of(shelves, wanted)) is not None:
            return Found(paths, member)
        if zip_path and (file := dataset.file(wanted)) is not None:
            return Found(paths, hub=file)
        raise VideoError(*(told(shelves, wanted) if shelves and dataset.known else dataset.absence(wanted)))


def _names(path: str, zip_path: str) -> bool:
    """Whether a path is the archive that an item names: the whole path, or its end."""
    return f"/{path}".endswith("/" + zip_path.removeprefix("./"))
