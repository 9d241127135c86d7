"""One video by several keys, or in several benchmarks: decoded once, and looked for in every place that they name."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.config import PoolSource, Videos
from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames, plan_extraction
from benchcheck.video.proving.certificate import certify
from benchcheck.video.store import last_outcomes

from .packing import packed
from .studies import item
from .test_finding import lay, study_at


def same(content: bytes, *members: str, start: float | None = None) -> list[Item]:
    """One item a member, all of one content; each but the first has a window of its own."""
    digest = hashlib.sha256(content).hexdigest()
    return [
        dataclasses.replace(item(member, number=number, start=start if number else None), video_id=digest)
        for number, member in enumerate(members)
    ]


@pytest.fixture
def film(clip: Callable[[str], Path]) -> bytes:
    return clip("cfr.mp4").read_bytes()


def sources(study: Study) -> set[str]:
    return {json.loads(path.read_text())["source"]["name"] for path in study.frames.rglob("frames.json")}


def test_windows_by_other_keys_are_decoded_in_one_go(tmp_path: Path, film: bytes) -> None:
    study = study_at(tmp_path)
    lay(study, {"a.mp4": film, "b.mp4": film})
    items = same(film, "a.mp4", "b.mp4", start=1.0)
    assert [set(task.windows) for task in plan_extraction(study, items).tasks] == [{each.frames_key for each in items}]
    assert extract_frames(study, items=items, workers=1).lines()[0].startswith("2 of 2 sets of frames are ready")
    assert sources(study) == {"a.mp4"}


@pytest.mark.parametrize(
    "first", [None, b"", b"<html><body>gone</body></html>" * 9, "cut", "other"], ids=["gone", "0", "html", "cut", "new"]
)
@pytest.mark.parametrize("archived", [False, True], ids=["file", "tar.gz"])
def test_the_place_of_another_key_counts_where_the_first_gives_nothing(
    tmp_path: Path, film: bytes, clip: Callable[[str], Path], first: bytes | str | None, archived: bool
) -> None:
    study = study_at(tmp_path, archives=("b.tar.gz",) if archived else ())
    lay(study, {"b.tar.gz": packed("b.tar.gz", {"b.mp4": film})} if archived else {"b.mp4": film})
    if first is not None:
        data = (
            {"cut": film[:2000], "other": clip("nob.mp4").read_bytes()}.get(first) if isinstance(first, str) else first
        )
        lay(study, {"a.mp4": data or b""})
    summary = extract_frames(study, items=same(film, "a.mp4", "b.mp4", start=1.0), workers=1)
    assert (summary.made, summary.examples) == (2, {})
    assert sources(study) == {"b.tar.gz!/b.mp4" if archived else "b.mp4"}


def test_where_no_place_gives_it_the_reason_is_not_that_one_is_empty(tmp_path: Path, film: bytes) -> None:
    study = study_at(tmp_path)
    lay(study, {"b.mp4": film[:2000]})
    extract_frames(study, items=same(film, "a.mp4", "b.mp4", "c.mp4"), workers=1)
    assert {outcome.status for outcome in last_outcomes(study).values()} == {"cut"}


def test_a_name_that_leads_out_does_not_hide_another_key(tmp_path: Path, film: bytes) -> None:
    study = study_at(tmp_path)
    lay(study, {"b.mp4": film})
    assert extract_frames(study, items=same(film, "../a.mp4", "b.mp4"), workers=1).made == 1


def test_two_benchmarks_name_one_key_and_have_folders_of_their_own(
    tmp_path: Path, film: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tuple(
        PoolSource(spec="generic", bench=bench, videos=Videos(folder=folder))
        for bench, folder in (("b", "x"), ("c", "y"))
    )
    study = study_at(tmp_path, pool=sources)
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "a.mp4").write_bytes(film)
    first = item("a.mp4")
    both = [first, dataclasses.replace(first, bench="c", item_id="c_0", start=1.0)]
    assert extract_frames(study, items=both, workers=1).made == 2


def test_the_certificate_reads_the_place_that_has_the_bytes(tmp_path: Path, film: bytes) -> None:
    pytest.importorskip("cv2")
    study = study_at(tmp_path)
    lay(study, {"a.mp4": film, "b.mp4": film})
    items = same(film, "a.mp4", "b.mp4")
    study.write_pool(items)
    extract_frames(study, workers=1)
    (study.root / "videos" / "a.mp4").write_bytes(film[:2000])
    assert certify(study, workers=1)["counts"]["agreeing"] == 1


@pytest.mark.parametrize("template", ["{member}", "{name}", "{stem}"])
def test_an_item_about_several_videos_is_shown_none_of_them(tmp_path: Path, film: bytes, template: str) -> None:
    study = study_at(tmp_path, template=template)
    lay(study, {"b.mp4": film, "x/b.mp4": film, "x/a.mp4": film})
    asked = dataclasses.replace(item("x/a.mp4|x/b.mp4"), issues=("several_videos",))
    extract_frames(study, items=[asked], workers=1)
    [outcome] = last_outcomes(study).values()
    assert (outcome.status, outcome.error) == ("several_videos", "the item is about x/a.mp4 and x/b.mp4")


def test_a_manifest_names_the_one_file_of_several_videos(tmp_path: Path, film: bytes) -> None:
    study = study_at(tmp_path, manifest="where.csv")
    lay(study, {"both.mp4": film})
    (tmp_path / "where.csv").write_text("key,file\na.mp4|b.mp4,both.mp4\n")
    asked = dataclasses.replace(item("a.mp4|b.mp4"), issues=("several_videos",))
    assert extract_frames(study, items=[asked], workers=1).made == 1


def test_an_item_without_a_video_is_told_so(tmp_path: Path) -> None:
    study = study_at(tmp_path)
    asked = dataclasses.replace(item(""), video_key="", video_id="", issues=("no_video",))
    extract_frames(study, items=[asked], workers=1)
    [outcome] = last_outcomes(study).values()
    assert (outcome.status, outcome.error) == ("no_video", "the item names no video")
