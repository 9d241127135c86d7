"""Where videos lie: the same frames from a folder, an archive of any kind, its parts, and what a manifest names."""

import dataclasses
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Config, Frames, PoolSource, Videos
from benchcheck.errors import StudyError
from benchcheck.pool.items import Item, VideoRef
from benchcheck.study import Study
from benchcheck.video import crew
from benchcheck.video.faults import CURES, VideoError
from benchcheck.video.making.extract import FramesSummary, extract_frames
from benchcheck.video.sources.media import Media, reachable
from benchcheck.video.store import last_outcomes
from benchcheck.video.task import Task
from benchcheck.video.wanted import tasks_of, wanted_sets
from studies import Run, make_items, make_study

from .clips import number_of
from .packing import PACKINGS, link_in_tar, packed, split, tarred, zipped
from .studies import MODELS, item

SHOWN = ("cfr.mp4", "vp9.webm", "anim.gif", "raw.h264", "broadcast.ts", "mpeg4.avi", "hevc.mkv")
"""One of each container; `raw.h264` is told by its extension alone."""
ENDS = (".mp4", ".bin")
ODD = "a 'b'\n\"c\" नमस्ते,,:%s#?.d"


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scratch folder of the test's own, which must be empty in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def study_at(root: Path, *, pool: tuple[PoolSource, ...] = (), **videos: Any) -> Study:
    (root / "videos").mkdir(parents=True, exist_ok=True)
    frames = Frames(count=4, single=1)
    return Study(root, Config(study_version=1, models=MODELS, frames=frames, videos=Videos(**videos), pool=pool))


def lay(study: Study, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = study.root / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def extracted(study: Study, members: list[str] | tuple[str, ...] = SHOWN) -> FramesSummary:
    return extract_frames(study, items=[item(name, number=n) for n, name in enumerate(members)], workers=2)


def pictures(study: Study) -> dict[str, str]:
    """Every frame by its bytes."""
    files = study.frames.rglob("*.jpg")
    return {str(path.relative_to(study.frames)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def sources(study: Study) -> dict[str, dict[str, Any]]:
    """By the name of the source: all else that frames.json says."""
    found = {}
    for path in study.frames.rglob("frames.json"):
        table = json.loads(path.read_text())
        found[table["source"].pop("name")] = table
    return found


def task_for(study: Study, member: str, zip_path: str = "", repo: str = "b") -> Task | tuple[str, str]:
    """The one task of a video, or status and reason of one that can be nowhere."""
    tasks, hopeless = tasks_of(study, wanted_sets(study, [item_of(VideoRef(repo, member, zip_path))]))
    if hopeless:
        return hopeless[0][0].status, hopeless[0][0].error
    [task] = tasks
    assert Task.of(json.loads(json.dumps(task.table()))) == task
    return task


def item_of(ref: VideoRef) -> Item:
    return dataclasses.replace(item("x"), video_key=ref.key, video_id=ref.video_id)


def met(study: Study, member: str, zip_path: str = "") -> Media | tuple[str, str]:
    """What a worker meets: the video, or status and reason."""
    task = task_for(study, member, zip_path)
    if isinstance(task, tuple):
        return task
    try:
        with reachable(task) as media:
            return media
    except VideoError as fault:
        return fault.status, fault.reason


def status(study: Study, member: str, zip_path: str = "") -> str:
    found = met(study, member, zip_path)
    return "ready" if isinstance(found, Media) else found[0]


def reason(study: Study, member: str, zip_path: str = "") -> str:
    found = met(study, member, zip_path)
    assert not isinstance(found, Media)
    assert found[0] in CURES
    return found[1]


@pytest.fixture
def clips(clip: Callable[[str], Path]) -> dict[str, bytes]:
    return {name: clip(name).read_bytes() for name in SHOWN}


@pytest.fixture
def plain(tmp_path: Path, clips: dict[str, bytes]) -> Study:
    """The same videos as plain files, with their frames made."""
    study = study_at(tmp_path / "plain")
    lay(study, clips)
    assert extracted(study).made == len(SHOWN)
    return study


def test_archives_give_the_frames_of_plain_files_byte_for_byte(
    tmp_path: Path, clips: dict[str, bytes], plain: Study, scratch: Path
) -> None:
    first = Path(plain.frames, item("cfr.mp4").frames_key)
    assert [number_of(first / f"frame_{place}.jpg") for place in range(4)] == [8, 24, 40, 56]
    for kind in PACKINGS:
        study = study_at(tmp_path / kind, archives=(ODD + kind,))
        lay(study, {ODD + kind: packed(kind, {f"in {ODD}/{name}": data for name, data in clips.items()})})
        summary = extracted(study)
        assert (summary.made, summary.failed) == (len(SHOWN), 0), (kind, summary.lines())
        assert pictures(study) == pictures(plain), kind
        named = {f"{ODD}{kind}!/in {ODD}/{name}": table for name, table in sources(plain).items()}
        assert sources(study) == named
        assert os.listdir(scratch) == []


@pytest.mark.parametrize("kind", ["stored.zip", "plain.tar", "a.tar.gz"])
def test_parts_are_read_as_one_archive(tmp_path: Path, clips: dict[str, bytes], plain: Study, kind: str) -> None:
    ways = {"-part-": (["aa", "ab", "ac"], "v-part-*"), ".": (["001", "002", "003", "004"], "v")}
    for number, (mark, (endings, pattern)) in enumerate(ways.items()):
        archive = f"v.{kind}"
        study = study_at(tmp_path / str(number), archives=(pattern.replace("v", archive, 1),))
        split(study.root / "videos" / archive, packed(kind, clips), [mark + ending for ending in endings])
        assert extracted(study).failed == 0
        assert pictures(study) == pictures(plain)
        assert set(sources(study)) == {f"{archive}!/{name}" for name in SHOWN}


def test_a_stored_member_is_read_in_place_and_a_packed_one_from_scratch(
    tmp_path: Path, clips: dict[str, bytes], scratch: Path
) -> None:
    study = study_at(tmp_path / "s", archives=("in.zip", "out.zip"))
    lay(study, {"in.zip": packed("stored.zip", clips), "out.zip": packed("deflated.zip", {"x.mp4": clips["cfr.mp4"]})})
    for member in ("cfr.mp4", "x.mp4"):
        task = task_for(study, member)
        assert isinstance(task, Task)
        with reachable(task) as media:
            in_place = media.span is not None
            assert (in_place, len(os.listdir(scratch))) == ((True, 0) if member == "cfr.mp4" else (False, 1))
            assert media.sha256 == hashlib.sha256(clips["cfr.mp4"]).hexdigest()
            start, end = media.span or (0, media.bytes)
            assert Path(media.path).read_bytes()[start:end] == clips["cfr.mp4"]
    assert os.listdir(scratch) == []


def test_a_member_behind_five_gigabytes_is_decoded_in_place(tmp_path: Path, clips: dict[str, bytes]) -> None:
    study = study_at(tmp_path / "s", archives=("x.zip",))
    with (study.root / "videos" / "x.zip").open("wb") as file:
        file.truncate(5 << 30)  # a hole, which takes no space
    with zipfile.ZipFile(study.root / "videos" / "x.zip", "a") as archive:
        archive.writestr("cfr.mp4", clips["cfr.mp4"])
    found = met(study, "cfr.mp4")
    assert isinstance(found, Media)
    assert found.span is not None
    assert found.span[0] > 5 << 30
    assert extracted(study, ["cfr.mp4"]).made == 1
    shown = [number_of(path) for path in sorted(study.frames.rglob("*.jpg"))]
    assert shown == [8, 24, 40, 56]


def test_a_plain_file_comes_before_an_archive(tmp_path: Path, clips: dict[str, bytes]) -> None:
    for kind in ("x.zip", "x.tar.gz"):
        study = study_at(tmp_path / kind, archives=(kind,))
        lay(study, {kind: packed(kind, {"cfr.mp4": b"", "vp9.webm": clips["vp9.webm"]}), "cfr.mp4": clips["cfr.mp4"]})
        assert extracted(study, ["cfr.mp4", "vp9"]).failed == 0
        assert set(sources(study)) == {"cfr.mp4", f"{kind}!/vp9.webm"}


def test_an_archive_that_an_item_names_needs_no_config(tmp_path: Path, clips: dict[str, bytes]) -> None:
    study = study_at(tmp_path / "s")
    lay(study, {"v/a.zip": packed("x.zip", {"x.mp4": clips["cfr.mp4"]}), "b.zip": packed("x.zip", {"x.mp4": b"other"})})
    found = met(study, "x.mp4", "v/a.zip")
    assert isinstance(found, Media)
    assert found.name == "v/a.zip!/x.mp4"
    split(study.root / "videos" / "c.tar", packed("x.tar", {"x.mp4": clips["cfr.mp4"]}), [".aa", ".ab"])
    assert status(study, "x.mp4", "c.tar") == "ready"
    assert reason(study, "x.mp4", "gone.zip").startswith("no file ")
    assert "no member called so in b.zip" in reason(study, "y.mp4", "b.zip")
    two = study_at(tmp_path / "s", archives=("*.zip", "v"))
    assert status(two, "x.mp4") == "ambiguous"
    assert status(two, "x.mp4", "a.zip") == status(two, "x.mp4", "./v/a.zip") == "ready"
    assert status(study_at(tmp_path / "s", archives=("v/a.zip",)), "x.mp4", "renamed.zip") == "ready"


def test_two_members_that_fit_are_both_named(tmp_path: Path) -> None:
    study = study_at(tmp_path / "s", archives=("*.zip",))
    lay(
        study,
        {"x.zip": zipped({"train/1.mp4": b"a", "val/1.mp4": b"b"}), "y.zip": zipped({"2.mp4": b"", "in/2.mp4": b""})},
    )
    lay(study, {"z.zip": zipped({"in/2.mp4": b""})})
    assert met(study, "1.mp4") == ("ambiguous", "'1.mp4' may be any of: x.zip!/train/1.mp4, x.zip!/val/1.mp4")
    assert status(study, "val/1.mp4") == "not_a_video"
    assert reason(study, "2.mp4") == "'2.mp4' may be any of: y.zip!/2.mp4, z.zip!/in/2.mp4"
    assert reason(study, "in/2.mp4") == "'in/2.mp4' may be any of: y.zip!/in/2.mp4, z.zip!/in/2.mp4"
    told = reason(study, "test/1.mp4")
    assert "there is x.zip!/train/1.mp4, x.zip!/val/1.mp4: set template to '{name}'" in told
    twice = study_at(tmp_path / "t", archives=("t.tar",))
    lay(twice, {"t.tar": tarred({"a.mp4": b"1"})[:1024] + tarred({"a.mp4": b"2"})})
    assert status(twice, "a.mp4") == "ambiguous"


def test_hostile_members_are_statuses(tmp_path: Path, clips: dict[str, bytes]) -> None:
    study = study_at(tmp_path / "s", archives=("gone.zip", "x.tar", "cut.tar", "inner.zip"))
    data = clips["cfr.mp4"]
    hostile = {
        "../a.mp4": data,
        "l": link_in_tar("b.mp4", "/etc/passwd"),
        "page.mp4": b"<html>429</html>",
        "e.mp4": b"",
    }
    whole = tarred({"c.mp4": data, "d.mp4": data})
    lay(
        study,
        {
            "x.tar": tarred(hostile),
            "cut.tar": whole[: 1536 + len(data)],
            "inner.zip": zipped({"in/more.zip": zipped({})}),
        },
    )
    expected = {"a.mp4": "bad_member", "b.mp4": "bad_member", "page.mp4": "html", "e.mp4": "empty", "c.mp4": "ready"}
    expected |= {"d.mp4": "archive_damaged", "f.mp4": "archive_damaged", "more.zip": "archive"}
    assert {name: status(study, name) for name in expected} == expected
    only = study_at(tmp_path / "s", archives=("inner.zip",))
    assert "archives in archives are not looked into: inner.zip!/in/more.zip" in reason(only, "f.mp4")
    gone = study_at(tmp_path / "s", archives=("gone.zip",))
    assert status(gone, "f.mp4") == "missing"
    assert "videos.archives: " in reason(gone, "f.mp4")
    empty = study_at(tmp_path / "s", archives=(str(tmp_path / "scratch"),), folder="none")
    assert "no zip or tar archive in this folder" in reason(empty, "f.mp4")


def test_a_flipped_byte_in_a_stored_member_is_found_by_its_checksum(tmp_path: Path, clips: dict[str, bytes]) -> None:
    data = bytearray(zipped({"a.mp4": clips["cfr.mp4"]}))
    data[len(data) // 2] ^= 1
    study = study_at(tmp_path / "s", archives=("x.zip",))
    lay(study, {"x.zip": bytes(data)})
    assert status(study, "a.mp4") == "archive_damaged"


def test_a_part_that_is_missing_is_named(tmp_path: Path, clips: dict[str, bytes]) -> None:
    study = study_at(tmp_path / "s", archives=("v.tar",))
    split(study.root / "videos" / "v.tar", packed("x.tar", clips), [".001", ".002", ".003"])
    (study.root / "videos" / "v.tar.002").unlink()
    assert "v.tar.001' is not there" in reason(study, "cfr.mp4")
    assert status(study, "cfr.mp4") == "archive_damaged"


@pytest.mark.parametrize("member", [
    "../secret.mp4", "/secret.mp4", "x/../../secret.mp4", "..", "a\0b.mp4", "", "..\\secret.mp4", "C:\\secret.mp4",
    "~/secret.mp4", "file:///secret.mp4", "concat:secret.mp4", "x.zip!/../secret.mp4", "link.mp4",
])  # fmt: skip
@pytest.mark.parametrize("way", ["folder", "zip", "tar", "tgz", "zip_path"])
def test_a_key_never_leads_out_of_the_folder(tmp_path: Path, clips: dict[str, bytes], member: str, way: str) -> None:
    """Neither by its name, nor by that of an archive, nor by a link in an archive."""
    study = study_at(tmp_path / "s", archives=("x.*",) if way in ("zip", "tar", "tgz") else ())
    (study.root / "secret.mp4").write_bytes(clips["cfr.mp4"])
    (study.root / "secret.zip").write_bytes(zipped({"secret.mp4": clips["cfr.mp4"]}))
    hostile = {"../secret.mp4": clips["cfr.mp4"], "/secret.mp4": clips["cfr.mp4"], "in/x.mp4": b""}
    if way == "zip":
        lay(study, {"x.zip": zipped(hostile)})
    elif way in ("tar", "tgz"):
        link = {"link": link_in_tar("link.mp4", str(study.root / "secret.mp4"))}
        data = tarred(hostile | link)
        lay(study, {f"x.{way}": gzip.compress(data) if way == "tgz" else data})
    if way == "zip_path":
        for zip_path in ("../secret.zip", str(study.root / "secret.zip"), "x/../../secret.zip", "a\0.zip"):
            assert status(study, "secret.mp4", zip_path) in ("outside", "missing")
            assert status(study, member or "x", zip_path) in ("outside", "missing")
        return
    assert status(study, member) in ("outside", "missing", "no_video", "bad_member", "ambiguous")
    assert extracted(study, [member]).made == 0


def test_a_manifest_says_where_single_videos_lie(tmp_path: Path, clips: dict[str, bytes], plain: Study) -> None:
    study = study_at(tmp_path / "s", manifest="where.csv")
    lay(study, {"odd name.bin": clips["cfr.mp4"], "v.tar": packed("x.tar", {"q/w.webm": clips["vp9.webm"]})})
    elsewhere = tmp_path / "far" / ODD
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(clips["anim.gif"])
    rows = ["key,file", "cfr.mp4,odd name.bin", "b::::vp9.webm,v.tar!/q/w.webm", f'anim.gif,"{_quoted(elsewhere)}"']
    (study.root / "where.csv").write_text("\n".join(rows))
    assert extracted(study, ["cfr.mp4", "vp9.webm", "anim.gif"]).made == 3
    assert set(sources(study)) == {"odd name.bin", "v.tar!/q/w.webm", ODD}
    assert str(tmp_path) not in json.dumps(list(sources(study)))
    assert pictures(study).items() <= pictures(plain).items()


def _quoted(path: Path) -> str:
    return str(path).replace('"', '""')


@pytest.mark.parametrize(("file", "expected", "words"), [
    ("gone.mp4", "missing", "no file"),
    ("../out.mp4", "outside", "the manifest's file '../out.mp4' leads out"),
    ("../x.zip!/a.mp4", "outside", "the manifest's archive"),
    ("x.zip!/b.mp4", "missing", "no member called so in x.zip"),
    ("y.zip!/b.mp4", "missing", "no archive 'y.zip', which the manifest names"),
    ("x.zip!/a.mp4", "not_a_video", "text"),
    ("\ud800.mp4", "missing", "no file can be called so"),
])  # fmt: skip
def test_a_manifest_that_names_nothing(tmp_path: Path, file: str, expected: str, words: str) -> None:
    study = study_at(tmp_path / "s", manifest="where.jsonl", archives=("x.zip",))
    lay(study, {"x.zip": zipped({"a.mp4": b"text"}), "a.mp4": b""})
    (study.root / "where.jsonl").write_text(json.dumps({"key": "a.mp4", "file": file}))
    found = met(study, "a.mp4")
    assert isinstance(found, tuple)
    assert found[0] == expected
    assert words in found[1]


def test_each_benchmark_has_archives_of_its_own(tmp_path: Path, clips: dict[str, bytes]) -> None:
    own = Videos(folder="other", archives=("b.tar",))
    study = study_at(tmp_path / "s", pool=(PoolSource(spec="x", files=("f",), bench="b", videos=own),))
    lay(study, {"../other/b.tar": packed("x.tar", {"cfr.mp4": clips["cfr.mp4"]})})
    assert status(study, "cfr.mp4") == "ready"
    assert reason(study, "vp9.webm").startswith("no file 'vp9.webm', and no member called so in b.tar")


@pytest.mark.long
def test_ten_thousand_missing_videos_are_one_summary(tmp_path: Path) -> None:
    study = study_at(tmp_path / "s", archives=("x.zip", "y.tar.gz"))
    lay(study, {"x.zip": zipped({"a.mp4": b"x"}), "y.tar.gz": packed("y.tar.gz", {"b.mp4": b"y"})})
    summary = extracted(study, [f"gone/{number}.mp4" for number in range(10_000)])
    assert dict(summary.statuses) == {"missing": 10_000}
    assert len(summary.lines()) <= 8
    assert "  b/gone/0.mp4: no file 'gone/0.mp4', and no member called so in x.zip, y.tar.gz" in summary.lines()
    assert len(last_outcomes(study)) == 10_000


def test_a_packed_tar_that_breaks_off_fails_what_stands_behind(tmp_path: Path, clips: dict[str, bytes]) -> None:
    noise = {f"{n}.bin": os.urandom(200_000) for n in range(3)}
    names = {"a.mp4": clips["cfr.mp4"], **noise, "b.mp4": clips["cfr.mp4"], "c.mp4": clips["cfr.mp4"]}
    data = packed("x.tar.gz", names)
    study = study_at(tmp_path / "s", archives=("x.tar.gz",))
    lay(study, {"x.tar.gz": data[: len(data) // 2]})
    summary = extracted(study, ["a.mp4", "b.mp4", "c.mp4"])
    assert (summary.made, dict(summary.statuses)) == (1, {"archive_damaged": 2})
    lay(study, {"x.tar.gz": data})
    assert extracted(study, ["a.mp4", "b.mp4", "c.mp4"]).made == 2


def test_a_packed_tar_that_breaks_off_after_its_list_was_read(
    tmp_path: Path, clips: dict[str, bytes], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = {f"{n}{end}": os.urandom(9000) if end == ".bin" else clips["cfr.mp4"] for n in range(8) for end in ENDS}
    data = packed("x.tar.gz", noisy)
    study = study_at(tmp_path / "s", archives=("x.tar.gz",))
    lay(study, {"x.tar.gz": data})
    real = crew.Supply

    def cut_first(tasks: Any) -> Any:
        lay(study, {"x.tar.gz": data[: len(data) // 2]})
        return real(tasks)

    monkeypatch.setattr(crew, "Supply", cut_first)
    summary = extracted(study, [f"{n}.mp4" for n in range(8)])
    assert set(summary.statuses) == {"archive_damaged"}
    assert 1 <= summary.made == 8 - summary.failed
    assert os.listdir(scratch) == []


def test_two_videos_that_are_one_member_of_a_packed_tar(tmp_path: Path, clips: dict[str, bytes], scratch: Path) -> None:
    study = study_at(tmp_path / "s", archives=("x.tgz",), manifest="m.csv")
    lay(study, {"x.tgz": packed("x.tgz", {"z.mp4": clips["cfr.mp4"], "a.mp4": clips["cfr.mp4"]})})
    (study.root / "m.csv").write_text("key,file\none,x.tgz!/a.mp4\ntwo,x.tgz!/a.mp4\n")
    assert extracted(study, ["one", "z.mp4", "two"]).made == 3
    assert os.listdir(scratch) == []


def test_a_full_scratch_disk_stops_the_run_with_one_line(
    tmp_path: Path, clips: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("deflated.zip", "x.tgz"):
        study = study_at(tmp_path / kind, archives=(kind,))
        lay(study, {kind: packed(kind, clips)})
        (tmp_path / "file").write_bytes(b"")
        monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
        monkeypatch.setenv("BENCHCHECK_SCRATCH", str(tmp_path / "file" / "x"))
        with pytest.raises(StudyError, match="file"):
            extracted(study)


RUN = """
import sys
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames
print(extract_frames(Study.open(sys.argv[1]), workers=2).failed)
"""
CONFIG = """study_version = 1
models = {"8b" = {model = "m"}, "2b" = {model = "m"}}
frames = {count = 4, single = 1}
videos = {archives = ["x.tar.gz", "y.zip"]}
"""


@pytest.mark.long
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_run_killed_while_it_unpacks_leaves_nothing_behind(
    tmp_path: Path, clips: dict[str, bytes], scratch: Path, sent: int
) -> None:
    study = study_at(tmp_path / "s", archives=("x.tar.gz", "y.zip"))
    names = [f"{n}.mp4" for n in range(40)]
    lay(
        study,
        {"x.tar.gz": packed("x.tar.gz", dict.fromkeys(names[:30], clips["cfr.mp4"]) | {"n": os.urandom(1 << 22)})},
    )
    lay(study, {"y.zip": packed("deflated.zip", dict.fromkeys(names[30:], clips["cfr.mp4"]))})
    (study.root / "benchcheck.toml").write_text(CONFIG)
    study.write_pool([item(name, number=n) for n, name in enumerate(names)])
    command = [sys.executable, "-c", RUN, str(study.root)]
    for stop_at in (0, 3, 14, 25):
        with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not (len(study.frames_ready()) >= stop_at and os.listdir(scratch)):
                time.sleep(0.002)
            process.send_signal(sent)
        if sent == signal.SIGINT:
            assert os.listdir(scratch) == []
    assert len(study.frames_ready()) < 40
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "0\n"
    assert len(study.frames_ready()) == 40
    assert os.listdir(scratch) == []
    undisturbed = study_at(tmp_path / "t")
    lay(undisturbed, dict.fromkeys(names, clips["cfr.mp4"]))
    assert extracted(undisturbed, names).made == 40
    assert pictures(undisturbed) == pictures(study)
    shutil.rmtree(study.frames)


def test_an_archive_that_nobody_named_is_told_where_videos_are_missing(tmp_path: Path, run: Run) -> None:
    """The first thing that a newcomer meets: the download is one zip file, and every video is missing."""
    clips, study = tmp_path / "clips", make_study(tmp_path / "study")
    clips.mkdir()
    path = study.root / "benchcheck.toml"
    said = path.read_text(encoding="utf-8") + f'\n[videos]\nfolder = "{clips}"\n'
    path.write_text(said, encoding="utf-8")
    Study.open(study.root).write_pool(make_items(a=1))
    for command in (("frames", "extract"), ("videos", "prepare")):
        assert run(*command, study.root)[2] == ""
    (clips / "all.zip").write_bytes(b"")
    (clips / "more.tar.part-aa").write_bytes(b"")
    for command in (("frames", "extract"), ("videos", "prepare")):
        code, _, err = run(*command, study.root)
        assert code == 0
        assert err == (
            f"warning: {clips} holds archives that are not looked into: all.zip, more.tar.part-aa. "
            "Cure: name them in videos.archives\n"
        )
    path.write_text(said + 'archives = ["all.zip"]\n', encoding="utf-8")
    assert run("frames", "extract", study.root)[2] == ""
