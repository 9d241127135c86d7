"""Records out of nested documents: a root list, a dict of id to record, a wrapper key, lists below a video. Pure.

What a step knows about a record is laid beside it: `_key` (its key in a dict), `_dim` (the key of its list), `_i` (its
0-based place). A field of that name in the file itself wins, and so does a child's field over its parent's.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchcheck.pool.fields import ABSENT, find, shown

__all__ = ["STEPS", "check_step", "root_records", "unnest"]

STEPS = {
    "values": "a dict's values, each with its key as `_key`",
    "values:<name>": "the same, the key stored under that name",
    "lists": "the members of a dict of lists: `_dim` is the list's key, `_i` the place in it",
    "flatten": "a list's members",
    "get:<path>": "what stands below a path such as `data.items`",
    "each:<field>": "the members of a list, or of a dict of records, below a field; the fields around it stay visible",
    "each?:<field>": "the same where the record has the field, else the record itself",
    "split:<a>,<b>": "one record per named field: `_key` is its name, all fields of the whole stay visible",
}
"""Every step and what it gives."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A part of a document: what it is, the fields around it, and what the steps know about it."""

    value: Any
    around: Mapping[str, Any]
    known: Mapping[str, Any]

    def child(self, value: Any, around: Mapping[str, Any] | None = None, **known: Any) -> "_Node":
        """A part of this part."""
        return _Node(value, {**self.around, **(around or {})}, {**self.known, **known})

    @property
    def record(self) -> Any:
        """The part as a record; a plain value below a key, or in a list, comes as `_value`."""
        if isinstance(self.value, dict):
            return {**self.known, **self.around, **self.value} if self.known or self.around else self.value
        return {**self.known, **self.around, "_value": self.value} if self.known or self.around else self.value


def check_step(step: str) -> None:
    """Refuse a step that is none of `STEPS`.

    Raises:
        ValueError: with what is allowed.
    """
    kind, colon, name = step.partition(":")
    plain = step in ("values", "lists", "flatten")
    fields = name.split(",") if kind == "split" else [name]
    if not plain and not (kind in ("values", "get", "each", "each?", "split") and colon and all(fields)):
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
            return list(unnest([document], ["values"]))
        lists = [value for value in below if isinstance(value, list) and value and isinstance(value[0], dict)]
        if len(document) == 1 and lists:
            return list(lists[0])
    raise ValueError("neither a list of records, nor a dict of id to record, nor one list below one key")


def unnest(nodes: Iterable[Any], steps: Iterable[str]) -> Iterator[Any]:
    """Apply the steps of a spec to every node, one after the other: only one root's children are held at a time.

    Raises:
        ValueError: a node is not what a step needs.
    """
    steps = tuple(steps)
    if not steps:
        yield from nodes
        return
    for value in nodes:
        found: Iterator[_Node] = iter([_Node(value, {}, {})])
        for step in steps:
            found = _apply(found, step)
        for node in found:
            yield node.record


def _apply(nodes: Iterable[_Node], step: str) -> Iterator[_Node]:
    """Apply one step to some nodes, as they are asked for."""
    kind, _, name = step.partition(":")
    for node in nodes:
        yield from _KINDS[kind](node, name)


def _misfit(step: str, value: Any) -> ValueError:
    """What to raise for a node that a step does not fit."""
    return ValueError(f"unnest = {step!r} does not fit {_outline(value)}")


def _values(node: _Node, name: str) -> Iterator[_Node]:
    if not isinstance(node.value, dict):
        raise _misfit(f"values:{name}" if name else "values", node.value)
    for key, value in node.value.items():
        own = value.get(name, key) if name and isinstance(value, dict) else key
        if own != key:
            raise ValueError(f"unnest = 'values:{name}': the record {key!r} has {name!r} itself: {shown(own)}")
        yield node.child(value, {name: key}) if name else node.child(value, _key=key)


def _lists(node: _Node, _: str) -> Iterator[_Node]:
    if not isinstance(node.value, dict):
        raise _misfit("lists", node.value)
    for key, members in node.value.items():
        if not isinstance(members, list):
            raise ValueError(f"unnest = 'lists': below {key!r} stands {shown(members)}, not a list")
        yield from (node.child(member, _dim=key, _i=place) for place, member in enumerate(members))


def _flatten(node: _Node, _: str) -> Iterator[_Node]:
    if not isinstance(node.value, list):
        raise _misfit("flatten", node.value)
    yield from (node.child(member) for member in node.value)


def _get(node: _Node, name: str) -> Iterator[_Node]:
    found = find(node.value, name) if isinstance(node.value, dict) else ABSENT
    if found is ABSENT:
        raise _misfit(f"get:{name}", node.value)
    yield node.child(found)


def _each(node: _Node, name: str) -> Iterator[_Node]:
    members = find(node.value, name) if isinstance(node.value, dict) else ABSENT
    keyed = isinstance(members, dict) and all(isinstance(member, dict) for member in members.values())
    if not keyed and not isinstance(members, list):
        raise _misfit(f"each:{name}", node.value)
    around = {key: value for key, value in node.value.items() if key != name}
    if keyed:
        yield from (
            node.child(member, around, _key=key, _i=place) for place, (key, member) in enumerate(members.items())
        )
    else:
        yield from (node.child(member, around, _i=place) for place, member in enumerate(members))


def _each_if(node: _Node, name: str) -> Iterator[_Node]:
    there = isinstance(node.value, dict) and find(node.value, name) not in (ABSENT, None)
    yield from _each(node, name) if there else iter([node])


def _split(node: _Node, name: str) -> Iterator[_Node]:
    names = name.split(",")
    missing = [part for part in names if not isinstance(node.value, dict) or part not in node.value]
    if missing:
        raise ValueError(f"unnest = 'split:{name}': no {missing[0]!r} in {_outline(node.value)}")
    yield from (node.child(node.value[part], node.value, _key=part, _i=place) for place, part in enumerate(names))


_KINDS = {
    "values": _values,
    "lists": _lists,
    "flatten": _flatten,
    "get": _get,
    "each": _each,
    "each?": _each_if,
    "split": _split,
}
"""What each kind of step does to a node."""


def _outline(value: Any) -> str:
    """A node as a message shows it."""
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(repr, list(value)[:6]))}"
    return f"a {type(value).__name__}"
