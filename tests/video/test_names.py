"""Names of archives, parts and members: what fits is found, and two that fit are never chosen between."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.video.faults import VideoError
from benchcheck.video.sources.names import Names
from benchcheck.video.sources.parts import grouped, is_archive, is_part_of


def names(*paths: str, stem: str = "") -> Names[str]:
    found = Names[str](stem)
    for path in paths:
        found.add(path, path)
    return found


def test_the_path_itself_comes_first_then_one_that_ends_with_it() -> None:
    assert names("a.mp4", "in/a.mp4").fitting(["a.mp4"]) == ["a.mp4"]
    assert names("videos/in/a.mp4").fitting(["in/a.mp4"]) == ["videos/in/a.mp4"]
    assert names("videos/xin/a.mp4").fitting(["in/a.mp4"]) == []
    assert names("train/1.mp4").fitting(["val/1.mp4"]) == []
    assert names("1.mp4").fitting(["val/1.mp4"]) == []


def test_two_that_fit_are_both_given() -> None:
    assert names("train/1.mp4", "val/1.mp4").fitting(["1.mp4"]) == ["train/1.mp4", "val/1.mp4"]
    assert names("a.mp4", "a.mp4").fitting(["a.mp4"]) == ["a.mp4", "a.mp4"]
    assert names("x/a.mp4", "y/a.webm").fitting(["a", "a.mp4", "a.webm"]) == ["x/a.mp4", "y/a.webm"]


def test_the_first_of_the_wanted_paths_counts_where_it_is_whole() -> None:
    assert names("a.webm", "a.mp4").fitting(["a", "a.mp4", "a.webm"]) == ["a.mp4"]


def test_an_archive_may_stand_for_the_folder_around_its_members() -> None:
    assert names("a.mp4", stem="clips").fitting(["clips/a.mp4"]) == ["a.mp4"]
    assert names("a.mp4", stem="other").fitting(["clips/a.mp4"]) == []
    assert names("a.mp4").fitting(["/a.mp4"]) == []


def test_names_are_compared_in_one_unicode_form() -> None:
    assert names("cafe\u0301.mp4").fitting(["caf\xe9.mp4"]) == ["cafe\u0301.mp4"]
    assert names("क\u093c.mp4").fitting(["\u0958.mp4"]) == ["क\u093c.mp4"]


def test_what_only_looks_alike_is_told() -> None:
    found = names("train/1.mp4", "val/1.webm", "2.mp4")
    assert found.alike(["test/1.mp4"]) == ["train/1.mp4", "val/1.webm"]
    assert found.alike(["1", "1.mp4"]) == ["train/1.mp4", "val/1.webm"]
    assert found.alike(["3.mp4"]) == []


@given(st.lists(st.text("ab/.é\u0301", max_size=8), max_size=8), st.text("ab/.é\u0301", max_size=6))
def test_what_fits_ends_with_what_is_wanted(paths: list[str], wanted: str) -> None:
    for path in names(*paths).fitting([wanted]):
        assert f"/{names_form(path)}".endswith("/" + names_form(wanted))


def names_form(path: str) -> str:
    return unicodedata.normalize("NFC", path)


@pytest.mark.parametrize("name", [
    *("a.zip", "a.ZIP", "in/a.tar", "a.tgz", "a.tar.gz", "a.tar.xz", "a b\n.tar.bz2"),
    *("a.zip.001", "a.tar.part-aa", "a.tar.gz.part_1", "a.tar.partaa", "a.zip.ab"),
])  # fmt: skip
def test_names_of_archives(name: str) -> None:
    assert is_archive(name)


@pytest.mark.parametrize("name", ["a.mp4", "zip", "a.zip.md5", "a.zip.txt", "a.tar.sha256", "a.gz", "a.zipx", "a.rar"])
def test_names_of_no_archive(name: str) -> None:
    assert not is_archive(name)


def test_an_archive_is_no_part_of_another() -> None:
    assert is_part_of("a.tar.00", "a.tar")
    assert not is_part_of("a.tar.gz", "a.tar")
    assert not is_part_of("a.tar.00", "b.tar")


@pytest.mark.parametrize("endings", [
    [".001", ".002", ".010"], ["-part-aa", "-part-ab", "-part-ba"], [".part0", ".part1", ".part10"], [".aa", ".ab"],
])  # fmt: skip
def test_parts_come_in_their_order_and_a_gap_is_told(endings: list[str]) -> None:
    first, last = endings[0], endings[-1]
    if len(endings) == 2:
        assert grouped(["v.tar" + last, "v.tar" + first]) == {"v.tar": ("v.tar" + first, "v.tar" + last)}
        return
    fault = grouped("v.tar" + ending for ending in endings)["v.tar"]
    assert isinstance(fault, VideoError)
    assert (fault.status, f"after 'v.tar{endings[1]}'" in fault.reason) == ("archive_damaged", True)


def test_many_parts_in_any_order() -> None:
    parts = [f"v.zip.part{number}" for number in range(1, 120)]
    shuffled = random.Random(0).sample(parts, len(parts))
    assert grouped([*shuffled, "w.zip"]) == {"w.zip": ("w.zip",), "v.zip": tuple(parts)}


def test_a_whole_archive_counts_before_its_parts() -> None:
    assert grouped(["v.zip.001", "v.zip", "v.zip.002"]) == {"v.zip": ("v.zip",)}


@pytest.mark.parametrize(("files", "status"), [
    (["v.zip.002", "v.zip.003"], "archive_damaged"),
    (["v.zip.ab"], "archive_damaged"),
    (["v.zip.001", "v.zip.aa"], "ambiguous"),
    (["v.zip.01", "v.zip.1"], "ambiguous"),
])  # fmt: skip
def test_parts_that_are_not_all(files: list[str], status: str) -> None:
    fault = grouped(files)["v.zip"]
    assert isinstance(fault, VideoError)
    assert fault.status == status
