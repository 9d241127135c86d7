"""Packing frames into shards: the same bytes everywhere, nothing damaged, nothing done twice, nothing lost."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchcheck.config import Frames
from benchcheck.errors import StudyError, UsageError
from benchcheck.inputs import Normalize
from benchcheck.study import Study
from benchcheck.tars import hash_of, members_of
from benchcheck.video.shards import packing
from benchcheck.video.shards.layout import parse_manifest
from benchcheck.video.shards.packing import ShardsProgress, pack_frames, shards_folder
from killed import dies, steps
from studies import Run

from .shard_studies import COUNT, ITEMS, KEYS, SMALL, contents, draw, item, packed, pool, visible

RECORD = ".frames_packed.jsonl"


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    made = pool(make_study(Frames(count=COUNT, single=1)))
    draw(made, KEYS)
    return made


def elsewhere(tmp_path: Path, study: Study) -> Study:
    """The same study at another place and another time."""
    other = Study(tmp_path / "other" / "place", study.config)
    pool(other)
    draw(other, reversed(KEYS))
    return other


def test_shards_and_manifest_are_as_the_protocol_says(study: Study, tmp_path: Path) -> None:
    heard: list[ShardsProgress] = []
    summary = pack_frames(study, tmp_path / "out", shard_bytes=SMALL, progress=heard.append)
    table = json.loads((tmp_path / "out" / "frames_manifest.json").read_text())
    assert (table["n_videos"], table["n_sets"], table["version"]) == (7, 10, 1)
    assert table["frames"] == {"count": COUNT, "long_side": 448, "quality": 85, "normalized": None}
    names = [shard["file"] for shard in table["shards"]]
    assert names == [f"frames_{number:03d}.tar" for number in range(len(names))]
    assert len(names) >= 3
    assert sorted(os.listdir(tmp_path / "out")) == [RECORD, *names, "frames_manifest.json"]
    seen: list[str] = []
    for shard in table["shards"]:
        path = tmp_path / "out" / shard["file"]
        assert (hash_of(path), path.stat().st_size) == (shard["sha256"], shard["bytes"])
        members = [name for name, _, _ in members_of(path)]
        keys = list(dict.fromkeys(name.partition("/")[0] for name in members))
        assert members == [
            f"{key}/{name}"
            for key in keys
            for name in ("frames.json", *(f"frame_{index}.jpg" for index in range(COUNT)))
        ]
        assert (shard["n_sets"], shard["n_videos"]) == (len(keys), len({key.partition("@")[0] for key in keys}))
        seen += keys
    assert sorted(seen) == KEYS
    assert sum(shard["n_videos"] for shard in table["shards"]) == 7, "no video is in two shards"
    assert (heard[-1].done, len(heard)) == (heard[-1].total, 10)
    assert summary.lines()[0].startswith(f"10 sets of frames of 7 videos: {len(names)} shards, ")
    assert str(tmp_path) not in (tmp_path / "out" / "frames_manifest.json").read_text()


def test_the_same_frames_give_the_same_bytes_at_any_place_and_time(study: Study, tmp_path: Path) -> None:
    other = elsewhere(tmp_path, study)
    for path in other.frames.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert visible(packed(study, tmp_path / "a")) == visible(packed(other, tmp_path / "b"))


def test_again_reads_and_writes_nothing(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed(study, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("frames_*.tar")}
    monkeypatch.setattr(packing, "write_tar", None)
    again = pack_frames(study, tmp_path / "out", shard_bytes=1 << 30)
    assert (again.written, again.sets, again.videos) == (0, 10, 7)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_what_comes_later_goes_into_new_shards(study: Study, tmp_path: Path) -> None:
    early, late = KEYS[::2], KEYS[1::2]
    for key in late:
        shutil.rmtree(study.frames / key)
    first = pack_frames(study, tmp_path / "out", shard_bytes=SMALL)
    assert first.lines()[1] == "not made yet: 5 sets. Cure: benchcheck frames extract, then pack again"
    before = visible(tmp_path / "out")
    draw(study, late)
    second = pack_frames(study, tmp_path / "out", shard_bytes=SMALL)
    after = visible(tmp_path / "out")
    assert all(after[name] == data for name, data in before.items() if name.endswith(".tar"))
    assert (second.sets, second.videos, second.missing) == (10, 7, 0)
    manifest = parse_manifest(after["frames_manifest.json"], "m")
    assert [shard.file for shard in manifest.shards] == sorted(name for name in after if name.endswith(".tar"))
    assert (manifest.n_videos, sum(shard.n_sets or 0 for shard in manifest.shards)) == (7, 10)
    assert len(early) == 5


def test_a_set_that_changed_is_packed_again_and_its_shard_alone(study: Study, tmp_path: Path) -> None:
    """Also when a file was replaced by one of the same size and date."""
    out = packed(study, tmp_path / "out")
    before = visible(out)
    path = study.frames / KEYS[0] / "frames.json"
    at, data = path.stat().st_mtime_ns, path.read_text().replace("hash of k", "hash oF k")
    path.write_text(data)
    os.utime(path, ns=(at, at))
    summary = pack_frames(study, out, shard_bytes=SMALL)
    after = visible(out)
    assert summary.written == 1
    assert [name for name in after if after[name] != before[name]] == ["frames_000.tar", "frames_manifest.json"]


@pytest.mark.parametrize("harm", ["gone", "cut", "other"])
def test_a_shard_that_is_not_the_file_that_was_written_is_written_again(
    study: Study, tmp_path: Path, harm: str
) -> None:
    out = packed(study, tmp_path / "out")
    before, shard = visible(out), out / "frames_001.tar"
    if harm == "gone":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:1000] if harm == "cut" else bytes(shard.stat().st_size))
    assert pack_frames(study, out, shard_bytes=SMALL).written == 1
    assert visible(out) == before


def test_sets_whose_folders_are_gone_stay_in_their_shards(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    before = visible(out)
    for key in KEYS[2:]:
        shutil.rmtree(study.frames / key)
    summary = pack_frames(study, out, shard_bytes=SMALL)
    assert (summary.written, summary.sets, summary.missing) == (0, 10, 0)
    assert visible(out) == before


def test_a_set_that_changed_in_a_shard_that_cannot_be_made_again_is_told(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    before = visible(out)
    stamps = json.loads((out / RECORD).read_text().splitlines()[0])["stamps"]
    changed, gone = list(stamps)[:2]
    shutil.rmtree(study.frames / gone)
    (study.frames / changed / "frames.json").touch()
    with pytest.raises(StudyError, match=r"frames_000\.tar: its set .* was made again since, and 1 set of it are gone"):
        pack_frames(study, out)
    assert visible(out) == before
    (out / "frames_000.tar").unlink()
    assert pack_frames(study, out).sets == 9
    for key in stamps:
        shutil.rmtree(study.frames / key, ignore_errors=True)
    (out / "frames_000.tar").unlink()
    assert pack_frames(study, out).sets == 10 - len(stamps)
    names = [shard["file"] for shard in json.loads((out / "frames_manifest.json").read_text())["shards"]]
    assert "frames_000.tar" not in names, "a number without a shard"
    draw(study, stamps)
    assert visible(packed(study, out)).keys() == before.keys()


def test_items_that_no_longer_need_a_set_leave_shards_alone(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    before = visible(out)
    study.write_pool(ITEMS[:3])
    assert pack_frames(study, out).written == 0
    assert visible(out) == before


@pytest.mark.parametrize("harm", ["cut", "gone", "json", "picture"])
def test_a_damaged_set_is_left_out_and_told(study: Study, tmp_path: Path, harm: str) -> None:
    path = study.frames / KEYS[3] / ("frames.json" if harm == "json" else "frame_1.jpg")
    if harm == "gone":
        path.unlink()
    elif harm == "picture":
        data = bytearray(path.read_bytes())
        data[100] ^= 1
        path.write_bytes(data)
    else:
        path.write_bytes(path.read_bytes()[:-3])
    summary = pack_frames(study, tmp_path / "out", shard_bytes=SMALL)
    assert (summary.sets, len(summary.damaged), summary.missing) == (9, 1, 0)
    told = summary.lines()[1]
    assert told.startswith("damaged and left out: 1 set, such as ")
    assert KEYS[3] in told
    assert told.endswith("Cure: remove their folders, then benchcheck frames extract")
    names = {name for path in (tmp_path / "out").glob("*.tar") for name, _, _ in members_of(path)}
    assert not [name for name in names if name.startswith(f"{KEYS[3]}/")]
    shutil.rmtree(study.frames / KEYS[3])
    draw(study, [KEYS[3]])
    assert pack_frames(study, tmp_path / "out", shard_bytes=SMALL).sets == 10


@pytest.mark.parametrize("harm", ["picture", "gone"])
def test_a_set_that_is_damaged_later_stays_whole_in_its_shard(study: Study, tmp_path: Path, harm: str) -> None:
    """The shard may be the only good copy that is left."""
    out = packed(study, tmp_path / "out")
    before = visible(out)
    path = study.frames / KEYS[3] / "frame_1.jpg"
    if harm == "gone":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[700] ^= 1
        path.write_bytes(data)
    for _ in range(2):
        summary = pack_frames(study, out, shard_bytes=SMALL)
        assert (summary.written, summary.sets, summary.damaged) == (0, 10, {})
        assert list(summary.kept) == [KEYS[3]]
        assert "damaged here and whole in the shards: 1 set" in summary.lines()[-1]
        assert visible(out) == before


def test_nothing_to_pack_is_told(study: Study, tmp_path: Path) -> None:
    shutil.rmtree(study.frames)
    with pytest.raises(StudyError, match=r"no frames to pack: not made yet: 10 sets\. Cure: benchcheck frames extract"):
        pack_frames(study, tmp_path / "out")
    study.write_pool([ITEMS[-1]])
    with pytest.raises(StudyError, match="no frames to pack: no item needs any"):
        pack_frames(study, tmp_path / "out")


@pytest.mark.parametrize("inside", ["", "shards", "x/../y", "link"])
def test_shards_do_not_go_among_the_frames(study: Study, tmp_path: Path, inside: str) -> None:
    """They would be taken for sets."""
    (tmp_path / "link").symlink_to(study.frames, target_is_directory=True)
    target = tmp_path / "link" / "z" if inside == "link" else study.frames / inside
    before = study.frames_ready()
    with pytest.raises(UsageError, match=r"this is where the frames themselves lie\. Cure: --to another folder"):
        pack_frames(study, target)
    assert study.frames_ready() == before


def test_everything_of_nothing_is_told(make_study: Callable[..., Study], tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no frames to pack: none is there\. Cure: benchcheck frames extract"):
        pack_frames(Study(tmp_path / "nothing", make_study().config), everything=True)


def test_everything_needs_no_pool(study: Study, tmp_path: Path) -> None:
    draw(study, ["k:nobody's", "with space\n'and' दृश्य"])
    study.pool_file.unlink()
    summary = pack_frames(study, tmp_path / "out", everything=True)
    assert summary.sets == 12
    draw(study, ["back\\slash"])
    summary = pack_frames(study, tmp_path / "out", everything=True)
    assert (summary.sets, len(summary.damaged)) == (12, 1)
    assert "no folder name elsewhere" in summary.lines()[1]


@pytest.mark.parametrize("field", ["long_side", "quality"])
def test_frames_of_another_config_are_refused(study: Study, tmp_path: Path, field: str) -> None:
    draw(study, ["k:other"], **{field: 50})
    study.write_pool([*ITEMS, item("x", number=40)])
    with pytest.raises(StudyError, match=f"made with frames.{field} = 50"):
        pack_frames(study, tmp_path / "out", everything=True)


def test_a_folder_of_other_shards_is_refused(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    before = visible(out)
    other = Study(tmp_path / "other", study.config)
    draw(other, ["k:theirs"])
    with pytest.raises(UsageError, match=r"holds shards of other frames\. Cure: --to another folder"):
        pack_frames(other, out, everything=True)
    changed = Study(study.root, replace(study.config, frames=Frames(count=COUNT, single=1, quality=90)))
    shutil.rmtree(study.frames)
    draw(changed, KEYS)
    with pytest.raises(UsageError, match="holds shards made with quality = 85, but the config says 90"):
        pack_frames(changed, out)
    normal = Study(tmp_path / "n", replace(study.config, normalize=Normalize(frames="normalized")))
    draw(normal, ["k:n"], normalized=normal.config.normalize.shown)
    with pytest.raises(UsageError, match="made with normalized = None"):
        pack_frames(normal, out, everything=True)
    (out / RECORD).unlink()
    with pytest.raises(UsageError, match=r"holds frames_000\.tar, which was not packed here"):
        pack_frames(changed, out)
    assert visible(out) == before


def test_two_do_not_pack_into_one_folder(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    number = os.open(out, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match="another `frames pack` is at work here"):
        pack_frames(study, out)
    os.close(number)
    assert pack_frames(study, out).written == 0


def test_a_file_system_without_locks_will_do(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(number: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("benchcheck.video.shards.packing.fcntl.flock", unable)
    assert pack_frames(study, tmp_path / "out").sets == 10


def test_a_set_that_changes_while_it_is_packed_ends_it(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = packing.plan_shards
    victim = study.frames / KEYS[-1]

    def sabotage(how: str) -> Callable[..., object]:
        def plan(*given: object) -> object:
            if how == "gone":
                shutil.rmtree(victim)
            elif how == "cut":
                (victim / "frame_0.jpg").write_bytes(b"short")
            else:
                (victim / "frames.json").write_text("[" * 100_000)
            return real(*given)  # type: ignore[arg-type]

        return plan

    for how, told in (("json", "damaged"), ("cut", "5 bytes instead of"), ("gone", "not readable")):
        monkeypatch.setattr(packing, "plan_shards", sabotage(how))
        out = tmp_path / how
        with pytest.raises(StudyError, match=rf"{told}.*, since packing began\. Cure: run the same command again"):
            pack_frames(study, out, shard_bytes=SMALL)
        assert not (out / "frames_manifest.json").exists()
        assert not [name for name in os.listdir(out) if name.endswith(".tmp")]
        shutil.rmtree(victim, ignore_errors=True)
        draw(study, [KEYS[-1]])
        monkeypatch.setattr(packing, "plan_shards", real)
        assert visible(packed(study, out)) == visible(packed(study, tmp_path / f"{how}2"))


def test_what_would_not_fit_is_refused_before_anything_is_written(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil._ntuple_diskusage(10**6, 10**6, 1000)  # type: ignore[attr-defined]
    monkeypatch.setattr("benchcheck.video.shards.packing.shutil.disk_usage", lambda folder: usage)
    with pytest.raises(StudyError, match=r"the shards need [67]\d\.?\d? kB, and 1 kB are free\. Cure: --to a"):
        pack_frames(study, tmp_path / "out")
    assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".tar")]


def test_a_full_disk_is_one_line(study: Study, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(10**6, 1, 10**6)  # type: ignore[attr-defined]
    monkeypatch.setattr("benchcheck.video.shards.packing.shutil.disk_usage", lambda folder: usage)
    with pytest.raises(StudyError, match="the disk is full"):
        pack_frames(study, small_disk, shard_bytes=SMALL)
    assert not (small_disk / "frames_manifest.json").exists()
    assert not [name for name in os.listdir(small_disk) if name.endswith(".tmp")]


@pytest.mark.parametrize("text", ["", "{", "[]\n7\nnull\n", '{"file": "frames_000.tar"}\n', "\0" * 500])
def test_a_record_that_is_damaged_is_work_done_again(study: Study, tmp_path: Path, text: str) -> None:
    out = packed(study, tmp_path / "out")
    before = visible(out)
    (out / RECORD).write_text(text)
    assert pack_frames(study, out, shard_bytes=SMALL).written == len(before) - 1
    assert visible(out) == before


def test_a_record_that_cannot_be_read_is_one_line(study: Study, tmp_path: Path) -> None:
    out = packed(study, tmp_path / "out")
    (out / RECORD).unlink()
    (out / RECORD).mkdir()
    with pytest.raises(StudyError, match="not readable: Is a directory"):
        pack_frames(study, out)


def test_a_folder_that_cannot_be_made_is_one_line(study: Study, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="file"):
        pack_frames(study, tmp_path / "file")


def test_shards_that_nobody_lists_are_cleared(study: Study, tmp_path: Path) -> None:
    """A killed run may leave a shard that the next plan has no use for, and temporary files."""
    out = packed(study, tmp_path / "out")
    before = visible(out)
    for name in ("frames_042.tar", ".frames_000.tar.host.1.0.tmp", "notes.txt"):
        (out / name).write_bytes(b"left")
    pack_frames(study, out)
    assert visible(out) == before | {"notes.txt": b"left"}
    assert sorted(contents(out)) == sorted([RECORD, *before, "notes.txt"])


def test_the_command(study: Study, tmp_path: Path, run: Run) -> None:
    (study.root / "benchcheck.toml").write_text(
        'study_version = 1\n[frames]\ncount = 3\nsingle = 1\n[models.8b]\nmodel = "m"\n[models.2b]\nmodel = "m"\n'
    )
    code, out, err = run("frames", "pack", study.root, "--shard-size", "20KB")
    assert (code, err) == (0, "")
    assert out.startswith("10 sets of frames of 7 videos: ")
    assert (shards_folder(study) / "frames_manifest.json").is_file()
    assert run("frames", "pack", study.root, "--to", tmp_path / "x", "--all")[0] == 0
    code, out, err = run("frames", "pack", study.root, "--shard-size", "2 parsec")
    assert (code, out) == (2, "")
    assert err == "benchcheck: --shard-size 2 parsec: not a size. Allowed: 2GB, 500MB and the like, from 10kB on\n"


PACK = """
import sys
from pathlib import Path
from benchcheck.study import Study
from benchcheck.video.shards.packing import pack_frames
pack_frames(Study.open(sys.argv[1]), sys.argv[2], shard_bytes=int(sys.argv[3]))
"""


@pytest.mark.long
def test_killed_at_any_moment_it_ends_as_one_that_was_left_alone(study: Study, tmp_path: Path) -> None:
    (study.root / "benchcheck.toml").write_text(
        'study_version = 1\n[frames]\ncount = 3\nsingle = 1\n[models.8b]\nmodel = "m"\n[models.2b]\nmodel = "m"\n'
    )
    items = [item(f"many{number}.mp4", number=number) for number in range(400)]
    study.write_pool(items)
    draw(study, [one.frames_key for one in items])
    whole = visible(packed(study, tmp_path / "whole"))
    out, halfway = tmp_path / "out", set[int]()
    for step, later in steps():
        if not dies(PACK, out, step, study.root, out, SMALL, later_s=later):
            break
        there = visible(out) if out.is_dir() else {}
        halfway |= {len(there)} - {0, len(whole)}
        assert all(whole[name] == data for name, data in there.items()), "a shard is whole or not there"
        assert "frames_manifest.json" not in there or len(there) == len(whole)
    assert halfway, "none was killed between two shards"
    packed(study, out)
    assert contents(out).keys() == {RECORD, *whole}
    assert visible(out) == whole
