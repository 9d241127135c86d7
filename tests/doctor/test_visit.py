"""The doctor from the command line: on the embedded models it passes, on the real kit they fail, and so do scripts."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from benchcheck.backends import Backend, Engine, ModelSpec
from benchcheck.doctor import visit as visits
from benchcheck.doctor.exam import Exam
from benchcheck.doctor.tail import Tail, open_tail
from benchcheck.doctor.visit import Wish, config_of, demand, name_of, visit
from benchcheck.errors import BackendError, UsageError
from benchcheck.run.local import Asked
from benchcheck.settings import EngineSettings
from studies import Run, framed_study, make_items, make_study, row_of

from .fakes import Oracle


def test_a_script_knows_nothing_and_fails(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "found.json"
    code, out, err = run("doctor", "--model", "scripted", "--backend", "scripted", "--quick", "--json", file)
    assert code == 1
    assert out.splitlines()[-1].startswith("doctor: ")
    assert "1 failed" not in out.splitlines()[-1]
    assert "asking text" in err
    (model,) = json.loads(file.read_text(encoding="utf-8"))["models"]
    assert model["about"]["kit"] == "acceptance kit, 8b"
    assert model["about"]["engine"] == "scripted"
    verdicts = {check["check"]: check["verdict"] for check in model["checks"]}
    assert verdicts["facts are known"] == "fail"
    assert verdicts["every prompt is answered"] == "pass"
    assert verdicts["letters are single tokens"] == "not applicable"
    assert "cure: " in out


def test_a_studys_models_are_examined_once_each_and_what_was_found_is_kept(run: Run, tmp_path: Path) -> None:
    study = framed_study(tmp_path / "study", make_items(a=3))
    before = sorted(path for path in study.root.rglob("*") if path.is_file())
    code, out, _ = run("doctor", study.root, "--backend", "scripted")
    assert code == 1
    kept = json.loads(study.doctor_file.read_text(encoding="utf-8"))
    assert [model["about"]["role"] for model in kept["models"]] == ["8b", "2b"]
    assert sorted(path for path in study.root.rglob("*") if path.is_file()) == sorted([*before, study.doctor_file])
    assert "the study's" in out
    assert run("doctor", study.root, "--backend", "scripted", "--quick", "--role", "2b")[0] == 1
    kept = json.loads(study.doctor_file.read_text(encoding="utf-8"))
    assert [model["about"]["role"] for model in kept["models"]] == ["2b"]
    code, _, err = run("doctor", study.root, "--backend", "scripted", "--role", "9b")
    assert code == 2
    assert "--role 9b has no step in this study. Allowed: 2b, 8b" in err
    same = make_study(tmp_path / "same", small="scripted")
    assert run("doctor", same.root, "--backend", "scripted", "--quick")[0] == 1
    assert len(json.loads(same.doctor_file.read_text(encoding="utf-8"))["models"]) == 1


def test_a_second_model_that_is_refused_leaves_the_first_ones_findings(run: Run, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", small="scripted?x=1")
    code, out, err = run("doctor", study.root, "--backend", "scripted", "--quick")
    assert code == 2
    assert "no option 'x'" in err
    assert "facts are known" in out
    assert len(json.loads(study.doctor_file.read_text(encoding="utf-8"))["models"]) == 1


def test_demand_counts_prompts_by_role_and_kind(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "study", make_items(a=4))
    found = demand(study)
    # Steps 1 and 4 in four orders; 80 % of the items are expected to come through each step.
    assert {key: asked.prompts for key, asked in found.items()} == pytest.approx({
        ("8b", "text"): 16 + 16 * 0.8**3, ("8b", "one frame"): 4 * 0.8,
        ("2b", "frames"): 4 * (0.8**2 + 0.8**4), ("8b", "frames"): 4 * 0.8**5,
    })  # fmt: skip
    assert found["8b", "text"].tokens > 50 * found["8b", "text"].prompts
    study.append(1, "a", None, [row_of(study, item) for item in study.items()])
    assert demand(study)["8b", "text"].prompts == pytest.approx(16 * 0.8**2)
    assert demand(make_study(tmp_path / "empty")) == {}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a STUDY, or --model"),
        (("study", "--model", "scripted"), "name a STUDY, or --model"),
        (("--model", "scripted", "--backend", "magic"), "backend 'magic' does not exist"),
        (("--model", "scripted", "--backend", "scripted", "--against", "magic"), "backend 'magic' does not exist"),
        (("--model", "scripted", "--backend", "scripted", "--kit", "9b"), "--kit 9b does not exist"),
        (("--model", "scripted", "--backend", "scripted", "--set", "speed=1"), "speed"),
        (("--model", "scripted", "--backend", "scripted", "--role", "8b"), "--role chooses among a study's models"),
        (("--model", "scripted?x=1", "--backend", "scripted"), "no option 'x'"),
        (("--model", "no/where/at/all", "--backend", "transformers"), "no such model folder"),
    ],
)
def test_wrong_use_is_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = run("doctor", *arguments)
    assert code == 2
    assert words in err.splitlines()[-1]
    assert "doctor:" not in out


def test_a_folder_may_have_an_at_sign_in_its_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my@model").mkdir()
    code, _, err = run("doctor", "--model", tmp_path / "my@model", "--quick")
    assert code == 2
    assert "my@model: no config.json" in err


def test_stacks_are_named_by_what_tells_them_apart() -> None:
    assert name_of(Asked("vllm", EngineSettings(quantization="fp8"))) == "vllm fp8"
    assert name_of(Asked("server", EngineSettings(endpoints=("http://a:1/v1",)))) == "server http://a:1/v1"
    assert name_of(Asked("transformers")) == "transformers"


def test_a_server_is_named_by_its_address() -> None:
    from benchcheck.cli.checking import _other

    found = _other("http://b:2/v1", EngineSettings(endpoints=("http://a:1/v1",), served_name="x"), ["max_sequences=3"])
    assert found == Asked("server", EngineSettings(endpoints=("http://b:2/v1",), max_sequences=3))
    assert _other("vllm", EngineSettings(), ["quantization=fp8"]).settings.quantization == "fp8"


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch, exam: Exam) -> dict[str, Oracle]:
    """The stacks that are opened, by backend: all know the exam."""
    stacks = {name: Oracle(exam, engine=Engine(name, "1", "bf16", "paper", "r")) for name in ("transformers", "vllm")}
    monkeypatch.setattr(visits, "open_backend", lambda name, spec: stacks[name])
    monkeypatch.setattr(visits, "made_up_world", lambda folder, count: exam)
    monkeypatch.setattr(visits, "open_tail", lambda model, revision, cache="": "no tokenizer here")
    return stacks


def visited(against: tuple[Asked, ...] = (), frames: int = 6) -> dict[str, str]:
    config = config_of("embedded:large", "")
    config = replace(config, frames=replace(config.frames, count=frames, single=2))
    found = visit(config, config.steps[0], ".", Wish(Asked("transformers"), against))
    return {finding.name: finding.verdict.value for finding in found.findings}


def test_another_stack_is_asked_the_same(oracle: dict[str, Oracle]) -> None:
    found = visited((Asked("vllm", EngineSettings(quantization="fp8")),))
    assert found["agrees with vllm fp8"] == "pass"
    assert oracle["transformers"].closed
    assert oracle["vllm"].closed
    # Each sitting once: what was read again on the first is not asked twice of the second.
    assert 0 < oracle["vllm"].calls < oracle["transformers"].calls


def test_an_engine_that_dies_is_a_finding(oracle: dict[str, Oracle], monkeypatch: pytest.MonkeyPatch) -> None:
    def die() -> None:
        raise BackendError("the engine\nis gone")

    oracle["vllm"].tick = die
    found = visited((Asked("vllm"),))
    assert found["agrees with vllm"] == "fail"
    assert found["facts are known"] == "pass"
    oracle["transformers"].tick = die
    assert visited() == {"the engine keeps answering": "fail"}


def test_no_kit_of_that_name() -> None:
    with pytest.raises(UsageError, match="Allowed: auto, 8b, 2b, world"):
        Wish(Asked("scripted"), kit="tiny")


def test_without_a_checkpoint_there_is_no_tokenizer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for model in ("scripted", "nobody/nothing-of-this-name"):
        reason = open_tail(model, "", download=False)
        assert isinstance(reason, str)
        assert reason.startswith("no tokenizer at hand")


@pytest.mark.model
def test_the_embedded_checkpoints_tokenizer() -> None:
    tail = open_tail("embedded:large", "")
    assert isinstance(tail, Tail)
    try:
        variants, unreadable = tail.letters()
        assert not {"A", "B", "C", "D", "E"} & set(unreadable)
        assert set(tail.texts(variants["A"])) == {"A", " A"}
    finally:
        tail.close()


@pytest.mark.model
@pytest.mark.parametrize("model", ["embedded:large", pytest.param("embedded:small", marks=pytest.mark.long)])
def test_the_embedded_models_pass_the_exam_of_their_world(run: Run, model: str, tmp_path: Path) -> None:
    code, out, _ = run("doctor", "--model", model, "--json", tmp_path / "found.json")
    assert code == 0, out
    (found,) = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["models"]
    verdicts = {check["check"]: check["verdict"] for check in found["checks"]}
    assert "fail" not in verdicts.values()
    assert verdicts["the prefill is continued"] == verdicts["32 frames come to their tokens"] == "pass"
    assert found["about"]["revision"].startswith("sha256:")


@pytest.mark.model
@pytest.mark.parametrize("flags", [("--quick",), pytest.param((), marks=pytest.mark.long)])
def test_the_real_kit_fails_models_that_know_a_made_up_world_alone(
    run: Run, flags: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "found.json"
    assert run("doctor", "--model", "embedded:large", "--kit", "2b", "--json", file, *flags)[0] == 1
    (found,) = json.loads(file.read_text(encoding="utf-8"))["models"]
    failed = {check["check"] for check in found["checks"] if check["verdict"] == "fail"}
    assert {"facts are known", *(() if flags else ("pictures are known", "sequences are known"))} <= failed
    # The stack itself is sound, and the doctor says so.
    assert not {"every prompt is answered", "label mass", "the prefill is continued"} & failed


@pytest.mark.model
def test_a_real_engine_that_leaves_the_prefill_out_is_caught_by_its_tokens(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its label mass hardly falls: a model that was taught to answer with a letter says one all the same."""
    from benchcheck.backends import open_backend
    from benchcheck.screen.prompts import PREFILL

    def without(name: str, spec: ModelSpec) -> Backend:
        backend: Any = open_backend(name, spec)
        whole = backend._renderer.text
        backend._renderer.text = lambda text, images: whole(text, images=images).removesuffix(PREFILL)
        return cast(Backend, backend)

    monkeypatch.setattr(visits, "open_backend", without)
    file = tmp_path / "found.json"
    assert run("doctor", "--model", "embedded:large", "--quick", "--json", file)[0] == 1
    (found,) = json.loads(file.read_text(encoding="utf-8"))["models"]
    verdicts = {check["check"]: check["verdict"] for check in found["checks"]}
    assert verdicts["the prefill is continued"] == "fail"
    assert verdicts["label mass"] == "pass"
