import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.backends.queries import Queries, Query
from benchcheck.backends.replies import MAX_ASKED
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import MISSING_LOGPROB, TOP, Failure, letter_of_token, log_sum_exp, merge_letters

FORMS = ("{}", " {}", "({}", "{}.", "{})", "[{}", "{}:", "\n{}")


def queries(preset="exact", forms=FORMS):
    tokens = [form.format(letter) for letter in LETTERS for form in forms] + ["the", " of", "AB"]
    variants = {
        letter: tuple(i for i, token in enumerate(tokens) if letter_of_token(token) == letter) for letter in LETTERS
    }
    return tokens, Queries(preset, tokens, variants)


def distribution(size, seed=0):
    raw = [math.sin(seed + 3.7 * i) for i in range(size)]
    total = log_sum_exp(raw)
    return [value - total for value in raw]


@pytest.mark.parametrize("options", [2, 4, 5, 16, 17, 26])
def test_every_token_of_every_letter_shown_is_asked_once(options):
    tokens, asked = queries()
    query = asked.of(options)
    ids = [identifier for chunk in query.chunks for identifier in chunk]
    assert sorted(ids) == [i for i, token in enumerate(tokens) if letter_of_token(token) in set(LETTERS[:options])]
    assert all(0 < len(chunk) <= MAX_ASKED for chunk in query.chunks)
    assert len(query.chunks) == (1 if options <= 16 else 2)
    assert asked.of(options) is query


@given(st.integers(2, 26), st.integers(0, 1000))
def test_the_letters_are_those_of_the_whole_distribution(options, seed):
    tokens, asked = queries()
    whole = distribution(len(tokens), seed)
    query = asked.of(options)
    answers = [{i: whole[i] for i in (*chunk, len(tokens) - 1)} for chunk in query.chunks]  # and the sampled token
    found = asked.read(query, answers)
    want = merge_letters(zip(tokens, whole, strict=True), options)
    assert found.missing == want.missing == ()
    assert found.logprobs == pytest.approx(want.logprobs)
    assert found.label_mass == pytest.approx(want.label_mass)


def test_a_token_that_is_not_returned_is_no_guess():
    _, asked = queries()
    query = asked.of(2)
    answer = dict.fromkeys(query.chunks[0][1:], -3.0)
    assert asked.read(query, [answer]) == Failure(
        "letters_not_returned", "the engine left out 1 of the tokens that were asked"
    )


def test_a_token_that_is_not_a_number_is_a_failure():
    _, asked = queries()
    query = asked.of(2)
    answer = dict.fromkeys(query.chunks[0], -3.0) | {query.chunks[0][2]: math.nan}
    assert asked.read(query, [answer]).kind == "not_finite"


def test_mass_is_never_above_one():
    _, asked = queries()
    query = asked.of(2)
    assert asked.read(query, [dict.fromkeys(query.chunks[0], -0.1)]).label_mass == 1.0


def test_the_original_preset_sees_the_top_20():
    tokens, asked = queries("benchcheck-2026", forms=("{}", " {}"))
    query = asked.of(4)
    assert query == Query(4, ((),))
    whole = distribution(len(tokens))
    best = sorted(range(len(tokens)), key=lambda i: -whole[i])
    # vLLM adds the sampled token; a further one must not count, nor one of the rows that pad the vocabulary.
    given_ids = {i: whole[i] for i in best[: TOP + 1]}
    found = asked.read(query, [given_ids])
    want = merge_letters([(tokens[i], whole[i]) for i in best[:TOP]], 4)
    assert found == want
    assert MISSING_LOGPROB in found.logprobs
    assert asked.read(query, [{len(tokens) + 7: -0.1}]).missing == ("A", "B", "C", "D")
