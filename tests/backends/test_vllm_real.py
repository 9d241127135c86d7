"""The vllm backend with real vLLM on a CPU, in the environment that scripts/vllm-venv makes, against transformers."""

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchcheck.backends import ModelSpec
from benchcheck.backends.patches import Recipe
from benchcheck.backends.vllm import _plan as make_plan
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import MISSING_LOGPROB, Reading
from benchcheck.screen.steps import Sight

pytestmark = [pytest.mark.long, pytest.mark.model]
pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
READER = Path(__file__).with_name("vllm_reader.py")
OPTIONS = ["a red ball", "a green box", "blue", "two dogs", "nothing"]
LINE = r"[^\n]+"


@pytest.fixture(scope="session")
def environment():
    """The environment with vLLM; made where it is not there, some minutes."""
    made = subprocess.run([ROOT / "scripts" / "vllm-venv"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return PYTHON


@pytest.fixture(scope="session")
def ask(environment, tmp_path_factory):
    """Run a job; returns the lines that came. `during` is called with the process and the answers' file."""

    def run(model, reads, *, images=0, checks=(), preset="exact", extra=None, arguments=None, during=None):
        folder = tmp_path_factory.mktemp("job")
        job = {
            "model": f"embedded:{model.name}" if model.name in ("large", "small") else str(model),
            "folder": str(model),
            "images": images,
            "preset": preset,
            "reads": [[asdict(prompt) for prompt in one] for one in reads],
            "checks": checks,
            "arguments": arguments or {},
        }
        (folder / "job").write_text(json.dumps(job))
        process = subprocess.Popen(
            [environment, READER, folder / "job", folder / "answers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": "", **(extra or {})},
            start_new_session=True,
        )
        try:
            if during is not None:
                during(process, folder / "answers")
            printed, _ = process.communicate(timeout=900)
        finally:
            for end in (process.kill, process.wait):
                end()
        lines = [json.loads(line) for line in (folder / "answers").read_text().splitlines()]
        assert lines, printed
        return lines, printed

    return run


def text_prompts(items=12, k=4):
    return [
        Prompt(f"t{i}", 1, order, render_text(INTROS[Sight.BLIND], f"What is {i}?", [OPTIONS[j] for j in order]))
        for i in range(items)
        for order in option_orders(f"t{i}", k)
    ]


def frame_prompts(videos, sight, questions=3):
    return [
        Prompt(
            f"v{number}_{question}",
            3,
            (0, 1, 2, 3),
            render_text(INTROS[sight], f"Which of {question}?", OPTIONS[:4]),
            turned(frames, question) if sight is Sight.SHUFFLED else frames,
        )
        for number, frames in enumerate(videos)
        for question in range(questions)
    ]


def turned(frames, seed):
    order = list(frames)
    random.Random(seed).shuffle(order)
    return tuple(order)


def reference(backend, prompts):
    """Letters of the transformers backend, float32 on the CPU."""
    found = {outcome.index: outcome.result for outcome in backend.read(prompts)}
    assert all(isinstance(result, Reading) for result in found.values())
    return np.array([found[index].letters.logprobs for index in range(len(prompts))]), [
        found[index].prompt_tokens for index in range(len(prompts))
    ]


def letters(rows):
    assert all("logprobs" in row for row in rows), [row for row in rows if "failure" in row]
    return np.array([row["logprobs"] for row in rows])


def test_text_letters_are_those_of_transformers_alone_and_together_cold_and_cached(ask, backend, model_folder):
    prompts = text_prompts()
    lines, printed = ask(model_folder, [prompts, prompts], checks=["alone", "sharing", "kill"])
    engine, cold, cached, alone, _, killed, _ = lines
    assert (engine["name"], engine["dtype"], engine["device"]) == ("vllm", "float32", "cpu")
    assert engine["version"].startswith("0.32.0")
    assert engine["revision"] == backend.engine.revision
    assert engine["notes"] == []
    want, tokens = reference(backend, prompts)
    assert [row["tokens"] for row in cold] == tokens
    for rows in (cold, cached, alone):
        assert np.abs(letters(rows) - want).max() < 1e-3
        assert all(0.9 < row["mass"] <= 1 and row["missing"] == [] for row in rows)
    # The engine was killed while the reader only waited: one line, at once, and no hang.
    assert killed["kind"] == "BackendError"
    assert killed["said"].startswith("vLLM's engine stopped: ")
    assert "\n" not in killed["said"]
    assert killed["after_s"] < 60
    assert "Traceback" not in printed


@pytest.mark.parametrize(("images", "sights"), [(1, [Sight.SINGLE_FRAME]), (32, [Sight.FRAMES, Sight.SHUFFLED])])
def test_letters_of_frames_are_those_of_transformers_and_of_vllms_own_route(
    ask, backend, model_folder, video, images, sights
):
    videos = [video(number, images) for number in range(4)]
    reads = [frame_prompts(videos, sight) for sight in sights]
    reads.append([*reads[0], Prompt("bad", 3, (0, 1), "x", ("/missing.jpg",))])
    lines, _ = ask(model_folder, reads, images=images, checks=["processor", "sharing", "ordinary"])
    engine, *rows, processor, sharing, ordinary, closed = lines
    assert engine["route"] == "ReadyMade"
    assert engine["facts"]["encoder_cache"] == 4 * (32_768 if images == 32 else 16_384)
    *rows, again = rows
    for prompts, found in zip(reads, rows, strict=False):
        want, tokens = reference(backend, prompts)
        assert [row["tokens"] for row in found] == tokens
        # Transformers resizes with Pillow here, which differs in the last bit of some pixels.
        assert np.abs(letters(found) - want).max() < 0.02
    assert processor == {"same_ids": True, "worst_pixel": 0.0}
    assert np.abs(letters(ordinary) - letters(rows[0])).max() < 1e-4
    assert np.abs(letters(again[:-1]) - letters(rows[0])).max() < 1e-4
    assert again[-1]["failure"] == "undecodable_frames"
    assert "/missing.jpg" in again[-1]["detail"]
    assert sharing["rate"] == 1.0
    assert closed == {"closed": [False]}


def test_in_bfloat16_letters_are_near_and_the_head_still_sums_in_float32(ask, backend, model_folder):
    prompts = text_prompts(6)
    lines, _ = ask(model_folder, [prompts], checks=["head"], arguments={"dtype": "bfloat16"})
    engine, found, head, _ = lines
    assert engine["dtype"] == "bfloat16"
    assert head == {"head": "native"}
    want, _ = reference(backend, prompts)
    assert 0 < np.abs(letters(found) - want).max() < 0.1


def test_the_original_preset_sees_the_top_20(ask, model_folder):
    from benchcheck.backends.transformers import TransformersBackend

    prompts = text_prompts(4)
    lines, _ = ask(model_folder, [prompts], preset="benchcheck-2026")
    opened = TransformersBackend(ModelSpec(str(model_folder), preset="benchcheck-2026"))
    try:
        want, _ = reference(opened, prompts)
    finally:
        opened.close()
    found = letters(lines[1])
    seen = (want != MISSING_LOGPROB) & (found != MISSING_LOGPROB)
    assert seen.mean() > 0.9
    assert np.abs(found - want)[seen].max() < 1e-3


def test_an_engine_that_cannot_start_is_one_line(ask, model_folder):
    (line,), printed = ask(model_folder, [], extra={"VLLM_CPU_KVCACHE_SPACE": "900000"})
    assert line["kind"] == "BackendError"
    assert line["refused"].startswith("vLLM's engine does not start: ")
    assert "Cure: " in line["refused"]
    assert "\n" not in line["refused"]
    assert "Traceback" not in printed


def test_no_process_is_left_when_the_parent_is_killed(ask, model_folder):
    seen = {}

    def kill(process, answers):
        end = time.monotonic() + 600
        while not (answers.exists() and answers.read_text().endswith("\n")):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.5)
        core = json.loads(answers.read_text().splitlines()[0])["pids"]
        seen["pids"] = core + [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/stat")
            if (stat := safely(path)) and int(stat.rpartition(")")[2].split()[1]) in core
        ]
        os.kill(process.pid, signal.SIGKILL)

    ask(model_folder, [], checks=["wait"], images=1, during=kill)
    assert len(seen["pids"]) >= 2  # the core and its worker
    end = time.monotonic() + 60
    while any(lives(pid) for pid in seen["pids"]):
        assert time.monotonic() < end, "vLLM's engine outlived its parent"
        time.sleep(0.2)


def test_the_encoder_cache_that_is_asked_for_keeps_frames_shared(environment, model_folder):
    """vLLM's own scheduler, without a model: with the cache that it would take, questions share no frames."""
    spec = ModelSpec(str(model_folder), images=32)
    plan = make_plan(spec, 262_144, Recipe(16, 2, 65_536, 16_777_216, (0.5,) * 3, (0.5,) * 3))
    script = Path(__file__).with_name("vllm_scheduler.py")

    def tokens(encoder_cache):
        command = [environment, script, model_folder, str(plan.batch_tokens), str(encoder_cache)]
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
        return float(found.stdout.splitlines()[-1])

    prompt, own = 3 + 32 * 114 + 117, 117
    shared = prompt + 2 * own
    assert shared <= tokens(plan.encoder_cache) < shared + 3 * 16
    assert tokens(plan.batch_tokens) > 2 * shared


def safely(path):
    try:
        return path.read_text()
    except OSError:
        return ""


def lives(pid):
    stat = safely(Path(f"/proc/{pid}/stat"))
    return bool(stat) and stat.rpartition(")")[2].split()[0] != "Z"
