"""Whether a study's protocol fits the rows of an original package, and the config of a study that is made for them.

Pure.
"""

import re
from collections.abc import Mapping, Sequence

from benchcheck.config import QWEN3_VL, Config, Frames, starter, toml_value
from benchcheck.errors import UsageError
from benchcheck.screen.steps import LADDER
from benchcheck.transfer.original.seen_rows import StepSeen

__all__ = ["PRESET", "config_text", "models_of", "refuse_misfits", "same_model"]

PRESET = "benchcheck-2026"
"""How the original package reads letters (protocol 5)."""


def models_of(steps: Sequence[StepSeen]) -> dict[str, tuple[str, str]]:
    """Return model and revision per role, as the rows say; the protocol's where they say nothing.

    (D) A folder whose last part is the name of the protocol's model is that model; without a revision in the rows it is
    the protocol's.

    Raises:
        UsageError: rows of one role name several.
    """
    found = {}
    for role, (name, revision) in QWEN3_VL.items():
        mine = [seen for seen in steps if LADDER[seen.step].role == role]
        said = {_known(pair, (name, revision)) for seen in mine for pair in seen.models}
        if len(said) > 1:
            numbers = ", ".join(str(seen.step) for seen in mine if seen.models)
            listed = "; ".join(sorted(" at ".join(filter(None, pair)) for pair in said))
            raise UsageError(
                f"the rows of steps {numbers} come from {len(said)} models: {listed}. One study has one model per role "
                f"({role}). Cure: import them into two studies, with --step"
            )
        found[role] = said.pop() if said else (name, revision)
    return found


def _known(said: tuple[str, str], protocol: tuple[str, str]) -> tuple[str, str]:
    """What a row names, with the protocol's name and revision where it means them."""
    if same_model(said[0], protocol[0]) and said[1] in ("", protocol[1]):
        return protocol
    return said


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: equal, or a folder and a hub id with one last part."""
    return one == other or one.rstrip("/").rpartition("/")[2] == other.rpartition("/")[2]


def refuse_misfits(config: Config, steps: Sequence[StepSeen]) -> None:
    """Refuse rows that this study could not have asked.

    Raises:
        UsageError: what differs: preset, steps, models or the number of orders.
    """
    if config.protocol.preset != PRESET:
        raise UsageError(
            f"protocol.preset = {config.protocol.preset!r}, and the original package read letters by {PRESET!r}. "
            "Cure: import into a study of its own"
        )
    for seen in steps:
        if seen.step not in config.protocol.steps:
            raise UsageError(
                f"step {seen.step} is no step of this study ({', '.join(map(str, config.protocol.steps))}). "
                "Cure: choose the others with --step, or add it to protocol.steps"
            )
        step = LADDER[seen.step]
        model, orders = config.models[step.role], config.orders_of(step)
        for (name, revision), count in seen.models.items():
            if not same_model(name, model.model) or revision not in ("", model.revision):
                raise UsageError(
                    f"step {seen.step}: {count} rows come from {' at '.join(filter(None, (name, revision)))}, and "
                    f"models.{step.role} is {' at '.join(filter(None, (model.model, model.revision)))}. "
                    "Cure: import into a study of its own"
                )
        number, count = max(seen.n_perms.items(), key=lambda pair: pair[1], default=(orders, 0))
        if number != orders:  # single rows of another number are left out and counted
            raise UsageError(
                f"step {seen.step}: {count} of {sum(seen.n_perms.values())} rows have n_perm = {number}, and this "
                f"study asks {orders} orders there. Cure: choose the other steps with --step"
            )


def config_text(name: str, models: Mapping[str, tuple[str, str]], orders: int, frames: Frames) -> str:
    """Return the benchcheck.toml of a study for a package's rows."""
    text = starter(name, models=models)
    values = {
        "preset": PRESET,
        "orders": orders,
        "count": frames.count,
        "single": frames.single,
        "long_side": frames.long_side,
        "quality": frames.quality,
    }
    for key, value in values.items():
        text = re.sub(rf"^{key} = \S+", lambda _, k=key, v=value: f"{k} = {toml_value(v)}", text, count=1, flags=re.M)  # type: ignore[misc]
    return text
