"""The page's annotation section: codes of the pool's items and where the right answers stand."""

from pathlib import Path

import pytest
from parsed_page import page_of
from worlds import World, item, make_world

from benchcheck.pool.issues import ISSUES
from benchcheck.report.annotation import GoldPositions, annotation_of
from benchcheck.report.assemble import assemble
from benchcheck.report.tables import open_results

LOPSIDED = "gold stands at A in 85.7 % of 28 items (chance 25 %): a model that prefers A looks as if it knew"
NOTHING = "\N{EN DASH}"


def coded(root: Path) -> World:
    """Four items with codes, one of them two, and one without; the pool's order is not that of the ids."""
    world = make_world(root, protocol={"steps": [1]})
    hidden = {"format": "open", "gold": None, "issues": ("hidden_gold", "no_video")}
    world.put([
        item(10, issues=("other_gold",)), item(9, issues=("other_gold",)), item(0, **hidden),
        item(1), item(2, "beta", issues=("other_gold",), source_id="beta_2"),
    ])  # fmt: skip
    return world


def test_codes_are_counted_with_what_follows_and_the_first_items(tmp_path: Path) -> None:
    world = coded(tmp_path)
    page = page_of(world.study)
    rows = page.table("Code", "Items")
    assert rows[1:] == [
        [f"hidden_gold {ISSUES['hidden_gold'].meaning}", "1", "not screened", "alpha", "alpha_0 (q0)"],
        [f"other_gold {ISSUES['other_gold'].meaning}", "2", "only noted", "alpha", "alpha_10 (q10), alpha_9 (q9)"],
        [f"no_video {ISSUES['no_video'].meaning}", "1", "only noted", "alpha", "alpha_0 (q0)"],
        [f"other_gold {ISSUES['other_gold'].meaning}", "1", "only noted", "beta", "beta_2"],
    ]
    assert "something wrong or odd in 4 of 5 items; 1 of them cannot be screened for it" in page.text
    assert "The run gave no warnings." in page.text
    assert "The run gave no errors." in page.text
    assert "No warnings" not in page.text


def test_only_the_first_five_ids_are_named(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    world.put([item(number, issues=("no_video",), source_id=f"alpha_{number}") for number in range(12)])
    row = page_of(world.study).table("Code", "Items")[1]
    assert row[1] == "12"
    assert row[4] == "alpha_0, alpha_1, alpha_2, alpha_3, alpha_4"


def test_a_pool_without_codes_and_one_with_codes_of_another_tool(tmp_path: Path) -> None:
    plain = make_world(tmp_path / "plain", protocol={"steps": [1]})
    plain.put([item(0)])
    assert "The build of the pool found nothing wrong or odd in the items." in page_of(plain.study).text
    other = make_world(tmp_path / "other", protocol={"steps": [1]})
    other.put([item(0, issues=("<b>strange",))])
    assert page_of(other.study).table("Code", "Items")[1][:3] == [
        "<b>strange Not a code of benchcheck.", "1", "only noted"
    ]  # fmt: skip
    empty = make_world(tmp_path / "empty")
    empty.put([])
    assert "There is no item to look at." in page_of(empty.study).text


def test_long_lists_of_codes_are_cut_after_what_blocks(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    noted = [item(0, f"bench{number:02}", issues=("no_video",)) for number in range(50)]
    world.put([*noted, item(0, "zeta", format="open", gold=None, issues=("hidden_gold",))])
    page = page_of(world.study)
    rows = page.table("Code", "Items")[1:]
    assert len(rows) == 40
    assert rows[0][2:4] == ["not screened", "zeta"]
    assert "11 more rows are not shown here; the view issue_kinds of pool.duckdb has all of them." in page.text


@pytest.mark.parametrize(
    ("steps", "ending"),
    [
        ([1, 2, 3, 4, 5, 6], "; single-order steps 2, 3, 5 and 6 show the options as stored."),
        ([1, 2, 3], "; single-order steps 2 and 3 show the options as stored."),
        ([2], "; single-order step 2 shows the options as stored."),
        ([1, 4], " where options are shown as stored, which no step of this study does."),
    ],
)
def test_lopsided_gold_is_a_plain_warning(tmp_path: Path, steps: list[int], ending: str) -> None:
    world = make_world(tmp_path, protocol={"steps": steps})
    golds = [0] * 24 + [1, 2, 3, 3]
    alpha = [item(number, gold=gold) for number, gold in enumerate(golds)]
    hidden = [item(100 + number, format="open", gold=None) for number in range(5)]
    beta = [item(number, "beta") for number in range(20)]
    world.put([*alpha, *hidden, *beta])
    page = page_of(world.study)
    assert f"alpha : {LOPSIDED}{ending}" in page.text
    assert page.text.count("looks as if it knew") == 1
    assert page.table("Benchmark", "Screened") == [
        ["Benchmark", "Screened", "Most often", "Chance", "A", "B", "C", "D"],
        ["alpha", "28", "A 85.7 %", "25 %", "24", "1", "1", "2"],
        ["beta", "20", "A 25 %", "25 %", "5", "5", "5", "5"],
    ]


def test_chance_is_that_of_the_letter_where_items_differ_in_options(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    two = [item(number, options=("yes", "no"), gold=0) for number in range(2)]
    ten = [item(5 + number, options=tuple("0123456789"), gold=9) for number in range(3)]
    world.put([*two, *ten, item(0, "beta", gold=2)])
    page = page_of(world.study)
    head, alpha, beta = page.table("Benchmark", "Screened")
    assert head[4:] == [*"ABCDEFGH", "I and later"]
    assert alpha == ["alpha", "5", "J 60 %", "6 %", "2", "0", "0", "0", "0", "0", "0", "0", "3"]
    assert beta == ["beta", "1", "C 100 %", "25 %", "0", "0", "1", "0", *[NOTHING] * 5]
    with open_results(world.study) as db:
        rows = db.sql("select * from gold_positions where bench = 'alpha' and letter in ('A', 'C')").fetchall()
    assert rows == [("alpha", "A", 5, 2, pytest.approx(1.3)), ("alpha", "C", 3, 0, pytest.approx(0.3))]


@pytest.mark.parametrize(
    ("items", "share", "chance", "lopsided"),
    [(20, 0.55, 0.25, True), (19, 0.9, 0.25, False), (40, 0.5, 0.25, False), (40, 0.75, 0.5, False),
     (40, 0.775, 0.5, True)],
)  # fmt: skip
def test_what_is_lopsided(items: int, share: float, chance: float, lopsided: bool) -> None:
    assert GoldPositions("any", items, (), "A", share, chance).lopsided is lopsided


def test_items_outside_the_screen_have_no_gold_position(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    world.put([item(0, format="open", gold=None)])
    assemble(world.study)
    with open_results(world.study) as db:
        found = annotation_of(db)
    assert (found.golds.rows, found.letters, found.headings) == ([], 0, ())
