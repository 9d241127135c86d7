"""Fields that give the answer away, and the refusal to make what a model sees of them. Pure.

Annotators keep beside a question why the answer is right and when it is seen. A question, an option or a window made of
such a field would turn a benchmark into a reading test, and nothing downstream could tell.
"""

from collections.abc import Iterable, Mapping

from benchcheck.pool.fields import named

__all__ = ["LEAKS", "check_leaks"]

LEAKS = frozenset({
    "reasoning", "reasoning_steps", "reasoning_process", "explanation", "explaination", "explanations", "rationale",
    "chain_of_thought", "cot", "solution", "clue", "clues", "clue_intervals", "clue_interval", "relevant_windows",
    "relevant_clip_ids", "saliency_scores", "time_reference", "evidence", "evidences", "evidence_span",
    "evidence_spans", "evidence_intervals", "evidence_time", "gt_time_interval", "gt_interval", "gt_window",
    "gt_windows", "gt_span", "gt_spans", "answer_span", "answer_time", "answer_timestamp", "grounding", "target_time",
    "accurate_start", "accurate_end", "scoring_points", "answer_act",
})  # fmt: skip
"""Names, in lower case, that mean nothing else in the benchmarks that were seen (MINERVA's `reasoning`, CG-Bench's
`clue_intervals`, QVHighlights' `relevant_windows`, LVBench's `time_reference`, MVBench's `accurate_start`, …)."""


def check_leaks(shown: Mapping[str, Iterable[str]], leaks: Iterable[str], gold: Iterable[str]) -> None:
    """Refuse a spec that shows what it should not.

    `shown` has the expressions of each key that a model sees something of; `leaks` are the spec's own names; `gold` are
    the expressions of the gold and of its text.

    Raises:
        ValueError: one of them names a leak, or the question names a field of the gold, or what holds one of these.
    """
    known = LEAKS | {name.lower() for leak in leaks for name in named(leak)}
    golds = {name for expression in gold for name in named(expression)}
    for key, expressions in shown.items():
        for name in (name for expression in expressions for name in named(expression)):
            parts = {name.lower(), *name.lower().split(".")}
            if parts & known:
                raise ValueError(f"{key} names {name!r}, which gives the answer away. Allowed: fields without it")
            if key == "question" and any(_holds(name.lower(), leak) for leak in known):
                raise ValueError(f"question names {name!r}, which holds a leak. Allowed: a field of it that is none")
            if key == "question" and any(_holds(name, one) for one in golds):
                raise ValueError(f"question names {name!r}, which is the gold. Allowed: fields without the answer")


def _holds(name: str, field: str) -> bool:
    """Whether a field is the other one, or a record that it is a part of: shown whole, it shows that as well."""
    return field == name or field.startswith(f"{name}.")
