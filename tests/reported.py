"""Annotation files with the faults that were reported in public (field guide, section 6), a few rows each.

Every fault is a whole benchmark as a user has it: a spec, files, a `[[pool]]` entry. So they build alone, which the
tests do, and all at once as one study: `study_of(folder, *FAULTS)`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchcheck.pool.building.build import build_pool
from benchcheck.pool.items import Item
from benchcheck.study import Study
from studies import config_text

__all__ = ["FAULTS", "Fault", "built", "study_of"]

COLOURS = {"candidates": ["red", "blue"], "answer": "red", "video": "good.mp4"}
SPEC = {
    "": {"question": "question", "id": "id?"},
    "options": {"kind": "list", "field": "candidates"},
    "gold": {"kind": "text", "field": "answer"},
    "video": {"member": "video"},
}


def good(thing: str, **values: Any) -> dict[str, Any]:
    """A sound record about the colour of a thing, but for `values`."""
    return {"question": f"What colour is the {thing}?", **COLOURS, **values}


@dataclass(frozen=True)
class Fault:
    """One benchmark: its spec's tables, laid over `SPEC`, its files, and what its `[[pool]]` entry says beside them."""

    bench: str
    files: Mapping[str, Any]
    """Name to text, or to what is written as JSON."""
    spec: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    entry: Mapping[str, str] = field(default_factory=dict)

    @property
    def toml(self) -> str:
        """The spec as a user writes it; a table with a kind of its own replaces the one in `SPEC`."""
        tables = dict[str, dict[str, Any]]()
        for name in dict.fromkeys((*SPEC, *self.spec)):
            own = dict(self.spec.get(name, {}))
            tables[name] = own if "kind" in own else {**SPEC.get(name, {}), **own}
        tables[""] = {"bench": self.bench, **tables[""]}
        lines = list[str]()
        for name, table in tables.items():
            lines += [f"[{name}]"] if name else []
            lines += [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items() if value != ""]
        return "\n".join(lines) + "\n"


def study_of(folder: Path, *faults: Fault) -> Study:
    """Write a study of these benchmarks; its pool is not built yet."""
    folder.mkdir(parents=True, exist_ok=True)
    config = [config_text()]
    for fault in faults:
        place = folder / fault.bench
        place.mkdir()
        (place / "spec.toml").write_text(fault.toml, encoding="utf-8")
        for name, content in fault.files.items():
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            (place / name).write_text(text, encoding="utf-8")
        own = {key: f"{fault.bench}/{name}" for key, name in fault.entry.items()}
        names = [f"{fault.bench}/{name}" for name in fault.files if name not in fault.entry.values()]
        config += ["[[pool]]", f'spec = "{fault.bench}/spec.toml"', f"files = {json.dumps(names)}"]
        config += [f'{key} = "{value}"' for key, value in own.items()]
    (folder / "benchcheck.toml").write_text("\n".join(config) + "\n", encoding="utf-8")
    return Study.open(folder)


def built(folder: Path, fault: Fault) -> list[Item]:
    """Build one benchmark's pool and return its items in order."""
    study = study_of(folder, fault)
    build_pool(study)
    return list(study.items())


BY_INDEX = {"gold": {"kind": "index", "field": "answer"}}
BY_LETTER = {"gold": {"kind": "letter", "field": "answer"}}

MLVU_TEXT = Fault("mlvu_text", {"q.json": [good("ball"), good("ball", answer="green")]})
LVBENCH_ERRATA = Fault(
    "lvbench",
    {
        "q.json": [
            good("lamp", id=7, candidates=["1", "2", "3"], answer=2),
            good("lamp", id=8, answer=0),
        ],
        "errata.csv": 'id,reason\n7,"none is right: the truth is 4"\n',
    },
    BY_INDEX,
    {"errata": "errata.csv"},
)
LVBENCH_GONE = Fault(
    "lvbench_gone",
    {
        "q.json": [
            good("coat", url=f"https://www.youtube.com/watch?v={key}&t=139s")
            for key in ("dQw4w9WgXcQ", "aaaaaaaaaaa", "gone_-gone1")
        ]
    },
    {"video": {"member": "{url|youtube}.mp4"}},
)
MOTIONBENCH = Fault(
    "motionbench",
    {
        "q.json": [
            {
                "key": "v",
                "qa": [{"uid": gold, "question": "Which?\nA. x\nB. y", "answer": gold} for gold in ("NA", "B")],
            }
        ]
    },
    {
        "": {"id": "uid", "unnest": ["flatten", "each:qa"]},
        "options": {"kind": "embedded"},
        "video": {"member": "key"},
        **BY_LETTER,
    },
)
URBANVIDEO = Fault(
    "urbanvideo",
    {
        "q.json": [
            {"question": "Which?", "answer": "C", "video": "v.mp4"},
            good("roof", candidates=[f"place {number}" for number in range(8)], answer="H"),
            good("roof", video="two.mp4", answer="E"),
        ]
    },
    BY_LETTER,
)
STREAMINGBENCH = Fault(
    "streamingbench",
    {
        "q.json": [
            good("train", time_stamp=stamp, duration=300) for stamp in ("00:06:22", "00:04:22", "00:05:01", "soon")
        ]
    },
    {"": {"duration": "duration"}, "video": {"end": "time_stamp"}},
)
OVO_BENCH = Fault(
    "ovo",
    {
        "q.json": [
            good("cup", id=0, task="EPM"),
            {"id": 1, "task": "REC", "video": "r.mp4", "test_info": [{"realtime": 5, "count": 1},
                                                                     {"realtime": 9, "count": 2}]},
        ]
    },
    {"": {"id": "id", "question": "question?", "unnest": ["flatten", "each?:test_info"]},
     "video": {"end": "realtime?"}},
)  # fmt: skip
STREAMFOREST = Fault(
    "streamforest",
    {"q.json": [good("tree", image_file="good/f1.jpg"), good("tree", video="whole.mp4")]},
    {"video": {"frames": "image_file?"}},
)
IG_VLM = Fault(
    "igvlm",
    {"q.json": [good("key", video=name) for name in ("AB12C_1.5_7.0", "a_b_1", "x_y_z", "N_2_8")]},
    {"video": {"member": "{video|clip}.mp4", "window": "video|span"}},
)
NEXT_QA = Fault(
    "nextqa",
    {"q.json": [good("sled", qid=0, video="v"), good("sled", qid=0, video="w"), good("sled", qid=0, video="v")]},
    {"": {"id": "{video}_{qid}"}},
)
MLVU_FILES = Fault(
    "mlvu_files",
    {
        "1_count.json": [good("film")],
        "8_sub_scene.json": [{"video_name": "w.mp4", "question": "What?", "answer": "Much.", "scoring_points": ["a"]}],
        "9_summary.json": [{"video": "s.mp4", "question": "Tell it.", "answer": "All of it."}],
    },
    {"": {"leaks": ["scoring_points"]}},
)
TEXT_SETS = Fault(
    "textsets",
    {
        "law.json": [
            good("gown", candidates=["4", "4 ", "4\u00a0", "5"], answer=0, subject="law"),
            good("gown", candidates=["red", "blue", "green"], answer="A, C", subject="law"),
            good("gown", candidates=["old", "new", "New"], answer=1, subject="law"),
        ],
        "ethics.json": [good("gown", candidates=["new", "old", "New"], answer=2, subject="ethics")],
    },
    {"": {"category": "subject"}, "gold": {"kind": "auto", "field": "answer"}},
)
MMVP = Fault(
    "mmvp",
    {
        "q.json": [
            good("wing", pair=pair, video=video, answer=gold)
            for pair, video, gold in ((1, "a", "red"), (1, "b", "red"), (2, "c", "red"), (2, "d", "blue"))
        ]
    },
    {"": {"group": "pair"}},
)
V_STAR = Fault(
    "vstar", {"q.json": [good("star", question="What did the man say about the ball?"), good("star", video="w.mp4")]}
)
OPEN_ITEMS = Fault(
    "openitems",
    {
        "q.json": [
            good("wall", type="mc"),
            {"question": "Which letter is on the wall?", "type": "open", "answer": "A", "video": "v.mp4"},
        ]
    },
    {"": {}, "mcq_where": {"type": "mc"}},
)
GOLD_PAST = Fault(
    "goldpast",
    {"q.json": [good("door", answer=0), good("door", candidates=["red", "blue", "green"], answer=3)]},
    BY_INDEX,
)
SUBTITLES = Fault("subtitles", {"q.json": [good("bird", subs="He says: it is red.")]}, {"": {"subtitles": "subs"}})

FAULTS = (
    MLVU_TEXT, LVBENCH_ERRATA, LVBENCH_GONE, MOTIONBENCH, URBANVIDEO, STREAMINGBENCH, OVO_BENCH, STREAMFOREST, IG_VLM,
    NEXT_QA, MLVU_FILES, TEXT_SETS, MMVP, V_STAR, OPEN_ITEMS, GOLD_PAST, SUBTITLES,
)  # fmt: skip
"""All of them, in the order of the list of reports."""
