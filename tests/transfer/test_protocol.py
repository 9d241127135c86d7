"""What differs between two protocols is named as benchcheck.toml names it, whatever the other side holds."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck.config import Config, step_key
from benchcheck.screen.steps import LADDER
from benchcheck.transfer.protocol import differences, protocol_hash, protocol_table, rule_differences, rule_of
from studies import make_study


def config(tmp_path: Path, extra: str = "", **settings: object) -> Config:
    study = make_study(tmp_path / "s", **settings)
    path = study.root / "benchcheck.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("[frames]\ncount = 4", f"[frames]{extra}", 1))
    return type(study).open(study.root).config


def test_the_table_is_what_step_keys_are_made_of(tmp_path: Path) -> None:
    import hashlib

    made = config(tmp_path, "\ncount = 4")
    table = protocol_table(made)
    assert list(table) == ["1", "2", "3", "4", "5", "6"]
    for number, step in LADDER.items():
        text = json.dumps(table[str(number)], sort_keys=True)
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == step_key(made, step)
    assert protocol_hash(table) == protocol_hash(json.loads(json.dumps(dict(reversed(table.items())))))


CHANGES = [
    ({"protocol": {"orders": 8}}, ["protocol.orders = 4 here, 8 in the package (steps 1, 4)"]),
    ({"protocol": {"seed": 7}}, ["protocol.seed = 42 here, 7 in the package (steps 1, 4, 5)"]),
    ({"protocol": {"preset": "benchcheck-2026"}}, None),
    (
        {"protocol": {"mass_floor": 0.2}},
        ["protocol.mass_floor = 0.1 here, 0.2 in the package (steps 1, 2, 3, 4, 5, 6)"],
    ),
    ({"extra": "\ncount = 8"}, ["frames.count = 4 here, 8 in the package (steps 2, 3, 5, 6)"]),
    ({"extra": "\ncount = 4\nquality = 90"}, ["frames.quality = 85 here, 90 in the package (steps 2, 3, 5, 6)"]),
    ({"large": "other"}, ['models.8b.model = "scripted" here, "other" in the package (steps 1, 2, 4, 6)']),
    ({"prompts": {"blind": "Guess."}}, None),
]


@pytest.mark.parametrize(("change", "lines"), CHANGES)
def test_a_difference_is_named_as_the_config_names_it(tmp_path: Path, change: dict, lines: list[str] | None) -> None:  # type: ignore[type-arg]
    ours = protocol_table(config(tmp_path / "a", "\ncount = 4"))
    theirs = protocol_table(config(tmp_path / "b", **({"extra": "\ncount = 4"} | change)))
    found = differences(ours, theirs)
    if lines is not None:
        assert found == lines
    assert protocol_hash(ours) != protocol_hash(theirs)
    assert differences(ours, ours) == []
    assert not [line for line in found if "hash" in line]


def test_an_intro_and_a_layout_are_told_apart(tmp_path: Path) -> None:
    ours = protocol_table(config(tmp_path, "\ncount = 4"))
    theirs = protocol_table(config(tmp_path, "\ncount = 4", prompts={"blind": "Guess.", "options_only": "x" * 200}))
    first, second = differences(ours, theirs)
    assert first.startswith('prompts.blind = "Answer the multiple-choice question')
    assert first.endswith("(step 1)")
    assert '"Guess." in the package' in first
    assert second.startswith("prompts.options_only = ")
    assert "…" in second
    assert len(second) < 300
    theirs["1"]["layout"] = "Answer me"
    assert differences(ours, theirs)[0].startswith("the prompt's layout, which is benchcheck's own = ")


def test_steps_of_a_part_are_compared_and_a_step_more_is_named(tmp_path: Path) -> None:
    whole = protocol_table(config(tmp_path / "a", "\ncount = 4"))
    part = protocol_table(config(tmp_path / "b", "\ncount = 4", protocol={"steps": [1, 2]}))
    assert differences(whole, part) == []
    assert differences(part, whole)[0] == "protocol.steps = [1, 2] here, 3 as well in the package"
    assert len(differences(part, whole)) == 4


def test_orders_where_there_were_none(tmp_path: Path) -> None:
    ours = protocol_table(config(tmp_path, "\ncount = 4"))
    theirs = json.loads(json.dumps(ours))
    theirs["2"]["orders"] = [4, 42]
    del theirs["3"]["prefill"]
    theirs["4"]["temperature"] = 1
    assert differences(ours, theirs, "there") == [
        'the option orders = "as stored" here, [4, 42] there (step 2)',
        'the beginning of the reply, which is benchcheck\'s own = "Answer:" here, nothing there (step 3)',
        "temperature = nothing here, 1 there (step 4)",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@given(JSON, st.sampled_from(["1", "2", "5"]), st.sampled_from(["orders", "frames", "layout", "model", "x"]))
def test_whatever_the_other_side_holds_gives_lines(value: object, number: str, key: str) -> None:
    from benchcheck.config import parse

    models = {role: {"model": "scripted"} for role in ("8b", "2b")}
    ours = protocol_table(parse({"study_version": 1, "models": models}, "t"))
    theirs = json.loads(json.dumps(ours))
    theirs[number][key] = value
    assert differences(ours, theirs) or theirs == ours or value is None
    assert all(isinstance(line, str) for line in differences(ours, value))
    assert differences(ours, {number: value})


def test_thresholds_are_beside_the_protocol(tmp_path: Path) -> None:
    ours = config(tmp_path / "a", "\ncount = 4")
    theirs = config(tmp_path / "b", "\ncount = 4", protocol={"margin": 1.5})
    assert protocol_hash(protocol_table(ours)) == protocol_hash(protocol_table(theirs))
    line = "protocol.margin = 0.6931471805599453 here, 1.5 in the package"
    assert rule_differences(rule_of(ours), rule_of(theirs)) == [line]
    assert rule_differences(rule_of(ours), None) == rule_differences(rule_of(ours), {}) == []
