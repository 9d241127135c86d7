"""What is known of a study's videos: each with its last good inspection, and which of them share their content."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchcheck.pool.contents import PREPARED, video_rows
from benchcheck.study import Study
from benchcheck.video.preparing.fingerprint import alike

__all__ = ["NOT_TRIED", "PreparedVideo", "ShownVideos", "list_videos", "seen_videos"]

NOT_TRIED = "not_tried"
"""The status, in a list of videos, of one that `videos prepare` has not come to yet."""


@dataclass(frozen=True, slots=True)
class PreparedVideo:
    """One video key: how its last inspection ended, and what the last good one found."""

    key: str
    status: str
    error: str = ""
    content_hash: str = ""
    """SHA-256 of the file's bytes; empty where no inspection was good."""
    probe: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    stamp: Any = None
    """What tells whether the file is still the same."""
    at: str = ""
    benches: tuple[str, ...] = ()
    """The benchmarks that show it."""

    def row(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "key": self.key,
            "benches": list(self.benches),
            "status": self.status,
            "error": self.error or None,
            "content_hash": self.content_hash or None,
            "fingerprint": self.fingerprint or None,
            "probe": dict(self.probe) or None,
            "at": self.at or None,
        }


@dataclass(frozen=True, slots=True)
class ShownVideos:
    """The videos that a pool's multiple-choice items need, in its order."""

    videos: tuple[PreparedVideo, ...]

    @property
    def statuses(self) -> Counter[str]:
        """Videos by status."""
        return Counter(video.status for video in self.videos)

    @property
    def codecs(self) -> Counter[str]:
        """Videos that were looked at, by codec and bit depth."""
        known = [video.probe for video in self.videos if video.probe]
        return Counter(f"{probe['codec']} {probe['bit_depth'] or '?'}-bit" for probe in known)

    def duplicates(self) -> list[list[PreparedVideo]]:
        """Return the groups of keys that have the same bytes, in the pool's order."""
        groups: dict[str, list[PreparedVideo]] = {}
        for video in self.videos:
            if video.content_hash:
                groups.setdefault(video.content_hash, []).append(video)
        return [group for group in groups.values() if len(group) > 1]

    def alike(self) -> list[tuple[PreparedVideo, PreparedVideo]]:
        """Return pairs of videos of other bytes that look like one film; flat or dark ones may be none."""
        first = list({video.content_hash: video for video in self.videos if video.fingerprint}.values())
        pairs = alike([video.fingerprint for video in first], [video.probe["duration"] for video in first])
        return [(first[one], first[other]) for one, other in pairs]

    def row(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        groups = [
            {
                "content_hash": group[0].content_hash,
                "keys": [video.key for video in group],
                "benches": benches_of(group),
            }
            for group in self.duplicates()
        ]
        return {
            "videos": [video.row() for video in self.videos],
            "statuses": dict(self.statuses),
            "codecs": dict(self.codecs),
            "duplicates": groups,
            "alike": [{"keys": [one.key, other.key]} for one, other in self.alike()],
        }


def benches_of(videos: Iterable[PreparedVideo]) -> list[str]:
    """Return the benchmarks that show any of these videos."""
    return sorted({bench for video in videos for bench in video.benches})


def seen_videos(study: Study) -> dict[str, PreparedVideo]:
    """Return by key what the video manifest knows: the last good inspection, and how the last one ended.

    Raises:
        StudyError: the manifest cannot be read.
    """
    seen: dict[str, PreparedVideo] = {}
    for row in video_rows(study):
        good, before = row["status"] == PREPARED and _has_findings(row), seen.get(row["key"])
        known = row if good else {}
        seen[row["key"]] = PreparedVideo(
            key=row["key"],
            status=row["status"],
            error=str(row.get("error") or ""),
            content_hash=row["content_hash"] if good else before.content_hash if before else "",
            probe=known.get("probe") or (before.probe if before else {}),
            fingerprint=known.get("fingerprint", before.fingerprint if before else ""),
            stamp=known.get("stamp", before.stamp if before else None),
            at=str(row.get("at") or ""),
        )
    return seen


def _has_findings(row: Mapping[str, Any]) -> bool:
    """Whether a good row has what is read of it again, with its types."""
    probe, print_ = row.get("probe"), row.get("fingerprint")
    if not isinstance(probe, dict) or not isinstance(print_, str):
        return False
    hexadecimal = not print_.strip("0123456789abcdef")
    return hexadecimal and {"codec", "bit_depth"} <= set(probe) and type(probe.get("duration")) in (int, float)


def list_videos(study: Study) -> ShownVideos:
    """Return every video that the pool's multiple-choice items need, with what is known of it. Reads no video.

    Raises:
        StudyError: there is no pool yet, or the manifest cannot be read.
    """
    seen, benches = seen_videos(study), shown_by(study)
    videos = []
    for key, names in benches.items():
        known = seen.get(key) or PreparedVideo(key, NOT_TRIED)
        values = {name: getattr(known, name) for name in known.__dataclass_fields__}
        videos.append(PreparedVideo(**values | {"benches": tuple(names)}))
    return ShownVideos(tuple(videos))


def shown_by(study: Study) -> dict[str, Sequence[str]]:
    """Return the video keys of multiple-choice items in the pool's order, each with the benchmarks that show it.

    Raises:
        StudyError: there is no pool yet, or its file is damaged.
    """
    table = study.item_table(["video_key", "bench", "format"]).combine_chunks()
    columns = [table.column(name).to_pylist() for name in ("video_key", "bench", "format")]
    shown: dict[str, dict[str, None]] = {}
    for key, bench, form in zip(*columns, strict=True):
        if form == "mcq":
            shown.setdefault(key, {})[bench] = None
    return {key: list(benches) for key, benches in shown.items()}
