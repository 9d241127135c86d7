"""The report page: what it says, what it never does (load, run, believe an item's text), and that it opens."""

import json
import os
import re
from pathlib import Path

import pytest
from parsed_page import Page, page_of
from worlds import AT, ENGINE, World, item, make_world, small_world, table

import benchcheck.report.page as module
from benchcheck import __version__
from benchcheck.config import parse
from benchcheck.errors import StudyError
from benchcheck.report.assemble import assemble
from benchcheck.report.examples import shown_prompts
from benchcheck.report.page import clean, write_report
from benchcheck.report.pictures import film_strip
from benchcheck.run.accounting import Cost, note_cost
from benchcheck.screen.prompts import INTROS
from benchcheck.screen.steps import Sight
from benchcheck.study import Study
from benchcheck.video.faults import CURES
from benchcheck.video.store import Outcome, record

CHROMIUM = Path("/usr/bin/chromium")
LOADING = ("src", "href", "srcset", "data", "action", "poster", "background", "xlink:href")
EVIL = '</script><script>alert(1)</script><img src="http://evil.example/x.png" onerror="alert(2)"><b>bold</b>'
EMBEDDED = {"8b": {"model": "embedded:large"}, "2b": {"model": "embedded:small"}}
NOTHING = "\N{EN DASH}"


def test_verdicts_and_funnel_are_those_of_the_tables(small: World) -> None:
    page = page_of(small.study)
    verdicts = {row[0]: row[1:3] for row in page.table("Verdict")[1:]}
    assert verdicts == {
        "kept": ["2", "16.7 %"], "removed by a shortcut (steps 1, 2, 4)": ["5", "41.7 %"],
        "removed by saturation (no step of this study)": ["0", "0 %"],
        "failed": ["2", "16.7 %"], "waiting": ["0", "0 %"], "pending": ["3", "25 %"], "not screened": ["0", "0 %"],
    }  # fmt: skip
    funnel = page.table("Step", "Share of the screened")[1:]
    assert [row[2:] for row in funnel] == [
        ["12", "9", "2", "22.2 %", "2", "0", "1"],
        ["8", "4", "1", "25 %", "0", "4", "0"],
        ["7", "4", "2", "50 %", "0", "0", "3"],
        ["2", "", "", "", "", "", ""],
    ]
    assert funnel[0][0] == "1 blind shortcut: answered from the question and options alone"
    assert "This study is not finished." in page.text


def test_items_are_shown_with_options_gold_letters_and_reason(small: World) -> None:
    page = page_of(small.study)
    assert page.tags["article"] == 6
    assert "closest to the threshold" in page.text
    for fate in ("fell at step 1", "fell at step 2", "fell at step 4", "survived"):
        assert fate in page.text
    assert "Right in 4 of 4 orders; mean margin 2.00 nats, threshold 0.69." in page.text
    letters = page.table("Option")
    assert len(letters) == 5
    gold = next(row for row in letters if row[0].startswith("✓"))
    assert gold[0].endswith("(correct)")
    assert re.fullmatch(r"[A-D] · 64 %", gold[1])


def test_every_kind_of_prompt_is_shown_word_for_word(small: World) -> None:
    page = page_of(small.study)
    for sight in (Sight.BLIND, Sight.SINGLE_FRAME, Sight.OPTIONS_ONLY):
        assert INTROS[sight] in page.text
    assert INTROS[Sight.FRAMES] not in page.text
    assert "One image: frame 2 of the grid" in page.text
    assert "Answer with the option letter only." in page.text


def test_errors_warnings_costs_settings_and_citation(small: World) -> None:
    page = page_of(small.study)
    assert page.table("Step", "Kind")[1:] == [
        ["1", "context_too_long", "1", "1", "1", "beta_2"], ["1", "timeout", "3", "1", "1", "alpha_7"]
    ]  # fmt: skip
    assert "step 1 (blind): 2 of 11 items failed (18.2%)" in page.text
    cost = page.table("Step", "Model", "Engine")[1]
    assert cost == ["1", "org/large", "scripted 1 float32, cpu", "11", "44", "4,400", "0", "3.0 s", "3.7"]
    settings = dict(page.table("Setting"))
    assert settings["protocol.seed"] == "42"
    assert settings["models.8b"] == "org/large"
    assert f"benchcheck, version {__version__}." in page.text


def test_cached_tokens_stand_beside_the_tokens(small: World) -> None:
    line = Cost(2, "alpha", 0, 1, 1, 2000, 1.0, 0, "org/large", "", ENGINE, AT, cached_tokens=1234)
    note_cost(small.study, line)
    rows = page_of(small.study).table("Step", "Model", "Engine")
    assert [row[5] for row in rows if row[0] == "2"] == ["2,0001,234 cached"]


def test_why_items_wait_is_counted_in_items_and_names_no_folder(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [2]})
    world.put([item(number, video_id=f"v{number // 2}") for number in range(7)])
    missing, html = (world.items[number].frames_key for number in (0, 2))
    lost = Outcome("alpha::v0.mp4", missing, "missing", "", f"no file '{tmp_path}/videos/v0.mp4'")
    record(world.study, [lost, Outcome("alpha::v2.mp4", html, "html", "", f"{tmp_path}/v2.mp4 is a page")])
    world.frames(world.items[6])
    page = page_of(world.study)
    assert page.table("Video", "Items")[1:] == [
        ["not tried yet", "2", "run benchcheck frames extract", "alpha_4"],
        ["html", "2", CURES["html"], "alpha_2"],
        ["missing", "2", CURES["missing"], "alpha_0"],
    ]
    shown = re.findall(r"Why: (no frames.*?)\.", page.text)
    assert shown == ["no frames: html", "no frames: html"]
    assert str(tmp_path) not in world.study.report.read_text(encoding="utf-8")


def test_nothing_is_loaded_and_no_script_runs(small: World) -> None:
    page = page_of(small.study)
    assert page.tags["script"] == page.tags["link"] == page.tags["iframe"] == 0
    for tag, attributes in page.attributes:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        for name in LOADING:
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/jpeg;base64,")), (tag, name, value)
    (policy,) = [a["content"] for tag, a in page.attributes if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy


def test_tables_have_captions_and_scopes_and_ids_are_unique(small: World) -> None:
    page = page_of(small.study)
    assert page.tags["caption"] == page.tags["table"] > 8
    assert all(a.get("scope") in ("row", "col") for tag, a in page.attributes if tag == "th")
    assert all("alt" in a for tag, a in page.attributes if tag == "img")
    ids = [a["id"] for _, a in page.attributes if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for _, a in page.attributes if a.get("href")}  # type: ignore[index]  # checked above
    assert targets <= set(ids)
    assert [tag for tag, _ in page.attributes].count("h1") == 1


def test_what_items_and_configs_say_is_text(tmp_path: Path) -> None:
    pool = [{"spec": "any", "files": ["a"], "bench": "alpha", "truth": "truth.jsonl"}]
    world = small_world(tmp_path, name=EVIL, pool=pool)
    question = f"{EVIL} {{{{ 7 * 7 }}}} <image 1> \x0c\x00 \u202egnitaehc"
    options = (EVIL, "\u05d0", "<b>", "&amp;")
    evil = [item(number, question=question, options=options, category=EVIL) for number in range(3)]
    world.put([*evil, *world.items[3:]])
    (tmp_path / "truth.jsonl").write_text(json.dumps({"id": "q0", "class": EVIL}))
    for of in evil:
        world.answer(1, of, True)
    for _ in range(3):
        world.fail(1, world.items[8], EVIL, EVIL)
    page = page_of(world.study)
    assert page.tags["script"] == page.tags["b"] == 0
    assert all(str(a.get("src")).startswith("data:") for tag, a in page.attributes if tag == "img")
    assert page.text.count("<script>alert(1)</script>") > 5
    assert "{{ 7 * 7 }} <image 1> ␌␀" in page.text
    assert "&amp;" in page.text
    html = world.study.report.read_text(encoding="utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", html)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\x0cb\x7f\x85", "a␌b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        ("\ud800", "\N{REPLACEMENT CHARACTER}"),
        ("x" * 30, "x" * 20 + " … (10 more characters)"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    assert clean(text, 20) == shown


def test_embedded_models_are_said_to_mean_nothing(tmp_path: Path, small: World) -> None:
    world = small_world(tmp_path / "embedded", models=EMBEDDED)
    page = page_of(world.study)
    notice = "On a real benchmark its verdicts mean nothing"
    assert page.text.count(notice) == 2
    assert "(embedded:large)" in page.text
    assert page.text.index(notice) < page.text.index("Verdicts")
    assert notice not in page_of(small.study).text
    assert notice not in small.study.summary_md.read_text(encoding="utf-8")
    summary = world.study.summary_md.read_text(encoding="utf-8")
    assert summary.index(notice) < summary.index("| verdict |")
    sentence = next(line for line in summary.splitlines() if notice in line).strip("*")
    assert sentence in page.text


def test_scripted_answers_are_said_to_be_made_up(small: World) -> None:
    assert "Some answers come from the scripted backend" in page_of(small.study).text


def test_rows_written_after_assembling_are_said_to_be_missing(small: World) -> None:
    notice = "Rows or items were written after these tables were assembled"
    assert notice not in page_of(small.study).text
    small.answer(4, small.items[6], True)
    later = small.study.database.stat().st_mtime_ns + 10**9
    os.utime(small.study.step_file(4, "alpha"), ns=(later, later))
    assert notice in Page(write_report(small.study).read_text(encoding="utf-8")).text


def test_frames_are_small_pictures_inside_the_page(small: World) -> None:
    page = page_of(small.study)
    pictures = [a for tag, a in page.attributes if tag == "img"]
    strips = len(pictures) // 5
    assert len(pictures) == 5 * strips > 0
    assert sum(a.get("class") == "alone" for a in pictures) == strips
    assert "No frames of this video are on disk." in page.text
    strip = film_strip(small.study, small.items[2].frames_key)
    assert [picture.index for picture in strip.thumbnails if picture.alone] == [2]
    assert strip.still is not None
    assert (strip.still.width, strip.still.height) == (64, 36)


@pytest.mark.parametrize("steps", [[1, 4], [1, 2, 3, 4, 5, 6], [2]])
def test_a_study_without_rows(tmp_path: Path, steps: list[int]) -> None:
    world = make_world(tmp_path, protocol={"steps": steps})
    world.put([item(number) for number in range(3)])
    page = page_of(world.study)
    assert page.tags["article"] >= 2
    assert "No run was accounted for yet." in page.text
    assert "The run gave no errors." in page.text
    assert len(page.table("Step", "Share of the screened")) == len(steps) + 2


def test_a_study_without_items_and_one_of_open_items(tmp_path: Path) -> None:
    empty = make_world(tmp_path / "empty")
    empty.put([])
    page = page_of(empty.study)
    assert "The pool has no items yet" in page.text
    assert "There is no multiple-choice item to show." in page.text
    open_only = make_world(tmp_path / "open")
    open_only.put([item(0, format="open", gold=None)])
    page = page_of(open_only.study)
    assert {row[0]: row[1] for row in page.table("Verdict")[1:]}["not screened"] == "1"
    assert shown_prompts(open_only.study.config, []) == []


def test_a_study_without_a_cascade_says_so(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1, 4], "cascade": False, "sample": 50})
    world.put([item(0)])
    assert "Every step asked every item of a sample of 50 per benchmark" in page_of(world.study).text


def test_long_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    world = make_world(tmp_path, protocol={"steps": [1]})
    world.put([
        item(number, f"bench{number:03}", category=f"category {number}", question="q" * 5000) for number in range(100)
    ])  # fmt: skip
    page = page_of(world.study)
    assert page.text.count("60 more rows are not shown here; pool.duckdb has all of them.") == 2
    assert len(page.table("Benchmark", "Items")) == 41
    assert "(3,500 more characters)" in page.text
    assert world.study.report.stat().st_size < 500_000


def test_tables_of_another_config_are_refused(small: World) -> None:
    assemble(small.study)
    moved = Study(small.study.root, parse(table(protocol={"steps": [1, 2, 4], "margin": 1.0}), "x"))
    with pytest.raises(StudyError, match=r"assembled with protocol\.margin = 0\.69.* but the config says 1\.0"):
        write_report(moved)


def test_a_failure_midway_leaves_the_old_page(small: World, monkeypatch: pytest.MonkeyPatch) -> None:
    page_of(small.study)
    small.study.report.write_text("old", encoding="utf-8")

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pathlib.Path.write_text", broken)
    with pytest.raises(StudyError, match="the disk is full"):
        write_report(small.study)
    monkeypatch.undo()
    assert small.study.report.read_text(encoding="utf-8") == "old"
    assert not [path for path in small.study.results.iterdir() if path.name.startswith(".")]


def test_the_page_names_no_folder_of_this_machine(small: World) -> None:
    page_of(small.study)
    assert str(small.study.root) not in small.study.report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "shown"), [(None, NOTHING), (12.34, "12.3 s"), (600, "10 min"), (7380, "2 h 3 min"), (119.97, "120.0 s")]
)
def test_seconds(value: float | None, shown: str) -> None:
    assert module._seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, NOTHING), (0, "0 %"), (0.0001, "< 0.1 %"), (0.355, "35.5 %"), (0.35, "35 %"), (1, "100 %")],
)
def test_percent(value: float | None, shown: str) -> None:
    assert module._percent(value).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, NOTHING), (-0.001, "0.00"), (-1.5, "\N{MINUS SIGN}1.50"), (2, "2.00")]
)
def test_nats(value: float | None, shown: str) -> None:
    assert module._nats(value) == shown


@pytest.mark.long
@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs the system's Chromium: apt-get install chromium")
@pytest.mark.filterwarnings("default")
def test_a_browser_opens_the_page_offline(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    world = small_world(tmp_path, name="A name" + "withoutanyspaceatall" * 5)
    long_words = item(0, question="w" * 400, options=("o" * 300, "p" * 300, "x", "y"), category="c" * 90)
    world.put([long_words, *world.items[1:]])
    world.answer(1, long_words, True)
    assemble(world.study)
    path, troubles = write_report(world.study), list[str]()
    with sync_playwright() as player:
        browser = player.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        for width, scheme in ((390, "light"), (390, "dark"), (1280, "light")):
            context = browser.new_context(
                viewport={"width": width, "height": 844}, color_scheme=scheme, offline=True  # type: ignore[arg-type]
            )  # fmt: skip
            tab = context.new_page()
            tab.on("console", lambda message: troubles.append(message.text))
            tab.on("pageerror", lambda error: troubles.append(str(error)))
            tab.on("requestfailed", lambda request: troubles.append(request.url[:200]))
            tab.goto(path.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            assert tab.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
            assert tab.evaluate("getComputedStyle(document.querySelector('article')).borderStyle") == "solid"
            tab.emulate_media(media="print")
            tab.set_viewport_size({"width": 690, "height": 900})
            wide = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > 692).length"
            assert tab.evaluate(wide) == 0
            context.close()
        browser.close()
    assert troubles == []
