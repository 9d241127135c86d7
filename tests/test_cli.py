"""The command line: what it prints, where, and with which exit code; errors are one line, a bug keeps its traceback."""

import builtins
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from benchcheck import __main__ as start
from benchcheck import __version__, cli
from benchcheck.backends import checkpoint
from benchcheck.errors import ModelRefusedError
from benchcheck.study import Study
from studies import Run


@pytest.fixture
def study(run: Run, tmp_path: Path) -> Path:
    """A study of twelve text items, to be read by the scripted backend."""
    rows = [
        {"id": f"q{n}", "question": f"What is number {n}?", "options": [f"a{n}", f"b{n}", f"c{n}"], "answer": n % 3,
         "video": f"v{n // 2}.mp4"}
        for n in range(12)
    ]  # fmt: skip
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    folder = tmp_path / "study"
    assert run("init", folder, "--file", file, "--bench", "mine")[0] == 0
    path = folder / "benchcheck.toml"
    text = re.sub(r"(?m)^model = .*\nrevision = .*$", 'model = "scripted?skill=0.7"', path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    assert run("pool", "build", folder)[0] == 0
    return folder


def test_version_and_help(run: Run) -> None:
    assert run() == run("--help")
    assert run("--version") == (0, f"{__version__}\n", "")
    code, out, _ = run("--help")
    assert code == 0
    names = ("init", "pool", "frames", "doctor", "plan", "screen", "status", "assemble", "report", "serve", "work")
    assert sorted(names, key=lambda name: out.index(f"\u2502 {name} ")) == list(names)


def test_help_keeps_words_in_square_brackets(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Markup that rich takes for a style would be gone."""
    monkeypatch.setenv("COLUMNS", "300")
    _, out, _ = run("screen", "--help")
    assert "[default: 8001]" in out
    assert "KEY=VALUE" in out
    for path, command in all_commands(get_command(cli.app)):
        shown = " ".join(run(*path, "--help")[1].split())
        for parameter in command.params:
            said = getattr(parameter, "help", None) or ""
            assert " ".join(said.split()).replace("\\[", "[") in shown, (path, said)


def all_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that is no group, with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(
    ("wrong", "command"),
    [
        (("frames", "unpack", "study"), "benchcheck frames unpack"),
        (("frames", "chek"), "benchcheck frames"),
        (("upload", "x"), "benchcheck upload"),
        (("videos", "prepare", "study", "--norm"), "benchcheck videos prepare"),
    ],
)
def test_wrong_use_names_the_help_that_says_more(run: Run, wrong: tuple[str, ...], command: str) -> None:
    code, out, err = run(*wrong)
    assert (code, out) == (2, "")
    assert err.endswith(f" See {command} --help\n")


def test_init_writes_the_protocols_models_and_never_overwrites(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("init", tmp_path / "new")
    assert code == 0
    assert f"benchcheck.toml written. Next: benchcheck pool add FILE --study {tmp_path / 'new'}" in out
    assert Study.open(tmp_path / "new").config.models["8b"].model == "Qwen/Qwen3-VL-8B-Instruct"
    assert run("init", tmp_path / "my study")[1].endswith(f"pool add FILE --study '{tmp_path}/my study'\n")
    code, out, err = run("init", tmp_path / "new")
    assert (code, out) == (2, "")
    assert "there is a study already" in err


def test_embedded_models_are_named_with_their_fingerprints(run: Run, tmp_path: Path) -> None:
    """A release with other weights then asks again, or says so, instead of mixing the answers of both."""
    assert run("init", tmp_path / "new", "--embedded")[0] == 0
    models = Study.open(tmp_path / "new").config.models
    assert {role: named.model for role, named in models.items()} == {"8b": "embedded:large", "2b": "embedded:small"}
    for named in models.values():
        assert named.revision == checkpoint.fetch(named.model, named.revision)[1]
        with pytest.raises(ModelRefusedError, match="the revision asked for is sha256:other"):
            checkpoint.fetch(named.model, "sha256:other")


def test_what_is_typed_is_relative_to_where_it_is_typed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("init", "s", "--spec", "own.toml", "--file", "a.csv", "--videos", "clips")
    assert (code, err) == (0, "a.csv is not there yet\n")
    config = Study.open("s").config
    assert (config.pool[0].spec, config.pool[0].files) == (str(tmp_path / "own.toml"), (str(tmp_path / "a.csv"),))
    assert config.videos.folder == str(tmp_path / "clips")
    assert Study.open("s/benchcheck.toml").root == Path("s")


def test_pool_build_prints_the_counts(run: Run, study: Path) -> None:
    code, out, _ = run("pool", "build", study)
    assert code == 0
    assert out.splitlines()[-1] == "12 items, 12 of them multiple-choice"


def test_a_file_that_changed_after_the_build_is_told(run: Run, study: Path, tmp_path: Path) -> None:
    assert run("plan", study)[2] == ""
    os.utime(tmp_path / "items.jsonl", (4e9, 4e9))
    for command in ("plan", "status"):
        _, _, err = run(command, study)
        assert f"items.jsonl is newer than the pool. Cure: benchcheck pool build {study}" in err
    run("pool", "build", study)
    os.utime(tmp_path / "items.jsonl", (1e9, 1e9))
    assert run("plan", study)[2] == ""


def test_plan_ends_with_the_three_totals(run: Run, study: Path) -> None:
    code, out, err = run("plan", study)
    assert (code, err) == (0, "")
    assert out.splitlines()[-3:] == ["WAITING_TOTAL=12", "FAILED_TOTAL=0", "REMAINING_TOTAL=24"]
    assert run("plan", study, "--step", 1)[1].splitlines()[-1] == "REMAINING_TOTAL=12"
    _, out, _ = run("plan", study, "--step", 1, "--pilot", 5)
    assert out.splitlines()[1].split() == ["mine", "12", "5"]
    assert out.splitlines()[-1] == "REMAINING_TOTAL=5"


def test_screen_continues_and_ends_at_zero(run: Run, study: Path) -> None:
    code, out, err = run("screen", study, "--backend", "scripted", "--pilot", 4)
    assert code == 0
    assert "The whole, as this pilot foresees it:" in out
    assert out.splitlines()[-1] == "REMAINING_TOTAL=0"
    assert "step 1 blind: asking 4 items" in err
    code, out, err = run("screen", study, "--backend", "scripted")
    assert code == 0
    assert "step 1 blind: asking 8 items" in err
    assert out.splitlines()[-1] == "REMAINING_TOTAL=0"
    code, out, err = run("screen", study, "--backend", "scripted")
    assert "step 1 blind: nothing to ask" in err
    assert run("plan", study)[1].splitlines()[-1] == "REMAINING_TOTAL=0"


def test_one_step_alone(run: Run, study: Path) -> None:
    _, _, err = run("screen", study, "--backend", "scripted", "--step", 1)
    assert "step 1 blind: asking 12 items" in err
    assert "step 4" not in err
    assert not (study / "results" / "step4").exists()


def test_status_assemble_and_report(run: Run, study: Path) -> None:
    run("screen", study, "--backend", "scripted")
    code, out, _ = run("status", study)
    assert code == 0
    assert "blind" in out
    code, out, _ = run("assemble", study)
    assert code == 0
    names = ("pool_items.parquet", "pool.duckdb", "pool_summary.md", "pool_summary.csv", "run_accounting.csv")
    assert all(str(study / "results" / name) in out for name in names)
    code, out, _ = run("report", study)
    assert (code, out.strip()) == (0, str(study / "results" / "report.html"))
    assert Path(out.strip()).stat().st_size > 5000


def test_work_prints_one_line_per_write(run: Run, study: Path) -> None:
    code, out, _ = run("work", study, "--step", 1, "--backend", "scripted", "--task", 0, "--tasks", 2)
    assert (code, out) == (0, "6 0\n")
    code, out, _ = run("work", study, "--step", 1, "--backend", "scripted")
    assert (code, out) == (0, "6 0\n")


def test_failed_items_get_another_try(run: Run, study: Path) -> None:
    path = study / "benchcheck.toml"
    path.write_text(
        path.read_text(encoding="utf-8").replace("skill=0.7", "fail=1&kind=low_label_mass"), encoding="utf-8"
    )
    code, out, err = run("screen", study, "--backend", "scripted", "--step", 1)
    assert "FAILED_TOTAL=12" in out
    assert "12 items failed with low_label_mass, such as mine_0, mine_1" in err
    _, _, err = run("screen", study, "--backend", "scripted", "--step", 1)
    assert "step 1 blind: nothing to ask" in err
    code, out, err = run("screen", study, "--backend", "scripted", "--step", 1, "--retry-failed")
    assert code == 0
    assert "12 failed items get another try" in err
    assert "step 1 blind: asking 12 items" in err
    assert "FAILED_TOTAL=12" in out


def test_failed_items_of_a_split_benchmark_get_another_try(run: Run, study: Path) -> None:
    path = study / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("skill=0.7", "fail=1&kind=low_label_mass"))
    for task in (0, 1):
        run("work", study, "--step", 1, "--backend", "scripted", "--task", task, "--tasks", 2)
    assert "FAILED_TOTAL=12" in run("plan", study)[1]
    for _ in range(2):
        _, out, err = run("screen", study, "--backend", "scripted", "--step", 1, "--retry-failed")
        assert "step 1 blind: asking 12 items" in err
        assert "FAILED_TOTAL=12" in out


def test_frames_of_missing_videos_are_named_and_nothing_breaks(run: Run, study: Path) -> None:
    code, out, _ = run("frames", "extract", study)
    assert code == 0
    assert out.splitlines()[0].startswith("0 of 6 sets of frames are ready")
    assert "missing: 6. Cure:" in out
    run("screen", study, "--backend", "scripted")
    code, out, err = run("status", study)
    waiting = re.search(r"(\d+) waiting", out)
    assert code == 0
    assert waiting is not None
    assert f"warning: {waiting[1]} items wait: missing (put the file below the videos folder" in err


def test_controls(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("controls", "make", tmp_path / "c", "--per-class", 1)
    assert code == 0
    assert out.startswith("5 items on ")
    assert (tmp_path / "c" / "truth.jsonl").is_file()


def test_benchmarks_lists_the_specs(run: Run) -> None:
    code, out, _ = run("benchmarks")
    assert code == 0
    assert re.search(r"^nextqa_val .* 4,996 +4,996 +● real files +MIT *$", out, re.MULTILINE)
    code, out, _ = run("benchmarks", "--search", "tempcompass", "--checked", "survey", "--json")
    assert (code, {entry["checked"] for entry in json.loads(out)}) == (0, {"survey"})
    code, out, _ = run("benchmarks", "nextqa_val")
    assert code == 0
    assert 'spec = "nextqa_val"\nfiles = ["annotations/val.csv"]' in out
    code, out, _ = run("benchmarks", "generic", "--json")
    assert (code, json.loads(out)["spec"]) == (0, "generic")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nextqa-val",), "Did you mean 'nextqa_val'"),
        (("mine.toml",), "mine.toml: only specs that ship are shown"),
        (("specs/mine",), "specs/mine: only specs that ship are shown"),
        (("--checked", "none"), "--checked 'none' is not a level. Allowed: real files, survey, fields only"),
        (("--search", "no such benchmark"), "no spec is like that. Cure:"),
        (("nextqa_val", "--checked", "survey"), "Cure: leave the name out"),
    ],
)
def test_benchmarks_refuses_in_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run("benchmarks", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("plan", "nowhere"), "no benchcheck.toml here, so not a study. Cure: benchcheck init"),
        (("screen", "STUDY", "--backend", "gpt"), "backend 'gpt' does not exist. Allowed: server, vllm, transformers"),
        (("plan", "STUDY", "--step", "7"), "--step 7 is not a step of this study. Allowed: 1, 2, 3, 4, 5, 6"),
        (("screen", "STUDY", "--workers", "-1"), "--workers"),
        (("screen", "STUDY", "--workers", "two"), "--workers"),
        (("plan",), "Missing argument"),
        (("plan", "STUDY", "--colour"), "--colour"),
        (("work", "STUDY", "--step", "1", "--task", "2", "--tasks", "2"), "--task 2 and --tasks 2 go together"),
        (("work", "STUDY", "--step", "1", "--task", "3"), "--task 3 and --tasks 0 go together"),
        (("work", "STUDY", "--step", "1", "--tasks", "3"), "--task -1 and --tasks 3 go together"),
        (("init", "new", "--spec", "nextqa_val"), "Cure: name it with --file"),
        (("init", "new", "--bench", "mine"), "Cure: name it with --file"),
        (("nonsense",), "nonsense"),
        (("screen", "STUDY", "--endpoint", "http://h:1/v1"), "--endpoint names servers, but --engine is transformers"),
        (("reread", "STUDY", "--engine", "vllm", "--endpoint", "http://h:1/v1"), "but --engine is vllm. Cure"),
        (("doctor", "--model", "x", "--endpoint", "http://h:1/v1"), "but --engine is transformers. Cure"),
        (("screen", "STUDY", "--executor", "slurm", "--plan-only", "--launch"), "but --engine is transformers. Cure"),
        (("screen", "STUDY", "--engine", "server", "--vllm", "vllm"), "--vllm is for servers that a run starts"),
        (("screen", "STUDY", "--port", "9000"), "--port is for servers that a run starts"),
    ],
)
def test_wrong_use_is_exit_code_2(run: Run, study: Path, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = run(*(study if word == "STUDY" else word for word in arguments))
    assert code == 2
    assert words in err
    assert err.startswith("benchcheck: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("pool", ["add", "build", "check"]),
        ("videos", ["prepare", "list"]),
        ("frames", ["extract", "check", "pack", "unpack"]),
        ("controls", ["make"]),
    ],
)
def test_a_group_of_commands_alone_shows_them(run: Run, group: str, names: list[str]) -> None:
    """In the order in which a study meets them; it is wrong use all the same."""
    code, out, err = run(group)
    assert (code, err) == (2, "")
    assert [line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2].islower()] == names


def test_a_question_keeps_its_mark(run: Run) -> None:
    assert "Did you mean 'benchmarks'? See benchcheck --help" in run("benchmark")[2]


def test_a_step_that_the_study_has_not(run: Run, study: Path) -> None:
    path = study / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("[1, 2, 3, 4, 5, 6]", "[1, 4]"), encoding="utf-8")
    for command in ("plan", "screen"):
        code, _, err = run(command, study, "--step", 2)
        assert (code, err) == (2, "benchcheck: --step 2 is not a step of this study. Allowed: 1, 4\n")
    assert run("work", study, "--step", 2, "--backend", "scripted")[0] == 2


def test_a_misspelt_key_is_one_line_with_the_allowed_ones(run: Run, study: Path) -> None:
    path = study / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("orders =", "order ="), encoding="utf-8")
    code, out, err = run("plan", study)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "unknown key 'order'. Allowed: preset, cascade, sample, steps, seed, orders" in err


def test_a_study_without_a_pool_is_a_failed_run(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path / "new")
    code, _, err = run("plan", tmp_path / "new")
    assert code == 1
    assert "no pool yet. Cure: benchcheck pool build" in err


def test_ctrl_c_says_that_the_same_command_continues(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("benchcheck.run.driver.survey", stop)
    code, _, err = run("screen", study, "--backend", "scripted")
    assert code == 130
    assert err.splitlines()[-1] == "benchcheck: stopped. What was written stays; the same command continues."


def test_a_note_of_an_engine_is_a_line_of_its_own(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", lambda *_, **__: logging.getLogger("benchcheck").warning("%s is down", "http://a"))
    for _ in range(2):
        assert run("plan", study) == (0, "", "benchcheck: note: http://a is down\n")


def test_ctrl_c_anywhere_is_one_line(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for reason in (KeyboardInterrupt(), RuntimeError("Query interrupted")):
        monkeypatch.setattr(cli, "app", lambda *_, reason=reason, **__: (_ for _ in ()).throw(reason))
        code, _, err = run("plan", study)
        assert (code, err.count("\n")) == (130, 1)
        assert "the same command continues" in err


def test_ctrl_c_that_python_ignores_is_pressed_again() -> None:
    script = (
        "import sys, time\n"
        "from benchcheck import cli\n"
        "class Odd:\n"
        "    def __del__(self): raise KeyboardInterrupt\n"
        "def app(*_, **__):\n"
        "    del [Odd()][0]\n"
        "    time.sleep(20)\n"
        "cli.app = app\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (130, -2)
    assert done.stderr.startswith("benchcheck: stopped.")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["plan", "benchmarks"])
def test_nowhere_to_print_is_one_line(study: Path, command: str) -> None:
    arguments = [command] if command == "benchmarks" else [command, str(study)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "benchcheck", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "standard output: No space left on device. Cure:" in done.stderr


@pytest.mark.parametrize("arguments", [["benchmarks"], ["benchmarks", "mvbench"]])
def test_where_utf_8_is_not_spoken_signs_are_shown_by_their_numbers(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchcheck", *arguments],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u" in done.stdout


def test_a_pipe_that_is_closed_is_no_traceback(study: Path) -> None:
    command = f"{sys.executable} -m benchcheck status '{study}' | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_bug_keeps_its_traceback(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("benchcheck.run.plan.survey", bug)
    monkeypatch.setattr(sys, "argv", ["benchcheck", "plan", str(study)])
    with pytest.raises(ZeroDivisionError, match="ours"):
        cli.main()


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchcheck", "--version"], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == f"{__version__}\n"


def test_an_unwritable_study_is_one_line(run: Run, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOL_RESULTS_ROOT", "/proc/nowhere")
    monkeypatch.setenv("POOL_BASE", str(study / "results"))
    code, _, err = run("screen", study, "--backend", "scripted")
    assert code == 1
    assert err.splitlines()[-1].startswith("benchcheck: /proc/nowhere")


def test_ctrl_c_while_the_command_line_is_loaded_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def load(name: str, *rest: object) -> object:
        if name == "benchcheck.cli":
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", load)
    with pytest.raises(SystemExit) as stop:
        start.main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "benchcheck: stopped. Nothing was begun.\n"
