"""Packages of results that tests are made of: healthy ones, and ones that somebody changed."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchcheck.pool.items import Item
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from benchcheck.transfer.pack import FACTS, pack_returns
from studies import give_frames, make_study, row_of

__all__ = ["answer", "contents", "packed", "repacked", "twin", "verdict_rows"]


def twin(study: Study, root: Path) -> Study:
    """Return a second study with the same config, pool and frames, and no rows."""
    other = make_study(root)
    (root / "benchcheck.toml").write_text(
        (study.root / "benchcheck.toml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    other = Study.open(root)
    other.write_pool(study.items())
    give_frames(other, study.items())
    return other


def answer(
    study: Study, item: Item, step: int = 1, at: str = "2026-01-01T00:00:00+00:00", **changes: Any
) -> dict[str, Any]:
    """Return a whole answer, with the fields that rows of a run have."""
    orders = [list(range(len(item.options)))] * study.config.orders_of(LADDER[step])
    more = {"model": "scripted", "revision": "", "orders": orders, "logprobs": [[-0.5, -1.25]] * len(orders), "at": at}
    engine = {"name": "scripted", "version": "1", "dtype": "none", "device": "none"}
    return row_of(study, item, step) | more | {"latency_s": 0.25, "engine": engine} | changes


def packed(study: Study, folder: Path) -> Path:
    """Pack a study and return the file."""
    folder.mkdir(exist_ok=True)
    return pack_returns(study, folder).file


def contents(file: Path) -> dict[str, bytes]:
    """Return every member of a package in order."""
    with tarfile.open(file) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


def repacked(
    file: Path,
    members: Mapping[str, bytes],
    extra: Sequence[tarfile.TarInfo] = (),
    facts: Mapping[str, Any] | None = None,
    listed: bool = True,
) -> Path:
    """Write a package anew with other members, its returns.json and `.sha256` made to fit."""
    table = json.loads(members[FACTS]) | (facts or {})
    if listed:
        table["files"] = {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "lines": data.count(b"\n")}
            for name, data in members.items()
            if name != FACTS
        }
    whole = {**members, FACTS: json.dumps(table).encode()}
    with tarfile.open(file, "w:gz") as tar:
        for name, data in whole.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for info in extra:
            tar.addfile(info)
    resealed(file)
    return file


def resealed(file: Path) -> None:
    """Make the `.sha256` beside a file fit it again."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    file.with_name(file.name + ".sha256").write_text(f"{digest}  {file.name}\n")


def verdict_rows(study: Study) -> list[tuple[Any, ...]]:
    """State and step of every item."""
    from benchcheck.run.plan import survey

    state = survey(study)
    return list(
        zip(state.pool.item_id.to_pylist(), state.fold.state.tolist(), state.fold.left_at.tolist(), strict=True)
    )


def flipped(file: Path, place: float) -> None:
    """Change one bit of a file."""
    data = bytearray(file.read_bytes())
    data[int(len(data) * place)] ^= 4
    file.write_bytes(data)


def plain_size(file: Path) -> int:
    """Bytes of a package unpacked."""
    return len(gzip.decompress(file.read_bytes()))
