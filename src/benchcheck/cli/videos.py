"""Commands on videos: looking at each once, and what is known of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import MAKING, StudyFolder, app

if TYPE_CHECKING:
    from benchcheck.video.preparing.prepared import ShownVideos

__all__ = ["videos_app", "videos_list", "videos_prepare"]

videos_app = typer.Typer(help="Videos are found, hashed and looked at.", no_args_is_help=True)
app.add_typer(videos_app, name="videos", rich_help_panel=MAKING)

_PAIRS = 10


@videos_app.command("prepare")
def videos_prepare(
    study: StudyFolder,
    normalize: Annotated[
        bool, typer.Option("--normalize", help=r"Also write each as H.264 in MP4, as \[normalize] in the config says.")
    ] = False,
    workers: Annotated[int, typer.Option(min=0, max=256, metavar="N", help="Worker processes; 0 is one per core.")] = 0,
) -> None:
    """Hash, probe and fingerprint videos that are new or changed, and give each its id by content."""
    from benchcheck.console import FramesBar, tell, warn
    from benchcheck.run.lock import run_lock
    from benchcheck.study import Study
    from benchcheck.video.preparing.prepare import prepare_videos
    from benchcheck.video.sources.unread import unread_archives

    opened, bar = Study.open(study), FramesBar("videos")
    with run_lock(opened, warn=warn):
        try:
            summary = prepare_videos(opened, normalize=normalize, workers=workers or None, progress=bar)
        finally:
            bar.close()
    for line in summary.lines():
        tell(line)
    for line in unread_archives(opened) if summary.statuses["missing"] else ():
        warn(line)


@videos_app.command("list")
def videos_list(
    study: StudyFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print every video with all that is known of it.")] = False,
) -> None:
    """Show what was found: videos by status and by codec, which are the same file, which look like one film."""
    import json

    from benchcheck.study import Study
    from benchcheck.video.preparing.prepared import list_videos

    shown = list_videos(Study.open(study))
    if as_json:
        print(json.dumps(shown.row(), indent=1))
    else:
        _tell(shown)


def _tell(shown: "ShownVideos") -> None:
    """Print the tables."""
    from rich.markup import escape

    from benchcheck.console import columns, tell
    from benchcheck.video.faults import CURES
    from benchcheck.video.preparing.prepared import NOT_TRIED

    table = columns("status", "videos")
    table.add_column("what helps", overflow="fold")
    table.columns[0].justify = "left"
    cures = {**CURES, NOT_TRIED: "run `benchcheck videos prepare`"}
    for status, count in shown.statuses.most_common():
        table.add_row(escape(status), f"{count:,}", cures.get(status, ""))
    tell(table)
    if shown.codecs:
        table = columns("codec", "videos")
        table.columns[0].justify = "left"
        for codec, count in shown.codecs.most_common():
            table.add_row(escape(codec), f"{count:,}")
        tell(table)
    groups, pairs = shown.duplicates(), shown.alike()
    if groups:
        tell(f"{sum(map(len, groups)):,} videos are {len(groups):,} file{'s' if len(groups) > 1 else ''} by content")
    for one, other in pairs[:_PAIRS]:
        tell(f"may be one film: {' '.join(one.key.split())} and {' '.join(other.key.split())}")
    if len(pairs) > _PAIRS:
        tell(f"and {len(pairs) - _PAIRS:,} more pairs; all are in --json")
