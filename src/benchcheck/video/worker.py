"""The worker process of `extract_frames`: `python -m benchcheck.video.worker`.

Reads one JSON line with the settings, then one a task; answers each task with one JSON line. It ends when its input
ends, so it outlives a killed run by one video at most. It sets the kernel's alarm before each video: a decoder that
hangs is ended even inside C code, and even when nobody waits for it any more.
"""

import json
import os
from pathlib import Path
from typing import Any, TextIO

from benchcheck.errors import StudyError
from benchcheck.pipes import alarm, answer_on_pipes, send

__all__ = ["main", "serve"]


def serve(tasks: TextIO, answers: TextIO) -> None:
    """Answer tasks until they end: `{"outcomes": …}` for a video, `{"stop": …}` when the study cannot be written."""
    from benchcheck.video.draw import draw, outcomes_table
    from benchcheck.video.picture import Spec
    from benchcheck.video.task import Task

    settings = json.loads(tasks.readline())
    spec, folder = Spec(**settings["spec"]), Path(settings["folder"])
    send(answers, {"hello": os.getpid()})
    for line in tasks:
        with alarm(settings["limit_s"]):
            try:
                answer: dict[str, Any] = {"outcomes": outcomes_table(draw(Task.of(json.loads(line)), spec, folder))}
            except StudyError as reason:
                answer = {"stop": str(reason)}
        send(answers, answer)


def main() -> None:
    """Serve on the standard streams."""
    answer_on_pipes(serve)


if __name__ == "__main__":
    main()
