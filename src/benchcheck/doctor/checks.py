"""Checks of what a stack answers: each is a function from readings to a finding. Pure.

Decision (D): the limits stand beside each check with their reason. None was measured on the real weights.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from benchcheck.doctor.exam import Question
from benchcheck.doctor.findings import Finding, Limits, Verdict, not_applicable
from benchcheck.doctor.stack import Sitting
from benchcheck.screen.prompts import LETTERS, Prompt
from benchcheck.screen.readings import Failure, Reading, argmax

__all__ = [
    "answered",
    "chosen",
    "every_place",
    "exam_passed",
    "frame_order_seen",
    "label_mass",
    "letters_mean_options",
    "letters_readable",
    "pixels_seen",
    "token_counts",
]

CORE = LETTERS[:5]
_MASS = 0.5
"""Under half of the probability on letters, something else is what the model wants to say."""
_AGREE = Limits(good=0.85, fair=0.60)
"""Orders that choose the same option: any letter by chance gives under 0.02 in four orders of four options."""
_MOVED = 0.05
"""Nats. A picture that is seen moves a reading by whole nats, another order of sums by hundredths."""
_PLACE = Limits(good=0.5, fair=0.2)
"""Nats by which the one frame that matters moves the reading, at the least."""


def chosen(prompt: Prompt, result: Reading | Failure) -> int | None:
    """Return the option, as stored, whose letter comes first; None without a finite reading."""
    if isinstance(result, Failure) or not all(map(math.isfinite, result.letters.logprobs)):
        return None
    return prompt.order[argmax(result.letters.logprobs)]


def letters_readable(variants: Mapping[str, Sequence[str]], unreadable: Mapping[str, str]) -> Finding:
    """Check that one token says each letter behind a prompt's real end.

    Args:
        variants: the texts of the tokens that stand for each letter.
        unreadable: letters that no single token says there, with what they become instead.
    """
    core = [letter for letter in CORE if letter in unreadable]
    verdict = Verdict.FAIL if core else Verdict.WARN if unreadable else Verdict.PASS
    shown = " ".join(map(repr, variants["A"]))
    counts = [len(texts) for texts in variants.values()]
    measured = f"A: {shown}; {min(counts)} to {max(counts)} tokens a letter"
    if unreadable:
        first = (core or sorted(unreadable))[0]
        measured += f"; not one token: {', '.join(sorted(unreadable))} ({unreadable[first]})"
    return Finding(
        name="letters are single tokens",
        verdict=verdict,
        measured=measured,
        wanted=f"each of {CORE[0]} to {CORE[-1]} one token behind the prompt's end; later letters as options need them",
        cure="" if verdict is Verdict.PASS else "another checkpoint; without it items with so many options fail",
        figures={"unreadable": len(unreadable), "least_variants": min(counts), "most_variants": max(counts)},
    )


def answered(sittings: Sequence[Sitting]) -> Finding:
    """Check that every prompt gave a reading of finite numbers."""
    kinds: Counter[str] = Counter()
    details: dict[str, str] = {}
    total = 0
    for sitting in sittings:
        for result in sitting.results:
            total += 1
            kind, detail = _fault(result)
            if kind:
                kinds[kind] += 1
                details.setdefault(kind, detail)
    worst = [f"{count} {kind} ({' '.join(details[kind].split())[:120]})" for kind, count in kinds.most_common(2)]
    failed = sum(kinds.values())
    return Finding(
        name="every prompt is answered",
        verdict=Verdict.FAIL if failed else Verdict.PASS,
        measured=f"{failed} of {total} failed" + (f": {'; '.join(worst)}" if worst else ""),
        wanted="no failure, no NaN",
        cure="docs/screen.md lists the kinds of failure with their cures" if failed else "",
        figures={"prompts": total, "failed": failed},
    )


def _fault(result: Reading | Failure) -> tuple[str, str]:
    """Return kind and detail of what is wrong with a result; an empty kind is nothing."""
    if isinstance(result, Failure):
        return result.kind, result.detail
    if not all(map(math.isfinite, (*result.letters.logprobs, result.letters.label_mass))):
        return "not_finite", "a letter's log-probability is infinite or not a number"
    return "", ""


def label_mass(kinds: Mapping[str, Sitting], floor: float) -> Finding:
    """Check that letters are what the model wants to say, in every kind of prompt.

    Args:
        kinds: a sitting per kind of prompt.
        floor: label mass under which a study's reading is an error.
    """
    least: dict[str, float] = {}
    middle: dict[str, float] = {}
    for name, sitting in kinds.items():
        masses = [reading.letters.label_mass for reading in sitting.readings] or [0.0]
        least[name] = min(masses) if all(map(math.isfinite, masses)) else math.nan
        middle[name] = median(masses)
    worst = min(least, key=lambda name: least[name] if math.isfinite(least[name]) else -1.0)
    verdict = Verdict.PASS if least[worst] >= _MASS else Verdict.WARN if least[worst] >= floor else Verdict.FAIL
    shown = ", ".join(f"{name} {middle[name]:.3f}" for name in kinds)
    return Finding(
        name="label mass",
        verdict=verdict,
        measured=f"median {shown}; least {least[worst]:.3g} ({worst})",
        wanted=f"at least {_MASS:g} everywhere; under {floor:g} a reading is an error",
        cure=""
        if verdict is Verdict.PASS
        else "the prefill is not continued, or the chat template is another one: compare it with the checkpoint's",
        figures={f"least_{name.replace(' ', '_')}": least[name] for name in kinds},
    )


def token_counts(name: str, sitting: Sitting, expected: Sequence[int] | str, cure: str) -> Finding:
    """Check that the engine computed as many tokens as the checkpoint's own template and processor make.

    A stack that leaves the prefill out, begins another turn behind it, drops frames or resizes them counts others.

    Args:
        name: of the check.
        sitting: prompts and their readings.
        expected: tokens per prompt, or why they are not known.
        cure: what to do where the counts differ.
    """
    if isinstance(expected, str):
        return not_applicable(name, expected)
    pairs = [
        (result.prompt_tokens, tokens)
        for result, tokens in zip(sitting.results, expected, strict=True)
        if isinstance(result, Reading)
    ]
    if not any(count for count, _ in pairs):
        return not_applicable(name, "the backend does not say how many tokens a prompt has")
    other = [(count, tokens) for count, tokens in pairs if count != tokens]
    example = f", such as {other[0][0]} instead of {other[0][1]}" if other else ""
    return Finding(
        name=name,
        verdict=Verdict.FAIL if other else Verdict.PASS,
        measured=f"{len(other)} of {len(pairs)} prompts have another number of tokens{example}",
        wanted="as many tokens as the checkpoint's own template and processor make",
        cure=cure if other else "",
        figures={"prompts": len(pairs), "other": len(other)},
    )


def exam_passed(
    name: str, sitting: Sitting, questions: Sequence[Question], wanted: float, *, other: bool = False
) -> Finding:
    """Check that known answers are found, and that no letter is read worse than the others.

    Args:
        name: of the check.
        sitting: the questions' prompts.
        questions: what was asked.
        wanted: share of right answers.
        other: whether `Question.other` was shown.
    """
    gold = {one.item.item_id: (one.other_gold if other else one.gold) for one in questions}
    asked = {one.item.item_id: one.item for one in questions}
    right: list[bool] = []
    letters: dict[str, list[bool]] = {}
    wrong: list[str] = []
    for prompt, result in zip(sitting.prompts, sitting.results, strict=True):
        option = chosen(prompt, result)
        right.append(option == gold[prompt.item_id])
        letters.setdefault(LETTERS[prompt.order.index(gold[prompt.item_id])], []).append(right[-1])
        item = asked[prompt.item_id]
        if not right[-1] and option is not None:
            wrong.append(f"{item.question} {item.options[option]}")
    share = fmean(right) if right else 0.0
    recalls = {letter: fmean(hits) for letter, hits in sorted(letters.items())}
    by_letter = " ".join(f"{letter} {recall:.2f}" for letter, recall in recalls.items())
    examples = f"; wrong: {'; '.join(dict.fromkeys(wrong[:3]))}" if share < wanted and wrong else ""
    return Finding(
        name=name,
        verdict=Verdict.PASS if share >= wanted else Verdict.FAIL,
        measured=f"{share:.1%} of {len(right)} right (by letter: {by_letter}){examples}",
        wanted=f"{wanted:.0%} right; guessing gives about 25 %",
        cure=""
        if share >= wanted
        else "the weights, the chat template, or the letters' tokens are not the model's own",
        figures={"share": share, "prompts": len(right), **{f"right_{key}": value for key, value in recalls.items()}},
    )


def letters_mean_options(sitting: Sitting) -> Finding:
    """Check that an item's orders choose the same option: a letter then stands for the option behind it."""
    options: dict[str, list[int | None]] = {}
    letters: Counter[str] = Counter()
    for prompt, result in zip(sitting.prompts, sitting.results, strict=True):
        option = chosen(prompt, result)
        options.setdefault(prompt.item_id, []).append(option)
        if option is not None:
            letters[LETTERS[prompt.order.index(option)]] += 1
    agreed = [None not in of_item and len(set(of_item)) == 1 for of_item in options.values()]
    share = fmean(agreed) if agreed else 0.0
    verdict = _AGREE.judge_share(share)
    spoken = " ".join(f"{letter} {letters[letter] / max(1, letters.total()):.0%}" for letter in sorted(letters))
    return Finding(
        name="a letter means its option",
        verdict=verdict,
        measured=f"{share:.1%} of {len(agreed)} items choose one option in all orders (letters: {spoken or '-'})",
        wanted=f"{_AGREE.good:.0%} of the items; letters about equally often",
        cure=""
        if verdict is Verdict.PASS
        else "letters are read from the wrong tokens, or the model answers by position",
        figures={"share": share, **{f"chosen_{letter}": count for letter, count in letters.items()}},
    )


def _moves(first: Sitting, second: Sitting) -> tuple[list[float], list[bool]]:
    """Return by how much each reading moves, and whether its first letter changes; failures are left out."""
    sizes, changed = [], []
    for one, other in zip(first.results, second.results, strict=True):
        if isinstance(one, Reading) and isinstance(other, Reading):
            pairs = list(zip(one.letters.logprobs, other.letters.logprobs, strict=True))
            moved = max(abs(b - a) for a, b in pairs)
            sizes.append(moved if math.isfinite(moved) else 0.0)
            changed.append(argmax(one.letters.logprobs) != argmax(other.letters.logprobs))
    return sizes, changed


def pixels_seen(shown: Sitting, other: Sitting, without: Sitting) -> Finding:
    """Check that another picture gives another answer.

    Args:
        shown: questions about a picture.
        other: the same questions about a picture that makes another option right.
        without: the same questions without any.
    """
    sizes, changed = _moves(shown, other)
    lone, _ = _moves(shown, without)
    moved = fmean(size > _MOVED for size in sizes) if sizes else 0.0
    follow = fmean(changed) if changed else 0.0
    needs = fmean(size > _MOVED for size in lone) if lone else 0.0
    blind = moved < 0.5 or follow < 0.3
    verdict = Verdict.FAIL if blind else Verdict.PASS if min(moved, needs) >= 0.9 and follow >= 0.7 else Verdict.WARN
    return Finding(
        name="pictures are seen",
        verdict=verdict,
        measured=f"another picture: {moved:.0%} of {len(sizes)} readings move, by {fmean(sizes or [0.0]):.2f} nats, "
        f"{follow:.0%} change their letter; no picture: {needs:.0%} move",
        wanted="90 % move by more than 0.05 nats, 70 % change their letter",
        cure="" if verdict is Verdict.PASS else "the pictures do not reach the model: look at the stack's image inputs",
        figures={"moved": moved, "changed": follow, "moved_without": needs, "mean_nats": fmean(sizes or [0.0])},
    )


def every_place(places: Mapping[str, tuple[Sitting, Sitting]]) -> Finding:
    """Check that the one frame that matters is seen wherever it stands.

    Args:
        places: per place, a prompt and the same with that one frame changed.
    """
    nats = {name: max(_moves(*pair)[0], default=0.0) for name, pair in places.items()}
    worst = min(nats.values())
    verdict = _PLACE.judge_share(worst)
    return Finding(
        name="every frame is seen",
        verdict=verdict,
        measured="one changed frame moves the reading by "
        + ", ".join(f"{value:.2f} nats ({name})" for name, value in nats.items()),
        wanted=f"{_PLACE.good:g} nats at every place",
        cure="" if verdict is Verdict.PASS else "frames are dropped: look at the stack's limit of images in a prompt",
        figures=nats,
    )


def frame_order_seen(forward: Sitting, backward: Sitting) -> Finding:
    """Check that frames shown backwards give another answer where their order is what is asked."""
    sizes, changed = _moves(forward, backward)
    follow, most = fmean(changed) if changed else 0.0, max(sizes, default=0.0)
    verdict = Verdict.FAIL if most < _MOVED else Verdict.PASS if follow >= 0.5 else Verdict.WARN
    return Finding(
        name="the order of frames is seen",
        verdict=verdict,
        measured=f"backwards, {follow:.0%} of {len(changed)} answers change their letter; readings move by "
        f"{fmean(sizes or [0.0]):.2f} nats, at most {most:.2f}",
        wanted="half of the letters change; no movement at all means that the stack orders frames itself",
        cure="" if verdict is Verdict.PASS else "a model that does not see order makes step 5 like step 3",
        figures={"changed": follow, "mean_nats": fmean(sizes or [0.0]), "most_nats": most},
    )
