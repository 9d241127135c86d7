import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import Frames, Normalize, step_key
from benchcheck.errors import StudyError, UsageError
from benchcheck.files import append_rows
from benchcheck.pool.items import Item
from benchcheck.run.lock import run_lock
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.video import crew
from benchcheck.video.faults import CURES
from benchcheck.video.frames import FrameSet, load_frames
from benchcheck.video.making.extract import extract_frames
from benchcheck.video.preparing.prepare import PrepareProgress, prepare_videos, stamp_of
from benchcheck.video.preparing.prepared import list_videos
from benchcheck.video.preparing.rekeying import rekey
from benchcheck.video.store import check_file, last_outcomes, record
from benchcheck.video.task import HubFile, Member, Task
from studies import Run

from .studies import CONFIG_TEXT, item
from .test_decode import damaged
from .test_extract import bad_files, digest_of


def items_on(*members: str, bench: str = "b", **changes: Any) -> list[Item]:
    """One question on each file, of a benchmark."""
    made = [item(member, number=number, **changes) for number, member in enumerate(members)]
    return [replace(one, item_id=f"{bench}_{one.item_id}", bench=bench) for one in made]


def renamed(one: Item, repo: str) -> Item:
    """The same question in another benchmark, under another video key."""
    key = one.video_key.replace("b::", f"{repo}::", 1)
    from benchcheck.video.store import parse_video_key

    return replace(one, item_id=f"{repo}_0", bench=repo, video_key=key, video_id=parse_video_key(key).video_id)


def hash_of(study: Study, member: str) -> str:
    return check_file(str(study.root / "videos" / member))[0]


def ids(study: Study) -> dict[str, str]:
    return {one.video_key: one.video_id for one in study.items()}


@pytest.fixture
def with_clips(study: Study, clip: Callable[[str], Path]) -> Study:
    """Three videos, two of them of one content; one question has a window."""
    for name, kind in (("a.mp4", "cfr.mp4"), ("twin.mp4", "cfr.mp4"), ("c.webm", "vp9.webm")):
        shutil.copy(clip(kind), study.root / "videos" / name)
    window = replace(item("a.mp4", start=0.5, end=1.5, number=9), item_id="b_w")
    twin = renamed(item("twin.mp4"), "other")
    study.write_pool([*items_on("a.mp4", "c.webm"), window, twin])
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    return study


def test_videos_get_their_content_as_id_and_nothing_else_changes(with_clips: Study) -> None:
    study = with_clips
    before, seen = study.items(), list[PrepareProgress]()
    summary = prepare_videos(study, workers=1, progress=seen.append)
    assert (summary.total, summary.before, summary.made, summary.failed) == (3, 0, 3, 0)
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (3, 0, 3)
    assert seen[-1].videos_per_s > 0
    one, other = hash_of(study, "a.mp4"), hash_of(study, "c.webm")
    assert ids(study) == {"b::::a.mp4": one, "b::::c.webm": other, "other::::twin.mp4": one}
    assert [each.frames_key for each in study.items()] == [one, other, f"{one}@500-1500", one]
    for old, new in zip(before, study.items(), strict=True):
        assert (old.digest, replace(old, video_id="")) == (new.digest, replace(new, video_id=""))
    stored = study.item_table(["item_digest", "frames_key"]).to_pylist()
    assert [(row["item_digest"], row["frames_key"]) for row in stored] == [
        (each.digest, each.frames_key) for each in study.items()
    ]
    assert summary.lines() == [
        "3 of 3 videos are prepared (3 looked at now)",
        "3 videos got their id by content",
        "2 videos are 1 file by content, 1 of them across benchmarks",
    ]


def test_what_is_unchanged_is_not_read_again_and_what_changed_is(
    with_clips: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, path = with_clips, with_clips.root / "videos" / "a.mp4"
    prepare_videos(study, workers=1)
    rows, pool = study.video_manifest.read_bytes(), study.pool_file.stat().st_mtime_ns
    again = prepare_videos(study)
    assert (again.before, again.made, again.failed) == (3, 0, 0)
    assert (study.video_manifest.read_bytes(), study.pool_file.stat().st_mtime_ns) == (rows, pool)
    first = hash_of(study, "a.mp4")
    shutil.copy(clip("seven.mp4"), path)
    changed = prepare_videos(study, workers=1)
    assert (changed.before, changed.made) == (2, 1)
    assert ids(study)["b::::a.mp4"] == hash_of(study, "a.mp4") != first
    kept = path.read_bytes()
    path.unlink()
    gone = prepare_videos(study, workers=1)
    assert dict(gone.statuses) == {"missing": 1}
    assert ids(study)["b::::a.mp4"] == check_file_of(kept, path.with_name("kept.mp4"))
    shown = {video.key: video for video in list_videos(study).videos}
    assert (shown["b::::a.mp4"].status, shown["b::::a.mp4"].probe["frames"]) == ("missing", 7)
    path.write_bytes(kept)
    assert prepare_videos(study, workers=1).failed == 0


def check_file_of(data: bytes, path: Path) -> str:
    path.write_bytes(data)
    return check_file(str(path))[0]


def test_frames_that_are_there_move_and_two_keys_share_theirs(with_clips: Study) -> None:
    study = with_clips
    assert extract_frames(study, workers=1).made == 4
    pictures = {Path(name).name + digest for name, digest in digest_of(study).items() if name.endswith(".jpg")}
    summary = prepare_videos(study, workers=1)
    one, other = hash_of(study, "a.mp4"), hash_of(study, "c.webm")
    assert study.frames_ready() == {one, other, f"{one}@500-1500"}
    assert (summary.rekeyed.moved, summary.rekeyed.left) == (4, ())
    assert {Path(name).name + digest for name, digest in digest_of(study).items() if name.endswith(".jpg")} == pictures
    for each in study.items():
        assert isinstance(load_frames(study, each.frames_key), FrameSet)
        assert json.loads((study.frames / each.frames_key / "frames.json").read_text())["key"] == each.frames_key
        assert last_outcomes(study)[each.frames_key].ready
    assert extract_frames(study, workers=1).lines() == ["3 of 3 sets of frames are ready (0 made now)"]


def test_equal_content_is_decoded_once(with_clips: Study) -> None:
    prepare_videos(with_clips, workers=1)
    summary = extract_frames(with_clips, workers=1)
    assert (summary.total, summary.made, summary.videos) == (3, 3, 2)


def test_frames_of_other_bytes_stay_and_are_told(with_clips: Study, clip: Callable[[str], Path]) -> None:
    study = with_clips
    extract_frames(study, workers=1)
    shutil.copy(clip("seven.mp4"), study.root / "videos" / "c.webm")
    (study.frames / item("a.mp4", start=0.5, end=1.5).frames_key / "frame_3.jpg").write_bytes(b"")
    summary = prepare_videos(study, workers=1)
    left = {item("c.webm").frames_key, item("a.mp4", start=0.5, end=1.5).frames_key}
    assert set(summary.rekeyed.left) == left
    assert left <= study.frames_ready()
    assert "2 sets of frames keep their old key" in "\n".join(summary.lines())
    assert extract_frames(study, workers=1).made == 2


def test_a_twin_with_other_settings_is_not_thrown_away(with_clips: Study, make_study: Callable[..., Study]) -> None:
    study = with_clips
    extract_frames(study, items=[study.items()[0]], workers=1)
    extract_frames(make_study(Frames(count=4, single=1)), items=[study.items()[3]], workers=1)
    summary = prepare_videos(study, workers=1)
    assert (summary.rekeyed.moved, len(summary.rekeyed.left)) == (1, 1)


def test_a_window_that_failed_is_still_known_to(with_clips: Study) -> None:
    study = with_clips
    outside = item("a.mp4", start=100.0, end=200.0, number=3)
    study.write_pool([*study.items(), outside])
    extract_frames(study, workers=1)
    prepare_videos(study, workers=1)
    assert last_outcomes(study)[f"{hash_of(study, 'a.mp4')}@100000-200000"].status == "window_outside"


def test_bad_files_have_a_status_each_and_keep_their_id(study: Study, clip: Callable[[str], Path]) -> None:
    expected = bad_files(study.root / "videos", clip("cfr.mp4"))
    shutil.copy(clip("one.mp4"), study.root / "videos" / "one.mp4")
    study.write_pool(items_on(*expected, "one.mp4"))
    summary = prepare_videos(study, workers=2)
    shown = {video.key.split("::", 2)[2]: video for video in list_videos(study).videos}
    assert {name: video.status for name, video in shown.items()} == expected | {"one.mp4": "prepared"}
    assert summary.statuses == Counter(expected.values())
    assert set(summary.statuses) <= set(CURES)
    assert all(video.error and "\n" not in video.error for name, video in shown.items() if name != "one.mp4")
    assert [key for key, video_id in ids(study).items() if not video_id.startswith("k:")] == ["b::::one.mp4"]


@pytest.mark.long
def test_ten_thousand_missing_files_are_one_summary(study: Study) -> None:
    names = [f"{number}.mp4" for number in range(10_000)]
    study.write_pool(items_on(*names))
    shown = list_videos(study)
    assert shown.statuses == {"not_tried": 10_000}
    summary = prepare_videos(study, workers=1)
    assert summary.statuses == {"missing": 10_000}
    assert len(summary.lines()) == 8


def test_a_hanging_and_a_crashing_decoder_fail_one_video_each(
    with_clips: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, signal, time
from benchcheck.video import worker
from benchcheck.video.preparing import inspection
real = inspection.inspect
def wild(task, *rest):
    if "c.webm" in task.key:
        time.sleep(60)
    if "twin" in task.key:
        os.kill(os.getpid(), signal.SIGSEGV)
    return real(task, *rest)
inspection.inspect = wild
worker.main()
"""
    real, command = crew.work_through, (sys.executable, "-c", code)

    def wild(tasks: Any, settings: Any, workers: int, *_: Any) -> Any:
        return real(tasks, settings, workers, command)

    monkeypatch.setattr(crew, "work_through", wild)
    summary = prepare_videos(with_clips, workers=2, limit_s=2.0)
    assert (summary.made, dict(summary.statuses)) == (1, {"too_slow": 1, "crashed": 1})


def test_a_given_pool_is_never_written(with_clips: Study, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    shutil.copy(with_clips.pool_file, with_clips.root / "given.parquet")
    monkeypatch.setenv("POOL_BASE", str(with_clips.root / "given.parquet"))
    code, _, err = run("videos", "prepare", with_clips.root)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert "POOL_BASE" in err


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"limit_s": 0.0}])
def test_senseless_numbers_are_refused(with_clips: Study, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        prepare_videos(with_clips, **wrong)


def test_the_command_waits_for_no_run(with_clips: Study, run: Run) -> None:
    with run_lock(with_clips):
        code, _, err = run("videos", "prepare", with_clips.root)
    assert (code, "another run is at work" in err) == (2, True)


def test_the_commands(with_clips: Study, run: Run) -> None:
    code, out, _ = run("videos", "prepare", with_clips.root, "--workers", "1")
    assert (code, out.splitlines()[0]) == (0, "3 of 3 videos are prepared (3 looked at now)")
    code, out, _ = run("videos", "list", with_clips.root)
    assert code == 0
    assert [line.split() for line in out.splitlines()[:2]] == [["status", "videos", "what", "helps"], ["prepared", "3"]]
    assert ["h264", "8-bit", "2"] in [line.split() for line in out.splitlines()]
    assert "2 videos are 1 file by content" in out
    assert "may be one film: other::::twin.mp4 and b::::c.webm" in out
    code, out, _ = run("videos", "list", with_clips.root, "--json")
    told = json.loads(out)
    assert told["statuses"] == {"prepared": 3}
    assert told["duplicates"] == [
        {
            "content_hash": hash_of(with_clips, "a.mp4"),
            "keys": ["b::::a.mp4", "other::::twin.mp4"],
            "benches": ["b", "other"],
        }
    ]
    assert told["alike"] == [{"keys": ["other::::twin.mp4", "b::::c.webm"]}]
    assert told["videos"][1]["probe"]["codec"] == "vp9"


# Ids through builds.


def build(run: Run, study: Study) -> bytes:
    code, _, err = run("pool", "build", study.root)
    assert code == 0, err
    return study.pool_file.read_bytes()


def test_ids_stay_through_build_prepare_and_build(tmp_path: Path, clip: Callable[[str], Path], run: Run) -> None:
    root = tmp_path / "built"
    rows = [{"id": n, "question": f"{n}?", "options": ["x", "y"], "answer": 0, "video": f"{n}.mp4"} for n in range(3)]
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("init", root, "--file", file, "--bench", "m", "--embedded")[0] == 0
    study = Study.open(root)
    build(run, study)
    before = study.items()
    (root / "videos").mkdir()
    for number in range(2):
        shutil.copy(clip("one.mp4"), root / "videos" / f"{number}.mp4")
    assert run("videos", "prepare", root)[0] == 0
    known = ids(study)
    assert [video_id.startswith("k:") for video_id in known.values()] == [False, False, True]
    again = build(run, study)
    assert ids(study) == known
    assert [each.digest for each in study.items()] == [each.digest for each in before]
    assert build(run, study) == again
    with file.open("a") as more:
        more.write(json.dumps(rows[0] | {"id": 7}) + "\n")
    build(run, study)
    assert [each.video_id for each in study.items()][3] == known[before[0].video_key]


@pytest.mark.long
def test_answers_stay_valid(tmp_path: Path, clip: Callable[[str], Path], run: Run) -> None:
    root, file = tmp_path / "asked", tmp_path / "items.jsonl"
    rows = [{"id": n, "question": f"{n}?", "options": ["x", "y"], "answer": 0, "video": f"{n}.mp4"} for n in range(4)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("init", root, "--file", file, "--bench", "m", "--embedded")[0] == 0
    config = root / "benchcheck.toml"
    config.write_text(config.read_text().replace("embedded:large", "scripted").replace("embedded:small", "scripted"))
    (root / "videos").mkdir()
    for number in range(4):
        shutil.copy(clip("one.mp4"), root / "videos" / f"{number}.mp4")
    build(run, Study.open(root))
    assert run("frames", "extract", root, "--workers", "1")[0] == 0
    done = ["WAITING_TOTAL=0", "FAILED_TOTAL=0", "REMAINING_TOTAL=0"]
    assert run("screen", root, "--engine", "scripted")[1].splitlines()[-3:] == done
    answers = {step: len(Study.open(root).rows(step).table) for step in range(1, 7)}
    assert answers[1] == 4
    assert run("videos", "prepare", root, "--workers", "1")[0] == 0
    assert len(Study.open(root).frames_ready()) == 1
    assert run("screen", root, "--engine", "scripted")[1].splitlines()[-3:] == done
    assert {step: len(Study.open(root).rows(step).table) for step in range(1, 7)} == answers


# Stopped anywhere, the same command completes it.

STEP = """
import os, pathlib, shutil, signal, sys
from benchcheck import files
from benchcheck.pool.contents import content_ids
from benchcheck.study import Study
from benchcheck.video.preparing import rekeying
left = int(sys.argv[2])
def deadly(real):
    def call(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)
    return call
for owner, name in ((pathlib.Path, "rename"), (pathlib.Path, "replace"), (shutil, "rmtree"), (rekeying, "record")):
    setattr(owner, name, deadly(getattr(owner, name)))
study = Study.open(sys.argv[1])
rekeying.rekey(study, content_ids(study))
print("DONE", left)
"""


def whole(study: Study) -> dict[str, str]:
    """The sets that are there, by content; what a killed run left is cleared by the next one, or in a minute."""
    return {name: digest for name, digest in digest_of(study).items() if not name.startswith(".")}


@pytest.mark.long
def test_killed_between_any_two_steps_it_is_completed(with_clips: Study, tmp_path: Path) -> None:
    study = with_clips
    extract_frames(study, workers=1)
    template = tmp_path / "template"
    ready = tmp_path / "ready"
    shutil.copytree(study.root, ready)
    prepare_videos(Study.open(ready), workers=1)
    shutil.copy(Study.open(ready).video_manifest, study.video_manifest)
    rows = study.video_manifest.read_text().splitlines()
    study.video_manifest.write_text("\n".join(rows[:-3]) + "\n")  # without the rows that moving appended
    assert len(last_outcomes(study)) == 4
    shutil.copytree(study.root, template)
    wanted = (ids(Study.open(ready)), whole(Study.open(ready)))
    for step in range(1, 60):
        root = tmp_path / f"step{step}"
        shutil.copytree(template, root)
        command = [sys.executable, "-c", STEP, str(root), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        opened = Study.open(root)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed = done.returncode != 0
        table = opened.item_table()  # never half there
        assert len(table) == 4
        rekey(opened, {video.key: video.content_hash for video in list_videos(opened).videos})
        assert (ids(opened), whole(opened)) == wanted, step
        assert all(last_outcomes(opened)[each.frames_key].ready for each in opened.items())
        if not killed:
            break
    assert step > 8


@pytest.mark.long
def test_killed_in_the_middle_the_same_command_completes_it(with_clips: Study, clip: Callable[[str], Path]) -> None:
    study = with_clips
    for number in range(30):
        shutil.copy(clip("gop.mp4"), study.root / "videos" / f"{number}.mp4")
    study.write_pool(items_on(*(f"{number}.mp4" for number in range(30))))
    command = [sys.executable, "-m", "benchcheck", "videos", "prepare", str(study.root), "--workers", "1"]
    for _ in range(2):
        seen = len(study.video_manifest.read_bytes().splitlines()) if study.video_manifest.exists() else 0
        killed = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not study.video_manifest.exists() or len(study.video_manifest.read_bytes().splitlines()) < seen + 3:
            assert killed.poll() is None
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
    summary = prepare_videos(study, workers=2)
    assert summary.before >= 6
    assert summary.before + summary.made == 30
    assert set(ids(study).values()) == {hash_of(study, "0.mp4")}


# Frames from normalised videos.


def test_frames_are_made_from_normalised_videos_when_the_config_says_so(with_clips: Study) -> None:
    study = with_clips
    plain = step_key(study.config, LADDER[3])
    study.config = replace(study.config, normalize=Normalize(frames="normalized", short_side=48))
    assert step_key(study.config, LADDER[3]) != plain
    assert step_key(study.config, LADDER[1]) == step_key(replace(study.config, normalize=Normalize()), LADDER[1])
    early = extract_frames(study, workers=1)
    assert dict(early.statuses) == {"not_prepared": 4}
    summary = prepare_videos(study, workers=1)
    assert "3 of 3 videos are prepared and normalised" in summary.lines()[0]
    for path in (study.root / "videos").iterdir():
        path.unlink()  # the originals are not needed any more
    assert extract_frames(study, workers=1).made == 3
    one = hash_from(study, "b::::a.mp4")
    table = json.loads((study.frames / one / "frames.json").read_text())
    assert table["size"] == [88, 48]
    assert table["normalized"] == study.config.normalize.pictures
    assert table["source"]["original"] == one
    assert table["source"]["name"] == f"normalized/{one}/video.mp4"
    assert table["source"]["sha256"] == check_file(str(study.normalized / one / "video.mp4"))[0]
    assert last_outcomes(study)[one].content_hash == one
    study.config = replace(study.config, normalize=Normalize())
    with pytest.raises(StudyError, match=r"normalize.*but the config says .*unused.*Cure"):
        load_frames(study, one)


def hash_from(study: Study, key: str) -> str:
    return ids(study)[key]


def test_asked_to_a_preparation_normalises_what_it_looked_at_before(with_clips: Study, run: Run) -> None:
    study = with_clips
    prepare_videos(study, workers=1)
    assert not study.normalized.exists()
    code, out, err = run("videos", "prepare", study.root, "--normalize", "--workers", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "3 of 3 videos are prepared and normalised (3 looked at now)"
    assert set(os.listdir(study.normalized)) == {hash_of(study, "a.mp4"), hash_of(study, "c.webm")}
    assert prepare_videos(study, normalize=True).before == 3
    assert extract_frames(study, items=study.items()[:1], workers=1).made == 1  # from the original all the same


def test_a_file_that_is_another_one_than_its_id_says_gives_no_frames(
    with_clips: Study, clip: Callable[[str], Path]
) -> None:
    prepare_videos(with_clips, workers=1)
    shutil.copy(clip("seven.mp4"), with_clips.root / "videos" / "c.webm")
    summary = extract_frames(with_clips, workers=1)
    assert dict(summary.statuses) == {"changed": 1}
    assert prepare_videos(with_clips, workers=1).made == 1
    assert extract_frames(with_clips, workers=1).failed == 0


# What tells whether a file is the same.


def test_stamps(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"abc")
    plain = Task("k", (str(path),), {}, str(tmp_path))
    assert stamp_of(plain) == [[3, path.stat().st_mtime_ns]]
    assert stamp_of(replace(plain, paths=(str(tmp_path / "gone"),))) is None
    member = Member("a.tar", (str(path),), "x.mp4", at=512, size=3, packed=3)
    packed = Task("k", (), {}, "", member=member)
    assert stamp_of(packed) == [[3, path.stat().st_mtime_ns], ["x.mp4", 512, 3]]
    assert stamp_of(replace(packed, member=replace(member, parts=(str(tmp_path / "gone"),)))) is None
    assert stamp_of(Task("k", (), {}, "", hub=HubFile("o/n", "c" * 40, "a.mp4"))) == ["o/n", "c" * 40, "a.mp4"]
    assert stamp_of(Task("k", (), {}, "")) is None


def test_rows_without_findings_are_no_good_ones(with_clips: Study) -> None:
    row = {"key": "b::::a.mp4", "status": "prepared", "content_hash": "a" * 64}
    bad: list[dict[str, Any]] = [
        row,
        row | {"probe": [], "fingerprint": ""},
        row | {"probe": {"codec": "x", "bit_depth": 8, "duration": "1"}, "fingerprint": ""},
        row | {"probe": {"codec": "x", "bit_depth": 8, "duration": 1.0}, "fingerprint": "xyz"},
    ]
    append_rows(with_clips.video_manifest, bad)
    record(with_clips, [])
    (shown, *_) = list_videos(with_clips).videos
    assert (shown.content_hash, shown.probe, list_videos(with_clips).alike()) == ("", {}, [])
    assert prepare_videos(with_clips, workers=1).made == 3


@pytest.mark.parametrize("archive", ["v.zip", "v.tar", "v.tar.gz"])
def test_members_of_archives_are_prepared_and_known_again(
    study: Study, clip: Callable[[str], Path], archive: str
) -> None:
    source, packed = clip("cfr.mp4"), study.root / "videos" / archive
    if archive.endswith("zip"):
        with zipfile.ZipFile(packed, "w") as target:
            target.write(source, "clips/a.mp4")
            target.write(clip("vp9.webm"), "clips/b.webm")
    else:
        with tarfile.open(packed, "w:gz" if archive.endswith("gz") else "w") as target_:
            target_.add(source, "clips/a.mp4")
            target_.add(clip("vp9.webm"), "clips/b.webm")
    study.config = replace(study.config, videos=replace(study.config.videos, archives=(archive,)))
    study.write_pool(items_on("a.mp4", "b.webm"))
    summary = prepare_videos(study, normalize=True, workers=1)
    assert (summary.made, summary.failed) == (2, 0)
    assert ids(study)["b::::a.mp4"] == check_file(str(source))[0]
    assert set(os.listdir(study.normalized)) == set(ids(study).values())
    again = prepare_videos(study, normalize=True, workers=1)
    assert (again.before, again.made) == (2, 0)
    os.utime(packed, (1, 1))
    assert prepare_videos(study, workers=1).made == 2


def test_ctrl_c_ends_the_workers_and_keeps_what_was_found(with_clips: Study) -> None:
    def interrupt(_: PrepareProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_videos(with_clips, workers=1, normalize=True, progress=interrupt)
    assert all(not name.startswith(".") for name in os.listdir(with_clips.normalized))
    assert all(video_id.startswith("k:") for video_id in ids(with_clips).values())
    assert prepare_videos(with_clips, normalize=True).before == 1


def test_what_cannot_be_normalised_is_told_and_has_its_id(study: Study, clip: Callable[[str], Path]) -> None:
    damaged(clip("gop.mp4"), study.root / "videos" / "a.mp4", start=0.3, share=0.1)
    study.write_pool(items_on("a.mp4"))
    summary = prepare_videos(study, normalize=True, workers=1)
    assert (summary.made, dict(summary.statuses)) == (0, {"damaged": 1})
    assert "which a copy would hide" in "\n".join(summary.lines())
    assert ids(study)["b::::a.mp4"] == hash_of(study, "a.mp4")
    assert prepare_videos(study, workers=1).before == 1
