"""Commands on frames: making them from videos, and proving them."""

import os
from typing import Annotated

import typer

from benchcheck.cli.options import MAKING, StudyFolder, app

__all__ = ["frames_app", "frames_check", "frames_extract"]

frames_app = typer.Typer(help="Videos become frames.", no_args_is_help=True)
app.add_typer(frames_app, name="frames", rich_help_panel=MAKING)

Workers = Annotated[int, typer.Option(min=0, max=256, metavar="N", help="Worker processes; 0 is one per core.")]


@frames_app.command("extract")
def frames_extract(
    study: StudyFolder,
    workers: Workers = 0,
    shard: Annotated[
        str,
        typer.Option(
            metavar="I/N", help="Only the videos of share I (from 0) of N, such as 0/4; auto is a Slurm array's task."
        ),
    ] = "",
    ignore_free_space: Annotated[
        bool, typer.Option("--ignore-free-space", help="Begin though the frames will not fit by the estimate.")
    ] = False,
) -> None:
    """Decode the frames that are not there yet; the same command continues where it stopped."""
    from benchcheck.console import FramesBar, note, tell, warn
    from benchcheck.run.shard import WHOLE, parse_shard
    from benchcheck.study import Study
    from benchcheck.video.making.extract import plan_extraction
    from benchcheck.video.sources.unread import unread_archives

    part = parse_shard(shard, os.environ) if shard else WHOLE
    opened, bar = Study.open(study), FramesBar()
    extraction = plan_extraction(opened, share=part)
    if extraction.need.sets:
        note(extraction.need.line())
    try:
        summary = extraction.run(workers=workers or None, progress=bar, ignore_free_space=ignore_free_space)
    finally:
        bar.close()
    for line in summary.lines():
        tell(line)
    for line in unread_archives(opened) if summary.statuses["missing"] else ():
        warn(line)


@frames_app.command("check")
def frames_check(
    study: StudyFolder,
    sample: Annotated[int, typer.Option(min=0, metavar="N", help="Sets to decode again; 0 is all.")] = 50,
    seed: Annotated[int, typer.Option(metavar="S", help="Which sets a sample takes.")] = 42,
    workers: Workers = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate itself.")] = False,
) -> None:
    """Decode ready frames again by a second decoder, compare them, and keep what was found as a certificate."""
    import json

    from benchcheck.cli.certificate_table import certificate_lines, certificate_table
    from benchcheck.console import FramesBar, note, tell
    from benchcheck.study import Study
    from benchcheck.video.proving.certificate import certify

    opened, bar = Study.open(study), FramesBar()
    try:
        certificate = certify(opened, sample=sample, seed=seed, workers=workers or None, progress=bar)
    finally:
        bar.close()
    if as_json:
        print(json.dumps(certificate, indent=1))
    else:
        tell(certificate_table(certificate))
        for line in certificate_lines(certificate):
            tell(line)
        note(f"The certificate: {opened.certificate_file}")
    if certificate["counts"]["differing"] or not certificate["counts"]["agreeing"]:
        raise typer.Exit(1)
