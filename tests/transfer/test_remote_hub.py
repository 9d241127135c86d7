"""Uploads to and downloads from datasets of the hub: a hub on this machine, asked through huggingface_hub."""

import hashlib
import logging
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from writable_hub import TOKEN, Blob, Dataset, WritableHub, serving

from benchcheck.errors import BenchcheckError, DamagedFileError, InputError, RunError, UsageError
from benchcheck.transfer.far.hub import HubStore
from benchcheck.transfer.far.incoming import download
from benchcheck.transfer.far.ledger import LEDGER
from benchcheck.transfer.far.remote import upload
from benchcheck.transfer.far.sums import MANIFEST, read_sums
from studies import Run

FILES = {
    "README.md": b"# a package\n",
    "frames/frames_000.tar": bytes(range(256)) * 2000,
    "frames/small.tar": b"\0" * 99,
    "frames/empty": b"",
    'rows/it\'s "quoted" and spaced.jsonl': b"{}\n",
    "प्रश्न/उत्तर.json": b"{}",
}
PLACE = "hf://datasets/owner/set"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WritableHub]:
    with serving(WritableHub({"owner/set": Dataset()})) as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template)
        monkeypatch.setattr("benchcheck.transfer.far.hub.time", types.SimpleNamespace(sleep=lambda _: None))
        monkeypatch.setattr("huggingface_hub.utils._http.time", types.SimpleNamespace(sleep=lambda _: None))
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


@pytest.fixture(autouse=True)
def _no_token_shown(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, the token is in no output and no log line."""
    caplog.set_level(logging.WARNING)
    yield
    out, err = capsys.readouterr()
    assert TOKEN not in out + err + caplog.text


def fill(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "source")


def held(folder: Path) -> dict[str, bytes]:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name not in (LEDGER, MANIFEST)}


def complaint(kind: type[BenchcheckError], *arguments: object, **flags: object) -> str:
    """What an upload (from a Path) or a download (to one) complains of: one line, without the token, no cause shown."""
    work = upload if isinstance(arguments[0], Path) else download
    with pytest.raises(kind) as caught:
        work(*arguments, **flags)  # type: ignore[operator]
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "\n" not in text
    assert TOKEN not in text
    assert caught.value.__cause__ is None
    return text


@pytest.mark.parametrize("folder", ["", "/frames of a study/v1"])
def test_a_folder_goes_to_a_dataset_and_comes_back(hub: WritableHub, source: Path, tmp_path: Path, folder: str) -> None:
    sent = upload(source, PLACE + folder)
    assert (sent.files, sent.bytes) == (len(FILES), sum(map(len, FILES.values())))
    there = hub.datasets["owner/set"].files
    below = folder.removeprefix("/") + "/" * bool(folder)
    assert {name: there[below + name] for name in FILES} == FILES
    assert set(read_sums(there[below + MANIFEST], "")) == set(FILES)
    assert not [line for line in hub.asked if line.startswith("PUT") and hashlib.sha256(b"").hexdigest() in line]
    came = download(PLACE + folder, tmp_path / "back")
    assert (came.files, came.unverified) == (len(FILES), 0)
    assert held(tmp_path / "back") == FILES
    assert not (tmp_path / "back" / ".cache").exists()
    subprocess.run(["sha256sum", "--strict", "--quiet", "-c", MANIFEST], cwd=tmp_path / "back", check=True)


def test_what_is_there_is_neither_sent_nor_committed_again(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    upload(source, PLACE)
    (source / LEDGER).unlink()
    commits = len(hub.datasets["owner/set"].commits)
    hub.asked.clear()
    assert upload(source, PLACE).same == len(FILES)
    assert len(hub.datasets["owner/set"].commits) == commits
    assert not [line for line in hub.asked if line.startswith("PUT")]
    (source / "frames" / "new.tar").write_bytes(b"new")
    assert upload(source, PLACE).files == 1
    assert len(hub.datasets["owner/set"].commits) == commits + 2
    download(PLACE, tmp_path / "back")
    hub.asked.clear()
    assert download(PLACE, tmp_path / "back").same == len(FILES) + 1
    assert not [line for line in hub.asked if "frames" in line and "resolve" in line]


def test_what_differs_is_refused_and_replaced_when_told(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    upload(source, PLACE)
    for name in ("README.md", "frames/small.tar"):
        (source / name).write_bytes(FILES[name][::-1] + b"!"[: name == "frames/small.tar"])
    text = complaint(UsageError, source, PLACE)
    assert text.startswith("'README.md', 'frames/small.tar': 2 files there with another content. Cure:")
    assert upload(source, PLACE, overwrite=True).files == 2
    assert hub.datasets["owner/set"].files["README.md"] == FILES["README.md"][::-1]
    download(PLACE, tmp_path / "back")
    assert held(tmp_path / "back") == held(source)


def test_packages_of_several_clusters_meet_in_one_dataset(hub: WritableHub, tmp_path: Path) -> None:
    """Another machine writes the manifest between reading and writing it: its lines stay."""
    packs = fill(tmp_path / "packs", {"a.tar.gz": b"\0a", "b.tar.gz": b"\0b"})
    upload(packs / "a.tar.gz", PLACE)
    lines = hub.datasets["owner/set"].files[MANIFEST] + b"0" * 64 + b"  c.tar.gz\n"
    store = HubStore("owner/set", "", "")
    seen: list[bytes] = []

    def change(before: bytes) -> bytes:
        if not seen:
            found = hub.datasets["owner/set"]
            found.commits.append({**found.commits[-1], MANIFEST: Blob(lines, False)})
        seen.append(before)
        return before + b"new\n"

    store.put(MANIFEST, change)
    assert seen[1] == lines
    assert hub.datasets["owner/set"].files[MANIFEST] == lines + b"new\n"


def test_a_manifest_that_never_stays_is_given_up(hub: WritableHub, source: Path) -> None:
    hub.meanwhile = [("owner/set", "x", b"%d" % number) for number in range(99)]
    with pytest.raises(RunError, match=r"somebody else committed meanwhile \(412\)\. Cure: run the same command"):
        HubStore("owner/set", "", "").put(MANIFEST, lambda before: before + b"x")


def test_one_file_comes_alone_and_is_verified(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    upload(source, PLACE)
    download(f"{PLACE}/frames/frames_000.tar", tmp_path / "one")
    assert held(tmp_path / "one") == {"frames_000.tar": FILES["frames/frames_000.tar"]}
    assert "nothing is there. Cure: check the address" in complaint(InputError, f"{PLACE}/frames/none", tmp_path / "x")


def test_a_dataset_without_a_manifest_is_verified_by_the_hubs_own_hashes(hub: WritableHub, tmp_path: Path) -> None:
    files = {"a.tar": Blob(b"\0large" * 99, True), "b.txt": Blob(b"small", False), "c.txt": Blob(b"", False)}
    hub.datasets["owner/set"].commits.append(files)
    came = download(PLACE, tmp_path / "back")
    assert (came.files, came.unverified) == (3, 0)
    assert held(tmp_path / "back") == {name: blob.content for name, blob in files.items()}
    subprocess.run(["sha256sum", "--strict", "--quiet", "-c", MANIFEST], cwd=tmp_path / "back", check=True)
    assert download(PLACE, tmp_path / "back").same == 3
    hub.body = {"a.tar": b"\0lArge" * 99, "b.txt": b"smAll"}
    text = complaint(DamagedFileError, PLACE, tmp_path / "other")
    assert "2 of 3 files are not what they should be" in text
    assert "'a.tar': another content; 'b.txt': another content. Cure" in text


def test_bodies_that_lie_do_not_arrive(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    upload(source, PLACE)
    web = b"<!doctype html><html>log in</html>"
    hub.body = {"frames/frames_000.tar": web, "README.md": b"# a PACKAGE\n", "frames/small.tar": b"\0" * 50}
    text = complaint(DamagedFileError, PLACE, tmp_path / "back")
    assert "3 of 6 files are not what they should be" in text
    assert "'README.md': another content; 'frames/frames_000.tar': cut off, or longer than it should be" in text
    assert not {"README.md", "frames/small.tar", "frames/frames_000.tar"} & set(held(tmp_path / "back"))
    hub.body.clear()
    download(PLACE, tmp_path / "back")
    assert held(tmp_path / "back") == FILES


def test_a_hostile_tree_is_refused(hub: WritableHub, tmp_path: Path) -> None:
    hub.datasets["owner/set"].commits.append({"../../escaped": Blob(b"x", False)})
    assert "no paths of files below a folder: nothing is fetched" in complaint(
        DamagedFileError, PLACE, tmp_path / "back"
    )
    hub.datasets["owner/set"].commits.append({"a": Blob(b"x", False), "a/b": Blob(b"x", False)})
    assert "nothing is fetched" in complaint(DamagedFileError, PLACE, tmp_path / "back")


def test_a_private_dataset_is_made_and_a_public_one_never(hub: WritableHub, source: Path) -> None:
    text = complaint(RunError, source, "hf://datasets/owner/new")
    assert "no such dataset, or a private one. Cure: check http://127.0.0.1" in text
    assert "upload --private makes a new one" in text
    upload(source, "hf://datasets/owner/new", private=True)
    assert hub.datasets["owner/new"].private
    upload(source, "hf://datasets/owner/new", private=True)
    hub.datasets["owner/open"] = Dataset(private=False)
    assert "this dataset is public. Cure: make it private on its page" in complaint(
        UsageError, source, "hf://datasets/owner/open", private=True
    )
    assert not [line for line in hub.asked if line.startswith("PUT") and "open" in line]


def test_revisions(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    upload(source, f"{PLACE}@main/sub")
    commit = hub.datasets["owner/set"].head
    upload(fill(tmp_path / "more", {"new.txt": b"new"}), f"{PLACE}/sub")
    download(f"{PLACE}@{commit}/sub", tmp_path / "back")
    assert held(tmp_path / "back") == FILES
    assert f"set@{commit}: a commit is never changed. Allowed: a branch" in complaint(
        UsageError, source, f"{PLACE}@{commit}"
    )
    assert "set@dev: no such branch or commit. Cure: make it on http://" in complaint(RunError, source, f"{PLACE}@dev")
    assert "set@dev: no such branch or commit" in complaint(RunError, f"{PLACE}@dev", tmp_path / "x")


def test_what_the_hub_ignores_is_no_success(hub: WritableHub, source: Path) -> None:
    hub.datasets["owner/set"].ignored = ".jsonl"
    text = complaint(RunError, source, PLACE)
    assert "quoted" in text
    assert "sent, but not there as sent (a .gitignore there, or" in text
    assert MANIFEST not in hub.datasets["owner/set"].files


def test_folders_that_the_library_does_not_send(hub: WritableHub, source: Path) -> None:
    fill(source, {".git/config": b"x", "deep/.cache/x": b"y"})
    assert "'.git/config', 'deep/.cache/x': the hub takes no folder .git or .cache. Cure" in complaint(
        UsageError, source, PLACE
    )


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("GET /api/datasets/owner/set", 401, "not logged in, or the login has expired (401). Cure: `hf auth login`"),
        ("POST .*/preupload/", 403, "no permission, or no storage left (403). Cure: a token that may write there"),
        ("POST .*/commit/", 403, "no permission, or no storage left (403)"),
        ("POST .*/batch", 402, "the hub wants payment for this (402)"),
        ("PUT /store/", 403, "no permission, or no storage left (403)"),
        ("PUT /store/", 500, "the hub has a fault of its own (500). Cure: wait, then run the same command again"),
        ("POST .*/commit/", 429, "too many requests (429). Cure: wait some minutes, then run the same command again"),
        ("POST .*/commit/", 413, "the hub takes no request of this size (413)"),
        ("POST .*/commit/", 400, "the hub refuses this (400)"),
        ("POST .*/commit/", 503, "the hub has a fault of its own (503)"),
        ("POST .*/commit/", 418, "no answer that can be read (HTTPStatusError 418)"),
    ],
)
def test_what_the_hub_refuses_is_one_line(hub: WritableHub, source: Path, line: str, status: int, message: str) -> None:
    hub.fails(line, status)
    text = complaint(RunError, source, PLACE)
    assert text.startswith(f"{PLACE}: ")
    assert message in text
    hub.faults.clear()
    upload(source, PLACE)
    assert {name: hub.datasets["owner/set"].files[name] for name in FILES} == FILES


def test_the_library_tries_again_by_itself(hub: WritableHub, source: Path, tmp_path: Path) -> None:
    for line, status in (("PUT /store/", 500), ("POST .*/batch", 503), ("POST .*/preupload", 429)):
        hub.fails(line, status, 2)
    upload(source, PLACE)
    hub.fails("GET .*/resolve/", 500, 2)
    download(PLACE, tmp_path / "back")
    assert held(tmp_path / "back") == FILES


def test_a_gated_dataset_and_no_login_and_no_network(
    hub: WritableHub, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.datasets["owner/set"].gated = True
    for ends in ((source, PLACE), (PLACE, tmp_path / "back")):
        assert "this dataset is gated. Cure: ask for access on http://127" in complaint(RunError, *ends)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set. Cure: unset it" in complaint(RunError, PLACE, tmp_path / "back")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "no answer that can be read (ConnectError). Cure: check the network" in complaint(
        RunError, PLACE, tmp_path / "back"
    )


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("HEAD .*/resolve/.*small", 500, "the hub has a fault of its own (500). Cure: wait, then run"),
        ("GET .*/resolve/.*small", 502, "the hub has a fault of its own (502). Cure: wait, then run"),
        ("GET .*/resolve/.*small", 404, "no answer that can be read (HTTPStatusError 404)"),
        (".* /datasets/.*/resolve/.*small", 403, "no permission, or no storage left (403)"),
        ("POST .*/paths-info", 429, "too many requests (429)"),
    ],
)
def test_a_download_that_ends_in_the_middle_is_one_line_and_continues(
    hub: WritableHub, source: Path, tmp_path: Path, line: str, status: int, message: str
) -> None:
    upload(source, PLACE)
    hub.fails(line, status)
    assert message in complaint(RunError, PLACE, tmp_path / "back")
    assert not (tmp_path / "back" / MANIFEST).exists()
    hub.faults.clear()
    download(PLACE, tmp_path / "back")
    assert held(tmp_path / "back") == FILES


def test_a_full_disk_here_is_one_line(hub: WritableHub, source: Path, small_disk: Path) -> None:
    upload(source, PLACE)
    assert "are to come, 65.5 kB are free. Cure: free space" in complaint(RunError, PLACE, small_disk / "back")


def test_the_commands_show_no_token_whatever_the_hub_says(hub: WritableHub, source: Path, run: Run) -> None:
    hub.fails("POST .*/commit/", 400)
    code, out, err = run("upload", source, f"{PLACE}@main")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"benchcheck: {PLACE}@main: the hub refuses this (400)")
    assert TOKEN not in err
    hub.faults.clear()
    code, out, err = run("upload", source, PLACE)
    assert code == 0
    assert f"-> {PLACE}" in out
    assert TOKEN not in out + err


def test_commits_are_cut_by_count_bytes_and_memory(
    hub: WritableHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = fill(tmp_path / "many", {f"{number:02}.tar": b"\0%d" % number for number in range(20)})
    monkeypatch.setattr("benchcheck.transfer.far.hub._COMMIT_FILES", 8)
    monkeypatch.setattr("benchcheck.transfer.far.hub._STRETCH", 6)
    upload(many, PLACE)
    assert [len(commit) - 1 for commit in hub.datasets["owner/set"].commits] == [0, 8, 16, 20, 21]
    monkeypatch.setattr("benchcheck.transfer.far.hub._COMMIT_BYTES", 5)
    more = fill(tmp_path / "more", {f"more/{number}.tar": b"\0%d" % number for number in range(6)})
    upload(more, PLACE)
    assert len(hub.datasets["owner/set"].commits) == 5 + 3 + 1
    monkeypatch.setattr("benchcheck.transfer.far.hub._COMMIT_SMALL", 2)
    upload(fill(tmp_path / "last", {"last/1": b"1", "last/2": b"22"}), PLACE)
    assert len(hub.datasets["owner/set"].commits) == 9 + 2 + 1


@pytest.mark.long
@pytest.mark.parametrize("command", ["upload", "download"])
def test_killed_at_any_moment_the_same_command_goes_on(hub: WritableHub, tmp_path: Path, command: str) -> None:
    files = {f"part/{number:02}.tar": hashlib.sha256(b"%d" % number).digest() * (1 << 11) for number in range(12)}
    source, back = fill(tmp_path / "source", files), tmp_path / "back"
    if command == "download":
        upload(source, PLACE)
    code = "import benchcheck.transfer.far.hub as h; h._COMMIT_FILES = 3; from benchcheck.cli import main; main()"
    ends = (str(source), PLACE) if command == "upload" else (PLACE, str(back))
    line = [sys.executable, "-c", code, command, *ends, "--workers", "2"]
    online = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN}
    environment = os.environ | online
    hub.slow_s = 0.05
    hub.asked.clear()
    for enough in (2, 5, 9, 10**9):
        process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < until:
            done = len(hub.objects) if command == "upload" else len(list(back.glob("part/*.tar")))
            if done >= enough:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.005)
        said = process.communicate()[0]
        assert TOKEN not in said
    assert process.returncode == 0, said
    if command == "upload":
        assert {name: hub.datasets["owner/set"].files[name] for name in files} == files
        whole = [line for line in hub.asked if line.startswith("PUT") and line.count("/") == 2]
        assert len(whole) <= len(files) + 3 * 2  # what was under way when it was killed is sent again, nothing else
    else:
        assert held(back) == files
