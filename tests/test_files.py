"""Files are whole or not there: publishing, appending under a lock, reading rows by the column."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.errors import StudyError
from benchcheck.files import append_rows, publish, read_rows, rows_source, unbroken, writing

COLUMNS = {"item_id": "VARCHAR", "status": "VARCHAR", "n_right": "INTEGER", "detail": "VARCHAR"}
GOOD = b'{"item_id": "a_1", "status": "ok", "n_right": 3}\n'


def read(*paths: Path, where: str = "") -> tuple[list[str], int]:
    """The ids of the rows, in order, and how many lines were no rows."""
    rows = read_rows(paths, COLUMNS, where)
    return rows.table.column("item_id").to_pylist(), rows.unreadable


# Publishing.


def test_a_file_appears_when_the_block_ends_well_with_its_folders(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "x.txt"
    with publish(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent == target.parent
    assert [path.name for path in target.parent.iterdir()] == ["x.txt"]
    assert target.read_text() == "new"


@pytest.mark.parametrize("reason", [RuntimeError("bug"), KeyboardInterrupt(), SystemExit(3)])
def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, reason: BaseException) -> None:
    target = tmp_path / "x.txt"
    target.write_text("old")

    def fail() -> None:
        with publish(target) as temporary:
            temporary.write_text("half")
            raise reason

    with pytest.raises(type(reason)):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


def test_a_process_killed_in_the_block_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "x.txt"
    target.write_text("old")
    program = (
        "import os, sys, pathlib\nfrom benchcheck.files import publish\n"
        "with publish(pathlib.Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, target], check=False).returncode == -9
    assert target.read_text() == "old"


def test_publishing_below_a_file_or_over_a_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "inside").mkdir(parents=True)
    with pytest.raises(StudyError, match=r"file: cannot make this folder"), publish(tmp_path / "file" / "x.txt"):
        pass
    with pytest.raises(StudyError, match=r"folder: this is a folder where"), publish(tmp_path / "folder") as temporary:
        temporary.write_text("x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_without_write_permission_is_one_line_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "locked" / "a.jsonl"
    path.parent.mkdir()
    path.parent.chmod(0o500)
    program = (
        "import os, pathlib, sys\nfrom benchcheck.errors import StudyError\n"
        "from benchcheck.files import append_rows, publish\n"
        "if os.getuid() == 0:\n    os.setuid(65534)\n"  # root may write anywhere
        "path = pathlib.Path(sys.argv[1])\n"
        "def write():\n    with publish(path) as temporary:\n        temporary.write_text('x')\n"
        "for attempt in (lambda: append_rows(path, [{}]), write):\n"
        "    try:\n        attempt()\n    except StudyError as reason:\n        print(reason)\n"
    )
    found = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    lines = found.stdout.splitlines()
    assert len(lines) == 2
    # Where the folders above are closed too, as root's temporary ones are, the folder cannot be made.
    assert all(re.search(r"locked.*(no write permission\. Cure|Permission denied\)\. Cure)", line) for line in lines)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (errno.ENOSPC, "disk is full. Cure: free space"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EACCES, "no write permission"),
        (errno.EPERM, "no write permission"),
        (errno.EROFS, "read-only"),
        (errno.ENOTDIR, "part of this path is a file"),
        (errno.EISDIR, "folder where a file is wanted"),
        (errno.EEXIST, "file stands where a folder is wanted"),
    ],
)
def test_what_a_user_can_mend_is_one_line_with_the_path(code: int, says: str) -> None:
    with pytest.raises(StudyError, match=f"^p/q: .*{says}") as caught, writing(Path("p/q")):
        raise OSError(code, "x")
    assert isinstance(caught.value.__cause__, OSError)


def test_what_no_user_can_mend_stays_a_bug() -> None:
    with pytest.raises(OSError, match="x") as caught, writing(Path("p")):
        raise OSError(errno.EBADF, "x")
    assert caught.value.errno == errno.EBADF


def test_a_full_disk_keeps_the_old_file_and_leaves_no_other(small_disk: Path) -> None:
    target = small_disk / "x.txt"
    target.write_text("old")
    with pytest.raises(StudyError, match=r"x\.txt: the disk is full"), publish(target) as temporary:
        temporary.write_bytes(b"x" * 200_000)
    assert target.read_text() == "old"
    assert [path.name for path in small_disk.iterdir()] == ["x.txt"]


def test_a_row_that_does_not_fit_on_the_disk_is_cut_back(small_disk: Path) -> None:
    path = small_disk / "a.jsonl"
    append_rows(path, [{"item_id": "a_1"}])
    before = path.read_bytes()
    with pytest.raises(StudyError, match="the disk is full"):
        append_rows(path, [{"item_id": "a_2", "detail": "x" * 200_000}])
    assert path.read_bytes() == before
    append_rows(path, [{"item_id": "a_3"}])
    assert read(path) == (["a_1", "a_3"], 0)


def test_a_write_that_ends_in_the_middle_is_cut_back_to_whole_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + b'{"item_id": "torn')
    before = path.read_bytes()
    program = (
        "import pathlib, resource, sys\nfrom benchcheck.errors import StudyError\n"
        "from benchcheck.files import append_rows\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    append_rows(pathlib.Path(sys.argv[1]), [{'item_id': str(n), 'x': 'y' * 100} for n in range(100)])\n"
        "except StudyError as reason:\n    print(reason)\n"
    )
    found = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert found.stdout == f"{path}: the file would grow over the size limit of this process (ulimit -f)\n"
    assert path.read_bytes() == before


def test_a_device_that_is_always_full_is_one_line() -> None:
    with pytest.raises(StudyError, match="/dev/full: the disk is full"):
        append_rows(Path("/dev/full"), [{"item_id": "a"}])


# Appending.


def test_rows_are_appended_whole_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "step1" / "a.jsonl"
    append_rows(path, [])
    assert not path.exists()
    append_rows(path, [{"item_id": "a_1"}, {"item_id": "a_2"}])
    append_rows(path, [{"item_id": "a_3", "detail": "line\nbreak"}])
    assert path.read_bytes().count(b"\n") == 3
    assert read(path) == (["a_1", "a_2", "a_3"], 0)


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(st.characters(), max_size=20), max_size=3), max_size=5))
def test_what_is_appended_is_one_line_a_row_and_reads_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("rows") / "a.jsonl"
    append_rows(path, rows)
    lines = path.read_bytes().split(b"\n")[:-1] if rows else []
    clean = [
        {
            key.encode("utf-8", "replace").decode(): value.encode("utf-8", "replace").decode()
            for key, value in row.items()
        }
        for row in rows
    ]
    assert [json.loads(line) for line in lines] == clean


def test_a_torn_last_line_is_closed_so_that_no_row_is_glued_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for torn in (b'{"item_id": "a_9"', b"{", b"\xff\xfe", b"\0" * 10):
        path.write_bytes(GOOD + torn)
        append_rows(path, [{"item_id": "a_2"}])
        assert path.read_bytes() == GOOD + torn + b'\n{"item_id": "a_2"}\n'
        assert read(path) == (["a_1", "a_2"], 1)


def test_a_whole_row_that_lacks_only_its_newline_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD[:-1])
    append_rows(path, [{"item_id": "a_2"}])
    assert read(path) == (["a_1", "a_2"], 0)


def test_numbers_that_json_does_not_know_are_a_bug_and_write_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(ValueError, match="JSON compliant"):
        append_rows(path, [{"item_id": "a_1"}, {"x": float("nan")}])
    assert not path.exists()


def test_a_name_that_is_no_utf_8_does_not_cost_the_row(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_rows(path, [{"item_id": "a_1", "detail": os.fsdecode(b"v\xff.mp4"), "status": "error"}])
    assert read_rows([path], COLUMNS).table.to_pylist() == [
        {"item_id": "a_1", "status": "error", "n_right": None, "detail": "v?.mp4"}
    ]


def test_many_writers_never_mix_their_rows(tmp_path: Path) -> None:
    path, writers, batches = tmp_path / "a.jsonl", 4, 60
    program = (
        "import pathlib, sys\nfrom benchcheck.files import append_rows\n"
        "path, writer = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "for batch in range(int(sys.argv[3])):\n"
        "    append_rows(path, [{'item_id': f'{writer}_{batch}_{n}', 'detail': writer * 3000} for n in range(3)])\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(number), str(batches)])
        for number in range(writers)
    ]
    assert [process.wait() for process in processes] == [0] * writers
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert all(row["detail"] == row["item_id"][0] * 3000 for row in rows)
    for number in range(writers):
        mine = [row["item_id"] for row in rows if row["item_id"].startswith(f"{number}_")]
        assert mine == [f"{number}_{batch}_{n}" for batch in range(batches) for n in range(3)]
    assert all(len({row["item_id"].rpartition("_")[0] for row in rows[i : i + 3]}) == 1 for i in range(0, len(rows), 3))
    assert read(path) == ([row["item_id"] for row in rows], 0)


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may take less than was given, without an error."""
    path = tmp_path / "a.jsonl"
    real = Path.open

    def short(self: Path, *arguments: object, **settings: object) -> object:
        file = real(self, *arguments, **settings)  # type: ignore[arg-type]

        class Short:
            def __enter__(self) -> "Short":
                return self

            def __exit__(self, *what: object) -> None:
                file.close()

            def __getattr__(self, name: str) -> object:
                return getattr(file, name)

            def write(self, data: memoryview) -> int:
                return file.write(data[:7]) or 0

        return Short()

    monkeypatch.setattr(Path, "open", short)
    append_rows(path, [{"item_id": "a_1"}, {"item_id": "a_2"}])
    monkeypatch.undo()
    assert read(path) == (["a_1", "a_2"], 0)


# Reading.


@pytest.mark.parametrize(
    ("damage", "ids", "unreadable"),
    [
        (b"", [], 0),
        (b'{"item_id": "a_2", "sta', [], 1),
        (b'{"item_id": "a_2", "sta\n', [], 1),
        (b"\0\0\0\0\n", [], 1),
        (b'{"item_id": "a\0b"}\n', [], 1),
        (b"[1, 2]\n", [], 1),
        (b'3\n"x"\nnull\ntrue\n', [], 4),
        (b"\xff\xfe\n", [], 1),
        (b'{"item_id": "\xff"}\n', [], 1),
        (b"{}\n", [], 1),
        (b'{"item_id": null}\n', [], 1),
        (b"\n  \n", [], 0),
        (GOOD[:-1] + b"\r\n", ["a_1"], 0),
        (GOOD[:-1] + GOOD, [], 1),
        (b'{"item_id": "a_2", "n_right": "x"}\n', ["a_2"], 0),
        (b'{"item_id": "a_2", "unknown": {"a": [1]}}\n', ["a_2"], 0),
    ],
)
def test_damaged_lines_are_counted_and_the_rest_is_read(
    tmp_path: Path, damage: bytes, ids: list[str], unreadable: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + damage)
    assert read(path) == (["a_1", *ids], unreadable)
    if not damage.endswith(b"\n"):
        append_rows(path, [])
    else:
        path.write_bytes(GOOD + damage + GOOD)
        assert read(path) == (["a_1", *ids, "a_1"], unreadable)


def test_no_files_and_empty_files_have_no_rows(tmp_path: Path) -> None:
    empty = tmp_path / "a.jsonl"
    empty.touch()
    for paths in ([], [empty], [empty, empty]):
        assert read(*paths) == ([], 0)
        assert read_rows(paths, COLUMNS).table.column_names == list(COLUMNS)
    assert read(*[], where="status = 'ok'") == ([], 0)


def test_a_condition_keeps_the_count_of_torn_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + b'{"item_id": "a_2", "status": "error"}\n{"torn')
    assert read(path, where="status = 'error'") == (["a_2"], 1)


def test_rows_come_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    paths = [tmp_path / "b.jsonl", tmp_path / "a.jsonl", tmp_path / "empty.jsonl", tmp_path / "c.jsonl"]
    wanted = []
    for number, path in enumerate(paths):
        ids = [f"{number}_{line}" for line in range(0 if number == 2 else 30_000)]
        path.write_text("".join(f'{{"item_id": "{item_id}", "detail": "{"x" * 200}"}}\n' for item_id in ids))
        wanted += ids
    assert read(*paths) == (wanted, 0)


@pytest.mark.parametrize(
    "folder",
    [
        "it's",
        'a "b"',
        "s[1]",
        "s*",
        "s?",
        "[!a]",
        "{a,b}",
        "status=bad",
        "item_id=7",
        "a b",
        "é",
        "~",
        "$HOME",
        "s\\n",
        "%",
    ],
)
def test_a_folder_may_have_any_name(tmp_path: Path, folder: str) -> None:
    """DuckDB would take some of these for patterns, and others for columns."""
    for name in (folder, "s1", "sx", "b"):
        (tmp_path / name).mkdir(exist_ok=True)
        row = {"item_id": f"row of {name}", "status": "ok"}
        (tmp_path / name / f"{folder}.jsonl").write_text(json.dumps(row) + "\n")
    (row,) = read_rows([tmp_path / folder / f"{folder}.jsonl"], COLUMNS).table.to_pylist()
    assert (row["item_id"], row["status"]) == (f"row of {folder}", "ok")


def test_a_relative_folder_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "a.jsonl").write_bytes(GOOD)
    assert read(Path("~/a.jsonl")) == (["a_1"], 0)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD)
    with pytest.raises(StudyError, match="rows are not readable"):
        read_rows([path], {"item_id": "NO SUCH TYPE"})


def test_a_dangling_link_among_the_rows_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("nowhere")
    with pytest.raises(StudyError, match=r"a\.jsonl: rows are not readable: No such file.* Cure:"):
        read(tmp_path / "a.jsonl")


def test_what_stands_behind_from_can_be_used_in_a_query(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "a.jsonl"
    path.write_bytes(GOOD + GOOD)
    with duckdb.connect() as connection:
        assert connection.sql(f"select sum(n_right) from {rows_source([path], COLUMNS)}").fetchall() == [(6,)]
        assert connection.sql(f"select count(*) from {rows_source([], COLUMNS)}").fetchall() == [(0,)]


def test_many_files_on_many_cores_are_read_in_little_memory(tmp_path: Path) -> None:
    import duckdb

    paths = [tmp_path / f"b{number}.jsonl" for number in range(16)]
    for path in paths:
        path.write_bytes(2000 * GOOD)
    with duckdb.connect(config={"threads": 16, "memory_limit": "1GB"}) as connection:
        assert connection.sql(f"select count(*) from {rows_source(paths, COLUMNS)}").fetchall() == [(32_000,)]


def test_the_lock_keeps_a_second_writer_waiting(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"half": ')
    program = (
        "import pathlib, sys\nfrom benchcheck.files import append_rows\n"
        "append_rows(pathlib.Path(sys.argv[1]), [{'item_id': 'b'}])"
    )
    with path.open("ab", buffering=0) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = subprocess.Popen([sys.executable, "-c", program, path])
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(1.0)
        held.write(b'1, "item_id": "a"}\n')
    assert writer.wait(20) == 0
    assert read(path) == (["a", "b"], 0)


def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a[b].csv"
    program = (
        "import os, pathlib, sys\nfrom benchcheck.files import publish\n"
        "with publish(pathlib.Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    left.with_name(f"{left.name}.wal").write_text("DuckDB's", encoding="utf-8")
    os.utime(left, (0, 0))
    os.utime(f"{left}.wal", (0, 0))
    foreign = tmp_path / ".a[b].csv.another-host.1.0.tmp"
    foreign.write_text("theirs", encoding="utf-8")
    with publish(path) as temporary:
        assert not left.exists()
        temporary.write_text("whole", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == "whole"
    assert sorted(tmp_path.iterdir()) == [foreign, path]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_what_stops_a_process_waits_for_the_end_of_a_block(sent: signal.Signals) -> None:
    before = signal.signal(sent, signal.default_int_handler)
    done: list[str] = []

    def block() -> None:
        with unbroken():
            signal.raise_signal(sent)
            done.append("the block")

    try:
        with pytest.raises(KeyboardInterrupt):
            block()
        assert done == ["the block"]
        assert signal.getsignal(sent) is signal.default_int_handler
    finally:
        signal.signal(sent, before)


def test_a_block_keeps_its_own_failure_and_what_was_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def block() -> None:
        with unbroken():
            signal.raise_signal(signal.SIGTERM)
            raise ValueError("of the block")

    try:
        with pytest.raises(ValueError, match="of the block"):
            block()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_block_in_another_thread_is_just_a_block() -> None:
    done: list[str] = []

    def block() -> None:
        with unbroken():
            done.append("the block")

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert done == ["the block"]
