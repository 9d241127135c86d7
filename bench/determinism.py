"""Determinism: how far the same prompts' readings lie apart when they are read in other ways.

    python bench/determinism.py [--model embedded:large] [--backend transformers] [--kit world|8b|2b] [--processes 2]
                                [--set key=value ...] [--text-only]

One JSON line per kind of prompt (text, one frame, all frames) and way: alone on a cold engine, together, together again
with warm caches, in another order, in calls of four, and in several processes that each read every n-th item. All are
compared with the first reading together, letter by letter, in nats. Needs no study; pictures are drawn here.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchcheck.backends import SHAPED, ModelSpec, open_backend
from benchcheck.config import Config, Model, engine_settings
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
    print(json.dumps(row | {"same_letter": round(found.same_top, 4), "engine": engine}), flush=True)


def measure(stack: Stack, kind: str, images: int, prompts: Sequence[Prompt], others: Sitting | None) -> None:
    """Read prompts in every way."""
    some = list(prompts[:: max(1, len(prompts) // ALONE)][:ALONE])
    alone = Sitting(tuple(some), tuple(stack.read([prompt], images).results[0] for prompt in some))
    start = time.perf_counter()
    whole = stack.read(prompts, images)
    seconds = time.perf_counter() - start
    engine = f"{stack.engine.name} {stack.engine.version} {stack.engine.dtype} {stack.engine.device}"  # type: ignore[union-attr]
    say(kind, "alone and cold, against together", whole.part(some), alone, engine)
    say(kind, "together again, caches warm", whole, stack.read(prompts, images), engine)
    say(kind, "in the opposite order", whole, stack.read(prompts[::-1], images).part(prompts), engine)
    fours = [stack.read(prompts[at : at + 4], images) for at in range(0, len(prompts), 4)]
    say(
        kind, "in calls of four", whole, Sitting(tuple(prompts), tuple(r for one in fours for r in one.results)), engine
    )
    if others is not None:
        say(kind, "in several processes", whole, Sitting(tuple(prompts), others.results), engine)
    print(json.dumps({"kind": kind, "prompts": len(prompts), "seconds": round(seconds, 3)}), flush=True)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded:large")
    parser.add_argument("--revision", default="")
    parser.add_argument("--backend", default="transformers")
    parser.add_argument("--kit", default="world", choices=("world", "8b", "2b"))
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--processes", type=int, default=2, help="1 leaves the several processes out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--text-only", action="store_true")
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    settings = engine_settings(EngineSettings(), {}, arguments.set)
    named = Model(model=arguments.model, revision=arguments.revision)
    config = Config(study_version=1, models={"8b": named, "2b": named})

    def opener(images: int) -> object:
        return open_backend(
            arguments.backend, ModelSpec(arguments.model, arguments.revision, images=images, settings=settings)
        )

    with tempfile.TemporaryDirectory() as folder:
        if arguments.kit == "world":
            exam = made_up_world(Path(folder), arguments.frames)
        else:
            exam = acceptance_kit(Path(folder), arguments.frames, 448, arguments.kit)
        stack = Stack(opener, arguments.backend in SHAPED)  # type: ignore[arg-type]
        case = Case(stack, exam, config, "not looked at")
        case.config = Config(
            study_version=1,
            models=config.models,
            frames=type(config.frames)(count=arguments.frames, single=arguments.frames // 2),
        )
        found = kinds(case, arguments.text_only)
        try:
            if arguments.share:
                number, total = map(int, arguments.share.split("/"))
                for kind, (images, prompts) in found.items():
                    at = [index for index in range(len(prompts)) if index // 4 % total == number]
                    for index, result in zip(at, stack.read([prompts[i] for i in at], images).results, strict=True):
                        print(json.dumps({"kind": kind, "at": index, "letters": result.letters.logprobs}))  # type: ignore[union-attr]
                return
            others = shares(arguments, found) if arguments.processes > 1 else {}
            for kind, (images, prompts) in found.items():
                measure(stack, kind, images, prompts, others.get(kind))
        finally:
            stack.close()


if __name__ == "__main__":
    main()
