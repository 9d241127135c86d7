"""How unknown documents are nested: the `unnest` steps that lead to records, and tables without a header. Pure."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from benchcheck.pool.adding.guess_gold import is_gold_name
from benchcheck.pool.adding.guess_names import CATEGORY, ID, QUESTION, VIDEO, Found, named, placed
from benchcheck.pool.fields import ABSENT, find, text_of
from benchcheck.pool.reading.nesting import unnest

__all__ = ["header_doubt", "steps_to_records"]

LOOKED_AT = 200
"""Nodes of a level that are looked at: what the first show, the others have (or it is an issue of theirs)."""
_DEEPEST = 6
_ASKING = frozenset({"question", "options", "choices", "candidates", "query", "q", "mcq_test"})
_DATA = re.compile(r"[\[(]?[\d.:,\s-]+[\])]?|.*\?|https?://.*|\S+\.(?:mp4|webm|avi|mkv)", re.IGNORECASE)
"""What no header says: numbers, time spans, questions, URLs, files of videos."""


def steps_to_records(document: Any, lines: bool = False) -> tuple[Found, ...]:
    """Return the steps from a document (or, with `lines`, a list of those of its lines) to records that ask something.

    None where the reader finds them by itself: a list of records, a dict of id to record, one list below one key.
    """
    roots, found = list(document) if lines else [document], list[Found]()
    nodes = roots
    while len(found) < _DEEPEST:
        step = _step(nodes, top=not found and not lines)
        if step is None:
            break
        found.append(step)
        nodes = list(islice(unnest(roots, [step.value for step in found]), LOOKED_AT))
    kinds = [step.value.partition(":")[0] for step in found]
    alone = isinstance(document, Mapping) and len(document) == 1
    by_itself = (["flatten"], ["values"], ["get", "flatten"] if alone else None)
    return () if kinds in by_itself and not lines else tuple(found)


def _step(nodes: Sequence[Any], top: bool) -> Found | None:
    """The next step into these nodes, None where they are records."""
    if nodes and all(isinstance(node, list) for node in nodes):
        return Found("flatten", "the members of a list")
    if not nodes or not all(isinstance(node, Mapping) for node in nodes) or _asks(nodes):
        return None
    return (_wrapper(nodes[0]) if top else None) or _below(nodes)


def _asks(nodes: Sequence[Mapping[str, Any]]) -> bool:
    """Whether at least half of the nodes have a field of their own that is called as questions or options are."""
    return 2 * sum(bool(named([*node], QUESTION)) or bool(_ASKING & _lower(node)) for node in nodes) >= len(nodes)


def _lower(node: Mapping[str, Any]) -> set[str]:
    """Fields that hold texts or options, not records that ask themselves."""
    return {key.lower() for key, value in node.items() if not _are_records(value)}


def _are_records(value: Any) -> bool:
    """Whether a value is a list or a dict of records that ask something, or leads to some."""
    parts = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []
    parts = [part for part in parts[:20] if isinstance(part, Mapping)]
    return bool(parts) and _asks(parts)


def _wrapper(node: Mapping[str, Any]) -> Found | None:
    """The one key of a whole document below which the records are, with a version or a licence beside it."""
    holding = [key for key, value in node.items() if isinstance(value, list | Mapping) and _leads(value)]
    rest = [value for key, value in node.items() if key not in holding]
    plain_rest = all(not isinstance(value, Mapping | list) or not _leads(value) for value in rest)
    if len(holding) == 1 and len(node) <= 10 and plain_rest and not _asks([{holding[0]: None}]):
        value = node[holding[0]]
        if isinstance(value, list) or not _asks([value]):
            return Found(f"get:{holding[0]}", f"the records stand below the key {holding[0]!r}")
    return None


def _leads(value: Any, depth: int = 0) -> bool:
    """Whether records that ask something stand somewhere below."""
    if depth > _DEEPEST or not isinstance(value, list | Mapping):
        return False
    if isinstance(value, Mapping) and _asks([value]):
        return True
    parts = list(value.values()) if isinstance(value, Mapping) else value
    return any(_leads(part, depth + 1) for part in parts[:3])


def _below(nodes: Sequence[Mapping[str, Any]]) -> Found | None:
    """A step below nodes that ask nothing themselves."""
    own = [{key: value for key, value in node.items() if not key.startswith("_")} for node in nodes]
    leading = [key for key, value in own[0].items() if _leads(value)]
    members = [value for node in own for value in node.values()]
    if not leading:
        return None
    if all(isinstance(value, list) for value in members) and len({key for node in own for key in node}) > 1:
        return Found("lists", "lists of records by a key, which becomes _dim")
    if placed(sum(isinstance(value, Mapping) and _leads(value) for value in members), len(members)):
        return _split(own, leading) if len(own) > 1 and len(leading) > 1 else _keyed(own, leading[0])
    children = [key for key in leading if _are_records(own[0][key])]
    if children:
        return _child(own, next((key for key in children if _everywhere(own, key)), children[0]))
    deep = _deep(own, leading[0]) if len(leading) == 1 else ""
    return _child(own, deep) if deep else _split(own, leading)


def _keyed(nodes: Sequence[Mapping[str, Any]], key: str) -> Found | None:
    """A dict of key to record; of several nodes with one key each, what stands below that key when it is records."""
    if len(nodes) > 1 and all(len(node) == 1 for node in nodes) and _everywhere(nodes, key):
        return _child(nodes, key) if _are_records(nodes[0][key]) else None
    return Found("values", "a dict of key to record; the key becomes _key")


def _everywhere(nodes: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(find(node, key) is not ABSENT for node in nodes)


def _deep(nodes: Sequence[Mapping[str, Any]], key: str) -> str:
    """The path to the one list of records in a dict that every node has, such as `annotations.qa`; empty if none."""
    inner = nodes[0][key]
    lists = [name for name, part in inner.items() if isinstance(part, list)] if isinstance(inner, Mapping) else []
    path = f"{key}.{lists[0]}" if len(lists) == 1 and _are_records(inner[lists[0]]) else ""
    return path if path and all(isinstance(find(node, path), list) for node in nodes) else ""


def _child(nodes: Sequence[Mapping[str, Any]], key: str) -> Found:
    """The child list (or dict of records) of a record, such as the questions of a video."""
    step = "each" if _everywhere(nodes, key) else "each?"
    return Found(f"{step}:{key}", f"one record for each of {key!r}; the fields around it stay")


def _split(nodes: Sequence[Mapping[str, Any]], leading: Sequence[str]) -> Found | None:
    """Sub-records with a question each, as `basic` and `hallucination` of one pair, with other fields beside them."""
    asking = [key for key in leading if all(isinstance(node.get(key), Mapping) for node in nodes)]
    if len(asking) > 1 and all(_asks([node[key] for node in nodes]) for key in asking):
        return Found(f"split:{','.join(asking)}", f"each record asks {len(asking)} times: {', '.join(asking)}")
    return Found("values", "dicts of key to record; the key becomes _key") if not asking else None


def header_doubt(names: Sequence[str], second: Sequence[Any]) -> str:
    """Return a header for a table whose first row looks like data, as a user would have to name it; empty if not.

    No name is one that a benchmark uses, and one at least is a number, a time span, a question or a file.
    """
    known = named(names, (*QUESTION, *VIDEO, *ID, *CATEGORY)) or any(map(is_gold_name, names))
    if known or not any(_DATA.fullmatch(name.strip()) for name in names if name.strip()):
        return ""
    return ",".join(_header_of(number, name, second) for number, name in enumerate(names, 1))


def _header_of(number: int, name: str, second: Sequence[Any]) -> str:
    """A name for a column without one, where its first cells show what it is."""
    cells = [name, text_of(second[number - 1]) if number <= len(second) else ""]
    if all(cell.rstrip().endswith("?") for cell in cells):
        return "question"
    if all(re.fullmatch(r"\[\s*[\d.:]+\s*[:,-]\s*[\d.:]+\s*\]", cell) for cell in cells):
        return "ts"
    if number == 1 and all(re.fullmatch(r"\S{5,}", cell) for cell in cells):
        return "video"
    return f"column{number}"
