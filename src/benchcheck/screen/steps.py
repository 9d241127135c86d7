"""The six rungs of the ladder: what the model sees, which model, how many option orders (protocol 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

__all__ = ["LADDER", "STEP_NUMBERS", "Sight", "Step"]


class Sight(Enum):
    """What a prompt shows; each has an intro of its own that says so truthfully."""

    BLIND = "blind"
    SINGLE_FRAME = "single_frame"
    FRAMES = "frames"
    SHUFFLED = "shuffled"
    OPTIONS_ONLY = "options_only"

    @property
    def needs_frames(self) -> bool:
        """Whether a prompt of this kind carries images; items without frames wait in such a step."""
        return self in (Sight.SINGLE_FRAME, Sight.FRAMES, Sight.SHUFFLED)


@dataclass(frozen=True, slots=True)
class Step:
    """One rung of the ladder."""

    number: int
    name: str
    role: str
    """Which of the config's models reads it: `8b` or `2b`."""
    sight: Sight
    permuted: bool
    """Whether the options are shown in several orders (the config says how many); else once, as stored."""
    measures: str
    """What it means that an item falls here; frame steps measure saturation, not a shortcut (protocol 9)."""

    @property
    def kind(self) -> str:
        """`shortcut` or `saturation`: the two are never added up."""
        return self.measures.partition(":")[0]


LADDER: Mapping[int, Step] = MappingProxyType(
    {
        1: Step(1, "blind", "8b", Sight.BLIND, True, "shortcut: answered from the question and options alone"),
        2: Step(2, "single_frame", "8b", Sight.SINGLE_FRAME, False, "shortcut: answered from one middle frame"),
        3: Step(3, "v32_2b", "2b", Sight.FRAMES, False, "saturation: answered by the smaller model on all frames"),
        4: Step(4, "opt_only", "8b", Sight.OPTIONS_ONLY, True, "shortcut: answered from the options alone"),
        5: Step(5, "v32_2b_shuffle", "2b", Sight.SHUFFLED, False, "shortcut: answered from the frames in any order"),
        6: Step(6, "v32_8b", "8b", Sight.FRAMES, False, "saturation: answered by the larger model on all frames"),
    }
)
STEP_NUMBERS = tuple(LADDER)
