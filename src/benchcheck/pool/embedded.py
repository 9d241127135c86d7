"""Options that stand in the text of the question, cut out of it. Pure.

Real files write them one to a line or all on one line, as `(A) x`, `A. x`, `A) x`, `A: x`, `Option 1: x`,
`Sentence A: x`, with full-width letters and signs in Chinese ones, and change the style inside a file (TempCompass).
They are told from initials (`A. L. Pasteur and R. Koch`) by their order: the letters run from A, the numbers from 1.
"""

import re
from dataclasses import dataclass

from benchcheck.pool.fields import shown
from benchcheck.screen.prompts import LETTERS, MAX_OPTIONS

__all__ = ["NARROW", "NOUNS", "Embedded", "cut"]

NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", 0x3010: "[", 0x3011: "]"}
"""Full-width signs and letters to their plain forms, one to one: places in a text stay the same."""

NOUNS = "option|sentence|caption|choice|answer|candidate|description|statement"
"""What options are called before their letter or number, as alternatives of a regular expression."""
_SIGNS = r"[)\].:、]"
_LINE = re.compile(rf"\n[^\S\n]*(?:((?i:{NOUNS}))[^\S\n]+)?([(\[]?)([A-Za-z]|\d{{1,2}}){_SIGNS}[^\S\n]*")
_INLINE = re.compile(
    rf"(?:^|(?<=[\s?!.,;:\u3002\uff1f\uff01\uff0c\uff1b])|(?=[(\[]))(?:((?i:{NOUNS}))\s+)?([(\[]?)([A-Za-z]|\d{{1,2}})({_SIGNS})\s*"
)
_HEADING = re.compile(r"(?:^|\n)[^\S\n]*(?:answer )?(?:options|choices|candidates)[^\S\n]*:?[^\S\n]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Embedded:
    """What stands before the first option, the options' texts, and what they were called: `A` or `1`."""

    question: str
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands before an option: its place in the text, its label and its style."""

    start: int
    end: int
    label: str
    style: tuple[str, ...]

    @property
    def number(self) -> int:
        """Place in the run: 0 for A and for 1."""
        return int(self.label) - 1 if self.label.isdecimal() else LETTERS.index(self.label)


def cut(text: str) -> Embedded:
    """Cut a text into its question and the bare options with their labels; no options when there is no sign of any.

    Raises:
        ValueError: there are some, and their letters have a hole or stand twice.
    """
    plain = text.translate(NARROW) if not text.isascii() else text
    lines = [mark for match in _LINE.finditer("\n" + plain) if (mark := _mark(match, 1, match[2]))]
    on_lines = _lined(lines)
    if len(on_lines) > 1 and not _glued(plain, on_lines):
        return _between(text, on_lines)
    inline = [mark for match in _INLINE.finditer(plain) if (mark := _mark(match, 0, match[2], match[4]))]
    if marks := _inline(text, inline):
        return _between(text, marks)
    if any(mark.number == 0 for mark in lines):
        raise ValueError(f"the options of {shown(text)} have the letters {', '.join(mark.label for mark in lines)}")
    return Embedded(text)


def _mark(match: re.Match[str], shift: int, *style: str) -> _Mark | None:
    """A match as a mark, `shift` characters before. A number needs a word before it: steps are numbers too."""
    word, label = (match[1] or "").lower(), match[3]
    if label.isdecimal() and not (word and 0 < int(label) <= MAX_OPTIONS):
        return None
    case = "1" if label.isdecimal() else "A" if label.isupper() or word else "a"
    return _Mark(max(match.start() - shift, 0), match.end() - shift, label.upper(), (word, case, *style))


def _lined(marks: list[_Mark]) -> list[_Mark]:
    """The marks at the starts of lines from the last A on, when they run without a hole; none otherwise."""
    first = max((place for place, mark in enumerate(marks) if mark.number == 0), default=len(marks))
    run = [mark for mark in marks[first:] if mark.style[:2] == marks[first].style[:2]]
    return run if [mark.number for mark in run] == list(range(len(run))) else []


def _glued(plain: str, marks: list[_Mark]) -> bool:
    """Whether an option on its own line holds the letter that comes after the last one, set off by spaces."""
    after = LETTERS[len(marks) : len(marks) + 1]
    tail = plain[marks[0].start :]
    if marks[0].style[:2] != ("", "A") or not after or after not in tail:
        return False
    return re.search(rf"(?:[^\S\n]{{2}}|[,;][^\S\n]?)[(\[]?{after}{_SIGNS}[^\S\n]", tail) is not None


def _inline(text: str, marks: list[_Mark]) -> list[_Mark]:
    """The marks of the one style that run from A; none when there is no run.

    Raises:
        ValueError: as `_run`; or two styles run, as in `Is it (A) or (B)? A) left B) right`.
    """
    found: list[_Mark] = []
    for style in dict.fromkeys(mark.style for mark in marks if mark.number == 0):
        run = _run([mark for mark in marks if mark.style == style])
        if found and run:
            raise ValueError(f"the options of {shown(text)} can be cut in two ways, in two styles of letters")
        found = found or run
    return found


def _run(marks: list[_Mark]) -> list[_Mark]:
    """The marks of one style that run from the last A on, whatever initials stand between; none when A stands alone.

    Raises:
        ValueError: a letter of the run stands twice, one is skipped, or an earlier A begins a run as well.
    """
    run: list[_Mark] = []
    first = _first(marks)
    for mark in marks[first:]:
        if mark.number == len(run):
            run.append(mark)
        elif run and mark.start == run[-1].end:
            continue  # an initial: `A. L. Pasteur`
        elif run and mark.number == len(run) + 1:
            raise ValueError(f"the letter {LETTERS[len(run)]} is missing before {mark.label}")
        elif 0 < mark.number < len(run):
            raise ValueError(f"the letter {mark.label} stands twice")
    return run if len(run) > 1 else []


def _first(marks: list[_Mark]) -> int:
    """Where the last A stands; in `A. A. L. Pasteur` the first one, of which the other is an initial.

    Raises:
        ValueError: a B stands between two A: which of them begins the options nobody can say.
    """
    places = [place for place, mark in enumerate(marks) if mark.number == 0]
    first = places[-1]
    while first and marks[first - 1].number == 0 and marks[first - 1].end == marks[first].start:
        first -= 1
    if any(mark.number == 1 for mark in marks[places[0] : first]):
        raise ValueError("the letters A and B stand twice")
    return first


def _between(text: str, marks: list[_Mark]) -> Embedded:
    """Cut a text at its marks."""
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    texts = tuple(text[mark.end : end].strip() for mark, end in zip(marks, ends, strict=True))
    question = _HEADING.sub("", text[: marks[0].start].rstrip()).rstrip()
    return Embedded(question, texts, tuple(mark.label for mark in marks))
