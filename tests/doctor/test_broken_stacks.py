"""Each way to break a stack is found, by the check that is there for it; a sound stack passes everything."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchcheck.config import Config
from benchcheck.doctor import speed
from benchcheck.doctor.exam import Exam
from benchcheck.doctor.examine import Case, compare_with, examine
from benchcheck.doctor.findings import Finding, Verdict
from benchcheck.doctor.stack import Stack
from benchcheck.doctor.tail import Tail
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, Reading

from .conftest import COUNT
from .fakes import Oracle, with_letters, with_mass

Examined = Callable[..., dict[str, Finding]]


def failed(findings: dict[str, Finding]) -> set[str]:
    return {name for name, finding in findings.items() if finding.verdict is Verdict.FAIL}


def warned(findings: dict[str, Finding]) -> set[str]:
    return {name for name, finding in findings.items() if finding.verdict is Verdict.WARN}


def test_a_sound_stack_passes_every_check_that_applies(examined: Examined) -> None:
    found = examined()
    assert failed(found) == warned(found) == set()
    passed = {name for name, finding in found.items() if finding.verdict is Verdict.PASS}
    assert passed == {
        "every prompt is answered", "label mass", "facts are known", "a letter means its option",
        "text reads the same again", "pictures are known", "pictures are seen", "one frame reads the same again",
        "sequences are known", "every frame is seen", "the order of frames is seen",
        f"{COUNT} frames read the same again", "throughput",
    }  # fmt: skip
    assert all(not finding.cure for finding in found.values())


def test_a_stack_that_ignores_frames(examined: Examined) -> None:
    found = examined(sight=0)
    names = {"pictures are known", "pictures are seen", "sequences are known", "every frame is seen"}
    assert failed(found) == names | {"the order of frames is seen"}
    assert "do not reach the model" in found["pictures are seen"].cure
    assert found["pictures are seen"].figures["moved"] == 0


def test_a_stack_that_drops_frames_beyond_the_first(examined: Examined) -> None:
    found = examined(sight=1)
    assert "every frame is seen" in failed(found)
    assert "pictures are seen" not in failed(found)
    nats = found["every frame is seen"].figures
    assert nats["first"] > 4
    assert nats["middle"] == nats["last"] == 0


def test_a_stack_that_drops_the_last_frame_only(examined: Examined) -> None:
    assert "every frame is seen" in failed(examined(sight=COUNT - 1))


def test_a_stack_that_sorts_its_frames(case_of: Callable[..., Case], exam: Exam) -> None:
    class Sorting(Oracle):
        def _seen(self, paths: Any) -> tuple[str, ...]:
            return tuple(sorted(super()._seen(paths)))

    found = {finding.name: finding for finding in examine(case_of(Sorting(exam)))}
    assert failed(found) == {"the order of frames is seen"}
    assert found["the order of frames is seen"].figures["most_nats"] == 0


def test_the_first_readings_are_alone_on_an_engine_that_has_computed_nothing(
    case_of: Callable[..., Case], exam: Exam
) -> None:
    case = case_of(Oracle(exam))
    examine(case)
    assert [len(sitting.prompts) for sitting in case.sittings[:9]] == [1] * 8 + [4 * len(exam.facts)]


def test_a_stack_that_ignores_the_prefill_loses_the_letters_mass(examined: Examined) -> None:
    found = examined(change=with_mass(0.02))
    assert failed(found) == {"label mass"}
    assert "prefill" in found["label mass"].cure
    assert failed(examined(change=with_mass(0.3))) == set()
    assert warned(examined(change=with_mass(0.3))) == {"label mass"}


def test_label_mass_is_looked_at_in_every_kind_of_prompt(examined: Examined) -> None:
    found = examined(change=with_mass(0.02, only_frames=True))
    assert failed(found) == {"label mass"}
    assert found["label mass"].figures["least_text"] > 0.9


def test_a_stack_with_another_letter_mapping(examined: Examined) -> None:
    found = examined(change=with_letters(lambda prompt, row: (*row[1:], row[0])))
    assert {"facts are known", "a letter means its option", "pictures are known", "sequences are known"} <= failed(
        found
    )
    assert found["facts are known"].figures["share"] < 0.1


def test_a_stack_that_always_says_a(examined: Examined) -> None:
    found = examined(change=with_letters(lambda prompt, row: [-0.1] + [-4.0] * (len(row) - 1)))
    assert {"facts are known", "a letter means its option", "pictures are seen", "every frame is seen"} <= failed(found)
    assert found["facts are known"].figures["right_A"] == 1
    assert found["facts are known"].figures["right_B"] == 0


def test_a_stack_that_mixes_up_the_tokens_of_letters(examined: Examined) -> None:
    def mixed(prompt: Prompt, row: tuple[float, ...]) -> list[float]:
        turn = len(prompt.text) % len(row)
        return [*row[turn:], *row[:turn]]

    assert {"facts are known", "a letter means its option"} <= failed(examined(change=with_letters(mixed)))


def test_a_stack_whose_cached_readings_differ(examined: Examined) -> None:
    seen: Counter[Prompt] = Counter()

    def drifting(prompt: Prompt, row: tuple[float, ...]) -> list[float]:
        seen[prompt] += 1
        return [row[0] - (1.0 if seen[prompt] > 1 else 0.0), *row[1:]]

    found = examined(change=with_letters(drifting))
    again = {name for name in found if name.endswith("the same again")}
    assert len(again) == 3
    assert failed(found) >= again


@pytest.mark.parametrize(("nats", "verdict"), [(0.01, Verdict.PASS), (0.4, Verdict.WARN), (0.8, Verdict.FAIL)])
def test_how_far_a_reading_may_drift(examined: Examined, nats: float, verdict: Verdict) -> None:
    seen: Counter[Prompt] = Counter()

    def drifting(prompt: Prompt, row: tuple[float, ...]) -> list[float]:
        seen[prompt] += 1
        return [row[0] - nats * (seen[prompt] > 1), *row[1:]]

    assert examined(change=with_letters(drifting))["text reads the same again"].verdict is verdict


def test_a_stack_that_answers_nan(examined: Examined) -> None:
    found = examined(change=with_letters(lambda prompt, row: [math.nan] * len(row) if "a" in prompt.text else row))
    assert "every prompt is answered" in failed(found)
    assert "not_finite" in found["every prompt is answered"].measured


def test_a_mass_that_is_no_number(examined: Examined) -> None:
    def broken(prompt: Prompt, result: Reading | Failure) -> Reading | Failure:
        assert isinstance(result, Reading)
        return replace(result, letters=replace(result.letters, label_mass=math.nan))

    assert {"every prompt is answered", "label mass"} <= failed(examined(change=broken))


def test_a_stack_that_fails_or_forgets_prompts(examined: Examined) -> None:
    found = examined(change=lambda prompt, result: Failure("timeout", "after\n600 s"))
    assert "every prompt is answered" in failed(found)
    assert "timeout (after 600 s)" in found["every prompt is answered"].measured
    assert found["text reads the same again"].verdict is Verdict.SKIPPED
    assert "no_outcome" in examined(leave_out=1)["every prompt is answered"].measured


def test_a_slow_stack(examined: Examined) -> None:
    seconds = [0.0]

    def tick() -> None:
        seconds[0] += 20.0

    found = examined(seconds, tick=tick)
    assert failed(found) == {"throughput"}
    assert found["throughput"].figures["text_per_s"] == pytest.approx(0.05, rel=0.01)


class Words:
    """A renderer and a reader whose tokens are words; a frame is seven."""

    def render(self, prompt: Prompt, sizes: Any) -> Any:
        count = len(prompt.text.split())
        images = tuple((count + 7 * number, 7, 1) for number in range(len(prompt.frames)))
        return type(
            "Rendered", (), {"ids": Row([*map(hash, prompt.text.split()), *[0] * 7 * len(images)]), "images": images}
        )

    def vocabulary(self) -> list[str]:
        return [chr(65 + number) for number in range(26)]

    specimen = "the end"

    def tokenize(self, text: str) -> list[int]:
        return [ord(letter) - 65 for letter in text.replace(" ", "")]

    def read(self, path: str) -> Any:
        return type("Patches", (), {"grid": (14, 2)})

    def close(self) -> None:
        pass


class Row(list[int]):
    def tolist(self) -> list[int]:
        return list(self)


def test_tokens_are_counted_beside_the_checkpoints_own(case_of: Callable[..., Case], exam: Exam) -> None:
    words = Words()
    found = {one.name: one for one in examine(case_of(Oracle(exam), tail=Tail(words, words)))}
    counted = {"the prefill is continued", "one frame comes to its tokens", f"{COUNT} frames come to their tokens"}
    assert all(found[name].verdict is Verdict.PASS for name in (*counted, "letters are single tokens"))
    assert found["shared prefixes are reused"].verdict is Verdict.SKIPPED

    def shorter(prompt: Prompt, result: Reading | Failure) -> Reading | Failure:
        assert isinstance(result, Reading)
        return replace(result, prompt_tokens=result.prompt_tokens - 2)

    found = {one.name: one for one in examine(case_of(Oracle(exam, change=shorter), tail=Tail(words, words)))}
    assert failed(found) == counted
    assert "continue_final_message" in found["the prefill is continued"].cure


def test_shared_prefixes_are_counted_where_the_backend_says(
    case_of: Callable[..., Case], exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = Words()
    names = ("shared prefixes are reused", "a video's frames are computed once")

    def caching(prompt: Prompt, result: Reading | Failure) -> Reading | Failure:
        assert isinstance(result, Reading)
        return replace(result, cached_tokens=result.prompt_tokens)

    found = {one.name: one for one in examine(case_of(Oracle(exam, change=caching), tail=Tail(words, words)))}
    assert {found[name].verdict for name in names} == {Verdict.PASS}
    silent = Oracle(exam)
    silent.engine = replace(silent.engine, name="vllm")
    monkeypatch.setattr(speed, "_LARGEST_BLOCK", 16)
    found = {one.name: one for one in examine(case_of(silent, tail=Tail(words, words)))}
    assert {found[name].verdict for name in names} == {Verdict.WARN}
    assert "0 tokens came from the cache" in found[names[1]].measured


def test_quick_asks_text_alone(case_of: Callable[..., Case], exam: Exam) -> None:
    case = case_of(Oracle(exam, change=with_mass(0.99)), quick=True)
    found = {finding.name: finding for finding in examine(case)}
    assert all(not prompt.frames for sitting in case.sittings for prompt in sitting.prompts)
    assert found["pictures are seen"].verdict is Verdict.SKIPPED
    assert failed(found) == set()


def test_a_study_of_few_frames_has_no_sequences(case_of: Callable[..., Case], exam: Exam, config: Config) -> None:
    case = case_of(Oracle(exam))
    case.config = replace(config, frames=replace(config.frames, count=3))
    found = {finding.name: finding for finding in examine(case)}
    assert found["sequences are known"].verdict is found["every frame is seen"].verdict is Verdict.SKIPPED
    assert found["pictures are seen"].verdict is Verdict.PASS


def test_two_engines_that_agree_and_two_that_do_not(case_of: Callable[..., Case], exam: Exam) -> None:
    case = case_of(Oracle(exam))
    examine(case)
    same = compare_with(case, Stack(lambda images: Oracle(exam)), "itself")
    assert same.verdict is Verdict.PASS
    assert same.figures["same_letter"] == 1
    assert same.figures["flips"] == 0
    assert same.figures["items"] >= len(exam.facts) + len(exam.pictures) + len(exam.sequences)
    blurred = Oracle(exam, change=with_letters(lambda prompt, row: [value / 20 for value in row]))
    other = compare_with(case, Stack(lambda images: blurred), "a blurred one")
    assert other.verdict is Verdict.FAIL
    assert other.figures["flips"] > 0
    assert "should not be mixed" in other.cure
    broken = Oracle(exam, change=lambda prompt, result: Failure("timeout", "late"))
    assert compare_with(case, Stack(lambda images: broken), "none").verdict is Verdict.FAIL


def test_a_shaped_backend_is_opened_three_times(case_of: Callable[..., Case], exam: Exam) -> None:
    opened: list[int] = []
    oracles: list[Oracle] = []

    def opener(images: int) -> Oracle:
        opened.append(images)
        oracles.append(Oracle(exam))
        return oracles[-1]

    case = case_of(Oracle(exam))
    case.stack = Stack(opener, shaped=True)
    examine(case)
    assert opened == [0, 1, COUNT]
    assert [oracle.closed for oracle in oracles] == [True, True, False]
    case.stack.close()
    assert oracles[-1].closed
