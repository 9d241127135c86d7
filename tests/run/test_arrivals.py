"""What comes later continues the same study: videos, items, benchmarks. Only what is new is asked."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchcheck.backends import Outcome
from benchcheck.backends.scripted import ScriptedBackend
from benchcheck.demo.controls import make_controls
from benchcheck.files import append_rows
from benchcheck.pool.building.build import build_pool
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import Survey, survey, totals
from benchcheck.run.waiting import ELSEWHERE, NOT_TRIED, reasons
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.verdicts import State
from benchcheck.study import Study
from benchcheck.video.making.extract import extract_frames
from benchcheck.video.store import Outcome as Became
from benchcheck.video.store import record
from studies import Heard, Run, config_text, give_frames, make_items, make_study, rows_on_disk

Question = tuple[str, int, tuple[int, ...]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[Question]:
    """Every prompt that the scripted backend is asked."""
    seen: Counter[Question] = Counter()
    read = ScriptedBackend.read

    def counted(self: ScriptedBackend, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        def noted() -> Iterator[Prompt]:
            for prompt in prompts:
                seen[prompt.item_id, prompt.step, prompt.order] += 1
                yield prompt

        yield from read(self, noted())

    monkeypatch.setattr(ScriptedBackend, "read", counted)
    return seen


def entry(folder: Path, bench: str) -> str:
    return (
        f'[[pool]]\nspec = "generic"\nfiles = [{json.dumps(str(folder / "items.jsonl"))}]\nbench = "{bench}"\n'
        f"[pool.videos]\nfolder = {json.dumps(str(folder))}\n"
    )


def configured(root: Path, *entries: str) -> Study:
    root.mkdir(exist_ok=True)
    (root / "benchcheck.toml").write_text(config_text() + "\n".join(entries), encoding="utf-8")
    return Study.open(root)


def run_all(study: Study) -> Survey:
    executor = Local(study, Asked("scripted"))
    try:
        return screen(study, executor, Heard())
    finally:
        executor.close()


def answers(study: Study) -> dict[tuple[str, int], dict[str, Any]]:
    rows = [row for step in range(1, 7) for row in rows_on_disk(study, step)]
    found = {(row["item_id"], row["step"]): row | {"at": "", "latency_s": 0} for row in rows}
    assert len(found) == len(rows), "an item was answered twice"
    return found


def states(study: Study) -> dict[str, int]:
    state = survey(study)
    return dict(zip(state.pool.item_id.to_pylist(), state.fold.state.tolist(), strict=True))


@pytest.mark.long
def test_videos_items_and_benchmarks_that_come_later(tmp_path: Path, asked: Counter[Question], run: Run) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    made = make_controls(one, n_per_class=3, seed=5)
    make_controls(two, n_per_class=2, seed=6)
    lines = (one / "items.jsonl").read_bytes().splitlines(keepends=True)

    # Everything at once.
    whole = configured(tmp_path / "whole", entry(one, "one"), entry(two, "two"))
    build_pool(whole)
    assert extract_frames(whole).failed == 0
    run_all(whole)
    at_once, wanted = Counter(asked), answers(whole)
    asked.clear()

    # Half of the videos are missing, and the last four items are not written yet.
    (one / "items.jsonl").write_bytes(b"".join(lines[:-4]))
    away = tmp_path / "away"
    away.mkdir()
    for path in sorted(made.videos)[::2]:
        (one / Path(path).name).rename(away / Path(path).name)
    study = configured(tmp_path / "study", entry(one, "one"))
    build_pool(study)
    assert set(extract_frames(study).statuses) == {"missing"}
    run_all(study)
    first, waiting = answers(study), totals(survey(study)).waiting
    waited = {item for item, state in states(study).items() if state == State.WAITING}
    assert waiting == len(waited) > 0
    code, shown, warned = run("status", study.root)
    assert code == 0
    assert f"missing {waiting}" in " ".join(shown.split())
    assert f"{waiting} items wait: missing (put the file" in warned

    # The videos arrive.
    for path in away.iterdir():
        path.rename(one / path.name)
    assert run("frames", "extract", study.root)[0] == 0
    before = {path: path.read_bytes() for path in study.results.rglob("*.jsonl")}
    run_all(study)
    assert totals(survey(study)).waiting == 0
    assert all(path.read_bytes().startswith(data) for path, data in before.items())
    second = answers(study)
    assert {key: second[key] for key in first} == first

    # More items of the same benchmark, then another benchmark.
    (one / "items.jsonl").write_bytes(b"".join(lines))
    build_pool(study)
    study = configured(study.root, entry(one, "one"), entry(two, "two"))
    assert run("pool", "build", study.root)[0] == 0
    assert run("frames", "extract", study.root)[0] == 0
    run_all(study)
    third = answers(study)
    assert {key: third[key] for key in second} == second

    # An item that waits takes part in the text steps; with its frames it might have left in a frame step before.
    assert at_once - asked == Counter()
    extra = asked - at_once
    assert {step for _, step, _ in extra} <= {4}
    assert {item for item, _, _ in extra} <= waited
    assert all(key[1] == 4 and key[0] in waited for key in set(third) - set(wanted))
    assert {key: third[key] for key in wanted} == wanted
    assert states(study) == states(whole)
    assert study.pool_file.read_bytes() == whole.pool_file.read_bytes()


def test_reasons_add_up_to_what_waits(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", protocol={"steps": [1, 2]})
    items = make_items(a=12, b=6)
    study.write_pool(items)
    give_frames(study, items[:3])
    keys = list(dict.fromkeys(item.frames_key for item in items[3:]))
    became = [("missing", 2), ("ready", 1), ("a status of another version", 1)]
    statuses = [status for status, count in became for _ in range(count)]
    of_key = {item.frames_key: item.video_key for item in items}
    record(study, [Became(of_key[key], key, status) for key, status in zip(keys, statuses, strict=False)])
    state = survey(study)
    found = {reason.status: reason for reason in reasons(study, state)}
    assert set(found) == {"missing", ELSEWHERE, "a status of another version", NOT_TRIED}
    assert sum(reason.items for reason in found.values()) == totals(state).waiting
    assert sum(reason.sets for reason in found.values()) == len(keys)
    assert found["missing"].example == min(of_key[key] for key in keys[:2])
    assert found["a status of another version"].cure == ""
    assert "frames extract" in found[NOT_TRIED].cure
    assert found[NOT_TRIED].benches[-1] == "b"
    study.package_file.write_text("{}", encoding="utf-8")
    packaged = {reason.status: reason.cure for reason in reasons(study, state)}
    assert "frames unpack" in packaged.pop(NOT_TRIED)
    assert packaged == {status: reason.cure for status, reason in found.items() if status != NOT_TRIED}
    give_frames(study, items)
    assert reasons(study, survey(study)) == []


def test_ten_thousand_missing_videos_are_one_summary(tmp_path: Path, run: Run) -> None:
    """Measured on two cores: extract 6 s, status and report 1 s each."""
    root = tmp_path / "study"
    rows = [
        {"id": str(n), "question": f"What is {n}?", "options": ["p", "q", "r"], "answer": "B", "video": f"v{n}.mp4"}
        for n in range(10_000)
    ]
    append_rows(tmp_path / "items.jsonl", rows)
    study = configured(root, entry(tmp_path, "mine"))
    build_pool(study, workers=1)
    code, shown, warned = run("frames", "extract", root)
    assert code == 0
    said = [line for line in shown.splitlines() if line.strip()]
    assert any(line.startswith("missing: 10000. Cure: put the file") for line in said)
    assert len(said) <= 10
    assert len(warned.splitlines()) <= 10
    run_all(study)
    waiting = totals(survey(study)).waiting
    for command in ("plan", "status", "assemble", "report"):
        code, shown, warned = run(command, root)
        assert code == 0
        assert len(shown.splitlines()) + len(warned.splitlines()) < 60, command
        if command == "status":
            assert f"missing {waiting:,} {waiting:,} mine" in " ".join(shown.split())
            assert warned.count("items wait") == 1
    assert study.report.stat().st_size < 1_000_000
    assert study.report.read_text(encoding="utf-8").count("v1.mp4") <= 10
