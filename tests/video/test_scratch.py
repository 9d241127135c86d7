"""Scratch files: gone when they were read, cleared after a killed owner, never another's and never one in use."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchcheck.errors import StudyError
from benchcheck.video.sources import scratch
from benchcheck.video.sources.scratch import clear_scratch, laid_out, scratch_folder


def test_a_scratch_file_lives_as_long_as_its_block(tmp_path: Path) -> None:
    with laid_out([b"ab", b"", b"c"], str(tmp_path / "new"), "in/x y.MP4") as path:
        assert Path(path).read_bytes() == b"abc"
        assert path.endswith(".tmp.MP4")
        assert clear_scratch(str(tmp_path / "new")) == 0
        assert os.path.exists(path)
    assert os.listdir(tmp_path / "new") == []


@pytest.mark.parametrize("name", ["x", "x.", "x.a b", "x.\N{CLAPPER BOARD}", ".mp4", "x.toolongextension"])
def test_an_extension_that_is_none_is_left_out(tmp_path: Path, name: str) -> None:
    with laid_out([b"a"], str(tmp_path), name) as path:
        assert path.endswith(".tmp")


def test_a_fault_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"a"
        raise ValueError

    with pytest.raises(ValueError), laid_out(blocks(), str(tmp_path), "x"):  # noqa: PT011 - as raised above
        pass
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scratch, "_own", lambda *_: (tmp_path / "x", Full()))
    with pytest.raises(StudyError, match=r"x: the disk is full\. Cure"), laid_out([b"a"], str(tmp_path), "x"):
        pass
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.undo()
    with pytest.raises(StudyError, match="file"), laid_out([b"a"], str(tmp_path / "file"), "x"):
        pass


def test_what_a_killed_owner_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    code = (
        "import sys, os, signal; from benchcheck.video.sources.scratch import laid_out\n"
        "with laid_out([b'a'], sys.argv[1], 'a.mp4'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    [left] = os.listdir(tmp_path)
    others = [".benchcheck-video-notes", "benchcheck-video-abc.tmp", ".benchcheck-video-link.tmp"]
    for name in others[:2]:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / others[2]).symlink_to(tmp_path / others[0])
    (tmp_path / ".benchcheck-video-folder.tmp").mkdir()
    with laid_out([b"b"], str(tmp_path), "b.mp4") as used:
        assert clear_scratch(str(tmp_path)) == 1
        assert os.path.exists(used)
    assert left not in os.listdir(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".benchcheck-video-folder.tmp"])
    assert clear_scratch(str(tmp_path / "gone")) == 0


def test_a_file_that_may_not_be_opened_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".benchcheck-video-abcdefgh.tmp").write_bytes(b"")

    def denied(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    assert clear_scratch(str(tmp_path)) == 0


def test_a_cleaner_that_comes_between_making_and_locking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = scratch.tempfile.mkstemp, []

    def first_is_taken(**how: str) -> tuple[int, str]:
        number, path = real(**how)
        seen.append(path)
        if len(seen) == 1:
            os.unlink(path)
        return number, path

    monkeypatch.setattr(scratch.tempfile, "mkstemp", first_is_taken)
    with laid_out([b"a"], str(tmp_path), "x") as path:
        assert Path(path).read_bytes() == b"a"
    assert len(seen) == 2


def test_the_systems_folder_is_the_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scratch.tempfile, "tempdir", str(tmp_path))
    assert scratch_folder("") == str(tmp_path)
    assert scratch_folder("x") == os.path.abspath("x")


def test_a_write_that_takes_a_part_is_no_whole_file(tmp_path: Path) -> None:
    code = (
        "import resource, sys\n"
        "from benchcheck.video.sources.scratch import laid_out\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "with laid_out([bytes(50_000)], sys.argv[1], 'x.mp4'):\n"
        "    print('laid out')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "laid out" not in done.stdout
    assert "the file would grow over the size limit" in done.stderr
    assert os.listdir(tmp_path) == []
