"""A worker process on videos: `python -m benchcheck.video.worker`.

Reads one JSON line with the settings, then one a task; answers each task with one JSON line. It ends when its input
ends, so it outlives a killed run by one video at most. It sets the kernel's alarm before each video: a decoder that
hangs is ended even inside C code, and even when nobody waits for it any more.
"""

import importlib
import json
import os
from typing import Any, TextIO

from benchcheck.errors import StudyError
from benchcheck.pipes import alarm, answer_on_pipes, send

__all__ = ["JOBS", "main", "serve"]

JOBS = {
    "draw": "benchcheck.video.making.once",
    "compare": "benchcheck.video.proving.compare",
    "prepare": "benchcheck.video.preparing.inspection",
}
"""What a worker can do: the `job` of its settings, and the module whose `begin(settings)` returns what it does with a
task, from JSON values to JSON values."""


def serve(tasks: TextIO, answers: TextIO) -> None:
    """Answer tasks until they end: with what the job gives, or `{"stop": …}` when the study cannot be written."""
    settings = json.loads(tasks.readline())
    do = importlib.import_module(JOBS[settings["job"]]).begin(settings)
    send(answers, {"hello": os.getpid()})
    for line in tasks:
        with alarm(settings["limit_s"]):
            try:
                answer: dict[str, Any] = do(json.loads(line))
            except StudyError as reason:
                answer = {"stop": str(reason)}
        send(answers, answer)


def main() -> None:
    """Serve on the standard streams."""
    answer_on_pipes(serve)


if __name__ == "__main__":
    main()
