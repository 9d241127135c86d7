"""Archives of every kind, healthy and hostile: what is in them is listed, and comes out, or is told why not."""

import io
import random
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchcheck.video.faults import VideoError
from benchcheck.video.sources.archives import Contents, contents_of
from benchcheck.video.sources.joined import Joined, content, data_span, reading, solid_content, solid_stream
from benchcheck.video.task import Member

from .packing import PACKINGS, link_in_tar, link_in_zip, packed, split, tarred, zipped

FILES = {f"videos/{n}.mp4": random.Random(n).randbytes(3000 * n + 1) for n in range(6)}


def listing(path: Path, data: bytes) -> Contents:
    path.write_bytes(data)
    return contents_of(path.name, (str(path),))


def bytes_of(member: Member) -> bytes:
    with reading(member) as source:
        if not member.solid:
            return b"".join(content(source, member))
        with solid_stream(source) as stream:
            return b"".join(solid_content(stream, member))


def fault_of(member: Member) -> VideoError:
    with pytest.raises(VideoError) as raised:
        bytes_of(member)
    return raised.value


@pytest.mark.parametrize("name", PACKINGS)
def test_members_come_out_as_they_went_in(tmp_path: Path, name: str) -> None:
    found = listing(tmp_path / name, packed(name, FILES))
    assert found.fault is None
    assert {member.path: bytes_of(member) for member in found.members} == FILES
    assert {member.name for member in found.members} == {f"{name}!/{path}" for path in FILES}


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("endings", [[".001", ".002", ".003"], [f".part-a{letter}" for letter in "abcdefghijklm"]])
def test_a_split_archive_is_read_over_its_parts(tmp_path: Path, name: str, endings: list[str]) -> None:
    split(tmp_path / name, packed(name, FILES), endings)
    found = contents_of(name, tuple(str(tmp_path / (name + ending)) for ending in endings))
    assert found.fault is None
    assert {member.path: bytes_of(member) for member in found.members} == FILES


def test_a_stored_member_stands_in_one_part_or_in_none(tmp_path: Path) -> None:
    data = packed("plain.tar", {"a.mp4": b"a" * 9000, "b.mp4": b"b" * 5000})
    split(tmp_path / "t.tar", data, [".0", ".1", ".2"])
    parts = tuple(str(tmp_path / f"t.tar.{n}") for n in range(3))
    [a, b] = contents_of("t.tar", parts).members
    with Joined(parts) as source:
        assert source.size == len(data)
        assert source.within(0, 100) == (parts[0], (0, 100))
        spans = {member.path: source.within(*data_span(source, member)) for member in (a, b)}
        assert spans["a.mp4"] is None  # the first part ends in it
        last = source.starts[1]
        assert source.within(last, last + 5) == (parts[1], (0, 5))
        assert source.within(source.size, source.size + 1) is None
        assert source.pread(source.size, 9) == b""
        for whence, at in ((io.SEEK_SET, 7), (io.SEEK_CUR, 14), (io.SEEK_END, source.size + 7)):
            assert source.seek(7, whence) == source.tell() == at
        assert source.seek(-(10**9), io.SEEK_CUR) == 0
    assert (bytes_of(a), bytes_of(b)) == (b"a" * 9000, b"b" * 5000)


def test_zip64_and_an_archive_that_unpacks_itself(tmp_path: Path) -> None:
    """The second begins as a program, and its member lies behind 5 GB: offsets of 64 bits throughout."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, archive.open("a.mp4", "w", force_zip64=True) as member:
        member.write(b"video")
    with (tmp_path / "y.zip").open("wb") as file:
        file.write(b"#!/bin/sh\n")
        file.truncate(5 << 30)
    with zipfile.ZipFile(tmp_path / "y.zip", "a") as archive:
        archive.writestr("a.mp4", b"video")
    for name in ("x.zip", "y.zip"):
        [found] = contents_of(name, (str(tmp_path / name),)).members
        assert bytes_of(found) == b"video"
        assert found.at == (5 << 30 if name == "y.zip" else 0)


def test_names_are_made_plain_and_junk_is_left_out(tmp_path: Path) -> None:
    names = ["./a.mp4", "in//b.mp4", "win\\c.mp4", "नमस्ते 'q' \"x\"\n.mp4", "__MACOSX/._a.mp4", "in/._b.mp4", "in/"]
    for name in ("x.zip", "x.tar"):
        found = listing(tmp_path / name, packed(name, dict.fromkeys(names, b"x")))
        paths = [member.path for member in found.members]
        assert paths[:4] == ["a.mp4", "in/b.mp4", "win/c.mp4", "नमस्ते 'q' \"x\"\n.mp4"]
        assert all(member.bad == "" for member in found.members)
        assert not any("._" in path for path in paths)


def test_utf_8_names_that_do_not_say_so(tmp_path: Path) -> None:
    """As macOS writes them: Python reads such a name as code page 437."""
    data = zipped({"é.mp4": b"x"})
    at = data.index(b"PK\x01\x02")
    plain = bytearray(data)
    plain[7] &= ~8  # the flag that says UTF-8, in the local header and in the directory
    plain[at + 9] &= ~8
    assert [member.path for member in listing(tmp_path / "x.zip", bytes(plain)).members] == ["é.mp4"]
    latin = bytes(plain).replace("é".encode(), b"\x82\xff")
    assert [member.path for member in listing(tmp_path / "x.zip", latin).members] == ["é\xa0.mp4"]


@pytest.mark.parametrize("name", ["../a.mp4", "/etc/a.mp4", "in/../../a.mp4", "C:/a.mp4", "..\\a.mp4"])
def test_names_that_lead_out_are_told(tmp_path: Path, name: str) -> None:
    for archive in ("x.zip", "x.tar"):
        [member] = listing(tmp_path / archive, packed(archive, {name: b"x"})).members
        assert member.bad == "its name leads out of the archive"


def test_links_and_devices_are_no_files(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(*link_in_zip("a.mp4", "/etc/passwd"))
    [member] = listing(tmp_path / "x.zip", buffer.getvalue()).members
    assert member.bad == "it is a symbolic link or a device"
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
    data = tarred({str(n): link_in_tar(f"{n}.mp4", "/etc/passwd", kind) for n, kind in enumerate(kinds)})
    assert [member.bad for member in listing(tmp_path / "x.tar", data).members] == ["it is a link or a device"] * 4


def test_encrypted_members_and_bombs_are_told_by_the_directory(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.mp4": b"x" * 100}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert listing(tmp_path / "x.zip", bytes(data)).members[0].bad == "it is encrypted"
    bomb = zipped({"a.mp4": bytes(40 << 20)}, zipfile.ZIP_DEFLATED)
    assert "as a bomb does" in listing(tmp_path / "x.zip", bomb).members[0].bad
    data = bytearray(zipped({"a.mp4": b"x" * 100}))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 99)
    assert listing(tmp_path / "x.zip", bytes(data)).members[0].bad == "its two sizes differ"


def test_a_packed_tar_that_is_a_bomb(tmp_path: Path) -> None:
    found = listing(tmp_path / "x.tar.gz", packed("x.tar.gz", {"a.mp4": bytes(60 << 20), "b.mp4": b"x"}))
    assert found.fault is not None
    assert found.fault.status == "bad_member"
    assert "as a bomb does" in found.fault.reason


def test_a_member_that_lies_about_its_length(tmp_path: Path) -> None:
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed_bytes = body.compress(b"x" * 5000) + body.flush()
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, 0, len(packed_bytes), 10, 1, 0) + b"a"
    (tmp_path / "x.zip").write_bytes(local + packed_bytes)
    member = Member("x.zip", (str(tmp_path / "x.zip"),), "a", 0, 10, len(packed_bytes), 8, 0)
    assert fault_of(member).status == "archive_damaged"
    longer = Member("x.zip", member.parts, "a", 0, 6000, len(packed_bytes), 8, 0)
    assert "has not the 6,000 bytes" in fault_of(longer).reason
    other = Member("x.zip", member.parts, "a", 0, 5000, len(packed_bytes), 8, 1)
    assert "checksum" in fault_of(other).reason
    right = Member("x.zip", member.parts, "a", 0, 5000, len(packed_bytes), 8, zlib.crc32(b"x" * 5000))
    assert bytes_of(right) == b"x" * 5000
    lzma = Member("x.zip", member.parts, "a", 0, 5000, len(packed_bytes), 14, 1)
    assert fault_of(lzma).status == "bad_member"
    beyond = Member("x.zip", member.parts, "a", 0, 5000, 10**6, 8, 1)
    assert "ends at byte" in fault_of(beyond).reason
    no_header = Member("x.zip", member.parts, "a", 5, 5000, 10, 8, 1)
    assert "no header" in fault_of(no_header).reason
    gone = Member("x.zip", (str(tmp_path / "gone.zip"),), "a", 0, 1, 1)
    assert fault_of(gone).status == "missing"
    folder = Member("x.zip", (str(tmp_path),), "a", 0, 1, 1)
    assert fault_of(folder).status == "unreadable"


def test_a_member_that_packs_well_comes_out_in_blocks(tmp_path: Path) -> None:
    """Blocks are a megabyte at most, whatever a block of the archive unpacks to."""
    data = b"0123456789abcdef" * (3 << 16)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        [member] = listing(tmp_path / "x.zip", zipped({"a": data}, method)).members
        with reading(member) as source:
            blocks = list(content(source, member))
        assert b"".join(blocks) == data
        assert max(map(len, blocks)) <= 1 << 20


@pytest.mark.parametrize("name", PACKINGS)
def test_a_cut_archive_gives_what_stands_before_the_cut(tmp_path: Path, name: str) -> None:
    data = packed(name, FILES)
    for share in (0.05, 0.2, 0.5, 0.75):
        found = listing(tmp_path / name, data[: int(len(data) * share)])
        assert found.fault is not None, share
        assert found.fault.status == "archive_damaged"
        assert "\n" not in found.fault.reason
        for member in found.members[:-1]:
            assert bytes_of(member) == FILES[member.path]
        for member in found.members[-1:]:
            try:
                assert bytes_of(member) == FILES[member.path]
            except VideoError as fault:
                assert fault.status == "archive_damaged"  # noqa: PT017 - either is right


def test_a_tar_without_its_end_mark_and_one_with_a_torn_header(tmp_path: Path) -> None:
    data = tarred(FILES)
    last = listing(tmp_path / "x.tar", data).members[-1]
    end = last.at + -(-last.size // 512) * 512
    found = listing(tmp_path / "x.tar", data[:end])
    assert len(found.members) == len(FILES)
    assert "end mark is missing" in str(found.fault)
    third = listing(tmp_path / "x.tar", data).members[3]
    torn = bytearray(data)
    torn[third.at - 512 : third.at - 400] = b"\xff" * 112
    found = listing(tmp_path / "x.tar", bytes(torn))
    assert len(found.members) == 3
    assert "something else than a header" in str(found.fault)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "lfs_pointer"),
        (b"<!DOCTYPE html><html>429</html>", "html"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(600), "archive"),
        (b"Rar!" + bytes(600), "archive"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), "archive"),
        (bytes(5000), "not_a_video"),
        (random.Random(0).randbytes(5000), "archive_damaged"),
        (b"PK\x05\x06" + bytes(17), "archive_damaged"),
        (b"\x1f\x8b" + bytes(600), "archive_damaged"),
    ],
)
def test_what_is_no_archive(tmp_path: Path, data: bytes, status: str) -> None:
    found = listing(tmp_path / "x.zip", data)
    assert (found.members, found.fault and found.fault.status) == ([], status)
    assert "x.zip" in str(found.fault)


def test_an_archive_that_is_not_there_or_closed(tmp_path: Path) -> None:
    gone = contents_of("x.zip", (str(tmp_path / "x.zip"),)).fault
    closed = contents_of("x", (str(tmp_path),)).fault
    assert (gone and gone.status, closed and closed.status) == ("missing", "unreadable")


def test_a_zip_split_by_zip_itself_has_a_cure(tmp_path: Path) -> None:
    data = bytearray(zipped({"a.mp4": b"x"}))
    at = data.rindex(b"PK\x05\x06")
    data[at + 4 : at + 8] = struct.pack("<HH", 1, 1)
    fault = listing(tmp_path / "x.zip", bytes(data)).fault
    # Python reads the directory in spite of it where it can; where it cannot, the cure is told.
    assert fault is None or "zip -s 0" in fault.reason


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(PACKINGS), st.integers(0, 10**6), st.binary(min_size=1, max_size=6))
def test_changed_bytes_never_break_the_reader(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: int, new: bytes
) -> None:
    data = bytearray(packed(name, {"a.mp4": b"video" * 100, "in/b.mp4": b"x" * 2000}))
    at %= len(data)
    data[at : at + len(new)] = new
    path = tmp_path_factory.mktemp("x") / name
    found = listing(path, bytes(data))
    assert found.fault is None or "\n" not in found.fault.reason
    for member in found.members:
        if not member.bad:
            try:
                bytes_of(member)
            except VideoError as fault:
                assert fault.status in ("archive_damaged", "bad_member")  # noqa: PT017 - or it is whole


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.bz2", "a.tar.xz"])
def test_a_changed_byte_of_a_packed_tar_is_never_a_changed_video(tmp_path: Path, name: str) -> None:
    whole = packed(name, FILES)
    faults = 0
    for at in range(2, len(whole), 397):
        found = listing(tmp_path / name, whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :])
        assert {member.path: bytes_of(member) for member in found.members if not member.bad} in ({}, FILES)
        if not found.members:
            assert found.fault is not None
            faults += found.fault.status == "archive_damaged"
    assert faults > 0.9 * len(range(2, len(whole), 397))


@pytest.mark.parametrize("behind", [b"\0" * 4096, b"-----BEGIN PGP SIGNATURE-----"])
def test_what_stands_behind_a_whole_packed_tar_does_not_matter(tmp_path: Path, behind: bytes) -> None:
    found = listing(tmp_path / "a.tar.gz", packed("a.tar.gz", FILES) + behind)
    assert found.fault is None
    assert {member.path: bytes_of(member) for member in found.members} == FILES
