"""What stands in a package for those who unpack it: its benchcheck.toml, its README and its launcher. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from benchcheck.config import Config, pool_entry, toml_key, toml_value
from benchcheck.settings import ENVIRONMENT

__all__ = ["SHARDS", "config_text", "launcher_text", "readme_text", "steps_of"]

SHARDS = "frames/shards"
"""Folder of a package in which its frames travel."""
_REPOSITORY = "https://github.com/benchcheck/benchcheck"
_OF_THIS_MACHINE = ("places", "videos", "slurm", "ray")
"""Tables of the config that say where things lie here, or how this cluster is used."""
_ENGINE_HERE = ("endpoints", "served_name", "api_key", "python", "vllm", "gpus", "first_port")
"""Keys of `[engine]` that are this machine's."""
_ENTRY = ("spec", "bench", "revision", "accept_drift")
"""Keys of a `[[pool]]` entry that travel: items are there already, where they come from is still said."""


def steps_of(config: Config, chosen: Sequence[int]) -> list[int]:
    """Return the steps that a package's config has: those before the chosen ones, too, since they say what is alive."""
    last = max(chosen)
    return [
        number for number in config.protocol.steps if number in chosen or (config.protocol.cascade and number < last)
    ]


def config_text(table: Mapping[str, Any], steps: Sequence[int], entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a package's benchcheck.toml: the study's, with these steps and without what is this machine's.

    Args:
        table: the study's benchcheck.toml.
        steps: the package's steps.
        entries: the `[[pool]]` entries, with the spec as it is called in the package and the benchmark's name.
    """
    lines = [
        "# The study's settings, without the paths, servers and cluster of the machine that made it.",
        "",
    ]
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping | list)}
    lines += _keys(plain)
    sections = {
        key: value for key, value in table.items() if isinstance(value, Mapping) and key not in _OF_THIS_MACHINE
    }
    sections["protocol"] = {**sections.get("protocol", {}), "steps": list(steps)}
    if "engine" in sections:
        sections["engine"] = {key: value for key, value in sections["engine"].items() if key not in _ENGINE_HERE}
    for name, section in sections.items():
        inner = {key: value for key, value in section.items() if isinstance(value, Mapping)}
        flat = {key: value for key, value in section.items() if key not in inner}
        if flat or not inner:
            lines += ["", f"[{toml_key(name)}]", *_keys(flat)]
        for key, value in inner.items():
            lines += ["", f"[{toml_key(name)}.{toml_key(key)}]", *_keys(value)]
    for entry in entries:
        lines += ["", pool_entry({key: entry[key] for key in _ENTRY if key in entry})]
    return "\n".join(lines) + "\n"


def _keys(table: Mapping[str, Any]) -> list[str]:
    """Lines of a table."""
    return [f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items()]


def launcher_text(chosen: Sequence[int], steps: Sequence[int]) -> str:
    """Return run.sh: it finds the package and benchcheck, and asks; the environment's settings are benchcheck's own."""
    names = ", ".join(ENVIRONMENT)
    lines = [
        "#!/usr/bin/env bash",
        "# Asks what is left of this package; the same command again continues where it stopped.",
        "#   bash run.sh                              this machine, in this process",
        "#   bash run.sh --engine vllm                vLLM in this process, on a GPU",
        "#   bash run.sh --engine server --launch     one vLLM server per GPU",
        "#   bash run.sh --executor slurm             one array per step, by [slurm] of benchcheck.toml",
        "# All flags go to `benchcheck screen`. It reads these variables itself, and nothing is set here:",
        f"#   {names}",
        "# PY also names the Python that has benchcheck, where there is no benchcheck on PATH.",
        "set -euo pipefail",
        'here="$(CDPATH= cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"',
        "if command -v benchcheck > /dev/null 2>&1; then",
        "  benchcheck=(benchcheck)",
        "else",
        '  benchcheck=("${PY:-python3}" -m benchcheck)',
        "fi",
    ]
    if list(chosen) == list(steps):
        return "\n".join([*lines, 'exec "${benchcheck[@]}" screen "$here" "$@"', ""])
    numbers = " ".join(map(str, chosen))
    lines += [f"for step in {numbers}; do", '  "${benchcheck[@]}" screen "$here" --step "$step" "$@"', "done", ""]
    return "\n".join(lines)


def readme_text(facts: Mapping[str, Any], config: Config) -> str:
    """Return a package's README with the commands as they are typed; `facts` is its package.json."""
    pool = facts["pool"]
    named = [step for step in config.steps if step.number in facts["steps"]]
    benches = ", ".join(f"{bench} {count['items']:,}" for bench, count in pool["benchmarks"].items())
    many = sum(count["mcq"] for count in pool["benchmarks"].values())
    rows = ", ".join(f"step {step}: {count:,}" for step, count in facts["answers"].items() if count)
    made = f"Made {facts['made_at']}. {pool['items']:,} items ({benches}), {many:,} of them multiple-choice."
    held = f"Rows that are there already: {rows or 'none'}."
    parts = [
        f"# {' '.join(facts['study'].split())}: a package of benchcheck",
        f"{made} {held}",
        "| step | name | model |\n|---|---|---|\n"
        + "\n".join(f"| {step.number} | {step.name} | {_model(config, step.role)} |" for step in named),
        "All commands are typed in this folder.",
        "## Install",
        *_install(facts["benchcheck"], [config.models[step.role].model for step in named]),
    ]
    if facts["model_folders"]:
        where = "below `models/` (or `BENCHCHECK_MODELS`), or at the same path"
        parts.append(f"Models that were folders: {', '.join(map(repr, facts['model_folders']))}. Put them {where}.")
    if any(step.sight.needs_frames for step in named):
        parts += ["## Frames", *_frames(packed=bool(facts["frames"]))]
    return "\n\n".join([*parts, _RUN, _HOME]) + "\n"


_RUN = f"""## Run

```
benchcheck plan .                        # what is left; REMAINING_TOTAL=0 is done
bash run.sh                              # this machine
bash run.sh --engine vllm                # a GPU, vLLM in this process
bash run.sh --engine server --launch     # one vLLM server per GPU
bash run.sh --executor slurm             # an array per step; set [slurm] in benchcheck.toml first
```

{", ".join(f"`{name}`" for name in ENVIRONMENT)} are read from the environment. The same command continues where it
stopped. What is asked stands in `benchcheck.toml` and may not change here: `screen` compares it with `package.json`.
`[engine]`, `[slurm]` and `[ray]` say how models run and are yours to set."""
_HOME = """## Send the results home

```
benchcheck pack .
```

makes `pool_returns_<host>_<date>.tar.gz` and its `.sha256`. On the machine that made this package:

```
benchcheck merge STUDY pool_returns_<host>_<date>.tar.gz
```"""


def _model(config: Config, role: str) -> str:
    """A model and its revision."""
    model = config.models[role]
    return f"`{model.model}`" + (f" at `{model.revision}`" if model.revision else "")


def _install(code: Mapping[str, str], models: Sequence[str]) -> list[str]:
    """The version that made the package, and its extra."""
    tiny = all(model.startswith(("embedded:", "scripted")) for model in models)
    extra = "transformers" if tiny else "vllm"
    what = f"benchcheck[{extra}]=={code['version']}"
    if code["commit"]:
        what = f"benchcheck[{extra}] @ git+{_REPOSITORY}@{code['commit'].rstrip('+')}"
    commands = f"```\npython3 -m venv .venv\n. .venv/bin/activate\npip install {shlex.quote(what)}\n```"
    others = "Other extras are `server` (to ask servers) and `transformers`; vLLM has an environment of its own."
    edited = "The code that made this package had changes that no commit has: install from those files instead."
    return [commands, *([edited] if code["commit"].endswith("+") else []), *([] if tiny else [others])]


def _frames(packed: bool) -> list[str]:
    """Where frames come from and go to."""
    missing = (
        "They are not in this package: `benchcheck frames pack STUDY --to SHARDS` makes shards where it was made. Here"
    )
    where = "verifies and unpacks them to `frames/pool_frames/`, or to `POOL_FRAMES_DIR` where that is set."
    waits = "Items without frames wait; the text steps run."
    return [
        *([] if packed else [missing]),
        f"```\nbenchcheck frames unpack . --from {SHARDS if packed else 'SHARDS'}\n```",
        f"{where} {waits}",
    ]
