"""What `frames check` found, for people."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["certificate_lines", "certificate_table"]

_MEANS = {
    "agreeing": "agree in times and pictures",
    "differing": "differ",
    "not_decoded": "not decoded by the second decoder",
    "not_recorded": "nobody wrote down how they were made",
    "source_missing": "their video is not here",
    "source_changed": "their video has other bytes now",
}


def certificate_table(certificate: Mapping[str, Any]) -> "Table":
    """Counts of sets, and what their frames measured."""
    from benchcheck.console import columns

    table = columns("sets", "")
    table.columns[0].justify = "right"
    table.columns[1].justify = "left"
    for name, count in certificate["counts"].items():
        if count or name in ("agreeing", "differing"):
            table.add_row(f"{count:,}", _MEANS[name])
    return table


def certificate_lines(certificate: Mapping[str, Any]) -> Iterator[str]:
    """What was compared by what, the figures, and what is wrong."""
    rule, second = certificate["rule"], certificate["second_decoder"]
    drawn = "all" if rule["drawn"] == rule["of"] else f"{rule['drawn']:,} of {rule['of']:,} by seed {rule['seed']}"
    yield f"sets: {drawn}; second decoder: OpenCV {second['opencv']} with libavcodec {second['libavcodec']}"
    for made_by in certificate["first_decoder"]:
        by = f"PyAV {made_by.get('pyav')} with libavcodec {made_by.get('libavcodec')}"
        yield f"made by {by}: {made_by['sets']:,} sets"
    pts, psnr, mean = (certificate[name] for name in ("pts_difference_s", "psnr_db", "mean_difference"))
    limits = certificate["limits"]
    if psnr["least"] is not None:
        yield (
            f"times: {1000 * pts['most']:.3f} ms apart at most (limit {1000 * limits['pts_s']:g}); pictures: "
            f"{psnr['least']:.1f} dB at least, {psnr['median']:.1f} in the middle (limit {limits['psnr_db']:g}), "
            f"{mean['most']:.1f} of 255 at most (limit {limits['mean_difference']:g})"
        )
    for status, examples in certificate["reasons"].items():
        for key, reason in examples:
            yield f"{status}: {key}: {reason}"
    if not certificate["counts"]["agreeing"]:
        yield "no set was found to agree: this certifies nothing"
