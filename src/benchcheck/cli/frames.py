"""Commands on frames: making them from videos, and proving them."""

from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, StudyFolder, app

__all__ = ["frames_app", "frames_extract"]

frames_app = typer.Typer(help="Videos become frames.", no_args_is_help=True)
app.add_typer(frames_app, name="frames", rich_help_panel=MAKING)


@frames_app.command("extract")
def frames_extract(
    study: StudyFolder,
    workers: Annotated[int, typer.Option(min=0, max=256, help="Worker processes; 0 is one per core.")] = 0,
) -> None:
    """Decode the frames that are not there yet; the same command continues where it stopped."""
    from benchcheck.console import FramesBar, tell
    from benchcheck.study import Study
    from benchcheck.video.extract import extract_frames

    opened, bar = Study.open(study), FramesBar()
    try:
        summary = extract_frames(opened, workers=workers or None, progress=bar)
    finally:
        bar.close()
    for line in summary.lines():
        tell(line)
