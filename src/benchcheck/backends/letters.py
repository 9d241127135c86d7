"""Option letters as tokens: which token ids stand for which letter, and whether a letter is one token at all. Pure.

A letter is read as one token behind the prompt's real end. That is exact only if appending the letter leaves the
tokens before it as they are and adds one token, which is checked with the checkpoint's own tokenizer when it is opened.
"""

from collections.abc import Callable, Mapping, Sequence

from benchcheck.errors import ModelRefusedError
from benchcheck.screen.prompts import INTROS, LETTERS, render_text
from benchcheck.screen.readings import Failure, letter_of_token
from benchcheck.screen.steps import Sight

__all__ = ["CORE_LETTERS", "SPECIMEN", "check_core", "unreadable_failure", "unreadable_letters", "variants_of_letters"]

CORE_LETTERS = LETTERS[:5]
"""A checkpoint must be able to say these, or it is refused. Later letters fail the prompts that need them, so that one
odd token behind Z does not stop a benchmark of four options."""

SPECIMEN = render_text(INTROS[Sight.BLIND], "What is shown?", ["a cat", "a dog"])
"""A plain prompt, whose end is the end of every prompt."""

_FORMS = (" {}", "{}", " ({}", "({}")


def variants_of_letters(tokens: Sequence[str | None]) -> dict[str, tuple[int, ...]]:
    """Return for every letter the ids of all tokens that stand for it (protocol 5).

    Args:
        tokens: the decoded text of every id of the vocabulary.
    """
    found: dict[str, list[int]] = {letter: [] for letter in LETTERS}
    for identifier, token in enumerate(tokens):
        letter = letter_of_token(token)
        if letter is not None:
            found[letter].append(identifier)
    return {letter: tuple(identifiers) for letter, identifiers in found.items()}


def unreadable_letters(
    tail: str, tokenize: Callable[[str], Sequence[int]], variants: Mapping[str, Sequence[int]]
) -> dict[str, str]:
    """Return the letters that no single token says behind `tail`, each with what it becomes instead.

    Args:
        tail: a rendered prompt, or its end from the last special token on.
        tokenize: text to ids, adding nothing.
        variants: ids by letter, as `variants_of_letters` gives them.
    """
    before = list(tokenize(tail))
    reasons: dict[str, str] = {}
    for letter in LETTERS:
        continued = {form.format(letter): list(tokenize(tail + form.format(letter))) for form in _FORMS}
        allowed = set(variants[letter])
        if not any(ids[:-1] == before and ids[-1] in allowed for ids in continued.values()):
            plain = continued[f" {letter}"]
            reasons[letter] = f"' {letter}' after the prompt is {_difference(before, plain)}"
    return reasons


def unreadable_failure(unreadable: Mapping[str, str], options: int) -> Failure | None:
    """Return why a prompt of so many options cannot be read, by what `unreadable_letters` found; None where it can."""
    for letter in LETTERS[:options]:
        if letter in unreadable:
            return Failure("unreadable_letters", unreadable[letter])
    return None


def check_core(place: object, unreadable: Mapping[str, str]) -> None:
    """Refuse a checkpoint that cannot say the first letters.

    Args:
        place: the checkpoint, for the message.
        unreadable: what `unreadable_letters` found.

    Raises:
        ModelRefusedError: with the letter and what it becomes instead.
    """
    for letter in CORE_LETTERS:
        if letter in unreadable:
            raise ModelRefusedError(
                f"{place}: letter {letter} is not one token: {unreadable[letter]}. Allowed: a tokenizer "
                f"that says each of {CORE_LETTERS} in one token. Cure: name another checkpoint"
            )


def _difference(before: Sequence[int], after: Sequence[int]) -> str:
    """Say what tokens a continuation adds, or that it changes those before it."""
    if list(after[: len(before)]) != list(before):
        return f"merged with the token before it (ids {list(after[-2:])})"
    added = list(after[len(before) :])
    return f"{len(added)} tokens (ids {added})" if len(added) != 1 else f"token {added[0]}, which is another text"
