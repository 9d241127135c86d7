"""Archives for tests: the same files as zip and tar in every way that datasets ship them."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

PACKINGS = ("stored.zip", "deflated.zip", "bzip2.zip", "plain.tar", "a.tar.gz", "a.tgz", "a.tar.bz2", "a.tar.xz")
_METHODS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2}


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files.items():
            info = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(data, bytes):
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return buffer.getvalue()


def packed(name: str, files: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive, by what its name says that it is."""
    if name.endswith(".zip"):
        return zipped(files, _METHODS.get(name.partition(".")[0], zipfile.ZIP_STORED))
    data = tarred(files)
    ways = {"gz": gzip.compress, "tgz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    return ways.get(name.rpartition(".")[2], bytes)(data)


def link_in_zip(name: str, target: str) -> tuple[zipfile.ZipInfo, str]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target


def link_in_tar(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def split(path: Path, data: bytes, endings: list[str]) -> None:
    """Write data in as many parts of one size as there are endings."""
    size = -(-len(data) // len(endings))
    for number, ending in enumerate(endings):
        path.with_name(path.name + ending).write_bytes(data[number * size : (number + 1) * size])
