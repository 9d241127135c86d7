"""Specs from lmms-eval's task files: what they give away, with data beside them or alone. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from benchcheck.errors import SpecError
from benchcheck.pool.adding.guess import Guess, put_fields, put_gold
from benchcheck.pool.adding.guess_gold import gold_named
from benchcheck.pool.adding.guess_names import Doubt, Sample
from benchcheck.pool.adding.guess_options import options_given
from benchcheck.pool.adding.lmms_task import LmmsTask
from benchcheck.pool.gold import Gold

__all__ = ["from_task_alone", "note_task", "of_task"]

_DECIDES = {"question": ("doc_to_text",), "options": ("doc_to_choice", "doc_to_text"), "gold": ("doc_to_target",)}


def of_task(task: LmmsTask, sample: Sample) -> dict[str, str]:
    """Return what a task gives away, where the data have it; a field that they lack is noted with the functions."""
    found = {}
    for key, value in task.mapping.items():
        if value.startswith("const:") or all(sample.has(name) for name in value.split(",")):
            found[key] = value
        else:
            task.lacking[key] = value
    return found


def note_task(made: Guess, task: LmmsTask) -> None:
    """Say what the task decides by code and where its data lie; its own word is not the user's."""
    made.notes += task.notes
    if task.hub:
        made.put("source.hub", task.hub, "dataset_path of the task")
        made.put("source.files", list(task.files), "as datasets lays them out; check it on the hub")


def from_task_alone(task: LmmsTask, given: Mapping[str, str], bench: str) -> Guess:
    """Guess a spec from a task file without data: what it gives away or the user says; the rest is open."""
    mapping = {**task.mapping, **given}
    made = Guess()
    made.put("bench", bench)
    for key in ("question", "options", "gold"):
        if key in mapping:
            _put_untried(made, key, mapping[key], "as you say" if key in given else "as the task says; not tried")
        else:
            made.doubts.append(Doubt(key, _who_decides(task, key), ()))
    for key in ("id", "category", "duration", "subtitles", "group"):
        if given.get(key):
            made.put(key, given[key], "as you say")
    said = "as you say" if "video" in given else "a usual name; not tried"
    made.put("video.member", given.get("video", "video?"), said)
    for key in ("start", "end", "window"):
        if given.get(key):
            made.put(f"video.{key}", given[key], "as you say")
    told = {name for doubt in made.doubts for name in _DECIDES[doubt.key]}
    note_task(made, replace(task, functions={key: by for key, by in task.functions.items() if key not in told}))
    return made


def _who_decides(task: LmmsTask, key: str) -> str:
    """Why a task does not give a part away, and what helps."""
    decided = next((name for name in _DECIDES[key] if name in task.functions), "")
    if not decided:
        return "the task does not say; with a data file beside it, it is guessed"
    return f"{task.functions[decided]} ({decided}) decides it and is not run; with a data file it is guessed"


def _put_untried(made: Guess, key: str, value: str, reason: str) -> None:
    """Put a mapping in that no record was tried on: a field alone is read as what its values turn out to be.

    Raises:
        SpecError: it names a kind that there is not, or a kind without what it needs.
    """
    if key == "question":
        made.put("question", value, reason)
        return
    try:
        if key == "gold":
            put_gold(made, gold_named(value) or _field_alone(value), reason)
            return
        options = options_given(Sample([]), value).options
    except ValueError as fault:
        raise SpecError(f"--map {key}={value}: {fault}") from None
    alone = options.kind == "list" and not options.member
    put_fields(made, "options", replace(options, kind="auto") if alone else options, reason)


def _field_alone(value: str) -> Gold:
    """A gold without a kind that says all; an index counts from 0 until the build says that it cannot."""
    name, colon, kind = value.rpartition(":")
    return Gold(kind=kind, field=name) if colon else Gold(kind="auto", field=value)
