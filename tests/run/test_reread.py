"""Reading a sample again: what is drawn, where the rows go, and what they say."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck import cli
from benchcheck.backends import ModelSpec
from benchcheck.backends import scripted as script
from benchcheck.errors import BackendError, UsageError
from benchcheck.report.assemble import assemble
from benchcheck.report.noise import noise_found, noise_lines
from benchcheck.report.page import write_report
from benchcheck.run.driver import run_study
from benchcheck.run.local import Asked
from benchcheck.run.plan import load_pool, survey
from benchcheck.run.reread import LEAST, Again, reread, sample, step_noise
from benchcheck.screen.readings import argmax, margin_of
from benchcheck.screen.steps import LADDER
from benchcheck.study import Study
from studies import FakeBackend, framed_study, make_items, make_study, rows_on_disk

SCRIPTED = Asked("scripted")


@pytest.fixture
def answered(tmp_path: Path) -> Study:
    """A study of 60 and 5 items, all steps read of all items."""
    study = framed_study(tmp_path / "study", make_items(a=60, b=5), protocol={"cascade": False})
    run_study(study, "scripted")
    return study


def again_rows(study: Study, step: int = 1) -> list[dict[str, Any]]:
    return rows_on_disk(Again(study.root, study.config), step)


@given(st.sets(st.text(max_size=3), max_size=80), st.floats(0.01, 1))
def test_a_sample_is_a_share_and_at_least_so_many(ids: set[str], share: float) -> None:
    chosen = sample(sorted(ids), share, "key")
    assert set(chosen) <= ids
    assert len(chosen) == len(set(chosen)) == min(len(ids), max(LEAST, math.ceil(len(ids) * share)))


@given(st.sets(st.integers(0, 500), min_size=40, max_size=60), st.integers(501, 600))
def test_a_larger_share_holds_the_smaller_and_a_new_item_takes_one_place_at_most(ids: set[int], new: int) -> None:
    names = sorted(map(str, ids))
    assert set(sample(names, 0.5, "k")) <= set(sample(names, 0.9, "k"))
    before, after = set(sample(names, 0.1, "k")), set(sample([*names, str(new)], 0.1, "k"))
    assert len(before - after) <= 1


def test_rows_go_elsewhere_and_answers_stay(answered: Study) -> None:
    before = {path: path.read_bytes() for path in answered.results.rglob("step*/*.jsonl")}
    accounting = answered.accounting_file.read_bytes()
    counts = reread(answered, SCRIPTED)
    assert counts == dict.fromkeys(range(1, 7), 25)
    assert {path: path.read_bytes() for path in before} == before
    assert answered.accounting_file.read_bytes() == accounting
    assert (answered.logs / "reread_accounting.jsonl").exists()
    rows = again_rows(answered)
    assert sorted(path.name for path in answered.reread_folder(1).iterdir()) == ["a.jsonl", "b.jsonl"]
    assert len({row["item_id"] for row in rows}) == len(rows) == 25
    assert {row["step_key"] for row in rows} == {row["step_key"] for row in rows_on_disk(answered, 1)}
    assert survey(answered).fold.state.tolist() == survey(Study.open(answered.root)).fold.state.tolist()


def test_what_was_read_again_is_not_asked_again_unless_wanted(answered: Study) -> None:
    assert reread(answered, SCRIPTED, only=2) == {2: 25}
    assert reread(answered, SCRIPTED, only=2) == {2: 0}
    assert reread(answered, SCRIPTED, only=2, share=0.5) == {2: 10}
    assert reread(answered, SCRIPTED, only=2, again=True) == {2: 25}
    assert len(again_rows(answered, 2)) == 60
    found = step_noise(answered, load_pool(answered), answered.config.steps[1])
    assert found is not None
    assert found.noise.items == 60
    assert found.noise.letters.most == 0
    assert (found.near, found.unsure, found.noise.flips) == (0, 0, 0)


def test_a_run_that_was_cut_off_goes_on(answered: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = FakeBackend(stop=BackendError("gone"), after=40)
    monkeypatch.setattr("benchcheck.run.local.open_backend", lambda name, spec: broken)
    with pytest.raises(BackendError):
        reread(answered, SCRIPTED, only=1)
    done = len(again_rows(answered))
    assert 0 < done < 25
    monkeypatch.undo()
    assert reread(answered, SCRIPTED, only=1) == {1: 25 - done}


def test_prompts_come_in_another_order(answered: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FakeBackend()
    monkeypatch.setattr("benchcheck.run.local.open_backend", lambda name, spec: backend)
    reread(answered, SCRIPTED, only=1)
    asked = [prompt.item_id for prompt in backend.asked if prompt.item_id.startswith("a_")]
    stored = [item.item_id for item in answered.items(set(asked))]
    assert list(dict.fromkeys(asked)) != stored
    # The orders of an item stay neighbours.
    assert asked == [item_id for item_id in dict.fromkeys(asked) for _ in range(4)]


def test_only_answers_of_todays_protocol_are_read_again(answered: Study) -> None:
    changed = make_study(answered.root, protocol={"cascade": False}, large="scripted?skill=0.9")
    assert reread(changed, SCRIPTED, only=1) == {1: 0}
    assert step_noise(changed, load_pool(changed), changed.config.steps[0]) is None
    assert noise_lines(changed) == []


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, math.nan])
def test_what_is_no_share_is_refused(answered: Study, share: float) -> None:
    with pytest.raises(UsageError, match="is no share"):
        reread(answered, SCRIPTED, share=share)


class Shaky(script.ScriptedBackend):
    """Every letter of the first option as stored moves by so much."""

    nats = 0.3

    def read(self, prompts: Any) -> Any:
        from dataclasses import replace

        asked = []

        def kept() -> Any:
            for prompt in prompts:
                asked.append(prompt)
                yield prompt

        for outcome in super().read(kept()):
            letters = outcome.result.letters
            at = asked[outcome.index].order.index(0)
            moved = [value - self.nats * (number == at) for number, value in enumerate(letters.logprobs)]
            yield replace(outcome, result=replace(outcome.result, letters=replace(letters, logprobs=tuple(moved))))


def test_the_noise_is_what_moved(answered: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def shaky(name: str, spec: ModelSpec) -> Shaky:
        opened = Shaky(spec)
        opened.engine = type(opened.engine)("scripted", "1", "bf16", "none", "")
        return opened

    monkeypatch.setattr("benchcheck.run.local.open_backend", shaky)
    reread(answered, SCRIPTED, only=1)
    found = step_noise(answered, load_pool(answered), answered.config.steps[0])
    assert found is not None
    assert found.noise.letters.most == pytest.approx(0.3)
    assert found.noise.band == pytest.approx(0.3)
    assert found.answered == 65
    assert found.engines == ("scripted bf16 none", "scripted none none")
    # Counted a second time, with json.loads and plain sums.
    threshold, gold = math.log(2), {item.item_id: item.gold for item in answered.items()}
    near = unsure = 0
    for row in rows_on_disk(answered, 1):
        golds = [order.index(gold[row["item_id"]]) for order in row["orders"]]
        margin = sum(map(margin_of, row["logprobs"], golds)) / 4
        near += abs(margin - threshold) <= found.noise.band
        verdicts = set()
        for sign in (-1, 1):
            lead = [
                letters[at] - max(value for number, value in enumerate(letters) if number != at) + sign * 0.3
                for letters, at in zip(row["logprobs"], golds, strict=True)
            ]
            right = sum(value >= 0 for value in lead)
            verdicts.add(right >= 3 and margin + sign * found.noise.band > threshold)
        unsure += len(verdicts) == 2
        assert row["right"] == [argmax(letters) == at for letters, at in zip(row["logprobs"], golds, strict=True)]
    assert (found.near, found.unsure) == (near, unsure)
    (line,) = noise_lines(answered)
    assert "read again (by scripted bf16 none and by scripted none none)" in line
    assert f"{near} of 65 answered items lie within 0.3 nats" in line


def test_a_torn_or_foreign_row_is_left_out(answered: Study) -> None:
    reread(answered, SCRIPTED, only=1)
    path = answered.reread_folder(1) / "a.jsonl"
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    strange = [
        {**row, "item_id": "nobody"}, {**row, "item_digest": "other"}, {**row, "orders": row["orders"][:2]},
        {**row, "mean_margin": None}, {**row, "status": "error"},
    ]  # fmt: skip
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(one) + "\n" for one in strange) + '{"item_id": "a_1", "orde')
    found = step_noise(answered, load_pool(answered), answered.config.steps[0])
    assert found is not None
    assert found.noise.items == 25


def broken(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row in ways that no run writes it."""
    first, *others = row["logprobs"]
    return [
        row | {"logprobs": [[None, *first[1:]], *others]},
        row | {"logprobs": [["x", *first[1:]], *others]},
        row | {"logprobs": [[-1e308] * len(each) for each in row["logprobs"]]},
        row | {"logprobs": [None, *others]},
        row | {"logprobs": [first[1:], *others]},
        row | {"logprobs": [[], *others]},
        row | {"orders": [row["orders"][0][:1], *row["orders"][1:]]},
        row | {"orders": [[None] * len(order) for order in row["orders"]]},
        row | {"orders": [[9] * len(order) for order in row["orders"]]},
    ]


@pytest.mark.parametrize("again", [True, False])
def test_rows_that_no_run_writes_are_left_out_of_the_noise(answered: Study, again: bool) -> None:
    reread(answered, SCRIPTED, only=1)
    whole = step_noise(answered, load_pool(answered), LADDER[1])
    study = Again(answered.root, answered.config) if again else answered
    (file, *_) = study.step_files(1)
    row = json.loads(file.read_text().splitlines()[0])
    with file.open("a") as rows:
        rows.writelines(json.dumps(made) + "\n" for made in broken(row))
    assert step_noise(answered, load_pool(answered), LADDER[1]) == whole


@pytest.mark.parametrize("engine", [3, [1], "x", None])
def test_an_engine_that_is_no_table_has_no_name(answered: Study, engine: object) -> None:
    reread(answered, SCRIPTED, only=1)
    (file, *_) = Again(answered.root, answered.config).step_files(1)
    row = json.loads(file.read_text().splitlines()[0])
    with file.open("a") as rows:
        rows.write(json.dumps(row | {"engine": engine}) + "\n")
    noise = step_noise(answered, load_pool(answered), LADDER[1])
    assert noise is not None
    assert "" in noise.engines


def test_the_noise_is_shown_wherever_verdicts_are(
    answered: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["benchcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return int(stop.value.code or 0), capsys.readouterr().out

    assert "Noise:" not in call("status", answered.root)[1]
    code, out = call("reread", answered.root, "--backend", "scripted", "--step", 1)
    assert code == 0
    assert out.splitlines()[-1] == "25 items read again"
    (found,) = noise_found(answered)
    row = ["1", "25", *(f"{n:.2g}" for n in (found.noise.letters.mean, found.noise.letters.p95))]
    for text in (out, call("status", answered.root)[1]):
        assert text.count("Noise:") == 1
        table = text.partition("Noise:")[2].splitlines()
        assert table[1].split()[:4] == ["step", "again", "mean", "95"]
        assert table[2].split()[:4] == row
        assert table[2].split()[6:9] == [str(n) for n in (found.noise.flips, found.near, found.unsure)]
    assemble(answered)
    assert "- noise of step 1 blind" in answered.summary_md.read_text(encoding="utf-8")
    assert f"<td>{found.near} of 65</td>" in write_report(answered).read_text(encoding="utf-8")
    assert call("reread", answered.root, "--backend", "scripted", "--share", 7)[0] == 2
    assert call("reread", answered.root, "--backend", "scripted", "--step", 9)[0] == 2


def test_one_order_and_two_options_are_counted_too(tmp_path: Path) -> None:
    study = framed_study(tmp_path / "study", make_items(a=21), protocol={"cascade": False, "steps": [2]})
    run_study(study, "scripted")
    reread(study, SCRIPTED)
    found = step_noise(study, load_pool(study), study.config.steps[0])
    assert found is not None
    assert (found.answered, found.noise.items) == (21, 20)
