"""A folder from far away: every file verified before it takes its place, by one move."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchcheck.errors import BenchcheckError, DamagedFileError, InputError, RunError, UsageError
from benchcheck.files import publish, writing
from benchcheck.tars import hash_of
from benchcheck.transfer.far.abreast import abreast
from benchcheck.transfer.far.hub import blob_of
from benchcheck.transfer.far.ledger import LEDGER, Ledger
from benchcheck.transfer.far.moving import Moved, Moving, Told, readable
from benchcheck.transfer.far.remote import WORKERS, far_sums, open_far
from benchcheck.transfer.far.side import TEMPORARY, Far, There, few
from benchcheck.transfer.far.sums import MANIFEST, clash, fault_of, read_sums, sums_text

__all__ = ["download"]

_WORKROOM = ".benchcheck-incoming.tmp"
"""Folder beside the files that arrive; what a killed download left there is removed by the next one."""
_TRIES = 2
"""How often a file is fetched that arrives other than it should: once more, since a line may have broken."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A file that is to arrive, and all that is known of it; sha256 by a manifest or the hub."""

    name: str
    bytes: int
    sha256: str
    blob: str

    @property
    def vouched(self) -> bool:
        """Whether a hash tells it from any other file."""
        return bool(self.sha256 or self.blob)


def download(
    source: str,
    to: Path,
    *,
    overwrite: bool = False,
    unverified: bool = False,
    workers: int = WORKERS,
    told: Told = lambda _: None,
) -> Moved:
    """Fetch a folder, or one file of it, into a folder here; the manifest comes last and means that all is there.

    Args:
        source: what `upload` sent to: `hf://datasets/...`, a URL or a path; a file of it is verified by its folder's
            manifest.
        to: the folder here.
        overwrite: whether files that differ here are replaced.
        unverified: whether a folder without a manifest is taken on trust; a hub dataset needs none.
        workers: files at once.
        told: hears how far it is.

    Raises:
        UsageError: no address, no manifest, files that differ here.
        InputError: nothing is there.
        DamagedFileError: the manifest is none or names what is not there; files that are not what it says.
        RunError: no right, no room, no answer.
    """
    far = open_far(source)
    if to.exists() and not to.is_dir():
        raise UsageError(f"{to}: this is a file. Cure: name a folder; what is fetched goes into it")
    with far.quiet():
        far, files, alone = _found(far)
        moved = Moved("fetched", ends=str(to))
        wanted = _wanted(far, files, alone, unverified)
        moved.unverified = sum(not one.vouched for one in wanted)
        before = {} if alone else _manifest_here(to)
        with _alone_in(to) as workroom:
            arrival = _Arrival(far, to, workroom, Ledger(to, far.address))
            todo = arrival.missing(wanted, overwrite, workers, told)
            moved.files, moved.same = len(todo), len(wanted) - len(todo)
            moved.bytes = sum(one.bytes for one in todo)
            arrival.bring(todo, workers, Moving("fetching", moved.bytes, told))
        if not alone and not moved.unverified:
            _write_manifest(to, before, wanted, arrival)
    return moved.over()


def _found(far: Far) -> tuple[Far, dict[str, There], bool]:
    """The folder far away and its files; or, where the address is that of a file, its folder and that file alone."""
    files = far.listing()
    if files:
        return far, files, False
    above, name = far.above()
    file = above.look(name) if name else None
    if file is None:
        raise InputError(f"{far.address}: nothing is there. Cure: check the address, and that the upload has ended")
    return above, {name: file}, True


def _wanted(far: Far, files: Mapping[str, There], alone: bool, unverified: bool) -> list[_Wanted]:
    """Which files are to arrive, by the manifest or else by what the far side knows of them."""
    sums = _vouching(far)
    if sums is not None and not alone:
        gone = [name for name in sums if name not in files]
        if gone:
            raise DamagedFileError(
                f"{far.address}: {few(gone)}: in {MANIFEST}, but not there. Cure: have the folder uploaded again"
            )
        files = {name: files[name] for name in sums}
    wanted = []
    for name, there in sorted(files.items()):
        digest = (sums or {}).get(name) or there.sha256
        if not _ours(name):
            wanted.append(_Wanted(name, there.bytes, digest, "" if digest else there.blob))
    faulty = [one.name for one in wanted if fault_of(one.name)]
    if faulty or clash([one.name for one in wanted]):
        raise DamagedFileError(f"{far.address}: {few(faulty)}: no paths of files below a folder: nothing is fetched")
    trusted = [one.name for one in wanted if not one.vouched]
    if trusted and not unverified:
        raise UsageError(
            f"{far.address}: no {MANIFEST} vouches for {few(trusted)}. Cure: wait for the upload to end, or take them "
            "on trust with --unverified"
        )
    return wanted


def _vouching(far: Far) -> dict[str, str] | None:
    """The lines on a folder's files: of its own manifest, or of the nearest folder above whose manifest has some.

    Raises:
        DamagedFileError: its own is none; what stands under this name further up may be anything.
    """
    sums, above, prefix = far_sums(far), far, ""
    while not sums:
        above, name = above.above()
        if not name:
            return None
        prefix = f"{name}/{prefix}"
        with contextlib.suppress(BenchcheckError):
            found = far_sums(above) or {}
            sums = {line[len(prefix) :]: found[line] for line in found if line.startswith(prefix)}
    return sums


def _ours(name: str) -> bool:
    """Whether a file is a transfer's own: another machine's does not replace the one here."""
    return name in (MANIFEST, LEDGER) or any(TEMPORARY.fullmatch(part) for part in name.split("/"))


def _manifest_here(to: Path) -> dict[str, str]:
    """The manifest of earlier downloads into the folder."""
    path = to / MANIFEST
    return read_sums(path.read_bytes(), str(path)) if path.is_file() else {}


def _write_manifest(to: Path, before: Mapping[str, str], wanted: Sequence[_Wanted], arrival: "_Arrival") -> None:
    """Write the manifest of what is here now, verified."""
    sums = {one.name: one.sha256 or arrival.hash_here(one.name) for one in wanted}
    kept = {name: digest for name, digest in before.items() if (to / name).is_file()}
    with publish(to / MANIFEST) as temporary:
        temporary.write_bytes(sums_text(kept | sums))


@contextlib.contextmanager
def _alone_in(to: Path) -> Iterator[Path]:
    """Hold an empty working folder, which goes in the end."""
    workroom = to / _WORKROOM
    with writing(to):
        workroom.mkdir(parents=True, exist_ok=True)
        lock = (workroom / ".lock").open("w")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"{to}: another download into this folder is at work. Cure: wait for it") from None
        for left in workroom.iterdir():
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            elif left.name != ".lock":
                left.unlink(missing_ok=True)
        try:
            yield workroom
        finally:
            shutil.rmtree(workroom, ignore_errors=True)


class _Arrival:
    """Files on their way into a folder."""

    def __init__(self, far: Far, to: Path, workroom: Path, ledger: Ledger) -> None:
        self._far, self._to, self._workroom, self._ledger = far, to, workroom, ledger

    def missing(self, wanted: Sequence[_Wanted], overwrite: bool, workers: int, told: Told) -> list[_Wanted]:
        """Return the files that are not here yet, by hash.

        Raises:
            UsageError: some are here and differ, and may not be overwritten; or a link stands in the way.
            RunError: they would not fit on the disk.
        """
        self._no_links(wanted)
        here = [one for one in wanted if (self._to / one.name).exists()]
        reading = Moving("reading", sum(one.bytes for one in here), told)
        same = dict(abreast(lambda one: (one.name, self._same(one, reading)), here, workers))
        differ = [one.name for one in here if not same[one.name]]
        if differ and not overwrite:
            count = f"{len(differ):,} file{'s' if len(differ) > 1 else ''}"
            raise UsageError(f"{self._to}: {few(differ)}: {count} here with another content. Cure: --overwrite")
        todo = [one for one in wanted if not same.get(one.name)]
        needed, free = sum(one.bytes for one in todo), shutil.disk_usage(self._to).free
        if needed > free:
            raise RunError(
                f"{self._to}: {readable(needed)} are to come, {readable(free)} are free. Cure: free space, or choose "
                "another folder"
            )
        return todo

    def _no_links(self, wanted: Sequence[_Wanted]) -> None:
        """Refuse to write through a link: it may lead anywhere."""
        paths = {Path(one.name) for one in wanted}
        inside = paths | {above for path in paths for above in path.parents if above.name}
        links = sorted(str(path) for path in inside if (self._to / path).is_symlink())
        if links:
            raise UsageError(f"{self._to}: {few(links)}: a link stands there, which may lead anywhere. Cure: remove it")
        folders = sorted(str(path) for path in paths if (self._to / path).is_dir())
        if folders:
            raise UsageError(f"{self._to}: {few(folders)}: a folder stands where a file is to come. Cure: move it away")

    def _same(self, one: _Wanted, read: Moving) -> bool:
        """Whether the file here is the one that is wanted."""
        path = self._to / one.name
        if path.stat().st_size != one.bytes or not one.vouched:
            return False
        same = self.hash_here(one.name) == one.sha256 if one.sha256 else blob_of(path) == one.blob
        read(one.bytes)
        return same

    def hash_here(self, name: str) -> str:
        """A file's sha256, read once."""
        info = (self._to / name).stat()
        digest = self._ledger.hash_of(name, info.st_size, info.st_mtime_ns)
        if not digest:
            digest = hash_of(self._to / name)
            self._ledger.hashed(name, info.st_size, info.st_mtime_ns, digest)
        return digest

    def bring(self, todo: Sequence[_Wanted], workers: int, moved: Moving) -> None:
        """Fetch files; one that is not what it should be does not arrive, and the others do.

        Raises:
            DamagedFileError: how many are not what the manifest says, and what came in place of the first ones.
        """
        wrong = [fault for fault in abreast(lambda one: self._bring(one, moved), todo, workers, moved.halt) if fault]
        if wrong:
            more = f" and {len(wrong) - 3:,} more" if len(wrong) > 3 else ""
            raise DamagedFileError(
                f"{self._far.address}: {len(wrong):,} of {len(todo):,} files are not what they should be, and were not "
                f"taken: {'; '.join(sorted(wrong)[:3])}{more}. Cure: run it again; if they stay so, have them uploaded "
                "again"
            )

    def _bring(self, one: _Wanted, moved: Moving) -> str:
        """Fetch one file; returns what is wrong with it, or nothing."""
        fault = ""
        for _ in range(_TRIES):
            try:
                fetched = self._far.fetch(one.name, self._workroom, moved)
            except DamagedFileError as reason:
                fault = f"{one.name[:200]!r}: {reason}"
                continue
            fault = _fault(one, fetched)
            if not fault:
                self._place(one, fetched)
                return ""
            fetched.unlink()
        return fault

    def _place(self, one: _Wanted, fetched: Path) -> None:
        """Move a verified file to its place."""
        target = self._to / one.name
        with writing(target):
            with fetched.open("rb") as file:
                os.fsync(file.fileno())
            target.parent.mkdir(parents=True, exist_ok=True)
            fetched.replace(target)
            info = target.stat()
        if one.sha256:
            self._ledger.hashed(one.name, info.st_size, info.st_mtime_ns, one.sha256)


def _fault(one: _Wanted, fetched: Path) -> str:
    """Say what is wrong with a file that came, in a few words; nothing where it is the one."""
    with fetched.open("rb") as file:
        head = file.read(512).lstrip().lower()
    size = fetched.stat().st_size
    good = size == one.bytes
    if good and one.sha256:
        good = hash_of(fetched) == one.sha256
    elif good and one.blob:
        good = blob_of(fetched) == one.blob
    if good:
        return ""
    if head.startswith((b"<!doctype html", b"<html")):
        return f"{one.name[:200]!r}: a web page came (a login?)"
    if size != one.bytes:
        return f"{one.name[:200]!r}: {size:,} bytes came of {one.bytes:,}"
    return f"{one.name[:200]!r}: another content"
