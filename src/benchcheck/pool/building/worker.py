"""A worker process of the pool build: `python -m benchcheck.pool.building.worker`.

It reads a task, answers with the number of its records, reads the rows that they begin at, and answers with their
outcome; then the next. It ends when its input ends, so it outlives a killed build by one task at most.
"""

import gc
import json
import pickle
import traceback
from typing import IO, Any, TextIO

from benchcheck.errors import BenchcheckError
from benchcheck.pipes import answer_on_pipes
from benchcheck.pool.building.outcomes import Mapper

__all__ = ["main", "serve"]


def serve(tasks: TextIO, answers: TextIO) -> None:
    """Answer tasks until they end. An error is an answer, and whoever asked raises it; a bug brings its traceback."""
    source, sink, mapper = tasks.buffer, answers.buffer, Mapper()
    source.readline()  # settings: there are none
    while (task := _received(source)) is not None:
        try:
            mapper.begin(*task)
            _send(sink, mapper.count)
            rows = _received(source)
            if rows is not None:
                _send(sink, mapper.finish(*rows))
        except BenchcheckError as reason:
            _send(sink, reason)
        except Exception as reason:  # noqa: BLE001 (a bug is told in full where it can be seen)
            _send(sink, RuntimeError(f"in a worker of the pool build: {reason!r}\n{traceback.format_exc()}"))


def _received(source: IO[bytes]) -> Any:
    """The next message, None at the end of the input."""
    line = source.readline()
    return pickle.loads(source.read(json.loads(line)["bytes"])) if line.endswith(b"\n") else None


def _send(sink: IO[bytes], what: Any) -> None:
    data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    sink.write(json.dumps({"bytes": len(data)}).encode() + b"\n")
    sink.write(data)
    sink.flush()


def main() -> None:
    """Serve on the standard streams, without a search for cycles: records hold none, and it takes an eighth longer."""
    gc.disable()
    answer_on_pipes(serve)


if __name__ == "__main__":
    main()
