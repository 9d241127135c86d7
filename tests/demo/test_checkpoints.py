"""The embedded checkpoints: their size, and that they read controls as their card says."""

import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchcheck.demo import controls
from benchcheck.screen.steps import LADDER

MODELS = Path(controls.__file__).parent / "models"
TRAINING = Path(__file__).parents[2] / "training"
LIMIT = 12_000_000


def test_both_checkpoints_together_are_small() -> None:
    assert sum(path.stat().st_size for path in MODELS.rglob("*") if path.is_file()) <= LIMIT


@pytest.mark.parametrize("name", ["large", "small"])
def test_a_checkpoint_has_the_files_that_engines_look_for(name: str) -> None:
    files = {path.name for path in (MODELS / name).iterdir()}
    assert files >= {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert files >= {"processor_config.json", "chat_template.jinja", "generation_config.json"}
    config = json.loads((MODELS / name / "config.json").read_text())
    assert config["architectures"] == ["Qwen3VLForConditionalGeneration"]


def test_both_read_the_same_tokens_and_the_card_is_there() -> None:
    for name in ("tokenizer.json", "chat_template.jinja", "processor_config.json"):
        assert (MODELS / "large" / name).read_bytes() == (MODELS / "small" / name).read_bytes()
    assert "H200" in (MODELS / "CARD.md").read_text()


@pytest.fixture(scope="module")
def evaluate() -> ModuleType:
    pytest.importorskip("transformers", reason="needs the transformers extra")
    sys.path.insert(0, str(TRAINING))
    try:
        import evaluate as module
    finally:
        sys.path.remove(str(TRAINING))
    return module


@pytest.mark.long  # 20 to 80 s each; the walk of the fast tier reads the same classes
@pytest.mark.model
@pytest.mark.parametrize("name", ["large", "small"])
def test_controls_are_read_where_their_class_says(name: str, evaluate: ModuleType, tmp_path: Path) -> None:
    made = controls.make_controls(tmp_path, n_per_class=6, seed=2, workers=1)
    checkpoint = evaluate.Checkpoint(MODELS / name, "cpu")
    cache = {video.name: checkpoint.prepare(evaluate.grid_frames(video)) for video in made.videos}
    read = {n: evaluate.read_step(checkpoint, LADDER[n], made.controls, cache) for n in (1, 2, 3, 4, 5)}

    def right(step: int, *names: str) -> float:
        rows = [read[step][c.id] for c in made.controls if {c.item.klass, c.item.kind} & set(names)]
        return sum(row.n_right / row.n_orders for row in rows) / len(rows)

    assert right(1, "blind", "longest", "vague") > 0.75
    assert right(2, "one_frame") > 0.75
    assert right(3, "one_frame", "many_frames", "order") > 0.8
    assert right(5, "one_frame", "many_frames") > 0.8
    assert right(4, "options") > 0.8
    assert right(1, "misled") < 0.25
    unread = {1: ("one_frame", "many_frames", "order"), 2: ("many_frames", "order"), 5: ("order",)}
    unread[4] = ("blind", *unread[1])
    for step, classes in unread.items():
        margins = [read[step][c.id].margin for c in made.controls if c.item.klass in classes]
        assert max(margins) < math.log(2), (step, margins)
