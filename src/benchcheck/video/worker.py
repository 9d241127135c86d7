"""The worker process of `extract_frames`: `python -m benchcheck.video.worker`.

Reads one JSON line with the settings, then one a task; answers each task with one JSON line. It ends when its input
ends, so it outlives a killed run by one video at most. It sets the kernel's alarm before each video: a decoder that
hangs is ended even inside C code, and even when nobody waits for it any more.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

from benchcheck.errors import StudyError

__all__ = ["main", "serve"]


def serve(tasks: TextIO, answers: TextIO) -> None:
    """Answer tasks until they end: `{"outcomes": …}` for a video, `{"stop": …}` when the study cannot be written."""
    from benchcheck.video.draw import draw, outcomes_table
    from benchcheck.video.picture import Spec
    from benchcheck.video.task import Task

    settings = json.loads(tasks.readline())
    spec, folder = Spec(**settings["spec"]), Path(settings["folder"])
    _send(answers, {"hello": os.getpid()})
    for line in tasks:
        signal.setitimer(signal.ITIMER_REAL, settings["limit_s"])
        try:
            answer: dict[str, Any] = {"outcomes": outcomes_table(draw(Task.of(json.loads(line)), spec, folder))}
        except StudyError as reason:
            answer = {"stop": str(reason)}
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(answers, answer)


def _send(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def main() -> None:
    """Serve on the standard streams. What a library prints goes to stderr, never between the answers."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.stdin, answers)
    except BrokenPipeError:  # the run was killed; the video's frames are written, nobody waits for the answer
        os._exit(0)


if __name__ == "__main__":
    main()
