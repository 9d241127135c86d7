"""What is said to an OpenAI-compatible server and what it says back: request bodies, replies, refusals. Pure.

A reply becomes the tokens that it lists, or a failure with a kind; nothing that a server sends raises here.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchcheck.screen.prompts import LETTERS, PREFILL
from benchcheck.screen.readings import Failure, LetterLogprobs, letter_of_token, merge_letters

__all__ = [
    "CLOSING",
    "MAX_ASKED",
    "Listed",
    "Refusal",
    "content_of",
    "excerpt",
    "image_part",
    "json_object",
    "letters_of",
    "named",
    "opening_of",
    "parse_refusal",
    "parse_reply",
    "split_ids",
]

CLOSING = b'},{"role":"assistant","content":' + json.dumps(PREFILL).encode() + b"}]}"
"""What follows the user's content in a request."""

MAX_ASKED = 128
"""Token ids that vLLM takes in one `logprob_token_ids`, 0.25.1 and 0.32."""

_ABOVE_ZERO = 0.01
_ABOVE_ONE = 1.05
"""How far rounding may take a log-probability over 0, and the listed tokens' total over 1."""

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:model|context|input|sequence) length|(?:prompt|input) is too long"
    r"|longer than the (?:maximum|model)",
    re.IGNORECASE,
)
_UNDECODABLE = re.compile(
    r"(?:load|decode|identify|open|process) (?:the )?image|invalid image|image file is truncated", re.IGNORECASE
)
_TOO_MANY = re.compile(
    r"at most \d+ image|too many images|not a multimodal|does not support (?:image|multimodal)", re.IGNORECASE
)
_TAG = re.compile(rb"<(?:!doctype|html|head|body|\?xml)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>\s*(.*?)\s*</title>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Listed:
    """The tokens that a reply lists for the letter's place, and what the prompt cost."""

    tokens: tuple[tuple[str | None, float], ...]
    """Text and natural-log probability, as the server gives them."""
    prompt_tokens: int
    """0 where the server does not say."""
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status other than 200, as far as a program can tell what it means."""

    status: int
    kind: str
    """`context_too_long`, `undecodable_frames`, `too_many_images`, `too_large`, `logprobs`, `key`, `absent`,
    `server_error` or `bad_request`."""
    detail: str


def opening_of(model: str, asked: Mapping[str, Any]) -> bytes:
    """Return a request as far as the user's content; `asked` says which log-probabilities are wanted."""
    fixed = {"model": model, "max_tokens": 1, "temperature": 0.0, "logprobs": True, **asked}
    continued = {"continue_final_message": True, "add_generation_prompt": False}
    return json.dumps(fixed | continued).encode()[:-1] + b', "messages": [{"role":"user","content":'


def image_part(base64_jpeg: bytes) -> bytes:
    """Return a frame as one element of a content list."""
    return b'{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,' + base64_jpeg + b'"}}'


def content_of(text: str, images: Sequence[bytes] = ()) -> tuple[bytes, ...]:
    """Return the user's content as pieces of JSON, frames before the text; without frames it is a plain string."""
    if not images:
        return (json.dumps(text).encode(),)
    pieces = [b"["]
    for image in images:
        pieces += (image, b",")
    return (*pieces, json.dumps({"type": "text", "text": text}).encode(), b"]")


def split_ids(ids: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return token ids in as few requests as the server takes, of about equal size."""
    parts = -(-len(ids) // MAX_ASKED)
    size = -(-len(ids) // max(1, parts)) or 1
    return tuple(tuple(ids[at : at + size]) for at in range(0, len(ids), size))


def excerpt(body: bytes, limit: int = 160) -> str:
    """Return the start of a body as one line that can stand in a message: an HTML page by its title."""
    text = body[:4096].decode("utf-8", "replace")
    title = _TITLE.search(text)
    if _TAG.match(body.lstrip()[:16]):
        return f"an HTML page{f' titled {title.group(1)[:80]!r}' if title else ''}"
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    return (line[: limit - 1] + "…" if len(line) > limit else line) or "an empty body"


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return a body that is a JSON object, or None."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def parse_reply(body: bytes) -> Listed | Failure:
    """Return the tokens listed by a reply of status 200, or why there are none.

    Kinds: `bad_reply` (no JSON, cut, another layout, no log-probabilities by their size), `no_logprobs`,
    `nan_logprobs`.
    """
    parsed = json_object(body)
    if parsed is None:
        return Failure("bad_reply", f"the reply is no JSON object: {excerpt(body)}")
    choices = parsed.get("choices")
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        return Failure("bad_reply", f"the reply has no choices: {excerpt(body)}")
    entries = _entries(choices[0].get("logprobs"))
    if not entries:
        return Failure("no_logprobs", "the reply lists no log-probabilities")
    tokens = _tokens(entries)
    if isinstance(tokens, Failure):
        return tokens
    usage = _dict(parsed.get("usage"))
    cached = _dict(usage.get("prompt_tokens_details")).get("cached_tokens")
    return Listed(tokens, _count(usage.get("prompt_tokens")), _count(cached))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0


def _entries(logprobs: object) -> list[Any]:
    """Return what a choice lists for its first token."""
    content = _dict(logprobs).get("content")
    top = _dict(content[0]).get("top_logprobs") if isinstance(content, list) and content else None
    return top if isinstance(top, list) else []


def _tokens(entries: Sequence[Any]) -> tuple[tuple[str | None, float], ...] | Failure:
    tokens: list[tuple[str | None, float]] = []
    total = 0.0
    for entry in entries:
        token, value = _dict(entry).get("token"), _dict(entry).get("logprob")
        if value is None or (isinstance(value, float) and math.isnan(value)):  # null is a NaN that JSON can write
            return Failure("nan_logprobs", f"the log-probability of token {token!r} is not a number")
        if not isinstance(value, int | float) or isinstance(value, bool) or value > _ABOVE_ZERO:
            return Failure("bad_reply", f"{str(value)[:40]} is no log-probability (token {str(token)[:40]!r})")
        # An integer beyond a double's range is far below any log-probability.
        number = float(max(value, -1e300)) if value != -math.inf else -math.inf
        tokens.append((token if isinstance(token, str) else None, number))
        total += math.exp(number)
    if total > _ABOVE_ONE:
        return Failure("bad_reply", f"the listed tokens have a total probability of {total:.3g}")
    return tuple(tokens)


def named(tokens: Iterable[tuple[str | None, float]], texts: Sequence[str]) -> list[tuple[str | None, float]]:
    """Return tokens with `token_id:39`, as a server may be told to write them, replaced by the token's own text."""
    found: list[tuple[str | None, float]] = []
    for token, value in tokens:
        number = token.removeprefix("token_id:") if token is not None and token.startswith("token_id:") else ""
        known = number.isascii() and number.isdecimal() and len(number) < 10 and int(number) < len(texts)
        found.append((texts[int(number)] if known else token, value))
    return found


def letters_of(
    tokens: Sequence[tuple[str | None, float]], k: int, asked: Mapping[str, int] | None = None
) -> LetterLogprobs | Failure:
    """Merge listed tokens into the first `k` letters (protocol 5).

    Args:
        tokens: text and log-probability.
        k: options shown.
        asked: per letter, how many of its tokens were asked for by id; a reply with fewer or more is no exact reading.
            None where the server chose the tokens.
    """
    if asked is not None:
        got = Counter(letter for token, _ in tokens if (letter := letter_of_token(token)) is not None)
        for letter in LETTERS[:k]:
            if got[letter] != asked[letter]:
                detail = f"asked for {asked[letter]} tokens of letter {letter}, the reply lists {got[letter]}"
                return Failure("bad_reply", detail)
    letters = merge_letters(tokens, k)
    return replace(letters, label_mass=min(letters.label_mass, 1.0))


def parse_refusal(status: int, body: bytes) -> Refusal:
    """Return what a status other than 200 means."""
    error = json_object(body) or {}
    inner = error.get("error", error)
    message = inner.get("message", inner.get("detail")) if isinstance(inner, dict) else inner
    detail = excerpt(str(message).encode() if message else body)
    code = str(_dict(inner).get("code") or _dict(inner).get("type"))
    return Refusal(status, _kind(status, f"{code} {message or ''}"), f"status {status}: {detail}")


def _kind(status: int, said: str) -> str:
    by_status = {401: "key", 403: "key", 404: "absent", 405: "absent"}
    if status in by_status:
        return by_status[status]
    if status >= 500:
        return "server_error"
    patterns = {"too_many_images": _TOO_MANY, "context_too_long": _TOO_LONG, "undecodable_frames": _UNDECODABLE}
    for kind, pattern in patterns.items():
        if pattern.search(said):
            return kind
    if status == 413:
        return "too_large"
    return "logprobs" if "logprob" in said else "bad_request"
