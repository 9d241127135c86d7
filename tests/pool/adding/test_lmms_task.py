"""lmms-eval's task files: read safely, functions named and never run, fields taken over, the rest guessed."""

from pathlib import Path
from typing import Any

import pytest

from benchcheck.config import from_table
from benchcheck.errors import InputError, SpecError
from benchcheck.pool.adding.guess_names import Sample
from benchcheck.pool.adding.lmms_spec import from_task_alone, of_task
from benchcheck.pool.adding.lmms_task import LmmsTask, load_task
from benchcheck.pool.specs import Spec

TASK = """
dataset_path: owner/some-bench
dataset_name: mc
task: some_bench
test_split: validation
dataset_kwargs:
  token: True
  cache_dir: some_bench
  video: True
doc_to_visual: !function utils.some_doc_to_visual
doc_to_text: "{{ question }}"
doc_to_target: "answer"
doc_to_choice: "{{[A, B, doc.C]}}"
"""


def load(text: str, **files: str) -> LmmsTask:
    return load_task(text, "task.yaml", files.__getitem__)


def test_what_a_task_gives_away() -> None:
    task = load(TASK)
    assert (task.name, task.hub, task.config, task.split) == ("some_bench", "owner/some-bench", "mc", "validation")
    assert task.files == ("mc/validation-*.parquet",)
    assert task.mapping == {"question": "question", "gold": "answer", "options": "A,B,C"}
    assert task.functions == {"doc_to_visual": "utils.some_doc_to_visual"}
    assert task.notes[0] == "doc_to_visual is decided by utils.some_doc_to_visual, which is not run"
    where = "dataset_kwargs.cache_dir: lmms-eval keeps the videos in 'some_bench', below its cache"
    assert task.notes[1:] == [where]


def test_functions_are_named_and_never_run(tmp_path: Path) -> None:
    task = load("dataset_path: o/b\ndoc_to_text: !function utils.doc_to_text\ndoc_to_target: !function utils.target\n")
    assert task.functions == {"doc_to_text": "utils.doc_to_text", "doc_to_target": "utils.target"}
    assert task.notes[0] == "doc_to_text is decided by utils.doc_to_text, which is not run"


@pytest.mark.parametrize(
    ("key", "value", "mapping"),
    [
        ("doc_to_text", '"{{question}}\\nAnswer with the letter."', {"question": "question"}),
        ("doc_to_text", '"{{doc.qa.question}}"', {"question": "qa.question"}),
        ("doc_to_text", "\"{{doc['Question 1']}}\"", {"question": "Question 1"}),
        ("doc_to_text", '"{{question}} {{options}}"', {}),
        ("doc_to_text", '"{% if x %}{{question}}{% endif %}"', {}),
        ("doc_to_text", '"{{question.strip()}}"', {}),
        ("doc_to_text", '"Describe the video."', {}),
        ("doc_to_text", "12", {}),
        ("doc_to_target", '"{{answer}}"', {"gold": "answer"}),
        ("doc_to_target", '"The answer is {{answer}}"', {}),
        ("doc_to_choice", "[yes, no]", {"options": "const:yes,no"}),
        ("doc_to_choice", '["A", "B"]', {"options": "const:A,B"}),
        ("doc_to_choice", "choices", {"options": "choices"}),
        ("doc_to_choice", "[{a: 1}]", {}),
    ],
)
def test_templates(key: str, value: str, mapping: dict[str, str]) -> None:
    task = load(f"dataset_path: o/b\n{key}: {value}\n")
    assert task.mapping == mapping
    assert bool(task.functions) is not bool(mapping)


def test_includes_lie_below_what_a_task_says_itself() -> None:
    base = "dataset_path: owner/base\ntest_split: test\ndoc_to_target: answer\n"
    task = load("include: base\ntest_split: dev\n", base=base)
    assert (task.hub, task.split, task.mapping) == ("owner/base", "dev", {"gold": "answer"})
    assert load("include: [a, b]\n", a="dataset_path: o/a\n", b="dataset_path: o/b\n").hub == "o/b"


def test_data_in_files_are_no_hub_dataset() -> None:
    task = load("dataset_path: json\ndataset_kwargs: none\n")
    assert (task.hub, task.files, task.arguments) == ("", ("data/test-*.parquet",), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", r"task.yaml: not readable as YAML: .*Cure: give a task file of lmms-eval"),
        ("- a\n- b\n", r"task.yaml: a list where a task's keys are wanted"),
        ("a: 1\n", r"task.yaml: no lmms-eval task: none of dataset_path, doc_to_text, doc_to_target, doc_to_choice"),
        ("include: a\n", r"task.yaml: include a: include a.*files include each other over 5 deep"),
        ("a: !!python/object/apply:os.system [ls]\n", r"not readable as YAML: could not determine a constructor"),
        ("[" * 5000, r"task.yaml: not readable as YAML"),
        ("a: " + "x" * (1 << 20), r"task.yaml: over 1 MB"),
    ],
    ids=range(7),
)
def test_a_wrong_file_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(text, a="include: a\n")


def test_fields_that_the_data_lack_are_guessed() -> None:
    task = load("dataset_path: o/b\ndoc_to_text: '{{query}}'\ndoc_to_target: answer\ndoc_to_choice: [yes, no]\n")
    assert of_task(task, Sample([{"question": "Who?", "answer": "yes"}])) == {
        "gold": "answer",
        "options": "const:yes,no",
    }
    assert task.functions == {}
    assert task.notes == ["question: the task names 'query', which these data lack"]


def spec_of(task: LmmsTask, **given: str) -> dict[str, Any]:
    made = from_task_alone(task, given, "some_bench")
    assert made.doubts == []
    from_table(Spec, made.table, "guessed", SpecError)
    return made.table


def test_a_task_alone_that_says_everything() -> None:
    assert spec_of(load(TASK)) == {
        "bench": "some_bench",
        "question": "question",
        "options": {"kind": "columns", "fields": ["A", "B", "C"]},
        "gold": {"kind": "auto", "field": "answer"},
        "video": {"member": "video?"},
        "source": {"hub": "owner/some-bench", "files": ["mc/validation-*.parquet"]},
    }


def test_a_task_alone_with_what_a_user_says() -> None:
    task = load("dataset_path: json\ndoc_to_text: '{{question}}'\n")
    table = spec_of(task, options="choices", gold="answer:index1", video="clip", id="qid", start="s", end="e")
    assert table["options"] == {"kind": "auto", "field": "choices"}
    assert table["gold"] == {"kind": "index", "field": "answer", "base": 1}
    assert table["video"] == {"member": "clip", "start": "s", "end": "e"}
    assert "source" not in table
    assert spec_of(task, options="const:yes,no", gold="answer")["options"] == {"kind": "const", "values": ["yes", "no"]}


@pytest.mark.parametrize(
    ("options", "gold", "declared"),
    [
        ("embedded", "answer:letter", ({"kind": "embedded"}, {"kind": "letter", "field": "answer"})),
        (
            "embedded:text",
            "answer:index",
            ({"kind": "embedded", "field": "text"}, {"kind": "index", "field": "answer"}),
        ),
        (
            "pair:caption,foils",
            "first",
            ({"kind": "pair", "gold_field": "caption", "others": ["foils"], "shuffle": True}, {"kind": "first"}),
        ),
        ("none", "none", ({"kind": "none"}, {"kind": "none"})),
        (
            "choices:choice",
            "answer:per_choice",
            ({"kind": "list", "field": "choices", "member": "choice"}, {"kind": "per_choice", "field": "answer"}),
        ),
    ],
)
def test_a_task_alone_is_mapped_as_data_are(options: str, gold: str, declared: tuple[Any, Any]) -> None:
    table = spec_of(load("dataset_path: o/b\ndoc_to_text: question\n"), options=options, gold=gold)
    assert (table["options"], table["gold"]) == declared


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": "opt_*"}, r"--map options=opt_\*: kind = 'columns' needs fields with two names or more"),
        ({"options": "const:yes"}, "--map options=const:yes: kind = 'const' needs values with two texts or more"),
        ({"options": "choices", "gold": "answer:word"}, "--map gold=answer:word: kind = 'word' is not allowed"),
    ],
)
def test_a_task_alone_refuses_what_no_kind_reads(given: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        from_task_alone(load("dataset_path: o/b\ndoc_to_text: question\n"), given, "b")


def test_a_task_alone_whose_functions_decide() -> None:
    made = from_task_alone(load("dataset_path: o/b\ndoc_to_text: !function utils.text\n"), {}, "b")
    assert [(doubt.key, doubt.why.partition(";")[0]) for doubt in made.doubts] == [
        ("question", "utils.text (doc_to_text) decides it and is not run"),
        ("options", "utils.text (doc_to_text) decides it and is not run"),
        ("gold", "the task does not say"),
    ]
    assert made.notes == []
