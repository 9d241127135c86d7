"""Where a package comes from: the code that made it, and the pool that it holds, as hashes that can be compared."""

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from benchcheck import __version__
from benchcheck.errors import StudyError
from benchcheck.study import Study

__all__ = ["code_version", "pool_facts", "read_json"]

_GIT_S = 10


@cache
def code_version() -> dict[str, str]:
    """Return benchcheck's version, the commit where it runs from a clone as committed, and a hash of its own files.

    The hash is over names and contents of all files of the package but compiled ones, so that an edited installation
    shows, whatever its version says. 3 MB: 10 ms.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(root).as_posix()}\0{content}\n".encode())
    return {"version": __version__, "commit": _commit(root), "source_sha256": digest.hexdigest()}


def _commit(root: Path) -> str:
    """Return the commit that this code is, followed by `+` where files differ; nothing where git does not keep it."""
    told = []
    for command in (
        ("ls-files", "--error-unmatch", "__init__.py"),
        ("rev-parse", "HEAD"),
        ("status", "--porcelain", "--", "."),
    ):
        try:
            found = subprocess.run(
                ["git", "-C", str(root), *command], capture_output=True, text=True, timeout=_GIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        if found.returncode:
            return ""
        told.append(found.stdout.strip())
    return told[1] + ("+" if told[2] else "")


def pool_facts(study: Study) -> dict[str, Any]:
    """Return a pool as a package names it: a sha256 over all item ids and digests, and items per benchmark.

    The hash does not depend on the pool's order. 300,000 items take 0.5 s.

    Raises:
        StudyError: there is no pool yet, or its file is damaged.
    """
    table = study.item_table(["item_id", "item_digest", "bench", "format"])
    columns = [table.column(name).to_pylist() for name in ("item_id", "item_digest")]
    digest = hashlib.sha256()
    for pair in sorted(zip(*columns, strict=True)):
        digest.update(json.dumps(pair, ensure_ascii=True).encode() + b"\n")
    benchmarks: dict[str, dict[str, int]] = {}
    for bench, kind in zip(table.column("bench").to_pylist(), table.column("format").to_pylist(), strict=True):
        counts = benchmarks.setdefault(bench, {"items": 0, "mcq": 0})
        counts["items"] += 1
        counts["mcq"] += kind == "mcq"
    return {"sha256": digest.hexdigest(), "items": len(table), "benchmarks": benchmarks}


def read_json(path: Path, what: str, most: int = 1 << 26) -> dict[str, Any]:
    """Read a file that holds one JSON object, such as package.json.

    Raises:
        StudyError: it cannot be read, is too large, or holds something else; the line begins with `what`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        table = json.loads(data) if len(data) <= most else None
    except (OSError, ValueError, RecursionError) as reason:
        raise StudyError(f"{path}: {what} is not readable: {reason}. Cure: get it again") from None
    if not isinstance(table, dict):
        raise StudyError(f"{path}: {what} is no JSON object of at most {most} bytes. Cure: get it again")
    return table
