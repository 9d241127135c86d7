"""JSON documents through windows of any size: faults and lines at their edges."""

import json
from collections.abc import Iterator

import pytest

from benchcheck.pool.reading import jsontext
from benchcheck.pool.reading.jsontext import Fault, Window, is_lines, parse, stream


def window(text: str, size: int = 4) -> Window:
    return Window(text[start : start + size] for start in range(0, len(text), size))


def counted(text: str, seen: list[str], size: int = 10) -> Iterator[str]:
    for start in range(0, len(text), size):
        seen.append(text[start : start + size])
        yield seen[-1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"q": 1}\n{"q": 2}', True),
        ('\n\n {"q": 1}   \n\n\n   {"q": 2}', True),
        ('{"q": 1}\n', False),
        ('{"q": 1}', False),
        ('{"q": 1}' + "\n" * 50, False),
        ('{"q":\n1}', False),
        ('{\n"q": 1}', False),
        ('[{"q": 1}]\n[{"q": 1}]', False),
        ("", False),
    ],
)
def test_json_lines_are_told_from_a_document(text: str, wanted: bool) -> None:
    for size in (1, 3, 7, 1000):
        stood = window(text, size)
        assert is_lines(stood) is wanted
        assert stood.peek() == text.strip()[:1]
        if not wanted and text.startswith('{"q"'):
            assert stood.value(100) == {"q": 1}


def test_a_first_line_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"q": "x" * 100}) + '\n{"q": 1}'
    assert is_lines(window(text))
    monkeypatch.setattr(jsontext, "_MAX_FIRST_LINE", 40)
    assert not is_lines(window(text))


def test_records_come_before_the_document_ends() -> None:
    seen: list[str] = []
    text = json.dumps([{"q": number} for number in range(100)])
    found = stream(Window(counted(text, seen)), ())
    assert next(found) == {"q": 0}
    assert len(seen) < 5
    assert [record["q"] for record in found] == list(range(1, 100))


def test_a_window_forgets_what_was_read() -> None:
    whole = window(json.dumps([{"q": number} for number in range(1000)], indent=1), 50)
    longest = max(len(whole.text) for _ in stream(whole, ()))
    assert longest < 250


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ('[{"q": 1}\n {"q": 2}]', 2, 2, "Expecting ',' delimiter"),
        ('[{"q": 1},\n\n   ]', 3, 4, "a trailing comma before ']'"),
        ('{"a": {"q": 1},\n\n   }', 3, 4, "a trailing comma before '}'"),
        ("[{'q': 1}]", 1, 3, "single quotes"),
        ("{'q': {}, 'p': {}}", 1, 2, "single quotes"),
        ('{"a" {}}', 1, 6, "Expecting ':' delimiter"),
        ('[{"q": 1}] # done, and a long comment follows here', 1, 12, "Extra data: '# done"),
        ('[{"q": 1} # one\n]', 1, 11, "a comment"),
        ('[{"q": "x\ny"}]', 1, 10, "Invalid control character at"),
        ('[{"q": True}]', 1, 8, "True is Python's word"),
        ('[{"q": [1, 2}]', 1, 13, "Expecting ',' delimiter"),
        ('[{"q": "x"', 1, 11, "Expecting ',' delimiter. It seems to be cut off"),
    ],
)
def test_a_fault_has_its_line_and_column_at_any_edge(text: str, line: int, column: int, what: str) -> None:
    for size in (1, 2, 3, 5, 8, 100):
        with pytest.raises(Fault) as caught:
            list(stream(window(text, size), ()))
        assert (caught.value.line, caught.value.column) == (line, column), size
        assert str(caught.value).startswith(f"not valid JSON: {what}")


def test_numbers_are_exact_or_refused() -> None:
    assert parse("[18446744073709551617, -9223372036854775809, 0.1, -0, 1e3]") == [2**64 + 1, -(2**63) - 1, 0.1, 0, 1e3]
    for text, what in (("1e400", "is larger than any"), ("-1e400", "is larger"), ("9" * 5000, "over 4,300 digits")):
        with pytest.raises(Fault, match=what):
            parse(text)


def test_depth_has_a_limit_whatever_the_interpreter_s_is() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * (depth - 1) + "[]" + "}" * (depth - 1)

    assert parse(nested(100))
    assert next(stream(window(f"[{nested(100)}]", 50), ()))
    assert len(parse(json.dumps({"list": [[1], {"a": 2}] * 300}))["list"]) == 600
    for depth in (102, 500):
        with pytest.raises(Fault, match=r"^nested too deep$"):
            parse(nested(depth))
        with pytest.raises(Fault, match=r"^nested too deep$") as caught:
            list(stream(window(f"[1,\n{nested(depth)}]", 50), ()))
        assert (caught.value.line, caught.value.column) == (2, 1)
