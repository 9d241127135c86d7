"""The transformers backend at the shapes of real models, in one process and one run; prints one JSON object a line.

    python bench/gpu_transformers.py MODEL_FOLDER [...] [--seconds 120] [--json FILE]

A folder holds a Qwen3-VL config, tokenizer and processor and no weights: random ones are made on the device, so only
time and agreement mean something. Per folder: text in 4 orders and in one, one frame an item, 32 frames with 3
questions a video (cold), the vision tower, and the packed forward by torch's kernel, by masks and one prompt at a time,
with what they differ by. First a bf16 matrix product, which is what the device can do at most, and the determinism of
the embedded checkpoint. What does not fit into `--seconds` is left out and said.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchcheck.backends import ModelSpec, checkpoint, network
from benchcheck.backends.attention import varlen
from benchcheck.backends.transformers import Budget, TransformersBackend
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Reading
from benchcheck.screen.steps import Sight

WORDS = sorted({w.lower() for w in (Path(__file__).parents[1] / "LICENSE").read_text().split() if w.isalpha()})
START = time.perf_counter()
CUDA = torch.cuda.is_available()
Letters = np.ndarray[Any, np.dtype[np.float64]]


class Book:
    """Prints figures as they come, and keeps them."""

    def __init__(self, seconds: float) -> None:
        self.lines: list[dict[str, Any]] = []
        self._seconds = seconds

    def write(self, what: str, **figures: Any) -> None:
        """Print a line."""
        at = round(time.perf_counter() - START, 1)
        rounded = {key: round(value, 5) if isinstance(value, float) else value for key, value in figures.items()}
        self.lines.append({"what": what, **rounded, "at_s": at})
        print(json.dumps(self.lines[-1]), flush=True)

    def part(self, what: str, run: Callable[[], None], least_s: float = 3) -> None:
        """Run a part that takes about so long, if there is time; a part that fails is said and the next one runs."""
        if time.perf_counter() - START + least_s > self._seconds:
            return self.write(what, left_out="no time")
        try:
            run()
        except Exception as error:  # noqa: BLE001 (the device's time is spent once: the other parts still run)
            self.write(what, failed=f"{type(error).__name__}: {error}"[:500])
        return None


def words(rng: np.random.Generator, low: int, high: int) -> str:
    return " ".join(rng.choice(WORDS, int(rng.integers(low, high))))


def item_prompts(number: int, orders: int, sight: Sight, frames: tuple[str, ...] = ()) -> list[Prompt]:
    rng = np.random.default_rng(number)
    question, options = words(rng, 30, 50) + "?", [words(rng, 8, 14) for _ in range(4)]
    name = f"{sight.name}{number}"
    return [
        Prompt(name, 1, order, render_text(INTROS[sight], question, [options[j] for j in order]), frames)
        for order in option_orders(name, 4)[:orders]
    ]


def text_prompts(items: int, orders: int) -> list[Prompt]:
    return [prompt for n in range(items) for prompt in item_prompts(n, orders, Sight.BLIND)]


def video_prompts(videos: Sequence[tuple[str, ...]]) -> list[Prompt]:
    return [
        prompt
        for v, frames in enumerate(videos)
        for q in range(3)
        for prompt in item_prompts(100_000 + 3 * v + q, 1, Sight.FRAMES, frames)
    ]


def make_videos(folder: Path, count: int) -> list[tuple[str, ...]]:
    """JPEG frames of 448 x 252, 32 a video."""

    def one(v: int) -> tuple[str, ...]:
        base = np.random.default_rng(v).integers(0, 255, (32, 56, 3), dtype=np.uint8)
        paths = tuple(str(folder / f"{v}_{k}.jpg") for k in range(32))
        for k, path in enumerate(paths):
            frame = Image.fromarray(np.roll(base, k, 1)).resize((448, 252), Image.Resampling.BICUBIC)
            frame.save(path, quality=85)
        return paths

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(one, range(count)))


def random_weights(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    """Stand in for `network.load`."""
    from transformers import AutoConfig, AutoModelForImageTextToText

    torch.manual_seed(0)
    with torch.device(device):
        config = AutoConfig.from_pretrained(folder)
        return AutoModelForImageTextToText.from_config(config, attn_implementation="sdpa", dtype=dtype).eval()


@contextmanager
def opened(model: str, *, weights: bool) -> Iterator[TransformersBackend]:
    """Open a backend, with random weights unless it has some."""
    load, fetch = network.load, checkpoint.fetch
    if not weights:
        network.load = random_weights
        checkpoint.fetch = lambda name, _: (Path(name), "random weights")
    try:
        backend = TransformersBackend(ModelSpec(model))
    finally:
        network.load, checkpoint.fetch = load, fetch
    try:
        yield backend
    finally:
        backend.close()
        if CUDA:
            torch.cuda.empty_cache()


def use(backend: TransformersBackend, way: str) -> None:
    """Choose how prompts are packed: `kernel`, `masks`, or `alone`, which is by the kernel with one prompt a row."""
    device = backend._network.device.type
    core = backend._network.model.model
    if way == "masks":
        core.language_model.config._attn_implementation = core.visual.config._attn_implementation = "sdpa"
        backend._network.kernel = None
        backend.budget = Budget.of(device, masks=True)
    else:
        backend._network.use(varlen() if CUDA else None)
        backend.budget = Budget.of(device, masks=not CUDA)


def letters(backend: TransformersBackend, prompts: Sequence[Prompt], *, cold: bool = True) -> tuple[Letters, int]:
    """Letters in the order of the prompts, and their tokens."""
    if cold:
        backend._memory.clear()
    found, tokens = np.full((len(prompts), 4), np.nan), 0
    for outcome in backend.read(prompts):
        assert isinstance(outcome.result, Reading), outcome.result
        found[outcome.index] = outcome.result.letters.logprobs
        tokens += outcome.result.prompt_tokens
    return found, tokens


def alone(backend: TransformersBackend, prompts: Sequence[Prompt]) -> Letters:
    """Each prompt in a call of its own; its frames go through the tower alone too."""
    return np.concatenate([letters(backend, [prompt])[0] for prompt in prompts])


def apart(one: Letters, other: Letters) -> dict[str, float]:
    gap = np.abs(one - other)
    same = (one.argmax(1) == other.argmax(1)).mean()
    return {"max_nats": float(gap.max()), "mean_nats": float(gap.mean()), "same_letter": float(same)}


def speed(book: Book, what: str, backend: TransformersBackend, prompts: Sequence[Prompt]) -> None:
    """Time one cold read, and say how many nodes the network computed for it."""
    nodes, leaf_logits = 0, backend._network.leaf_logits
    weights = sum(p.numel() for p in backend._network.model.model.language_model.layers.parameters())

    def counted(rows: Any, features: Any) -> torch.Tensor:
        nonlocal nodes
        nodes += sum(len(row.tree.symbols) for row in rows)
        return leaf_logits(rows, features)

    letters(backend, prompts[: max(4, len(prompts) // 16)])
    backend._network.leaf_logits = counted  # type: ignore[method-assign]
    start = time.perf_counter()
    _, tokens = letters(backend, prompts)
    seconds = time.perf_counter() - start
    del backend._network.leaf_logits
    book.write(
        what,
        prompts_per_s=len(prompts) / seconds,
        prompts=len(prompts),
        tokens_per_prompt=tokens / len(prompts),
        computed_share=nodes / tokens,
        tflop_per_s_computed=2 * weights * nodes / seconds / 1e12,
    )


def determinism(book: Book, name: str, backend: TransformersBackend, prompts: Sequence[Prompt]) -> None:
    """How far a reading depends on what else is read with it."""
    full, _ = letters(backend, prompts)
    book.write(f"{name}: again, cold", **apart(full, letters(backend, prompts)[0]))
    book.write(f"{name}: again, frames remembered", **apart(full, letters(backend, prompts, cold=False)[0]))
    backwards, _ = letters(backend, prompts[::-1])
    book.write(f"{name}: in the reverse order", **apart(full, backwards[::-1]))
    some = list(range(0, len(prompts), max(1, len(prompts) // 48)))
    book.write(f"{name}: each alone", **apart(full[some], alone(backend, [prompts[n] for n in some])))


def peak(book: Book) -> None:
    """A plain matrix product in bfloat16."""
    size = 8192 if CUDA else 512
    device = "cuda" if CUDA else "cpu"
    one, other = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        one @ other
    start, rounds = synced(), 30
    for _ in range(rounds):
        one @ other
    seconds = synced() - start
    name = torch.cuda.get_device_name() if CUDA else "cpu"
    import transformers

    version = {"torch": torch.__version__, "transformers": transformers.__version__}
    book.write("matrix product", tflop_per_s=2 * size**3 * rounds / seconds / 1e12, device=name, **version)


def synced() -> float:
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


def profile(book: Book, what: str, backend: TransformersBackend, prompts: Sequence[Prompt]) -> None:
    """Say which kernels the device's time goes to, and for which share of the read it is busy."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    letters(backend, prompts)
    with profiler(activities=[ProfilerActivity.CUDA if CUDA else ProfilerActivity.CPU]) as seen:
        start = synced()
        letters(backend, prompts)
        seconds = synced() - start
    time_of = {event.key[:60]: event.self_device_time_total / 1e6 for event in seen.key_averages()}
    most = sorted(time_of.items(), key=lambda pair: -pair[1])[:14]
    busy = sum(time_of.values()) / seconds
    book.write(what, seconds=seconds, busy=busy, kernels={name: round(took / seconds, 4) for name, took in most})


def tower(book: Book, name: str, backend: TransformersBackend, videos: Sequence[tuple[str, ...]]) -> None:
    """Milliseconds a video in the vision tower, with patches ready."""
    patches = [frame for frames in videos[:4] for frame in backend._reader.take(frames)]
    for way in ("kernel", "masks"):
        use(backend, way)
        backend._network.encode(patches)
        start = synced()
        for _ in range(3):
            backend._network.encode(patches)
        book.write(f"{name} vision tower, {way}", ms_per_video=(synced() - start) / 12 * 1e3)
        start = synced()
        backend._network.encode(patches[:32])
        book.write(f"{name} vision tower, {way}, one video at a time", ms_per_video=(synced() - start) * 1e3)
    use(backend, "kernel")


def measure(book: Book, folder: str, videos: Sequence[tuple[str, ...]], scale: float) -> None:
    name = Path(folder).name
    with opened(folder, weights=False) as backend:
        book.write(f"{name} opened", engine=str(backend.engine), kernel=backend._network.kernel is not None)
        text, flat = text_prompts(int(512 * scale), 4), text_prompts(int(1024 * scale), 1)
        frames = [item_prompts(n, 1, Sight.SINGLE_FRAME, (path,)) for n, path in enumerate(sum(videos, ())[:800])]
        single, many = [prompt for one in frames for prompt in one], video_prompts(videos)
        book.part(f"{name} text 4 orders", lambda: speed(book, f"{name} text, 4 orders", backend, text), 8)
        book.part(f"{name} text", lambda: speed(book, f"{name} text, 1 order", backend, flat), 8)
        book.part(f"{name} tower", lambda: tower(book, name, backend, videos))
        book.part(f"{name} 32 frames", lambda: speed(book, f"{name} 32 frames, 3 questions", backend, many), 10)
        book.part(f"{name} one frame", lambda: speed(book, f"{name} one frame", backend, single), 8)

        def ways() -> None:
            few = text[:64] + many[:6] + single[:8]
            packed, _ = letters(backend, few)
            book.write(f"{name} packed by kernel against alone", **apart(packed, alone(backend, few)))
            start = synced()
            alone(backend, text[:64])
            book.write(f"{name} text, alone", prompts_per_s=64 / (synced() - start))
            use(backend, "masks")
            book.write(f"{name} packed by kernel against masks", **apart(packed, letters(backend, few)[0]))
            speed(book, f"{name} text, 4 orders, masks", backend, text[: len(text) // 2])
            speed(book, f"{name} 32 frames, 3 questions, masks", backend, many[: max(6, len(many) // 4)])
            use(backend, "kernel")

        book.part(f"{name} ways", ways, 15)

        book.part(f"{name} determinism", lambda: determinism(book, name, backend, text[:256] + many[:12]), 10)
        book.part(f"{name} profile", lambda: profile(book, f"{name} profile of text", backend, text[:512]), 5)
        book.part(f"{name} profile", lambda: profile(book, f"{name} profile of 32 frames", backend, many[:24]), 5)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--scale", type=float, default=1, help="share of the text items")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    book = Book(options.seconds)
    with tempfile.TemporaryDirectory() as root:
        videos = make_videos(Path(root), options.videos)
        book.part("matrix product", lambda: peak(book))

        def embedded() -> None:
            with opened("embedded:large", weights=True) as backend:
                determinism(book, "embedded:large", backend, text_prompts(60, 4) + video_prompts(videos[:4]))

        book.part("embedded:large", embedded)
        for folder in options.folders:
            book.part(folder, lambda folder=folder: measure(book, folder, videos, options.scale), 15)
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in book.lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
