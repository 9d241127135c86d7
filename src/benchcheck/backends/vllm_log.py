"""What vLLM's engine prints, kept out of the terminal and read when it fails: the cause stands nowhere else.

The process that asks gets "Engine core initialization failed. See root cause above."; the process that failed wrote the
cause to its output. So output goes to a file without a name while the engine starts, and its processes keep it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

__all__ = ["EngineLog", "cure_for", "short", "why_not_started"]

_TAIL = 200_000
"""Bytes of the log that are looked through."""
_TELLING = re.compile(r"(Error|Exception)\b.*: |out of memory|No available memory|[Ll]ess than desired")
_CURES = (
    (r"[Ll]ess than desired", "lower engine.gpu_memory, or end what else runs on this GPU"),
    (r"No available memory|KV cache is needed", "raise engine.gpu_memory"),
    (r"out of memory|OutOfMemory", "lower engine.gpu_memory or engine.max_sequences"),
)


class EngineLog:
    """A file that the engine's processes write to."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)

    @contextlib.contextmanager
    def taking_output(self) -> Iterator[None]:
        """Send this process's output to the file inside the block; processes started in it keep writing there."""
        kept = os.dup(1), os.dup(2)
        _flush()
        try:
            os.dup2(self._file.fileno(), 1)
            os.dup2(self._file.fileno(), 2)
            yield
        finally:
            _flush()
            for stream, number in zip(kept, (1, 2), strict=True):
                os.dup2(stream, number)
                os.close(stream)

    def telling(self) -> list[str]:
        """Return the lines that name an error; none once the log is closed, as for a question that nobody waits for."""
        try:
            number = self._file.fileno()
        except ValueError:
            return []
        # By position: the engine writes at the offset that all descriptors of the file share.
        text = os.pread(number, _TAIL, max(0, os.fstat(number).st_size - _TAIL)).decode("utf-8", "replace")
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        return [line.strip() for line in plain.splitlines() if _TELLING.search(line)]

    def close(self) -> None:
        """Forget it."""
        self._file.close()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def why_not_started(reason: str, words: Sequence[str]) -> str:
    """Return one line with the cause, which the process that failed wrote into its log, and the setting to change."""
    lines = [reason, *words]
    # The last lines are those of the process that only heard of it.
    cause = next((line for line in lines if _cure(line)), None) or next(iter(words), reason)
    cure = cure_for(lines) or "see the cause; `vllm serve` with this checkpoint shows the whole log"
    return f"vLLM's engine does not start: {short(cause)}. Cure: {cure}"


def cure_for(lines: Sequence[str]) -> str | None:
    """Return which setting mends what the lines complain of, or None."""
    return next((cure for line in lines if (cure := _cure(line))), None)


def _cure(line: str) -> str | None:
    return next((cure for pattern, cure in _CURES if re.search(pattern, line)), None)


def short(line: str) -> str:
    """Return a log line without what stands before its message."""
    return re.sub(r"^.*?(\w*(?:Error|Exception)\b)", r"\1", line)[:400].rstrip(". ")
