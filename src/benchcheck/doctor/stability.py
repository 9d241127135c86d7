"""Checks of whether a reading stays what it is: cold, cached, batched, and on another engine. Pure.

Decision (D): what matters is the verdict's threshold of log 2 = 0.69 nats. Sums in another order move bfloat16 readings
by some hundredths; half of log 2 in a single letter is a warning, all of it a failure.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchcheck.doctor.exam import Question
from benchcheck.doctor.findings import Finding, Limits, Verdict, not_applicable
from benchcheck.doctor.stack import Sitting
from benchcheck.screen.noise import Difference, Noise, Twice, compare, noise_of
from benchcheck.screen.readings import Reading
from benchcheck.screen.verdicts import Rule

__all__ = ["Agreement", "agreement", "difference", "same_again"]

MOST = Limits(good=math.log(2) / 2, fair=math.log(2))
MEAN = Limits(good=0.05, fair=0.15)
LOST_LEAD = Limits(good=0.2, fair=0.5)
_ORDER = (Verdict.PASS, Verdict.WARN, Verdict.FAIL)


def difference(first: Sitting, second: Sitting) -> Difference:
    """Compare two sittings of the same prompts; prompts that failed in one are left out."""
    pairs = [
        (one.letters.logprobs, other.letters.logprobs)
        for one, other in zip(first.results, second.results, strict=True)
        if isinstance(one, Reading) and isinstance(other, Reading)
    ]
    return compare([one for one, _ in pairs], [other for _, other in pairs])


def _judge(found: Difference) -> Verdict:
    """The worst that any of the three limits says."""
    verdicts = (
        MOST.judge(found.letters.most),
        MEAN.judge(found.letters.mean),
        LOST_LEAD.judge(found.lost_lead),
    )
    return max(verdicts, key=_ORDER.index)


def same_again(name: str, ways: Mapping[str, tuple[Sitting, Sitting]]) -> Finding:
    """Check that the same prompts read in other ways give the same readings.

    Args:
        name: of the check.
        ways: per way, prompts as first read and as read in that way.
    """
    found = {way: difference(*pair) for way, pair in ways.items()}
    found = {way: one for way, one in found.items() if one.prompts}
    if not found:
        return not_applicable(name, "no prompt was read twice")
    verdict = max((_judge(one) for one in found.values()), key=_ORDER.index)
    # A comparison in which nothing came from a cache says nothing of the cache, so each says how much did.
    cached = {way: sum(reading.cached_tokens for reading in ways[way][1].readings) for way in found}
    shown = "; ".join(
        f"{way} ({cached[way]:,} tokens reported as cached): at most {one.letters.most:.2g}, mean "
        f"{one.letters.mean:.2g}, same letter {one.same_top:.1%}"
        for way, one in found.items()
    )
    figures: dict[str, float] = {}
    for way, one in found.items():
        key = way.replace(" ", "_")
        figures |= {f"most_{key}": one.letters.most, f"mean_{key}": one.letters.mean, f"same_{key}": one.same_top}
        figures[f"cached_{key}"] = cached[way]
    return Finding(
        name=name,
        verdict=verdict,
        measured=f"nats, {shown}",
        wanted=f"at most {MOST.good:.2f} in a letter, {MEAN.good:g} on average; no clear letter changes",
        cure=""
        if verdict is Verdict.PASS
        else "turn the prefix cache off and ask again; then a smaller batch; see docs/doctor.md",
        figures=figures,
    )


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two engines on the same prompts."""

    letters: Difference
    noise: Noise
    """Margins and verdicts of whole items."""


def agreement(
    name: str, pairs: Sequence[tuple[Sitting, Sitting]], questions: Sequence[Question], rule: Rule
) -> tuple[Finding, Agreement]:
    """Compare two engines: letters, first letters, and verdicts at the margin rule.

    Args:
        name: of the check.
        pairs: sittings of the first engine and of the second.
        questions: what the prompts ask, for those whose right option is known.
        rule: when an item leaves.
    """
    whole = Sitting(
        tuple(prompt for one, _ in pairs for prompt in one.prompts),
        tuple(result for one, _ in pairs for result in one.results),
    )
    again = Sitting(whole.prompts, tuple(result for _, other in pairs for result in other.results))
    gold = {question.item.item_id: question.gold for question in questions}
    found = Agreement(difference(whole, again), noise_of(_twice(pairs, gold), rule))
    failed = [
        len(sitting.results) - len([one for one in sitting.readings if math.isfinite(one.letters.label_mass)])
        for sitting in (whole, again)
    ]
    verdict = _judge(found.letters) if found.letters.prompts else Verdict.FAIL
    verdict = Verdict.FAIL if failed[0] != failed[1] else verdict
    letters, noise = found.letters, found.noise
    lost = f"; failed {failed[0]} and {failed[1]}" if any(failed) else ""
    return Finding(
        name=name,
        verdict=verdict,
        measured=f"nats, at most {letters.letters.most:.2g}, 99 % within {letters.letters.p99:.2g}, mean "
        f"{letters.letters.mean:.2g}; same letter {letters.same_top:.1%} of {letters.prompts}; margins move by at most "
        f"{noise.margins.most:.2g}; {noise.flips} of {noise.items} verdicts differ{lost}",
        wanted=f"at most {MOST.good:.2f} in a letter, {MEAN.good:g} on average; no clear letter changes",
        cure="" if verdict is Verdict.PASS else "answers of these two engines should not be mixed in one study",
        figures={
            "prompts": letters.prompts,
            "most": letters.letters.most,
            "p99": letters.letters.p99,
            "mean": letters.letters.mean,
            "same_letter": letters.same_top,
            "lost_lead": letters.lost_lead,
            "margin_most": noise.margins.most,
            "items": noise.items,
            "flips": noise.flips,
        },
    ), found


def _twice(pairs: Sequence[tuple[Sitting, Sitting]], gold: Mapping[str, int]) -> list[Twice]:
    """Put an item's orders together, within each sitting."""
    whole = []
    for first, second in pairs:
        items: dict[str, list[tuple[int, tuple[float, ...], tuple[float, ...]]]] = {}
        for prompt, one, other in zip(first.prompts, first.results, second.results, strict=True):
            if prompt.item_id in gold and isinstance(one, Reading) and isinstance(other, Reading):
                at = prompt.order.index(gold[prompt.item_id])
                items.setdefault(prompt.item_id, []).append((at, one.letters.logprobs, other.letters.logprobs))
        for orders in items.values():
            golds, ones, others = zip(*orders, strict=True)
            whole.append(Twice(golds, ones, others))
    return whole
