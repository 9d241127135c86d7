"""JSON, read strictly: one value, or a document whose records are handed out while it is read.

`json`'s own decoder, kept between calls, takes 3.3 µs for a record of 330 bytes (`json.loads` with the same checks
builds one each time: 4.5 µs). orjson with a guard against keys that are there twice takes 2.7 µs, reads integers over
64 bits as floats, and so is not used. ijson checks neither keys nor NaN.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from benchcheck.pool.reading.nesting import root_records, unnest

__all__ = ["MAX_DEPTH", "MAX_DOCUMENT", "MAX_VALUE", "Fault", "Window", "is_lines", "parse", "stream"]

MAX_VALUE = 64 << 20
"""Characters of one record of a document. The longest seen in a real file is under 1 MB."""
MAX_DOCUMENT = 1 << 30
"""Characters of a document, or of a part of one, that its `unnest` does not take apart: held whole, 4 to 5 times."""
MAX_DEPTH = 100
"""Levels of a value. Real annotations have under 10; at 500 Python cannot hand a value to another process."""
_MAX_FIRST_LINE = 16 << 20
"""Characters of a first line that may be one of JSON lines."""
_BLANKS = " \t\r\n"
_FILLED = re.compile(r"[^ \t\r\n]")
_MARGIN = 16
"""Characters before a window's end where a fault may be no more than a token that goes on: `-Infinity` is 9 long."""


class Fault(ValueError):  # noqa: N818 - what is wrong with a text, to be put in words by who knows its name
    """Text that is no JSON, or none that can be trusted: what is wrong, and its line and column from 1 if known."""

    def __init__(self, what: str, line: int = 0, column: int = 0) -> None:
        super().__init__(what)
        self.line = line
        self.column = column


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key that is there twice would lose a value in silence."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(_twice(twice))
    return found


def _twice(key: str) -> str:
    return f"the key {key[:60]!r} is there twice in one object"


def _float(text: str) -> float:
    """A number with a fraction or exponent. 1e400 would become an infinity in silence."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:40]} is larger than any that can be stored")
    return number


_DEEP = "nested too deep"
_CONSTANTS = {"NaN": None, "Infinity": math.inf, "-Infinity": -math.inf}
"""NaN, which pandas writes for a missing value, is null."""
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_CONSTANTS.__getitem__)


def parse(text: str) -> Any:
    """Parse one JSON value.

    Raises:
        Fault: no JSON, a key twice in one object, nested too deep, a number that cannot be stored.
    """
    try:
        if text[:1] == "{":  # a record: `decode` looks for blanks at both ends first, which takes 0.6 µs
            found, end = _DECODER.raw_decode(text)
            if end == len(text):
                return _bounded(found, text, 0, end)
        return _bounded(_DECODER.decode(text), text, 0, len(text))
    except json.JSONDecodeError as reason:
        raise Fault(_diagnosis(reason), reason.lineno, reason.colno) from None
    except (ValueError, RecursionError) as reason:
        raise Fault(_reason(reason)) from None


def _bounded(value: Any, text: str, start: int, end: int) -> Any:
    """Return a value that was read from that stretch of a text, if it is not nested too deep."""
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        level = [value]
        for _ in range(MAX_DEPTH + 1):
            level = [
                child
                for node in level
                if isinstance(node, list | dict)
                for child in (node.values() if isinstance(node, dict) else node)
            ]
        if level:
            raise ValueError(_DEEP)
    return value


def _reason(reason: Exception) -> str:
    """What is wrong with a text that is JSON by its grammar."""
    if isinstance(reason, RecursionError):
        return _DEEP
    if "integer string conversion" in str(reason):
        return "an integer of over 4,300 digits"
    return str(reason)


_TRAILING = "not valid JSON: a trailing comma before '{}'"
_PYTHON = re.compile(r"None|True|False")
_COMMENT = re.compile(r"//|/\*|#")


def _diagnosis(reason: json.JSONDecodeError) -> str:
    """What a parser complained about, and what it most likely is."""
    text, at = reason.doc, reason.pos
    before, after = text[max(at - 80, 0) : at].rstrip(_BLANKS), text[at : at + 80].lstrip(_BLANKS)
    what = reason.msg
    if what == "Extra data":
        what += f": {after[:40]!r} follows the end"
    elif not after or what.startswith("Unterminated string"):
        what += ". It seems to be cut off"
    elif "trailing comma" in what or (after[0] in "]}" and before.endswith(",")):
        return _TRAILING.format(after.lstrip(_BLANKS + ",")[:1])
    elif after[0] == "'":
        what = "single quotes, as Python prints a dict; JSON has double quotes"
    elif word := _PYTHON.match(after):
        what = f"{word.group()} is Python's word; JSON has null, true and false"
    elif _COMMENT.match(after):
        what = "a comment, which JSON does not have"
    return f"not valid JSON: {what}"


class Window:
    """A sliding window over a document's text, so that a large one is never held whole.

    A value is decoded where the window stands. When it reaches the window's end the window grows, at least by as much
    as it holds, and the value is decoded again: at most twice the work, for the last record of each block alone.
    """

    def __init__(self, blocks: Iterator[str]) -> None:
        self._blocks = blocks
        self.text = ""
        self.at = 0
        self._start = 0  # of the value before
        self._line = 1
        self._column = 1

    def more(self) -> bool:
        """Drop what was read, and double what is held; False at the end of the document, where all stays."""
        held = len(self.text) - self.at
        parts, size = [self.text[self.at :]], 0
        while size < max(held, 1) and (block := next(self._blocks, "")):
            parts.append(block)
            size += len(block)
        if size:
            self._line, self._column = self._position(self.at)
            self.text, self.at = "".join(parts), 0
        return size > 0

    def _position(self, at: int) -> tuple[int, int]:
        """Line and column of a place in the window, from 1."""
        lines = self.text.count("\n", 0, at)
        if not lines:
            return self._line, self._column + at
        return self._line + lines, at - self.text.rfind("\n", 0, at)

    def fault(self, what: str, at: int | None = None) -> Fault:
        """What is wrong at a place of the window, where it stands if none is given."""
        return Fault(what, *self._position(self.at if at is None else at))

    def peek(self) -> str:
        """Return the next character that is not blank, and stand there; nothing at the end."""
        while True:
            filled = _FILLED.search(self.text, self.at)
            self.at = filled.start() if filled else len(self.text)
            if filled or not self.more():
                return self.text[self.at : self.at + 1]

    def take(self, allowed: str, wanted: str) -> str:
        """Take the next character, one of those allowed."""
        found = self.peek()
        if not found or found not in allowed:
            raise self._refusal(f"Expecting {wanted}")
        self.at += 1
        return found

    def _refusal(self, message: str) -> Fault:
        """A complaint about where the window stands, with enough text around to say what it is."""
        before, place = self.text[max(self.at - 80, 0) : self.at], self._position(self.at)
        while len(self.text) - self.at < 80 and self.more():
            pass
        doc = before + self.text[self.at : self.at + 80]
        return Fault(_diagnosis(json.JSONDecodeError(message, doc, len(before))), *place)

    def value(self, limit: int) -> Any:
        """Decode the value where the window stands.

        Raises:
            Fault: as `parse`, or it has more than `limit` characters.
        """
        self.peek()
        while True:
            try:
                found, end = _DECODER.raw_decode(self.text, self.at)
                _bounded(found, self.text, self.at, end)
            except json.JSONDecodeError as reason:
                if self._may_go_on(reason) and self._grow(limit):
                    continue
                raise self.fault(_diagnosis(reason), reason.pos) from None
            except (ValueError, RecursionError) as reason:
                raise self.fault(_reason(reason)) from None
            number = isinstance(found, int | float) and end > len(self.text) - _MARGIN
            if number and self._grow(limit):
                continue  # `1` may go on as `1.5e7`
            if end - self.at > limit:
                raise self._too_long(limit)
            self._start, self.at = self.at, end
            return found

    def _grow(self, limit: int) -> bool:
        """Hold more of a value that goes on; False at the end of the document."""
        if len(self.text) - self.at > limit:
            raise self._too_long(limit)
        return self.more()

    def _too_long(self, limit: int) -> Fault:
        return self.fault(f"longer than {limit >> 20} MB in one piece")

    def _may_go_on(self, reason: json.JSONDecodeError) -> bool:
        """Whether a fault may be nothing but the window's end."""
        return reason.msg.startswith("Unterminated string") or reason.pos >= len(self.text) - _MARGIN

    def elements(self) -> Iterator[None]:
        """Stand at each element of the array here, one after the other; who is asked must take the value."""
        self.take("[", "an array")
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            yield
            if self.take(",]", "',' delimiter") == "]":
                return
            if self.peek() == "]":
                raise self.fault(_TRAILING.format("]"))

    def fields(self) -> Iterator[str]:
        """Stand at each value of the object here, and say its key; who is asked must take the value."""
        self.take("{", "an object")
        seen: set[str] = set()
        closed = self.peek() == "}"
        self.at += closed
        while not closed:
            if seen and self.peek() == "}":
                raise self.fault(_TRAILING.format("}"))
            if self.peek() != '"':
                raise self._refusal("Expecting property name enclosed in double quotes")
            key = self.value(MAX_VALUE)
            if key in seen:
                raise self.fault(_twice(key), self._start)
            seen.add(key)
            self.take(":", "':' delimiter")
            yield key
            closed = self.take(",}", "',' delimiter") == "}"

    def end(self) -> None:
        """Refuse what follows the document."""
        if self.peek():
            raise self._refusal("Extra data")


def is_lines(window: Window) -> bool:
    """Whether a document is JSON lines in truth: an object on its first line, and more behind it.

    The window grows by what is looked at, and stands where it stood, blanks aside.
    """
    if window.peek() != "{":
        return False
    size = 0
    while (end := window.text.find("\n", window.at + size)) < 0:
        size = len(window.text) - window.at
        if size > _MAX_FIRST_LINE or not window.more():
            return False
    size = end - window.at
    while not _FILLED.search(window.text, window.at + size):
        if not window.more():
            return False
    try:
        parse(window.text[window.at : window.at + size])
    except Fault:
        return False
    return True


def stream(window: Window, steps: Sequence[str]) -> Iterator[Any]:
    """Yield the records of a document: as `unnest` gives them, or `root_records` where there are no steps.

    The root's list or dict is taken apart while it is read, and so is what stands below `get:` steps; a first step of
    another kind needs the document whole.

    Raises:
        Fault: it is no JSON, or what `Window.value` refuses.
        ValueError: it does not fit the steps.
    """
    yield from _below(window, tuple(steps)) if steps else _root(window)
    window.end()


def _root(window: Window) -> Iterator[Any]:
    """The records of a document without steps."""
    opening = window.peek()
    if opening == "[":
        for _ in window.elements():
            yield window.value(MAX_VALUE)
    elif opening == "{":
        yield from _root_object(window)
    else:
        yield from root_records(window.value(MAX_DOCUMENT))


def _root_object(window: Window) -> Iterator[Any]:
    """A dict of id to record, or the list below its one key."""
    listed = found = False
    for key in window.fields():
        if listed or (found and window.peek() == "["):
            root_records(None)  # neither one nor the other
        listed, found = window.peek() == "[", True
        if not listed:
            yield from root_records({key: window.value(MAX_VALUE)})
            continue
        for place, _ in enumerate(window.elements()):
            value = window.value(MAX_VALUE)
            yield from [value] if place else root_records({key: [value]})
    if not found:
        root_records({})


def _below(window: Window, steps: tuple[str, ...]) -> Iterator[Any]:
    """What the steps make of the value where the window stands."""
    kind, _, name = steps[0].partition(":") if steps else ("", "", "")
    opening = window.peek()
    if opening == "[" and kind == "flatten":
        for _ in window.elements():
            yield from unnest([[window.value(MAX_VALUE)]], steps)
    elif opening == "{" and kind == "values":
        for key in window.fields():
            yield from unnest([{key: window.value(MAX_VALUE)}], steps)
    elif opening == "{" and kind == "get" and "." not in name and len(steps) > 1:
        yield from _get(window, name, steps)
    else:
        yield from unnest([window.value(MAX_DOCUMENT)], steps)


def _get(window: Window, name: str, steps: tuple[str, ...]) -> Iterator[Any]:
    """What stands below one key; the values of the others are read and dropped."""
    others: dict[str, None] = {}
    found = False
    for key in window.fields():
        if key == name:
            found = True
            yield from _below(window, steps[1:])
        else:
            window.value(MAX_DOCUMENT)
            others[key] = None
    if not found:
        yield from unnest([others], steps[:1])
