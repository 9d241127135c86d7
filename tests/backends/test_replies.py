"""Whatever a server sends becomes tokens or a failure with a kind; what is sent is what the protocol says."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.endpoint import completion
from benchcheck.backends.replies import (
    CLOSING,
    MAX_ASKED,
    Listed,
    content_of,
    excerpt,
    image_part,
    json_object,
    letters_of,
    named,
    opening_of,
    parse_refusal,
    parse_reply,
    split_ids,
)  # fmt: skip
from benchcheck.screen.prompts import LETTERS
from benchcheck.screen.readings import MISSING_LOGPROB, Failure, LetterLogprobs, merge_letters

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ENTRY = st.fixed_dictionaries({"token": st.text(max_size=4) | st.none() | JSON, "logprob": st.floats() | JSON})


def reply(logprobs: Any, usage: Any = None) -> bytes:
    return json.dumps({"choices": [{"logprobs": logprobs}], "usage": usage}).encode()


@given(st.text(), st.lists(st.binary(min_size=1, max_size=30), max_size=3), st.text())
def test_a_request_is_json_with_the_text_behind_the_frames(text: str, frames: list[bytes], model: str) -> None:
    from base64 import b64encode

    parts = [image_part(b64encode(frame)) for frame in frames]
    body = json.loads(b"".join((opening_of(model, {"top_logprobs": 20}), *content_of(text, parts), CLOSING)))
    assert body["model"] == model
    user, assistant = body["messages"]
    assert assistant == {"role": "assistant", "content": "Answer:"}
    if not frames:
        assert user == {"role": "user", "content": text}
        return
    assert user["content"][-1] == {"type": "text", "text": text}
    urls = [part["image_url"]["url"] for part in user["content"][:-1]]
    assert urls == ["data:image/jpeg;base64," + b64encode(frame).decode() for frame in frames]


@given(st.lists(st.integers(0, 200_000), max_size=600))
def test_ids_are_split_into_few_parts_of_like_size(ids: list[int]) -> None:
    parts = split_ids(ids)
    assert [number for part in parts for number in part] == ids
    assert len(parts) == -(-len(ids) // MAX_ASKED)
    assert all(0 < len(part) <= MAX_ASKED for part in parts)
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= len(parts)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_reply_or_a_failure(body: bytes) -> None:
    found = parse_reply(body)
    assert isinstance(found, Listed) or found.kind in {"bad_reply", "no_logprobs", "nan_logprobs"}


@given(JSON | st.fixed_dictionaries({"content": JSON | st.lists(ENTRY, max_size=3)}), JSON)
def test_any_log_probabilities_are_a_reply_or_a_failure(logprobs: Any, usage: Any) -> None:
    found = parse_reply(reply(logprobs, usage))
    assert isinstance(found, Listed | Failure)


@given(st.lists(ENTRY, min_size=1, max_size=6), JSON)
def test_what_is_listed_is_finite_and_no_more_than_everything(entries: list[dict[str, Any]], usage: Any) -> None:
    found = parse_reply(reply({"content": [{"top_logprobs": entries}]}, usage))
    if isinstance(found, Failure):
        assert found.kind in {"bad_reply", "nan_logprobs"}
        return
    assert len(found.tokens) == len(entries)
    assert all(not math.isnan(value) and value <= 0.01 for _, value in found.tokens)
    assert math.fsum(math.exp(value) for _, value in found.tokens) <= 1.06
    assert found.prompt_tokens >= 0
    assert found.cached_tokens >= 0


TOKEN = st.sampled_from(
    [f"{before}{letter}{behind}" for letter in "ABCZ" for before in " (" for behind in ".)"] + ["x"]
)


@given(st.dictionaries(TOKEN, st.floats(-60, 0), min_size=1), st.integers(2, 26))
def test_letters_are_those_of_the_golden_rule(tokens: dict[str, float], k: int) -> None:
    scale = math.log(math.fsum(map(math.exp, tokens.values())))
    listed = [(token, value - scale) for token, value in tokens.items()]
    found = parse_reply(completion(listed))
    assert isinstance(found, Listed)
    letters = letters_of(found.tokens, k)
    assert isinstance(letters, LetterLogprobs)
    golden = merge_letters(listed, k)
    assert letters.logprobs == golden.logprobs
    assert letters.missing == golden.missing
    assert letters.label_mass == min(golden.label_mass, 1.0)


def test_letters_that_were_asked_for_must_all_be_there() -> None:
    asked = dict.fromkeys(LETTERS, 2)
    tokens = [(" A", -1.0), ("A", -5.0), (" B", -2.0), ("B", -6.0), (" the", -3.0)]
    exact = letters_of(tokens, 2, asked)
    assert isinstance(exact, LetterLogprobs)
    assert exact.missing == ()
    short = letters_of(tokens[:3], 2, asked)
    assert short == Failure("bad_reply", "asked for 2 tokens of letter B, the reply lists 1")
    # Another tokenizer has other texts at the same ids.
    assert isinstance(letters_of([*tokens, ("A.", -9.0)], 2, asked), Failure)
    one = letters_of([(" A", -1.0)], 2)
    assert isinstance(one, LetterLogprobs)
    assert one.logprobs == (-1.0, MISSING_LOGPROB)


@pytest.mark.parametrize("value", ["NaN", "null"])
def test_not_a_number_is_a_failure_wherever_it_stands(value: str) -> None:
    body = completion([(" A", -1.0), ("x", -2.0)]).replace(b"-2.0", value.encode())
    found = parse_reply(body)
    assert isinstance(found, Failure)
    assert found.kind == "nan_logprobs"


@pytest.mark.parametrize("value", ["0.5", "Infinity", "true", '"-1"', "[]", "1" + "0" * 400])
def test_what_is_no_log_probability_is_a_bad_reply(value: str) -> None:
    found = parse_reply(completion([(" A", -1.0), ("x", -2.0)]).replace(b"-2.0", value.encode()))
    assert isinstance(found, Failure)
    assert found.kind == "bad_reply"
    assert len(found.detail) < 200


def test_the_smallest_numbers_are_log_probabilities() -> None:
    found = parse_reply(completion([(" A", -0.1), ("x", -math.inf), ("y", -(10**400))]))
    assert isinstance(found, Listed)
    assert [value for _, value in found.tokens] == [-0.1, -math.inf, -1e300]


def test_more_than_everything_is_no_distribution() -> None:
    found = parse_reply(completion([(" A", -0.1), (" B", -0.1)]))
    assert found == Failure("bad_reply", "the listed tokens have a total probability of 1.81")


def test_deep_json_is_a_bad_reply() -> None:
    found = parse_reply(b'{"choices":' + b"[" * 100_000)
    assert isinstance(found, Failure)
    assert found.kind == "bad_reply"


def test_usage_is_read_where_it_is_told() -> None:
    told = parse_reply(completion([(" A", -0.1)], 178, cached=160))
    assert isinstance(told, Listed)
    assert (told.prompt_tokens, told.cached_tokens) == (178, 160)
    silent = parse_reply(reply({"content": [{"top_logprobs": [{"token": "A", "logprob": -1}]}]}, "none"))
    assert isinstance(silent, Listed)
    assert (silent.prompt_tokens, silent.cached_tokens) == (0, 0)


def test_tokens_by_number_get_their_text() -> None:
    texts = ["!", " A", "B"]
    tokens = [("token_id:1", -1.0), ("token_id:9", -2.0), ("token_id:x", -3.0), (None, -4.0), (" C", -5.0)]
    assert named(tokens, texts) == [(" A", -1.0), *tokens[1:]]


def test_an_excerpt_is_one_short_line() -> None:
    assert excerpt(b"") == "an empty body"
    assert excerpt(b"  <!doctype html><TITLE> Sign\n in </TITLE>") == "an HTML page titled 'Sign\\n in'"
    assert excerpt(b"<html><body>x") == "an HTML page"
    assert excerpt(b"a\x00\n\tb\xff" + b"c" * 900) == "a b\N{REPLACEMENT CHARACTER}" + "c" * 155 + "…"


@given(st.binary(max_size=6000))
def test_any_excerpt_is_one_short_line(body: bytes) -> None:
    line = excerpt(body)
    assert 0 < len(line) <= 160
    assert line.splitlines() == [line]


def test_json_that_is_no_object_is_none() -> None:
    assert json_object(b"[1]") is None
    assert json_object(b'{"a": 1}') == {"a": 1}


REFUSALS = {
    "context_too_long": [
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens. However, your prompt"}}),
        (400, {"error": {"message": "This model's maximum context length", "code": "context_length_exceeded"}}),
        (400, {"object": "error", "message": "The decoder prompt (length 9) is longer than the maximum model length"}),
        (400, {"error": {"message": "the request exceeds the available context size", "type": "exceed_context_size"}}),
        (413, {"detail": "Input is too long"}),
    ],
    "too_many_images": [(400, {"error": {"message": "At most 0 image(s) may be provided in one prompt."}})],
    "undecodable_frames": [(400, {"error": {"message": "Failed to load image: cannot identify image file"}})],
    "too_large": [(413, {}), (413, {"detail": "Request Entity Too Large"})],
    "logprobs": [(400, {"error": {"message": "Requested sample logprobs of 21, which is greater than max"}})],
    "key": [(401, {"error": "Unauthorized"}), (403, {})],
    "absent": [(404, {"error": {"message": "The model `x` does not exist."}}), (405, {"detail": "Method Not Allowed"})],
    "server_error": [(500, {}), (503, {"error": {"message": "maximum context length"}})],
    "bad_request": [(400, {"error": {"message": "no"}}), (418, {}), (302, {})],
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals_are_told_apart(kind: str) -> None:
    for status, said in REFUSALS[kind]:
        found = parse_refusal(status, json.dumps(said).encode())
        assert (found.kind, found.status) == (kind, status), said
        assert found.detail.startswith(f"status {status}: ")


@given(st.integers(201, 599), st.binary() | JSON.map(lambda value: json.dumps(value).encode())
       | JSON.map(lambda value: json.dumps({"error": value}).encode()))  # fmt: skip
def test_any_refusal_is_one_line(status: int, body: bytes) -> None:
    found = parse_refusal(status, body)
    assert re.fullmatch(r"status \d+: .+", found.detail)
