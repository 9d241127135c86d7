"""Controls: real files, a truth of its own, balanced answers, nothing that was trained on."""

import json
import random
from collections import Counter
from pathlib import Path

import av
import numpy as np
import pytest

from benchcheck.demo import clips, controls, facts, phrases, scenes, world
from benchcheck.errors import RunError, StudyError, UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> controls.ControlSet:
    return controls.make_controls(tmp_path_factory.mktemp("controls"), n_per_class=4, seed=5, workers=1)


def _rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_files_hold_the_items_and_apart_from_them_the_truth(made: controls.ControlSet) -> None:
    items, truth = _rows(made.items), _rows(made.truth)
    assert [row["id"] for row in items] == [row["id"] for row in truth]
    assert len({row["id"] for row in items}) == len(items) == 20
    assert all(set(row) == {"id", "question", "options", "answer", "video"} for row in items)
    assert Counter(row["class"] for row in truth) == dict.fromkeys(world.CLASSES, 4)
    assert {row["variant"] for row in truth if row["class"] == "options"} == {"leak", "misled"}
    assert sorted(path.name for path in made.items.parent.iterdir()) == sorted(
        ["items.jsonl", "truth.jsonl", *(video.name for video in made.videos)]
    )


def test_every_video_is_read_whole(made: controls.ControlSet) -> None:
    assert len(made.videos) == 8
    for video in made.videos:
        with av.open(str(video)) as container:
            stream = container.streams.video[0]
            assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
            assert sum(1 for _ in container.decode(stream)) == clips.N_FRAMES


def test_a_decoded_frame_shows_the_scene(made: controls.ControlSet) -> None:
    control = made.controls[0]
    with av.open(str(made.items.parent / control.video)) as container:
        decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    painted = scenes.grid(32)[20] * 3 + 1
    picture = controls_frame(control.item.scene, painted)
    assert np.abs(decoded[painted].astype(float) - picture).mean() < 6


def controls_frame(scene: scenes.Scene, number: int) -> np.ndarray:
    from benchcheck.demo.render import frames

    shown: np.ndarray = frames(scene, [(number + 0.5) / clips.N_FRAMES], clips.SIZE)[0]
    return shown.astype(float)


def test_two_or_three_questions_share_a_video() -> None:
    drawn = controls.draw_controls(12, seed=0)
    assert set(Counter(control.video for control in drawn).values()) == {2, 3}


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert controls.draw_controls(6, 1) == controls.draw_controls(6, 1)
    assert controls.draw_controls(6, 1) != controls.draw_controls(6, 2)


def test_answers_are_balanced_within_every_class() -> None:
    drawn = controls.draw_controls(40, seed=3)
    for klass in world.CLASSES:
        places = Counter(control.item.answer for control in drawn if control.item.klass == klass)
        assert all(9 <= places[place] <= 11 for place in range(4)), places


def test_strengths_spread_in_every_class() -> None:
    drawn = controls.draw_controls(40, seed=3)
    for klass in world.CLASSES:
        strengths = [control.item.strength for control in drawn if control.item.klass == klass]
        assert min(strengths) < 0.3
        assert max(strengths) > 0.85


def test_file_names_and_ids_do_not_tell_the_class() -> None:
    drawn = controls.draw_controls(40, seed=3)
    firsts = Counter(control.item.klass for control in drawn[:100])
    assert all(count > 8 for count in firsts.values())
    assert len(firsts) == 5


def test_no_fact_is_asked_as_in_training() -> None:
    taught = {facts.ask(fact, n) for fact in facts.all_facts() for n in facts.phrasings(fact, held=False)}
    asked = {c.item.question for c in controls.draw_controls(300, 8) if c.item.kind in ("fact", "misled")}
    assert len(asked) > 100
    assert not asked & taught


def test_no_option_text_was_taught() -> None:
    rng = random.Random(0)
    every = [phrases.specific(rng, n % 4, held=False) for n in range(5000)]
    taught = set(every).union(*(phrases.vague(rng, 4, held=False) for _ in range(500)))
    for fact in facts.CATEGORIES.values():
        taught |= {phrases.qualified(rng, fact.answers, held=False) for _ in range(1500)}
    taught = {text.lower() for text in taught}
    for control in controls.draw_controls(200, 8):
        if control.item.kind in ("vague", "longest"):
            assert not taught & {option.lower() for option in control.item.options}
        if control.item.kind == "misled":
            assert control.item.options[control.item.answer].lower() not in taught


def test_other_processes_paint_the_same(tmp_path: Path, made: controls.ControlSet) -> None:
    again = controls.make_controls(str(tmp_path), n_per_class=4, seed=5, workers=2)
    assert again.controls == made.controls
    assert again.items.read_bytes() == made.items.read_bytes()
    assert [video.read_bytes() for video in again.videos] == [video.read_bytes() for video in made.videos]


def test_small_sets_are_painted_by_one_process() -> None:
    assert controls._enough_workers(3) == 1
    assert controls._enough_workers(10_000) >= 1


@pytest.mark.parametrize(("n", "workers"), [(0, 1), (3, 0)])
def test_numbers_below_one_are_refused(tmp_path: Path, n: int, workers: int) -> None:
    with pytest.raises(UsageError, match="1 or more"):
        controls.make_controls(tmp_path / "none", n_per_class=n, workers=workers)
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot be written"):
        controls.make_controls(tmp_path / "file" / "sub", n_per_class=1)


def test_a_painter_that_dies_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls.sys, "executable", "/bin/false")
    with pytest.raises(RunError, match="died"):
        controls.make_controls(tmp_path, n_per_class=1, workers=2)
    assert not (tmp_path / "items.jsonl").exists()


def test_a_painter_paints_the_share_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls.sys, "argv", ["-c", str(tmp_path), "1", "0", "1", "2"])
    controls._paint_as_told()
    assert [path.name for path in tmp_path.iterdir()] == ["v00001.mp4"]


@pytest.mark.parametrize("name", ["items.jsonl", "truth.jsonl"])
def test_a_file_of_somebody_else_is_never_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"my": "only copy"}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"another file of this name\. Cure: choose an empty folder"):
        controls.make_controls(tmp_path, n_per_class=1, workers=1)
    assert (tmp_path / name).read_text(encoding="utf-8") == '{"my": "only copy"}\n'
    assert len(list(tmp_path.iterdir())) == 1


def test_the_same_controls_may_be_made_again(tmp_path: Path) -> None:
    first = controls.make_controls(tmp_path, n_per_class=1, workers=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert controls.make_controls(tmp_path, n_per_class=1, workers=1) == first
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
