"""Shards of frames: what each holds, by a plan from keys and sizes alone, and their manifest (protocol 3). Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.config import Config
from benchcheck.errors import DamagedFileError, UsageError

__all__ = [
    "MANIFEST_NAME",
    "SHARDS_VERSION",
    "SHARD_BYTES",
    "Manifest",
    "Shard",
    "is_shard",
    "other_field",
    "parse_manifest",
    "parse_size",
    "planned",
    "shard_name",
    "spec_of",
    "video_of",
]

MANIFEST_NAME = "frames_manifest.json"
SHARDS_VERSION = 1
SHARD_BYTES = 2_000_000_000
"""Protocol 3: about 2 GB."""
_LEAST_SHARD = 10_240
_MOST = 2**63
"""No file system counts further."""
_LONGEST_SHOWN = 200
_NAME = re.compile(r"frames_(\d{3,9})\.tar")
_WINDOW = re.compile(r"@\d+-\d*\Z")
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?B?)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """One tar of frames, as the manifest has it."""

    file: str
    sha256: str
    bytes: int
    n_videos: int
    """Distinct videos in it. All sets of a video are in one shard, unless some were made after it was packed."""
    n_sets: int | None = None
    """Sets of frames in it, each a video or a window of one; None in a manifest that does not say."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder of shards holds."""

    shards: tuple[Shard, ...]
    n_videos: int
    """Distinct videos in all shards."""
    frames: Mapping[str, Any] | None = None
    """The `[frames]` config that they were made with; None in a manifest that does not say."""

    def table(self) -> dict[str, Any]:
        """Return it as JSON values."""
        shards = [{name: getattr(shard, name) for name in Shard.__dataclass_fields__} for shard in self.shards]
        return {
            "version": SHARDS_VERSION,
            "n_videos": self.n_videos,
            "n_sets": sum(shard.n_sets or 0 for shard in self.shards),
            "bytes": sum(shard.bytes for shard in self.shards),
            "frames": dict(self.frames or {}),
            "shards": shards,
        }


def shard_name(number: int) -> str:
    """File name of a shard; numbers count from 0 and have three digits or more (protocol 3)."""
    return f"frames_{number:03d}.tar"


def is_shard(name: str) -> bool:
    """Whether a file name is one that a shard can have."""
    found = _NAME.fullmatch(name)
    return found is not None and shard_name(int(found[1])) == name


def video_of(frames_key: str) -> str:
    """Return the video id of a frames key: what stands before a window."""
    return _WINDOW.sub("", frames_key)


def planned(sizes: Mapping[str, int], shard_bytes: int) -> list[list[str]]:
    """Return the frames keys of each shard: sorted, all of a video together, filled up to `shard_bytes`.

    `sizes` are the bytes of each set in a tar. A video that is larger by itself has a shard of its own. The plan
    depends on nothing else, so that every machine makes the same shards of the same frames.
    """
    videos: dict[str, list[str]] = {}
    for key in sorted(sizes, key=lambda key: (video_of(key), key)):
        videos.setdefault(video_of(key), []).append(key)
    shards: list[list[str]] = []
    filled = 0
    for keys in videos.values():
        size = sum(sizes[key] for key in keys)
        if not shards or filled + size > shard_bytes:
            shards.append([])
            filled = 0
        shards[-1] += keys
        filled += size
    return shards


def spec_of(config: Config) -> dict[str, Any]:
    """Return what decides a study's frames, named as frames.json does: grid, size, quality, form of the videos."""
    made = {name: getattr(config.frames, name) for name in ("count", "long_side", "quality")}
    return {**made, "normalized": config.normalize.shown}


def other_field(config: Config, made: Mapping[str, Any]) -> tuple[str, Any, Any] | None:
    """Return the first field in which frames were made otherwise: its name, theirs, the config's; None if none is."""
    for name, value in spec_of(config).items():
        if made.get(name) != value:
            return name, _shown(made.get(name)), value
    return None


def _shown(value: object) -> object:
    """A value of a hostile file, cut for a message of one line."""
    return value if value is None or len(repr(value)) <= _LONGEST_SHOWN else f"{repr(value)[:_LONGEST_SHOWN]}…"


def parse_manifest(text: bytes, where: str) -> Manifest:
    """Read a manifest strictly; keys beyond those of protocol 3 may be missing.

    Raises:
        DamagedFileError: it is cut, of another version, or says what no manifest says: one line with the field.
    """
    try:
        table = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as reason:
        raise _wrong(where, f"not readable as JSON ({reason})") from None
    if not isinstance(table, dict):
        raise _wrong(where, f"a table is expected, not {str(table)[:40]!r}")
    version = table.get("version", SHARDS_VERSION)
    if version != SHARDS_VERSION or isinstance(version, bool):
        cure = f"this benchcheck reads {SHARDS_VERSION}. Cure: unpack with the benchcheck that packed them"
        raise DamagedFileError(f"{where}: version {_shown(version)!r}, but {cure}")
    entries = table.get("shards")
    if not isinstance(entries, list):
        raise _wrong(where, "'shards' is no list")
    shards = tuple(_shard(entry, f"shards[{number}]", where) for number, entry in enumerate(entries))
    _refuse_repeats([shard.file for shard in shards], where)
    frames = table.get("frames")
    if frames is not None and not isinstance(frames, dict):
        raise _wrong(where, "'frames' is no table")
    return Manifest(shards, _number(table, "n_videos", "n_videos", where), frames or None)


def _shard(entry: object, place: str, where: str) -> Shard:
    """Read one entry of a manifest."""
    if not isinstance(entry, dict):
        raise _wrong(where, f"{place} is no table")
    file, digest = entry.get("file"), entry.get("sha256")
    if not isinstance(file, str) or not is_shard(file):
        raise _wrong(where, f"{place}.file = {str(file)[:200]!r}; allowed: {shard_name(0)} and the like")
    if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise _wrong(where, f"{place}.sha256 = {str(digest)[:80]!r} is none")
    size, videos = (_number(entry, name, f"{place}.{name}", where) for name in ("bytes", "n_videos"))
    sets = _number(entry, "n_sets", f"{place}.n_sets", where) if "n_sets" in entry else None
    return Shard(file, digest, size, videos, sets)


def _number(table: Mapping[str, Any], name: str, place: str, where: str) -> int:
    """Read a whole number from 0 on."""
    value = table.get(name)
    if type(value) is not int or not 0 <= value < _MOST:
        raise _wrong(where, f"{place} = {str(value)[:40]} is no whole number from 0 to 2^63")
    return value


def _refuse_repeats(files: Sequence[str], where: str) -> None:
    """Refuse a shard that is listed twice."""
    seen: set[str] = set()
    for file in files:
        if file in seen:
            raise _wrong(where, f"{file} is listed twice")
        seen.add(file)


def _wrong(where: str, what: str) -> DamagedFileError:
    """What a manifest that is none raises."""
    return DamagedFileError(f"{where}: {what}. Cure: get the file again, or pack the frames again")


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 2GB, 500 MB or 1.5gb.

    Raises:
        UsageError: it is no size, or no tar with a file in it is so small.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].upper() if found else ""
    size = int(float(found[1]) * _UNITS[unit if unit in _UNITS else f"{unit}B"]) if found else 0
    if size < _LEAST_SHARD:
        raise UsageError(f"--shard-size {text}: not a size. Allowed: 2GB, 500MB and the like, from 10kB on")
    return size
