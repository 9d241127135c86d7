"""The items that the page shows: which are chosen, their frames and their letters."""

from pathlib import Path
from typing import Any

import pytest
from parsed_page import page_of
from worlds import World, item, make_world, table

from benchcheck.config import parse
from benchcheck.report.assemble import assemble
from benchcheck.report.examples import examples_of
from benchcheck.report.pictures import film_strip
from benchcheck.report.tables import open_results
from benchcheck.study import Study


def test_frames_that_cannot_be_shown_are_a_line(small: World) -> None:
    folder = small.study.frames / small.items[2].frames_key
    bad = folder / "frame_1.jpg"
    bad.write_bytes(b"x" * bad.stat().st_size)
    assert film_strip(small.study, folder.name).problem == "The frames on disk are not readable as pictures."
    config = parse(table(frames={"count": 4, "single": 2, "quality": 50}), "x")
    other = Study(small.study.root, config)
    assert "made with another grid" in film_strip(other, folder.name).problem
    assert film_strip(small.study, "nowhere").problem == "No frames of this video are on disk."


def test_a_long_grid_shows_an_even_choice_with_the_single_frame(tmp_path: Path) -> None:
    world = make_world(tmp_path, frames={"count": 100, "single": 51})
    world.frames(item(0), (8, 8))
    strip = film_strip(world.study, item(0).frames_key)
    shown = [picture.index for picture in strip.thumbnails]
    assert len(shown) <= 32
    assert shown[0] == 0
    assert shown == sorted(shown)
    assert [picture.index for picture in strip.thumbnails if picture.alone] == [51]
    assert strip.count == 100


def test_a_choice_of_items_is_the_same_each_time_and_covers_the_outcomes(small: World) -> None:
    assemble(small.study)
    with open_results(small.study) as db:
        first, second = examples_of(small.study, db), examples_of(small.study, db)
    assert [of.item.item_id for of in first] == [of.item.item_id for of in second]
    assert [of.chosen_as for of in first[:3]] == ["fell at step 1", "fell at step 2", "fell at step 4"]
    assert first[1].item.item_id == "alpha_2"
    assert first[1].strip.thumbnails
    decisive = [[answer.step.number for answer in of.answers if answer.decisive] for of in first]
    assert decisive[:3] == [[1], [2], [4]]
    assert {of.item.item_id for of in first} >= {"alpha_4", "beta_0"}


def test_letters_stand_at_the_option_they_were_shown_with(small: World) -> None:
    assemble(small.study)
    with open_results(small.study) as db:
        example = next(of for of in examples_of(small.study, db) if of.verdict == "removed" and of.left_at == 1)
    (answer,) = example.answers
    for reading in answer.readings:
        best = max(range(4), key=lambda option: reading.cells[option].share)
        assert (best == example.item.gold) == reading.right
        assert sorted(cell.letter for cell in reading.cells) == list("ABCD")
        assert sum(cell.share for cell in reading.cells) == pytest.approx(0.9)
    assert answer.place(answer.threshold) > 50 > answer.place(-answer.threshold)


def test_windows_and_many_orders(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1], "orders": 10})
    world.put([item(0, start=1.5, end=20.0), item(1, start=None, end=3.0), item(2, start=2.0)])
    for of in world.items:
        world.answer(1, of, True)
    page = page_of(world.study)
    for window in ("1.5 to 20 s", "0 to 3 s", "2 to the end s".replace(" s", "")):
        assert window in page.text
    assert "2 more orders are not drawn" in page.text


def test_letters_that_an_endpoint_did_not_list(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [2], "preset": "benchcheck-2026"})
    world.put([item(0)])
    world.frames(item(0))
    row: dict[str, Any] = world.row(2, item(0), True) | {"missing": [["C"]]}
    world.study.append(2, "alpha", None, [row])
    rows = page_of(world.study).table("Option")
    assert [row[1] for row in rows[1:]][2] == "C · not listed"
