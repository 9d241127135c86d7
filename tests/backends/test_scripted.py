import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends import ModelSpec, open_backend
from benchcheck.backends.scripted import Script
from benchcheck.errors import UsageError
from benchcheck.screen.prompts import Prompt, option_orders
from benchcheck.screen.readings import Failure, argmax


def prompts(items=20, step=1, k=4):
    return [
        Prompt(f"b_{i}", step, order, "which one is it") for i in range(items) for order in option_orders(f"b_{i}", k)
    ]


def results(model, asked, seed=0):
    return [outcome.result for outcome in open_backend("scripted", ModelSpec(model, seed=seed)).read(asked)]


def preferred(asked, readings):
    return [prompt.order[argmax(reading.letters.logprobs)] for prompt, reading in zip(asked, readings, strict=True)]


@given(st.randoms(use_true_random=False))
def test_a_reading_depends_on_the_prompt_alone(random):
    asked = prompts()
    alone = dict(zip(asked, results("scripted", asked), strict=True))
    mixed = random.sample(asked, len(asked))
    assert results("scripted", mixed) == [alone[prompt] for prompt in mixed]


def test_seed_and_step_change_the_readings():
    asked = prompts()
    first = results("scripted", asked)
    assert first != results("scripted", asked, seed=1)
    assert first != results("scripted", prompts(step=4))


def test_letters_are_a_distribution_of_the_asked_mass():
    for reading in results("scripted?mass=0.25", prompts()):
        assert math.fsum(map(math.exp, reading.letters.logprobs)) == pytest.approx(0.25)
        assert (reading.letters.label_mass, reading.letters.missing) == (0.25, ())
        assert reading.prompt_tokens == 4


def test_a_skilled_script_prefers_one_option_in_every_order():
    asked = prompts()
    chosen = preferred(asked, results("scripted?skill=1", asked))
    per_item = [set(chosen[i : i + 4]) for i in range(0, len(chosen), 4)]
    assert all(len(options) == 1 for options in per_item)
    assert len({min(options) for options in per_item}) == 4


def test_an_unskilled_script_guesses_order_by_order():
    asked = prompts(items=300)
    chosen = preferred(asked, results("scripted?skill=0", asked))
    same = sum(len(set(chosen[i : i + 4])) == 1 for i in range(0, len(chosen), 4))
    assert same < 15  # 300 / 64 expected


def test_failures_come_at_their_rate_and_stay():
    asked = prompts(items=500)
    backend = open_backend("scripted", ModelSpec("scripted?fail=0.1&kind=context_too_long"))
    first, again = (list(backend.read(asked)) for _ in range(2))
    failed = [outcome for outcome in first if isinstance(outcome.result, Failure)]
    assert 150 < len(failed) < 250
    assert {outcome.result.kind for outcome in failed} == {"context_too_long"}
    assert [o.index for o in failed] == [o.index for o in again if isinstance(o.result, Failure)]
    backend.close()


def test_transient_failures_are_answered_after_their_attempts():
    backend = open_backend("scripted", ModelSpec("scripted?fail=1&attempts=2"))
    kinds = [[type(o.result).__name__ for o in backend.read(prompts(items=1))] for _ in range(3)]
    assert kinds == [["Failure"] * 4, ["Failure"] * 4, ["Reading"] * 4]


def test_slow_takes_its_time():
    start = time.perf_counter()
    (reading,) = results("scripted?slow=0.02", prompts(items=1)[:1])
    assert time.perf_counter() - start >= 0.02
    assert reading.latency_s == 0.02


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("other", "is no script. Allowed: scripted"),
        ("scripted?skil=1", "no option 'skil'. Allowed: skill, fail, kind, attempts, mass, slow"),
        ("scripted?skill=much", "skill is not a number"),
        ("scripted?attempts=1.5", "attempts is not a number"),
        ("scripted?fail=1.5", "fail is a share. Allowed: 0 to 1"),
        ("scripted?skill=nan", "skill is a share"),
        ("scripted?mass=0", "mass above 0"),
        ("scripted?slow=-1", "slow from 0 on"),
        ("scripted?kind=", "kind not empty"),
    ],
)
def test_what_is_no_script_is_refused(model, says):
    with pytest.raises(UsageError) as raised:
        Script.parse(model)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_engine_says_what_answered():
    engine = open_backend("scripted", ModelSpec("scripted", revision="v1")).engine
    assert (engine.name, engine.device, engine.revision) == ("scripted", "none", "v1")
