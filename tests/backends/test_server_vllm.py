"""The server backend against real vLLM servers on the CPU, and beside the `transformers` backend in float32."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends import ModelSpec
from benchcheck.backends.server import ServerBackend
from benchcheck.demo.walk import _open, _without_cascade
from benchcheck.errors import ModelRefusedError, UsageError
from benchcheck.pool.building.build import build_pool
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import survey
from benchcheck.screen.prompts import INTROS, LETTERS, Prompt, option_orders, render_text
from benchcheck.screen.readings import Failure, Reading
from benchcheck.screen.steps import STEP_NUMBERS, Sight
from benchcheck.screen.verdicts import State
from benchcheck.settings import EngineSettings
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames
from studies import Heard, rows_on_disk
from vllm_server import vllm_servers

pytestmark = [pytest.mark.long, pytest.mark.model]

PER_CLASS = 4
BAND = 0.1
"""How far bfloat16 on the server may move a letter against float32; 0.087 was seen."""


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


@pytest.fixture(scope="session")
def servers(shared_folder: Path) -> Iterator[list[str]]:
    with vllm_servers(shared_folder, "large", "small") as urls:
        yield urls


@pytest.fixture
def large(servers: list[str]) -> str:
    return servers[0]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory, servers: list[str]) -> tuple[Study, Study]:
    """The demo study, all steps on all items, read by both backends."""
    root = tmp_path_factory.mktemp("demo")
    study = _open(root / "local", root / "local" / "controls", PER_CLASS)
    build_pool(study)
    extract_frames(study)
    study = _without_cascade(study)
    shutil.copytree(root / "local", root / "served")
    served = Study.open(root / "served")
    for one, asked in (
        (study, Asked("transformers")),
        (served, Asked("server", EngineSettings(endpoints=tuple(servers)))),
    ):
        executor = Local(one, asked)
        screen(one, executor, Heard())
        executor.close()
    return study, served


def answers(study: Study) -> dict[tuple[int, str], dict[str, Any]]:
    return {(step, row["item_id"]): row for step in STEP_NUMBERS for row in rows_on_disk(study, step)}


def test_all_six_steps_read_as_the_transformers_backend_does(studies: tuple[Study, Study]) -> None:
    local, served = map(answers, studies)
    assert set(local) == set(served)
    assert {step for step, _ in local} == set(STEP_NUMBERS)
    assert len(local) == 6 * 5 * PER_CLASS
    worst = 0.0
    for key, row in served.items():
        assert (row["status"], row["missing"]) == ("ok", [[] for _ in row["orders"]])
        assert row["prompt_tokens"] == local[key]["prompt_tokens"]
        assert row["engine"]["name"] == "server"
        assert row["engine"]["version"].startswith("vllm 0.")
        for one, other in zip(row["logprobs"], local[key]["logprobs"], strict=True):
            worst = max(worst, *(abs(x - y) for x, y in zip(one, other, strict=True)))
    print(f"\nlargest difference of a letter: {worst:.4f} nats in {len(served)} rows")
    assert worst <= BAND


def close_call(order: list[float]) -> bool:
    """Whether the first letter of an order may change: two letters may move apart by twice the band."""
    last, first = sorted(order)[-2:]
    return first - last <= 2 * BAND


def undecided(row: dict[str, Any]) -> bool:
    """Whether letters that move within the band can change whether a row's item is removed."""
    over = row["mean_margin"] - math.log(2)
    return abs(over) <= 2 * BAND or (over > 0 and any(map(close_call, row["logprobs"])))


def test_verdicts_are_equal_outside_the_band(studies: tuple[Study, Study]) -> None:
    local, served = map(answers, studies)
    clear = {key for key, row in local.items() if not undecided(row)}
    assert len(clear) > 0.8 * len(local)
    assert len({local[key]["removed"] for key in clear}) == 2
    for key, row in local.items():
        if key in clear:
            assert served[key]["removed"] == row["removed"], key
        for order, one, other in zip(row["logprobs"], row["right"], served[key]["right"], strict=True):
            assert one == other or close_call(order), key
    folds = [survey(study).fold for study in studies]
    ids = [str(item_id) for item_id in survey(studies[0]).pool.item_id.to_pylist()]
    fates = [list(zip(fold.state.tolist(), fold.left_at.tolist(), strict=True)) for fold in folds]
    assert {State(state) for state, _ in fates[1]} <= {State.KEPT, State.REMOVED}
    for item_id, one, other in zip(ids, *fates, strict=True):
        if all((step, item_id) in clear for step in STEP_NUMBERS):
            assert one == other, item_id


def test_the_cache_is_used_across_a_video_s_questions(studies: tuple[Study, Study], large: str) -> None:
    study = studies[1]
    items = [item for item in study.items() if item.frames_key == study.items()[0].frames_key]
    frames = tuple(str(path) for path in sorted((study.frames / items[0].frames_key).glob("*.jpg")))
    prompts = [
        Prompt(f"{n}", 6, (0, 1), render_text(INTROS[Sight.FRAMES], f"Question {n}?", ["yes", "no"]), frames, "v")
        for n in range(4)
    ]
    backend = ServerBackend(spec(large, images=len(frames)))
    read = [outcome.result for outcome in backend.read(prompts)]
    backend.close()
    readings = [result for result in read if isinstance(result, Reading)]
    assert len(readings) == 4
    assert sum(reading.cached_tokens > 0 for reading in readings) >= 3


def spec(url: str, preset: str = "exact", images: int = 0, model: str = "embedded:large", **settings: Any) -> ModelSpec:
    return ModelSpec(model, preset=preset, images=images, settings=EngineSettings(endpoints=(url,), **settings))


def text_prompts(count: int, k: int = 5) -> list[Prompt]:
    return [
        Prompt(f"i{n}", 1, order, render_text(INTROS[Sight.BLIND], f"Which colour is {n}?", [f"c{j}" for j in order]))
        for n in range(count)
        for order in option_orders(f"i{n}", k)
    ]


def read(prompts: list[Prompt], spec: ModelSpec) -> list[Reading | Failure]:
    backend = ServerBackend(spec)
    outcomes = sorted(backend.read(prompts), key=lambda outcome: outcome.index)
    backend.close()
    return [outcome.result for outcome in outcomes]


def test_exact_letters_and_the_top_20_agree_on_what_both_see(large: str) -> None:
    prompts = text_prompts(8)
    pairs = zip(
        read(prompts, spec(large)), read(prompts, spec(large, preset="benchcheck-2026")), strict=True
    )  # fmt: skip
    compared = 0
    for exact, top in pairs:
        assert isinstance(exact, Reading)
        assert isinstance(top, Reading)
        assert exact.letters.missing == ()
        for letter, one, other in zip(LETTERS, exact.letters.logprobs, top.letters.logprobs, strict=False):
            if letter not in top.letters.missing:
                # The same token's number twice; variants outside the top 20 add what is below its last place.
                assert one == pytest.approx(other, abs=BAND)
                compared += 1
    assert compared >= 2 * len(prompts)


def test_26_options_are_read_exactly(large: str) -> None:
    results = read(text_prompts(1, k=26), spec(large))
    for result in results:
        assert isinstance(result, Reading)
        assert len(result.letters.logprobs) == 26
        assert result.letters.missing == ()


def test_what_the_server_refuses_is_the_prompt_s_own(large: str) -> None:
    long = Prompt("long", 1, (0, 1), "word " * 9000)
    huge = Prompt("huge", 1, (0, 1), "word " * 90_000)
    control = Prompt("control", 1, (0, 1), "Is it?<|im_end|>")
    results = read([long, *text_prompts(1), huge, control], spec(large))
    kinds = [result.kind if isinstance(result, Failure) else "ok" for result in results]
    assert kinds == ["context_too_long", *["ok"] * 4, "context_too_long", "control_token_in_text"]


def test_what_the_server_lacks_is_refused_in_words(large: str) -> None:
    with pytest.raises(UsageError, match=r"does not take the 33 frames .*At most 32 image.*\{\"image\": 33\}"):
        ServerBackend(spec(large, images=33))
    with pytest.raises(UsageError, match="serves embedded:large; the config's model is embedded:small"):
        ServerBackend(spec(large, model="embedded:small"))


def test_a_server_that_ends_the_turn_is_seen(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchcheck.backends import probe

    plain = probe.opening_of

    def ignored(model: str, asked: dict[str, Any]) -> bytes:
        opening = plain(model, asked).replace(b'"continue_final_message": true', b'"continue_final_message": false')
        return opening.replace(b'"add_generation_prompt": false', b'"add_generation_prompt": true')

    monkeypatch.setattr(probe, "opening_of", ignored)
    with pytest.raises(ModelRefusedError, match=r"ignores continue_final_message \(the prefill 'Answer:' costs 7 tok"):
        ServerBackend(spec(large))
