"""Every trap that was met in real files, as a synthetic record of the same shape, with the right outcome.

Each case is named by the benchmark and the id, where one is known, that the trap was found at.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchcheck.pool.gold import Gold
from benchcheck.pool.items import Item
from benchcheck.pool.mapping import map_record
from benchcheck.pool.options import Options
from benchcheck.pool.reading.readers import Record
from benchcheck.pool.specs import Spec, VideoFields

LIST = Options(kind="list", field="o")
JOINED = Options(kind="list", field="o", rejoin=True)
DICT = Options(kind="dict", field="o")
AUTO = Options(kind="auto", field="o")
TEXT = Options(kind="embedded")
ABCD = Options(kind="columns", fields=("A", "B", "C", "D"))
CHOICES = Options(kind="list", field="o", member="choice")
PAIR = Options(kind="pair", gold_field="caption", others=("foils",))

INDEX, LETTER, EQUAL, ANY = (Gold(kind=kind, field="a") for kind in ("index", "letter", "text", "auto"))
FIRST, LAST, NONE = (Gold(kind=kind) for kind in ("first", "last", "none"))
MARKED = Gold(kind="per_choice", field="answer")
ORDER = Gold(kind="order", field="a")
CHECKED = Gold(kind="index", field="a", text="t")


@dataclass(frozen=True)
class Trap:
    """A record's fields; the texts and the gold's text that must come of it, or a blocking code; notes."""

    name: str
    options: Options
    gold: Gold
    record: dict[str, Any]
    texts: tuple[str, ...] | None = None
    right: str | None = None
    """The text of the right option; None when the item is not screened."""
    codes: set[str] = field(default_factory=set)
    """All of the item's codes."""
    question: str = "What is seen?"

    def __str__(self) -> str:
        return self.name


OPTION_TRAPS = [
    Trap(
        "SUTD_trafficqa-filler_in_the_middle",
        ABCD,
        INDEX,
        {"A": "Good", "B": "", "C": "A few scratches", "D": "A dent", "a": 3},
        ("Good", "A few scratches", "A dent"),
        "A dent",
        {"empty_option"},
    ),
    Trap(
        "LongVideoBench-option4_is_NA",
        Options(kind="columns", fields=("o0", "o1", "o2")),
        INDEX,
        {"o0": "red", "o1": "blue", "o2": "N/A", "a": 1},
        ("red", "blue"),
        "blue",
    ),
    Trap(
        "Video-Bench-None_first",
        LIST,
        EQUAL,
        {"o": [None, "Yes", "No", None], "a": "No"},
        ("Yes", "No"),
        "No",
        {"empty_option"},
    ),
    Trap("MVBench-counterfactual_inference", LIST, EQUAL, {"o": ["yes"], "a": "yes"}, codes={"single_option"}),
    Trap("MLVU-empty_row", LIST, EQUAL, {"o": ["", "", "", ""], "a": ""}, codes={"no_options", "hidden_gold"}),
    Trap(
        "MMR-V-13_options",
        LIST,
        LETTER,
        {"o": [f"({letter}) thing {letter}" for letter in "ABCDEFGHIJKLM"], "a": "(L)"},
        tuple(f"thing {letter}" for letter in "ABCDEFGHIJKLM"),
        "thing L",
    ),
    Trap(
        "MMR-V-bracket_inside",
        LIST,
        LETTER,
        {"o": ["(A) a man (left) waves", "(B) f(x) is drawn)"], "a": "B"},
        ("a man (left) waves", "f(x) is drawn)"),
        "f(x) is drawn)",
    ),
    Trap(
        "Video-MME_623-3-initials_are_stripped_once",
        LIST,
        LETTER,
        {"o": ["A. L. Pasteur and R. Koch.", "B. B. Franklin.", "C. C. Darwin."], "a": "B"},
        ("L. Pasteur and R. Koch.", "B. Franklin.", "C. Darwin."),
        "B. Franklin.",
    ),
    Trap(
        "Video-MME_840-2-options_are_letters",
        LIST,
        LETTER,
        {"o": ["A. A.", "B. F.", "C. B.", "D. K."], "a": "B"},
        ("A.", "F.", "B.", "K."),
        "F.",
        {"letter_like_option"},
    ),
    Trap(
        "Video-MME_840-2-auto",
        LIST,
        ANY,
        {"o": ["A. A", "B. F", "C. B", "D. K"], "a": "B"},
        codes={"gold_ambiguous", "letter_like_option"},
    ),
    Trap(
        "VideoMMMU-M_and_I_are_no_prefixes",
        LIST,
        LETTER,
        {"o": ["M: $57,000; S: $3,000", "I. and V. only", "none"], "a": "A"},
        ("M: $57,000; S: $3,000", "I. and V. only", "none"),
        "M: $57,000; S: $3,000",
    ),
    Trap(
        "MMVU_validation_377-the_key_counts",
        DICT,
        LETTER,
        {"o": {"A": "A. w", "B": "B. x", "C": "D. y", "D": "E. z", "E": "v"}, "a": "d"},
        ("A. w", "B. x", "D. y", "E. z", "v"),
        "E. z",
        {"prefix_out_of_order"},
    ),
    Trap(
        "OVO-Bench_1326-list_A_B_D_C",
        LIST,
        INDEX,
        {"o": ["A. Wade", "B. Tyler", "D. Carter", "C. Jensen"], "a": 2},
        ("A. Wade", "B. Tyler", "D. Carter", "C. Jensen"),
        "D. Carter",
        {"prefix_out_of_order"},
    ),
    Trap(
        "Video-Bench-D_C_A_B",
        LIST,
        LETTER,
        {"o": ["D) up", "C) down", "A) left", "B) right"], "a": "A"},
        codes={"gold_ambiguous", "prefix_out_of_order"},
    ),
    Trap(
        "StreamingBench_omni_33-empty_pieces",
        JOINED,
        LETTER,
        {"o": ["A. one", "", "B. two", "C. three", "", "D. four"], "a": "C"},
        ("one", "two", "three", "four"),
        "three",
        {"options_rejoined"},
    ),
    Trap(
        "StreamingBench_omni_33-without_rejoin_the_letter_is_the_prefix",
        LIST,
        LETTER,
        {"o": ["A. one", "", "B. two", "C. three", "", "D. four"], "a": "C"},
        ("one", "two", "three", "four"),
        "three",
        {"empty_option"},
    ),
    Trap(
        "StreamingBench_omni_148-rejoined",
        JOINED,
        LETTER,
        {
            "o": ["A. a card", "B. he says: I will hopefully find", "another fortress.", "C. a sword", "D. lava"],
            "a": "D",
        },
        ("a card", "he says: I will hopefully find\nanother fortress.", "a sword", "lava"),
        "lava",
        {"options_rejoined"},
    ),
    Trap(
        "StreamingBench_omni_315-split",
        LIST,
        LETTER,
        {"o": ["A. a card", "B. a man who has to pack", "for his trip", "C. a sword", "D. lava"], "a": "A"},
        codes={"options_split"},
    ),
    Trap(
        "StreamingBench_omni_394-letters_repeat",
        JOINED,
        LETTER,
        {"o": ["A. a", "B. b", "C. c", "D. d", "B. e", "C. f", "D. g"], "a": "B"},
        codes={"gold_ambiguous", "prefix_out_of_order"},
    ),
    Trap(
        "StreamingBench_omni_188-the_gold_is_not_the_repeated_letter",
        JOINED,
        LETTER,
        {"o": ["A. a", "B. b", "C. c", "D. d", "D. e"], "a": "C"},
        ("A. a", "B. b", "C. c", "D. d", "D. e"),
        "C. c",
        {"prefix_out_of_order"},
    ),
    Trap(
        "StreamingBench_omni_1330-A_C_B_D",
        JOINED,
        LETTER,
        {"o": ["A. grey", "C. purple", "B. red", "D. white"], "a": "B"},
        codes={"gold_ambiguous", "prefix_out_of_order"},
    ),
    Trap(
        "StreamingBench_omni_702-a_translator_s_line",
        JOINED,
        LETTER,
        {"o": ["A. snake", "B. branch", "C. bag", "D. car", "E. .", "F. Translated (free version)."], "a": "A"},
        ("snake", "branch", "bag", "car", ".", "Translated (free version)."),
        "snake",
        {"empty_option"},
    ),
    Trap(
        "CVBench_996-four_in_one",
        LIST,
        LETTER,
        {"o": ["A. red, B. blue, C. green, D. grey"], "a": "C"},
        codes={"options_glued", "single_option", "gold_out_of_range"},
    ),
    Trap(
        "HAVEN_547-two_in_one",
        LIST,
        LETTER,
        {"o": ["A. red      B. blue", "C. green", "D. grey"], "a": "C"},
        codes={"options_glued", "gold_ambiguous"},
    ),
    Trap(
        "HAVEN_547-in_the_question",
        TEXT,
        LETTER,
        {"a": "B"},
        ("red", "blue"),
        "blue",
        question="What colour is it?\nA. red      B. blue",
    ),
    Trap("SPORTU-ints", DICT, LETTER, {"o": {"A": 1, "B": 2}, "a": "B"}, ("1", "2"), "2"),
    Trap(
        "VLM4D_validation_3-ints",
        DICT,
        EQUAL,
        {"o": {"A": 1, "B": 2, "C": 3, "D": 0}, "a": "1"},
        ("1", "2", "3", "0"),
        "1",
    ),
    Trap(
        "HD-EPIC_ingredients_order-lists",
        LIST,
        INDEX,
        {"o": [["egg", "salt"], ["salt", "egg"]], "a": 1},
        ('["egg", "salt"]', '["salt", "egg"]'),
        '["salt", "egg"]',
        {"non_string_option"},
    ),
    Trap(
        "Video-Holmes-unsorted_keys",
        DICT,
        LETTER,
        {"o": {"C": "z", "A": "xx", "B": "yy"}, "a": "C"},
        ("xx", "yy", "z"),
        "z",
    ),
    Trap("small_letter_keys", DICT, LETTER, {"o": {"b": "blue", "a": "red"}, "a": "B"}, ("red", "blue"), "blue"),
    Trap(
        "VideoVista-CL-full_width",
        LIST,
        LETTER,
        {"o": ["\uff21\uff0e红", "\uff22\uff1a绿"], "a": "\uff22"},
        ("红", "绿"),
        "绿",
    ),
    Trap(
        "Video-TT-a_list_in_a_text",
        LIST,
        LETTER,
        {"o": "['A. it\\'s red', 'B. blue']", "a": "A"},
        ("it's red", "blue"),
        "it's red",
    ),
    Trap(
        "TempCompass-Option_1_and_Sentence_A",
        TEXT,
        EQUAL,
        {"a": "Sentence B: The ball rolls right."},
        ("The ball rolls left.", "The ball rolls right."),
        "The ball rolls right.",
        question="Which sentence fits?\nOption 1: The ball rolls left.\nOption 2: The ball rolls right.",
    ),
    Trap(
        "TempCompass-text_with_prefix",
        TEXT,
        EQUAL,
        {"a": "C. dunking a ball"},
        ("running", "sitting", "dunking a ball"),
        "dunking a ball",
        question="What does he do?\nA. running\nB. sitting\nC. dunking a ball",
    ),
    Trap(
        "LVBench-in_the_question",
        TEXT,
        LETTER,
        {"a": "B"},
        ("two (maybe)", "three)"),
        "three)",
        question="How many?\n(A) two (maybe)\n(B) three)",
    ),
    Trap(
        "DriveLM-on_one_line",
        TEXT,
        LETTER,
        {"a": "C"},
        ("Turn left.", "Go on.", "Stop."),
        "Stop.",
        question="What next? A. Turn left. B. Go on. C. Stop.",
    ),
    Trap(
        "VCR-Bench-a_letter_is_missing",
        TEXT,
        LETTER,
        {"a": "C"},
        codes={"unreadable_options"},
        question="How?\nA. x\nB. y\nD. z",
    ),
    Trap(
        "TempCompass_yes_no-const", Options(kind="const", values=("yes", "no")), EQUAL, {"a": "No"}, ("yes", "no"), "no"
    ),
    Trap(
        "VITATECS-pair",
        PAIR,
        FIRST,
        {"caption": "it is up", "foils": ["it is down", "it is left"]},
        ("it is up", "it is down", "it is left"),
        "it is up",
    ),
    Trap(
        "How2QA-last",
        Options(kind="columns", fields=("w0", "w1", "c")),
        LAST,
        {"w0": "10", "w1": "12", "c": "1"},
        ("10", "12", "1"),
        "1",
    ),
    Trap("ActivityNet-QA-open", Options(kind="none"), NONE, {}, codes={"open_ended"}),
    Trap(
        "TGIF-a1_to_a5",
        Options(kind="columns", fields=("a1", "a2")),
        INDEX,
        {"a1": "jump", "a2": "run", "a": "0"},
        ("jump", "run"),
        "jump",
    ),
    Trap(
        "a1_to_a5-a_number_has_two_readings", AUTO, ANY, {"a1": "jump", "a2": "run", "a": 1}, codes={"gold_ambiguous"}
    ),
    Trap("a1_to_a5-a_letter_has_one", AUTO, ANY, {"a1": "jump", "a2": "run", "a": "B"}, ("jump", "run"), "run"),
    Trap("a1_to_a5-a_text_has_one", AUTO, ANY, {"a1": "jump", "a2": "run", "a": "run"}, ("jump", "run"), "run"),
    Trap(
        "a1_to_a5-base_is_declared",
        AUTO,
        Gold(kind="auto", field="a", base=1),
        {"a1": "jump", "a2": "run", "a": 1},
        ("jump", "run"),
        "jump",
    ),
]

GOLD_TRAPS = [
    Trap(
        "VLM4D_validation_633-gold_text_twice",
        DICT,
        EQUAL,
        {"o": {"A": "away", "B": "left", "C": "right", "D": "away"}, "a": "away"},
        codes={"gold_matches_two_options", "duplicate_options"},
    ),
    Trap(
        "NExT-GQA_3842638015_4-happy_twice",
        LIST,
        EQUAL,
        {"o": ["sad", "calm", "bored", "happy", "happy"], "a": "happy"},
        codes={"gold_matches_two_options", "duplicate_options"},
    ),
    Trap(
        "NExT-QA_3842638015_4-the_index_knows",
        LIST,
        INDEX,
        {"o": ["sad", "calm", "bored", "happy", "happy"], "a": 4},
        ("sad", "calm", "bored", "happy", "happy"),
        "happy",
        {"duplicate_gold", "duplicate_options"},
    ),
    Trap(
        "MLVU_needle_4-gold_not_there",
        LIST,
        EQUAL,
        {"o": ["red", "blue"], "a": "green"},
        codes={"gold_not_among_options"},
    ),
    Trap(
        "OmniVideoBench-final_dot",
        LIST,
        EQUAL,
        {"o": ["a dog", "a cat"], "a": "a dog."},
        codes={"gold_not_among_options"},
    ),
    Trap(
        "OmniVideoBench-case_and_spaces",
        LIST,
        EQUAL,
        {"o": ["A. a  Dog", "B. a cat"], "a": "a dog "},
        ("a  Dog", "a cat"),
        "a  Dog",
    ),
    Trap(
        "MMR-V_268-letter_out_of_range",
        LIST,
        LETTER,
        {"o": ["(A) red", "(B) blue"], "a": "(K)"},
        codes={"gold_out_of_range"},
    ),
    Trap("CVBench-letters", AUTO, ANY, {"o": ["A. Yes", "B. No"], "a": "B"}, ("Yes", "No"), "No"),
    Trap(
        "CVBench-texts_in_the_same_file", AUTO, ANY, {"o": ["A. Yes.", "B. No."], "a": "Yes. "}, ("Yes.", "No."), "Yes."
    ),
    Trap(
        "OVO-Bench_609-text_is_another_option",
        LIST,
        CHECKED,
        {"o": ["puts it down", "takes the food"], "a": 0, "t": "Takes the food"},
        ("puts it down", "takes the food"),
        "puts it down",
        {"index_text_contradict"},
    ),
    Trap(
        "OVO-Bench-paraphrase",
        LIST,
        CHECKED,
        {"o": ["puts it down", "takes the food"], "a": 0, "t": "He lays it on the table"},
        ("puts it down", "takes the food"),
        "puts it down",
    ),
    Trap("LongVideoBench_test-minus_1", LIST, INDEX, {"o": ["x1", "x2"], "a": -1}, codes={"hidden_gold"}),
    Trap("MotionBench-NA", TEXT, LETTER, {"a": "NA"}, codes={"hidden_gold"}, question="q\nA. up\nB. down"),
    Trap("TVQA_test_public-no_field", LIST, NONE, {"o": ["x1", "x2"]}, codes={"hidden_gold"}),
    Trap("NExT-QA-index_in_a_text", LIST, INDEX, {"o": ["x1", "x2", "x3"], "a": "2"}, ("x1", "x2", "x3"), "x3"),
    Trap("lm-eval_811-index_out_of_range", LIST, INDEX, {"o": ["x1", "x2", "x3"], "a": 3}, codes={"gold_out_of_range"}),
    Trap(
        "CLEVRER-several_right",
        CHOICES,
        MARKED,
        {"o": [{"choice": "cube", "answer": "correct"}, {"choice": "ball", "answer": "correct"}]},
        codes={"several_gold"},
    ),
    Trap(
        "CLEVRER-one_right",
        CHOICES,
        MARKED,
        {"o": [{"choice": "cube", "answer": "wrong"}, {"choice": "ball", "answer": "Correct"}]},
        ("cube", "ball"),
        "ball",
    ),
    Trap(
        "CLEVRER-none_right",
        CHOICES,
        MARKED,
        {"o": [{"choice": "cube", "answer": False}, {"choice": "ball", "answer": "wrong"}]},
        codes={"gold_not_among_options"},
    ),
    Trap(
        "CLEVRER_test-no_marks", CHOICES, MARKED, {"o": [{"choice": "cube"}, {"choice": "ball"}]}, codes={"hidden_gold"}
    ),
    Trap(
        "VidHal-order_declared",
        DICT,
        ORDER,
        {"o": {"A": "x1", "B": "x2", "C": "x3"}, "a": "BAC"},
        codes={"gold_is_order"},
    ),
    Trap(
        "VidHal-order_under_auto",
        DICT,
        ANY,
        {"o": {"A": "x1", "B": "x2", "C": "x3"}, "a": "BAC"},
        codes={"gold_is_order"},
    ),
    Trap("openai_evals_1767-AB", LIST, LETTER, {"o": ["x1", "x2", "x3"], "a": "AB"}, codes={"several_gold"}),
    Trap("VideoReasonBench-A_and_C", LIST, LETTER, {"o": ["x1", "x2", "x3"], "a": "A, C"}, codes={"several_gold"}),
    Trap("a_list_of_letters", AUTO, ANY, {"o": ["x1", "x2", "x3"], "a": ["A", "C"]}, codes={"several_gold"}),
    Trap("a_list_of_one_letter", LIST, LETTER, {"o": ["x1", "x2", "x3"], "a": ["C"]}, ("x1", "x2", "x3"), "x3"),
    Trap(
        "medmcqa_5-no_break_space",
        LIST,
        INDEX,
        {"o": ["4", "5\u00a0", "5"], "a": 1},
        ("4", "5\u00a0", "5"),
        "5\u00a0",
        {"duplicate_options", "duplicate_gold"},
    ),
    Trap(
        "Future-House_693-nothing_is_guessed",
        LIST,
        LETTER,
        {"o": ["red", "blue"], "a": "I cannot see it"},
        codes={"gold_not_among_options"},
    ),
]


def noted(name: str, code: str, question: str, options: list[str], gold: int) -> Trap:
    """A trap of the texts: the item is screened as it stands, and carries a note."""
    record = {"o": options, "a": gold}
    return Trap(name, LIST, INDEX, record, tuple(options), options[gold], {code} - {""}, question)


TEXT_TRAPS = [
    noted("VideoMMMU_adaptation-image_tag", "media_placeholder", "Find i in <image 1>.", ["x1", "x2"], 0),
    noted("MUSIC-AVQA-Object", "media_placeholder", "Where is the <Object>?", ["x1", "x2"], 0),
    noted("HD-EPIC-TIME", "time_in_question", "What is held at <TIME 00:00:05.1 video 1>?", ["x1", "x2"], 0),
    noted("HLV-1K-clock", "time_in_question", "What happens at 01:23?", ["x1", "x2"], 0),
    noted("OVBench-seconds", "time_in_question", "What happens from 10s to 12.5 seconds?", ["x1", "x2"], 0),
    noted(
        "StreamingBench_sqa-last_question",
        "needs_previous_item",
        "What does the person mentioned in the last question hold?",
        ["x1", "x2"],
        0,
    ),
    noted("V-STaR_6-speech", "speech_in_question", "What did the man say?", ["x1", "x2"], 0),
    noted("VideoMMMU-form_feed", "bad_text", "What is seen?", ["\frac{1}{2}", "x2"], 1),
    noted("CG-Bench-zero_width_space", "bad_text", "What is seen?", ["a\u200bb", "x2"], 1),
    noted("Video-Holmes-circled_digits", "", "What is seen?", ["①②③", "③②①"], 1),
    noted("VSI-Bench-answer_in_question", "answer_in_question", "What is behind the bed?", ["the lamp", "the bed"], 1),
    noted("SPORTU-all_of_the_above", "option_about_options", "What is seen?", ["x1", "All of the above"], 1),
    noted("Video-MME-none_of_these", "option_about_options", "What is seen?", ["x1", "None of these options."], 0),
    noted("CVBench-both_A_and_B", "option_about_options", "What is seen?", ["x1", "x2", "Both A and B"], 2),
    noted("VideoVista-CL-all_of_the_above", "option_about_options", "What is seen?", ["红", "以上都是"], 1),
    noted("MVBench-not_sure", "abstention_option", "What is seen?", ["x1", "not sure"], 0),
    noted("Video-Bench-I_do_not_know", "abstention_option", "What is seen?", ["x1", "I don't know."], 0),
]
EMPTY = Trap("OVO-Bench_SSR", LIST, INDEX, {"o": ["x1", "x2"], "a": 0}, codes={"empty_question"}, question=" ")


def item_of(trap: Trap) -> Item:
    spec = Spec(bench="b", question="q", options=trap.options, gold=trap.gold, video=VideoFields(member="v"))
    record = Record({"q": trap.question, "v": "v.mp4", **trap.record}, Path("f.json"), "record 1", 0)
    found = map_record(spec, record, 0).item
    assert found is not None
    return found


@pytest.mark.parametrize("trap", [*OPTION_TRAPS, *GOLD_TRAPS, *TEXT_TRAPS, EMPTY], ids=str)
def test_trap(trap: Trap) -> None:
    item = item_of(trap)
    assert set(item.issues) == trap.codes
    if trap.right is None:
        assert item.format == "open"
    else:
        assert item.format == "mcq"
        assert item.options == trap.texts
        assert item.gold is not None
        assert item.options[item.gold] == trap.right


def test_a_question_loses_the_options_that_stand_in_it() -> None:
    embedded = [trap for trap in OPTION_TRAPS if trap.options is TEXT and trap.right]
    found = [item_of(trap).question for trap in embedded]
    assert found == [
        "What colour is it?",
        "Which sentence fits?",
        "What does he do?",
        "How many?",
        "What next?",
    ]


@pytest.mark.parametrize("field", ["", "q"])
def test_no_option_keeps_the_ending_of_a_prompt(field: str) -> None:
    """VNBench: the last option is followed by how to answer."""
    spec = Spec(
        bench="b",
        question="q",
        question_tail=r"\nAnswer with",
        options=Options(kind="embedded", field=field),
        gold=LETTER,
        video=VideoFields(member="v"),
    )
    text = "How many?\nA. two\nB. six\nAnswer with the option's letter."
    item = map_record(spec, Record({"q": text, "v": "v.mp4", "a": "B"}, Path("f.json"), "record 1", 0), 0).item
    assert item is not None
    assert (item.question, item.options, item.gold) == ("How many?", ("two", "six"), 1)


def test_the_gold_of_equal_texts_is_the_place_that_the_file_names() -> None:
    trap = next(trap for trap in GOLD_TRAPS if trap.name == "NExT-QA_3842638015_4-the_index_knows")
    assert item_of(trap).gold == 4
