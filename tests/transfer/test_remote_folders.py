"""Uploads to and downloads from folders and stores of fsspec: whole, verified, continued, nothing overwritten."""

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from benchcheck.errors import BenchcheckError, DamagedFileError, InputError, MissingExtraError, RunError, UsageError
from benchcheck.transfer.far.incoming import download
from benchcheck.transfer.far.ledger import LEDGER
from benchcheck.transfer.far.moving import Moving
from benchcheck.transfer.far.remote import upload
from benchcheck.transfer.far.stores import FolderStore, UrlStore
from benchcheck.transfer.far.sums import MANIFEST, read_sums
from studies import Run

FILES = {
    "package/README.md": b"# what\n",
    "package/items.jsonl": b'{"q": 1}\n' * 1000,
    "frames/frames_000.tar": bytes(range(256)) * 5000,
    "frames/empty": b"",
    'it\'s "quoted" and spaced': b"q",
    "two\nlines\\and a backslash": b"n",
    "प्रश्न/उत्तर.json": b"{}",
}


def fill(folder: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def held(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the ledger and the manifest."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: content for name, content in files.items() if name not in (LEDGER, MANIFEST)}


def complaint(kind: type[BenchcheckError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    return str(caught.value)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return fill(tmp_path / "source")


@pytest.fixture
def _memory() -> Iterator[None]:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


PLACES = ["{tmp}/far 'place'\nउ", "file://{tmp}/far", "memory://far/place"]


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("place", PLACES)
def test_a_folder_goes_and_comes_back_byte_for_byte(source: Path, tmp_path: Path, place: str) -> None:
    far = place.format(tmp=tmp_path)
    (source / ".x.host.1.2.tmp").write_bytes(b"half")
    (source / ".cache" / "huggingface").mkdir(parents=True)
    (source / ".cache" / "huggingface" / "a").write_bytes(b"left by the hub's library")
    sent = upload(source, far)
    assert (sent.files, sent.same, sent.bytes) == (len(FILES), 0, sum(map(len, FILES.values())))
    came = download(far, tmp_path / "back")
    assert (came.files, came.same, came.bytes, came.unverified) == (len(FILES), 0, sent.bytes, 0)
    assert held(tmp_path / "back") == FILES
    subprocess.run(["sha256sum", "--strict", "--quiet", "-c", MANIFEST], cwd=tmp_path / "back", check=True)
    again, back = upload(source, far), download(far, tmp_path / "back")
    assert (again.files, again.same, again.bytes, back.files, back.same) == (0, len(FILES), 0, 0, len(FILES))
    assert "0 files sent, 7 there already: 0 bytes in" in again.line()
    assert "(nothing to do)" in again.line()
    assert sent.line().startswith("7 files sent: 1.3 MB in ")


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("place", PLACES)
def test_one_file_goes_into_a_folder_beside_others(source: Path, tmp_path: Path, place: str) -> None:
    far = place.format(tmp=tmp_path)
    upload(source / "package" / "items.jsonl", far)
    upload(source / "package" / "README.md", far)
    assert held(download_to(far, tmp_path / "all")) == {
        "items.jsonl": FILES["package/items.jsonl"],
        "README.md": FILES["package/README.md"],
    }
    one = download(far + "/README.md", tmp_path / "one")
    assert (one.files, held(tmp_path / "one")) == (1, {"README.md": FILES["package/README.md"]})
    assert not (tmp_path / "one" / MANIFEST).exists()


def download_to(far: str, to: Path) -> Path:
    download(far, to)
    return to


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("place", PLACES)
def test_what_differs_is_refused_and_replaced_when_told(source: Path, tmp_path: Path, place: str) -> None:
    far = place.format(tmp=tmp_path)
    upload(source, far)
    back = download_to(far, tmp_path / "back")
    (source / "frames" / "empty").write_bytes(b"no longer")
    (source / "package" / "items.jsonl").write_bytes(b'{"q": 2}\n' * 1000)
    text = complaint(UsageError, lambda: upload(source, far))
    assert text.startswith("'frames/empty', 'package/items.jsonl': 2 files there with another content. Cure:")
    assert upload(source, far, overwrite=True).files == 2
    text = complaint(UsageError, lambda: download(far, back))
    assert "'frames/empty', 'package/items.jsonl': 2 files here with another content. Cure: --overwrite" in text
    assert held(back) == FILES
    assert download(far, back, overwrite=True).files == 2
    assert held(back) == held(source)


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("place", PLACES)
def test_without_a_ledger_far_files_are_read_again_and_nothing_is_sent_twice(
    source: Path, tmp_path: Path, place: str
) -> None:
    far = place.format(tmp=tmp_path)
    upload(source, far)
    store_of(far).put(MANIFEST, lambda _: b"")  # as if it had been killed before the manifest
    (source / LEDGER).unlink()
    assert upload(source, far).same == len(FILES)
    store_of(far).put(MANIFEST, lambda _: b"")
    (source / LEDGER).unlink()
    (source / "frames" / "frames_000.tar").write_bytes(b"\1" * len(FILES["frames/frames_000.tar"]))
    assert "'frames/frames_000.tar': 1 file there with another" in complaint(UsageError, lambda: upload(source, far))
    assert upload(source, far, overwrite=True).files > 0
    assert held(download_to(far, tmp_path / "back")) == held(source)


def store_of(far: str) -> FolderStore | UrlStore:
    from benchcheck.transfer.far.remote import open_far

    opened = open_far(far)
    assert isinstance(opened, FolderStore | UrlStore)
    return opened


def test_a_ledger_spares_reading_and_a_changed_file_is_read_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = str(tmp_path / "far")
    upload(source, far)
    read: list[str] = []
    from benchcheck.transfer.far import outgoing

    real = outgoing.hash_of
    monkeypatch.setattr(outgoing, "hash_of", lambda path: read.append(path.name) or real(path))
    upload(source, far)
    assert read == []
    os.utime(source / "frames" / "empty", ns=(1, 1))
    upload(source, far)
    assert read == ["empty"]
    with (source / LEDGER).open("ab") as file:
        file.write(b'\0 torn\n{"name": 3}\n[1]\n{"to": "x", "name": []')
    upload(source, far)
    assert len(read) == 1


def test_without_a_place_for_a_ledger_all_is_sent_the_same(source: Path, tmp_path: Path) -> None:
    (source / LEDGER).symlink_to("/proc/nothing/here")
    upload(source, str(tmp_path / "far"))
    assert held(tmp_path / "far") == FILES


def test_links_and_devices_are_refused_and_a_link_to_the_folder_is_followed(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(source)
    assert upload(tmp_path / "link", str(tmp_path / "far")).files == len(FILES)
    (source / "b").symlink_to(source / "package")
    (source / "a").symlink_to("/etc/hostname")
    os.mkfifo(source / "c")
    text = complaint(UsageError, lambda: upload(source, str(tmp_path / "far")))
    assert "source: 'a', 'b', 'c': links and devices are not sent. Cure: put files in their place" in text


@pytest.mark.parametrize(
    ("what", "to", "message"),
    [
        ("nowhere", "far", "nowhere: no such file or folder"),
        ("empty", "far", "empty: no file in it. Cure: name the folder"),
        ("source", "source/far", "far lies in "),
        ("source", "source", "which is sent. Cure: choose a folder outside"),
        ("source", "file", "file: this is a file. Cure: name a folder"),
        ("source", "https://host/folder", "files are not sent to or listed at web addresses. Allowed: hf://datasets/"),
        ("source", "nosuch://host/folder", "nosuch:// is not known. Allowed: hf://datasets/owner/name, s3://"),
        ("source", "s3://key:word@bucket/x", "s3://: a login does not stand in an address. Cure: leave it out"),
        ("source", "", "'': no place. Allowed: hf://datasets"),
        ("source", "a\0b", "no place"),
        ("source", "hf://owner/name", "no dataset of the hub. Allowed: hf://datasets/owner/name[@branch][/folder]"),
        ("source", "hf://datasets/owner/name/../x", "no dataset of the hub"),
        ("source", "hf://datasets/owner", "no dataset of the hub"),
        ("source", "wandb://x/y", "wandb:// needs a package that is not installed. Cure: pip install wandbfs"),
    ],
)
def test_wrong_use_is_one_line(source: Path, tmp_path: Path, what: str, to: str, message: str, run: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    far = to if "://" in to or not to or "\0" in to else str(tmp_path / to)
    if "\0" in to:
        assert message in complaint(UsageError, lambda: upload(tmp_path / what, far))
        return
    code, out, err = run("upload", tmp_path / what, far)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert "word" not in err


@pytest.mark.parametrize(
    "address",
    [
        *("hf:/datasets/o/n", "hf:datasets/o/n", "HF:/x", "s3:/bucket/x", "s3:bucket", "://x", "ht!tp://x"),
        *("https:/x/y", "huggingface.co/datasets/o/n", "hf.co/datasets/o/n"),
    ],
)
def test_an_address_with_a_slip_becomes_no_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = run("upload", source, address)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{address!r}: no place. Allowed: hf://datasets/owner/name" in err
    assert run("download", address, tmp_path / "to")[0] == 2
    assert sorted(tmp_path.iterdir()) == before
    assert run("upload", source, f"./{address.replace('://', ':')}")[0] == 0


def test_a_missing_package_is_one_line(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.url_to_fs", absent)
    text = complaint(MissingExtraError, lambda: upload(source, "s3://bucket/x"))
    assert text == "s3:// needs packages that are not installed. Cure: pip install 'benchcheck[s3]'"


def test_names_that_are_no_utf8(source: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (source / name).write_bytes(b"c")
    assert "names that are no UTF-8 do not go there" in complaint(
        UsageError, lambda: upload(source, "memory://odd/names")
    )
    upload(source, str(tmp_path / "far"))
    assert held(download_to(str(tmp_path / "far"), tmp_path / "back"))[name] == b"c"


def test_a_name_may_not_be_a_file_and_a_folder(source: Path, tmp_path: Path) -> None:
    upload(source, str(tmp_path / "far"))
    other = fill(tmp_path / "other", {"package": b"file"})
    assert "'package' is a file and a folder at once" in complaint(
        UsageError, lambda: upload(other, str(tmp_path / "far"))
    )


def test_private_is_for_the_hub(source: Path, tmp_path: Path) -> None:
    for far in (str(tmp_path / "far"), "memory://private"):
        assert "--private is for datasets of the hub" in complaint(
            UsageError, lambda far=far: upload(source, far, private=True)
        )


def test_a_file_that_changes_on_its_way_is_no_success(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FolderStore.send

    def send(store: FolderStore, *arguments: object) -> Iterator[object]:
        for piece, mark in real(store, *arguments):  # type: ignore[arg-type]
            if piece.name == "frames/empty":
                piece.path.write_bytes(b"late")
            yield piece, mark

    monkeypatch.setattr(FolderStore, "send", send)
    text = complaint(RunError, lambda: upload(source, str(tmp_path / "far")))
    assert "frames/empty: written to or removed while it was sent. Cure: run the same command again" in text
    assert not (tmp_path / "far" / MANIFEST).exists()


@pytest.mark.usefixtures("_memory")
@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_is_gone_before_it_is_sent_is_one_line(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    from benchcheck.transfer.far import remote

    real = remote._to_send
    gone = source / "package" / "README.md"
    monkeypatch.setattr(remote, "_to_send", lambda *arguments: gone.unlink(missing_ok=True) or real(*arguments))
    text = complaint(RunError, lambda: upload(source, place.format(tmp=tmp_path)))
    assert "README.md: written to or removed while it was sent" in text
    assert upload(source, place.format(tmp=tmp_path)).files + 1 <= len(FILES)


# The far side lies.


def manifest(far: Path) -> Path:
    return far / MANIFEST


@pytest.fixture
def far(source: Path, tmp_path: Path) -> Path:
    upload(source, str(tmp_path / "far"))
    return tmp_path / "far"


def test_files_that_are_not_what_the_manifest_says_do_not_arrive(far: Path, tmp_path: Path) -> None:
    (far / "package" / "README.md").write_bytes(b"# hw#t\n")
    (far / "frames" / "frames_000.tar").write_bytes(FILES["frames/frames_000.tar"][:-1])
    (far / "package" / "items.jsonl").write_bytes(b"<!DOCTYPE html><html>Log in</html>")
    text = complaint(DamagedFileError, lambda: download(str(far), tmp_path / "back"))
    assert "far: 3 of 7 files are not what they should be, and were not taken: " in text
    assert "'package/README.md': another content" in text
    assert "'package/items.jsonl': a web page came (a login?)" in text
    back = held(tmp_path / "back")
    assert not {"package/README.md", "frames/frames_000.tar", "package/items.jsonl"} & set(back)
    assert back["frames/empty"] == b""
    assert not manifest(tmp_path / "back").exists()


def test_a_cut_body_is_fetched_once_more(far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, cut = FolderStore.fetch, set(FILES)

    def fetch(store: FolderStore, name: str, folder: Path, moved: Moving) -> Path:
        path = real(store, name, folder, moved)
        if name in cut and path.stat().st_size:
            cut.remove(name)
            os.truncate(path, path.stat().st_size - 1)
        return path

    monkeypatch.setattr(FolderStore, "fetch", fetch)
    download(str(far), tmp_path / "back")
    assert held(tmp_path / "back") == FILES
    cut |= set(FILES)
    monkeypatch.setattr("benchcheck.transfer.far.incoming._TRIES", 1)
    text = complaint(DamagedFileError, lambda: download(str(far), tmp_path / "other"))
    assert "6 of 7 files are not what" in text
    assert "bytes came of" in text
    assert "and 3 more. Cure" in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>login</html>", "a web page stands where the manifest should be"),
        (b"0" * 64 + b"  ../../escaped\n", "the path '../../escaped' leads out of the folder"),
        (b"0" * 64 + b"  /etc/cron.d/x\n", "leads out of the folder"),
        (b"0" * 64 + b"  not there\n", "'not there': in SHA256SUMS, but not there. Cure: have the folder uploaded"),
        (b"0" * 64 + b"  cut", "cut off in the middle of a line"),
        (b"\0" * 100, "cut off"),
    ],
)
def test_a_hostile_manifest_is_refused(far: Path, tmp_path: Path, content: bytes, message: str) -> None:
    manifest(far).write_bytes(content)
    assert message in complaint(DamagedFileError, lambda: download(str(far), tmp_path / "back"))
    assert not (tmp_path / "back").exists()
    assert not (tmp_path / "escaped").exists()


def test_a_damaged_manifest_is_made_anew_only_when_told(source: Path, far: Path) -> None:
    manifest(far).write_bytes(b"<html>")
    assert "a web page" in complaint(DamagedFileError, lambda: upload(source, str(far)))
    upload(source, str(far), overwrite=True)
    assert set(read_sums(manifest(far).read_bytes(), "")) == set(FILES)


def test_an_endless_manifest_is_not_read(far: Path, tmp_path: Path) -> None:
    os.truncate(manifest(far), 1 << 30)
    assert "1,073,741,824 bytes are no manifest" in complaint(
        DamagedFileError, lambda: download(str(far), tmp_path / "back")
    )


def test_lines_of_files_that_are_gone_leave_the_manifest(source: Path, far: Path, tmp_path: Path) -> None:
    (far / "frames" / "empty").unlink()
    (source / "frames" / "empty").unlink()
    upload(source, str(far))
    assert "frames/empty" not in read_sums(manifest(far).read_bytes(), "")
    download(str(far), tmp_path / "back")


def test_a_folder_without_a_manifest_is_taken_on_trust_only_when_told(tmp_path: Path, run: Run) -> None:
    bare = fill(tmp_path / "bare", {**FILES, LEDGER: b"{}", ".x.tmp": b"half"})
    text = complaint(UsageError, lambda: download(str(bare), tmp_path / "back"))
    assert "no SHA256SUMS vouches for 'frames/empty', 'frames/frames_000.tar', 'it\\'s" in text
    assert "and 4 more. Cure: wait for the upload to end, or take them on trust with --unverified" in text
    code, out, err = run("download", bare, tmp_path / "back", "--unverified")
    assert code == 0
    assert out.startswith("7 files fetched: 1.3 MB in ")
    assert "warning: 7 files are taken on trust" in err
    assert held(tmp_path / "back") == FILES
    assert not manifest(tmp_path / "back").exists()
    assert "7 files here with another content" in complaint(
        UsageError, lambda: download(str(bare), tmp_path / "back", unverified=True)
    )


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "none", tmp_path / "empty", "memory://none", "/"):
        if str(place) != "/":
            assert "nothing is there. Cure: check the address" in complaint(
                InputError, lambda place=place: download(str(place), tmp_path / "back")
            )


def test_a_part_is_verified_by_the_manifest_above_it(far: Path, tmp_path: Path) -> None:
    download(str(far / "package"), tmp_path / "part")
    assert held(tmp_path / "part") == {"README.md": b"# what\n", "items.jsonl": FILES["package/items.jsonl"]}
    download(str(far / "frames" / "empty"), tmp_path / "one")
    assert held(tmp_path / "one") == {"empty": b""}
    (far / "package" / "README.md").write_bytes(b"# hw#t\n")
    assert "'README.md': another content" in complaint(
        DamagedFileError, lambda: download(str(far / "package"), tmp_path / "other")
    )
    manifest(far).write_bytes(b"SHA256 (ubuntu.iso) = 00\n")
    assert "no SHA256SUMS vouches for 'README.md', 'items.jsonl'. Cure" in complaint(
        UsageError, lambda: download(str(far / "package"), tmp_path / "other")
    )


def test_nothing_is_written_through_a_link_or_over_a_folder(far: Path, tmp_path: Path) -> None:
    back, outside = tmp_path / "back", tmp_path / "outside"
    outside.mkdir()
    back.mkdir()
    (back / "frames").symlink_to(outside)
    (back / 'it\'s "quoted" and spaced').symlink_to("/etc/hostname")
    text = complaint(UsageError, lambda: download(str(far), back))
    assert "'frames', \"it's" in text or "'frames', 'it" in text
    assert "a link stands there, which may lead anywhere. Cure: remove it" in text
    assert not list(outside.iterdir())
    (back / "frames").unlink()
    (back / 'it\'s "quoted" and spaced').unlink()
    (back / "package" / "README.md").mkdir(parents=True)
    assert "'package/README.md': a folder stands where a file" in complaint(
        UsageError, lambda: download(str(far), back)
    )
    (tmp_path / "file").touch()
    assert "this is a file. Cure: name a folder" in complaint(UsageError, lambda: download(str(far), tmp_path / "file"))


def test_a_second_download_into_a_folder_waits_for_nobody(far: Path, tmp_path: Path) -> None:
    from benchcheck.transfer.far.incoming import _alone_in

    with _alone_in(tmp_path / "back"):
        assert "another download into this folder is at work" in complaint(
            UsageError, lambda: download(str(far), tmp_path / "back")
        )
    download(str(far), tmp_path / "back")


def test_a_disk_that_is_too_small_is_known_beforehand(far: Path, small_disk: Path, source: Path) -> None:
    text = complaint(RunError, lambda: download(str(far), small_disk / "back"))
    assert "1.3 MB are to come, 65.5 kB are free. Cure: free space" in text
    with pytest.raises(RunError, match=r"the disk is full\. Cure: free space and run the same command again"):
        upload(source, str(small_disk / "far"))
    assert not (small_disk / "far" / "frames" / "frames_000.tar").exists()


def test_what_cannot_be_read_is_one_line(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("benchcheck.transfer.far.outgoing.hash_of", broken)
    text = complaint(RunError, lambda: upload(source, str(tmp_path / "far")))
    assert "not readable (Input/output error). Cure: run the command again" in text
    monkeypatch.setattr(os, "scandir", broken)
    assert "source: not readable (Input/output error). Cure: chmod" in complaint(
        RunError, lambda: upload(source, str(tmp_path / "far"))
    )


def test_ten_thousand_failures_are_one_line(tmp_path: Path) -> None:
    far = fill(tmp_path / "far", {f"{number}": b"x" for number in range(300)})
    manifest(far).write_bytes(b"".join(b"0" * 64 + b"  %d\n" % number for number in range(300)))
    text = complaint(DamagedFileError, lambda: download(str(far), tmp_path / "back"))
    assert "300 of 300 files are not what they should be" in text
    assert "and 297 more" in text
    assert len(text) < 600


def test_progress_is_told_and_ends_at_the_whole(source: Path, tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def told(state: Moving) -> None:
        seen[state.doing] = (state.bytes, state.of_bytes)

    total = sum(map(len, FILES.values()))
    upload(source, str(tmp_path / "far"), told=told)
    download(str(tmp_path / "far"), tmp_path / "back", told=told)
    assert seen == {"reading": (total, total), "sending": (total, total), "fetching": (total, total)}


def test_the_bar_shows_bytes_and_goes(source: Path, tmp_path: Path) -> None:
    import io

    from rich.console import Console

    from benchcheck.cli.remote import BytesBar

    screen = io.StringIO()
    with BytesBar(Console(file=screen, force_terminal=True, width=100)) as bar:
        upload(source, str(tmp_path / "far"), told=bar)
    assert "sending" in screen.getvalue()
    assert "MB" in screen.getvalue()
    quiet = io.StringIO()
    with BytesBar(Console(file=quiet)) as bar:
        upload(source, str(tmp_path / "far"), told=bar)
    assert quiet.getvalue() == ""


def test_the_commands_say_what_they_did(source: Path, tmp_path: Path, run: Run) -> None:
    code, out, err = run("upload", source, tmp_path / "far", "--workers", 2)
    assert (code, out.count("\n")) == (0, 1)
    assert out.startswith("7 files sent: 1.3 MB in ")
    assert f"MB/s) -> {tmp_path / 'far'}" in out
    assert "benchcheck download FROM TO" in err
    code, out, err = run("download", tmp_path / "far", tmp_path / "back")
    assert (code, err) == (0, "")
    assert out.startswith("7 files fetched: 1.3 MB in ")
    (source / "frames" / "empty").write_bytes(b"x")
    code, out, err = run("upload", source, tmp_path / "far")
    assert (code, out) == (2, "")
    assert err == (
        "benchcheck: 'frames/empty': 1 file there with another content. Cure: another folder, or --overwrite\n"
    )


# Killed at any moment, the same command goes on.

BIG = {f"part/{number:02}.bin": hashlib.sha256(b"%d" % number).digest() * (1 << 13) for number in range(40)}


def test_what_a_killed_upload_left_is_cleared_by_the_next(source: Path, tmp_path: Path) -> None:
    far = tmp_path / "far"
    upload(source, str(far))
    (far / "frames" / "empty").unlink()
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = far / "frames" / f".empty.{platform.node()}.{gone.pid}.0.tmp"
    left.touch()
    os.utime(left, (1, 1))
    upload(source, str(far))
    assert not left.exists()
    assert held(far) == FILES


class Halfway(MemoryFileSystem):
    """A store in which a file can be seen while it is written, as by SFTP."""

    protocol = "halfway"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    seen: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("halfway://").strip("/")

    def put_file(self, lpath: str, rpath: str, **options: object) -> None:
        self.seen.append(rpath)
        super().put_file(lpath, rpath, **options)


def test_where_half_a_file_can_be_seen_it_is_sent_beside_and_moved(source: Path, tmp_path: Path) -> None:
    fsspec.register_implementation("halfway", Halfway, clobber=True)
    upload(source, "halfway://a/b")
    assert all(path.rpartition("/")[2].startswith(".") and path.endswith(".tmp") for path in Halfway.seen)
    assert len(Halfway.seen) == len(FILES)
    (source / "package" / "README.md").write_bytes(b"new")
    upload(source, "halfway://a/b", overwrite=True)
    Halfway.store["/a/b/.left.tmp"] = Halfway.store["/a/b/package/README.md"]
    download("halfway://a/b", tmp_path / "back")
    assert held(tmp_path / "back") == held(source)


@pytest.mark.long
@pytest.mark.parametrize("command", ["upload", "download"])
def test_killed_at_any_moment_the_same_command_goes_on(tmp_path: Path, command: str) -> None:
    source, far, back = fill(tmp_path / "source", BIG), tmp_path / "far", tmp_path / "back"
    if command == "download":
        upload(source, str(far))
    here, target = (source, far) if command == "upload" else (far, back)
    line = [sys.executable, "-m", "benchcheck", command, str(here), str(target), "--workers", "2"]
    states = []
    for enough in (1, 9, 20, 33, len(BIG) + 1):
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if sum(name.endswith(".bin") for _, _, names in os.walk(target) for name in names) >= enough:
                process.send_signal(signal.SIGKILL)
                process.wait()
        whole = held_whole(target)
        states.append(len(whole))
        assert all(BIG[name] == content for name, content in whole.items())
        assert whole == BIG or not manifest(target).exists()
    assert process.returncode == 0
    assert states == sorted(states)
    assert len(set(states)) > 2
    assert held_whole(target) == BIG
    subprocess.run(["sha256sum", "--strict", "--quiet", "-c", MANIFEST], cwd=target, check=True)


@pytest.mark.long
def test_ctrl_c_leaves_no_half_files(tmp_path: Path) -> None:
    source, far = tmp_path / "source", tmp_path / "far"
    source.mkdir()
    for name in "ab":
        (source / name).touch()
        os.truncate(source / name, 4 << 30)
    (source / LEDGER).write_text(
        "".join(
            json.dumps({"name": name, "bytes": 4 << 30, "mtime_ns": (source / name).stat().st_mtime_ns, "sha256": "0"})
            + "\n"
            for name in "ab"
        )
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "benchcheck", "upload", str(source), str(far)], stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not list(far.glob(".*.tmp")):
        pass
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert (process.returncode, said.count("\n")) == (130, 1)
    assert list(far.iterdir()) == []


def held_whole(folder: Path) -> dict[str, bytes]:
    """Files under their own names; half ones are hidden."""
    return {name: content for name, content in held(folder).items() if "/." not in f"/{name}"}


def test_ctrl_c_ends_at_once_and_the_first_failure_ends_all() -> None:
    from benchcheck.transfer.far.abreast import abreast

    begun: list[int] = []
    gate = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise RunError("broken")
        gate.wait(0.05)
        return number

    with pytest.raises(RunError, match="broken"):
        list(abreast(work, range(1, 1000), 2))
    assert len(begun) < 10
    assert sorted(abreast(lambda number: number * 2, range(1, 100), 3)) == [number * 2 for number in range(1, 100)]
    assert list(abreast(work, [], 2)) == []


def test_a_ledger_row_is_json(source: Path, tmp_path: Path) -> None:
    upload(source, str(tmp_path / "far"))
    rows = [json.loads(line) for line in (source / LEDGER).read_text().splitlines()]
    assert {row["name"] for row in rows if "to" not in row} == set(FILES)
    assert {row["name"] for row in rows if row.get("to") == str(tmp_path / "far")} == set(FILES)
