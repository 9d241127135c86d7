"""The `scripted` backend: readings and failures from a seed, without a model, for tests and for trying a study out.

`ModelSpec.model` is `scripted`, or `scripted?skill=0.6&fail=0.01&kind=timeout`. A reading depends on the seed, item,
step and order alone, so a run repeats whatever the batches were. The gold is unknown here: an item prefers one of its
options, and every order shows that preference or, for an item the script does not know, one of its own.
"""

import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints
from urllib.parse import parse_qsl

from benchcheck import __version__
from benchcheck.backends import Engine, ModelSpec, Outcome
from benchcheck.errors import UsageError
from benchcheck.screen.prompts import Prompt
from benchcheck.screen.readings import Failure, LetterLogprobs, Reading, log_sum_exp

__all__ = ["Script", "ScriptedBackend"]

_PREFERENCE = 4.0
"""Nats by which the preferred option stands out, far above the margin of log 2 that a verdict asks for."""


@dataclass(frozen=True, slots=True)
class Script:
    """What the backend plays; each field is an option of the model string."""

    skill: float = 0.5
    """Share of items, per step, whose preferred option is the same in every order."""
    fail: float = 0.0
    """Share of prompts that fail."""
    kind: str = "timeout"
    """Kind of those failures."""
    attempts: int = 0
    """How often such a prompt fails before it is answered; 0 is always."""
    mass: float = 0.99
    """Total probability of the letters."""
    slow: float = 0.0
    """Seconds that every prompt takes."""

    @classmethod
    def parse(cls, model: str) -> "Script":
        """Return the script that a model string asks for.

        Raises:
            UsageError: an option that does not exist, or a value outside what is allowed.
        """
        name, _, query = model.partition("?")
        if name != "scripted":
            raise UsageError(f"model {model!r} is no script. Allowed: scripted, or scripted?option=value&option=value")
        types = get_type_hints(cls)
        given: dict[str, Any] = {}
        for option, value in parse_qsl(query, keep_blank_values=True):
            if option not in types:
                raise UsageError(f"model {model!r}: no option {option!r}. Allowed: {', '.join(types)}")
            try:
                given[option] = types[option](value)
            except ValueError as error:
                raise UsageError(f"model {model!r}: {option} is not a number. Allowed: such as 0.5, or 2") from error
        script = cls(**given)
        script._check(model)
        return script

    def _check(self, model: str) -> None:
        for option in ("skill", "fail", "mass"):
            if not 0 <= getattr(self, option) <= 1:
                raise UsageError(f"model {model!r}: {option} is a share. Allowed: 0 to 1")
        if self.mass == 0 or self.attempts < 0 or not 0 <= self.slow < math.inf or not self.kind:
            raise UsageError(f"model {model!r}: Allowed: mass above 0, attempts and slow from 0 on, kind not empty")


class ScriptedBackend:
    """Plays a script; it counts the attempts of transient failures while it is open."""

    def __init__(self, spec: ModelSpec) -> None:
        """Open a script.

        Raises:
            UsageError: the model string is no script.
        """
        self.script = Script.parse(spec.model)
        self._seed = spec.seed
        self._failed: Counter[tuple[str, int, tuple[int, ...]]] = Counter()
        self.engine = Engine("scripted", __version__, "none", "none", spec.revision)

    def read(self, prompts: Iterable[Prompt]) -> Iterator[Outcome]:
        """Yield one outcome per prompt, in order."""
        for index, prompt in enumerate(prompts):
            if self.script.slow:
                time.sleep(self.script.slow)
            yield Outcome(index, self._failure(prompt) or self._reading(prompt))

    def close(self) -> None:
        """Nothing is held."""

    def _failure(self, prompt: Prompt) -> Failure | None:
        script = self.script
        key = (prompt.item_id, prompt.step, prompt.order)
        if random.Random(f"{self._seed}|fail|{key}").random() >= script.fail:
            return None
        if script.attempts and self._failed[key] >= script.attempts:
            return None
        self._failed[key] += 1
        return Failure(script.kind, f"scripted failure {self._failed[key]} of {script.attempts or 'all'}")

    def _reading(self, prompt: Prompt) -> Reading:
        item, options = f"{self._seed}|{prompt.item_id}", len(prompt.order)
        knows = random.Random(f"{item}|knows|{prompt.step}").random() < self.script.skill
        choice = random.Random(f"{item}|prefers" if knows else f"{item}|guess|{prompt.step}|{prompt.order}")
        preferred = choice.randrange(options)
        noise = random.Random(f"{item}|noise|{prompt.step}|{prompt.order}")
        scores = [noise.gauss(0, 0.2) + _PREFERENCE * (original == preferred) for original in prompt.order]
        total = log_sum_exp(scores) - math.log(self.script.mass)
        letters = LetterLogprobs(tuple(score - total for score in scores), (), self.script.mass)
        return Reading(letters, len(prompt.text.split()) + len(prompt.frames), self.script.slow)
