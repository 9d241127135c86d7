"""Rows of the original package's layout as items and answers of a study: names, what is derived, what is refused. Pure.

The protocol gives the names (sections 1 and 6); what else a field is called is in the two tables here, and nowhere.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.config import BENCH_NAME
from benchcheck.pool.items import Item, VideoRef
from benchcheck.screen.prompts import LETTERS, option_orders
from benchcheck.screen.readings import MISSING_LOGPROB, argmax, margin_of
from benchcheck.screen.verdicts import Rule

__all__ = [
    "ITEM_NAMES",
    "ITEM_NEEDED",
    "MARGIN_TOLERANCE",
    "ROW_NAMES",
    "Answer",
    "Asked",
    "UnfitError",
    "answer_of",
    "item_of",
    "named",
]

ITEM_NAMES: Mapping[str, tuple[str, ...]] = {
    "item_id": ("item_id", "id", "uid"),
    "bench": ("bench", "benchmark", "dataset"),
    "question": ("question", "query"),
    "options": ("options", "choices", "candidates"),
    "gold": ("gold", "gold_idx", "gold_index", "answer_idx", "correct_idx", "answer"),
    "source_id": ("source_id", "question_id", "qid"),
    "format": ("format",),
    "video_key": ("video_key", "video", "video_path"),
    "video_id": ("video_id",),
    "start": ("start", "start_s", "t_start"),
    "end": ("end", "end_s", "t_end"),
    "category": ("category", "task_type", "task"),
    "duration": ("duration", "duration_s"),
    "issues": ("issues",),
    "subtitles": ("subtitles",),
    "group": ("group",),
    "file_gold": ("file_gold",),
}
"""Field of an item to what its column may be called, best first."""
ITEM_NEEDED = ("item_id", "bench", "question", "options", "gold")
ROW_NAMES: Mapping[str, tuple[str, ...]] = {
    "item_id": ("item_id", "id", "uid"),
    "bench": ("bench", "benchmark", "dataset"),
    "step": ("step",),
    "status": ("status",),
    "error": ("error",),
    "detail": ("detail",),
    "model": ("model", "model_id"),
    "revision": ("revision", "model_revision"),
    "n_perm": ("n_perm", "n_orders", "n_perms"),
    "orders": ("orders", "perms", "permutations"),
    "logprobs": ("logprobs", "letter_logprobs", "lps"),
    "missing": ("missing",),
    "label_mass": ("label_mass", "mass"),
    "margins": ("margins", "margin_per_order"),
    "right": ("right", "correct"),
    "n_right": ("n_right", "n_correct"),
    "mean_margin": ("mean_margin", "margin"),
    "removed": ("removed", "drop", "dropped"),
    "prompt_tokens": ("prompt_tokens",),
    "latency_s": ("latency_s", "latency"),
    "at": ("at", "time", "timestamp"),
}
"""Field of a step row to what it may be called, best first."""
MARGIN_TOLERANCE = 1e-3
"""(D) In nats. Numbers that were rounded to three digits are the same; the rule's threshold is 0.69."""


class UnfitError(Exception):
    """A row that cannot be taken; the text is a kind that is counted."""


def named(names: Mapping[str, tuple[str, ...]], found: Iterable[str]) -> dict[str, str]:
    """Return field to column name for the fields that are there."""
    there = set(found)
    return {field: next(name for name in all_ if name in there) for field, all_ in names.items() if there & {*all_}}


def item_of(row: Mapping[str, Any], columns: Mapping[str, str]) -> Item:
    """Return the item of a row of the package's table of items.

    Raises:
        UnfitError: it has no id, benchmark, question or options.
    """
    value = {field: row[column] for field, column in columns.items()}
    item_id, bench = _text(value["item_id"], "item without an item_id"), _text(value["bench"], "item without a bench")
    if BENCH_NAME.fullmatch(bench) is None:  # it becomes the name of a file
        raise UnfitError("item whose benchmark's name is not of letters, digits, _ and -, 64 at most")
    options = _options(value["options"])
    gold, issues = _gold(value["gold"], options), list(value.get("issues") or ())
    says_mcq = str(value.get("format") or "mcq") == "mcq"
    fits = gold is not None and 0 <= gold < len(options) and 2 <= len(options) <= len(LETTERS)
    if says_mcq and not fits and not issues:
        issues.append("hidden_gold" if gold is None else "gold_out_of_range" if len(options) > 1 else "single_option")
    video = _video(value.get("video_key"), bench)
    return Item(
        item_id=item_id,
        bench=bench,
        source_id=str(value.get("source_id") or item_id.removeprefix(f"{bench}_")),
        question=value["question"] if isinstance(value["question"], str) else "",
        options=options,
        gold=gold if fits else None,
        format="mcq" if says_mcq and fits else "open",
        video_key=video.key,
        video_id=str(value.get("video_id") or video.video_id),
        start=_number(value.get("start")),
        end=_number(value.get("end")),
        category=str(value.get("category") or ""),
        duration=_number(value.get("duration")),
        issues=tuple(map(str, issues)),
        subtitles=str(value.get("subtitles") or ""),
        group=str(value.get("group") or ""),
        file_gold=value.get("file_gold"),
    )


def _text(value: object, fault: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
        raise UnfitError(fault)
    return str(value)


def _options(value: object) -> tuple[str, ...]:
    """The options, as a list or as its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list | tuple):
        raise UnfitError("item whose options are no list")
    return tuple(map(str, value))


def _gold(value: object, options: Sequence[str]) -> int | None:
    """The gold as an index, from an index or a letter; None where it is neither."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    if isinstance(value, str):
        text = value.strip()
        if len(text) == 1 and text.upper() in LETTERS and text not in options:
            return LETTERS.index(text.upper())
        return int(text) if text.isascii() and text.isdigit() and text not in options and len(text) < 4 else None
    return None


def _video(key: object, bench: str) -> VideoRef:
    """The video that a key or a name means; a name without a namespace is its benchmark's."""
    repo, *rest = str(key or "").split("::", 2)
    return VideoRef(repo, rest[1], rest[0]) if len(rest) == 2 else VideoRef(bench, str(key or ""))


def _number(value: object) -> float | None:
    """A finite number of seconds."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a study asks in one step, as its rows must have it."""

    step: int
    orders: int
    permuted: bool
    seed: int
    rule: Rule

    def orders_for(self, item: Item) -> list[tuple[int, ...]]:
        """The orders in which the study would show an item's options."""
        k = len(item.options)
        return option_orders(item.item_id, k, n=self.orders, seed=self.seed) if self.permuted else [tuple(range(k))]


@dataclass(frozen=True, slots=True)
class Answer:
    """A package's answer as a study has it, and what the package says itself."""

    fields: Mapping[str, Any]
    """Of protocol 6, from `n_perm` to `latency_s`."""
    their_n_right: int | None
    their_margin: float | None
    their_removed: bool | None
    our_orders: list[list[int]]
    """Those in which the study would ask; margins and hits do not depend on them."""

    def differences(self) -> list[tuple[str, object, object]]:
        """Return what the package says and what our rule says of the same readings, where they are not the same.

        Last come the orders, where it showed others than the study's seed gives.
        """
        ours = self.fields
        found: list[tuple[str, object, object]] = []
        if self.their_removed is not None and self.their_removed != ours["removed"]:
            found.append(("removed", self.their_removed, ours["removed"]))
        if self.their_n_right is not None and self.their_n_right != ours["n_right"]:
            found.append(("n_right", self.their_n_right, ours["n_right"]))
        if self.their_margin is not None and not abs(self.their_margin - ours["mean_margin"]) <= MARGIN_TOLERANCE:
            found.append(("mean_margin", self.their_margin, ours["mean_margin"]))
        if self.our_orders != ours["orders"]:
            found.append(("orders", ours["orders"], self.our_orders))
        return found


def answer_of(row: Mapping[str, Any], item: Item, asked: Asked) -> Answer:
    """Return an answer from a row by our names: what it lacks is derived from its orders and log-probs and the gold.

    Raises:
        UnfitError: it holds too little, or something that cannot be.
    """
    k, gold = len(item.options), item.gold
    if not item.askable or gold is None:
        raise UnfitError("answer of an item that is not multiple-choice")
    logprobs = _logprobs(row.get("logprobs"), k)
    given = row.get("orders")
    ours = asked.orders_for(item)
    orders = ours if given is None else _orders(given, k)
    margins, right = _list(row.get("margins"), _is_number), _list(row.get("right"), _is_flag)
    if logprobs is not None:
        if len(logprobs) != len(orders):
            raise UnfitError("answer whose log-probs and orders are not as many")
        golds = [order.index(gold) for order in orders]
        margins = [margin_of(one, place) for one, place in zip(logprobs, golds, strict=True)]
        right = [argmax(one) == place for one, place in zip(logprobs, golds, strict=True)]
    n_perm = _count(row.get("n_perm")) or len(logprobs or margins or right or orders)
    if n_perm != asked.orders or {n_perm} != {len(each) for each in (orders, margins, right) if each is not None}:
        raise UnfitError("answer of another number of orders than the study asks")
    theirs, mean = _count(row.get("n_right")), _finite(row.get("mean_margin"))
    n_right = sum(right) if right is not None else theirs
    margin = math.fsum(margins) / n_perm if margins is not None else mean
    if n_right is None or margin is None or n_right > n_perm:
        raise UnfitError("answer with too little to judge it: log-probs, or hits and margins")
    fields = {
        "n_perm": n_perm,
        "orders": [list(order) for order in orders],
        "logprobs": logprobs,
        "missing": _missing(row.get("missing"), logprobs),
        "label_mass": _mass(row.get("label_mass"), logprobs),
        "margins": margins,
        "right": right,
        "n_right": n_right,
        "mean_margin": margin,
        "removed": asked.rule.removes(n_right, n_perm, margin),
        "prompt_tokens": _list(row.get("prompt_tokens"), _is_count),
        "latency_s": _finite(row.get("latency_s")),
    }
    removed = row.get("removed")
    their_removed = bool(removed) if isinstance(removed, bool) or removed in (0, 1) else None
    return Answer(fields, theirs, mean, their_removed, [list(order) for order in ours])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, int) and value in (0, 1))


def _finite(value: object) -> float | None:
    """A number, or nothing."""
    return float(value) if _is_number(value) else None  # type: ignore[arg-type]


def _count(value: object) -> int | None:
    """A count, or nothing."""
    return int(value) if _is_count(value) else None  # type: ignore[call-overload]


def _list(value: object, good: Any) -> list[Any] | None:
    """A list of good values, one of a single one where the step has one order; nothing where it is none."""
    if value is None:
        return None
    values = value if isinstance(value, list) else [value]
    if not all(map(good, values)):
        raise UnfitError("answer with a value that is no number")
    return [bool(each) if good is _is_flag else each for each in values]


def _logprobs(value: object, k: int) -> list[list[float]] | None:
    """Per order the letters' log-probs by shown position, from lists or from objects by letter."""
    if value is None:
        return None
    if isinstance(value, dict) or (isinstance(value, list) and value and not isinstance(value[0], list | dict)):
        value = [value]  # one order, written without its list
    if not isinstance(value, list) or not value:
        raise UnfitError("answer whose log-probs are no list")
    rows = []
    for each in value:
        letters = [each.get(letter, MISSING_LOGPROB) for letter in LETTERS[:k]] if isinstance(each, dict) else each
        if not isinstance(letters, list) or len(letters) != k or not all(map(_is_number, letters)):
            raise UnfitError("answer whose log-probs are not one number per option")
        rows.append([float(letter) for letter in letters])
    return rows


def _orders(value: object, k: int) -> list[tuple[int, ...]]:
    """Option orders, each a permutation."""
    if isinstance(value, list) and value and not isinstance(value[0], list):
        value = [value]
    whole = list(range(k))
    rows = value if isinstance(value, list) else [value]
    if not rows or not all(isinstance(o, list) and all(map(_is_count, o)) and sorted(o) == whole for o in rows):
        raise UnfitError("answer with an order that is none of its options")
    return [tuple(order) for order in rows if isinstance(order, list)]


def _missing(value: object, logprobs: Sequence[Sequence[float]] | None) -> list[list[str]] | None:
    """The letters that were not among the top tokens: as the row says, else those that have what such a one gets."""
    if logprobs is None:
        return None
    if isinstance(value, list) and len(value) == len(logprobs) and all(isinstance(each, list) for each in value):
        return [[str(letter) for letter in each] for each in value]
    return [
        [letter for letter, one in zip(LETTERS, row, strict=False) if abs(one - MISSING_LOGPROB) < 1e-9]
        for row in logprobs
    ]


def _mass(value: object, logprobs: Sequence[Sequence[float]] | None) -> list[float] | None:
    """The letters' total probability per order: as the row says, else the sum over those that were seen."""
    if value is not None:
        return _list(value, _is_number)
    if logprobs is None:
        return None
    return [math.fsum(math.exp(one) for one in row if abs(one - MISSING_LOGPROB) >= 1e-9) for row in logprobs]
