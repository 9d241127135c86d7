"""Annotation files of a hub dataset, at a commit: downloaded once, or taken from the cache."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["fetch"]


def fetch(hub: str, revision: str, patterns: Sequence[str]) -> list[Path]:
    """Return the files of a hub dataset that paths or patterns name: in the order given, a pattern sorted.

    Args:
        hub: the dataset, `owner/name`.
        revision: its commit, 40 hex digits.
        patterns: paths or glob patterns in the repository, such as `data/test-*.parquet`.

    Raises:
        UsageError: no revision, no such dataset or revision, a gated one without a login, nothing that matches.
        MissingExtraError: huggingface_hub is not installed.
    """
    raise NotImplementedError(hub, revision, patterns)
