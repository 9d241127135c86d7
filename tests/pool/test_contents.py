import json
import os

import pytest

from benchcheck.errors import StudyError
from benchcheck.pool.contents import content_ids, content_of, video_rows, with_ids
from benchcheck.study import Study, items_table
from studies import make_item

HASH, OTHER = "ab" * 32, "cd" * 32


def test_a_frames_key_tells_the_content() -> None:
    assert content_of(HASH) == content_of(f"{HASH}@0-1500") == HASH
    assert (
        content_of("k:0123456789abcdef") == content_of(HASH.upper()) == content_of(HASH + "0") == content_of("") == ""
    )


def test_the_last_good_row_of_a_video_wins(study: Study) -> None:
    good = {"key": "a", "status": "prepared", "content_hash": HASH}
    rows: list[object] = [
        good,
        good | {"content_hash": OTHER},
        {"key": "a", "status": "missing", "content_hash": None},
        good | {"key": "b", "frames_key": "k:1"},
        good | {"key": "c", "content_hash": "../../etc"},
        good | {"key": "d", "content_hash": ""},
        good | {"key": 5},
        ["prepared"], None, 7,
    ]  # fmt: skip
    study.logs.mkdir()
    lines = [json.dumps(row).encode() for row in rows]
    study.video_manifest.write_bytes(b"\n".join([*lines, b"\xff\0", b"[" * 100_000, lines[0][:20]]))
    assert content_ids(study) == {"a": OTHER}
    assert [row["status"] for row in video_rows(study)] == ["prepared", "prepared", "missing"]


def test_without_a_manifest_nothing_is_known(study: Study) -> None:
    assert content_ids(study) == {}
    os.makedirs(study.video_manifest)
    with pytest.raises(StudyError, match=r"manifest\.jsonl.*Cure"):
        content_ids(study)


def test_ids_go_into_both_columns_and_nowhere_else() -> None:
    items = [make_item(0), make_item(2, start=1.5, end=3.0), make_item(5)]
    table = items_table(items)
    assert with_ids(table, {}) is table
    ids = {items[0].video_key: HASH, items[1].video_key: OTHER}
    changed = with_ids(table, ids)
    assert changed.column("video_id").to_pylist() == [HASH, OTHER, items[2].video_id]
    assert changed.column("frames_key").to_pylist() == [HASH, f"{OTHER}@1500-3000", items[2].frames_key]
    assert changed.schema == table.schema
    kept = [name for name in table.column_names if name not in ("video_id", "frames_key")]
    assert changed.select(kept) == table.select(kept)
    assert with_ids(changed, ids) is changed
