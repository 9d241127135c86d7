import math

import pytest

from benchcheck.backends.letters import variants_of_letters
from benchcheck.backends.readout import Readout, check_preset
from benchcheck.errors import UsageError
from benchcheck.screen.readings import MISSING_LOGPROB

pytestmark = pytest.mark.model
torch = pytest.importorskip("torch")

TOKENS = [*"ABCDE", *(f" {letter}" for letter in "ABCDE"), "(A)", "the", *("x" * n for n in range(2, 30))]
VARIANTS = variants_of_letters(TOKENS)


def logits(rows=70, spare=3):
    """More rows than are read at once, and more columns than the tokenizer has tokens, as real checkpoints have."""
    return torch.randn(rows, len(TOKENS) + spare, generator=torch.Generator().manual_seed(0)) * 5


def test_exact_sums_the_full_distribution_over_all_variants():
    given = logits()
    counts = [2 + i % 4 for i in range(len(given))]
    probabilities = given.double().softmax(-1)
    for row, k, letters in zip(
        probabilities, counts, Readout("exact", TOKENS, VARIANTS).read(given, counts), strict=True
    ):
        expected = [sum(float(row[i]) for i in VARIANTS[letter]) for letter in "ABCDE"[:k]]
        assert letters.logprobs == pytest.approx([math.log(p) for p in expected], abs=1e-9)
        assert letters.label_mass == pytest.approx(sum(expected))
        assert letters.missing == ()


def test_top_20_agrees_on_letters_it_sees_and_lists_the_others():
    given = logits(rows=1, spare=0)
    given[0, [0, 5]] = torch.tensor([10.0, 9.0])  # A twice
    given[0, [1, 6]] = -20.0  # B under the top 20 in both forms
    (exact,) = Readout("exact", TOKENS, VARIANTS).read(given, [2])
    (top,) = Readout("benchcheck-2026", TOKENS, VARIANTS).read(given, [2])
    assert top.missing == ("B",)
    assert top.logprobs == (pytest.approx(exact.logprobs[0], abs=1e-6), MISSING_LOGPROB)
    assert top.label_mass == pytest.approx(math.exp(top.logprobs[0]))


def test_columns_behind_the_vocabulary_are_no_letters():
    given = logits(rows=1)
    given[0, -1] = 50.0
    (top,) = Readout("benchcheck-2026", TOKENS, VARIANTS).read(given, [5])
    assert top.label_mass < 1e-6


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match="Allowed: exact, benchcheck-2026"):
        check_preset("exakt")


@pytest.mark.parametrize("preset", ["exact", "benchcheck-2026"])
def test_logits_that_are_no_numbers_give_no_letters(preset):
    """The top 20 of nothing leaves every letter out, and letters that are all missing would read as the answer A."""
    given = logits(rows=2)
    given[1, 7] = math.nan
    sound, broken = Readout(preset, TOKENS, VARIANTS).read(given, [4, 4])
    assert all(map(math.isfinite, (*sound.logprobs, sound.label_mass)))
    assert broken.missing == ()
    assert all(map(math.isnan, (*broken.logprobs, broken.label_mass)))
