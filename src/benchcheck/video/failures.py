"""What failed in a walk through a study's videos: counted by status, a few told, as every summary says it. Pure."""

from collections import Counter
from dataclasses import dataclass, field

from benchcheck.video.faults import CURES

__all__ = ["Failures"]

_EXAMPLES = 5


@dataclass(slots=True)
class Failures:
    """The part of a summary that is about what failed."""

    statuses: Counter[str] = field(default_factory=Counter, kw_only=True)
    """How many failed by status; docs and `faults.CURES` say what helps."""
    examples: dict[str, list[tuple[str, str]]] = field(default_factory=dict, kw_only=True)
    """Up to five of each status: the video and the reason."""

    @property
    def failed(self) -> int:
        """How many failed."""
        return sum(self.statuses.values())

    def fail(self, status: str, video: str, reason: str) -> None:
        """Count one that failed; a name with line breaks is told in one line."""
        self.statuses[status] += 1
        shown = self.examples.setdefault(status, [])
        if len(shown) < _EXAMPLES:
            shown.append((" ".join(video.split()), reason))

    def told(self) -> list[str]:
        """Return lines to print: each status with its cure and examples, the most frequent first."""
        lines = []
        for status, count in self.statuses.most_common():
            lines.append(f"{status}: {count}. Cure: {CURES[status]}")
            lines += [f"  {video}: {reason}" for video, reason in self.examples[status]]
            if count > len(self.examples[status]):
                lines.append(f"  and {count - len(self.examples[status])} more; all are in logs/manifest.jsonl")
        return lines
