"""The exception tree: exit codes, and that its drawing in the docstring is true."""

import re

import pytest

from benchcheck import errors

KINDS = [name for name in errors.__all__ if name.endswith("Error")]


def test_wrong_use_ends_with_2_and_a_failed_run_with_1() -> None:
    for name in KINDS:
        kind = getattr(errors, name)
        assert issubclass(kind, errors.BenchcheckError)
        wrong_use = issubclass(kind, errors.UsageError) and kind is not errors.DamagedFileError
        assert kind.exit_code == (2 if wrong_use else 1), name


def test_the_drawing_names_every_error_once_below_its_parent() -> None:
    drawn: list[tuple[int, str]] = [
        (match.start(1), match.group(1))
        for line in (errors.__doc__ or "").splitlines()
        if (match := re.match(r"[ │├└─]*(\w+Error)\b", line))
    ]
    assert sorted(name for _, name in drawn) == KINDS
    above: list[tuple[int, str]] = []
    for depth, name in drawn:
        above = [pair for pair in above if pair[0] < depth]
        if above:
            assert getattr(errors, name).__bases__ == (getattr(errors, above[-1][1]),)
        above.append((depth, name))


def test_a_missing_extra_says_how_to_install_it() -> None:
    with pytest.raises(errors.UsageError, match=r"^The x needs packages .* pip install 'benchcheck\[y\]'$"):
        raise errors.MissingExtraError("The x", "y")


def test_an_exception_in_a_line() -> None:
    assert errors.first_line(ValueError(" one\ntwo")) == "one"
    assert errors.first_line(KeyError()) == "KeyError"
