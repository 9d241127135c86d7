"""Unpacking shards: verified in full first, refused by name, whole sets only, going on after any stop."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Frames
from benchcheck.errors import DamagedFileError, StudyError
from benchcheck.inputs import Normalize
from benchcheck.study import Study
from benchcheck.tars import Member, hash_of
from benchcheck.video.frames import Drawn, publish_frames
from benchcheck.video.shards import sets as shard_sets
from benchcheck.video.shards import unpacking
from benchcheck.video.shards.packing import ShardsProgress
from benchcheck.video.shards.unpacking import unpack_frames
from benchcheck.video.store import Outcome, last_outcomes, record
from killed import dies, steps
from studies import Run

from .shard_studies import (
    COUNT,
    KEYS,
    contents,
    draw,
    hostile,
    item,
    members_of_set,
    packed,
    pool,
    resealed,
)

TOML = 'study_version = 1\n[frames]\ncount = 3\nsingle = 1\n[models.8b]\nmodel = "m"\n[models.2b]\nmodel = "m"\n'


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    made = pool(make_study(Frames(count=COUNT, single=1)))
    draw(made, KEYS)
    return made


@pytest.fixture
def shards(study: Study, tmp_path: Path) -> Path:
    """Shards of the study's frames; there are at least four."""
    folder = packed(study, tmp_path / "shards")
    assert len(list(folder.glob("*.tar"))) >= 4
    return folder


@pytest.fixture
def other(study: Study, tmp_path: Path) -> Study:
    """A study with the same items, and no frames."""
    root = tmp_path / "other"
    root.mkdir()
    (root / "benchcheck.toml").write_text(TOML)
    return pool(Study(root, study.config))


def keys_in(shard: Path) -> list[str]:
    with tarfile.open(shard) as tar:
        return list(dict.fromkeys(name.partition("/")[0] for name in tar.getnames()))


def test_what_was_packed_comes_out_byte_by_byte(study: Study, other: Study, shards: Path) -> None:
    heard: list[ShardsProgress] = []
    summary = unpack_frames(other, shards, progress=heard.append)
    assert contents(other.frames) == contents(study.frames)
    assert (summary.made, summary.sets, summary.skipped, summary.missing) == (10, 10, 0, 0)
    assert summary.lines()[0].startswith("10 sets of frames unpacked now (")
    assert len(summary.lines()) == 1
    assert heard[-1].done == heard[-1].total == 2 * summary.bytes
    assert [one.done for one in heard] == sorted(one.done for one in heard)
    for path in other.frames.iterdir():
        assert path.stat().st_mode & 0o055, "readable by others as the umask says"


def test_the_video_manifest_says_ready(study: Study, other: Study, shards: Path) -> None:
    key = KEYS[0]
    record(other, [Outcome("b::::0.mp4", key, "missing", error="no file")])
    unpack_frames(other, shards)
    outcomes = last_outcomes(other)
    assert {frames_key: one.status for frames_key, one in outcomes.items()} == dict.fromkeys(KEYS, "ready")
    assert {one.content_hash for one in outcomes.values()} == {f"hash of {frames_key}" for frames_key in KEYS}
    lines = len(other.video_manifest.read_bytes().splitlines())
    unpack_frames(other, shards)
    assert len(other.video_manifest.read_bytes().splitlines()) == lines == 11


def test_without_a_pool_frames_come_too(study: Study, other: Study, shards: Path) -> None:
    other.pool_file.unlink()
    assert unpack_frames(other, shards).made == 10
    assert last_outcomes(other) == {}


def test_again_reads_only_headers(other: Study, shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack_frames(other, shards)
    monkeypatch.setattr(unpacking, "_one_shard", None)
    again = unpack_frames(other, shards)
    assert (again.made, again.skipped) == (0, again.shards)
    assert again.lines() == [
        "0 sets of frames unpacked now (0 shards, 0 bytes)",
        f"unpacked before: {again.shards} shards, of which every set is there and whole",
    ]


def test_whole_sets_stay_and_damaged_ones_are_replaced(study: Study, other: Study, shards: Path) -> None:
    unpack_frames(other, shards)
    mine, cut, gone = (other.frames / key for key in KEYS[:3])
    stamp = mine.stat().st_mtime_ns
    (cut / "frame_1.jpg").write_bytes(b"cut")
    shutil.rmtree(gone)
    summary = unpack_frames(other, shards)
    assert summary.made == 2
    assert contents(other.frames) == contents(study.frames)
    assert mine.stat().st_mtime_ns == stamp


def test_a_manifest_of_the_protocol_alone_will_do(study: Study, other: Study, shards: Path) -> None:
    def plain(table: dict[str, Any]) -> None:
        for name in ("benchcheck", "version", "n_sets", "bytes", "frames"):
            del table[name]
        for shard in table["shards"]:
            del shard["n_sets"]

    resealed(shards, plain)
    assert unpack_frames(other, shards).made == 10
    again = unpack_frames(other, shards)
    assert (again.made, again.skipped) == (0, 0), "how many sets it has is not said: it is read in full"
    assert contents(other.frames) == contents(study.frames)


def test_verifying_alone_unpacks_nothing(other: Study, shards: Path) -> None:
    heard: list[ShardsProgress] = []
    summary = unpack_frames(other, shards, verify_only=True, progress=heard.append)
    assert heard[-1].done == heard[-1].total == summary.bytes
    assert summary.lines()[0].startswith(f"{summary.shards} shards with 10 sets of frames: all as frames_manifest.json")
    assert not other.frames.exists()
    unpack_frames(other, shards)
    assert unpack_frames(other, shards, verify_only=True).sets == 10


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def cut_at_a_member(path: Path) -> None:
    """Where Python's tarfile sees a clean end: right before the last set."""
    last = keys_in(path)[-1]
    with tarfile.open(path) as tar:
        end = next(one.offset for one in tar if one.name == f"{last}/frames.json")
    path.write_bytes(path.read_bytes()[:end])


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "header": (lambda path: flipped(path, 100), "sha256 is"),
    "picture": (lambda path: flipped(path, 4000), "sha256 is"),
    "end": (lambda path: flipped(path, path.stat().st_size - 1), "sha256 is"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:7000]), "7,000 bytes instead of"),
    "clean cut": (cut_at_a_member, ".* bytes instead of"),
    "empty": (lambda path: path.write_bytes(b""), "0 bytes instead of"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + bytes(512)), ".* bytes instead of"),
    "missing": (Path.unlink, "No such file"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "no plain file"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "no plain file"),
    "dangling": (lambda path: (path.unlink(), path.symlink_to("nowhere")), "No such file"),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("verify", [False, True])
def test_a_damaged_shard_is_named_and_nothing_of_it_unpacked(
    study: Study, other: Study, shards: Path, harm: str, verify: bool
) -> None:
    path = shards / "frames_001.tar"
    hurt, whole = keys_in(path), path.read_bytes()
    harming, told = HARMS[harm]
    harming(path)
    with pytest.raises(DamagedFileError, match=rf"frames_001\.tar: {told}.*Cure: get this file again") as found:
        unpack_frames(other, shards, verify_only=verify)
    assert "\n" not in str(found.value)
    assert "frames_000.tar" not in str(found.value)
    there = set() if verify else set(KEYS) - set(hurt)
    assert other.frames_ready() == there
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.write_bytes(whole)
    assert unpack_frames(other, shards).made == 10 - len(there)
    assert contents(other.frames) == contents(study.frames)


def test_a_link_to_a_shard_is_followed(study: Study, other: Study, shards: Path, tmp_path: Path) -> None:
    """A hub's cache is made of links."""
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in shards.glob("frames_*"):
        (linked / path.name).symlink_to(path)
    assert unpack_frames(other, linked).made == 10


def test_many_damaged_shards_are_one_line(other: Study, study: Study, tmp_path: Path) -> None:
    folder = packed(study, tmp_path / "tiny", shard_bytes=1)
    for path in folder.glob("frames_*.tar"):
        flipped(path, 600)
    with pytest.raises(DamagedFileError, match=r"; and 2 more\. Nothing of them is unpacked") as found:
        unpack_frames(other, folder)
    assert len(str(found.value)) < 3000
    assert not other.frames_ready()


def test_a_shard_that_is_not_listed_is_named(other: Study, shards: Path) -> None:
    shutil.copy(shards / "frames_000.tar", shards / "frames_099.tar")
    with pytest.raises(DamagedFileError, match=r"frames_099\.tar: not in frames_manifest\.json\. Nothing of it is"):
        unpack_frames(other, shards)
    assert other.frames_ready() == set(KEYS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda table: table["shards"][0].update(file="../frames_000.tar"), "shards.0..file"),
        (lambda table: table["shards"][0].update(file="/etc/passwd"), "shards.0..file"),
        (lambda table: table["shards"][1].update(file="frames_000.tar"), "listed twice"),
        (lambda table: table.update(version=9), "version 9"),
        (lambda table: table["shards"][0].update(sha256="0" * 64), r"frames_000\.tar: sha256 is .* instead of 0000"),
        (lambda table: table["shards"][0].update(bytes=77), r"frames_000\.tar: .* bytes instead of 77"),
        (lambda table: table["shards"][0].update(n_sets=77), r"frames_000\.tar: . sets instead of 77"),
    ],
)
def test_a_manifest_that_is_not_true_is_named(
    other: Study, shards: Path, change: Callable[[dict[str, Any]], object], told: str
) -> None:
    hurt = keys_in(shards / "frames_000.tar")
    resealed(shards, change)
    with pytest.raises(DamagedFileError, match=told):
        unpack_frames(other, shards)
    assert not other.frames_ready() & set(hurt)


@pytest.mark.parametrize("kind", ["gone", "folder", "pipe", "cut", "large", "closed"])
def test_a_manifest_that_cannot_be_read_is_one_line(
    other: Study, shards: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shards / "frames_manifest.json"
    text = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "closed":
        path.symlink_to(path)
    elif kind != "gone":
        path.write_bytes(text[:-20] if kind == "cut" else text)
    if kind == "large":
        monkeypatch.setattr(unpacking, "_MOST_MANIFEST", 100)
    with pytest.raises(DamagedFileError, match=r"frames_manifest\.json: .*Cure"):
        unpack_frames(other, shards)


def table_of(**changes: Any) -> bytes:
    frames = [{"index": 0, "pts": 0.0, "duplicate": False, "damaged": False, "bytes": 3}]
    table = {"version": 1, "key": "k:x", "count": 1, "long_side": 448, "quality": 85, "frames": frames}
    return json.dumps(table | changes).encode()


ONE = replace(Frames(), count=1, single=0)
GOOD = Member("k:good/frames.json", table_of(key="k:good")), Member("k:good/frame_0.jpg", b"jpg")
YET = Member("k:y/frames.json", table_of(key="k:y")), Member("k:y/frame_0.jpg", b"jpg")
WHOLE = Member("k:x/frames.json", table_of()), Member("k:x/frame_0.jpg", b"jpg")


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([Member("loose.jpg", b"")], "is no folder of a set"),
        ([Member("a/b/frame_0.jpg", b"")], "is no folder of a set"),
        ([Member(".hidden/frame_0.jpg", b"")], "is no folder of a set"),
        ([Member("k" * 201 + "/frame_0.jpg", b"")], "is no folder of a set"),
        ([*WHOLE, *YET, Member("k:x/frame_1.jpg", b"")], "comes in two pieces"),
        ([*WHOLE, Member("k:x/frame_1.jpg", b"")], "a member 'frame_1.jpg', which no set has"),
        ([*WHOLE, Member("k:x/run.sh", b"")], "a member 'run.sh'"),
        ([*WHOLE, Member("k:x/frame_00.jpg", b"")], "a member 'frame_00.jpg'"),
        ([WHOLE[1]], r"no frames\.json"),
        ([WHOLE[0]], r"frame_0\.jpg is missing"),
        ([WHOLE[0], Member("k:x/frame_0.jpg", b"four")], r"frame_0\.jpg has 4 bytes instead of 3"),
        ([Member("k:x/frames.json", table_of(key="k:other")), WHOLE[1]], r"frames\.json is of 'k:other'"),
        *(([Member("k:x/frames.json", text), WHOLE[1]], r"frames\.json is not what benchcheck writes")
          for text in (b"", b"{}", b"[" * 100_000, table_of(version=2), table_of(frames=[]), table_of(count=9))),
    ],
)  # fmt: skip
def test_a_shard_with_the_right_hash_and_hostile_members_is_refused_whole(
    other: Study, tmp_path: Path, members: list[Member], told: str
) -> None:
    study = Study(other.root, replace(other.config, frames=ONE))
    folder = hostile(tmp_path / "hostile", *GOOD, *members)
    for verify in (False, True):
        with pytest.raises(DamagedFileError, match=rf"frames_000\.tar: .*{told}"):
            unpack_frames(study, folder, verify_only=verify)
    assert not study.frames.exists() or os.listdir(study.frames) == []
    assert unpack_frames(study, hostile(tmp_path / "good", *GOOD)).made == 1


def linked(kind: bytes, name: str = "k:x/frame_0.jpg") -> bytes:
    """A tar whose second set has a link or device."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for member in (*GOOD, WHOLE[0]):
            assert isinstance(member.source, bytes)
            info = tarfile.TarInfo(member.name)
            info.size = len(member.source)
            tar.addfile(info, io.BytesIO(member.source))
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    return data.getvalue()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(other: Study, tmp_path: Path, kind: bytes) -> None:
    study = Study(other.root, replace(other.config, frames=ONE))
    with pytest.raises(DamagedFileError, match=r"'k:x/frame_0\.jpg' is no plain file"):
        unpack_frames(study, hostile(tmp_path / "hostile", data=linked(kind)))
    assert not study.frames_ready()


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "k:x/../../evil", "k:good/frame_0.jpg"])
def test_names_that_lead_out_or_come_twice_are_refused(other: Study, tmp_path: Path, name: str) -> None:
    study = Study(other.root, replace(other.config, frames=ONE))
    with pytest.raises(DamagedFileError, match=r"leads out of the folder|is there twice|comes in two pieces"):
        unpack_frames(study, hostile(tmp_path / "hostile", data=linked(tarfile.REGTYPE, name)))
    assert not study.frames_ready()
    assert not list(tmp_path.rglob("evil"))


def test_a_packed_shard_is_refused(other: Study, tmp_path: Path) -> None:
    import gzip

    with pytest.raises(DamagedFileError, match="it is packed"):
        unpack_frames(other, hostile(tmp_path / "hostile", data=gzip.compress(bytes(1 << 20))))


def test_changed_pictures_in_a_shard_are_told_by_verifying(study: Study, other: Study, tmp_path: Path) -> None:
    """A shard that somebody packed of changed pictures, with the hash of that."""
    members = members_of_set(study, KEYS[0])
    assert isinstance(members[2].source, bytes)
    members[2] = Member(members[2].name, members[2].source.swapcase())
    folder = hostile(tmp_path / "hostile", *members)
    with pytest.raises(DamagedFileError, match=f"the set '{KEYS[0]}': its pictures were changed"):
        unpack_frames(other, folder, verify_only=True)
    members = [members[0], members[3], members[1], members[2]]
    assert unpack_frames(other, hostile(tmp_path / "unordered", *members), verify_only=True).sets == 1


@pytest.mark.parametrize("field", ["count", "long_side", "quality", "normalized"])
@pytest.mark.parametrize("said", [True, False])
def test_frames_of_another_config_are_refused(other: Study, shards: Path, field: str, said: bool) -> None:
    if not said:
        resealed(shards, lambda table: table.pop("frames"))
    changed = replace(other.config, frames=replace(other.config.frames, **{"count": 9} if field == "count" else {}))
    if field == "normalized":
        changed = replace(other.config, normalize=Normalize(frames="normalized"))
    elif field != "count":
        changed = replace(other.config, frames=replace(other.config.frames, **{field: 50}))
    told = r"\[normalize\] unused" if field == "normalized" else rf"frames\.{field} = "
    with pytest.raises(StudyError, match=rf"made with {told}.*, but the config says .*Cure: set .*\.toml, or"):
        unpack_frames(Study(other.root, changed), shards)
    assert not other.frames_ready()


def test_what_would_not_fit_is_refused_before(
    study: Study, other: Study, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def usage(folder: Path) -> Any:
        asked.append(folder)
        return shutil._ntuple_diskusage(10**6, 10**6, 11_000)  # type: ignore[attr-defined]

    monkeypatch.setattr("benchcheck.video.shards.unpacking.shutil.disk_usage", usage)
    with pytest.raises(StudyError, match=r"the frames need \d+\.?\d* kB, and 11 kB are free\. Cure: free space"):
        unpack_frames(other, shards)
    assert asked == [other.root]
    assert not other.frames.exists()
    draw(other, KEYS[:-1])
    assert unpack_frames(other, shards).made == 1, "what is there needs no room"


def test_a_full_disk_leaves_nothing_half(
    study: Study, other: Study, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = unpacking._written, iter(range(100))

    def full(path: str, content: Any) -> int:
        if next(count) == 9:
            raise OSError(28, "No space left on device")
        return real(path, content)

    monkeypatch.setattr(unpacking, "_written", full)
    with pytest.raises(StudyError, match="the disk is full"):
        unpack_frames(other, shards)
    assert len(os.listdir(other.frames)) == 2
    assert len(last_outcomes(other)) == 2
    monkeypatch.setattr(unpacking, "_written", real)
    assert unpack_frames(other, shards).made == 8
    assert contents(other.frames) == contents(study.frames)


def test_a_write_that_takes_a_part_makes_no_cut_picture(other: Study, study: Study, tmp_path: Path) -> None:
    """A disk that fills up, or a size limit, takes the first part of a write without an error."""
    large = item("large.mp4", number=40)
    for one in (study, other):
        one.write_pool([large])
    frames = study.config.frames
    about = {"count": COUNT, "long_side": frames.long_side, "quality": frames.quality, "normalized": None}
    publish_frames(study.frames, large.frames_key, [Drawn(0.0, False, False, bytes(50_000))] * COUNT, about)
    folder = packed(study, tmp_path / "large")
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)); {UNPACK}"
    done = subprocess.run(
        [sys.executable, "-c", limited, str(other.root), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "the file would grow over the size limit" in done.stderr
    assert os.listdir(other.frames) == []


@pytest.mark.parametrize("where", ["open", "read"])
def test_a_shard_that_cannot_be_read_is_named(
    other: Study, shards: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    real = Path.open

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    def failing(self: Path, *given: Any, **named: Any) -> Any:
        if self.name == "frames_001.tar":
            if where == "open":
                raise PermissionError(13, "Permission denied")
            return Broken()
        return real(self, *given, **named)

    monkeypatch.setattr(Path, "open", failing)
    with pytest.raises(DamagedFileError, match=r"frames_001\.tar: not readable: (Permission|Input/output)"):
        unpack_frames(other, shards)


def test_a_shard_that_grows_while_it_is_read_is_told(
    other: Study, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = unpacking._verify

    def grown(walk: Any, shard: Any, path: Path, file: Any) -> None:
        with path.open("ab") as end:
            end.write(b"more")
        real(walk, shard, path, file)

    monkeypatch.setattr(unpacking, "_verify", grown)
    with pytest.raises(DamagedFileError, match="bytes instead of"):
        unpack_frames(other, shards)


def test_what_items_still_need_is_told(other: Study, shards: Path) -> None:
    other.write_pool([item("0.mp4"), item("nobody.mp4", number=1)])
    summary = unpack_frames(other, shards)
    assert summary.missing == 1
    assert summary.lines()[-1] == "needed and in none of these: 1 set; benchcheck status says why"


def test_the_command(other: Study, shards: Path, run: Run) -> None:
    code, out, err = run("frames", "unpack", other.root, "--from", shards, "--verify")
    assert (code, err) == (0, "")
    assert "all as frames_manifest.json says" in out
    code, out, err = run("frames", "unpack", other.root, "--from", shards)
    assert (code, err) == (0, "")
    assert out.startswith("10 sets of frames unpacked now (")
    flipped(shards / "frames_000.tar", 600)
    shutil.rmtree(other.frames)
    code, out, err = run("frames", "unpack", other.root, "--from", shards)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "frames_000.tar: sha256 is" in err
    assert run("frames", "unpack", other.root, "--from", other.root)[0] == 1
    assert run("frames", "unpack", other.root)[0] == 2


def test_shards_of_any_name_of_sets_come_back(study: Study, other: Study, tmp_path: Path) -> None:
    names = [
        "with space",
        "new\nline",
        "दृश्य",
        "a'b\"c",
        "e\N{COMBINING ACUTE ACCENT}",
        "x" * 180,
        os.fsdecode(b"\xff\xfe"),
    ]
    draw(study, names)
    folder = packed(study, tmp_path / "named", everything=True)
    assert unpack_frames(other, folder).made == 17
    assert contents(other.frames) == contents(study.frames)
    assert hash_of(folder / "frames_000.tar") != hash_of(folder / "frames_001.tar")
    assert shard_sets.frame_name(0) == "frame_0.jpg"


UNPACK = """
import sys
from benchcheck.study import Study
from benchcheck.video.shards.unpacking import unpack_frames
unpack_frames(Study.open(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.long
def test_killed_at_any_moment_no_set_is_half(study: Study, other: Study, tmp_path: Path) -> None:
    items = [item(f"many{number}.mp4", number=number) for number in range(400)]
    study.write_pool(items)
    other.write_pool(items)
    draw(study, [one.frames_key for one in items])
    folder = packed(study, tmp_path / "many", shard_bytes=300_000)
    whole = contents(study.frames)
    halfway = set[int]()
    for step, later in steps():
        if not dies(UNPACK, other.frames, step, other.root, folder, later_s=later):
            break
        halfway |= {len(other.frames_ready())} - {0, len(items)}
        for key in other.frames_ready():
            for name, data in contents(other.frames / key).items():
                assert data == whole[f"{key}/{name}"], "a set is whole or not there"
            assert len(list((other.frames / key).iterdir())) == COUNT + 1
    assert halfway, "none was killed between two sets"
    for name in os.listdir(other.frames):
        if name.startswith("."):  # killed before it was locked: cleared when it is old
            os.utime(other.frames / name, (0, 0))
    unpack_frames(other, folder)
    left = {name: data for name, data in contents(other.frames).items() if not name.startswith(".")}
    keys = {one.frames_key for one in items}
    assert left == {name: data for name, data in whole.items() if name.partition("/")[0] in keys}
    assert not [name for name in os.listdir(other.frames) if name.startswith(".")]
