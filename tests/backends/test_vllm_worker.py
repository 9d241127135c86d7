"""What runs inside vLLM's worker, on models of two versions in small: one that does as told, one that does not say."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from benchcheck.backends.vllm_worker import LetterWorker  # noqa: E402 (torch first)

HIDDEN, ROWS, PADDED, WIDTH = 64, 500, 512, 768
MEAN, STD = [0.5, 0.4, 0.3], [0.5, 0.25, 0.2]


class Norm(torch.nn.Module):
    """Normalisation on the device, as newer vLLM has it."""

    input_dtype = torch.uint8

    def __init__(self, wrong=0.0):
        super().__init__()
        self.wrong = wrong

    def forward(self, pixels, dtype):
        planes = pixels.float().view(len(pixels), 3, -1)
        mean, std = (torch.tensor(one).view(1, 3, 1) * 255 for one in (MEAN, STD))
        return ((planes - mean) / std + self.wrong).view(len(pixels), -1).to(dtype)


class Identity(Norm):
    """What newer vLLM has where it was told not to normalise."""

    input_dtype = None

    def forward(self, pixels, dtype):
        return pixels.to(dtype)


def model(dtype=torch.bfloat16, exact=False, norm=None):
    """A model with a head of 500 tokens in 512 rows, and a tower that keeps what reaches it."""
    torch.manual_seed(0)
    head = torch.nn.Linear(HIDDEN, PADDED, bias=False, dtype=dtype)
    visual = torch.nn.Linear(1, 1).to(dtype)
    visual.dtype = dtype
    if norm is not None:
        visual.input_norm = norm
    one = torch.nn.Module()
    one.language_model = torch.nn.Module()
    one.language_model.lm_head = head
    one.language_model.logits_processor = SimpleNamespace(org_vocab_size=ROWS, scale=1.0, soft_cap=None)
    one.visual = visual
    one.seen = []

    def compute_logits(hidden):
        weight = head.weight.detach()
        logits = hidden.float() @ weight.float().T if exact else (hidden @ weight.T)
        return logits[:, :ROWS]

    def process(image_input):
        one.seen.append(image_input)
        return "features"

    one.compute_logits, one._process_image_input = compute_logits, process
    return one


def worker(one, **config):
    """A worker whose runner keeps the model as the versions do."""
    extended = LetterWorker()
    extended.model_runner = SimpleNamespace(get_model=lambda: one)
    extended.vllm_config = SimpleNamespace(
        model_config=SimpleNamespace(dtype=torch.bfloat16), scheduler_config=SimpleNamespace(encoder_cache_size=77)
    )
    return extended


def test_facts():
    one = model()
    assert worker(one).benchcheck_facts(os.getpid()) == {
        "device": "cpu",
        "dtype": "bfloat16",
        "encoder_cache": 77,
        "model": "Module",
    }
    extended = worker(one)
    extended.model_runner = SimpleNamespace(model=one)
    assert extended.benchcheck_facts(os.getpid())["model"] == "Module"


def test_a_head_that_sums_in_float32_is_left_alone():
    one = model(exact=True)
    before = one.compute_logits
    assert worker(one).benchcheck_exact_head() == {"head": "native"}
    assert one.compute_logits is before
    assert worker(model(dtype=torch.float32)).benchcheck_exact_head() == {"head": "native"}


def test_a_head_that_rounds_to_bfloat16_is_mended():
    one = model()
    rows = torch.randn(5, HIDDEN).bfloat16()
    rounded = one.compute_logits(rows).float()
    assert worker(one).benchcheck_exact_head() == {"head": "mended"}
    logits = one.compute_logits(rows)
    assert logits.dtype == torch.float32
    assert logits.shape == (5, ROWS)
    want = rows.double() @ one.language_model.lm_head.weight.double().T[:, :ROWS]
    assert (logits - want).abs().max() < 1e-5
    assert (rounded - want).abs().max() > 1e-3


@pytest.mark.parametrize("odd", ["quantised", "no weight", "split", "scaled", "no processor"])
def test_a_head_that_cannot_be_mended_is_told(odd):
    one = model()
    head = one.language_model.lm_head
    if odd == "quantised":
        head.weight = torch.nn.Parameter(torch.zeros(PADDED, HIDDEN, dtype=torch.int8), requires_grad=False)
        one.compute_logits = None
    elif odd == "no weight":
        del one.language_model.lm_head
    elif odd == "split":
        head.tp_size = 2
    elif odd == "scaled":
        one.language_model.logits_processor.scale = 0.5
    else:
        one.language_model.logits_processor = None
    assert worker(one).benchcheck_exact_head() == {"head": "none"}


def shown(one, patches):
    """What reaches the tower's first layer."""
    grid = torch.tensor([[1, 2, len(patches) // 2]])
    assert one._process_image_input({"type": "pixel_values", "pixel_values": patches, "image_grid_thw": grid}) == (
        "features"
    )
    given = one.seen[-1]
    assert given["image_grid_thw"] is grid
    return given["pixel_values"]


@pytest.mark.parametrize("norm", [None, Identity(), Norm()])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_uint8_patches_reach_the_tower_as_the_models_processor_makes_them(norm, dtype):
    one = model(dtype, norm=norm)
    answer = worker(one).benchcheck_uint8(MEAN, STD, WIDTH)
    assert answer["pixels"] == ("native" if type(norm) is Norm else "mended")
    assert answer["error"] <= 2
    patches = torch.randint(0, 256, (8, WIDTH), dtype=torch.uint8)
    given = shown(one, patches)
    assert given.shape == (8, 2 * WIDTH)
    if norm is not None:
        given = norm(given, dtype)
    planes = patches.double().view(8, 3, 1, -1) / 255
    mean, std = (torch.tensor(one, dtype=torch.float64).view(1, 3, 1, 1) for one in (MEAN, STD))
    want = ((planes - mean) / std).expand(-1, 3, 2, -1).reshape(8, -1)
    assert (given.double() - want).abs().max() < 4 * torch.finfo(dtype).eps


def test_patches_of_vllms_own_processor_pass_unchanged():
    one = model(norm=Norm())
    worker(one).benchcheck_uint8(MEAN, STD, WIDTH)
    whole = torch.zeros(8, 2 * WIDTH, dtype=torch.uint8)
    assert shown(one, whole) is whole
    floats = torch.zeros(8, 2 * WIDTH)
    assert shown(one, floats) is floats
    embeds = {"type": "image_embeds", "image_embeds": 1, "image_grid_thw": 2}
    one._process_image_input(embeds)
    assert one.seen[-1] is embeds


def test_another_normalisation_is_measured():
    answer = worker(model(norm=Norm(wrong=0.3))).benchcheck_uint8(MEAN, STD, WIDTH)
    assert answer["pixels"] == "native"
    assert answer["error"] > 30


def test_a_model_that_takes_no_patches_is_told():
    one = model()
    del one.visual
    assert worker(one).benchcheck_uint8(MEAN, STD, WIDTH)["pixels"] == "none"


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("layers", [1, 2])
def test_the_engine_ends_with_the_process_that_asked(layers):
    """One layer: the worker is the core (a GPU). Two: the core's child (a CPU). Nothing else is ended."""
    worker = "import os, sys, benchcheck.backends.vllm_worker as w; w._LOOK_S = 0.05; print(os.getpid(), flush=True); "
    watch = worker + "w._end_after(int(sys.argv[1]), os.getppid())"
    core = textwrap.dedent(
        """
        import os, subprocess, sys
        print(os.getpid(), flush=True)
        subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]])
        """
    )
    asker = textwrap.dedent(
        """
        import os, subprocess, sys
        print(os.getpid(), flush=True)
        mine = str(os.getpid())
        command = [sys.argv[2], mine] if sys.argv[1] == "1" else [sys.argv[3], mine, sys.argv[2]]
        subprocess.run([sys.executable, "-c", *command])
        """
    )
    outer = subprocess.Popen(
        [sys.executable, "-c", asker, str(layers), watch, core],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pids = [int(outer.stdout.readline()) for _ in range(layers + 1)]
        assert all(map(lives, pids))
        outer.kill()
        outer.wait()
        end = time.monotonic() + 60
        while any(map(lives, pids)):
            assert time.monotonic() < end, "a process is left"
            time.sleep(0.02)
    finally:
        outer.kill()
        outer.communicate()
