"""The real annotation files in ../shared/data: counts, and values that were looked up by hand."""

from collections import Counter
from pathlib import Path

import pytest

from benchcheck.config import PoolSource
from benchcheck.errors import InputError
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.items import Item
from benchcheck.pool.specs import load_spec

from .fixtures import REAL_FILES, items_in

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def benches(shared_data: Path) -> dict[str, list[Item]]:
    return {name: items_in(load_spec(name), [shared_data / file]) for name, file in REAL_FILES.items()}


@pytest.mark.parametrize(
    ("name", "rows", "mcq", "issues"),
    [
        (
            "nextqa_val",
            4996,
            4996,
            {"duplicate_options": 3, "answer_in_question": 2, "repeated_item": 1, "speech_in_question": 29}
            | {"abstention_option": 3, "letter_like_option": 1},
        ),
        (
            "nextqa_test",
            8564,
            8564,
            {"duplicate_options": 8, "duplicate_gold": 2, "answer_in_question": 12, "speech_in_question": 55}
            | {"abstention_option": 5, "letter_like_option": 1},
        ),
        (
            "nextgqa_test",
            5553,
            5552,  # 3842638015_4: its text stands among the options twice
            {"gold_matches_two_options": 1, "duplicate_options": 3, "answer_in_question": 7, "speech_in_question": 37}
            | {"abstention_option": 4},
        ),
        (
            "ovo_bench",
            1640,
            1468,
            {"hidden_gold": 172, "no_options": 172, "no_window": 172, "empty_question": 124}
            | {"index_text_contradict": 8, "repeated_item": 5, "duplicate_options": 3, "duplicate_gold": 2}
            | {"answer_in_question": 1, "prefix_out_of_order": 1, "abstention_option": 3, "option_about_options": 2}
            | {"speech_in_question": 6, "time_in_question": 2},
        ),
        (
            "streamingbench_real",
            2500,
            2499,  # 310 is asked at "00:12450"
            {"bad_window": 1, "duplicate_options": 1, "duplicate_gold": 1, "option_about_options": 1}
            | {"speech_in_question": 5},
        ),
        (
            "streamingbench_omni",
            1500,
            1497,  # 107, 394 and 1330: the gold's letter names two options
            {"gold_ambiguous": 3, "options_rejoined": 9, "prefix_out_of_order": 4, "empty_option": 2, "bad_text": 4}
            | {"duplicate_options": 4, "duplicate_gold": 2, "speech_in_question": 493},
        ),
        (
            "streamingbench_sqa",
            250,
            250,
            {"needs_previous_item": 200, "duplicate_options": 1, "prefix_out_of_order": 1},
        ),
        (
            "socialiq2_val",
            943,
            943,
            {"duplicate_options": 8, "duplicate_gold": 6, "speech_in_question": 77, "time_in_question": 52},
        ),
        (
            "how2qa_val",
            2852,
            2852,
            {"shuffled_options": 2852, "duplicate_options": 14, "duplicate_gold": 3, "answer_in_question": 7}
            | {"speech_in_question": 57, "option_about_options": 6, "abstention_option": 2},
        ),
        (
            "vlm4d_real",
            1371,
            1370,
            {"answer_in_question": 48, "gold_matches_two_options": 1, "duplicate_options": 1, "repeated_item": 1}
            | {"option_about_options": 44, "abstention_option": 65},
        ),
        ("vlm4d_synthetic", 445, 445, {}),
    ],
)
def test_counts(benches: dict[str, list[Item]], name: str, rows: int, mcq: int, issues: dict[str, int]) -> None:
    items = benches[name]
    assert (len(items), sum(item.format == "mcq" for item in items)) == (rows, mcq)
    assert Counter(code for item in items for code in item.issues) == issues
    assert len({item.item_id for item in items}) == rows


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nextqa_val", [1013, 1013, 991, 967, 1012]),
        ("nextqa_test", [1721, 1671, 1767, 1719, 1686]),
        ("nextgqa_test", [1113, 1105, 1133, 1135, 1066]),
        ("ovo_bench", [456, 388, 323, 298, 3]),
        ("streamingbench_real", [625, 625, 625, 625]),
        ("streamingbench_omni", [375, 372, 375, 375]),
        ("streamingbench_sqa", [63, 62, 62, 63]),
        ("socialiq2_val", [228, 242, 237, 236]),
        ("vlm4d_real", [339, 326, 338, 367]),
        ("vlm4d_synthetic", [108, 109, 118, 110]),
    ],
)
def test_where_the_gold_is(benches: dict[str, list[Item]], name: str, counts: list[int]) -> None:
    golds = Counter(item.gold for item in benches[name])
    golds.pop(None, None)
    assert [golds[place] for place in range(len(counts))] == counts == [golds[place] for place in sorted(golds)]


def by_source(items: list[Item], source_id: str) -> Item:
    return next(item for item in items if item.source_id == source_id)


def gold_text(item: Item) -> str:
    assert item.gold is not None
    return item.options[item.gold]


def test_nextqa(benches: dict[str, list[Item]]) -> None:
    item = benches["nextqa_val"][1]
    assert (item.item_id, item.source_id, item.category) == ("nextqa_val_1", "4882821564_1", "CW")
    assert (item.gold, item.options[2]) == (2, "unwrap it")
    assert item.video_key == "doc-doc/NExT-QA::::4882821564.mp4"


def test_nextgqa_is_nextqa_with_texts_for_golds(benches: dict[str, list[Item]]) -> None:
    """Same videos, questions, options and golds; where a text stands twice, only the index says which one is meant."""
    whole = {(item.source_id, item.question, item.options): item for item in benches["nextqa_test"]}
    pairs = [(item, whole[item.source_id, item.question, item.options]) for item in benches["nextgqa_test"]]
    assert all(item.video_key == other.video_key for item, other in pairs)
    differ = [(item, other) for item, other in pairs if item.gold != other.gold]
    assert [(item.source_id, item.gold, other.gold) for item, other in differ] == [("3842638015_4", None, 4)]
    assert differ[0][0].options[3:] == ("happy", "happy")


def test_ovo_bench(benches: dict[str, list[Item]]) -> None:
    items = benches["ovo_bench"]
    first = items[0]
    assert (first.start, first.end, gold_text(first)) == (None, 215.0, "a person with blue shirt")
    assert first.video_key == "JoeLeelyf/OVO-Bench::::Ego4D/clips/ec4a3ba3-eb00-4aa8-9b41-36043ece98f7.mp4"
    contradict = [item.source_id for item in items if "index_text_contradict" in item.issues]
    assert contradict == ["609", "707", "755", "766", "869", "918", "931", "1220"]
    assert by_source(items, "1326").options == ("A. Wade", "B. Tyler", "D. Carter", "C. Jensen")
    assert Counter(item.category for item in items if item.format == "open") == {"CRR": 48, "SSR": 42, "REC": 82}


def test_streamingbench_real(benches: dict[str, list[Item]]) -> None:
    items = benches["streamingbench_real"]
    first = items[0]
    assert (first.source_id, first.start, first.end) == ("questions_real_0", None, 31.0)
    assert gold_text(first).startswith("The individual replenished bread inventory")
    assert first.video_key == "THUNLP-MT/StreamingBench::::./videos/sample_348_real.mp4"
    assert [item.source_id for item in items if item.format == "open"] == ["questions_real_310"]
    timeless = Counter((item.video_key, item.question, frozenset(item.options)) for item in items)
    assert sum(count - 1 for count in timeless.values()) == 34  # repeats, were it not for the time


def test_streamingbench_omni_is_put_together_again(benches: dict[str, list[Item]]) -> None:
    items = benches["streamingbench_omni"]
    joined = [item for item in items if "options_rejoined" in item.issues]
    assert {len(item.options) for item in joined} == {4}
    item = by_source(items, "questions_omni_1151")
    assert item.options[0].startswith("A man comes out into the open looking around and explains, 'I'm definitely now")
    assert "down in the rainforest\nand I can tell this" in item.options[0]
    assert Counter(len(item.options) for item in items if item.format == "mcq") == {4: 1494, 5: 1, 6: 2}
    ambiguous = [item.source_id for item in items if "gold_ambiguous" in item.issues]
    assert ambiguous == ["questions_omni_107", "questions_omni_394", "questions_omni_1330"]


def test_streamingbench_sqa(benches: dict[str, list[Item]]) -> None:
    first, second = benches["streamingbench_sqa"][:2]
    assert first.options == ("Wang chuqin.", "Fan Z.D.", "Xu xin.", "Ma Lin.")
    assert (first.gold, first.end) == (0, 36.0)
    assert ("needs_previous_item" in first.issues, "needs_previous_item" in second.issues) == (False, True)
    assert first.group == second.group == "./videos/sample_17_sqa.mp4"


def test_socialiq2(benches: dict[str, list[Item]]) -> None:
    items = benches["socialiq2_val"]
    assert (items[0].start, items[0].end) == (0.0, 60.019)
    assert items[0].video_key == "abwilf/Social-IQ-2.0-Challenge::::-35BPXuZ898.mp4"
    assert gold_text(items[1]) == "She still needs to ask him a question about a school requirement."
    assert len(items) - len({item.source_id for item in items}) == 3


def test_how2qa(benches: dict[str, list[Item]]) -> None:
    """The right answer is the last column; the order that an item has depends on its id alone."""
    items = benches["how2qa_val"]
    first = items[0]
    assert (first.question, gold_text(first), first.file_gold) == ("how many knife is there?", "1", 3)
    assert (first.video_key, first.start, first.end) == ("ych133/How2R-and-How2QA::::NOuQuofjk44.mp4", 7.2, 18.0)
    assert sorted(first.options) == ["1", "10", "12", "16"]
    golds = Counter(item.gold for item in items)
    assert [golds[place] for place in range(4)] == [721, 717, 696, 718]
    assert {item.file_gold for item in items} == {3}


def test_vlm4d(benches: dict[str, list[Item]]) -> None:
    items = benches["vlm4d_real"]
    assert items[0].video_key == "shijiezhou/VLM4D::::videos_real/davis/aerobatics.mp4"
    numbers = by_source(items, "validation_3")
    assert (numbers.options, numbers.gold) == (("1", "2", "3", "0"), 0)
    twice = by_source(items, "validation_633")
    assert (twice.format, twice.gold) == ("open", None)


def test_the_pool_of_all_of_them(shared_data: Path, make_study) -> None:
    sources = [PoolSource(spec=name, files=(str(shared_data / file),)) for name, file in REAL_FILES.items()]
    study = make_study(*sources)
    summary = build_pool(study)
    assert (summary.rows, summary.mcq, summary.open) == (30_614, 30_436, 178)
    assert [bench.drift for bench in summary.benches] == [""] * len(REAL_FILES)
    assert study.item_table(["item_id"]).num_rows == 30_614


def test_a_file_without_options_says_so(shared_data: Path, make_study) -> None:
    """ReXTime's file has the gold's letter alone: one line says so, and where the options are."""
    path = shared_data / "rextime" / "rextime_val.jsonl"
    study = make_study(PoolSource(spec="rextime_val", files=(str(path),)))
    with pytest.raises(InputError) as caught:
        build_pool(study)
    message = str(caught.value)
    assert message.startswith(f"{path}: no record has options. Allowed: 'options'. Its fields: 'qid', 'query',")
    assert "They are in rextime_val.json" in message
    assert "\n" not in message
    assert not study.pool_file.exists()
    with pytest.raises(InputError, match=r"no record has 'question'.*Its fields: 'qid', 'query', 'duration'"):
        items_in(load_spec("generic"), [path])
