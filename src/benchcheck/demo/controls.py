"""The control benchmark: planted items whose class is known, with real videos, and their truth in a file of its own.

`items.jsonl` is a benchmark like any other and says nothing about the classes; `truth.jsonl` does. No scene of the
controls was trained on, no fact in their phrasing (`facts`) and no option text that gives itself away (`phrases`); the
wordings of questions about what is seen are those of the training.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchcheck.demo.clips import write_clip
from benchcheck.demo.scenes import Scene, draw_scene
from benchcheck.demo.world import CLASSES, WorldItem, make_item, move_answer
from benchcheck.errors import RunError, StudyError, UsageError

__all__ = ["Control", "ControlSet", "draw_controls", "make_controls"]

_GOLDEN = 0.6180339887498949
"""Steps of this length spread the strengths evenly over 0 to 1, however many there are."""
_VARIANTS: Mapping[str, str] = {"vague": "leak", "longest": "leak", "misled": "misled"}
_KINDS: Mapping[str, tuple[str, ...]] = {
    "blind": ("fact",),
    "options": ("vague", "misled", "longest", "misled"),
    "one_frame": ("colour", "shape", "background"),
    "many_frames": ("never", "count"),
    "order": ("first", "direction", "last", "direction"),
}
"""The kinds of every class, in turn."""
_LEAST_SHARE = 16
"""Videos that a process more is worth starting for."""
_PAINTER = "from benchcheck.demo.controls import _paint_as_told; _paint_as_told()"
"""Not `-m`, so that a caller's script needs no guard and is not run again."""


@dataclass(frozen=True, slots=True)
class Control:
    """A planted item: its id, its video's file name, and the item with its truth."""

    id: str
    video: str
    item: WorldItem

    @property
    def row(self) -> dict[str, object]:
        """The item as a benchmark would publish it."""
        item = self.item
        return {
            "id": self.id,
            "question": item.question,
            "options": list(item.options),
            "answer": item.answer,
            "video": self.video,
        }

    @property
    def truth(self) -> dict[str, object]:
        """What is known about the item."""
        item = self.item
        return {
            "id": self.id,
            "class": item.klass,
            "kind": item.kind,
            "variant": _VARIANTS.get(item.kind, item.kind),
            "strength": round(item.strength, 4),
            "lure": item.lure,
            "video": self.video,
        }


@dataclass(frozen=True, slots=True)
class ControlSet:
    """Where a control benchmark lies."""

    items: Path
    truth: Path
    videos: tuple[Path, ...]
    controls: tuple[Control, ...]


def make_controls(
    out_dir: Path | str, *, n_per_class: int = 24, seed: int = 1, workers: int | None = None
) -> ControlSet:
    """Write a control benchmark of five classes to a folder; the items file is written last.

    The same numbers and seed give the same content. `workers` processes paint the videos, by default one per core.

    Raises:
        UsageError: the numbers are no numbers of items and workers, or the folder holds another items or truth file.
        StudyError: the folder cannot be written.
        RunError: a worker died.
    """
    if n_per_class < 1 or (workers is not None and workers < 1):
        raise UsageError(f"controls: {n_per_class} items a class by {workers} workers. Allowed: 1 or more")
    out = Path(out_dir)
    controls = draw_controls(n_per_class, seed)
    videos = tuple(out / name for name in dict.fromkeys(control.video for control in controls))
    made = ControlSet(out / "items.jsonl", out / "truth.jsonl", videos, tuple(controls))
    share = _Share(str(out), n_per_class, seed, 0, workers or _enough_workers(len(videos)))
    try:
        _refuse_others(made)
        out.mkdir(parents=True, exist_ok=True)
        _paint(share)
        _write_rows(made.truth, (control.truth for control in controls))
        _write_rows(made.items, (control.row for control in controls))
    except OSError as reason:
        raise StudyError(f"{out}: the controls cannot be written there ({reason})") from reason
    return made


def draw_controls(n_per_class: int, seed: int) -> list[Control]:
    """Return so many planted items of every class, in a random order, as their files will hold them."""
    rng = random.Random(f"controls|{seed}")
    start = rng.random()
    clarities = [(start + place * _GOLDEN) % 1 for place in range(2 * n_per_class)]
    scenes = [
        group
        for number in range(n_per_class)
        for group in _questions(rng, number, (clarities[number], clarities[number + n_per_class]))
    ]
    rng.shuffle(scenes)
    named = [(f"v{place:05d}.mp4", item) for place, group in enumerate(scenes) for item in group]
    rng.shuffle(named)
    balanced = _balanced(rng, [item for _, item in named])
    return [
        Control(f"c{place:05d}", video, item)
        for place, ((video, _), item) in enumerate(zip(named, balanced, strict=True))
    ]


def _kind(klass: str, number: int) -> str:
    return _KINDS[klass][number % len(_KINDS[klass])]


def _questions(rng: random.Random, number: int, clarities: tuple[float, float]) -> list[list[WorldItem]]:
    """Return one item of every class, on two scenes of two or three questions each.

    One scene changes colour, for many frames and order. The other keeps one, for the questions whose text is enough. A
    question that takes one frame goes where it can be answered.
    """
    n_colours = 2 + number // 2 % 4 if _kind("many_frames", number) == "count" else rng.choice((4, 4, 4, 5))
    if _kind("order", number) in ("first", "last"):
        n_colours = max(n_colours, 3)
    changing = draw_scene(rng, n_colours=n_colours, clarity=clarities[0])
    steady = draw_scene(rng, clarity=clarities[1])
    where = {"many_frames": changing, "order": changing, "blind": steady, "options": steady}
    where["one_frame"] = steady if _kind("one_frame", number) == "colour" else changing
    items = {klass: _held_item(rng, _kind(klass, number), scene) for klass, scene in where.items()}
    return [[item for klass, item in items.items() if where[klass] is scene] for scene in (changing, steady)]


def _held_item(rng: random.Random, kind: str, scene: Scene) -> WorldItem:
    """Return an item with held-out texts; one in four has capitalised options."""
    item = make_item(rng, kind, scene, held=True)
    if rng.random() < 0.25:
        item = replace(item, options=tuple(option[0].upper() + option[1:] for option in item.options))
    return item


def _balanced(rng: random.Random, items: Sequence[WorldItem]) -> list[WorldItem]:
    """Return the items with their answers at every position about equally often within each class."""
    positions: dict[str, list[int]] = {klass: [] for klass in CLASSES}
    moved = []
    for item in items:
        due, n = positions[item.klass], len(item.options)
        if not any(position < n for position in due):
            due.extend(rng.sample(range(n), n))
        position = next(position for position in due if position < n)
        due.remove(position)
        moved.append(move_answer(item, position))
    return moved


class _Share(NamedTuple):
    """The videos that one process paints: every `parts`-th of a control set, from number `part` on.

    A process draws the whole set again, which takes a moment, so that nothing but five words passes between them.
    """

    out: str
    n_per_class: int
    seed: int
    part: int
    parts: int

    @property
    def scenes(self) -> dict[Path, Scene]:
        """The scenes of the share by video file."""
        controls = draw_controls(self.n_per_class, self.seed)
        scenes = {control.video: control.item.scene for control in controls}
        mine = sorted(scenes)[self.part :: self.parts]
        return {Path(self.out) / name: scenes[name] for name in mine}


def _enough_workers(n_videos: int) -> int:
    """Return one process per core, fewer where starting one takes longer than it saves."""
    return max(1, min(os.cpu_count() or 1, n_videos // _LEAST_SHARE))


def _paint(share: _Share) -> None:
    """Paint all shares: the first here, the others in processes of their own."""
    commands = [
        [sys.executable, "-c", _PAINTER, *map(str, share._replace(part=part))] for part in range(1, share.parts)
    ]
    with ExitStack() as running:
        others = []
        for command in commands:
            process = running.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            running.callback(process.kill)
            others.append(process)
        _paint_share(share)
        for process in others:
            _, complaint = process.communicate()
            if process.returncode:
                raise RunError(f"a painter of control videos died ({process.returncode}): {complaint.strip()[-300:]}")


def _paint_as_told() -> None:
    """Paint the share that the command line names; what a process of its own does."""
    out, *numbers = sys.argv[1:]
    _paint_share(_Share(out, *map(int, numbers)))


def _paint_share(share: _Share) -> None:
    for path, scene in share.scenes.items():
        write_clip(scene, path)


def _refuse_others(made: ControlSet) -> None:
    """Refuse to write over a file that is not of these controls, whoever made it."""
    files = {made.items: [one.row for one in made.controls], made.truth: [one.truth for one in made.controls]}
    for path, rows in files.items():
        if path.exists() and path.read_bytes() != _text(rows).encode():
            raise UsageError(f"{path}: there is another file of this name. Cure: choose an empty folder")


def _text(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text(_text(rows), encoding="utf-8")
    os.replace(part, path)
