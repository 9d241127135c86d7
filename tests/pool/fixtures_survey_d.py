"""Specimens of surveyed benchmarks: SPORTU to VideoHallucer. Invented content in the shape of the real files."""
# fmt: off

from .fixtures import Fixture, Want, row, rows

HLV = "qa_idx qa_level qa_type question options answer"
OVB = "middle_frame_timestamp question answer sub_answer_type answer_type video candidates start end"
STORY = "id vid question choices GT option gemini_check claude_check gpt_check characters locations times question_type"
HAVEN = "Index Question Answer Causes Aspects Form Begin End"


def haven(*values: object) -> dict[str, object]:
    """A record of HAVEN: some of its fields have blanks in their names."""
    return row(HAVEN, *values) | {"Source Link": "v_x.mp4", "Video Path": "ActivityNet0145", "Group_id": "group0145"}


def pair(kind: str, video: str, question: str, other: str, asked: str) -> dict[str, object]:
    """A record of VideoHallucer: two questions."""
    return {"basic": row("video question answer", video, question, "yes"),
            "hallucination": row("video question answer", other, asked, "no"), "type": kind}


FIXTURES = [
    Fixture(
        "sportu_mc",
        {"SportU_Video_mc.json": [
            row("id question options answer", "ball_84", "Is there a rule violation?", {"A": "Yes", "B": "No"}, "B")
            | {"difficulty level": "medium"},
            row("id question options answer", "ball_84", "How many players jump?", {"A": 2, "B": 3, "C": 4, "D": 5},
                "C")
            | {"difficulty level": "easy"},
            row("id question options answer", "ball_85", "Which foul is it?",
                {"A": "a push", "B": "a trip", "C": "All of the above", "D": "a hold"},
                "a") | {"difficulty level": "hard"},
        ]},
        [
            Want("Is there a rule violation?", "Yes | No", "No", "haotianxia/SPORTU::::ball_84.mp4",
                 more={"source_id": "ball_84", "category": "medium"}),
            Want("How many players jump?", "2 | 3 | 4 | 5", "4", "haotianxia/SPORTU::::ball_84.mp4",
                 more={"source_id": "ball_84", "item_id": "sportu_mc_1"}),
            Want("Which foul is it?", "a push | a trip | All of the above | a hold", "a push",
                 "haotianxia/SPORTU::::ball_85.mp4", issues="option_about_options"),
        ],
    ),
    Fixture(
        "ovbench",
        {
            "ava.json": [
                row(OVB, 12.5, "Who is there now?", "Ann", "SR", "x", "a.mp4", ["Ann", "Bob"], 0.0, 15.0) | {"fps": 30},
                row(OVB, 40.0, "Who is there now?", "Bob", "SR", "x", "a.mp4", ["Ann", "Bob"], 0.0, 45.0) | {"fps": 30},
            ],
            "tao.json": [
                row(OVB, 3.0, "Where was it at 2s?", "left", "PR", "x", "b", ["left", "right", "not sure"], 0.0, 4.0)
                | {"fps": 1, "image_file": "b/f1.jpg"},
            ],
        },
        [
            Want("Who is there now?", "Ann | Bob", "Ann", "MCG-NJU/OVBench::::a.mp4", (0, 15)),
            Want("Who is there now?", "Ann | Bob", "Bob", "MCG-NJU/OVBench::::a.mp4", (0, 45)),
            Want("Where was it at 2s?", "left | right | not sure", "left", "MCG-NJU/OVBench::::b", (0, 4),
                 "frames_not_video time_in_question abstention_option", {"source_id": "tao_0", "category": "PR"}),
        ],
    ),
    Fixture(
        "video_bench_pku",
        {
            "MV_QA_new.json": {"0": row("vid_path video_id question choices", "Eval_video/MV/1.mp4", "1", "Is it him?",
                                        {"A": None, "B": "Yes", "C": "No", "D": None})},
            "SQA3D_QA_new.json": {"0": row("vid_path question choices video_id", "Eval_video/SQA3D/s.mp4", "How many?",
                                           {"C": 4, "A": "D) two", "B": "C) six", "D": "A) one"}, "s")},
        },
        [
            Want("Is it him?", "Yes | No", None, "PKU-YuanGroup/Video-Bench::::Eval_video/MV/1.mp4",
                 issues="hidden_gold empty_option", more={"source_id": "MV_QA_new_0", "category": "MV_QA_new"}),
            Want("How many?", "D) two | C) six | 4 | A) one", None,
                "PKU-YuanGroup/Video-Bench::::Eval_video/SQA3D/s.mp4",
                 issues="hidden_gold prefix_out_of_order"),
        ],
    ),
    Fixture(
        "video_bench_MOT",
        {"MOT_QA.json": {
            "15": row("vid_path video_id question choices answer",
            "/home/x/VideoBenchmark/videos/MOT_video/MOT20-02.mp4",
                      "MOT20-02", "How many pedestrians are there?",
                      {"A": "274", "B": "82", "C": "164", "D": "438", "E": "548", "F": "356"}, "A"),
        }},
        [
            Want("How many pedestrians are there?", "274 | 82 | 164 | 438 | 548 | 356", "274",
                 "PKU-YuanGroup/Video-Bench::::videos/MOT_video/MOT20-02.mp4", more={"source_id": "15"}),
        ],
    ),
    Fixture(
        "storyvideoqa",
        {"GOT_golden.json": [
            row(STORY, 14, "GOT-S01E10", "What will happen?", ["war", "peace", "The above all", "a feast",
                "a long sleep"],
                "peace", "B", ["True", "peace"], ["True", "peace"], ["True", "war"], ["Robb"], ["camp"],
                ["00:13:05-00:13:12"], "I"),
            row(STORY, 15, "GOT-S01E10", "Who leads?", ["A. Ann", "B. Bob", "C. Cy", "D. Di"], "A. Ann", "C", [], [],
                [], [],
                [], [], "F"),
        ]},
        [
            Want("What will happen?", "war | peace | The above all | a feast | a long sleep", "peace",
                 "nercms-mmap/StoryVideoQA::::GOT-S01E10.mp4", more={"source_id": "GOT_golden_14", "category": "I"}),
            Want("Who leads?", "Ann | Bob | Cy | Di", "Cy", "nercms-mmap/StoryVideoQA::::GOT-S01E10.mp4",
                 issues="index_text_contradict"),
        ],
    ),
    Fixture(
        "ivqa_mc",
        {"test_mc.json": rows(
            "video_id question_id all_duration duration qa context action_relation_intent options ans",
            (6068, 7, 90, [[43.3, 47.2]], {"question": "what did she do", "answer": "caught her"},
             {"context_duration": {"1": [[36.0, 39.1]]}}, "1. she helps: ensure safety.",
             ["ran", "fell", "caught her", "sat", "hid"], "C"),
            (6068, 8, 90, [[3, 5]], {"question": "why did he wait", "answer": "rest"}, {}, "x", ["rest", "work",
            "Rest ",
             "rest"], "D"),
        )},
        [
            Want("what did she do", "ran | fell | caught her | sat | hid", "caught her",
                 "tychen-SJTU/Implicit-VideoQA::::6068.mp4", more={"source_id": "6068_7", "duration": 90.0}),
            Want("why did he wait", "rest | work | Rest  | rest", None, "tychen-SJTU/Implicit-VideoQA::::6068.mp4",
                 issues="gold_matches_two_options duplicate_options"),
        ],
    ),
    *(
        Fixture(
            f"vlm4d_{part}",
            {f"{part}_mc.json": rows(
                "id video question_type question choices answer",
                ("validation_3", f"https://huggingface.co/datasets/owner/VLM4D/resolve/main/videos_{part}/a%20b.mp4",
                 "multiple-choice", "How many turns?", {"A": 1, "B": 2, "C": 3, "D": 0}, 1),
                ("validation_633", f"https://huggingface.co/datasets/owner/VLM4D/resolve/main/videos_{part}/c.mp4",
                 "multiple-choice", "Which way?", {"A": "left", "B": "left", "C": "up", "D": "down"}, "left"),
            )},
            [
                Want("How many turns?", "1 | 2 | 3 | 0", "1", f"owner/VLM4D::::videos_{part}/a b.mp4"),
                Want("Which way?", "left | left | up | down", None, f"owner/VLM4D::::videos_{part}/c.mp4",
                     issues="gold_matches_two_options duplicate_options", more={"source_id": "validation_633"}),
            ],
        )
        for part in ("real", "synthetic")
    ),
    Fixture(
        "hlv1k_mc",
        {"dataset.zip": {
            "dataset/vid1.json": [
                row(HLV, 0, "frame", "mcqa", "What is seen at 01:02:03?", ["A. a cup", "B. a hat",
                    "C. None of the above",
                    "D. a key"], "A"),
                row(HLV, 1, "frame", "oeqa", "Describe it.", [], "A red cup."),
            ],
            "__MACOSX/dataset/._vid1.json": b"\x00\x05\x16\x07junk",
            "dataset/vid2.json": [row(HLV, 0, "long", "mcqa", "Who leaves?", ["A. Ann", "B. Bob", "C. Cy", "D. Di"],
            "B")],
        }},
        [
            Want("What is seen at 01:02:03?", "a cup | a hat | None of the above | a key", "a cup",
                 "Vincent-ZHQ/HLV-1K::::vid1.mp4", issues="time_in_question option_about_options",
                 more={"source_id": "vid1_0", "category": "frame"}),
            Want("Describe it.", "", None, "Vincent-ZHQ/HLV-1K::::vid1.mp4", issues="open_ended"),
            Want("Who leaves?", "Ann | Bob | Cy | Di", "Bob", "Vincent-ZHQ/HLV-1K::::vid2.mp4",
                 more={"source_id": "vid2_0"}),
        ],
    ),
    Fixture(
        "haven",
        {"test_data.json": [
            haven(1192, "Where are the petals? A. Stick. B. Arm. C. Canvas.", "B", "Prior", "Object", "Multiple-choice",
                  "1:40", "1:55"),
            haven(1191, "Did she not fall?", "no", "Prior", "Event", "Binary-choice", "1:30", "1:34"),
            haven(547, "What does he do?\nA. He runs.     B. He sits.\nC. He eats.", "B", "Prior", "Event",
                  "Multiple-choice", "0:01", "0:04"),
        ]},
        [
            Want("Where are the petals?", "Stick. | Arm. | Canvas.", "Arm.", "Hongcheng-Gao/HAVEN::::ActivityNet0145",
                 more={"group": "group0145", "category": "Object"}),
            Want("Did she not fall?", "", None, "Hongcheng-Gao/HAVEN::::ActivityNet0145", issues="open_ended"),
            Want("What does he do?", "He runs. | He sits. | He eats.", "He sits.",
                "Hongcheng-Gao/HAVEN::::ActivityNet0145",
                 more={"source_id": "547"}),
        ],
    ),
    Fixture(
        "videohallucer_pairs",
        {
            "semantic_detail.json": [pair("x", "1.mp4", "Is it a cat?", "2.mp4", "Is it a dog?")],
            "temporal.json": [pair("y", "3.mp4", "Is it longer?", "3.mp4", "Is it shorter?")],
        },
        [
            Want("Is it a cat?", "yes | no", "yes", "patrick-tssn/VideoHallucer::::1.mp4",
                 more={"group": "semantic_detail: 1.mp4 Is it a cat?", "source_id": "semantic_detail_0"}),
            Want("Is it a dog?", "yes | no", "no", "patrick-tssn/VideoHallucer::::2.mp4",
                 more={"group": "semantic_detail: 1.mp4 Is it a cat?", "source_id": "semantic_detail_1"}),
            Want("Is it longer?", "yes | no", "yes", "patrick-tssn/VideoHallucer::::3.mp4",
                 more={"group": "temporal: 3.mp4 Is it longer?"}),
            Want("Is it shorter?", "yes | no", "no", "patrick-tssn/VideoHallucer::::3.mp4",
                 more={"group": "temporal: 3.mp4 Is it longer?", "category": "temporal"}),
        ],
    ),
]
