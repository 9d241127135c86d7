"""The two checkpoints of the demo: their size, and how long and how surely they are taught."""

from collections.abc import Mapping

from lessons import Pupil, Sureness
from model_files import Shape

__all__ = ["PUPILS"]

LARGE = Shape(
    hidden=192,
    feed_forward=512,
    layers=7,
    heads=6,
    kv_heads=2,
    vision_hidden=96,
    vision_feed_forward=192,
    vision_layers=3,
    vision_heads=3,
    deepstack=(1,),
)
SMALL = Shape(
    hidden=128,
    feed_forward=320,
    layers=5,
    heads=4,
    kv_heads=2,
    vision_hidden=64,
    vision_feed_forward=128,
    vision_layers=2,
    vision_heads=2,
    deepstack=(0,),
)
LARGE_SURENESS = {
    "blind": Sureness(0.35, 0.97),
    "options": Sureness(0.35, 0.97),
    "one_frame": Sureness(0.35, 0.97),
    "many_frames": Sureness(0.10, 0.97),
    "order": Sureness(0.10, 0.97),
}
SMALL_SURENESS = {
    "blind": Sureness(0.15, 0.92),
    "options": Sureness(0.15, 0.92),
    "one_frame": Sureness(0.15, 0.92),
    "many_frames": Sureness(-0.08, 0.93),
    "order": Sureness(-0.08, 0.93),
}
PUPILS: Mapping[str, tuple[Shape, Pupil]] = {
    "large": (LARGE, Pupil(steps=2200, sureness=LARGE_SURENESS, shuffled={})),
    "small": (
        SMALL,
        Pupil(steps=1800, sureness=SMALL_SURENESS, shuffled={"many_frames": Sureness(0.05, 0.95)}),
    ),
}
"""Network and lessons of each checkpoint. Being sure in step with the strength of the evidence is what spreads margins;
the small one is taught to give up earlier, and to trust a set of frames more when they come mixed."""
