"""The manifest of a folder far away, `SHA256SUMS`: what `sha256sum` writes and `sha256sum -c` checks. Pure.

A line is 64 hex digits, a blank, a blank or `*`, and the file's path below the folder. A path with a newline, a
carriage return or a backslash is escaped, and its line then begins with a backslash (coreutils, "md5sum: output
format").
"""

import re
from collections.abc import Iterable, Mapping

from benchcheck.errors import DamagedFileError

__all__ = ["MANIFEST", "clash", "fault_of", "read_sums", "sums_text"]

MANIFEST = "SHA256SUMS"

_LINE = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_PLAIN = {escaped: sign for sign, escaped in _ESCAPES.items()}
_LONGEST_NAME = 255
"""Bytes between two slashes: what a Linux file system takes."""
_LONGEST_PATH = 4000
_CURE = "Cure: get it again, or have the folder uploaded again"


def sums_text(sums: Mapping[str, str]) -> bytes:
    """Return the manifest of files (path to sha256), sorted by the bytes of the paths."""
    lines = [(_bytes(name), _line(name, digest)) for name, digest in sums.items()]
    return b"".join(line for _, line in sorted(lines))


def _line(name: str, digest: str) -> bytes:
    """One file's line."""
    escaped = re.sub(r"[\\\n\r]", lambda sign: _ESCAPES[sign[0]], name)
    return _bytes(f"{chr(92) if escaped != name else ''}{digest}  {escaped}\n")


def _bytes(text: str) -> bytes:
    """A path as the file system has it, also one that is no UTF-8."""
    return text.encode("utf-8", "surrogateescape")


def read_sums(data: bytes, where: str) -> dict[str, str]:
    """Return path to sha256 of a manifest.

    Args:
        data: the manifest's bytes.
        where: what to call it in a message.

    Raises:
        DamagedFileError: no manifest (a web page, a pointer, cut off), a path that leads out of the folder, one that is
            there twice with two hashes, or one that is a file and a folder at once.
    """
    if data.lstrip()[:1] == b"<":
        raise DamagedFileError(f"{where}: a web page stands where the manifest should be (a login?). {_CURE}")
    if data and not data.endswith(b"\n"):
        raise DamagedFileError(f"{where}: cut off in the middle of a line. {_CURE}")
    sums: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "surrogateescape").split("\n")[:-1], 1):
        name, digest = _parsed(line, f"{where}, line {number}")
        if sums.setdefault(name, digest) != digest:
            raise DamagedFileError(f"{where}, line {number}: {name[:200]!r} is there twice, with two hashes. {_CURE}")
    both = clash(sums)
    if both:
        raise DamagedFileError(f"{where}: {both[:200]!r} is a file and a folder at once. {_CURE}")
    return sums


def _parsed(line: str, where: str) -> tuple[str, str]:
    """Path and hash of one line."""
    found = _LINE.fullmatch(line)
    if found is None:
        allowed = "64 hex digits, two blanks and a path, as sha256sum writes them"
        raise DamagedFileError(f"{where}: {line[:80]!r} is no line of a manifest. Allowed: {allowed}. {_CURE}")
    name = found[3]
    if found[1]:
        name = re.sub(r"\\.?", lambda pair: _PLAIN.get(pair[0], "\0"), name)
    fault = fault_of(name)
    if fault:
        raise DamagedFileError(f"{where}: the path {name[:200]!r} {fault}: nothing is taken from there. {_CURE}")
    return name, found[2]


def fault_of(name: str) -> str:
    """Say what is wrong with a path below a folder, in a few words; nothing where it is a good one."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return "leads out of the folder"
    if "\0" in name or "" in parts or "." in parts:
        return "is no path of a file"
    if max(len(_bytes(part)) for part in parts) > _LONGEST_NAME or len(_bytes(name)) > _LONGEST_PATH:
        return "is longer than a file system takes"
    return ""


def clash(names: Iterable[str]) -> str:
    """Return a path that is a file and, for another one, a folder; nothing where there is none."""
    known = set(names)
    for name in sorted(known):
        above = name.rpartition("/")[0]
        while above:
            if above in known:
                return above
            above = above.rpartition("/")[0]
    return ""
