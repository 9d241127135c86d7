"""Faults of annotation files that were reported in public (entries 1 to 17 of the field guide's list, and 31).

Every test builds a pool out of a spec and files, and says in its docstring who reported what and what happens here.
docs/issue-codes.md has the same list; the tests at the end hold it complete.
"""

import ast
import re
from pathlib import Path

import duckdb
import pytest

from benchcheck.config import step_key
from benchcheck.errors import InputError
from benchcheck.pool.building.build import build_pool
from benchcheck.pool.items import Item
from benchcheck.screen.answers import prompts_of
from benchcheck.screen.steps import LADDER
from reported import (
    FAULTS,
    GOLD_PAST,
    IG_VLM,
    LVBENCH_ERRATA,
    MLVU_FILES,
    MLVU_TEXT,
    MMVP,
    MOTIONBENCH,
    NEXT_QA,
    OVO_BENCH,
    STREAMFOREST,
    STREAMINGBENCH,
    TEXT_SETS,
    URBANVIDEO,
    V_STAR,
    Fault,
    built,
    good,
    study_of,
)
from studies import Run, make_item, make_study

HERE = Path(__file__).parent
Outcome = tuple[str, int | None, tuple[str, ...]]


def outcomes(items: list[Item]) -> list[Outcome]:
    """Format, gold and issue codes of each."""
    return [(item.format, item.gold, item.issues) for item in items]


def warned(run: Run, folder: Path, fault: Fault) -> list[str]:
    """What `pool build` warns of, as typed."""
    study_of(folder, fault)
    code, _, err = run("pool", "build", folder)
    assert code == 0
    return [line.removeprefix("warning: ") for line in err.splitlines() if line.startswith("warning: ")]


def test_1_gold_text_missing_from_the_options(run: Run, tmp_path: Path) -> None:
    """FlagOpen/FlagEmbedding#976 (MLVU): no gold, never the first option; the build names the row and the value."""
    assert outcomes(built(tmp_path / "a", MLVU_TEXT)) == [
        ("mcq", 0, ()),
        ("open", None, ("gold_not_among_options",)),
    ]
    (line,) = warned(run, tmp_path / "b", MLVU_TEXT)
    assert line.startswith("mlvu_text: 1 not screened: gold_not_among_options (")
    assert line.endswith("mlvu_text/q.json: record 2: gold 'green', options A to B: ['red', 'blue']")


def test_2_no_option_is_right(run: Run, tmp_path: Path) -> None:
    """zai-org/LVBench#16: the file looks sound, so a list of errata takes the item out, with its reason."""
    sound, listed = Fault("lvbench", {"q.json": LVBENCH_ERRATA.files["q.json"]}, LVBENCH_ERRATA.spec), LVBENCH_ERRATA
    assert outcomes(built(tmp_path / "a", sound)) == [("mcq", 2, ()), ("mcq", 0, ())]
    assert outcomes(built(tmp_path / "b", listed)) == [("open", 2, ("erratum",)), ("mcq", 0, ())]
    (line,) = warned(run, tmp_path / "c", listed)
    assert line.endswith("lvbench/q.json: record 1: 7: none is right: the truth is 4")


def test_5_na_as_gold(tmp_path: Path) -> None:
    """zai-org/MotionBench#5: `NA` hides the gold; it is no text and no letter."""
    hidden, known = built(tmp_path, MOTIONBENCH)
    assert outcomes([hidden, known]) == [("open", None, ("hidden_gold",)), ("mcq", 1, ())]
    assert (hidden.question, hidden.options) == (known.question, known.options) == ("Which?", ("x", "y"))


def test_7_more_options_than_the_prompt_has_letters_and_rows_without_any(run: Run, tmp_path: Path) -> None:
    """EmbodiedCity/UrbanVideo-Bench.code#1: letters come from the number of options; a row without any blocks."""
    none, eight, past = built(tmp_path / "a", URBANVIDEO)
    lines = warned(run, tmp_path / "c", URBANVIDEO)
    assert [line.split(" (")[0] for line in lines] == [
        "urbanvideo: 1 not screened: gold_out_of_range", "urbanvideo: 1 not screened: no_options"
    ]  # fmt: skip
    assert lines[1].endswith("urbanvideo/q.json: record 1: gold 'C', no options")
    assert outcomes([none, eight, past]) == [
        ("open", None, ("no_options",)),
        ("mcq", 7, ()),
        ("open", None, ("gold_out_of_range",)),
    ]
    config = make_study(tmp_path / "b").config
    prompt = prompts_of(eight, LADDER[1], config)[0]
    assert re.findall(r"^([A-Z])\. ", prompt.text, re.MULTILINE) == list("ABCDEFGH")
    assert sorted(prompt.order) == list(range(8))


def test_8_time_stamp_after_the_end(tmp_path: Path) -> None:
    """THUNLP-MT/StreamingBench#18 and #10: noted beyond a second past the stated end; what is no time blocks."""
    items = built(tmp_path, STREAMINGBENCH)
    assert [(item.end, item.format, item.issues) for item in items] == [
        (382.0, "mcq", ("window_out_of_range",)),
        (262.0, "mcq", ()),
        (301.0, "mcq", ()),
        (None, "open", ("bad_window",)),
    ]


def test_9_items_that_expand(run: Run, tmp_path: Path) -> None:
    """JoeLeelyf/OVO-Bench#5: a record with two times is two items where the spec says so, and the count is printed."""
    items = built(tmp_path / "a", OVO_BENCH)
    assert [(item.item_id, item.source_id, item.end, item.format) for item in items] == [
        ("ovo_0", "0", None, "mcq"), ("ovo_1", "1", 5.0, "open"), ("ovo_2", "1", 9.0, "open")
    ]  # fmt: skip
    study_of(tmp_path / "b", OVO_BENCH)
    assert run("pool", "build", tmp_path / "b")[1].endswith("3 items, 1 of them multiple-choice\n")


def test_10_frames_for_a_video_and_another_name_for_the_options(run: Run, tmp_path: Path) -> None:
    """MCG-NJU/StreamForest#4 and #2: noted; a name that no record has ends the build with the names it has."""
    assert [item.issues for item in built(tmp_path / "a", STREAMFOREST)] == [("frames_not_video",), ()]
    renamed = {"question": "q", "options": ["x", "y"], "answer": "x", "video": "v"}
    study = study_of(tmp_path / "b", Fault("renamed", {"q.json": [renamed]}))
    with pytest.raises(InputError, match=r"no record has options\. Allowed: 'candidates'\. Its fields: 'question', 'o"):
        build_pool(study)
    assert run("pool", "build", tmp_path / "b")[0] == 2
    assert not study.pool_file.exists()


def test_11_clips_named_by_id_start_and_end(tmp_path: Path) -> None:
    """imagegridworth/IG-VLM#12 and #7: the span is cut off where it is two numbers, and only there."""
    items = built(tmp_path, IG_VLM)
    assert [(item.video_key, item.start, item.end, item.issues) for item in items] == [
        ("igvlm::::AB12C.mp4", 1.5, 7.0, ()),
        ("igvlm::::a_b_1.mp4", None, None, ("no_window",)),
        ("igvlm::::x_y_z.mp4", None, None, ("no_window",)),
        ("igvlm::::N.mp4", 2.0, 8.0, ()),
    ]


def test_12_ids_that_count_within_a_video(tmp_path: Path) -> None:
    """doc-doc/NExT-QA#11 and #16: item ids count over the file; what really repeats is noted; videos can be counted."""
    items = built(tmp_path, NEXT_QA)
    assert [(item.item_id, item.source_id, item.issues) for item in items] == [
        ("nextqa_0", "v_0", ()), ("nextqa_1", "w_0", ()), ("nextqa_2", "v_0", ("repeated_item",))
    ]  # fmt: skip
    assert len({item.video_key for item in items}) == 2


def test_13_files_with_other_columns(tmp_path: Path) -> None:
    """JUNJIE99/MLVU#11 and #13: files follow one another; what one lacks is an issue of its items, not an error."""
    assert outcomes(built(tmp_path, MLVU_FILES)) == [
        ("mcq", 0, ()),
        ("open", None, ("no_options", "no_video")),
        ("open", None, ("no_options",)),
    ]


def test_14_options_that_repeat_two_golds_and_items_in_two_subjects(tmp_path: Path) -> None:
    """Sakshi113/MMAU#31, medmcqa/medmcqa#5, hendrycks/test#21 and #29.

    Alike but for white space is alike, a no-break space too; two letters are no single gold; an item that is in two
    files is noted in the second, whatever the order of its options.
    """
    spaces, both, first, again = built(tmp_path, TEXT_SETS)
    assert outcomes([spaces, both]) == [
        ("mcq", 0, ("duplicate_options", "duplicate_gold")),
        ("open", None, ("several_gold",)),
    ]
    assert spaces.options == ("4", "4 ", "4\u00a0", "5"), "options are shown as they are in the file"
    assert first.issues == ("duplicate_options", "duplicate_gold")
    assert again.issues == ("duplicate_options", "duplicate_gold", "repeated_item")
    assert (first.category, again.category) == ("law", "ethics")


def test_15_pairs_that_must_differ(run: Run, tmp_path: Path) -> None:
    """tsb0601/MMVP#30 and #14: a pair's name stays at its items, so a question in SQL finds pairs of one gold."""
    study = study_of(tmp_path, MMVP)
    build_pool(study)
    assert run("assemble", tmp_path)[0] == 0
    page = (HERE.parent / "docs" / "results.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(-- Which pairs.*?)```", page, re.DOTALL)
    with duckdb.connect(str(study.results / "pool.duckdb"), read_only=True) as results:
        assert results.execute(query).fetchall() == [("mmvp", "1", ["mmvp_0", "mmvp_1"])]


def test_16_questions_about_what_is_said(tmp_path: Path) -> None:
    """V-STaR-Bench/V-STaR#6: a question about speech is noted, since no model here hears or reads it."""
    assert [item.issues for item in built(tmp_path, V_STAR)] == [("speech_in_question",), ()]


def test_17_what_blind_means_is_written_down(run: Run, tmp_path: Path) -> None:
    """OpenGVLab/Ask-Anything#210 and #170: blind is no frame at all, and the prompt says so; report and key hold it.

    Another wording is another step key, so its answers are never mixed with these.
    """
    study = make_study(tmp_path / "a")
    item = make_item(0)
    study.write_pool([item])
    prompts = [prompt for number in (1, 4) for prompt in prompts_of(item, LADDER[number], study.config)]
    assert all(prompt.frames == () for prompt in prompts)
    assert "The video is not shown." in prompts[0].text
    assert "Neither the question nor the video is shown." in prompts[-1].text
    assert run("assemble", study.root)[0] == run("report", study.root)[0] == 0
    page = (study.results / "report.html").read_text(encoding="utf-8")
    assert "The video is not shown." in page
    other = make_study(tmp_path / "b", prompts={"blind": "The screen is black."})
    assert step_key(study.config, LADDER[1]) != step_key(other.config, LADDER[1])


def test_31_gold_beyond_the_options(run: Run, tmp_path: Path) -> None:
    """EleutherAI/lm-evaluation-harness#811 and huggingface/lighteval#1162: known at the build, with the row."""
    assert outcomes(built(tmp_path / "a", GOLD_PAST)) == [("mcq", 0, ()), ("open", None, ("gold_out_of_range",))]
    (line,) = warned(run, tmp_path / "b", GOLD_PAST)
    assert line.endswith("goldpast/q.json: record 2: gold 3, options A to C: ['red', 'blue', 'green']")
    shifted = Fault("shifted", {"q.json": [good("key", answer=gold) for gold in (1, 2)]}, GOLD_PAST.spec)
    with pytest.raises(InputError, match=r"it seems to count from 1\. Cure: gold\.base = 1"):
        build_pool(study_of(tmp_path / "c", shifted))


def test_all_data_faults_as_one_study(run: Run, tmp_path: Path) -> None:
    """Every fault at once: each row is an item, the sound ones are screened to the end, the rest is in the report."""
    study = study_of(tmp_path, *FAULTS)
    code, out, err = run("pool", "build", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "46 items, 33 of them multiple-choice")
    assert err.count("warning: ") == 13
    code, out, _ = run("pool", "check", tmp_path)
    assert code == 0
    assert "golds that are wrong or not the only right one: duplicate_gold 3" in out
    code, _, err = run("pool", "check", tmp_path, "--strict")
    assert (code, err.count("\n")) == (1, 1)
    assert run("screen", tmp_path, "--engine", "scripted")[0] == 0
    assert run("assemble", tmp_path)[0] == run("report", tmp_path)[0] == 0
    rows = duckdb.sql(f"SELECT verdict, count(*) FROM '{study.results}/pool_items.parquet' GROUP BY 1").fetchall()
    assert dict(rows)["not_screened"] == 13
    page = (study.results / "report.html").read_text(encoding="utf-8")
    assert all(fault.bench in page for fault in FAULTS)
    assert "13 of them cannot be screened for it" in re.sub(r"<[^>]+>", "", page)


ENTRIES = set(range(1, 34))


def entries_of(pattern: str) -> dict[int, str]:
    """Entry to docstring, over the tests of the files that fit."""
    found = dict[int, str]()
    for path in HERE.glob(pattern):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_(\d+)_", node.name)):
                found[int(match[1])] = found.get(int(match[1]), "") + f"{ast.get_docstring(node)}\n"
    return found


def test_every_entry_is_a_test_and_a_row_of_the_page() -> None:
    tests = entries_of("test_bug_reports_*.py")
    assert set(tests) == ENTRIES
    page = (HERE.parent / "docs" / "issue-codes.md").read_text(encoding="utf-8")
    rows = {int(row[0]): row[1] for row in re.findall(r"^\| (\d+) \| (.+?) \| .+? \| .+? \|$", page, re.MULTILINE)}
    assert set(rows) == ENTRIES
    for entry, reports in rows.items():
        assert reported_in(reports) == reported_in(tests[entry]), entry


def reported_in(text: str) -> tuple[set[str], set[str]]:
    """The repositories and the numbers of issues that a text names."""
    numbers = set(re.findall(r"#\d+", text))
    assert numbers
    return set(re.findall(r"([\w.-]+/[\w.-]+)(?= PR#|#)", text)), numbers
