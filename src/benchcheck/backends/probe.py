"""The questions that a server must answer before it is asked a study's: what it serves, how it lists letters.

A handful of requests of one token each. What cannot be used is refused in one line with the cure.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchcheck.backends.letters import SPECIMEN
from benchcheck.backends.replies import (
    Listed,
    Refusal,
    content_of,
    excerpt,
    image_part,
    json_object,
    letters_of,
    named,
    opening_of,
    parse_refusal,
    parse_reply,
)
from benchcheck.backends.vocabulary import Vocabulary
from benchcheck.backends.wire import Answer, Wire
from benchcheck.errors import BackendError, ModelRefusedError, UsageError
from benchcheck.screen.prompts import LETTERS, PREFILL
from benchcheck.screen.readings import TOP, Failure, LetterLogprobs

__all__ = ["Ability", "OtherModelError", "Wanted", "check_agreement", "probe"]

_SHOWN = 2
"""Options of the specimen."""
_WIDTHS = (100, 50, 20, 10, 5)
"""Widths of `top_logprobs` that are tried for exact reading where ids cannot be asked for: the more, the fewer letters
are missing."""
_QUICK_S = 30.0
"""A question that needs no model is answered within this."""
_SLOW_S = 180.0
"""The first completion may have to wait for kernels to compile: 27 s on a CPU."""
_MASS_FLOOR = 0.10
_AGREE_NATS = 0.5
"""Two readings of one prompt in bfloat16 were seen to differ by 0.09."""
_RARE = -12.0
"""Below this, bfloat16 alone may move a log-probability further."""
_TOKENIZED = " A B C D E (A) [B] caf\u00e9 Answer: Z\n\n12"


class OtherModelError(UsageError):
    """A server that is well and serves another model."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the study needs of a server."""

    model: str
    """The config's model."""
    folder: str
    """Where that model lies on this machine, if it does: a server that was started on it may call it so."""
    served_name: str
    """The model's name at the server; empty is the config's."""
    exact: bool
    """The preset reads every letter."""
    images: int
    image_side: int
    vocabulary: Vocabulary | None


@dataclass(frozen=True, slots=True)
class Ability:
    """What a server can do."""

    served: str
    """The model's name there."""
    version: str
    exact: bool
    """It lists tokens that are asked for by id."""
    top: int
    """Otherwise, how many tokens it lists."""

    @property
    def reads(self) -> str:
        """How letters are read, in words."""
        return "every letter by token id" if self.exact else f"letters among the top {self.top} tokens"


async def probe(wire: Wire, wanted: Wanted) -> Ability:
    """Find out what a server can do.

    Raises:
        OtherModelError: it serves another model.
        UsageError: it wants a key, or has another setting than the study needs.
        ModelRefusedError: its letters cannot be read.
        BackendError: it is no OpenAI-compatible server, or it fails.
        WireError: it does not answer.
    """
    served, owner = await _served(wire, wanted)
    version = await _version(wire, owner)
    questions = _Questions(wire, served, wanted)
    await _check_tokenizer(wire, served, wanted)
    by_id = await questions.by_id() if wanted.exact else None
    top, listed = await questions.by_rank(max(_WIDTHS) if wanted.exact and by_id is None else TOP)
    if by_id is not None:
        check_agreement(wire, by_id, listed)
    await questions.check_prefill(listed)
    if by_id is None:
        _check_length(wire, len(listed.tokens), min(_WIDTHS) if wanted.exact else TOP)
    if wanted.images:
        await questions.check_frames()
    return Ability(served, version, by_id is not None, top if by_id is None else 0)


async def _served(wire: Wire, wanted: Wanted) -> tuple[str, str]:
    """Return the model's name at a server and who made the server, where it says so."""
    answer = await wire.once("GET", f"{wire.url}/models", timeout_s=min(_QUICK_S, wire.timeout_s))
    if answer.status != 200:
        refusal = parse_refusal(answer.status, answer.body)
        if refusal.kind == "absent":  # it has no list; the first completion will tell
            return wanted.served_name or wanted.model, ""
        raise _refused(wire, refusal)
    listed = (json_object(answer.body) or {}).get("data")
    if not isinstance(listed, list):
        raise BackendError(_not_a_server(wire, answer))
    models = [model for model in listed if isinstance(model, dict) and isinstance(model.get("id"), str)]
    names = {wanted.served_name} if wanted.served_name else {wanted.model, wanted.folder} - {""}
    for model in models:
        if model["id"] in names or (not wanted.served_name and model.get("root") in names):
            return model["id"], str(model.get("owned_by") or "")
    found = ", ".join(model["id"] for model in models) or "no model"
    wish = f"`served_name` is {wanted.served_name}" if wanted.served_name else f"the config's model is {wanted.model}"
    raise OtherModelError(
        f"{wire.url} serves {found}; {wish}. Allowed: a server of that model. Cure: start one, or set `served_name` "
        "under [engine] to its name there if it is the same model"
    )


async def _version(wire: Wire, owner: str) -> str:
    answer = await wire.once("GET", f"{wire.root}/version", timeout_s=min(_QUICK_S, wire.timeout_s))
    said = (json_object(answer.body) or {}).get("version") if answer.status == 200 else None
    # The list of models says who serves; /version is vLLM's own address.
    return " ".join([owner or "vllm", said]) if isinstance(said, str) else owner or "unknown"


async def _check_tokenizer(wire: Wire, served: str, wanted: Wanted) -> None:
    """Compare the server's tokenizer with the config's model's, where the server has `/tokenize`."""
    if wanted.vocabulary is None:
        return
    body = json.dumps({"model": served, "prompt": _TOKENIZED, "add_special_tokens": False}).encode()
    answer = await wire.once("POST", f"{wire.root}/tokenize", (body,), min(_QUICK_S, wire.timeout_s))
    tokens = (json_object(answer.body) or {}).get("tokens") if answer.status == 200 else None
    if isinstance(tokens, list) and tokens != wanted.vocabulary.encode(_TOKENIZED):
        raise ModelRefusedError(
            f"{wire.url} has another tokenizer than {wanted.model}. Allowed: a server of the config's model. Cure: "
            "start it on that model and revision, or name the served model in the config"
        )


def _check_length(wire: Wire, listed: int, least: int) -> None:
    """Refuse a server that takes any `top_logprobs` and cuts its list without a word.

    Raises:
        ModelRefusedError: most letters would have no log-probability.
    """
    if listed < least:
        raise ModelRefusedError(
            f"{wire.url} lists {listed} tokens whatever it is asked for. Allowed: at least {least}. Cure: start vLLM "
            "with --max-logprobs 20, or use another server"
        )


class _Questions:
    """The specimen, asked in several ways of one server."""

    def __init__(self, wire: Wire, served: str, wanted: Wanted) -> None:
        self.wire = wire
        self.served = served
        self.wanted = wanted
        self.limit = min(_SLOW_S, wire.timeout_s)

    async def ask(self, asked: Mapping[str, Any], images: Sequence[bytes] = ()) -> Listed | Refusal | Failure:
        """Return what the server says to the specimen."""
        answer = await self.wire.complete(opening_of(self.served, asked), content_of(SPECIMEN, images), self.limit)
        if answer.status != 200:
            return parse_refusal(answer.status, answer.body)
        return parse_reply(answer.body)

    async def by_id(self) -> Listed | None:
        """Return the reply for the ids of the specimen's letters, or None where the server cannot do that."""
        vocabulary = self.wanted.vocabulary
        if vocabulary is None:
            return None
        wanted = {letter: len(vocabulary.variants[letter]) for letter in LETTERS}
        ids = [number for letter in LETTERS[:_SHOWN] for number in vocabulary.variants[letter]]
        listed = await self.ask({"logprob_token_ids": ids})
        if not isinstance(listed, Listed):
            return None  # the same question by rank tells a server that fails from one that cannot do this
        letters = letters_of(named(listed.tokens, vocabulary.texts), _SHOWN, wanted)
        return listed if isinstance(letters, LetterLogprobs) else None

    async def by_rank(self, most: int) -> tuple[int, Listed]:
        """Return how many tokens the server lists, up to `most`, and its reply.

        Raises:
            ModelRefusedError: it lists none, or not the 20 that the preset reads.
            UsageError, BackendError: it refuses the question, or fails.
        """
        refusal = Refusal(0, "", "")
        for width in (width for width in _WIDTHS if width <= most):
            said = await self.ask({"top_logprobs": width})
            if isinstance(said, Listed):
                return width, said
            if isinstance(said, Failure):
                raise _failed(self.wire, said)
            refusal = said
            if refusal.status not in (400, 422):
                break
            if width == TOP and not self.wanted.exact:
                break
        if refusal.kind == "logprobs" and not self.wanted.exact:
            raise UsageError(
                f"{self.wire.url} does not list the top {TOP} tokens, which preset benchcheck-2026 reads "
                f"({refusal.detail}). Cure: start it with --max-logprobs {TOP}"
            )
        raise _refused(self.wire, refusal)

    async def check_prefill(self, listed: Listed) -> None:
        """See that the assistant's turn is continued, not ended and begun anew.

        A prefill that is continued costs its own tokens and no more, so that a second one adds as many as the first.
        Where the server counts no tokens, the letters' mass decides.

        Raises:
            ModelRefusedError: it is not continued.
        """
        without = await self._count([], {"add_generation_prompt": True})
        twice = await self._count(
            [{"role": "assistant", "content": PREFILL * 2}],
            {"continue_final_message": True, "add_generation_prompt": False},
        )
        once = listed.prompt_tokens
        counted = bool(without and twice and once)
        # A turn of its own costs at least an end, a start and a role.
        ignored = counted and (once - without) - (twice - once) >= 3
        mass = letters_of(named(listed.tokens, self._texts), len(LETTERS))
        faint = isinstance(mass, LetterLogprobs) and mass.label_mass < _MASS_FLOOR and not counted
        if ignored or faint:
            seen = (
                f"the prefill {PREFILL!r} costs {once - without} tokens, a second one {twice - once}"
                if ignored
                else f"all letters together have probability {getattr(mass, 'label_mass', 0):.3g}"
            )
            raise ModelRefusedError(
                f"{self.wire.url} ignores continue_final_message ({seen}). Allowed: a server that continues the "
                "assistant's turn. Cure: use vLLM or SGLang, or another server that does"
            )

    async def _count(self, turns: Sequence[Mapping[str, str]], asked: Mapping[str, Any]) -> int:
        """Return how many tokens the specimen has with other assistant turns; 0 where the server does not say."""
        body = {"model": self.served, "max_tokens": 1, "temperature": 0.0, **asked}
        sent = json.dumps(body | {"messages": [{"role": "user", "content": SPECIMEN}, *turns]}).encode()
        answer = await self.wire.once("POST", f"{self.wire.url}/chat/completions", (sent,), self.limit)
        usage = (json_object(answer.body) or {}).get("usage") if answer.status == 200 else None
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) else 0

    async def check_frames(self) -> None:
        """Show as many frames as a prompt of the step has, of noise, which makes them as large as frames get.

        Raises:
            UsageError: the server does not take them.
        """
        frame = image_part(_noise(self.wanted.image_side))
        said = await self.ask({"top_logprobs": 1}, [frame] * self.wanted.images)
        if isinstance(said, Failure):
            raise _failed(self.wire, said)
        if not isinstance(said, Refusal):
            return
        cures = {
            "too_many_images": f"start it with --limit-mm-per-prompt '{{\"image\": {self.wanted.images}}}'",
            "context_too_long": "start it with a larger --max-model-len",
            "too_large": "raise the limit of request bodies of the proxy before it, to some MB",
        }
        if said.kind in cures:
            raise UsageError(
                f"{self.wire.url} does not take the {self.wanted.images} frames of a prompt ({said.detail}). "
                f"Cure: {cures[said.kind]}"
            )
        raise _refused(self.wire, said)

    @property
    def _texts(self) -> Sequence[str]:
        return self.wanted.vocabulary.texts if self.wanted.vocabulary else ()


def check_agreement(wire: Wire, by_id: Listed, by_rank: Listed) -> None:
    """Hold the exact reading against the ranked one, for tokens that both list.

    Raises:
        ModelRefusedError: they differ by more than numerics explain.
    """
    ranked = dict(by_rank.tokens)
    for token, value in by_id.tokens:
        other = ranked.get(token)
        if other is not None and other > _RARE and abs(value - other) > _AGREE_NATS:
            raise ModelRefusedError(
                f"{wire.url}: token {token!r} has log-probability {value:.2f} asked for by id and {other:.2f} among "
                "the top tokens. Allowed: one distribution. Cure: start the server without --logprobs-mode, on the "
                "config's model"
            )


def _noise(side: int) -> bytes:
    """Return a frame of a video's usual shape as JPEG in base64."""
    from PIL import Image

    file = io.BytesIO()
    Image.effect_noise((side, max(1, side * 9 // 16)), 60).convert("RGB").save(file, "JPEG", quality=85)
    return b64encode(file.getvalue())


def _not_a_server(wire: Wire, answer: Answer) -> str:
    return (
        f"{wire.url} is no OpenAI-compatible server (its list of models is {excerpt(answer.body)}). Allowed: the "
        "base URL of one, which usually ends in /v1. Cure: correct `endpoints`"
    )


def _refused(wire: Wire, refusal: Refusal) -> UsageError | BackendError:
    """Return the error of a server that refuses the specimen."""
    if refusal.kind == "key":
        return UsageError(
            f"{wire.url} wants a key, or another one ({refusal.detail}). Cure: put it into an environment variable "
            "and set `api_key` under [engine] to that variable's name"
        )
    if refusal.kind == "absent":
        return UsageError(
            f"{wire.url} has no chat completions for this model ({refusal.detail}). Cure: correct `endpoints`, whose "
            "URLs usually end in /v1, or `served_name`"
        )
    if refusal.kind == "logprobs":
        return ModelRefusedError(
            f"{wire.url} gives no log-probabilities ({refusal.detail}). Allowed: a server that lists the top tokens. "
            f"Cure: start vLLM with --max-logprobs {TOP}, or use another server"
        )
    if refusal.kind == "bad_request":
        return ModelRefusedError(
            f"{wire.url} refuses a request that continues the assistant's turn and asks for log-probabilities "
            f"({refusal.detail}). Allowed: a server with continue_final_message, such as vLLM or SGLang. Cure: use one"
        )
    return BackendError(
        f"{wire.url} fails on a plain question ({refusal.detail}). Cure: see the server's log, start it again"
    )


def _failed(wire: Wire, failure: Failure) -> UsageError | BackendError:
    """Return the error of a server whose reply to the specimen cannot be read."""
    if failure.kind == "no_logprobs":
        return _refused(wire, Refusal(200, "logprobs", failure.detail))
    if failure.kind == "nan_logprobs":
        return ModelRefusedError(
            f"{wire.url}: {failure.detail}. Allowed: numbers. Cure: the weights or the precision are broken; try "
            "--dtype bfloat16"
        )
    return BackendError(
        f"{wire.url}: {failure.detail}. Allowed: the replies of an OpenAI-compatible server, with log-probabilities. "
        "Cure: correct `endpoints`, or see the server's log"
    )
