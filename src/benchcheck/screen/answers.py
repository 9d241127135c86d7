"""Answers: all readings of an item in one step, as the row that goes to disk, or as an error row (protocol 5 and 6)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.config import Config
from benchcheck.pool.items import Item
from benchcheck.screen.prompts import Prompt, option_orders, render_text
from benchcheck.screen.readings import PERMANENT_FAILURES, Failure, Reading, argmax, margin_of
from benchcheck.screen.steps import Sight, Step
from benchcheck.screen.verdicts import Rule

__all__ = ["Asking", "answer_row", "error_row", "prompts_of", "retry_row"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What all rows of a step share."""

    config: Config
    step: Step
    key: str
    """The step key."""
    revision: str
    """The checkpoint's revision as loaded."""
    engine: Mapping[str, str]
    """Name, version, dtype and device of what answered."""

    @property
    def rule(self) -> Rule:
        """When an item leaves."""
        return Rule(self.config.protocol.right_share, self.config.protocol.margin)

    @property
    def mass_floor(self) -> float:
        """Label mass under which a reading is unreadable; the original preset has none."""
        return self.config.protocol.mass_floor if self.config.protocol.preset == "exact" else 0.0


def prompts_of(item: Item, step: Step, config: Config, frames: Sequence[str] = ()) -> list[Prompt]:
    """Return an item's prompts in a step, one per option order; `frames` are image files in the order shown."""
    k = len(item.options)
    orders = [tuple(range(k))]
    if step.permuted:
        orders = option_orders(item.item_id, k, n=config.protocol.orders, seed=config.protocol.seed)
    intro = config.intro(step.sight)
    question = None if step.sight is Sight.OPTIONS_ONLY else item.question
    prefix = item.frames_key if frames else item.item_id
    return [
        Prompt(
            item_id=item.item_id,
            step=step.number,
            order=order,
            text=render_text(intro, question, [item.options[index] for index in order]),
            frames=tuple(frames),
            prefix=prefix,
        )
        for order in orders
    ]


def answer_row(
    asking: Asking, item: Item, prompts: Sequence[Prompt], results: Sequence[Reading | Failure], at: str
) -> dict[str, Any]:
    """Return an item's row: its answer, or an error row where a single order is unreadable.

    An answer's fields are those of protocol 6; `item_digest` ties it to the item's text, `engine` says what answered.
    """
    failures = [failure for result in results if (failure := _failure_of(result, asking.mass_floor)) is not None]
    if failures:
        # A kind that repeats by nature decides: asking again cannot mend the item, whatever the other orders said.
        worst = next((failure for failure in failures if failure.kind in PERMANENT_FAILURES), failures[0])
        return error_row(asking, item, worst, at)
    assert item.gold is not None, f"{item.item_id} has no gold and must never be asked"
    readings = [result for result in results if isinstance(result, Reading)]
    golds = [prompt.order.index(item.gold) for prompt in prompts]
    margins = [margin_of(reading.letters.logprobs, gold) for reading, gold in zip(readings, golds, strict=True)]
    right = [argmax(reading.letters.logprobs) == gold for reading, gold in zip(readings, golds, strict=True)]
    mean_margin = math.fsum(margins) / len(margins)
    return _head(asking, item) | {
        "status": "ok",
        "model": asking.config.models[asking.step.role].model,
        "revision": asking.revision,
        "n_perm": len(prompts),
        "orders": [list(prompt.order) for prompt in prompts],
        "logprobs": [list(reading.letters.logprobs) for reading in readings],
        "missing": [list(reading.letters.missing) for reading in readings],
        "label_mass": [reading.letters.label_mass for reading in readings],
        "margins": margins,
        "right": right,
        "n_right": sum(right),
        "mean_margin": mean_margin,
        "removed": asking.rule.removes(sum(right), len(prompts), mean_margin),
        "prompt_tokens": [reading.prompt_tokens for reading in readings],
        "latency_s": round(math.fsum(reading.latency_s for reading in readings), 6),
        "engine": dict(asking.engine),
        "at": at,
    }


def _failure_of(result: Reading | Failure, mass_floor: float) -> Failure | None:
    """Say why a prompt's result is no answer; None where it is one."""
    if isinstance(result, Failure):
        return result
    letters = result.letters
    if not all(map(math.isfinite, (*letters.logprobs, letters.label_mass))):
        return Failure("not_finite", "a letter's log-probability is infinite or not a number")
    if letters.label_mass < mass_floor:
        detail = f"label mass {letters.label_mass:.3g} is under the floor of {mass_floor:g}"
        return Failure("low_label_mass", detail)
    return None


def error_row(asking: Asking, item: Item, failure: Failure, at: str) -> dict[str, Any]:
    """Return the row of an item that could not be read: a kind and a detail, never an answer."""
    return _head(asking, item) | {"status": "error", "error": failure.kind, "detail": failure.detail, "at": at}


def retry_row(asking: Asking, item: Item, errors: int, at: str) -> dict[str, Any]:
    """Return the row that asks for another try of an item that failed: its `errors` so far count no more."""
    return _head(asking, item) | {"status": "retry", "forgives": errors, "at": at}


def _head(asking: Asking, item: Item) -> dict[str, Any]:
    """What both kinds of row begin with."""
    return {
        "item_id": item.item_id,
        "bench": item.bench,
        "step": asking.step.number,
        "step_key": asking.key,
        "item_digest": item.digest,
    }
