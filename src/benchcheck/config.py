"""benchcheck.toml as frozen dataclasses: strict, and the only place where what is measured is decided.

Flags of the commands say only where, with which engine and how many. An unknown key is an error that lists the valid
ones. `load` reads a file, `TEMPLATE` is what `benchcheck init` writes.
"""

import dataclasses
import hashlib
import json
import math
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from benchcheck.errors import BenchcheckError, ConfigError, UsageError
from benchcheck.inputs import BENCH_NAME, COMMIT, Normalize, Places, PoolSource, Videos
from benchcheck.screen.prompts import INTROS, PREFILL, render_text
from benchcheck.screen.readings import PRESETS
from benchcheck.screen.steps import LADDER, STEP_NUMBERS, Sight, Step
from benchcheck.settings import ENVIRONMENT, EngineSettings, RaySettings, SlurmSettings, without_password
from benchcheck.settings import check as _check

__all__ = [
    "BENCH_NAME",
    "COMMIT",
    "EMBEDDED",
    "QWEN3_VL",
    "STUDY_VERSION",
    "Config",
    "Frames",
    "Model",
    "Normalize",
    "Places",
    "PoolSource",
    "Protocol",
    "Videos",
    "engine_settings",
    "from_table",
    "load",
    "parse",
    "pool_entry",
    "read_toml",
    "starter",
    "step_key",
    "step_protocol",
    "toml_key",
    "toml_value",
]

STUDY_VERSION = 1
QWEN3_VL: Mapping[str, tuple[str, str]] = types.MappingProxyType(
    {
        "8b": ("Qwen/Qwen3-VL-8B-Instruct", "0c351dd01ed87e9c1b53cbc748cba10e6187ff3b"),
        "2b": ("Qwen/Qwen3-VL-2B-Instruct", "89644892e4d85e24eaac8bacfd4f463576704203"),
    }
)
"""The models of protocol 4, with their revisions."""
EMBEDDED: Mapping[str, tuple[str, str]] = types.MappingProxyType(
    {"8b": ("embedded:large", ""), "2b": ("embedded:small", "")}
)
"""The two tiny checkpoints in the package; they know a made-up world, and nothing of real videos."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What is asked and when an item leaves (protocol sections 4 and 5)."""

    preset: str = "exact"
    cascade: bool = True
    """False reads every step on every item, for contrasts between steps; verdicts are the same function of the rows."""
    sample: int = 0
    """With `cascade = false`: items a benchmark, drawn by the seed; 0 is all."""
    steps: tuple[int, ...] = STEP_NUMBERS
    seed: int = 42
    orders: int = 4
    right_share: float = 0.75
    margin: float = math.log(2)
    """In nats: how far the gold letter must lie above the mean of the others."""
    mass_floor: float = 0.10

    def __post_init__(self) -> None:
        """Refuse values outside what the protocol defines."""
        _check(self.preset in PRESETS, "preset", self.preset, " or ".join(map(repr, PRESETS)))
        _check(bool(self.steps), "steps", list(self.steps), "at least one of 1 to 6")
        ascending = list(self.steps) == sorted(set(self.steps)) and set(self.steps) <= set(LADDER)
        _check(ascending, "steps", list(self.steps), "numbers from 1 to 6, ascending, each once")
        _check(1 <= self.orders <= 24, "orders", self.orders, "1 to 24")
        _check(0 < self.right_share <= 1, "right_share", self.right_share, "above 0, up to 1")
        _check(math.isfinite(self.margin) and self.margin >= 0, "margin", self.margin, "0 or more, in nats")
        _check(0 <= self.mass_floor < 1, "mass_floor", self.mass_floor, "0 up to below 1")
        _check(self.sample >= 0, "sample", self.sample, "0 (all) or more")
        alone = "0 while cascade = true (a cascade over a sample is `benchcheck screen --pilot`)"
        _check(not (self.cascade and self.sample), "sample", self.sample, alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The checkpoint behind one role of the ladder."""

    model: str
    revision: str = ""

    def __post_init__(self) -> None:
        """Refuse an empty name."""
        _check(bool(self.model.strip()), "model", self.model, "a folder, a hub id, embedded:large or embedded:small")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The grid of frames (protocol 3). `single` is the grid position shown alone, counted from 0."""

    count: int = 32
    single: int = 16
    long_side: int = 448
    quality: int = 85

    def __post_init__(self) -> None:
        """Refuse a grid that cannot be drawn."""
        _check(1 <= self.count <= 1024, "count", self.count, "1 to 1024")
        _check(0 <= self.single < self.count, "single", self.single, f"0 to {self.count - 1} (below count)")
        _check(16 <= self.long_side <= 4096, "long_side", self.long_side, "16 to 4096 pixels")
        _check(1 <= self.quality <= 95, "quality", self.quality, "1 to 95")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A study's benchcheck.toml."""

    study_version: int
    name: str = "study"
    protocol: Protocol = Protocol()
    frames: Frames = Frames()
    videos: Videos = Videos()
    normalize: Normalize = Normalize()
    places: Places = Places()
    models: Mapping[str, Model] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    pool: tuple[PoolSource, ...] = ()
    engine: EngineSettings = EngineSettings()
    slurm: SlurmSettings = SlurmSettings()
    ray: RaySettings = RaySettings()

    def __post_init__(self) -> None:
        """Refuse a study of another version, unknown roles and unknown intros."""
        _check(self.study_version == STUDY_VERSION, "study_version", self.study_version, f"{STUDY_VERSION}")
        needed = {LADDER[number].role for number in self.protocol.steps}
        roles = {step.role for step in LADDER.values()}
        for role in sorted(set(self.models) - roles):
            raise ValueError(f"models.{role} is not a role. Allowed: {', '.join(sorted(roles))}")
        for role in sorted(needed - set(self.models)):
            raise ValueError(f"models.{role} is missing. Cure: add [models.{role}] with model and revision")
        for kind in sorted(set(self.prompts) - {sight.value for sight in Sight}):
            allowed = ", ".join(sight.value for sight in Sight)
            raise ValueError(f"prompts.{kind} is not a kind of prompt. Allowed: {allowed}")

    def intro(self, sight: Sight) -> str:
        """The first line of a prompt of this kind."""
        return self.prompts.get(sight.value, INTROS[sight])

    @property
    def steps(self) -> tuple[Step, ...]:
        """The rungs of this study, in order."""
        return tuple(LADDER[number] for number in self.protocol.steps)

    def orders_of(self, step: Step) -> int:
        """How many prompts an item gets in a step."""
        return self.protocol.orders if step.permuted else 1


def step_key(config: Config, step: Step) -> str:
    """Return 16 hex digits over all that could change an answer of this step: `step_protocol` (protocol 6)."""
    seen = json.dumps(step_protocol(config, step), sort_keys=True)
    return hashlib.sha256(seen.encode()).hexdigest()[:16]


def step_protocol(config: Config, step: Step) -> dict[str, Any]:
    """Return all that could change an answer of this step, as JSON values.

    Model, revision, preset, the prompt's text and layout, the option orders, the frames. Not in it: the engine, its
    version, dtype and GPU (rows record those), and the thresholds of the verdict (they can move without asking again).
    """
    protocol, frames, model = config.protocol, config.frames, config.models[step.role]
    question = None if step.sight is Sight.OPTIONS_ONLY else "?"
    seen: dict[str, Any] = {
        "protocol": 1,
        "preset": protocol.preset,
        "mass_floor": protocol.mass_floor if protocol.preset == "exact" else 0.0,
        "model": [model.model, model.revision],
        "sight": step.sight.value,
        "layout": render_text(config.intro(step.sight), question, ["a", "b"]),
        "prefill": PREFILL,
        "orders": [protocol.orders, protocol.seed] if step.permuted else "as stored",
    }
    if step.sight.needs_frames:
        seen["frames"] = [frames.count, frames.long_side, frames.quality]
        if config.normalize.shown is not None:
            seen["normalize"] = config.normalize.shown
    if step.sight is Sight.SINGLE_FRAME:
        seen["single"] = frames.single
    if step.sight is Sight.SHUFFLED:
        seen["shuffle"] = protocol.seed
    return seen


def starter(
    name: str,
    pool: Sequence[Mapping[str, Any]] = (),
    videos: str = "videos",
    models: Mapping[str, tuple[str, str]] = QWEN3_VL,
) -> str:
    """Return the text of a new study's benchcheck.toml.

    Args:
        name: the study's name.
        pool: one mapping per benchmark, with the keys of `PoolSource`.
        videos: the folder of local videos.
        models: model and revision per role.
    """
    template = resources.files("benchcheck").joinpath("starter.toml").read_text(encoding="utf-8")
    example = '# [[pool]]\n# spec = "generic"\n# files = ["items.jsonl"]\n# bench = "mine"'
    return template.format(
        name=toml_value(name),
        videos=toml_value(videos),
        large=toml_value(models["8b"][0]),
        large_revision=toml_value(models["8b"][1]),
        small=toml_value(models["2b"][0]),
        small_revision=toml_value(models["2b"][1]),
        pool="\n\n".join(map(pool_entry, pool)) or example,
    )


def pool_entry(entry: Mapping[str, Any]) -> str:
    """Return a benchmark's entry as benchcheck.toml has it; the keys are those of `PoolSource`."""
    return "\n".join(["[[pool]]", *(f"{key} = {toml_value(value)}" for key, value in entry.items())])


def toml_value(value: object) -> str:
    """Return a value as TOML: texts, numbers, flags, lists and inline tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(key)} = {toml_value(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    # JSON's flags and texts are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def toml_key(key: str) -> str:
    """Return a key as TOML, quoted where it has to be."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def read_toml(path: Path, error: type[BenchcheckError] = ConfigError) -> dict[str, Any]:
    """Read a TOML file; what is wrong with it is one line with the file and the place."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise error(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as reason:
        raise error(f"{path}: not readable as TOML: {reason}") from None


def load(path: Path) -> Config:
    """Load a study's config.

    Raises:
        ConfigError: one line with the file, the key, the value and what is allowed.
    """
    return parse(read_toml(path), str(path))


def parse(table: Mapping[str, Any], where: str) -> Config:
    """Turn a parsed TOML table into a Config; `where` begins every message."""
    version = table.get("study_version", STUDY_VERSION)  # a missing one is a missing key like any other
    if version != STUDY_VERSION:
        raise ConfigError(
            f"{where}: study_version = {version!r}, but this benchcheck reads version {STUDY_VERSION}. Cure: use the "
            "benchcheck version that made the study, or make a new one with `benchcheck init` and copy the settings"
        )
    return from_table(Config, table, where)


def from_table(kind: type[T], table: object, where: str, error: type[BenchcheckError] = ConfigError) -> T:
    """Build a frozen dataclass from a TOML table, strictly: every key known, every type right.

    Raises:
        `error` (ConfigError by default): one line that begins with `where`.
    """
    if not isinstance(table, Mapping):
        raise error(f"{where}: expected a table, got {table!r}")
    hints = typing.get_type_hints(kind)
    fields = {item.name: item for item in dataclasses.fields(typing.cast(Any, kind))}
    for key in table:
        if key not in fields:
            raise error(f"{where}: unknown key {key!r}. Allowed: {', '.join(fields)}")
    missing = [
        name
        for name, item in fields.items()
        if name not in table and item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise error(f"{where}: key {missing[0]!r} is missing")
    values = {key: _convert(hints[key], value, f"{where}: {key}", error) for key, value in table.items()}
    try:
        return kind(**values)
    except ValueError as reason:
        raise error(f"{where}: {reason}") from None


def engine_settings(settings: EngineSettings, environment: Mapping[str, str], given: Sequence[str]) -> EngineSettings:
    """Return the study's settings with those of the environment (protocol 8), then `key=value` flags, in their place.

    Raises:
        UsageError: a key that does not exist, or a value that is not allowed.
    """
    where = [(f"{name}={environment[name]}", f"{key}={environment[name]}") for name, key in ENVIRONMENT.items()
             if environment.get(name)]  # fmt: skip
    for origin, text in [*where, *((f"--set {without_password(text)}", text) for text in given)]:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"{origin}: not of the form key=value")
        values = {name: getattr(settings, name) for name in EngineSettings.__dataclass_fields__}
        plain = {name: list(old) if isinstance(old, tuple) else old for name, old in values.items()}
        plain[key] = _value(value)
        settings = from_table(EngineSettings, plain, origin, UsageError)
    return settings


def _value(text: str) -> object:
    """Return what a flag's text means: a value of TOML, else the text itself."""
    try:
        found = tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["x"] if len(found) == 1 else text  # further lines would be keys of their own


def _convert(hint: Any, value: object, where: str, error: type[BenchcheckError]) -> Any:
    """Check one value against its annotation and return it as that type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _convert(next(part for part in arguments if part is not type(None)), value, where, error)
    if dataclasses.is_dataclass(hint):
        return from_table(typing.cast(type[Any], hint), value, where, error)
    if origin is tuple:
        if not isinstance(value, list):
            raise error(f"{where} = {value!r} is not a list")
        return tuple(_convert(arguments[0], part, f"{where}[{index}]", error) for index, part in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise error(f"{where} = {value!r} is not a table")
        return {key: _convert(arguments[1], part, f"{where}.{key}", error) for key, part in value.items()}
    if hint is Any:
        return value
    return _scalar(hint, value, where, error)


def _scalar(hint: type, value: object, where: str, error: type[BenchcheckError]) -> Any:
    """Check a string, number or flag; an integer passes for a float, a flag never for a number."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise error(f"{where} is too large a number") from None
    if type(value) is not hint:
        raise error(f"{where} = {value!r} is not of type {hint.__name__}")
    return value
