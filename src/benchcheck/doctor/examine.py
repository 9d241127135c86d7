"""One examination: an exam is asked of a stack, kind by kind, and every check looks at what came back.

Text comes first, then one frame, then all frames, so that a backend that is opened per number of frames is opened three
times. The first prompts are asked alone, on an engine that has computed nothing yet; then all together; then again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchcheck.config import Config
from benchcheck.doctor import checks, speed, stability
from benchcheck.doctor.exam import Exam, Question
from benchcheck.doctor.findings import Finding, not_applicable
from benchcheck.doctor.stack import Sitting, Stack
from benchcheck.doctor.tail import Tail, shareable
from benchcheck.errors import BenchcheckError
from benchcheck.screen.answers import prompts_of
from benchcheck.screen.prompts import Prompt, frame_order
from benchcheck.screen.steps import LADDER, Step
from benchcheck.screen.verdicts import Rule

__all__ = ["Case", "compare_with", "examine"]

_BLIND, _ONE, _ALL, _OPTIONS, _SHUFFLED = (LADDER[number] for number in (1, 2, 6, 4, 5))
_ONCE = replace(_BLIND, permuted=False)
"""The blind step's text with the options as stored, as the frame steps show them."""
_ALONE = 8
"""Prompts that are asked one by one."""
_OPTIONS_ONLY = 12
_SHARING = 4
_LEAST_FRAMES = 4
"""With fewer, what a sequence asks for may fall between the frames."""


@dataclass(slots=True)
class Case:
    """What is examined, and with what."""

    stack: Stack
    exam: Exam
    config: Config
    tail: Tail | str
    """The checkpoint's tokenizer and processor, or why they are not at hand."""
    demand: Mapping[str, speed.Demand] = field(default_factory=dict)
    """What the study is expected to ask still, by kind: text, one frame, frames."""
    hear: Callable[[str], None] = lambda _: None
    """Is told what is being asked."""
    quick: bool = False
    """Text alone."""
    masses: dict[str, Sitting] = field(default_factory=dict)
    """A sitting per kind of prompt, for the label mass."""
    timed: dict[str, Sitting] = field(default_factory=dict)
    """A sitting per kind of cost, for the throughput."""

    @property
    def rule(self) -> Rule:
        """When an item leaves."""
        return Rule(self.config.protocol.right_share, self.config.protocol.margin)

    @property
    def sittings(self) -> list[Sitting]:
        """Everything that was asked so far."""
        return [sitting for _, sitting in self.stack.kept]

    def prompts(self, questions: Sequence[Question], step: Step, frames: Sequence[Sequence[str]] = ()) -> list[Prompt]:
        """Return the prompts of questions in a step, with these frames or none."""
        shown = frames or [()] * len(questions)
        return [
            prompt
            for question, files in zip(questions, shown, strict=True)
            for prompt in prompts_of(question.item, step, self.config, tuple(files))
        ]

    def counts(self, prompts: Sequence[Prompt]) -> list[int] | str:
        """Return how many tokens the checkpoint's own template and processor make of each prompt."""
        if isinstance(self.tail, str):
            return self.tail
        try:
            return [len(self.tail.ids(prompt)) for prompt in prompts]
        except BenchcheckError as reason:
            return f"the checkpoint's own processor cannot be used ({reason})"


def examine(case: Case) -> list[Finding]:
    """Ask an exam of a stack; returns the findings, the sound ones too.

    Raises:
        UsageError: the backend or the checkpoint was refused.
        BackendError: the engine stopped answering.
    """
    findings = [_letters(case), *_text(case)]
    pictures = ("pictures are known", "pictures are seen")
    sequences = ("sequences are known", "every frame is seen", "the order of frames is seen")
    if case.quick:
        findings += [not_applicable(name, "--quick asks text alone") for name in (*pictures, *sequences)]
    else:
        findings += _one_frame(case)
        if case.config.frames.count >= _LEAST_FRAMES:
            findings += _all_frames(case)
        else:
            reason = f"the study shows fewer than {_LEAST_FRAMES} frames"
            findings += [not_applicable(name, reason) for name in sequences]
    floor = case.config.protocol.mass_floor or 0.1
    return [
        checks.answered(case.sittings),
        checks.label_mass(case.masses, floor),
        *findings,
        speed.throughput(case.timed, case.demand),
    ]


def _letters(case: Case) -> Finding:
    """Look at the letters' tokens behind the real end of a prompt."""
    if isinstance(case.tail, str):
        return not_applicable("letters are single tokens", case.tail)
    variants, unreadable = case.tail.letters()
    texts = {letter: case.tail.texts(ids) for letter, ids in variants.items()}
    return checks.letters_readable(texts, unreadable)


def _sat_again(case: Case, images: int, alone: Sitting, whole: Sitting) -> dict[str, tuple[Sitting, Sitting]]:
    """Ask prompts again, in another order, and pair what came with what was read first."""
    backwards = case.stack.read(whole.prompts[::-1], images)
    return {
        "alone and cold": (alone, whole.part(alone.prompts)),
        "in another order, later": (whole, backwards.part(whole.prompts)),
    }


def _alone(case: Case, images: int, prompts: Sequence[Prompt], count: int) -> Sitting:
    """Ask some prompts one by one, before anything else was asked."""
    some = prompts[:: max(1, len(prompts) // count)][:count]
    results = [case.stack.read([prompt], images).results[0] for prompt in some]
    return Sitting(tuple(some), tuple(results))


def _text(case: Case) -> list[Finding]:
    """Ask facts in all orders, and options alone."""
    case.hear("text")
    exam, stack = case.exam, case.stack
    prompts = case.prompts(exam.facts, _BLIND)
    alone = _alone(case, 0, prompts, _ALONE)
    whole = stack.read(prompts, 0)
    options = stack.read(case.prompts(exam.facts[:_OPTIONS_ONLY], _OPTIONS), 0)
    again = _sat_again(case, 0, alone, whole)
    case.masses |= {"text": whole, "options": options}
    case.timed["text"] = whole
    cure = "continue the assistant's turn (continue_final_message), and use the checkpoint's own chat template"
    return [
        checks.token_counts("the prefill is continued", whole, case.counts(prompts), cure),
        checks.exam_passed("facts are known", whole, exam.facts, exam.wanted.facts),
        checks.letters_mean_options(whole),
        stability.same_again("text reads the same again", again),
        _shared(case, "shared prefixes are reused", whole),
    ]


def _one_frame(case: Case) -> list[Finding]:
    """Ask about pictures: the right one, another one, and none."""
    exam, stack = case.exam, case.stack
    # Text belongs to the engine that is still open for it.
    without = stack.read(case.prompts(exam.pictures, _ONCE), 0)
    case.hear("one frame")
    prompts = case.prompts(exam.pictures, _ONE, [one.frames for one in exam.pictures])
    alone = _alone(case, 1, prompts, _ALONE // 2)
    whole = stack.read(prompts, 1)
    other = stack.read(case.prompts(exam.pictures, _ONE, [one.other for one in exam.pictures]), 1)
    again = _sat_again(case, 1, alone, whole)
    case.masses["one frame"] = case.timed["one frame"] = whole
    cure = "the stack resizes pictures or adds to them: use the checkpoint's own processor settings"
    both = Sitting((*whole.prompts, *other.prompts), (*whole.results, *other.results))
    return [
        checks.token_counts("one frame comes to its tokens", both, case.counts(both.prompts), cure),
        checks.exam_passed("pictures are known", whole, exam.pictures, exam.wanted.pictures),
        checks.pixels_seen(whole, other, without),
        stability.same_again("one frame reads the same again", again),
    ]


def _all_frames(case: Case) -> list[Finding]:
    """Ask about sequences: in order, backwards, shuffled, and with one frame that matters."""
    case.hear("all frames")
    exam, stack, count = case.exam, case.stack, case.config.frames.count
    questions = exam.sequences
    prompts = case.prompts(questions, _ALL, [one.frames for one in questions])
    alone = _alone(case, count, prompts, _ALONE // 4)
    whole = stack.read(prompts, count)
    back = stack.read(case.prompts(questions, _ALL, [one.frames[::-1] for one in questions]), count)
    other = stack.read(case.prompts(questions, _ALL, [one.other for one in questions]), count)
    mixed = [[one.frames[n] for n in frame_order(one.item.item_id, count)] for one in questions]
    shuffled = stack.read(case.prompts(questions, _SHUFFLED, mixed), count)
    places = {
        name: (
            stack.read(case.prompts([question], _ALL, [question.frames]), count),
            stack.read(case.prompts([question], _ALL, [question.other]), count),
        )
        for name, question in exam.places.items()
    }
    again = _sat_again(case, count, alone, whole)
    case.masses |= {f"{count} frames": whole, "shuffled": shuffled}
    case.timed["frames"] = whole
    both = Sitting((*whole.prompts, *other.prompts), (*whole.results, *other.results))
    right = checks.exam_passed("sequences are known", whole, questions, exam.wanted.sequences)
    cure = "frames are dropped, resized or merged: look at the stack's limits of images and pixels"
    return [
        checks.token_counts(f"{count} frames come to their tokens", both, case.counts(both.prompts), cure),
        right,
        checks.every_place(places),
        checks.frame_order_seen(whole, back),
        stability.same_again(f"{count} frames read the same again", again),
        _videos_shared(case, questions[:_SHARING], count),
    ]


def _videos_shared(case: Case, questions: Sequence[Question], count: int) -> Finding:
    """Ask three questions of each of some videos, as a study does, and count what was computed once.

    Their frames come in an order in which they were not shown before, so that no cache holds them yet.
    """
    prompts = []
    for video in questions:
        frames = [video.frames[number] for number in frame_order(f"{video.item.item_id}|fresh", count)]
        asked = case.prompts(questions[:3], _ALL, [frames] * 3)
        prompts += [replace(prompt, prefix=f"{video.item.frames_key}|fresh") for prompt in asked]
    return _shared(case, "a video's frames are computed once", case.stack.read(prompts, count))


def _shared(case: Case, name: str, sitting: Sitting) -> Finding:
    """Compare the cached tokens with those that could have been shared."""
    tail, engine = case.tail, case.stack.engine
    reported = engine is not None and engine.name in ("vllm", "server")
    # Engines share whole blocks: of 16 tokens on a GPU, of 128 where vLLM runs on a CPU.
    block = 128 if reported and engine is not None and engine.device == "cpu" else 16
    shared = tail if isinstance(tail, str) else shareable([tail.ids(one) for one in sitting.prompts], block)
    return speed.prefixes_shared(name, sitting, shared, reported)


def compare_with(case: Case, other: Stack, name: str) -> Finding:
    """Ask another stack what this one was asked, each sitting once, and compare.

    Raises:
        UsageError: the backend or the checkpoint was refused.
        BackendError: the engine stopped answering.
    """
    case.hear(f"the same on {name}")
    asked: dict[Prompt, int] = {}
    pairs: list[tuple[Sitting, Sitting]] = []
    for images, sitting in case.stack.kept:
        fresh = [prompt for prompt in sitting.prompts if prompt not in asked]
        if len(sitting.prompts) > 1 and fresh:
            asked |= dict.fromkeys(fresh, images)
            pairs.append((sitting.part(fresh), other.read(fresh, images)))
    exam = case.exam
    questions = (*exam.facts, *exam.pictures, *exam.sequences)
    finding, _ = stability.agreement(f"agrees with {name}", pairs, questions, case.rule)
    return finding
