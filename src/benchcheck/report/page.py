"""The report as one HTML file that loads nothing: no network, no script, pictures inside (protocol 9, issue 2).

Everything that comes from items, rows or configs is untrusted text: it is cleaned, shortened and escaped, and the
page's own content security policy allows nothing but its one style sheet and pictures inside the file.
"""

import base64
import hashlib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchcheck import __version__
from benchcheck.errors import StudyError
from benchcheck.files import publish
from benchcheck.report.annotation import annotation_of
from benchcheck.report.examples import examples_of, shown_prompts
from benchcheck.report.findings import MEANINGS, find, verdict_name
from benchcheck.report.noise import noise_found
from benchcheck.report.notices import notices_of
from benchcheck.report.tables import open_results, settings_of
from benchcheck.study import Study
from benchcheck.video.proving.certificate import certificate_line

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["clean", "write_report"]

_TEMPLATES = Path(__file__).parent / "templates"
_CUT = 1500
"""Characters of a text that are shown, where the template names no other limit."""

_NOTHING = "\N{EN DASH}"
"""What stands where a number has no meaning, such as the share of none."""


def write_report(study: Study) -> Path:
    """Write results/report.html from the assembled tables; returns its path.

    Raises:
        StudyError: the study was not assembled yet, or under another config, or the disk is full.
    """
    with open_results(study) as db:
        found = find(db)
        _refuse_other_settings(study, found.settings)
        annotation = annotation_of(db)
        examples = examples_of(study, db)
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    page = _environment().get_template("report.html.j2")
    html = page.render(
        found=found,
        annotation=annotation,
        drawn=[step.number for step in study.config.steps if step.permuted],
        as_stored=[step.number for step in study.config.steps if not step.permuted],
        examples=examples,
        prompts=shown_prompts(study.config, examples),
        config=study.config,
        names=tuple(f"step{step.number}" for step in study.config.steps),
        meanings=MEANINGS,
        verdict_names={name: verdict_name(name, study.config.steps) for name in MEANINGS},
        style=_trusted(style),
        policy=_policy(style),
        version=__version__,
        noise=noise_found(study),
        certificate=certificate_line(study),
        notices=notices_of(study, {row["engine"] for row in found.engines.rows}),
    )
    with publish(study.report) as path:
        path.write_text(html, encoding="utf-8", errors="replace")
    return study.report


def _refuse_other_settings(study: Study, stored: Mapping[str, str]) -> None:
    """Refuse tables that were assembled under another config: the page would mix two studies in silence."""
    now = settings_of(study.config)
    then = {name: value for name, value in stored.items() if name != "benchcheck"}
    for name in sorted(set(now) | set(then)):
        if now.get(name) != then.get(name):
            raise StudyError(
                f"{study.database}: assembled with {name} = {then.get(name)}, but the config says {now.get(name)}. "
                f"Cure: benchcheck assemble {study.root}"
            )


def _policy(style: str) -> str:
    """The content security policy: pictures inside the file and this very style sheet, nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _trusted(text: str) -> str:
    """Text of this package that needs no escaping."""
    from markupsafe import Markup

    return Markup(text)


def _environment() -> "Environment":
    """Jinja with escaping always on; a name that is not there is an error, never an empty string."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(clean=clean, whole=_whole, percent=_percent, nats=_nats, seconds=_seconds)
    return environment


def clean(text: Any, limit: int = _CUT) -> str:
    """Return text as a page can show it: control characters as visible marks, cut after `limit` characters."""
    shown = str(text)
    cut = len(shown) - limit
    marks = "".join(_visible(character) for character in shown[:limit])
    return f"{marks} … ({cut:,} more characters)" if cut > 0 else marks


def _visible(character: str) -> str:
    """A control character as its picture (U+2400…), other unprintable ones as a replacement mark."""
    if character in "\n\t":
        return character
    kind = unicodedata.category(character)
    if kind == "Cc":
        return chr(0x2400 + ord(character)) if ord(character) < 0x20 else "\N{REPLACEMENT CHARACTER}"
    return "\N{REPLACEMENT CHARACTER}" if kind in ("Cs", "Cn", "Co") else character


def _whole(number: float) -> str:
    """A count with thousands marked."""
    return f"{number:,.0f}"


def _percent(share: float | None) -> str:
    """A share in percent; one that is not zero never reads 0."""
    if share is None:
        return _NOTHING
    if 0 < share < 0.001:
        return "<\N{NO-BREAK SPACE}0.1\N{NO-BREAK SPACE}%"
    return f"{share:.1%}".replace(".0%", "%").replace("%", "\N{NO-BREAK SPACE}%")


def _nats(value: float | None) -> str:
    """A margin with two digits, a true minus sign and no minus before zero."""
    return _NOTHING if value is None else f"{value:z.2f}".replace("-", "\N{MINUS SIGN}")


def _seconds(value: float | None) -> str:
    """Seconds as hours, minutes and seconds where they are many."""
    if value is None:
        return _NOTHING
    if value < 120:
        return f"{value:.1f} s"
    minutes = round(value / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
