"""The backend as a whole, its engine replaced by one that answers at once; frames go through real decode workers."""

import importlib.util
import subprocess
import sys

import pytest

from benchcheck.backends import Engine, ModelSpec, open_backend, vllm
from benchcheck.backends.vllm import VllmBackend
from benchcheck.backends.vllm_engine import Answered
from benchcheck.backends.vllm_inputs import Frames, Ordinary
from benchcheck.errors import BackendError, MissingExtraError, ModelRefusedError, UsageError
from benchcheck.screen.prompts import INTROS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Reading
from benchcheck.screen.steps import Sight
from benchcheck.settings import EngineSettings

pytestmark = pytest.mark.model
pytest.importorskip("torch")
OPTIONS = ["a red ball", "a green box", "blue", "two dogs"]


class StandInCore:
    """An engine that gives every token that is asked the same probability."""

    made: list = []  # noqa: RUF012 (what the test looks at)
    uint8 = True
    cached = 10_000

    def __init__(self, folder, plan, events):
        self.plan, self.events = plan, events
        self.max_tokens, self.block, self.engine = plan.max_tokens, 16, None
        self.facts = {"device": "a GPU", "dtype": "bfloat16", "encoder_cache": plan.encoder_cache, "model": "M"}
        self.closed = 0
        self.prompts = []
        StandInCore.made.append(self)

    def takes_uint8(self, recipe):
        if isinstance(self.uint8, Exception):
            raise self.uint8
        return self.uint8

    def text(self, ids):
        return ids

    def add(self, name, prompt, ids):
        self.prompts.append(prompt)
        self.events.put([Answered(name, dict.fromkeys(ids, -2.5), self.cached)])

    def check(self):
        pass

    def abort(self, names):
        pass

    def close(self):
        self.closed += 1


class StandInReadyMade:
    """The ready-made route without vLLM's classes."""

    def __init__(self, engine, merge):
        self.merge = merge

    def frames(self, paths, frames, patches):
        digests = {path: frame.digest for path, frame in zip(paths, frames, strict=True)}
        sizes = {path: (f.height // self.merge, f.width // self.merge) for path, f in zip(paths, frames, strict=True)}
        return Frames(digests, sizes, dict.fromkeys(paths, patches))

    def prompt(self, rendered, paths, made):
        return rendered


@pytest.fixture
def core(monkeypatch):
    monkeypatch.setattr(vllm, "Core", StandInCore)
    monkeypatch.setattr(vllm, "check_version", lambda: ("0.32.0", None))
    StandInCore.made.clear()
    monkeypatch.setattr(StandInCore, "uint8", True)
    return StandInCore


@pytest.fixture
def opened(core):
    """Open backends that are closed whatever happens."""
    backends = []

    def begin(**spec):
        backends.append(VllmBackend(ModelSpec("embedded:large", **spec)))
        return backends[-1]

    yield begin
    for backend in backends:
        backend.close()


def text_prompts(items):
    return [
        Prompt(f"t{i}", 1, order, render_text(INTROS[Sight.BLIND], f"What is {i}?", [OPTIONS[j] for j in order]))
        for i in range(items)
        for order in option_orders(f"t{i}", 4)
    ]


def test_text(opened, core):
    backend = opened()
    assert backend.engine == Engine("vllm", "0.32.0", "bfloat16", "a GPU", backend.engine.revision)
    assert backend.engine.revision.startswith("sha256:")
    outcomes = list(backend.read(text_prompts(20)))
    assert len(outcomes) == 80
    assert all(isinstance(outcome.result, Reading) for outcome in outcomes)
    assert backend.notes == []
    assert backend.decoders is None
    plan = core.made[0].plan
    assert (plan.images, plan.sequences, plan.batch_tokens, plan.max_tokens) == (0, 512, 16_384, 16_383)
    assert backend.limits.prompts == 2048


def test_frames(opened, core, monkeypatch, video):
    monkeypatch.setattr(vllm, "ReadyMade", StandInReadyMade)
    settings = EngineSettings(decode_workers=1, max_sequences=9, in_flight=7, quantization="fp8", gpu_memory=0.5)
    backend = opened(images=32, settings=settings)
    assert backend.engine.dtype == "bfloat16+fp8"
    plan = core.made[0].plan
    assert (plan.sequences, plan.gpu_memory, plan.image_side, plan.encoder_cache) == (9, 0.5, 64, 131_072)
    assert (backend.limits.prompts, backend.limits.videos) == (7, 48)
    prompts = [
        Prompt(f"v{q}", 3, (0, 1, 2, 3), render_text(INTROS[Sight.FRAMES], f"{q}?", OPTIONS), video(number, 3))
        for number in range(2)
        for q in range(3)
    ]
    prompts.append(Prompt("missing", 3, (0, 1), "x", ("/missing.jpg",)))
    outcomes = {outcome.index: outcome.result for outcome in backend.read(prompts)}
    assert all(isinstance(outcomes[index], Reading) for index in range(6))
    assert outcomes[6].kind == "undecodable_frames"
    # Coarse as it is, the checkpoint shows 64 x 64 pixels, 4 tokens, of a frame.
    assert [len(rendered.images) for rendered in core.made[0].prompts] == [3] * 6
    backend.close()
    assert core.made[0].closed == 1


@pytest.mark.parametrize("lacks", ["uint8", "a name"])
def test_without_ready_made_frames_vllm_prepares_them_and_the_user_is_told(opened, core, monkeypatch, lacks):
    if lacks == "uint8":
        monkeypatch.setattr(vllm, "ReadyMade", StandInReadyMade)
        monkeypatch.setattr(core, "uint8", False)
    backend = opened(images=1)
    assert isinstance(backend.route, Ordinary)
    assert len(backend.notes) == 1
    assert backend.notes[0].startswith("vLLM prepares the frames itself, which is 3 to 7 times slower: ")
    assert (backend.limits.prompts, backend.limits.videos) == (2048, 512)


def test_what_fails_after_the_engine_started_ends_it(core, monkeypatch):
    monkeypatch.setattr(vllm, "ReadyMade", StandInReadyMade)
    monkeypatch.setattr(core, "uint8", BackendError("this vLLM shows the model other pixels"))
    with pytest.raises(BackendError, match="other pixels"):
        VllmBackend(ModelSpec("embedded:large", images=1))
    assert core.made[0].closed == 1


def test_an_engine_that_does_not_share_is_told_of_once(opened, core, monkeypatch, caplog):
    monkeypatch.setattr(core, "cached", 0)
    backend = opened()
    for _ in range(2):
        list(backend.read(text_prompts(30)))
    (told,) = caplog.messages
    assert "the engine used 0% of the tokens that neighbouring prompts share" in told
    assert backend.notes == [told]
    assert backend.sharing.rate == 0.0


def test_a_version_that_was_not_tested_is_noted(opened, monkeypatch):
    monkeypatch.setattr(vllm, "check_version", lambda: ("0.99.0", "vLLM 0.99.0 is newer than what was tested"))
    assert opened().notes == ["vLLM 0.99.0 is newer than what was tested"]


def test_refusals(core, damaged, monkeypatch):
    with pytest.raises(UsageError, match="preset 'other' does not exist"):
        VllmBackend(ModelSpec("embedded:large", preset="other"))
    monkeypatch.setattr(vllm, "unreadable_letters", lambda *_: {"B": "' B' after the prompt is 2 tokens"})
    with pytest.raises(ModelRefusedError, match="letter B is not one token"):
        VllmBackend(ModelSpec("embedded:large"))
    (damaged / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    with pytest.raises(ModelRefusedError, match=r"architecture is LlamaForCausalLM\. Allowed: Qwen3VL"):
        VllmBackend(ModelSpec(str(damaged)))
    assert core.made == []


def test_without_vllm_the_extra_is_named():
    assert importlib.util.find_spec("vllm") is None, "the tests' environment has vLLM, which this package must not need"
    with pytest.raises(MissingExtraError, match=r"pip install 'benchcheck\[vllm\]'"):
        open_backend("vllm", ModelSpec("embedded:large"))


def test_the_backend_needs_neither_duckdb_nor_pyarrow_nor_typer():
    """A GPU machine may have vLLM's packages only."""
    code = (
        "import sys\n"
        "for name in ('duckdb', 'pyarrow', 'typer', 'rich', 'av'):\n    sys.modules[name] = None\n"
        "import benchcheck.backends.vllm, benchcheck.backends.decode_worker, benchcheck.backends.vllm_worker\n"
        "print(*sorted({'vllm', 'torch', 'transformers'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
