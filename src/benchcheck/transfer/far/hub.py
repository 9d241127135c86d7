"""Datasets of the hub as folders far away: `hf://datasets/owner/name[@revision][/folder]`, by huggingface_hub.

The library's own login, cache of parts and retries hold (HF_TOKEN or `hf auth login`, HF_ENDPOINT). The token is never
read here, and no word of the hub's answers is shown, since a server may repeat what it was sent.
"""

import contextlib
import hashlib
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchcheck.errors import BenchcheckError, DamagedFileError, RunError, UsageError
from benchcheck.files import writing
from benchcheck.transfer.far.moving import Moving
from benchcheck.transfer.far.outgoing import still_as
from benchcheck.transfer.far.side import Far, Piece, There, few, too_long

__all__ = ["HubStore", "blob_of", "hub_store"]

_ADDRESS = re.compile(
    r"hf://datasets/(?P<repository>[A-Za-z0-9][\w.-]*/[\w.-]+)(@(?P<revision>[\w.-]+|refs/[\w./-]+?))?(/(?P<folder>.*))?",
    re.DOTALL,
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_FORBIDDEN = {".git", ".cache"}
"""Names of folders that the hub's library does not send."""

_COMMIT_FILES = 256
"""Files of a commit: the library's own first choice, far below the hub's limit of 25,000."""
_COMMIT_BYTES = 50 << 30
_SMALL = 10 << 20
"""Bytes up to which the hub may take a file into the commit itself, where it is held in memory."""
_COMMIT_SMALL = 64 << 20
_STRETCH = 4 << 30
"""Bytes after which the bar moves."""
_WAITS_S = (1.0, 4.0)
"""Seconds between tries of a download that met a fault of the hub."""
_TRIES = 5
"""How often a manifest is written anew because somebody else committed meanwhile."""


def hub_store(address: str) -> Far:
    """Open a folder of a hub dataset by its address.

    Raises:
        UsageError: no address of a dataset.
    """
    found = _ADDRESS.fullmatch(address)
    folder = (found["folder"] or "").strip("/") if found else ""
    if found is None or {"..", "."} & set(folder.split("/")):
        raise UsageError(f"{address}: no dataset of the hub. Allowed: hf://datasets/owner/name[@branch][/folder]")
    return HubStore(found["repository"], found["revision"] or "", folder)


class HubStore:
    """A folder of a hub dataset, on a branch or at a commit."""

    def __init__(self, repository: str, revision: str, folder: str) -> None:
        from huggingface_hub import HfApi

        self._api = HfApi(library_name="benchcheck")
        self._repository, self._revision, self._folder = repository, revision, folder
        self._commit = ""
        self.address = f"hf://datasets/{repository}"
        self.address += (f"@{revision}" if revision else "") + (f"/{folder}" if folder else "")

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name

    @property
    def _which(self) -> dict[str, Any]:
        """What names the dataset to the library."""
        return {"repo_id": self._repository, "repo_type": "dataset"}

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Silence the library, whose lines show addresses with signatures."""
        from huggingface_hub import utils

        level, bars = utils.logging.get_verbosity(), not utils.are_progress_bars_disabled()
        utils.logging.set_verbosity(utils.logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            utils.disable_progress_bars()
            try:
                yield
            finally:
                utils.logging.set_verbosity(level)
                if bars:
                    utils.enable_progress_bars()

    def prepare(self, private: bool) -> None:
        """Make the dataset where it is not there and is to be private.

        Raises:
            UsageError: a commit is no place to write to; a public dataset where a private one was asked for.
            RunError: no such dataset, no such branch, no right, no answer.
        """
        from huggingface_hub import errors

        if _COMMIT.fullmatch(self._revision):
            raise UsageError(f"{self.address}: a commit is never changed. Allowed: a branch, or none")
        with self._asked():
            try:
                info = self._api.repo_info(**self._which)
            except errors.GatedRepoError:
                raise
            except errors.RepositoryNotFoundError:
                if not private:
                    raise
                self._api.create_repo(**self._which, private=True, exist_ok=True)
                info = self._api.repo_info(**self._which)
        if private and not info.private:
            raise UsageError(f"{self.address}: this dataset is public. Cure: make it private on its page, or another")
        self._head()

    def _head(self) -> str:
        """The newest commit of the branch; what is read after this is read there."""
        with self._asked():
            info = self._api.repo_info(**self._which, revision=self._revision or None)
        self._commit = str(info.sha or "")
        return self._commit

    def above(self) -> tuple[Far, str]:
        """The folder that this one lies in."""
        folder, _, name = self._folder.rpartition("/")
        return HubStore(self._repository, self._revision, folder), name

    def listing(self) -> dict[str, There]:
        """All files below, at the newest commit."""
        from huggingface_hub import errors

        commit, skipped = self._head(), len(self._path(""))
        with self._asked():
            try:
                tree = self._api.list_repo_tree(
                    **self._which, path_in_repo=self._folder or None, recursive=True, revision=commit
                )
                return {entry.path[skipped:]: _file(entry) for entry in tree if hasattr(entry, "blob_id")}
            except errors.EntryNotFoundError:
                return {}

    def look(self, name: str) -> There | None:
        """One file, at the commit of the last listing."""
        commit = self._commit or self._head()
        with self._asked():
            found = self._api.get_paths_info(**self._which, paths=[self._path(name)], revision=commit)
            return next((_file(entry) for entry in found if hasattr(entry, "blob_id")), None)

    def read(self, name: str) -> bytes | None:
        """A small file's content."""
        found = self.look(name)
        if found is None:
            return None
        too_long(f"{self.address}/{name}", found.bytes)
        with tempfile.TemporaryDirectory() as folder:
            return self.fetch(name, Path(folder), Moving("reading", found.bytes, lambda _: None)).read_bytes()

    def digest(self, name: str) -> str:
        """A file's sha256; the hub knows that of large ones."""
        found = self.look(name)
        if found is not None and found.sha256:
            return found.sha256
        return hashlib.sha256(self.read(name) or b"").hexdigest()

    def send(self, pieces: Sequence[Piece], workers: int, moved: Moving) -> Iterator[tuple[Piece, str]]:
        """Send files in commits: large ones first go to the hub's storage, where what is there already is not sent."""
        forbidden = [piece.name for piece in pieces if _FORBIDDEN & set(piece.name.split("/"))]
        if forbidden:
            raise UsageError(f"{few(forbidden)}: the hub takes no folder .git or .cache. Cure: move it away")
        for batch in _batches(pieces):
            with self._asked():
                self._send(batch, workers, moved)
            for piece in batch:
                yield piece, ""

    def _send(self, batch: Sequence[Piece], workers: int, moved: Moving) -> None:
        """Send the files of one commit, and make it."""
        from huggingface_hub import CommitOperationAdd

        additions = []
        for piece in batch:
            still_as(piece)
            addition = CommitOperationAdd(path_in_repo=self._path(piece.name), path_or_fileobj=str(piece.path))
            addition.upload_info.sha256 = bytes.fromhex(piece.sha256)
            additions.append((addition, piece.bytes))
        branch = self._revision or None
        for stretch in _stretches(additions):
            self._api.preupload_lfs_files(
                self._repository,
                [addition for addition, _ in stretch],
                repo_type="dataset",
                revision=branch,
                num_threads=workers,
                free_memory=False,
            )
            moved(sum(size for _, size in stretch))
        self._api.create_commit(
            **self._which,
            operations=[addition for addition, _ in additions],
            commit_message=f"benchcheck upload: {len(batch)} files",
            revision=branch,
            num_threads=workers,
        )

    def put(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Write a small file anew, on top of the commit that it was read at: two uploads at once lose no line."""
        from huggingface_hub import CommitOperationAdd

        for left in reversed(range(_TRIES)):
            commit = self._head()
            before = self.read(name)
            content = change(before or b"")
            if content == before:
                return
            with self._asked():
                try:
                    self._api.create_commit(
                        **self._which,
                        operations=[CommitOperationAdd(path_in_repo=self._path(name), path_or_fileobj=content)],
                        commit_message=f"benchcheck upload: {name}",
                        revision=self._revision or None,
                        parent_commit=commit,
                    )
                except OSError as reason:
                    if not left or _status(reason) not in (409, 412):
                        raise
                else:
                    return

    def fetch(self, name: str, folder: Path, moved: Moving) -> Path:
        """Bring a file here; the library asks again where a line breaks, but not after a fault of the hub."""
        commit = self._commit or self._head()
        with self._asked(folder):
            for wait in (*_WAITS_S, None):
                try:
                    path = self._api.hf_hub_download(
                        **self._which, filename=self._path(name), revision=commit, local_dir=folder
                    )
                    break
                except OSError as reason:
                    if "Consistency check failed" in str(reason):
                        raise DamagedFileError("cut off, or longer than it should be") from None
                    if wait is None or _status(reason) < 500:
                        raise
                    time.sleep(wait)
        moved(Path(path).stat().st_size)
        return Path(path)

    @contextlib.contextmanager
    def _asked(self, folder: Path | None = None) -> Iterator[None]:
        """Turn what the library raises into one line."""
        try:
            with writing(folder) if folder else contextlib.nullcontext():
                yield
        except BenchcheckError:
            raise
        except Exception as reason:  # noqa: BLE001 - its own errors, those of its HTTP library, and the system's
            raise RunError(f"{self.address}: {_refusal(self._repository, reason)}") from None


def _file(entry: Any) -> There:
    """What the hub says of a file."""
    return There(int(entry.size), sha256=entry.lfs.sha256 if entry.lfs else "", blob="" if entry.lfs else entry.blob_id)


def blob_of(path: Path) -> str:
    """Return git's hash of a file's content: sha1 over its size and its bytes.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Cut files into commits, by count, by bytes, and by the bytes that a commit holds in memory."""
    batch: list[Piece] = []
    total = small = 0
    for piece in pieces:
        held = piece.bytes if piece.bytes <= _SMALL else 0
        full = len(batch) == _COMMIT_FILES or total + piece.bytes > _COMMIT_BYTES or small + held > _COMMIT_SMALL
        if batch and full:
            yield batch
            batch, total, small = [], 0, 0
        batch.append(piece)
        total, small = total + piece.bytes, small + held
    if batch:
        yield batch


def _stretches(additions: Sequence[tuple[Any, int]]) -> Iterator[list[tuple[Any, int]]]:
    """Cut a commit's files into stretches after which the bar moves."""
    stretch: list[tuple[Any, int]] = []
    for addition in additions:
        stretch.append(addition)
        if sum(size for _, size in stretch) >= _STRETCH:
            yield stretch
            stretch = []
    if stretch:
        yield stretch


def _chain(reason: BaseException | None) -> Iterator[BaseException]:
    """A failure and what caused it: the library wraps what failed in a thread, or where its cache was of no help."""
    while reason is not None:
        yield reason
        reason = reason.__cause__


def _status(reason: BaseException) -> int:
    """The HTTP status of a failure; 0 where there is none."""
    codes = (getattr(getattr(one, "response", None), "status_code", 0) for one in _chain(reason))
    return next((int(code) for code in codes if code), 0)


_LOGIN = "`hf auth login`, or set HF_TOKEN"
_STATUSES = {
    400: "the hub refuses this (400): a file's name that it does not take, or README.md's head. Cure: rename it",
    401: f"not logged in, or the login has expired (401). Cure: {_LOGIN}",
    402: "the hub wants payment for this (402): the storage is used up. Cure: free space, or another account",
    403: f"no permission, or no storage left (403). Cure: a token that may write there ({_LOGIN}); look at the quota",
    409: "somebody else writes there now (409). Cure: run the same command again",
    412: "somebody else committed meanwhile (412). Cure: run the same command again",
    413: "the hub takes no request of this size (413). Cure: fewer or smaller files at once",
    429: "too many requests (429). Cure: wait some minutes, then run the same command again; it continues",
}


_ERRORS = {  # the first that fits: one of the library's classes is another's child
    "GatedRepoError": "this dataset is gated. Cure: ask for access on {page}, then {login}",
    "DisabledRepoError": "the hub has locked this dataset. Cure: see {page}",
    "RevisionNotFoundError": "no such branch or commit. Cure: make it on {page}, or leave @... out",
    "RepositoryNotFoundError": "no such dataset, or a private one. Cure: check {page} and {login}; upload --private "
    "makes a new one",
    "OfflineModeIsEnabled": "HF_HUB_OFFLINE is set. Cure: unset it where there is a network",
    "EntryNotFoundError": "a file is not there any more. Cure: run the same command again",
}


def _refusal(repository: str, reason: Exception) -> str:
    """What a failure means, and the cure, in words of our own."""
    from huggingface_hub import constants, errors

    chain = [one for one in _chain(reason) if not isinstance(one, errors.LocalEntryNotFoundError)] or [reason]
    for name, text in _ERRORS.items():
        if any(isinstance(one, getattr(errors, name)) for one in chain):
            return text.format(page=f"{constants.ENDPOINT}/datasets/{repository}", login=_LOGIN)
    status = _status(reason)
    if status in _STATUSES:
        return _STATUSES[status]
    if status >= 500:
        return f"the hub has a fault of its own ({status}). Cure: wait, then run the same command again; it continues"
    what = f"{type(chain[-1]).__name__} {status or ''}".strip()
    return f"no answer that can be read ({what}). Cure: check the network, then run the same command again"
