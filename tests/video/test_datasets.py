"""Videos of a hub dataset, from a hub on this machine: single files, members of archives, what is refused."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import constants

from benchcheck.errors import InputError, RunError, StudyError, UsageError
from benchcheck.study import Study
from benchcheck.video.faults import VideoError
from benchcheck.video.making.extract import FramesSummary, extract_frames
from benchcheck.video.sources import datasets
from benchcheck.video.sources.media import reachable
from benchcheck.video.wanted import tasks_of, wanted_sets
from pool.reading.fake_hub import COMMIT, OTHER, FakeHub, serving

from .packing import packed
from .studies import item
from .test_finding import lay, met, pictures, sources, status, study_at, task_for


@pytest.fixture
def files(clip: Callable[[str], Path]) -> dict[str, bytes]:
    mp4, webm, gif = (clip(name).read_bytes() for name in ("cfr.mp4", "vp9.webm", "anim.gif"))
    tar = packed("x.tar", {"in/t.mp4": mp4, "in/u.mp4": webm})
    return {
        "README.md": b"# a dataset",
        "videos/a [1] 'q' é.mp4": mp4,
        "videos/b.webm": webm,
        "clips.zip": packed("stored.zip", {"z/c.mp4": mp4, "z/d.gif": gif}),
        "big.tar.part-aa": tar[:9000],
        "big.tar.part-ab": tar[9000:],
        "subtitles.zip": packed("stored.zip", {"c.srt": b"1"}),
    }


@pytest.fixture
def hub(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub({"owner/set": files, "owner/gated": files}, {"owner/gated"})) as hub:
        reach(hub.url, tmp_path / "cache", monkeypatch)
        yield hub


def reach(url: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point this process and its workers to a hub."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + template)
    monkeypatch.setattr("time.sleep", lambda _: None)  # between the library's retries
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    settings = {"HF_ENDPOINT": url, "HF_HUB_CACHE": str(cache), "HF_TOKEN": "hf_secret"}
    settings |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def study(root: Path, hub: str = "owner/set", revision: str = COMMIT, **videos: Any) -> Study:
    return study_at(root / "s", hub=hub, revision=revision, **videos)


def extracted(study: Study, names: list[str]) -> FramesSummary:
    return extract_frames(study, items=[item(name, number=n) for n, name in enumerate(names)], workers=2)


def fetched(hub: FakeHub) -> set[str]:
    """The files that were downloaded."""
    return {
        asked.partition(f"/resolve/{COMMIT}/")[2]
        for asked in hub.asked
        if asked.startswith("GET") and "api" not in asked
    }


def test_single_files_and_members_give_the_frames_of_plain_files(
    hub: FakeHub, files: dict[str, bytes], tmp_path: Path, clip: Callable[[str], Path]
) -> None:
    gif = clip("anim.gif")
    names = ["a [1] 'q' é.mp4", "videos/b", "c.mp4", "z/d.gif", "t.mp4"]
    found = study(tmp_path, files=("videos/", "clips.zip", "big.tar*"))
    summary = extracted(found, names)
    assert (summary.made, summary.failed) == (5, 0), summary.lines()
    at = f"owner/set@{COMMIT}/"
    assert set(sources(found)) == {
        at + "videos/a [1] 'q' é.mp4", at + "videos/b.webm", at + "clips.zip!/z/c.mp4", at + "clips.zip!/z/d.gif",
        at + "big.tar!/in/t.mp4",
    }  # fmt: skip
    mp4, webm = files["videos/a [1] 'q' é.mp4"], files["videos/b.webm"]
    plain = study_at(tmp_path / "p")
    data = {names[0]: mp4, "videos/b.webm": webm, "c.mp4": mp4, "z/d.gif": gif.read_bytes(), "t.mp4": mp4}
    lay(plain, data)
    assert extracted(plain, names).made == 5
    assert pictures(plain) == pictures(found)
    assert fetched(hub) == {
        "videos/a [1] 'q' é.mp4",
        "videos/b.webm",
        "clips.zip",
        "big.tar.part-aa",
        "big.tar.part-ab",
    }


def test_only_what_is_needed_is_downloaded(hub: FakeHub, tmp_path: Path) -> None:
    found = study(tmp_path)
    [task], _ = tasks_of(found, wanted_sets(found, [item("b.webm")]))
    assert fetched(hub) == set()
    with reachable(task) as media:
        assert media.sha256 == hashlib.sha256(hub.datasets["owner/set"]["videos/b.webm"]).hexdigest()
    assert fetched(hub) == {"videos/b.webm"}
    named = study(tmp_path, files=("clips.zip", "videos/b.webm"))
    lie = named.root / "videos" / "c.mp4"
    lie.write_bytes(b"plain")
    assert status(named, "c.mp4") == "not_a_video"
    assert status(named, "b.webm") == "ready"
    assert fetched(hub) == {"videos/b.webm"}, "no archive is downloaded for a video that lies in the folder"


def test_an_item_names_an_archive_of_the_dataset(hub: FakeHub, tmp_path: Path) -> None:
    found = study(tmp_path)
    task = task_for(found, "c.mp4", "clips.zip")
    assert not isinstance(task, tuple)
    assert task.member is not None
    assert task.member.name == f"owner/set@{COMMIT}/clips.zip!/z/c.mp4"
    assert status(found, "t.mp4", "big.tar") == "ready"
    assert status(found, "t.mp4", "clips.zip") == "missing"
    assert status(found, "videos/b.webm", "gone.zip") == "ready"
    assert fetched(hub) == {"clips.zip", "big.tar.part-aa", "big.tar.part-ab", "videos/b.webm"}


def told(study: Study, name: str) -> tuple[str, str]:
    summary = extracted(study, [name])
    [(kind, [(_, reason)])] = summary.examples.items()
    assert "hf_secret" not in "".join(summary.lines())
    return kind, reason


def test_what_is_not_in_the_dataset_is_missing_with_what_it_holds(hub: FakeHub, tmp_path: Path) -> None:
    kind, reason = told(study(tmp_path), "c.mp4")
    assert kind == "missing"
    assert "it has archives, which videos.files may name: big.tar, clips.zip, subtitles.zip" in reason
    kind, reason = told(study(tmp_path, files=("videos/*",)), "train/b.webm")
    assert kind == "missing"
    assert "there is videos/b.webm: set template to '{name}'" in reason
    kind, reason = told(study(tmp_path, files=("videos/*",)), "x.mp4")
    assert reason == "no file 'x.mp4', and none called so in owner/set"


def test_two_files_of_one_name_are_both_named(hub: FakeHub, tmp_path: Path) -> None:
    hub.datasets["owner/set"] |= {"old/b.webm": b"x"}
    assert told(study(tmp_path), "b.webm") == (
        "ambiguous",
        "'b.webm' may be any of these in owner/set: old/b.webm, videos/b.webm",
    )
    assert status(study(tmp_path, files=("videos/*",)), "b.webm") == "ready"


@pytest.mark.parametrize(
    ("name", "revision", "words"),
    [
        ("owner/none", COMMIT, "no such dataset, or a private one. Cure: check http://127.0.0.1:"),
        ("owner/gated", COMMIT, "this dataset is gated. Cure: ask for access on"),
        ("owner/set", OTHER, f"the dataset has no such commit. Cure: set revision = '{COMMIT}'"),
    ],
)
def test_what_the_hub_refuses_is_a_status(hub: FakeHub, tmp_path: Path, name: str, revision: str, words: str) -> None:
    kind, reason = told(study(tmp_path, name, revision), "b.webm")
    assert (kind, words in reason) == ("not_downloaded", True)


def test_a_dataset_without_a_commit_is_refused_with_the_newest(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"no revision is set.* Cure: set revision = '{COMMIT}'"):
        task_for(study(tmp_path, revision=""), "b.webm")


def test_offline_the_cache_is_enough(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = study(tmp_path, files=("videos/", "clips.zip"))
    names = ["videos/b.webm", "z/c.mp4"]
    assert extracted(found, names).made == 2
    before = pictures(found)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for path in sorted(found.frames.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert extracted(found, names).made == 2
    assert pictures(found) == before
    kind, reason = told(found, "a [1] 'q' é.mp4")
    assert (kind, "cannot be asked: owner/set@" in reason) == ("not_downloaded", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "empty"))
    kind, reason = told(study(tmp_path), "x.webm")
    assert (kind, "HF_HUB_OFFLINE is set. Cure: fetch it once online" in reason) == ("not_downloaded", True)


def test_a_hub_that_falls_away_is_a_status_and_what_is_there_is_used(hub: FakeHub, tmp_path: Path) -> None:
    found = study(tmp_path, files=("videos/", "clips.zip"))
    assert status(found, "z/c.mp4") == "ready"
    tasks, _ = tasks_of(found, wanted_sets(found, [item("b.webm")]))
    hub.gated.add("owner/set")
    with pytest.raises(VideoError) as raised, reachable(tasks[0]):
        pass
    assert raised.value.status == "not_downloaded"
    assert "'videos/b.webm': owner/set@" in raised.value.reason
    assert status(found, "z/c.mp4") == "ready"
    assert status(found, "b.webm") == "not_downloaded"
    assert status(study(tmp_path, files=("videos/", "*.tar*")), "t.mp4") == "not_downloaded"


def test_an_archive_that_cannot_be_fetched_is_a_status(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = datasets.fetch_file

    def refused(hub: str, revision: str, name: str, cache: str) -> Path:
        if name == "clips.zip":
            raise InputError("no network")
        return real(hub, revision, name, cache)

    monkeypatch.setattr(datasets, "fetch_file", refused)
    assert met(study(tmp_path, files=("clips.zip",)), "c.mp4") == (
        "not_downloaded",
        "'c.mp4' is not in what can be read: no network",
    )


def test_a_split_archive_of_which_a_part_was_never_uploaded(hub: FakeHub, tmp_path: Path) -> None:
    del hub.datasets["owner/set"]["big.tar.part-aa"]
    for patterns in ("big.tar*", "*.part-*", "big.tar"):
        assert status(study(tmp_path, files=(patterns,)), "t.mp4") == "archive_damaged"
    assert status(study(tmp_path), "t.mp4", "big.tar") == "archive_damaged"


def test_a_full_cache_stops_the_run_with_one_line(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [task], _ = tasks_of(study(tmp_path), wanted_sets(study(tmp_path), [item("b.webm")]))

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", full)
    with pytest.raises(StudyError, match="the hub's cache cannot be written"), reachable(task):
        pass
    with pytest.raises(RunError, match="the hub's cache cannot be written"):
        task_for(study(tmp_path, files=("clips.zip",)), "c.mp4")
