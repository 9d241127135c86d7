"""Specimens of benchmarks on the hub: Perception Test to CLEVRER. Invented content in the shape that readers expect."""
# fmt: off

from collections.abc import Mapping, Sequence
from typing import Any

from .fixtures import Fixture, Want

ABC = ["A. a cup", "B. a hat", "C. a ball"]
BARE = ["a cup", "a hat", "a ball"]
KEPT = "a cup | a hat | a ball"
LETTERS = {"A": "a cup", "B": "a hat", "C": "a ball"}
LINES = "A. a cup\nB. a hat\nC. a ball"


def of(spec: str, file: str, rows: Any, *items: Want, beside: Mapping[str, Any] | None = None) -> Fixture:
    """A specimen of one file."""
    return Fixture(spec, {file: rows}, items, beside or {})


def cup(question: str, video: str, gold: str | None = "a hat", issues: str = "", **more: Any) -> Want:
    """An item about a cup, a hat and a ball."""
    return Want(question, KEPT, gold, video, issues=issues, more=more)


def columns(template: str, *texts: object) -> dict[str, object]:
    """Numbered columns, from 0."""
    return {template.format(number): text for number, text in enumerate(texts)}


def neptune(part: str) -> Fixture:
    five = columns("answer_choice_{}", "a cup", "a hat", "a ball", "a key", "a pen")
    rows = [
        {"key": "k1", "video_path": "downloads/aa.mp4", "question": "What falls?", **five, "answer_id": 1,
         "answer": "a hat", "question_type": "Cause"},
        {"key": "k2", "video_path": "bb.mp4", "question": "What flies?", **five, "answer_id": 4, "answer": "a cup",
         "question_type": "Goal"},
    ]
    kept, repo = f"{KEPT} | a key | a pen", "lmms-eval/GoogleDeepMind-NEPTUNE::::"
    return of(f"neptune_{part}", "test.parquet", rows,
              Want("What falls?", kept, "a hat", f"{repo}aa.mp4", more={"source_id": "k1", "category": "Cause"}),
              Want("What flies?", kept, "a pen", f"{repo}bb.mp4", issues="index_text_contradict"))


def vinoground(part: str) -> Fixture:
    rows = [
        {"idx": f"7_{side}", "video_name": f"videos/7_{side}.mp4", "GT": letter,
         "question": "Which caption fits?\nA. he sits, then eats\nB. he eats, then sits"}
        for side, letter in (("pos", "A"), ("neg", "B"))
    ]
    return of(f"vinoground_{part}", "score.json", rows, *(
        Want("Which caption fits?", "he sits, then eats | he eats, then sits", gold,
             f"HanSolo9682/Vinoground::::videos/7_{side}.mp4", more={"group": "7", "source_id": f"7_{side}"})
        for side, gold in (("pos", "he sits, then eats"), ("neg", "he eats, then sits"))
    ))


def temporalbench(part: str) -> Fixture:
    asked = ("Which caption best describes this video?\nA. He waves with his left hand.\nB. He waves with his right "
             "hand.\nAnswer with the option's letter from the given choices directly.")
    rows = [{"idx": f"v/a.mp4_{n}", "video_name": "v/a.mp4", "question": asked, "GT": gold, "category": "Action Order"}
            for n, gold in enumerate("BA")]
    two = "He waves with his left hand. | He waves with his right hand."
    return of(f"temporalbench_{part}", "qa.json", rows, *(
        Want("Which caption best describes this video?", two, two.split(" | ")[place],
         "microsoft/TemporalBench::::v/a.mp4",
             issues=issues, more={"group": "v/a.mp4", "source_id": f"v/a.mp4_{n}"})
        for n, (place, issues) in enumerate(((1, ""), (0, "other_gold")))
    ))


def mvp(part: str) -> Fixture:
    rows = [{"video_id": f"pair9_{n}", "video_path": f"pt/9{n}.mp4", "question": "Which way does it roll?",
     "source": "pt",
             "candidates": ["left", "right"], "answer": answer} for n, answer in enumerate(("left", "right"))]
    return of(f"mvp_{part}", f"{part}.parquet", rows, *(
        Want("Which way does it roll?", "left | right", gold, f"facebook/minimal_video_pairs::::pt/9{n}.mp4",
             more={"group": "pair9", "category": "pt"}) for n, gold in enumerate(("left", "right"))
    ))


def timescope(spec: str, hub: str) -> Fixture:
    rows = [{"id": n, "input": f"What is shown?\n{LINES}", "answer": letter, "video": f"{n}.mp4", "type": "QA",
             "length": "60"} for n, letter in enumerate("bA")]
    return of(spec, "test.parquet", rows, cup("What is shown?", f"{hub}::::0.mp4", category="QA"),
              cup("What is shown?", f"{hub}::::1.mp4", "a cup"))


def dict_rows(question: str, options: str, answer: str, **more: Sequence[object]) -> list[dict[str, object]]:
    """Two records with a dict of options, the second with two of them: Parquet keeps the third as null."""
    names = list(more)
    two = {letter: text for letter, text in LETTERS.items() if letter != "C"}
    return [
        {question: "What is red?", options: LETTERS, answer: "B", **{name: more[name][0] for name in names}},
        {question: "What is blue?", options: two, answer: "A", **{name: more[name][1] for name in names}},
    ]


def both(first: str, second: str, **more: Any) -> tuple[Want, Want]:
    """The items of `dict_rows`."""
    return cup("What is red?", first, **more), Want("What is blue?", "a cup | a hat", "a cup", second)


FIXTURES = [
    of("perceptiontest_val", "validation.parquet", [
        {"video_name": "video_1", "question_id": "0", "question": "What is red?", "options": BARE, "answer_id": "1",
         "area": "Memory", "reasoning": "Descriptive", "tag": ["t"]},
        {"video_name": "video_1", "question_id": "1", "question": "What is blue?", "options": BARE, "answer_id": "0",
         "area": "Physics", "reasoning": "Predictive", "tag": ["t"]},
    ], cup("What is red?", "lmms-eval/PerceptionTest_Val::::video_1.mp4", source_id="video_1_0", category="Memory"),
       cup("What is blue?", "lmms-eval/PerceptionTest_Val::::video_1.mp4", "a cup")),
    of("perceptiontest_test", "test.parquet", [
        {"video_name": "video_2", "question_id": "0", "question": "What is red?", "options": BARE, "area": "Memory"},
    ], cup("What is red?", "lmms-eval/PerceptionTest::::video_2.mp4", None, "hidden_gold", format="open")),
    *map(neptune, ("full", "mma", "mmh")),
    of("cinepile", "test.parquet", [
        {"question": "Why does he run?", "choices": BARE, "answer_key": "a hat", "answer_key_position": 1,
         "videoID": "clip1", "question_category": "Temporal", "subtitles": "hello", "hard_split": "True"},
        {"question": "Who runs?", "choices": BARE, "answer_key": "a hat", "answer_key_position": 2,
         "videoID": "clip1", "question_category": "Temporal", "subtitles": "hello", "hard_split": "False"},
    ], cup("Why does he run?", "tomg-group-umd/cinepile::::clip1.mp4", category="Temporal", subtitles=""),
       cup("Who runs?", "tomg-group-umd/cinepile::::clip1.mp4", "a ball", "index_text_contradict")),
    of("mmworld", "train.parquet", [
        {"video_id": "x/a.mp4", "question": "What is red?", "discipline": "Game", "answer": "a hat",
         "options": {"a": "a cup", "b": "a hat", "c": "a ball"}, "correct_answer_label": "b"},
        {"video_id": "x/b.mp4", "question": "What is blue?", "discipline": "Game", "answer": "a cup",
         "options": {"a": "a cup", "b": "a hat", "c": "a ball"}, "correct_answer_label": "a"},
    ], cup("What is red?", "MMWorld/MMWorld::::x/a.mp4", category="Game"),
       cup("What is blue?", "MMWorld/MMWorld::::x/b.mp4", "a cup")),
    of("worldsense_lmms", "test.parquet", [
        {"index": n, "question": f"What is {n}?", "candidates": ABC, "answer": letter,
         "video_path": f"./videos/{n}.mp4",
         "subtitle_path": f"./subtitles/{n}.srt", "task_type": "Event Sorting", "task_domain": "Recognition",
         "duration": 31, "audio_class": ["Speech"]} for n, letter in enumerate("BA")
    ], cup("What is 0?", "lmms-lab/worldsense::::./videos/0.mp4", subtitles="./subtitles/0.srt", duration=31.0),
       cup("What is 1?", "lmms-lab/worldsense::::./videos/1.mp4", "a cup", category="Event Sorting")),
    of("worldsense_vlmeval", "WorldSense.tsv", [
        {"index": n, "video": f"v{n}", "video_path": f"./videos/v{n}.mp4", "duration": 9, "candidates": str(ABC),
         "task_type": "Hallucination", "subtitle_path": f"./subtitles/v{n}.srt", "video_caption": "he waves a hat",
         "question": f"What is {n}?", "answer": letter} for n, letter in enumerate("BA")
    ], cup("What is 0?", "honglyhly/WorldSense::::v0.mp4", source_id="0"),
       cup("What is 1?", "honglyhly/WorldSense::::v1.mp4", "a cup")),
    of("videomathqa_mcq", "test.parquet", [
        {"question_id": "q1", "question": "How long is it?", "options": ["A. 1", "B. 2", "C. 3", "D. 4", "E. 5"],
         "answer": "E", "videoID": "m1", "category": "Chart", "length": "short"},
    ], Want("How long is it?", "1 | 2 | 3 | 4 | 5", "5", "MBZUAI/VideoMathQA::::m1.mp4",
            more={"subtitles": "subtitles/m1.srt", "category": "Chart", "duration": None})),
    of("videomathqa_multi_binary", "test.parquet", [
        {"question_id": "q1", "question": "How long is it?", "options": options, "answer": letter, "videoID": "m1",
         "category": "Chart"} for options, letter in ((["A. 1", "B. 5"], "B"), (["A. 5", "B. 2"], "A"))
    ], Want("How long is it?", "1 | 5", "5", "MBZUAI/VideoMathQA::::m1.mp4", more={"group": "q1"}),
       Want("How long is it?", "5 | 2", "5", "MBZUAI/VideoMathQA::::m1.mp4", more={"group": "q1"})),
    of("scivideobench", "test.parquet", [
        {"video_id": "5", "video_duration": 300.0, "question": "What happens at 01:05?", "answer": "J",
         "options": {letter: f"step {letter}" for letter in "JIHGFEDCBA"}, "ground_truth": "J",
         "question_type": "Conceptual", "category": "Biology"},
    ], Want("What happens at 01:05?", " | ".join(f"step {letter}" for letter in "ABCDEFGHIJ"), "step J",
            "groundmore/scivideobench::::jove_5.mp4", issues="time_in_question", more={"duration": 300.0})),
    of("videomme_v2", "test.parquet", [
        {"video_id": "001", "question_id": f"001-{n}", "question": f"What is {n}?", "answer": letter,
         "options": "\n".join(f"{each}. thing {each}" for each in "ABCDEFGH"), "group_type": "logic",
         "group_structure": "[1, 2, 3, 4]", "level": None} for n, letter in enumerate("HA")
    ], *(Want(f"What is {n}?", " | ".join(f"thing {each}" for each in "ABCDEFGH"), f"thing {letter}",
              "MME-Benchmarks/Video-MME-v2::::001.mp4",
              more={"group": "001", "category": "logic", "subtitles": "subtitle/001.jsonl"}) for n,
               letter in enumerate("HA"))),
    of("mmou_test_mini", "test.parquet", dict_rows(
        "question", "options", "correct_option_letter", question_id=["a", "b"], video_id=["v1", "v2"],
        domain=["News", "Film"], video_duration=[60.0, 61.0], start_time=["1", "2"], end_time=["3", "4"]),
       *both("kcz358/MMOU::::test/v1.mp4", "kcz358/MMOU::::test/v2.mp4", duration=60.0, source_id="a")),
    of("mmou_main", "train.parquet", [
        {"question_id": "a", "video_id": "v1", "question": "What is red?", "options": '{"A": "a cup", "B": "a hat"}',
         "domain": "News", "video_duration": 60.0},
    ], Want("What is red?", "a cup | a hat", None, "kcz358/MMOU::::v1.mp4", issues="hidden_gold")),
    of("videoeval_pro", "test.parquet", [
        {"video": "a.mp4", "question": f"What is {n}?", "options": ABC, "answer": letter, "answer_text": "a hat",
         "qa_type": "Local Perception"} for n, letter in enumerate("BA")
    ], cup("What is 0?", "TIGER-Lab/VideoEval-Pro::::a.mp4"),
       cup("What is 1?", "TIGER-Lab/VideoEval-Pro::::a.mp4", "a cup", "index_text_contradict")),
    of("video_tt", "test.parquet", [
        {"video_id": "t1", "question_id": "t1_q", "question": "What is red?", "question_prompt": f"Choose.\n{LINES}",
         "options": str(ABC), "answer": "B", "capability": "Element Counting", "duration": 20},
    ], cup("What is red?", "lmms-eval/video-tt::::t1.mp4", source_id="t1_q", duration=20.0)),
    of("lemonade", "test.csv", [
        {"Clip": "c1", "Start": start, "End": start + 50, "QID": "Q3", "Question": "What is used?",
         "Category": "Object", "Answers": str(BARE), "Correct Answer": letter} for start, letter in ((10, "B"), (90,
          "A"))
    ], cup("What is used?", "amathislab/LEMONADE::::c1_hololens.mp4", source_id="c1_10_60_Q3"),
       cup("What is used?", "amathislab/LEMONADE::::c1_hololens.mp4", "a cup", source_id="c1_90_140_Q3")),
    *map(vinoground, ("text", "video")),
    *map(temporalbench, ("short", "long")),
    *map(mvp, ("mini", "full")),
    of("vstat", "qa.json", {"meta": {"version": 1}, "data": {"cards": [
        {"video_id": "s1", "video_path": "syn/1.mp4", "question": f"Which card is last?\n{LINES}", "choices": BARE,
         "answer": "B", "answer_index": 1, "answer_type": "mcq", "source_task": "cards"},
        {"video_id": "s2", "video_path": "syn/2.mp4", "question": "How many cards?", "answer": "7",
         "answer_type": "numeric", "source_task": "count"},
    ]}}, cup("Which card is last?", "nyu-visionx/vstat::::syn/1.mp4", source_id="s1_cards_0"),
         Want("How many cards?", "", None, "nyu-visionx/vstat::::syn/2.mp4", issues="open_ended")),
    of("perceptioncomp", "test.parquet", [
        {"video_id": "p1", "question": "What is red?", **columns("answer_choice_{}", *BARE, None, None),
         "answer_id": answer,
         "category": "sport", "difficulty": 1} for answer in (1, 3)
    ], cup("What is red?", "hrinnnn/PerceptionComp::::data/p1.mp4", category="sport"),
       cup("What is red?", "hrinnnn/PerceptionComp::::data/p1.mp4", None, "gold_is_filler")),
    of("av_speakerbench", "test.csv", [
        {"question_id": "1", "question": "Who speaks first?", "choices": str(ABC), "answer": "B",
         "audio_visual_path": "clips/1.mp4", "task_id": "order"},
    ], cup("Who speaks first?", "plnguyen2908/AV-SpeakerBench::::clips/1.mp4", issues="speech_in_question",
       category="order")),
    of("osi_bench", "test.parquet", [
        {"question": "Which is nearer?", "options": ["A. tag 1", "B. tag 2"], "answer": "A", "file_name": "o1.mp4",
         "category": "relative_distance", "video_length": 12.5},
        {"question": "How far is it?", "options": None, "answer": "2.4", "file_name": "o1.mp4",
         "category": "absolute_distance", "video_length": 12.5},
    ], Want("Which is nearer?", "tag 1 | tag 2", "tag 1", "HarmlessSR07/OSI-Bench::::o1.mp4", more={"duration": 12.5}),
       Want("How far is it?", "", None, "HarmlessSR07/OSI-Bench::::o1.mp4", issues="open_ended")),
    of("sitebench_video", "test.parquet", [
        {"question": "What is red?", "options": BARE, "answer": "B", "visual": ["site/1.mp4"], "category": "counting",
         "dataset": "MVBench"},
    ], cup("What is red?", "franky-veteran/SITE-Bench::::site/1.mp4", category="counting")),
    of("sis_bench", "test.parquet", dict_rows(
        "question", "options", "answer", question_id=[1, 2], task_type=["landmark_recall", "path_planning"],
        video_name=["a/1.mp4", "a/2.mp4"]),
       *both("choucsan/SIS-Bench::::video/a/1.mp4", "choucsan/SIS-Bench::::video/a/2.mp4", category="landmark_recall")),
    of("vantage_vqa", "test.parquet", [{"q_uid": "cam1.json", "question": "What is red?", "options": ["A: a cup",
     "B: a hat", "C: a ball"]}],
       cup("What is red?", "nvidia/PhysicalAI-VANTAGE-Bench::::data/vqa/videos/cam1.mp4", None, "hidden_gold")),
    of("paibench_u", "test.parquet", dict_rows(
        "question", "index2ans", "answer", video_path=["1.mp4", "2.mp4"], category=["c", "c"], subcategory=["Space",
         "Time"]),
       *both("Jialuo21/PAIBench-U::::videos/1.mp4", "Jialuo21/PAIBench-U::::videos/2.mp4", category="Space")),
    timescope("timescope", "Apollo-LMMs/TimeScope"),
    timescope("longtimescope", "Apollo-LMMs/LongTimeScope2"),
    of("lsdbench", "test.parquet", dict_rows("question", "options", "correct_answer", video_id=["1", "2"]),
       *both("TainU/LSDBench::::1.mp4", "TainU/LSDBench::::2.mp4")),
    of("worldqa_mc", "test.parquet", [
        {"question_idx": n, "video_idx": f"w{n}", "question": f"What is {n}?", "option": ABC, "answer": answer,
         "object_description": "a hat on a shelf"} for n, answer in enumerate(("B. a hat", "A. a hat"))
    ], cup("What is 0?", "lmms-eval/worldqa::::w0.mp4"),
       cup("What is 1?", "lmms-eval/worldqa::::w1.mp4", None, "gold_not_among_options")),
    of("falcon_bench", "test.parquet", [
        {"question_id": "f1", "question": "What is red?", "options": BARE, "gt_option_idx": 1, "gt_answer": "a hat",
         "gt_time_interval": [4, 9], "path": "soccer/1.mkv", "dataset": "soccer", "category": "soccer-TR"},
    ], cup("What is red?", "cplou99/FALCON-Bench::::soccer/1.mkv", category="soccer-TR")),
    of("egotaskqa_mcq", "test.parquet", dict_rows("q", "option", "a", video_path=["1.mp4", "2.mp4"]),
       *both("nv-njb/EgoTaskQA-MCQ::::1.mp4", "nv-njb/EgoTaskQA-MCQ::::2.mp4")),
    of("egoplan_val", "EgoPlan_validation.json", [
        {"sample_id": n, "video_source": "EpicKitchens", "video_id": "P01_13", "task_goal": "tidy up",
         "question": "What should I do next in order to tidy up?", "choice_a": "take cup", "choice_b": "take hat",
         "choice_c": "open door", "choice_d": "close door", "golden_choice_idx": letter, "answer": answer,
         "current_observation_frame": 100 + n, "task_progress_metadata": [{"narration_text": "take hat",
          "stop_frame": 9}]}
        for n, (letter, answer) in enumerate((("B", "take hat"), ("C", "open door")))
    ], *(Want("What should I do next in order to tidy up?", "take cup | take hat | open door | close door", gold,
              "ChenYi99/EgoPlan::::P01_13", more={"source_id": str(n), "category": "EpicKitchens"})
         for n, gold in enumerate(("take hat", "open door")))),
    of("video_holmes_hub", "test_Video-Holmes.json", [
        {"video ID": "h1", "Question ID": 3, "Question Type": "SR", "Question": "What is red?", "Answer": "B",
         "Options": {"B": "a hat", "A": "a cup", "C": "a ball"}, "Explanation": "he waves a hat"},
    ], cup("What is red?", "TencentARC/Video-Holmes::videos.zip::h1.mp4", source_id="h1_3", category="SR")),
    of("longvideo_reason", "test.jsonl", [
        {"problem_id": n, "problem": f"What is shown?\n{LINES}", "data_type": "video", "problem_type": "goal",
         "reasoning": "he waves a hat", "videos": f"longvila_videos/{n}.mp4", "answer": f"<answer>{letter}</answer>"}
        for n, letter in enumerate("BA")
    ], cup("What is shown?", "LongVideo-Reason/longvideo_eval_videos::::0.mp4", category="goal"),
       cup("What is shown?", "LongVideo-Reason/longvideo_eval_videos::::1.mp4", "a cup")),
    of("hourvideo", "hourvideo.json", {"vid-1": {"video_metadata": {"duration_in_seconds": 3600}, "benchmark_dataset": [
        {"qid": "q1", "task": "summarization/themes", "question": "What is it about?",
         "mcq_test": f"What is it about?\n{LINES}", "correct_answer_label": "B", "relevant_timestamps": ["00:01:00"]},
    ]}}, cup("What is it about?", "HourVideo/HourVideo::::vid-1.mp4", source_id="q1")),
    of("egolifeqa", "EgoLifeQA_A1_JAKE.json", [
        {"ID": str(n), "query_time": {"date": "DAY2", "time": f"1121025{n}"}, "type": "EntityLog",
         "question": "Who used it?",
         "choice_a": "Tasha", "choice_b": "Alice", "choice_c": "Shure", "choice_d": "Lucia", "answer": letter,
         "target_time": {"date": "DAY1", "time": "11152408"}, "keywords": "hat", "reason": "a hat is seen"}
        for n, letter in enumerate("BA")
    ], *(Want("Who used it?", "Tasha | Alice | Shure | Lucia", gold, "lmms-lab/EgoLife::::EgoLifeQA_A1_JAKE")
         for gold in ("Alice", "Tasha"))),
    of("infinibench", "scene_transitions.json", [
        {"question": f"Which order {n}?", "options": BARE, "answer_idx": n, "video_path_mp4": "show/e1.mp4",
         "season": 1}
        for n in (1, 0)
    ], cup("Which order 1?", "Vision-CAIR/InfiniBench::::show/e1.mp4", source_id="scene_transitions_0",
       category="scene_transitions"),
       cup("Which order 0?", "Vision-CAIR/InfiniBench::::show/e1.mp4", "a cup")),
    of("favor_bench", "video_perspective.json", [
        {"video_name": "fv", "questions": [
            {"task_type": "AS", "question": "What is red?", "options": BARE, "correct_answer": "a hat"},
            {"task_type": "CM", "question": "What is blue?", "options": BARE, "correct_answer": "the hat"},
        ]},
    ], cup("What is red?", "zl2048/FAVOR::::fv.mp4", source_id="fv_0", category="AS"),
       cup("What is blue?", "zl2048/FAVOR::::fv.mp4", None, "gold_not_among_options", source_id="fv_1")),
    of("motionbench", "video_info.meta.jsonl", [
        {"key": "k", "video_path": "m.mp4", "question_type": "Camera Motion", "qa": [
            {"uid": "u1", "question": f"How does it move?\n{LINES}", "answer": "B"},
            {"uid": "u2", "question": f"How fast is it?\n{LINES}", "answer": "NA"},
        ]},
    ], cup("How does it move?", "zai-org/MotionBench::::m.mp4", source_id="u1", category="Camera Motion"),
       cup("How fast is it?", "zai-org/MotionBench::::m.mp4", None, "hidden_gold")),
    of("clevrer_val", "validation.json", [
        {"scene_index": 10000, "questions": [
            {"question": "How many balls?", "question_type": "descriptive", "answer": "2"},
            {"question": "What comes next?", "question_type": "predictive",
             "choices": [{"choice": "it stops", "answer": "wrong"}, {"choice": "it falls", "answer": "correct"}]},
            {"question": "Why does it fall?", "question_type": "explanatory",
             "choices": [{"choice": "a push", "answer": "correct"}, {"choice": "a kick", "answer": "correct"}]},
        ]},
    ], Want("How many balls?", "", None, "chuangg/CLEVRER::::video_10000.mp4", issues="open_ended"),
       Want("What comes next?", "it stops | it falls", "it falls", "chuangg/CLEVRER::::video_10000.mp4",
            more={"source_id": "10000_1", "category": "predictive"}),
       Want("Why does it fall?", "a push | a kick", None, "chuangg/CLEVRER::::video_10000.mp4", issues="several_gold")),
]
