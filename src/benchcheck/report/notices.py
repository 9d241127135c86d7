"""What a reader must know before any number."""

from benchcheck.config import Config
from benchcheck.study import IMPORTED, Study

__all__ = ["IMPORTED_NOTICE", "embedded_notice", "notices_of"]

IMPORTED_NOTICE = (
    "Some answers came from a package of the original layout, whose rows do not say how their prompts were worded: "
    "that it was as this study words them is taken on trust."
)


def notices_of(study: Study, engines: set[str]) -> list[str]:
    """Return what stands above the page's numbers; `engines` are the backends that answered."""
    notices = []
    if embedded := embedded_notice(study.config):
        notices.append(embedded)
    if "scripted" in engines:
        notices.append("Some answers come from the scripted backend: they are made up for tests, no model was asked.")
    if IMPORTED in engines:
        notices.append(IMPORTED_NOTICE)
    if _is_stale(study):
        notices.append("Rows or items were written after these tables were assembled: assemble again to see them.")
    return notices


def embedded_notice(config: Config) -> str:
    """Return what a reader must know where a step is read by a model of the demo, else nothing."""
    models = {config.models[step.role].model for step in config.steps}
    embedded = sorted(model for model in models if model.startswith("embedded:"))
    if not embedded:
        return ""
    return (
        f"These verdicts come from the model that ships inside benchcheck ({', '.join(embedded)}). It knows the "
        "synthetic demo videos and nothing else. On a real benchmark its verdicts mean nothing: do not cite them, "
        "and remove no item because of them."
    )


def _is_stale(study: Study) -> bool:
    """Whether the pool or a step's rows are younger than the tables."""
    sources = [study.pool_file, *(file for step in study.config.steps for file in study.step_files(step.number))]
    assembled = study.database.stat().st_mtime_ns
    return any(source.stat().st_mtime_ns > assembled for source in sources if source.exists())
