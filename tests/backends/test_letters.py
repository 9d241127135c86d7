import string

from benchcheck.backends.letters import unreadable_letters, variants_of_letters


def bytewise(text):
    """One token per character, by its code point."""
    return [ord(character) for character in text]


EVERY = {letter: (ord(letter),) for letter in string.ascii_uppercase}


def test_all_tokens_that_stand_for_a_letter_are_its_variants():
    found = variants_of_letters(["A", " A", "(B", " (A)", "a", "AB", None, "\nC.", ""])
    assert found["A"] == (0, 1, 3)
    assert found["B"] == (2,)
    assert found["C"] == (7,)
    assert found["D"] == ()
    assert "".join(found) == string.ascii_uppercase


def test_letters_that_add_one_token_are_readable():
    assert unreadable_letters("Answer:", bytewise, EVERY) == {}


def test_a_letter_of_two_tokens_is_not():
    def tokenize(text):
        return [piece for token in bytewise(text) for piece in ((1, 2) if token == ord("C") else (token,))]

    (reason,) = unreadable_letters("answer:", tokenize, EVERY).items()
    assert reason[0] == "C"
    assert "3 tokens (ids [32, 1, 2])" in reason[1]


def test_a_letter_that_merges_with_the_prompt_is_not():
    def tokenize(text):
        return [*bytewise(text[:-3]), 999] if text.endswith("D") else bytewise(text)

    assert "merged with the token before it (ids [101, 999])" in unreadable_letters("answer", tokenize, EVERY)["D"]


def test_a_token_that_reads_as_another_text_does_not_count():
    def tokenize(text):
        return [*bytewise(text[:-2]), ord("E")] if text.endswith(" E") else bytewise(text)

    variants = EVERY | {"E": (5000,)}
    assert unreadable_letters("answer:", tokenize, variants) == {
        "E": "' E' after the prompt is token 69, which is another text"
    }
