"""The `vllm` backend on a GPU: prompts a second at the shapes of the real models, from cold files to letters.

    python bench/vllm_engine.py MODEL_FOLDER text|unshared|single|frames [--json FILE] [options]

MODEL_FOLDER has the config, tokenizer and processor of a Qwen3-VL checkpoint; weights are drawn here, N(0, 0.02), which
unlike vLLM's dummy weights makes letters depend on what is shown. Text: items of 18 to 34 words and 4 options of 5 to
9, in 4 orders (`text`) or one (`unshared`). Frames: videos of 32 JPEG files 448x252, 3 questions each; single: one such
file, 4 orders. Nothing was seen before it is measured. `steady` is the speed between 15 and 85 % of the answers. The
peak is a bfloat16 matrix product of 8192^3 in the same process, after the engine has ended.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchcheck.backends import ModelSpec, checkpoint, vllm_engine
from benchcheck.backends.vllm import VllmBackend
from benchcheck.backends.vllm_worker import LetterWorker
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Reading
from benchcheck.screen.steps import Sight
from benchcheck.settings import EngineSettings

WORDS = [
    "after", "again", "against", "almost", "animal", "another", "around", "arrive", "battery", "because",
    "before", "begin", "behind", "believe", "between", "bottle", "bridge", "bring", "building", "camera",
    "carry", "chair", "change", "children", "choose", "circle", "clean", "close", "colour", "corner", "country",
    "cover", "cross", "dance", "different", "direction", "distance", "doctor", "double", "drawing", "during",
    "early", "either", "engine", "enough", "enter", "evening", "every", "family", "figure", "finger", "finish",
    "flower", "follow", "forest", "forward", "friend", "garden", "gather", "gentle", "glass", "ground", "group",
    "guitar", "hammer", "happen", "harbour", "hundred", "inside", "island", "jacket", "kitchen", "ladder",
    "large", "laugh", "leave", "letter", "little", "machine", "market", "measure", "middle", "minute", "mirror",
    "morning", "mountain", "moving", "music", "narrow", "nothing", "number", "object", "orange", "outside",
    "painter", "paper", "people", "person", "picture", "player", "pocket", "pointed", "quickly", "quiet",
    "reach", "repair", "return", "river", "round", "second", "seven", "shadow", "shoulder", "simple", "single",
    "slowly", "small", "someone", "square", "station", "stone", "street", "student", "surface", "table",
    "third", "through", "together", "towards", "travel", "turned", "under", "village", "walking", "water",
    "weather", "window", "winter", "without", "woman", "wooden", "writing", "yellow",
]  # fmt: skip
SIZES = {"text": 0, "unshared": 0, "single": 1, "frames": 32}


class RandomWorker(LetterWorker):
    """The worker of the backend, with weights that make letters differ from prompt to prompt."""

    def benchcheck_facts(self, asker: int) -> dict[str, Any]:
        """Draw the weights, then answer."""
        import torch

        model = self.model_runner.get_model()
        first = next(model.parameters())
        chance = torch.Generator(device=first.device).manual_seed(0)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if not weight.is_floating_point() or weight.element_size() == 1:
                    continue  # quantised: left as it is
                if weight.ndim >= 2:
                    weight.normal_(0, 0.02, generator=chance)
                else:
                    weight.fill_(0.0 if name.endswith("bias") else 1.0)
            norm = getattr(getattr(model, "visual", None), "input_norm", None)
            if getattr(norm, "input_dtype", None) is not None:  # vLLM's dummy weights overwrite its constants too
                norm.weight.fill_(2 / 255)
                norm.bias.fill_(-1.0)
        return super().benchcheck_facts(asker)


def words(chance: random.Random, low: int, high: int) -> str:
    """Some words."""
    return " ".join(chance.choice(WORDS) for _ in range(chance.randint(low, high)))


def question(chance: random.Random) -> tuple[str, list[str]]:
    """A question and its options, of the length that benchmarks have."""
    return words(chance, 18, 34), [words(chance, 5, 9) for _ in range(4)]


def text_prompts(items: int, orders: int, seed: int) -> Iterator[Prompt]:
    """Each item in some orders, back to back."""
    chance = random.Random(seed)
    for n in range(items):
        asked, options = question(chance)
        for order in option_orders(f"{seed}_{n}", 4, n=orders):
            text = render_text(INTROS[Sight.BLIND], asked, [options[j] for j in order])
            yield Prompt(f"t{n}", 1, order, text)


def frame_prompts(videos: Sequence[Sequence[str]], questions: int, seed: int) -> Iterator[Prompt]:
    """Some questions, or orders of one, on each video, back to back."""
    chance = random.Random(seed)
    for n, frames in enumerate(videos):
        one = question(chance)
        for number, order in enumerate(option_orders(f"{seed}_{n}", 4, n=questions)):
            asked, options = one if len(frames) == 1 else question(chance)
            sight = Sight.SINGLE_FRAME if len(frames) == 1 else Sight.FRAMES
            text = render_text(INTROS[sight], asked, [options[j] for j in order])
            yield Prompt(f"v{n}_{number}", 3, order, text, tuple(frames), frames[0])


def make_video(folder: str, number: int, frames: int) -> list[str]:
    """Write JPEG files of blurred noise and a fine grain that drifts: as many bytes as real ones, or more."""
    rng = np.random.default_rng(number)
    base = rng.integers(0, 255, (32, 56, 3), dtype=np.uint8)
    grain = rng.integers(-12, 12, (252, 448, 1), dtype=np.int16)
    paths = []
    for index in range(frames):
        rough = Image.fromarray(np.roll(base, index, 1)).resize((448, 252), Image.Resampling.BICUBIC)
        sharp = np.clip(np.asarray(rough).astype(np.int16) + np.roll(grain, 3 * index, 1), 0, 255)
        path = f"{folder}/{number}_{index}.jpg"
        Image.fromarray(sharp.astype(np.uint8)).save(path, quality=85)
        paths.append(path)
    return paths


class Meter:
    """What nvidia-smi says of the GPU while something runs."""

    def __init__(self) -> None:
        self.busy: list[float] = []
        self.watts: list[float] = []
        command = [
            "nvidia-smi",
            "--query-gpu=utilization.gpu,power.draw",
            "--format=csv,noheader,nounits",
            "-lms",
            "200",
        ]
        try:
            self._process: subprocess.Popen[str] | None = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except OSError:
            self._process = None
            return
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                busy, watts = (float(part) for part in line.split(","))
            except ValueError:
                continue
            self.busy.append(busy)
            self.watts.append(watts)

    def end(self) -> dict[str, float]:
        """Means since the start."""
        if self._process is None:
            return {}
        self._process.terminate()
        if not self.busy:
            return {}
        return {"gpu_busy": round(float(np.mean(self.busy)), 1), "watts": round(float(np.mean(self.watts)), 1)}


def measure(backend: VllmBackend, prompts: Iterator[Prompt]) -> dict[str, Any]:
    """Read prompts that were not seen before; speeds, and what was shared of what could be."""
    before = (backend.sharing.shareable, backend.sharing.cached, backend.sharing.missed, backend.sharing.tokens)
    meter, start, cpu = Meter(), time.perf_counter(), time.process_time()
    at, letters, failures = [], [], []
    for outcome in backend.read(prompts):
        at.append(time.perf_counter() - start)
        if isinstance(outcome.result, Reading):
            letters.append(outcome.result.letters.logprobs)
        else:
            failures.append(outcome.result)
    own = (time.process_time() - cpu) / at[-1]
    shareable, cached, missed, tokens = (
        now - then
        for now, then in zip(
            (backend.sharing.shareable, backend.sharing.cached, backend.sharing.missed, backend.sharing.tokens),
            before,
            strict=True,
        )
    )
    low, high = int(0.15 * len(at)), int(0.85 * len(at))
    return {
        "prompts": len(at),
        "per_s": round(len(at) / at[-1], 2),
        "steady_per_s": round((high - low) / (at[high] - at[low]), 2) if at[high] > at[low] else None,
        "first_answer_s": round(at[0], 2),
        "prompt_tokens": round(tokens / len(at), 1),
        "tokens_per_s": round(tokens / at[-1]),
        "cached_mean": round(cached / len(at), 1),
        "shareable_mean": round(shareable / len(at), 1),
        "shared": round(1 - missed / shareable, 4) if shareable else None,
        "letter_spread": round(float(np.std(letters)), 4) if letters else None,
        "own_cpu": round(own, 2),
        "failures": len(failures),
        "first_failure": str(failures[0]) if failures else None,
        **meter.end(),
    }


def peak() -> float | None:
    """TFLOP/s of a plain bfloat16 matrix product, the best of some rounds."""
    import torch

    if not torch.cuda.is_available():
        return None
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    best = 0.0
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        best = max(best, 20 * 2 * 8192**3 / (time.perf_counter() - start) / 1e12)
    return round(best, 1)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a folder of the shape of a Qwen3-VL checkpoint")
    parser.add_argument("mode", choices=SIZES)
    parser.add_argument("--count", type=int, default=0, help="items or videos to measure; 0 is 3000 or 120")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="decode workers")
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--in-flight", type=int, default=0)
    parser.add_argument("--gpu-memory", type=float, default=0.85)
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile and CUDA graphs instead of eager")
    parser.add_argument("--words", help="a file of words instead of the built-in ones")
    parser.add_argument("--argument", action="append", default=[], metavar="NAME=JSON", help="further EngineArgs")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def open_backend(options: argparse.Namespace) -> VllmBackend:
    """Open the backend on a folder without weights."""
    checkpoint.fetch = lambda model, _: (Path(model), "random")  # type: ignore[assignment]
    vllm_engine.EXTRA.update(load_format="dummy", worker_extension_cls="vllm_engine.RandomWorker")
    if options.compile:
        vllm_engine.EXTRA["enforce_eager"] = False
    vllm_engine.EXTRA.update(
        {name: json.loads(value) for name, _, value in (a.partition("=") for a in options.argument)}
    )
    settings = EngineSettings(
        gpu_memory=options.gpu_memory,
        max_sequences=options.sequences,
        in_flight=options.in_flight,
        decode_workers=options.workers,
        quantization="fp8" if options.fp8 else "",
    )
    return VllmBackend(ModelSpec(options.model, images=SIZES[options.mode], settings=settings))


def main() -> None:
    options = parse()
    if options.words:
        WORDS[:] = [word for word in Path(options.words).read_text(encoding="utf-8").split() if word.isalpha()]
    frames = SIZES[options.mode]
    count = options.count or (120 if frames == 32 else 1000 if frames else 3000)
    warm = 4 if frames == 32 else 64
    report = open(options.json, "a", encoding="utf-8") if options.json else None  # noqa: SIM115 (until the end)

    def say(**what: object) -> None:
        line = json.dumps({"model": Path(options.model).name, "mode": options.mode, **what})
        print(line, flush=True)
        if report:
            report.write(line + "\n")
            report.flush()

    with tempfile.TemporaryDirectory() as folder:
        videos: list[list[str]] = []
        if frames:
            start = time.perf_counter()
            numbers = range(warm + options.rounds * count)
            with ProcessPoolExecutor(os.cpu_count()) as pool:
                videos = list(
                    pool.map(make_video, [folder] * len(numbers), numbers, [frames] * len(numbers), chunksize=4)
                )
            size = np.mean([os.path.getsize(path) for path in videos[0]])
            say(videos=len(videos), jpeg_bytes=round(float(size)), made_s=round(time.perf_counter() - start, 1))
        start = time.perf_counter()
        backend = open_backend(options)
        core = backend.core
        say(
            start_s=round(time.perf_counter() - start, 1),
            engine=backend.engine.version,
            dtype=backend.engine.dtype,
            device=backend.engine.device,
            facts=core.facts,
            block=core.block,
            route=type(backend.route).__name__,
            decoders=len(backend.decoders.pids) if backend.decoders else 0,
            notes=backend.notes,
        )

        def prompts(first: int, number: int, seed: int) -> Iterator[Prompt]:
            if frames:
                return frame_prompts(videos[first : first + number], 3 if frames == 32 else 4, seed)
            return text_prompts(number, 4 if options.mode == "text" else 1, seed)

        start = time.perf_counter()
        list(backend.read(prompts(0, warm, 1)))
        say(warm_up_s=round(time.perf_counter() - start, 2))
        for number in range(options.rounds):
            say(round=number, **measure(backend, prompts(warm + number * count, count, 2 + number)))
        say(notes=backend.notes)
        backend.close()
    say(peak_tflops=peak())


if __name__ == "__main__":
    main()
