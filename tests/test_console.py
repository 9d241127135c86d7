"""What is drawn in a terminal: bars that move and go away, tables with the numbers, text that is never markup."""

import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchcheck import console
from benchcheck.config import Model, PoolSource
from benchcheck.run.accounting import Cost, note_cost
from benchcheck.run.driver import BenchLoss, FailureKind, StepSummary, summarize_all
from benchcheck.run.pilot import StepForecast
from benchcheck.run.plan import survey
from benchcheck.screen.statistics import wilson
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.video.faults import CURES
from benchcheck.video.making.extract import FramesProgress
from benchcheck.video.store import Outcome, record
from studies import make_items, make_study


def summary(**changes: object) -> StepSummary:
    facts: dict[str, object] = {
        "step": LADDER[1], "alive": 1200, "answered": 1000, "removed": 250, "waiting": 3, "failed": 40,
        "remaining": 157, "asked_now": 500, "wall_s": 10.0, "losses": (), "kinds": (), "ignored": 0, "unreadable": 0,
    }  # fmt: skip
    return StepSummary(**(facts | changes))  # type: ignore[arg-type]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard error as a terminal of 120 columns."""
    screen = io.StringIO()
    monkeypatch.setattr(console, "_err", Console(file=screen, force_terminal=True, width=120, color_system=None))
    return screen


def drawn(table: object) -> str:
    plain = Console(file=io.StringIO(), width=120, color_system=None)
    plain.print(table)
    return plain.file.getvalue()  # type: ignore[attr-defined]


def test_nothing_is_cut_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console, "_out", Console(file=screen, width=40, color_system=None))
    table = console.columns("benchmark", "items")
    table.add_row("a" * 64, "1,234,567")
    console.tell(table)
    table.add_row("b", "-")
    console.tell(table)
    assert "a" * 64 + "  1,234,567\n" in screen.getvalue()
    assert not any(line.endswith(" ") for line in screen.getvalue().splitlines())


def test_a_bar_shows_what_is_done_the_rate_and_the_errors(terminal: io.StringIO) -> None:
    bars = console.Bars()
    bars.step_begins(LADDER[1], 500, 0, 0)
    bars.advance(200, 7)
    assert bars._bars is not None
    bars._bars.refresh()
    bars.step_ends(summary(worker_items_per_s=25.0))
    shown = terminal.getvalue()
    assert "step 1 blind" in shown
    assert "200/500" in shown
    assert "7 errors" in shown
    assert "step 1 blind: 250 of 1,000 removed, 3 waiting, 40 failed, 10.0 s, 50.0 items/s, 25.0 a worker" in shown
    assert bars._bars is None


def test_what_is_waited_for_stands_in_the_bar_s_place_until_it_is_over(terminal: io.StringIO) -> None:
    bars = console.Bars()
    bars.step_begins(LADDER[1], 10, 0, 0)
    assert bars._bars is not None
    bars.waits("waiting for GPU 0: [red] loading" + "x" * 200)
    waiting = bars._bars.tasks[0].description
    assert waiting.startswith(r"waiting for GPU 0: \[red] loading")
    assert len(waiting) < console._err.width
    rendered = [column(bars._bars.tasks[0]) for column in bars._bars.columns if not isinstance(column, str)]
    assert [str(cell) for cell in rendered[1:]] == [""] * 5  # the bar and its figures make room
    bars.waits("")
    assert bars._bars.tasks[0].description == "step 1 blind"
    bars.close()


def test_what_is_waited_for_is_a_line_now_and_then_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_err", Console(stderr=True, force_terminal=False, width=200))
    bars, now = console.Bars(), 100.0
    monkeypatch.setattr(console.time, "monotonic", lambda: now)
    for text in ("first", "second", "", "third"):
        bars.waits(text)
        now += 8
    assert capsys.readouterr().err == "first\nthird\n"


def test_what_has_no_parts_to_count_shows_that_it_goes_on(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with console.busy("merging"):
        console.note("worth knowing")
    assert "merging 0:00:00" in terminal.getvalue()
    assert "worth knowing\n" in terminal.getvalue()
    quiet = io.StringIO()
    monkeypatch.setattr(console, "_err", Console(file=quiet, width=120))
    with console.busy("merging"):
        pass
    assert quiet.getvalue() == ""


def test_a_bar_that_an_error_left_standing_is_taken_away(terminal: io.StringIO) -> None:
    bars = console.Bars()
    bars.step_begins(LADDER[2], 5, 2, 0)
    bars.close()
    bars.close()
    bars.advance(1, 0)
    assert bars._bars is None


def test_without_a_terminal_lines_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "_err", Console(stderr=True, force_terminal=False, width=200))
    bars = console.Bars()
    bars.step_begins(LADDER[3], 0, 12, 3)
    bars.step_begins(LADDER[3], 5, 0, 0)
    frames = console.FramesBar()
    frames(FramesProgress(1, 0, 2, 1, 1.0))
    frames.close()
    assert capsys.readouterr().err.splitlines() == [
        "step 3 v32_2b: nothing to ask, 12 waiting for frames, 3 waiting for an earlier step",
        "step 3 v32_2b: asking 5 items",
    ]


def test_a_frames_bar_moves_and_goes(terminal: io.StringIO) -> None:
    frames = console.FramesBar()
    frames(FramesProgress(done=3, failed=1, total=9, videos=4, seconds=2.0))
    assert frames._bars is not None
    frames._bars.refresh()
    frames.close()
    assert "4/9" in terminal.getvalue()
    assert "2.0 videos/s" in terminal.getvalue()
    assert "1 failed" in terminal.getvalue()


def test_doubts_name_kinds_examples_and_losses(terminal: io.StringIO) -> None:
    doubtful = summary(
        kinds=(FailureKind("timeout", 40, ("a_1", "a_2")),),
        losses=(BenchLoss("a", 100, 100, 0),),
        ignored=4,
        unreadable=1,
    )
    assert console.doubts_of(doubtful) == [
        "step 1: 40 items failed with timeout, such as a_1, a_2",
        "step 1 (blind): a lost 100 of 100 items (100%)",
        "step 1 (blind): 40 of 1040 items failed (3.8%)",
        "step 1 (blind): 4 rows of another protocol or of changed items were left out",
        "step 1 (blind): 1 lines were not readable as rows and were left out",
    ]
    console.Bars().step_ends(doubtful)
    assert terminal.getvalue().count("warning: ") == 5


def test_why_items_wait_is_counted_in_items_not_in_videos(tmp_path: Path) -> None:
    study = make_study(tmp_path, protocol={"steps": [2]})
    items = make_items(a=6)  # videos v0, v0, v2, v3, v3, v5
    study.write_pool(items)
    assert console.doubts(study, survey(study), summarize_all(study, survey(study))) == [
        "6 items wait: not_tried (no frames were made yet: benchcheck frames extract), such as "
        + min(item.frames_key for item in items)
    ]
    missing = [Outcome(items[n].video_key, items[n].frames_key, "missing", "", "no file") for n in (3, 0)]
    record(study, [*missing, Outcome(items[2].video_key, items[2].frames_key, "of another version")])
    record(study, [Outcome(items[5].video_key, items[5].frames_key, "ready", "abc")])
    gone = "frames were made once and are not here: unpack them, set POOL_FRAMES_DIR, or extract again"
    assert console.doubts(study, survey(study), summarize_all(study, survey(study))) == [
        f"4 items wait: missing ({CURES['missing']}), such as a::::v0.mp4",
        f"1 items wait: elsewhere ({gone}), such as a::::v5.mp4",
        "1 items wait: of another version, such as a::::v2.mp4",
    ]


def test_the_funnel_has_a_row_per_step_with_shares() -> None:
    lines = drawn(console.funnel_table([summary(), summary(step=LADDER[2], answered=0, removed=0)])).splitlines()
    assert lines[1].split() == ["1", "blind", "1,200", "1,000", "250", "25.0%", "3", "40", "157"]
    assert lines[2].split() == ["2", "single_frame", "1,200", "0", "0", "-", "3", "40", "157"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(math.nan, "-"), (90.0, "90 s"), (600.0, "10 min"), (9000.0, "2.5 h"), (360_000.0, "100.0 h")]
)
def test_a_forecast_says_how_long(seconds: float, text: str) -> None:
    row = StepForecast(1, "blind", 100, wilson(25, 100), 5000, seconds)
    assert drawn(console.forecast_table([row])).splitlines()[1].endswith(text)
    assert "25.0% (17.5% to 34.3%)" in drawn(console.forecast_table([row]))


def test_text_in_brackets_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    console.tell("a [bold]name[/bold] and [/] more")
    assert capsys.readouterr().out == "a [bold]name[/bold] and [/] more\n"


def test_states_are_named_without_zeros() -> None:
    assert console.states_line({"kept": 1200, "removed": 0, "not_screened": 3}) == "1,200 kept · 3 not screened"


def test_a_forecast_counts_the_seconds_of_the_study_s_own_model(study: Study) -> None:
    engine = dict.fromkeys(("name", "version", "dtype", "device"), "x")
    for model, seconds in ((study.config.models["8b"].model, 20.0), ("another", 1.0)):
        note_cost(study, Cost(1, "a", 0, 10, 40, 400, seconds, 0, model, "", engine, "now"))
    assert console._seconds_per_item(study) == {1: 2.0}


def test_the_embedded_models_verdicts_are_never_passed_off(study: Study) -> None:
    study.write_pool([])
    toys = Study(
        study.root, replace(study.config, models={role: Model(model="embedded:large") for role in ("8b", "2b")})
    )
    line = "The embedded models know a made-up world: on a real benchmark these verdicts mean nothing."
    assert line not in console.ending(study, survey(study), [])
    known = PoolSource(spec="generic", files=("a",), truth="truth.jsonl")
    unknown = PoolSource(spec="generic", files=("b",), bench="b")
    for pool, told in (((known,), False), ((known, unknown), True)):
        made = Study(study.root, replace(toys.config, pool=pool))
        assert (line in console.ending(made, survey(made), [])) is told


def test_what_a_name_holds_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    console.tell("clip:x:1.mp4\x1b[31m\x00\r\x9b1m \udcff नमस्ते and\nmore")
    assert capsys.readouterr().out == "clip:x:1.mp4\\x1b[31m\\x00\\r\\x9b1m \\udcff नमस्ते and\nmore\n"
