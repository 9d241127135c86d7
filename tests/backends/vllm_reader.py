"""Runs in the environment that has vLLM: reads the prompts of a job with the vllm backend, and writes what came.

`vllm_reader.py JOB ANSWERS`: JOB is JSON with `model`, `images`, `preset`, `checks` and `reads`, a list of lists of
prompts; ANSWERS gets one JSON line for the engine, one per read, and one per check.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from benchcheck.backends import ModelSpec, vllm_engine
from benchcheck.backends.decoding import Decoders
from benchcheck.backends.patches import Recipe
from benchcheck.backends.vllm import VllmBackend
from benchcheck.backends.vllm_inputs import Ordinary
from benchcheck.errors import BenchcheckError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure


def prompts_of(table):
    return [
        Prompt(p["item_id"], p["step"], tuple(p["order"]), p["text"], tuple(p["frames"]), p["prefix"]) for p in table
    ]


def table_of(outcomes):
    rows = {}
    for outcome in outcomes:
        result = outcome.result
        if isinstance(result, Failure):
            rows[outcome.index] = {"failure": result.kind, "detail": result.detail}
        else:
            letters = result.letters
            rows[outcome.index] = {
                "logprobs": letters.logprobs,
                "missing": letters.missing,
                "mass": letters.label_mass,
                "tokens": result.prompt_tokens,
                "cached": result.cached_tokens,
            }
    return [rows[index] for index in range(len(rows))]


def against_the_processor(backend, job, prompts):
    """Compare ids and patches with those of the checkpoint's own processor, which here has torchvision."""
    from PIL import Image
    from transformers import AutoProcessor, Qwen2VLImageProcessor

    folder = Path(job["folder"])
    processor, recipe = AutoProcessor.from_pretrained(folder), Recipe.of(folder)
    assert type(processor.image_processor) is Qwen2VLImageProcessor, type(processor.image_processor)
    worst, same_ids = 0.0, True
    for prompt in prompts:
        content = [{"type": "image"} for _ in prompt.frames] + [{"type": "text", "text": prompt.text}]
        text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
        images = [Image.open(path) for path in prompt.frames]
        given = processor(text=[text + "Answer:"], images=images, return_tensors="pt")
        decoded = decode(recipe, prompt.frames)
        grids = given["image_grid_thw"].tolist()
        assert grids == [[1, frame.height, frame.width] for frame in decoded.frames]
        sizes = [(frame.height // recipe.merge, frame.width // recipe.merge) for frame in decoded.frames]
        same_ids &= backend.renderer.render(prompt, sizes).ids.tolist() == given["input_ids"][0].tolist()
        mean, std = (np.array(one, np.float32).reshape(1, 3, 1, 1) * 255 for one in (recipe.mean, recipe.std))
        planes = decoded.patches.astype(np.float32).reshape(len(decoded.patches), 3, 1, -1)
        mine = np.broadcast_to((planes - mean) / std, (len(planes), 3, 2, planes.shape[-1])).reshape(len(planes), -1)
        worst = max(worst, float(np.abs(mine - given["pixel_values"].numpy()).max()))
    return {"same_ids": same_ids, "worst_pixel": worst}


def decode(recipe, paths):
    import queue

    events = queue.SimpleQueue()
    decoders = Decoders(recipe, events.put, workers=1)
    try:
        decoders.submit(0, paths)
        return events.get(timeout=120)
    finally:
        decoders.close()


def killed_while_waiting(backend, job, prompts):
    """Kill the engine when everything has been sent and the reader only waits; return what it says and when."""
    outcomes = backend.read(prompts * 20)
    next(outcomes)
    threading.Timer(0.2, os.kill, (backend.core.pids[0], signal.SIGKILL)).start()
    backend.core.add = lambda *_: None  # nothing more is sent, so nothing tells but the watch
    start = time.monotonic()
    try:
        for _ in outcomes:
            pass
    except BenchcheckError as error:
        return {"said": str(error), "kind": type(error).__name__, "after_s": time.monotonic() - start}
    return {"said": "", "kind": "", "after_s": 0}


def alone(backend, job, prompts):
    """Each prompt in a batch of its own."""
    return [table_of(backend.read([prompt]))[0] for prompt in prompts]


def ordinary(backend, job, prompts):
    """The same prompts through vLLM's own preprocessing, with nothing kept of what it saw before."""
    for reset in ("reset_prefix_cache", "reset_encoder_cache", "reset_mm_cache"):
        getattr(backend.core.engine, reset)()
    backend.route = Ordinary(backend.renderer.image_token, 2)
    return table_of(backend.read(prompts))


def shared(backend, job, prompts):
    sharing = backend.sharing
    return {"rate": sharing.rate, "shareable": sharing.shareable, "cached": sharing.cached}


def head(backend, job, prompts):
    """How the output head gives float32: asked again, since the backend does not keep it."""
    return backend.core._ask("benchcheck_exact_head")


def wait(backend, job, prompts):
    sys.stdin.read()
    return {}


CHECKS = {
    "alone": alone,
    "head": head,
    "kill": killed_while_waiting,
    "ordinary": ordinary,
    "processor": against_the_processor,
    "sharing": shared,
    "wait": wait,
}


def facts_of(backend):
    engine = backend.engine
    return {
        "name": engine.name,
        "version": engine.version,
        "dtype": engine.dtype,
        "device": engine.device,
        "revision": engine.revision,
        "facts": backend.core.facts,
        "notes": backend.notes,
        "route": type(backend.route).__name__,
        "pids": backend.core.pids,
    }


def lines_of(job):
    """What is written, line by line."""
    vllm_engine.EXTRA.update(job["arguments"])
    try:
        backend = VllmBackend(ModelSpec(job["model"], images=job["images"], preset=job["preset"]))
    except BenchcheckError as error:
        yield {"refused": str(error), "kind": type(error).__name__}
        return
    yield facts_of(backend)
    reads = [prompts_of(one) for one in job["reads"]] or [[]]
    for one in reads:
        yield table_of(backend.read(one))
    for check in job["checks"]:
        yield CHECKS[check](backend, job, reads[0])
    backend.close()
    yield {"closed": [os.path.exists(f"/proc/{pid}") for pid in backend.core.pids]}


def main():
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with open(sys.argv[2], "w", encoding="utf-8") as answers:
        for line in lines_of(job):
            answers.write(json.dumps(line) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
