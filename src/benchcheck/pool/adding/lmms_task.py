"""lmms-eval's task files: what their YAML says of a benchmark's data. Pure; nothing in them is ever run.

A task names a hub dataset and how a record becomes a prompt: by a field, by a Jinja template, or by a Python function
(`!function utils.doc_to_text`). Fields are taken over. What a function decides is named, and is guessed from the data.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchcheck.errors import InputError

__all__ = ["Function", "LmmsTask", "load_task"]

_DEEPEST = 5
_LONGEST = 1 << 20
_PROMPT = {"doc_to_text": "question", "doc_to_target": "gold", "doc_to_choice": "options"}
"""Keys of a task that say how a record is asked, each with what it is here."""
_PLACE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_NAME = re.compile(r"(?:doc\.)?([A-Za-z_][\w-]*(?:\.\w+)*)|doc\[['\"]([^'\"]+)['\"]\]")
_TEXTS = re.compile(r"\[\s*((?:doc\.)?[A-Za-z_]\w*(?:\s*,\s*(?:doc\.)?[A-Za-z_]\w*)+)\s*\]")
_FILES = ("json", "csv", "parquet", "arrow", "text", "imagefolder")
"""What `dataset_path` says where the data are files, not a hub dataset."""


@dataclass(frozen=True, slots=True)
class Function:
    """A `!function module.name` of a task file, named and never called."""

    name: str


@dataclass(slots=True)
class LmmsTask:
    """What a task file says. `mapping` is what it gives away as `--map` has it, `functions` what code decides."""

    name: str = ""
    hub: str = ""
    config: str = ""
    split: str = ""
    mapping: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    """What the task names and the data beside it do not have."""

    @property
    def files(self) -> tuple[str, ...]:
        """Patterns of its files in the hub dataset, as `datasets` lays them out."""
        return (f"{self.config or 'data'}/{self.split or 'test'}-*.parquet",)

    @property
    def notes(self) -> list[str]:
        """What a user should know of it, a line each."""
        said = [f"{key} is decided by {name}, which is not run" for key, name in self.functions.items()]
        said += [f"{key}: the task names {value!r}, which these data lack" for key, value in self.lacking.items()]
        if folder := self.arguments.get("cache_dir"):
            said.append(f"dataset_kwargs.cache_dir: lmms-eval keeps the videos in {str(folder)!r}, below its cache")
        return said


def load_task(text: str, where: str, read: Callable[[str], str]) -> LmmsTask:
    """Read a task file; `read` gives the text of one that it includes, by the path written there.

    Raises:
        InputError: no YAML, no task, or files that include each other; one line with the file.
    """
    table = _merged(text, where, read, 0)
    if "dataset_path" not in table and not _PROMPT.keys() & table.keys():
        asked = ", ".join(("dataset_path", *_PROMPT))
        raise InputError(f"{where}: no lmms-eval task: none of {asked} is in it. Cure: give the task's own .yaml file")
    path = str(table.get("dataset_path") or "")
    task = LmmsTask(
        name=str(table.get("task") or ""),
        hub=path if re.fullmatch(r"[\w.-]+/[\w.-]+", path) and path not in _FILES else "",
        config=str(table.get("dataset_name") or ""),
        split=str(table.get("test_split") or table.get("validation_split") or ""),
        arguments=dict(table["dataset_kwargs"]) if isinstance(table.get("dataset_kwargs"), Mapping) else {},
    )
    for key, use in _PROMPT.items():
        if key in table:
            _take(task, key, use, table[key])
    if isinstance(table.get("doc_to_visual"), Function):
        task.functions["doc_to_visual"] = table["doc_to_visual"].name
    return task


def _merged(text: str, where: str, read: Callable[[str], str], depth: int) -> dict[str, Any]:
    """A task's table over those that it includes."""
    if depth > _DEEPEST:
        raise InputError(f"{where}: files include each other over {_DEEPEST} deep. Cure: mend include")
    table = _parsed(text, where)
    included = table.pop("include", None) or []
    found: dict[str, Any] = {}
    for name in included if isinstance(included, list) else [included]:
        found |= _merged(read(str(name)), f"{where}: include {name}", read, depth + 1)
    return found | table


def _parsed(text: str, where: str) -> dict[str, Any]:
    """The table of one file, by PyYAML's safe loader, which builds texts, numbers, lists and dicts and nothing else."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
        """The safe loader that knows the tag of functions, and keeps their names."""

    Loader.add_constructor("!function", lambda loader, node: Function(str(loader.construct_scalar(node))))
    if len(text) > _LONGEST:
        raise InputError(f"{where}: over {_LONGEST >> 20} MB: no task file. Cure: give the task's own .yaml file")
    try:
        table = yaml.load(text, Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as reason:
        what = " ".join(str(reason).split())[:200]
        raise InputError(f"{where}: not readable as YAML: {what}. Cure: give a task file of lmms-eval") from None
    if not isinstance(table, dict):
        raise InputError(f"{where}: a {type(table).__name__} where a task's keys are wanted. Cure: give a task file")
    return {str(key): value for key, value in table.items()}


def _take(task: LmmsTask, key: str, use: str, value: Any) -> None:
    """Take over a field, or note who decides."""
    if isinstance(value, Function):
        task.functions[key] = value.name
    elif use == "options" and isinstance(value, list) and all(isinstance(part, str | int | bool) for part in value):
        task.mapping[use] = f"const:{','.join(map(_word, value))}"
    elif isinstance(value, str) and (expression := _expression(value, use)):
        task.mapping[use] = expression
    else:
        task.functions[key] = f"the template {' '.join(str(value).split())[:60]!r}"


def _word(value: str | int | bool) -> str:
    """An option as YAML 1.1 reads it back: `yes` and `no` without quotes have become flags."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _expression(text: str, use: str) -> str:
    """The one field that a template shows, or the columns of a list in it; empty when code decides."""
    if "{%" in text:
        return ""
    places = _PLACE.findall(text)
    if not places:
        return text.strip() if re.fullmatch(r"[A-Za-z_][\w-]*", text.strip()) else ""
    if use == "options" and len(places) == 1 and (match := _TEXTS.fullmatch(places[0])):
        return ",".join(part.strip().removeprefix("doc.") for part in match.group(1).split(","))
    names = [_NAME.fullmatch(place) for place in places]
    found = [match.group(1) or match.group(2) for match in names if match]
    around = _PLACE.sub("", text).strip()
    alone = len(places) == 1 and len(found) == 1 and (use == "question" or not around)
    return found[0] if alone else ""
