import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.config import Config, PoolSource, Videos
from benchcheck.errors import StudyError
from benchcheck.study import Study
from benchcheck.video.faults import VideoError
from benchcheck.video.store import (
    Outcome,
    candidates,
    check_file,
    find_file,
    last_outcomes,
    parse_video_key,
    record,
    videos_of,
)

from .studies import MODELS

ROOT = Path("/study")


def names(member: str, template: str = "{member}", bench: str = "b") -> list[str]:
    return [path.removeprefix("/study/videos/") for path in candidates(ROOT, Videos(template=template), bench, member)]


def fault(call: Callable[[], object]) -> VideoError:
    with pytest.raises(VideoError) as raised:
        call()
    assert "\n" not in raised.value.reason
    return raised.value


def test_video_keys_are_taken_apart() -> None:
    assert parse_video_key("repo::a.zip::dir/m.mp4").member == "dir/m.mp4"
    assert parse_video_key("repo::::m::x").member == "m::x"
    assert parse_video_key("repo").member == ""


def test_a_name_with_an_extension_is_taken_as_it_is() -> None:
    assert names("dir/a.mp4") == ["dir/a.mp4"]
    assert names("dir/a.WEBM") == ["dir/a.WEBM"]
    assert names("a.mpg") == ["a.mpg"]


def test_a_name_without_one_tries_the_common_ones() -> None:
    assert names("6H78U_11.1_19.6")[:3] == ["6H78U_11.1_19.6", "6H78U_11.1_19.6.mp4", "6H78U_11.1_19.6.webm"]
    assert "a.GIF" in names("a")


def test_templates() -> None:
    assert names("/home/author/data/a b.mp4", "{name}") == ["a b.mp4"]
    assert names(r"C:\data\a.mp4", "{name}") == ["a.mp4"]
    assert names("https://host/x/a.mp4", "{bench}/clips/{stem}.webm") == ["b/clips/a.webm"]
    assert names("x/a.1.mp4", "{stem}")[:2] == ["a.1", "a.1.mp4"]
    assert names("x/{stem}{y", "{member}")[0] == "x/{stem}{y"
    assert names("x/../a.mp4") == ["a.mp4"]


@pytest.mark.parametrize("member", ["../a.mp4", "x/../../a.mp4", "/etc/passwd", "/etc/a.mp4", "..", "x/../.."])
def test_names_never_lead_out_of_the_folder(member: str) -> None:
    assert fault(lambda: names(member)).status == "outside"


@pytest.mark.parametrize(("member", "status"), [("", "no_video"), ("/", "no_video"), ("a\0b.mp4", "missing")])
def test_names_that_are_none(member: str, status: str) -> None:
    assert fault(lambda: names(member)).status == status


@given(st.text(max_size=40), st.sampled_from(["{member}", "{name}", "{stem}", "{bench}/{stem}.mp4", "{member}/{name}"]))
def test_no_member_leads_out(member: str, template: str) -> None:
    try:
        paths = candidates(ROOT, Videos(template=template), "b", member)
    except VideoError:
        return
    assert all(os.path.normpath(path).startswith("/study/videos/") for path in paths)


def test_a_folder_may_be_absolute_and_a_source_has_its_own(tmp_path: Path) -> None:
    own = Videos(folder="/data/b", template="{stem}")
    other = Videos(folder="/data/val")
    pool = (
        PoolSource(spec="x.toml", files=("f",), bench="b", videos=own),
        PoolSource(spec="nextqa_val", files=("f",), videos=other),
        PoolSource(spec="generic", files=("mine.jsonl",), videos=other),
        PoolSource(spec="ovo_bench", files=("f",)),
    )
    config = Config(study_version=1, models=MODELS, pool=pool)
    assert videos_of(config, "b", tmp_path) == own
    assert videos_of(config, "x", tmp_path) == config.videos
    assert videos_of(config, "nextqa_val", tmp_path) == other
    assert videos_of(config, "mine", tmp_path) == other
    assert videos_of(config, "ovo_bench", tmp_path) == config.videos
    assert candidates(ROOT, own, "b", "q/a.mp4")[1] == "/data/b/a.mp4"
    assert candidates(ROOT, Videos(folder="/"), "b", "a.mp4") == ["/a.mp4"]


def test_find_file_takes_the_first_regular_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a.webm").write_bytes(b"x")
    (tmp_path / "link.mp4").symlink_to(tmp_path / "a.webm")
    assert find_file([str(tmp_path / "a"), str(tmp_path / "a.mp4"), str(tmp_path / "a.webm")]).endswith("a.webm")
    assert find_file([str(tmp_path / "link.mp4")]).endswith("link.mp4")


def test_what_stands_in_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.mp4").mkdir()
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "dangling.mp4").symlink_to(tmp_path / "gone.mp4")
    (tmp_path / "loop.mp4").symlink_to(tmp_path / "loop.mp4")
    (tmp_path / "file").write_bytes(b"")
    expected = {
        "folder.mp4": ("is_folder", "a folder"),
        "pipe.mp4": ("not_a_file", "neither"),
        "dangling.mp4": ("missing", "symbolic link to a file that is not there"),
        "loop.mp4": ("missing", "back to itself"),
        "gone.mp4": ("missing", "no file"),
        "file/a.mp4": ("missing", "no file"),
        "x" * 300: ("missing", "can be called so"),
        "\udc80\udfff": ("missing", ""),
        "new\nline'\".mp4": ("missing", "no file"),
    }
    for name, (status, words) in expected.items():
        told = fault(lambda name=name: find_file([str(tmp_path / name)]))
        assert (told.status, words in told.reason) == (status, True), (name, told.reason)


def test_the_most_telling_reason_is_given(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert fault(lambda: find_file([str(tmp_path / "a"), str(tmp_path / "a.mp4")])).status == "is_folder"
    (tmp_path / "b.webm").symlink_to("gone")
    assert "link" in fault(lambda: find_file([str(tmp_path / "b"), str(tmp_path / "b.webm")])).reason


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "stat", denied)
    assert fault(lambda: find_file(["/x/a.mp4"])).status == "unreadable"


def test_check_file_hashes_what_is_whole(clip: Callable[[str], Path]) -> None:
    data = clip("cfr.mp4").read_bytes()
    assert check_file(str(clip("cfr.mp4"))) == (hashlib.sha256(data).hexdigest(), len(data))


def test_check_file_tells_what_is_wrong(tmp_path: Path, clip: Callable[[str], Path]) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"")
    assert fault(lambda: check_file(str(path))).status == "empty"
    path.write_bytes(clip("cfr.mp4").read_bytes()[:-100])
    assert fault(lambda: check_file(str(path))).status == "cut"
    assert fault(lambda: check_file(str(tmp_path))).status == "unreadable"


def test_the_last_good_row_wins(study: Study) -> None:
    assert last_outcomes(study) == {}
    record(
        study, [Outcome("k", "f", "missing", "", "gone"), Outcome("k", "g", "cut", "", "1"), Outcome("k", "h", "ready")]
    )
    record(study, [Outcome("k", "f", "ready", "abc"), Outcome("k", "g", "empty", "", "2")])
    record(study, [Outcome("k", "h", "missing", "", "later")])
    last = last_outcomes(study)
    assert (last["f"].status, last["f"].content_hash, last["f"].ready) == ("ready", "abc", True)
    assert (last["g"].status, last["g"].error) == ("empty", "2")
    assert last["h"].ready, "frames that are written stay, whatever a later look at the file says"
    row = json.loads(study.video_manifest.read_text().splitlines()[0])
    assert list(row) == ["key", "frames_key", "status", "content_hash", "error", "at"]


def test_torn_and_foreign_lines_are_skipped(study: Study) -> None:
    record(study, [Outcome("k", "f", "ready")])
    with study.video_manifest.open("a") as file:
        file.write(
            '[1]\n{"key": "only"}\n{"key": 1, "frames_key": 2, "status": 3, "content_hash": 4, "error": 5}\n'
            '{"key": "k", "frames_key": "\\ud800", "status": "cut", "content_hash": "", "error": null}\n'
            '{"key": "k", "fra'
        )
    record(study, [Outcome("k", "g", "ready")])
    with study.video_manifest.open("ab") as file:
        file.write(b"[" * 200_000 + b"\n\xff\n\0\n")
    assert set(last_outcomes(study)) == {"f", "g"}


def test_an_unreadable_manifest_is_one_line(study: Study) -> None:
    study.video_manifest.mkdir(parents=True)
    with pytest.raises(StudyError, match=r"manifest\.jsonl"):
        last_outcomes(study)
