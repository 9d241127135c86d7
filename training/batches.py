"""Batches of lessons as arrays: token ids, targets and scene numbers. Batch n is the same in every run."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bank import Bank
from lessons import FRAMES_PATHS, MIXES, PATHS, Pupil, draw_intro, draw_item
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch.utils.data import Dataset

from benchcheck.demo import facts
from benchcheck.demo.scenes import BACKGROUNDS, CELLS, COLOURS, DIRECTIONS, MIDDLE, SHAPES, draw_scene, grid
from benchcheck.demo.world import KINDS, NUMBERS, WorldItem, evidence
from benchcheck.screen.prompts import LETTERS, PREFILL, render_options, render_text
from benchcheck.screen.steps import Sight

__all__ = ["CONTENTS", "KIND_NAMES", "MAX_OPTIONS", "SIGHTS", "Lesson", "Lessons", "Reader"]

MAX_OPTIONS = 5
NO_CONTENT = -100
CLIPS_SHARE = 0.5
"""The share of lessons whose scene is a clip's, where there is a bank of clips."""
SIGHTS = tuple(Sight)
KIND_NAMES = tuple(KINDS)
_ANSWERS = [answer for category in facts.CATEGORIES.values() for answer in category.answers]
CONTENTS = tuple(dict.fromkeys([*COLOURS, *SHAPES, *BACKGROUNDS, *DIRECTIONS, *NUMBERS, *_ANSWERS]))
"""Every answer of the closed questions; an auxiliary head names it at the end of the question."""

_NAMED = {content.lower(): number for number, content in enumerate(CONTENTS)}

Arrays = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One item as it is asked once: what is shown, and under which words."""

    item: WorldItem
    sight: Sight
    cells: tuple[int, ...]
    intro: str


class Reader:
    """The tokenizer, and where things lie in a tokenized prompt."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.opening = self._tokenizer.encode("<|im_start|>user\n").ids
        letters = [self._tokenizer.encode(f" {letter}").ids for letter in LETTERS[:MAX_OPTIONS]]
        if any(len(ids) != 1 for ids in letters):
            raise ValueError("an option letter is more than one token")
        self.letters = [ids[0] for ids in letters]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self._tokenizer.encode(text).ids)

    def read(self, lesson: Lesson) -> tuple[list[int], int, list[int]]:
        """Return the ids behind the frames, the place of the question's end (-1: not shown) and of each option's."""
        item = lesson.item
        question = None if lesson.sight is Sight.OPTIONS_ONLY else item.question
        text = render_text(lesson.intro, question, item.options)
        encoding = self._tokenizer.encode(f"{text}<|im_end|>\n<|im_start|>assistant\n{PREFILL}")
        starts = np.asarray([start for start, _ in encoding.offsets])
        begin = text.index("Options:\n", len(lesson.intro)) + len("Options:\n")
        ends = [begin + len(render_options(item.options[: n + 1])) for n in range(len(item.options))]
        asked = -1 if question is None else int(np.searchsorted(starts, begin - len("\nOptions:\n")))
        return encoding.ids, asked, [int(np.searchsorted(starts, end)) for end in ends]


def _cells(rng: random.Random, sight: Sight, n_frames: int) -> tuple[int, ...]:
    if not sight.needs_frames:
        return ()
    if sight is Sight.SINGLE_FRAME:
        return (MIDDLE if rng.random() < 0.6 else rng.randrange(CELLS),)
    cells = grid(n_frames)
    return tuple(rng.sample(cells, n_frames)) if sight is Sight.SHUFFLED else cells


_SIGHTS_OF = {
    "frames": ((Sight.FRAMES, 0.68), (Sight.SHUFFLED, 0.32)),
    "one_frame": ((Sight.SINGLE_FRAME, 1.0),),
    "text": ((Sight.BLIND, 0.58), (Sight.OPTIONS_ONLY, 0.42)),
}


def _draw_lessons(rng: random.Random, sort: str, size: int, n_frames: int, bank: Bank) -> list[Lesson]:
    paths = FRAMES_PATHS if sort == "frames" else PATHS
    kinds, weights = list(MIXES[sort]), list(MIXES[sort].values())
    sights, shares = zip(*_SIGHTS_OF[sort], strict=True)
    lessons = []
    for kind in rng.choices(kinds, weights, k=size):
        sight = rng.choices(sights, shares)[0]
        draw = bank.draw if rng.random() < CLIPS_SHARE else draw_scene
        item = draw_item(rng, kind, paths=paths, draw=draw)
        lessons.append(Lesson(item, sight, _cells(rng, sight, n_frames), draw_intro(rng, sight)))
    return lessons


def _texts(reader: Reader, lessons: Sequence[Lesson]) -> Arrays:
    read = [reader.read(lesson) for lesson in lessons]
    longest = max(len(ids) for ids, _, _ in read)
    rows = len(lessons)
    text = np.zeros((rows, (longest + 15) // 16 * 16), np.int64)
    option_ends = np.zeros((rows, MAX_OPTIONS), np.int64)
    for row, (ids, _, ends) in enumerate(read):
        text[row, : len(ids)] = ids
        option_ends[row, : len(ends)] = ends
    return {
        "text": text,
        "last": np.asarray([len(ids) - 1 for ids, _, _ in read]),
        "question_end": np.asarray([asked for _, asked, _ in read]),
        "option_ends": option_ends,
    }


def _content(item: WorldItem, belief: Sequence[float], sight: Sight) -> int:
    """Return the number of the content that the question asks for, where the evidence settles it."""
    text = item.options[belief.index(max(belief))].lower()
    settled = max(belief) > 0.999 and sight is not Sight.OPTIONS_ONLY and item.kind != "never"
    return _NAMED.get(text, NO_CONTENT) if settled else NO_CONTENT


def _targets(pupil: Pupil, lessons: Sequence[Lesson]) -> Arrays:
    target = np.zeros((len(lessons), MAX_OPTIONS), np.float32)
    contents = []
    for row, lesson in enumerate(lessons):
        belief = evidence(lesson.item, lesson.sight, lesson.cells)
        target[row, : len(belief)] = pupil.target(lesson.item, lesson.sight, belief)
        contents.append(_content(lesson.item, belief, lesson.sight))
    return {
        "target": target,
        "content": np.asarray(contents),
        "answer": np.asarray([lesson.item.answer for lesson in lessons]),
        "n_options": np.asarray([len(lesson.item.options) for lesson in lessons]),
        "kind": np.asarray([KIND_NAMES.index(lesson.item.kind) for lesson in lessons]),
        "sight": np.asarray([SIGHTS.index(lesson.sight) for lesson in lessons]),
    }


def _scenes(lessons: Sequence[Lesson], bank: Bank) -> Arrays:
    scenes = [lesson.item.scene for lesson in lessons]
    return {
        "clip": np.asarray([bank.number(scene) for scene in scenes], np.int64),
        "cells": np.asarray([lesson.cells for lesson in lessons], np.int64),
        "colours": np.asarray([scene.colours for scene in scenes], np.int64),
        "motion": np.asarray([scene.motion.numbers for scene in scenes], np.float32),
        "shape": np.asarray([scene.shape for scene in scenes], np.int64),
        "background": np.asarray([scene.background for scene in scenes], np.int64),
        "radius": np.asarray([scene.radius for scene in scenes], np.float32),
        "clarity": np.asarray([scene.clarity for scene in scenes], np.float32),
    }


class Lessons(Dataset[Arrays]):
    """All batches of one sort, by number; half of the scenes are a bank's, if it has any to suit."""

    def __init__(self, folder: Path, pupil: Pupil, sort: str, size: int, seed: int, bank: Bank) -> None:
        self._folder, self._pupil, self._sort, self._size, self._seed = folder, pupil, sort, size, seed
        self._bank = bank
        self._reader: Reader | None = None

    def __len__(self) -> int:
        return self._pupil.steps

    def __getitem__(self, number: int) -> Arrays:
        if self._reader is None:
            self._reader = Reader(self._folder)
        rng = random.Random(f"lessons|{self._seed}|{self._sort}|{number}")
        n_frames = rng.choices((CELLS, 16, 8), (82, 10, 8))[0]
        lessons = _draw_lessons(rng, self._sort, self._size, n_frames, self._bank)
        return _texts(self._reader, lessons) | _targets(self._pupil, lessons) | _scenes(lessons, self._bank)
