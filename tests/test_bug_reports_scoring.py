"""Faults of scoring code that were reported in public (entries 18 to 32 of the field guide's list).

benchcheck parses no reply. The assistant's turn begins with `Answer:`, one token follows, and what is read is how
probable each option's letter is as that token. So every report becomes the list of tokens that such a model gives at
that place, as a server sends it, and the row that it makes.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchcheck.backends.letters import variants_of_letters
from benchcheck.backends.replies import CLOSING, content_of, letters_of, opening_of, parse_reply
from benchcheck.config import step_key
from benchcheck.pool.building.build import build_pool
from benchcheck.screen.answers import Asking, answer_row, prompts_of
from benchcheck.screen.readings import MISSING_LOGPROB, Failure, Reading, letter_of_token
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from reported import OPEN_ITEMS, SUBTITLES, built, study_of
from studies import Run, framed_study, give_frames, make_item, make_items, make_study, rows_on_disk

COLOURS = ("red", "green", "blue", "grey")


def sent(tokens: Mapping[str, float]) -> bytes:
    """A server's reply with these tokens and probabilities, the likeliest first."""
    listed = [{"token": token, "logprob": math.log(share)} for token, share in tokens.items()]
    written = max(tokens, key=tokens.__getitem__)
    choice = {"message": {"content": written}, "logprobs": {"content": [{"token": written, "top_logprobs": listed}]}}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 9}}).encode()


def reading_of(tokens: Mapping[str, float], k: int = 4) -> Reading | Failure:
    """What a backend makes of it for `k` options."""
    listed = parse_reply(sent(tokens))
    if isinstance(listed, Failure):
        return listed
    letters = letters_of(listed.tokens, k)
    return letters if isinstance(letters, Failure) else Reading(letters, listed.prompt_tokens, 0.1)


def row_of(study: Study, tokens: Mapping[str, float], options: tuple[str, ...] = COLOURS, gold: int = 1) -> Any:
    """The row of an item that a model answers so in the frame step, which shows the stored order once."""
    item, step = make_item(0, options=options, gold=gold), LADDER[3]
    asking = Asking(study.config, step, step_key(study.config, step), "r", {"name": "made up"})
    prompts = prompts_of(item, step, study.config, ["f.jpg"])
    return answer_row(asking, item, prompts, [reading_of(tokens, len(options))], "now")


def shares(tokens: Mapping[str, float], k: int = 4) -> dict[str, float]:
    """Probability of every letter that was seen."""
    found = reading_of(tokens, k)
    assert isinstance(found, Reading)
    logprobs = zip("ABCDEFGH", found.letters.logprobs, strict=False)
    return {letter: round(math.exp(one), 6) for letter, one in logprobs if letter not in found.letters.missing}


def test_18_words_before_the_letter(study: Study) -> None:
    """EvolvingLMMs-Lab/lmms-eval#1434: `The` is no T and `Based` no B; only what stands for D counts for D."""
    assert shares({"The": 0.5, "Based": 0.3, " D": 0.15}) == {"D": 0.15}
    row = row_of(study, {"The": 0.5, "Based": 0.3, " D": 0.15})
    assert (row["status"], row["right"], row["missing"]) == ("ok", [False], [["A", "B", "C"]])
    assert row["logprobs"][0][:3] == [MISSING_LOGPROB] * 3
    assert row_of(study, {"The": 0.5, "Based": 0.45})["error"] == "low_label_mass"


def test_19_a_letter_with_a_full_stop() -> None:
    """EvolvingLMMs-Lab/lmms-eval PR#364: `A.`, ` A`, `(A` and `A` are one letter, and their probabilities add up."""
    assert shares({"A.": 0.4, " A": 0.2, "(A": 0.1, "A": 0.1, "B": 0.05}) == {"A": 0.8, "B": 0.05}


def test_20_no_score_is_nan(study: Study, run: Run, tmp_path: Path) -> None:
    """open-compass/VLMEvalKit#1186: a NaN is an error row, and no table or page of the results holds one.

    A benchmark of which nothing was answered has empty cells there.
    """
    nan = sent({"A": 0.5, "B": 0.4}).replace(str(math.log(0.4)).encode(), b"NaN")
    found = parse_reply(nan)
    assert isinstance(found, Failure)
    assert found.kind == "nan_logprobs"
    items = [*make_items(a=6), make_item(0, "b", format="open", gold=None, options=())]
    made = framed_study(tmp_path / "made", items, large="scripted?skill=0.2", small="scripted?skill=0.2")
    assert run("screen", made.root, "--engine", "scripted")[0] == 0
    assert run("assemble", made.root)[0] == run("report", made.root)[0] == 0
    table = f"'{made.results}/pool_items.parquet'"
    kinds = duckdb.sql(f"DESCRIBE SELECT * FROM {table}").fetchall()
    numbers = [name for name, kind, *_ in kinds if kind in ("DOUBLE", "FLOAT")]
    assert numbers
    assert any("margin" in name for name in numbers)
    for name in numbers:
        assert duckdb.sql(f'SELECT count(*) FROM {table} WHERE isnan("{name}")').fetchall() == [(0,)], name
    for name in ("pool_summary.csv", "pool_summary.md", "run_accounting.csv"):
        assert "nan" not in (made.results / name).read_text(encoding="utf-8").lower(), name
    assert ">nan" not in (made.results / "report.html").read_text(encoding="utf-8").lower()


def test_21_one_video_of_three_is_missing(run: Run, tmp_path: Path) -> None:
    """open-compass/VLMEvalKit#633: the item without frames waits, the others are screened, the report is whole."""
    study = make_study(tmp_path / "study", large="scripted?skill=0", small="scripted?skill=0")
    items = [make_item(number) for number in (0, 2, 3)]
    study.write_pool(items)
    give_frames(study, items[:2])
    code, out, _ = run("screen", study.root, "--engine", "scripted")
    assert (code, "WAITING_TOTAL=1" in out, "FAILED_TOTAL=0" in out) == (0, True, True)
    assert run("assemble", study.root)[0] == run("report", study.root)[0] == 0
    table = f"'{study.results}/pool_items.parquet'"
    waiting = duckdb.sql(f"SELECT item_id FROM {table} WHERE verdict = 'waiting'").fetchall()
    assert waiting == [("a_3",)]
    page = (study.results / "report.html").read_text(encoding="utf-8")
    assert all(item.item_id in page for item in items)


def test_22_subtitles_are_never_shown(tmp_path: Path) -> None:
    """open-compass/VLMEvalKit#1207: there is no switch to invert; no step's prompt holds a word of them."""
    (item,) = built(tmp_path, SUBTITLES)
    assert item.subtitles == "He says: it is red."
    config = make_study(tmp_path / "other").config
    shown = [prompt.text for step in LADDER.values() for prompt in prompts_of(item, step, config)]
    assert len(shown) >= len(LADDER)
    assert not any("He says" in text for text in shown)


def test_23_letters_in_a_long_reply() -> None:
    """open-compass/VLMEvalKit PR#1552 and PR#1175: one token is asked for, behind `Answer:`, so no text follows it.

    `The correct answer is B. A is wrong because…` never comes to be: what counts is B against A at that place.
    """
    body = json.loads(b"".join((opening_of("m", {"top_logprobs": 20}), *content_of("Which?"), CLOSING)))
    assert (body["max_tokens"], body["continue_final_message"]) == (1, True)
    assert body["messages"][-1] == {"role": "assistant", "content": "Answer:"}
    assert shares({"The": 0.6, " B": 0.3, " A": 0.02}) == {"A": 0.02, "B": 0.3}


def test_24_no_inside_of_notice(study: Study) -> None:
    """open-compass/VLMEvalKit#73: yes and no are options with letters too, and no word counts for them."""
    words = {"Yes": 0.4, "notice": 0.2, "no": 0.1, "No": 0.1}
    assert row_of(study, words, ("yes", "no"))["error"] == "low_label_mass"
    row = row_of(study, words | {" A": 0.15, " B": 0.01}, ("yes", "no"), gold=0)
    assert (row["right"], row["missing"]) == ([True], [[]])


def test_25_an_open_item_gets_no_choices(run: Run, tmp_path: Path) -> None:
    """open-compass/VLMEvalKit PR#1642: a gold `A` without options is no letter; the item is open, and never asked."""
    study = study_of(tmp_path, OPEN_ITEMS)
    build_pool(study)
    known, letter = study.items()
    assert (known.format, letter.format, letter.options, letter.gold) == ("mcq", "open", (), None)
    assert letter.issues == ("open_ended",)
    assert run("screen", tmp_path, "--engine", "scripted")[0] == 0
    assert {row["item_id"] for row in rows_on_disk(study, 1)} == {known.item_id}
    assert run("assemble", tmp_path)[0] == 0
    table = f"'{study.results}/pool_items.parquet'"
    assert duckdb.sql(f"SELECT verdict FROM {table} WHERE format = 'open'").fetchall() == [("not_screened",)]


def test_26_an_unreadable_answer_is_no_random_option(study: Study, run: Run, tmp_path: Path) -> None:
    """MMMU-Benchmark/MMMU#72: `I cannot see it` is an error row without an answer; the item fails and is counted."""
    row = row_of(study, {"I": 0.7, "Sorry": 0.2, " B": 0.05})
    assert (row["status"], row["error"]) == ("error", "low_label_mass")
    assert not {"right", "n_right", "removed", "logprobs"} & set(row)
    made = make_study(tmp_path / "made", large="scripted?mass=0.05", small="scripted?mass=0.05")
    made.write_pool(make_items(a=3))
    code, out, _ = run("screen", made.root, "--engine", "scripted")
    assert (code, "FAILED_TOTAL=3" in out) == (0, True)
    assert run("assemble", made.root)[0] == run("report", made.root)[0] == 0
    table = f"'{made.results}/pool_items.parquet'"
    assert duckdb.sql(f"SELECT verdict, count(*) FROM {table} GROUP BY 1").fetchall() == [("failed", 3)]
    assert "low_label_mass" in (made.results / "report.html").read_text(encoding="utf-8")


def test_27_two_letters_are_no_letter() -> None:
    """openai/evals#1767: a token `AB` counts for neither, and there is no second marker, since one token is read."""
    assert letter_of_token("AB") is letter_of_token(" AB") is letter_of_token("A/B") is None
    assert shares({"AB": 0.6, " B": 0.3}) == {"B": 0.3}


def test_28_the_word_answer_in_any_language() -> None:
    """openai/simple-evals#33: none of these supplies an A; nor do letters in another case or script."""
    words = (
        "Answer",
        " Answer",
        "Antwort",
        "An",
        "Ant",
        "Answer:",
        "Respuesta",
        "الإجابة",
        "答案",
        "a",
        "\u0430",
        "\u0391",
        "\u24b6",
    )
    assert [letter_of_token(word) for word in words] == [None] * len(words)
    assert shares({"Antwort": 0.5, "Answer": 0.2, " C": 0.25}) == {"C": 0.25}


def test_29_words_that_begin_with_a_letter() -> None:
    """groq/openbench#348: `seems` is no S, of nineteen options that reach it too."""
    words = {" seems": 0.6, "seems": 0.1, "Seems": 0.1}
    found = reading_of(words | {" A": 0.2}, 19)
    assert isinstance(found, Reading)
    assert found.letters.missing == tuple("BCDEFGHIJKLMNOPQRS")
    assert found.letters.label_mass == pytest.approx(0.2)


def test_30_bold_letters(study: Study) -> None:
    """aniri15/OPD-V#2: `**D**` is not A; its tokens `**` and `**D` are no letter, so too little mass is an error."""
    marks = ("**", "**D", "**D**", " **", "D**", "*D*")
    assert [letter_of_token(mark) for mark in marks] == [None] * len(marks)
    row = row_of(study, {"**": 0.95, " D": 0.03})
    assert (row["status"], row["error"]) == ("error", "low_label_mass")
    assert row["detail"] == "label mass 0.03 is under the floor of 0.1"
    assert variants_of_letters(marks)["D"] == ()


def test_32_a_letter_that_no_option_has(study: Study) -> None:
    """Future-House/paper-qa#693: E of four options counts for none of them; mass on it is mass that is missing."""
    assert shares({" E": 0.6, " B": 0.3}) == {"B": 0.3}
    assert row_of(study, {" E": 0.9, "red": 0.05})["error"] == "low_label_mass"
    assert shares({" E": 0.6, " B": 0.3}, 5) == {"B": 0.3, "E": 0.6}
