"""A folder to a place far away, and back: every file verified, nothing overwritten, the same command continues.

A manifest, `SHA256SUMS`, is written last and means that all it names is there. What is there already, by hash, is not
sent again; what differs is refused; nothing is ever deleted (protocol section 8: results and frames go home this way).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchcheck.errors import DamagedFileError, RunError, UsageError
from benchcheck.transfer.far.hub import blob_of, hub_store
from benchcheck.transfer.far.ledger import Ledger
from benchcheck.transfer.far.moving import Moved, Moving, Told
from benchcheck.transfer.far.outgoing import Outgoing, gathered, pieces_of, still_as
from benchcheck.transfer.far.side import Far, Piece, There, few, without_secrets
from benchcheck.transfer.far.stores import FolderStore, url_store
from benchcheck.transfer.far.sums import MANIFEST, clash, read_sums, sums_text

__all__ = ["WORKERS", "far_sums", "open_far", "upload"]

WORKERS = 8
"""Files at once. More help where each is small and the other side is far."""


_MISTYPED = re.compile(r"(hf|s3a?|gs|gcs|az|abfss?|https?):|(huggingface|hf)\.co/", re.IGNORECASE)
"""How an address begins that lacks a part: nobody's folder is called so."""


def open_far(address: str) -> Far:
    """Open a place by its address: `hf://datasets/...`, a URL that fsspec knows, or a folder's path.

    Raises:
        UsageError: no address of a folder.
        MissingExtraError: the package for it is not installed.
    """
    if address.startswith("hf://"):
        return hub_store(address)
    scheme, mark, _ = address.partition("://")
    if mark and scheme.replace("+", "").isalnum():
        return url_store(address)
    if not address or "\0" in address or (mark and "/" not in scheme) or _MISTYPED.match(address):
        raise UsageError(
            f"{without_secrets(address)!r}: no place. Allowed: hf://datasets/owner/name, s3://bucket/folder, or a path "
            "(with ./ before it where it looks like an address)"
        )
    return FolderStore(Path(address))


def far_sums(far: Far) -> dict[str, str] | None:
    """Read the manifest of a place; None where it has none.

    Raises:
        DamagedFileError: it is no manifest.
    """
    data = far.read(MANIFEST)
    return None if data is None else read_sums(data, f"{far.address}/{MANIFEST}")


def upload(
    what: Path,
    to: str,
    *,
    private: bool = False,
    overwrite: bool = False,
    workers: int = WORKERS,
    told: Told = lambda _: None,
) -> Moved:
    """Send a file, or all files of a folder, into a folder far away, then write its manifest.

    Args:
        what: the file or folder; temporary files (`.*.tmp`) stay here.
        to: the folder far away; files get the paths there that they have below `what`.
        private: whether a dataset of the hub that is not there is made, for its owner alone.
        overwrite: whether files that differ there are replaced.
        workers: files at once.
        told: hears how far it is.

    Raises:
        UsageError: nothing to send, links, an address that is none, files that differ there.
        RunError: no right, no room, no answer; or a file changed on its way.
        DamagedFileError: the manifest there is none (`overwrite` writes it anew).
    """
    source, far = gathered(what), open_far(to)
    _apart(what, far)
    moved = Moved("sent", ends=far.address)
    ledger = Ledger(source.root, far.address)
    with far.quiet():
        far.prepare(private)
        there = far.listing()
        known = _known(far, overwrite)
        _fits(source, there, far)
        pieces = list(pieces_of(source, ledger, workers, Moving("reading", source.bytes, told)))
        pieces.sort(key=lambda piece: piece.name)
        todo = _to_send(pieces, there, _Sight(far, known, ledger, overwrite))
        moved.files, moved.same = len(todo), len(pieces) - len(todo)
        moved.bytes = sum(piece.bytes for piece in todo)
        for piece, mark in far.send(todo, workers, Moving("sending", moved.bytes, told)):
            still_as(piece)
            ledger.sent(piece.name, piece.sha256, mark)
        _arrived(pieces, far)
        far.put(MANIFEST, lambda before: _merged(before, pieces, set(there), overwrite))
    return moved.over()


def _apart(what: Path, far: Far) -> None:
    """Refuse a folder inside the one that is sent: each upload would send the last one too."""
    if isinstance(far, FolderStore) and what.is_dir() and far.folder.resolve().is_relative_to(what.resolve()):
        raise UsageError(f"{far.address} lies in {what}, which is sent. Cure: choose a folder outside")


def _known(far: Far, overwrite: bool) -> dict[str, str]:
    """Hashes that a manifest far away states; one that is damaged does not count where it may be overwritten."""
    try:
        return far_sums(far) or {}
    except DamagedFileError:
        if not overwrite:
            raise
        return {}


def _fits(source: Outgoing, there: Mapping[str, There], far: Far) -> None:
    """Refuse names that cannot stand side by side there."""
    odd = [name for name in source.files if not name.isascii() and "\udc80" <= max(name) <= "\udcff"]
    if odd and not isinstance(far, FolderStore):
        raise UsageError(f"{few(odd)}: names that are no UTF-8 do not go there. Cure: rename them")
    both = clash([*source.files, *there])
    if both:
        raise UsageError(f"{far.address}: {both!r} is a file and a folder at once. Cure: choose another folder")


class _Sight:
    """What tells whether a far file holds what a local one does."""

    def __init__(self, far: Far, known: Mapping[str, str], ledger: Ledger, overwrite: bool) -> None:
        self._far, self._known, self._ledger, self._overwrite = far, known, ledger, overwrite

    @property
    def refuses(self) -> bool:
        """Whether what differs is refused."""
        return not self._overwrite

    def same(self, piece: Piece, there: There) -> bool:
        """Whether they hold the same; a far file is read only where nothing else tells, and nothing is overwritten."""
        if there.bytes != piece.bytes:
            return False
        if there.sha256 or there.blob:
            return there.sha256 == piece.sha256 if there.sha256 else there.blob == blob_of(piece.path)
        if self._ledger.was_sent(piece.name, piece.sha256, there.mark):
            return True
        if piece.name in self._known:
            return self._known[piece.name] == piece.sha256
        return not self._overwrite and self._far.digest(piece.name) == piece.sha256


def _to_send(pieces: Sequence[Piece], there: Mapping[str, There], sight: _Sight) -> list[Piece]:
    """Return the files that are not there yet.

    Raises:
        UsageError: some are there and differ, and may not be overwritten.
    """
    todo = [piece for piece in pieces if piece.name not in there or not sight.same(piece, there[piece.name])]
    differ = [piece.name for piece in todo if piece.name in there]
    if differ and sight.refuses:
        count = f"{len(differ):,} file{'s' if len(differ) > 1 else ''}"
        raise UsageError(f"{few(differ)}: {count} there with another content. Cure: another folder, or --overwrite")
    return todo


def _arrived(pieces: Sequence[Piece], far: Far) -> None:
    """Ask again what is there: a file that was left out or cut off on its way must not stand in a manifest."""
    there = far.listing()
    wrong = []
    for piece in pieces:
        found = there.get(piece.name)
        good = found is not None and found.bytes == piece.bytes and found.sha256 in ("", piece.sha256)
        if not good:
            wrong.append(piece.name)
    if wrong:
        raise RunError(
            f"{far.address}: {few(wrong)}: sent, but not there as sent (a .gitignore there, or somebody else writes). "
            "Cure: look there, then run the same command again"
        )


def _merged(before: bytes, pieces: Sequence[Piece], there: set[str], overwrite: bool) -> bytes:
    """A manifest with the files that were sent; lines of files that are gone there are left out."""
    try:
        old = read_sums(before, MANIFEST)
    except DamagedFileError:
        if not overwrite:
            raise
        old = {}
    kept = {name: digest for name, digest in old.items() if name in there}
    return sums_text(kept | {piece.name: piece.sha256 for piece in pieces})
