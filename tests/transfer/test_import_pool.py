"""An original package comes into a study: whole, twice, in pieces, and hostile."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from originals import items_of_two_benches, make_package, matching_study, screened_study

from benchcheck import import_pool
from benchcheck.errors import DamagedFileError, InputError, UsageError
from benchcheck.run.driver import screen
from benchcheck.run.local import Asked, Local
from benchcheck.run.plan import survey, totals
from benchcheck.study import Study
from benchcheck.video.frames import FrameSet, load_frames
from benchcheck.video.store import last_outcomes
from killed import dies, steps
from studies import Heard, Run, make_item, rows_on_disk


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of the original preset, all steps asked."""
    return screened_study(tmp_path_factory.mktemp("source") / "study", items_of_two_benches())


@pytest.fixture
def package(source: Study, tmp_path: Path) -> Path:
    return make_package(tmp_path / "package", source)


def states(study: Study) -> list[int]:
    return survey(study).fold.state.tolist()


def differences(study: Path) -> list[dict[str, str]]:
    with (study / "results" / "import_differences.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_same_verdicts_come_out(source: Study, package: Path, tmp_path: Path) -> None:
    found = import_pool(package, tmp_path / "new")
    study = Study.open(tmp_path / "new")
    assert found.made
    assert states(study) == states(source)
    assert totals(survey(study)).remaining == 0
    assert study.item_table().equals(source.item_table())
    for step in range(1, 7):
        ours, theirs = rows_on_disk(study, step), rows_on_disk(source, step)
        names = ("item_id", "orders", "logprobs", "missing", "label_mass", "margins", "right", "n_right", "removed")
        assert [[row[name] for name in names] for row in ours] == [[row[name] for name in names] for row in theirs]
        assert {row["imported_from"].split(":")[0] for row in ours} <= {
            f"package/results/step{step}/{bench}.jsonl" for bench in ("a", "b")
        }
    assert found.verdicts_differ == 0
    assert differences(study.root) == []


def test_twice_is_once(package: Path, tmp_path: Path) -> None:
    import_pool(package, tmp_path / "new")
    before = {path: path.read_bytes() for path in (tmp_path / "new").rglob("*.jsonl")}
    again = import_pool(package, tmp_path / "new")
    assert not again.made
    assert sum(step.answers for step in again.steps) == 0
    assert sum(step.there for step in again.steps) == sum(step.rows for step in again.steps)
    assert {path: path.read_bytes() for path in (tmp_path / "new").rglob("*.jsonl")} == before


def test_the_study_goes_on_where_the_package_ends(source: Study, tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", source, lambda row: row if row["step"] <= 3 else None)
    root = matching_study(tmp_path / "new")
    import_pool(package, root)
    study, heard = Study.open(root), Heard()
    screen(study, Local(study, Asked("scripted"), 1), heard)
    assert [todo for _, todo, _ in heard.begun[:3]] == [0, 0, 0]
    assert heard.items > 0
    assert states(study) == states(source)


def test_sets_of_frames_are_linked_and_say_what_is_not_known(source: Study, package: Path, tmp_path: Path) -> None:
    found = import_pool(package, tmp_path / "new")
    study = Study.open(tmp_path / "new")
    items = {item.frames_key: item for item in source.items()}
    assert (found.frames.brought, found.frames.without_times) == (len(items), len(items) - 2)
    for key, item in items.items():
        frames = load_frames(study, key)
        assert isinstance(frames, FrameSet)
        theirs = package / "frames" / "pool_frames" / key / "frame_1.jpg"
        assert os.path.samefile(frames.paths[1], theirs)
        assert not (package / "frames" / "pool_frames" / key / "frames.json").exists()
        assert frames.pts == ((2.5, 4.5, 6.5, 8.5) if item.start else (-1.0,) * 4)
    copied = import_pool(package, tmp_path / "copies", frames="copy")
    assert copied.frames.brought == len(items)
    assert not os.path.samefile(tmp_path / "copies" / "frames" / "pool_frames" / key / "frame_1.jpg", theirs)
    assert import_pool(package, tmp_path / "bare", frames="none").frames.brought == 0


def test_another_disk_gets_symbolic_links(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    import_pool(package, tmp_path / "new")
    study = Study.open(tmp_path / "new")
    frames = load_frames(study, study.items()[0].frames_key)
    assert isinstance(frames, FrameSet)
    assert os.path.islink(frames.paths[0])


def test_a_set_with_its_own_frames_json_keeps_it(source: Study, package: Path, tmp_path: Path) -> None:
    for folder in (package / "frames" / "pool_frames").iterdir():
        table = json.loads((source.frames / folder.name / "frames.json").read_bytes())
        for frame in table["frames"]:
            frame["bytes"] = (folder / f"frame_{frame['index']}.jpg").stat().st_size
        (folder / "frames.json").write_text(json.dumps(table), encoding="utf-8")
    found = import_pool(package, tmp_path / "new")
    study = Study.open(tmp_path / "new")
    frames = load_frames(study, study.items()[0].frames_key)
    assert isinstance(frames, FrameSet)
    assert (frames.pts, found.frames.without_times) == ((0.0, 1.0, 2.0, 3.0), 0)


def test_where_our_rule_differs(source: Study, tmp_path: Path, run: Run) -> None:
    def change(row: dict[str, Any]) -> dict[str, Any]:
        if row["step"] == 1 and row["item_id"] in ("a_3", "a_4"):
            return row | {"removed": not row["removed"], "mean_margin": row["mean_margin"] + 1}
        if row["step"] == 2 and row["item_id"] == "b_1":
            return row | {"n_right": 1 - row["n_right"]}
        return row

    package = make_package(tmp_path / "package", source, change)
    code, shown, _ = run("import-pool", package, tmp_path / "new")
    assert code == 0
    assert next(line.split() for line in shown.splitlines() if line.startswith("1 "))[-2:] == ["2", "2"]
    found = differences(tmp_path / "new")
    assert {(row["item_id"], row["what"]) for row in found} == {
        ("a_3", "removed"), ("a_3", "mean_margin"), ("a_4", "removed"), ("a_4", "mean_margin"), ("b_1", "n_right")
    }  # fmt: skip
    assert all(row["file"].startswith("package/results/step") and int(row["line"]) > 0 for row in found)
    assert "a_3" in shown
    assert states(Study.open(tmp_path / "new")) == states(source), "our rule decides, from the same readings"


def test_rows_that_say_little(source: Study, tmp_path: Path) -> None:
    """Orders and log-probs alone; everything else is derived."""
    keep = ("item_id", "orders", "logprobs")
    package = make_package(tmp_path / "package", source, lambda row: {name: row[name] for name in keep})
    found = import_pool(package, matching_study(tmp_path / "new"))
    assert states(Study.open(tmp_path / "new")) == states(source)
    assert [step.unjudged for step in found.steps] == [step.answers for step in found.steps]


def test_differences_of_another_step_or_package_stay(source: Study, tmp_path: Path) -> None:
    def lies(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"removed": not row["removed"]} if row["item_id"] == "a_2" and row["step"] in (1, 2) else row

    package, new = make_package(tmp_path / "package", source, lies), matching_study(tmp_path / "new")
    steps = sorted({row["step"] for item in [import_pool(package, new)] for row in differences(item.study)})
    whole = differences(new)
    for step in (2, 1, 2):
        import_pool(package, new, steps=[step])
        assert sorted({row["step"] for row in differences(new)}) == steps
    assert sorted(map(str, differences(new))) == sorted(map(str, whole))
    package.rename(tmp_path / "other")
    import_pool(tmp_path / "other", new, steps=[1])
    assert [row["file"].split("/")[0] for row in differences(new) if row["step"] == "1"] == ["package", "other"]


def test_other_orders_are_kept(source: Study, tmp_path: Path, run: Run) -> None:
    def backwards(row: dict[str, Any]) -> dict[str, Any]:
        if row["step"] == 1:
            row |= {"orders": [order[::-1] for order in row["orders"]]}
            row |= {"logprobs": [one[::-1] for one in row["logprobs"]]}
        return row

    package = make_package(tmp_path / "package", source, backwards)
    _, _, warned = run("import-pool", package, matching_study(tmp_path / "new"))
    assert "step 1: 36 answers were asked in other option orders" in warned
    assert states(Study.open(tmp_path / "new")) == states(source)
    assert sum(row["what"] == "orders" for row in differences(tmp_path / "new")) == 36


def test_error_rows_come_along(source: Study, tmp_path: Path) -> None:
    def fails(row: dict[str, Any]) -> dict[str, Any]:
        if row["step"] == 1 and row["item_id"] == "a_2":
            return {"item_id": "a_2", "bench": "a", "step": 1, "status": "error", "error": "context_too_long"}
        return row

    found = import_pool(make_package(tmp_path / "package", source, fails), matching_study(tmp_path / "new"))
    assert (found.steps[0].errors, found.steps[0].answers) == (1, 35)
    assert totals(survey(Study.open(tmp_path / "new"))).failed == 1


def test_an_answer_of_a_package_that_has_grown_ends_an_error(source: Study, package: Path, tmp_path: Path) -> None:
    def fails(row: dict[str, Any]) -> dict[str, Any]:
        error = {"item_id": row["item_id"], "bench": "a", "step": 1, "status": "error", "error": "timeout"}
        return error if row["step"] == 1 and row["item_id"] == "a_2" else row

    early = make_package(tmp_path / "early", source, fails)
    new = matching_study(tmp_path / "new")
    import_pool(early, new)
    again = import_pool(early, new)
    assert (again.steps[0].answers, again.steps[0].errors, again.steps[0].there) == (0, 0, 36)
    grown = import_pool(package, new)
    assert (grown.steps[0].answers, grown.steps[0].there) == (1, 35)
    back = import_pool(early, new)
    assert (back.steps[0].answers, back.steps[0].errors) == (0, 0)
    assert states(Study.open(new)) == states(source)


def test_single_rows_of_another_number_of_orders_are_left_out(source: Study, tmp_path: Path) -> None:
    def short(row: dict[str, Any]) -> dict[str, Any]:
        if row["step"] == 1 and row["item_id"] == "a_2":
            for name in ("orders", "logprobs", "margins", "right"):
                row[name] = row[name][:3]
            row["n_perm"] = 3
        return row

    found = import_pool(make_package(tmp_path / "package", source, short), matching_study(tmp_path / "new"))
    assert found.steps[0].answers == 35
    assert found.steps[0].left_out == {"answer of another number of orders than the study asks": 1}


def test_rows_that_no_study_could_have_asked_make_none(source: Study, tmp_path: Path, run: Run) -> None:
    def twice(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"n_perm": 2} if row["step"] == 2 else row

    code, _, err = run("import-pool", make_package(tmp_path / "package", source, twice), tmp_path / "new")
    assert (code, err.count("\n")) == (2, 1)
    assert "have n_perm = 2, and this study asks 1 orders there" in err
    assert not (tmp_path / "new").exists()


def test_what_no_row_can_say_is_said_where_numbers_are_read(
    source: Study, package: Path, tmp_path: Path, run: Run
) -> None:
    """The step key says that the prompt was ours, and rows of the original layout do not hold theirs."""
    new, said = matching_study(tmp_path / "new"), "do not say how their prompts were worded"
    import_pool(package, new)
    assert said in run("status", new)[2]
    assert run("assemble", new)[0] == run("report", new)[0] == 0
    for name in ("pool_summary.md", "report.html"):
        assert said in (new / "results" / name).read_text(encoding="utf-8"), name
    assert said not in run("status", source.root)[2]
    assert run("assemble", source.root)[0] == 0
    assert said not in (source.root / "results" / "pool_summary.md").read_text(encoding="utf-8")


def test_reasons_of_missing_videos_come_along(source: Study, package: Path, tmp_path: Path) -> None:
    import shutil

    first = source.items()[0]
    shutil.rmtree(package / "frames" / "pool_frames" / first.frames_key)
    (package / "logs").mkdir()
    rows = [{"key": first.video_key, "status": "missing", "error": "gone\nfor good"}, {"key": "x", "status": "missing"}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (package / "logs" / "manifest.jsonl").write_text(text + '{"torn', encoding="utf-8")
    assert import_pool(package, tmp_path / "new").videos == 1
    outcome = last_outcomes(Study.open(tmp_path / "new"))[first.frames_key]
    assert (outcome.status, outcome.error) == ("missing", "gone for good")
    assert import_pool(package, tmp_path / "new").videos == 0


def test_one_step_alone(package: Path, tmp_path: Path) -> None:
    found = import_pool(package, tmp_path / "new", steps=[2])
    assert [step.step for step in found.steps] == [2]
    with pytest.raises(UsageError, match="--step 7 is no step"):
        import_pool(package, tmp_path / "new", steps=[7])
    (package / "results" / "step4" / "a.jsonl").unlink()
    (package / "results" / "step4" / "b.jsonl").unlink()
    with pytest.raises(UsageError, match=r"no rows of step 4\. Found: steps 1, 2, 3, 5, 6"):
        import_pool(package, tmp_path / "new", steps=[4])


def test_answers_of_the_study_stay(source: Study, package: Path, tmp_path: Path) -> None:
    study = screened_study(tmp_path / "new", items_of_two_benches())
    before = {path: path.read_bytes() for path in study.results.rglob("*.jsonl")}
    found = import_pool(package, study.root)
    assert {path: path.read_bytes() for path in study.results.rglob("*.jsonl")} == before
    assert sum(step.answers for step in found.steps) == 0


def test_items_that_the_study_has_not_are_left_out(source: Study, package: Path, tmp_path: Path) -> None:
    study = Study.open(matching_study(tmp_path / "new"))
    items = items_of_two_benches()
    study.write_pool([make_item(0, "a", question="Another one?"), *items[1:30]])
    found = import_pool(package, study.root)
    assert found.items == 29
    assert found.items_left_out == {"item with another text in the study's pool": 1, "item that its pool has not": 6}
    assert {row["item_id"] for row in rows_on_disk(study, 1)} == {item.item_id for item in items[1:30]}


# What is refused.


def spoil(package: Path, data: bytes, step: int = 1) -> None:
    with (package / "results" / f"step{step}" / "a.jsonl").open("ab") as file:
        file.write(data)


def test_hostile_rows_are_counted(source: Study, package: Path, tmp_path: Path, run: Run) -> None:
    good = json.loads((package / "results" / "step1" / "a.jsonl").read_text().splitlines()[0])
    spoil(package, b"\0\0\0\n" + b"[" * 200_000 + b"\n" + b"x" * (1 << 24) + b"y" * 100 + b"\n[1, 2]\n")
    for changes in ({"item_id": "nobody"}, {"item_id": ["a_1"]}, {"step": 5}, {"bench": "b"}):
        spoil(package, json.dumps(good | changes).encode() + b"\n")
    spoil(package, json.dumps(good | {"n_right": good["n_perm"], "removed": True}).encode() + b"\n")
    spoil(package, json.dumps({"step": 1}).encode() + b"\n")
    spoil(package, b'{"item_id": "a_1", "tor')
    code, _, warned = run("import-pool", package, tmp_path / "new")
    assert code == 0
    assert "step 1: rows left out: 5, line that is no row (torn, or damaged)" in warned
    assert "step 1: rows left out: 2, row of an item that is not in the pool" in warned
    assert "step 1: rows left out: 1, row of another step than its folder" in warned
    assert "step 1: rows left out: 1, row of another benchmark than its item" in warned
    assert "step 1: rows left out: 1, row without an item_id" in warned
    assert (
        f"step 1: 1 rows contradict an earlier one of their item, such as {good['item_id']}; the last counts" in warned
    )
    assert states(Study.open(tmp_path / "new")) == states(source)


def test_a_package_that_is_none(package: Path, tmp_path: Path, run: Run) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "empty").mkdir()
    assert run("import-pool", tmp_path / "nowhere", tmp_path / "new")[0] == 2
    with pytest.raises(InputError, match=r"no items\. Wanted: results/pool_items_base\.parquet .* It is empty"):
        import_pool(tmp_path / "empty", tmp_path / "new")
    items = package / "results" / "pool_items_base.parquet"
    table = pq.read_table(items)
    pq.write_table(table.drop_columns(["options", "gold"]), items)
    with pytest.raises(
        InputError, match=r"Wanted: options \(options or choices or candidates\); gold .* Found: item_id"
    ):
        import_pool(package, tmp_path / "new")
    pq.write_table(table.slice(0, 0), items)
    with pytest.raises(InputError, match="not one item"):
        import_pool(package, tmp_path / "new")
    rows = table.slice(0, 2).to_pylist()
    pq.write_table(pa.Table.from_pylist([*rows, rows[0], rows[1] | {"item_id": ""}]), items)
    found = import_pool(package, tmp_path / "new")
    assert found.items == 2
    assert sum(found.items_left_out.values()) == 2
    items.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not readable as parquet"):
        import_pool(package, tmp_path / "new")
    import shutil

    for step in range(1, 7):
        shutil.rmtree(package / "results" / f"step{step}")
    with pytest.raises(InputError, match="no rows of a step"):
        import_pool(package, tmp_path / "new")


def test_rows_of_this_program_are_merge_s(source: Study, package: Path, tmp_path: Path) -> None:
    spoil(package, json.dumps(rows_on_disk(source, 1)[0]).encode() + b"\n")
    with pytest.raises(UsageError, match=r"has a step_key: not the original layout\. Cure: benchcheck merge"):
        import_pool(package, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_rows_by_unknown_names(source: Study, tmp_path: Path) -> None:
    package = make_package(tmp_path / "package", source, lambda row: {"key": row["item_id"], "lp": row["logprobs"]})
    with pytest.raises(UsageError, match=r"rows without an item_id\. Wanted: item_id \(item_id or id.* Found: 'key'"):
        import_pool(package, tmp_path / "new")


def test_links_out_of_the_package(package: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.jsonl"
    (package / "results" / "step2" / "a.jsonl").rename(outside)
    (package / "results" / "step2" / "a.jsonl").symlink_to(outside)
    with pytest.raises(DamagedFileError, match=r"package/results/step2/a\.jsonl: a link that leads out"):
        import_pool(package, tmp_path / "new")


def test_a_snapshot_of_the_hub_s_cache_is_links_and_fine(source: Study, package: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "datasets--o--n" / "snapshots" / ("ab" * 20)
    blobs = tmp_path / "datasets--o--n" / "blobs"
    blobs.mkdir(parents=True)
    for number, path in enumerate(sorted(each for each in package.rglob("*") if each.is_file())):
        target = snapshot / path.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(blobs / str(number))
        target.symlink_to(os.path.relpath(blobs / str(number), target.parent))
    found = import_pool(snapshot, tmp_path / "new")
    assert found.frames.brought == len({item.frames_key for item in source.items()})
    assert states(Study.open(tmp_path / "new")) == states(source)


def test_hostile_frames_are_counted(source: Study, package: Path, tmp_path: Path) -> None:
    folders = sorted((package / "frames" / "pool_frames").iterdir())
    (folders[1] / "frame_2.jpg").unlink()
    (folders[2] / "frame_2.jpg").write_bytes(b"<html>" * 100)
    (folders[3] / "frame_2.jpg").unlink()
    (folders[3] / "frame_2.jpg").symlink_to("/etc/hostname")
    (folders[4] / "frame_4.jpg").write_bytes((folders[4] / "frame_3.jpg").read_bytes())
    away = folders[5].rename(tmp_path / "away")
    folders[5].symlink_to(away)
    (folders[6] / "frames.json").write_text("[" * 100_000, encoding="utf-8")
    about = {"version": 1, "count": 4, "long_side": 99, "quality": 85}
    frames = [{"pts": 0.0, "duplicate": False, "damaged": False, "bytes": 9}] * 4
    (folders[7] / "frames.json").write_text(json.dumps(about | {"frames": frames}), encoding="utf-8")
    sizes = [{"bytes": (folders[8] / f"frame_{index}.jpg").stat().st_size} for index in range(4)]
    frames = [frame | size for frame, size in zip(frames, sizes, strict=True)]
    (folders[8] / "frames.json").write_text(json.dumps(about | {"frames": frames}), encoding="utf-8")
    found = import_pool(package, tmp_path / "new")
    assert found.frames.left_out == {
        "set without all of its frames": 1,
        "set with a file that is no JPEG": 1,
        "set with a link out of the package": 1,
        "set with more frames than the study's grid": 1,
        "set that is a link out of the package": 1,
        "set whose files are not those of its frames.json": 1,
        "set made with another frames.long_side than the study's": 1,
    }
    assert found.frames.brought == len(folders) - 7


def sharded(package: Path, shards: int = 2) -> Path:
    """Put a package's frames into shards, as protocol 3 has them."""
    import shutil
    import tarfile

    from benchcheck.tars import hash_of

    folders = sorted((package / "frames" / "pool_frames").iterdir())
    entries = []
    for number in range(shards):
        path = package / "frames" / f"frames_{number:03d}.tar"
        with tarfile.open(path, "w") as tar:
            for folder in folders[number::shards]:
                tar.add(folder, folder.name)
        facts = {"file": path.name, "sha256": hash_of(path), "bytes": path.stat().st_size}
        entries.append(facts | {"n_videos": len(folders[number::shards])})
    table = {"n_videos": len(folders), "shards": entries}
    (package / "frames" / "frames_manifest.json").write_text(json.dumps(table), encoding="utf-8")
    shutil.rmtree(package / "frames" / "pool_frames")
    return package / "frames"


def test_frames_in_shards_are_brought(source: Study, package: Path, tmp_path: Path) -> None:
    sharded(package)
    found = import_pool(package, tmp_path / "new")
    study = Study.open(tmp_path / "new")
    assert study.config.frames.count == 4
    assert study.frames_ready() == {item.frames_key for item in source.items()}
    assert found.frames.brought == len(study.frames_ready())
    assert not list(study.frames.glob(".*"))
    again = import_pool(package, tmp_path / "new")
    assert (again.frames.brought, again.frames.there) == (0, found.frames.brought)


def test_a_damaged_shard_is_named_and_the_others_come(package: Path, tmp_path: Path, run: Run) -> None:
    shards = sharded(package, 3)
    data = bytearray((shards / "frames_001.tar").read_bytes())
    data[5000] ^= 1
    (shards / "frames_001.tar").write_bytes(data)
    (shards / "frames_002.tar").unlink()
    code, _, warned = run("import-pool", package, tmp_path / "new")
    assert code == 0
    assert "package/frames/frames_001.tar: its sha256 is" in warned
    assert "package/frames/frames_002.tar: not there: nothing of it was brought" in warned
    assert Study.open(tmp_path / "new").frames_ready()


def remade(shards: Path, **changes: Any) -> None:
    """Write the manifest of shards anew, with their hashes as they are."""
    from benchcheck.tars import hash_of

    path = shards / "frames_manifest.json"
    table = json.loads(path.read_bytes())
    for entry in table["shards"]:
        tar = shards / entry["file"]
        entry |= {"sha256": hash_of(tar), "bytes": tar.stat().st_size}
    path.write_text(json.dumps(table | changes), encoding="utf-8")


def test_the_manifest_of_shards_says_the_grid(package: Path, tmp_path: Path) -> None:
    shards = sharded(package)
    for number, (said, count, side) in enumerate(
        [
            ({"count": 4, "long_side": 300, "quality": 85}, 4, 300),
            ({"count": 4000}, 32, 448),
            ({"count": 4, "long_side": 5}, 32, 448),
            ({"count": "x"}, 32, 448),
        ]
    ):
        remade(shards, frames=said)
        root = tmp_path / f"new{number}"
        import_pool(package, root, frames="none")
        frames = Study.open(root).config.frames
        assert (frames.count, frames.long_side) == (count, side)


def test_hostile_shards_are_named(package: Path, tmp_path: Path, run: Run) -> None:
    import io
    import tarfile

    shards = sharded(package, 4)
    (shards / "frames_000.tar").write_bytes(b"no tar at all" * 1000)
    with tarfile.open(shards / "frames_001.tar", "w") as tar:
        info = tarfile.TarInfo("../../outside/frame_0.jpg")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    with tarfile.open(shards / "frames_002.tar", "a") as tar:
        info = tarfile.TarInfo("somebody/frame_0.jpg")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
        tar.addfile(tarfile.TarInfo("README"))
    remade(shards)
    (shards / "frames_003.tar").rename(tmp_path / "away.tar")
    (shards / "frames_003.tar").symlink_to(tmp_path / "away.tar")
    code, _, warned = run("import-pool", package, matching_study(tmp_path / "new"))
    assert code == 0
    assert "frames_000.tar: no tar file" in warned
    assert "frames_001.tar: the member '../../outside/frame_0.jpg' leads out" in warned
    assert "frames_003.tar: a link that leads out of the package" in warned
    study = Study.open(tmp_path / "new")
    assert study.frames_ready()
    assert "somebody" not in study.frames_ready()
    assert not list(tmp_path.rglob("outside"))
    import_pool(package, tmp_path / "made", frames="none")
    assert Study.open(tmp_path / "made").config.frames.count == 32, "the first shard shows no grid"


KILLED = """
import sys
from benchcheck.transfer.original import importing
importing._BATCH = 5
importing.import_pool(sys.argv[1], sys.argv[2])
"""


@pytest.mark.long
def test_killed_anywhere_the_same_call_ends_the_same(source: Study, package: Path, tmp_path: Path) -> None:
    root, killed = tmp_path / "new", 0
    for step, later in steps():
        if not dies(KILLED, root, step, package, root, later_s=later):
            break
        killed += 1
    assert killed > 5
    import_pool(package, root)
    study = Study.open(root)
    assert states(study) == states(source)
    for step in range(1, 7):
        ids = [row["item_id"] for row in rows_on_disk(study, step)]
        assert len(ids) == len(set(ids))
    assert len(study.frames_ready()) == len({item.frames_key for item in study.items()})
