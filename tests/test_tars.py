"""Tar files: the same bytes everywhere, and nothing that is damaged or hostile passes for whole."""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.errors import DamagedFileError, StudyError
from benchcheck.tars import Member, hash_of, members_of, tar_bytes, write_tar

PIECES = [
    Member("k:0123456789abcdef/frames.json", b'{"version": 1}'),
    Member("k:0123456789abcdef/frame_0.jpg", bytes(range(256)) * 3),
    Member("k:0123456789abcdef@0-1500/empty", b""),
]


def contents(path: Path) -> dict[str, bytes]:
    return {name: content.read() for name, _, content in members_of(path)}


def made(*infos: tarfile.TarInfo, path: Path, data: bytes = b"", form: int = tarfile.PAX_FORMAT) -> Path:
    """A tar that Python writes, as others do."""
    with tarfile.open(path, "w", format=form) as tar:
        for info in infos:
            tar.addfile(info, io.BytesIO(data) if info.size else None)
    return path


def info(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.size, one.type = size, kind
    for key, value in more.items():
        setattr(one, key, value)
    return one


def test_the_bytes_of_a_tar_are_fixed(tmp_path: Path) -> None:
    """The same on every machine and with every Python: shards are compared by hash."""
    path = tmp_path / "a.tar"
    written = write_tar(path, [*PIECES, Member("दृश्य/\N{CLAPPER BOARD}.jpg", b"x"), Member("l" * 300, b"long")])
    assert written.sha256 == "59dbca44b52601995a9bf60dc7dffeeba019e0f696598faccecbdfd6a8a3d3da"
    assert (written.bytes, written.members) == (10240, 5)
    assert written.sha256 == hash_of(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_python_and_tar_write_of_the_same_is_the_same(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a.tar", tmp_path / "b.tar"
    write_tar(ours, PIECES)
    with tarfile.open(theirs, "w", format=tarfile.PAX_FORMAT) as tar:
        for member in PIECES:
            assert isinstance(member.source, bytes)
            tar.addfile(info(member.name, len(member.source), mode=0o644), io.BytesIO(member.source))
    assert ours.read_bytes() == theirs.read_bytes()
    subprocess.run(["tar", "-xf", ours, "-C", tmp_path], check=True)
    assert (tmp_path / PIECES[1].name).read_bytes() == PIECES[1].source


def test_files_on_disk_are_taken_without_their_times_and_owners(tmp_path: Path) -> None:
    files = []
    for number, when in enumerate((1, 2_000_000_000)):
        file = tmp_path / f"{number}.bin"
        file.write_bytes(b"z" * 3_000_000)
        os.utime(file, (when, when))
        file.chmod((0o600, 0o777)[number])
        files.append(write_tar(tmp_path / f"{number}.tar", [Member("a", file)]).sha256)
    assert files[0] == files[1]
    assert contents(tmp_path / "0.tar") == {"a": b"z" * 3_000_000}


def test_a_file_that_grows_is_taken_as_long_as_it_was_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\ntwo\nth")
    write_tar(tmp_path / "a.tar", [Member("log", tmp_path / "log", 8)])
    assert contents(tmp_path / "a.tar") == {"log": b"one\ntwo\n"}
    with pytest.raises(StudyError, match="was cut while it was packed"):
        write_tar(tmp_path / "b.tar", [Member("log", tmp_path / "log", 11)])
    assert not (tmp_path / "b.tar").exists()


@pytest.mark.parametrize("kind", ["gone", "folder", "pipe", "closed"])
def test_a_member_that_cannot_be_read_is_one_line(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "folder":
        source.mkdir()
    if kind == "pipe":
        os.mkfifo(source)
    if kind == "closed":
        source.symlink_to(source)
    with pytest.raises(StudyError, match=r"source: (not readable|no plain file)"):
        write_tar(tmp_path / "a.tar", [Member("first", b"x"), Member("a", source)])
    assert sorted(os.listdir(tmp_path)) == ([] if kind == "gone" else ["source"])


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a//b", "a/", "a\0b", "a\\b", "."])
def test_a_name_that_could_not_be_unpacked_is_never_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="could not be unpacked again"):
        write_tar(tmp_path / "a.tar", [Member(name, b"")])


def test_a_name_is_never_written_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="or is there twice"):
        write_tar(tmp_path / "a.tar", [Member("a", b""), Member("a", b"")])


PARTS = st.text(
    st.characters(blacklist_characters="/\\\0", blacklist_categories=()).filter(
        lambda sign: not 0xD800 <= ord(sign) < 0xDC80 and not 0xDD00 <= ord(sign) < 0xE000
    ),
    min_size=1,
    max_size=120,
).filter(lambda part: part not in (".", ".."))
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


def writable(name: str) -> bool:
    """Undecodable bytes of a file name (lone low surrogates) come back as they were; some others join to real text."""
    return os.fsdecode(os.fsencode(name)) == name


@settings(max_examples=60)
@given(st.dictionaries(NAMES.filter(writable), st.binary(max_size=1500), max_size=6), st.booleans())
def test_everything_comes_back(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], packed: bool) -> None:
    path = tmp_path_factory.mktemp("tar") / "a.tar"
    write_tar(path, [Member(name, data) for name, data in files.items()], packed=packed)
    assert contents(path) == files
    if packed:
        path.write_bytes(gzip.decompress(path.read_bytes()))
    assert path.stat().st_size % 10240 == 0
    taken = sum(tar_bytes(name, len(data)) for name, data in files.items())
    assert 0 < path.stat().st_size - taken <= 10240 + 512
    with tarfile.open(path) as tar:  # and Python reads what it can decode
        assert len(tar.getnames()) == len(files)


def test_over_eight_gigabytes_needs_an_extended_header(tmp_path: Path) -> None:
    """A sparse file of 9 GB is a member of a sparse tar: headers alone are read where a content is skipped."""
    size = 9 << 30
    path = tmp_path / "large.tar"
    head = tarfile.TarInfo("large")
    head.size, head.mode = size, 0o644
    with path.open("wb") as file:
        file.write(head.tobuf(tarfile.PAX_FORMAT))
        file.seek(size, os.SEEK_CUR)
        tail = io.BytesIO()
        with tarfile.open(fileobj=tail, mode="w", format=tarfile.GNU_FORMAT) as tar:
            tar.addfile(info("small", 3), io.BytesIO(b"abc"))
        file.write(tail.getvalue())
    assert [(name, size) for name, size, _ in members_of(path)] == [("large", size), ("small", 3)]
    assert tar_bytes("large", size) == size + 3 * 512
    # GNU tar writes a size of that kind in base 256.
    gnu = head.tobuf(tarfile.GNU_FORMAT)
    with path.open("r+b") as file:
        file.seek(2 * 512)
        file.write(gnu)
    with path.open("r+b") as file:
        file.write(info("first").tobuf(tarfile.GNU_FORMAT) + info("second").tobuf(tarfile.GNU_FORMAT))
    assert [(name, size) for name, size, _ in members_of(path)][2] == ("large", size)


def test_what_others_write_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / ("long" * 24)).write_bytes(b"1")
    (folder / "sub" / "दृश्य").write_bytes(b"22")
    for form in ("gnu", "pax", "ustar"):
        subprocess.run(["tar", f"--format={form}", "-cf", tmp_path / f"{form}.tar", "-C", folder, "sub"], check=True)
        found = contents(tmp_path / f"{form}.tar")
        assert found == {"sub/" + "long" * 24: b"1", "sub/दृश्य": b"22"}, form
    subprocess.run(["tar", "-czf", tmp_path / "z.tar", "-C", folder, "sub"], check=True)
    assert contents(tmp_path / "z.tar") == found
    old = info("v7", 2, tarfile.AREGTYPE)
    assert contents(made(old, path=tmp_path / "v7.tar", data=b"ab", form=tarfile.USTAR_FORMAT)) == {"v7": b"ab"}
    head = tarfile.TarInfo.create_pax_global_header({"comment": "0" * 40, "path": "everything"})
    (tmp_path / "git.tar").write_bytes(head + (tmp_path / "pax.tar").read_bytes())
    assert contents(tmp_path / "git.tar") == found


def test_contents_may_be_skipped_or_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    for packed in (False, True):
        write_tar(path, [Member(f"{number}", bytes([number]) * 3000) for number in range(4)], packed=packed)
        seen = []
        for name, size, content in members_of(path):
            assert size == 3000
            buffer = bytearray(2)
            if name == "1":
                assert content.read(5) == b"\1" * 5
                assert content.readinto(buffer) == 2  # type: ignore[attr-defined]
                assert buffer == b"\1\1"
                assert content.readable()
            if name == "2":
                assert content.read() == b"\2" * 3000
                assert content.read() == b""
            seen.append(name)
        assert seen == ["0", "1", "2", "3"]


def test_an_open_file_is_read_from_its_beginning_and_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, PIECES)
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == hash_of(path)
        assert [name for name, _, _ in members_of(path, file)] == [piece.name for piece in PIECES]
        assert [name for name, _, _ in members_of(path, file)] == [piece.name for piece in PIECES]
        assert not file.closed


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_that_is_cut_anywhere_is_told(tmp_path: Path, packed: bool) -> None:
    """Also between two members, and in the zeros that end it, where Python's own reader sees nothing wrong."""
    path = tmp_path / "a.tar"
    write_tar(path, PIECES, packed=packed)
    whole = path.read_bytes()
    members = 3 * 512 + 512 + 1024
    must = len(whole) if packed else members + 1024
    for end in range(0, must, 3 if packed else 64):
        path.write_bytes(whole[:end])
        with pytest.raises(DamagedFileError, match=r"a\.tar: no tar file, cut off or damaged: .* Cure"):
            contents(path)
        with pytest.raises(DamagedFileError, match="no tar file, cut off or damaged"):
            list(members_of(path))
    path.write_bytes(whole[:must])
    assert len(contents(path)) == 3


def test_a_flipped_byte_of_a_header_or_of_the_end_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, PIECES)
    whole = path.read_bytes()
    heads = [0, 1024, 2560, 3072, 4096]
    for start in heads:
        for at in (*range(start, start + 512, 7), start + 511):
            harmed = bytearray(whole)
            harmed[at] ^= 0x04
            path.write_bytes(harmed)
            with pytest.raises(DamagedFileError):
                contents(path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, "a") for kind in (b"1", b"2", b"3", b"4", b"6")),
        *((kind, "a") for kind in (tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"V", b"M", b"D", b"~")),
        *((tarfile.REGTYPE, name) for name in ("/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a\\b", "..", "a/.")),
    ],
)  # fmt: skip
def test_hostile_members_are_refused(tmp_path: Path, kind: bytes, name: str) -> None:
    path = made(info("good", 1), info(name, 0, kind, linkname="good"), path=tmp_path / "a.tar", data=b"g")
    seen = []
    with pytest.raises(DamagedFileError, match=r"the member .* not unpacked"):
        seen += [each for each, _, _ in members_of(path)]
    assert seen == []


def test_a_sparse_member_of_gnu_tar_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 20)
    for form in ("gnu", "pax"):
        path = tmp_path / f"{form}.tar"
        subprocess.run(["tar", "-S", f"--format={form}", "-cf", path, "-C", tmp_path, "holes"], check=True)
        with pytest.raises(DamagedFileError, match="no plain file"):
            contents(path)


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    path = made(info("a", 1), info("b"), info("a", 1), path=tmp_path / "a.tar", data=b"x")
    with pytest.raises(DamagedFileError, match=r"'a' is there twice"):
        contents(path)


def raw(*headers: bytes, path: Path, end: bytes = bytes(1024)) -> Path:
    path.write_bytes(b"".join(headers) + end)
    return path


def extended(text: bytes, kind: bytes = tarfile.XHDTYPE, size: int | None = None) -> bytes:
    head = info("x", len(text) if size is None else size, kind).tobuf(tarfile.USTAR_FORMAT)
    return head + text + bytes(-len(text) % 512)


PLAIN = info("plain").tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(
    "text",
    [
        b"no record\n", b"0 =\n", b"999999 path=a\n", b"9 path=a\n\n", b"11 path=abcX", b"5 a=\nX", b"-5 a=b\n",
        b"8 pathab\n", b"12 size=-100\n", b"11 size=1e9\n", b"30 size=9999999999999999999999\n", b"\xb2 a=b\n",
    ],
)  # fmt: skip
def test_an_extended_header_that_is_none_is_told(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DamagedFileError, match="cut off or damaged"):
        contents(raw(extended(text), PLAIN, path=tmp_path / "a.tar"))


def test_extended_headers_give_names_that_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    assert contents(raw(extended(b"14 path=a/b/c\n"), PLAIN, path=path)) == {"a/b/c": b""}
    assert contents(raw(extended(b"long/name\0", tarfile.GNUTYPE_LONGNAME), PLAIN, path=path)) == {"long/name": b""}
    assert contents(raw(extended(b"somewhere\0", tarfile.GNUTYPE_LONGLINK), PLAIN, path=path)) == {"plain": b""}
    for text in (b"18 path=../../etc\n", b"15 path=/a/b/c\n", b"8 path=\n", b"14 path=a\0b/c\n"):
        with pytest.raises(DamagedFileError, match="leads out"):
            contents(raw(extended(text), PLAIN, path=path))
    with pytest.raises(DamagedFileError, match="a header without its member"):
        contents(raw(extended(b"14 path=a/b/c\n"), path=path))


def test_a_huge_extended_header_is_not_read(tmp_path: Path) -> None:
    """Python's reader takes all that such a header announces into memory."""
    for kind in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
        path = raw(extended(b"", kind, size=1 << 32), path=tmp_path / "a.tar")
        with path.open("r+b") as file:
            file.truncate(1 << 33)
        tracemalloc.start()
        with pytest.raises(DamagedFileError, match=r"an extended header of 4,294,967,296 bytes"):
            contents(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_a_negative_size_is_refused(tmp_path: Path) -> None:
    head = bytearray(info("a").tobuf(tarfile.GNU_FORMAT))
    head[124:136] = b"\xff" * 12
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    with pytest.raises(DamagedFileError, match="has no size"):
        contents(raw(bytes(head), path=tmp_path / "a.tar"))


def test_something_behind_the_end_is_told(tmp_path: Path) -> None:
    for end in (bytes(512) + b"x" * 512, bytes(1024) + b"x", bytes(1 << 20) + PLAIN):
        with pytest.raises(DamagedFileError, match="something lies behind its end"):
            contents(raw(PLAIN, path=tmp_path / "a.tar", end=end))
    with pytest.raises(DamagedFileError, match="before its own end"):
        contents(raw(PLAIN, path=tmp_path / "a.tar", end=bytes(512)))


def bomb(path: Path, size: int, member: bool) -> Path:
    """A gzip of zeros: inside one member, or behind the end."""
    with gzip.open(path, "wb") as file:
        if member:
            file.write(info("zeros", size).tobuf(tarfile.PAX_FORMAT))
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
        file.write(bytes(10240))
    return path


@pytest.mark.parametrize("member", [True, False])
def test_a_bomb_is_refused_before_it_goes_off(tmp_path: Path, member: bool) -> None:
    path = bomb(tmp_path / "a.tar.gz", 100 << 20, member)
    taken = 0

    def take() -> None:
        nonlocal taken
        for _, _, content in members_of(path):
            while data := content.read(1 << 20):
                taken += len(data)

    with pytest.raises(DamagedFileError, match="unpacks to over 200 times its size"):
        take()
    assert taken <= 64 << 20
    with pytest.raises(DamagedFileError, match="unpacks to over 200 times its size"):
        list(members_of(path))


def test_rows_that_pack_well_are_no_bomb(tmp_path: Path) -> None:
    rows = b'{"item_id": "a_0", "status": "ok"}\n' * 500_000
    write_tar(tmp_path / "a.tar.gz", [Member("rows", rows)], packed=True)
    assert (tmp_path / "a.tar.gz").stat().st_size * 200 < len(rows)
    assert contents(tmp_path / "a.tar.gz") == {"rows": rows}


@pytest.mark.parametrize(
    "data", [b"", b"x", b"<!DOCTYPE html><html></html>", b"version https://git-lfs.github.com/spec/v1\n" * 30,
             b"PK\3\4" + bytes(600), b"\x1f\x8b", b"\x1f\x8b\x08" + b"\xff" * 600, b"\0", b"\xff" * 10240],
)  # fmt: skip
def test_files_that_are_no_tar(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tar").write_bytes(data)
    with pytest.raises(DamagedFileError, match=r"a\.tar: no tar file, cut off or damaged"):
        contents(tmp_path / "a.tar")


@pytest.mark.parametrize("kind", ["gone", "folder", "pipe", "loop"])
def test_what_is_no_file_is_one_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.tar"
    makers: dict[str, Callable[[], None]] = {
        "gone": lambda: None,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path),
    }
    makers[kind]()
    with pytest.raises(DamagedFileError, match=r"a\.tar: .* Cure"):
        contents(path)


def test_what_a_reader_of_members_raises_is_its_own(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", PIECES)

    def take() -> None:
        for _ in members_of(tmp_path / "a.tar"):
            raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        take()


def test_a_full_disk_leaves_what_was_there(small_disk: Path) -> None:
    path = small_disk / "a.tar"
    write_tar(path, PIECES)
    before = path.read_bytes()
    with pytest.raises(StudyError, match="the disk is full"):
        write_tar(path, [Member("a", b"x" * 100_000)])
    assert path.read_bytes() == before
    assert os.listdir(small_disk) == ["a.tar"]
