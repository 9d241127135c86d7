"""Local video files: where an item's video lies, whether it can be one at all, and the manifest of what became of it.

Annotations name videos in every way: bare ids, names with dots in them, paths of the author's machine, addresses. The
config's template says which part counts. What an annotation says never leads out of the videos folder; symbolic links
inside the folder are the user's own and are followed.
"""

import datetime as dt
import errno
import hashlib
import json
import os
import re
import stat
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchcheck.config import Config, Videos
from benchcheck.files import append_rows
from benchcheck.pool.building.declared import bench_of
from benchcheck.pool.contents import manifest_lines
from benchcheck.pool.items import VideoRef
from benchcheck.study import Study
from benchcheck.video.faults import READY, VideoError
from benchcheck.video.sources.sniff import HEAD_BYTES, Read, check_head, check_whole

__all__ = [
    "EXTENSIONS",
    "Outcome",
    "candidates",
    "check_file",
    "find_file",
    "last_outcomes",
    "parse_video_key",
    "record",
    "videos_of",
]

EXTENSIONS = (".mp4", ".webm", ".mkv", ".avi", ".mov", ".gif")
"""Tried in this order when a name has no video extension of its own."""
_KNOWN = frozenset({*EXTENSIONS, ".m4v", ".mpg", ".mpeg", ".ts", ".flv", ".wmv", ".ogv", ".3gp", ".m2ts", ".mts"})
"""Endings that are extensions. Any other is part of the name: STAR's clips are called `6H78U_11.1_19.6`."""
_BLOCK = 1 << 20


def parse_video_key(key: str) -> VideoRef:
    """Take `{repo}::{zip_path}::{member}` apart; the member may hold `::` itself."""
    repo, zip_path, member = [*key.split("::", 2), "", ""][:3]
    return VideoRef(repo, member, zip_path)


def videos_of(config: Config, bench: str, root: Path) -> Videos:
    """Return where a benchmark's videos lie: its own `[pool.videos]`, else the study's `[videos]`.

    Raises:
        SpecError: the spec of an entry with videos of its own is not there.
    """
    own = [source for source in config.pool if source.videos is not None and bench_of(source, root) == bench]
    return own[0].videos or config.videos if own else config.videos


def candidates(root: Path, videos: Videos, bench: str, member: str) -> list[str]:
    """Return the paths at which a video may lie, best first. Touches no disk.

    Raises:
        VideoError: `outside` when the name leads out of the folder, `no_video` when there is no name, `missing` when no
            file can have it.
    """
    last = re.split(r"[/\\]", member.rstrip("/\\"))[-1]
    stem, extension = os.path.splitext(last)
    if extension.lower() not in _KNOWN:
        stem = last
    parts = {"member": member, "name": last, "stem": stem, "bench": bench}
    name = re.sub(r"\{(\w+)\}", lambda match: parts[match.group(1)], videos.template)
    if not last or not name.strip("/"):
        raise VideoError("no_video", "the item names no video")
    if "\0" in name:
        raise VideoError("missing", f"no file can be called {name!r}")
    folder = os.path.abspath(root / videos.folder)
    path = os.path.normpath(os.path.join(folder, name))
    if not path.startswith(folder.rstrip("/") + "/"):
        raise VideoError("outside", f"{name!r} leads out of the videos folder {folder}")
    if os.path.splitext(path)[1].lower() in _KNOWN:
        return [path]
    return [path, *(path + extension for extension in EXTENSIONS), *(path + each.upper() for each in EXTENSIONS)]


def find_file(paths: Sequence[str]) -> str:
    """Return the first of the candidates that is a regular file.

    Raises:
        VideoError: what stands there instead: `missing` (with dangling and circular links told), `is_folder`,
            `not_a_file`, `unreadable`.
    """
    faults = []
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError) as reason:
            faults.append(_absence(path, reason))
            continue
        if stat.S_ISREG(mode):
            return path
        kind, what = ("is_folder", "a folder") if stat.S_ISDIR(mode) else ("not_a_file", "neither file nor folder")
        faults.append(VideoError(kind, f"{path!r} is {what}"))
    telling = [fault for fault in faults if fault.status != "missing" or "link" in fault.reason]
    raise (telling or faults)[0]


def _absence(path: str, reason: OSError | ValueError) -> VideoError:
    """Why a path cannot be looked at."""
    code = reason.errno if isinstance(reason, OSError) else None
    if code == errno.EACCES:
        return VideoError("unreadable", f"no permission to look at {path!r}")
    if code == errno.ELOOP:
        return VideoError("missing", f"{path!r} is a symbolic link that leads back to itself")
    if code == errno.ENOENT and os.path.islink(path):
        return VideoError("missing", f"{path!r} is a symbolic link to a file that is not there")
    if code in (errno.ENOENT, errno.ENOTDIR):
        return VideoError("missing", f"no file {path!r}")
    return VideoError("missing", f"no file can be called so: {path[-80:]!r}")


def check_file(path: str, span: tuple[int, int] | None = None, crc: int | None = None) -> tuple[str, int]:
    """Look at a file's beginning and structure, then hash it; returns its sha256 and its size in bytes.

    Args:
        path: the file.
        span: first byte and the one after the last, of a video that is a stretch of the file.
        crc: CRC-32 that its bytes must have, where an archive says so.

    Raises:
        VideoError: it is no video, or its end is missing; `unreadable` when it cannot be read, `archive_damaged` when
            its bytes are others than the archive says.
    """
    try:
        with open(path, "rb") as file:
            start, end = span or (0, os.fstat(file.fileno()).st_size)
            size = end - start

            def read(offset: int, count: int) -> bytes:
                return os.pread(file.fileno(), max(0, min(count, size - offset)), start + offset)

            check_head(read(0, HEAD_BYTES))
            check_whole(read, size)
            digest, found = _sums(read, size, crc is not None)
    except OSError as reason:
        raise VideoError("unreadable", f"{path!r}: {reason.strerror}") from reason
    if crc is not None and found != crc:
        raise VideoError("archive_damaged", f"{path!r}: the bytes from {start:,} to {end:,} have another checksum")
    return digest, size


def _sums(read: Read, size: int, with_crc: bool) -> tuple[str, int]:
    """The sha256 of a stretch, and its CRC-32 where that is asked for."""
    digest, crc, at = hashlib.sha256(), 0, 0
    while at < size and (block := read(at, _BLOCK)):
        digest.update(block)
        crc = zlib.crc32(block, crc) if with_crc else 0
        at += len(block)
    return digest.hexdigest(), crc


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one set of frames in one attempt: a row of the video manifest."""

    key: str
    """The video key."""
    frames_key: str
    status: str
    content_hash: str = ""
    error: str = ""
    at: str = ""
    """When its row was written, UTC; empty before that."""

    @property
    def ready(self) -> bool:
        """Whether frames were written."""
        return self.status == READY


def record(study: Study, outcomes: Iterable[Outcome]) -> None:
    """Append rows to the video manifest.

    Raises:
        StudyError: the disk is full or the folder is not writable.
    """
    at = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    rows = [
        {
            "key": outcome.key,
            "frames_key": outcome.frames_key,
            "status": outcome.status,
            "content_hash": outcome.content_hash,
            "error": outcome.error or None,
            "at": at,
        }
        for outcome in outcomes
    ]
    append_rows(study.video_manifest, rows)


def last_outcomes(study: Study) -> Mapping[str, Outcome]:
    """Return by frames key what became of each video: the last good row, else the last. Torn lines are skipped.

    Raises:
        StudyError: the manifest cannot be read.
    """
    last: dict[str, Outcome] = {}
    for line in manifest_lines(study):
        outcome = _outcome_of(line)
        if outcome is None:
            continue
        before = last.get(outcome.frames_key)
        if before is None or outcome.ready or not before.ready:
            last[outcome.frames_key] = outcome
    return last


def _outcome_of(line: bytes) -> Outcome | None:
    """One line of the manifest; None when it is torn or not a row of frames."""
    try:
        row = json.loads(line)
        values = [row[name] or "" for name in ("key", "frames_key", "status", "content_hash", "error")]
        values.append(row.get("at") or "")
        "".join(values).encode()  # fails where one is no text, or holds half a character
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return Outcome(*values)
