"""One video drawn once: claimed, then drawn where no other run has made its frames meanwhile (`worker.JOBS`)."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchcheck.pipes import unhurried
from benchcheck.video.frames import read_folder
from benchcheck.video.making import draw
from benchcheck.video.making.claims import claimed

__all__ = ["begin"]


def begin(settings: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return what a worker does with each video: what `draw` does, for the sets that are not there.

    The answer holds `met` beside the outcomes, the frames keys that were there already. Where another run holds the
    video it is `busy`, unless the settings say `wait`. `claims` false is a file system without locks.
    """
    draw_sets, folder = draw.begin(settings), Path(settings["folder"])

    def do(task: Mapping[str, Any]) -> dict[str, Any]:
        with _alone(settings, folder, task["key"]) as mine:
            if not mine:
                return {"busy": True}
            met = [key for key in task["windows"] if not isinstance(read_folder(folder / key), str)]
            missing = {key: window for key, window in task["windows"].items() if key not in met}
            made = draw_sets({**task, "windows": missing}) if missing else {"outcomes": []}
            return {**made, "met": met}

    return do


@contextlib.contextmanager
def _alone(settings: Mapping[str, Any], folder: Path, key: str) -> Iterator[bool]:
    """Hold a video; what is waited for it does not count as time that the video takes."""
    if not settings.get("claims", True):
        yield True
        return
    with contextlib.ExitStack() as stack:
        with unhurried():
            mine = stack.enter_context(claimed(folder, key, wait=bool(settings.get("wait"))))
        yield mine
