"""Videos whose names a shell, a format string or an old file system would trip over, all the way to another machine."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from benchcheck.study import Study
from studies import Run

from .shard_studies import contents
from .studies import CONFIG_TEXT, item

NAMES = (
    "a 'b' \"c\".mp4",
    "two\nlines.mp4",
    "नमस्ते दृश्य.mp4",
    "%s {x} $HOME `id`;*.mp4",
    "in the/  spaces /#?&=.mp4",
    "-rf.mp4",
)


@pytest.mark.parametrize("prepared", [False, True])
def test_odd_names_go_all_the_way(tmp_path: Path, clip: Callable[[str], Path], run: Run, prepared: bool) -> None:
    pytest.importorskip("cv2", reason="OpenCV (check extra) is not installed")
    there, here = (tmp_path / f"{name} 'x'\n\"दृ\"" for name in ("there", "here"))
    for root in (there, here):
        (root / "videos").mkdir(parents=True)
        (root / "benchcheck.toml").write_text(CONFIG_TEXT)
        Study.open(root).write_pool([item(name, number=number) for number, name in enumerate(NAMES)])
    for number, name in enumerate(NAMES):
        path = there / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(clip(("cfr.mp4", "one.mp4", "seven.mp4", "late.mp4", "ten.mp4", "quarter.mp4")[number]), path)

    def well(*arguments: object) -> str:
        code, out, err = run(*arguments)
        assert code == 0, err
        return out

    if prepared:
        assert "6 of 6 videos are prepared" in well("videos", "prepare", there, "--workers", 1)
        shutil.copy(Study.open(there).pool_file, Study.open(here).pool_file)
    assert "6 of 6 sets of frames are ready" in well("frames", "extract", there, "--workers", 1)
    well("frames", "check", there, "--workers", 1)
    well("frames", "pack", there, "--to", there / "out", "--shard-size", "100kB")
    well("upload", there / "out", tmp_path / "far दृ 'y'")
    well("download", tmp_path / "far दृ 'y'", here / "in")
    well("frames", "unpack", here, "--from", here / "in")
    assert Study.open(here).frames_ready() == Study.open(there).frames_ready()
    assert contents(Study.open(here).frames) == {
        name: data
        for name, data in contents(Study.open(there).frames).items()
        if name.partition("/")[0] in Study.open(there).frames_ready()
    }
    assert "6 of 6" in well("frames", "extract", here)
    for command in ("status", "places"):
        well(command, here)
