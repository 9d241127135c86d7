"""The real annotation files in ../shared/data: counts, and values that were looked up by hand."""

from collections import Counter
from pathlib import Path

import pytest

from benchcheck.config import PoolSource
from benchcheck.errors import InputError
from benchcheck.pool.build import build_pool
from benchcheck.pool.items import Item
from benchcheck.pool.mapping import items_of
from benchcheck.pool.readers import Layout, read_records
from benchcheck.pool.specs import load_spec

pytestmark = pytest.mark.shared

FILES = {
    "nextqa_val": "nextqa/val.csv",
    "nextqa_test": "nextqa/test.csv",
    "ovo_bench": "ovo_bench/ovo_bench_new.json",
    "socialiq2_val": "socialiq2/qa_val.json",
    "vlm4d_real": "vlm4d/real_mc.json",
    "vlm4d_synthetic": "vlm4d/synthetic_mc.json",
}


@pytest.fixture(scope="module")
def benches(shared_data: Path) -> dict[str, list[Item]]:
    found = {}
    for name, file in FILES.items():
        spec = load_spec(name)
        layout = Layout(spec.reader, spec.header, spec.unnest)
        found[name] = list(items_of(spec, read_records(shared_data / file, layout)))
    return found


@pytest.mark.parametrize(
    ("name", "rows", "mcq", "issues"),
    [
        ("nextqa_val", 4996, 4996, {"duplicate_options": 3, "answer_in_question": 2, "repeated_item": 1}),
        ("nextqa_test", 8564, 8564, {"duplicate_options": 8, "duplicate_gold": 2, "answer_in_question": 12}),
        (
            "ovo_bench",
            1640,
            1468,
            {
                "hidden_gold": 172,
                "no_options": 172,
                "no_window": 172,
                "empty_question": 124,
                "index_text_contradict": 8,
                "repeated_item": 5,
                "duplicate_options": 3,
                "duplicate_gold": 2,
                "answer_in_question": 1,
                "prefix_out_of_order": 1,
            },
        ),
        ("socialiq2_val", 943, 943, {"duplicate_options": 8, "duplicate_gold": 6}),
        (
            "vlm4d_real",
            1371,
            1370,
            {"answer_in_question": 48, "gold_matches_two_options": 1, "duplicate_options": 1, "repeated_item": 1},
        ),
        ("vlm4d_synthetic", 445, 445, {}),
    ],
)
def test_counts(benches: dict[str, list[Item]], name: str, rows: int, mcq: int, issues: dict[str, int]) -> None:
    items = benches[name]
    assert (len(items), sum(item.format == "mcq" for item in items)) == (rows, mcq)
    assert Counter(code for item in items for code in item.issues) == issues
    assert len({item.item_id for item in items}) == rows


def by_source(items: list[Item], source_id: str) -> Item:
    return next(item for item in items if item.source_id == source_id)


def test_nextqa(benches: dict[str, list[Item]]) -> None:
    item = benches["nextqa_val"][1]
    assert (item.item_id, item.source_id, item.category) == ("nextqa_val_1", "4882821564_1", "CW")
    assert (item.gold, item.options[2]) == (2, "unwrap it")
    assert item.video_key == "doc-doc/NExT-QA::::4882821564.mp4"
    golds = Counter(item.gold for item in benches["nextqa_val"])
    assert [golds[place] for place in range(5)] == [1013, 1013, 991, 967, 1012]


def test_ovo_bench(benches: dict[str, list[Item]]) -> None:
    items = benches["ovo_bench"]
    first = items[0]
    assert (first.start, first.end, first.options[first.gold or 0]) == (None, 215.0, "a person with blue shirt")
    assert first.video_key == "JoeLeelyf/OVO-Bench::::Ego4D/clips/ec4a3ba3-eb00-4aa8-9b41-36043ece98f7.mp4"
    contradict = [item.source_id for item in items if "index_text_contradict" in item.issues]
    assert contradict == ["609", "707", "755", "766", "869", "918", "931", "1220"]
    assert by_source(items, "1326").options == ("A. Wade", "B. Tyler", "D. Carter", "C. Jensen")
    assert Counter(item.category for item in items if item.format == "open") == {"CRR": 48, "SSR": 42, "REC": 82}
    golds = Counter(item.gold for item in items)
    assert [golds[place] for place in range(5)] == [456, 388, 323, 298, 3]


def test_socialiq2(benches: dict[str, list[Item]]) -> None:
    items = benches["socialiq2_val"]
    assert (items[0].start, items[0].end) == (0.0, 60.019)
    assert items[0].video_key == "abwilf/Social-IQ-2.0-Challenge::::-35BPXuZ898.mp4"
    assert items[1].options[items[1].gold or 0] == "She still needs to ask him a question about a school requirement."
    assert len(items) - len({item.source_id for item in items}) == 3
    golds = Counter(item.gold for item in items)
    assert [golds[place] for place in range(4)] == [228, 242, 237, 236]


def test_vlm4d(benches: dict[str, list[Item]]) -> None:
    items = benches["vlm4d_real"]
    assert items[0].video_key == "shijiezhou/VLM4D::::videos_real/davis/aerobatics.mp4"
    numbers = by_source(items, "validation_3")
    assert (numbers.options, numbers.gold) == (("1", "2", "3", "0"), 0)
    twice = by_source(items, "validation_633")
    assert (twice.format, twice.gold) == ("open", None)
    golds = Counter(item.gold for item in benches["vlm4d_synthetic"])
    assert [golds[place] for place in range(4)] == [108, 109, 118, 110]


def test_the_pool_of_all_of_them(shared_data: Path, make_study) -> None:
    sources = [PoolSource(spec=name, files=(str(shared_data / file),)) for name, file in FILES.items()]
    study = make_study(*sources)
    summary = build_pool(study)
    assert (summary.rows, summary.mcq, summary.open) == (17_959, 17_786, 173)
    assert [bench.drift for bench in summary.benches] == [""] * 6
    assert study.item_table(["item_id"]).num_rows == 17_959


def test_a_file_without_options_says_so(shared_data: Path) -> None:
    """ReXTime's options are in another file."""
    path = shared_data / "rextime" / "rextime_val.jsonl"
    spec = load_spec("generic")
    with pytest.raises(InputError, match=r"no record has 'question'.*Its fields: 'qid', 'query', 'duration'"):
        list(items_of(spec, read_records(path)))


@pytest.mark.parametrize(
    ("file", "layout", "rows"),
    [
        ("nextgqa/test.csv", Layout(), 5553),
        ("how2qa/how2QA_val_release.csv", Layout(header=("vid", "ts", "w0", "w1", "w2", "question", "correct")), 2852),
        ("streamingbench/questions_real.json", Layout(unnest=("flatten", "each:questions")), 2500),
        ("streamingbench/questions_omni.json", Layout(unnest=("flatten", "each:questions")), 1500),
        ("streamingbench/questions_sqa.json", Layout(unnest=("flatten", "flatten", "each:questions")), 250),
        ("rextime/rextime_val.jsonl", Layout(), 921),
    ],
)
def test_the_readers_already_read_the_other_files(shared_data: Path, file: str, layout: Layout, rows: int) -> None:
    assert sum(1 for _ in read_records(shared_data / file, layout)) == rows
