"""Folders of normalised videos: `normalized/<content hash>/video.mp4` and `meta.json`, read again."""

import json
from pathlib import Path
from typing import Any

from benchcheck.config import Normalize
from benchcheck.video.faults import VideoError
from benchcheck.video.sources.media import Media
from benchcheck.video.store import check_file

__all__ = ["META_FILE", "META_VERSION", "VIDEO_FILE", "form_of", "normalized_media", "read_meta"]

META_FILE = "meta.json"
VIDEO_FILE = "video.mp4"
META_VERSION = 1


def form_of(config: Normalize) -> dict[str, Any]:
    """Return the form that a config asks for, as meta.json has it."""
    return {**config.pictures, "audio": config.audio}


def read_meta(folder: Path) -> dict[str, Any] | None:
    """Return a folder's meta.json when it is what benchcheck writes and the video beside it has its size."""
    try:
        table = json.loads((folder / META_FILE).read_bytes())
        size = (folder / VIDEO_FILE).stat().st_size
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(table, dict) or table.get("version") != META_VERSION or table.get("bytes") != size:
        return None
    kinds = {"content_hash": str, "sha256": str, "form": dict}
    return table if all(isinstance(table.get(name), kind) for name, kind in kinds.items()) else None


def normalized_media(parent: Path, content: str, pictures: dict[str, Any]) -> Media:
    """Return a video in the wanted form, by its content, looked at and hashed anew.

    Args:
        parent: the study's folder of normalised videos.
        content: the SHA-256 of the original; empty where it is not known yet.
        pictures: `Normalize.pictures`; whether there is sound does not matter here.

    Raises:
        VideoError: `not_prepared` when it is not there in this form, `changed` when it is not what meta.json says.
    """
    if not content:
        raise VideoError("not_prepared", "frames are to be made from normalised videos, and it is none yet")
    meta = read_meta(parent / content)
    if meta is None:
        raise VideoError("not_prepared", f"no whole folder {content} among the normalised videos")
    form = {name: value for name, value in meta["form"].items() if name != "audio"}
    if form != pictures:
        raise VideoError("not_prepared", f"normalised as {form}, but the config says {pictures}")
    path = str(parent / content / VIDEO_FILE)
    digest, size = check_file(path)
    if digest != meta["sha256"]:
        raise VideoError("changed", f"{content}/{VIDEO_FILE} is not what its meta.json says: remove the folder")
    return Media(path, f"normalized/{content}/{VIDEO_FILE}", digest, size)
