from benchcheck.config import Model
from benchcheck.pool.items import Item, VideoRef

MODELS = {"8b": Model(model="m"), "2b": Model(model="m")}
CONFIG_TEXT = 'study_version = 1\n[models.8b]\nmodel = "m"\n[models.2b]\nmodel = "m"\n'


def item(
    member: str, *, start: float | None = None, end: float | None = None, number: int = 0, form: str = "mcq"
) -> Item:
    """A question of benchmark `b` about one video."""
    ref = VideoRef("b", member)
    return Item(
        item_id=f"b_{number}", bench="b", source_id="", question="q?", options=("a", "b"), gold=0, format=form,
        video_key=ref.key, video_id=ref.video_id, start=start, end=end,
    )  # fmt: skip
