"""Annotation files of hub datasets, from a hub on this machine and from the cache that it leaves."""

import errno
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from benchcheck.errors import BenchcheckError, InputError, RunError, UsageError
from benchcheck.pool.reading.hub import fetch, newest_commit
from benchcheck.pool.reading.readers import read_records

from .fake_hub import COMMIT, OTHER, FakeHub, serving

FILES = {
    "README.md": b"# a dataset",
    "data/test-00000-of-00002.jsonl": b'{"q": 1}\n',
    "data/test-00001-of-00002.jsonl": b'{"q": 2}\n',
    "data/val.csv": b"q,a\n1,2\n",
    "videos/a.mp4": b"\0" * 99,
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with serving(FakeHub({"owner/set": dict(FILES), "owner/gated": dict(FILES)}, {"owner/gated"})) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template)
        monkeypatch.setattr("time.sleep", lambda _: None)  # between the library's retries
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        yield hub


def complaint(hub: str, revision: str, patterns: list[str], kind: type[BenchcheckError] = InputError) -> str:
    with pytest.raises(kind) as caught:
        fetch(hub, revision, patterns)
    assert type(caught.value) is kind
    assert "\n" not in str(caught.value)
    assert "hf_secret" not in str(caught.value)
    return str(caught.value)


def test_files_come_in_the_order_asked_for_and_nothing_else_travels(hub: FakeHub) -> None:
    found = fetch("owner/set", COMMIT, ["data/val.csv", "data/test-*.jsonl"])
    assert [path.name for path in found] == ["val.csv", "test-00000-of-00002.jsonl", "test-00001-of-00002.jsonl"]
    assert [record.values for path in found[1:] for record in read_records(path)] == [{"q": 1}, {"q": 2}]
    assert not any("mp4" in asked or "README" in asked for asked in hub.asked)
    assert [path.name for path in fetch("owner/set", COMMIT, ["data/"])][-1] == "val.csv"


def test_what_is_in_the_cache_needs_no_hub(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = fetch("owner/set", COMMIT, ["data/*.jsonl"])
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert fetch("owner/set", COMMIT, ["data/*.jsonl"]) == first
    assert hub.asked == []
    offline = "HF_HUB_OFFLINE is set. Cure: fetch it once online, or copy the cache"
    assert offline in complaint("owner/set", COMMIT, ["data/val.csv"])
    assert offline in complaint("owner/other", COMMIT, ["data/val.csv"])


def test_a_branch_is_no_revision_and_the_newest_commit_is_named(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        f"no revision is set, and a branch moves. Allowed: a commit, 40 hex digits. Cure: set revision = '{COMMIT}'"
        in (complaint("owner/set", "", ["*.csv"], UsageError))
    )
    assert "owner/set: revision = 'main' may move" in complaint("owner/set", "main", ["*.csv"], UsageError)
    assert "Cure: set revision to one from its page on the hub" in complaint("owner/none", "", ["*.csv"], UsageError)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert newest_commit("owner/set") == ""
    ref = Path(constants.HF_HUB_CACHE, "datasets--owner--set", "refs", "main")
    ref.parent.mkdir(parents=True)
    ref.write_text(COMMIT)
    assert f"Cure: set revision = '{COMMIT}', the newest" in complaint("owner/set", "", ["*.csv"], UsageError)


@pytest.mark.parametrize(
    ("name", "revision", "pattern", "message"),
    [
        ("owner/none", COMMIT, "*.csv", "no such dataset, or a private one. Cure: check http://127.0.0.1:"),
        ("owner/gated", COMMIT, "*.csv", "this dataset is gated. Cure: ask for access on http://127.0.0.1:"),
        ("owner/set", OTHER, "*.csv", f"the dataset has no such commit. Cure: set revision = '{COMMIT}'"),
        ("owner/set", COMMIT, "*.tsv", "no file matches '*.tsv'. It holds: README.md, data/test-00000-of-00002.jsonl"),
    ],
)
def test_what_the_hub_refuses_is_one_line(hub: FakeHub, name: str, revision: str, pattern: str, message: str) -> None:
    text = complaint(name, revision, [pattern])
    assert text.startswith(f"{name}@{revision}: ")
    assert message in text


def test_a_hub_that_does_not_answer_is_one_line(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be fetched (" in complaint("owner/set", COMMIT, ["*.csv"])
    (Path(constants.HF_HUB_CACHE) / "datasets--owner--set" / "snapshots" / COMMIT).mkdir(parents=True)
    assert "owner/set@" in complaint("owner/set", COMMIT, ["*.csv"])


def test_names_and_patterns_are_checked_first(hub: FakeHub) -> None:
    assert "hub = 'set' is not allowed. Allowed: a dataset" in complaint("set", COMMIT, ["*.csv"], UsageError)
    assert "no file is named. Cure: set files" in complaint("owner/set", COMMIT, [], UsageError)
    assert hub.asked == []


def test_a_full_disk_is_no_wrong_use(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    text = complaint("owner/set", COMMIT, ["*.csv"], RunError)
    assert "cache cannot be written: [Errno 28] No space left on device. Cure: free space" in text
