"""benchcheck.toml: strict, one line for every mistake, and a step key over all that could change an answer."""

import dataclasses
import math
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchcheck import config as config_module
from benchcheck.config import (
    EMBEDDED,
    QWEN3_VL,
    Config,
    Frames,
    Model,
    Normalize,
    PoolSource,
    Protocol,
    Videos,
    from_table,
    load,
    parse,
    read_toml,
    starter,
    step_key,
)
from benchcheck.errors import ConfigError, SpecError
from benchcheck.screen.prompts import INTROS
from benchcheck.screen.readings import PRESETS
from benchcheck.screen.steps import LADDER, STEP_NUMBERS, Sight

MODELS = {"8b": {"model": "large"}, "2b": {"model": "small"}}
FULL: dict[str, Any] = {
    "study_version": 1,
    "name": "n",
    "protocol": dataclasses.asdict(Protocol()) | {"steps": list(STEP_NUMBERS)},
    "frames": dataclasses.asdict(Frames()),
    "videos": dataclasses.asdict(Videos()) | {"archives": ["a.zip"], "files": []},
    "models": {"8b": {"model": "large", "revision": "a"}, "2b": {"model": "small", "revision": "b"}},
    "prompts": {sight.value: "Intro." for sight in Sight},
    "pool": [
        {
            "spec": "generic",
            "files": ["x.jsonl"],
            "bench": "mine",
            "revision": "",
            "errata": "e.csv",
            "join": "j.json",
            "accept_drift": False,
            "videos": {"folder": "v"},
            "truth": "t.jsonl",
        }
    ],
}


def at(table: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        table = table[part]
    return table


def copy(table: Any) -> Any:
    if isinstance(table, dict):
        return {key: copy(value) for key, value in table.items()}
    return [copy(value) for value in table] if isinstance(table, list) else table


def tables(table: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all tables in a config."""
    found = [path] if isinstance(table, dict) else []
    parts = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in parts:
        found += tables(value, (*path, key))
    return found


KEYS = [(path, key) for path in tables(FULL) for key in at(FULL, path)]


def test_the_full_table_is_right() -> None:
    config = parse(FULL, "x")
    assert config.protocol == Protocol()
    assert config.pool[0] == PoolSource(
        spec="generic",
        files=("x.jsonl",),
        bench="mine",
        errata="e.csv",
        join="j.json",
        videos=Videos(folder="v"),
        truth="t.jsonl",
    )


@pytest.mark.parametrize(("path", "key"), KEYS, ids=[".".join(map(str, (*path, key))) for path, key in KEYS])
@pytest.mark.parametrize("misspell", [str.upper, lambda key: key + "s", lambda key: key[:-1] or "q"])
def test_every_misspelt_key_is_refused_and_the_valid_ones_are_listed(
    path: tuple[Any, ...], key: str, misspell: Callable[[str], str]
) -> None:
    table = copy(FULL)
    here = at(table, path)
    wrong = misspell(key)
    if wrong == key or wrong in here:
        pytest.skip("the misspelling is a key of its own")
    here[wrong] = here.pop(key)
    with pytest.raises(ConfigError) as caught:
        parse(table, "study/benchcheck.toml")
    message = str(caught.value)
    assert message.startswith("study/benchcheck.toml")
    assert "\n" not in message
    assert wrong in message
    assert "Allowed: " in message
    assert key in message.partition("Allowed: ")[2]


def wrong_values(value: object) -> list[object]:
    """Values of other types than this one's."""
    others: list[object] = ["x", 1, 1.5, True, ["x"], {"x": "y"}, math.nan, [1]]
    if isinstance(value, dict | list):
        return [other for other in others if type(other) is not type(value)]
    fitting = (float, int) if isinstance(value, float) else (type(value),)
    return [other for other in others if type(other) not in fitting]


@pytest.mark.parametrize(("path", "key"), KEYS, ids=[".".join(map(str, (*path, key))) for path, key in KEYS])
def test_every_value_of_another_type_is_refused_with_its_key(path: tuple[Any, ...], key: str) -> None:
    for value in wrong_values(at(FULL, path)[key]):
        table = copy(FULL)
        at(table, path)[key] = value
        with pytest.raises(ConfigError) as caught:
            parse(table, "here")
        assert str(caught.value).startswith("here: "), value
        assert key in str(caught.value), value


@pytest.mark.parametrize(
    ("section", "key", "bad", "good"),
    [
        ("protocol", "preset", ["", "EXACT", "benchcheck-2025"], list(PRESETS)),
        ("protocol", "steps", [[], [0], [7], [2, 1], [1, 1], [True], ["1"]], [[1], [2, 6], [1, 2, 3, 4, 5, 6]]),
        ("protocol", "orders", [0, -1, 25], [1, 24]),
        ("protocol", "right_share", [0.0, -0.1, 1.01, math.nan, math.inf], [1, 0.01]),
        ("protocol", "margin", [-0.1, math.nan, math.inf, 10**400], [0, 0.0, 50]),
        ("protocol", "mass_floor", [-0.1, 1.0, 1, math.nan], [0, 0.999]),
        ("protocol", "sample", [-1, 1], [0]),
        ("frames", "count", [0, 1025, 16], [17, 1024]),
        ("frames", "single", [-1, 32], [0, 31]),
        ("frames", "long_side", [15, 4097], [16, 4096]),
        ("frames", "quality", [0, 96], [1, 95]),
        (
            "videos",
            "template",
            ["{file}", "{}", "{member!r}", "{member:9}", "{{member}}", "{member", "}"],
            ["{bench}/{name}", "{stem}.x"],
        ),
        ("videos", "archives", [[""], ["a.zip", ""]], [[], ["a.zip", "parts/*.tar"]]),
        ("videos", "hub", ["name", "/name", "owner/", "a/b/c", "owner/näme", "../name"], ["", "owner/na.me_1-x"]),
        ("videos", "revision", ["main", "C" * 40, "c" * 40], [""]),
        ("videos", "files", [[""], ["a.mp4"]], [[]]),
    ],
)
def test_ranges(section: str, key: str, bad: list[object], good: list[object]) -> None:
    for value in bad:
        with pytest.raises(ConfigError, match=f"^f: {section}.*{key}"):
            parse({"study_version": 1, "models": MODELS, section: {key: value}}, "f")
    for value in good:
        parsed = getattr(
            getattr(parse({"study_version": 1, "models": MODELS, section: {key: value}}, "f"), section), key
        )
        assert (list(parsed) if isinstance(parsed, tuple) else parsed) == value


def refused(**table: object) -> str:
    """The message about a table, or about one whose version and models are right."""
    with pytest.raises(ConfigError) as caught:
        parse({"study_version": 1, "models": MODELS} | table, "f")
    return str(caught.value)


def test_a_dataset_of_videos_is_at_a_commit() -> None:
    hub = {"hub": "owner/set", "revision": "c" * 40, "files": ["videos/", "*.zip"]}
    parsed = parse({"study_version": 1, "models": MODELS, "videos": hub}, "f").videos
    assert (parsed.hub, parsed.revision, parsed.files) == ("owner/set", "c" * 40, ("videos/", "*.zip"))
    assert "revision = 'main' is not allowed. Allowed: a commit" in refused(videos=hub | {"revision": "main"})
    assert "revision" in refused(videos={"revision": "c" * 40})
    assert "with hub: they are a hub dataset's" in refused(videos={"files": ["a.zip"]})


def test_roles_prompts_and_sources_are_checked() -> None:
    assert refused(models={**MODELS, "7b": {"model": "m"}}) == "f: models.7b is not a role. Allowed: 2b, 8b"
    assert "models.2b is missing. Cure: add [models.2b]" in refused(models={"8b": {"model": "m"}})
    assert "models.2b is missing" in refused(models={"8b": {"model": "m"}}, protocol={"steps": [1, 3]})
    assert parse(
        {"study_version": 1, "models": {"8b": {"model": "m"}}, "protocol": {"steps": [1, 2, 4, 6]}}, "f"
    ).models
    assert "model = ' ' is not allowed" in refused(models={"8b": {"model": " "}, "2b": {"model": "m"}})
    assert refused(models={"8b": {}, "2b": {"model": "m"}}) == "f: models.8b: key 'model' is missing"
    assert "prompts.video is not a kind of prompt. Allowed: blind, single_frame" in refused(prompts={"video": "x"})
    assert "files = [''] is not allowed" in refused(pool=[{"spec": "generic", "files": [""]}])
    assert "revision = 'main' is not allowed. Allowed: a commit" in refused(pool=[{"spec": "x", "revision": "main"}])
    both = {"spec": "generic", "files": ["a"], "revision": "0" * 40}
    assert "with no files: it is a hub dataset's" in refused(pool=[both])
    for name in ("", "x", "MVBench_2", "a-b", "9" * 64):
        assert parse(
            {"study_version": 1, "models": MODELS, "pool": [{"spec": "s", "files": ["f"], "bench": name}]}, "f"
        )
    for name in (".x", "a/b", "a.b", "-x", "ä", "9" * 65, "a b", "a\n"):
        assert "bench = " in refused(pool=[{"spec": "s", "files": ["f"], "bench": name}])


@pytest.mark.parametrize("version", [0, 2, "1", 1.5, [1]])
def test_a_study_of_another_version_is_refused_with_the_cure(version: object) -> None:
    message = refused(study_version=version)
    assert message.startswith(f"f: study_version = {version!r}, but this benchcheck reads version 1. Cure: ")


def test_true_is_no_version() -> None:
    assert "study_version = True is not of type int" in refused(study_version=True)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"study_version = 1\nname = \xff\n", "not readable as TOML: 'utf-8' codec can't decode byte 0xff"),
        (b"study_version = 1\n\0", "not readable as TOML"),
        (b"study_version = ", "not readable as TOML: Invalid value"),
        (b"study_version = 1\nstudy_version = 1", "not readable as TOML"),
        ("study_version = 1".encode("utf-16"), "not readable as TOML"),
        (b"", "key 'study_version' is missing"),
        (b"study_version = 1" + b"0" * 5000, "not readable as TOML: Exceeds the limit"),
        (b"x = " + b"[" * 5000, "not readable as TOML: maximum recursion depth"),
    ],
)
def test_a_file_that_is_no_config_is_one_line_with_its_name(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "benchcheck.toml"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: {says}")


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"benchcheck\.toml: no such file$"):
        load(tmp_path / "benchcheck.toml")
    with pytest.raises(SpecError, match=r"not readable as TOML: .*directory"):
        read_toml(tmp_path, SpecError)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "benchcheck.toml"
    path.write_bytes(b"\xef\xbb\xbf" + starter("s").encode())
    assert load(path).name == "s"


def test_from_table_takes_another_error_and_nothing_but_a_table() -> None:
    with pytest.raises(SpecError, match=r"^spec: expected a table, got \[\]$"):
        from_table(Videos, [], "spec", SpecError)


def test_a_field_of_any_type_is_taken_as_it_is() -> None:
    @dataclasses.dataclass(frozen=True)
    class Loose:
        anything: Any

    marker = object()
    assert from_table(Loose, {"anything": marker}, "x").anything is marker


# The starter text.


def test_the_starter_text_loads_to_the_defaults() -> None:
    config = parse(tomllib.loads(starter("s")), "x")
    models = {role: Model(model=name, revision=revision) for role, (name, revision) in QWEN3_VL.items()}
    assert config == Config(study_version=1, name="s", models=models)


def test_the_starter_text_names_every_setting() -> None:
    table = tomllib.loads(starter("s"))
    for section, kind in (("protocol", Protocol), ("frames", Frames), ("videos", Videos)):
        assert list(table[section]) == [item.name for item in dataclasses.fields(kind)]
    assert [line.split()[1] for line in starter("s").splitlines() if line.endswith('= "…"')] == [s.value for s in Sight]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.text(st.characters(exclude_categories=["Cs"]))
)
def test_any_name_and_folder_survive_the_starter_text(name: str, folder: str) -> None:
    config = parse(tomllib.loads(starter(name, videos=folder, models=EMBEDDED)), "x")
    assert (config.name, config.videos.folder, config.models["2b"].model) == (name, folder, "embedded:small")


def test_the_starter_text_holds_the_given_benchmarks() -> None:
    pool = [
        {"spec": "generic", "files": ["a b.jsonl", 'q"\\.json'], "bench": "one"},
        {"spec": "mvbench", "files": ["{x}"]},
    ]
    config = parse(tomllib.loads(starter("s", pool=pool)), "x")
    assert [(source.spec, source.files, source.bench) for source in config.pool] == [
        ("generic", ("a b.jsonl", 'q"\\.json'), "one"),
        ("mvbench", ("{x}",), ""),
    ]


# The step key.


def config_of(**changes: Any) -> Config:
    """A config with all roles; `changes` are fields of any of its parts."""
    parts = {"protocol": Protocol, "frames": Frames}
    values = {
        section: kind(**{item.name: changes[item.name] for item in dataclasses.fields(kind) if item.name in changes})
        for section, kind in parts.items()
    }
    models = {
        role: Model(model=changes.get(f"model {role}", f"m{role}"), revision=changes.get(f"revision {role}", ""))
        for role in ("8b", "2b")
    }
    return Config(
        study_version=1,
        name=changes.get("name", "study"),
        models=models,
        prompts={kind.value: changes[f"intro {kind.value}"] for kind in Sight if f"intro {kind.value}" in changes},
        pool=changes.get("pool", ()),
        videos=changes.get("videos", Videos()),
        **values,
    )


def keys(config: Config) -> dict[int, str]:
    return {number: step_key(config, step) for number, step in LADDER.items()}


@pytest.mark.parametrize(
    ("change", "steps"),
    [
        ({"model 8b": "x"}, {1, 2, 4, 6}),
        ({"model 2b": "x"}, {3, 5}),
        ({"revision 8b": "x"}, {1, 2, 4, 6}),
        ({"revision 2b": "x"}, {3, 5}),
        ({"preset": "benchcheck-2026"}, {1, 2, 3, 4, 5, 6}),
        ({"mass_floor": 0.2}, {1, 2, 3, 4, 5, 6}),
        ({"intro blind": "x"}, {1}),
        ({"intro single_frame": "x"}, {2}),
        ({"intro frames": "x"}, {3, 6}),
        ({"intro options_only": "x"}, {4}),
        ({"intro shuffled": "x"}, {5}),
        ({"intro blind": INTROS[Sight.BLIND]}, set()),
        ({"orders": 3}, {1, 4}),
        ({"seed": 1}, {1, 4, 5}),
        ({"count": 20}, {2, 3, 5, 6}),
        ({"long_side": 300}, {2, 3, 5, 6}),
        ({"quality": 84}, {2, 3, 5, 6}),
        ({"single": 15}, {2}),
        ({"right_share": 0.5}, set()),
        ({"margin": 0.1}, set()),
        ({"cascade": False}, set()),
        ({"cascade": False, "sample": 9}, set()),
        ({"steps": (1, 2, 3)}, set()),
        ({"name": "other"}, set()),
        ({"videos": Videos(folder="other")}, set()),
        ({"pool": (PoolSource(spec="s", files=("f",)),)}, set()),
    ],
)
def test_a_change_asks_its_own_steps_again_and_no_others(change: dict[str, Any], steps: set[int]) -> None:
    before, after = keys(config_of()), keys(config_of(**change))
    assert {number for number in LADDER if before[number] != after[number]} == steps


def test_the_key_holds_the_layout_that_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    before, render = keys(config_of()), config_module.render_text

    def other(intro: str, question: str | None, options: Sequence[str]) -> str:
        return render(intro, question, options) + " " * (question is None)

    monkeypatch.setattr(config_module, "render_text", other)
    assert {number for number, key in keys(config_of()).items() if key != before[number]} == {4}


def test_the_mass_floor_means_nothing_in_the_original_preset() -> None:
    original = {"preset": "benchcheck-2026"}
    assert keys(config_of(**original, mass_floor=0.2)) == keys(config_of(**original))


def test_keys_are_16_hex_digits_and_never_move() -> None:
    assert all(len(key) == 16 and set(key) <= set("0123456789abcdef") for key in keys(config_of()).values())
    # Frozen: another value here makes every row on every disk stale.
    assert step_key(parse(tomllib.loads(starter("s")), "x"), LADDER[1]) == "5ff6dc5aa9d65ade"


changes = st.fixed_dictionaries(
    {},
    optional={
        "model 8b": st.sampled_from(["m8b", "x"]),
        "revision 2b": st.sampled_from(["", "c"]),
        "preset": st.sampled_from(PRESETS),
        "mass_floor": st.sampled_from([0.0, 0.1]),
        "intro frames": st.sampled_from(["x", INTROS[Sight.FRAMES]]),
        "intro options_only": st.sampled_from(["x", "y"]),
        "orders": st.integers(3, 5),
        "seed": st.integers(41, 43),
        "count": st.integers(31, 33),
        "single": st.integers(15, 17),
        "quality": st.integers(84, 86),
        "margin": st.sampled_from([0.0, 1.0]),
        "name": st.text(max_size=2),
        "cascade": st.booleans(),
    },
)


def matters(config: Config, number: int) -> tuple[object, ...]:
    """What protocol 6 says that a step's key is over."""
    step, protocol, frames = LADDER[number], config.protocol, config.frames
    return (
        config.models[step.role],
        config.intro(step.sight),
        protocol.preset,
        protocol.mass_floor if protocol.preset == "exact" else None,
        (protocol.orders, protocol.seed) if number in (1, 4) else None,
        (frames.count, frames.long_side, frames.quality) if number in (2, 3, 5, 6) else None,
        frames.single if number == 2 else None,
        protocol.seed if number == 5 else None,
    )


@given(changes, changes, st.sampled_from(STEP_NUMBERS))
def test_two_studies_share_a_key_when_and_only_when_they_ask_the_same(
    one: dict[str, Any], other: dict[str, Any], number: int
) -> None:
    first, second = config_of(**one), config_of(**other)
    same = matters(first, number) == matters(second, number)
    assert (step_key(first, LADDER[number]) == step_key(second, LADDER[number])) is same


def test_the_rungs_and_orders_of_a_study() -> None:
    config = config_of(steps=(1, 3), orders=5)
    assert [step.number for step in config.steps] == [1, 3]
    assert [config.orders_of(step) for step in config.steps] == [5, 1]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("frames", "both"), ("short_side", 8), ("short_side", 10_000), ("timestamps", "vfr"), ("fps", 0.0),
        ("fps", 1000.0), ("crf", -1), ("crf", 52),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_made_is_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"normalize: {key} = .*{value}.*Allowed"):
        parse({"study_version": 1, "models": MODELS, "normalize": {key: value}}, "x")


def test_normalised_frames_make_other_keys_of_the_steps_that_show_them_only() -> None:
    def keys(**settings: object) -> list[str]:
        config = parse({"study_version": 1, "models": MODELS, "normalize": settings}, "x")
        return [step_key(config, step) for step in LADDER.values()]

    plain = keys()
    assert keys(short_side=240, crf=30, audio=True) == plain
    normal = keys(frames="normalized")
    assert [a == b for a, b in zip(plain, normal, strict=True)] == [True, False, False, True, False, False]
    assert keys(frames="normalized", audio=True, fps=5) == normal
    assert keys(frames="normalized", timestamps="constant", fps=5) != normal


def test_the_form_stands_in_the_starter_file() -> None:
    text = starter("x")
    for name in Normalize.__dataclass_fields__:
        assert f"\n# {name} =" in text
