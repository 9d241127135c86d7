"""What the page counts: verdicts, benchmarks, categories and classes, and the limits that it names."""

import json
from pathlib import Path

import pytest
from parsed_page import page_of
from worlds import World, item, make_world

from benchcheck.report.findings import MEANINGS, verdict_name
from benchcheck.screen.prompts import option_orders
from benchcheck.screen.steps import LADDER

NOTHING = "\N{EN DASH}"


@pytest.mark.parametrize(
    ("steps", "name", "shown"),
    [
        ([1, 2, 3], "saturation", "removed by saturation (step 3)"),
        ([3, 6], "shortcut", "removed by a shortcut (no step of this study)"),
        ([1], "not_screened", "not screened"),
    ],
)
def test_verdict_names(steps: list[int], name: str, shown: str) -> None:
    assert verdict_name(name, [LADDER[number] for number in steps]) == shown


def test_shortcut_and_saturation_are_never_one_number(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1, 2, 3, 4, 5, 6]})
    world.put([item(number) for number in range(7)])
    for fell, of in enumerate(world.items, 1):
        for step in range(1, min(fell, 6) + 1):
            if step in (2, 3, 5, 6):
                world.frames(of)
            world.answer(step, of, step == fell)
    page = page_of(world.study)
    rows = page.table("Verdict")[1:4]
    assert rows == [
        ["kept", "1", "14.3 %", MEANINGS["kept"]],
        ["removed by a shortcut (steps 1, 2, 4, 5)", "4", "57.1 %", MEANINGS["shortcut"]],
        ["removed by saturation (steps 3, 6)", "2", "28.6 %", MEANINGS["saturation"]],
    ]
    summary = world.study.summary_md.read_text(encoding="utf-8")
    assert "| removed by a shortcut (steps 1, 2, 4, 5) | 4 | 57.1% |" in summary
    assert "| removed by saturation (steps 3, 6) | 2 | 28.6% |" in summary


def test_benchmarks_by_step(small: World) -> None:
    rows = page_of(small.study).table("Benchmark", "Items")
    assert rows[1][0:2] == ["alpha", "9"]
    assert rows[1][3:] == ["2 28.6 % of 7", "1 33.3 % of 3", "2 66.7 % of 3", "1", "1", "0", "2"]
    assert rows[2][3:] == ["0 0 % of 2", "0 0 % of 1", "0 0 % of 1", "1", "1", "0", "1"]


def test_categories_stand_where_no_truth_is_known(small: World) -> None:
    page = page_of(small.study)
    rows = page.table("Benchmark", "Category")
    assert rows[1][:3] == ["alpha", "kind 0", "3"]
    assert rows[1][4:] == ["1 33.3 %", "0", "1 33.3 %", "0", "1 33.3 %"]
    assert "Classes whose truth is known" not in page.text


def test_items_without_a_category_are_a_row_where_others_have_one(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    plain = [item(number, "beta", category="") for number in range(2)]
    world.put([item(0, category="count"), item(1, category=""), item(2, category=""), *plain])
    world.answer(1, world.items[1], True)
    rows = page_of(world.study).table("Benchmark", "Category")[1:]
    assert [row[:3] + row[4:] for row in rows] == [
        ["alpha", "(none)", "2", "1 50 %", "0", "1 50 %"],
        ["alpha", "count", "1", "0", "0", "1 100 %"],
        ["beta", "(none)", "2", "0", "0", "2 100 %"],
    ]
    world.put(plain)
    assert "Categories" not in page_of(world.study).text


def test_classes_by_fate_and_by_accuracy_beside_chance(tmp_path: Path) -> None:
    pool = [{"spec": "any", "files": ["a"], "bench": "alpha", "truth": "truth.jsonl"}]
    world = make_world(tmp_path, protocol={"steps": [1, 4]}, pool=pool)
    world.put([item(number) for number in range(4)])
    truth = [{"id": f"q{number}", "class": "blind" if number < 2 else "order"} for number in range(4)]
    (tmp_path / "truth.jsonl").write_text("\n".join(json.dumps(line) for line in truth))
    for of, right in zip(world.items, (True, True, 1, 2), strict=True):
        world.answer(1, of, right)
    world.answer(4, world.items[2], True)
    world.answer(4, world.items[3], False)
    page = page_of(world.study)
    fates = page.table("Class", "Items")
    assert [cell for cell in fates[1] if cell] == ["blind", "2", "2 100 %", "0", "0", "0"]
    assert [cell for cell in fates[2] if cell] == ["order", "2", "0", "1 50 %", "1 50 %", "0"]
    scores = page.table("Class", "1 blind")
    assert scores[1] == ["blind", "100 % chance 25 %, of 2", NOTHING]
    assert scores[2] == ["order", "37.5 % chance 25 %, of 2", "50 % chance 25 %, of 2"]


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ({"steps": [1, 2, 4]}, "The 4 orders of steps 1 and 4 are drawn independently of each other and may repeat:"),
        ({"steps": [1]}, "with two options all 4 are the same in 12.5 % of items."),
        ({"steps": [1], "orders": 2}, "with two options all 2 are the same in 50 % of items."),
        ({"steps": [1], "orders": 1}, ""),
        ({"steps": [2]}, ""),
    ],
)  # fmt: skip
def test_drawn_orders_may_repeat(tmp_path: Path, protocol: dict[str, object], said: str) -> None:
    world = make_world(tmp_path, protocol=protocol)
    world.put([item(0)])
    text = page_of(world.study).text.replace("\N{NO-BREAK SPACE}", " ")
    assert said in text
    assert ("drawn independently" in text) is bool(said)


def test_the_share_of_repeated_orders_is_that_of_the_draw() -> None:
    same = sum(len(set(option_orders(f"any_{number}", 2))) == 1 for number in range(20_000))
    assert same / 20_000 == pytest.approx(0.125, abs=0.01)
