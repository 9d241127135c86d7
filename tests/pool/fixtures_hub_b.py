"""Specimens of benchmarks on the hub: EgoSchema to CG-Bench. Invented content in the shape that readers expect."""
# fmt: off

from typing import Any

from .fixtures import Fixture, Want
from .fixtures_hub_a import ABC, BARE, KEPT, LETTERS, LINES, both, columns, cup, dict_rows, of

LISTED = "(A) a cup\n(B) a hat\n(C) a ball"


def two(
    spec: str, file: str, key: str, /, *, answers: tuple[object, object] = ("B", "A"), **fields: Any
) -> Fixture:
    """Two records, whose answers are the hat and the cup. `{}` in a field is the record's number."""
    def filled(value: Any, number: int) -> Any:
        if isinstance(value, list):
            return [filled(part, number) for part in value]
        return value.format(number) if isinstance(value, str) else value

    rows = [{name: filled(value, number) for name, value in fields.items()} for number in (0, 1)]
    answer = next(name for name, value in fields.items() if value is ...)
    for row, given in zip(rows, answers, strict=True):
        row[answer] = given
    asked = next(row for row in fields if row in ("question", "query", "user_prompt"))
    heads = [str(row[asked]).partition("\n")[0] for row in rows]
    return of(spec, file, rows, *(
        cup(head, key.format(number), gold) for number, (head, gold) in enumerate(zip(heads, ("a hat", "a cup"),
         strict=True))
    ))


def mixeval(part: str) -> Fixture:
    return two(f"mixeval_x_video_mc{part}", "multiple_choice.parquet", "MixEval/MixEval-X::::v/{}.mp4", id="{}",
               query="What is {}?", options=BARE, reference_answer=..., input_file=["v/{}.mp4"])


def mlvu(part: str, hub: str) -> Fixture:
    return two(f"mlvu_lmms_{part}", "test.parquet", f"{hub}::::{{}}.mp4", video_name="{}.mp4", task_type="NQA",
               question="What is {}?\n" + LISTED, answer=...)


def vsibench(part: str) -> Fixture:
    rows = [
        {"id": 1, "dataset": "scannet", "scene_name": "s1", "question_type": "route_planning", "question": "Where now?",
         "options": ABC, "ground_truth": "B"},
        {"id": 2, "dataset": "scannet", "scene_name": "s1", "question_type": "object_counting", "question": "How many?",
         "options": None, "ground_truth": "4"},
    ]
    video = "nyu-visionx/VSI-Bench::::scannet/s1.mp4"
    return of(f"vsibench_hub_{part}", "test.parquet", rows, cup("Where now?", video, category="route_planning"),
              Want("How many?", "", None, video, issues="open_ended"))


def videommmu(part: str) -> Fixture:
    return two(f"videommmu_lmms_{part}", "test.parquet", "lmms-eval/VideoMMMU::::dev_Art_{}.mp4", id="dev_Art_{}",
               question="What is {}?", options=ABC, answer=..., question_type="perception")


CAUSAL = {
    "descriptive": {"question": "What does he hold?", "answer": BARE},
    "predictive": {"question": "What will he do?", "answer": ["run", "sit", "wave"], "reason": ["fear", "age", "joy"]},
}
CAUSAL_GOLD = {"descriptive": {"answer": 1}, "predictive": {"answer": 2, "reason": 0}}


FIXTURES = [
    Fixture("causal_vidqa_answer", {"QA/vid_1/text.json": CAUSAL}, [
        cup("What does he hold?", "bcmi/Causal-VidQA::::vid_1", source_id="vid_1_descriptive", category="descriptive"),
        Want("What will he do?", "run | sit | wave", "wave", "bcmi/Causal-VidQA::::vid_1"),
    ], {"QA/vid_1/answer.json": CAUSAL_GOLD}),
    Fixture("causal_vidqa_reason", {"QA/vid_1/text.json": CAUSAL, "QA/vid_2/text.json": CAUSAL}, [
        Want("What will he do?", "fear | age | joy", gold, f"bcmi/Causal-VidQA::::vid_{number}",
             more={"source_id": f"vid_{number}_predictive_reason"}) for number, gold in ((1, "fear"), (2, "joy"))
    ], {"QA/vid_1/answer.json": CAUSAL_GOLD, "QA/vid_2/answer.json": {"predictive": {"answer": 0, "reason": 2}}}),
    of("egoschema_full", "questions.json", [
        {"q_uid": uid, "question": "What does C do?", **columns("option {}", *BARE, "a key", "a pen")}
        for uid in ("aa-1", "bb-2")
    ], Want("What does C do?", f"{KEPT} | a key | a pen", "a key", "egoschema/EgoSchema::::aa-1.mp4"),
       Want("What does C do?", f"{KEPT} | a key | a pen", None, "egoschema/EgoSchema::::bb-2.mp4",
            issues="no_join_row hidden_gold"),
       beside={"subset_answers.json": {"aa-1": 3}}),
    two("cover", "test.parquet", "PeterPanonly/COVER::::VIDEO/src/{}.mp4", src_dataset="src", video_name="{}.mp4",
        question="What is {}?", choices='{{"B": "a hat", "A": "a cup", "C": "a ball"}}', answer=..., qa_type="original",
        aspect="action"),
    of("cgav_counting", "test.parquet", [
        {"index": 1, "video": "a.mp4", "question": "How many hats?", "answer": 3, "category": "object", "type": "av",
         "clue": "[]", "query_interval": [1.0, 2.0]},
    ], Want("How many hats?", "", None, "CG-Bench/CG-AV-Counting::::a.mp4", issues="open_ended")),
    of("av_odyssey", "test.parquet", [
        {"question_id": "1", "question": "Which sound fits [video1]?", "options": ABC, "answer": "B",
         "video_path": ["v/1.mp4"], "data_type": "audio&video", "subfield": "Tone"},
        {"question_id": "2", "question": "Which is louder, [audio1] or [audio2]?", "options": ABC, "answer": "A",
         "video_path": None, "data_type": "audio", "subfield": "Tone"},
    ], cup("Which sound fits [video1]?", "AV-Odyssey/AV_Odyssey_Bench_LMMs_Eval::::v/1.mp4"),
       cup("Which is louder, [audio1] or [audio2]?", "", "a cup", "no_video")),
    of("mmsi_video", "test.parquet", [
        {"user_prompt": f"What is red?\n{LINES}", "ground_truth": "B", "type": "Planning",
         "video_list": [{"path": "a.mp4"}, {"path": "b.mp4"}]},
        {"user_prompt": f"What is blue?\n{LINES}", "ground_truth": "A", "type": "Planning",
         "video_list": [{"path": "c.mp4"}]},
    ], cup("What is red?", "rbler/MMSI-Video-Bench::::a.mp4|b.mp4", issues="several_videos"),
       cup("What is blue?", "rbler/MMSI-Video-Bench::::c.mp4", "a cup")),
    of("mvu_eval", "MVU_Eval_QAs.json", {
        "0": {"video_paths": ["a.mp4", "b.mp4"], "question": "Which comes first?", "options": ABC, "ground_truth": "B",
              "task": "TR"},
        "1": {"video_paths": ["c.mp4"], "question": "Which comes last?", "options": ABC, "ground_truth": "A"},
    }, cup("Which comes first?", "MVU-Eval-Team/MVU-Eval-Data::::a.mp4|b.mp4", issues="several_videos", source_id="0"),
       cup("Which comes last?", "MVU-Eval-Team/MVU-Eval-Data::::c.mp4", "a cup", source_id="1")),
    two("dsr_bench", "DSRBench.tsv", "lmms-lab-si/EASI-Leaderboard-Data::::{}.mp4", index="{}", video="{}.mp4",
        question="What is {}?", options=str(ABC), answer=..., task_type="rel_dis"),
    of("sti_bench", "STIBench.tsv", [
        {"index": 0, "video": "s.mp4", "question": "How far is it?", "options": str(BARE), "answer": "B",
         "time_start": 1.5, "time_end": 9, "task_type": "Pose Estimation"},
    ], Want("How far is it?", KEPT, "a hat", "MINT-SJTU/STI-Bench::::s.mp4", (1.5, 9.0))),
    two("qbench_video_mcq", "qbenchvideo_single_MCQ.tsv", "zhangzicheng/Q-Bench-Video::::./video/{}.mp4", index="{}",
        video="{}", video_path="./video/{}.mp4", question="What is {}?\n" + LINES, answer=...,
        answers=("B. a hat", "A. a cup")),
    two("v2p_bench", "V2P-Bench.tsv", "gaotiexinqu/V2P-Bench::::videos/MLVU/{}.mp4", index="{}",
        video_path="MLVU/{}.mp4", frame_path="{}.png", question="What is {}?\n" + LISTED, answer=...),
    of("egoexobench", "EgoExoBench_MCQ.tsv", [
        {"index": 0, "medias": "[{'type': 'video', 'video_path': 'a.mp4'}]", "question": "Here: <video> What is red?",
         "options": LINES, "answer": "B", "response_format": "One letter."},
    ], cup("Here: <video> What is red?", "", issues="media_placeholder no_video")),
    two("mvtamperbench", "MVTamperBench.tsv", "Srikant86/MVTamperBenchSample::::video/star/{}.mp4", index="{}",
        prefix="video/star/", video="{}.mp4", question="What is {}?", candidates=str(BARE), answer=...,
        tamper_type="dropping", start=1.0, end=2.0, bound=False, answers=("a hat", "a cup")),
    of("revsi", "test.parquet", [
        {"question_type": "route_planning", "question": "Where now?", "options": ABC, "ground_truth": "B",
         "scene_id": "s1", "num_frames": "all"},
        {"question_type": "room_size_estimation_single", "question": "How large?", "options": None,
         "ground_truth": "20.5", "scene_id": "s1", "num_frames": "all"},
    ], cup("Where now?", "3dlg-hcvc/ReVSI::::all_frame/s1.mp4"),
       Want("How large?", "", None, "3dlg-hcvc/ReVSI::::all_frame/s1.mp4", issues="open_ended")),
    two("vsi_super_recall", "test.parquet", "nyu-visionx/VSI-SUPER-Recall::::10mins/{}.mp4", video_path="10mins/{}.mp4",
        question="In which order does {} appear?", options=ABC, answer=..., type="10mins"),
    of("spatialtree_bench", "test.parquet", [
        {"session_id": "1", "question": "What is red?", "option": ABC, "answer": "B", "video": ["videos/1.mp4"],
         "image": [], "question_type": "mcq", "hint": ""},
        {"session_id": "2", "question": "How far is it?", "option": [], "answer": "2.5", "video": [],
         "image": ["images/2.jpg"], "question_type": "open", "hint": ""},
    ], cup("What is red?", "LongfeiLi/SpatialTree-Bench::::videos/1.mp4", source_id="1"),
       Want("How far is it?", "", None, "", issues="no_options no_video")),
    of("xmod_bench", "perception.json", [
        {"question": "Which sound is it?", "conditions": {"modality": "Video", "input": "./Data/1.mp4"},
         "category": "p",
         "options": {letter: {"modality": "Text", "input": text} for letter, text in LETTERS.items()},
         "correct_answer": "B"},
        {"question": "Which image is it?", "conditions": {"modality": "Audio", "input": "./Data/2.wav"},
         "options": {letter: {"modality": "Image", "input": f"{letter}.png"} for letter in "ABCD"},
          "correct_answer": "A"},
    ], cup("Which sound is it?", "xmod_bench::::./Data/1.mp4", category="p")),
    of("physbench_val", "test.json", [
        {"idx": 7, "split": "val", "question": f"<video>\nWhat falls?\n{LINES}", "file_name": ["7.mp4"]},
        {"idx": 8, "split": "test", "question": f"<video>\nWhat flies?\n{LINES}", "file_name": ["8.mp4"]},
    ], cup("<video>\nWhat falls?", "USC-GVL/PhysBench::::video/7.mp4", issues="media_placeholder", category="scene"),
       beside={"val_answer.json": [{"idx": 7, "answer": "B", "task_type": "scene", "mode": "general"}]}),
    of("plm_fgqa", "test.parquet", [
        {"uid": f"u{n}", "qa_uid": "q1", "video": "p.mp4", "question": "How is it held?",
         "options": {"option_0": "by hand", "option_1": other}, "answer": "by hand"} for n,
          other in enumerate(("by foot", "at all"))
    ], *(Want("How is it held?", f"by hand | {other}", "by hand", "facebook/PLM-VideoBench::::p.mp4",
              more={"group": "q1", "source_id": f"u{n}"}) for n, other in enumerate(("by foot", "at all")))),
    *map(mixeval, ("", "_hard")),
    of("nextqa_lmms_test", "test.parquet", [
        {"video": 2401, "question": "what does he do", **columns("a{}", *BARE, "a key", "a pen"), "answer": 1,
         "type": "CW"},
    ], Want("what does he do", f"{KEPT} | a key | a pen", "a hat", "lmms-eval/NExTQA::::2401.mp4",
       more={"category": "CW"})),
    two("egoschema_lmms_subset", "test.parquet", "lmms-eval/egoschema::::{}.mp4", question_idx="{}", video_idx="{}",
        question="What is {}?", option=ABC, answer=..., answers=("1", "0")),
    two("videomme_lmms", "test.parquet", "lmms-eval/Video-MME::::yt{}.mp4", question_id="{}", videoID="yt{}",
        question="What is {}?", options=ABC, answer=..., task_type="OCR Problems", duration="short"),
    two("videomme_vlmeval", "Video-MME.tsv", "lmms-lab/Video-MME::::yt{}.mp4", index="{}", video="yt{}",
        question="What is {}?", candidates=str(ABC), answer=..., task_type="OCR Problems", subtitle_path="./s/{}.srt"),
    of("mvbench_vlmeval", "MVBench.tsv", [
        {"index": 0, "task_type": "Action Sequence", "prefix": "star/", "video": "a.mp4", "start": 1.5, "end": 9.0,
         "question": "What is red?", "candidates": str(BARE), "answer": "a hat"},
        {"index": 1, "task_type": "Object Shuffle", "prefix": "perception/", "video": "b.mp4", "start": "", "end": "",
         "question": "What is blue?", "candidates": str(BARE), "answer": "a cup"},
    ], Want("What is red?", KEPT, "a hat", "OpenGVLab/MVBench::::star/a.mp4", (1.5, 9.0)),
       cup("What is blue?", "OpenGVLab/MVBench::::perception/b.mp4", "a cup", category="Object Shuffle")),
    two("tempcompass_lmms_multi_choice", "test.parquet", "lmms-eval/TempCompass::::{}.mp4", video_id="{}", dim="action",
        question="What is {}?\n" + LINES, answer=..., answers=("B. a hat", "A. a cup")),
    of("tempcompass_lmms_caption_matching", "test.parquet", [
        {"video_id": "c1", "dim": "speed", "question": "Which caption fits?\nCaption A: he runs\nCaption B: he walks",
         "answer": "Caption B: he walks"},
        {"video_id": "c2", "dim": "speed",
         "question": "Which sentence fits?\nSentence A: it stops\nSentence B: it goes",
         "answer": "Sentence A: it stops"},
    ], Want("Which caption fits?", "he runs | he walks", "he walks", "lmms-eval/TempCompass::::c1.mp4"),
       Want("Which sentence fits?", "it stops | it goes", "it stops", "lmms-eval/TempCompass::::c2.mp4")),
    of("tempcompass_lmms_yes_no", "test.parquet", [
        {"video_id": "c1", "dim": "order", "question": "Does he run?", "answer": "no"},
    ], Want("Does he run?", "yes | no", "no", "lmms-eval/TempCompass::::c1.mp4", more={"category": "order"})),
    two("tomato_lmms", "test.parquet", "lmms-eval/TOMATO::::human/{}.mp4", id="{}", video_path="human/{}.mp4",
        question="What is {}?", options=BARE, answer=..., reason_type="count", answers=(1, 0)),
    mlvu("dev", "sy1998/MLVU_dev"),
    mlvu("test", "sy1998/MLVU_Test"),
    two("lvbench_lmms", "train.parquet", "lmms-eval/LVBench::::{}.mp4", video_path="{}.mp4", question="What is {}?",
        options=BARE, answer=...),
    of("longvideobench_test", "test-0.parquet", [
        {"id": "l_0", "video_path": "l.mp4", "question": "What is red?", **columns("option{}", *BARE, "N/A", "N/A"),
         "correct_choice": -1, "question_category": "S2E", "duration": 12.5, "subtitle_path": "l.json"},
    ], cup("What is red?", "longvideobench/LongVideoBench::::l.mp4", None, "hidden_gold", duration=12.5,
       subtitles="l.json")),
    *map(vsibench, ("full", "debiased")),
    of("mmvu_lmms_val", "validation.parquet", [
        *dict_rows("question", "choices", "answer", id=["1", "2"], video_path=["Art/1.mp4", "Art/2.mp4"],
                   question_type=["multiple-choice", "multiple-choice"]),
        {"question": "Name it.", "choices": dict.fromkeys(LETTERS, ""), "answer": "a hat", "id": "3",
         "video_path": "Art/3.mp4", "question_type": "open-ended"},
    ], *both("lmms-eval/MMVU::::Art/1.mp4", "lmms-eval/MMVU::::Art/2.mp4"),
       Want("Name it.", "", None, "lmms-eval/MMVU::::Art/3.mp4", issues="open_ended")),
    two("ovobench_lmms", "test.parquet", "kcz358/OVOBench::::{}.mp4", id="{}", task="EPM", question="What is {}?",
        options=BARE, gt=..., answers=(1, 0)),
    *map(videommmu, ("perception", "comprehension")),
    of("videommmu_lmms_adaptation", "test.parquet", [
        {"id": "test_Math_1", "question": "<image 1> What is it?", "options": ABC, "answer": "B",
         "question_type": "multiple-choice"},
        {"id": "test_Math_2", "question": "<image 1> How much?", "options": [], "answer": "2.5",
         "question_type": "open"},
    ], cup("<image 1> What is it?", "lmms-eval/VideoMMMU::::test_Math_1.mp4", issues="media_placeholder"),
       Want("<image 1> How much?", "", None, "lmms-eval/VideoMMMU::::test_Math_2.mp4",
        issues="media_placeholder open_ended")),
    of("vitatecs_hub", "test.parquet", [
        {"caption": "he runs left", "counterfactual": "he runs right", "video_name": "v1", "aspect": "Direction",
         "src_dataset": "msrvtt"},
    ], Want("Which caption describes the video?", "he runs left | he runs right", "he runs left",
            "lscpku/VITATECS::::v1", more={"category": "Direction"})),
    of("cgbench_full", "cgbench.json", [
        {"qid": 1, "video_uid": "c1", "question": "What is red?", "choices": BARE, "right_answer": "B",
         "answer": "a hat",
         "duration": 900, "domain": "d", "sub_category": "s", "clue_intervals": [[3, 9]]},
        {"qid": 2, "video_uid": "c1", "question": "What is blue?", "choices": BARE, "right_answer": "A",
         "answer": "a hat",
         "duration": 900, "domain": "d", "sub_category": "s", "clue_intervals": [[3, 9]]},
    ], cup("What is red?", "CG-Bench/CG-Bench::::c1.mp4", duration=900.0, source_id="1"),
       cup("What is blue?", "CG-Bench/CG-Bench::::c1.mp4", "a cup", "index_text_contradict")),
    of("intphys2_main", "metadata.csv", [
        {"SceneIndex": "124_0", "file_name": "a.mp4", "type": "1_Possible", "condition": "solidity", "name": "s1"},
        {"SceneIndex": "124_0", "file_name": "b.mp4", "type": "2_Impossible", "condition": "solidity", "name": "s2"},
    ], *(Want("Is the event in this video physically possible or impossible?", "Possible | Impossible", answer,
              f"facebook/IntPhys2::::Main/{name}.mp4",
              more={"category": "solidity", "group": "124_0", "source_id": name})
         for name, answer in (("a", "Possible"), ("b", "Impossible")))),
    of("physical_ai_bench", "test.parquet", [
        {"question": "What is red?\nPlease answer directly with only the letter of the correct option.",
         "index2ans": {"A": "a cup", "B": "a hat", "C": "a ball", "D": None}, "answer": "B", "video_path": "v/1.mp4"},
        {"question": "What is blue?", "index2ans": {"A": "a cup", "B": "a hat", "C": None, "D": None},
         "answer": "A", "video_path": "v/2.mp4"},
    ], *both(*(f"shi-labs/physical-ai-bench-understanding::::v/{n}.mp4" for n in (1, 2)))),
]
