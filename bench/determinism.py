"""Determinism: how far the same prompts' readings lie apart when they are read in other ways.

    python bench/determinism.py [--model embedded:large] [--backend transformers] [--kit world|8b|2b] [--processes 2]
                                [--set key=value ...] [--against key=value] [--text-only]

One JSON line per kind of prompt (text, one frame, all frames) and way: alone on a cold engine, together, once more,
in another order, in calls of four, and in several processes that each read every n-th item. All are compared with the
first reading together, letter by letter, in nats; `cached_tokens` says whether a way used the prefix cache. Needs
no study; pictures are drawn here.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchcheck.backends import SHAPED, Backend, ModelSpec, open_backend
from benchcheck.config import Config, Frames, Model, engine_settings
from benchcheck.doctor.examine import Case
from benchcheck.doctor.kit import acceptance_kit
from benchcheck.doctor.stability import difference
from benchcheck.doctor.stack import Sitting, Stack
from benchcheck.doctor.world import made_up_world
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import LetterLogprobs, Reading
from benchcheck.screen.steps import LADDER
from benchcheck.settings import EngineSettings

ALONE = 24


def kinds(case: Case, text_only: bool) -> dict[str, tuple[int, list[Prompt]]]:
    """Frames and prompts by kind."""
    exam, count = case.exam, case.config.frames.count
    found = {"text": (0, case.prompts(exam.facts, LADDER[1]))}
    if not text_only:
        found["one frame"] = (1, case.prompts(exam.pictures, LADDER[2], [one.frames for one in exam.pictures]))
        # Two questions a video, so that a prefix is shared.
        shown = [one.frames for one in exam.sequences]
        asked = [*exam.sequences, *(exam.sequences[1:] + exam.sequences[:1])]
        prompts = case.prompts(asked, LADDER[6], [*shown, *shown])
        half = len(exam.sequences)
        found["all frames"] = (
            count,
            [one for pair in zip(prompts[:half], prompts[half:], strict=True) for one in pair],
        )
    return found


def say(kind: str, way: str, first: Sitting, second: Sitting, engine: str) -> None:
    """Print one line."""
    found = difference(first, second)
    letters = found.letters
    numbers = {"max": letters.most, "p99": letters.p99, "mean": letters.mean}
    row = {
        "kind": kind,
        "way": way,
        "prompts": found.prompts,
        **{name: float(f"{n:.3g}") for name, n in numbers.items()},
    }
    # Without a cached token a way says nothing of the prefix cache, whatever it is called; 0 is also "not reported".
    row |= {"same_letter": round(found.same_top, 4), "cached_tokens": sum(one.cached_tokens for one in second.readings)}
    print(json.dumps(row | {"engine": engine}), flush=True)


def engine_name(stack: Stack) -> str:
    """What answers."""
    engine = stack.engine
    return f"{engine.name} {engine.version} {engine.dtype} {engine.device}" if engine is not None else ""


def measure(stack: Stack, kind: str, images: int, prompts: Sequence[Prompt], others: Sitting | None) -> Sitting:
    """Read prompts in every way; returns them read together."""
    some = list(prompts[:: max(1, len(prompts) // ALONE)][:ALONE])
    alone = Sitting(tuple(some), tuple(stack.read([prompt], images).results[0] for prompt in some))
    start = time.perf_counter()
    whole = stack.read(prompts, images)
    seconds = time.perf_counter() - start
    engine = engine_name(stack)
    say(kind, "alone and cold, against together", whole.part(some), alone, engine)
    say(kind, "together again", whole, stack.read(prompts, images), engine)
    say(kind, "in the opposite order", whole, stack.read(prompts[::-1], images).part(prompts), engine)
    fours = [stack.read(prompts[at : at + 4], images) for at in range(0, len(prompts), 4)]
    say(
        kind, "in calls of four", whole, Sitting(tuple(prompts), tuple(r for one in fours for r in one.results)), engine
    )
    if others is not None:
        say(kind, "in several processes", whole, Sitting(tuple(prompts), others.results), engine)
    print(json.dumps({"kind": kind, "prompts": len(prompts), "seconds": round(seconds, 3)}), flush=True)
    return whole


def shares(arguments: argparse.Namespace, found: dict[str, tuple[int, list[Prompt]]]) -> dict[str, Sitting]:
    """Read every kind in several processes of this script, and put their letters together."""
    letters: dict[str, dict[int, tuple[float, ...]]] = {kind: {} for kind in found}
    command = [sys.executable, __file__, "--model", arguments.model, "--backend", arguments.backend]
    command += ["--kit", arguments.kit, "--frames", str(arguments.frames), "--revision", arguments.revision]
    command += [flag for text in arguments.set for flag in ("--set", text)]
    command += ["--text-only"] if arguments.text_only else []
    share = [f"{number}/{arguments.processes}" for number in range(arguments.processes)]
    workers = [subprocess.Popen([*command, "--share", one], stdout=subprocess.PIPE, text=True) for one in share]
    try:
        for worker in workers:
            out, _ = worker.communicate(timeout=600)
            if worker.returncode:
                sys.exit(f"a process ended with {worker.returncode}")
            for line in out.splitlines():
                row = json.loads(line)
                letters[row["kind"]][row["at"]] = tuple(row["letters"])
    finally:
        for worker in workers:
            worker.kill()
    return {
        kind: Sitting(
            tuple(prompts),
            tuple(Reading(LetterLogprobs(letters[kind][at], (), 1.0), 0, 0.0) for at in range(len(prompts))),
        )
        for kind, (_, prompts) in found.items()
    }


def parse() -> argparse.Namespace:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded:large")
    parser.add_argument("--revision", default="")
    parser.add_argument("--backend", default="transformers")
    parser.add_argument("--kit", default="world", choices=("world", "8b", "2b"))
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--processes", type=int, default=2, help="1 leaves the several processes out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="read all with this setting, too, and compare",
    )
    parser.add_argument("--text-only", action="store_true")
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def stack_of(arguments: argparse.Namespace, given: Sequence[str]) -> Stack:
    """The backend, with these settings."""
    settings = engine_settings(EngineSettings(), {}, given)

    def opener(images: int) -> Backend:
        spec = ModelSpec(arguments.model, arguments.revision, images=images, settings=settings)
        return open_backend(arguments.backend, spec)

    return Stack(opener, arguments.backend in SHAPED)


def case_of(arguments: argparse.Namespace, folder: Path) -> Case:
    """The exam, the config and the stack that reads."""
    named = Model(model=arguments.model, revision=arguments.revision)
    frames = Frames(count=arguments.frames, single=arguments.frames // 2)
    config = Config(study_version=1, frames=frames, models={"8b": named, "2b": named})
    if arguments.kit == "world":
        exam = made_up_world(folder, frames.count)
    else:
        exam = acceptance_kit(folder, frames.count, frames.long_side, arguments.kit)
    return Case(stack_of(arguments, arguments.set), exam, config, "not looked at")


def give_share(stack: Stack, share: str, found: dict[str, tuple[int, list[Prompt]]]) -> None:
    """Print the letters of every n-th item: what one of several processes does."""
    number, total = map(int, share.split("/"))
    for kind, (images, prompts) in found.items():
        at = [index for index in range(len(prompts)) if index // 4 % total == number]
        for index, result in zip(at, stack.read([prompts[i] for i in at], images).results, strict=True):
            if not isinstance(result, Reading):
                sys.exit(f"{kind} prompt {index}: {result.kind} ({result.detail})")
            print(json.dumps({"kind": kind, "at": index, "letters": result.letters.logprobs}))


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        case = case_of(arguments, Path(folder))
        found = kinds(case, arguments.text_only)
        try:
            if arguments.share:
                give_share(case.stack, arguments.share, found)
                return
            others = shares(arguments, found) if arguments.processes > 1 else {}
            whole = {
                kind: measure(case.stack, kind, images, prompts, others.get(kind))
                for kind, (images, prompts) in found.items()
            }
        finally:
            case.stack.close()
        if arguments.against:
            compare_with(stack_of(arguments, [*arguments.set, *arguments.against]), found, whole, arguments.against)


def compare_with(
    stack: Stack, found: dict[str, tuple[int, list[Prompt]]], whole: dict[str, Sitting], given: Sequence[str]
) -> None:
    """Read every kind on a second stack and compare with the first."""
    try:
        for kind, (images, prompts) in found.items():
            other = stack.read(prompts, images)
            say(kind, f"against {' '.join(given)}", whole[kind], other, engine_name(stack))
    finally:
        stack.close()


if __name__ == "__main__":
    main()
