"""How models run: the `[engine]` table, the original package's environment, flags; in that order of strength."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.studies import make_study

from benchcheck.config import engine_settings, from_table, step_key
from benchcheck.errors import ConfigError, UsageError
from benchcheck.run.local import flags_of
from benchcheck.screen.steps import LADDER
from benchcheck.settings import ENVIRONMENT, EngineSettings, without_password


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("endpoints", ["host:8001"], "URLs such as http://host:8001/v1"),
        ("endpoints", ["http://host/v1?x=1"], "URLs such as"),
        ("in_flight", -1, "0 (chosen by the step) to 65536"),
        ("timeout_s", 0, "above 0, up to 86400 seconds"),
        ("gpus", -1, "0 (all visible) to 1024"),
        ("first_port", 0, "1 to 65535"),
        ("gpu_memory", 0, "above 0, up to 1 (a share)"),
        ("gpu_memory", 85, "above 0, up to 1 (a share)"),
        ("max_sequences", -1, "0 (chosen) to 65536"),
        ("decode_workers", 300, "0 (by the cores) to 256"),
        ("quantization", "int4", "'' or 'fp8'"),
    ],
)
def test_a_setting_out_of_bounds_is_refused(key: str, value: object, allowed: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_table(EngineSettings, {key: value}, "benchcheck.toml: engine")
    text = str(refused.value)
    assert text.startswith("benchcheck.toml: engine: " + key)
    assert allowed in text


def test_the_environment_of_the_original_package_is_honoured() -> None:
    environment = {"NGPU": "4", "WORKERS": "20", "PORT0": "9000", "GPU_UTIL": "0.5", "MAX_SEQS": "16", "PY": "python3"}
    environment |= {"VLLM": "/opt/tools/vllm", "UNRELATED": "1"}
    found = engine_settings(EngineSettings(), environment, [])
    assert found == EngineSettings(
        gpus=4,
        in_flight=20,
        first_port=9000,
        gpu_memory=0.5,
        max_sequences=16,
        python="python3",
        vllm="/opt/tools/vllm",
    )
    assert set(ENVIRONMENT) < set(environment)


def test_a_flag_wins_over_the_environment_and_that_over_the_file() -> None:
    file = EngineSettings(gpus=1, first_port=7000, in_flight=3)
    found = engine_settings(file, {"NGPU": "2", "PORT0": "8000", "WORKERS": ""}, ["gpus=3", 'vllm="a b"', "python=py"])
    assert found == EngineSettings(gpus=3, first_port=8000, in_flight=3, vllm="a b", python="py")


def test_an_empty_flag_takes_a_setting_back() -> None:
    file = EngineSettings(endpoints=("http://a/v1",), quantization="fp8")
    assert engine_settings(file, {}, ["endpoints=[]", "quantization="]) == EngineSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpus", "--set gpus: not of the form key=value"),
        ("gpu=2", "--set gpu=2: unknown key 'gpu'. Allowed: endpoints, "),
        ("gpus=two", "--set gpus=two: gpus = 'two' is not of type int"),
        ("gpus=-2", "--set gpus=-2: gpus = -2 is not allowed"),
        ("endpoints=http://a/v1", "endpoints = 'http://a/v1' is not a list"),
    ],
)
def test_a_wrong_flag_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        engine_settings(EngineSettings(), {}, [text])
    assert said in str(refused.value)


def test_a_wrong_environment_variable_is_named() -> None:
    with pytest.raises(UsageError, match=r"^GPU_UTIL=85: gpu_memory = 85\.0 is not allowed"):
        engine_settings(EngineSettings(), {"GPU_UTIL": "85"}, [])


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(
    st.builds(
        EngineSettings,
        endpoints=st.lists(st.sampled_from(["http://a:1/v1", "https://b/x'y"]), max_size=3).map(tuple),
        served_name=words,
        in_flight=st.integers(0, 100),
        timeout_s=st.floats(0.5, 1000),
        gpu_memory=st.floats(0.01, 1),
        vllm=words,
    )
)
def test_a_worker_is_given_the_same_settings(settings: EngineSettings) -> None:
    flags = flags_of(settings)
    assert flags[::2] == ["--set"] * (len(flags) // 2)
    assert engine_settings(EngineSettings(), {}, flags[1::2]) == settings


def test_how_a_model_runs_is_no_part_of_what_is_measured(tmp_path: object) -> None:
    study = make_study(tmp_path)  # type: ignore[arg-type]
    path = study.root / "benchcheck.toml"
    path.write_text(path.read_text() + '\n[engine]\ngpu_memory = 0.5\nquantization = "fp8"\n')
    changed = type(study).open(study.root)
    assert changed.config.engine.gpu_memory == 0.5
    assert [step_key(changed.config, step) for step in LADDER.values()] == [
        step_key(study.config, step) for step in LADDER.values()
    ]


@pytest.mark.parametrize(
    "url",
    [
        *("http://h:99999/v1", "http://h:0/v1", "http://h:x/v1", "http://[::1/v1", "http://:8001/v1", "http://../v1"),
        *(f"http://{'a' * 64}.org/v1", "http://h/\x1b[31m"),
    ],
)
def test_an_endpoint_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^x: endpoints = .* is not allowed\. Allowed: URLs such as"):
        from_table(EngineSettings, {"endpoints": ["http://h/v1", url]}, "x")


@pytest.mark.parametrize(
    "url", ["http://h", "https://h:65535/a/b@c", "http://[::1]:8001/v1", "http://höst/v1", "http://h./"]
)
def test_an_endpoint_that_may_be(url: str) -> None:
    assert EngineSettings(endpoints=(url,)).endpoints == (url,)


@pytest.mark.parametrize("url", ["http://me:s3cret@h:8001/v1", "https://s3cret@h/v1", "http://me:a/s3cret@h/v1"])
def test_a_password_in_an_endpoint_is_refused_and_not_shown(url: str) -> None:
    for flags in ([f"endpoints={[url]!r}"], [f"endpoints={url}"], [f"served_name=7{url}", f"endpoints=['{url}']"]):
        with pytest.raises(UsageError, match=r"^--set .*//\*\*\*@h") as refused:
            engine_settings(EngineSettings(), {}, flags)
        assert "s3cret" not in without_password(str(refused.value))
    with pytest.raises(ValueError, match=r"Allowed: URLs such as") as told:
        EngineSettings(endpoints=(url,))
    assert "s3cret" not in str(told.value)


def test_a_flag_is_one_value_not_a_file() -> None:
    with pytest.raises(UsageError, match=r"gpus = '1\\nfirst_port=3' is not of type int"):
        engine_settings(EngineSettings(), {}, ["gpus=1\nfirst_port=3"])
