"""Specimens of surveyed benchmarks: NExT-QA to ImplicitQA. Invented content in the shape of the real files."""
# fmt: off

from .fixtures import Fixture, Want, row

NEXT = "video frame_count width height question answer qid type a0 a1 a2 a3 a4"
NEXT_GQA = NEXT.replace("video", "video_id")
FIVE = ("run off", "sit down", "wave", "eat cake", "fall")

FIXTURES = [
    *(
        Fixture(
            name,
            {f"{name[7:]}.csv": [
                row(NEXT, "2401", 720, 320, 240, "what does the dog do, then", 2, 0, "TN", *FIVE),
                row(NEXT, "2402", 720, 320, 240, "why is the boy happy", "4", 0, "CW", "a \"gift\"", "sun", "sun", "x",
                    "y"),
            ]},
            [
                Want("what does the dog do, then", " | ".join(FIVE), "wave", "doc-doc/NExT-QA::::2401.mp4",
                     more={"source_id": "2401_0", "category": "TN", "item_id": f"{name}_0"}),
                Want("why is the boy happy", 'a "gift" | sun | sun | x | y', "y", "doc-doc/NExT-QA::::2402.mp4",
                     issues="duplicate_options", more={"source_id": "2402_0"}),
            ],
        )
        for name in ("nextqa_val", "nextqa_test")
    ),
    Fixture(
        "nextgqa_test",
        {"test.csv": [
            row(NEXT_GQA, "31", 9, 3, 2, "how does the girl feel", "calm", 4, "DO", "sad", "calm", "cold", "shy",
                "old"),
            row(NEXT_GQA, "31", 9, 3, 2, "how does the boy feel", "happy", 5, "DO", "sad", "shy", "old", "happy",
                "happy"),
        ]},
        [
            Want("how does the girl feel", "sad | calm | cold | shy | old", "calm", "doc-doc/NExT-QA::::31.mp4"),
            Want("how does the boy feel", "sad | shy | old | happy | happy", None, "doc-doc/NExT-QA::::31.mp4",
                 issues="gold_matches_two_options duplicate_options"),
        ],
    ),
    Fixture(
        "intentqa_test",
        {"test.csv": [
            row(f"{NEXT_GQA} action lemma lemma_id", "41", 9, 3, 2, "why did he bend", 3, 7, "CH",
                "rest", "look", "hide", "pick up a coin", "pray", "pick up", "pick", 12),
            row(f"{NEXT_GQA} action lemma lemma_id", "42", 9, 3, 2, "why did she nod", 0, 7, "CW",
                "agree", "sleep", "hide", "dance", "pray", "nod", "nod", 13),
        ]},
        [
            Want("why did he bend", "rest | look | hide | pick up a coin | pray", "pick up a coin",
                 "doc-doc/NExT-QA::::41.mp4", more={"source_id": "41_7"}),
            Want("why did she nod", "agree | sleep | hide | dance | pray", "agree", "doc-doc/NExT-QA::::42.mp4"),
        ],
    ),
    Fixture(
        "egoschema_subset",
        {"test.parquet": [
            row("question_idx question video_idx option answer", "7", "What is C doing overall?", "aa-11",
                ["A. C cooks", "B. C cleans", "C. C paints", "D. C reads", "E. C digs"], "3"),
            row("question_idx question video_idx option answer", "8", "Why does C stop?", "aa-12",
                ["A. rain", "B. noise", "C. hunger", "D. rest", "E. a call"], "0"),
        ]},
        [
            Want("What is C doing overall?", "C cooks | C cleans | C paints | C reads | C digs", "C reads",
                 "egoschema/EgoSchema::::aa-11.mp4", more={"source_id": "7"}),
            Want("Why does C stop?", "rain | noise | hunger | rest | a call", "rain",
                "egoschema/EgoSchema::::aa-12.mp4"),
        ],
    ),
    Fixture(
        "star_val",
        {"STAR.csv": ",video_name,question,answer_number,question_id,question_type,a0,a1,a2,a3,answer\n"
                     "0,6H7_1.5_19.6,What was put down?,1,Interaction_T1_1,Interaction_T1,A box.,A cup.,A bag.,A hat.,"
                     "A cup.\n"
                     "1,L9A_0_4.1,What is next?,0,Prediction_T2_3,Prediction_T2,Sit.,Run.,Eat.,Go.,Run.\n"},
        [
            Want("What was put down?", "A box. | A cup. | A bag. | A hat.", "A cup.", "STAR::::6H7.mp4", (1.5, 19.6),
                 more={"source_id": "Interaction_T1_1", "category": "Interaction_T1"}),
            Want("What is next?", "Sit. | Run. | Eat. | Go.", "Sit.", "STAR::::L9A.mp4", (0, 4.1),
                "index_text_contradict"),
        ],
    ),
    Fixture(
        "mvbench",
        {
            "action_localization.json": [
                row("video question candidates answer start end accurate_start accurate_end", "v1.mp4",
                    "When is the jump?",
                    ["At the start.", "At the end."], "At the end.", 2.5, 31.0, 28.1, 30.4),
            ],
            "counterfactual_inference.json": [
                row("video question candidates answer", "video_10.mp4", "What would hit the cube?", ["The ball."],
                    "The ball."),
                row("video question candidates answer", "video_10.mp4", "Would the ball stop?", ["Yes", "no",
                    "not sure"], "No"),
            ],
            "episodic_reasoning.json": [
                row("video question candidates answer subtitle show_name start end fps", "castle_s1", "Who left?",
                    ["Ann", "Bob", "Cy", "Di", "Ed"], "Ed", "Ann: hi", "Castle", 0, 60.5, 3),
            ],
        },
        [
            Want("When is the jump?", "At the start. | At the end.", "At the end.", "OpenGVLab/MVBench::::v1.mp4",
                (2.5, 31),
                 more={"item_id": "mvbench_action_localization_0", "category": "action_localization"}),
            Want("What would hit the cube?", "The ball.", "The ball.", "OpenGVLab/MVBench::::video_10.mp4",
                 issues="single_option", more={"item_id": "mvbench_counterfactual_inference_0", "format": "open"}),
            Want("Would the ball stop?", "Yes | no | not sure", "no", "OpenGVLab/MVBench::::video_10.mp4",
                 issues="abstention_option", more={"item_id": "mvbench_counterfactual_inference_1"}),
            Want("Who left?", "Ann | Bob | Cy | Di | Ed", "Ed", "OpenGVLab/MVBench::::castle_s1", (0, 60.5),
                 "frames_not_video", {"item_id": "mvbench_episodic_reasoning_0"}),
        ],
    ),
    Fixture(
        "tvbench",
        {
            "action_sequence.json": [
                row("video question answer candidates question_id start end", "s.mp4", "What came first?", "The cup.",
                    ["The cup.", "The hat."], "Sequence_1", 4, 19.2),
            ],
            "object_count.json": [
                row("video question answer candidates is_seq question_id", "video_10.mp4", "How many cubes?", "2",
                    ["0", "1", "2", "3"], True, 5),
            ],
        },
        [
            Want("What came first?", "The cup. | The hat.", "The cup.", "FunAILab/TVBench::::s.mp4", (4, 19.2),
                 more={"source_id": "action_sequence_0", "category": "action_sequence"}),
            Want("How many cubes?", "0 | 1 | 2 | 3", "2", "FunAILab/TVBench::::video_10.mp4",
                 more={"source_id": "object_count_0"}),
        ],
    ),
    Fixture(
        "videomme",
        {"test.parquet": [
            row("video_id duration domain sub_category url videoID question_id task_type question options answer",
                "001",
                "short", "Knowledge", "Biology", "https://www.youtube.com/watch?v=AAAAAAAAAAA", "AAAAAAAAAAA", "001-3",
                "Counting", "Who found the germ?",
                ["A. L. Pasteur and R. Koch.", "B. M. Curie.", "C. I. Newton.", "D. No one."], "A"),
            row("video_id duration domain sub_category url videoID question_id task_type question options answer",
                "002",
                "long", "Film", "Animation", "https://www.youtube.com/watch?v=BBBBBBBBBBB", "BBBBBBBBBBB", "002-1",
                "OCR", "Which letter is on the door?", ["A. A.", "B. F.", "C. B.", "D. K."], "C"),
            row("video_id duration domain sub_category url videoID question_id task_type question options answer",
                "003",
                "long", "Film", "Animation", "https://www.youtube.com/watch?v=CCCCCCCCCCC", "CCCCCCCCCCC", "003-1",
                "OCR", "How many are there?", ["A. 3.", "B. 4.", "C. 3.", "D. 5."], "C"),
        ]},
        [
            Want("Who found the germ?", "L. Pasteur and R. Koch. | M. Curie. | I. Newton. | No one.",
                "L. Pasteur and R. Koch.",
                 "lmms-lab/Video-MME::::AAAAAAAAAAA.mp4", more={"source_id": "001-3", "duration": None}),
            Want("Which letter is on the door?", "A. | F. | B. | K.", "B.", "lmms-lab/Video-MME::::BBBBBBBBBBB.mp4",
                 issues="letter_like_option"),
            Want("How many are there?", "3. | 4. | 3. | 5.", "3.", "lmms-lab/Video-MME::::CCCCCCCCCCC.mp4",
                 issues="duplicate_options duplicate_gold"),
        ],
    ),
    Fixture(
        "lvbench",
        {"video_info.meta.jsonl": [
            {"key": "DDDDDDDDDDD", "type": "cartoon", "video_info": {"duration_minutes": 61.5, "fps": 30}, "qa": [
                row("uid question answer question_type time_reference", "41",
                    "What falls?\n(A) a tree (old)\n(B) a\u00a0rock\n"
                    "(C) rain\n(D) snow", "B", ["event understanding", "reasoning"], "00:15-00:19"),
                row("uid question answer question_type time_reference", "42",
                    "What year is it at 1:02?\n(A) 1636\n(B) 1366\n"
                    "(C) 1363\n(D) 1633", "D", ["key information retrieval"], "01:02-01:09"),
            ]},
        ]},
        [
            Want("What falls?", "a tree (old) | a\u00a0rock | rain | snow", "a\u00a0rock",
                "zai-org/LVBench::::DDDDDDDDDDD.mp4",
                 more={"item_id": "lvbench_41", "category": "event understanding, reasoning", "duration": 3690.0}),
            Want("What year is it at 1:02?", "1636 | 1366 | 1363 | 1633", "1633", "zai-org/LVBench::::DDDDDDDDDDD.mp4",
                 issues="time_in_question", more={"item_id": "lvbench_42", "source_id": "42"}),
        ],
    ),
    Fixture(
        "longvideobench_val",
        {"lvb_val.json": [
            row("video_id question question_wo_referring_query candidates correct_choice position topic_category "
                "question_category id video_path subtitle_path duration_group duration", "86a",
                "In a kitchen, who sits?",
                "Who sits?", ["Ann", "Bob", "Cy", "Di", "Ed"], 3, [854], "KA", "S2E", "86a_0", "86a.mp4",
                "86a_en.json", 15, 8.5),
            row("video_id question question_wo_referring_query candidates correct_choice position topic_category "
                "question_category id video_path subtitle_path duration_group duration", "86b", "What comes next?",
                "What?", ["a cat", "a dog", "a cow"], -1, [1], "KA", "E3E", "86b_0", "86b.mp4", "86b_en.json", 15, 9),
        ]},
        [
            Want("In a kitchen, who sits?", "Ann | Bob | Cy | Di | Ed", "Di",
                "longvideobench/LongVideoBench::::86a.mp4",
                 more={"source_id": "86a_0", "subtitles": "86a_en.json", "duration": 8.5}),
            Want("What comes next?", "a cat | a dog | a cow", None, "longvideobench/LongVideoBench::::86b.mp4",
                 issues="hidden_gold"),
        ],
    ),
    Fixture(
        "longvideobench_val_columns",
        {"validation.parquet": [
            row("video_id id video_path subtitle_path correct_choice question option0 option1 option2 option3 option4 "
                "duration question_category", "86a", "86a_0", "86a.mp4", "86a_en.json", 3, "Who sits?",
                "Ann", "Bob", "Cy", "Di", "Ed", 8.5, "S2E"),
            row("video_id id video_path subtitle_path correct_choice question option0 option1 option2 option3 option4 "
                "duration question_category", "86b", "86b_0", "86b.mp4", "86b_en.json", 2, "Who runs?",
                "Ann", "Bob", "Cy", "N/A", "N/A", 8.5, "S2E"),
        ]},
        [
            Want("Who sits?", "Ann | Bob | Cy | Di | Ed", "Di", "longvideobench/LongVideoBench::::86a.mp4"),
            Want("Who runs?", "Ann | Bob | Cy", "Cy", "longvideobench/LongVideoBench::::86b.mp4"),
        ],
    ),
    Fixture(
        "mlvu_dev",
        {
            "1_plotQA.json": [
                row("video duration question candidates answer question_type", "movie101.mp4", 480,
                    "How many guests come?",
                    ["Two", "Three", "Three", "Four"], "Three", "plotQA"),
                row("video duration question candidates answer question_type", "movie102.mp4", 480, "", ["", "", "",
                    ""], "",
                    "plotQA"),
            ],
            "2_needle.json": [
                row("video duration question candidates answer question_type", "n4.mp4", 467.98,
                    "What colour is the cup?",
                    ["red", "blue", "pink", "grey"], "green", "findNeedle"),
            ],
            "9_summary.json": [
                row("video duration question answer question_type scoring_points", "s1.mp4", 321.5,
                    "Summarise the video.",
                    "A man walks.", "summary", ["a man", "walks"]),
            ],
        },
        [
            Want("How many guests come?", "Two | Three | Three | Four", None, "JUNJIE99/MLVU::::movie101.mp4",
                 issues="gold_matches_two_options duplicate_options", more={"duration": 480.0}),
            Want("", "", None, "JUNJIE99/MLVU::::movie102.mp4", issues="empty_question no_options hidden_gold"),
            Want("What colour is the cup?", "red | blue | pink | grey", None, "JUNJIE99/MLVU::::n4.mp4",
                 issues="gold_not_among_options"),
            Want("Summarise the video.", "", None, "JUNJIE99/MLVU::::s1.mp4",
                issues="no_options",
                 more={"source_id": "9_summary_0", "format": "open"}),
        ],
    ),
    Fixture(
        "mlvu_test",
        {"test_mcq_gt.json": [
            row("video duration question candidates answer question_type question_id", "test_count_42.mp4", 453.2,
                "How many javelins are thrown?", [5, 6, 3, 0, 4, 2], 6, "count", "AC_58"),
            row("video duration question candidates answer question_type question_id", "test_ego_1.mp4", 60.0,
                "Where is the pan?", ["sink", "shelf", "oven", "table", "box", "bag"], "oven", "ego", "ER_1"),
        ]},
        [
            Want("How many javelins are thrown?", "5 | 6 | 3 | 0 | 4 | 2", "6", "JUNJIE99/MLVU::::test_count_42.mp4",
                 more={"source_id": "AC_58"}),
            Want("Where is the pan?", "sink | shelf | oven | table | box | bag", "oven",
                "JUNJIE99/MLVU::::test_ego_1.mp4"),
        ],
    ),
    Fixture(
        "vsibench",
        {"test.jsonl": [
            row("id dataset scene_name question_type question ground_truth options", 0, "arkitscenes", "41069025",
                "object_counting", "How many chairs are in this room?", "4", None),
            row("id dataset scene_name question_type question ground_truth options", 9, "scannet", "scene0001_00",
                "object_rel_distance", "Which of these (sofa, bed, lamp) is closest to the door?", "C",
                ["A. sofa", "B. bed", "C. lamp"]),
        ]},
        [
            Want("How many chairs are in this room?", "", None, "nyu-visionx/VSI-Bench::::arkitscenes/41069025.mp4",
                 issues="open_ended", more={"format": "open"}),
            Want("Which of these (sofa, bed, lamp) is closest to the door?", "sofa | bed | lamp", "lamp",
                 "nyu-visionx/VSI-Bench::::scannet/scene0001_00.mp4", more={"source_id": "9"}),
        ],
    ),
    Fixture(
        "video_holmes",
        {"test_Video-Holmes.json": [
            {"video ID": "EEEEEEEEEEE", "Question ID": 1, "Question Type": "TA", "Question": "What is the order?",
             "Options": {"A": "①②③", "B": "②①③", "C": "③①②", "D": "①②③", "E": "②③①", "F": "③②①"}, "Answer": "D",
             "Explanation": "First ①, then ②."},
            {"video ID": "EEEEEEEEEEE", "Question ID": 2, "Question Type": "SR", "Question": "Who is he?",
             "Options": {"F": "a guard", "A": "a son", "B": "a thief", "C": "a cook", "D": "a king", "E": "a friend"},
             "Answer": "B", "Explanation": "He steals."},
        ]},
        [
            Want("What is the order?", "①②③ | ②①③ | ③①② | ①②③ | ②③① | ③②①", "①②③",
                 "TencentARC/Video-Holmes::::EEEEEEEEEEE.mp4", issues="duplicate_options duplicate_gold",
                 more={"source_id": "EEEEEEEEEEE_1"}),
            Want("Who is he?", "a son | a thief | a cook | a king | a friend | a guard", "a thief",
                 "TencentARC/Video-Holmes::::EEEEEEEEEEE.mp4", more={"category": "SR"}),
        ],
    ),
    Fixture(
        "vcr_bench",
        {"VCR-Bench.tsv": [
            row("id video video_path duration dimension question answer reasoning", 4, "v1/a", "v1/a.mp4", 90,
                "Spatial Reasoning",
                "Where is the cup?\nA. left\nB. right\nC. behind Please provide a step-by-step solution "
                "to the given question.", "B", "1. **[00:05]** The cup is on the right."),
            row("id video video_path duration dimension question answer reasoning", 5, "v1/b", "v1/b.mp4", 226,
                "Video Temporal grounding",
                "When does the man swim? Please provide a step-by-step solution to the given "
                "question.", "[139, 170]", "He swims from [02:19]."),
        ]},
        [
            Want("Where is the cup?", "left | right | behind", "right", "VLM-Reasoning/VCR-Bench::::v1/a.mp4",
                 more={"duration": 90.0, "category": "Spatial Reasoning"}),
            Want("When does the man swim?", "", None, "VLM-Reasoning/VCR-Bench::::v1/b.mp4",
                 issues="no_options", more={"format": "open"}),
        ],
    ),
    Fixture(
        "rtv_bench",
        {"QA.json": [
            row("video questionID type field start_time end_time question options answer", "a.mp4", "q1", "Perception",
                "x", 0,
                12.0, "Is the cat awake?", {"A": "Yes", "B": "No"}, "A"),
            row("video questionID type field start_time end_time question options answer", "a.mp4", "q2", "Perception",
                "x", 12,
                30.5, "Is the cat awake?", {"A": "Yes", "B": "No"}, "B"),
            row("video questionID type field start_time end_time question options answer", "a.mp4", "q3", "Perception",
                "x", 12,
                30.5, "Is the cat awake?", {"A": "No", "B": "Yes"}, "B"),
            row("video questionID type field start_time end_time question options answer", "a.mp4", "q4", "Reasoning",
                "x", 30,
                41.0, "Why?", {"A": "hunger"}, "A"),
        ]},
        [
            Want("Is the cat awake?", "Yes | No", "Yes", "LJungang/RTV-Bench::::a.mp4", (0, 12),
                more={"source_id": "q1"}),
            Want("Is the cat awake?", "Yes | No", "No", "LJungang/RTV-Bench::::a.mp4", (12, 30.5)),
            Want("Is the cat awake?", "No | Yes", "Yes", "LJungang/RTV-Bench::::a.mp4", (12, 30.5), "other_gold"),
            Want("Why?", "hunger", "hunger", "LJungang/RTV-Bench::::a.mp4", (30, 41), "single_option"),
        ],
    ),
    Fixture(
        "mmr_v",
        {"test.parquet": [
            row("video videoType question options correctAnswer abilityType_L2 abilityType_L3 question_idx",
                "मेरा घर \uff02Home\uff02.mp4", "Film", "What is meant?", ["(A) hope (in spring)", "(B) loss",
                "(C) b) rage",
                "(D) fear", "(E) joy", "(F) envy", "(G) a) peace"], "(G)", "Metaphor", "x", 1),
            row("video videoType question options correctAnswer abilityType_L2 abilityType_L3 question_idx", "Art.mp4",
                "Art",
                "Why does it end?", ["(A) time", "(B) money", "(C) love"], "(H)", "Causal", "x", 268),
        ]},
        [
            Want("What is meant?", "hope (in spring) | loss | b) rage | fear | joy | envy | a) peace", "a) peace",
                 "GaryStack/MMR-V::::मेरा घर \uff02Home\uff02.mp4", more={"source_id": "1"}),
            Want("Why does it end?", "time | money | love", None, "GaryStack/MMR-V::::Art.mp4",
                issues="gold_out_of_range"),
        ],
    ),
    Fixture(
        "minerva",
        {"minerva.json": [
            row("key video_id question answer_choice_0 answer_choice_1 answer_choice_2 answer_choice_3 answer_choice_4 "
                "answer_id answer question_type split category reasoning", "k1", "FFFFFFFFFFF",
                "Which mark is on the box at 01:23?",
                "A.", "B.", "D.", "C.", "E.", 3, "C.", "Reading", "Complex", "Short", "At 01:23 the box shows C."),
            row("key video_id question answer_choice_0 answer_choice_1 answer_choice_2 answer_choice_3 answer_choice_4 "
                "answer_id answer question_type split category reasoning", "k2", "FFFFFFFFFFF", "Who wins?",
                "red", "blue", "green", "grey", "none", 1, "red", "Goal", "Complex", "Short", "Blue scores at 02:00."),
        ]},
        [
            Want("Which mark is on the box at 01:23?", "A. | B. | D. | C. | E.", "C.",
                "google-deepmind/neptune::::FFFFFFFFFFF.mp4",
                 issues="time_in_question letter_like_option prefix_out_of_order", more={"source_id": "k1"}),
            Want("Who wins?", "red | blue | green | grey | none", "blue", "google-deepmind/neptune::::FFFFFFFFFFF.mp4",
                 issues="index_text_contradict"),
        ],
    ),
    Fixture(
        "implicitqa",
        {"ImplicitQA.jsonl": [
            row("video_id video_url question_id question_start_time question_stop_time question_text options "
                "answer_text answer_choice category category_id", "GGGGGGGGGGG_51",
                "https://www.youtube.com/watch?v=GGGGGGGGGGG&t=139s",
                "f6-1", 11.24, 20.428, "How many flames are in this scene?", {"A": "4", "B": "3", "C": "2"}, "3", "B",
                "Inferred Counting", 6),
            row("video_id video_url question_id question_start_time question_stop_time question_text options "
                "answer_text answer_choice category category_id", "GGGGGGGGGGG_51", "https://youtu.be/GGGGGGGGGGG",
                "f6-2", 33.0, 71.5,
                "How many flames are in this scene?", {"A": "4", "B": "3", "C": "2"}, "2", "C", "Inferred Counting", 6),
        ]},
        [
            Want("How many flames are in this scene?", "4 | 3 | 2", "3", "ucf-crcv/ImplicitQA::::GGGGGGGGGGG.mp4",
                 (11.24, 20.428), more={"source_id": "f6-1"}),
            Want("How many flames are in this scene?", "4 | 3 | 2", "2", "ucf-crcv/ImplicitQA::::GGGGGGGGGGG.mp4", (33,
                71.5)),
        ],
    ),
]
