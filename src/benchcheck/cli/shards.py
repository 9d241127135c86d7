"""Commands that carry frames from one machine to another: into tar shards, and out of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.frames import frames_app
from benchcheck.cli.options import StudyFolder

if TYPE_CHECKING:
    from benchcheck.video.shards.packing import ShardsProgress

__all__ = ["ShardsBar", "frames_pack", "frames_unpack"]

_MB = 10**6


@frames_app.command("pack")
def frames_pack(
    study: StudyFolder,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Where the shards go. \\[default: frames/shards of the study]"),
    ] = None,
    shard_size: Annotated[str, typer.Option("--shard-size", metavar="SIZE", help="About how large one gets.")] = "2GB",
    everything: Annotated[
        bool, typer.Option("--all", help="Every set that is there, whether an item needs it or not.")
    ] = False,
) -> None:
    """Pack frames into tar shards with a manifest; the same command goes on, and adds what came since."""
    from benchcheck.console import tell
    from benchcheck.study import Study
    from benchcheck.video.shards.layout import parse_size
    from benchcheck.video.shards.packing import pack_frames

    size, bar = parse_size(shard_size), ShardsBar("pack")
    try:
        summary = pack_frames(Study.open(study), to, shard_bytes=size, everything=everything, progress=bar)
    finally:
        bar.close()
    for line in summary.lines():
        tell(line)


@frames_app.command("unpack")
def frames_unpack(
    study: StudyFolder,
    source: Annotated[
        Path, typer.Option("--from", metavar="FOLDER", help="Shards and frames_manifest.json.", show_default=False)
    ],
    verify: Annotated[bool, typer.Option("--verify", help="Only check every shard in full; unpack nothing.")] = False,
) -> None:
    """Verify shards of frames and unpack them; the same command goes on where it stopped."""
    from benchcheck.console import tell
    from benchcheck.study import Study
    from benchcheck.video.shards.unpacking import unpack_frames

    bar = ShardsBar("verify" if verify else "unpack")
    try:
        summary = unpack_frames(Study.open(study), source, verify_only=verify, progress=bar)
    finally:
        bar.close()
    for line in summary.lines():
        tell(line)


class ShardsBar:
    """Hears of packing or unpacking and draws its bar, in MB, where there is a terminal."""

    def __init__(self, name: str) -> None:
        from benchcheck.console import progress_bar

        self.name, self.bars = name, progress_bar()

    def __call__(self, state: "ShardsProgress") -> None:
        """Move the bar."""
        from benchcheck.video.amounts import shown_size

        if not self.bars.console.is_terminal:
            return
        if not self.bars.task_ids:
            self.bars.start()
            self.bars.add_task(f"{self.name}, MB", total=state.total // _MB, rate="", failed="")
        rate = f"{shown_size(state.done / state.seconds)}/s" if state.seconds else ""
        self.bars.update(self.bars.task_ids[0], completed=state.done // _MB, rate=rate)

    def close(self) -> None:
        """Take the bar away."""
        if self.bars.task_ids:
            self.bars.stop()
