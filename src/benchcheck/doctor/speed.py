"""How fast a stack reads, what a study would take with it, and how much of the prompts' prefixes it reuses. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from benchcheck.doctor.findings import Finding, Limits, Verdict, not_applicable
from benchcheck.doctor.stack import Sitting

__all__ = ["Demand", "hours", "prefixes_shared", "throughput"]

_SECONDS: Mapping[str, Limits] = {
    "text": Limits(good=0.1, fair=1.0),
    "one frame": Limits(good=0.5, fair=3.0),
    "frames": Limits(good=2.0, fair=10.0),
}
"""Seconds a prompt. Decision (D): at 1 s a text prompt, 300,000 items in four orders take two weeks of one engine."""
_SHARED = Limits(good=0.9, fair=0.5)
_LARGEST_BLOCK = 128
"""Tokens of a cache block of vLLM on a CPU, which a server may run on unseen. Nothing shorter is shared."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a study has still to ask of one kind: prompts, and all their tokens."""

    prompts: float
    tokens: float

    def __add__(self, other: "Demand") -> "Demand":
        """Both together."""
        return Demand(self.prompts + other.prompts, self.tokens + other.tokens)


def hours(demand: Mapping[str, Demand], rates: Mapping[str, float], lengths: Mapping[str, float]) -> float:
    """Return the hours that a study's prompts take, by kind; kinds without a rate are left out.

    Args:
        demand: what is to be asked.
        rates: prompts a second that were measured.
        lengths: tokens of those prompts; a study's longer ones count as so much slower. 0 is not known.
    """
    seconds = 0.0
    for kind, asked in demand.items():
        if rates.get(kind):
            longer = asked.tokens / lengths[kind] if lengths.get(kind) and asked.tokens else asked.prompts
            seconds += longer / rates[kind]
    return seconds / 3600


def throughput(sittings: Mapping[str, Sitting], demand: Mapping[str, Demand]) -> Finding:
    """Check that the stack is fast enough to be of use, and say what the study would take.

    Args:
        sittings: one per kind of prompt, read together.
        demand: what the study is expected to ask still; empty without a study.
    """
    rates = {kind: len(one.prompts) / one.seconds if one.seconds > 0 else 0.0 for kind, one in sittings.items()}
    slow = [(kind, one.seconds / len(one.prompts)) for kind, one in sittings.items() if one.prompts]
    verdicts = [_SECONDS[kind].judge(seconds) for kind, seconds in slow]
    order = (Verdict.PASS, Verdict.WARN, Verdict.FAIL)
    verdict = max(verdicts, key=order.index, default=Verdict.PASS)
    shown = ", ".join(f"{kind} {rate:,.3g}/s" for kind, rate in rates.items())
    lengths = {
        kind: fmean([reading.prompt_tokens for reading in one.readings] or [0.0]) for kind, one in sittings.items()
    }
    left = hours(demand, rates, lengths)
    total = sum(asked.prompts for asked in demand.values())
    whole = f"; the study's {total:,.0f} prompts would take about {left:,.3g} h of this engine" if demand else ""
    limits = ", ".join(f"{kind} {limit.good:g} s" for kind, limit in _SECONDS.items() if kind in sittings)
    return Finding(
        name="throughput",
        verdict=verdict,
        measured=f"prompts, {shown}{whole}",
        wanted=f"a prompt within {limits}",
        cure="" if verdict is Verdict.PASS else "another backend or more GPUs; docs/engines.md says what limits each",
        figures={**{f"{kind.replace(' ', '_')}_per_s": rate for kind, rate in rates.items()}, "study_hours": left},
    )


def prefixes_shared(name: str, sitting: Sitting, shared: Sequence[int] | str, expected: bool) -> Finding:
    """Check that the tokens that prompts share are computed once.

    Args:
        name: of the check.
        sitting: prompts that share prefixes, read together.
        shared: how many of each prompt's tokens an earlier one begins with, or why that is not known.
        expected: whether this backend reports cached tokens, so that none is a sign and no silence.
    """
    cached = sum(reading.cached_tokens for reading in sitting.readings)
    if isinstance(shared, str):
        return not_applicable(name, shared)
    tokens = sum(shared)
    if not cached and max(shared, default=0) < _LARGEST_BLOCK:
        return not_applicable(
            name, f"prefixes of {max(shared, default=0)} tokens are shorter than some engines' blocks"
        )
    if not cached and not expected:
        return not_applicable(name, "the backend does not say which tokens it had computed before")
    share = min(1.0, cached / tokens) if tokens else 1.0
    verdict = _SHARED.judge_share(share)
    # Slower is not wrong: what is read is the same, so this never fails the stack.
    verdict = Verdict.WARN if verdict is Verdict.FAIL else verdict
    return Finding(
        name=name,
        verdict=verdict,
        measured=f"{cached:,} tokens came from the cache, of {tokens:,} that these prompts share ({share:.0%})",
        wanted=f"{_SHARED.good:.0%}",
        cure="" if verdict is Verdict.PASS else "turn prefix caching on; the encoder cache must hold several batches",
        figures={"cached": cached, "shareable": tokens, "share": share},
    )
