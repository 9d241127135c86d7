"""What makes answers of two studies answers to the same questions: the protocol, its hash, and what differs. Pure."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchcheck.config import Config, step_protocol
from benchcheck.screen.prompts import render_text
from benchcheck.screen.steps import LADDER, Sight

__all__ = ["differences", "protocol_hash", "protocol_table", "rule_differences", "rule_of"]

_LONGEST = 80
"""Letters of a value that a line shows."""
_LISTS: Mapping[str, tuple[str, ...]] = {
    "model": ("models.{role}.model", "models.{role}.revision"),
    "orders": ("protocol.orders", "protocol.seed"),
    "frames": ("frames.count", "frames.long_side", "frames.quality"),
}
"""Parts of a step's protocol that are lists, and what the config calls their members."""
_NAMES: Mapping[str, str] = {
    "preset": "protocol.preset",
    "mass_floor": "protocol.mass_floor",
    "single": "frames.single",
    "shuffle": "protocol.seed",
    "orders": "the option orders",
    "layout": "the prompt's layout, which is benchcheck's own",
    "prefill": "the beginning of the reply, which is benchcheck's own",
    "sight": "what the step shows, which is benchcheck's own",
    "protocol": "the protocol's version, which is benchcheck's own",
}
"""Parts of a step's protocol and what a user calls them."""


def protocol_table(config: Config) -> dict[str, Any]:
    """Return what a row of each step depends on, by the step's number as text (protocol 8).

    It is what the step keys are made of. Thresholds are not in it: they move without asking again (`rule_of`).
    """
    return {str(step.number): step_protocol(config, step) for step in config.steps}


def protocol_hash(table: Mapping[str, Any]) -> str:
    """Return the sha256 of a protocol, 64 hex digits; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def rule_of(config: Config) -> dict[str, Any]:
    """Return when an item leaves and which are asked: no row depends on it, but which items a step sees does."""
    protocol = config.protocol
    names = ("right_share", "margin", "cascade", "sample")
    return {f"protocol.{name}": getattr(protocol, name) for name in names}


def differences(ours: Mapping[str, Any], theirs: object, there: str = "in the package") -> list[str]:
    """Return one line for each setting in which two protocols differ, named as in benchcheck.toml; none if they agree.

    Only steps of `theirs` count: a package may hold some of a study's steps. `theirs` may be anything that JSON can
    hold; `there` says where it stands.
    """
    if not isinstance(theirs, Mapping) or not theirs:
        return [f"the protocol {there} is no table of steps"]
    found: dict[tuple[str, str, str], list[str]] = {}
    for number, step in theirs.items():
        mine = ours.get(number)
        if mine is None:
            steps = [int(own) for own in ours]
            found.setdefault(("protocol.steps", f"{steps}", f"{number[:_LONGEST]} as well"), [])
        elif not isinstance(step, Mapping):
            found.setdefault((f"step {number}", "a table", "none"), [])
        else:
            for name, own, other in _fields(number, mine, step):
                found.setdefault((name, _shown(own), _shown(other)), []).append(number)
    return [f"{name} = {own} here, {other} {there}{_steps(steps)}" for (name, own, other), steps in found.items()]


def rule_differences(ours: Mapping[str, Any], theirs: object, there: str = "in the package") -> list[str]:
    """Return one line for each threshold in which two studies differ; it changes no row (`rule_of`)."""
    if not isinstance(theirs, Mapping):
        return []
    pairs = [(name, value, theirs[name]) for name, value in ours.items() if name in theirs]
    return [f"{name} = {_shown(own)} here, {_shown(other)} {there}" for name, own, other in pairs if own != other]


def _fields(number: str, ours: Mapping[str, Any], theirs: Mapping[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and both values of each setting in which a step differs."""
    for key in dict.fromkeys((*ours, *theirs)):
        own, other = ours.get(key), theirs.get(key)
        if own == other:
            continue
        names = _LISTS.get(key, ())
        if isinstance(own, list) and isinstance(other, list) and len(own) == len(other) == len(names):
            role = LADDER[int(number)].role
            triples = zip(names, own, other, strict=True)
            yield from ((name.format(role=role), mine, its) for name, mine, its in triples if mine != its)
        elif key == "layout":
            yield _layout(int(number), own, other)
        else:
            yield _NAMES.get(key, str(key)), own, other


def _layout(number: int, own: Any, other: Any) -> tuple[str, Any, Any]:
    """Tell another first line, which is the config's, from another layout, which is the code's."""
    sight = LADDER[number].sight
    rest = render_text("", None if sight is Sight.OPTIONS_ONLY else "?", ["a", "b"])
    if isinstance(other, str) and other.endswith(rest):
        return f"prompts.{sight.value}", own.removesuffix(rest), other.removesuffix(rest)
    return _NAMES["layout"], own, other


def _steps(numbers: list[str]) -> str:
    """The steps that a difference is in."""
    return f" (step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)})" if numbers else ""


def _shown(value: Any) -> str:
    """A value as JSON, not too long; nothing where there is none."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
