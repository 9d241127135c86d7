"""What the texts of an item say about it: notes that need no file, no video and no model (protocol 1). Pure.

Called once for every item, a million times in a large pool. So no regular expression runs before something was found
that it cannot match without: a word of the question, by `in` (0.05 µs), or an option's first two characters.
"""

import re
from collections import Counter
from collections.abc import Sequence

from benchcheck.pool.fields import shown, words
from benchcheck.pool.issues import Issue

__all__ = ["option_issues", "text_issues"]

_ASKED = ("question", "say", "said", "spoke", "speak", "narrat", "comment", "voice", "dialog", "lyric", "subtitle", "<")
"""A folded question without these and without a digit has nothing of `_QUESTION`."""
_DIGIT = re.compile(r"\d")
_QUESTION = {
    "needs_previous_item": re.compile(
        r"\b(?:previous|preceding|last|earlier|above) question\b|\bquestion (?:above|before)\b"
        r"|\b(?:mentioned|named|described|referred to|asked about) in the \w+ question\b"
        r"|\b(?:first|second|third|fourth|fifth) question (?:\w+ )?refer"
    ),
    "time_in_question": re.compile(
        r"<time |\b\d{1,2}:[0-5]\d(?::[0-5]\d)?(?:\.\d+)?\b"
        r"|(?:\b(?:at|from|to|until|till|between|around|after|before|and|first|last|the)|-) ?"
        r"\d+(?:\.\d+)?(?:st|nd|rd|th)?[ -]?(?:s|secs?|seconds?|mins?|minutes?)\b"
    ),
    "speech_in_question": re.compile(
        r"\b(?:says?|said|saying|spoke|speaks?|speaking|narrators?|narration|commentators?|voice-?overs?"
        r"|dialog(?:ue)?s?|lyrics|subtitles?)\b"
    ),
}
_MEDIA = re.compile(r"<(?:image|img|picture|figure|frame|video|clip|audio|object)s?[ _]?\d*>")

_OPTIONS = {
    "option_about_options": re.compile(
        r"(?:(?:both|neither|either)"
        r"|(?:all|none|any|both|neither|either|two|some|more than one) (?:of )?(?:the )?"
        r"(?:above|(?:other |given |these |above )?(?:options|answers|choices|statements)(?: above)?|these)"
        r"(?: (?:is|are|were|apply|applies)\b[^\n]{0,30})?"
        r"|(?:both |either |neither )?(?:options? )?\(?([a-z])\)?(?: (?:and|or|nor) | ?& ?)(?:option )?\(?([a-z])\)?"
        r"|以上(?:都|皆|全|均)[^\n]{0,10})\W*"
    ),
    "abstention_option": re.compile(
        r"(?:(?:i am |i'm )?(?:not sure|unsure|uncertain|not certain|unknown|unclear)"
        r"|not enough information\b[^\n]{0,60}"
        r"|(?:i |it )?(?:do not|don['\u2019]?t|cannot|can not|can['\u2019]?t|could not) "
        r"(?:know|tell|say|determine|be (?:determined|known|told|inferred|seen))\b[^\n]{0,60}"
        r"|(?:it is |it's )?(?:impossible|not possible) to (?:know|tell|say|determine)\b[^\n]{0,60}"
        r"|(?:不确定|不知道|无法(?:确定|判断))[^\n]{0,10})\W*"
    ),
}
_STARTS = frozenset(
    {
        text[:2]
        for text in (
            *(
                "both",
                "neither",
                "either",
                "all",
                "none",
                "any",
                "two",
                "some",
                "more",
                "option",
                "not",
                "unsure",
                "i ",
                "i'",
            ),
            *("it", "do", "cannot", "could", "impossible", "以上", "不确", "不知", "无法"),
            *(f"{bracket}{letter}{behind}" for bracket in ("", "(") for letter in "abcdefgh" for behind in (" ", "&")),
        )
    }
)
"""First characters of every folded option that `_OPTIONS` finds."""
_LETTER = re.compile(r"[(\[]?([a-z])[)\].:]?")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\ufffd]")


def text_issues(asked: str, folded: Sequence[str], gold: int | None) -> list[Issue]:
    """Return what an item's texts say about it: equal options, options that are no answers, a question of another kind.

    `asked` and `folded` are its question and options as they are kept, folded; `gold` is an index into them, or None.
    """
    found: list[Issue] = []
    if len(set(folded)) < len(folded):
        found += _twins(folded, gold)
    if gold is not None and folded[gold] in asked:
        found += _told(asked, folded, folded[gold])
    if _DIGIT.search(asked) or any(map(asked.__contains__, _ASKED)):
        found += [Issue(code, shown(match[0])) for code, look in _QUESTION.items() if (match := look.search(asked))]
    for option in folded:
        found += option_issues(option, len(folded))
    shown_texts = "\n".join((asked, *folded))
    if "<" in shown_texts and (match := _MEDIA.search(shown_texts)):
        found.append(Issue("media_placeholder", match[0]))
    if not shown_texts.isascii() and (match := _INVISIBLE.search(shown_texts)):
        found.append(Issue("bad_text", f"U+{ord(match[0]):04X}"))
    return found


def option_issues(option: str, count: int) -> list[Issue]:
    """Return whether a folded option speaks of the others, is no answer, or is a letter of one of `count` options."""
    if option[:2] not in _STARTS and len(option) > 3:
        return []
    letters = "abcdefghijklmnopqrstuvwxyz"[:count]
    looks = [*_OPTIONS.items(), ("letter_like_option", _LETTER)]
    matches = [(code, match) for code, look in looks if (match := look.fullmatch(option))]
    return [
        Issue(code, shown(option)) for code, match in matches if all((one or "a") in letters for one in match.groups())
    ]


def _twins(folded: Sequence[str], gold: int | None) -> list[Issue]:
    """Options with one text."""
    twice = [text for text, count in Counter(folded).items() if count > 1]
    found = [Issue("duplicate_options", shown(twice[0]))]
    if gold is not None and folded[gold] in twice:
        found.append(Issue("duplicate_gold", shown(folded[gold])))
    return found


def _told(question: str, folded: Sequence[str], gold: str) -> list[Issue]:
    """A question that holds the words of the gold and of no other option."""
    asked = words(question)
    named = [text for text in set(folded) if (phrase := words(text)).strip() and phrase in asked]
    return [Issue("answer_in_question", shown(gold))] if named == [gold] else []
