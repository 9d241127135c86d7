"""Annotation files as streams of bytes, whatever holds them: a file, a .gz, a member of a zip archive.

What comes out of an archive is counted while it comes: a header can say anything. What is no text at all is named from
its first bytes.
"""

import codecs
import contextlib
import fnmatch
import gzip
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, cast

from benchcheck.errors import DamagedFileError, InputError

__all__ = [
    "ALLOWED",
    "FREE",
    "MAX_LINE",
    "MAX_RATIO",
    "PARQUET",
    "READABLE",
    "Origin",
    "blocks",
    "decoded",
    "lines",
    "listed",
    "members",
    "named",
    "texts",
    "wanted",
]

MAX_LINE = 64 << 20
"""Bytes of a line. The longest seen in a real file is under 1 MB."""
MAX_UNPACKED = 8 << 30
"""Bytes that one member of an archive may unpack to."""
MAX_ARCHIVE = 32 << 30
"""Bytes that a whole archive may unpack to."""
MAX_RATIO = 200
"""Bytes out for each byte in. Annotations pack 5 to 30 times, a bomb of zeros 1,000 times."""
FREE = 32 << 20
"""Bytes that may come out at any ratio: a small file of repeated rows packs well. Of archives of videos the same."""
_BLOCK = 1 << 20

READABLE = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
"""Suffixes of annotation files, each with its reader. Each of them may be followed by .gz."""

PARQUET = b"PAR1"
"""What a Parquet file begins and ends with."""

_MAGIC = {
    PARQUET: "a Parquet file. Cure: name it .parquet, or set reader = 'parquet'",
    b"PK\x03\x04": "a zip archive. Cure: name it .zip; a spreadsheet has to be saved as CSV",
    b"\x1f\x8b": "a gzip archive. Cure: name it .gz behind its suffix, or gunzip it",
    b"7z\xbc\xaf": "a 7z archive. Cure: unpack it",
    b"Rar!": "a RAR archive. Cure: unpack it",
    b"BZh": "a bzip2 archive. Cure: unpack it",
    b"\xfd7zXZ": "an xz archive. Cure: unpack it",
    b"\x28\xb5\x2f\xfd": "a zstd archive. Cure: unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file. Cure: save it as CSV (UTF-8)",
    b"%PDF": "a PDF document. Cure: give the annotation file itself",
    b"\x80\x04": "a Python pickle. Cure: save it as JSON lines",
    b"SQLite format 3": "an SQLite database. Cure: save the table as CSV or JSON lines",
    b"\xff\xfe": "UTF-16 text. Cure: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text. Cure: save it as UTF-8",
    b"version https://git-lfs": "a Git LFS pointer, not the file. Cure: git lfs pull",
    b"404: Not Found": "a server's error message, not annotations. Cure: download the raw file",
    b"Entry not found": "a server's error message, not annotations. Cure: download the raw file",
}
_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|\?xml|head|body)", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_JUNK = re.compile(r"(?:^|/)(?:__MACOSX/|\.)")
"""What macOS lays into archives (`__MACOSX/`, `._x`, `.DS_Store`), and other hidden files."""
_ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar")

_DAMAGED = (gzip.BadGzipFile, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, UnicodeError, EOFError)
"""What the libraries raise for damaged archives, `UnicodeError` where a member has another name than the directory."""

ALLOWED = "Allowed: UTF-8 text as JSON, JSON lines, CSV or TSV, and Parquet"


@dataclass(slots=True)
class _Meter:
    """What came out of one archive so far, all members together, against its size on disk."""

    size: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Where bytes come from: a file, or a member of the archive that it is."""

    path: Path
    inside: str = ""
    opener: Callable[[], IO[bytes]] | None = None
    """Opens the member, or the unpacked file; none for a plain file."""
    packed: int = 0
    """Bytes that the member has in the archive, as far as its header is right."""
    meter: _Meter | None = None
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, compare=False, repr=False)
    """What was opened to read it: whoever reads an origin leaves this at the end, also where a fault ends it."""
    first_line: int = 1
    """Number of the line that the bytes begin with: over 1 for a stretch of a long file."""

    @property
    def name(self) -> str:
        """How messages call it: `set.json` or `set.zip!/a/b.json`."""
        return f"{self.path}{'!/' * bool(self.inside)}{self.inside}"

    @property
    def suffix(self) -> str:
        """Its suffix in lower case, that before .gz where there is one."""
        suffix, before = (PurePosixPath(part).suffix.lower() for part in (self._last, self._last[:-3]))
        return before if suffix == ".gz" else suffix

    @property
    def _last(self) -> str:
        return self.inside or self.path.name


def named(path: Path) -> Origin:
    """Return a file on disk as an origin; one named .gz is unpacked while it is read."""
    if path.suffix.lower() != ".gz":
        return Origin(path)
    size = path.stat().st_size
    return Origin(path, opener=lambda: cast(IO[bytes], gzip.open(path)), packed=size, meter=_Meter(size))


def blocks(origin: Origin, *, parquet: bool = False) -> Iterator[bytes]:
    """Yield a stream's bytes, the first after a look at what they are: text, or Parquet where that is asked for.

    Raises:
        DamagedFileError: empty, no text or Parquet, a damaged archive, or one that unpacks to more than is allowed.
        OSError: it cannot be opened or read.
    """
    count = 0
    for block in _raw(origin):
        if not count and origin.first_line == 1 and not (parquet and block.startswith(PARQUET)):
            _check_head(origin, block)
        count += len(block)
        yield block
    if not count:
        raise DamagedFileError(f"{origin.name}: the file is empty. Cure: get the file again")


def _raw(origin: Origin) -> Iterator[bytes]:
    """A stream's bytes, counted where they come out of an archive."""
    if origin.opener is None:
        file = origin.opened.enter_context(origin.path.open("rb"))
        yield from iter(lambda: file.read(_BLOCK), b"")
        return
    count = 0
    try:
        packed = origin.opened.enter_context(origin.opener())
        while block := packed.read(_BLOCK):
            count += len(block)
            _measure(origin, count, len(block))
            yield block
    except _DAMAGED as reason:
        what = " ".join(str(reason).split())[:200]
        raise DamagedFileError(
            f"{origin.name}: the archive is damaged or cut off after {count:,} bytes: {what}. Cure: get it again"
        ) from None
    except (NotImplementedError, RuntimeError) as reason:
        raise DamagedFileError(f"{origin.name}: not readable: {reason}. Cure: pack it as a plain zip") from None


def _measure(origin: Origin, count: int, fresh: int) -> None:
    """Refuse a bomb: too many bytes out of one member or archive, or too many for those that went in."""
    meter = origin.meter or _Meter(origin.packed)
    meter.total += fresh
    if count > MAX_UNPACKED:
        what = f"unpacks to over {MAX_UNPACKED >> 30} GB"
    elif meter.total > MAX_ARCHIVE:
        what = f"the archive unpacks to over {MAX_ARCHIVE >> 30} GB"
    elif count > FREE and count > MAX_RATIO * origin.packed:
        what = f"unpacks to over {MAX_RATIO} times its {origin.packed:,} bytes"
    elif meter.total > FREE and meter.total > MAX_RATIO * meter.size:
        what = f"the archive unpacks to over {MAX_RATIO} times its {meter.size:,} bytes"
    else:
        return
    raise _bomb(origin, what)


def _bomb(origin: Origin, what: str) -> DamagedFileError:
    """What to raise for more bytes than an annotation file would have."""
    return DamagedFileError(f"{origin.name}: {what}, as a zip bomb does. Cure: unpack it yourself if it is none")


def _check_head(origin: Origin, head: bytes) -> None:
    """Refuse what is no text at all: empty, an archive, a web page, a pointer, binary."""
    if not head[:_BLOCK].removeprefix(_BOM).strip() and len(head) < _BLOCK:
        raise DamagedFileError(f"{origin.name}: the file is empty. Cure: get the file again")
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise DamagedFileError(f"{origin.name}: this is {what}")
    if _WEB_PAGE.match(head):
        raise DamagedFileError(f"{origin.name}: this is a web page, not annotations. Cure: download the raw file")
    if b"\0" in head[:1000]:
        halves = [head[start:1000:2].count(b"\0") for start in (0, 1)]  # in UTF-16 one byte of each pair is empty
        if min(halves) == 0 and max(halves) * 3 > len(head[:1000]) and len(head) > 8:
            raise DamagedFileError(f"{origin.name}: this is UTF-16 text. Cure: save it as UTF-8")
        raise DamagedFileError(f"{origin.name}: this is a binary file (a NUL byte at {head.index(0)}). {ALLOWED}")


def lines(origin: Origin) -> Iterator[tuple[int, bytes]]:
    """Yield a text's lines with their numbers from 1, line ends kept, the byte order mark dropped.

    A lone carriage return ends a line too, as on old Macs.

    Raises:
        DamagedFileError: as `blocks`; a line over 64 MB, a NUL byte, a byte order mark that begins a later line.
    """
    for number, line in enumerate(_split(origin), origin.first_line):
        if number == 1:
            line = line.removeprefix(_BOM)  # noqa: PLW2901 - the rest of the line is the line
        if len(line) > MAX_LINE:
            raise DamagedFileError(
                f"{origin.name}: line {number} is longer than {MAX_LINE >> 20} MB. Cure: one record a line"
            )
        if line.startswith(_BOM):
            what = "begins with a byte order mark: files were joined here"
            raise DamagedFileError(f"{origin.name}: line {number} {what}. Cure: give them as files of their own")
        yield number, line


def _split(origin: Origin) -> Iterator[bytes]:
    """Lines out of blocks; no more of one is held than `MAX_LINE` and a block."""
    held: list[bytes] = []
    size = 0
    for block in blocks(origin):
        held.append(block)
        size += len(block)
        if size <= MAX_LINE and block.find(b"\n") < 0 and block.find(b"\r") < 0:
            continue
        parts = b"".join(held).splitlines(keepends=True)
        # The last one goes on in the next block, or its carriage return has its newline there.
        held = [] if parts[-1].endswith(b"\n") else [parts.pop()]
        size = sum(map(len, held))
        yield from parts
        if size > MAX_LINE:
            break
    yield from held


def decoded(origin: Origin, data: bytes, number: int) -> str:
    """Return the text of the line with that number.

    Raises:
        DamagedFileError: it is no UTF-8, or holds a NUL byte.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as reason:
        raise _undecodable(origin, reason, number) from None
    if "\0" in text:
        raise _binary(origin, number)
    return text


def texts(origin: Origin) -> Iterator[str]:
    """Yield a stream's text block by block, none of them empty, the byte order mark dropped.

    Raises:
        DamagedFileError: as `blocks` and `decoded`.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    number, mark = 1, _BOM
    try:
        for block in blocks(origin):
            text = decoder.decode(block.removeprefix(mark))
            mark = b""
            if "\0" in text:
                raise _binary(origin, number + text.count("\n", 0, text.index("\0")))
            if text:
                yield text
            number += text.count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as reason:
        raise _undecodable(origin, reason, number) from None


def _undecodable(origin: Origin, reason: UnicodeDecodeError, number: int) -> DamagedFileError:
    """What to raise for bytes that are no UTF-8, and begin at that line."""
    line = number + reason.object.count(b"\n", 0, reason.start)
    what = f"byte {reason.object[reason.start]:#04x} is not UTF-8 ({reason.reason})"
    return DamagedFileError(f"{origin.name}: line {line}: {what}. Cure: save the file as UTF-8")


def _binary(origin: Origin, number: int) -> DamagedFileError:
    """What to raise for a NUL byte in a text."""
    return DamagedFileError(f"{origin.name}: line {number} holds a NUL byte: damaged or binary. {ALLOWED}")


def members(path: Path, patterns: Sequence[str]) -> Iterator[Origin]:
    """Yield the members of a zip archive that the patterns name, every annotation file when there are none, sorted.

    Raises:
        DamagedFileError: no zip archive; a member that is encrypted, an archive itself, there twice, or named with
            `..` or an absolute path.
        InputError: nothing matches.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as reason:
        raise DamagedFileError(f"{path}: no zip archive, or cut off: {reason}. Cure: get the file again") from None
    with archive:
        infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
        _check_names(path, infos)
        found = [info for info in infos if wanted(info.filename, patterns)]
        if not found:
            asked = ", ".join(patterns) or ", ".join(READABLE)
            raise InputError(
                f"{path}: no member matches {asked}. It holds: {listed(info.filename for info in infos)}. "
                "Cure: set members in the spec"
            )
        meter = _Meter(path.stat().st_size)
        for info in sorted(found, key=lambda info: info.filename):
            yield _member(archive, path, info, meter)


def _member(archive: zipfile.ZipFile, path: Path, info: zipfile.ZipInfo, meter: _Meter) -> Origin:
    """One member, if it can be read at all."""
    origin = Origin(path, info.filename, lambda: archive.open(info), info.compress_size, meter)
    if info.flag_bits & 1:
        raise DamagedFileError(f"{origin.name}: this member is encrypted. Cure: unpack it with its password")
    if info.filename.lower().endswith(_ARCHIVES):
        raise DamagedFileError(f"{origin.name}: an archive in an archive. Cure: unpack the outer one")
    if info.file_size > max(FREE, MAX_RATIO * info.compress_size):
        # Its own header says so: no need to read a gigabyte first.
        raise _bomb(origin, f"unpacks to over {MAX_RATIO} times its {origin.packed:,} bytes")
    return origin


def _check_names(path: Path, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse names that point out of the archive, and two members of one name."""
    seen: set[str] = set()
    for info in infos:
        name = info.filename.replace("\\", "/")
        if name.startswith("/") or ".." in name.split("/") or re.match(r"[A-Za-z]:", name):
            raise DamagedFileError(
                f"{path}: the member {name[:200]!r} points out of the archive. Cure: get it from its authors"
            )
        if name in seen:
            raise DamagedFileError(f"{path}: the member {name[:200]!r} is there twice. Cure: pack it again")
        seen.add(name)


def wanted(name: str, patterns: Sequence[str]) -> bool:
    """Whether a member's path, or its last part, matches one of the patterns; junk of macOS never does.

    `*` stands for any characters, slashes too. Without patterns every annotation file is wanted, and every archive
    too, so that it is refused and not passed over.
    """
    if _JUNK.search(name):
        return False
    if not patterns:
        return name.lower().removesuffix(".gz").endswith((*READABLE, ".zip"))
    last = name.rpartition("/")[2]
    return any(fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(last, pattern) for pattern in patterns)


def listed(names: Iterable[str]) -> str:
    """The first ten names, for a message."""
    found = sorted(names)
    return ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
