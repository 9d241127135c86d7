"""Specimens of surveyed benchmarks: TempCompass to VLEP. Invented content in the shape of the real files."""
# fmt: off

from .fixtures import Fixture, Want, row, rows

PART = "task_type question time_stamp answer options required_ability"
OVO = "id task video realtime question answer options gt"
MMMU = "id question options answer link_selected question_type"
SOCIAL = "qid q vid_name ts ans_corr answer_idx idx_types a0 a1 a2 a3"
TGIF = "gif_name question a1 a2 a3 a4 a5 answer vid_id key"


def part(video: str, *questions: dict[str, object]) -> dict[str, object]:
    """A part of a video, as StreamingBench has them."""
    return {"time": "[0:00:00 - 0:01:00]", "questions": list(questions), "video_categories": "sport",
            "video_path": f"./videos/{video}.mp4"}


FIXTURES = [
    Fixture(
        "tempcompass_mc",
        {"multi-choice.json": {"103": {
            "action": rows("question gt-answer",
                           ("What is the child doing?\nA. eating\nB. A. water jump\nC. crying", "B. A. water jump"),
                           ("Which act is it?\nA. reading\nB. writing", "A. reading")),
            "order": rows("question gt-answer", ("What comes first?\nA. a car\nB. a key\nC. a hat\nD. a bag",
            "D. a bag")),
        }}},
        [
            Want("What is the child doing?", "eating | A. water jump | crying", "A. water jump",
                 "lmms-lab/TempCompass::::103.mp4",
                 more={"source_id": "103_action_0", "category": "action", "group": "103_action"}),
            Want("Which act is it?", "reading | writing", "reading", "lmms-lab/TempCompass::::103.mp4",
                 more={"source_id": "103_action_1", "group": "103_action"}),
            Want("What comes first?", "a car | a key | a hat | a bag", "a bag", "lmms-lab/TempCompass::::103.mp4",
                 more={"source_id": "103_order_0", "group": "103_order"}),
        ],
    ),
    Fixture(
        "tempcompass_caption_matching",
        {"caption_matching.json": {"104": {"action": rows(
            "question answer",
            ("Which caption matches the video better?\nCaption A: A child runs.\nCaption B: A child jumps.",
             "Caption B: A child jumps."),
            ("Which sentence better captures the video?\nSentence A: A child jumps.\nSentence B: A child swims.",
             "Sentence A: A child jumps."),
            ("Which description is a better match?\nOption 1: A child dances.\nOption 2: A child jumps.",
             "Option 2: A child jumps."),
        )}}},
        [
            Want("Which caption matches the video better?", "A child runs. | A child jumps.", "A child jumps.",
                 "lmms-lab/TempCompass::::104.mp4"),
            Want("Which sentence better captures the video?", "A child jumps. | A child swims.", "A child jumps.",
                 "lmms-lab/TempCompass::::104.mp4"),
            Want("Which description is a better match?", "A child dances. | A child jumps.", "A child jumps.",
                 "lmms-lab/TempCompass::::104.mp4", more={"source_id": "104_action_2"}),
        ],
    ),
    Fixture(
        "tempcompass_yesno",
        {"yes_no.json": {"105": {"speed": rows("question answer", ("Is it fast?", "yes"), ("Is it slow?", "no"))}}},
        [
            Want("Is it fast?", "yes | no", "yes", "lmms-lab/TempCompass::::105.mp4", more={"group": "105_speed"}),
            Want("Is it slow?", "yes | no", "no", "lmms-lab/TempCompass::::105.mp4", more={"source_id": "105_speed_1"}),
        ],
    ),
    Fixture(
        "ovo_bench",
        {"ovo_bench_new.json": [
            row(OVO, 0, "EPM", "Ego/a.mp4", 215, "Who came in?", "the tall one", ["Ann", "Bob", "Cy", "Di"], 2),
            row(OVO, 609, "ATR", "Ego/a.mp4", 300, "Who came in?", "Ann", ["Ann", "Bob", "Cy", "Di"], 1),
            row(OVO, 1326, "OCR", "b.mp4", 12, "Which name?", "Tyler", ["A. Wade", "B. Tyler", "D. Carter", "C. Jen"],
                1),
            {"id": 1400, "task": "REC", "video": "c.mp4", "activity": "jump",
             "test_info": [{"realtime": 5, "count": 1}, {"realtime": 9, "count": 2}]},
        ]},
        [
            Want("Who came in?", "Ann | Bob | Cy | Di", "Cy", "JoeLeelyf/OVO-Bench::::Ego/a.mp4", (None, 215)),
            Want("Who came in?", "Ann | Bob | Cy | Di", "Bob", "JoeLeelyf/OVO-Bench::::Ego/a.mp4", (None, 300),
                 "index_text_contradict"),
            Want("Which name?", "A. Wade | B. Tyler | D. Carter | C. Jen", "B. Tyler", "JoeLeelyf/OVO-Bench::::b.mp4",
                 (None, 12), "prefix_out_of_order"),
            Want("", "", None, "JoeLeelyf/OVO-Bench::::c.mp4", (None, None),
                 "empty_question no_options hidden_gold no_window", {"source_id": "1400"}),
        ],
    ),
    Fixture(
        "streamingbench_real",
        {"questions_real.json": [
            part("s1_real", row(PART, "Counting", "How many?", "00:00:31", "C", ["A. 1", "B. 2", "C. 3", "D. 4"], "x")),
            part("s1_real", row(PART, "Counting", "How many?", "00:01:12", "D", ["A. 1", "B. 2", "C. 3", "D. 4"], "x"),
                 row(PART, "OCR", "What is\u200b written?", "0:02:00", "A", ["A. go", "B. no", "C. to", "D. so"], "x")),
        ]},
        [
            Want("How many?", "1 | 2 | 3 | 4", "3", "THUNLP-MT/StreamingBench::::./videos/s1_real.mp4", (None, 31),
                 more={"source_id": "questions_real_0", "category": "Counting"}),
            Want("How many?", "1 | 2 | 3 | 4", "4", "THUNLP-MT/StreamingBench::::./videos/s1_real.mp4", (None, 72)),
            Want("What is\u200b written?", "go | no | to | so", "go",
                "THUNLP-MT/StreamingBench::::./videos/s1_real.mp4",
                 (None, 120), "bad_text", {"source_id": "questions_real_2"}),
        ],
    ),
    Fixture(
        "streamingbench_omni",
        {"questions_omni.json": [part(
            "s2",
            row(PART, "Emotion", "What is seen now?", "00:00:50", "B",
                ["A. a red card", "and a hat", "B. a blue card", "C. two cards", ""], "x"),
            row(PART, "Emotion", "What is heard?", "00:00:55", "A", ["A. a dog", "B. a cat", "C. a cow", "D. rain"],
                "x"),
        )]},
        [
            Want("What is seen now?", "a red card\nand a hat | a blue card | two cards", "a blue card",
                 "THUNLP-MT/StreamingBench::::./videos/s2.mp4", (None, 50), "options_rejoined"),
            Want("What is heard?", "a dog | a cat | a cow | rain", "a dog",
                 "THUNLP-MT/StreamingBench::::./videos/s2.mp4", (None, 55)),
        ],
    ),
    Fixture(
        "streamingbench_sqa",
        {"questions_sqa.json": [[
            part("s3", row(PART, "SQA", "Who serves now?", "00:00:36", "A", ["Xu.", "Fan.", "Ma.", "Wang."], "x")),
            part("s3", row(PART, "SQA", "How many points has the person mentioned in the last question?", "00:03:02",
                "C",
                           ["2.", "6.", "7.", "4."], "x")),
        ]]},
        [
            Want("Who serves now?", "Xu. | Fan. | Ma. | Wang.", "Xu.", "THUNLP-MT/StreamingBench::::./videos/s3.mp4",
                 (None, 36), more={"group": "./videos/s3.mp4"}),
            Want("How many points has the person mentioned in the last question?", "2. | 6. | 7. | 4.", "7.",
                 "THUNLP-MT/StreamingBench::::./videos/s3.mp4", (None, 182), "needs_previous_item",
                 {"group": "./videos/s3.mp4"}),
        ],
    ),
    Fixture(
        "tomato",
        {
            "shape&trend.json": {"0": row(
                "question options answer key video_source_url motion_type variation demonstration_type note",
                "Which shape is drawn?", ["A circle.", "A square.", "None of the above."], 1, "0798-00", "",
                "shape&trend", {"zoom": 0}, "human", "")},
            "visual_cues.json": {"0": row(
                "question options answer video_source_url motion_type variation demonstration_type note key",
                "Which one plays first?", ["Piano.", "Guzheng.", "Both begin at once.", "Flute."], 2, "", "visual cues",
                {"zoom": 1}, "object", "", "0799-00")},
        },
        [
            Want("Which shape is drawn?", "A circle. | A square. | None of the above.", "A square.",
                 "yale-nlp/TOMATO::::human/0798-00.mp4", issues="option_about_options",
                 more={"source_id": "shape&trend_0"}),
            Want("Which one plays first?", "Piano. | Guzheng. | Both begin at once. | Flute.", "Both begin at once.",
                 "yale-nlp/TOMATO::::object/0799-00.mp4", more={"source_id": "visual cues_0",
                 "category": "visual cues"}),
        ],
    ),
    Fixture(
        "mmvu_val",
        {"validation.json": rows(
            "id video youtube_url question_type metadata question choices answer",
            ("validation_1", "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main/videos/Physics/2.mp4",
            "https://y",
             "multiple-choice", {"subject": "Physics", "knowledge": ["https://w"], "rationale": "Eight of them, so D."},
             "How many spins?", {"A": "3", "B": "6", "C": "4", "D": "8", "E": "5"}, "D"),
            ("validation_2", "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main/videos/Art/3.mp4", "https://y",
             "open-ended", {"subject": "Art", "knowledge": [], "rationale": "It is oil."}, "Which paint is it?",
             {"A": "", "B": ""}, "oil"),
            ("validation_377", "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main/videos/Art/4.mp4",
            "https://y",
             "multiple-choice", {"subject": "Art", "knowledge": [], "rationale": "x"}, "Which is it?",
             {"A": "A. oil", "B": "B. ink", "C": "D. wax", "D": "E. ash", "E": "F. gum"}, "D"),
        )},
        [
            Want("How many spins?", "3 | 6 | 4 | 8 | 5", "8", "yale-nlp/MMVU::::videos/Physics/2.mp4",
                 more={"category": "Physics"}),
            Want("Which paint is it?", "", None, "yale-nlp/MMVU::::videos/Art/3.mp4", issues="open_ended"),
            Want("Which is it?", "A. oil | B. ink | D. wax | E. ash | F. gum", "E. ash",
                "yale-nlp/MMVU::::videos/Art/4.mp4",
                 issues="prefix_out_of_order"),
        ],
    ),
    *(
        Fixture(
            f"videommmu_{track}",
            {f"{track}_video.json": {track.capitalize(): {
                "0": row(MMMU, "dev_Art_1", "What does <image 1> cost\x0c?", ["M: $57,000", "M: $60,000", "P: $1"], "B",
                         "https://www.youtube.com/watch?v=HHHHHHHHHHH", "multiple-choice"),
                "1": row(MMMU, "dev_Art_2", "Which one?", [*"ab", *map(str, range(12))], "N",
                         "https://youtu.be/IIIIIIIIIII", "multiple-choice"),
                "2": row(MMMU, "dev_Art_3", "How much is it?", [], "12.5", "https://youtu.be/IIIIIIIIIII", "open"),
            }}},
            [
                Want("What does <image 1> cost\x0c?", "M: $57,000 | M: $60,000 | P: $1", "M: $60,000",
                     "lmms-lab/VideoMMMU::::HHHHHHHHHHH.mp4", issues="media_placeholder bad_text prefix_out_of_order",
                     more={"item_id": f"videommmu_{track}_dev_Art_1"}),
                Want("Which one?", " | ".join([*"ab", *map(str, range(12))]), "11",
                    "lmms-lab/VideoMMMU::::IIIIIIIIIII.mp4",
                     issues="letter_like_option", more={"source_id": "dev_Art_2"}),
                Want("How much is it?", "", None, "lmms-lab/VideoMMMU::::IIIIIIIIIII.mp4",
                     issues="no_options", more={"format": "open"}),
            ],
        )
        for track in ("perception", "comprehension", "adaptation")
    ),
    Fixture(
        "cgbench_mini",
        {"cgbench_mini.json": rows(
            "qid video_uid question answer choices right_answer clue_intervals domain sub_category duration",
            (1, "u1", "Which game is it?", "chess", ["go", "dice", "cards", "chess", "polo"], "D", [[10, 20]], "Life",
            "Game",
             1200),
            (2, "u2", "Where is it?", "Rome", ["Rome", "Oslo", "Bonn", "Pisa", "Lyon", "Bern", "Cork", "York"], "H",
             [[1, 2]], "Life", "Place", 3000),
        )},
        [
            Want("Which game is it?", "go | dice | cards | chess | polo", "chess", "CG-Bench/CG-Bench::::u1.mp4",
                 more={"duration": 1200.0, "category": "Game", "source_id": "1"}),
            Want("Where is it?", "Rome | Oslo | Bonn | Pisa | Lyon | Bern | Cork | York", "York",
                 "CG-Bench/CG-Bench::::u2.mp4", issues="index_text_contradict"),
        ],
    ),
    Fixture(
        "videovista_cl",
        {"VideoVista-CulturalLingo.json": rows(
            "video_id question_id video_path question options answer category subcategory processed_question "
            "origin_answer language",
            ("v1", "cn_1", "cn/v1.mp4", "\u8fd9\u662f\u4ec0\u4e48\uff1f", ["\u8336", "\u9152", "\u6c34", "\u8336"], "A",
             "Culture", "Food", "x", "\u8336", "cn"),
            ("v2", "en_2", "en/v2.mp4", "When is it?", ["[0, 4]", "[5, 9]", "[2, 7]", "[1, 3]"], "B", "Event",
             "Localization", "x", "[2, 7]", "en"),
        )},
        [
            Want("\u8fd9\u662f\u4ec0\u4e48\uff1f", "\u8336 | \u9152 | \u6c34 | \u8336", "\u8336",
                 "Uni-MoE/VideoVista-CulturalLingo::::cn/v1.mp4", issues="duplicate_options duplicate_gold"),
            Want("When is it?", "[0, 4] | [5, 9] | [2, 7] | [1, 3]", "[5, 9]",
                "Uni-MoE/VideoVista-CulturalLingo::::en/v2.mp4",
                 issues="index_text_contradict"),
        ],
    ),
    Fixture(
        "socialiq2_val",
        {"qa_val.json": [
            row(SOCIAL, "JJ_q1", "How does he feel?", "JJJJJJJJJJJ", "0.00-60.019000", "He is calm.", 0,
                ["corr", "matched", "rewrite", "matched"], "He is calm.", "He is sad.", "He is cold.", "He is old."),
            row(SOCIAL, "JJ_q1", "How does she feel?", "JJJJJJJJJJJ", "0.00-60.019000", "She is sad.", 1,
                ["corr", "matched", "rewrite", "matched"], "She is calm.", "She is cold.", "She is sad.",
                "She is old."),
        ]},
        [
            Want("How does he feel?", "He is calm. | He is sad. | He is cold. | He is old.", "He is calm.",
                 "abwilf/Social-IQ-2.0-Challenge::::JJJJJJJJJJJ.mp4", (0, 60.019), more={"source_id": "JJ_q1"}),
            Want("How does she feel?", "She is calm. | She is cold. | She is sad. | She is old.", "She is cold.",
                 "abwilf/Social-IQ-2.0-Challenge::::JJJJJJJJJJJ.mp4", (0, 60.019), "index_text_contradict"),
        ],
    ),
    *(
        Fixture(
            f"tgif_{kind}_test",
            {f"Test_{kind}_question.csv": [
                row(TGIF, "tumblr_1", "What is done 2 times, then?", "nod", "spin", "wave", "jump", "clap", 0, "ID1",
                    12),
                row(TGIF, "tumblr_2", "What is done at last?", "nod", "spin", "wave", "jump", "clap", 4, "ID2", 13),
            ]},
            [
                Want("What is done 2 times, then?", "nod | spin | wave | jump | clap", "nod",
                     "YunseokJANG/tgif-qa::::tumblr_1.gif", more={"source_id": "ID1_12"}),
                Want("What is done at last?", "nod | spin | wave | jump | clap", "clap",
                     "YunseokJANG/tgif-qa::::tumblr_2.gif"),
            ],
        )
        for kind in ("action", "transition")
    ),
]
