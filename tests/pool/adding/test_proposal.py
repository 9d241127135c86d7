"""`pool add`: files of every kind become a spec, written whole or not at all; what is wrong is one line."""

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import typer

from benchcheck.errors import ConfigError, InputError, StudyError, UsageError
from benchcheck.pool.adding import proposal, samples
from benchcheck.pool.adding.proposal import Asked, Proposal, add_to_study, propose, write_spec
from benchcheck.pool.reading.readers import Layout, read_records
from benchcheck.pool.specs import load_spec
from benchcheck.pool.together import items_of
from benchcheck.study import Study
from studies import Run

TEXTS = ["a red ball", "a cup", "two dogs"]


def rows(count: int = 6) -> list[dict[str, Any]]:
    return [
        {"uid": f"u{n}", "question": f"What is at place {n}?", "options": TEXTS, "answer": n % 3, "video": f"v{n}.mp4"}
        for n in range(count)
    ]


def write(path: Path, document: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.suffix == ".jsonl"
    text = (
        "\n".join(map(json.dumps, document))
        if lines
        else document
        if isinstance(document, str)
        else json.dumps(document)
    )
    path.write_text(text, encoding="utf-8")
    return str(path)


def proposed(*files: str, **given: str) -> Proposal:
    return propose(Asked(files=files, given=given))


def test_the_spec_that_is_written_reads_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.jsonl", rows())
    found = proposed(file)
    write_spec(found, tmp_path / "mine.toml")
    spec = load_spec("mine.toml", tmp_path)
    assert spec == found.spec
    items = list(items_of(spec, read_records(Path(file), Layout(spec.reader, spec.header, spec.unnest))))
    assert [item.options[item.gold or 0] for item in items] == TEXTS * 2
    assert (found.records, found.whole, found.mcq, found.options) == (6, True, 6, {3: 6})


@pytest.mark.parametrize("kind", ["json", "jsonl", "lines.json", "csv", "tsv", "tabs.csv", "parquet", "zip", "gz"])
def test_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"mine.{kind}"
    table = [{**row, **{f"a{n}": text for n, text in enumerate(TEXTS)}} for row in rows()]
    names = ["uid", "question", "a0", "a1", "a2", "answer", "video"]
    mark = "," if kind == "csv" else "\t"
    cells = "\n".join([mark.join(names), *(mark.join(str(row[name]) for name in names) for row in table)])
    if kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows()), path)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/mine.json", json.dumps(rows()))
    elif kind == "gz":
        path = tmp_path / "mine.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows())).encode()))
    else:
        texts = {"json": json.dumps(rows()), "csv": cells, "tsv": cells, "tabs.csv": cells}
        path.write_text(texts.get(kind, "\n".join(map(json.dumps, rows()))), encoding="utf-8")
    found = proposed(str(path))
    assert (found.doubts, found.mcq, found.bench) == ([], 6, "mine")
    assert found.guess.table.get("reader") == ("tsv" if kind == "tabs.csv" else None)


def test_lines_that_are_lists_have_their_names_in_the_first(tmp_path: Path) -> None:
    table = [list(rows()[0]), *(list(row.values()) for row in rows())]
    found = proposed(write(tmp_path / "mine.jsonl", table))
    assert (found.guess.table["reader"], found.mcq) == ("jsonl_rows", 6)


def test_a_sample_is_taken_from_every_file(tmp_path: Path) -> None:
    for name in ("colour", "count"):
        write(tmp_path / "set" / f"{name}.jsonl", rows(600))
    found = proposed(str(tmp_path / "set" / "*.jsonl"))
    assert (found.records, found.whole, found.bench) == (1000, False, "set")
    assert found.guess.table["category"] == "_file"
    assert [checked.record.file.stem for checked in found.shown] == ["colour", "colour", "count"]


def test_files_of_one_name_have_their_folder_s_name_and_are_no_kinds(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / "set" / name / "qa.json", rows(6))
    found = proposed(str(tmp_path / "set"))
    assert (found.bench, "category" in found.guess.table) == ("set", False)


@pytest.mark.parametrize(
    ("name", "bench"), [("nice/val.json", "nice_val"), ("x/my set.v2.json", "my_set"), ("ü.json", "mybench")]
)
def test_a_benchmark_is_called_after_its_file(tmp_path: Path, name: str, bench: str) -> None:
    assert proposed(write(tmp_path / name, rows())).bench == bench


def test_the_three_items_that_say_most(tmp_path: Path) -> None:
    records = rows(9)
    records[4]["options"] = ["a red ball", "a red ball", "a cup"]
    records[6]["options"] = ["x", "y"]
    records[6]["answer"] = 1
    records[8]["answer"] = 7
    found = proposed(write(tmp_path / "mine.json", records))
    assert [checked.item.source_id for checked in found.shown] == ["u0", "u6", "u8"]
    assert found.issues["gold_out_of_range"] == 1
    assert found.examples["gold_out_of_range"].startswith("record 9: gold 7")


def test_texts_split_at_line_breaks_go_back(tmp_path: Path) -> None:
    records = rows()
    for number, record in enumerate(records):
        record["options"] = ["A. one", "B. two", "C. three"]
        record["answer"] = "ABC"[number % 3]
    records[3]["options"] = ["A. one", "B. two", "and a half", "C. three"]
    found = proposed(write(tmp_path / "mine.json", records))
    assert found.guess.table["options"]["rejoin"] is True
    assert found.mcq == 6


def test_a_question_that_tells_the_answer_is_doubted_unless_it_is_the_users(tmp_path: Path) -> None:
    records = rows()
    for record in records:
        record["question"] += f" Answer: {TEXTS[record['answer']]}"
    file = write(tmp_path / "mine.json", records)
    (doubt,) = proposed(file).doubts
    assert doubt.key == "question"
    assert doubt.why == "it holds the words of the right option, and of no other, in 6 of 6 items"
    said = proposed(file, question="question")
    assert (said.doubts, said.mcq, said.issues["answer_in_question"]) == ([], 6, 6)


def test_one_place_that_is_always_right_is_noted(tmp_path: Path) -> None:
    records = [{**record, "answer": "B"} for record in rows(20)]
    notes = proposed(write(tmp_path / "mine.json", records)).guess.notes
    assert notes == ["B is right in all 20 items. Cure: shuffle = true below [options] draws an order for each"]
    assert proposed(write(tmp_path / "few.json", records[1:])).guess.notes == []
    pairs = [{"question": f"What is at place {n}?", "video": "v", "correct_answer": f"x {n}"} for n in range(20)]
    for number, record in enumerate(pairs):
        record |= {"wrong_answer_1": f"y {number}", "wrong_answer_2": f"z {number}"}
    found = proposed(write(tmp_path / "pairs.json", pairs))
    assert found.guess.table["options"]["shuffle"] is True
    assert found.guess.notes == []


def test_nested_documents(tmp_path: Path) -> None:
    film = [{"film": "f", "video_path": "f.mp4", "qa": rows(2)}, {"film": "g", "video_path": "g.mp4", "qa": rows(1)}]
    found = proposed(write(tmp_path / "mine.json", film))
    assert (found.guess.table["unnest"], found.records) == (["flatten", "each:qa"], 3)
    assert proposed(write(tmp_path / "mine.jsonl", film)).guess.table["unnest"] == ["each:qa"]
    found = proposed(write(tmp_path / "mine.json", film), unnest="flatten, each:qa")
    assert (found.guess.reasons["unnest"], found.records) == ("as you say", 3)


def test_nested_documents_that_are_not_looked_at_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    films = {f"f{n}": {"length": 3, "qa": rows(2)} for n in range(3)}
    monkeypatch.setattr(samples, "MAX_WHOLE", 10)
    found = proposed(write(tmp_path / "mine.json", films))
    assert (found.guess.table["unnest"], found.records) == (["values", "each:qa"], 6)
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(list(films.values())))
    found = proposed(str(tmp_path / "mine.zip"))
    assert (found.guess.table["unnest"], found.records) == (["flatten", "each:qa"], 6)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"a": 1.5}', r"a.json: no records with questions: .*Cure: --map unnest=get:KEY"),
        (
            "a.csv",
            "v1.mp4,12,Is it so?\nv2.mp4,13,Is it not?\n",
            r"first row looks like data.*--header video,column2,question",
        ),
        ("a.csv", "", r"a.csv: the file is empty"),
        ("a.csv", 'question,"a\n', r"a.csv: "),
        ("a.json", '[{"a": 1}', r"a.json: .*not valid JSON"),
        ("a.yaml", "a: 1", r"a.yaml: no lmms-eval task"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        proposed(write(tmp_path / name, text))
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.csv: no such file"):
        proposed(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match=r"none.yaml: not readable: No such file"):
        proposed(str(tmp_path / "none.yaml"))
    (tmp_path / "odd.yaml").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"odd.yaml: not readable: not UTF-8"):
        proposed(str(tmp_path / "odd.yaml"))
    with pytest.raises(UsageError, match=r"b.yaml: a second task file"):
        proposed("a.yaml", "b.yaml")
    with pytest.raises(UsageError, match=r"--bench a/b: not a name"):
        propose(Asked(files=(write(tmp_path / "a.json", rows()),), bench="a/b"))


def test_a_table_without_a_header_is_read_with_the_one_that_is_given(tmp_path: Path) -> None:
    text = "".join(f"v{n}.mp4,[1.5:{n + 3}],red,blue,What colour is it?,green\n" for n in range(4))
    file = write(tmp_path / "mine.csv", text)
    found = propose(Asked(files=(file,), header=("video", "ts", "wrong1", "wrong2", "question", "right_answer")))
    assert found.guess.table["options"]["gold_field"] == "right_answer"
    assert found.guess.table["header"][0] == "video"
    assert [checked.item.options[checked.item.gold or 0] for checked in found.shown] == ["green"] * 3


def test_a_task_file_with_its_data(tmp_path: Path) -> None:
    task = "include: base\ndoc_to_text: '{{question}}'\ndoc_to_target: answer\ndoc_to_choice: !function utils.choices\n"
    write(tmp_path / "base", "dataset_path: owner/set\n")
    file = write(tmp_path / "mine.jsonl", rows())
    found = proposed(write(tmp_path / "task.yaml", task), file)
    assert found.guess.table["source"]["hub"] == "owner/set"
    assert found.bench == "mine"
    assert found.guess.reasons["question"] == "as the task says; filled in 6 of 6"
    assert found.guess.notes == ["doc_to_choice is decided by utils.choices, which is not run"]
    assert found.mcq == 6


def test_a_task_file_alone(tmp_path: Path) -> None:
    task = "task: Some Bench\ndataset_path: owner/set\ndoc_to_text: '{{question}}'\ndoc_to_target: answer\n"
    file = write(tmp_path / "task.yaml", task)
    assert [doubt.key for doubt in proposed(file).doubts] == ["options"]
    assert proposed(file, write(tmp_path / "test.jsonl", rows())).bench == "Some_Bench"
    found = proposed(file, options="choices")
    assert (found.bench, found.records) == ("Some_Bench", 0)
    assert "Not tried on any record." in found.text


# Into a study


def entry_of(study: Study) -> str:
    return (study.root / "benchcheck.toml").read_text(encoding="utf-8")


def test_an_entry_is_added_behind_what_is_there(study: Study, tmp_path: Path) -> None:
    config = study.root / "benchcheck.toml"
    config.write_text(entry_of(study).rstrip("\n") + "\n# a comment at the end", encoding="utf-8")
    before = entry_of(study)
    found = proposed(write(study.root / "in" / "mine.jsonl", rows()))
    add_to_study(found, study.root, study.root / "mine.toml")
    assert entry_of(study).startswith(before)
    source = Study.open(study.root).config.pool[-1]
    assert (source.spec, source.files, source.bench) == ("mine.toml", ("in/mine.jsonl",), "mine")
    outside = proposed(write(tmp_path / "other.jsonl", rows()))
    add_to_study(outside, study.root, tmp_path / "other.toml")
    assert Study.open(study.root).config.pool[-1].files == (str(tmp_path / "other.jsonl"),)


def test_a_name_that_is_taken_is_refused_and_nothing_is_written(study: Study) -> None:
    found = proposed(write(study.root / "mine.jsonl", rows()))
    add_to_study(found, study.root, study.root / "mine.toml")
    before = entry_of(study)
    with pytest.raises(ConfigError, match=r"a benchmark is called 'mine' already. Cure: --bench"):
        add_to_study(found, study.root, study.root / "again.toml")
    (study.root / "mine.toml").write_text("nothing = 1", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"called 'mine' already"):
        add_to_study(found, study.root, study.root / "again.toml")
    assert entry_of(study) == before
    assert not (study.root / "again.toml").exists()


def test_an_entry_whose_own_spec_is_wrong_is_no_reason_to_refuse_another(study: Study) -> None:
    (study.root / "wrong.toml").write_text("nothing = 1", encoding="utf-8")
    with (study.root / "benchcheck.toml").open("a", encoding="utf-8") as config:
        config.write('\n[[pool]]\nspec = "wrong.toml"\nfiles = ["mine.jsonl"]\n')
    add_to_study(proposed(write(study.root / "mine.jsonl", rows())), study.root, study.root / "mine.toml")
    assert [source.spec for source in Study.open(study.root).config.pool][-2:] == ["wrong.toml", "mine.toml"]


def test_a_file_is_not_written_over(study: Study) -> None:
    found = proposed(write(study.root / "mine.jsonl", rows()))
    (study.root / "mine.toml").write_text("mine", encoding="utf-8")
    before = entry_of(study)
    with pytest.raises(UsageError, match=r"mine.toml: this file is there already. Cure: --spec"):
        add_to_study(found, study.root, study.root / "mine.toml")
    assert ((study.root / "mine.toml").read_text(encoding="utf-8"), entry_of(study)) == ("mine", before)
    add_to_study(found, study.root, study.root / "mine.toml", force=True)
    assert (study.root / "mine.toml").read_text(encoding="utf-8") == found.text


def test_a_pool_that_is_listed_inline_is_left_alone(study: Study) -> None:
    config = study.root / "benchcheck.toml"
    found = proposed(write(study.root / "mine.jsonl", rows()))
    config.write_text("pool = []\n" + entry_of(study), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"no entry can be added at its end .*add it by hand: spec = \"mine.toml\""):
        add_to_study(found, study.root, study.root / "mine.toml")
    assert not (study.root / "mine.toml").exists()


@pytest.mark.parametrize("before", [None, b"what was there"])
def test_both_files_or_neither(study: Study, monkeypatch: pytest.MonkeyPatch, before: bytes | None) -> None:
    found = proposed(write(study.root / "mine.jsonl", rows()))
    spec, config, publish = study.root / "mine.toml", entry_of(study), proposal.publish
    if before:
        spec.write_bytes(before)

    def full(path: Path) -> Any:
        if path.name == "benchcheck.toml":
            raise StudyError(f"{path}: the disk is full")
        return publish(path)

    monkeypatch.setattr(proposal, "publish", full)
    with pytest.raises(StudyError, match="the disk is full"):
        add_to_study(found, study.root, spec, force=True)
    assert (spec.read_bytes() if spec.exists() else None) == before
    assert entry_of(study) == config


# The command


def test_the_command_shows_three_items_and_writes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = rows()
    records[1] |= {"start": 1.5, "end": 9}
    records[2]["options"] = ["a red ball", "a red ball", "a cup"]
    records[3] |= {"answer": 9, "question": ""}
    records[4] |= {"options": [], "question": "", "answer": ""}
    file = write(tmp_path / "mine.json", records)
    code, out, err = run("pool", "add", file, "--map", "category=")
    assert code == 0
    assert "▸ A  a red ball   ← gold" in out
    assert "gold_out_of_range: gold 9" in out
    assert "4 of 6 can be screened; options: 0 in 1, 3 in 5" in out
    assert "2 are kept as open: never asked, never dropped" in out
    assert "(no question)" in out
    assert "mine.toml written" in out
    assert f"Next: benchcheck init STUDY --spec mine.toml --file {file}, then benchcheck pool build STUDY" in err
    assert (tmp_path / "mine.toml").exists()


def test_the_command_adds_to_a_study_that_builds(run: Run, study: Study) -> None:
    file = write(study.root / "mine.json", rows())
    code, out, err = run("pool", "add", file, "--study", study.root, "--yes")
    assert (code, err) == (0, f"Next: benchcheck pool build {study.root}\n")
    assert f"{study.root}/mine.toml written, mine added to {study.root}/benchcheck.toml" in out
    code, out, _ = run("pool", "build", study.root)
    assert code == 0
    assert "6 items, 6 of them multiple-choice" in out
    code, _, err = run("pool", "add", file, "--study", study.root)
    assert (code, "called 'mine' already" in err) == (2, True)
    code, out, err = run("pool", "add", file, "--study", study.root / "none")
    assert (code, out, "so not a study. Cure: benchcheck init" in err) == (2, "", True)


def test_what_is_open_ends_the_command_with_what_to_say(run: Run, tmp_path: Path) -> None:
    records = [{**row, "answer": 1 + number % 2} for number, row in enumerate(rows())]
    out_file = tmp_path / "out.toml"
    code, out, err = run("pool", "add", write(tmp_path / "mine.json", records), "--spec", out_file)
    assert code == 2
    assert "gold      ?" in out
    assert err.count("\n") == 1
    assert "Cure: --map gold=answer:index0 or --map gold=answer:index1" in err
    assert not out_file.exists()
    for record in records:
        del record["options"]
    code, _, err = run("pool", "add", write(tmp_path / "mine.json", records), "--spec", out_file)
    assert (code, "options: no field holds options" in err, "Cure: --map options=…" in err) == (2, True, True)


def test_a_sample_of_which_nothing_can_be_screened_is_not_written(run: Run, tmp_path: Path) -> None:
    records = [{**row, "answer": ""} for row in rows()]
    out_file = tmp_path / "out.toml"
    file = write(tmp_path / "mine.json", records)
    code, _, err = run("pool", "add", file, "--spec", out_file)
    assert (code, "Cure: --map gold=none" in err) == (2, True)
    code, _, err = run("pool", "add", file, "--spec", out_file, "--map", "gold=answer:letter")
    assert (code, "hidden_gold. No item of the sample can be screened" in err) == (2, True)
    assert not out_file.exists()


def test_json_for_programs(run: Run, tmp_path: Path) -> None:
    file, out_file = write(tmp_path / "mine.json", rows()), tmp_path / "out.toml"
    code, out, err = run("pool", "add", file, "--spec", out_file, "--json")
    found = json.loads(out)
    assert (code, err, found["written"], found["mcq"]) == (0, "", str(out_file), 6)
    assert found["items"][1]["options"] == TEXTS
    assert found["spec"]["gold"] == {"kind": "index", "field": "answer"}
    code, out, err = run("pool", "add", file, "--spec", out_file, "--json", "--map", "gold=uid")
    found = json.loads(out)
    assert (code, found["written"], found["open"][0]["key"]) == (2, "", "gold")


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:
    asked: list[str] = []
    monkeypatch.setattr("benchcheck.cli.adding._on_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda text: asked.append(text) or answer)
    file, out_file = write(tmp_path / "mine.json", rows()), tmp_path / "out.toml"
    code, _, err = run("pool", "add", file, "--spec", out_file)
    assert (code, out_file.exists()) == (0, answer)
    assert asked == [f"\nIs this right? Write {out_file}"]
    assert ("Nothing was written" in err) is not answer


def test_ctrl_c_at_the_question_ends_it_in_a_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(text: str) -> bool:
        raise typer.Abort

    monkeypatch.setattr("benchcheck.cli.adding._on_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", stopped)
    code, _, err = run("pool", "add", write(tmp_path / "mine.json", rows()), "--spec", tmp_path / "out.toml")
    assert (code, err.startswith("benchcheck: stopped."), err.count("\n")) == (130, True, 1)
    assert not (tmp_path / "out.toml").exists()


def test_the_next_command_can_be_pasted(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "my file.json", rows())
    _, _, err = run("pool", "add", file, "--spec", tmp_path / "a b.toml")
    assert f"--spec '{tmp_path}/a b.toml' --file '{file}', then" in err


def test_a_task_file_alone_is_shown_without_items(run: Run, tmp_path: Path) -> None:
    task = "dataset_path: owner/set\ndoc_to_text: '{{question}}'\ndoc_to_target: answer\ndoc_to_choice: [yes, no]\n"
    out_file = tmp_path / "out.toml"
    code, out, err = run("pool", "add", write(tmp_path / "t.yaml", task), "--spec", out_file, "--bench", "b")
    assert (code, "a task file alone: nothing was tried" in out) == (0, True)
    assert 'Next: write revision = "<the dataset\'s commit>" below [source] in' in err
    assert f"then benchcheck init STUDY --spec {out_file}, then benchcheck pool build STUDY" in err


def test_a_spec_has_its_suffix(run: Run, tmp_path: Path) -> None:
    code, _, err = run("pool", "add", write(tmp_path / "mine.json", rows()), "--spec", tmp_path / "out")
    assert (code, f"Cure: --spec {tmp_path / 'out'}.toml" in err) == (2, True)


def test_wrong_words_are_one_line(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "mine.json", rows())
    code, out, err = run("pool", "add", file, "--map", "gold=anwser")
    assert (code, out) == (2, "")
    assert err == (
        "benchcheck: --map gold=anwser: no record has 'anwser'. Close: answer. "
        "Its fields: uid, question, options, answer, video\n"
    )
