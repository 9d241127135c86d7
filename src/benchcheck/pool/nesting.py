"""Records out of nested documents: a root list, a dict of id to record, a wrapper key, lists below a video. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["STEPS", "check_step", "root_records", "unnest"]

STEPS = ("values", "flatten", "get:<field>", "each:<field>")
"""`values`: a dict's values, its keys as `_key`. `flatten`: a list's members. `get:x`: what stands below x. `each:x`:
one record per member of the list x, the fields around it (`x` aside) still visible."""


def check_step(step: str) -> None:
    """Refuse a step that is none of `STEPS`.

    Raises:
        ValueError: with what is allowed.
    """
    kind, _, name = step.partition(":")
    if step not in ("values", "flatten") and (kind not in ("get", "each") or not name):
        raise ValueError(f"unnest = {step!r} is not allowed. Allowed: {', '.join(STEPS)}")


def root_records(document: Any) -> list[Any]:
    """Return the records of a JSON document: a list, a dict of id to record (`_key`), or the one list below a key.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(document, list):
        return document
    if isinstance(document, dict) and document:
        below = list(document.values())
        if all(isinstance(value, dict) for value in below):
            return _values(document)
        lists = [value for value in below if isinstance(value, list) and value and isinstance(value[0], dict)]
        if len(document) == 1 and lists:
            return list(lists[0])
    raise ValueError("neither a list of records, nor a dict of id to record, nor one list below one key")


def unnest(nodes: Iterable[Any], steps: Iterable[str]) -> Iterator[Any]:
    """Apply the steps of a spec to every node.

    Raises:
        ValueError: a node is not what a step needs.
    """
    found = list(nodes)
    for step in steps:
        found = [child for node in found for child in _children(node, step)]
    yield from found


def _children(node: Any, step: str) -> list[Any]:
    """Apply one step to one node."""
    kind, _, name = step.partition(":")
    if step == "flatten" and isinstance(node, list):
        return node
    if step == "values" and isinstance(node, dict):
        return _values(node)
    if kind == "get" and isinstance(node, dict) and name in node:
        return [node[name]]
    if kind == "each" and isinstance(node, dict) and isinstance(node.get(name), list):
        around = {key: value for key, value in node.items() if key != name}
        return [{**around, **child} if isinstance(child, dict) else child for child in node[name]]
    raise ValueError(f"unnest = {step!r} does not fit {_outline(node)}")


def _values(node: Mapping[str, Any]) -> list[Any]:
    """A dict's values, each with its key as `_key`."""
    return [{"_key": key, **value} if isinstance(value, dict) else value for key, value in node.items()]


def _outline(node: Any) -> str:
    """A node as a message shows it."""
    if isinstance(node, dict):
        return f"a dict with the keys {', '.join(map(repr, list(node)[:6]))}"
    return f"a {type(node).__name__}"
