"""Why a video gives no frames: one status that a program can count, one line that a person can act on."""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CURES", "READY", "VideoError"]

READY = "ready"
"""The status of a video whose frames are written."""

CURES: Mapping[str, str] = MappingProxyType(
    {
        "missing": "put the file below the videos folder, or set videos.folder, template, archives or manifest",
        "no_video": "mend the annotation, or what its spec says of videos; text steps run",
        "several_videos": "a set of frames shows one video: join them in one file, which a manifest names",
        "outside": "the name leads out of the videos folder: set videos.template to '{name}' or '{stem}'",
        "is_folder": "a folder stands where the video file is expected",
        "not_a_file": "a pipe, socket or device stands where the video file is expected",
        "unreadable": "give read permission, or check the disk",
        "empty": "download the file again",
        "html": "the download saved an error or login page: download the file again",
        "lfs_pointer": "run `git lfs pull` where the file comes from",
        "archive": "unpack it into the videos folder, or name it in videos.archives",
        "archive_damaged": "get the archive again, all of its parts; members before a cut are used",
        "bad_member": "the archive's member is no file that can be read in it: unpack it by hand",
        "ambiguous": "say which one in a manifest (videos.manifest), or by a template that names its folder",
        "not_downloaded": "check the network and the login, or copy the hub's cache; then run the same command again",
        "not_a_video": "the file is something else than a video: download it again",
        "still_image": "the file is one image, not a video",
        "no_video_stream": "the file has sound only: get the file with the picture",
        "unsupported": "convert the file, for example to H.264 in mp4",
        "cut": "the end of the file is missing: download it again",
        "no_frames": "no frame can be decoded: download the file again",
        "damaged": "frames of the grid cannot be decoded: download the file again",
        "bad_window": "the item's time window has no length or starts before 0: mend the annotation",
        "window_outside": "the item's time window lies outside the video: mend the annotation, or get the whole video",
        "changed": "the file is another one than when it was prepared: run `benchcheck videos prepare` again",
        "not_prepared": "run `benchcheck videos prepare`, which normalises it",
        "too_slow": "raise the time limit, or convert the file",
        "crashed": "the decoder crashed on this file: convert it, for example to H.264 in mp4",
    }
)
"""Every status of a failed video with what helps; docs/frames.md shows the same table."""


class VideoError(Exception):
    """A video, or one window of it, that gives no frames. Never leaves `benchcheck.video`: it becomes a row.

    `status` is a key of `CURES`, `reason` one line about this very file.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = " ".join(reason.split())[:500]
