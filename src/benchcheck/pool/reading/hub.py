"""Annotation files of a hub dataset, at a commit: downloaded once, or taken from the hub library's cache.

The library's own settings hold: HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE, and its login for gated datasets, whose token is
never read nor shown here.
"""

import errno
import fnmatch
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchcheck.config import COMMIT
from benchcheck.errors import InputError, RunError, UsageError, first_line
from benchcheck.pool.reading.paths import names_below
from benchcheck.pool.reading.sources import listed

__all__ = ["cached_names", "check_pinned", "fetch", "fetch_file", "names_in", "newest_commit"]

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def fetch(hub: str, revision: str, patterns: Sequence[str], cache: str = "") -> list[Path]:
    """Return the files of a hub dataset that paths or patterns name: in the order given, a pattern sorted.

    What is in the cache is not asked for again. `*` stands for any characters, slashes too, as in the hub's library.

    Args:
        hub: the dataset, `owner/name`.
        revision: its commit, 40 hex digits.
        patterns: paths or patterns in the repository, such as `data/test-*.parquet`; a folder ends in `/`.
        cache: the hub cache; the library's own when empty.

    Raises:
        UsageError: no dataset's name, no pattern, or no commit; the newest commit is named where it can be found.
        InputError: no such dataset or commit, a gated one without access, offline and not in the cache, nothing that
            matches; one line with the cure.
        RunError: the disk is full or not writable.
    """
    if not patterns:
        _check_name(hub)
        raise UsageError(
            f"{hub}: no file is named. Cure: set files in the spec's [source], such as data/test-*.parquet"
        )
    check_pinned(hub, revision)
    wanted = [pattern + "*" * pattern.endswith("/") for pattern in patterns]
    folder = _snapshot(hub, revision, wanted, cache)
    names = names_below(folder)
    found: dict[str, None] = {}
    for pattern in wanted:
        matches = [name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(f"{hub}@{revision}: no file matches {pattern!r}. {_contents(hub, revision, names)}")
        found |= dict.fromkeys(matches)
    return [folder / name for name in found]


def fetch_file(hub: str, revision: str, name: str, cache: str = "") -> Path:
    """Return one file of a hub dataset: from the cache without asking, else downloaded; a download cut off goes on.

    Raises:
        InputError: as `fetch`; one line with the cure.
        RunError: the disk is full or not writable.
    """
    import huggingface_hub

    def fetched() -> Path:
        return Path(
            huggingface_hub.hf_hub_download(hub, name, repo_type="dataset", revision=revision, cache_dir=cache or None)
        )

    return _asked(hub, revision, fetched)


def names_in(hub: str, revision: str) -> list[str]:
    """Return the paths of all files of a hub dataset, sorted.

    Raises:
        InputError: as `fetch`; offline always.
    """
    from huggingface_hub import HfApi

    return _asked(hub, revision, lambda: sorted(HfApi().list_repo_files(hub, repo_type="dataset", revision=revision)))


def cached_names(hub: str, revision: str, cache: str = "") -> list[str]:
    """Return the paths of those files of a hub dataset that are in the cache, sorted."""
    from huggingface_hub import constants

    snapshots = Path(cache or constants.HF_HUB_CACHE, "datasets--" + hub.replace("/", "--"), "snapshots")
    return names_below(snapshots / revision)


def check_pinned(hub: str, revision: str) -> None:
    """Refuse what is no dataset at a commit.

    Raises:
        UsageError: no dataset's name, or no commit; the newest commit is named where it can be found.
    """
    _check_name(hub)
    if COMMIT.fullmatch(revision) is None:
        raise UsageError(f"{hub}: {_unpinned(revision)}. Allowed: a commit, 40 hex digits. {_pin(hub)}")


def _check_name(hub: str) -> None:
    """Refuse what is no dataset's name."""
    if _NAME.fullmatch(hub) is None:
        raise UsageError(f"hub = {hub!r} is not allowed. Allowed: a dataset of the hub, owner/name")


def _unpinned(revision: str) -> str:
    """What is wrong with a revision."""
    return f"revision = {revision!r} may move" if revision else "no revision is set, and a branch moves"


def _pin(hub: str) -> str:
    """The cure for a dataset without a commit."""
    newest = newest_commit(hub)
    return f"Cure: set revision {f'= {newest!r}, the newest' if newest else 'to one from its page on the hub'}"


def newest_commit(hub: str) -> str:
    """Return the newest commit of a hub dataset, offline that of its cache; nothing when neither is known."""
    from huggingface_hub import HfApi, constants

    try:
        return str(HfApi().dataset_info(hub, timeout=10).sha or "")
    except Exception:  # noqa: BLE001 - a hint in a message, and the library raises three families of errors
        ref = Path(constants.HF_HUB_CACHE, "datasets--" + hub.replace("/", "--"), "refs", "main")
        return ref.read_text(encoding="utf-8").strip() if ref.is_file() else ""


def _snapshot(hub: str, revision: str, patterns: list[str], cache: str) -> Path:
    """The cache's folder of a commit, with the files that match in it."""
    import huggingface_hub

    def fetched() -> Path:
        return Path(
            huggingface_hub.snapshot_download(
                hub, repo_type="dataset", revision=revision, allow_patterns=patterns, cache_dir=cache or None
            )
        )

    return _asked(hub, revision, fetched)


def _asked(hub: str, revision: str, ask: Callable[[], T]) -> T:
    """What the hub's library gives; what it raises becomes one line."""
    try:
        return ask()
    except Exception as reason:  # noqa: BLE001 - its own errors, those of its HTTP library, and the system's
        if getattr(reason, "errno", None) in (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT):
            raise RunError(
                f"{hub}@{revision}: the hub's cache cannot be written: {first_line(reason)}. Cure: free space, or set "
                "HF_HOME or places.hub to another folder"
            ) from None
        raise InputError(f"{hub}@{revision}: {_refusal(hub, reason)}") from None


def _refusal(hub: str, reason: Exception) -> str:
    """What a failed download means, and the cure."""
    from huggingface_hub import constants, errors

    page = f"{constants.ENDPOINT}/datasets/{hub}"
    if isinstance(reason, errors.GatedRepoError):
        return f"this dataset is gated. Cure: ask for access on {page}, then `hf auth login` or set HF_TOKEN"
    if isinstance(reason, errors.RevisionNotFoundError):
        return f"the dataset has no such commit. {_pin(hub)}"
    if isinstance(reason, errors.RepositoryNotFoundError):
        return f"no such dataset, or a private one. Cure: check {page}; for a private one `hf auth login`"
    if constants.HF_HUB_OFFLINE:
        return "not in the cache, and HF_HUB_OFFLINE is set. Cure: fetch it once online, or copy the cache (HF_HOME)"
    return (
        f"cannot be fetched ({first_line(reason)[:200]}). Cure: check the network, or download the files from {page} "
        "and name them in files"
    )


def _contents(hub: str, revision: str, cached: Sequence[str]) -> str:
    """What a dataset holds, for a message; offline only what is in the cache."""
    from huggingface_hub import HfApi

    try:
        names = HfApi().list_repo_files(hub, repo_type="dataset", revision=revision)
        return f"It holds: {listed(names)}. Cure: name files of these"
    except Exception:  # noqa: BLE001 - a hint in a message, as above
        return f"The cache holds: {listed(cached) or 'nothing'}. Cure: check the name, or fetch it online"
