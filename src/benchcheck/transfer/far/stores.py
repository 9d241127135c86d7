"""Folders far away: a path on a mounted disk, or any store that fsspec knows (`s3://`, `gs://`, `memory://`)."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchcheck.errors import BenchcheckError, MissingExtraError, RunError, UsageError
from benchcheck.files import publish, writing
from benchcheck.tars import hash_of
from benchcheck.transfer.far.abreast import abreast
from benchcheck.transfer.far.moving import Moving
from benchcheck.transfer.far.outgoing import still_as
from benchcheck.transfer.far.side import TEMPORARY, Far, Piece, There, too_long, without_secrets

__all__ = ["FolderStore", "UrlStore", "url_store"]

_BLOCK = 1 << 20
_PART = 16 << 20
"""Bytes of a part of a large object; s3fs holds two parts of each file in memory, for up to 10,000 parts."""
_WHOLE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory", "oss", "oci")
"""Stores in which an object appears when all its bytes are there; elsewhere a file is sent beside and then moved."""
_MARKS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")
_NETWORK = ("Connect", "Timeout", "ServerDisconnected", "Network", "DNS", "gaierror", "SSL")


class FolderStore:
    """A folder of a disk that both machines see, or that is carried over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = str(folder)
        self._littered: set[Path] = set()
        """Folders in which killed writers left something, as the last listing saw them."""

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Nothing prints here."""
        return contextlib.nullcontext()

    def prepare(self, private: bool) -> None:
        """Refuse what no folder is made from."""
        if private:
            raise UsageError(f"--private is for datasets of the hub; {self.address} is a folder. Cure: leave it out")
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"{self.address}: this is a file. Cure: name a folder; the file goes into it")

    def above(self) -> tuple[Far, str]:
        """The folder that this one lies in."""
        return FolderStore(self.folder.parent), self.folder.name

    def listing(self) -> dict[str, There]:
        """All files below; links to folders are not followed."""
        files: dict[str, There] = {}
        for above, folders, names in os.walk(self.folder):
            folders[:] = sorted(name for name in folders if not TEMPORARY.fullmatch(name))
            for name in names:
                if TEMPORARY.fullmatch(name):
                    self._littered.add(Path(above))
                elif (found := _there(Path(above, name))) is not None:
                    files[os.path.relpath(Path(above, name), self.folder)] = found
        return files

    def look(self, name: str) -> There | None:
        """One file."""
        return _there(self.folder / name)

    def read(self, name: str) -> bytes | None:
        """A small file's content."""
        found = self.look(name)
        if found is None:
            return None
        too_long(f"{self.folder / name}", found.bytes)
        with _reading(self.folder / name):
            return (self.folder / name).read_bytes()

    def digest(self, name: str) -> str:
        """A file's sha256."""
        with _reading(self.folder / name):
            return hash_of(self.folder / name)

    def send(self, pieces: Sequence[Piece], workers: int, moved: Moving) -> Iterator[tuple[Piece, str]]:
        """Copy files, each to a temporary name and then in one move."""

        def copy(piece: Piece) -> tuple[Piece, str]:
            still_as(piece)
            target = self.folder / piece.name
            with publish(target, sweep=target.parent in self._littered) as temporary:
                _copy(piece.path, temporary, moved)
            found = _there(target)
            return piece, found.mark if found else ""

        return abreast(copy, pieces, workers, moved.halt)

    def put(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Write a small file anew."""
        content = change(self.read(name) or b"")
        with publish(self.folder / name) as temporary:
            temporary.write_bytes(content)

    def fetch(self, name: str, folder: Path, moved: Moving) -> Path:
        """Copy a file here."""
        target = folder / _flat(name)
        _copy(self.folder / name, target, moved)
        return target


def _there(path: Path) -> There | None:
    """Size and time of a file; None where there is none."""
    try:
        info = path.stat()
    except (OSError, ValueError):
        return None
    return There(info.st_size, mark=str(info.st_mtime_ns)) if path.is_file() else None


def _flat(name: str) -> str:
    """A name for a file of any path in a working folder."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn a file that cannot be read into one line."""
    try:
        yield
    except OSError as reason:
        raise RunError(
            f"{path}: not readable ({reason.strerror}). Cure: look at that disk, then run it again"
        ) from None


def _copy(source: Path, target: Path, moved: Moving) -> None:
    """Copy a file's content in blocks."""
    with contextlib.ExitStack() as stack:
        with _reading(source):
            file = stack.enter_context(source.open("rb"))
        with writing(target):
            sink = stack.enter_context(target.open("wb"))
        while True:
            with _reading(source):
                block = file.read(_BLOCK)
            if not block:
                return
            with writing(target):
                sink.write(block)
            moved(len(block))


def url_store(address: str) -> Far:
    """Open a folder by its URL.

    Raises:
        UsageError: no such scheme, a web page's address, or a URL with who logs in.
        MissingExtraError: s3fs is not installed; another scheme's package is named in a UsageError.
    """
    scheme, _, rest = address.partition("://")
    if scheme in ("http", "https", "ftp"):
        raise UsageError(f"{address}: files are not sent to or listed at web addresses. {_allowed()}")
    if "@" in rest.partition("/")[0]:
        raise UsageError(f"{scheme}://: a login does not stand in an address. Cure: leave it out; {_logins(scheme)}")
    if scheme in ("file", "local"):
        return FolderStore(Path(rest))
    import fsspec

    try:
        filesystem, root = fsspec.url_to_fs(address, skip_instance_cache=True, use_listings_cache=False)
    except ImportError as reason:
        raise _missing(scheme, reason) from None
    except ValueError as reason:
        if "Protocol not known" in str(reason):
            raise UsageError(f"{address}: {scheme}:// is not known. {_allowed()}") from None
        raise UsageError(f"{address}: no address of a folder ({without_secrets(str(reason))}). {_allowed()}") from None
    return UrlStore(filesystem, str(root).rstrip("/"), scheme)


def _allowed() -> str:
    """What an address may be."""
    return "Allowed: hf://datasets/owner/name, s3://bucket/folder, another store of fsspec, or a folder's path"


def _logins(scheme: str) -> str:
    """Where a store's own library looks for who logs in."""
    return "s3 takes AWS_PROFILE or AWS_ACCESS_KEY_ID" if scheme == "s3" else f"{scheme} has a login of its own"


def _missing(scheme: str, reason: ImportError) -> BenchcheckError:
    """A store whose package is not installed."""
    if scheme in ("s3", "s3a"):
        return MissingExtraError("s3://", "s3")
    from fsspec.registry import known_implementations

    package = str(known_implementations.get(scheme, {}).get("class", "")).partition(".")[0]
    if package in ("", "fsspec"):
        return UsageError(
            f"{scheme}:// needs a package that is not installed ({_package(reason)}). Cure: pip install it"
        )
    return UsageError(f"{scheme}:// needs a package that is not installed. Cure: pip install {package}")


def _package(reason: ImportError) -> str:
    """The package that an import did not find."""
    return reason.name or without_secrets(str(reason))


class UrlStore:
    """A folder of a store that fsspec opens. Logins, endpoints and retries are those of the store's own library."""

    def __init__(self, filesystem: Any, root: str, scheme: str) -> None:
        self._fs, self._root, self._scheme = filesystem, root, scheme
        self.address = f"{scheme}://{root.lstrip('/')}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """Nothing prints here."""
        return contextlib.nullcontext()

    def prepare(self, private: bool) -> None:
        """Buckets and their rights are made elsewhere."""
        if private:
            raise UsageError(f"--private is for datasets of the hub, not for {self._scheme}://. Cure: leave it out")

    def above(self) -> tuple[Far, str]:
        """The folder that this one lies in; a bucket lies in none."""
        folder, _, name = self._root.rpartition("/")
        return UrlStore(self._fs, folder, self._scheme), name if folder or self._scheme == "memory" else ""

    def listing(self) -> dict[str, There]:
        """All objects below; a bucket that is not there has none."""
        with self._asked("listed"):
            self._fs.invalidate_cache()
            try:
                found = self._fs.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
        files = {}
        for path, info in found.items():
            name = path[len(self._root) + 1 :]
            if name and not any(TEMPORARY.fullmatch(part) for part in name.split("/")):
                files[name] = _object(info)
        return files

    def look(self, name: str) -> There | None:
        """One object."""
        with self._asked("looked at"):
            self._fs.invalidate_cache()
            try:
                info = self._fs.info(self._path(name))
            except FileNotFoundError:
                return None
        return _object(info) if info["type"] == "file" else None

    def read(self, name: str) -> bytes | None:
        """A small object's content."""
        found = self.look(name)
        if found is None:
            return None
        too_long(f"{self.address}/{name}", found.bytes)
        with self._asked("read"):
            return bytes(self._fs.cat_file(self._path(name)))

    def digest(self, name: str) -> str:
        """An object's sha256."""
        digest = hashlib.sha256()
        with self._asked("read"), self._fs.open(self._path(name), "rb", block_size=_PART) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest()

    def send(self, pieces: Sequence[Piece], workers: int, moved: Moving) -> Iterator[tuple[Piece, str]]:
        """Send files: where a store shows half a file, to a temporary name and then in one move."""

        def send(piece: Piece) -> tuple[Piece, str]:
            still_as(piece)
            with self._asked("written"):
                self._put(piece, moved)
                info = self._fs.info(self._path(piece.name))
            return piece, _object(info).mark

        return abreast(send, pieces, workers, moved.halt)

    def _put(self, piece: Piece, moved: Moving) -> None:
        """Send one file."""
        target = final = self._path(piece.name)
        if self._scheme not in _WHOLE:
            folder, _, name = final.rpartition("/")
            target = f"{folder}/.{name}.{piece.sha256[:16]}.tmp"
            self._fs.makedirs(folder, exist_ok=True)
        self._fs.put_file(str(piece.path), target, callback=_heard(moved), **self._parts())
        if target != final:
            if self._fs.exists(final):
                self._fs.rm_file(final)
            self._fs.mv(target, final)

    def _parts(self) -> dict[str, int]:
        """How s3fs cuts a large object, so that memory stays flat: its own choice holds 500 MB a file."""
        return {"chunksize": _PART, "max_concurrency": 2} if self._scheme in ("s3", "s3a") else {}

    def put(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Write a small object anew."""
        content = change(self.read(name) or b"")
        with self._asked("written"):
            self._fs.pipe_file(self._path(name), content)

    def fetch(self, name: str, folder: Path, moved: Moving) -> Path:
        """Bring an object here."""
        target = folder / _flat(name)
        with self._asked("fetched"):
            try:
                self._fs.get_file(self._path(name), str(target), callback=_heard(moved), **self._parts())
            except OSError as reason:
                if reason.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise
                with writing(target):  # it is this disk that is full
                    raise
        return target

    @contextlib.contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Turn what a store's library raises into one line."""
        try:
            yield
        except BenchcheckError:
            raise
        except Exception as reason:  # noqa: BLE001 - each store's library raises a family of its own
            raise RunError(f"{self.address}: cannot be {what}: {_refusal(self._scheme, reason)}") from None


def _object(info: dict[str, Any]) -> There:
    """What a store says of an object."""
    mark = next((str(info[key]) for key in _MARKS if info.get(key)), "")
    return There(int(info.get("size") or 0), mark=mark)


def _heard(moved: Moving) -> Any:
    """What tells fsspec's progress on."""
    from fsspec.callbacks import Callback

    class Heard(Callback):  # type: ignore[misc]  # the library has no types
        def relative_update(self, inc: int = 1) -> None:
            moved(inc)

    return Heard()


def _refusal(scheme: str, reason: Exception) -> str:
    """What a store's failure means, and the cure; the first meaning that fits."""
    name, text = type(reason).__name__, f"{reason}".lower()
    code = reason.errno if isinstance(reason, OSError) else None
    silent = isinstance(reason, ConnectionError | TimeoutError) or any(word in name for word in _NETWORK)
    login = _logins(scheme)
    meanings = {
        f"the login has expired. Cure: log in again ({login})": "expired" in text or "TokenRetrieval" in name,
        f"no login was found. Cure: {login}": "Credential" in name or "credentials" in text,
        "no room is left there (quota or disk). Cure: free space or choose another place, then run it again": (
            "quota" in text or code in (errno.EDQUOT, errno.ENOSPC)
        ),
        f"no permission, or a wrong key. Cure: have it granted, or log in as another ({login})": isinstance(
            reason, PermissionError
        ),
        "no such bucket or folder, or the file is gone. Cure: check the name; a bucket is made beforehand": isinstance(
            reason, FileNotFoundError
        ),
        f"no answer ({name}). Cure: check the network and the address, then run the same command again": silent,
    }
    said = f"{name}: {without_secrets(str(reason))}. Cure: run the same command again; what is there stays"
    return next((meaning for meaning, fits in meanings.items() if fits), said)
