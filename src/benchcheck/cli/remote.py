"""Commands that carry folders: to a disk, a bucket or a dataset of the hub, and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchcheck.cli.options import CARRYING, app

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from benchcheck.transfer.far.moving import Moving

__all__ = ["BytesBar", "download_command", "upload_command"]

_AtOnce = Annotated[int, typer.Option("--workers", min=1, max=64, metavar="N", help="Files at once.")]
_PLACE = r"hf://datasets/owner/name\[@branch]\[/folder], s3://bucket/folder, another fsspec URL, or a folder's path."


@app.command("upload", rich_help_panel=CARRYING)
def upload_command(
    what: Annotated[
        Path, typer.Argument(metavar="WHAT", help="A file, or a folder with all below it.", show_default=False)
    ],
    to: Annotated[str, typer.Argument(metavar="TO", help=f"The folder far away: {_PLACE}", show_default=False)],
    private: Annotated[
        bool, typer.Option("--private", help="Where the hub has no such dataset, make a private one.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that differ there.")] = False,
    workers: _AtOnce = 8,
) -> None:
    """Send a file or folder, with a manifest of hashes; the same command continues where it stopped."""
    from benchcheck.console import note
    from benchcheck.transfer.far.remote import upload

    with BytesBar() as bar:
        moved = upload(what, to, private=private, overwrite=overwrite, workers=workers, told=bar)
    print(moved.line())
    note("Elsewhere: benchcheck download FROM TO, which verifies every file")


@app.command("download", rich_help_panel=CARRYING)
def download_command(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help=f"A folder far away, or a file: {_PLACE}", show_default=False)
    ],
    to: Annotated[Path, typer.Argument(metavar="TO", help="The folder here.", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that differ here.")] = False,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take a folder without a manifest on trust (a hub dataset needs none).")
    ] = False,
    workers: _AtOnce = 8,
) -> None:
    """Fetch a folder or file and verify it before it takes its place; the same command continues."""
    from benchcheck.console import warn
    from benchcheck.transfer.far.incoming import download

    with BytesBar() as bar:
        moved = download(source, to, overwrite=overwrite, unverified=unverified, workers=workers, told=bar)
    print(moved.line())
    if moved.unverified:
        warn(f"{moved.unverified:,} files are taken on trust: nothing but their size was compared")


class BytesBar:
    """Hears of a transfer and draws its bar, on a terminal."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "BytesBar":
        from rich.console import Console

        self._console = self._console or Console(stderr=True, highlight=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, state: "Moving") -> None:
        """Move the bar."""
        if self._console is None or not self._console.is_terminal:
            return
        if self._bars is None:
            self._bars = _bars(self._console)
            self._bars.start()
        if state.doing not in self._tasks:
            self._tasks[state.doing] = self._bars.add_task(state.doing, total=state.of_bytes)
        self._bars.update(self._tasks[state.doing], completed=state.bytes)


def _bars(console: "Console") -> "Progress":
    """A bar of bytes that is gone when it is done."""
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
    )
