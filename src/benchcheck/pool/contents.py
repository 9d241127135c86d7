"""Videos by content: which video key has which bytes, as `videos prepare` found, and a pool whose ids say so.

A video's id is the SHA-256 of its file's bytes once that is known (protocol 1; D: of the source file, so that an id
does not change with the form that a video is brought into), and `k:` with a hash of its key before. It stands in the
columns `video_id` and `frames_key`. An item's digest does not depend on it, so answers stay valid.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from benchcheck.errors import StudyError
from benchcheck.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PREPARED", "content_ids", "content_of", "manifest_lines", "video_rows", "with_ids"]

PREPARED = "prepared"
"""The status of a video that was found, hashed and looked at."""
_CONTENT = re.compile(r"([0-9a-f]{64})(@.*)?", re.DOTALL)


def content_of(frames_key: str) -> str:
    """Return the SHA-256 that a frames key or a video id begins with; empty for one by name (`k:`)."""
    found = _CONTENT.fullmatch(frames_key)
    return found[1] if found else ""


def manifest_lines(study: Study) -> Iterator[bytes]:
    """Yield the lines of the video manifest, torn ones too; none where there is no manifest yet.

    Raises:
        StudyError: it cannot be read.
    """
    path = study.video_manifest
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as reason:
        raise StudyError(f"{path}: {reason.strerror}. Cure: mend the disk, or move the file away") from reason


def video_rows(study: Study) -> Iterator[dict[str, Any]]:
    """Yield the rows of the video manifest that are about a video, not about a set of frames of it, in file order.

    Torn lines are skipped, and good rows without a hash.

    Raises:
        StudyError: the manifest cannot be read.
    """
    for line in manifest_lines(study):
        row = _row(line)
        if row is not None:
            yield row


def _row(line: bytes) -> dict[str, Any] | None:
    """One row about a video; None for any other line."""
    if b'"frames_key":' in line:
        return None
    try:
        row = json.loads(line)
        key, status, content = row["key"], row["status"], row.get("content_hash") or ""
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not all(isinstance(value, str) for value in (key, status, content)):
        return None
    if status == PREPARED and (content_of(content) != content or not content):
        return None
    found: dict[str, Any] = row | {"content_hash": content}
    return found


def content_ids(study: Study) -> dict[str, str]:
    """Return the content hash of every video key that was prepared: its last good row wins.

    Raises:
        StudyError: the manifest cannot be read.
    """
    return {row["key"]: row["content_hash"] for row in video_rows(study) if row["status"] == PREPARED}


def with_ids(table: "pa.Table", ids: Mapping[str, str]) -> "pa.Table":
    """Return rows of the pool with the ids of videos that are known by content; the table itself where none changes."""
    import pyarrow as pa

    keys, before, sets = (table.column(name).to_pylist() for name in ("video_key", "video_id", "frames_key"))
    after = [ids.get(key, old) for key, old in zip(keys, before, strict=True)]
    if after == before:
        return table
    # A frames key is the id with the window behind it.
    moved = [new + key.removeprefix(old) for new, old, key in zip(after, before, sets, strict=True)]
    for name, column in (("video_id", after), ("frames_key", moved)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(column, pa.string()))
    return table
