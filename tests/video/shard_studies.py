"""Studies whose frames travel: made-up pictures, so that packing and unpacking are seen byte by byte."""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchcheck.pool.items import Item
from benchcheck.study import Study
from benchcheck.tars import Member, write_tar
from benchcheck.video.frames import Drawn, publish_frames
from benchcheck.video.shards.packing import pack_frames

from .studies import item

COUNT = 3
"""Frames of a set here."""
SMALL = 20_000
"""Bytes of a shard here: two or three sets each."""
ITEMS = [
    *(item(f"{number}.mp4", number=number) for number in range(7)),
    *(item("0.mp4", start=float(start), end=start + 1.5, number=20 + start) for start in range(3)),
    item("open.mp4", number=30, form="open"),
]
KEYS = sorted({one.frames_key for one in ITEMS if one.format == "mcq"})


def picture(key: str, index: int) -> bytes:
    """Bytes that tell key and position."""
    return (f"{key} {index} ".encode("utf-8", "surrogateescape") * 200)[: 1500 + 7 * index]


def draw(study: Study, keys: Iterable[str], **changes: Any) -> None:
    """Make these sets."""
    frames = study.config.frames
    about = {"count": COUNT, "long_side": frames.long_side, "quality": frames.quality, "normalized": None}
    for key in keys:
        drawn = [Drawn(index / 2, index == 1, False, picture(key, index)) for index in range(COUNT)]
        publish_frames(study.frames, key, drawn, about | {"source": {"sha256": f"hash of {key}"}} | changes)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by name, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def visible(folder: Path) -> dict[str, bytes]:
    """What travels of a folder of shards."""
    return {name: data for name, data in contents(folder).items() if not name.startswith(".")}


def resealed(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest."""
    path = folder / "frames_manifest.json"
    table = json.loads(path.read_text())
    change(table)
    path.write_text(json.dumps(table))


def hostile(folder: Path, *members: Member, data: bytes | None = None, **changes: Any) -> Path:
    """A folder with one shard of these members, and a manifest whose hash is right."""
    folder.mkdir(parents=True, exist_ok=True)
    shard = folder / "frames_000.tar"
    if data is None:
        write_tar(shard, members)
    else:
        shard.write_bytes(data)
    entry = {
        "file": shard.name,
        "sha256": hashlib.sha256(shard.read_bytes()).hexdigest(),
        "bytes": shard.stat().st_size,
    }
    table = {"n_videos": 1, "shards": [entry | {"n_videos": 1} | changes]}
    (folder / "frames_manifest.json").write_text(json.dumps(table))
    return folder


def members_of_set(study: Study, key: str) -> list[Member]:
    """The files of a set, as they are packed."""
    names = ["frames.json", *(f"frame_{index}.jpg" for index in range(COUNT))]
    return [Member(f"{key}/{name}", (study.frames / key / name).read_bytes()) for name in names]


def packed(study: Study, folder: Path, **settings: Any) -> Path:
    """Pack a study's frames into small shards."""
    pack_frames(study, folder, **{"shard_bytes": SMALL} | settings)
    return folder


def pool(study: Study, items: Iterable[Item] = ITEMS) -> Study:
    """Give a study these items."""
    study.write_pool(items)
    return study
