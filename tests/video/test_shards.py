"""The plan of shards, their manifest, sizes for people: data in, data out."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.config import Config, Frames, Model
from benchcheck.errors import DamagedFileError, UsageError
from benchcheck.inputs import Normalize
from benchcheck.video.amounts import counted, shown_size
from benchcheck.video.shards.layout import (
    Manifest,
    Shard,
    is_shard,
    other_field,
    parse_manifest,
    parse_size,
    planned,
    shard_name,
    spec_of,
    video_of,
)

SHARD = {"file": "frames_000.tar", "sha256": "a" * 64, "bytes": 10240, "n_videos": 2}
WHOLE = {"n_videos": 2, "shards": [SHARD]}
CONFIG = Config(study_version=1, models={role: Model(model="m") for role in ("8b", "2b")})


def test_names_have_three_digits_or_more() -> None:
    assert [shard_name(number) for number in (0, 42, 1000)] == ["frames_000.tar", "frames_042.tar", "frames_1000.tar"]
    assert all(map(is_shard, ("frames_000.tar", "frames_999.tar", "frames_1000.tar")))
    others = ("frames_00.tar", "frames_0000.tar", "frames_0001.tar", "../frames_000.tar", "frames_000.tar.gz")
    assert not any(map(is_shard, (*others, "frames_000.tar\n", "frames_\u0660\u0660\u0660.tar", "FRAMES_000.TAR", "")))


def test_the_video_of_a_frames_key() -> None:
    keys = {
        "k:ab": "k:ab",
        "k:ab@0-1500": "k:ab",
        "k:ab@500-": "k:ab",
        "a@b": "a@b",
        "a@0-1@2-3": "a@0-1",
        "a@1-\n": "a@1-\n",
    }
    assert {key: video_of(key) for key in keys} == keys


@given(
    st.dictionaries(st.from_regex(r"[ab]{1,3}(@[0-9]-[0-9])?", fullmatch=True), st.integers(1, 50)), st.integers(1, 120)
)
def test_a_plan_holds_every_set_once_and_no_video_in_two(sizes: dict[str, int], room: int) -> None:
    plan = planned(sizes, room)
    assert sorted(key for keys in plan for key in keys) == sorted(sizes)
    assert plan == planned(dict(reversed(sizes.items())), room)
    homes = [{video_of(key) for key in keys} for keys in plan]
    assert sum(map(len, homes)) == len({video_of(key) for key in sizes})
    for keys, videos in zip(plan, homes, strict=True):
        assert sum(sizes[key] for key in keys) <= room or len(videos) == 1
    for (before, after), videos in zip(itertools.pairwise(plan), homes[1:], strict=False):
        first = [key for key in after if video_of(key) == min(videos)]
        assert sum(sizes[key] for key in (*before, *first)) > room, "one more would have fitted"


def test_what_is_written_is_read_again() -> None:
    shards = (Shard("frames_000.tar", "a" * 64, 10240, 2, 3), Shard("frames_007.tar", "b" * 64, 0, 0, 0))
    manifest = Manifest(shards, 2, spec_of(CONFIG))
    table = {"benchcheck": "0.1.0", "later": "key", **manifest.table()}
    assert table["n_sets"] == 3
    assert parse_manifest(json.dumps(table).encode(), "m") == manifest
    assert parse_manifest(b"\xef\xbb\xbf" + json.dumps(table).encode(), "m") == manifest


def test_the_protocol_alone_is_enough() -> None:
    manifest = parse_manifest(json.dumps(WHOLE).encode(), "m")
    assert manifest == Manifest((Shard("frames_000.tar", "a" * 64, 10240, 2, None),), 2, None)


@pytest.mark.parametrize("end", [0, 1, 40, 100, -1])
def test_a_cut_manifest_is_told(end: int) -> None:
    text = json.dumps(WHOLE).encode()
    with pytest.raises(DamagedFileError, match=r"^m: not readable as JSON .*Cure"):
        parse_manifest(text[:end], "m")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ([], "a table is expected"),
        ("text", "a table is expected"),
        (WHOLE | {"version": 2}, "version 2, but this benchcheck reads 1"),
        (WHOLE | {"version": True}, "version True"),
        (WHOLE | {"version": "1"}, "version '1'"),
        (WHOLE | {"version": "x" * 10_000}, "version "),
        (WHOLE | {"n_videos": 10**400}, "n_videos = 1000"),
        ({"n_videos": 1}, "'shards' is no list"),
        (WHOLE | {"shards": [3]}, r"shards\[0\] is no table"),
        (WHOLE | {"frames": 7}, "'frames' is no table"),
        (WHOLE | {"n_videos": -1}, "n_videos = -1"),
        (WHOLE | {"n_videos": "2"}, "n_videos = 2 is no whole number"),
        (WHOLE | {"n_videos": True}, "n_videos = True"),
        (WHOLE | {"shards": [SHARD, SHARD]}, r"frames_000\.tar is listed twice"),
        *((WHOLE | {"shards": [SHARD | {"file": name}]}, r"shards\[0\]\.file = ")
          for name in ("../x", "/etc/passwd", "a/frames_000.tar", "frames_000.tar\0", "", 7, None, "x" * 10_000)),
        *((WHOLE | {"shards": [SHARD | {"sha256": digest}]}, r"shards\[0\]\.sha256 = ")
          for digest in ("A" * 64, "a" * 63, "g" * 64, 5, None, "a" * 64 + "\n")),
        *((WHOLE | {"shards": [SHARD | {name: value}]}, rf"shards\[0\]\.{name} = ")
          for name in ("bytes", "n_videos", "n_sets") for value in (-1, 1.5, "1", None, True)),
    ],
)  # fmt: skip
def test_a_manifest_that_says_what_none_says_is_told(table: Any, told: str) -> None:
    with pytest.raises(DamagedFileError, match=rf"^m: .*{told}.*") as found:
        parse_manifest(json.dumps(table).encode(), "m")
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\0" * 100, b"[" * 100_000, b"<html>", b"9" * 5000, b'{"a": NaN'])
def test_what_is_no_json_is_told(text: bytes) -> None:
    with pytest.raises(DamagedFileError, match=r"^m: "):
        parse_manifest(text, "m")


def test_frames_of_another_config_are_told_by_the_field() -> None:
    made = spec_of(CONFIG)
    assert other_field(CONFIG, made) is None
    assert other_field(CONFIG, made | {"quality": 90}) == ("quality", 90, 85)
    assert other_field(CONFIG, {}) == ("count", None, 32)
    name, theirs, _ = other_field(CONFIG, made | {"quality": "x" * 10_000}) or ("", "", "")
    assert (name, len(theirs)) == ("quality", 201)
    small = Config(study_version=1, models=CONFIG.models, frames=Frames(count=8, single=1))
    assert other_field(small, made) == ("count", 32, 8)
    normal = Config(study_version=1, models=CONFIG.models, normalize=Normalize(frames="normalized"))
    assert other_field(normal, made) == ("normalized", None, normal.normalize.pictures)


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), ("1.5gb", 15 * 10**8), ("10K", 10_240), ("1T", 10**12),
     ("20000", 20_000), (" 3 mb ", 3 * 10**6), ("20000B", 20_000)],
)  # fmt: skip
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text.replace("10K", "10.24K")) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2 GiB", "1e9", "nan", "2PB", "0", "1KB", "2GB\n2GB", "\u0663GB"])
def test_what_is_no_size_is_wrong_use(text: str) -> None:
    with pytest.raises(UsageError, match=r"not a size\. Allowed: 2GB"):
        parse_size(text)


def test_what_people_read() -> None:
    sizes = {
        0: "0 bytes",
        999: "999 bytes",
        1500: "1.5 kB",
        2 * 10**9: "2 GB",
        999_600: "1,000 kB",
        5 * 10**15: "5,000 TB",
    }
    assert {size: shown_size(size) for size in sizes} == sizes
    assert [counted(number, "shard") for number in (0, 1, 2000)] == ["0 shards", "1 shard", "2,000 shards"]
