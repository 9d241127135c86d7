"""Specimens of surveyed benchmarks: SUTD-TrafficQA to PororoQA. Invented content in the shape of the real files."""
# fmt: off

from .fixtures import Fixture, Want, row, rows

HD = "inputs question choices correct_idx"
PROMPT = """<|im_start|>system
You help.<|im_end|>
<|im_start|>user
<image>
{}
Answer with the option's letter from the given choices directly.<|im_end|>
<|im_start|>assistant
"""
VN = "video_path prompt pred gt task_type try model_id"
TVQA = "q qid answer_idx ts vid_name bbox a0 a1 a2 a3 a4"
CV = "id task_type video_1 video_2 video_3 video_4 question options answer"
OMNI = "question question_type audio_type reasoning_steps answer options correct_option"

FIXTURES = [
    Fixture(
        "sutd_sample",
        {"annotation_sample.jsonl": [
            ["record_id", "vid_id", "vid_filename", "perspective", "q_body", "q_type", "option0", "option1", "option2",
             "option3", "answer"],
            [11, 20, "b_1.mp4", 1, "How is the car?", "D", "Good", "", "A few scratches", "Broken", 3],
            [12, 21, "b_2.mp4", 3, "Did it stop?", "U", "Yes", "No", "", "", 0],
            [13, 22, "b_3.mp4", 3, "Why?", "U", "Rain", "Ice", "Speed", "", 4],
        ]},
        [
            Want("How is the car?", "Good | A few scratches | Broken", "Broken", "sutdcv/SUTD-TrafficQA::::b_1.mp4",
                 issues="empty_option", more={"source_id": "11", "category": "D"}),
            Want("Did it stop?", "Yes | No", "Yes", "sutdcv/SUTD-TrafficQA::::b_2.mp4"),
            Want("Why?", "Rain | Ice | Speed", None, "sutdcv/SUTD-TrafficQA::::b_3.mp4", issues="gold_out_of_range"),
        ],
    ),
    Fixture(
        "tvqa_plus_val",
        {"tvqa_plus_val.json": [
            row(TVQA, "What does Ann hold ?", 7, "1", [53.96, 62.02], "s03e12_clip_00", {"1": [{"label": "cup"}]},
                "A hat .", "A cup .", "A key .", "A bag .", "A pen ."),
            row(TVQA, "Who left ?", 8, "0", [1.5, 2.0], "s03e12_clip_01", {}, "Ann", "Bob", "Cy", "Di", "Ed"),
        ]},
        [
            Want("What does Ann hold ?", "A hat . | A cup . | A key . | A bag . | A pen .", "A cup .",
                 "jayleicn/TVQA::::s03e12_clip_00", issues="frames_not_video", more={"source_id": "7"}),
            Want("Who left ?", "Ann | Bob | Cy | Di | Ed", "Ann", "jayleicn/TVQA::::s03e12_clip_01",
                 issues="frames_not_video"),
        ],
    ),
    Fixture(
        "tvqa_test_public",
        {"tvqa_test_public.jsonl": rows(
            "a0 a1 a2 a3 a4 q qid show_name ts vid_name",
            ("flu", "gout", "rash", "cold", "pox", "What did Ann say it was?", 9, "House M.D.", "0-7.57",
            "house_clip_02"),
            ("a", "cup", "hat", "key", "pen", "What is on the desk?", 10, "Friends", "13.2-59.0", "friends_clip_05"),
        )},
        [
            Want("What did Ann say it was?", "flu | gout | rash | cold | pox", None, "jayleicn/TVQA::::house_clip_02",
                 issues="hidden_gold frames_not_video speech_in_question", more={"category": "House M.D."}),
            Want("What is on the desk?", "a | cup | hat | key | pen", None, "jayleicn/TVQA::::friends_clip_05",
                 issues="hidden_gold frames_not_video letter_like_option"),
        ],
    ),
    Fixture(
        "vnbench_results",
        {"llava-result.jsonl": [
            row(VN, "./VNBench/v_1.mp4", PROMPT.format("What is the order?\nA. cat, dog\nB. dog, cat"), "A", "B",
                "ord", 0, "m"),
            row(VN, "./VNBench/v_1.mp4", PROMPT.format("What is the order?\nA. dog, cat\nB. cat, dog"), "A", "A",
                "ord", 1, "m"),
        ]},
        [
            Want("What is the order?", "cat, dog | dog, cat", "dog, cat", "joez17/VideoNIAH::::./VNBench/v_1.mp4",
                 more={"source_id": "./VNBench/v_1.mp4_0", "group": "./VNBench/v_1.mp4"}),
            Want("What is the order?", "dog, cat | cat, dog", "dog, cat", "joez17/VideoNIAH::::./VNBench/v_1.mp4",
                 more={"source_id": "./VNBench/v_1.mp4_1", "group": "./VNBench/v_1.mp4", "category": "ord"}),
        ],
    ),
    Fixture(
        "how2qa_val",
        {"how2QA_val_release.csv": rows(
            "vid ts w0 w1 w2 question correct",
            ("KKKKKKKKKKK", "[7.2:18.0]", "10", "12", "16", "how many spoons, now?", "1"),
            ("LLLLLLLLLLL", "[134.15:181.52]", "White", "Grey", "Red", "What colour is the sheet?", "Red"),
        )},
        [
            Want("how many spoons, now?", "10 | 12 | 16 | 1", "1", "ych133/How2R-and-How2QA::::KKKKKKKKKKK.mp4", (7.2,
                18),
                 more={"file_gold": 3, "source_id": "how2QA_val_release_0"}),
            Want("What colour is the sheet?", "White | Grey | Red | Red", "Red",
                 "ych133/How2R-and-How2QA::::LLLLLLLLLLL.mp4", (134.15, 181.52), "duplicate_options duplicate_gold",
                 {"file_gold": 3}),
        ],
    ),
    Fixture(
        "vlep_dev",
        {"vlep_dev_release.jsonl": rows(
            "example_id vid_name ts events answer split",
            (7, "friends_s01", [4.5, 9.25], ["Ann sits down.", "Ann runs off."], 1, "dev"),
            (8, "friends_s02", [1, 3], ["Bob waves.", "Bob waves."], 0, "dev"),
        )},
        [
            Want("Which of these two events is more likely to happen next?", "Ann sits down. | Ann runs off.",
                 "Ann runs off.", "jayleicn/VideoLanguageFuturePred::::friends_s01", (4.5, 9.25),
                 more={"source_id": "7"}),
            Want("Which of these two events is more likely to happen next?", "Bob waves. | Bob waves.", "Bob waves.",
                 "jayleicn/VideoLanguageFuturePred::::friends_s02", (1, 3), "duplicate_options duplicate_gold"),
        ],
    ),
    Fixture(
        "vitatecs",
        {
            "Direction.jsonl": rows("src_dataset video_name caption counterfactual aspect",
                                    ("VATEX", "v_1", "A boy goes up.", "A boy goes down.", "Direction"),
                                    ("MSRVTT", "v_1", "A cat comes in.", "A cat goes out.", "Direction")),
            "Type.jsonl": rows("src_dataset video_name caption counterfactual aspect",
                               ("VATEX", "v_2", "A girl sings.", "A girl eats.", "Type")),
        },
        [
            Want("Which of these two captions describes the video?", "A boy goes up. | A boy goes down.",
                "A boy goes up.",
                 "lscpku/VITATECS::::VATEX/v_1", more={"source_id": "Direction_0", "file_gold": 0}),
            Want("Which of these two captions describes the video?", "A cat comes in. | A cat goes out.",
                "A cat comes in.",
                 "lscpku/VITATECS::::MSRVTT/v_1", more={"source_id": "Direction_1"}),
            Want("Which of these two captions describes the video?", "A girl sings. | A girl eats.", "A girl sings.",
                 "lscpku/VITATECS::::VATEX/v_2", more={"source_id": "Type_0", "category": "Type"}),
        ],
    ),
    Fixture(
        "vilma_change_state",
        {"change-state-inverse.json": {
            "change-state-inverse-0001": row(
                "youtube_id video_file start_time end_time time_unit original_sentence change_of_state caption foils "
                "class classes_foil proficiency mturk", "MMMMMMMMMMM", None, 90, 95.5, "sec", "wrap the dough",
                {"verb": "wrap"},
                "First it is bare. At the end it is wrapped.", ["First it is wrapped. At the end it is bare."], "wrap",
                ["unwrap"], {"caption": "Someone wraps it."}, {"foil": 1, "caption": 2}),
        }},
        [
            Want("Which of these captions describes the video?", "First it is bare. At the end it is wrapped. | "
                 "First it is wrapped. At the end it is bare.", "First it is bare. At the end it is wrapped.",
                 "ilkerkesen/ViLMA::::MMMMMMMMMMM.mp4", (90, 95.5),
                 more={"source_id": "change-state-inverse-0001", "file_gold": 0}),
        ],
    ),
    Fixture(
        "hd_epic_vqa",
        {
            "fine_grained_how_recognition.json": {
                "how_0": row(HD, {"video 1": {"id": "P03-1", "start_time": "00:12:30.600", "end_time": "00:12:32.320"}},
                             "How is <open packaging> done?", ["by hand", "by knife"], 1),
                "how_1": row(HD, {"video 1": {"id": "P03-1", "start_time": "00:14:00", "end_time": "00:14:02.5"}},
                             "How is <open packaging> done?", ["by hand", "by knife"], 0),
            },
            "ingredient_ingredients_order.json": {
                "order_0": row(HD, {"video 1": {"id": "P08-1"}, "video 2": {"id": "P08-2"}},
                               "What was added after <TIME 00:00:05.1 video 1>?", [["salt", "oil"], ["oil", "salt"]],
                               0),
            },
        },
        [
            Want("How is <open packaging> done?", "by hand | by knife", "by knife",
                 "hd-epic/hd-epic-annotations::::P03-1", (750.6, 752.32),
                 more={"source_id": "how_0", "category": "fine_grained_how_recognition"}),
            Want("How is <open packaging> done?", "by hand | by knife", "by hand",
                "hd-epic/hd-epic-annotations::::P03-1",
                 (840, 842.5)),
            Want("What was added after <TIME 00:00:05.1 video 1>?", '["salt", "oil"] | ["oil", "salt"]',
                '["salt", "oil"]',
                 "hd-epic/hd-epic-annotations::::P08-1|P08-2",
                 issues="several_videos non_string_option time_in_question", more={"source_id": "order_0"}),
        ],
    ),
    Fixture(
        "cvbench_crossvideo",
        {"CVBench.json": [
            row(CV, 1, "Counting", "1_1.mp4", "1_2.mp4", None, None, "How many balls in all?",
                ["A. 2", "B. 3", "C. 4", "D. 5"], "C"),
            row(CV, 2, "Verification", "2_1.mp4", "2_2.mp4", "2_3.mp4", "2_4.mp4", "Is it one man?", ["A. Yes",
                "B. No"],
                "Yes "),
            row(CV, 996, "Order", "3_1.mp4", "3_2.mp4", None, None, "Which is first?",
                ["A. one, B. two, C. three, D. four"],
                "B"),
        ]},
        [
            Want("How many balls in all?", "2 | 3 | 4 | 5", "4", "Hokhim2/CVBench::::1_1.mp4|1_2.mp4",
                 issues="several_videos"),
            Want("Is it one man?", "Yes | No", "Yes", "Hokhim2/CVBench::::2_1.mp4|2_2.mp4|2_3.mp4|2_4.mp4",
                 issues="several_videos"),
            Want("Which is first?", "one, B. two, C. three, D. four", None, "Hokhim2/CVBench::::3_1.mp4|3_2.mp4",
                 issues="several_videos options_glued single_option gold_out_of_range"),
        ],
    ),
    Fixture(
        "omnivideobench_example",
        {"data.json": [{"video": "video_10", "video_type": "Vlog", "duration": "03:28", "questions": [
            row(OMNI, "Which stories are meant?", "reference", "Speech", [{"evidence": "at 1:42"}], "Old Stories.",
                ["A.New stories", "B.Old  stories", "C.Jokes", "D.Songs"], "B"),
            row(OMNI, "Which letter is shown?", "reference", "Speech", [], "C.", ["A.", "B.", "C.", "D."], "C"),
            row(OMNI, "How many are there?", "counting", "Speech", [], "3", ["A.2", "B.3", "C.4", "D.5"], "C"),
        ]}]},
        [
            Want("Which stories are meant?", "New stories | Old  stories | Jokes | Songs", "Old  stories",
                 "NJU-LINK/OmniVideoBench::::video_10.mp4", more={"duration": 208.0, "source_id": "data_0"}),
            Want("Which letter is shown?", "A. | B. | C. | D.", "C.", "NJU-LINK/OmniVideoBench::::video_10.mp4",
                 issues="letter_like_option"),
            Want("How many are there?", "2 | 3 | 4 | 5", "4", "NJU-LINK/OmniVideoBench::::video_10.mp4",
                 issues="index_text_contradict", more={"category": "counting"}),
        ],
    ),
    Fixture(
        "daily_omni",
        {"qa.json": rows(
            "Question Choice Answer video_id Type content_parent_category content_fine_category video_category "
            "video_duration",
            ("What is the order?", ["A. dog \u2192 cat", "B. cat -> dog", "C. both", "D. cow"], "A", "NNNNNNNNNNN",
             "Event Sequence", "x", "y", "z", "30s"),
            ("Why?", ["A. rain", "B. ice", "C. heat", "D. wind"], "D", "OOOOOOOOOOO", "Reasoning", "x", "y", "z",
            "60s"),
        )},
        [
            Want("What is the order?", "dog \u2192 cat | cat -> dog | both | cow", "dog \u2192 cat",
                 "Lliar-liar/Daily-Omni::::NNNNNNNNNNN.mp4", issues="option_about_options",
                 more={"duration": 30.0, "source_id": "qa_0"}),
            Want("Why?", "rain | ice | heat | wind", "wind", "Lliar-liar/Daily-Omni::::OOOOOOOOOOO.mp4"),
        ],
    ),
    Fixture(
        "pororoqa",
        {"qa.json": {"PororoQA": rows(
            "qid question answer0 answer1 answer2 answer3 answer4 correct_idx video_name supporting_num",
            (1, "who waits", "poby", "harry", "loopy", "eddy", "crong", 1, "Pororo_Rescue_ep1,", "38"),
            (2, "who waits", "poby", "harry", "loopy", "eddy", "crong", 1, "Pororo_Rescue_ep1,", "38"),
            (3, "who waits", "poby", "harry", "loopy", "eddy", "crong", 0, "Pororo_Rescue_ep1,", "39"),
        )}},
        [
            Want("who waits", "poby | harry | loopy | eddy | crong", "harry",
                "Kyung-Min/PororoQA::::Pororo_Rescue_ep1"),
            Want("who waits", "poby | harry | loopy | eddy | crong", "harry", "Kyung-Min/PororoQA::::Pororo_Rescue_ep1",
                 issues="repeated_item"),
            Want("who waits", "poby | harry | loopy | eddy | crong", "poby", "Kyung-Min/PororoQA::::Pororo_Rescue_ep1",
                 issues="other_gold", more={"source_id": "3"}),
        ],
    ),
]
