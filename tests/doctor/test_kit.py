"""The kit: enough questions, balanced letters, drawings that differ; and the words that drawings are made of."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchcheck.doctor.drawing import COLOURS, PLACES, SHAPES, SIZES, draw, parse, save_frames
from benchcheck.doctor.exam import Exam
from benchcheck.doctor.kit import WANTED, acceptance_kit, kit_size, load_kit
from benchcheck.doctor.world import made_up_world

from .fakes import digest


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Exam:
    return acceptance_kit(tmp_path_factory.mktemp("kit"), 32, 128, "8b")


def test_the_kit_is_large_enough_and_its_letters_are_balanced(kit: Exam) -> None:
    assert len(kit.facts) >= 40
    assert len(kit.pictures) >= 24
    assert len(kit.sequences) >= 12
    for questions in (kit.facts, kit.pictures, kit.sequences):
        counts = Counter(question.gold for question in questions)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert set(counts) == {0, 1, 2, 3}


def test_every_question_has_four_options_and_a_right_one_that_the_kit_names(kit: Exam) -> None:
    rows = {
        row["question"] + row["options"][0]: row for name in ("fact", "picture", "sequence") for row in load_kit()[name]
    }
    for question in (*kit.facts, *kit.pictures, *kit.sequences, *kit.places.values()):
        item = question.item
        assert len(set(item.options)) == len(item.options) == 4
        if item.category != "place":
            assert item.question + item.options[question.gold] in rows
        if question.frames:
            assert question.other_gold != question.gold
    ids = [question.item.item_id for question in (*kit.facts, *kit.pictures, *kit.sequences, *kit.places.values())]
    assert len(set(ids)) == len(ids)


def test_pictures_show_what_they_should(kit: Exam) -> None:
    for question in (*kit.pictures, *kit.sequences):
        assert len(question.frames) == len(question.other) == (1 if question in kit.pictures else 32)
        assert [digest(path) for path in question.frames] != [digest(path) for path in question.other]
    red = Image.open(kit.pictures[0].frames[0])
    assert red.size == (128, 64)
    pixel = red.getpixel((64, 32))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 180
    assert pixel[2] < 100


def test_a_sequence_backwards_says_what_its_other_one_says(kit: Exam) -> None:
    """The doctor's check of the order of frames turns them round: that must change every right answer."""
    for question in kit.sequences:
        first, last = question.frames[0], question.frames[-1]
        assert digest(first) != digest(last)


@pytest.mark.parametrize("count", [1, 4, 32])
def test_places_differ_in_one_frame(tmp_path: Path, count: int) -> None:
    for exam in (acceptance_kit(tmp_path, count, 64, "2b"), made_up_world(tmp_path / "world", count)):
        assert list(exam.places) == ["first", "middle", "last"]
        for name, question in exam.places.items():
            pairs = zip(question.frames, question.other, strict=True)
            different = [number for number, (one, other) in enumerate(pairs) if digest(one) != digest(other)]
            assert different == [{"first": 0, "middle": count // 2, "last": count - 1}[name]]


def test_the_size_is_in_the_name() -> None:
    assert kit_size("Qwen/Qwen3-VL-2B-Instruct") == "2b"
    assert kit_size("Qwen/Qwen3-VL-8B-Instruct") == kit_size("some/other") == "8b"
    assert WANTED["8b"].facts >= WANTED["2b"].facts > 0.5


WORDS = st.tuples(
    st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(COLOURS)), st.sampled_from(sorted(PLACES)),
    st.sampled_from(sorted(SIZES)), st.integers(1, 9),
)  # fmt: skip


@given(st.lists(WORDS, min_size=1, max_size=3), st.sampled_from(sorted(COLOURS)), st.randoms())
def test_words_of_a_drawing_may_come_in_any_order(
    things: list[tuple[str, str, str, str, int]], ground: str, chance
) -> None:  # type: ignore[no-untyped-def]
    texts = []
    for what, colour, place, size, count in things:
        words = [what, colour, place, size, f"{count}x"]
        chance.shuffle(words)
        texts.append(" ".join(words))
    found, back = parse(f"{' + '.join(texts)} on {ground}")
    assert back == ground
    assert [(one.what, one.colour, one.start, one.size, one.count) for one in found] == things


def test_a_thing_that_moves() -> None:
    (thing,), ground = parse("circle left>right")
    assert (thing.start, thing.end, ground) == ("left", "right", "white")
    assert parse("blank") == ([], "white")


@pytest.mark.parametrize("text", ["circle pink", "red", "circle on plaid", "circle left>up", "10x circle", ""])
def test_what_is_no_drawing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="drawing"):
        parse(text)


def test_every_shape_leaves_pixels(tmp_path: Path) -> None:
    for shape in [*SHAPES, "text:7"]:
        draw(f"{shape} black large", tmp_path / "one.jpg", (128, 64))
        dark = sum(Image.open(tmp_path / "one.jpg").convert("L").histogram()[:60])
        assert 100 < dark < 128 * 64 / 2, shape


def test_segments_cover_all_frames_or_are_refused(tmp_path: Path) -> None:
    paths = save_frames(["0-15 blank", "16-31 circle left>right"], tmp_path / "a", 4, (64, 32))
    assert len(paths) == 4
    assert digest(paths[0]) == digest(paths[1]) != digest(paths[2]) != digest(paths[3])
    with pytest.raises(ValueError, match="nothing is shown at frame"):
        save_frames(["0-15 blank"], tmp_path / "b", 4, (64, 32))
    with pytest.raises(ValueError, match="not of the form"):
        save_frames(["all blank"], tmp_path / "c", 4, (64, 32))
